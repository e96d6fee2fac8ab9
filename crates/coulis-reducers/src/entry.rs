//! What an entry of the catalogue says of itself, and what is asked of it.

use coulis_ir::expr::promoted_dtype;
use coulis_ir::{DType, NanPolicy, Reducer};

use crate::catalogue::CATALOGUE;
use crate::exact::moments::FromMoments;
use crate::exact::{Exact, ExactFn, Moments};

/// What a call asks of a reducer.
#[derive(Clone, Debug, PartialEq)]
pub struct ReducerRequest {
    /// Types of the elements, one an input.
    pub inputs: Vec<DType>,
    /// Accumulator type, for reducers that accumulate; the others (extrema, positions, counts, bools) keep their
    /// state whatever is asked. `float32` bounds the error by that of `float32`; the state may be wider.
    pub acc: Option<DType>,
    /// What var and std take off the count; any finite number. Others do not look at it.
    pub ddof: f64,
    /// What becomes of NaN elements.
    pub nan: NanPolicy,
    /// Type in which states keep positions: `int32` where all positions are known to fit, which halves what they cost.
    /// Results have `int64` all the same.
    pub position: DType,
    /// Whether elements come in ascending position. Where they may not, steps and runs look at positions, which costs more.
    pub ascending: bool,
    /// Whether runs may walk over their elements twice as a rule, as pays where these stay in registers.
    pub twice: bool,
    /// Whether runs note positions as they go, as pays where they are long and elements do not stay.
    pub in_passing: bool,
    /// Whether some elements may take no part.
    pub leaves_out: bool,
    /// Whether sums of `float32` elements may run in `float32`, as pays where vectors are registers and no other statistic
    /// shares the sum.
    pub narrow: bool,
    /// Whether runs are long, so that sums of few bits may run in a type that holds them for some hundred steps only.
    pub long: bool,
    /// Whether runs that left their range are given up, and their elements folded one by one, as pays where vectors are
    /// registers. Where they are not, a second walk brings such runs into range, so that their state stays as narrow.
    pub one_by_one: bool,
    /// Most elements of a result where these are known to be few, for which sums may be kept in what runs of as many are.
    pub few: Option<i64>,
}

impl ReducerRequest {
    /// A request with the defaults: accumulators by contract N4, ddof 0, NaN propagated.
    pub fn new(inputs: &[DType]) -> ReducerRequest {
        ReducerRequest {
            inputs: inputs.to_vec(),
            acc: None,
            ddof: 0.0,
            nan: NanPolicy::Propagate,
            position: DType::I64,
            ascending: true,
            twice: false,
            in_passing: false,
            leaves_out: false,
            narrow: false,
            long: false,
            one_by_one: false,
            few: None,
        }
    }

    /// The same with the accumulator type.
    pub fn with_acc(self, acc: DType) -> ReducerRequest {
        ReducerRequest { acc: Some(acc), ..self }
    }

    /// The same with ddof.
    pub fn with_ddof(self, ddof: f64) -> ReducerRequest {
        ReducerRequest { ddof, ..self }
    }

    /// The same with the NaN policy.
    pub fn with_nan(self, nan: NanPolicy) -> ReducerRequest {
        ReducerRequest { nan, ..self }
    }

    /// The same for at most so many elements a result.
    pub fn with_length(self, n_elements: i64) -> ReducerRequest {
        let position = if i32::try_from(n_elements).is_ok() { DType::I32 } else { DType::I64 };
        ReducerRequest { position, ..self }
    }

    /// The same for elements that come in any order of positions.
    pub fn in_any_order(self) -> ReducerRequest {
        ReducerRequest { ascending: false, ..self }
    }

    /// The same with runs that may walk over their elements twice.
    pub fn with_two_walks(self) -> ReducerRequest {
        ReducerRequest { twice: true, ..self }
    }

    /// The same with runs that note positions as they go.
    pub fn with_positions_in_passing(self) -> ReducerRequest {
        ReducerRequest { in_passing: true, ..self }
    }

    /// The same where some elements may take no part.
    pub fn with_elements_left_out(self) -> ReducerRequest {
        ReducerRequest { leaves_out: true, ..self }
    }

    /// The same with sums of `float32` elements that may run in `float32`.
    pub fn with_narrow_runs(self) -> ReducerRequest {
        ReducerRequest { narrow: true, ..self }
    }

    /// The same with runs that are long.
    pub fn with_long_runs(self) -> ReducerRequest {
        ReducerRequest { long: true, ..self }
    }

    /// The same with runs that are given up where they left their range.
    pub fn with_runs_given_up(self) -> ReducerRequest {
        ReducerRequest { one_by_one: true, ..self }
    }

    /// The same for at most so many elements a result, of which states may take advantage that are in vectors.
    pub fn with_few(self, n_elements: i64) -> ReducerRequest {
        ReducerRequest { few: Some(n_elements), ..self }
    }

    /// Whether any input is a float.
    pub fn has_float(&self) -> bool {
        self.inputs.iter().any(|d| d.is_float())
    }

    /// The one type that all inputs are promoted to.
    pub fn promoted(&self) -> DType {
        self.inputs.iter().copied().reduce(promoted_dtype).unwrap_or(DType::F32)
    }
}

/// The type in which elements of a type are computed and extrema kept: `float32` for narrower floats, `uint8` for
/// `bool`, else the type itself. Source: contract N4.
pub const fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::U8,
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::F64
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => dtype,
    }
}

