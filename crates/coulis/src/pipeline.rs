//! The one way from a schedule to something that runs: build the nest, lower it, verify it.
//!
//! `reduce`, `te` and text come through here; there is no other path to an executor. What a kernel goes through is
//! written down on the way, as its [`Route`].

use coulis_ir::stmt::TileOp;
use coulis_ir::visit::rewrite_stmt;
use coulis_ir::{Checked, Kernel, Stmt, Target};
use coulis_lower::{Observer, Options, Pass};
use coulis_schedule::{Schedule, build_nest};
use coulis_tensor::Tensor;

use crate::error::Error;

/// What a kernel went through, in order: `schedule/build_nest`, `lower/flatten_buffers`, ..., `ir/verify`, and the
/// device that made it executable, `runtime/cpu_c`.
pub type Route = Vec<String>;

/// A kernel that may run, and how it came to be.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The permitted kernel, in Flat form.
    pub checked: Checked,
    /// What it went through.
    pub route: Route,
}

/// The checked Flat kernel of a schedule, for a machine.
pub fn compile_schedule(
    schedule: &Schedule,
    args: &[Tensor],
    name: &str,
    target: &Target,
) -> Result<Lowered, Error> {
    let nest = build_nest(schedule, args, name)?;
    let options = Options { target, simple_mode: false };
    let permit = |flat| permit_for(permit_scheduled(flat, schedule)?, target);
    let mut lowered = lowered(nest, &options, &mut |_, _| {}, permit)?;
    lowered.route.insert(0, "schedule/build_nest".to_owned());
    Ok(lowered)
}

/// Lowers a kernel of a schedule for a machine, and verifies the result with what the machine has.
pub fn lower_for(nest: Kernel, target: &Target, observer: &mut Observer) -> Result<Lowered, Error> {
    let options = Options { target, simple_mode: false };
    lowered(nest, &options, observer, |flat| permit_for(permit(flat)?, target))
}

/// The permit of a kernel that a schedule was lowered to, for its machine. Work that is left to no thread,
/// and a machine without room for it, are the user's to change; any other fault is ours. On machines without
/// threads there is nothing more to check.
pub fn permit_for(checked: Checked, target: &Target) -> Result<Checked, Error> {
    if !target.has_threads() {
        return Ok(checked);
    }
    coulis_ir::verify::verify_more_for(checked, target).map_err(|faults| {
        if faults.faults.iter().all(coulis_ir::verify::Fault::is_of_schedule) {
            return given_faults(faults);
        }
        Error::from(faults)
    })
}

/// The kernel with the reducers by which its tile calls fold: those that are written in them as they are to be folded, and
/// those of the names in them.
pub(crate) fn with_reducers(kernel: Kernel) -> Result<Kernel, Error> {
    let body = rewrite_stmt(kernel.body, &mut |_| None, &mut |stmt| {
        let Stmt::Tile(mut call) = stmt else { return stmt };
        if let TileOp::ReduceBy { reducer, accum, .. } = &mut call.op
            && let Some(folded) = crate::tile_reducer::written(reducer, *accum)
        {
            **reducer = folded;
        }
        Stmt::Tile(call)
    });
    let written = Kernel { body, ..kernel };
    Ok(coulis_lower::resolve_reducers(written, &crate::tile_reducer::tile_reducer)?)
}

/// Lowers a Tiled or Nest kernel, whose named reducers are those of the catalogue, and verifies the result.
/// `observer` sees the kernel after each pass.
pub fn lower_kernel(nest: Kernel, options: &Options, observer: &mut Observer) -> Result<Lowered, Error> {
    lowered(nest, options, observer, permit)
}

/// As [`lower_kernel`], of a nest that this schedule made.
pub fn lower_scheduled(
    schedule: &Schedule,
    nest: Kernel,
    options: &Options,
    observer: &mut Observer,
) -> Result<Lowered, Error> {
    lowered(nest, options, observer, |flat| permit_scheduled(flat, schedule))
}

fn lowered(
    nest: Kernel,
    options: &Options,
    observer: &mut Observer,
    check: impl FnOnce(Kernel) -> Result<Checked, Error> + Send,
) -> Result<Lowered, Error> {
    let mut route = Route::new();
    let nest = with_reducers(nest)?;
    let mut noted = |pass: &Pass, kernel: &Kernel| {
        route.push(format!("lower/{}", pass.name));
        observer(pass, kernel);
    };
    let checked = coulis_lower::lower_and(nest, options, &mut noted, check)??;
    route.push(VERIFY.to_owned());
    Ok(Lowered { checked, route })
}

/// The step of a route that is the verifier.
pub const VERIFY: &str = "ir/verify";

/// The permit of a kernel that coulis made; a fault in it is ours.
pub fn permit(kernel: Kernel) -> Result<Checked, Error> {
    coulis_ir::verify::verify(kernel).map_err(Error::from)
}

/// The permit of a kernel that coulis made as a schedule says. A fault that a pragma brings about is the user's to mend.
fn permit_scheduled(kernel: Kernel, schedule: &Schedule) -> Result<Checked, Error> {
    coulis_ir::verify::verify(kernel)
        .map_err(|faults| schedule.pragma_fault(&faults).map_or_else(|| Error::from(faults), Error::from))
}

/// The permit of a kernel that a user wrote.
pub fn permit_given(kernel: Kernel) -> Result<Checked, Error> {
    coulis_ir::verify::verify(kernel).map_err(given_faults)
}

/// Faults of a kernel that a user wrote.
pub(crate) fn given_faults(faults: coulis_ir::verify::Faults) -> Error {
    Error::user("verify", &faults).with_help(faults.excerpt())
}
