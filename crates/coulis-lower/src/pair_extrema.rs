//! Extrema of 16-bit floats are found two at a time, where a machine has operations for that.
//!
//! A state of `float32` takes each element widened, by an operation of its own. The widened elements are ordered as they were,
//! so that neighbours can be taken as they stand in a word, into a pair of the elements' type, and the state takes its halves
//! once: `sm_90` folds two pairs into a third by one operation (`VHMNMX`). Nothing is rounded, and the results are those of
//! before. So a row's steps of one neighbour after another become steps of pairs, and steps of a vector keep its lanes as pairs.
//! That needs steps side by side, between which nothing else reads or writes the state, and as many as pay for widening the
//! halves; and other statistics between them, as an extremum alone waits for memory either way.
//!
//! Order: after unrolling and the removal of statements without effect, when steps stand side by side; before common
//! subexpressions get names. Source: PTX ISA, `max` and `min` of `f16x2` and `bf16x2`.

use coulis_ir::expr::{Expr, Node};
use coulis_ir::hash::FastMap;
use coulis_ir::visit::{any_stmt, for_each_read, stmt_children, stmt_exprs};
use coulis_ir::{Buffer, DType, Form, Intrinsic, Kernel, MemScope, Stmt, VarId};

use crate::pass::{LowerError, Options, Pass};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "pair_extrema",
    from: Form::Flat,
    to: Form::Flat,
    run: pair_extrema,
    doc: "finds extrema of 16-bit floats two at a time, where a machine has operations for that",
};

/// Fewest steps of pairs that are worth widening the halves behind them: of neighbours, and of lanes.
const FEWEST: [usize; 2] = [4, 2];

/// Finds extrema by pairs.
pub fn pair_extrema(mut kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    let has_steps =
        |body: &Stmt| any_stmt(body, &mut |stmt| Step::of(stmt).is_some_and(|step| step.takes.is_some()));
    if !options.target.pairs_of_halves || options.simple_mode || !has_steps(&kernel.body) {
        return Ok(kernel);
    }
    let mut scan = Scan::default();
    scan.visit(&kernel.body);
    if !scan.folds.is_empty() {
        let mut rewrite = Rewrite { folds: scan.folds, pairs: Vec::new(), n_steps: 0 };
        kernel.body = rewrite.stmt(kernel.body);
    }
    Ok(kernel)
}

/// A statement that starts a state of `float32` from an element of 16 bits, or takes one more into it; or lanes of both.
struct Step<'s> {
    state: &'s Buffer,
    indices: &'s [Expr],
    /// The extremum of which it takes one more; `None` of one that starts.
    takes: Option<Intrinsic>,
    element: &'s Expr,
}

impl Step<'_> {
    fn of(stmt: &Stmt) -> Option<Step<'_>> {
        let Stmt::Store { buffer: state, indices, value } = stmt else { return None };
        if state.scope != MemScope::Local || state.dtype != DType::F32 {
            return None;
        }
        let is_state = |e: &Expr| matches!(e.node(), Node::Load(of, at) if of == state && at == indices);
        let (takes, widened) = match value.node() {
            Node::Cast(_) => (None, value),
            Node::Call(of @ (Intrinsic::Max3 | Intrinsic::Min3), args) => match &args[..] {
                [old, new, again] if new == again && is_state(old) => (Some(*of), new),
                _ => return None,
            },
            _ => return None,
        };
        let Node::Cast(element) = widened.node() else { return None };
        let is_half = matches!(element.dtype(), DType::F16 | DType::BF16);
        is_half.then_some(Step { state, indices, takes, element })
    }

    fn is_lanes(&self) -> bool {
        self.element.lanes() > 1
    }

    /// Where it is in a thread's own memory, if it is one element at a place that is known.
    fn place(&self) -> Option<(&Buffer, i64)> {
        let Node::Load(buffer, at) = self.element.node() else { return None };
        let ([at], 1, MemScope::Local) = (&at[..], self.element.lanes(), buffer.scope) else { return None };
        Some((buffer, at.as_int()?.try_into().ok()?))
    }
}

/// What becomes of a step.
enum Fold {
    /// The one behind it takes its element too.
    Later,
    /// A step of pairs.
    Pairs {
        /// The elements.
        elements: Expr,
        /// Whether the pair starts from them.
        is_first: bool,
        /// How the state takes the pair, where they are the last that go into it.
        end: Option<End>,
    },
}

/// How a state takes a pair.
struct End {
    extremum: Intrinsic,
    /// Whether the state starts with it.
    starts: bool,
}

