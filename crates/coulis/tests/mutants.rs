//! Mutants: every golden GPU kernel with a barrier, a fence, a guard or a lane of a mask removed, in turn.
//!
//! The golden kernel itself has no violation and the same answer in every order. A mutant is caught where the verifier
//! refuses it, the simulator finds a violation or stops it, or its answer differs. A mutant that is not caught for any size
//! either means the same as the kernel, and then it is in [`SAME`] with the reason, or it escapes; at least 95 of 100
//! that change the meaning are to be caught.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod simulated;

use std::path::Path;

use coulis_ir::visit::{for_each_stmt, map_children};
use coulis_ir::{Atom, BinaryOp, DType, Expr, Form, Kernel, Node, Stmt, Target};
use coulis_sim::Options;

use simulated::{Setup, simulate};

/// Mutants that mean what their kernel means: file, kernel, what was removed, and why nothing changes.
const SAME: &[(&str, &str, &str, &str)] = &[
    (
        "simulate/barrier_not_reached_by_all.py",
        "good",
        "0, guard `A[0] > -100`",
        "it holds a barrier only, which all reach",
    ),
    (
        "simulate/barrier_not_reached_by_all.py",
        "good",
        "1, barrier Cta",
        "no thread reads what another wrote",
    ),
    (
        "simulate/barrier_not_reached_by_all.py",
        "good",
        "2, guard `c[0] > 1`",
        "it holds a barrier only, of whole warps",
    ),
    (
        "simulate/barrier_not_reached_by_all.py",
        "good",
        "3, barrier Warp",
        "no thread reads what another wrote",
    ),
    (
        "simulate/race_between_warps.py",
        "good",
        "2, barrier Cta",
        "the first thread reads what it wrote itself",
    ),
    ("simulate/votes.py", "good", "4, guard `any_[0]`", "it holds a barrier only, of whole warps"),
    ("simulate/votes.py", "good", "5, barrier Warp", "no thread reads what another wrote"),
];

/// Sizes that kernels with free extents run with: ragged, even, and least.
const SIZES: [(i64, i64); 4] = [(33, 17), (64, 64), (1, 1), (100, 33)];

