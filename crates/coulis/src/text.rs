//! The text door: kernels as text become functions, listings and C.
//!
//! Text is parsed and never executed. A kernel in Nest form goes through the passes; one in Flat form is verified as it
//! stands.

use std::collections::BTreeMap;

use coulis_codegen::{Module, dialect_named, emit, emit_module};
use coulis_ir::device::{has_launches, names_scope_ids};
pub use coulis_ir::print::print_kernel;
use coulis_ir::print::{print_module, print_stmt};
use coulis_ir::stmt::TileOp;
use coulis_ir::target::TargetKind;
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{Checked, Form, Kernel, Stmt, Target};
use coulis_lower::{Options, PASSES};
use coulis_reducers::{ClaimError, accumulating, spot_check};
use coulis_runtime::RuntimeError;
use coulis_runtime::cuda::{CudaCompiler, disassemble};
use coulis_schedule::{Schedule, build_nest};
use coulis_tensor::Tensor;
pub use coulis_tile::{Accuracy, Decline, Row, Verdict};

use crate::error::Error;
use crate::function::{CompileOptions, Function};
use crate::pipeline::{
    compile_schedule, given_faults, lower_kernel, lower_scheduled, permit_given, with_reducers,
};
use crate::target::TargetChoice;

/// The functions of a text, in its order.
pub fn compile(text: &str, options: &CompileOptions) -> Result<Vec<Function>, Error> {
    kernels(text)?.into_iter().map(|kernel| Function::of_kernel(kernel, options)).collect()
}

/// The function of a text that holds one.
pub fn compile_one(text: &str, options: &CompileOptions) -> Result<Function, Error> {
    Function::of_kernel(one(text, None)?, options)
}

/// The kernel of that name; without a name, that of a text that holds one.
pub fn one(text: &str, name: Option<&str>) -> Result<Kernel, Error> {
    let mut kernels = kernels(text)?;
    let all = kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>().join(", ");
    let count = kernels.len();
    if let Some(name) = name {
        kernels.retain(|kernel| kernel.name == name);
    }
    let message = match (kernels.len(), name) {
        (1, _) => return Ok(kernels.remove(0)),
        (_, None) => {
            format!("the text is to hold one function, got {count}, of which one is to be named: {all}")
        }
        (0, Some(name)) => format!("the text has no function `{name}`; legal are {all}"),
        (found, Some(name)) => {
            format!("the text has {found} functions `{name}`; give each a name of its own")
        }
    };
    Err(Error::user("text", message))
}

/// The text of a file; of standard input for `-`.
pub fn read(path: impl AsRef<std::path::Path>) -> Result<String, Error> {
    let text = match path.as_ref().to_str() {
        Some("-") => coulis_io::text_from(std::io::stdin()),
        _ => coulis_io::read_text(path.as_ref()),
    };
    text.map_err(|error| {
        let why = error.to_string().to_lowercase();
        Error::user("read/text", format!("cannot read the text `{}`: {why}", path.as_ref().display()))
    })
}

/// The kernels of a text, in its order; at least one.
pub fn kernels(text: &str) -> Result<Vec<Kernel>, Error> {
    let kernels = coulis_script::parse_module(text)?;
    if kernels.is_empty() {
        return Err(Error::user(
            "text",
            "the text has no function; a kernel is a function with `@T.prim_func`",
        ));
    }
    kernels.iter().try_for_each(try_reducers)?;
    Ok(kernels)
}

/// Refuses reducers of tile calls whose laws random values refute (contract N16), in the state that is folded. Taken at
/// their word are states of several fields, since a text does not say which values of them go together, and what uses
/// variables of its surroundings, which has no value here.
fn try_reducers(kernel: &Kernel) -> Result<(), Error> {
    let mut refuted = None;
    for_each_stmt(&kernel.body, &mut |stmt| {
        let Stmt::Tile(call) = stmt else { return };
        let TileOp::ReduceBy { reducer, .. } = &call.op else { return };
        if reducer.fields.len() > 1 {
            return;
        }
        let wide = accumulating(reducer);
        if let Err(ClaimError::Refuted(found)) = spot_check(wide.as_ref().unwrap_or(reducer), SEED) {
            refuted.get_or_insert(format!("{}{found}", call.site));
        }
    });
    refuted.map_or(Ok(()), |found| Err(Error::user("text/reducer", found)))
}

