//! Destinations that stand in every lane that folded.

use std::fmt::Write;

use coulis_ir::{DType, Target};

use crate::build::{Fold, folds};
use crate::run::{Arg, Program, check_wins, rounded, uniform};

/// One warp whose lanes hold some registers each of a tile, folded over lanes.
pub struct Lanes<'a> {
    pub warp: u32,
    /// Shape and layout of the source, and the memory places of a lane's registers in the order of the rows of `A`.
    pub src: (&'a str, &'a str, &'a [usize]),
    /// As the source, for the destination.
    pub dst: (&'a str, &'a str, &'a [usize]),
    /// Registers of a lane, gaps included.
    pub spans: [usize; 2],
    pub call: &'a str,
    /// For a lane and a register of the destination, the elements `(lane, register)` that fold.
    pub group: &'a dyn Fn(usize, usize) -> Vec<(usize, usize)>,
}

impl Lanes<'_> {
    pub fn program(&self, fold: Fold) -> Program {
        let Fold { op, dtype: d, accum } = fold;
        let (n, w) = (self.src.2.len(), self.warp as usize);
        let m = self.dst.2.len();
        let old = if accum { "O_ptr: T.handle, " } else { "" };
        let mut text = format!("@T.prim_func\ndef main(A_ptr: T.handle, {old}B_ptr: T.handle):\n");
        let mut line = |of: &str| writeln!(text, "    {of}").unwrap();
        line(&format!("A = T.match_buffer(A_ptr, ({w}, {n}), \"{d}\")"));
        if accum {
            line(&format!("O = T.match_buffer(O_ptr, ({w}, {m}), \"{d}\")"));
        }
        line(&format!("B = T.match_buffer(B_ptr, ({w}, {m}), \"{d}\")"));
        line("T.device_entry()");
        line("T.cta_id([1])");
        line(&format!("T.thread_id([{w}])"));
        line(&format!("lane = T.lane_id([{w}])"));
        for (name, (shape, layout, _), span) in
            [("src", &self.src, self.spans[0]), ("dst", &self.dst, self.spans[1])]
        {
            line(&format!(
                "{name} = T.alloc_buffer({shape}, \"{d}\", scope=\"local\", layout=TileLayout({layout}))"
            ));
            line(&format!("{name}_own = {name}.local({span})"));
        }
        for (i, at) in self.src.2.iter().enumerate() {
            line(&format!("src_own[{at}] = A[lane, {i}]"));
        }
        for (i, at) in self.dst.2.iter().enumerate().filter(|_| accum) {
            line(&format!("dst_own[{at}] = O[lane, {i}]"));
        }
        let flag = if accum { "True" } else { "False" };
        line(&format!("Tx.warp.{op}({}, accum={flag}{{dispatch}})", self.call));
        for (i, at) in self.dst.2.iter().enumerate() {
            line(&format!("B[lane, {i}] = dst_own[{at}]"));
        }
        let values = uniform(w * n, 9, d);
        let before: Vec<f64> = uniform(w * m, 10, d).iter().map(|v| rounded(v * 0.5, d)).collect();
        let want = |at: usize| {
            let elements: Vec<f64> = (self.group)(at / m, at % m)
                .into_iter()
                .map(|(lane, register)| values[lane * n + register])
                .collect();
            fold.want(&elements, before[at])
        };
        let wants = (0..w * m).map(want).collect();
        let mut args = vec![Arg::In { dtype: d, shape: vec![w as i64, n as i64], values }];
        if accum {
            args.push(Arg::In { dtype: d, shape: vec![w as i64, m as i64], values: before });
        }
        args.push(Arg::Out { dtype: d, shape: vec![w as i64, m as i64], wants });
        Program { text, args }
    }
}

/// Every lane's register of that number.
pub fn all_lanes(warp: u32, register: usize) -> Vec<(usize, usize)> {
    (0..warp as usize).map(|lane| (lane, register)).collect()
}

