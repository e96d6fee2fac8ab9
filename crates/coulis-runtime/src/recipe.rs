//! What a process has to know to call a compiled file without planning, lowering and emitting again.
//!
//! A recipe is in the cache next to the compiled file that it names, under the hash of the plan (whatever the
//! caller knows a kernel by before it makes one), of the compiler and the CPU, and of the very file of coulis
//! that runs: a planner or emitter that changed must not find what another one planned. It holds the
//! parameters in full, so that the one binder (`coulis_ir::args`) checks calls as ever, the emitted text, and
//! a note of the caller's.
//!
//! Only parameters whose extents and strides are constants or bare variables are kept, and only without offsets.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_void};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;

use coulis_codegen::Source;
use coulis_ir::{Buffer, DType, Expr, Form, Kernel, MemScope, Param, Stmt, Var, VarKind};

use crate::cache::Key;
use crate::device::Parameter;

const HEAD: &str = "coulis recipe 2";
const READ: &str = "read";
const WRITTEN: &str = "written";

/// See the module's comment.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kernel's name and parameters; its body is empty.
    pub signature: Kernel,
    /// Its buffer parameters.
    pub parameters: Vec<Parameter>,
    /// What was compiled, and how it is called.
    pub source: Source,
    /// Key of the compiled file.
    pub file: Key,
    /// Words of the caller.
    pub note: String,
}

/// The kernel without its body.
pub fn signature(kernel: &Kernel) -> Kernel {
    Kernel {
        body: Stmt::Seq(Vec::new()),
        attrs: BTreeMap::new(),
        params: kernel.params.clone(),
        name: kernel.name.clone(),
        form: kernel.form,
    }
}

impl Recipe {
    /// The recipe as bytes; `None` where the parameters are not of the kind that is kept.
    pub fn write(&self) -> Option<Vec<u8>> {
        let mut vars: Vec<Var> = Vec::new();
        let mut number = |e: &Expr| -> Option<String> {
            if let Some(value) = e.as_int() {
                return Some(format!("{value}:{}", e.dtype().name()));
            }
            let var = e.as_var()?;
            let at = vars.iter().position(|v| v == var).unwrap_or_else(|| {
                vars.push(var.clone());
                vars.len() - 1
            });
            Some(format!("v{at}"))
        };
        let mut params = String::new();
        for (param, facts) in self.signature.params.iter().zip(&self.parameters) {
            let Param::Buffer { handle, buffer } = param else { return None };
            let has_blank = |name: &str| name.contains(char::is_whitespace);
            if has_blank(handle.name()) || has_blank(&buffer.name) {
                return None;
            }
            if !buffer.elem_offset.is_int(0) || buffer.scope != MemScope::Global {
                return None;
            }
            let list = |exprs: &[Expr], number: &mut dyn FnMut(&Expr) -> Option<String>| {
                exprs.iter().map(number).collect::<Option<Vec<_>>>().map(|l| l.join(","))
            };
            let shape = list(&buffer.shape, &mut number)?;
            let strides = list(&buffer.strides, &mut number)?;
            let _ = writeln!(
                params,
                "param {} {} {} {} [{shape}] [{strides}]",
                handle.name(),
                buffer.name,
                buffer.dtype.name(),
                if facts.is_written { WRITTEN } else { READ }
            );
        }
        let scalars = self.source.scalars.iter().map(|v| number(&v.expr())).collect::<Option<Vec<_>>>()?;
        let mut text = format!(
            "{HEAD}\nkernel {}\nentry {}\nfile {}\n",
            self.signature.name,
            self.source.entry,
            self.file.hex()
        );
        for var in &vars {
            let kind = if var.kind() == VarKind::Size { "size" } else { "plain" };
            let _ = writeln!(text, "var {} {} {kind}", var.name(), var.dtype().name());
        }
        text += &params;
        let _ = writeln!(text, "scalars {}", scalars.join(","));
        let _ = writeln!(text, "note {}", self.note.len());
        text.push_str(&self.note);
        text.push_str(&self.source.text);
        Some(text.into_bytes())
    }

