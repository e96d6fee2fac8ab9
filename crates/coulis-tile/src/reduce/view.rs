//! Tiles that are spread over threads: which registers and which lanes fold into which.
//!
//! Everything is read off the layouts. Elements of a source that share an output are in registers of one
//! thread, which are folded there, and in threads that differ in digits of their number, which are folded
//! lane by lane. The destination's layout must put every output where the source's puts its elements: the
//! same threads, however either splits the digits of their numbers. It may be replicated over all or some of
//! the threads that folded, be in the first of them, or have an element for each of them along the reduced
//! dimension.
//!
//! Source: the views and the lane replicas of seed 001, which compare extents only, fold adjacent lanes whatever the
//! layout says, and look past slices of threads.

use coulis_ir::{DType, ExecScope, Expr};
use coulis_layout::{Iter, TileLayout, is_memory_axis, thread_axis_unit};

use crate::block::constant;
use crate::call::Operand;
use crate::facts::Facts;
use crate::groups::{Digit, joined, without};
use crate::reduce::lanes::digit_of;
use crate::reduce::walk::{affine, digits, int};

/// One step of an iterator: along threads of the scope, or along a thread's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Threads(Digit),
    Registers { extent: i64, stride: i64 },
}

impl Step {
    fn extent(self) -> i64 {
        match self {
            Step::Threads(digit) => i64::from(digit.extent),
            Step::Registers { extent, .. } => extent,
        }
    }
}

/// Where a thread holds element `q` of its output `p`.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    spatial: Vec<(i64, i64)>,
    reduced: Vec<(i64, i64)>,
    offset: Expr,
}

impl Registers {
    /// Whether elements of an output come in runs of `n` that lie as far apart as each other, first and last in one step.
    pub fn has_runs_of(&self, n: u32) -> bool {
        self.reduced.last().is_some_and(|(extent, _)| extent % i64::from(n) == 0)
    }

    /// The index of the element that many after element `q`, which begins a run.
    pub fn neighbour(&self, p: &Expr, q: &Expr, by: &Expr) -> Expr {
        let stride = self.reduced.last().map_or(1, |(_, stride)| *stride);
        let distance = if stride == 1 { by.clone() } else { by.clone() * int(stride) };
        affine(&self.index(p, q), 1, &distance)
    }

    /// The index in the calling thread's memory.
    pub fn index(&self, p: &Expr, q: &Expr) -> Expr {
        let steps = |of: &[(i64, i64)], number: &Expr| -> Vec<Expr> {
            let extents: Vec<i64> = of.iter().map(|s| s.0).collect();
            let digits = digits(number, &extents).into_iter().zip(of);
            digits
                .filter(|(d, _)| !d.is_int(0))
                .map(|(d, s)| if s.1 == 1 { d } else { d * int(s.1) })
                .collect()
        };
        let terms = steps(&self.spatial, p).into_iter().chain(steps(&self.reduced, q));
        let offset = (!self.offset.is_int(0)).then(|| self.offset.clone());
        terms.chain(offset).reduce(|a, b| a + b).unwrap_or_else(|| constant(0))
    }
}

/// How a call on spread tiles is done.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Outputs that each thread has a part of.
    pub n_outputs: u32,
    /// Elements of each that a thread holds.
    pub n_elements: u32,
    /// Sources.
    pub srcs: Vec<Registers>,
    /// Destinations.
    pub dsts: Vec<Registers>,
    /// Digits of threads that fold together, innermost first.
    pub folds: Vec<Digit>,
    /// Digits that are 0 in the threads that hold the outputs, innermost first.
    pub first: Vec<Digit>,
    /// The first threads of the scope, which hold elements.
    pub n_threads: u32,
    /// Reduced steps of the first source, for positions.
    order: Vec<Step>,
}