#[test]
fn tile_5_8_all_lanes_know_the_total_of_a_warp() {
    for warp in [32, 64] {
        let (shape, src) = (format!("({warp},)"), format!("S[{warp} : 1 @ laneid]"));
        let dst = format!("S[1 : 1] + R[{warp} : 1 @ laneid]");
        let lanes = Lanes {
            warp,
            src: (&shape, &src, &[0]),
            dst: ("(1,)", &dst, &[0]),
            spans: [1, 1],
            call: "dst, src, axes=(-1,)",
            group: &|_, _| all_lanes(warp, 0),
        };
        for fold in folds(&["sum", "max"], &[DType::F32, DType::F16], &[false]) {
            check_wins(&lanes.program(fold), &Target::simulated(warp), "local");
        }
    }
}

#[test]
fn tile_5_8_registers_are_folded_over_lanes_one_by_one() {
    for (shape, axes) in [("(128,)", "(-1,)"), ("(32, 4)", "(0,)")] {
        let call = format!("dst, src, axes={axes}");
        let lanes = Lanes {
            warp: 32,
            src: (shape, "S[(32, 4) : (1 @ laneid, 1)]", &[0, 1, 2, 3]),
            dst: ("(4,)", "S[4 : 1] + R[32 : 1 @ laneid]", &[0, 1, 2, 3]),
            spans: [4, 4],
            call: &call,
            group: &|_, register| all_lanes(32, register),
        };
        for fold in folds(&["sum", "max"], &[DType::F32, DType::F16], &[false]) {
            check_wins(&lanes.program(fold), &Target::simulated(32), "local");
        }
    }
}

#[test]
fn tile_5_8_registers_with_gaps_out_of_order() {
    for (shape, axes) in [("(128,)", "(-1,)"), ("(32, 2, 2)", "(0,)")] {
        let call = format!("dst, src, axes={axes}");
        let lanes = Lanes {
            warp: 32,
            src: (shape, "S[(32, 2, 2) : (1 @ laneid, 2, 4)]", &[0, 4, 2, 6]),
            dst: ("(2, 2)", "S[(2, 2) : (2, 4)] + R[32 : 1 @ laneid]", &[0, 4, 2, 6]),
            spans: [7, 7],
            call: &call,
            group: &|_, register| all_lanes(32, register),
        };
        for fold in folds(&["sum"], &[DType::F32], &[false]) {
            check_wins(&lanes.program(fold), &Target::simulated(32), "local");
        }
    }
}

#[test]
fn tile_5_8_totals_of_warps_meet_in_shared_memory_again_and_again() {
    let text = "@T.prim_func
def main(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (3, 128), \"float32\")
    B = T.match_buffer(B_ptr, (3,), \"float32\")
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([128])
    warp_id = T.warp_id([4])
    lane = T.lane_id([32])
    part = T.alloc_buffer((32,), \"float32\", scope=\"local\", layout=TileLayout(S[32 : 1 @ laneid]))
    total = T.alloc_buffer((1,), \"float32\", scope=\"local\", layout=TileLayout(S[1 : 1] + R[32 : 1 @ laneid]))
    part_own = part.local(1)
    total_own = total.local(1)
    meet = T.alloc_buffer((4,), \"float32\", scope=\"shared.dyn\")
    for it in T.serial(3):
        part_own[0] = A[it, tid]
        Tx.warp.sum(total, part, axes=(-1,), accum=False{dispatch})
        if lane == 0:
            meet[warp_id] = total_own[0]
        T.cuda.cta_sync()
        if warp_id == 0:
            part_own[0] = T.float32(0)
            if lane < 4:
                part_own[0] = meet[lane]
            Tx.warp.sum(total, part, axes=(-1,), accum=False{dispatch})
            if lane == 0:
                meet[0] = total_own[0]
        T.cuda.cta_sync()
        if tid == 0:
            B[it] = meet[0]
        T.cuda.cta_sync()
";
    let fold = Fold { op: "sum", dtype: DType::F32, accum: false };
    let values = uniform(3 * 128, 11, DType::F32);
    let wants = values.chunks(128).map(|row| fold.want(row, 0.0)).collect();
    let program = Program {
        text: text.to_owned(),
        args: vec![
            Arg::In { dtype: DType::F32, shape: vec![3, 128], values },
            Arg::Out { dtype: DType::F32, shape: vec![3], wants },
        ],
    };
    check_wins(&program, &Target::simulated(32), "local");
}