/// Of the values on which laws are tried.
const SEED: u64 = 16;

/// The text as coulis prints it: reading that gives the same kernels, and printing them the same text.
pub fn canonical(text: &str) -> Result<String, Error> {
    let kernels = kernels(text)?;
    Ok(match kernels.as_slice() {
        [one] => coulis_ir::print::print_kernel(one),
        all => print_module(all),
    })
}

/// The passes in order, a line each: name, forms, what it does.
pub fn passes() -> String {
    let width = PASSES.iter().map(|p| p.name.len()).max().unwrap_or(0);
    let line = |p: &&coulis_lower::Pass| {
        let (name, from, to) = (p.name, p.from.name(), p.to.name());
        format!("{name:<width$}  {from} -> {to}  {}\n", p.doc)
    };
    PASSES.iter().map(line).collect()
}

/// The target; without one, this machine's CPU, or a GPU for a kernel that runs on threads.
fn facts_for(kernel: &Kernel, target: Option<&TargetChoice>) -> Result<Target, Error> {
    let own = match has_launches(&kernel.body) || names_scope_ids(&kernel.body) {
        true => TargetChoice::Cuda { arch: None },
        false => TargetChoice::Cpu,
    };
    target.unwrap_or(&own).facts()
}

/// The text of the kernels after the passes; after the pass of that name, where one is named. Without a target, for this
/// machine's CPU, or for a GPU where a kernel launches threads.
pub fn lower(text: &str, after: Option<&str>, target: Option<&TargetChoice>) -> Result<String, Error> {
    if let Some(name) = after.filter(|name| PASSES.iter().all(|p| p.name != *name)) {
        let names: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
        let message = format!("there is no pass `{name}`; passes are {}", names.join(", "));
        return Err(Error::user("lower/pass", message));
    }
    let mut lowered = Vec::new();
    for kernel in kernels(text)? {
        let target = facts_for(&kernel, target)?;
        match (kernel.form, after) {
            (Form::Nest | Form::Tiled, after) => lowered.push(lower_nest(kernel, after, &target)?),
            (Form::Flat, None) => lowered.push(permit_given(kernel)?.kernel().clone()),
            (Form::Flat, Some(name)) => {
                let message =
                    format!("kernel `{}` is in Flat form already, and pass `{name}` is not run", kernel.name);
                return Err(Error::user("lower/form", message));
            }
        }
    }
    Ok(print_module(&lowered))
}

/// The table of variants of one tile call.
#[derive(Clone, Debug)]
pub struct CallTable {
    /// The kernel.
    pub kernel: String,
    /// The call as text.
    pub call: String,
    /// The architecture that it is lowered for.
    pub arch: String,
    /// A row each variant, highest priority first.
    pub rows: Vec<Row>,
}

/// The tables of all tile calls of a text, in its order. That no variant accepts a call is an answer, not an error.
pub fn explain(text: &str, target: &TargetChoice) -> Result<Vec<CallTable>, Error> {
    let target = target.facts()?;
    let mut tables = Vec::new();
    for kernel in kernels(text)? {
        if kernel.form == Form::Tiled {
            tables.extend(explain_kernel(permit_given(kernel)?.kernel(), &target)?);
        }
    }
    Ok(tables)
}

