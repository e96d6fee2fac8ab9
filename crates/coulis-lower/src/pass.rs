//! The list of passes, and the driver that runs them in order.

use coulis_ir::{Form, Kernel, Target};

/// What lowering is told.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The machine that the kernel is made for.
    pub target: &'a Target,
    /// Leaves loops whole and keeps `T.likely`, as the listings of seed 003 are printed.
    pub simple_mode: bool,
}

/// What a pass may look at beside the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The machine that the kernel is made for.
    pub target: &'a Target,
    /// See [`Options::simple_mode`].
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
    pub run: fn(Kernel, &Context) -> Result<Kernel, LowerError>,
    /// One sentence of what it does.
    pub doc: &'static str,
}

/// Why a kernel cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
}

/// Every pass, in the order in which [`lower`] runs them.
///
/// Order: buffers are flattened first, since every later pass reads one-dimensional indices. Guards leave loops
/// before loops are partitioned, and partitioning comes before vectorizing, so that the main part of a loop
/// vectorizes without guards. Allocations move up after vectorizing, which makes some. Common subexpressions come
/// last of the rewriting passes, since the names that they bind hide sums from the others.
pub static PASSES: &[&Pass] = &[
    &crate::flatten_buffers::PASS,
    &crate::simplify::PASS,
    &crate::hoist_ifs::PASS,
    &crate::name_quotients::PASS,
    &crate::partition_loops::PASS,
    &crate::vectorize_loops::PASS,
    &crate::unroll_loops::PASS,
    &crate::hoist_allocations::PASS,
    &crate::simplify::PASS_FLAT,
    &crate::remove_noop::PASS,
    &crate::rewrite_unsafe_select::PASS,
    &crate::eliminate_common_subexpressions::PASS,
    &crate::drop_likely::PASS,
];

/// Lowers a Nest kernel to a Flat one. The result is not verified: that is the caller's next step.
///
/// `observer` is called after each pass with the kernel that it left.
pub fn lower(
    kernel: Kernel,
    options: &Options,
    observer: &mut dyn FnMut(&Pass, &Kernel),
) -> Result<Kernel, LowerError> {
    let context = Context { target: options.target, simple_mode: options.simple_mode };
    let mut kernel = kernel;
    for pass in PASSES {
        if kernel.form != pass.from {
            return Err(LowerError::Form {
                pass: pass.name,
                kernel: kernel.name,
                wanted: pass.from.name(),
                found: kernel.form.name(),
            });
        }
        kernel = (pass.run)(kernel, &context)?;
        kernel.form = pass.to;
        observer(pass, &kernel);
    }
    Ok(kernel)
}
