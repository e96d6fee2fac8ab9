//! Reducers in text: `T.comm_reducer(lambda x, y: x + y, [T.float32(0)], ...)`.
//!
//! Without further arguments a state is an element, and is the result too. `docs/dialect.md` lists the arguments.

use coulis_ir::reducer::QuickStep;
use coulis_ir::{DType, ErrorBound, Expr, Field, Lambda, NanPolicy, Reducer, Ties, Ty, Var};

use crate::error::{ParseErrorKind, Parsed};
use crate::expr::type_fault;
use crate::func::{Reader, dtype_of};
use crate::names::Entity;
use crate::tree::{Keyword, Keywords, Term, TermKind};

const F: &str = "T.comm_reducer";

impl Reader<'_> {
    /// Reads the arguments of `T.comm_reducer`.
    pub(crate) fn comm_reducer(
        &mut self,
        term: &Term,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Reducer> {
        let [combine, identity] = self.exactly(term, F, args)?;
        let identity: Vec<Expr> = identity.items().iter().map(|i| self.expr(i)).collect::<Parsed<_>>()?;
        if identity.is_empty() || identity.iter().any(|i| i.as_int().is_none() && i.as_float().is_none()) {
            return Err(args[1].unexpected("a list of constants, one a field"));
        }
        let state: Vec<DType> = identity.iter().map(Expr::dtype).collect();
        let twice = [&state[..], &state[..]].concat();
        let combine = self.lambda(combine, &twice, Some(&state))?;
        let mut reducer = Reducer::plain(combine, identity);
        let mut keywords = Keywords::new(F, keywords);
        if let Some(name) = keywords.take("name") {
            reducer.name = name.str()?.to_owned();
        }
        if let Some(fields) = keywords.take("fields") {
            reducer.fields = read_fields(fields)?;
            if reducer.fields.iter().map(|f| f.dtype).ne(state.iter().copied()) {
                return Err(fields.unexpected("a name and the identity's dtype for each identity"));
            }
        }
        reducer.results = reducer.fields.clone();
        let inputs = keywords.take("inputs");
        if let Some(lift) = keywords.take("lift") {
            let inputs: Vec<DType> = match inputs {
                Some(inputs) => inputs.items().iter().map(dtype_of).collect::<Parsed<_>>()?,
                None => reducer.lift.params.iter().map(Var::dtype).collect(),
            };
            reducer.lift = self.lambda(lift, &inputs, Some(&state))?;
        } else if let Some(inputs) = inputs {
            return Err(inputs.unexpected("`inputs=` only together with `lift=`"));
        }
        if let Some(step) = keywords.take("step") {
            reducer.step = Some(self.lambda(step, &twice, Some(&state))?);
        }
        if let Some(ascending) = keywords.take("step_needs_ascending") {
            reducer.step_needs_ascending = ascending.bool()?;
        }
        if let Some(quick) = keywords.take("quick") {
            reducer.quick = Some(self.quick_step(quick, &reducer)?);
        }
        if let Some(finish) = keywords.take("finish") {
            reducer.finish = self.lambda(finish, &state, None)?;
        }
        if let Some(results) = keywords.take("results") {
            reducer.results = read_fields(results)?;
        }
        if reducer.results.len() != reducer.finish.body.len() {
            let what = "results of the reducer".to_owned();
            let wanted = reducer.finish.body.len().to_string();
            return Err(term.fault(ParseErrorKind::Count { what, wanted, found: reducer.results.len() }));
        }
        for (key, claim) in [
            ("associative", &mut reducer.claims.associative),
            ("commutative", &mut reducer.claims.commutative),
            ("idempotent", &mut reducer.claims.idempotent),
        ] {
            if let Some(value) = keywords.take(key) {
                *claim = value.bool()?;
            }
        }
        if let Some(nan) = keywords.take("nan") {
            reducer.nan = match nan.str()? {
                "propagate" => NanPolicy::Propagate,
                "ignore" => NanPolicy::Ignore,
                _ => return Err(nan.unexpected("\"propagate\" or \"ignore\"")),
            };
        }
        if let Some(ties) = keywords.take("ties") {
            reducer.ties = match ties.str()? {
                "none" => Ties::None,
                "first" => Ties::First,
                "last" => Ties::Last,
                _ => return Err(ties.unexpected("\"none\", \"first\" or \"last\"")),
            };
        }
        if let Some(error) = keywords.take("error") {
            reducer.error = error_bound(error)?;
        }
        keywords.done()?;
        Ok(reducer)
    }

    /// `([identities], lift, step, close, max_steps)`.
    fn quick_step(&mut self, quick: &Term, reducer: &Reducer) -> Parsed<QuickStep> {
        let [identity, lift, step, close, max_steps] = quick.items() else {
            return Err(quick.unexpected("`([identities], lift, step, close, max_steps)`"));
        };
        let longest = max_steps.fitting("the longest run", "32-bit integers without sign")?;
        let identities: Vec<Expr> = identity.items().iter().map(|i| self.expr(i)).collect::<Parsed<_>>()?;
        let is_constant = |e: &Expr| e.as_int().is_some() || e.as_float().is_some();
        if identities.is_empty() || !identities.iter().all(is_constant) {
            return Err(identity.unexpected("a list of constants, one a field of the run"));
        }
        let run: Vec<DType> = identities.iter().map(Expr::dtype).collect();
        let state: Vec<DType> = reducer.identity.iter().map(Expr::dtype).collect();
        let inputs: Vec<DType> = reducer.lift.params.iter().map(Var::dtype).collect();
        Ok(QuickStep {
            identity: identities,
            lift: self.lambda(lift, &inputs, Some(&run))?,
            step: self.lambda(step, &[&run[..], &run[..]].concat(), Some(&run))?,
            close: self.lambda(close, &[&state[..], &run[..]].concat(), Some(&state))?,
            max_steps: longest,
            max_joined: longest,
            rewalks: Vec::new(),
            spoilt: None,
            nan_witness: None,
        })
    }

    /// A lambda of scalars of these types; `results` are the types of its results where they are fixed.
    fn lambda(&mut self, term: &Term, types: &[DType], results: Option<&[DType]>) -> Parsed<Lambda> {
        let TermKind::Lambda(names, body) = &term.kind else {
            return Err(term.unexpected("a lambda"));
        };
        if names.len() != types.len() {
            let what = "parameters of this lambda".to_owned();
            let kind = ParseErrorKind::Count { what, wanted: types.len().to_string(), found: names.len() };
            return Err(term.fault(kind));
        }
        let items = match &body.kind {
            TermKind::Tuple(items) => items,
            _ => std::slice::from_ref(&**body),
        };
        if let Some(results) = results
            && results.len() != items.len()
        {
            let what = "results of this lambda".to_owned();
            let kind = ParseErrorKind::Count { what, wanted: results.len().to_string(), found: items.len() };
            return Err(term.fault(kind));
        }
        let mark = self.scope.mark();
        let mut params = Vec::new();
        for (name, &dtype) in names.iter().zip(types) {
            let var = Var::new(name, dtype);
            self.scope.define(name, Entity::Var(var.clone()));
            params.push(var);
        }
        let mut body = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let wanted = results.map(|r| r[i]);
            let value = match wanted {
                Some(dtype) => self.expr_as(item, dtype)?,
                None => self.expr(item)?,
            };
            let fits = value.lanes() == 1 && wanted.is_none_or(|dtype| value.ty() == Ty::scalar(dtype));
            if !fits {
                let legal = wanted.map_or("scalars", DType::name);
                return Err(type_fault(item, "a result of this lambda", value.ty(), legal));
            }
            body.push(value);
        }
        self.scope.release(mark);
        Ok(Lambda { params, body })
    }
}