    /// The recipe of these bytes; `None` where they are none.
    pub fn read(bytes: &[u8]) -> Option<Recipe> {
        let mut rest = std::str::from_utf8(bytes).ok()?;
        let mut line = || -> Option<(&str, &str)> {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            Some(line.split_once(' ').unwrap_or((line, "")))
        };
        let head = line()?;
        if format!("{} {}", head.0, head.1) != HEAD {
            return None;
        }
        let (mut name, mut entry, mut file) = (None, None, None);
        let (mut vars, mut params): (Vec<Var>, Vec<Param>) = (Vec::new(), Vec::new());
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut scalars: Vec<Var> = Vec::new();
        let length = loop {
            match line()? {
                ("kernel", word) => name = Some(word.to_owned()),
                ("entry", word) => entry = Some(word.to_owned()),
                ("file", word) => file = Some(Key::from_hex(word)?),
                ("var", words) => {
                    let mut words = words.split(' ');
                    let (name, dtype) = (words.next()?, words.next()?.parse().ok()?);
                    vars.push(match words.next()? {
                        "size" => Var::size(name, dtype),
                        _ => Var::new(name, dtype),
                    });
                }
                ("param", words) => {
                    let (handle, buffer, is_written) = param(words, &vars)?;
                    let (name, dtype) = (buffer.name.clone(), buffer.dtype);
                    params.push(Param::Buffer { handle, buffer });
                    parameters.push(Parameter { name, dtype, is_written });
                }
                ("scalars", words) => {
                    for word in words.split(',').filter(|w| !w.is_empty()) {
                        scalars.push(vars.get(word.strip_prefix('v')?.parse::<usize>().ok()?)?.clone());
                    }
                }
                ("note", n) => break n.parse::<usize>().ok()?,
                _ => return None,
            }
        };
        let (note, text) = rest.split_at_checked(length)?;
        let signature = Kernel {
            name: name?,
            params,
            attrs: BTreeMap::new(),
            form: Form::Flat,
            body: Stmt::Seq(Vec::new()),
        };
        let buffers = signature.param_buffers().map(|b| b.name.clone()).collect();
        let (text, entry) = (text.to_owned(), entry?);
        // Kernels of plans read and write their arrays once, and are not interrupted.
        let source = Source { text, entry, buffers, scalars, ends_early: false };
        Some(Recipe { signature, parameters, source, file: file?, note: note.to_owned() })
    }
}

/// `handle name dtype read [extents] [strides]`, or `written` for `read`.
fn param(words: &str, vars: &[Var]) -> Option<(Var, Buffer, bool)> {
    let mut words = words.split(' ');
    let (handle, name, dtype) = (words.next()?, words.next()?, words.next()?.parse::<DType>().ok()?);
    let is_written = match words.next()? {
        WRITTEN => true,
        READ => false,
        _ => return None,
    };
    let mut list = || -> Option<Vec<Expr>> {
        let inside = words.next()?.strip_prefix('[')?.strip_suffix(']')?;
        inside.split(',').filter(|w| !w.is_empty()).map(|word| number(word, vars)).collect()
    };
    let (shape, strides) = (list()?, list()?);
    let buffer = Buffer::new(name, dtype, shape, MemScope::Global).derive(|b| b.strides = strides);
    Some((Var::handle(handle), buffer, is_written))
}

/// `v3`, or `16:int64`.
fn number(word: &str, vars: &[Var]) -> Option<Expr> {
    if let Some(at) = word.strip_prefix('v') {
        return vars.get(at.parse::<usize>().ok()?).map(Var::expr);
    }
    let (value, dtype) = word.split_once(':')?;
    Some(Expr::int_of(value.parse().ok()?, dtype.parse::<DType>().ok()?))
}

