//! Fresh variables for copies of statements, so that no variable is bound at two places.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::{any_stmt, substitute_expr, substitute_stmt, uses_any};
use coulis_ir::{Buffer, Expr, Stmt, Var};

/// The statement with variables replaced in it, and every variable that it binds made fresh.
pub fn copy_with(stmt: &Stmt, map: &FastMap<Var, Expr>) -> Stmt {
    let on = |e: &Expr| substitute_expr(e, map);
    let rename = |var: &Var| {
        let new = var.fresh();
        let mut inner = map.clone();
        inner.insert(var.clone(), new.expr());
        (new, inner)
    };
    match stmt {
        Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|s| copy_with(s, map)).collect()),
        Stmt::For { var, min, extent, kind, body } => {
            let (new, inner) = rename(var);
            Stmt::for_(new, on(min), on(extent), *kind, copy_with(body, &inner))
        }
        Stmt::If { cond, then, otherwise } => Stmt::If {
            cond: on(cond),
            then: Box::new(copy_with(then, map)),
            otherwise: otherwise.as_ref().map(|s| Box::new(copy_with(s, map))),
        },
        Stmt::Let { var, value, body } => {
            let (new, inner) = rename(var);
            Stmt::let_(new, on(value), copy_with(body, &inner))
        }
        Stmt::Allocate { buffer, body } => allocate(buffer, copy_with(body, map), map),
        Stmt::Annotate { node, key, value, body } => Stmt::Annotate {
            node: node.clone(),
            key: key.clone(),
            value: value.clone(),
            body: Box::new(copy_with(body, map)),
        },
        Stmt::LaunchThread { tag, var, extent, body } => {
            let (new, inner) = rename(var);
            let body = Box::new(copy_with(body, &inner));
            Stmt::LaunchThread { tag: *tag, var: new, extent: on(extent), body }
        }
        Stmt::Store { .. }
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Atom(_)
        | Stmt::Sync(_) => substitute_stmt(stmt.clone(), map),
    }
}

/// The statement with variables replaced in it, also in the extents of what it allocates.
pub fn substituted(stmt: Stmt, map: &FastMap<Var, Expr>) -> Stmt {
    let vars: Vec<Var> = map.keys().cloned().collect();
    let follows = |buffer: &Buffer| buffer.shape.iter().any(|extent| uses_any(extent, &vars));
    let allocates = |s: &Stmt| matches!(s, Stmt::Allocate { buffer, .. } if follows(buffer));
    if any_stmt(&stmt, &mut |s| allocates(s)) { copy_with(&stmt, map) } else { substitute_stmt(stmt, map) }
}

/// The allocation with variables replaced in its extents. Where there are any it is memory of its own, since the
/// extents of a buffer and of its views are part of what they are.
fn allocate(buffer: &Buffer, body: Stmt, map: &FastMap<Var, Expr>) -> Stmt {
    let on = |shape: &[Expr]| shape.iter().map(|e| substitute_expr(e, map)).collect::<Vec<Expr>>();
    if on(&buffer.shape) == buffer.shape {
        return Stmt::allocate(buffer.clone(), body);
    }
    let new = buffer.derive(|b| (b.data, b.shape) = (b.data.fresh(), on(&b.shape)));
    let mut views = FastMap::from_iter([(buffer.id, new.clone())]);
    let body = redirect_accesses(body, &buffer.data, &mut |b, index| {
        let view = views
            .entry(b.id)
            .or_insert_with(|| b.derive(|d| (d.data, d.shape) = (new.data.clone(), on(&d.shape))));
        (view.clone(), index.clone())
    });
    Stmt::allocate(new, body)
}

/// The statement with every access to the memory `from.data` going through `edit(buffer, index)`, which gives the
/// new buffer and index. Accesses have one index.
pub fn redirect_accesses(
    stmt: Stmt,
    data: &Var,
    edit: &mut dyn FnMut(&Buffer, &Expr) -> (Buffer, Expr),
) -> Stmt {
    use coulis_ir::expr::Node;
    use coulis_ir::visit::{change_children, rewrite_stmt};

    fn on_expr(
        expr: &Expr,
        data: &Var,
        edit: &mut dyn FnMut(&Buffer, &Expr) -> (Buffer, Expr),
    ) -> Option<Expr> {
        if !expr.reads_memory() {
            return None;
        }
        let new = change_children(expr, &mut |child| on_expr(child, data, edit));
        match new.as_ref().unwrap_or(expr).node() {
            Node::Load(buffer, indices) if buffer.data == *data && indices.len() == 1 => {
                let (buffer, index) = edit(buffer, &indices[0]);
                Some(Expr::load(buffer, vec![index]))
            }
            _ => new,
        }
    }
    let edit = std::cell::RefCell::new(edit);
    rewrite_stmt(stmt, &mut |e| on_expr(e, data, &mut **edit.borrow_mut()), &mut |s| match s {
        Stmt::Store { buffer, indices, value } if buffer.data == *data && indices.len() == 1 => {
            let (buffer, index) = (edit.borrow_mut())(&buffer, &indices[0]);
            Stmt::Store { buffer, indices: vec![index], value }
        }
        Stmt::Atom(mut call) => {
            for element in call.dst.iter_mut().chain(&mut call.memory) {
                if element.buffer.data == *data && element.indices.len() == 1 {
                    let (buffer, index) = (edit.borrow_mut())(&element.buffer, &element.indices[0]);
                    (element.buffer, element.indices) = (buffer, vec![index]);
                }
            }
            Stmt::Atom(call)
        }
        other => other,
    })
}
