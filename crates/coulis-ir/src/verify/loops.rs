//! V11: loops that are to be expanded in text have a constant length.

use super::Report;
use super::forms::each_stmt;
use crate::form::Form;
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::stmt::{LoopKind, Stmt};

/// Checks unrolled loops of Flat kernels. (Vectorized ones do not occur there, V1.)
pub(super) fn check_loops<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
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
