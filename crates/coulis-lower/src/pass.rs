//! The list of passes, and the driver that runs them in order.

use coulis_ir::stack::{depth, room, with_stack_for};
use coulis_ir::{Form, Kernel, Site, Target};

/// What lowering is told, and each pass beside the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The machine that the kernel is made for.
    pub target: &'a Target,
    /// Leaves loops whole and keeps `T.likely`, as the listings of seed 003 are printed.
    pub simple_mode: bool,
}

/// One rewriting of kernels.
pub struct Pass {
    /// Name, as in `coulis lower --after NAME`.
    pub name: &'static str,
    /// Form that it takes.
    pub from: Form,
    /// Form that it leaves.
    pub to: Form,
    /// The rewriting. It keeps the meaning of the kernel; the driver sets the form.
    pub run: fn(Kernel, &Options) -> Result<Kernel, LowerError>,
    /// One sentence of what it does.
    pub doc: &'static str,
}

/// Why a kernel cannot be lowered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// The kernel is not in the form that the first pass takes.
    #[error("pass `{pass}` takes a kernel in {wanted} form, and `{kernel}` is in {found} form")]
    Form {
        /// Name of the pass.
        pass: &'static str,
        /// Kernel name.
        kernel: String,
        /// Form that the pass takes.
        wanted: &'static str,
        /// Form of the kernel.
        found: &'static str,
    },
    /// An unrolled loop whose length is not a constant.
    #[error("unrolling loop `{var}` needs a constant extent, got `{extent}`")]
    UnrollExtent {
        /// Loop variable.
        var: String,
        /// Its extent.
        extent: String,
    },
    /// An unrolled loop that would give too much text.
    #[error("unrolling loop `{var}` gives {found} statements, and at most {limit} are legal")]
    UnrollSize {
        /// Loop variable.
        var: String,
        /// Number of statements after unrolling.
        found: i128,
        /// Largest legal number.
        limit: i128,
    },
    /// A vectorized loop whose length is not a constant.
    #[error("vectorizing loop `{var}` needs a constant extent, got `{extent}`")]
    VectorizeExtent {
        /// Loop variable.
        var: String,
        /// Its extent.
        extent: String,
    },
    /// A vectorized loop with too many lanes.
    #[error("vectorizing loop `{var}` gives {found} lanes, and at most {limit} are legal")]
    VectorizeLanes {
        /// Loop variable.
        var: String,
        /// Number of lanes.
        found: i128,
        /// Largest legal number.
        limit: i128,
    },
    /// A tile call that cannot be replaced by statements.
    #[error("{site}{error}")]
    Tile {
        /// Where its text has it, where one call is at fault.
        site: Site,
        /// What is wrong.
        error: coulis_tile::TileError,
    },
    /// Scope ids on a machine without blocks of threads.
    #[error("kernels with scope ids run in blocks of threads, which the cpu has not")]
    NoThreads,
    /// Scope ids that make no launch.
    #[error("{message}")]
    ScopeIds {
        /// What is wrong, and what is legal.
        message: String,
    },
    /// A tile call that is wrong, or that no variant does, or not the one that it asks for.
    #[error("{site}{error}\n  call on {arch}: {call}")]
    Call {
        /// Where its text has it.
        site: Site,
        /// What is wrong, or the table of variants.
        error: coulis_tile::TileError,
        /// The call as text.
        call: Box<str>,
        /// The architecture.
        arch: Box<str>,
    },
    /// A tile call beside a launch whose threads do not reach it.
    #[error(
        "a tile call at {scope} scope stands outside the launch of `{tag}`, whose threads take part in it"
    )]
    CallOutsideLaunch {
        /// Scope of the call.
        scope: &'static str,
        /// The thread index.
        tag: &'static str,
    },
    /// A launch that the last block of the one before it cannot do.
    #[error("a launch is to be done by the last block of the one before it, but {reason}")]
    LastBlock {
        /// What is in the way.
        reason: &'static str,
    },
    /// Threads that work together, in a number that is not known.
    #[error("threads that work together need a constant number of `{tag}`, got `{extent}`")]
    ThreadExtent {
        /// The thread index.
        tag: &'static str,
        /// Its extent.
        extent: String,
    },
    /// One hardware index with two extents in a region.
    #[error(
        "`{tag}` is launched with extent `{first}` and with extent `{second}` in one kernel; they must be equal"
    )]
    LaunchExtents {
        /// The hardware index.
        tag: &'static str,
        /// The extent that stands first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A hardware index whose extent changes inside the region.
    #[error(
        "`{tag}` is launched with extent `{extent}`, and `{var}` is not known where the kernel is launched"
    )]
    LaunchVaries {
        /// The hardware index.
        tag: &'static str,
        /// Its extent.
        extent: String,
        /// The variable.
        var: String,
    },
    /// Threads that touch one place of shared memory where no barrier can stand between them.
    #[error("threads share `{buffer}` under `{cond}`, where a barrier would not be reached by all of them")]
    DivergentSharing {
        /// The buffer.
        buffer: String,
        /// The condition.
        cond: String,
    },
    /// An element of a tile that is spread over threads, accessed as if it were memory.
    #[error("`{buffer}` is spread over threads and is accessed through `.local` windows only")]
    DirectAccess {
        /// The tile.
        buffer: String,
    },
}

