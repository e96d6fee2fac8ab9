//! V36: reads of another block's shared memory, which has to live as long as they need.
//!
//! A block's shared memory ends with the block, so that a barrier of the cluster follows every such read on every way to
//! the end of the kernel. That it follows is looked for in the text; that all blocks come to it is V21. Source: CUDA C++
//! Programming Guide, distributed shared memory.

use super::witness::Launched;
use super::{Check, Group, InLaunch, Property, Report};
use crate::atom::Atom;
use crate::buffer::MemScope;
use crate::stmt::{Stmt, SyncKind};
use crate::target::Target;

pub(super) const GROUP: Group = Group {
    properties: &[Property::new(
        "V36",
        "another block's shared memory is read in a cluster, and no block ends before",
    )],
    checks: &[Check::Launch(check_clusters)],
};

/// Checks the reads of one launch.
fn check_clusters<'k>(at: &mut InLaunch<'_, 'k>, report: &mut Report<'k>) {
    let InLaunch { launched, target, .. } = *at;
    let mut reads = Reads { launched, target, open: Vec::new(), report };
    reads.stmt(launched.launch.body);
    let Reads { open, report, .. } = reads;
    for stmt in open {
        let text = "another block's shared memory is read, and that block may end before; let a \
                    `T.cuda.cluster_sync()` that all blocks reach follow";
        report.at(stmt, "V36", text.to_owned());
    }
}

struct Reads<'r, 'k> {
    launched: &'r Launched<'k>,
    target: &'r Target,
    /// Reads that no barrier of the cluster follows yet on some way.
    open: Vec<&'k Stmt>,
    report: &'r mut Report<'k>,
}

impl<'k> Reads<'_, 'k> {
    fn stmt(&mut self, stmt: &'k Stmt) {
        match stmt {
            Stmt::Sync(SyncKind::Cluster) => {
                if self.target.cluster_blocks <= 1 {
                    let text = format!("{} has no clusters, whose barrier this is", self.target.arch);
                    self.report.at(stmt, "V36", text);
                }
                self.open.clear();
            }
            Stmt::Atom(call) if call.atom == Atom::ClusterLoad => {
                let name = call.atom.name();
                if !self.launched.launch.has_clusters() {
                    let text = format!(
                        "`{name}` stands in a launch without `clusterCtaIdx.x`, whose blocks are in no cluster"
                    );
                    self.report.at(stmt, "V36", text);
                }
                if let Some(memory) = &call.memory {
                    let (buffer, scope) = (&memory.buffer.name, memory.buffer.scope);
                    if !matches!(scope, MemScope::Shared | MemScope::SharedDyn) {
                        let text = format!(
                            "`{name}` reads shared memory, and `{buffer}` is {} memory",
                            scope.name()
                        );
                        self.report.at(stmt, "V36", text);
                    }
                }
                self.open.push(stmt);
            }
            Stmt::If { then, otherwise, .. } => {
                let before = self.open.clone();
                self.stmt(then);
                let after = std::mem::replace(&mut self.open, before);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise);
                }
                self.also(after);
            }
            Stmt::For { extent, body, .. } => {
                let before = self.open.clone();
                self.stmt(body);
                // A loop may have no iteration.
                if extent.as_int().is_none_or(|n| n < 1) {
                    self.also(before);
                }
            }
            other => crate::visit::stmt_children(other).for_each(|s| self.stmt(s)),
        }
    }

    /// Reads that are open on another way too.
    fn also(&mut self, reads: Vec<&'k Stmt>) {
        for read in reads {
            if !self.open.iter().any(|open| std::ptr::eq(*open, read)) {
                self.open.push(read);
            }
        }
    }
}
