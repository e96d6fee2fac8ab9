//! Turns on the CPU: in each, calls and the floor that memory sets are timed one right after the other.
//!
//! The rate of a memory that other programs use too moves within seconds, so only what was timed in one turn
//! compares. Who comes first in a turn goes around, and the best of a few samples counts, so that no one pays
//! for what another left in the caches.

use std::time::Instant;

use coulis_exec::Pool;
use coulis_io::{AlignedBytes, Array};
use coulis_runtime::median;
use coulis_runtime::stream::{Floor, words, words_mut};

use super::{Amount, Checked, Options, Report, Timing, Verdict, Workload, checked};
use crate::error::Error;
use crate::reduce::Prepared;

/// Seconds of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Of a launch of each call.
    pub launches: Vec<f64>,
    /// To read the input where it lies, and to write as many bytes as the first call's results have if they are a good part.
    pub floor: f64,
    /// That memory takes to move as many bytes as the first call. Of an input that a cache may hold it is
    /// other memory, where such takes part, as in [`in_turns`].
    pub memory: f64,
}

impl Turn {
    /// The share of the rate of `memory` that the first call reaches.
    pub fn share(&self) -> f64 {
        self.memory / self.launches[0]
    }
}

/// Least seconds of one sample: what a clock can tell from its own cost.
const SAMPLE: f64 = 20e-6;
/// Seconds of samples in a turn, the best of which counts, and the fewest of them: the first may find what
/// another left in the caches, and any may meet another program.
const SAMPLES: f64 = 1e-3;
const FEWEST_SAMPLES: usize = 2;
/// Fewest turns.
const FEWEST: usize = 5;
/// Bytes that no cache holds, about.
const FAR_BYTES: usize = 128 << 20;
/// Results count as moved from this part of the input on.
const COUNTED_RESULTS: usize = 16;

/// The least of a few samples, those of about [`SAMPLES`] seconds.
fn best(mut sample: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut n = 0;
    while n < FEWEST_SAMPLES || start.elapsed().as_secs_f64() < SAMPLES {
        best = best.min(sample()?);
        n += 1;
    }
    Ok(best)
}

/// A call that takes part.
struct Call<'a> {
    prepared: &'a Prepared,
    outputs: Vec<AlignedBytes>,
    /// Launches of a sample.
    batch: usize,
}

impl Call<'_> {
    fn seconds(&mut self, input: &Array) -> Result<f64, Error> {
        let start = Instant::now();
        for _ in 0..self.batch {
            self.prepared.launch(&[input], &[], &mut self.outputs)?;
        }
        Ok(start.elapsed().as_secs_f64() / self.batch as f64)
    }
}

/// Memory to which a floor writes as many bytes as the results have, where these count.
fn room_for(out_bytes: usize, input: &Array) -> Result<AlignedBytes, Error> {
    let counts = out_bytes >= input.storage().0.len() / COUNTED_RESULTS;
    Ok(AlignedBytes::zeroed(if counts { out_bytes } else { 0 })?)
}

/// What is read in place of an input that a cache may hold; nothing for others.
fn far_from(input: &Array) -> Result<AlignedBytes, Error> {
    let mut far = AlignedBytes::zeroed(if input.storage().0.len() < FAR_BYTES { FAR_BYTES } else { 0 })?;
    far.as_mut_slice().fill(1);
    Ok(far)
}

/// Who takes part in turns.
struct Turns<'a> {
    input: &'a Array,
    calls: Vec<Call<'a>>,
    /// Bytes of the first call.
    bytes: u64,
    floor: Floor<'a>,
    /// Reads of one sample of the floor.
    floor_batch: usize,
    far: Option<Floor<'a>>,
    /// Turns that were taken.
    n_taken: usize,
}

impl<'a> Turns<'a> {
    /// `room` and `far`: what [`room_for`] and [`far_from`] gave, or nothing; `bytes`: what the first call
    /// moves; `sample`: least seconds of one.
    fn new(
        calls: Vec<(&'a Prepared, Vec<AlignedBytes>)>,
        input: &'a Array,
        (room, far): (&'a mut [u8], &'a [u8]),
        bytes: u64,
        sample: f64,
    ) -> Result<Turns<'a>, Error> {
        let n_threads = calls.first().map_or(1, |(prepared, _)| prepared.n_threads());
        let pools = [Pool::global(1), Pool::global(n_threads)];
        let batch = |once: f64| ((sample / once.max(1e-8)).ceil() as usize).max(1);
        let mut floor = Floor::fastest(words(input.storage().0), words_mut(room), &pools);
        let far = words(far);
        let far = (!far.is_empty()).then(|| Floor::fastest(far, &mut [], &pools));
        let floor_batch = batch(floor.seconds(1));
        let calls = calls.into_iter().map(|(prepared, outputs)| {
            let mut call = Call { prepared, outputs, batch: 1 };
            call.seconds(input)?;
            call.batch = batch(call.seconds(input)?);
            Ok(call)
        });
        let calls = calls.collect::<Result<Vec<_>, Error>>()?;
        Ok(Turns { input, calls, bytes, floor, floor_batch, far, n_taken: 0 })
    }

