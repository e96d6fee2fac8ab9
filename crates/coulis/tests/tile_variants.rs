//! Every variant that accepts a call runs, not only the one that is chosen: in the simulator, under several orders of
//! warps, against a plain fold. No variant may have a violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::{Checked, DType, Reducer, Target};
use coulis_lower::{LowerError, Options, lower, resolve_reducers};
use coulis_reducers::{ReducerRequest, find};
use coulis_script::parse_module;
use coulis_sim::{SimArg, SimArray};
use coulis_tile::{REDUCTIONS, TileError};
use half::{bf16, f16};

/// A value of any type: integers and bools as they are, floats by their bits as `float64`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Int(i128),
    Float(f64),
}

/// A block of threads `(z, y, x)`, each with one element of every source, folded along `reduced`.
struct Case<'a> {
    extents: [u32; 3],
    reduced: &'a [usize],
    /// Types of sources and results, one a component.
    dtypes: &'a [DType],
    /// The reducer as text.
    reducer: &'a str,
    /// Element `thread` of source `component`.
    element: &'a dyn Fn(usize, u32) -> i128,
    /// The elements of a group, one row a component, to the results.
    fold: &'a dyn Fn(&[Vec<i128>]) -> Vec<i128>,
}

const INDEX: [&str; 3] = ["tz", "ty", "tx"];