/// The tables of all tile calls of a kernel.
pub(crate) fn explain_kernel(kernel: &Kernel, target: &Target) -> Result<Vec<CallTable>, Error> {
    let mut calls = Vec::new();
    for_each_stmt(&kernel.body, &mut |stmt| {
        if let Stmt::Tile(_) = stmt {
            calls.push(print_stmt(stmt).trim().to_owned());
        }
    });
    let explained = coulis_lower::explain_tiles(&with_reducers(kernel.clone())?, target)?;
    let table = |(call, (_, rows)): (String, (_, Vec<Row>))| CallTable {
        kernel: kernel.name.clone(),
        call,
        arch: target.arch.clone(),
        rows,
    };
    Ok(calls.into_iter().zip(explained).map(table).collect())
}

impl std::fmt::Display for CallTable {
    /// The call, then a line each variant.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} on {}: {}", self.kernel, self.arch, self.call)?;
        writeln!(f, "{}", coulis_tile::variant::table(&self.rows))
    }
}

/// The permitted Flat kernel of one that a user gives, in any form.
fn flat(kernel: Kernel, target: &Target) -> Result<Checked, Error> {
    match kernel.form {
        Form::Nest | Form::Tiled => {
            let nest = permit_given(kernel)?.kernel().clone();
            Ok(lower_kernel(nest, &options(target), &mut |_, _| {})?.checked)
        }
        Form::Flat => permit_given(kernel),
    }
}

/// The same, with the permit of a machine with threads, too. What it refuses is the user's to change.
fn flat_for(kernel: Kernel, target: &Target) -> Result<Checked, Error> {
    coulis_ir::verify::verify_more_for(flat(kernel, target)?, target).map_err(given_faults)
}

/// The C text of the kernels.
pub fn emit_c(text: &str) -> Result<String, Error> {
    let target = TargetChoice::Cpu.facts()?;
    let mut out = Emitted::default();
    for kernel in kernels(text)? {
        let checked = flat(kernel, &target)?;
        let emitted = dialect_named("c")
            .and_then(|dialect| emit(&checked, dialect, coulis_codegen::Options::for_target(&target)));
        let source = emitted.map_err(|e| Error::unsupported("emit", e))?;
        out.add(&checked.kernel().name, &source.text, [source.entry])?;
    }
    Ok(out.text)
}

/// The text of several kernels, whose functions have names of their own.
#[derive(Default)]
struct Emitted {
    text: String,
    /// Functions of the text, and the kernels that they are of.
    functions: BTreeMap<String, String>,
}

impl Emitted {
    /// Adds the text of a kernel, unless one of its functions is named as one of another kernel is.
    fn add(
        &mut self,
        kernel: &str,
        text: &str,
        functions: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let functions: Vec<String> = functions.into_iter().collect();
        if let Some((function, other)) = functions.iter().find_map(|f| self.functions.get_key_value(f)) {
            let message =
                format!("functions `{other}` and `{kernel}` both become `{function}`; give one another name");
            return Err(Error::user("emit/name", message));
        }
        self.functions.extend(functions.into_iter().map(|function| (function, kernel.to_owned())));
        self.text.push_str(text);
        Ok(())
    }
}

/// The listing of a schedule as seed 003 prints it: loops whole, `T.likely` kept.
pub fn listing(schedule: &Schedule, args: &[Tensor], name: &str) -> Result<String, Error> {
    listing_by(schedule, args, name, None, |target| Options { target, simple_mode: true })
}

/// The listing of a schedule with its loops in parts, so that most iterations test no bounds: what is compiled for the
/// target; without one, for this machine's CPU, or for a GPU where the schedule launches threads.
pub fn listing_partitioned(
    schedule: &Schedule,
    args: &[Tensor],
    name: &str,
    target: Option<&TargetChoice>,
) -> Result<String, Error> {
    listing_by(schedule, args, name, target, options)
}

