//! What the first call of a process costs when the kernel is on the disk, for several shapes: `first_call [RUNS]`.
//!
//! Each time is that of a process of its own: open the device, plan or find the plan, load the kernel, launch. Shown is
//! the best of some runs, beside the cost of preparing the same call again and of a launch of a prepared one.

use std::process::Command;
use std::time::Instant;

use coulis::reduce::{array_info, prepare};
use coulis::{Array, DType, Request};

/// Ops, element type, shape, axes.
type Case = (&'static [&'static str], DType, &'static [i64], &'static [i64]);

const CASES: &[Case] = &[
    (&["sum"], DType::F32, &[16], &[0]),
    (&["sum"], DType::F32, &[64, 1000], &[1]),
    (&["sum"], DType::F32, &[1000, 64], &[0]),
    (&["sum", "mean", "var", "min", "max"], DType::F32, &[64, 1000], &[1]),
    (&["sum", "mean", "var", "min", "max"], DType::F32, &[1000, 64], &[0]),
    (&["sum", "mean", "var", "min", "max"], DType::F16, &[3000, 6], &[1]),
    (&["logsumexp"], DType::F32, &[64, 1000], &[1]),
    (&["argmax"], DType::F64, &[20, 30, 40], &[0, 2]),
    (&["sum"], DType::I8, &[4096, 3], &[0]),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, case] = &words[..]
        && word == "one"
    {
        return one(&CASES[case.parse::<usize>()?]);
    }
    let runs: usize = words.first().map_or(Ok(20), |w| w.parse())?;
    println!("{:>10} {:>10} {:>10}  case", "first us", "again us", "launch us");
    for (at, case) in CASES.iter().enumerate() {
        let mut best = [f64::INFINITY; 3];
        let mut origin = String::new();
        for _ in 0..=runs {
            let run = Command::new(std::env::current_exe()?).args(["one", &at.to_string()]).output()?;
            let text = String::from_utf8(run.stdout)?;
            let mut words = text.split_whitespace();
            origin = words.next().unwrap_or("failed").to_owned();
            for best in &mut best {
                *best = best.min(words.next().unwrap_or("nan").parse()?);
            }
        }
        let [first, again, launch] = best;
        println!("{first:>10.1} {again:>10.3} {launch:>10.3}  {origin} {case:?}");
    }
    Ok(())
}

fn one((ops, dtype, shape, axes): &Case) -> Result<(), Box<dyn std::error::Error>> {
    let n: i64 = shape.iter().product();
    let array = Array::from_bytes(*dtype, shape, &vec![0; n as usize * dtype.bytes()])?;
    let request = Request { threads: Some(1), ..Request::new(ops).over(axes) };
    let infos = [array_info(&array)];
    let start = Instant::now();
    let prepared = prepare(&infos, &request)?;
    let mut outputs = prepared.allocate()?;
    prepared.launch(&[&array], &[], &mut outputs)?;
    let first = start.elapsed().as_secs_f64();
    let again = best(|| prepare(&infos, &request).map(drop))?;
    let launch = best(|| prepared.launch(&[&array], &[], &mut outputs))?;
    println!("{:?} {} {} {}", prepared.compile_info().origin, first * 1e6, again * 1e6, launch * 1e6);
    Ok(())
}

/// Seconds of one of 100 in a row, the best of 50 times.
fn best(mut f: impl FnMut() -> Result<(), coulis::Error>) -> Result<f64, coulis::Error> {
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..100 {
            f()?;
        }
        best = best.min(start.elapsed().as_secs_f64() / 100.0);
    }
    Ok(best)
}
