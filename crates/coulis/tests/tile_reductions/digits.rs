//! Layouts of lanes whose digits are split, merged and permuted at random: every thread that the destination names gets the
//! sum, however the layouts are written.

use coulis_ir::{DType, Target};

use crate::build::{Fold, folds, tuple};
use crate::replicas::Lanes;
use crate::run::{Arg, Program, Refused, check_accepted, check_declines, check_variant};

/// A digit of elements: along lanes or along a lane's registers.
#[derive(Clone, Copy, PartialEq)]
struct Atom {
    extent: usize,
    stride: usize,
    is_lane: bool,
}

impl Atom {
    fn of(self, lane: usize, register: usize) -> usize {
        (if self.is_lane { lane } else { register }) / self.stride % self.extent
    }
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn shuffled<T>(&mut self, mut of: Vec<T>) -> Vec<T> {
        for at in (1..of.len()).rev() {
            of.swap(at, self.below(at + 1));
        }
        of
    }

    /// The digits as text; those that continue each other are merged, as often as not.
    fn spelled(&mut self, atoms: &[Atom]) -> String {
        let mut iters: Vec<Atom> = Vec::new();
        for atom in atoms {
            match iters.last_mut() {
                Some(outer)
                    if outer.is_lane == atom.is_lane
                        && outer.stride == atom.extent * atom.stride
                        && self.below(2) == 0 =>
                {
                    *outer = Atom { extent: outer.extent * atom.extent, ..*atom };
                }
                _ => iters.push(*atom),
            }
        }
        let extents: Vec<i64> = iters.iter().map(|atom| atom.extent as i64).collect();
        let stride = |atom: &Atom| format!("{}{}", atom.stride, if atom.is_lane { " @ laneid" } else { "" });
        let strides: Vec<String> = iters.iter().map(stride).collect();
        match iters[..] {
            [] => "[1 : 1]".to_owned(),
            _ => format!("[{} : ({},)]", tuple(&extents), strides.join(", ")),
        }
    }

    /// A layout; its replica in any order of its digits.
    fn layout(&mut self, shard: &[Atom], replica: &[Atom]) -> String {
        let shard = self.spelled(shard);
        match replica {
            [] => format!("S{shard}"),
            _ => {
                let permuted = self.shuffled(replica.to_vec());
                let ascending = self.below(2) == 0;
                let mut of = permuted;
                if ascending {
                    of.sort_by_key(|atom| std::cmp::Reverse(atom.stride));
                }
                format!("S{shard} + R{}", self.spelled(&of))
            }
        }
    }
}

/// Digits of these extents whose strides follow one another.
fn digits(extents: &[usize], is_lane: bool) -> Vec<Atom> {
    let stride = |at: usize| extents[..at].iter().product();
    (0..extents.len()).map(|at| Atom { extent: extents[at], stride: stride(at), is_lane }).collect()
}

/// Cases.
const CASES: u64 = 100;

/// Ways to write a case.
const SPELLINGS: usize = 4;

/// What a destination's register holds before a call that asks for no old value.
const BEFORE: f64 = 77.0;

/// The program of a call; lanes that the destination does not name keep what they have.
fn program(lanes: &Lanes, fold: Fold, is_named: &dyn Fn(usize) -> bool) -> Program {
    let mut program = lanes.program(fold);
    if !fold.accum {
        let before =
            format!("for i in range({}):\n        dst_own[i] = T.{}({BEFORE})", lanes.spans[1], fold.dtype);
        program.text = program.text.replace("    Tx.warp.", &format!("    {before}\n    Tx.warp."));
    }
    let old = match &program.args[..] {
        [_, Arg::In { values, .. }, _] => values.clone(),
        _ => vec![BEFORE; 32 * lanes.dst.2.len()],
    };
    if let Some(Arg::Out { wants, .. }) = program.args.last_mut() {
        for (at, want) in wants.iter_mut().enumerate().filter(|(at, _)| !is_named(at / lanes.dst.2.len())) {
            *want = Some((old[at], 0.0));
        }
    }
    program
}

