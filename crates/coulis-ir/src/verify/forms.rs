//! V1 and V2: the table of forms holds.

use super::{Check, Group, Property, Report};
use crate::expr::Expr;
use crate::form::is_allowed;
use crate::kernel::Kernel;
use crate::stmt::Stmt;
use crate::visit::{for_each_expr, stmt_exprs};

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new("V1", "statements are of the kernel's form"),
        Property::new("V2", "vectors occur only in forms that have them"),
    ],
    checks: &[Check::Tree(check_forms)],
};

/// Checks each statement against [`crate::form::STMT_FORMS`].
fn check_forms<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let form = kernel.form;
    let vectors = is_allowed("vector expression", form);
    each_stmt(&kernel.body, &mut |stmt| {
        let kind = stmt.kind_name();
        if !is_allowed(kind, form) {
            report.at(stmt, "V1", format!("a {} kernel has no `{kind}` statements", form.name()));
        }
        let has_vector = |expr: &&Expr| {
            let mut found = false;
            for_each_expr(expr, &mut |e| found |= e.lanes() != 1);
            found
        };
        if !vectors && stmt_exprs(stmt).iter().any(has_vector) {
            report.at(stmt, "V2", format!("a {} kernel has no vector expressions", form.name()));
        }
    });
}

/// Calls `f` on the statement and everything below it, parents first, with the life of the kernel.
pub(super) fn each_stmt<'k>(stmt: &'k Stmt, f: &mut impl FnMut(&'k Stmt)) {
    f(stmt);
    for child in crate::visit::stmt_children(stmt) {
        each_stmt(child, f);
    }
}