fn listing_by(
    schedule: &Schedule,
    args: &[Tensor],
    name: &str,
    target: Option<&TargetChoice>,
    options: fn(&Target) -> Options<'_>,
) -> Result<String, Error> {
    let nest = build_nest(schedule, args, name)?;
    let target = facts_for(&nest, target)?;
    let lowered = lower_scheduled(schedule, nest, &options(&target), &mut |_, _| {})?;
    Ok(print_module(std::slice::from_ref(lowered.checked.kernel())))
}

/// The text of a GPU's kernels for a schedule: CUDA for NVIDIA targets.
pub fn device_source(
    schedule: &Schedule,
    args: &[Tensor],
    name: &str,
    target: &TargetChoice,
) -> Result<String, Error> {
    let lowered = compile_schedule(schedule, args, name, &cuda_facts(target)?)?;
    Ok(cuda_module(&lowered.checked)?.text)
}

/// The CUDA text of the kernels of a text.
pub fn emit_cuda(text: &str, target: &TargetChoice) -> Result<String, Error> {
    let target = cuda_facts(target)?;
    let mut out = Emitted::default();
    for kernel in kernels(text)? {
        let checked = flat_for(kernel, &target)?;
        let module = cuda_module(&checked)?;
        let functions = module.kernels.into_iter().map(|launch| launch.name);
        out.add(&checked.kernel().name, &module.text, functions)?;
    }
    Ok(out.text)
}

/// What the CUDA text of a kernel is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CudaBinary {
    /// PTX text.
    Ptx,
    /// Machine code, as a file that the driver loads.
    Cubin,
    /// Machine code as text.
    Sass,
}

/// The CUDA text of the one kernel of a text, compiled. Needs NVRTC and no GPU.
pub fn emit_cuda_binary(text: &str, target: &TargetChoice, to: CudaBinary) -> Result<Vec<u8>, Error> {
    let target = cuda_facts(target)?;
    let checked = flat_for(one(text, None)?, &target)?;
    let module = cuda_module(&checked)?;
    let name = &checked.kernel().name;
    let (compiler, _) = CudaCompiler::open(&crate::device::cuda_options().search(), None);
    let refused = |error| Error::unsupported("emit", RuntimeError::Cuda(error));
    match to {
        CudaBinary::Ptx => {
            compiler.ptx(name, &module.text, &target.arch).map(String::into_bytes).map_err(refused)
        }
        CudaBinary::Cubin => {
            compiler.cubin(name, &module.text, &target.arch).map(|(code, _)| code).map_err(refused)
        }
        CudaBinary::Sass => {
            let (code, _) = compiler.cubin(name, &module.text, &target.arch).map_err(refused)?;
            disassemble(compiler.search(), &code).map(String::into_bytes).map_err(refused)
        }
    }
}

/// The facts of a target for which CUDA text is made, whose functions are those of warps of 32 lanes.
fn cuda_facts(target: &TargetChoice) -> Result<Target, Error> {
    let facts = target.facts()?;
    match facts.kind {
        TargetKind::Cpu | TargetKind::Cuda => Ok(facts),
        TargetKind::Hip => {
            let message = format!("CUDA text is for warps of 32 lanes, and the target has {}", facts.warp);
            Err(Error::unsupported("emit/target", message))
        }
    }
}

fn cuda_module(kernel: &Checked) -> Result<Module, Error> {
    let emitted = dialect_named("cuda").and_then(|dialect| emit_module(kernel, dialect));
    emitted.map_err(|e| Error::unsupported("emit", e))
}

fn lower_nest(kernel: Kernel, after: Option<&str>, target: &Target) -> Result<Kernel, Error> {
    let nest = permit_given(kernel)?.kernel().clone();
    let mut seen = None;
    let lowered = lower_kernel(nest, &options(target), &mut |pass, kernel| {
        if after == Some(pass.name) {
            seen = Some(kernel.clone());
        }
    });
    match seen {
        Some(kernel) => Ok(kernel),
        None => Ok(lowered?.checked.kernel().clone()),
    }
}

fn options(target: &Target) -> Options<'_> {
    Options { target, simple_mode: false }
}