impl Case<'_> {
    fn n_threads(&self) -> u32 {
        self.extents.iter().product()
    }

    fn weights(&self) -> [u32; 3] {
        [self.extents[1] * self.extents[2], self.extents[2], 1]
    }

    fn kept(&self) -> Vec<usize> {
        (0..3).filter(|d| !self.reduced.contains(d)).collect()
    }

    fn n_groups(&self) -> u32 {
        self.kept().iter().map(|&d| self.extents[d]).product()
    }

    /// The group of a thread.
    fn group(&self, thread: u32) -> u32 {
        let digit = |d: usize| thread / self.weights()[d] % self.extents[d];
        self.kept().iter().fold(0, |at, &d| at * self.extents[d] + digit(d))
    }

    /// `(4, 8) : (8 @ tx, 1 @ tx)`
    fn steps(&self, dims: &[usize]) -> String {
        let tuple = |of: Vec<String>| format!("({})", of.join(", "));
        let extents = tuple(dims.iter().map(|&d| self.extents[d].to_string()).collect());
        let strides = tuple(dims.iter().map(|&d| format!("{} @ tx", self.weights()[d])).collect());
        format!("{extents} : {strides}")
    }

    fn text(&self, options: &str) -> String {
        let n = self.dtypes.len();
        let (threads, groups) = (self.n_threads(), self.n_groups());
        let mut text = String::from("@T.prim_func\ndef call(");
        for (i, d) in self.dtypes.iter().enumerate() {
            write!(text, "A{i}: T.Buffer(({threads},), \"{d}\"), B{i}: T.Buffer(({groups},), \"{d}\"), ")
                .unwrap();
        }
        text.push_str("):\n");
        let mut line = |of: String| writeln!(text, "    {of}").unwrap();
        for (name, extent) in INDEX.iter().zip(self.extents) {
            line(format!("{name} = T.launch_thread(\"threadIdx.{}\", {extent})", &name[1..]));
        }
        let [z, y, x] = self.extents;
        for (i, d) in self.dtypes.iter().enumerate() {
            let layout = self.steps(&[0, 1, 2]);
            line(format!(
                "r{i} = T.alloc_buffer([{z}, {y}, {x}], \"{d}\", scope=\"local\", layout=TileLayout(S[{layout}]))"
            ));
            line(format!("mine{i} = r{i}.local(1)"));
            line(format!("mine{i}[0] = A{i}[tz * {} + ty * {x} + tx]", x * y));
        }
        let kept = self.kept();
        let (shape, shard) = match kept.is_empty() {
            true => ("1".to_owned(), "1 : 1 @ tx".to_owned()),
            false => {
                let shape: Vec<String> = kept.iter().map(|&d| self.extents[d].to_string()).collect();
                (shape.join(", "), self.steps(&kept))
            }
        };
        for i in 0..n {
            let replica = self.steps(self.reduced);
            line(format!("total{i} = r{i}.view({shape}, layout=TileLayout(S[{shard}] + R[{replica}]))"));
        }
        let all = |name: &str| {
            let names: Vec<String> = (0..n).map(|i| format!("{name}{i}")).collect();
            if n == 1 { names.concat() } else { format!("({})", names.join(", ")) }
        };
        let axes: String = self.reduced.iter().map(|a| format!("{a},")).collect();
        let (dsts, srcs) = (all("total"), all("r"));
        line(format!("Tx.cta.reduce({dsts}, {srcs}, reducer={}, axes=({axes}){options})", self.reducer));
        for i in 0..n {
            line(format!("whole{i} = total{i}.local(1)"));
        }
        let group =
            kept.iter().fold("0".to_owned(), |at, &d| format!("({at}) * {} + {}", self.extents[d], INDEX[d]));
        let first: Vec<String> = self.reduced.iter().map(|&d| format!("{} == 0", INDEX[d])).collect();
        line(format!("if {}:", first.join(" and ")));
        for i in 0..n {
            line(format!("    B{i}[{group}] = whole{i}[0]"));
        }
        text
    }

    /// Lowers the call with a forced variant; `None` where that declines.
    fn lowered(&self, variant: &str, target: &Target) -> Option<Checked> {
        let text = self.text(&format!(", dispatch=\"{variant}\""));
        let kernel = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0);
        let catalogue = |name: &str, inputs: &[DType]| -> Option<Reducer> {
            find(name).ok()?.build(&ReducerRequest::new(inputs)).ok()
        };
        let kernel = resolve_reducers(kernel, &catalogue).unwrap();
        let options = Options { target, simple_mode: false };
        match lower(kernel, &options, &mut |_, _| {}) {
            Ok(flat) => {
                Some(coulis_ir::verify::verify(flat).unwrap_or_else(|e| panic!("{e}\n{}", e.listing)))
            }
            Err(LowerError::Call { error: TileError::Forced { .. }, .. }) => None,
            Err(other) => panic!("{other}\n{text}"),
        }
    }

    /// Runs every variant that accepts, and returns their names.
    fn check(&self, warp: u32) -> Vec<&'static str> {
        let target = Target::simulated(warp);
        let mut ran = Vec::new();
        for variant in REDUCTIONS {
            let Some(kernel) = self.lowered(variant.name, &target) else { continue };
            self.run(&kernel, warp, variant.name);
            ran.push(variant.name);
        }
        assert!(ran.len() > 1, "{:?} over {:?} has only {ran:?}", self.extents, self.reduced);
        ran
    }

    fn run(&self, kernel: &Checked, warp: u32, variant: &str) {
        let (threads, groups) = (self.n_threads(), self.n_groups());
        let info = |dtype: DType, n: u32| {
            let shape = vec![i64::from(n)];
            ArrayInfo { dtype, strides: compact_strides(&shape), shape }
        };
        let inputs: Vec<Vec<u8>> = self
            .dtypes
            .iter()
            .enumerate()
            .map(|(i, &d)| (0..threads).flat_map(|t| encode((self.element)(i, t), d)).collect())
            .collect();
        let mut outputs: Vec<Vec<u8>> =
            self.dtypes.iter().map(|d| vec![0; groups as usize * d.bytes()]).collect();
        let mut args = Vec::new();
        for ((&d, input), output) in self.dtypes.iter().zip(&inputs).zip(&mut outputs) {
            args.push(SimArg::Array(SimArray::read(input, info(d, threads))));
            args.push(SimArg::Array(SimArray::output(output, info(d, groups))));
        }
        let options = coulis_sim::Options { warp, warp_orders: 3, ..coulis_sim::Options::default() };
        let report = coulis_sim::run(kernel, &mut args, &options).unwrap();
        let case = || {
            format!("{variant} of {:?} over {:?} {:?}, warp {warp}", self.extents, self.reduced, self.dtypes)
        };
        assert!(report.violations.is_empty(), "{}:\n{:?}\n{}", case(), report.violations, report.listing);
        for group in 0..groups {
            let members: Vec<u32> = (0..threads).filter(|&t| self.group(t) == group).collect();
            let elements: Vec<Vec<i128>> = (0..self.dtypes.len())
                .map(|i| members.iter().map(|&t| (self.element)(i, t)).collect())
                .collect();
            for (i, want) in (self.fold)(&elements).into_iter().enumerate() {
                let d = self.dtypes[i];
                let found = decode(&outputs[i][group as usize * d.bytes()..], d);
                assert_eq!(found, decode(&encode(want, d), d), "{}: result {i} of group {group}", case());
            }
        }
    }
}

