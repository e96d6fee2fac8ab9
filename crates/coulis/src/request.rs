//! What a caller of `reduce` asks for.

use std::collections::BTreeMap;

use coulis_io::{Array, Scalar};
use coulis_ir::{DType, NanPolicy, Target};
use coulis_plan::Order;
use coulis_plan::tuned::Knob;

use crate::normalization::Normalize;
use crate::prologue::Prologue;
use crate::statistic::OwnReducer;

/// Where a call runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// Where the data lies, which for arrays in the host's memory is the CPU: to move them to a GPU takes as long as to
    /// read them there, or longer, since the link between the two is slower than the host's memory. Memory of a GPU that a
    /// caller of the Python package or of [`crate::reduce::Prepared::launch_on_stream`] holds is reduced there.
    #[default]
    Auto,
    /// The CPU, by compiled kernels where there is a compiler.
    Cpu,
    /// The CPU by compiled kernels, or an error.
    CpuCompiled,
    /// The CPU without a compiler.
    CpuExecuted,
    /// A CUDA device by number.
    Cuda(usize),
    /// The simulator of machines with threads.
    Sim {
        /// Lanes of a warp: 32 or 64.
        warp: u32,
        /// Orders of blocks, warps and branches that are tried; at least 1.
        orders: u32,
    },
    /// An NVIDIA GPU of an architecture, `sm_90a` say, which need not be here: [`crate::reduce::plan`] and
    /// [`crate::reduce::kernel`] answer for it, and nothing runs on it.
    Elsewhere {
        /// The architecture.
        arch: String,
    },
}

/// Lanes of a warp of the simulator where none are asked for.
pub const SIM_WARP: u32 = Target::LEAST_WARP;

impl DeviceChoice {
    /// The device of a word: `auto`, `cpu` or `cpu:0`, `cuda` or `cuda:N`, or `sim`; `None` for any other. What some callers have no
    /// use for, they refuse.
    pub fn named(word: &str) -> Option<DeviceChoice> {
        match word {
            "auto" => Some(DeviceChoice::Auto),
            "cpu" | "cpu:0" => Some(DeviceChoice::Cpu),
            "cuda" => Some(DeviceChoice::Cuda(0)),
            "sim" => Some(DeviceChoice::Sim { warp: SIM_WARP, orders: 1 }),
            _ => word.strip_prefix("cuda:")?.parse().ok().map(DeviceChoice::Cuda),
        }
    }
}

/// Which parameters a plan has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Tuned {
    /// What [`crate::tune::tune`] found for the shape class on this device; the planner's where nothing is known.
    #[default]
    Recorded,
    /// The planner's own.
    Ignored,
    /// Those of a strategy with these changes; a call that the strategy does not take is refused.
    As {
        /// Name of the strategy, which need not be the one that the planner takes.
        strategy: String,
        /// What is changed.
        changes: Vec<(Knob, i64)>,
    },
}

/// A reduction of one array (or of two of one shape, for `dot` and `wmean`), or a map that reads it again
/// with its statistics.
#[derive(Clone, Debug)]
pub struct Request {
    /// Statistics by name, of the catalogue or of `reducers`; none twice.
    pub ops: Vec<String>,
    /// Reducers of the caller's own that `ops` may name.
    pub reducers: Vec<OwnReducer>,
    /// What is asked for instead of statistics: a map over the elements, of which there are then no `ops`.
    pub normalize: Option<Normalize>,
    /// What is folded in place of the inputs' elements.
    pub prologue: Option<Prologue>,
    /// Reduced axes, negative ones from the end; `None` is all of them.
    pub axes: Option<Vec<i64>>,
    /// Whether reduced axes stay with extent 1.
    pub keepdims: bool,
    /// Where the elements of results lie.
    pub order: Order,
    /// Bool array, broadcast to the input: which elements take part.
    pub where_: Option<Array>,
    /// What becomes of NaN elements.
    pub nan: NanPolicy,
    /// Subtracted from the count in var and std.
    pub ddof: f64,
    /// Accumulator type of all statistics that accumulate.
    pub acc_dtype: Option<DType>,
    /// Output types by op name; `""` names the default of all.
    pub out_dtypes: BTreeMap<String, DType>,
    /// Initial values by op name, of the input's type: each is folded into its result as one more element, once.
    pub init: BTreeMap<String, Scalar>,
    /// Factor of the result by op name; `""` names the default of all.
    pub alpha: BTreeMap<String, f64>,
    /// Factor of the prior by op name; `""` names the default of all. 0 never reads the prior.
    pub beta: BTreeMap<String, f64>,
    /// Priors by result name, for results whose beta is not 0; `""` names that of the only one.
    pub prior: BTreeMap<String, Array>,
    /// CPU threads; `None` is all.
    pub threads: Option<usize>,
    /// Where to run.
    pub device: DeviceChoice,
    /// Trace text to run instead of the planner's choice.
    pub plan: Option<String>,
    /// Which parameters the plan has; a given trace has its own.
    pub tuned: Tuned,
}

