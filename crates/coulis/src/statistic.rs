//! Statistics of a call: those of the catalogue, and reducers of the caller's own.
//!
//! Everything that `reduce` asks of a statistic it asks here, so that both kinds take one way through planning, running
//! and the treatment of empty rows.

use std::sync::Arc;

use coulis_ir::print::print_reducer;
use coulis_ir::visit::for_each_expr;
use coulis_ir::{Claims, DType, Expr, Node, Reducer};
use coulis_reducers::{ClaimError, Empty, Entry, commutes_on_ties, spot_check, with_places};

use crate::error::Error;

/// Where the search for counterexamples of a claim starts; fixed, so that an answer repeats.
const SEED: u64 = 16;

/// A user-defined reducer, which `ops` of a request may name in addition to the catalogue's.
///
/// Its results start from the reducer's identity, so a row without elements gives the `finish` of the identity. An initial
/// value is one more element, the first, unless the reducer looks at positions. Where the combine tells left from right on equal
/// values, results are those of a fold in the order of the elements, whatever the plan (contract N9).
#[derive(Clone, Debug)]
pub struct OwnReducer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    reducer: Reducer,
    /// Its text, by which kernels of it are known.
    text: String,
    /// Whether its functions, as they were given, look at positions.
    looks_at_positions: bool,
}

impl OwnReducer {
    /// A reducer under its name, after a search for counterexamples of what it claims (contract N16).
    ///
    /// Errors: a name that the catalogue has or that is no identifier; functions that use other variables than their
    /// parameters; a claim that does not hold.
    pub fn new(reducer: Reducer) -> Result<OwnReducer, Error> {
        let name = &reducer.name;
        let refused = |message: String| Err(Error::user("reduce/reducer", message));
        let mut letters = name.chars();
        let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return refused(format!("a reducer's name is to be ASCII letters, digits and `_`, got `{name}`"));
        }
        if coulis_reducers::find(name).is_ok() {
            return refused(format!(
                "`{name}` is a statistic of the catalogue; give the reducer another name"
            ));
        }
        for (what, lambda) in
            [("lift", &reducer.lift), ("combine", &reducer.combine), ("finish", &reducer.finish)]
        {
            if let Some(found) = lambda.stranger() {
                let message =
                    format!("`{what}` of reducer `{name}` uses `{found}`, which is not its parameter");
                return refused(message);
            }
            if let Some(found) = computed_in_storage(&lambda.body) {
                return refused(format!("`{what}` of reducer `{name}` computes `{found}`"));
            }
        }
        let looks_at_positions = !reducer.ignores_position();
        match spot_check(&reducer, SEED).and_then(|()| told_apart(reducer)) {
            Ok(reducer) => Ok(OwnReducer::of(reducer, looks_at_positions)),
            Err(error) => refused(error.to_string()),
        }
    }

    /// A reducer that folds as others do whose laws hold already. Its state may hold them up to rounding only: what is
    /// compensated for, say, is kept in fields of its own.
    pub(crate) fn derived(reducer: Reducer) -> OwnReducer {
        let looks_at_positions = !reducer.ignores_position();
        OwnReducer::of(reducer, looks_at_positions)
    }

    fn of(reducer: Reducer, looks_at_positions: bool) -> OwnReducer {
        let text = print_reducer(&reducer);
        OwnReducer(Arc::new(Inner { reducer, text, looks_at_positions }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.reducer.name
    }

    /// The reducer.
    pub fn reducer(&self) -> &Reducer {
        &self.0.reducer
    }
}

impl PartialEq for OwnReducer {
    /// Equal in everything that a kernel of it depends on.
    fn eq(&self, other: &OwnReducer) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.text == other.0.text
    }
}

/// The reducer as it may be folded: one that claims to commute, but for which of equal values it keeps, is given the places of its
/// elements, or loses the claim where that is no question of which one it keeps.
pub(crate) fn told_apart(reducer: Reducer) -> Result<Reducer, ClaimError> {
    if !reducer.claims.commutative || commutes_on_ties(&reducer, SEED)? {
        return Ok(reducer);
    }
    Ok(with_places(&reducer).unwrap_or_else(|| {
        let claims = Claims { commutative: false, ..reducer.claims };
        Reducer { claims, ..reducer }
    }))
}

