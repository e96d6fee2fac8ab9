//! Programs with one tile call, written out: tiles of shared memory, of a thread's registers, and of registers that are
//! spread over threads.

use std::fmt::Write;

use coulis_ir::DType;

use crate::run::{Arg, Program, Want, eps, rounded, uniform};

/// What a call folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    pub op: &'static str,
    pub dtype: DType,
    pub accum: bool,
}

/// Every fold of these operations and types, with and without the old value.
pub fn folds(ops: &[&'static str], dtypes: &[DType], accums: &[bool]) -> Vec<Fold> {
    let mut all = Vec::new();
    for &op in ops {
        for &dtype in dtypes {
            all.extend(accums.iter().map(|&accum| Fold { op, dtype, accum }));
        }
    }
    all
}

impl Fold {
    /// What is wanted of the fold of these elements with an old value.
    pub fn want(&self, elements: &[f64], old: f64) -> Want {
        let old = self.accum.then_some(old);
        let all = || elements.iter().copied().chain(old);
        let exact = match self.op {
            "sum" => all().sum::<f64>(),
            "prod" => all().product(),
            "max" => all().fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b }),
            "min" => all().fold(f64::INFINITY, |a, b| if a.is_nan() || a < b { a } else { b }),
            other => panic!("no answer for {other}"),
        };
        let wide = if self.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let tolerance = match self.op {
            "sum" if self.dtype.is_float() => {
                32.0 * eps(wide) * all().map(f64::abs).sum::<f64>() + eps(self.dtype) * exact.abs()
            }
            "prod" if self.dtype.is_float() => (32.0 * eps(wide) + eps(self.dtype)) * exact.abs(),
            _ => 0.0,
        };
        let exact =
            if self.op == "sum" && self.dtype.is_float() { exact } else { rounded(exact, self.dtype) };
        Some((exact, tolerance))
    }
}

/// A tile with the part of it that a call names, `(start, extent)` a dimension.
#[derive(Clone, Debug)]
pub struct Tile {
    pub shape: Vec<i64>,
    pub part: Vec<(i64, i64)>,
}

impl Tile {
    pub fn whole(shape: &[i64]) -> Tile {
        Tile { shape: shape.to_vec(), part: shape.iter().map(|n| (0, *n)).collect() }
    }

    pub fn part(shape: &[i64], part: &[(i64, i64)]) -> Tile {
        Tile { shape: shape.to_vec(), part: part.to_vec() }
    }

