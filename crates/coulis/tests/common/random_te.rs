//! Random programs of tensor expressions and random schedules of them, from a seed.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part, and fails by panicking")]

use std::slice::from_ref;

use coulis::DType;
use coulis::te::{
    Expr, IterVar, MemScope, Reduction, Schedule, ScheduleError, Split, Tensor, TensorError, comm_reducer,
    compute, compute_tuple, max, min, placeholder, reduce_axis, sum, var,
};
use coulis_ir::ThreadTag;
use coulis_schedule::{Attach, GridFinish, Stage};

/// A small generator: the same numbers on each machine.
pub struct Dice(u64);

impl Dice {
    /// The generator of that seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }

    /// A number from 0 to less than `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// A schedule, and values of its sizes.
pub struct Case {
    /// The schedule.
    pub schedule: Schedule,
    sizes: Vec<(String, i64)>,
}

impl Case {
    /// Sizes by name.
    pub fn sizes(&self) -> Vec<(&str, i64)> {
        self.sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect()
    }
}

/// A program with a random schedule; what a primitive refuses is left out.
pub fn case(dice: &mut Dice) -> Case {
    let mut case = program(dice);
    let steps = 1 + dice.below(5);
    for _ in 0..steps {
        let _refused = step(&mut case.schedule, dice);
    }
    case
}

/// A program with a random schedule on blocks and threads.
pub fn case_on_threads(dice: &mut Dice) -> Case {
    let mut case = program(dice);
    let s = &mut case.schedule;
    for _ in 0..1 + dice.below(5) {
        let _refused = thread_step(s, dice);
    }
    // Every root stage runs on blocks at least.
    let of_stage = |stage: &Stage| {
        let at_root = *stage.attach() == Attach::Root;
        let free = stage.leaves().iter().all(|leaf| stage.thread_of(leaf).is_none());
        (at_root && free).then(|| (stage.id(), stage.leaves().first().cloned()))
    };
    let rest: Vec<_> = s.stages().iter().filter_map(|stage| of_stage(stage)).collect();
    for (stage, axis) in rest {
        let axis = match axis {
            Some(axis) if s.stage(stage).unwrap().axes().is_empty() || dice.once_in(8) => {
                s.fuse(stage, &[]).unwrap_or(axis)
            }
            Some(axis) => axis,
            None => s.fuse(stage, &[]).unwrap(),
        };
        let _refused = s.bind(stage, &axis, ThreadTag::BlockX);
    }
    case
}

/// Tries a random primitive of schedules on threads.
fn thread_step(s: &mut Schedule, dice: &mut Dice) -> Result<(), ScheduleError> {
    let at = dice.below(s.stages().len());
    let stage = s.stages()[at].id();
    let (Some(a), Some(b)) = (leaf(s, at, dice), leaf(s, at, dice)) else {
        return s.fuse(stage, &[]).map(|_| ());
    };
    let few = dice.pick(&[1, 2, 3, 4, 8, 16, 20, 32, 40]);
    let tag = |dice: &mut Dice| {
        dice.pick(&[
            ThreadTag::ThreadX,
            ThreadTag::ThreadX,
            ThreadTag::ThreadX,
            ThreadTag::ThreadY,
            ThreadTag::ThreadY,
            ThreadTag::ThreadZ,
            ThreadTag::VThread,
            ThreadTag::BlockY,
            ThreadTag::ClusterX,
            ThreadTag::ClusterY,
        ])
    };
    match dice.below(20) {
        0 => s.split(stage, &a, Split::Factor(few)).map(|_| ()),
        1 => s.reorder(stage, &[a, b]),
        2 | 3 => s.rfactor(stage, &a).map(|_| ()),
        4..=6 => {
            let parent = dice.below(s.stages().len());
            let Some(axis) = leaf(s, parent, dice) else { return Ok(()) };
            let parent = s.stages()[parent].id();
            s.compute_at(stage, parent, &axis)
        }
        7 => s.compute_inline(stage),
        8 => s.set_scope(stage, dice.pick(&[MemScope::Local, MemScope::Shared])),
        9 => s.grid_finish(stage, dice.pick(&GridFinish::ALL)),
        10 => s.cache_write(stage, dice.pick(&[MemScope::Local, MemScope::Shared])).map(|_| ()),
        11 => {
            let tensor = dice.pick(s.program().args());
            s.cache_read(&tensor, MemScope::Shared, &[stage.into()]).map(|_| ())
        }
        12 => s.bind(stage, &a, dice.pick(&[ThreadTag::BlockX, ThreadTag::ThreadX])),
        13 => s.unroll(stage, &a),
        _ => {
            let by = if dice.once_in(3) { Split::Nparts(few) } else { Split::Factor(few) };
            let outer_is_bound = matches!(by, Split::Nparts(_));
            let (outer, inner) = s.split(stage, &a, by)?;
            let tag = tag(dice);
            s.bind(stage, if outer_is_bound { &outer } else { &inner }, tag)
        }
    }
}

/// An extent: a constant, or a size with a value.
fn extent(dice: &mut Dice, name: &str, most: usize, sizes: &mut Vec<(String, i64)>) -> Expr {
    let value = 1 + dice.below(most);
    if dice.once_in(3) {
        let value = if dice.once_in(12) { 0 } else { value };
        sizes.push((name.to_owned(), value as i64));
        return var(name).expr();
    }
    Expr::int(value as i32)
}

/// A default schedule of a random program.
pub fn program(dice: &mut Dice) -> Case {
    let mut sizes = Vec::new();
    let data: Vec<Expr> = (0..dice.below(3)).map(|i| extent(dice, ["n", "m"][i], 9, &mut sizes)).collect();
    let folded: Vec<Expr> =
        (0..1 + dice.below(2)).map(|i| extent(dice, ["p", "q"][i], 11, &mut sizes)).collect();
    let dtype = dice.pick(&[DType::I32, DType::F32, DType::F64, DType::I64]);
    // Where each dimension of the input comes from, in any order.
    let all: Vec<Expr> = data.iter().chain(&folded).cloned().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    for i in (1..order.len()).rev() {
        let other = dice.below(i + 1);
        order.swap(i, other);
    }
    let shape: Vec<Expr> = order.iter().map(|at| all[*at].clone()).collect();
    let a = placeholder(&shape, dtype, "A").unwrap();
    let mut inputs = vec![a.clone()];
    let mut source = a;
    if dice.once_in(2) {
        let from = source.clone();
        let shift = dice.once_in(3);
        source = compute(&shape, "T", |i| {
            let plain = from.at(i) * Expr::constant(2, dtype);
            if !shift {
                return plain + Expr::constant(1, dtype);
            }
            let mut place: Vec<Expr> = i.iter().map(coulis::te::Var::expr).collect();
            place[0] = (place[0].clone() + Expr::int(1)).min(shape[0].clone() - Expr::int(1));
            plain + from.at(place)
        })
        .unwrap();
    }
    let axes: Vec<IterVar> =
        folded.iter().enumerate().map(|(i, e)| reduce_axis(e.clone(), ["k", "l"][i])).collect();
    let weight = dice.once_in(4).then(|| {
        let w = placeholder(from_ref(&folded[0]), dtype, "W").unwrap();
        inputs.push(w.clone());
        w
    });
    let (condition, start, kind) = (dice.below(4), dice.once_in(5), dice.below(6));
    let body = |i: &[coulis::te::Var]| -> Expr {
        let place: Vec<Expr> = order
            .iter()
            .map(|at| if *at < data.len() { i[*at].expr() } else { axes[*at - data.len()].expr() })
            .collect();
        let read = source.at(place);
        match &weight {
            Some(w) => read * w.at([&axes[0]]),
            None => read,
        }
    };
    let guarded = |reduction: Reduction, value: Expr| -> Result<Reduction, TensorError> {
        match condition {
            0 => reduction.where_(axes[0].expr().floormod(Expr::int(2)).equal(Expr::int(0))),
            1 => reduction.where_(value.gt(Expr::constant(0, dtype))),
            _ => Ok(reduction),
        }
    };
    let result: Vec<Tensor> = if kind == 5 {
        let first = dice.below(2);
        let place = 1 - first;
        let reducer = comm_reducer(
            move |x, y| {
                let earlier =
                    x[place].clone().lt(y[place].clone()).and(x[first].clone().equal(y[first].clone()));
                let keep = x[first].clone().gt(y[first].clone()).or(earlier);
                (0..2).map(|f| Expr::select(keep.clone(), x[f].clone(), y[f].clone())).collect()
            },
            move |types| {
                let mut identity = vec![Expr::int(i32::MAX); 2];
                identity[first] = match types[first].int_range() {
                    Some((lowest, _)) => Expr::int_of(lowest, types[first]),
                    None => Expr::float(f64::NEG_INFINITY, types[first]),
                };
                identity
            },
            "largest",
        );
        let weights: Vec<i32> = vec![16, 1];
        compute_tuple(&data, "B", |i| {
            let value = body(i);
            let at = axes
                .iter()
                .zip(&weights[2 - axes.len()..])
                .fold(Expr::int(0), |at, (axis, weight)| at + axis.expr() * Expr::int(*weight));
            let mut sources = vec![at.clone(), at];
            sources[first] = value.clone();
            guarded(reducer.reduce(sources, &axes)?, value)
        })
        .unwrap()
    } else {
        let fold = [sum, sum, max, min, sum][kind];
        let b = compute(&data, "B", |i| {
            let value = body(i);
            let reduction = guarded(fold(value.clone(), &axes)?, value)?;
            if start { reduction.init(vec![Expr::constant(2, dtype)]) } else { Ok(reduction) }
        });
        vec![b.unwrap()]
    };
    let mut outputs = result.clone();
    if dice.once_in(2) {
        let from = result[0].clone();
        let neighbour = dice.once_in(2) && !data.is_empty();
        let c = compute(&data, "C", |i| {
            let own = from.at(i) * Expr::constant(3, from.dtype());
            if !neighbour {
                return own + Expr::constant(1, from.dtype());
            }
            let mut place: Vec<Expr> = i.iter().map(coulis::te::Var::expr).collect();
            place[0] = (place[0].clone() + Expr::int(1)).min(data[0].clone() - Expr::int(1));
            own + from.at(place)
        })
        .unwrap();
        outputs = vec![c];
    }
    // Sizes of a result that no input has are not known to a caller.
    let args: Vec<Tensor> = inputs.into_iter().chain(outputs.clone()).collect();
    Case { schedule: Schedule::new(&outputs, &args).unwrap(), sizes }
}

fn leaf(s: &Schedule, stage: usize, dice: &mut Dice) -> Option<IterVar> {
    let leaves = s.stages()[stage].leaves();
    (!leaves.is_empty()).then(|| leaves[dice.below(leaves.len())].clone())
}

/// Tries a random primitive.
pub fn step(s: &mut Schedule, dice: &mut Dice) -> Result<(), ScheduleError> {
    let at = dice.below(s.stages().len());
    let stage = s.stages()[at].id();
    let (Some(a), Some(b)) = (leaf(s, at, dice), leaf(s, at, dice)) else {
        return s.fuse(stage, &[]).map(|_| ());
    };
    let small = 1 + dice.below(6) as i64;
    match dice.below(18) {
        0..=2 => s.split(stage, &a, Split::Factor(small)).map(|_| ()),
        3 => s.split(stage, &a, Split::Nparts(small)).map(|_| ()),
        4 => {
            let leaves = s.stages()[at].leaves().to_vec();
            let from = dice.below(leaves.len());
            s.fuse(stage, &leaves[from..(from + 2).min(leaves.len())]).map(|_| ())
        }
        5 => s.reorder(stage, &[a, b]),
        6 => s.tile(stage, &a, &b, small, 2).map(|_| ()),
        7 | 8 => s.rfactor_at(stage, &a, dice.below(2) as i64).map(|_| ()),
        9 | 10 => {
            let parent = dice.below(s.stages().len());
            let Some(axis) = leaf(s, parent, dice) else { return Ok(()) };
            let parent = s.stages()[parent].id();
            s.compute_at(stage, parent, &axis)
        }
        11 => s.compute_inline(stage),
        12 => s.parallel(stage, &a),
        13 => s.vectorize(stage, &a),
        14 => {
            let tensor = dice.pick(s.program().args());
            s.cache_read(&tensor, MemScope::Local, &[stage.into()]).map(|_| ())
        }
        15 => s.cache_write(stage, MemScope::Local).map(|_| ()),
        16 => s.unroll(stage, &a),
        _ => {
            let (_, inner) = s.split(stage, &a, Split::Factor(4))?;
            s.vectorize(stage, &inner)
        }
    }
}
