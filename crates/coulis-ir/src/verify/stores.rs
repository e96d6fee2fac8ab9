//! V27 and V28: threads do not store to one element.
//!
//! Looked at is one execution of a store by each thread of a block, and by the same thread of neighbouring blocks where the
//! memory is global: no barrier can stand between these. Of global memory also several executions, by blocks further apart and in
//! other iterations of loops: nothing orders blocks. Where bounds show that blocks lie apart, as they do in nearly all kernels, no
//! thread is looked at for that, nor where two variables of a sum of multiples alone make up for each other in two blocks (these
//! meet, however far apart). Of the rest up to 8192 threads of a grid are followed ([`Company::Grid`]), for the sizes of
//! [`super::witness`], so that a meeting of other blocks, or one that takes three variables, may be missed. Places and conditions
//! that come from memory are not known; atomic updates may meet. Source: fault G9 (docs/sources.md), of stores by a whole group.

use super::company::Company;
use super::crowd::{Crowd, Crowds, needed, steps_of};
use super::witness::{Arrival, Scene, Step, Thread, depends_on};
use super::{Check, Group, InLaunch, Property, Report};
use crate::buffer::{Buffer, MemScope};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use crate::hash::FastMap;
use crate::print::print_expr;
use crate::simplify::{Analyzer, count_steps, gcd};
use crate::stmt::{Stmt, ThreadTag};
use crate::visit::{substitute_expr, uses_any};

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new(
            "V27",
            "no thread index leaves a store as it is: all its values would store to one element",
        ),
        Property::new(
            "V28",
            "no two threads store to one element in one execution of a statement, and no two blocks in any",
        ),
    ],
    checks: &[Check::Launch(check_stores)],
};