impl Request {
    /// The named statistics over all axes, everything else by default.
    pub fn new(ops: &[&str]) -> Request {
        Request {
            ops: ops.iter().map(|op| (*op).to_owned()).collect(),
            reducers: Vec::new(),
            normalize: None,
            prologue: None,
            axes: None,
            keepdims: false,
            order: Order::RowMajor,
            where_: None,
            nan: NanPolicy::Propagate,
            ddof: 0.0,
            acc_dtype: None,
            out_dtypes: BTreeMap::new(),
            init: BTreeMap::new(),
            alpha: BTreeMap::new(),
            beta: BTreeMap::new(),
            prior: BTreeMap::new(),
            threads: None,
            device: DeviceChoice::Auto,
            plan: None,
            tuned: Tuned::Recorded,
        }
    }

    /// The same without the arrays in it.
    pub(crate) fn without_data(&self) -> Request {
        Request { where_: None, prior: BTreeMap::new(), ..self.clone() }
    }

    /// Whether the two are planned alike for the same arrays: they differ in the arrays in them at most.
    pub(crate) fn is_same_plan(&self, other: &Request) -> bool {
        let Request {
            ops,
            reducers,
            normalize,
            prologue,
            axes,
            keepdims,
            order,
            where_: _,
            nan,
            ddof,
            acc_dtype,
            out_dtypes,
            init,
            alpha,
            beta,
            prior: _,
            threads,
            device,
            plan,
            tuned,
        } = self;
        *ops == other.ops
            && *reducers == other.reducers
            && *normalize == other.normalize
            && *prologue == other.prologue
            && *axes == other.axes
            && *keepdims == other.keepdims
            && *order == other.order
            && *nan == other.nan
            && ddof.to_bits() == other.ddof.to_bits()
            && *acc_dtype == other.acc_dtype
            && *out_dtypes == other.out_dtypes
            && (init.is_empty() && other.init.is_empty()
                || format!("{init:?}") == format!("{:?}", other.init))
            && same_bits(alpha, &other.alpha)
            && same_bits(beta, &other.beta)
            && *threads == other.threads
            && *device == other.device
            && *plan == other.plan
            && *tuned == other.tuned
    }

    /// The same over these axes.
    pub fn over(self, axes: &[i64]) -> Request {
        Request { axes: Some(axes.to_vec()), ..self }
    }
}

/// Whether the factors are the same and make the same results, which those that are 0 of either sign do not.
fn same_bits(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> bool {
    let bits = |factors: &BTreeMap<String, f64>| factors.values().map(|v| v.to_bits()).collect::<Vec<_>>();
    a.keys().eq(b.keys()) && bits(a) == bits(b)
}

/// A result with its name: the op's, or `maxloc.value` and `maxloc.index`.
#[derive(Clone, Debug)]
pub struct NamedArray {
    /// Name.
    pub name: String,
    /// Values.
    pub array: Array,
}

/// How a call is run.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanInfo {
    /// Name of the strategy.
    pub name: String,
    /// The schedule as code, which can be edited and given back as `plan`.
    pub trace: String,
    /// Why each strategy was taken or passed over, a line each.
    pub reasons: Vec<String>,
    /// What is not the planner's choice, as `chunks=264 unroll=8`.
    pub tuned: Option<String>,
}

/// What a call gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Results in the order of the ops.
    pub results: Vec<NamedArray>,
    /// How it was run.
    pub plan: PlanInfo,
    /// Seconds that the kernel ran.
    pub seconds: f64,
    /// Bytes that had to move: the input once, every output once.
    pub bytes: u64,
    /// Name of the device.
    pub device: String,
    /// Reduced axes, ascending.
    pub axes: Vec<usize>,
    /// What the caller should know: no compiler found, say.
    pub notices: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::DeviceChoice;

    #[test]
    fn a_word_names_a_device_or_none() {
        assert_eq!(DeviceChoice::named("cpu:0"), Some(DeviceChoice::Cpu));
        assert_eq!(DeviceChoice::named("cuda:12"), Some(DeviceChoice::Cuda(12)));
        assert_eq!(DeviceChoice::named("sim"), Some(DeviceChoice::Sim { warp: 32, orders: 1 }));
        for wrong in ["", "gpu", "cpu:1", "cuda:", "cuda:-1", "cuda:x", "sim:0", "auto:0", "Cpu"] {
            assert_eq!(DeviceChoice::named(wrong), None, "{wrong}");
        }
    }
}
