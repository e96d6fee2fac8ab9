//! V27 and V28: threads do not store to one element.
//!
//! Looked at is one execution of a store by each thread of a block, and by the same thread of neighbouring blocks
//! where the memory is global: no barrier can stand between these. Of global memory also several executions, by blocks
//! further apart and in other iterations of loops: nothing orders blocks. Found are stores whose places meet for the sizes
//! of [`super::witness`]; places and conditions that come from memory are not known, and atomic updates may meet.
//! Source: fault G9 (docs/sources.md), whose final stores are made by all threads of a group.

use super::Report;
use super::company::Company;
use super::crowd::{Crowd, Crowds, needed};
use super::witness::{Arrival, Launched, Scene, Step, Thread, depends_on};
use crate::buffer::{Buffer, MemScope};
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use crate::hash::FastMap;
use crate::print::print_expr;
use crate::simplify::Analyzer;
use crate::stmt::{Stmt, ThreadTag};
use crate::visit::{substitute_expr, uses_any};

/// Checks the stores of one launch.
pub(super) fn check_stores<'k>(
    launched: &Launched<'k>,
    scenes: &[Scene],
    crowds: &mut Crowds,
    report: &mut Report<'k>,
) {
    let mut faulty: Vec<&Stmt> = Vec::new();
    launched.each_with_path(&mut |stmt, path| {
        let places: Vec<(&Buffer, &[Expr])> = match stmt {
            Stmt::Store { buffer, indices, .. } => vec![(buffer, indices)],
            Stmt::Atom(call) => call.dst.iter().map(|e| (&e.buffer, &*e.indices)).collect(),
            _ => Vec::new(),
        };
        // Memory of one thread has one writer.
        let is_shared = |scope| !matches!(scope, MemScope::Local | MemScope::Warp);
        for (buffer, indices) in places.into_iter().filter(|(buffer, _)| is_shared(buffer.scope)) {
            let indices: Vec<Expr> = indices.iter().map(|i| launched.resolved(i)).collect();
            for (at, scene) in scenes.iter().enumerate() {
                let store = Store { scene, path, buffer, indices: &indices };
                if faulty.iter().any(|s| std::ptr::eq(*s, stmt)) {
                    continue;
                }
                let mut in_one_execution = || {
                    let comers = crowds.of((at, scene), store.company(), needed(path, &[]));
                    store.meeting(&comers)
                };
                let meeting = if store.is_injective(Times::One) { None } else { in_one_execution() };
                let meeting = meeting.or_else(|| {
                    let is_apart = !store.has_blocks() || store.is_injective(Times::All);
                    if is_apart { None } else { store.meeting_of_blocks((at, crowds)) }
                });
                if let Some(meeting) = meeting {
                    let (code, text) = store.message(&meeting);
                    report.at(stmt, code, text);
                    faulty.push(stmt);
                }
            }
        }
    });
}

/// The executions of a statement that are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// One by each thread.
    One,
    /// Every one: iterations of loops too.
    All,
}

/// Two threads that store to one element.
struct Meeting {
    first: Thread,
    second: Thread,
    index: Vec<i128>,
}

struct Store<'s, 'k> {
    scene: &'s Scene<'s, 'k>,
    path: &'s [Step],
    buffer: &'k Buffer,
    /// Loads of memory that is written once replaced by what is written.
    indices: &'s [Expr],
}

/// Whether the places of the threads that come are all apart. Saves the looking for two that meet.
fn are_apart(crowd: &mut Crowd, index: &Expr) -> bool {
    let Node::Ramp(base, stride) = index.node() else { return crowd.are_apart(index, 0) };
    let step = crowd.one_int(stride).and_then(|step| i64::try_from(step.unsigned_abs()).ok());
    let reach = step.and_then(|step| step.checked_mul(i64::from(index.lanes()) - 1));
    reach.is_some_and(|reach| crowd.are_apart(base, reach))
}

/// The first thread whose place another one had before it, that other one first.
fn first_meeting<K: Clone + Eq + std::hash::Hash>(
    n_places: usize,
    places: impl Iterator<Item = (usize, K)>,
) -> Option<(usize, usize, K)> {
    let mut seen: FastMap<K, usize> = FastMap::default();
    seen.reserve(n_places);
    for (thread, place) in places {
        match seen.get(&place) {
            Some(first) if *first != thread => return Some((*first, thread, place)),
            _ => {
                seen.insert(place, thread);
            }
        }
    }
    None
}

impl Store<'_, '_> {
    /// Launched indices of more than one value that tell writers of this memory apart, with their extents.
    fn writers(&self) -> Vec<(ThreadTag, Option<&Var>, i128)> {
        let launch = &self.scene.launched.launch;
        let blocks = [ThreadTag::BlockX, ThreadTag::BlockY, ThreadTag::BlockZ];
        let threads = [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ];
        let of_grid = (0..3).map(|i| (blocks[i], launch.grid[i].0.as_ref(), self.scene.grid[i]));
        let of_block = (0..3).map(|i| (threads[i], launch.block[i].0.as_ref(), self.scene.block[i]));
        let all: Vec<_> = match self.buffer.scope {
            MemScope::Global => of_grid.chain(of_block).collect(),
            MemScope::Shared | MemScope::SharedDyn => of_block.collect(),
            MemScope::Warp | MemScope::Local => Vec::new(),
        };
        all.into_iter().filter(|(_, _, extent)| *extent > 1).collect()
    }

