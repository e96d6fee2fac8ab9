//! `tune`: a search for plan parameters that are faster on this machine than the planner's.
//!
//! From the planner's decisions one knob after the other is turned; what is faster is kept, until no turn
//! helps. Each candidate first has to give right results on a small proof shape; what is timed afterwards is
//! the workload itself. In the end the winner and the planner's own plan are timed in turn, and only a clear
//! winner is taken. Everything that was tried is on the disk at once, so a search that was cut off goes on
//! where it was, and calls use the best that is known ([`crate::Tuned`]).

pub(crate) mod record;

use coulis_plan::tuned::{Changes, Knob, changed};

use crate::bench::{Amount, Init, Options, Verdict, Workload, measure_on};
use crate::device;
use crate::error::Error;
use crate::reduce::{check, choose, plan, planned_for};
use crate::request::{DeviceChoice, Request, Tuned};

use self::record::{Record, Trial};

/// How a search is made.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// Where to run.
    pub device: DeviceChoice,
    /// CPU threads; `None` is all.
    pub threads: Option<usize>,
    /// Seconds to time each candidate, about.
    pub seconds: f64,
    /// Whether a search that was finished is made again.
    pub again: bool,
    /// New candidates after which the search stops, to be gone on with later.
    pub most: Option<usize>,
}

/// Where a search is.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneProgress {
    /// Candidates that were tried, now or in an earlier search that was cut off.
    pub tried: usize,
    /// About how many there will be.
    pub expected: usize,
    /// What is tried.
    pub candidate: String,
    /// Milliseconds of the planner's plan and of the best one, once known.
    pub ms: Option<(f64, f64)>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOutcome {
    /// Name of the workload.
    pub id: String,
    /// The strategy whose parameters were changed.
    pub strategy: String,
    /// Parameters that calls of this shape class are planned with from now on: names and values; none where
    /// the planner's are the best.
    pub changes: Vec<(&'static str, i64)>,
    /// Milliseconds of the planner's plan.
    pub untuned_ms: f64,
    /// Milliseconds of the plan that is used from now on.
    pub ms: f64,
    /// Candidates that this call tried; the others were known.
    pub n_new: usize,
    /// Whether the search came to its end.
    pub is_done: bool,
    /// Candidates that ran.
    pub n_timed: usize,
    /// Candidates that were passed over: no plans, or wrong on the proof shape.
    pub n_refused: usize,
    /// Whether there is a cache folder that keeps the choice.
    pub is_kept: bool,
}

/// Elements of a proof shape.
const PROOF: i64 = 1 << 16;
/// The same, at most, where a candidate is no plan of smaller ones; others are passed over, as they would take long to verify.
const LARGEST_PROOF: i64 = 1 << 24;
/// Elements of which a proof shape keeps the rest of an extent.
const UNIT: i64 = 64;
/// The part of the best time that a better plan takes at most.
const BETTER: f64 = 0.98;
/// The part of the planner's time that the winner takes at most to be taken in the end.
const CLEARLY: f64 = 0.99;
/// Turns of the last comparison.
const TURNS: usize = 3;
/// Rounds through all knobs.
const ROUNDS: usize = 2;

/// Searches for one workload; `progress` hears of each candidate.
///
/// Errors: the workload is refused, or the planner's own plan is wrong on the proof shape.
pub fn tune(
    workload: &Workload,
    options: &TuneOptions,
    progress: &mut dyn FnMut(&TuneProgress),
) -> Result<TuneOutcome, Error> {
    if workload.shape.contains(&0) {
        let message = format!("an array of shape {:?} has no elements to time", workload.shape);
        return Err(Error::user("tune/shape", message));
    }
    let mut search = Search::new(workload, options, progress)?;
    if !search.record.done {
        search.run()?;
    }
    Ok(search.outcome())
}

struct Search<'a> {
    workload: &'a Workload,
    options: &'a TuneOptions,
    progress: &'a mut dyn FnMut(&TuneProgress),
    strategy: String,
    proposed: coulis_plan::Sketch,
    target: coulis_ir::Target,
    class: String,
    record: Record,
    is_kept: bool,
    n_new: usize,
    stopped: bool,
    input: Option<coulis_io::Array>,
    /// Shapes on the way of halves, smallest first.
    proofs: Vec<Workload>,
}

