//! Reducers that select one of two states, told by their places which is the left one (contract N9).
//!
//! An argmax that keeps the left of equal values gives the first of them only where states come in the order of their
//! elements. With one more field, the place of the element that a state was taken from, it gives the same in any order.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::substitute_expr;
use coulis_ir::{BinaryOp, Claims, DType, Expr, Field, Lambda, Node, Reducer, Var};

/// The place of a state that no element is in: what a fold starts from stands before all elements.
pub const NO_PLACE: i64 = -1;

/// A combine that selects one of two states of `n` fields and tells left from right only where it could select either, with a
/// place (`int64`) as the last field of each: the state whose place is smaller is taken as the left one. `None` of other
/// combines.
pub fn placed_combine(combine: &Lambda, n: usize) -> Option<Lambda> {
    let (left, right) = combine.params.split_at_checked(n)?;
    let mut selects: Option<Expr> = None;
    for (field, value) in combine.body.iter().enumerate() {
        let (l, r) = (left.get(field), right.get(field));
        let (condition, a, b) = match value.node() {
            Node::Select(condition, a, b) | Node::IfThenElse(condition, a, b) => (condition, a, b),
            // The value of either.
            Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) if a.as_var() == l && b.as_var() == r => {
                continue;
            }
            _ => return None,
        };
        let keeps_left = match (a.as_var(), b.as_var()) {
            (a, b) if a == l && b == r => condition.clone(),
            (a, b) if a == r && b == l => condition.clone().logical_not(),
            _ => return None,
        };
        if selects.get_or_insert_with(|| keeps_left.clone()) != &keeps_left {
            return None;
        }
    }
    let keeps_left = selects?;
    let swapped: FastMap<Var, Expr> =
        (left.iter().zip(right)).flat_map(|(l, r)| [(l.clone(), r.expr()), (r.clone(), l.expr())]).collect();
    let keeps_right = substitute_expr(&keeps_left, &swapped);
    let [x, y] = ["x_position", "y_position"].map(|name| Var::new(name, DType::I64));
    let in_order = x.expr().le(y.expr()).and(keeps_left);
    let keep = in_order.or(x.expr().gt(y.expr()).and(keeps_right.logical_not()));
    let pairs = left.iter().chain([&x]).zip(right.iter().chain([&y]));
    let select = |(field, (l, r)): (usize, (&Var, &Var))| match combine.body.get(field) {
        Some(value) if matches!(value.node(), Node::Binary(..)) => value.clone(),
        _ => Expr::select(keep.clone(), l.expr(), r.expr()),
    };
    let body = pairs.enumerate().map(select).collect();
    let params = left.iter().chain([&x]).chain(right).chain([&y]).cloned().collect();
    Some(Lambda { params, body })
}

/// The reducer with the place of a state's element as its last field, so that its elements may come in any order; results stay
/// those of a fold in order. Without what is only cheaper than to combine. `None` where [`placed_combine`] has none.
pub fn with_places(reducer: &Reducer) -> Option<Reducer> {
    let combine = placed_combine(&reducer.combine, reducer.arity())?;
    let place = Var::new("place", DType::I64);
    let mut with_place = reducer.clone();
    with_place.fields.push(Field { name: place.name().to_owned(), dtype: place.dtype() });
    with_place.identity.push(Expr::int_of(NO_PLACE.into(), place.dtype()));
    with_place.lift.body.push(reducer.lift.params.last()?.expr());
    with_place.finish.params.push(place);
    Some(Reducer {
        combine,
        step: None,
        step_needs_ascending: false,
        quick: None,
        settled: None,
        claims: Claims { commutative: true, ..reducer.claims },
        ..with_place
    })
}
