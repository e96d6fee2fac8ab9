//! Timing of reductions and maps: made-up inputs, launches, a check of the results, and the floor that memory sets.
//!
//! A rate says nothing without the rate at which the machine reads memory in the same minutes, so both are
//! timed in turn and the report holds both. On a GPU its own clock counts, the input is in its memory, caches
//! are flushed before each launch, and the floor is a copy that moves as many bytes in all. Sources: seed 004
//! for the flags and the default problem, interface section 2 for the suite's form.

mod input;
mod latency;
mod normalization_reference;
mod reference;
mod stages;
mod turns;
mod workload;

use std::time::Instant;

use coulis_io::{AlignedBytes, Array};
use coulis_runtime::{TimeAmount, median};

use crate::device::open;
use crate::error::Error;
use crate::reduce::{Prepared, array_info, prepare};
use crate::request::{DeviceChoice, Request, Tuned};

pub use input::{Init, input};
pub use latency::{Latency, latency};
pub use reference::Verdict;
pub use stages::{Stage, Stages, stages};
pub use turns::{Turn, in_turns};
pub use workload::{SuiteError, Workload, parse_suite};

/// How many launches are timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// This number.
    Launches(usize),
    /// As many as fit into about this number of seconds, at least 5; short ones are timed several at a time.
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
    fn of(samples: &[f64], n_launches: usize) -> Timing {
        Timing {
            best: samples.iter().copied().fold(f64::INFINITY, f64::min),
            median: median(samples.iter().copied()),
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
    /// Median seconds to read the input where it lies (and to write as many bytes as results have that are a
    /// good part of it) with the better of one thread and all threads, timed in turn with the launches; on a
    /// GPU the median of a copy that moves as many bytes in all. `None` where timing was off.
    pub floor: Option<f64>,
    /// The share of the floor's rate that launches reach: the median over turns of what the floor takes for
    /// as many bytes over the launch of the same turn. `None` on a GPU and where timing was off.
    pub share: Option<f64>,
    /// On a GPU, the median of a read of as many bytes that does nothing with them, timed in turn with both:
    /// a copy ends with part of what it wrote in a cache and may be faster. `None` elsewhere and where timing
    /// was off.
    pub read: Option<f64>,
    /// Seconds of one of 20 launches that are put on the device's stream at once, over two copies of the
    /// input in turn, by the host's clock, the median of five: how a library without events can be timed.
    /// `None` where there is no device, or no memory there for a second copy.
    pub queued: Option<f64>,
    /// Name of the plan.
    pub plan: String,
    /// Seconds to plan, schedule and lower, and to write the kernel's text, the device being open. Where the kernel
    /// was found in memory, those to find it.
    pub planning: f64,
    /// Seconds from the text to a kernel that can be launched: to compile or load it. None where it was found in memory.
    pub compile: f64,
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
    /// Bytes a second, in GB, of launches that take `seconds`.
    pub fn gb_per_second(&self, seconds: f64) -> f64 {
        self.bytes as f64 / seconds / 1e9
    }
}

/// Makes the input, prepares, launches, checks, and times what was found right or not to be known.
pub fn measure(workload: &Workload, options: &Options) -> Result<Report, Error> {
    measure_on(&workload.input(options.init)?, workload, options)
}

/// The same on an input that is made already.
pub(crate) fn measure_on(input: &Array, workload: &Workload, options: &Options) -> Result<Report, Error> {
    let Checked { prepared, mut report } = checked(input, workload, options)?;
    // What is wrong has no speed.
    let is_wrong = matches!(report.verdict, Some(Verdict::Refuted { .. }));
    if let Some(amount) = options.amount.filter(|_| !is_wrong) {
        let mut outputs = prepared.allocate()?;
        if !timed_there(&prepared, input, &mut outputs, amount, &mut report)? {
            turns::time(&prepared, input, outputs, amount, &mut report)?;
        }
    }
    Ok(report)
}

/// A call that was checked and not timed yet.
struct Checked {
    prepared: Prepared,
    report: Report,
}

/// Prepares, launches and checks.
fn checked(input: &Array, workload: &Workload, options: &Options) -> Result<Checked, Error> {
    let request = request(workload, options)?;
    // What a process pays once is no part of a plan.
    open(&request)?;
    let start = Instant::now();
    let prepared = prepare(&[array_info(input)], &request)?;
    let elapsed = start.elapsed().as_secs_f64();
    let made = prepared.compile_info().seconds;
    let compile = if made < elapsed { made } else { 0.0 };
    let planning = elapsed - compile;
    let mut outputs = prepared.allocate()?;
    let out_bytes: u64 = outputs.iter().map(|o| o.as_slice().len() as u64).sum();
    if out_bytes == 0 {
        let message =
            format!("an array of shape {:?} has no results to time over these axes", workload.shape);
        return Err(Error::user("bench/shape", message));
    }
    let mut verdict = None;
    if options.verify || options.amount.is_none() {
        prepared.launch(&[input], &[], &mut outputs)?;
    }
    if options.verify {
        verdict = Some(reference::check(&prepared, input, outputs)?);
    }
    let report = Report {
        workload: workload.clone(),
        timing: None,
        bytes: input.n_bytes() + out_bytes,
        floor: None,
        share: None,
        read: None,
        queued: None,
        plan: prepared.plan().name.clone(),
        planning,
        compile,
        verdict,
        n_threads: prepared.n_threads(),
        grid: prepared.grid(),
        device: prepared.device_name().to_owned(),
        notices: prepared.notices(),
    };
    Ok(Checked { prepared, report })
}

/// Times launches by the device's own clock; whether it has one.
fn timed_there(
    prepared: &Prepared,
    input: &Array,
    outputs: &mut [AlignedBytes],
    amount: Amount,
    report: &mut Report,
) -> Result<bool, Error> {
    let (launches, seconds) = match amount {
        Amount::Launches(n) => (Some(n), 0.0),
        Amount::Seconds(seconds) => (None, seconds),
    };
    let amount = TimeAmount { launches, seconds, bytes: report.bytes };
    let Some(times) = prepared.time(&[input], outputs, &amount)? else { return Ok(false) };
    let n_launches = times.launches.len();
    report.timing = Some(Timing::of(&times.launches, n_launches));
    report.floor = Some(times.copy);
    report.read = Some(times.read);
    report.queued = times.queued;
    Ok(true)
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
