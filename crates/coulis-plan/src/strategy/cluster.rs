//! Outputs whose elements the blocks of a cluster have in parts.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, StageId};

use super::Facts;

/// The index of the parts of an output that the blocks of a cluster have.
pub const PARTS: ThreadTag = ThreadTag::ClusterY;

/// Numbers of blocks that a cluster may have, ascending.
pub fn cluster_sizes(facts: &Facts) -> impl Iterator<Item = i64> {
    let most = i64::from(facts.target.cluster_blocks);
    (1..).map(|n| 1 << n).take_while(move |parts| *parts <= most)
}

/// Each block of a cluster folds a part of an output's elements, and then they fold their states together: the stage of a part, that
/// of the output, whose only reduce loop is the one over parts and which is placed already.
pub fn fold_in_cluster(s: &mut Schedule, (parts, state): (StageId, StageId)) -> Result<(), ScheduleError> {
    let part = s.stage(state)?.reduce_axes()[0].clone();
    s.bind(state, &part, PARTS)?;
    s.set_scope(parts, MemScope::Local)?;
    s.compute_at(parts, state, &part)
}