impl<'a> Search<'a> {
    fn new(
        workload: &'a Workload,
        options: &'a TuneOptions,
        progress: &'a mut dyn FnMut(&TuneProgress),
    ) -> Result<Search<'a>, Error> {
        let request = request_of(workload, options, Tuned::Ignored)?;
        let info = workload.array_info();
        let call = check(std::slice::from_ref(&info), &request)?;
        if let Some(normalization) = &call.normalization {
            let message = format!("plans of `{}` have no parameters to search", normalization.name);
            return Err(Error::unsupported("tune/map", message));
        }
        let opened = device::open(&request)?;
        let chosen = choose(&call, &request, &opened)?;
        let class = record::class(&call, &opened);
        let strategy = chosen.choice.strategy.name.to_owned();
        let known = record::load(&class).filter(|known| known.strategy == strategy && !options.again);
        let record = known.unwrap_or_else(|| Record::new(&strategy));
        Ok(Search {
            workload,
            options,
            progress,
            strategy,
            proposed: chosen.choice.sketch,
            target: opened.target().clone(),
            class,
            record,
            is_kept: false,
            n_new: 0,
            stopped: false,
            input: None,
            proofs: proofs(workload),
        })
    }

    fn run(&mut self) -> Result<(), Error> {
        let Some(mut best) = self.seconds(&Vec::new())? else {
            let message =
                format!("the planner's plan of `{}` is not verified on the proof shape", self.workload.id);
            return if self.stopped { Ok(()) } else { Err(Error::unsupported("tune/proof", message)) };
        };
        let mut changes: Changes = Vec::new();
        for _ in 0..ROUNDS {
            let before = changes.clone();
            for knob in Knob::ALL {
                let Some(now) = changed(&self.target, &self.proposed, &changes) else { break };
                for value in knob.values(&now) {
                    let mut candidate: Changes =
                        changes.iter().copied().filter(|(other, _)| *other != knob).collect();
                    candidate.push((knob, value));
                    candidate.sort_unstable();
                    if let Some(seconds) = self.seconds(&candidate)?.filter(|s| *s < BETTER * best) {
                        (best, changes) = (seconds, candidate);
                    }
                }
            }
            if changes == before {
                break;
            }
        }
        if self.stopped { Ok(()) } else { self.decide(changes) }
    }

    /// Times the winner and the planner's plan in turn, and writes down which is taken.
    fn decide(&mut self, winner: Changes) -> Result<(), Error> {
        self.record.chosen = Vec::new();
        if !winner.is_empty() {
            let mut best = [f64::INFINITY; 2];
            for _ in 0..TURNS {
                for (slot, changes) in [(0, &Vec::new()), (1, &winner)] {
                    if let Some(seconds) = self.time(changes)? {
                        best[slot] = best[slot].min(seconds);
                    }
                }
            }
            self.record.seconds = Some((best[0], best[1]));
            if best[1] < CLEARLY * best[0] {
                self.record.chosen = winner;
            }
        }
        self.record.done = true;
        self.store();
        Ok(())
    }

    /// Seconds of a candidate, from the record or measured; `None` where it is no plan, or wrong.
    fn seconds(&mut self, changes: &Changes) -> Result<Option<f64>, Error> {
        if let Some(known) = self.record.tried.iter().find(|trial| trial.changes == *changes) {
            return Ok(known.seconds);
        }
        if self.options.most.is_some_and(|most| self.n_new >= most) {
            self.stopped = true;
            return Ok(None);
        }
        self.tell(changes);
        let (seconds, trace) = match self.trace(changes) {
            None => (None, None),
            // Another way to write a plan that is known.
            Some(trace) if self.record.tried.iter().any(|t| t.trace.as_ref() == Some(&trace)) => {
                return Ok(None);
            }
            Some(trace) if !self.proves(changes) => (None, Some(trace)),
            Some(trace) => (self.time(changes)?, Some(trace)),
        };
        self.n_new += 1;
        self.record.tried.push(Trial { changes: changes.clone(), seconds, trace });
        if let Some(fastest) = self.record.fastest() {
            self.record.chosen = fastest;
        }
        self.store();
        Ok(seconds)
    }

    fn store(&mut self) {
        self.is_kept = record::store(&self.class, &self.record);
    }

    fn tell(&mut self, changes: &Changes) {
        let tried = self.record.tried.len();
        let n_values: usize = Knob::ALL.iter().map(|knob| knob.values(&self.proposed).len()).sum();
        let seconds = |changes: &[(Knob, i64)]| {
            self.record.tried.iter().find(|trial| trial.changes == changes).and_then(|trial| trial.seconds)
        };
        let fastest = self.record.fastest().unwrap_or_default();
        let ms = seconds(&[]).zip(seconds(&fastest)).map(|(a, b)| (a * 1e3, b * 1e3));
        let candidate = record::in_words(changes);
        (self.progress)(&TuneProgress { tried, expected: (n_values + 1).max(tried + 1), candidate, ms });
    }

    fn request(&self, workload: &Workload, changes: &Changes) -> Result<Request, Error> {
        let strategy = self.strategy.clone();
        request_of(workload, self.options, Tuned::As { strategy, changes: changes.clone() })
    }

    /// A short name of the candidate's trace; `None` where the planner or a primitive refuses it.
    fn trace(&self, changes: &Changes) -> Option<String> {
        let request = self.request(self.workload, changes).ok()?;
        let planned = plan(&[self.workload.array_info()], &request).ok()?;
        Some(record::digest(&planned.trace))
    }

    /// Whether the candidate's results are right on its proof shape.
    fn proves(&self, changes: &Changes) -> bool {
        let found = proof_of(&self.proofs, |small| self.request(small, changes), &self.target);
        // The planner's own plan has no other to be compared with.
        let Some(proof) = found.filter(|p| changes.is_empty() || n_elements(p) <= LARGEST_PROOF) else {
            return false;
        };
        let options = self.options(changes, true, None);
        let measured = proof.input(Init::Uniform).and_then(|input| measure_on(&input, proof, &options));
        measured.is_ok_and(|report| report.verdict.as_ref().is_some_and(Verdict::is_verified))
    }

    /// Median seconds of the workload; `None` where the candidate does not run, as for want of registers.
    fn time(&mut self, changes: &Changes) -> Result<Option<f64>, Error> {
        if self.input.is_none() {
            self.input = Some(self.workload.input(Init::Uniform)?);
        }
        let options = self.options(changes, false, Some(Amount::Seconds(self.options.seconds)));
        let Some(input) = &self.input else { return Ok(None) };
        match measure_on(input, self.workload, &options) {
            Ok(report) => Ok(report.timing.map(|timing| timing.median)),
            Err(error) if changes.is_empty() => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn options(&self, changes: &Changes, verify: bool, amount: Option<Amount>) -> Options {
        let tuned = Tuned::As { strategy: self.strategy.clone(), changes: changes.clone() };
        let TuneOptions { device, threads, .. } = self.options.clone();
        Options { init: Init::Uniform, verify, amount, threads, device, tuned }
    }

    fn outcome(&self) -> TuneOutcome {
        let of = |changes: &Changes| self.record.tried.iter().find(|t| t.changes == *changes)?.seconds;
        let untuned = of(&Vec::new()).unwrap_or(f64::NAN);
        let chosen = &self.record.chosen;
        let (untuned, tuned) = match self.record.seconds {
            Some((untuned, winner)) if !chosen.is_empty() => (untuned, winner),
            Some((untuned, _)) => (untuned, untuned),
            None => (untuned, of(chosen).unwrap_or(untuned)),
        };
        let n_timed = self.record.tried.iter().filter(|trial| trial.seconds.is_some()).count();
        TuneOutcome {
            id: self.workload.id.clone(),
            strategy: self.strategy.clone(),
            changes: chosen.iter().map(|(knob, value)| (knob.name(), *value)).collect(),
            untuned_ms: untuned * 1e3,
            ms: tuned * 1e3,
            n_new: self.n_new,
            is_done: self.record.done,
            n_timed,
            n_refused: self.record.tried.len() - n_timed,
            is_kept: self.is_kept || record::load(&self.class).is_some(),
        }
    }
}

fn request_of(workload: &Workload, options: &TuneOptions, tuned: Tuned) -> Result<Request, Error> {
    let TuneOptions { device, threads, .. } = options.clone();
    Ok(Request { device, threads, tuned, ..workload.request()? })
}

fn n_elements(workload: &Workload) -> i64 {
    workload.shape.iter().product()
}

/// The smallest of the shapes that a candidate is a plan of: one with more threads wants longer rows than one with fewer.
fn proof_of<'a>(
    proofs: &'a [Workload],
    request: impl Fn(&Workload) -> Result<Request, Error>,
    target: &coulis_ir::Target,
) -> Option<&'a Workload> {
    let is_plan = |small: &Workload| -> Result<(), Error> {
        let request = request(small)?;
        planned_for(&check(&[small.array_info()], &request)?, &request, target).map(drop)
    };
    proofs.iter().find(|small| is_plan(small).is_ok())
}