/// Small integers in any type; integers wrap.
fn encode(value: i128, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(value != 0)],
        DType::F16 => f16::from_f64(value as f64).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(value as f64).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => (value as f64).to_le_bytes().to_vec(),
        DType::F8E4M3 | DType::F8E5M2 => panic!("no encoding of {dtype} here"),
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => value.to_le_bytes()[..dtype.bytes()].to_vec(),
    }
}

fn decode(bytes: &[u8], dtype: DType) -> Value {
    let mut wide = [0; 16];
    wide[..dtype.bytes()].copy_from_slice(&bytes[..dtype.bytes()]);
    let bits = u128::from_le_bytes(wide);
    match dtype {
        DType::F16 => Value::Float(f16::from_bits(bits as u16).to_f64()),
        DType::BF16 => Value::Float(bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Value::Float(f64::from_bits(bits as u64)),
        _ => Value::Int(dtype.wrap_int(bits as i128)),
    }
}

fn plus(dtype: DType) -> String {
    format!("T.comm_reducer(lambda x, y: x + y, [T.{dtype}(0)])")
}

fn sum(elements: &[Vec<i128>]) -> Vec<i128> {
    elements.iter().map(|of| of.iter().sum()).collect()
}

fn max(elements: &[Vec<i128>]) -> Vec<i128> {
    elements.iter().map(|of| *of.iter().max().unwrap()).collect()
}

/// Integers from -9 to 9, in no order.
fn mixed(component: usize, thread: u32) -> i128 {
    i128::from((thread * 7919 + 13 + component as u32 * 31) % 19) - 9
}

fn negative(component: usize, thread: u32) -> i128 {
    mixed(component, thread) - 10
}

const LENGTHS: [u32; 14] = [2, 4, 8, 12, 16, 32, 48, 64, 100, 128, 201, 256, 512, 1024];

/// The blocks of the reference's test of all reductions: `d3` threads a group, `d1 * d2` groups.
fn blocks() -> impl Iterator<Item = [u32; 3]> {
    let pairs = (1..=4).flat_map(|d1| (1..=4).map(move |d2| (d1, d2)));
    pairs.flat_map(|(d1, d2)| LENGTHS.map(|d3| [d1, d2, d3])).filter(|e| e.iter().product::<u32>() <= 1024)
}

fn check_blocks(warp: u32, part: usize) {
    let mut ran: Vec<&str> = Vec::new();
    for (at, extents) in blocks().enumerate().filter(|(at, _)| at % 2 == part) {
        let f32s = &[DType::F32];
        let case = match at / 2 % 2 {
            0 => Case {
                extents,
                reduced: &[2],
                dtypes: f32s,
                reducer: &plus(DType::F32),
                element: &mixed,
                fold: &sum,
            }
            .check(warp),
            _ => Case {
                extents,
                reduced: &[2],
                dtypes: f32s,
                reducer: "T.comm_reducer(lambda x, y: T.max(x, y), [T.float32(\"-inf\")])",
                element: &negative,
                fold: &max,
            }
            .check(warp),
        };
        ran.extend(case);
    }
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran, ["serial", "shared_tree", "warp_shuffle", "warp_shuffle_two_stage"]);
}

