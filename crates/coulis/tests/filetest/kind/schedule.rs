//! `# test: schedule program=NAME`: the lines of the file are steps of a schedule. Printed is the nest.
//!
//! The programs are those of [`PROGRAMS`]. A refusal stands on the line of its step, as `# error schedule: MESSAGE`.

use coulis::DType;
use coulis::te::{Schedule, Tensor, build_nest, compute, placeholder, reduce_axis, sum, var};
use coulis_ir::print::print_kernel;

use crate::filetest::{Fault, Found, Kind, Place, Task};

/// The kind.
pub static KIND: Kind = Kind { name: "schedule", words: &["program="], is_canonical: |_| false, run };

/// Makes the output and all parameters.
type Builder = fn() -> (Tensor, Vec<Tensor>);

/// Programs by name.
const PROGRAMS: &[(&str, Builder)] = &[
    ("row_sum", row_sum),
    ("row_sum_f16", row_sum_f16),
    ("scaled_row_sum", scaled_row_sum),
    ("matmul", matmul),
    ("twice", twice),
];

/// `B[i] = sum(A[i, k], k)`, the program of seed 003.
fn row_sum() -> (Tensor, Vec<Tensor>) {
    row_sum_of(DType::F32)
}

/// The same of narrow floats.
fn row_sum_f16() -> (Tensor, Vec<Tensor>) {
    row_sum_of(DType::F16)
}

fn row_sum_of(dtype: DType) -> (Tensor, Vec<Tensor>) {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], dtype, "A").unwrap();
    let k = reduce_axis(&m, "k");
    let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).unwrap();
    (b.clone(), vec![a, b])
}

/// `T[i] = sum(A[i, k], k)`, `B[i] = T[i] * 2`.
fn scaled_row_sum() -> (Tensor, Vec<Tensor>) {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A").unwrap();
    let k = reduce_axis(&m, "k");
    let t = compute(&[n.expr()], "T", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).unwrap();
    let b = compute(&[n.expr()], "B", |i| t.at(i) * coulis::te::Expr::float(2.0, DType::F32)).unwrap();
    (b.clone(), vec![a, b])
}

/// `C[i, j] = sum(A[i, k] * B[k, j], k)` with 16 elements a sum.
fn matmul() -> (Tensor, Vec<Tensor>) {
    let n = var("n");
    let a = placeholder(&[n.expr(), coulis::te::Expr::int(16)], DType::F32, "A").unwrap();
    let b = placeholder(&[coulis::te::Expr::int(16), n.expr()], DType::F32, "B").unwrap();
    let k = reduce_axis(coulis::te::Expr::int(16), "k");
    let c = compute(&[n.expr(), n.expr()], "C", |i| {
        sum(a.at((&i[0], &k)) * b.at((&k, &i[1])), std::slice::from_ref(&k))
    })
    .unwrap();
    (c.clone(), vec![a, b, c])
}

/// `B[i, j] = A[i, j] * 2` of 64 by 48.
fn twice() -> (Tensor, Vec<Tensor>) {
    let shape = [coulis::te::Expr::int(64), coulis::te::Expr::int(48)];
    let a = placeholder(&shape, DType::F32, "A").unwrap();
    let b =
        compute(&shape, "B", |i| a.at((&i[0], &i[1])) * coulis::te::Expr::float(2.0, DType::F32)).unwrap();
    (b.clone(), vec![a, b])
}

fn run(task: &Task) -> Result<Found, String> {
    let name = task.words.get("program").map_or("", String::as_str);
    let Some((_, program)) = PROGRAMS.iter().find(|(n, _)| *n == name) else {
        let names: Vec<&str> = PROGRAMS.iter().map(|p| p.0).collect();
        return Err(format!("there is no program `{name}`; programs are {}", names.join(", ")));
    };
    let (output, args) = program();
    let steps = match coulis::parse_trace(task.text) {
        Ok(steps) => steps,
        Err(error) => return Ok(Found::error(&error)),
    };
    let schedule = Schedule::new(std::slice::from_ref(&output), &args).map_err(|e| e.to_string())?;
    let program = schedule.program().clone();
    // The first step that is refused is the last of the shortest trace that is.
    for n in 0..=steps.len() {
        match Schedule::replay(&program, &steps[..n]) {
            Err(error) => {
                let text = format!("schedule: {error}").replace('\n', " ");
                let place = Place::Code(n.saturating_sub(1));
                return Ok(Found { faults: vec![Fault { place, text }], ..Found::default() });
            }
            Ok(schedule) if n == steps.len() => {
                return Ok(match build_nest(&schedule, &args, "main") {
                    Ok(nest) => Found::printed(print_kernel(&nest)),
                    Err(error) => Found::error(&error.into()),
                });
            }
            Ok(_) => {}
        }
    }
    Err("a trace has an end".to_owned())
}
