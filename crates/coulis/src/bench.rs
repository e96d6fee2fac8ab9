//! Timing of reductions and maps: made-up inputs, launches, a check of the results, and the floor that memory sets.
//!
//! A rate says nothing without the rate at which the machine reads memory in the same minutes, so both are timed in
//! turn and the report holds both. On a GPU its own clock counts, the input is in its memory, caches are flushed before
//! each launch, and the floor is a copy that moves as many bytes in all. Sources: seed 004 for the flags and the default problem, interface section 2 for
//! the suite's form.

mod input;
mod latency;
mod map_reference;
mod reference;
mod stages;
mod workload;

use std::time::Instant;

use coulis_exec::Pool;
use coulis_io::{AlignedBytes, Array};
use coulis_runtime::{TimeAmount, stream};

use crate::error::Error;
use crate::reduce::{Prepared, array_info, prepare};
use crate::request::{DeviceChoice, Request, Tuned};

pub use input::{Init, input};
pub use latency::{Latency, latency};
pub use reference::Verdict;
pub use stages::{Stage, Stages, stages};
pub use workload::{SuiteError, Workload, parse_suite};

/// How many launches are timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many.
    Launches(usize),
    /// As many as fit into about so many seconds, at least 5; short ones are timed several at a time.
    Seconds(f64),
}

/// How a workload is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The input's values.
    pub init: Init,
    /// Whether results are compared with an exact reference.
    pub verify: bool,
    /// How long; `None` runs once and times nothing.
    pub amount: Option<Amount>,
    /// CPU threads; `None` is all.
    pub threads: Option<usize>,
    /// Where to run.
    pub device: DeviceChoice,
    /// Which parameters the plan has.
    pub tuned: Tuned,
}

/// Seconds of a launch over all that were timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The fastest.
    pub best: f64,
    /// The one in the middle.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// Launches that were timed.
    pub n_launches: usize,
}