/// Checks the stores of one launch.
fn check_stores<'k>(at: &mut InLaunch<'_, 'k>, report: &mut Report<'k>) {
    let InLaunch { launched, scenes, ref mut crowds, .. } = *at;
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
                let meeting = if store.is_injective() { None } else { in_one_execution() };
                let meeting = meeting.or_else(|| {
                    let is_apart = !store.has_blocks() || store.blocks_lie_apart();
                    let looked = || store.meeting_of_blocks((at, &mut *crowds));
                    if is_apart { None } else { store.meeting_of_two_variables().or_else(looked) }
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

/// Values of which others are looked for that are known with them.
const MOST_VALUES: usize = 32;

/// Two threads that store to one element.
struct Meeting {
    first: Thread,
    second: Thread,
    index: Vec<i128>,
}

/// A variable that tells executions of a store apart.
#[derive(Clone, Copy)]
enum Moved {
    /// An axis of the grid.
    Block(usize),
    /// An axis of the block.
    Thread(usize),
    /// The loop at this place of the path.
    Loop(usize),
}

struct Store<'s, 'k> {
    scene: &'s Scene<'s, 'k>,
    path: &'s [Step],
    buffer: &'k Buffer,
    /// Loads of memory that is written once replaced by what is written.
    indices: &'s [Expr],
}

/// Whether a sum of multiples is shown to have fewer values than that from its least one on.
fn lies_within(terms: &[(Expr, i128)], n_values: i128, known: &Analyzer) -> bool {
    let number = |value: i128| Expr::int_of(value, DType::I64);
    let of = |(term, coeff): &(Expr, i128)| term.clone().cast(DType::I64) * number(*coeff);
    let Some(sum) = terms.iter().map(of).reduce(|a, b| a + b) else { return n_values > 0 };
    let end = |least: i128| Some(least + n_values).filter(|end| DType::I64.wrap_int(*end) == *end);
    match known.const_bounds(&sum) {
        (Some(least), Some(most)) if most - least < n_values => true,
        (Some(least), _) => end(least).is_some_and(|end| known.can_prove(&sum.lt(number(end)))),
        (None, _) => false,
    }
}

/// Values that are known of who stores one of the elements from `index` on, `last` beyond it: terms of sums that mention
/// blocks, and dividends of which the quotient and the remainder by one divisor are known.
fn known_values(index: &Expr, last: i128, blocks: &[Var], known: &Analyzer) -> Vec<Expr> {
    let mut values = parts(index, last, blocks, known);
    values.extend((last == 0).then(|| index.clone()));
    let mut place = 0;
    while let Some(value) = values.get(place).filter(|_| values.len() < MOST_VALUES) {
        let other = match value.node() {
            Node::Binary(op, x, c) if c.as_int().is_some() => match op {
                BinaryOp::FloorDiv => Some((x, x.clone().floormod(c.clone()))),
                BinaryOp::FloorMod => Some((x, x.clone().floordiv(c.clone()))),
                _ => None,
            },
            _ => None,
        };
        let dividend = other.and_then(|(x, other)| {
            let other = known.simplify(&other);
            (other.as_int().is_some() || values.contains(&other)).then(|| x.clone())
        });
        let mut new: Vec<Expr> = dividend.into_iter().chain(parts(value, 0, blocks, known)).collect();
        new.retain(|value| !values.contains(value));
        // What is new may be the other part of one that was looked at.
        place = if new.is_empty() { place + 1 } else { 0 };
        values.extend(new);
    }
    values
}

/// Terms of a sum that mention blocks, each of which is known where the sum is.
fn parts(sum: &Expr, last: i128, blocks: &[Var], known: &Analyzer) -> Vec<Expr> {
    let Some(mut sum) = known.linear(sum) else { return Vec::new() };
    sum.terms.sort_by_key(|(_, coeff)| coeff.abs());
    let mut found = Vec::new();
    for (place, (term, coeff)) in sum.terms.iter().enumerate() {
        let of_blocks = uses_any(term, blocks);
        if !of_blocks && found.is_empty() {
            continue;
        }
        if !lies_within(&sum.terms[..place], coeff.abs() - last, known) {
            return Vec::new();
        }
        found.extend(of_blocks.then(|| known.simplify(term)));
    }
    found
}

/// Whether the elements of each block are shown to lie in a row of its own, as long as the index grows from a block to the
/// next one, though it may be rounded.
fn has_rows(index: &Expr, last: i128, block: &Var, known: &Analyzer) -> bool {
    let multiplier = |sum: &Expr| known.linear(sum).map_or(0, |sum| sum.multiplier(block));
    let Some(sum) = known.linear(index) else { return false };
    let of_term = |(term, coeff): &(Expr, i128)| match term.node() {
        Node::Var(var) if var == block => *coeff,
        Node::Binary(BinaryOp::FloorDiv, x, c) => match c.as_int() {
            Some(c) if coeff % c == 0 => coeff / c * multiplier(x),
            _ => 0,
        },
        _ => 0,
    };
    let row: i128 = sum.terms.iter().map(of_term).sum();
    let number = |value: i128| Expr::int_of(value, DType::I64);
    let rest = index.clone().cast(DType::I64) - block.expr().cast(DType::I64) * number(row);
    row > last
        && DType::I64.wrap_int(row) == row
        && known.can_prove(&rest.clone().ge(number(0)))
        && known.can_prove(&rest.lt(number(row - last)))
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
    count_steps(steps_of(n_places));
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

/// Of parts of ranges, each the first and the last of the range with that number: whether no two ranges meet.
fn have_ranges_of_their_own(parts: impl Iterator<Item = (usize, i128, i128)>) -> bool {
    let mut ranges: Vec<Option<(i128, i128)>> = Vec::new();
    for (number, least, most) in parts {
        if ranges.len() <= number {
            ranges.resize(number + 1, None);
        }
        let range = ranges[number].get_or_insert((least, most));
        *range = (range.0.min(least), range.1.max(most));
    }
    let mut ranges: Vec<(i128, i128)> = ranges.into_iter().flatten().collect();
    ranges.sort_unstable();
    ranges.windows(2).all(|pair| pair[0].1 < pair[1].0)
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
    fn is_injective(&self) -> bool {
        let writers = self.writers();
        let (Some(index), 1) = (self.indices.first(), self.indices.len()) else { return writers.is_empty() };
        if writers.is_empty() {
            return true;
        }
        let pinned = self.pinned();
        let vars: Vec<Var> = writers.iter().filter_map(|(_, var, _)| var.cloned()).collect();
        let of_clusters: Vec<Var> = self.of_clusters().collect();
        let mut names: FastMap<Var, Expr> = self.scene.constants();
        for step in &needed(self.path, self.indices) {
            match step {
                Step::Name(var, value) => {
                    names.insert(var.clone(), substitute_expr(value, &names));
                }
                Step::Loop(_, min, extent) if uses_any(min, &vars) || uses_any(extent, &vars) => {
                    return false;
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
        steps.sort_unstable();
        let mut reach = i128::from(index.lanes()) - 1;
        steps.into_iter().all(|(coeff, extent)| {
            let apart = coeff > reach;
            reach = reach.saturating_add(coeff.saturating_mul(extent - 1));
            apart
        })
    }

    /// Whether bounds show that no two blocks store to one element, in whichever executions: the index is a sum of which
    /// each multiple of a block's index is more than what stands below it reaches, under the conditions around the store.
    fn blocks_lie_apart(&self) -> bool {
        let [index] = self.indices else { return false };
        let launch = &self.scene.launched.launch;
        let mut names: FastMap<Var, Expr> = self.scene.constants();
        let mut known = Analyzer::new();
        let mut bind = |(var, _): &(Option<Var>, Expr), n: i128| {
            if let Some(var) = var {
                known.bind(var, &Expr::int_of(0, var.dtype()), &Expr::int_of(n, var.dtype()));
            }
        };
        launch.grid.iter().zip(self.scene.grid).for_each(|(slot, n)| bind(slot, n));
        launch.block.iter().zip(self.scene.block).for_each(|(slot, n)| bind(slot, n));
        let places = launch.cluster.iter().zip(&launch.grid).zip(self.scene.cluster);
        for (((place, _), (block, _)), n) in places {
            match (place, block) {
                (Some(place), Some(block)) => {
                    let at = block.expr().floormod(Expr::int_of(n, block.dtype()));
                    names.insert(place.clone(), at.cast(place.dtype()));
                }
                (Some(place), None) => bind(&(Some(place.clone()), Expr::int(1)), n),
                (None, _) => {}
            }
        }
        for step in &needed(self.path, self.indices) {
            match step {
                Step::Name(var, value) => {
                    names.insert(var.clone(), substitute_expr(value, &names));
                }
                Step::Loop(var, min, extent) => {
                    known.bind(var, &substitute_expr(min, &names), &substitute_expr(extent, &names));
                }
                Step::Cond(cond, holds) => {
                    let cond = substitute_expr(cond, &names);
                    match holds {
                        // Stores may change what it reads.
                        _ if cond.reads_memory() => {}
                        true => known.assume(&cond),
                        false => known.assume(&cond.logical_not()),
                    }
                }
            }
        }
        let index = substitute_expr(index, &names);
        let (base, last) = match index.node() {
            Node::Ramp(base, stride) => (base, stride.as_int().map(|by| by * i128::from(index.lanes() - 1))),
            _ => (&index, Some(0)),
        };
        let Some(last) = last.filter(|last| *last >= 0) else { return false };
        let blocks: Vec<Var> = launch.grid.iter().filter_map(|(var, _)| var.clone()).collect();
        let apart = known_values(base, last, &blocks, &known);
        let tells = |((var, _), n): (&(Option<Var>, Expr), i128)| match var {
            Some(var) => {
                let is_told = [var.expr(), var.expr().cast(DType::I64)].iter().any(|e| apart.contains(e));
                let (least, most) = known.const_bounds(&var.expr());
                is_told || (least.is_some() && least == most) || has_rows(base, last, var, &known)
            }
            None => n == 1,
        };
        launch.grid.iter().zip(self.scene.grid).all(tells)
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

    /// Threads of two blocks whose places meet since one variable makes up for another: `x * a` is `y * b` for the least
    /// multiples that are equal. That both come there, and where, is computed for these two threads.
    fn meeting_of_two_variables(&self) -> Option<Meeting> {
        let [index] = self.indices else { return None };
        let index = if let Node::Ramp(base, _) = index.node() { base } else { index };
        let mut names: FastMap<Var, Expr> = self.scene.constants();
        let launch = &self.scene.launched.launch;
        let mut variables: Vec<(Moved, &Var, i128)> = Vec::new();
        for axis in 0..3 {
            let of_grid =
                launch.grid[axis].0.as_ref().map(|var| (Moved::Block(axis), var, self.scene.grid[axis]));
            let of_block =
                launch.block[axis].0.as_ref().map(|var| (Moved::Thread(axis), var, self.scene.block[axis]));
            variables.extend(of_grid.into_iter().chain(of_block));
        }
        for (place, step) in self.path.iter().enumerate() {
            match step {
                Step::Name(var, value) => {
                    names.insert(var.clone(), substitute_expr(value, &names));
                }
                Step::Loop(var, _, extent) => {
                    let extent = Analyzer::new().simplify(&substitute_expr(extent, &names)).as_int();
                    variables.extend(extent.map(|extent| (Moved::Loop(place), var, extent)));
                }
                Step::Cond(..) => {}
            }
        }
        let terms = Analyzer::new().affine(&substitute_expr(index, &names))?;
        let factor =
            |var: &Var| terms.iter().find(|(v, _)| v.as_ref() == Some(var)).map(|(_, factor)| *factor);
        let moved: Vec<_> =
            variables.iter().filter_map(|(of, var, extent)| Some((*of, factor(var)?, *extent))).collect();
        let is_block = |of: Moved| matches!(of, Moved::Block(_));
        for (at, &(one, a, of_one)) in moved.iter().enumerate() {
            for &(other, b, of_other) in &moved[at + 1..] {
                let shared = gcd(a, b);
                if shared == 0 || !(is_block(one) || is_block(other)) {
                    continue;
                }
                let (by_one, by_other) = ((b / shared).abs(), (a / shared).abs());
                if by_one >= of_one || by_other >= of_other {
                    continue;
                }
                let both = [(one, by_one), (other, by_other)];
                let (first, second) = match (a < 0) == (b < 0) {
                    true => (&both[..1], &both[1..]),
                    false => (&both[..0], &both[..]),
                };
                let (first, second) = (self.placed(index, first), self.placed(index, second));
                if let (Some((first, place)), Some((second, found))) = (first, second)
                    && place == found
                    && first.block != second.block
                {
                    return Some(Meeting { first, second, index: vec![place] });
                }
            }
        }
        None
    }

    /// The thread that these variables lead to, others being at their first value, and its place; nothing where it does not come
    /// or its place is not known.
    fn placed(&self, index: &Expr, moved: &[(Moved, i128)]) -> Option<(Thread, i128)> {
        let mut thread = Thread { block: [0; 3], thread: [0; 3] };
        let mut path = self.path.to_vec();
        // Later places first: each loop becomes two steps.
        for (of, by) in moved.iter().rev() {
            match of {
                Moved::Block(axis) => thread.block[*axis] = *by,
                Moved::Thread(axis) => thread.thread[*axis] = *by,
                Moved::Loop(place) => {
                    let Step::Loop(var, min, extent) = &self.path[*place] else { return None };
                    let passed = Expr::int_of(*by, extent.dtype()).lt(extent.clone());
                    let at = min.clone() + Expr::int_of(*by, min.dtype());
                    let steps = [Step::Cond(passed, true), Step::Name(var.clone(), at)];
                    path.splice(*place..=*place, steps);
                }
            }
        }
        let mut env = self.scene.host_env();
        let comes = self.scene.arrival(&path, &thread, &mut env) == Arrival::Comes;
        comes.then(|| self.scene.value(index, &mut env)).flatten().map(|place| (thread, place))
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
        let mut places = Vec::new();
        for path in &iterations {
            let comers = crowds.of((at, self.scene), Company::Grid, needed(path, &[]));
            let mut crowd = comers.with_names(&needed(path, self.indices));
            let bases = crowd.ints(base);
            let steps = stride.map(|stride| crowd.ints(stride));
            let step = |thread: usize| steps.as_ref().map_or(Some(0), |steps| steps[thread]);
            let of_thread = |thread: usize| Some((thread, bases[thread]?, step(thread)?));
            let coming = (0..bases.len()).filter(|thread| comers.arrivals[*thread] == Arrival::Comes);
            places.extend(coming.filter_map(of_thread));
        }
        let threads = &crowds.of((at, self.scene), Company::Grid, Vec::new()).threads;
        let last = i128::from(index.lanes()) - 1;
        if have_ranges_of_their_own(places.iter().map(|(thread, base, step)| {
            let other = base + last * step;
            (threads.block_of(*thread), *base.min(&other), *base.max(&other))
        })) {
            return None;
        }
        count_steps(steps_of(places.len() * index.lanes() as usize));
        let mut seen: FastMap<i128, usize> = FastMap::default();
        for (second, base, step) in places {
            for lane in 0..=last {
                let element = base + lane * step;
                let first = *seen.entry(element).or_insert(second);
                if threads.block_of(first) != threads.block_of(second) {
                    let [first, second] = [first, second].map(|thread| threads.at(thread));
                    return Some(Meeting { first, second, index: vec![element] });
                }
            }
        }
        None
    }

    /// The fault in the user's terms: V27 where nothing about the store tells the two apart, else V28.
    fn message(&self, meeting: &Meeting) -> (&'static str, String) {
        let (a, b) = (&meeting.first, &meeting.second);
        let writers = self.writers();
        let apart: Vec<_> = writers.iter().filter(|(tag, ..)| a.position(*tag) != b.position(*tag)).collect();
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
                "all values of {tags} store to one element, `{name}[{index}]`; store where {tags} is 0 only, or give \
                 each its own element"
            );
            return ("V27", text);
        }
        let found: Vec<String> = meeting.index.iter().map(ToString::to_string).collect();
        let text =
            format!("{} and {} store to one element, `{name}[{}]`", a.name(), b.name(), found.join(", "));
        ("V28", text)
    }
}