fn read_fields(term: &Term) -> Parsed<Vec<Field>> {
    let field = |item: &Term| -> Parsed<Field> {
        match item.items() {
            [name, dtype] => Ok(Field { name: name.str()?.to_owned(), dtype: dtype_of(dtype)? }),
            _ => Err(item.unexpected("`(name, dtype)`")),
        }
    };
    match &term.kind {
        TermKind::Tuple(items) | TermKind::List(items) => items.iter().map(field).collect(),
        _ => Err(term.unexpected("a tuple of `(name, dtype)`")),
    }
}

fn error_bound(term: &Term) -> Parsed<ErrorBound> {
    const LEGAL: &str = "\"exact\", or (\"terms\" | \"relative\" | \"length\", factor, eps)";
    let number = |t: &Term| {
        let of_int = t.literal_int().map(|v| v as f64);
        t.literal_float().or(of_int).ok_or_else(|| t.unexpected("a number"))
    };
    match term.items() {
        [exact] if exact.str()? == "exact" => Ok(ErrorBound::Exact),
        [kind, factor, eps] => {
            let (factor, eps) = (number(factor)?, number(eps)?);
            match kind.str()? {
                "terms" => Ok(ErrorBound::Terms { factor, eps }),
                "relative" => Ok(ErrorBound::Relative { factor, eps }),
                "length" => Ok(ErrorBound::Length { factor, eps }),
                _ => Err(kind.unexpected(LEGAL)),
            }
        }
        _ => Err(term.unexpected(LEGAL)),
    }
}