impl Timing {
    /// Of samples, at least one.
    fn of(mut samples: Vec<f64>, n_launches: usize) -> Timing {
        samples.sort_by(f64::total_cmp);
        Timing {
            best: samples[0],
            median: samples[samples.len() / 2],
            mean: samples.iter().sum::<f64>() / samples.len() as f64,
            n_launches,
        }
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run; its shape is the one that was measured.
    pub workload: Workload,
    /// Seconds of a launch, unless timing was off.
    pub timing: Option<Timing>,
    /// The input once plus every output once.
    pub bytes: u64,
    /// Best seconds to read the input's bytes with the better of one thread and all threads, timed in turn with the
    /// launches; on a GPU the median of a copy that moves as many bytes in all. `None` where timing was off.
    pub floor: Option<f64>,
    /// On a GPU, the median of a read of as many bytes that does nothing with them, timed in turn with both: a copy ends with part
    /// of what it wrote in a cache and may be faster. `None` elsewhere and where timing was off.
    pub read: Option<f64>,
    /// Seconds of one of 20 launches that are put on the device's stream at once, over two copies of the input in turn, by the
    /// host's clock, the median of five: how a library without events can be timed. `None` where there is no device, or no
    /// memory there for a second copy.
    pub queued: Option<f64>,
    /// Name of the plan.
    pub plan: String,
    /// Seconds to plan, lower and compile (or load, or find) the kernel.
    pub compile: f64,
    /// What of them went by before the kernel's text was written: planning, scheduling and lowering. Where the kernel was found
    /// in memory, all of them.
    pub planning: f64,
    /// What became of the check; `None` where it was not asked for.
    pub verdict: Option<Verdict>,
    /// Threads of the device.
    pub n_threads: usize,
    /// Blocks, and threads of a block, of the first launch, on devices that have them.
    pub grid: Option<([u32; 3], [u32; 3])>,
    /// Name of the device.
    pub device: String,
    /// What the caller should know.
    pub notices: Vec<String>,
}

impl Report {
    /// Bytes a second, in GB, of so many seconds a launch.
    pub fn gb_per_second(&self, seconds: f64) -> f64 {
        self.bytes as f64 / seconds / 1e9
    }
}

/// Makes the input, prepares, launches, checks, and times what was found right or not to be known.
pub fn measure(workload: &Workload, options: &Options) -> Result<Report, Error> {
    measure_on(&input(workload.dtype, &workload.shape, options.init)?, workload, options)
}

/// The same on an input that is made already.
pub(crate) fn measure_on(input: &Array, workload: &Workload, options: &Options) -> Result<Report, Error> {
    let request = request(workload, options)?;
    let start = Instant::now();
    let prepared = prepare(&[array_info(input)], &request)?;
    let compile = start.elapsed().as_secs_f64();
    let made = prepared.compile_info().seconds;
    let planning = if made < compile { compile - made } else { compile };
    let mut outputs = prepared.allocate()?;
    let out_bytes: u64 = outputs.iter().map(|o| o.as_slice().len() as u64).sum();
    let n_threads = prepared.n_threads();
    let mut verdict = None;
    if options.verify || options.amount.is_none() {
        prepared.launch(&[input], &[], &mut outputs)?;
    }
    if options.verify {
        verdict = Some(reference::check(&prepared, input, std::mem::take(&mut outputs))?);
        outputs = prepared.allocate()?;
    }
    // What is wrong has no speed.
    let is_wrong = matches!(verdict, Some(Verdict::Refuted { .. }));
    let timed = match options.amount.filter(|_| !is_wrong) {
        None => None,
        Some(amount) => {
            let there = timed_there(&prepared, input, &mut outputs, amount, input.n_bytes() + out_bytes)?;
            Some(match there {
                Some(timed) => timed,
                None => {
                    let (timing, floor) = time(&prepared, input, &mut outputs, amount, n_threads)?;
                    Timed { timing, floor, read: None, queued: None }
                }
            })
        }
    };
    Ok(Report {
        workload: workload.clone(),
        timing: timed.map(|timed| timed.timing),
        bytes: input.n_bytes() + out_bytes,
        floor: timed.map(|timed| timed.floor),
        read: timed.and_then(|timed| timed.read),
        queued: timed.and_then(|timed| timed.queued),
        plan: prepared.plan().name.clone(),
        compile,
        planning,
        verdict,
        n_threads,
        grid: prepared.grid(),
        device: prepared.device_name().to_owned(),
        notices: prepared.notices(),
    })
}

/// What was timed of a workload.
#[derive(Clone, Copy)]
struct Timed {
    timing: Timing,
    floor: f64,
    read: Option<f64>,
    queued: Option<f64>,
}

/// Times launches by the device's own clock, where it has one.
fn timed_there(
    prepared: &Prepared,
    input: &Array,
    outputs: &mut [AlignedBytes],
    amount: Amount,
    bytes: u64,
) -> Result<Option<Timed>, Error> {
    let (launches, seconds) = match amount {
        Amount::Launches(n) => (Some(n), 0.0),
        Amount::Seconds(seconds) => (None, seconds),
    };
    let times = prepared.time(&[input], outputs, &TimeAmount { launches, seconds, bytes })?;
    Ok(times.map(|times| {
        let n_launches = times.launches.len();
        Timed {
            timing: Timing::of(times.launches, n_launches),
            floor: times.copy,
            read: Some(times.read),
            queued: times.queued,
        }
    }))
}

/// The request of a workload.
fn request(workload: &Workload, options: &Options) -> Result<Request, Error> {
    Ok(Request {
        threads: options.threads,
        device: options.device.clone(),
        tuned: match workload.plan.clone() {
            Some((strategy, changes)) => Tuned::As { strategy, changes },
            None => options.tuned.clone(),
        },
        ..workload.request()?
    })
}

/// Turns in which launches and reads of memory alternate, so that a slow moment of the machine meets both.
const TURNS: usize = 3;
/// Least seconds of one sample: what a clock can tell from its own cost.
const SAMPLE: f64 = 20e-6;

fn time(
    prepared: &Prepared,
    input: &Array,
    outputs: &mut [AlignedBytes],
    amount: Amount,
    n_threads: usize,
) -> Result<(Timing, f64), Error> {
    let mut launches = |n: usize| -> Result<f64, Error> {
        let start = Instant::now();
        for _ in 0..n {
            prepared.launch(&[input], &[], outputs)?;
        }
        Ok(start.elapsed().as_secs_f64() / n as f64)
    };
    let once = launches(1)?.max(1e-8);
    let (at_least, seconds, batch) = match amount {
        Amount::Launches(n) => (n.max(1), 0.0, 1),
        Amount::Seconds(seconds) => (5, seconds, (SAMPLE / once).ceil() as usize),
    };
    let words = stream::words(input.storage().0);
    let pools = [Pool::global(1), Pool::global(n_threads)];
    let mut samples = Vec::new();
    let mut floor = f64::INFINITY;
    for turn in 1..=TURNS {
        let start = Instant::now();
        let part = seconds / TURNS as f64;
        while samples.len() * TURNS < at_least * turn || start.elapsed().as_secs_f64() < part {
            samples.push(launches(batch)?);
        }
        let start = Instant::now();
        let read = |pool| stream::mean_read_seconds(words, pool, batch);
        loop {
            floor = pools.iter().fold(floor, |floor, pool| floor.min(read(pool)));
            if start.elapsed().as_secs_f64() >= part.min(0.5) {
                break;
            }
        }
    }
    let n_launches = samples.len() * batch;
    Ok((Timing::of(samples, n_launches), floor))
}
