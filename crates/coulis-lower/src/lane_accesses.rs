//! Statements of lanes that have no vector form as a whole, whose accesses of neighbours are vectors all the same.

use coulis_ir::expr::{Expr, Node};
use coulis_ir::hash::FastMap;
use coulis_ir::visit::{for_each_expr, map_children, substitute_expr};
use coulis_ir::{Buffer, MemScope, Stmt};

use crate::eager::Eager;
use crate::vector_expr::Lanes;

/// Whether each lane accesses the element behind that of the lane before.
pub fn has_neighbours(at: &Expr) -> bool {
    matches!(at.node(), Node::Ramp(_, stride) if stride.is_int(1))
}

/// A store of a value that is no vector, as some of what it reads is not side by side: what is comes as vectors, lanes are
/// computed one by one, and their results leave as a vector, converted together where they are stored in another type.
pub fn between_accesses(buffer: &Buffer, at: Expr, value: &Expr, lanes: &Lanes, here: &Eager) -> Stmt {
    let dtype = lanes.var.dtype();
    let int = |n: u32| Expr::int_of(i128::from(n), dtype);
    let all = || Expr::ramp(int(0), int(1), lanes.count);
    let own = |name: &str, of: &Expr| Buffer::new(name, of.dtype(), vec![int(lanes.count)], MemScope::Local);
    let (computed, stored) = match value.node() {
        Node::Cast(of) => (of, Some(value.dtype())),
        _ => (value, None),
    };
    let mut words: Vec<(Expr, Buffer)> = Vec::new();
    let mut steps = Vec::new();
    for_each_expr(value, &mut |e| {
        let Node::Load(from, indices) = e.node() else { return };
        let [index] = indices.as_slice() else { return };
        let Ok(place) = lanes.index(index) else { return };
        let is_new = !words.iter().any(|(load, _)| load == e);
        if is_new && from.scope != MemScope::Local && has_neighbours(&place) && here.is_total(e) {
            let word = own(&format!("{}_lanes", from.name), e);
            steps.push(Stmt::store(&word, vec![all()], Expr::load(from.clone(), vec![place])));
            words.push((e.clone(), word));
        }
    });
    let result = own(&format!("{}_lanes", buffer.name), computed);
    for lane in 0..lanes.count {
        let loads = words.iter().map(|(load, word)| (load.clone(), word.at(vec![int(lane)])));
        let of_words = with_known(computed, &mut loads.collect());
        let of_lane = substitute_expr(&of_words, &FastMap::from_iter([(lanes.var.clone(), int(lane))]));
        steps.push(Stmt::store(&result, vec![int(lane)], of_lane));
    }
    let results = Expr::load(result.clone(), vec![all()]);
    let results = stored.map_or(results.clone(), |dtype| results.cast(dtype));
    steps.push(Stmt::store(buffer, vec![at], results));
    let buffers = words.into_iter().map(|(_, word)| word).chain([result]);
    buffers.fold(Stmt::seq(steps), |body, buffer| Stmt::allocate(buffer, body))
}

/// The expression with others in the place of those that are known; it learns what becomes of the rest.
fn with_known(expr: &Expr, known: &mut FastMap<Expr, Expr>) -> Expr {
    if let Some(done) = known.get(expr) {
        return done.clone();
    }
    let new = map_children(expr, &mut |child| with_known(child, known));
    known.insert(expr.clone(), new.clone());
    new
}