    /// One turn.
    fn take(&mut self) -> Result<Turn, Error> {
        let n_calls = self.calls.len();
        let mut launches = vec![0.0; n_calls];
        let (mut floor, mut memory) = (0.0, 0.0);
        for nth in 0..=n_calls {
            let who = (self.n_taken + nth) % (n_calls + 1);
            if let Some(call) = self.calls.get_mut(who) {
                launches[who] = best(|| call.seconds(self.input))?;
                continue;
            }
            if let Some(far) = &mut self.far {
                memory = best(|| Ok(far.seconds(1)))? * self.bytes as f64 / far.n_bytes() as f64;
            }
            floor = best(|| Ok(self.floor.seconds(self.floor_batch)))?;
            if self.far.is_none() {
                memory = floor * self.bytes as f64 / self.floor.n_bytes() as f64;
            }
        }
        self.n_taken += 1;
        Ok(Turn { launches, floor, memory })
    }
}

/// Times a call, and puts what was found into its report.
pub(super) fn time(
    prepared: &Prepared,
    input: &Array,
    outputs: Vec<AlignedBytes>,
    amount: Amount,
    report: &mut Report,
) -> Result<(), Error> {
    let out_bytes = outputs.iter().map(|output| output.as_slice().len()).sum();
    let (fewest, seconds, sample) = match amount {
        // A sample of each launch that was asked for.
        Amount::Launches(n) => (n.max(1), 0.0, 0.0),
        Amount::Seconds(seconds) => (FEWEST, seconds, SAMPLE),
    };
    let mut room = room_for(out_bytes, input)?;
    let memory = (room.as_mut_slice(), &[][..]);
    let mut turns = Turns::new(vec![(prepared, outputs)], input, memory, report.bytes, sample)?;
    let start = Instant::now();
    let mut taken = Vec::new();
    while taken.len() < fewest || start.elapsed().as_secs_f64() < seconds {
        taken.push(turns.take()?);
    }
    let n_launches = taken.len() * turns.calls[0].batch;
    let launches: Vec<f64> = taken.iter().map(|turn| turn.launches[0]).collect();
    report.timing = Some(Timing::of(&launches, n_launches));
    report.floor = Some(median(taken.iter().map(|turn| turn.floor)));
    report.share = Some(median(taken.iter().map(Turn::share)));
    Ok(())
}

/// Checks calls over one input, that of the first, and times them in turns for as long as `next` asks for
/// another one. `next` is given the reports, without times, and the turn that was taken last. A call that is
/// wrong takes no turn.
///
/// # Errors
/// Those of [`super::measure`], and workloads that differ in dtype or shape.
pub fn in_turns(
    workloads: &[Workload],
    options: &Options,
    next: &mut dyn FnMut(&[Report], Option<&Turn>) -> bool,
) -> Result<(), Error> {
    let Some(first) = workloads.first() else { return Ok(()) };
    if let Some(other) = workloads.iter().find(|w| (w.dtype, &w.shape) != (first.dtype, &first.shape)) {
        let of = |w: &Workload| format!("`{}` has {} of {:?}", w.id, w.dtype.name(), w.shape);
        let message = format!("calls in turns have one input; {}, {}", of(first), of(other));
        return Err(Error::user("bench/turns", message));
    }
    let input = first.input(options.init)?;
    let (mut calls, mut reports) = (Vec::new(), Vec::new());
    for workload in workloads {
        let Checked { prepared, report } = checked(&input, workload, options)?;
        reports.push(report);
        calls.push(prepared);
    }
    let is_wrong = |report: &Report| matches!(report.verdict, Some(Verdict::Refuted { .. }));
    if !next(&reports, None) || reports.iter().any(is_wrong) {
        return Ok(());
    }
    let outputs = calls.iter().map(|prepared| Ok((prepared, prepared.allocate()?)));
    let outputs = outputs.collect::<Result<Vec<_>, Error>>()?;
    let out_bytes = reports[0].bytes.saturating_sub(input.n_bytes()) as usize;
    let (mut room, far) = (room_for(out_bytes, &input)?, far_from(&input)?);
    let memory = (room.as_mut_slice(), far.as_slice());
    let mut turns = Turns::new(outputs, &input, memory, reports[0].bytes, SAMPLE)?;
    while next(&reports, Some(&turns.take()?)) {}
    Ok(())
}
