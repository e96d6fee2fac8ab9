//! A run: compiles, executes in several orders, compares, and reports.

use coulis_ir::args::{ArgInfo, bind_args};
use coulis_ir::device::{has_launches, host_program};
use coulis_ir::print::{Notes, print_kernel_with_notes};
use coulis_ir::visit::{for_each_stmt, uses_any};
use coulis_ir::{Checked, Form, Kernel, MemScope, Stmt};

use crate::args::{Options, SimArg};
use crate::code::{Plan, RegionInfo, RegionKind};
use crate::compile::plan;
use crate::detector::Detector;
use crate::error::SimError;
use crate::exec::{Interpreter, Stop};
use crate::memory::{Region, overlaps, regions, write_back};
use crate::order::{FIRST_SERIAL, MAX_TIME};
use crate::report::SimReport;
use crate::schedule::Chance;
use crate::violation::{Case, Site, Violation, ViolationKind, Violations};

/// Runs a kernel on the simulated GPU: outputs are changed in place, and what the kernel does that a GPU does not
/// promise to do is in the report.
///
/// A kernel without launches runs as one thread. Execution goes on after a violation: what is read from outside of
/// memory, or from memory that nothing wrote, has all bits set.
///
/// # Errors
/// Where arguments do not fit, where the kernel is none that the simulator runs, and where it does not end. Arguments
/// are unchanged then.
pub fn run(kernel: &Checked, args: &mut [SimArg<'_>], options: &Options) -> Result<SimReport, SimError> {
    match options.warp {
        32 => run_warps::<32>(kernel, args, options),
        64 => run_warps::<64>(kernel, args, options),
        found => Err(SimError::Warp { found }),
    }
}

/// Whether the simulator runs a kernel, as far as it can be told without arguments.
///
/// # Errors
/// Where the kernel is not in Flat form, has launches that are no program of launches, or asks for memory that no run
/// would give it.
pub fn check(kernel: &Checked) -> Result<(), SimError> {
    let kernel = kernel.kernel();
    if kernel.form != Form::Flat {
        return Err(SimError::NotFlat { kernel: kernel.name.clone(), form: kernel.form.name() });
    }
    if has_launches(&kernel.body) {
        host_program(kernel)?;
    }
    memory_is_there(&kernel.body)
}

/// Refuses memory of a scope that there is none of, and memory whose size changes while the kernel runs.
fn memory_is_there(body: &Stmt) -> Result<(), SimError> {
    let mut changing = Vec::new();
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::For { var, .. } | Stmt::LaunchThread { var, .. } = stmt {
            changing.push(var.clone());
        }
    });
    let mut fault = None;
    for_each_stmt(body, &mut |stmt| {
        let Stmt::Allocate { buffer, .. } = stmt else { return };
        let name = || buffer.name.clone();
        if buffer.scope == MemScope::Warp {
            fault.get_or_insert(SimError::Scope { buffer: name(), scope: buffer.scope.name() });
        }
        let used =
            changing.iter().find(|var| buffer.shape.iter().any(|e| uses_any(e, std::slice::from_ref(var))));
        if let Some(var) = used {
            let reason = var.name().to_owned();
            fault.get_or_insert(SimError::Unknown { what: "the size", name: name(), reason });
        }
    });
    fault.map_or(Ok(()), Err)
}

fn run_warps<const W: usize>(
    checked: &Checked,
    args: &mut [SimArg<'_>],
    options: &Options,
) -> Result<SimReport, SimError> {
    let kernel = checked.kernel();
    let infos: Vec<ArgInfo> = args.iter().map(SimArg::info).collect();
    let plan = plan::<W>(checked, bind_args(kernel, &infos)?, &options.block)?;
    let start = |n: u32| -> Result<Interpreter<'_, W>, SimError> {
        let memory = regions(&plan.regions, args)?;
        let mut interpreter =
            Interpreter::new(&plan, memory, detector(&plan.regions, W as u32), options.max_steps);
        let chance = (n > 0).then(|| Chance::new(options.seed.wrapping_add(u64::from(n))));
        interpreter.run(chance).map_err(|stop| stopped(stop, kernel, &plan, options))?;
        Ok(interpreter)
    };
    let mut first = start(0)?;
    record_overlaps(&plan, &first.regions, args, &mut first.detector.violations);
    record_what_is_not_left_zero(&plan, &first.regions, &mut first.detector.violations);
    for n in 1..options.warp_orders.max(1) {
        let other = start(n)?;
        compare(&plan, &mut first, &other);
        first.detector.violations.join(other.detector.violations);
    }
    let (cases, counters) = (first.detector.violations.cases, first.counters);
    write_back(&plan.regions, &first.regions, args)?;
    let (violations, listing) = describe(kernel, &plan.stmts, cases);
    Ok(SimReport { kernel: kernel.name.clone(), violations, listing, counters })
}

fn detector(infos: &[RegionInfo], lanes: u32) -> Detector<'_> {
    let (launch, base, serial) = (0, FIRST_SERIAL, FIRST_SERIAL);
    Detector {
        violations: Violations::default(),
        infos,
        launch,
        base,
        serial,
        n_warps: 1,
        grid: [1; 3],
        cluster: [1; 3],
        block: [1; 3],
        lanes,
    }
}

fn stopped<const W: usize>(stop: Stop, kernel: &Kernel, plan: &Plan<'_, W>, options: &Options) -> SimError {
    match stop {
        Stop::Error(error) => error,
        Stop::Interrupted => SimError::Interrupted { kernel: kernel.name.clone() },
        Stop::Barriers => SimError::Barriers { kernel: kernel.name.clone(), limit: MAX_TIME },
        Stop::Steps(stmt) => {
            let mut sites = sites(kernel, &plan.stmts, &[stmt]);
            let Site { statement, line } = sites.pop().unwrap_or_default();
            SimError::Steps { kernel: kernel.name.clone(), steps: options.max_steps, statement, line }
        }
    }
}

