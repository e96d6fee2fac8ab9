//! What the first call costs: planning, compiling or loading, and a launch, on an array that costs nothing to read.

use std::time::Instant;

use coulis_ir::DType;
use coulis_runtime::Origin;

use super::{Init, input};
use crate::error::Error;
use crate::reduce::{array_info, prepare};
use crate::request::Request;

/// Costs of a call apart from its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Where the kernel came from: `compiled`, `disk`, `memory`, or `executor` where nothing is compiled.
    pub origin: &'static str,
    /// Seconds of the first call of the process: open the device, plan, lower, compile or load, launch.
    pub first_call: f64,
    /// Seconds of that to compile or load the kernel.
    pub compile: f64,
    /// Seconds to prepare the same call again.
    pub prepare_again: f64,
    /// Seconds of a launch, the best of many.
    pub launch: f64,
    /// Elements of the array.
    pub n_elements: usize,
}

const N: usize = 16;

/// Measures the sum of 16 numbers. Only the first call of a process tells what a process pays; whether the kernel is
/// compiled or found depends on the cache folder.
pub fn latency(threads: Option<usize>) -> Result<Latency, Error> {
    let array = input(DType::F32, &[N as i64], Init::Integers)?;
    let request = Request { threads, ..Request::new(&["sum"]) };
    let infos = [array_info(&array)];
    let start = Instant::now();
    let prepared = prepare(&infos, &request)?;
    let mut outputs = prepared.allocate()?;
    prepared.launch(&[&array], &[], &mut outputs)?;
    let first_call = start.elapsed().as_secs_f64();
    let info = prepared.compile_info();
    let origin = match info.origin {
        Origin::Compiled => "compiled",
        Origin::Disk => "disk",
        Origin::Memory => "memory",
    };
    let origin = if prepared.source().is_some() { origin } else { "executor" };
    let best = |n: usize, f: &mut dyn FnMut() -> Result<(), Error>| -> Result<f64, Error> {
        let mut best = f64::INFINITY;
        for _ in 0..50 {
            let start = Instant::now();
            for _ in 0..n {
                f()?;
            }
            best = best.min(start.elapsed().as_secs_f64() / n as f64);
        }
        Ok(best)
    };
    let prepare_again = best(1, &mut || prepare(&infos, &request).map(|_| ()))?;
    let launch = best(100, &mut || prepared.launch(&[&array], &[], &mut outputs))?;
    Ok(Latency { origin, first_call, compile: info.seconds, prepare_again, launch, n_elements: N })
}