#[test]
fn te_g7_every_block_of_the_reference_folds_by_every_variant_in_warps_of_32() {
    check_blocks(32, 0);
}

#[test]
fn te_g7_every_other_block_of_the_reference_folds_by_every_variant_in_warps_of_32() {
    check_blocks(32, 1);
}

#[test]
fn te_g7_every_block_of_the_reference_folds_by_every_variant_in_warps_of_64() {
    check_blocks(64, 0);
}

#[test]
fn te_g7_every_other_block_of_the_reference_folds_by_every_variant_in_warps_of_64() {
    check_blocks(64, 1);
}

#[track_caller]
fn check_sum(extents: [u32; 3], reduced: &[usize], want: &[&str]) {
    let reducer = plus(DType::I32);
    let case =
        Case { extents, reduced, dtypes: &[DType::I32], reducer: &reducer, element: &mixed, fold: &sum };
    assert_eq!(case.check(32), want, "{extents:?} over {reduced:?}");
}

const BY_SHUFFLE: [&str; 3] = ["warp_shuffle", "shared_tree", "serial"];
const IN_TWO_STAGES: [&str; 3] = ["warp_shuffle_two_stage", "shared_tree", "serial"];
const SHARED: [&str; 2] = ["shared_tree", "serial"];

#[test]
fn te_g8_one_warp_folds_by_shuffles() {
    check_sum([1, 1, 32], &[2], &BY_SHUFFLE);
    check_sum([1, 1, 20], &[2], &BY_SHUFFLE);
    check_sum([1, 2, 11], &[2], &BY_SHUFFLE);
}

#[test]
fn te_g9_several_groups_fold_within_their_warps() {
    check_sum([1, 32, 32], &[2], &BY_SHUFFLE);
    check_sum([1, 32, 8], &[2], &BY_SHUFFLE);
    check_sum([4, 8, 16], &[2], &BY_SHUFFLE);
}

#[test]
fn te_g10_groups_of_several_warps_fold_in_two_stages() {
    for extents in [[1, 1, 128], [1, 1, 1024], [1, 4, 128], [1, 2, 512], [2, 3, 96]] {
        check_sum(extents, &[2], &IN_TWO_STAGES);
    }
}

#[test]
fn te_g16_eleven_threads_a_row_keep_their_negative_maximum() {
    for (rows, want) in [(1, &BY_SHUFFLE[..]), (2, &BY_SHUFFLE), (16, &SHARED)] {
        let case = Case {
            extents: [1, rows, 11],
            reduced: &[2],
            dtypes: &[DType::F32],
            reducer: "T.comm_reducer(lambda x, y: T.max(x, y), [T.float32(\"-inf\")])",
            element: &negative,
            fold: &max,
        };
        assert_eq!(case.check(32), want);
    }
}

#[test]
fn te_g17_sixteen_rows_of_26_threads_fold_in_shared_memory() {
    check_sum([1, 16, 26], &[2], &SHARED);
}

#[test]
fn groups_may_lie_along_any_axes_of_the_block() {
    check_sum([1, 4, 8], &[1], &SHARED);
    check_sum([3, 4, 5], &[0], &SHARED);
    check_sum([4, 3, 8], &[0, 2], &SHARED);
    check_sum([4, 2, 16], &[0, 1], &SHARED);
    check_sum([4, 4, 8], &[1, 2], &BY_SHUFFLE);
    check_sum([2, 16, 8], &[1, 2], &IN_TWO_STAGES);
    check_sum([2, 16, 8], &[0, 1, 2], &IN_TWO_STAGES);
    check_sum([2, 2, 8], &[0, 1, 2], &BY_SHUFFLE);
    check_sum([3, 5, 7], &[0, 1, 2], &SHARED);
}

#[test]
fn a_group_of_one_thread_has_its_total() {
    check_sum([2, 3, 1], &[2], &["alone", "serial"]);
}

