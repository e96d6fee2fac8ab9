//! Registers spread over the threads of warps and warpgroups.

use std::fmt::Write;

use coulis_ir::{DType, Target};

use crate::build::{Fold, Tile, folds, groups, tuple};
use crate::run::{Arg, Program, check_wins, rounded, uniform};

/// Rows of registers, one a thread: `(n_rows, inner...)` to `(n_rows, kept...)`.
pub struct Rows<'a> {
    /// Threads, along `axis`.
    pub n_rows: i64,
    pub axis: &'a str,
    /// Lines that name the threads; the number of the row is `row`.
    pub ids: &'a str,
    pub scope: &'a str,
    pub inner: &'a [i64],
    /// Dimensions of the destination after the rows.
    pub kept: &'a [i64],
    pub axes: &'a [i64],
    /// The part of the source, beside all rows.
    pub part: Option<&'a [(i64, i64)]>,
}

/// `S[(32, 4, 8) : (1 @ laneid, 8, 1)]`
fn rows_layout(n_rows: i64, axis: &str, inner: &[i64]) -> String {
    let mut weight: i64 = inner.iter().product();
    let mut strides = vec![format!("1 @ {axis}")];
    for n in inner {
        weight /= n;
        strides.push(weight.to_string());
    }
    format!("TileLayout(S[{} : ({})])", tuple(&[&[n_rows], inner].concat()), strides.join(", "))
}

impl Rows<'_> {
    /// The program of a call that has no answer.
    pub fn program_without_answer(&self, fold: Fold) -> Program {
        let mut program = self.program(fold);
        program.args.truncate(0);
        program
    }

    pub fn program(&self, fold: Fold) -> Program {
        let Fold { op, dtype: d, accum } = fold;
        let n = self.n_rows;
        let (width, n_kept) = (self.inner.iter().product::<i64>(), self.kept.iter().product::<i64>());
        let old = if accum { "O_ptr: T.handle, " } else { "" };
        let mut text = format!("@T.prim_func\ndef main(A_ptr: T.handle, {old}B_ptr: T.handle):\n");
        let mut line = |of: &str| writeln!(text, "    {of}").unwrap();
        line(&format!("A = T.match_buffer(A_ptr, ({n}, {width}), \"{d}\")"));
        if accum {
            line(&format!("O = T.match_buffer(O_ptr, ({n}, {n_kept}), \"{d}\")"));
        }
        line(&format!("B = T.match_buffer(B_ptr, ({n}, {n_kept}), \"{d}\")"));
        line("T.device_entry()");
        line("T.cta_id([1])");
        self.ids.lines().for_each(&mut line);
        for (name, dims, width) in [("A", self.inner, width), ("B", self.kept, n_kept)] {
            let shape = tuple(&[&[n], dims].concat());
            let layout = rows_layout(n, self.axis, dims);
            line(&format!("{name}_reg = T.alloc_buffer({shape}, \"{d}\", scope=\"local\", layout={layout})"));
            line(&format!("{name}_own = {name}_reg.local({width})"));
        }
        line(&format!("for i in T.serial({width}):"));
        line("    A_own[i] = A[row, i]");
        if accum {
            line(&format!("for i in T.serial({n_kept}):"));
            line("    B_own[i] = O[row, i]");
        }
        let shape = [&[n], self.inner].concat();
        let src = match self.part {
            Some(part) => Tile::part(&shape, &[&[(0, n)], part].concat()),
            None => Tile::whole(&shape),
        };
        let flag = if accum { "True" } else { "False" };
        let (axes, from) = (tuple(self.axes), src.slice());
        line(&format!("Tx.{}{op}(B_reg, A_reg{from}, axes={axes}, accum={flag}{{dispatch}})", self.scope));
        line(&format!("for i in T.serial({n_kept}):"));
        line("    B[row, i] = B_own[i]");

        let values = uniform((n * width) as usize, 3, d);
        let before: Vec<f64> =
            uniform((n * n_kept) as usize, 4, d).iter().map(|v| rounded(v * 0.5, d)).collect();
        let found = groups(&src, self.axes);
        let wants = found.iter().zip(&before).map(|(group, old)| {
            let elements: Vec<f64> = group.iter().map(|&at| values[at]).collect();
            fold.want(&elements, *old)
        });
        let wants = wants.collect();
        let mut args = vec![Arg::In { dtype: d, shape: vec![n, width], values }];
        if accum {
            args.push(Arg::In { dtype: d, shape: vec![n, n_kept], values: before });
        }
        args.push(Arg::Out { dtype: d, shape: vec![n, n_kept], wants });
        Program { text, args }
    }
}