/// What a mutation looks at.
enum Place<'a> {
    Stmt(&'a Stmt),
    Expr(&'a Expr),
}

/// A kernel with one thing removed.
struct Mutant {
    what: String,
    kernel: Kernel,
}

/// The statement that something is left of when a part of it is removed.
fn without(stmt: &Stmt) -> Vec<(String, Stmt)> {
    match stmt {
        Stmt::Sync(kind) => vec![(format!("barrier {kind:?}"), Stmt::NOP)],
        Stmt::Atom(call) if call.atom == Atom::ThreadFence => vec![("fence".to_owned(), Stmt::NOP)],
        Stmt::If { cond, then, otherwise: None } => {
            let text = coulis_ir::print::print_expr(cond);
            let mut out = vec![(format!("guard `{text}`"), then.as_ref().clone())];
            if let Node::Binary(BinaryOp::And, a, b) = cond.node() {
                for (gone, kept) in [(a, b), (b, a)] {
                    let gone = coulis_ir::print::print_expr(gone);
                    let stmt = Stmt::If { cond: kept.clone(), then: then.clone(), otherwise: None };
                    out.push((format!("guard `{gone}` of `{text}`"), stmt));
                }
            }
            out
        }
        _ => Vec::new(),
    }
}

/// The expression with a lane of a mask, or a guard, removed.
fn without_lane(expr: &Expr) -> Vec<(String, Expr)> {
    match expr.node() {
        Node::Int(mask) if matches!(expr.dtype(), DType::U32 | DType::U64) && mask.count_ones() >= 2 => {
            let (lowest, highest) = (mask.trailing_zeros(), 127 - mask.leading_zeros());
            let cleared = |bit: u32| Expr::int_of(mask & !(1i128 << bit), expr.dtype());
            [lowest, highest].map(|bit| (format!("lane {bit} of mask {mask:#x}"), cleared(bit))).into()
        }
        Node::IfThenElse(cond, a, _) => {
            vec![(format!("guard `{}` of a value", coulis_ir::print::print_expr(cond)), a.clone())]
        }
        _ => Vec::new(),
    }
}

/// Every mutant of a kernel.
fn mutants(kernel: &Kernel) -> Vec<Mutant> {
    let mut out = Vec::new();
    for nth in 0.. {
        let mut search = Search { nth, what: None };
        let body = search.stmt(&kernel.body);
        let Some(what) = search.what else { break };
        // Two barriers look alike; how many things come before tells them apart.
        out.push(Mutant { what: format!("{nth}, {what}"), kernel: Kernel { body, ..kernel.clone() } });
    }
    out
}

/// Rebuilds a statement with the mutation of number `nth`, counted in order of the text.
struct Search {
    nth: usize,
    what: Option<String>,
}

impl Search {
    /// The mutation at this place, if it is the one.
    fn take(&mut self, place: &Place) -> Option<(Option<Stmt>, Option<Expr>)> {
        if self.what.is_some() {
            return None;
        }
        let found: Vec<(String, Option<Stmt>, Option<Expr>)> = match place {
            Place::Stmt(stmt) => without(stmt).into_iter().map(|(w, s)| (w, Some(s), None)).collect(),
            Place::Expr(expr) => without_lane(expr).into_iter().map(|(w, e)| (w, None, Some(e))).collect(),
        };
        if self.nth >= found.len() {
            self.nth -= found.len();
            return None;
        }
        let (what, stmt, expr) = found.into_iter().nth(self.nth).unwrap();
        self.what = Some(what);
        Some((stmt, expr))
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        if let Some((_, Some(new))) = self.take(&Place::Expr(expr)) {
            return new;
        }
        if self.what.is_some() {
            return expr.clone();
        }
        map_children(expr, &mut |child| self.expr(child))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let Some((Some(new), _)) = self.take(&Place::Stmt(stmt)) {
            return new;
        }
        let inner = |s: &mut Search, body: &Stmt| Box::new(s.stmt(body));
        match stmt {
            Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|s| self.stmt(s)).collect()),
            Stmt::For { var, min, extent, kind, body } => Stmt::For {
                var: var.clone(),
                min: min.clone(),
                extent: extent.clone(),
                kind: *kind,
                body: inner(self, body),
            },
            Stmt::If { cond, then, otherwise } => Stmt::If {
                cond: self.expr(cond),
                then: inner(self, then),
                otherwise: otherwise.as_ref().map(|s| inner(self, s)),
            },
            Stmt::Store { buffer, indices, value } => {
                Stmt::Store { buffer: buffer.clone(), indices: indices.clone(), value: self.expr(value) }
            }
            Stmt::Let { var, value, body } => {
                let value = self.expr(value);
                Stmt::Let { var: var.clone(), value, body: inner(self, body) }
            }
            Stmt::Allocate { buffer, body } => {
                Stmt::Allocate { buffer: buffer.clone(), body: inner(self, body) }
            }
            Stmt::Annotate { node, key, value, body } => Stmt::Annotate {
                node: node.clone(),
                key: key.clone(),
                value: value.clone(),
                body: inner(self, body),
            },
            Stmt::LaunchThread { tag, var, extent, body } => Stmt::LaunchThread {
                tag: *tag,
                var: var.clone(),
                extent: extent.clone(),
                body: inner(self, body),
            },
            Stmt::Atom(call) => {
                let mut call = call.as_ref().clone();
                call.args = call.args.iter().map(|a| self.expr(a)).collect();
                Stmt::Atom(Box::new(call))
            }
            Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Sync(_) => stmt.clone(),
        }
    }
}

/// A golden kernel, and how it is run.
struct Golden {
    file: String,
    kernel: Kernel,
    warp: u32,
    inout: Vec<String>,
}

/// The Flat kernels with launches in the golden files, and those of the simulator's file tests that are good.
fn goldens() -> Vec<Golden> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files");
    let mut out = Vec::new();
    for folder in ["lower", "emit/cuda", "simulate"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "py")) {
            let text = std::fs::read_to_string(path).unwrap();
            let word = |key: &str| {
                let words = text.lines().next().unwrap_or_default().split(' ');
                words.filter_map(|w| w.strip_prefix(key)).next().map(str::to_owned)
            };
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_wave = file.contains("wave_of_64") || word("warp=").is_some_and(|w| w == "64");
            for kernel in coulis_script::parse_module(&text).unwrap_or_default() {
                // Other texts of the emitter are made for its spelling, not to be run.
                let is_good = match folder {
                    "simulate" => kernel.name.starts_with("good"),
                    "emit/cuda" => file.starts_with("row_sum"),
                    _ => true,
                };
                if kernel.form == Form::Flat && has_launches(&kernel) && is_good {
                    let inout =
                        word("inout=").map_or(Vec::new(), |w| w.split(',').map(str::to_owned).collect());
                    let warp = if is_wave { 64 } else { 32 };
                    out.push(Golden { file: format!("{folder}/{file}"), kernel, warp, inout });
                }
            }
        }
    }
    out.extend(scheduled());
    out
}

