//! The reduction tutorial of seed 003, written with coulis' own tensor expressions.
//!
//! `cargo run --release -q --example reduction_tutorial -- --cpu` prints the listings 1, 2, 4, 5 and 7, each after a line
//! `== listing N`, and after `== run` it runs each CPU schedule and compares with plain sums. Without `--cpu` the
//! listings 3 and 6, which are for GPUs, have their places too, and their schedules run in the simulator and on the
//! first GPU; without one that is said with SKIP.

use std::io::{self, Write};
use std::process::ExitCode;

use coulis::te::{
    CommReducer, Expr, Schedule, Split, Tensor, ThreadTag, build, build_with, comm_reducer, compute,
    compute_tuple, device_source, listing, placeholder, reduce_axis, sum, thread_index, var,
};
use coulis::{Array, CompileOptions, DType, DeviceChoice, Function, Owner, TargetChoice, Value};

/// Rounding to the nearest float32 changes a number by at most this part of it.
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

/// The shapes that every schedule runs on: that of the seed, and one that no split divides.
const SHAPES: [(i64, i64); 2] = [(128, 128), (100, 77)];

/// Shapes for the simulator: whole and ragged blocks, one element, a row longer than a block.
const SMALL_SHAPES: [(i64, i64); 4] = [(128, 128), (100, 100), (1, 1), (70, 37)];

/// Shapes for a GPU.
const GPU_SHAPES: [(i64, i64); 5] = [(128, 128), (100, 100), (1, 1), (1000, 37), (4096, 4096)];

fn main() -> ExitCode {
    let cpu_only = std::env::args().skip(1).any(|word| word == "--cpu");
    match tutorial(&mut io::stdout().lock(), cpu_only) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the whole tutorial; whether every run agreed.
pub fn tutorial(out: &mut dyn Write, cpu_only: bool) -> Result<bool, Box<dyn std::error::Error>> {
    let header = "# from tvm.script import ir as I\n# from tvm.script import tir as T\n\n";
    let mut runs = Vec::new();

    // Describe the sum of rows.
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A")?;
    let k = reduce_axis(&m, "k");
    let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k)))?;
    let args = [a.clone(), b.clone()];

    let s = Schedule::new(std::slice::from_ref(&b), &args)?;
    write!(out, "== listing 1\n{header}{}", listing(&s, &args, "main")?)?;
    runs.push(("row sum, default schedule", s));

    let mut s = Schedule::new(std::slice::from_ref(&b), &args)?;
    s.split(&b, &b.op().reduce_axes()[0], Split::Factor(16))?;
    s.split(&b, &b.op().axes()[0], Split::Factor(32))?;
    write!(out, "== listing 2\n{header}{}", listing(&s, &args, "main")?)?;
    runs.push(("row sum, both axes split", s));

    let mut bound = Schedule::new(std::slice::from_ref(&b), &args)?;
    bound.split(&b, &b.op().reduce_axes()[0], Split::Factor(16))?;
    let (block, thread) = bound.split(&b, &b.op().axes()[0], Split::Factor(32))?;
    bound.bind(&b, &block, ThreadTag::BlockX)?;
    bound.bind(&b, &thread, ThreadTag::ThreadX)?;
    if !cpu_only {
        write!(out, "== listing 3\n{header}{}", listing(&bound, &args, "main")?)?;
    }

    let mut s = Schedule::new(std::slice::from_ref(&b), &args)?;
    let (_, inner) = s.split(&b, &b.op().reduce_axes()[0], Split::Factor(16))?;
    s.rfactor(&b, &inner)?;
    write!(out, "== listing 4\n{header}{}", listing(&s, &args, "main")?)?;
    writeln!(out, "== listing 5\n{}", s.stage(&b)?.body_text())?;
    runs.push(("row sum, factored", s));

    // The parts of a row are folded by 16 threads, which then fold their sums together; one of them stores.
    let mut across = Schedule::new(std::slice::from_ref(&b), &args)?;
    let (_, inner) = across.split(&b, &b.op().reduce_axes()[0], Split::Factor(16))?;
    let part = across.rfactor(&b, &inner)?;
    let row = across.stage(&b)?.axes()[0].clone();
    let (block, thread) = across.split(&b, &row, Split::Factor(32))?;
    across.bind(&b, &block, ThreadTag::BlockX)?;
    across.bind(&b, &thread, ThreadTag::ThreadY)?;
    let shared = across.stage(&b)?.reduce_axes()[0].clone();
    across.bind(&b, &shared, ThreadTag::ThreadX)?;
    across.compute_at(part, &b, &shared)?;
    across.set_store_predicate(&b, thread_index(ThreadTag::ThreadX).expr().equal(Expr::int(0)))?;
    if !cpu_only {
        let source = device_source(&across, &args, "default_function", &TargetChoice::Cuda { arch: None })?;
        write!(out, "== listing 6\n{source}")?;
    }

    // Describe a convolution by a reduction over two axes.
    let n = var("n");
    let input = placeholder(&[n.expr(), n.expr()], DType::F32, "Input")?;
    let filter = placeholder(&[Expr::int(3), Expr::int(3)], DType::F32, "Filter")?;
    let (di, dj) = (reduce_axis(3, "di"), reduce_axis(3, "dj"));
    let side = n.expr() - Expr::int(2);
    let output = compute(&[side.clone(), side], "Output", |i| {
        let window = input.at((i[0].expr() + di.expr(), i[1].expr() + dj.expr()));
        sum(window * filter.at((&di, &dj)), &[di.clone(), dj.clone()])
    })?;
    let conv_args = [input, filter, output.clone()];
    let conv = Schedule::new(&[output], &conv_args)?;
    write!(out, "== listing 7\n{header}{}", listing(&conv, &conv_args, "main")?)?;

    writeln!(out, "== run")?;
    let mut all_agree = true;
    for (name, schedule) in &runs {
        all_agree &= run_row_sum(out, name, schedule, &args)?;
    }
    all_agree &= run_convolution(out, &conv, &conv_args)?;
    all_agree &= run_product(out)?;
    all_agree &= run_argmax(out)?;
    if !cpu_only {
        for (name, schedule) in [("row sum, bound to threads", &bound), ("row sum across threads", &across)] {
            all_agree &= run_on_threads(out, name, schedule, &args)?;
        }
    }
    Ok(all_agree)
}