/// The type to which an element is widened before a map or a lift of the caller's own sees it (contracts N1 and N4), where
/// `acc` is the accumulator that the call asks for. `bool` stays: no arithmetic is done in it.
///
/// An accumulator that is a float takes integers as `float64`, which is what their sums are kept in then.
pub fn widened_dtype(element: DType, acc: Option<DType>) -> DType {
    match (element, acc) {
        (DType::Bool, _) => DType::Bool,
        (_, Some(acc)) if element.is_int() && acc.is_float() => DType::F64,
        (_, Some(acc)) => promoted_dtype(compute_dtype(element), acc),
        (_, None) if element.is_signed_int() => DType::I64,
        (_, None) if element.is_unsigned_int() => DType::U64,
        (_, None) => compute_dtype(element),
    }
}

/// The answer for a row without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// A value, in words for the documentation; `finish` of the identity gives it.
    Value(&'static str),
    /// A typed error, unless the reducer takes an initial value and one is given.
    Refused,
}

/// One reducer of the catalogue.
pub struct Entry {
    /// Name in every door.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// State, error bound and limits, as sentences for the documentation.
    pub details: &'static str,
    /// Number of inputs, 1 or 2.
    pub n_inputs: usize,
    /// What an empty row gives.
    pub empty: Empty,
    /// Whether a call may give an initial value, which is folded in as one more element that has no position.
    pub takes_init: bool,
    /// Whether `ddof` matters.
    pub takes_ddof: bool,
    /// Whether the result is a number of elements, so that it is at most as large as there are.
    pub counts: bool,
    /// Makes the reducer of a checked request.
    pub(crate) make: fn(&ReducerRequest) -> Result<Reducer, ReducerError>,
    /// The exact answer.
    pub(crate) exact: ExactFn,
    /// The exact answer of a row from its moments; `None` where only the elements of the row tell.
    pub(crate) from_moments: Option<FromMoments>,
    /// The reducer of tile calls for elements of a type, where it is another.
    pub(crate) in_tiles: fn(DType) -> Option<Reducer>,
}

impl Entry {
    /// The reducer for a request.
    pub fn build(&self, request: &ReducerRequest) -> Result<Reducer, ReducerError> {
        let found = request.inputs.len();
        if found != self.n_inputs {
            return Err(ReducerError::InputCount { op: self.name, wanted: self.n_inputs, found });
        }
        if self.takes_ddof && !request.ddof.is_finite() {
            return Err(ReducerError::Ddof { op: self.name, ddof: request.ddof });
        }
        (self.make)(request)
    }

    /// The reducer that tile calls name, for sources of these types.
    ///
    /// A tile call keeps the types that its program declares (contract N4): sums, products and extrema are one value of the
    /// accumulator's type, which is converted once, when it is stored. States elsewhere are wider, which makes them exact for
    /// any length; here the program fixes the order, and with it the error.
    pub fn build_in_tiles(&self, inputs: &[DType]) -> Result<Reducer, ReducerError> {
        let own = if let [input] = inputs { (self.in_tiles)(*input) } else { None };
        own.map_or_else(|| self.build(&ReducerRequest::new(inputs)), Ok)
    }

    /// Whether an empty row is a typed error unless an initial value is given.
    pub fn needs_init_when_empty(&self) -> bool {
        self.empty == Empty::Refused && self.takes_init
    }

    /// Whether an empty row has no answer at all.
    pub fn refuses_empty(&self) -> bool {
        self.empty == Empty::Refused && !self.takes_init
    }

    /// Whether a row without elements is an error where no initial value is given.
    pub fn has_no_value_of_none(&self) -> bool {
        self.empty == Empty::Refused
    }

    /// Whether the `index` result tells at run time that no element took part, by -1: then the call fails with a
    /// typed error (a row masked out, or all NaN when NaN is ignored).
    pub fn empty_index_is_error(&self) -> bool {
        self.refuses_empty()
    }

    /// Whether exact results follow from the moments of rows, of some at least.
    pub fn follows_from_moments(&self) -> bool {
        self.from_moments.is_some()
    }

    /// The exact results of a row from its moments; `None` where they do not follow from these and
    /// [`reference`](crate::exact::reference) has to see the elements.
    pub fn answer_from(&self, moments: &Moments, request: &ReducerRequest) -> Option<Vec<Exact>> {
        (self.from_moments?)(moments, request)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({})", self.name)
    }
}

/// A request that a reducer does not take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReducerError {
    /// Another number of inputs.
    #[error("`{op}` takes {wanted} input(s), got {found}")]
    InputCount {
        /// The reducer.
        op: &'static str,
        /// Number that it takes.
        wanted: usize,
        /// Number that was given.
        found: usize,
    },
    /// An accumulator that cannot hold what is accumulated.
    #[error("`{op}` of {input} cannot accumulate in {acc}; legal accumulators are {legal}")]
    Accumulator {
        /// The reducer.
        op: &'static str,
        /// Type of the elements.
        input: DType,
        /// The accumulator that was asked for.
        acc: DType,
        /// Those that can be asked for.
        legal: &'static str,
    },
    /// A ddof that is no finite number.
    #[error("`{op}` takes a finite ddof, got {ddof}")]
    Ddof {
        /// The reducer.
        op: &'static str,
        /// The value that was given.
        ddof: f64,
    },
}

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown reducer `{name}`; {}", hint(near))]
pub struct UnknownReducer {
    /// The name that was asked for.
    pub name: String,
    /// Legal names close to it, best first.
    pub near: Vec<&'static str>,
}

fn hint(near: &[&'static str]) -> String {
    match near {
        [] => {
            let all: Vec<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
            format!("legal names are {}", all.join(", "))
        }
        [one] => format!("did you mean `{one}`?"),
        names => format!("legal names near it are {}", names.join(", ")),
    }
}