/// The file that this code was loaded from: its path, size and times; `None` where the system does not tell.
pub fn generator() -> Option<&'static str> {
    static GENERATOR: OnceLock<Option<String>> = OnceLock::new();
    let of_file = || {
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let own = generator as *const c_void;
        // SAFETY: the address is of code of this process, and the answer is a struct of the caller's.
        let is_found = unsafe { libc::dladdr(own, found.as_mut_ptr()) } != 0;
        // SAFETY: all bytes zero is a value of the struct.
        let found = unsafe { found.assume_init() };
        if !is_found || found.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the system gives a string that lives as long as the library is loaded, which is longer than this call.
        let name = unsafe { CStr::from_ptr(found.dli_fname) };
        let mut path = Path::new(OsStr::from_bytes(name.to_bytes())).to_owned();
        if !path.is_absolute() {
            // A program that was started by a relative name.
            path = std::env::current_exe().ok()?;
        }
        stamp(&path)
    };
    GENERATOR.get_or_init(of_file).as_deref()
}

/// What tells a file from what it was or will be: device, number, size, time of its content and of its change.
pub fn stamp(path: &Path) -> Option<String> {
    let meta = path.metadata().ok()?;
    Some(format!(
        "{}|{}|{}|{}|{}.{}|{}.{}",
        path.display(),
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        let (n, s) = (Var::size("n", DType::I64), Var::new("stride", DType::I64));
        let int = |v| Expr::int_of(v, DType::I64);
        let a = Buffer::new("A", DType::F32, vec![n.expr(), int(4)], MemScope::Global)
            .derive(|b| b.strides = vec![s.expr(), int(1)]);
        let b = Buffer::new("B", DType::F64, vec![n.expr()], MemScope::Global);
        let params = [("A_ptr", a), ("B_ptr", b)]
            .map(|(handle, buffer)| Param::Buffer { handle: Var::handle(handle), buffer });
        let signature = Kernel {
            name: "k".to_owned(),
            params: params.to_vec(),
            attrs: BTreeMap::new(),
            form: Form::Flat,
            body: Stmt::Seq(Vec::new()),
        };
        let source = Source {
            text: "int main;\nnote 3\n".to_owned(),
            entry: "coulis_k".to_owned(),
            buffers: vec!["A".to_owned(), "B".to_owned()],
            scalars: vec![s, n],
            ends_early: false,
        };
        let mut parameters = Parameter::all_of(&signature);
        parameters[1].is_written = true;
        Recipe { signature, parameters, source, file: Key::of(&[b"x"]), note: "two\nlines é".to_owned() }
    }

    #[test]
    fn a_recipe_is_read_as_it_was_written() {
        let (old, new) = (recipe(), Recipe::read(&recipe().write().unwrap()).unwrap());
        assert_eq!((&new.signature, &new.parameters), (&old.signature, &old.parameters));
        assert_eq!((&new.note, new.file), (&old.note, old.file));
        assert_eq!((&new.source.text, &new.source.entry), (&old.source.text, &old.source.entry));
        let names = |r: &Recipe| r.source.scalars.iter().map(|v| v.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&new), names(&old));
        let own = new.signature.param_buffers().next().unwrap().shape[0].as_var().unwrap().clone();
        assert_eq!(new.source.scalars[1], own, "scalars are the variables of the parameters");
    }

    #[test]
    fn parameters_of_another_kind_are_not_kept() {
        let mut odd = recipe();
        let Param::Buffer { buffer, .. } = &mut odd.signature.params[1] else { panic!("a buffer") };
        let n = buffer.shape[0].clone();
        *buffer = buffer.derive(|b| b.shape = vec![n.clone() + n]);
        assert!(odd.write().is_none());
        let mut shifted = recipe();
        let Param::Buffer { buffer, .. } = &mut shifted.signature.params[1] else { panic!("a buffer") };
        *buffer = buffer.derive(|b| b.elem_offset = Expr::int_of(3, DType::I64));
        assert!(shifted.write().is_none());
    }

    #[test]
    fn bytes_that_are_no_recipe_are_none() {
        let whole = recipe().write().unwrap();
        for end in 0..whole.len() - recipe().source.text.len() {
            assert!(Recipe::read(&whole[..end]).is_none(), "{end}");
        }
        assert!(Recipe::read(b"coulis recipe 3\n").is_none());
        assert!(Recipe::read(&[0xff, 0xfe]).is_none());
    }

    #[test]
    fn this_code_has_a_file() {
        assert!(generator().is_some_and(|g| g.contains('|')));
    }
}
