//! One step of recursion over statements, shared by passes that carry something downwards.

use coulis_ir::Stmt;

/// The statement with each statement directly below it replaced by `f` of it.
pub fn try_map_children<E>(stmt: Stmt, f: &mut dyn FnMut(Stmt) -> Result<Stmt, E>) -> Result<Stmt, E> {
    let mut boxed = |s: Box<Stmt>| f(*s).map(Box::new);
    Ok(match stmt {
        Stmt::Seq(stmts) => Stmt::seq(stmts.into_iter().map(&mut *f).collect::<Result<Vec<_>, E>>()?),
        Stmt::For { var, min, extent, kind, body } => {
            Stmt::For { var, min, extent, kind, body: boxed(body)? }
        }
        Stmt::If { cond, then, otherwise } => {
            let then = boxed(then)?;
            Stmt::If { cond, then, otherwise: otherwise.map(boxed).transpose()? }
        }
        Stmt::Let { var, value, body } => Stmt::Let { var, value, body: boxed(body)? },
        Stmt::Allocate { buffer, body } => Stmt::Allocate { buffer, body: boxed(body)? },
        Stmt::Annotate { node, key, value, body } => Stmt::Annotate { node, key, value, body: boxed(body)? },
        Stmt::LaunchThread { tag, var, extent, body } => {
            Stmt::LaunchThread { tag, var, extent, body: boxed(body)? }
        }
        Stmt::Store { .. }
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Atom(_)
        | Stmt::Sync(_) => stmt,
    })
}

/// As [`try_map_children`] for an `f` that cannot fail.
pub fn map_children(stmt: Stmt, f: &mut dyn FnMut(Stmt) -> Stmt) -> Stmt {
    match try_map_children::<std::convert::Infallible>(stmt, &mut |s| Ok(f(s))) {
        Ok(stmt) => stmt,
        Err(never) => match never {},
    }
}