impl View {
    /// The position of element `q` of the thread `rank` among the reduced dimensions, `int64`.
    pub fn position(&self, q: &Expr, rank: &Expr) -> Expr {
        let extents: Vec<i64> =
            self.order.iter().filter(|s| matches!(s, Step::Registers { .. })).map(|s| s.extent()).collect();
        let mut own = digits(q, &extents).into_iter();
        let mut weight: i64 = self.order.iter().map(|s| s.extent()).product();
        let mut sum: Option<Expr> = None;
        for step in &self.order {
            weight /= step.extent();
            let digit = match step {
                Step::Threads(digit) => Some(digit_of(rank, *digit)),
                Step::Registers { .. } => own.next(),
            };
            let Some(digit) = digit.filter(|d| !d.is_int(0)) else { continue };
            let term = if weight == 1 { digit } else { digit * int(weight) };
            sum = Some(sum.map_or(term.clone(), |s| s + term));
        }
        sum.unwrap_or_else(|| constant(0)).cast(DType::I64)
    }

    /// How the call is done, or what was found instead of layouts that fit.
    pub fn of(facts: &Facts) -> Result<View, String> {
        let together = facts.participants()?;
        let scope = Scope { facts, n_threads: together.n_threads };
        let srcs = facts.srcs.iter().map(|src| scope.part(src)).collect::<Result<Vec<Part>, _>>()?;
        let dsts = facts.dsts.iter().map(|dst| scope.part(dst)).collect::<Result<Vec<Part>, _>>()?;
        let (Some(src), Some(dst)) = (srcs.first(), dsts.first()) else {
            return Err("no operand".to_owned());
        };

        let folded = Folded::of(src, &facts.reduced, dst, &scope)?;
        let mut plan = View {
            n_outputs: registers(&folded.spatial),
            n_elements: registers(&folded.reduced),
            srcs: Vec::new(),
            dsts: Vec::new(),
            folds: Vec::new(),
            first: Vec::new(),
            n_threads: 1,
            order: folded.reduced.clone(),
        };
        for other in &srcs {
            let own = Folded::of(other, &facts.reduced, dst, &scope)?;
            if places(&own.spatial) != places(&folded.spatial)
                || places(&own.reduced) != places(&folded.reduced)
                || joined(&other.replica) != joined(&src.replica)
            {
                return Err("sources of different layouts".to_owned());
            }
            plan.srcs.push(own.registers(other));
        }
        let mut kept: Option<(Vec<Digit>, Vec<Digit>)> = None;
        for (operand, part) in facts.dsts.iter().zip(&dsts) {
            let name = &operand.tile().name;
            let own = Held::of(part, src, &facts.reduced, &folded, &scope)
                .map_err(|found| format!("`{name}`, {found}"))?;
            let held = (joined(&own.kept), joined(&own.replica));
            if kept.as_ref().is_some_and(|first| *first != held) {
                return Err("destinations of different layouts".to_owned());
            }
            kept = Some(held);
            plan.dsts.push(Registers {
                spatial: own_registers(&own.spatial),
                reduced: Vec::new(),
                offset: part.offset.clone(),
            });
        }
        let (kept, replica) = kept.unwrap_or_default();
        let reduced = threads(&folded.reduced);
        let whole = facts.options.thread_reduce == Some(true) || kept.is_empty();
        if facts.options.thread_reduce == Some(false) && kept.is_empty() && !reduced.is_empty() {
            return Err("lanes to fold in a call with `thread_reduce=False`".to_owned());
        }
        let apart = |digit: Digit| {
            format!("results for {} threads, {} apart, that do not fold together", digit.extent, digit.stride)
        };
        let group = [&reduced[..], &src.replica].concat();
        plan.n_threads = covered(&[&threads(&folded.spatial)[..], &group].concat(), &scope)?;
        plan.folds = match whole {
            true => joined(&reduced),
            false => without(&reduced, &kept).map_err(apart)?,
        };
        plan.first = without(&group, &[kept, replica].concat()).map_err(apart)?;
        scope.within_warps(&plan.folds, plan.n_threads)?;
        plan.stays_clear(facts)?;
        Ok(plan)
    }