/// Every pass, in the order in which [`lower`] runs them.
///
/// Order: scope ids become launches and tile calls statements first, since no other pass reads them; buffers
/// are flattened next, since every later pass reads one-dimensional indices. Guards leave loops before loops
/// are partitioned, and partitioning comes before vectorizing, so that the main part of a loop vectorizes
/// without guards. Allocations move up after vectorizing, which makes some. Prefetches follow, since what one
/// iteration reads is in sight only after unrolling. Indices are narrowed when nothing makes new ones. Common
/// subexpressions come last of the rewriting passes, since the names that they bind hide sums from the
/// others.
pub static PASSES: &[&Pass] = &[
    &crate::resolve_scope_ids::PASS,
    &crate::dispatch_tiles::PASS,
    &crate::unify_launches::PASS,
    &crate::expand_vthreads::PASS,
    &crate::inject_double_buffer::PASS,
    &crate::place_barriers::PASS,
    &crate::flatten_buffers::PASS,
    &crate::simplify::PASS,
    &crate::hoist_ifs::PASS,
    &crate::name_quotients::PASS,
    &crate::partition_loops::PASS,
    &crate::vectorize_loops::PASS,
    &crate::unroll_loops::PASS,
    &crate::hoist_allocations::PASS,
    &crate::simplify::PASS_FLAT,
    &crate::insert_prefetches::PASS,
    &crate::balance_adders::PASS,
    &crate::remove_noop::PASS,
    &crate::pair_extrema::PASS,
    &crate::rewrite_unsafe_select::PASS,
    &crate::narrow_index_types::PASS,
    &crate::eliminate_common_subexpressions::PASS,
    &crate::drop_likely::PASS,
    &crate::finish_in_last_block::PASS,
    &crate::size_shared_memory::PASS,
];

/// What is called after each pass with the kernel that it left; where that is deep, on a thread of its own.
pub type Observer<'o> = dyn FnMut(&Pass, &Kernel) + Send + 'o;

/// Lowers a Tiled or Nest kernel to a Flat one. Passes on tile calls leave a Nest kernel as it is. The result
/// is not verified: that is the caller's next step.
pub fn lower(kernel: Kernel, options: &Options, observer: &mut Observer) -> Result<Kernel, LowerError> {
    lower_and(kernel, options, observer, |kernel| kernel)
}

/// As [`lower`], and what `then` makes of the result, on the stack that a deep kernel got.
pub fn lower_and<T: Send>(
    kernel: Kernel,
    options: &Options,
    observer: &mut Observer,
    then: impl FnOnce(Kernel) -> T + Send,
) -> Result<T, LowerError> {
    run(PASSES, kernel, options, observer, then)
}

/// Runs passes in order; from the first one on for which the stack of this thread does not do, on one that does.
fn run<T: Send>(
    passes: &[&Pass],
    mut kernel: Kernel,
    options: &Options,
    observer: &mut Observer,
    then: impl FnOnce(Kernel) -> T + Send,
) -> Result<T, LowerError> {
    for (nth, pass) in passes.iter().enumerate() {
        let depth = depth(&kernel.body);
        if depth > room() {
            return with_stack_for(depth, || run(&passes[nth..], kernel, options, observer, then));
        }
        if pass.from == Form::Tiled && kernel.form == Form::Nest {
            observer(pass, &kernel);
            continue;
        }
        if kernel.form != pass.from {
            return Err(LowerError::Form {
                pass: pass.name,
                kernel: kernel.name,
                wanted: pass.from.name(),
                found: kernel.form.name(),
            });
        }
        kernel = (pass.run)(kernel, options)?;
        kernel.form = pass.to;
        observer(pass, &kernel);
    }
    Ok(then(kernel))
}

impl From<coulis_tile::TileError> for LowerError {
    fn from(error: coulis_tile::TileError) -> LowerError {
        LowerError::Tile { site: Site::default(), error }
    }
}
