//! The product of reducers: one fold that computes them all, with equal state kept once.
//!
//! Two fields are equal when type, identity, lift, combine and steps are, each written over fields that are equal
//! in turn. Mean and variance share their count, sum and mean the sum, min, max and absmax the NaN flag. Runs keep less
//! still: fields that are equal in runs are kept once there, and one field that NaN cannot pass tells all parts of it.
//! Source: seed 004, contract N16.

mod fusion;

use std::ops::Range;

use coulis_ir::visit::uses_any;
use coulis_ir::{DType, Expr, Lambda, NanPolicy, QuickStep, Reducer, Var};

use fusion::Fusion;

/// One reducer within a product.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name, unique in the product: that of the operation.
    pub name: String,
    /// The reducer by itself.
    pub reducer: Reducer,
    /// For each of its fields, which of the product's holds it.
    pub fields: Vec<usize>,
    /// Its results among the product's.
    pub results: Range<usize>,
}

/// Reducers folded together.
#[derive(Clone, Debug)]
pub struct Product {
    /// The one reducer. Its results are the parts' in order, named `name` or `name.result` where a part has several.
    pub reducer: Reducer,
    /// The parts, in the order given.
    pub parts: Vec<Part>,
}

/// Why reducers cannot be folded together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductError {
    /// No reducers.
    #[error("a product takes at least one reducer, got none")]
    Nothing,
    /// A name that stands twice.
    #[error("`{name}` is asked for twice; names in one call are unique")]
    Repeated {
        /// The name.
        name: String,
    },
    /// Parts that read elements of different types.
    #[error("`{name}` reads {found}, where `{first}` reads {wanted}")]
    Inputs {
        /// First part.
        first: String,
        /// The part that differs.
        name: String,
        /// Types that the first reads.
        wanted: String,
        /// Types that the part reads.
        found: String,
    },
    /// Parts that read fewer inputs than others, with NaN ignored.
    #[error(
        "with NaN ignored, `{first}` and `{name}` cannot share one read: an element is left out where any input of \
         its statistic is NaN, and `{wider}` reads one more than `{narrower}`; ask for them in calls of their own"
    )]
    LeftOut {
        /// First part.
        first: String,
        /// The part that differs.
        name: String,
        /// The one of both that reads more inputs.
        wider: String,
        /// The other one.
        narrower: String,
    },
    /// Parts that treat NaN differently.
    #[error("`{name}` and `{first}` treat NaN differently; one call has one policy")]
    Nan {
        /// First part.
        first: String,
        /// The part that differs.
        name: String,
    },
}

/// Folds reducers together. Parts may read fewer inputs than others, but under [`NanPolicy::Ignore`] all read the
/// same ones, as an element is left out of all parts or of none.
pub fn product(parts: &[(&str, Reducer)]) -> Result<Product, ProductError> {
    let (first, head) = parts.first().map(|(n, r)| (*n, r)).ok_or(ProductError::Nothing)?;
    let widest = parts.iter().rev().map(|(_, r)| r.input_dtypes()).max_by_key(Vec::len).unwrap_or_default();
    for (at, (name, reducer)) in parts.iter().enumerate() {
        if parts[..at].iter().any(|(n, _)| n == name) {
            return Err(ProductError::Repeated { name: (*name).to_owned() });
        }
        let (first, name) = (first.to_owned(), (*name).to_owned());
        let found = reducer.input_dtypes();
        let same_mask = reducer.nan == NanPolicy::Propagate || found.len() == head.input_dtypes().len();
        if widest.starts_with(&found) && !same_mask {
            let is_wider = found.len() > head.input_dtypes().len();
            let (wider, narrower) =
                if is_wider { (name.clone(), first.clone()) } else { (first.clone(), name.clone()) };
            return Err(ProductError::LeftOut { first, name, wider, narrower });
        }
        if !widest.starts_with(&found) {
            let (wanted, found) = (list(&head.input_dtypes()), list(&found));
            return Err(ProductError::Inputs { first, name, wanted, found });
        }
        if reducer.nan != head.nan {
            return Err(ProductError::Nan { first, name });
        }
    }
    let mut fusion = Fusion::new(&widest);
    let without_runs = |keeps: fn(&Reducer) -> bool| -> Vec<(&str, Reducer)> {
        let of = |r: &Reducer| Reducer { quick: r.quick.clone().filter(|_| keeps(r)), ..r.clone() };
        parts.iter().map(|(n, r)| (*n, of(r))).collect()
    };
    // What only runs keep is not matched with anything: a reducer by itself has it, one among others does without runs.
    let of_one = match parts {
        [(_, reducer)] => reducer.quick.as_ref().map(QuickStep::condensed),
        _ => None,
    };
    let mut matched = without_runs(runs_like_its_state);
    if !runs_agree(&matched, &widest) {
        matched = without_runs(|_| false);
    }
    let parts = &matched[..];
    for (name, reducer) in parts {
        fusion.add(name, reducer);
    }
    let mut product = fusion.finish(parts);
    product.reducer.quick = product.reducer.quick.or(of_one);
    Ok(product)
}

