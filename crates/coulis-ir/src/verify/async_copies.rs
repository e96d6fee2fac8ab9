//! V37: memory into which words are copied asynchronously is not touched before a barrier of the block.
//!
//! The barrier waits for the copies of its threads. Until then the thread itself does nothing there, whether it reads it or
//! stores to it, but for the statements of that copy, each of which has elements of its own (V27). That no other thread does is what
//! V26 and V27 say, as of any store. Source: PTX ISA, cp.async.

use super::Report;
use crate::Form;
use crate::buffer::{Buffer, MemScope};
use crate::expr::{Node, VarId};
use crate::kernel::{Attr, Kernel};
use crate::remark::{ASYNC_COPY, is_pragma};
use crate::stmt::{Stmt, SyncKind};
use crate::visit::{for_each_expr, stmt_children, stmt_exprs};

/// Checks every copy under the pragma, in kernels that have their barriers.
pub(super) fn check_async_copies<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    if kernel.form != Form::Flat {
        return;
    }
    let mut copies = Copies { open: Vec::new(), copying: false, report };
    copies.stmt(&kernel.body);
}

struct Copies<'r, 'k> {
    /// Memory that copies may be under way to.
    open: Vec<VarId>,
    copying: bool,
    report: &'r mut Report<'k>,
}

impl<'k> Copies<'_, 'k> {
    fn stmt(&mut self, stmt: &'k Stmt) {
        match stmt {
            Stmt::Annotate { key, value, body, .. }
                if is_pragma(key, ASYNC_COPY) && *value != Attr::Int(0) =>
            {
                let outer = std::mem::replace(&mut self.copying, true);
                self.stmt(body);
                self.copying = outer;
            }
            Stmt::Sync(SyncKind::Cta | SyncKind::Cluster) => self.open.clear(),
            Stmt::If { then, otherwise, .. } => {
                self.touch(stmt);
                let before = self.open.clone();
                self.stmt(then);
                let after = std::mem::replace(&mut self.open, before);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise);
                }
                self.also(after);
            }
            Stmt::For { body, .. } => {
                self.touch(stmt);
                // What an iteration leaves under way the next one meets; and a loop may have no iteration.
                let before = self.open.clone();
                self.stmt(body);
                self.stmt(body);
                self.also(before);
            }
            other => {
                self.touch(other);
                stmt_children(other).for_each(|s| self.stmt(s));
            }
        }
    }

    /// What the statement itself reads and stores to.
    fn touch(&mut self, stmt: &'k Stmt) {
        for expr in stmt_exprs(stmt) {
            let mut read = None;
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, _) = e.node()
                    && self.open.contains(&buffer.data.id())
                {
                    read = Some(buffer.clone());
                }
            });
            if let Some(buffer) = read {
                self.refuse(stmt, &buffer, "read");
            }
        }
        match stmt {
            Stmt::Store { buffer, .. } if self.copying => {
                if matches!(buffer.scope, MemScope::Shared | MemScope::SharedDyn)
                    && !self.open.contains(&buffer.data.id())
                {
                    self.open.push(buffer.data.id());
                }
            }
            Stmt::Store { buffer, .. } if self.open.contains(&buffer.data.id()) => {
                self.refuse(stmt, buffer, "stored to");
            }
            Stmt::Atom(call) => {
                let is_open = |buffer: &&Buffer| self.open.contains(&buffer.data.id());
                let used = call.elements().map(|e| &e.buffer).find(is_open);
                if let Some(buffer) = used {
                    self.refuse(stmt, buffer, "used");
                }
            }
            _ => {}
        }
    }

    fn refuse(&mut self, stmt: &'k Stmt, buffer: &Buffer, what: &str) {
        let text = format!(
            "`{}` is {what} while words are copied into it asynchronously; let a barrier of the block come first",
            buffer.name
        );
        self.report.at(stmt, "V37", text);
    }

    /// What is under way on another path too.
    fn also(&mut self, open: Vec<VarId>) {
        for data in open {
            if !self.open.contains(&data) {
                self.open.push(data);
            }
        }
    }
}