    /// Where a destination's registers are a source's, every output must be written after its last element was read.
    fn stays_clear(&self, facts: &Facts) -> Result<(), String> {
        for (src, own) in facts.srcs.iter().zip(&self.srcs) {
            for (dst, to) in facts.dsts.iter().zip(&self.dsts) {
                let same_place = own.spatial == to.spatial && own.offset == to.offset && self.n_elements == 1;
                if src.register.data == dst.register.data && self.n_outputs > 1 && !same_place {
                    return Err(format!("`{}` over the registers of its source", dst.tile().name));
                }
            }
        }
        Ok(())
    }
}

/// The threads of a call's scope.
struct Scope<'a> {
    facts: &'a Facts<'a>,
    n_threads: u32,
}

impl Scope<'_> {
    /// Threads of the scope from one step to the next along an axis.
    fn unit(&self, axis: &str) -> Result<i64, String> {
        let warp = self.facts.target.warp;
        let is_one_warp = self.facts.block.n_threads() <= warp;
        let legal: &[&str] = match self.facts.scope {
            ExecScope::Warp if is_one_warp => &["laneid", "tx"],
            ExecScope::Warp => &["laneid"],
            ExecScope::Warpgroup => &["laneid", "wid_in_wg", "tid_in_wg"],
            ExecScope::Cta => &["laneid", "wid_in_wg", "tid_in_wg", "warpid", "wgid", "tx"],
            ExecScope::Thread | ExecScope::Cluster => &[],
        };
        match thread_axis_unit(axis, i64::from(warp)) {
            Some(unit) if legal.contains(&axis) => Ok(unit),
            _ => Err(format!("steps along `{axis}` at {} scope", self.facts.scope.name())),
        }
    }

    fn step(&self, it: &Iter) -> Result<Step, String> {
        if is_memory_axis(&it.step.axis) {
            return Ok(Step::Registers { extent: it.extent, stride: it.step.stride });
        }
        let stride = it.step.stride * self.unit(&it.step.axis)?;
        let (Ok(extent), Ok(stride)) = (u32::try_from(it.extent), u32::try_from(stride)) else {
            return Err(format!("steps of {stride} threads"));
        };
        Ok(Step::Threads(Digit { extent, stride }))
    }

    fn steps(&self, iters: &[Iter]) -> Result<Vec<Step>, String> {
        iters.iter().filter(|it| it.extent > 1).map(|it| self.step(it)).collect()
    }

    /// The part of a spread tile that an operand names.
    fn part(&self, operand: &Operand) -> Result<Part, String> {
        let tile = operand.tile();
        let name = &tile.name;
        let Some(layout) = tile.layout.as_ref().filter(|_| operand.is_spread) else {
            return Err(format!("`{name}`, which is not spread over threads"));
        };
        if layout.swizzle.is_some() {
            return Err(format!("`{name}` with a swizzle"));
        }
        let constants = |of: &[Expr]| -> Option<Vec<i64>> {
            of.iter().map(|e| e.as_int().and_then(|n| i64::try_from(n).ok())).collect()
        };
        let (Some(shape), Some(extents)) = (constants(&tile.shape), operand.extents()) else {
            return Err(format!("`{name}` of a size that is not constant"));
        };
        // A part that begins at a place known at run time is one of registers of one step.
        let mut offset: Vec<Expr> = Vec::new();
        let mut region = Vec::with_capacity(shape.len());
        let groups = layout.group(&shape).map_err(|e| e.to_string())?;
        for (d, (start, _)) in operand.region.ranges.iter().enumerate() {
            let constant_start = start.as_int().and_then(|n| i64::try_from(n).ok());
            let start = match (constant_start, &coulis_layout::fused(&groups[d])[..]) {
                (Some(start), _) => start,
                (None, [one]) if is_memory_axis(&one.step.axis) => {
                    offset.push(start.clone().cast(DType::I32) * int(one.step.stride));
                    0
                }
                (None, _) => {
                    return Err(format!("a part of `{name}` that begins at a place known at run time"));
                }
            };
            region.push((start, extents[d]));
        }
        let sliced = layout.slice(&shape, &region).map_err(|e| e.to_string())?;
        let sliced = sliced.ok_or_else(|| format!("a part of `{name}` that no layout describes"))?;
        for moved in &sliced.offset {
            if !is_memory_axis(&moved.axis) {
                return Err(format!(
                    "a part of `{name}` or a layout of it that begins {} along `{}`",
                    moved.stride, moved.axis
                ));
            }
            offset.push(int(moved.stride));
        }
        let replica = self.steps(&sliced.replica)?;
        if replica.iter().any(|step| matches!(step, Step::Registers { .. })) {
            return Err(format!("`{name}`, which stands in several registers of one thread"));
        }
        if let Some(d) = (0..shape.len()).find(|&d| {
            let cut = |iters: &[Iter]| -> i64 {
                iters.iter().filter(|it| !is_memory_axis(&it.step.axis)).map(|it| it.extent).product()
            };
            let own = sliced.group(&extents).map(|g| cut(&g[d])).unwrap_or(0);
            own != cut(&groups[d])
        }) {
            return Err(format!("a part of `{name}` with some of the threads of dimension {d}"));
        }
        let offset = offset.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| constant(0));
        Ok(Part { layout: sliced, extents, replica: threads(&replica), offset })
    }

    /// Whether lanes that fold are lanes of one warp.
    fn within_warps(&self, folds: &[Digit], n_threads: u32) -> Result<(), String> {
        let warp = self.facts.target.warp;
        match folds.iter().find(|d| n_threads > warp && !warp.is_multiple_of(d.stride * d.extent)) {
            Some(d) => Err(format!(
                "{} threads, {} apart, that fold together over several warps",
                d.extent, d.stride
            )),
            None => Ok(()),
        }
    }
}