/// What is computed with values of a type that they are only stored in, and what to do instead, in words.
pub(crate) fn computed_in_storage(values: &[Expr]) -> Option<String> {
    let mut found = None;
    for expr in values {
        for_each_expr(expr, &mut |e| match e.node() {
            Node::Binary(op, a, _) if a.dtype().is_storage_only() => {
                found = Some((op.symbol(), a.dtype()));
            }
            _ => {}
        });
    }
    let words = |(op, dtype)| {
        format!(
            "{op}` of {dtype}, which values are only stored in; convert them first: `x.astype(\"float32\")"
        )
    };
    found.map(words)
}

/// What a call folds under one name.
#[derive(Clone, Debug)]
pub(crate) enum Statistic {
    /// One of the catalogue.
    Listed(&'static Entry),
    /// One of the caller's own.
    Own(OwnReducer),
}

impl Statistic {
    /// The statistic of that name: one of `own`, or of the catalogue.
    pub(crate) fn find(name: &str, own: &[OwnReducer]) -> Result<Statistic, Error> {
        match own.iter().find(|r| r.name() == name) {
            Some(reducer) => Ok(Statistic::Own(reducer.clone())),
            None => Ok(Statistic::Listed(coulis_reducers::find(name)?)),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Statistic::Listed(entry) => entry.name,
            Statistic::Own(own) => own.name(),
        }
    }

    /// Number of inputs that it reads.
    pub(crate) fn n_inputs(&self) -> usize {
        match self {
            Statistic::Listed(entry) => entry.n_inputs,
            Statistic::Own(own) => own.reducer().input_dtypes().len(),
        }
    }

    /// The reducer for elements of these types.
    pub(crate) fn build(&self, request: &coulis_reducers::ReducerRequest) -> Result<Reducer, Error> {
        match self {
            Statistic::Listed(entry) => Ok(entry.build(request)?),
            Statistic::Own(own) => {
                let reducer = own.reducer();
                let wanted = reducer.input_dtypes();
                if wanted != request.inputs {
                    let message = format!(
                        "reducer `{}` folds {}, the input holds {}",
                        own.name(),
                        names(&wanted),
                        names(&request.inputs)
                    );
                    return Err(Error::user("reduce/dtype", message));
                }
                let reducer = Reducer { nan: request.nan, ..reducer.clone() };
                Ok(if request.ascending { reducer } else { reducer.in_any_order() })
            }
        }
    }

    /// Whether a row without elements has no value unless an initial one is given.
    pub(crate) fn refuses_empty(&self) -> bool {
        match self {
            Statistic::Listed(entry) => entry.empty == Empty::Refused,
            Statistic::Own(_) => false,
        }
    }

    /// Whether the last result tells at run time that no element took part, by -1.
    pub(crate) fn empty_index_is_error(&self) -> bool {
        match self {
            Statistic::Listed(entry) => entry.empty_index_is_error(),
            Statistic::Own(_) => false,
        }
    }

    /// Whether the result is a number of elements.
    pub(crate) fn counts(&self) -> bool {
        match self {
            Statistic::Listed(entry) => entry.counts,
            Statistic::Own(_) => false,
        }
    }

    /// Whether a call may give an initial value.
    pub(crate) fn takes_init(&self) -> bool {
        match self {
            Statistic::Listed(entry) => entry.takes_init,
            Statistic::Own(own) => !own.0.looks_at_positions,
        }
    }

    /// Whether `ddof` matters.
    pub(crate) fn takes_ddof(&self) -> bool {
        match self {
            Statistic::Listed(entry) => entry.takes_ddof,
            Statistic::Own(_) => false,
        }
    }

    /// What tells it from others in the name of a kernel.
    pub(crate) fn key(&self) -> &str {
        match self {
            Statistic::Listed(entry) => entry.name,
            Statistic::Own(own) => &own.0.text,
        }
    }
}

fn names(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ")
}