/// The golden kernels of schedules that run on threads, lowered.
fn scheduled() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coulis-schedule/tests/listings");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut out = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        for kernel in coulis_script::parse_module(&text).unwrap_or_default() {
            if kernel.form == Form::Flat || !has_launches(&kernel) {
                continue;
            }
            for warp in [32, 64] {
                let target = Target::simulated(warp);
                let options = coulis_lower::Options { target: &target, simple_mode: false };
                let flat = coulis_lower::lower(kernel.clone(), &options, &mut |_, _| {});
                let kernel = flat.unwrap_or_else(|why| panic!("{file}, warps of {warp}: {why}"));
                out.push(Golden {
                    file: format!("{file} for warps of {warp}"),
                    kernel,
                    warp,
                    inout: Vec::new(),
                });
            }
        }
    }
    out
}

fn has_launches(kernel: &Kernel) -> bool {
    let mut found = false;
    for_each_stmt(&kernel.body, &mut |s| found |= matches!(s, Stmt::LaunchThread { .. }));
    found
}

/// What a run gave: the outputs, or why it is not good.
fn outcome(golden: &Golden, kernel: Kernel, (n, m): (i64, i64)) -> Result<Vec<Vec<u8>>, String> {
    let value = |name: &str| match name {
        "n" => Some(n),
        "m" => Some(m),
        "row" => Some(m + 2),
        _ => None,
    };
    let inout: Vec<&str> = golden.inout.iter().map(String::as_str).collect();
    let options = Options { warp: golden.warp, warp_orders: 3, max_steps: 20_000_000, ..Options::default() };
    let setup = Setup { value: &value, inout: &inout, options: &options };
    let done = simulate(kernel, &setup)?.map_err(|error| error.to_string())?;
    match done.report.violations.first() {
        None => Ok(done.outputs),
        Some(first) => Err(first.to_string()),
    }
}

#[test]
fn golden_kernels_are_clean_and_their_mutants_are_caught() {
    let goldens = goldens();
    let (mut n_changed, mut n_same, mut escaped) = (0, 0, Vec::new());
    for golden in &goldens {
        let Golden { file, kernel, .. } = golden;
        let want: Vec<_> = SIZES
            .map(|sizes| {
                let found = outcome(golden, kernel.clone(), sizes);
                found.unwrap_or_else(|why| panic!("{file}, `{}`, sizes {sizes:?}: {why}", kernel.name))
            })
            .into();
        for Mutant { what, kernel: mutant } in mutants(kernel) {
            let caught = SIZES
                .iter()
                .zip(&want)
                .any(|(sizes, want)| outcome(golden, mutant.clone(), *sizes).as_ref() != Ok(want));
            let is_same = SAME.iter().any(|(f, k, w, _)| (*f, *k, *w) == (file, &kernel.name, &what));
            match (caught, is_same) {
                (true, false) => n_changed += 1,
                (false, true) => n_same += 1,
                (true, true) => {
                    panic!("{file}, `{}`: {what} is said to change nothing, and does", kernel.name)
                }
                (false, false) => {
                    n_changed += 1;
                    escaped.push(format!("{file}, `{}`: {what}", kernel.name));
                }
            }
        }
    }
    assert!(n_changed > 100, "{n_changed} mutants of {} kernels are too few to say anything", goldens.len());
    let share = 1.0 - escaped.len() as f64 / f64::from(n_changed);
    println!(
        "{:.1} % of {n_changed} mutants of {} kernels are caught; {n_same} mean the same",
        100.0 * share,
        goldens.len()
    );
    assert!(
        share >= 0.95,
        "{:.1} % of {n_changed} mutants are caught; these escape:\n{}",
        100.0 * share,
        escaped.join("\n")
    );
}