/// The part of a tile that an operand names.
struct Part {
    layout: TileLayout,
    extents: Vec<i64>,
    replica: Vec<Digit>,
    offset: Expr,
}

/// A source's steps, those of an output apart from those of its elements.
struct Folded {
    spatial: Vec<Step>,
    reduced: Vec<Step>,
    /// Extents of the outputs.
    shape: Vec<i64>,
}

impl Folded {
    fn of(src: &Part, reduced: &[usize], dst: &Part, scope: &Scope) -> Result<Folded, String> {
        let size = |extents: &[i64]| extents.iter().product::<i64>();
        let mut found = Folded { spatial: Vec::new(), reduced: Vec::new(), shape: Vec::new() };
        // A vector whose destination has one element for each register is folded over its threads alone.
        let n_registers = src.layout.storage().size();
        let over_lanes = src.extents.len() == 1
            && reduced == [0]
            && size(&dst.extents) > 1
            && size(&dst.extents) == n_registers
            && !dst.replica.is_empty();
        if over_lanes {
            for step in scope.steps(&src.layout.shard)? {
                match step {
                    Step::Threads(_) => found.reduced.push(step),
                    Step::Registers { extent, .. } => {
                        found.shape.push(extent);
                        found.spatial.push(step);
                    }
                }
            }
            return Ok(found);
        }
        for (d, iters) in src.layout.group(&src.extents).map_err(|e| e.to_string())?.iter().enumerate() {
            match reduced.contains(&d) {
                true => found.reduced.extend(scope.steps(iters)?),
                false => {
                    found.spatial.extend(scope.steps(iters)?);
                    found.shape.push(src.extents[d]);
                }
            }
        }
        Ok(found)
    }

    fn registers(&self, part: &Part) -> Registers {
        Registers {
            spatial: own_registers(&self.spatial),
            reduced: own_registers(&self.reduced),
            offset: part.offset.clone(),
        }
    }
}

/// What a destination holds.
struct Held {
    spatial: Vec<Step>,
    /// Digits of reduced dimensions for which it has an element each.
    kept: Vec<Digit>,
    replica: Vec<Digit>,
}

