//! Tile calls and reducers as text.

use super::stmt::attr;
use super::{Printer, quoted, tuple};
use crate::dtype::DType;
use crate::expr::{Expr, Var};
use crate::reducer::{ErrorBound, Field, Lambda, NanPolicy, Reducer, Ties};
use crate::stmt::{ExecScope, Region, TileCall, TileOp};

/// Reducers with a short form of their own.
const SHORT_FORMS: [&str; 3] = ["sum", "max", "min"];

impl Printer {
    /// `Tx.cta.sum(dst, src, axes=(-1,), accum=False)`.
    pub(super) fn tile_call(&mut self, call: &TileCall) -> String {
        let prefix = match call.scope {
            ExecScope::Thread => "Tx".to_owned(),
            scope => format!("Tx.{}", scope.name()),
        };
        let mut args = vec![self.regions(&call.dsts), self.regions(&call.srcs)];
        let single = call.dsts.len() == 1 && call.srcs.len() == 1;
        let method = match &call.op {
            TileOp::Copy => "copy",
            TileOp::Reduce { name, axes, accum } => {
                let short = SHORT_FORMS.iter().find(|s| single && *s == name);
                if short.is_none() {
                    args.push(format!("reducer={}", quoted(name)));
                }
                args.push(fold_args(axes, *accum));
                short.unwrap_or(&"reduce")
            }
            TileOp::ReduceBy { reducer, axes, accum } => {
                args.push(format!("reducer={}", self.reducer(reducer)));
                args.push(fold_args(axes, *accum));
                "reduce"
            }
        };
        args.extend(call.dispatch.as_ref().map(|d| format!("dispatch={}", quoted(d))));
        args.extend(call.options.iter().map(|(key, value)| match value {
            crate::Attr::Bool(value) => format!("{key}={}", python_bool(*value)),
            crate::Attr::Int(_) | crate::Attr::Str(_) => format!("{key}={}", attr(value)),
        }));
        format!("{prefix}.{method}({})", args.join(", "))
    }

    fn regions(&mut self, regions: &[Region]) -> String {
        let texts: Vec<String> = regions.iter().map(|r| self.region(r)).collect();
        match &texts[..] {
            [only] => only.clone(),
            _ => tuple(&texts),
        }
    }

    /// A buffer's name, or a part of it as `A[0:4, i, :]`.
    fn region(&mut self, region: &Region) -> String {
        let name = self.buffer_name(&region.buffer);
        if region.ranges == Region::whole(&region.buffer).ranges {
            return name;
        }
        let parts: Vec<String> = region
            .ranges
            .iter()
            .enumerate()
            .map(|(dim, (min, extent))| {
                if *min == Expr::int(0) && region.buffer.shape.get(dim) == Some(extent) {
                    return ":".to_owned();
                }
                if extent.is_int(1) && extent.ty() == min.ty() {
                    return self.expr(min);
                }
                let (start, end) = self.range_ends(min, extent);
                format!("{start}:{end}")
            })
            .collect();
        format!("{name}[{}]", parts.join(", "))
    }

    /// `T.comm_reducer(combine, [identities], ...)`; what is as usual is left out.
    pub(super) fn reducer(&mut self, reducer: &Reducer) -> String {
        let mut args = vec![self.lambda(&reducer.combine)];
        args.push(format!("[{}]", self.exprs(&reducer.identity).join(", ")));
        let usual = Reducer::plain(reducer.combine.clone(), reducer.identity.clone());
        if reducer.name != usual.name {
            args.push(format!("name={}", quoted(&reducer.name)));
        }
        if reducer.fields != usual.fields {
            args.push(format!("fields={}", fields(&reducer.fields)));
        }
        if reducer.lift != usual.lift {
            let inputs: Vec<DType> = reducer.lift.params.iter().map(Var::dtype).collect();
            let inputs: Vec<String> = inputs.iter().map(|d| quoted(d.name())).collect();
            args.push(format!("inputs={}", tuple(&inputs)));
            args.push(format!("lift={}", self.lambda(&reducer.lift)));
        }
        if let Some(step) = &reducer.step {
            args.push(format!("step={}", self.lambda(step)));
        }
        if reducer.step_needs_ascending {
            args.push("step_needs_ascending=True".to_owned());
        }
        if let Some(quick) = &reducer.quick {
            let identity = self.exprs(&quick.identity).join(", ");
            let [lift, step, close] = [&quick.lift, &quick.step, &quick.close].map(|l| self.lambda(l));
            args.push(format!("quick=([{identity}], {lift}, {step}, {close}, {})", quick.max_steps));
        }
        if reducer.finish != usual.finish {
            args.push(format!("finish={}", self.lambda(&reducer.finish)));
        }
        if reducer.results != reducer.fields {
            args.push(format!("results={}", fields(&reducer.results)));
        }
        for (key, claim, expected) in [
            ("associative", reducer.claims.associative, usual.claims.associative),
            ("commutative", reducer.claims.commutative, usual.claims.commutative),
            ("idempotent", reducer.claims.idempotent, usual.claims.idempotent),
        ] {
            if claim != expected {
                args.push(format!("{key}={}", python_bool(claim)));
            }
        }
        match reducer.nan {
            NanPolicy::Propagate => {}
            NanPolicy::Ignore => args.push("nan=\"ignore\"".to_owned()),
        }
        match reducer.ties {
            Ties::None => {}
            Ties::First => args.push("ties=\"first\"".to_owned()),
            Ties::Last => args.push("ties=\"last\"".to_owned()),
        }
        if reducer.error != usual.error {
            args.push(match reducer.error {
                ErrorBound::Exact => "error=\"exact\"".to_owned(),
                ErrorBound::Terms { factor, eps } => format!("error=(\"terms\", {factor:?}, {eps:?})"),
                ErrorBound::Relative { factor, eps } => format!("error=(\"relative\", {factor:?}, {eps:?})"),
                ErrorBound::Length { factor, eps } => format!("error=(\"length\", {factor:?}, {eps:?})"),
            });
        }
        format!("T.comm_reducer({})", args.join(", "))
    }

    fn lambda(&mut self, lambda: &Lambda) -> String {
        let mark = self.names.mark();
        let params: Vec<String> = lambda.params.iter().map(|p| self.names.define_var(p)).collect();
        let body = self.exprs(&lambda.body);
        self.names.release(mark);
        let body = match &body[..] {
            [only] => only.clone(),
            _ => tuple(&body),
        };
        if params.is_empty() {
            format!("lambda: {body}")
        } else {
            format!("lambda {}: {body}", params.join(", "))
        }
    }
}

fn fields(fields: &[Field]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|f| format!("({}, {})", quoted(&f.name), quoted(f.dtype.name()))).collect();
    tuple(&fields)
}

fn fold_args(axes: &[i64], accum: bool) -> String {
    let axes: Vec<String> = axes.iter().map(i64::to_string).collect();
    format!("axes={}, accum={}", tuple(&axes), python_bool(accum))
}

fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
