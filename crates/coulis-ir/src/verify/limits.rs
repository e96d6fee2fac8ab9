//! V20, V24 to V26 and V35 for a target: what one block of threads, one grid and one cluster may have.
//!
//! Source: CUDA C++ Programming Guide, technical specifications per compute capability; the numbers come from
//! [`crate::target::BlockLimits`], but for [`crate::stmt::ThreadTag::max_extent`], which is alike everywhere.

use super::registers::{constant_bytes, first_beyond, register_bytes};
use super::witness::Launched;
use super::{Check, Group, InLaunch, Property, Report};
use crate::buffer::MemScope;
use crate::print::print_expr;
use crate::stmt::{MAX_BLOCK_THREADS, MAX_CLUSTER_BLOCKS, Stmt};
use crate::target::Target;

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::of_schedule("V24", "extents of a grid and of a block are what the machine has"),
        Property::of_schedule(
            "V25",
            "shared memory has a size that a block may have, a constant one unless it is asked for at launch",
        ),
        Property::of_schedule(
            "V26",
            "local memory has a constant size, and the registers of a thread hold what of it is live at one time",
        ),
        Property::of_schedule(
            "V35",
            "clusters have a size that the machine has, and a grid is whole clusters",
        ),
    ],
    checks: &[Check::Launch(check_limits)],
};

/// Checks the extents of one launch, and the memory of its blocks and threads.
fn check_limits<'k>(at: &mut InLaunch<'_, 'k>, report: &mut Report<'k>) {
    let InLaunch { launched, target, .. } = *at;
    let threads = launched.launch.n_threads();
    let most = i128::from(target.block.threads);
    if let (Some(found), Some(inner)) = (threads.filter(|n| *n > most), launched.chain.last()) {
        // More than 1024 are found for every target by `verify/threads.rs`.
        if found <= i128::from(MAX_BLOCK_THREADS) {
            let text = format!("a block has at most {most} threads on {}, got {found}", target.arch);
            report.at(inner, "V20", text);
        }
    }
    for link in &launched.chain {
        if let Stmt::LaunchThread { tag, extent, .. } = link
            && let Some(found) = extent.as_int()
            && let Some(most) = tag.max_extent().filter(|most| found > i128::from(*most))
        {
            let text = format!("`{}` has at most {most} values, got {found}", tag.name());
            report.at(link, "V24", text);
        }
    }
    check_cluster(launched, target, report);
    let mut memory = Memory { target, shared: 0, at_launch: 0, report };
    memory.stmt(launched.launch.body);
    let most = register_bytes(target);
    if let Some((stmt, buffer, live)) = first_beyond(launched.launch.body, target, most) {
        let text = format!(
            "the registers of a thread hold {most} bytes on {}, and with `{}` its local memory has {live}",
            target.arch, buffer.name
        );
        report.at(stmt, "V26", text);
    }
}

/// Checks the size of clusters, and that a grid is whole ones where its extents are constants.
fn check_cluster<'k>(launched: &Launched<'k>, target: &Target, report: &mut Report<'k>) {
    let launch = &launched.launch;
    let of_cluster = |stmt: &&&Stmt| matches!(stmt, Stmt::LaunchThread { tag, .. } if tag.is_of_cluster());
    let Some(link) = launched.chain.iter().rfind(of_cluster) else { return };
    let most = i128::from(target.cluster_blocks);
    let text = match launch.cluster_extents() {
        _ if most <= 1 => format!("{} has no clusters", target.arch),
        None => "the extents of a cluster are constants".to_owned(),
        Some(extents) => {
            let found: i128 = extents.iter().fold(1i128, |n, extent| n.saturating_mul(*extent));
            let cut = (launch.grid.iter().zip(extents).zip(["x", "y", "z"]))
                .filter_map(|(((_, grid), cluster), axis)| Some((grid.as_int()?, cluster, axis)))
                .find(|(grid, cluster, _)| *cluster > 0 && grid % cluster != 0);
            match cut {
                // These are found for every target by `verify/threads.rs`.
                _ if found > i128::from(MAX_CLUSTER_BLOCKS) => return,
                _ if extents.iter().any(|n| *n < 1) || found > most => {
                    format!("a cluster has 1 to {most} blocks on {}, got {found}", target.arch)
                }
                Some((grid, cluster, axis)) => {
                    format!(
                        "a grid is whole clusters, and {grid} blocks along {axis} are no multiple of {cluster}"
                    )
                }
                None => return,
            }
        }
    };
    report.at(link, "V35", text);
}

struct Memory<'r, 'k> {
    target: &'r Target,
    /// Bytes of shared memory of constant size so far: compilers give each array its own place.
    shared: i128,
    /// Bytes of shared memory of constant size that is asked for at launch.
    at_launch: i128,
    report: &'r mut Report<'k>,
}

impl<'k> Memory<'_, 'k> {
    fn stmt(&mut self, stmt: &'k Stmt) {
        let Stmt::Allocate { buffer, body } = stmt else {
            crate::visit::stmt_children(stmt).for_each(|child| self.stmt(child));
            return;
        };
        let bytes = constant_bytes(buffer);
        let name = &buffer.name;
        let code = match buffer.scope {
            MemScope::Global => None,
            // A size that follows from the arguments is compared when they are known.
            MemScope::SharedDyn if bytes.is_none() => None,
            MemScope::SharedDyn => Some("V25"),
            MemScope::Shared => Some("V25"),
            MemScope::Warp | MemScope::Local => Some("V26"),
        };
        match (code, bytes) {
            (None, _) => {}
            (Some(code), None) => {
                let found: Vec<String> = buffer.shape.iter().map(print_expr).collect();
                let text = format!(
                    "{} memory has a constant size, and the extents of `{name}` are ({})",
                    buffer.scope.name(),
                    found.join(", ")
                );
                self.report.at(stmt, code, text);
            }
            (Some("V25"), Some(bytes)) => {
                let limits = &self.target.block;
                let declared = buffer.scope == MemScope::Shared;
                *(if declared { &mut self.shared } else { &mut self.at_launch }) += bytes;
                let all = self.shared + self.at_launch;
                let arch = &self.target.arch;
                let (most, most_at_launch) =
                    (i128::from(limits.shared_bytes), i128::from(limits.shared_dyn_bytes));
                if declared && self.shared > most {
                    let text = format!(
                        "a block has at most {most} bytes of shared memory on {arch}, and with `{name}` it has {}",
                        self.shared
                    );
                    self.report.at(stmt, "V25", text);
                } else if self.at_launch > 0 && all > most_at_launch {
                    let text = format!(
                        "a block may ask for {most_at_launch} bytes of shared memory at launch on {arch}, and with \
                         `{name}` it has {all}"
                    );
                    self.report.at(stmt, "V25", text);
                }
            }
            // What is live at one time is compared, not each allocation.
            (Some(_), Some(_)) => {}
        }
        self.stmt(body);
    }
}