#[test]
fn every_type_that_computes_folds_by_every_variant() {
    for dtype in DType::ALL {
        if matches!(dtype, DType::F8E4M3 | DType::F8E5M2) {
            continue;
        }
        let any = "T.comm_reducer(lambda x, y: x or y, [T.bool(False)])";
        let reducer = if dtype == DType::Bool { any.to_owned() } else { plus(dtype) };
        // Sums of a few ones are exact in every float type.
        let sparse = |_: usize, t: u32| i128::from(t.is_multiple_of(3));
        let fold = |of: &[Vec<i128>]| match dtype {
            DType::Bool => max(of),
            _ => sum(of),
        };
        for extents in [[1, 4, 8], [1, 2, 96], [1, 3, 26]] {
            let reduced = &[2];
            Case { extents, reduced, dtypes: &[dtype], reducer: &reducer, element: &sparse, fold: &fold }
                .check(32);
        }
    }
}

#[test]
fn all_components_of_a_tuple_are_computed_before_any_is_stored() {
    // The value stands first, so that a position that is chosen after the value was stored is wrong.
    let argmax = "T.comm_reducer(lambda x, i, y, j: (\
                  T.Select(x > y or (x == y and i < j), x, y), T.Select(x > y or (x == y and i < j), i, j)), \
                  [T.float32(\"-inf\"), T.int64(-1)])";
    let element = |component: usize, t: u32| if component == 0 { mixed(0, t) } else { i128::from(t) };
    let fold = |of: &[Vec<i128>]| {
        let best = *of[0].iter().max().unwrap();
        vec![best, of[1][of[0].iter().position(|&v| v == best).unwrap()]]
    };
    for (extents, reduced) in [
        ([1, 4, 8], &[2][..]),
        ([1, 1, 21], &[2]),
        ([1, 2, 128], &[2]),
        ([1, 3, 26], &[2]),
        ([4, 2, 4], &[0]),
    ] {
        let dtypes = &[DType::F32, DType::I64];
        for warp in [32, 64] {
            Case { extents, reduced, dtypes, reducer: argmax, element: &element, fold: &fold }.check(warp);
        }
    }
}

#[test]
fn te_g3_sum_and_product_fold_together() {
    let both = "T.comm_reducer(lambda a, b, x, y: (a + x, b * y), [T.int32(0), T.int64(1)])";
    let element = |component: usize, t: u32| match component {
        0 => mixed(0, t),
        _ => {
            if t.is_multiple_of(5) {
                -2
            } else {
                1
            }
        }
    };
    let fold = |of: &[Vec<i128>]| vec![of[0].iter().sum(), of[1].iter().product()];
    let dtypes = &[DType::I32, DType::I64];
    for extents in [[1, 2, 32], [1, 2, 64], [1, 7, 9]] {
        Case { extents, reduced: &[2], dtypes, reducer: both, element: &element, fold: &fold }.check(32);
    }
}

#[test]
fn a_reducer_of_the_catalogue_lifts_and_finishes() {
    // The state of a named sum may be wider than its elements; the mean has two fields and divides at the end.
    for (name, dtype) in [("sum", DType::F16), ("sum", DType::F32), ("max", DType::I8), ("mean", DType::F64)]
    {
        let fold = |of: &[Vec<i128>]| match name {
            "sum" => sum(of),
            "max" => max(of),
            _ => vec![of[0].iter().sum::<i128>() / of[0].len() as i128],
        };
        let quoted = format!("\"{name}\"");
        for extents in [[1, 2, 32], [1, 1, 64], [1, 3, 26]] {
            let reducer = &quoted;
            let (reduced, dtypes) = (&[2][..], &[dtype][..]);
            let constant = |_: usize, t: u32| i128::from(t / extents[2]);
            let element: &dyn Fn(usize, u32) -> i128 = if name == "mean" { &constant } else { &mixed };
            Case { extents, reduced, dtypes, reducer, element, fold: &fold }.check(32);
        }
    }
}