/// What becomes of one case: whether its spellings are accepted.
fn check_case(seed: u64) -> bool {
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lanes = match random.below(4) {
        0 => random.shuffled(vec![2, 2, 2, 3]),
        _ => vec![2; 5],
    };
    let registers = [&[][..], &[2], &[2, 2], &[2, 3]][random.below(4)];
    let n_lanes: usize = lanes.iter().product();
    let of_lanes = digits(&lanes, true);
    let mut shard = random.shuffled([of_lanes.clone(), digits(registers, false)].concat());
    // Lanes that repeat the source.
    let repeats = |random: &mut Random, atom: &Atom| atom.is_lane && random.below(8) == 0;
    let replica: Vec<Atom> = shard.iter().filter(|atom| repeats(random, atom)).copied().collect();
    shard.retain(|atom| !replica.contains(atom));
    // Dimensions of one to three digits each, some of them reduced.
    let mut dims: Vec<Vec<Atom>> = Vec::new();
    let mut rest = &shard[..];
    while !rest.is_empty() {
        let (dim, more) = rest.split_at(rest.len().min(1 + random.below(3)));
        dims.push(dim.to_vec());
        rest = more;
    }
    let mut reduced: Vec<usize> = (0..dims.len()).filter(|_| random.below(3) > 0).collect();
    if reduced.is_empty() {
        reduced.push(random.below(dims.len()));
    }
    let extent = |dim: &Vec<Atom>| dim.iter().map(|atom| atom.extent as i64).product::<i64>();
    let kept: Vec<Atom> =
        (0..dims.len()).filter(|d| !reduced.contains(d)).flat_map(|d| dims[d].clone()).collect();
    let folded: Vec<Atom> = reduced.iter().flat_map(|&d| dims[d].clone()).collect();

    // The destination: registers of its own, lanes of the source, now and then two of them swapped.
    let n_kept: Vec<usize> = kept.iter().filter(|atom| !atom.is_lane).map(|atom| atom.extent).collect();
    let mut own = digits(&n_kept, false).into_iter();
    let mut to: Vec<Atom> = kept.iter().map(|a| if a.is_lane { *a } else { own.next().unwrap() }).collect();
    let moves: Vec<usize> = (0..to.len()).filter(|&at| to[at].is_lane && to[at].extent == 2).collect();
    if moves.len() > 1 && random.below(4) == 0 {
        to.swap(moves[0], moves[1]);
    }
    let group: Vec<Atom> = folded.iter().chain(&replica).filter(|atom| atom.is_lane).copied().collect();
    let mut held: Vec<Atom> = group.iter().filter(|_| random.below(2) == 0).copied().collect();
    // Tiles without lanes are those of each thread by itself.
    if !to.iter().chain(&held).any(|atom| atom.is_lane) {
        held.push(group[0]);
    }
    let shape: Vec<i64> = match random.below(2) {
        0 => (0..dims.len()).map(|d| if reduced.contains(&d) { 1 } else { extent(&dims[d]) }).collect(),
        _ => (0..dims.len()).filter(|d| !reduced.contains(d)).map(|d| extent(&dims[d])).collect(),
    };
    let dst_shape = if shape.is_empty() { "(1,)".to_owned() } else { tuple(&shape) };
    let src_shape = tuple(&dims.iter().map(extent).collect::<Vec<_>>());
    let names: Vec<i64> = reduced.iter().map(|d| *d as i64).collect();
    let call = format!("dst, src, axes={}", tuple(&names));
    let sizes = [registers.iter().product::<usize>(), n_kept.iter().product::<usize>()];
    let [from, into] = sizes.map(|n| (0..n).collect::<Vec<usize>>());

    // The elements of the result that a register of the destination is.
    let elements = |lane: usize, register: usize| {
        let place = |all: Vec<(usize, usize)>, (atom, values): (&Atom, Vec<usize>)| {
            let moved = |(lane, register): &(usize, usize), value: usize| match atom.is_lane {
                true => (lane + value * atom.stride, *register),
                false => (*lane, register + value * atom.stride),
            };
            all.iter().flat_map(|at| values.iter().map(|v| moved(at, *v)).collect::<Vec<_>>()).collect()
        };
        let fixed = kept.iter().zip(&to).map(|(atom, own)| (atom, vec![own.of(lane, register)]));
        let every = folded.iter().map(|atom| (atom, (0..atom.extent).collect()));
        fixed.chain(every).fold(vec![(0, 0)], place)
    };
    let is_named = |lane: usize| {
        let names = |atom: &&Atom| !to.contains(atom) && !held.contains(atom);
        lane < n_lanes && of_lanes.iter().filter(names).all(|atom| atom.of(lane, 0) == 0)
    };

    // Lanes that repeat others have what these have.
    let repeated = |a: &Atom| format!(" - lane // {} % {} * {}", a.stride, a.extent, a.stride);
    let repeated: String = replica.iter().map(repeated).collect();

    let target = Target::simulated(32);
    let mut accepted = Vec::new();
    for fold in folds(&["sum"], &[DType::I32], &[false, true]) {
        for _ in 0..SPELLINGS {
            let (src, dst) = (random.layout(&shard, &replica), random.layout(&to, &held));
            let lanes = Lanes {
                warp: 32,
                src: (&src_shape, &src, &from),
                dst: (&dst_shape, &dst, &into),
                spans: sizes,
                call: &call,
                group: &elements,
            };
            let mut program = program(&lanes, fold, &is_named);
            program.text = program.text.replace("= A[lane, ", &format!("= A[lane{repeated}, "));
            accepted.push(match check_accepted(&program, "local", &target) {
                Ok(()) => None,
                Err(Refused::Declined(table)) => Some(format!("{table}\n{}", program.text)),
                Err(Refused::Error(message)) => panic!("case {seed}: {message}"),
            });
        }
    }
    let refused: Vec<&String> = accepted.iter().flatten().collect();
    assert!(
        refused.is_empty() || refused.len() == accepted.len(),
        "case {seed}: {} of {} are declined:\n{}",
        refused.len(),
        accepted.len(),
        refused[0]
    );
    // Where each element of a result is in the lanes of the result, nothing is left to decline.
    let is_moved = kept.iter().zip(&to).any(|(from, to)| from.is_lane && from != to);
    assert!(is_moved || refused.is_empty(), "case {seed}: {}", refused[0]);
    refused.is_empty()
}