fn check_rows(inner: &[i64], kept: &[i64], axes: &[i64], accum: bool, part: Option<&[(i64, i64)]>) {
    for warp in [32, 64] {
        let ids = format!("T.thread_id([{warp}])\nrow = T.lane_id([{warp}])");
        let rows = Rows {
            n_rows: i64::from(warp),
            axis: "laneid",
            ids: &ids,
            scope: "warp.",
            inner,
            kept,
            axes,
            part,
        };
        for fold in folds(&["sum", "max", "min"], &[DType::F32], &[accum]) {
            check_wins(&rows.program(fold), &Target::simulated(warp), "local");
        }
    }
}

#[test]
fn tile_5_4_rows_of_64_registers() {
    check_rows(&[64], &[1], &[-1], false, None);
}

#[test]
fn tile_5_4_rows_of_64_registers_and_the_old_value() {
    check_rows(&[64], &[1], &[-1], true, None);
}

#[test]
fn tile_5_4_a_part_of_the_registers() {
    check_rows(&[64], &[1], &[-1], false, Some(&[(16, 16)]));
}

#[test]
fn tile_5_4_both_inner_axes() {
    check_rows(&[4, 8], &[1, 1], &[1, 2], false, None);
}

#[test]
fn tile_5_4_the_last_of_two_inner_axes() {
    check_rows(&[4, 8], &[4, 1], &[-1], false, None);
}

#[test]
fn tile_5_4_the_first_of_two_inner_axes() {
    check_rows(&[4, 8], &[1, 8], &[1], false, None);
}

#[test]
fn tile_5_9_rows_of_a_warpgroup() {
    for warp in [32u32, 64] {
        let n_rows = i64::from(4 * warp);
        let ids = format!("T.thread_id([{n_rows}])\nrow = T.thread_id_in_wg([{n_rows}])");
        let rows = Rows {
            n_rows,
            axis: "tid_in_wg",
            ids: &ids,
            scope: "wg.",
            inner: &[16],
            kept: &[1],
            axes: &[-1],
            part: None,
        };
        for fold in folds(&["sum", "max"], &[DType::F32], &[false]) {
            check_wins(&rows.program(fold), &Target::simulated(warp), "local");
        }
    }
}

