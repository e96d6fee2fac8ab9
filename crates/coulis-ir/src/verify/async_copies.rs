//! V37: where words are copied into shared memory asynchronously, nothing reads that memory, and no barrier stands.
//!
//! The copies are there when the statement under the pragma ends, for the thread that made them; a barrier behind it lets
//! others see them, as any store. Source: PTX ISA, cp.async and cp.async.wait_all.

use super::{Check, Group, Property, Report};
use crate::buffer::{Buffer, MemScope};
use crate::expr::{Node, VarId};
use crate::hash::FastSet;
use crate::kernel::{Attr, Kernel};
use crate::remark::{ASYNC_COPY, is_pragma};
use crate::stmt::Stmt;
use crate::visit::{for_each_expr, for_each_stmt, stmt_exprs};

pub(super) const GROUP: Group = Group {
    properties: &[Property::of_pragma(
        "V37",
        ASYNC_COPY,
        "where words are copied into shared memory asynchronously, nothing reads it, and no barrier stands",
    )],
    checks: &[Check::Tree(check_async_copies)],
};

/// Checks every statement under the pragma.
fn check_async_copies<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    for_each_stmt(&kernel.body, &mut |stmt| match stmt {
        Stmt::Annotate { key, value, body, .. } if is_pragma(key, ASYNC_COPY) && *value != Attr::Int(0) => {
            check(body, report);
        }
        _ => {}
    });
}

fn check<'k>(body: &'k Stmt, report: &mut Report<'k>) {
    let mut copied: FastSet<VarId> = FastSet::default();
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::Store { buffer, .. } = stmt
            && matches!(buffer.scope, MemScope::Shared | MemScope::SharedDyn)
        {
            copied.insert(buffer.data.id());
        }
    });
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::Sync(_) = stmt {
            let text = "a barrier stands where words are copied asynchronously, which are there when that statement ends";
            report.at(stmt, "V37", text.to_owned());
        }
        let mut refuse = |buffer: &Buffer| {
            if copied.contains(&buffer.data.id()) {
                let text = format!("`{}` is read where words are copied into it asynchronously", buffer.name);
                report.at(stmt, "V37", text);
            }
        };
        for expr in stmt_exprs(stmt) {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, _) = e.node() {
                    refuse(buffer);
                }
            });
        }
        if let Stmt::Atom(call) = stmt {
            call.elements().for_each(|element| refuse(&element.buffer));
        }
    });
}
