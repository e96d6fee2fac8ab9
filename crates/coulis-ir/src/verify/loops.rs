//! V11: loops that are to be expanded in text have a constant length.

use super::forms::each_stmt;
use super::{Check, Group, Property, Report};
use crate::form::Form;
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::stmt::{LoopKind, Stmt};

pub(super) const GROUP: Group = Group {
    properties: &[Property::new("V11", "Flat: the extent of an unrolled loop is a constant")],
    checks: &[Check::Tree(check_loops)],
};

/// Checks unrolled loops of Flat kernels. (Vectorized ones do not occur there, V1.)
fn check_loops<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    if kernel.form != Form::Flat {
        return;
    }
    each_stmt(&kernel.body, &mut |stmt| {
        if let Stmt::For { var, extent, kind: LoopKind::Unrolled, .. } = stmt
            && extent.as_int().is_none()
        {
            let (name, found) = (var.name(), print_expr(extent));
            report.at(
                stmt,
                "V11",
                format!("an unrolled loop has a constant extent, and that of `{name}` is `{found}`"),
            );
        }
    });
}