/// The workload with its longest axes halved until its elements are few, and what led there, smallest first.
/// What is left of an extent after whole units stays, so that rows begin at addresses as even or odd as
/// before.
fn proofs(workload: &Workload) -> Vec<Workload> {
    let mut found = vec![workload.clone()];
    let mut small = workload.clone();
    while n_elements(&small) > PROOF {
        let Some(longest) = small.shape.iter_mut().max_by_key(|extent| **extent) else { break };
        *longest = match *longest / 2 / UNIT {
            0 => *longest / 2,
            units => units * UNIT + *longest % UNIT,
        };
        found.push(small.clone());
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_io::Array;
    use coulis_ir::DType;

    #[test]
    fn parameters_that_are_given_are_planned_and_right_or_refused() {
        let values: Vec<i32> = (0..3 * 5000).collect();
        let array = [Array::from_slice(&[3, 5000], &values).unwrap()];
        let run = |strategy: &str, changes: &[(Knob, i64)]| {
            let tuned = Tuned::As { strategy: strategy.to_owned(), changes: changes.to_vec() };
            let device = DeviceChoice::CpuExecuted;
            let request = Request { tuned, device, ..Request::new(&["sum", "argmax"]).over(&[1]) };
            crate::reduce::run(&array, &request)
        };
        let own = run("rows", &[]).unwrap();
        let tuned = run("rows", &[(Knob::Chunks, 4)]).unwrap();
        assert_eq!((own.plan.tuned, tuned.plan.tuned.as_deref()), (None, Some("chunks=4")));
        assert_ne!(own.plan.trace, tuned.plan.trace);
        for (a, b) in own.results.iter().zip(&tuned.results) {
            assert!(a.array.scalars().eq(b.array.scalars()), "{}", a.name);
        }
        for (strategy, changes, want) in [
            (
                "columns",
                (Knob::Chunks, 4),
                "error[plan/tuned]: `columns` is no plan of this call: wanted a kept innermost dimension, found a \
                 reduced one, or none",
            ),
            ("rows", (Knob::Threads, 4), "error[plan/tuned]: `rows` with threads=4 is no plan of this call"),
        ] {
            assert_eq!(run(strategy, &[changes]).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn a_proof_shape_is_small_and_keeps_the_order_of_the_axes() {
        let of = |shape: &[i64]| {
            let ops = vec!["sum".to_owned()];
            let id = "w".to_owned();
            let shape = shape.to_vec();
            let workload = Workload::new(id, DType::F32, shape, None, ops);
            proofs(&workload).swap_remove(0).shape
        };
        assert_eq!(of(&[100, 7]), [100, 7]);
        assert_eq!(of(&[16384, 16384]), [256, 256]);
        assert_eq!(of(&[1 << 24, 16]), [4096, 16]);
        assert_eq!(of(&[50001, 1237]), [209, 277], "50001 % 64 is 17 and 1237 % 64 is 21, as before");
        assert_eq!(of(&[0, 1 << 30]), [0, 1 << 30]);
    }

    #[test]
    fn a_candidate_is_proved_on_the_smallest_shape_that_it_is_a_plan_of() {
        let ops = ["sum", "var", "max"].map(str::to_owned).to_vec();
        let workload = Workload::new("w", DType::F32, vec![16384, 16384], Some(vec![1]), ops);
        let target = coulis_ir::Target::cuda("sm_90a").unwrap();
        let shapes = proofs(&workload);
        let of = |threads: i64| {
            let changes = vec![(Knob::Threads, threads)];
            let tuned = Tuned::As { strategy: "gpu_rows".to_owned(), changes };
            let request = |small: &Workload| Ok(Request { tuned: tuned.clone(), ..small.request()? });
            proof_of(&shapes, request, &target).map(|proof| proof.shape.clone())
        };
        assert_eq!(of(128), Some(vec![256, 256]));
        assert_eq!(of(256), Some(vec![1024, 1024]));
        assert_eq!(of(4096), None);
    }

    #[test]
    fn every_candidate_is_a_plan_or_is_refused_as_none() {
        let target = crate::target::TargetChoice::Cuda { arch: Some("sm_90a".to_owned()) };
        let facts = target.facts().unwrap();
        let cases: [(DType, &[i64], &[i64]); 7] = [
            (DType::F16, &[256, 256], &[0]),
            (DType::F16, &[11, 14, 14, 16], &[0, 1, 2]),
            (DType::F32, &[3, 4096, 64], &[1]),
            (DType::BF16, &[256, 1024], &[1]),
            (DType::F32, &[209, 277], &[1]),
            (DType::F32, &[4096, 16], &[1]),
            (DType::I8, &[1 << 16], &[0]),
        ];
        let (mut n_plans, mut n_refused) = (0, 0);
        for (dtype, shape, axes) in cases {
            let (shape, axes) = (shape.to_vec(), Some(axes.to_vec()));
            let ops = vec!["sum".to_owned()];
            let workload = Workload::new("w", dtype, shape, axes, ops);
            let request = workload.request().unwrap();
            let call = check(&[workload.array_info()], &request).unwrap();
            let choice = coulis_plan::choose(&call.spec, &facts).unwrap();
            let turns = Knob::ALL.into_iter().flat_map(|knob| {
                knob.values(&choice.sketch).into_iter().map(move |value| vec![(knob, value)])
            });
            for changes in turns {
                let tuned = Tuned::As { strategy: choice.strategy.name.to_owned(), changes: changes.clone() };
                match planned_for(&call, &Request { tuned, ..request.clone() }, &facts) {
                    Ok(_) => n_plans += 1,
                    Err(error) if error.code == "plan/tuned" => n_refused += 1,
                    Err(error) => panic!("{dtype} {:?} {changes:?}: {error}", workload.shape),
                }
            }
        }
        assert!(n_plans > 3 * n_refused && n_refused > 0, "{n_plans} plans, {n_refused} refused");
    }
}
