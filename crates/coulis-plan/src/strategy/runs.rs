//! How a fold runs: in runs of a quick step where that pays.

use std::iter::successors;

use coulis_ir::chains::Joined;
use coulis_ir::{Expr, Lambda, QuickStep, Rewalk};

use super::work::{stepped, work_of};
use super::{Facts, floor_pow2, state_bytes, widest_field};

/// How a fold runs; see [`Facts::runs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Elements of one vector operation.
    pub lanes: i64,
    /// Bytes that one lane keeps while it folds.
    pub state_bytes: i64,
    /// Steps of a run; 1 is no runs.
    pub steps: i64,
    /// Chains of so many steps that a run may be made of, where it would rather be longer: 1 where they would not fit into
    /// registers.
    pub chains: i64,
    /// Vector operations of a step.
    pub operations: i64,
    /// Whether runs keep at most half the width of states.
    pub are_narrower: bool,
}

/// Most chains of a run.
const MOST_CHAINS: i64 = 4;

impl Facts<'_> {
    /// Lanes, bytes of what each keeps while it folds, and steps of a run, at most `longest`. Runs are worth it where
    /// they keep their state in at most half the width, or where their steps are less work, on targets whose vectors are
    /// registers.
    pub fn runs(&self, longest: i64) -> Runs {
        let reducer = &self.spec.reducer;
        let step = reducer.step.as_ref().unwrap_or(&reducer.combine);
        let step_work = work_of(&stepped(step, &reducer.lift));
        let operations = |lanes: i64, work: usize| lanes * work as i64 / i64::from(self.target.vector_bytes);
        let lanes = self.lanes();
        let none = Runs {
            lanes,
            state_bytes: state_bytes(reducer),
            steps: 1,
            chains: 1,
            operations: operations(lanes, step_work),
            are_narrower: false,
        };
        let Some(quick) = reducer.quick.as_ref().filter(|_| self.target.vectors_are_registers) else {
            return none;
        };
        let steps = floor_pow2(longest.min(quick.max_steps.into()).min(quick.most_counted()));
        let dtypes = quick.vector_dtypes(steps);
        let bytes = || dtypes.iter().map(|dtype| dtype.bytes());
        let widest = bytes().max().unwrap_or(1);
        let are_narrower = 2 * widest <= widest_field(reducer);
        let once = |step: &Lambda| work_of(&stepped(step, &quick.lift));
        // Walks that few runs need cost little.
        let walks = quick.rewalks.iter().filter(|walk| walk.is_always());
        let of_walks: usize = walks.map(|walk| once(&walk.step)).sum();
        let run_work = once(&quick.step) + of_walks;
        if self.spec.passes_over() || steps < 4 || !(are_narrower || run_work < step_work) {
            return none;
        }
        let lanes = self.lanes_of(widest);
        let state_bytes = bytes().map(|b| b as i64).sum();
        let operations = operations(lanes, run_work);
        let chains = if steps < longest { self.chains(quick, lanes) } else { 1 };
        Runs { lanes, state_bytes, steps, chains, operations, are_narrower }
    }

    /// Steps of the longest run of the reducer's quick step; 1 where it has none.
    pub fn longest_run(&self) -> i64 {
        self.spec.reducer.quick.as_ref().map_or(1, |quick| i64::from(quick.max_steps))
    }

    /// Whether runs may be walked again, so that what they bring stays in registers until their end.
    pub fn may_rewalk(&self) -> bool {
        self.rewalks().next().is_some()
    }

    /// Whether each run is walked again, so that its elements stay in registers until then.
    pub fn always_rewalks(&self) -> bool {
        self.rewalks().any(Rewalk::is_always)
    }

    fn rewalks(&self) -> impl Iterator<Item = &Rewalk> {
        self.spec.reducer.quick.iter().flat_map(|quick| &quick.rewalks)
    }

    /// The same runs of as many lanes as one register of so many bytes holds, where they have more. Each lane is closed into a state as often as it
    /// has runs, and fewer lanes of longer runs are closed more seldom.
    pub fn of_one_register(&self, runs: &Runs, register: i64) -> Option<Runs> {
        let quick = self.spec.reducer.quick.as_ref().filter(|_| runs.steps > 1)?;
        let widest = quick.vector_dtypes(runs.steps).iter().map(|dtype| dtype.bytes()).max()?;
        let lanes = register / widest as i64;
        let chains = if runs.chains > 1 { self.chains(quick, lanes) } else { 1 };
        let operations = runs.operations * lanes / runs.lanes;
        (lanes < runs.lanes).then_some(Runs { lanes, chains, operations, ..*runs })
    }

    /// Chains of a run, of which the states of so many lanes leave a quarter of the registers to operands. What only counts
    /// is known where runs are whole, and not kept.
    fn chains(&self, quick: &QuickStep, lanes: i64) -> i64 {
        let Some(joined) = quick.joined() else { return 1 };
        let most = floor_pow2(i64::from(quick.max_joined / quick.max_steps).min(MOST_CHAINS));
        let kept = quick.identity.iter().zip(&joined).zip(&quick.lift.body);
        let kept: Vec<(&Expr, &Joined)> =
            kept.filter(|(_, each)| each.as_int().is_none()).map(|(field, _)| field).collect();
        let fits = |chains: &i64| {
            let bytes = kept.iter().map(|(e, joined)| e.dtype().bytes() * joined.count(*chains as usize));
            lanes * bytes.sum::<usize>() as i64 <= i64::from(self.target.register_bytes) / 4 * 3
        };
        successors(Some(most), |chains| Some(chains / 2)).find(|n| *n <= 1 || fits(n)).unwrap_or(1)
    }
}