#[test]
fn tile_layouts_that_are_written_in_other_digits_have_the_same_sums() {
    let n_accepted = (0..CASES).filter(|seed| check_case(*seed)).count() as u64;
    assert!(n_accepted > CASES / 2 && n_accepted < CASES, "{n_accepted}");
}

#[test]
fn tile_a_replica_may_merge_digits_of_the_source_beside_one_that_it_leaves_out() {
    // Lanes 0 to 15 are named; the outermost digit of the lanes folds and is not repeated.
    let group = |lane: usize, _: usize| {
        let of = lane / 8 % 2 * 8;
        (0..16).map(|at| (at / 8 * 16 + of + at % 8, 0)).collect()
    };
    for (shape, axes, src) in [
        ("(2, 2, 2, 4)", "(0, 2, 3)", "S[(2, 2, 2, 4) : (16 @ laneid, 8 @ laneid, 4 @ laneid, 1 @ laneid)]"),
        ("(2, 2, 8)", "(0, 2)", "S[(2, 2, 8) : (16 @ laneid, 8 @ laneid, 1 @ laneid)]"),
        ("(2, 2, 8)", "(0, 2)", "S[32 : 1 @ laneid]"),
    ] {
        for replica in [
            "8 : 1",
            "(2, 4) : (4 @ laneid, 1",
            "(4, 2) : (1 @ laneid, 4",
            "(2, 2, 2) : (1 @ laneid, 4 @ laneid, 2",
        ] {
            let end = if replica.contains('(') { " @ laneid)" } else { " @ laneid" };
            let dst = format!("S[2 : 8 @ laneid] + R[{replica}{end}]");
            let call = format!("dst, src, axes={axes}");
            let lanes = Lanes {
                warp: 32,
                src: (shape, src, &[0]),
                dst: ("(2,)", &dst, &[0]),
                spans: [1, 1],
                call: &call,
                group: &group,
            };
            for fold in folds(&["sum"], &[DType::I32, DType::F32], &[false, true]) {
                let program = program(&lanes, fold, &|lane| lane < 16);
                check_variant(&program, "local", &Target::simulated(32));
            }
        }
    }
}

#[test]
fn tile_sources_of_one_call_stand_in_the_same_lanes() {
    let text = "@T.prim_func
def main(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32,), \"float32\")
    B = T.match_buffer(B_ptr, (32,), \"float32\")
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([32])
    a = T.alloc_buffer([16], \"float32\", scope=\"local\", layout=TileLayout(S[16 : 1 @ laneid] + R[2 : 16 @ laneid]))
    b = T.alloc_buffer([16], \"float32\", scope=\"local\", layout=TileLayout(S[16 : 1 @ laneid]))
    total = T.alloc_buffer([1], \"float32\", scope=\"local\", layout=TileLayout(S[1 : 1] + R[32 : 1 @ laneid]))
    own_a = a.local(1)
    own_b = b.local(1)
    own_total = total.local(1)
    own_a[0] = A[tid % 16]
    if tid < 16:
        own_b[0] = A[tid + 16]
    Tx.warp.reduce((total,), (a, b), reducer=\"dot\", axes=(0,), accum=False{dispatch})
    B[tid] = own_total[0]
";
    let program = Program { text: text.to_owned(), args: Vec::new() };
    check_declines(&program, "local", &Target::simulated(32), "sources of different layouts");
    // A digit that moves to no other lane.
    let text = text.replace("R[2 : 16 @ laneid]", "R[2 : 0 @ laneid]");
    let text = text.replace("S[16 : 1 @ laneid]))", "S[16 : 1 @ laneid] + R[2 : 0 @ laneid]))");
    let program = Program { text, args: Vec::new() };
    check_declines(&program, "local", &Target::simulated(32), "a layout that skips or shares threads");
}