impl Held {
    fn of(dst: &Part, src: &Part, reduced: &[usize], folded: &Folded, scope: &Scope) -> Result<Held, String> {
        let size = |extents: &[i64]| extents.iter().product::<i64>();
        let mut held = Held { spatial: Vec::new(), kept: Vec::new(), replica: dst.replica.clone() };
        let keeps_rank =
            dst.extents.len() == src.extents.len() && folded.shape.len() + reduced.len() == src.extents.len();
        let is_kept = keeps_rank
            && dst
                .extents
                .iter()
                .zip(&src.extents)
                .enumerate()
                .all(|(d, (n, from))| reduced.contains(&d) || n == from);
        if is_kept {
            let from = src.layout.group(&src.extents).map_err(|e| e.to_string())?;
            for (d, iters) in dst.layout.group(&dst.extents).map_err(|e| e.to_string())?.iter().enumerate() {
                let steps = scope.steps(iters)?;
                if !reduced.contains(&d) {
                    held.spatial.extend(steps);
                    continue;
                }
                let own = threads(&scope.steps(&from[d])?);
                if !steps.is_empty()
                    && (steps.len() != threads(&steps).len() || joined(&threads(&steps)) != joined(&own))
                {
                    return Err(format!(
                        "whose dimension {d} is neither 1 nor an element for each thread that folds"
                    ));
                }
                if !steps.is_empty() {
                    held.kept.extend(own);
                }
            }
        } else {
            if size(&dst.extents) != size(&folded.shape) {
                return Err(format!("of {:?} for results of {:?}", dst.extents, folded.shape));
            }
            held.spatial = scope.steps(&dst.layout.shard)?;
        }
        match places(&folded.spatial) == places(&held.spatial) {
            true => Ok(held),
            false => {
                Err(format!("whose `{}` puts results in other threads than `{}`", dst.layout, src.layout))
            }
        }
    }
}

/// In which thread each element is: extents and strides, outermost first, of stride 0 along registers, and with what
/// continues each other as one. Steps that put each element in the same thread have the same places, however they are split.
fn places(steps: &[Step]) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for step in steps {
        let (extent, stride) = match step {
            Step::Threads(digit) => (i64::from(digit.extent), i64::from(digit.stride)),
            Step::Registers { extent, .. } => (*extent, 0),
        };
        match found.last_mut() {
            Some(outer) if outer.1 == extent * stride => *outer = (outer.0 * extent, stride),
            _ => found.push((extent, stride)),
        }
    }
    found
}

fn threads(steps: &[Step]) -> Vec<Digit> {
    let digit = |step: &Step| match step {
        Step::Threads(digit) => Some(*digit),
        Step::Registers { .. } => None,
    };
    steps.iter().filter_map(digit).collect()
}

fn own_registers(steps: &[Step]) -> Vec<(i64, i64)> {
    let own = |step: &Step| match step {
        Step::Threads(_) => None,
        Step::Registers { extent, stride } => Some((*extent, *stride)),
    };
    steps.iter().filter_map(own).collect()
}

fn registers(steps: &[Step]) -> u32 {
    own_registers(steps).iter().map(|s| s.0 as u32).product()
}

/// Number of the scope's threads that hold elements: the first ones, each once.
fn covered(digits: &[Digit], scope: &Scope) -> Result<u32, String> {
    let mut covered = 1;
    let mut sorted = digits.to_vec();
    sorted.sort_by_key(|d| d.stride);
    for digit in sorted {
        if digit.stride != covered {
            return Err("a layout that skips or shares threads".to_owned());
        }
        covered *= digit.extent;
    }
    let all = scope.n_threads;
    let may_be_fewer = scope.facts.scope == ExecScope::Warp;
    match covered == all || (may_be_fewer && covered < all) {
        true => Ok(covered),
        false => {
            Err(format!("elements on {covered} threads of the {all} of the {}", scope.facts.scope.name()))
        }
    }
}