/// Steps of a state, one behind another.
struct Run {
    state: Buffer,
    indices: Vec<Expr>,
    starts: bool,
    /// Whether steps are of several lanes, rather than of neighbours of one.
    is_lanes: bool,
    extremum: Option<Intrinsic>,
    /// The number of each step, and its elements.
    pairs: Vec<(usize, Expr)>,
    /// Numbers of steps whose element the next one takes, too.
    later: Vec<usize>,
    /// Stores of other statistics to the thread's own memory since it began.
    n_others: usize,
    /// A step that waits for its neighbour: its number, its extremum, and the memory and the place of its element.
    waiting: Option<(usize, Option<Intrinsic>, Buffer, i64)>,
}

impl Run {
    /// Whether the step goes on where it is.
    fn goes_on(&self, step: &Step) -> bool {
        let is_one_more = step.takes.is_some() && self.extremum.is_none_or(|of| Some(of) == step.takes);
        let is_alike = self.is_lanes == step.is_lanes()
            && self.pairs.first().is_none_or(|(_, e)| e.dtype() == step.element.dtype());
        is_one_more && is_alike && self.indices == step.indices
    }
}

/// Which steps become steps of pairs, by their numbers in the order of the text.
#[derive(Default)]
struct Scan {
    folds: FastMap<usize, Fold>,
    n_steps: usize,
    /// Runs that may go on, by the memory of their states.
    open: Vec<Run>,
}

impl Scan {
    fn visit(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.visit(s)),
            Stmt::Let { body, .. } => {
                self.passes(stmt, None);
                self.visit(body);
            }
            Stmt::Store { .. } => match Step::of(stmt) {
                Some(step) => {
                    self.passes(stmt, Some(step.state.data.id()));
                    self.takes(&step);
                    self.n_steps += 1;
                }
                None => {
                    self.passes(stmt, None);
                    self.counts(stmt);
                }
            },
            // Steps within are as often as loops and branches say, so that none is of a run outside of them.
            _ => {
                self.close_all();
                for child in stmt_children(stmt) {
                    self.visit(child);
                    self.close_all();
                }
            }
        }
    }

    /// Closes runs whose state a statement reads or writes, but for that of its own step, and those whose waiting step reads
    /// what it writes.
    fn passes(&mut self, stmt: &Stmt, own: Option<VarId>) {
        if self.open.is_empty() {
            return;
        }
        let (mut read, mut written) = (Vec::new(), None);
        for expr in stmt_exprs(stmt) {
            for_each_read(expr, &mut |buffer, _| read.push(buffer.data.id()));
        }
        if let Stmt::Store { buffer, .. } = stmt {
            written = Some(buffer.data.id());
        }
        let concerns = |run: &Run| {
            let state = run.state.data.id();
            let waits = run.waiting.as_ref().is_some_and(|(_, _, of, _)| Some(of.data.id()) == written);
            waits || Some(state) != own && (read.contains(&state) || written == Some(state))
        };
        let (closed, open) = std::mem::take(&mut self.open).into_iter().partition::<Vec<Run>, _>(concerns);
        self.open = open;
        closed.into_iter().for_each(|run| self.close(run));
    }

    /// Notes a store of another statistic.
    fn counts(&mut self, stmt: &Stmt) {
        if let Stmt::Store { buffer, .. } = stmt
            && buffer.scope == MemScope::Local
            && matches!(buffer.dtype, DType::F32 | DType::F64)
        {
            self.open.iter_mut().for_each(|run| run.n_others += 1);
        }
    }

    /// Takes a step into the run of its state, or begins one with it.
    fn takes(&mut self, step: &Step) {
        let at = self.open.iter().position(|run| run.state.data.id() == step.state.data.id());
        let mut run = match at.map(|at| self.open.swap_remove(at)) {
            Some(run) if run.goes_on(step) => run,
            other => {
                if let Some(run) = other {
                    self.close(run);
                }
                Run {
                    state: step.state.clone(),
                    indices: step.indices.to_vec(),
                    starts: step.takes.is_none(),
                    is_lanes: step.is_lanes(),
                    extremum: None,
                    pairs: Vec::new(),
                    later: Vec::new(),
                    n_others: 0,
                    waiting: None,
                }
            }
        };
        let number = self.n_steps;
        if step.is_lanes() {
            if step.element.lanes().is_multiple_of(2) {
                run.extremum = run.extremum.or(step.takes);
                run.pairs.push((number, step.element.clone()));
                self.open.push(run);
            } else {
                self.close(run);
            }
            return;
        }
        match (step.place(), run.waiting.take()) {
            (Some((memory, place)), Some((first, of, before, at)))
                if *memory == before && place == at + 1 && (of.is_none() || of == step.takes) =>
            {
                let place = |at: i64| Expr::int_of(at.into(), DType::I64);
                run.extremum = step.takes;
                run.later.push(first);
                run.pairs.push((number, memory.at(vec![Expr::ramp(place(at), place(1), 2)])));
                self.open.push(run);
            }
            (Some((memory, place)), None) if place % 2 == 0 => {
                run.waiting = Some((number, step.takes, memory.clone(), place));
                self.open.push(run);
            }
            _ => self.close(run),
        }
    }

    fn close_all(&mut self) {
        std::mem::take(&mut self.open).into_iter().for_each(|run| self.close(run));
    }

    /// Keeps what became of its steps, where it is long enough.
    fn close(&mut self, run: Run) {
        let n_steps = run.pairs.len() + run.later.len();
        let pays = run.pairs.len() >= FEWEST[usize::from(run.is_lanes)] && run.n_others >= n_steps;
        let Some(extremum) = run.extremum.filter(|_| pays) else { return };
        self.folds.extend(run.later.into_iter().map(|number| (number, Fold::Later)));
        let last = run.pairs.len() - 1;
        for (nth, (number, elements)) in run.pairs.into_iter().enumerate() {
            let end = (nth == last).then_some(End { extremum, starts: run.starts });
            self.folds.insert(number, Fold::Pairs { elements, is_first: nth == 0, end });
        }
    }
}