/// Whether no part that knows no short runs shares a field that runs of another part keep in another form. Sharing
/// the field is worth more than its runs.
fn runs_agree(parts: &[(&str, Reducer)], inputs: &[DType]) -> bool {
    let elements: Vec<Expr> = inputs.iter().map(|d| Var::new("x", *d).expr()).collect();
    let position = Var::new("i", DType::I64).expr();
    let lifted = |lift: &Lambda| -> Vec<Expr> {
        let own = &elements[..lift.params.len() - 1];
        lift.apply(&own.iter().chain([&position]).cloned().collect::<Vec<_>>())
    };
    let others: Vec<(Vec<Expr>, &Reducer, &QuickStep, Vec<Expr>)> = (parts.iter())
        .filter_map(|(_, r)| r.quick.as_ref().map(|q| (lifted(&r.lift), r, q, lifted(&q.lift))))
        .collect();
    parts.iter().filter(|(_, r)| r.quick.is_none()).all(|(_, plain)| {
        let lifts = lifted(&plain.lift);
        others.iter().all(|(other_lifts, other, quick, run_lifts)| {
            (0..plain.arity()).all(|i| {
                (0..other.arity()).all(|j| {
                    let alike = plain.identity[i] == other.identity[j]
                        && lifts[i] == other_lifts[j]
                        && combined_alone(plain, i) == combined_alone(other, j);
                    let as_is = quick.identity[j] == other.identity[j] && run_lifts[j] == other_lifts[j];
                    !alike || as_is
                })
            })
        })
    })
}

/// How a field is combined, with equal variables for equal fields of different reducers; `None` where that takes other
/// fields.
fn combined_alone(reducer: &Reducer, field: usize) -> Option<Lambda> {
    let n = reducer.arity();
    let (left, right) = (&reducer.combine.params[field], &reducer.combine.params[n + field]);
    let others: Vec<Var> =
        reducer.combine.params.iter().filter(|p| *p != left && *p != right).cloned().collect();
    let body = reducer.combine.body[field].clone();
    let alone = Lambda { params: vec![left.clone(), right.clone()], body: vec![body] };
    (!uses_any(&alone.body[0], &others)).then_some(alone)
}

/// Whether each field of the reducer has its own in a run, as fields are matched by.
fn runs_like_its_state(reducer: &Reducer) -> bool {
    reducer.quick.as_ref().is_none_or(|quick| quick.identity.len() == reducer.arity())
}

fn list(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(" and ")
}

impl Product {
    /// Results of a state, the initial value of each part (where given) folded in as one more element.
    ///
    /// `state`: the product's fields. `inits`: one a part, a scalar of the input's type; a part that reads several
    /// inputs takes none. A part with an initial value folds it into its own copy of its fields, so that it does not
    /// leak into parts that share them.
    pub fn finish_with(&self, state: &[Expr], inits: &[Option<Expr>]) -> Vec<Expr> {
        let mut results = Vec::new();
        for (part, init) in self.parts.iter().zip(inits) {
            let own: Vec<Expr> = part.fields.iter().map(|f| state[*f].clone()).collect();
            let own = match init {
                None => own,
                Some(value) => {
                    let nowhere = Expr::constant(-1, DType::I64);
                    let first = part.reducer.lift(std::slice::from_ref(value), &nowhere);
                    part.reducer.merge(&first, &own)
                }
            };
            results.extend(part.reducer.finish(&own));
        }
        results
    }
}

#[cfg(test)]
mod tests;