    /// Whether the index alone tells all writers apart, as sums of constant multiples do. Saves the looking.
    fn is_injective(&self, times: Times) -> bool {
        let writers = self.writers();
        let (Some(index), 1) = (self.indices.first(), self.indices.len()) else { return writers.is_empty() };
        if writers.is_empty() {
            return true;
        }
        let pinned = self.pinned();
        let vars: Vec<Var> = writers.iter().filter_map(|(_, var, _)| var.cloned()).collect();
        let of_clusters: Vec<Var> = self.of_clusters().collect();
        let mut names: FastMap<Var, Expr> = self.scene.constants();
        let mut loops = Vec::new();
        for step in &needed(self.path, self.indices) {
            match step {
                Step::Name(var, value) => {
                    names.insert(var.clone(), substitute_expr(value, &names));
                }
                Step::Loop(_, min, extent) if uses_any(min, &vars) || uses_any(extent, &vars) => {
                    return false;
                }
                Step::Loop(var, _, extent) if times == Times::All => {
                    loops.push((var.clone(), substitute_expr(extent, &names)));
                }
                Step::Loop(..) | Step::Cond(..) => {}
            }
        }
        let index = substitute_expr(index, &names);
        // They are no indices of their own.
        if uses_any(&index, &of_clusters) {
            return false;
        }
        let Some(terms) = Analyzer::new().affine(&index) else { return false };
        let mut steps = Vec::new();
        let is_pinned = |var: &Option<&Var>| var.is_some_and(|var| pinned.contains(&var));
        for (_, var, extent) in writers.iter().filter(|(_, var, _)| !is_pinned(var)) {
            let of_var = |(v, coeff): &(Option<Var>, i128)| (v.as_ref() == *var).then_some(coeff.abs());
            let Some(coeff) = var.and_then(|_| terms.iter().find_map(of_var)) else { return false };
            steps.push((coeff, *extent));
        }
        for (var, extent) in &loops {
            let Some((_, coeff)) = terms.iter().find(|(v, _)| v.as_ref() == Some(var)) else { continue };
            // Of a loop of unknown length, blocks are below the step.
            let extent = Analyzer::new().simplify(extent).as_int().unwrap_or(i128::MAX);
            steps.push((coeff.abs(), extent));
        }
        steps.sort_unstable();
        let mut reach = i128::from(index.lanes()) - 1;
        steps.into_iter().all(|(coeff, extent)| {
            let apart = coeff > reach;
            reach = reach.saturating_add(coeff.saturating_mul((extent - 1).max(0)));
            apart
        })
    }

