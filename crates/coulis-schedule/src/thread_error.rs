//! Why a schedule on threads is refused. Each case is the user's to mend, and says how.

/// A refusal of a schedule that binds axes to block or thread indices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThreadError {
    /// No such index.
    #[error(
        "there is no thread index `{found}`; legal are blockIdx.x, blockIdx.y, blockIdx.z, clusterCtaIdx.x, \
         clusterCtaIdx.y, clusterCtaIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread"
    )]
    UnknownTag {
        /// The name given.
        found: String,
    },
    /// Two axes of a stage on one index, which would visit a diagonal.
    #[error(
        "bind: `{other}` of `{stage}` is bound to {tag} already, and `{axis}` on the same index would visit only a \
         diagonal; fuse the two, or take another index"
    )]
    Taken {
        /// The stage.
        stage: String,
        /// The axis asked for.
        axis: String,
        /// The index.
        tag: &'static str,
        /// The axis that has it.
        other: String,
    },
    /// An axis fused from data and reduce axes.
    #[error(
        "bind: `{axis}` of `{stage}` is fused from data and reduce axes, so its threads neither own elements nor \
         share one; bind before fusing"
    )]
    Mixed {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
    },
    /// A number of threads that is not known, or none.
    #[error(
        "`{axis}` of `{stage}` is bound to {tag}, which takes a constant extent of at least 1, and its extent is \
         {extent}; split it and bind the inner part"
    )]
    Extent {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// The index.
        tag: &'static str,
        /// The extent, as text.
        extent: String,
    },
    /// A number of blocks that depends on other loops.
    #[error(
        "`{axis}` of `{stage}` is bound to {tag}, whose extent is known before the launch, and its extent is \
         {extent}; bind an axis whose extent depends on sizes alone"
    )]
    BlockExtent {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// The index.
        tag: &'static str,
        /// The extent, as text.
        extent: String,
    },
    /// Two stages of one launch that want different numbers of threads.
    #[error(
        "`{axis}` of `{stage}` has extent {extent} and `{other_axis}` of `{other}` has {other_extent}, and both are \
         bound to {tag} of one launch; split one to the extent of the other"
    )]
    Mismatch {
        /// The index.
        tag: &'static str,
        /// The stage.
        stage: String,
        /// Its axis.
        axis: String,
        /// Its extent, as text.
        extent: String,
        /// The stage that came first.
        other: String,
        /// Its axis.
        other_axis: String,
        /// Its extent, as text.
        other_extent: String,
    },
    /// More threads than a block has.
    #[error("the launch of `{stage}` has {found} threads a block ({parts}), and at most {limit} are legal")]
    BlockTooLarge {
        /// The stage at the root.
        stage: String,
        /// Threads asked for.
        found: i128,
        /// `threadIdx.x 32, threadIdx.y 64`.
        parts: String,
        /// Largest legal number.
        limit: i128,
    },
    /// More blocks than a cluster has.
    #[error("the launch of `{stage}` has {found} blocks a cluster ({parts}), and at most {limit} are legal")]
    ClusterTooLarge {
        /// The stage at the root.
        stage: String,
        /// Blocks asked for.
        found: i128,
        /// `clusterCtaIdx.x 8, clusterCtaIdx.y 4`.
        parts: String,
        /// Largest legal number.
        limit: i128,
    },
    /// An attached stage that spreads memory over threads which do not share it.
    #[error(
        "`{axis}` of `{stage}` is bound to {tag}, and `{stage}` lives in {scope} memory, of which each index of \
         {tag} has its own, so most of it would stay unwritten; set_scope(\"shared\"), or leave the axis unbound"
    )]
    Private {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// The index.
        tag: &'static str,
        /// The scope.
        scope: &'static str,
    },
    /// A stage inside a launch that is to be spread over blocks.
    #[error(
        "`{axis}` of `{stage}` is bound to {tag}, and `{stage}` is computed inside a launch, where every block \
         computes its own part; bind it to a thread index, or compute `{stage}` at the root"
    )]
    BlockInside {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// The index.
        tag: &'static str,
    },
    /// A reduce axis on an index that already chooses the element.
    #[error(
        "`{axis}` of `{stage}` is reduced over {tag}, which also chooses the element that each thread needs, so \
         threads would not fold one element together; take another index"
    )]
    SameIndex {
        /// The stage.
        stage: String,
        /// The reduce axis.
        axis: String,
        /// The index.
        tag: &'static str,
    },
    /// A virtual thread where threads reduce together.
    #[error(
        "`{axis}` of `{owner}` is bound to vthread, and `{stage}` is reduced across threads inside; virtual threads \
         do not reduce together, so leave it unbound or unroll it"
    )]
    VThread {
        /// The stage that is reduced.
        stage: String,
        /// The stage of the axis.
        owner: String,
        /// The axis.
        axis: String,
    },
    /// A data loop where each thread holds one state.
    #[error(
        "`{axis}` of `{stage}` is a data axis inside the reduce axes, and `{reduced}` is bound to {tag}, so a thread \
         would need a state for each of its iterations; reorder it outside of the reduce axes, or bind it"
    )]
    DataInside {
        /// The stage.
        stage: String,
        /// The data axis.
        axis: String,
        /// The bound reduce axis.
        reduced: String,
        /// The index.
        tag: &'static str,
    },
    /// A loop around a cooperative step that threads leave at different times.
    #[error(
        "`{stage}` is reduced across threads inside the loop `{axis}` of `{owner}`, whose extent {extent} differs \
         between threads, so not all of them would arrive; take a loop of equal extent"
    )]
    Uneven {
        /// The stage that is reduced.
        stage: String,
        /// The stage of the loop.
        owner: String,
        /// The loop.
        axis: String,
        /// Its extent, as text.
        extent: String,
    },
    /// A root stage on no thread beside some that are.
    #[error(
        "`{stage}` runs on no block or thread index, and `{other}` does; bind an axis of each stage at the root \
         (fuse() makes one where there is none)"
    )]
    Unbound {
        /// The stage.
        stage: String,
        /// One that is bound.
        other: String,
    },
    /// Memory that ends with the launch, of a stage with a launch of its own.
    #[error(
        "`{stage}` lives in {scope} memory, which ends with its launch, before its readers run; compute it inside a \
         launch with compute_at, or set_scope(\"global\")"
    )]
    Ends {
        /// The stage.
        stage: String,
        /// The scope.
        scope: &'static str,
    },
    /// Global memory inside a launch.
    #[error(
        "`{stage}` is computed inside a launch and lives in global memory, which every block would write; \
         set_scope(\"shared\") or \"local\", or compute it at the root"
    )]
    GlobalInside {
        /// The stage.
        stage: String,
    },
    /// Memory of a block or thread of unknown size.
    #[error(
        "`{stage}` lives in {scope} memory, which takes {takes}, and needs {extent} elements along \
         `{axis}`; attach it deeper, or split so that the part is constant"
    )]
    Size {
        /// The stage.
        stage: String,
        /// The scope.
        scope: &'static str,
        /// What its extents may be.
        takes: &'static str,
        /// The dimension.
        axis: String,
        /// Its extent, as text.
        extent: String,
    },
    /// A CPU loop in a launch.
    #[error("`{axis}` of `{stage}` is parallel, which is for CPU threads, inside a launch; bind it")]
    Parallel {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
    },
    /// A store predicate of something that a store does not know.
    #[error(
        "set_store_predicate of `{stage}` takes a condition of its axes, thread indices and sizes, and this one uses {found}"
    )]
    Predicate {
        /// The stage.
        stage: String,
        /// What it uses.
        found: String,
    },
    /// A reduce axis on blocks without a word on how it ends.
    #[error(
        "`{axis}` of `{stage}` is reduced over {tag}; say with grid_finish(\"second_kernel\") or \
         grid_finish(\"last_block\") how the blocks' parts come together"
    )]
    NoFinish {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// The index.
        tag: &'static str,
    },
    /// A launch in clusters whose blocks' parts are to come together across all of them.
    #[error(
        "`{stage}` is finished by grid_finish, and its launch has clusters along {tag}, whose blocks end together; \
         bind {tag} to nothing there, or fold over it alone"
    )]
    FinishOfClusters {
        /// The stage.
        stage: String,
        /// The index.
        tag: &'static str,
    },
    /// A finish without a reduce axis on blocks.
    #[error(
        "grid_finish of `{stage}`: none of its reduce axes is bound to a block index, and there is no launch before it, of \
         as many threads and by the same block indices but that of the axis, whose last block could do its own; bind one to \
         blockIdx, or as many threads in both"
    )]
    NothingToFinish {
        /// The stage.
        stage: String,
    },
    /// No such way to finish.
    #[error("there is no grid_finish `{found}`; legal are second_kernel, last_block")]
    UnknownFinish {
        /// The name given.
        found: String,
    },
    /// Double buffering without a loop to overlap.
    #[error(
        "double_buffer: `{stage}` is computed at the root, where no loop fills it again; attach it in a loop with compute_at"
    )]
    NoLoop {
        /// The stage.
        stage: String,
    },
}