/// The accumulator of a matrix product in each of some warps, its rows reduced to a copy in each lane of a quad.
pub fn accumulator(fold: Fold, [n_warpgroups, n_warps]: [i64; 2], in_two_calls: bool) -> Program {
    let Fold { op, dtype: d, accum } = fold;
    let n_in_wg = n_warps / n_warpgroups;
    let old = if accum { "O_ptr: T.handle, " } else { "" };
    let mut text = format!("@T.prim_func\ndef main(A_ptr: T.handle, {old}B_ptr: T.handle):\n");
    let mut line = |of: &str| writeln!(text, "    {of}").unwrap();
    line(&format!("A = T.match_buffer(A_ptr, ({n_warps}, 16, 128), \"{d}\")"));
    if accum {
        line(&format!("O = T.match_buffer(O_ptr, ({n_warps}, 16, 4), \"{d}\")"));
    }
    line(&format!("B = T.match_buffer(B_ptr, ({n_warps}, 16, 4), \"{d}\")"));
    line("T.device_entry()");
    line("T.cta_id([1])");
    line(&format!("wg = T.warpgroup_id([{n_warpgroups}])"));
    line(&format!("wid = T.warp_id_in_wg([{n_in_wg}])"));
    line("lane = T.lane_id([32])");
    line(&format!(
        "acc = T.alloc_buffer((16, 128), \"{d}\", scope=\"local\", layout=TileLayout(S[(2, 8, 16, 4, 2) : (2, 4 @ \
         laneid, 4, 1 @ laneid, 1)]))"
    ));
    line("acc_own = acc.local(64)");
    line(&format!(
        "red = T.alloc_buffer((16, 4), \"{d}\", scope=\"local\", layout=TileLayout(S[(2, 32) : (1, 1 @ laneid)]))"
    ));
    line("red_own = red.local(2)");
    line("for g in T.serial(64):");
    line(&format!(
        "    acc_own[g] = A[wg * {n_in_wg} + wid, g // 2 % 2 * 8 + lane // 4, g // 4 * 8 + lane % 4 * 2 + g % 2]"
    ));
    if accum {
        line("for g in T.serial(2):");
        line(&format!("    red_own[g] = O[wg * {n_in_wg} + wid, g * 8 + lane // 4, lane % 4]"));
    }
    let flag = if accum { "True" } else { "False" };
    if in_two_calls {
        line(&format!("Tx.warp.{op}(red, acc, axes=(-1,), accum={flag}{{dispatch}})"));
        line(&format!("Tx.warp.{op}(red, red, axes=(-1,), accum=False, thread_reduce=True{{dispatch}})"));
    } else {
        line(&format!("Tx.warp.{op}(red, acc, axes=(-1,), accum={flag}, thread_reduce=True{{dispatch}})"));
    }
    line("for g in T.serial(2):");
    line(&format!("    B[wg * {n_in_wg} + wid, g * 8 + lane // 4, lane % 4] = red_own[g]"));

    let values = uniform((n_warps * 16 * 128) as usize, 5, d);
    let before: Vec<f64> =
        uniform((n_warps * 64) as usize, 6, d).iter().map(|v| rounded(v * 0.5, d)).collect();
    let want = |at: usize| {
        let row = &values[at / 4 * 128..][..128];
        let mut want = match in_two_calls && accum {
            // Each lane of the quad takes in the old value of its own copy, then the four meet.
            true => {
                let all = [row, &before[at / 4 * 4..][..4]].concat();
                Fold { accum: false, ..fold }.want(&all, 0.0)
            }
            false => fold.want(row, before[at]),
        };
        if let Some((_, tolerance)) = want.as_mut().filter(|_| in_two_calls && d == DType::F16 && op == "sum")
        {
            // The four partial sums were rounded to the type before they met.
            *tolerance *= 4.0;
        }
        want
    };
    let wants = (0..before.len()).map(want).collect();
    let mut args = vec![Arg::In { dtype: d, shape: vec![n_warps, 16, 128], values }];
    if accum {
        args.push(Arg::In { dtype: d, shape: vec![n_warps, 16, 4], values: before });
    }
    args.push(Arg::Out { dtype: d, shape: vec![n_warps, 16, 4], wants });
    Program { text, args }
}

fn check_accumulator(launch: [i64; 2]) {
    for (in_two_calls, accum) in [(false, false), (false, true), (true, false)] {
        for fold in folds(&["sum", "max", "min"], &[DType::F32, DType::F16], &[accum]) {
            check_wins(&accumulator(fold, launch, in_two_calls), &Target::simulated(32), "local");
        }
    }
}

#[test]
fn tile_5_5_old_values_of_a_partial_fold_that_the_reference_skips() {
    for launch in [[1, 1], [1, 4], [2, 8]] {
        for fold in folds(&["sum", "max", "min"], &[DType::F32, DType::F16], &[true]) {
            check_wins(&accumulator(fold, launch, true), &Target::simulated(32), "local");
        }
    }
}

#[test]
fn tile_5_5_an_accumulator_of_one_warp() {
    check_accumulator([1, 1]);
}

#[test]
fn tile_5_5_accumulators_of_four_warps() {
    check_accumulator([1, 4]);
}

#[test]
fn tile_5_5_accumulators_of_two_warpgroups() {
    check_accumulator([2, 8]);
}