fn record_what_is_not_left_zero<const W: usize>(
    plan: &Plan<'_, W>,
    memory: &[Region],
    violations: &mut Violations,
) {
    for (at, (info, region)) in plan.regions.iter().zip(memory).enumerate() {
        let left_zero = matches!(info.kind, RegionKind::Temporary { left_zero: true, .. });
        let bytes = info.len * info.dtype.bytes();
        if !left_zero || region.bytes.iter().take(bytes).all(|byte| *byte == 0) {
            continue;
        }
        let writer = region.shadow.iter().find_map(|s| (0..region.len).find_map(|at| s.writer(at)));
        violations.record(
            ViolationKind::NotLeftZero,
            (writer.map_or(0, |(_, stmt)| stmt), None),
            at as u32,
            || {
                let text = format!("`{}` is said to be left zero for the next call, and is not", info.name);
                (Vec::new(), text)
            },
        );
    }
}

fn record_overlaps<const W: usize>(
    plan: &Plan<'_, W>,
    memory: &[Region],
    args: &[SimArg<'_>],
    violations: &mut Violations,
) {
    for (a, b) in overlaps(&plan.regions, memory, args) {
        let (written, other) = (&plan.regions[a].name, &plan.regions[b].name);
        let stmt = memory[a].shadow.iter().find_map(|s| (0..memory[a].len).find_map(|at| s.writer(at)));
        let stmt = stmt.map_or(0, |(_, stmt)| stmt);
        violations.record(ViolationKind::Overlap, (stmt, None), a as u32, || {
            (Vec::new(), format!("argument `{written}` is written and shares memory with argument `{other}`"))
        });
    }
}

/// Records the first element of each region that another order left with other bits. Any NaN equals any NaN.
fn compare<const W: usize>(plan: &Plan<'_, W>, first: &mut Interpreter<'_, W>, other: &Interpreter<'_, W>) {
    for (n, info) in plan.regions.iter().enumerate() {
        let (a, b) = (&first.regions[n], &other.regions[n]);
        if info.is_shared() || !info.is_written || a.bytes == b.bytes {
            continue;
        }
        let decode = crate::lanes::decode::<W>(info.dtype);
        let is_nan = |bits: u64| {
            let value = decode(&[bits; W])[0];
            match info.dtype {
                coulis_ir::DType::F32 => f32::from_bits(value as u32).is_nan(),
                dtype => dtype.is_float() && f64::from_bits(value).is_nan(),
            }
        };
        let differs = |at: &usize| {
            let (x, y) = (a.get(*at), b.get(*at));
            x != y && !(is_nan(x) && is_nan(y))
        };
        let Some(at) = (0..a.len).find(differs) else { continue };
        let writer = a.shadow.as_ref().and_then(|s| s.writer(at));
        let writer = writer.or_else(|| b.shadow.as_ref().and_then(|s| s.writer(at)));
        let index = at as i64 - info.before;
        first.detector.violations.record(
            ViolationKind::WarpOrder,
            (writer.map_or(0, |(_, stmt)| stmt), None),
            n as u32,
            || {
                (
                    Vec::new(),
                    format!(
                        "element {index} of `{}` has other bits when warps run in another order",
                        info.name
                    ),
                )
            },
        );
    }
}

/// The printed line of each of these statements.
fn sites(kernel: &Kernel, stmts: &[&Stmt], ids: &[u32]) -> Vec<Site> {
    let mark = |id: u32| format!("statement {id}");
    let mut notes = Notes::default();
    let mut seen = Vec::new();
    for id in ids {
        if let (Some(stmt), false) = (stmts.get(*id as usize), seen.contains(id)) {
            notes.on_stmt(stmt, mark(*id));
            seen.push(*id);
        }
    }
    let text = print_kernel_with_notes(kernel, notes);
    let mut found = vec![Site::default(); ids.len()];
    let mut site = Site::default();
    for line in text.lines() {
        match line.trim_start().strip_prefix("# ^^^^ ") {
            None => site = Site { statement: line.trim().to_owned(), line: site.line + 1 },
            Some(marked) => {
                for (id, found) in ids.iter().zip(&mut found) {
                    if marked == mark(*id) {
                        *found = site.clone();
                    }
                }
            }
        }
    }
    found
}

/// Violations in the order of the text, and the text with them.
fn describe(kernel: &Kernel, stmts: &[&Stmt], cases: Vec<Case>) -> (Vec<Violation>, String) {
    let ids: Vec<u32> = cases.iter().map(|c| c.stmt).chain(cases.iter().filter_map(|c| c.other)).collect();
    let found = sites(kernel, stmts, &ids);
    let site = |id: u32| {
        let at = ids.iter().position(|other| *other == id);
        at.and_then(|at| found.get(at)).cloned().unwrap_or_default()
    };
    let mut notes = Notes::default();
    let mut violations: Vec<Violation> = Vec::new();
    for case in cases {
        let Case { kind, stmt, other, threads, message, count } = case;
        if let Some(stmt) = stmts.get(stmt as usize) {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            notes.on_stmt(stmt, format!("{}: {message}{times}", kind.name()));
        }
        let (site, other) = (site(stmt), other.map(site));
        violations.push(Violation { kind, site, other, threads, message, count });
    }
    violations.sort_by_key(|a| (a.site.line, a.kind));
    (violations, print_kernel_with_notes(kernel, notes))
}