    /// Variables of which a condition around the store leaves one value: it is `x == 0` or `x < 1`, as far as is looked.
    fn pinned(&self) -> Vec<&Var> {
        fn go<'e>(cond: &'e Expr, found: &mut Vec<&'e Var>) {
            match cond.node() {
                Node::Binary(BinaryOp::And, a, b) => {
                    go(a, found);
                    go(b, found);
                }
                Node::Call(Intrinsic::Likely, args) => args.iter().for_each(|arg| go(arg, found)),
                // No launched index is below 0.
                Node::Binary(op, x, value)
                    if (*op == BinaryOp::Eq && value.as_int().is_some())
                        || (*op == BinaryOp::Lt && value.is_int(1)) =>
                {
                    found.extend(x.as_var());
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        for step in self.path {
            match step {
                Step::Cond(cond, true) => go(cond, &mut found),
                Step::Cond(_, false) | Step::Loop(..) | Step::Name(..) => {}
            }
        }
        found
    }

    /// Variables of a block's place in its cluster.
    fn of_clusters(&self) -> impl Iterator<Item = Var> {
        self.scene.launched.launch.cluster.iter().filter_map(|(var, _)| var.clone())
    }

    /// The threads that may meet at the statement.
    fn company(&self) -> Company {
        if self.buffer.scope == MemScope::Global { Company::Neighbours } else { Company::Block }
    }

    /// Two threads that store to one element in the same execution of the statement.
    fn meeting(&self, comers: &Crowd) -> Option<Meeting> {
        let coming = |thread: usize| comers.arrivals[thread] == Arrival::Comes;
        if !comers.arrivals.contains(&Arrival::Comes) {
            return None;
        }
        let mut crowd = comers.with_names(&needed(self.path, self.indices));
        let place = |(first, second, index): (usize, usize, Vec<i128>)| {
            let [first, second] = [first, second].map(|thread| comers.threads.at(thread));
            Meeting { first, second, index }
        };
        if let [index] = self.indices
            && are_apart(&mut crowd, index)
        {
            return None;
        }
        // Where an index comes from memory, nothing is known of the thread's place.
        if let [index] = self.indices {
            let (bases, steps, lanes) = match index.node() {
                Node::Ramp(base, stride) => (crowd.ints(base), Some(crowd.ints(stride)), index.lanes()),
                _ => (crowd.ints(index), None, 1),
            };
            let at = |thread: usize| {
                let step = steps.as_ref().map_or(Some(0), |steps| steps[thread]);
                bases[thread].zip(step).filter(|_| coming(thread))
            };
            let elements = (0..bases.len()).filter_map(|thread| Some((thread, at(thread)?)));
            let each = elements.flat_map(|(thread, (base, step))| {
                (0..i128::from(lanes)).map(move |lane| (thread, base + lane * step))
            });
            let n_places = bases.len() * lanes as usize;
            return first_meeting(n_places, each)
                .map(|(first, second, index)| place((first, second, vec![index])));
        }
        let columns: Vec<Vec<Option<i128>>> = self.indices.iter().map(|index| crowd.ints(index)).collect();
        let elements = (0..comers.threads.len()).filter(|thread| coming(*thread)).filter_map(|thread| {
            let index: Option<Vec<i128>> = columns.iter().map(|column| column[thread]).collect();
            Some((thread, index?))
        });
        first_meeting(comers.threads.len(), elements).map(place)
    }

    /// Whether several blocks may store to the memory.
    fn has_blocks(&self) -> bool {
        self.buffer.scope == MemScope::Global && self.scene.grid.iter().any(|n| *n > 1)
    }

    /// Threads of two blocks that store to one element, whenever they do: nothing orders blocks. Looked at are the first
    /// iterations of the loops around, and those where one loop is at its second or third.
    fn meeting_of_blocks(&self, (at, crowds): (usize, &mut Crowds)) -> Option<Meeting> {
        let [index] = self.indices else { return None };
        let (base, stride) = match index.node() {
            Node::Ramp(base, stride) => (base, Some(stride)),
            _ => (index, None),
        };
        let mut iterations = vec![self.path.to_vec()];
        for (place, step) in self.path.iter().enumerate() {
            let Step::Loop(var, min, extent) = step else { continue };
            for n in [1, 2] {
                let passed = Expr::int_of(n, extent.dtype()).lt(extent.clone());
                let at = min.clone() + Expr::int_of(n, min.dtype());
                let mut path = self.path.to_vec();
                path.splice(place..=place, [Step::Cond(passed, true), Step::Name(var.clone(), at)]);
                iterations.push(path);
            }
        }
        let mut seen: FastMap<i128, Thread> = FastMap::default();
        for path in &iterations {
            let comers = crowds.of((at, self.scene), Company::Grid, needed(path, &[]));
            let mut crowd = comers.with_names(&needed(path, self.indices));
            let bases = crowd.ints(base);
            let steps = stride.map(|stride| crowd.ints(stride));
            for thread in 0..comers.threads.len() {
                if comers.arrivals[thread] != Arrival::Comes {
                    continue;
                }
                let step = steps.as_ref().map_or(Some(0), |steps| steps[thread]);
                let Some((base, step)) = bases[thread].zip(step) else { continue };
                let second = comers.threads.at(thread);
                for lane in 0..i128::from(index.lanes()) {
                    let element = base + lane * step;
                    let first = *seen.entry(element).or_insert(second);
                    if first.block != second.block {
                        return Some(Meeting { first, second, index: vec![element] });
                    }
                }
            }
        }
        None
    }

    /// The fault in the user's terms: V27 where nothing about the store tells the two apart, else V28.
    fn message(&self, meeting: &Meeting) -> (&'static str, String) {
        let (a, b) = (&meeting.first, &meeting.second);
        let position = |tag: ThreadTag, t: &Thread| match tag {
            ThreadTag::BlockX => t.block[0],
            ThreadTag::BlockY => t.block[1],
            ThreadTag::BlockZ => t.block[2],
            ThreadTag::ThreadX => t.thread[0],
            ThreadTag::ThreadY => t.thread[1],
            ThreadTag::ThreadZ => t.thread[2],
            ThreadTag::ClusterX | ThreadTag::ClusterY | ThreadTag::ClusterZ | ThreadTag::VThread => 0,
        };
        let writers = self.writers();
        let apart: Vec<_> =
            writers.iter().filter(|(tag, ..)| position(*tag, a) != position(*tag, b)).collect();
        let tags: Vec<String> = apart.iter().map(|(tag, ..)| format!("`{}`", tag.name())).collect();
        let mut vars: Vec<Var> = apart.iter().filter_map(|(_, var, _)| var.cloned()).collect();
        if a.block != b.block {
            vars.extend(self.of_clusters());
        }
        let index: Vec<String> = self.indices.iter().map(print_expr).collect();
        let (name, index) = (&self.buffer.name, index.join(", "));
        if !depends_on(self.path, self.indices, vars) {
            let tags = tags.join(" and ");
            let text = format!(
                "all values of {tags} store to one element, `{name}[{index}]`; store where {tags} is 0 only, or give each its own element"
            );
            return ("V27", text);
        }
        let found: Vec<String> = meeting.index.iter().map(ToString::to_string).collect();
        let text =
            format!("{} and {} store to one element, `{name}[{}]`", a.name(), b.name(), found.join(", "));
        ("V28", text)
    }
}