    /// `[1:6, 1:9]`, or nothing for the whole.
    pub fn slice(&self) -> String {
        if self.part.iter().zip(&self.shape).all(|(p, n)| *p == (0, *n)) {
            return String::new();
        }
        let one = |&(start, n): &(i64, i64)| format!("{start}:{}", start + n);
        format!("[{}]", self.part.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    pub fn size(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// Row-major positions, in the whole, of the part's elements.
    pub fn positions(&self) -> Vec<usize> {
        self.part.iter().zip(&self.shape).fold(vec![0], |all, (&(start, extent), &n)| {
            let longer = |at: &usize| {
                (start..start + extent).map(|i| at * n as usize + i as usize).collect::<Vec<_>>()
            };
            all.iter().flat_map(longer).collect()
        })
    }
}

/// `(4, 8)`, `(4,)`
pub fn tuple(of: &[i64]) -> String {
    match of {
        [one] => format!("({one},)"),
        _ => format!("({})", of.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// For each output of a fold over `axes` of the part of `src`, the elements, as positions in the whole.
pub fn groups(src: &Tile, axes: &[i64]) -> Vec<Vec<usize>> {
    let rank = src.shape.len() as i64;
    let reduced: Vec<usize> = axes.iter().map(|a| (if *a < 0 { a + rank } else { *a }) as usize).collect();
    let extents: Vec<usize> = src.part.iter().map(|p| p.1 as usize).collect();
    let kept: Vec<usize> = (0..extents.len()).filter(|d| !reduced.contains(d)).collect();
    let mut groups = vec![Vec::new(); kept.iter().map(|&d| extents[d]).product()];
    for (at, position) in src.positions().into_iter().enumerate() {
        let digit = |d: usize| at / extents[d + 1..].iter().product::<usize>() % extents[d];
        groups[kept.iter().fold(0, |p, &d| p * extents[d] + digit(d))].push(position);
    }
    groups
}

/// A call on addressable tiles.
pub struct Call<'a> {
    pub src: Tile,
    pub dst: Tile,
    pub axes: &'a [i64],
    pub fold: Fold,
    /// Threads of the block.
    pub n_threads: u32,
    /// The prefix of the call: `cta.`, or nothing for a thread.
    pub scope: &'a str,
    /// Lines that open what the call stands under.
    pub guard: &'a str,
    /// Further options of the call.
    pub options: &'a str,
}

impl Call<'_> {
    /// The inputs, and what is wanted.
    fn args(&self) -> Vec<Arg> {
        let Fold { dtype, accum, .. } = self.fold;
        let values = uniform(self.src.size(), 7, dtype);
        let old: Vec<f64> =
            uniform(self.dst.size(), 8, dtype).into_iter().map(|v| rounded(v * 0.5, dtype)).collect();
        let mut wants = vec![None; self.dst.size()];
        for (place, group) in self.dst.positions().into_iter().zip(groups(&self.src, self.axes)) {
            let elements: Vec<f64> = group.into_iter().map(|at| values[at]).collect();
            wants[place] = self.fold.want(&elements, old[place]);
        }
        let mut args = vec![Arg::In { dtype, shape: self.src.shape.clone(), values }];
        if accum {
            args.push(Arg::In { dtype, shape: self.dst.shape.clone(), values: old });
        }
        args.push(Arg::Out { dtype, shape: self.dst.shape.clone(), wants });
        args
    }

    fn head(&self) -> String {
        let (a, b, d) = (tuple(&self.src.shape), tuple(&self.dst.shape), self.fold.dtype);
        let old = if self.fold.accum { "O_ptr: T.handle, " } else { "" };
        let mut text = format!("@T.prim_func\ndef main(A_ptr: T.handle, {old}B_ptr: T.handle):\n");
        writeln!(text, "    A = T.match_buffer(A_ptr, {a}, \"{d}\", layout=TileLayout(S[{a}]))").unwrap();
        if self.fold.accum {
            writeln!(text, "    O = T.match_buffer(O_ptr, {b}, \"{d}\", layout=TileLayout(S[{b}]))").unwrap();
        }
        writeln!(text, "    B = T.match_buffer(B_ptr, {b}, \"{d}\", layout=TileLayout(S[{b}]))").unwrap();
        text
    }

    fn call(&self, dst: &str, src: &str) -> String {
        let (scope, op, accum) = (self.scope, self.fold.op, if self.fold.accum { "True" } else { "False" });
        let (to, from, axes, options) = (self.dst.slice(), self.src.slice(), tuple(self.axes), self.options);
        let axes = if self.axes.is_empty() { "()".to_owned() } else { axes };
        format!("Tx.{scope}{op}({dst}{to}, {src}{from}, axes={axes}, accum={accum}{options}{{dispatch}})")
    }

    /// Copies to shared memory, the call, and the copy back of the part.
    pub fn in_shared(&self) -> Program {
        let (a, b, d) = (tuple(&self.src.shape), tuple(&self.dst.shape), self.fold.dtype);
        let mut text = self.head();
        let mut line = |of: &str| writeln!(text, "    {of}").unwrap();
        line("T.device_entry()");
        line("T.cta_id([1])");
        line(&format!("tid = T.thread_id([{}])", self.n_threads));
        line(&format!("A_smem = T.alloc_buffer({a}, \"{d}\", scope=\"shared\", layout=TileLayout(S[{a}]))"));
        line(&format!("B_smem = T.alloc_buffer({b}, \"{d}\", scope=\"shared\", layout=TileLayout(S[{b}]))"));
        line("Tx.cta.copy(A_smem, A)");
        if self.fold.accum {
            line("Tx.cta.copy(B_smem, O)");
        }
        line("T.cuda.cta_sync()");
        let indent = if self.guard.is_empty() {
            ""
        } else {
            for guard in self.guard.lines() {
                line(guard);
            }
            "    "
        };
        line(&format!("{indent}{}", self.call("B_smem", "A_smem")));
        line("T.cuda.cta_sync()");
        let part = self.dst.slice();
        line(&format!("Tx.cta.copy(B{part}, B_smem{part})"));
        Program { text, args: self.args() }
    }

    /// One thread fills its registers, folds them, and stores the part.
    pub fn in_registers(&self) -> Program {
        let (a, b, d) = (tuple(&self.src.shape), tuple(&self.dst.shape), self.fold.dtype);
        let mut text = self.head();
        let mut line = |of: &str| writeln!(text, "    {of}").unwrap();
        line("T.device_entry(); T.cta_id([1]); T.thread_id([1])");
        line(&format!("A_local = T.alloc_buffer({a}, \"{d}\", scope=\"local\")"));
        line(&format!("B_local = T.alloc_buffer({b}, \"{d}\", scope=\"local\")"));
        copy_loop(&mut line, &Tile::whole(&self.src.shape), "A_local", "A");
        if self.fold.accum {
            copy_loop(&mut line, &Tile::whole(&self.dst.shape), "B_local", "O");
        }
        line(&self.call("B_local", "A_local"));
        copy_loop(&mut line, &self.dst, "B", "B_local");
        Program { text, args: self.args() }
    }
}

/// A loop nest that copies the part of a tile element by element.
fn copy_loop(line: &mut dyn FnMut(&str), tile: &Tile, to: &str, from: &str) {
    let names = &["i", "j", "k", "l"][..tile.shape.len()];
    let extents: Vec<String> = tile.part.iter().map(|p| p.1.to_string()).collect();
    let at: Vec<String> = names
        .iter()
        .zip(&tile.part)
        .map(|(name, (start, _))| if *start == 0 { (*name).to_owned() } else { format!("{name} + {start}") })
        .collect();
    let at = at.join(", ");
    match names {
        [one] => line(&format!("for {one} in T.serial({}):", extents[0])),
        _ => line(&format!("for {} in T.grid({}):", names.join(", "), extents.join(", "))),
    }
    line(&format!("    {to}[{at}] = {from}[{at}]"));
}