/// Runs a schedule on threads: in the simulator, and on a GPU where there is one.
fn run_on_threads(
    out: &mut dyn Write,
    name: &str,
    schedule: &Schedule,
    args: &[Tensor],
) -> Result<bool, Box<dyn std::error::Error>> {
    let on = |device| {
        build_with(schedule, args, "row_sum", &CompileOptions { device, ..CompileOptions::default() })
    };
    let simulated = on(DeviceChoice::Sim { warp: 32, orders: 2 })?;
    let mut all_agree = check_row_sum(out, &format!("{name}, simulated"), &simulated, &SMALL_SHAPES)?;
    match on(DeviceChoice::Cuda(0)) {
        Ok(function) => all_agree &= check_row_sum(out, &format!("{name}, cuda"), &function, &GPU_SHAPES)?,
        Err(error) if error.owner == Owner::Unsupported => {
            writeln!(out, "SKIP: {name}, cuda")?;
            eprintln!("{error}");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(all_agree)
}

fn run_row_sum(
    out: &mut dyn Write,
    name: &str,
    schedule: &Schedule,
    args: &[Tensor],
) -> Result<bool, Box<dyn std::error::Error>> {
    check_row_sum(out, name, &build(schedule, args, "row_sum")?, &SHAPES)
}

fn check_row_sum(
    out: &mut dyn Write,
    name: &str,
    function: &Function,
    shapes: &[(i64, i64)],
) -> Result<bool, Box<dyn std::error::Error>> {
    let mut all_agree = true;
    for &(n, m) in shapes {
        let values = numbers(n * m, 0.0);
        let found = function.call(&[Value::Array(Array::from_slice(&[n, m], &values)?)])?;
        let rows = values.chunks(m as usize).map(|row| {
            let total: f64 = row.iter().map(|v| f64::from(*v)).sum();
            // Every element is positive, so the total bounds every partial sum, each of which is rounded once.
            (total, total * m as f64 * UNIT)
        });
        all_agree &= report(out, name, &format!("{n}x{m}"), &found[0].array, rows)?;
    }
    Ok(all_agree)
}

fn run_convolution(
    out: &mut dyn Write,
    schedule: &Schedule,
    args: &[Tensor],
) -> Result<bool, Box<dyn std::error::Error>> {
    let function = build(schedule, args, "convolution")?;
    let mut all_agree = true;
    for n in [128i64, 77] {
        let (image, filter) = (numbers(n * n, 0.0), numbers(9, 0.5));
        let inputs = [Array::from_slice(&[n, n], &image)?, Array::from_slice(&[3, 3], &filter)?];
        let found = function.call(&inputs.each_ref().map(Value::from))?;
        let mut wanted = Vec::new();
        for at in 0..(n - 2) * (n - 2) {
            let (i, j) = (at / (n - 2), at % (n - 2));
            let product = |tap: i64| {
                let pixel = image[((i + tap / 3) * n + j + tap % 3) as usize];
                f64::from(pixel) * f64::from(filter[tap as usize])
            };
            let total: f64 = (0..9).map(product).sum();
            wanted.push((total, total * 10.0 * UNIT));
        }
        all_agree &= report(out, "convolution", &format!("{n}x{n}"), &found[0].array, wanted.into_iter())?;
    }
    Ok(all_agree)
}

/// A commutative reduction of one's own.
fn run_product(out: &mut dyn Write) -> Result<bool, Box<dyn std::error::Error>> {
    let product = comm_reducer(
        |x, y| vec![x[0].clone() * y[0].clone()],
        |types| vec![Expr::constant(1, types[0])],
        "product",
    );
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A")?;
    let k = reduce_axis(&m, "k");
    let b = compute(&[n.expr()], "B", |i| product.reduce(vec![a.at((&i[0], &k))], std::slice::from_ref(&k)))?;
    let args = [a, b.clone()];
    let function = build(&Schedule::new(&[b], &args)?, &args, "product")?;
    let mut all_agree = true;
    for (n, m) in SHAPES {
        let values = numbers(n * m, 0.5);
        let found = function.call(&[Value::Array(Array::from_slice(&[n, m], &values)?)])?;
        let rows = values.chunks(m as usize).map(|row| {
            let product: f64 = row.iter().map(|v| f64::from(*v)).product();
            // Each factor rounds once; second-order terms are far below a thousandth of that.
            (product, product * 1.001 * m as f64 * UNIT)
        });
        all_agree &= report(out, "product", &format!("{n}x{m}"), &found[0].array, rows)?;
    }
    Ok(all_agree)
}

/// The first position of the largest value, and the value: a state of two fields.
fn argmax() -> CommReducer {
    comm_reducer(
        |x, y| {
            let (xi, xv, yi, yv) = (x[0].clone(), x[1].clone(), y[0].clone(), y[1].clone());
            let earlier = xv.clone().equal(yv.clone()).and(xi.clone().lt(yi.clone()));
            let left = xv.clone().gt(yv.clone()).or(earlier);
            vec![Expr::select(left.clone(), xi, yi), Expr::select(left, xv, yv)]
        },
        |types| vec![Expr::int_of(i128::from(i32::MAX), types[0]), Expr::float(f64::NEG_INFINITY, types[1])],
        "argmax",
    )
}

fn run_argmax(out: &mut dyn Write) -> Result<bool, Box<dyn std::error::Error>> {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A")?;
    let k = reduce_axis(&m, "k");
    let t = compute_tuple(&[n.expr()], "T", |i| {
        argmax().reduce(vec![k.expr(), a.at((&i[0], &k))], std::slice::from_ref(&k))
    })?;
    let args = [a, t[0].clone(), t[1].clone()];
    let mut factored = Schedule::new(&t, &args)?;
    let (_, inner) = factored.split(&t[0], &t[0].op().reduce_axes()[0], Split::Factor(16))?;
    factored.rfactor(&t[0], &inner)?;
    let schedules = [("argmax, default schedule", Schedule::new(&t, &args)?), ("argmax, factored", factored)];
    let mut all_agree = true;
    for (name, schedule) in schedules {
        let function = build(&schedule, &args, "argmax")?;
        for (n, m) in SHAPES {
            // Few distinct values, so that there are ties.
            let values: Vec<f32> = numbers(n * m, 0.0).iter().map(|v| (v * 40.0).floor()).collect();
            let found = function.call(&[Value::Array(Array::from_slice(&[n, m], &values)?)])?;
            let best = values.chunks(m as usize).map(|row| {
                let last = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                (row.iter().position(|v| *v == last).unwrap_or(row.len()), last)
            });
            let positions = best.clone().map(|(at, _)| (at as f64, 0.0));
            let largest = best.map(|(_, value)| (f64::from(value), 0.0));
            let shape = format!("{n}x{m}");
            all_agree &= report(out, &format!("{name}, position"), &shape, &found[0].array, positions)?;
            all_agree &= report(out, &format!("{name}, value"), &shape, &found[1].array, largest)?;
        }
    }
    Ok(all_agree)
}

/// Compares with wanted values and the largest legal difference of each, and says the outcome.
fn report(
    out: &mut dyn Write,
    name: &str,
    shape: &str,
    found: &Array,
    wanted: impl Iterator<Item = (f64, f64)>,
) -> Result<bool, Box<dyn std::error::Error>> {
    let wanted: Vec<(f64, f64)> = wanted.collect();
    let pairs = found.scalars().zip(&wanted);
    let wrong = pairs.filter(|(found, (value, bound))| {
        let difference = (found.to_f64() - value).abs();
        difference.is_nan() || difference > *bound
    });
    let n_wrong = wrong.count() + wanted.len().abs_diff(found.len());
    let verdict = if n_wrong == 0 { "agrees".to_owned() } else { format!("DIFFERS in {n_wrong}") };
    writeln!(out, "{name}: {shape}: {verdict} ({} results)", wanted.len())?;
    Ok(n_wrong == 0)
}

/// Numbers in [start, start + 1), the same at each run.
fn numbers(count: i64, start: f32) -> Vec<f32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        start + (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..count).map(step).collect()
}