/// Puts steps of pairs in their place.
struct Rewrite {
    folds: FastMap<usize, Fold>,
    /// Pairs, by what they are of.
    pairs: Vec<(Of, Buffer)>,
    n_steps: usize,
}

/// What pairs are of: a state's memory, the type of its elements, and whether they are lanes of it or neighbours.
type Of = (VarId, DType, bool);

impl Rewrite {
    fn stmt(&mut self, stmt: Stmt) -> Stmt {
        if let Some(step) = Step::of(&stmt) {
            let fold = self.folds.remove(&self.n_steps);
            self.n_steps += 1;
            return match fold {
                None => stmt,
                Some(Fold::Later) => Stmt::NOP,
                Some(Fold::Pairs { elements, is_first, end }) => self.folded(&step, &elements, is_first, end),
            };
        }
        let stmt = map_children(stmt, &mut |s| self.stmt(s));
        let Stmt::Allocate { buffer, body } = stmt else { return stmt };
        let id = buffer.data.id();
        let own = self.pairs.extract_if(.., |((of, ..), _)| *of == id);
        let body = own.fold(*body, |body, (_, pairs)| Stmt::allocate(pairs, body));
        Stmt::allocate(buffer, body)
    }

    /// The elements go into the pairs of the step's state, and those into the state at their end.
    fn folded(&mut self, step: &Step, elements: &Expr, is_first: bool, end: Option<End>) -> Stmt {
        let is_lanes = step.is_lanes();
        let of = (step.state.data.id(), elements.dtype(), is_lanes);
        let place = |at: i64| Expr::int_of(at.into(), DType::I64);
        let shape = if is_lanes { step.state.shape.clone() } else { vec![place(2)] };
        let known = self.pairs.iter().find(|(key, _)| *key == of).map(|(_, buffer)| buffer.clone());
        let pairs = known.unwrap_or_else(|| {
            let name = format!("{}_pair", step.state.name);
            let pairs = Buffer::new(&name, elements.dtype(), shape, MemScope::Local);
            self.pairs.push((of, pairs.clone()));
            pairs
        });
        let at = if is_lanes { step.indices.to_vec() } else { vec![Expr::ramp(place(0), place(1), 2)] };
        let now = || pairs.at(at.clone());
        let larger = |of: Intrinsic, a: Expr, b: Expr| Expr::call(of, vec![a, b.clone(), b]);
        let value = match step.takes {
            Some(of) if !is_first => larger(of, now(), elements.clone()),
            _ => elements.clone(),
        };
        let mut stmts = vec![Stmt::Store { buffer: pairs.clone(), indices: at.clone(), value }];
        if let Some(End { extremum, starts }) = end {
            let widened = |e: Expr| e.cast(DType::F32);
            let all = match is_lanes {
                true => widened(now()),
                false => {
                    larger(extremum, widened(pairs.at(vec![place(0)])), widened(pairs.at(vec![place(1)])))
                }
            };
            let state = || step.state.at(step.indices.to_vec());
            let value = if starts { all } else { larger(extremum, state(), all) };
            stmts.push(Stmt::Store { buffer: step.state.clone(), indices: step.indices.to_vec(), value });
        }
        Stmt::seq(stmts)
    }
}
