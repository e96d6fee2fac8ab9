//! Launches of prepared calls: into memory of coulis, into memory of the caller, and on a device's own memory.

use coulis_io::{AlignedBytes, Array};
use coulis_ir::DType;
use coulis_ir::args::ArrayInfo;
use coulis_plan::OutputSpec;
use coulis_runtime::cuda::DeviceMemory;
use coulis_runtime::{
    DevicePointer, DeviceTimes, RuntimeError, StreamHandle, TimeAmount, Window, call_on_stream,
    wait_for_stream,
};

use super::{Alignment, BoundKernel, Prepared};
use crate::device::check_report;
use crate::empty::Doubt;
use crate::error::Error;
use crate::request::{DeviceChoice, NamedArray, Request};

impl Prepared {
    /// Names, types, and shapes and strides as a kernel has them of the results, in the order of the statistics; `maxloc` has two.
    pub fn results(&self) -> impl ExactSizeIterator<Item = (&str, &ArrayInfo)> {
        let outputs = &self.0.kernel.infos[self.0.kernel.infos.len() - self.0.call.names.len()..];
        self.0.call.names.iter().map(String::as_str).zip(outputs)
    }

    /// Shape of every result as the caller sees it.
    pub fn out_shape(&self) -> &[i64] {
        &self.0.call.spec.problem.out_shape
    }

    /// The axes of every result, from the outermost in memory to the innermost.
    pub fn out_order(&self) -> &[usize] {
        &self.0.call.spec.problem.out_order
    }

    /// Steps of the axes of every result, in elements.
    pub fn out_strides(&self) -> Vec<i64> {
        self.0.call.spec.problem.out_strides()
    }

    /// The result of this type whose elements a launch has left in these bytes.
    ///
    /// Errors: bytes of another size.
    pub fn result(&self, dtype: DType, bytes: AlignedBytes) -> Result<Array, Error> {
        let flat = Array::from_owned(dtype, &[self.0.call.spec.n_results()], bytes)?;
        Ok(flat.view(self.out_shape(), &self.out_strides(), 0)?)
    }

    /// The elements of an array of the shape of results, in the order in which those lie.
    ///
    /// Errors: no memory for a copy.
    pub fn in_order(&self, array: &Array) -> Result<Array, Error> {
        Ok(array.permuted(self.out_order()).to_row_major()?)
    }

    /// The prior of an output, checked, in the order of the result.
    pub(super) fn prior(&self, request: &Request, name: &str, output: &OutputSpec) -> Result<Array, Error> {
        let unnamed = || request.prior.get("").filter(|_| self.0.call.names.len() == 1);
        let Some(prior) = request.prior.get(name).or_else(unnamed) else {
            let message = format!("beta of `{name}` is {}, and no prior of that name is given", output.beta);
            return Err(Error::user("reduce/prior", message));
        };
        let shape = self.out_shape();
        if prior.dtype() != output.dtype || prior.shape() != shape {
            let message = format!(
                "the prior of `{name}` is to be {} of shape {shape:?}, got {} of shape {:?}",
                output.dtype,
                prior.dtype(),
                prior.shape()
            );
            return Err(Error::user("reduce/prior", message));
        }
        self.in_order(prior)
    }

    /// Names of the results that want a prior: those whose beta is not 0.
    pub fn wants_priors(&self) -> Vec<&str> {
        let outputs = self.0.call.names.iter().zip(&self.0.call.spec.outputs);
        outputs.filter(|(_, output)| output.beta != 0.0).map(|(name, _)| name.as_str()).collect()
    }

    /// Memory for the results, zeroed.
    pub fn allocate(&self) -> Result<Vec<AlignedBytes>, Error> {
        let n = usize::try_from(self.0.call.spec.n_results()).unwrap_or(usize::MAX);
        let bytes = |o: &OutputSpec| n.saturating_mul(o.dtype.bytes());
        let sizes = self.0.call.spec.outputs.iter().map(bytes);
        sizes.map(|n| AlignedBytes::zeroed(n).map_err(Error::from)).collect()
    }

    /// Runs once. `inputs` are those that were planned for (the mask last), `priors` those of outputs with a beta.
    pub fn launch(
        &self,
        inputs: &[&Array],
        priors: &[&Array],
        outputs: &mut [AlignedBytes],
    ) -> Result<(), Error> {
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(AlignedBytes::as_mut_slice).collect();
        self.launch_into(inputs, priors, &mut slices)
    }

    /// As [`Prepared::launch`], into memory of the caller: results in their order, aligned for their types.
    pub fn launch_into(
        &self,
        inputs: &[&Array],
        priors: &[&Array],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        if self.0.call.spec.n_results() == 0 {
            return Ok(());
        }
        let kernel = match self.alignment_on_host(inputs) {
            Some(alignment) => &*self.0.kernel_on_host(alignment, inputs)?,
            None => &self.0.kernel,
        };
        let mut windows = self.windows(kernel, inputs, priors, outputs)?;
        let report = coulis_runtime::call(&*kernel.compiled.executable, &kernel.bindings, &mut windows)?;
        check_report(report.as_ref())
    }

    /// As [`Prepared::launch`]; then launches are timed by the device's own clock, the arrays staying in its memory.
    /// `None`, and nothing is run, where it has none.
    pub(crate) fn time(
        &self,
        inputs: &[&Array],
        outputs: &mut [AlignedBytes],
        amount: &TimeAmount,
    ) -> Result<Option<DeviceTimes>, Error> {
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(AlignedBytes::as_mut_slice).collect();
        let mut windows = self.windows(&self.0.kernel, inputs, &[], &mut slices)?;
        let executable = &*self.0.kernel.compiled.executable;
        Ok(coulis_runtime::time(executable, &self.0.kernel.bindings, &mut windows, amount)?)
    }

    /// Blocks, and threads of a block, of the first launch, on devices that have them.
    pub fn grid(&self) -> Option<([u32; 3], [u32; 3])> {
        self.0.kernel.compiled.executable.grid(&self.0.kernel.bindings)
    }

    /// The memory of as many arrays as the call was prepared for.
    fn windows<'a>(
        &self,
        kernel: &BoundKernel,
        inputs: &[&'a Array],
        priors: &[&'a Array],
        outputs: &'a mut [&mut [u8]],
    ) -> Result<Vec<Window<'a>>, Error> {
        let n_outputs = self.0.call.names.len();
        let n_priors = self.wants_priors().len();
        let n_inputs = kernel.infos.len() - n_outputs - n_priors;
        let given = [
            ("inputs", n_inputs, inputs.len()),
            ("priors", n_priors, priors.len()),
            ("outputs", n_outputs, outputs.len()),
        ];
        if let Some((what, wanted, found)) = given.into_iter().find(|(_, wanted, found)| wanted != found) {
            let message = format!("the call was prepared for {wanted} {what}, got {found}");
            return Err(Error::user("reduce/launch", message));
        }
        kernel.windows(inputs, priors, outputs)
    }

    /// Puts one run on a stream of the device and does not wait. `pointers` are those of the inputs, the mask, the priors
    /// and the outputs, in this order; outputs are row-major.
    pub fn launch_on_stream(&self, pointers: &[DevicePointer], stream: StreamHandle) -> Result<(), Error> {
        if self.0.call.spec.n_results() == 0 {
            return Ok(());
        }
        let put = |kernel: &BoundKernel| {
            let there = pointers.iter().zip(&kernel.starts).map(|(pointer, start)| pointer.moved(*start));
            call_on_stream(&*kernel.compiled.executable, &kernel.bindings, &there.collect::<Vec<_>>(), stream)
        };
        let behind = self.alignment_of(pointers.iter().map(|pointer| pointer.address()));
        let mut done = put(&self.0.kernel);
        for alignment in behind.into_iter().chain([Alignment::Anywhere]) {
            if !done.as_ref().is_err_and(RuntimeError::is_of_alignment) {
                break;
            }
            done = put(&*self.0.kernel_at(alignment)?);
        }
        check_report(done?.as_ref())
    }

    /// How far behind addresses that every access may have the inputs begin, which are at these; `None` where all begin at
    /// one, or one of them between elements, and for a plan that is given.
    fn alignment_of(&self, addresses: impl Iterator<Item = usize>) -> Option<Alignment> {
        let spec = &self.0.call.spec;
        let aligned = self.0.device.target().vector_bytes as usize;
        let offsets: Vec<i64> = (spec.inputs.iter().zip(addresses).zip(&self.0.kernel.starts))
            .map(|((dtype, address), start)| {
                let bytes = address.wrapping_add_signed(*start) % aligned;
                bytes.is_multiple_of(dtype.bytes()).then_some((bytes / dtype.bytes()) as i64)
            })
            .collect::<Option<_>>()?;
        let is_behind = offsets.iter().any(|&offset| offset != 0) && self.0.request.plan.is_none();
        is_behind.then_some(Alignment::Behind(offsets))
    }

    /// The same of arrays of the host, where a device reads them there and takes only aligned accesses: the simulator.
    fn alignment_on_host(&self, inputs: &[&Array]) -> Option<Alignment> {
        let is_simulated = matches!(self.0.request.device, DeviceChoice::Sim { .. });
        let addresses = inputs.iter().map(|array| array.as_ptr().addr());
        if is_simulated { self.alignment_of(addresses) } else { None }
    }

    /// Waits until everything on a stream of the device is done. Faults of kernels show here.
    pub fn wait(&self, stream: StreamHandle) -> Result<(), Error> {
        Ok(wait_for_stream(&*self.0.kernel.compiled.executable, stream)?)
    }

    /// Memory of the device, unwritten; `None` where that is the host's.
    pub fn allocate_on_device(&self, bytes: usize) -> Result<Option<DeviceMemory>, Error> {
        Ok(self.0.kernel.compiled.executable.allocate(bytes)?)
    }

    /// Whether an interrupt ends a launch; else it reads its arrays to the end.
    pub fn hears_interrupts(&self) -> bool {
        self.0.kernel.compiled.executable.hears_interrupts()
    }

    /// Whether a result may be of no element at all, so that it is to be looked at after the run.
    pub fn may_be_empty(&self) -> bool {
        let call = &self.0.call;
        match &call.normalization {
            Some(normalization) => call.spec.mask && normalization.refuses_empty.is_some(),
            None => call.spec.mask || call.spec.reducer.nan == coulis_ir::NanPolicy::Ignore,
        }
    }

    /// The arrays of a call in the order in which a launch takes them: those that are folded, the mask if there is one, and those beside
    /// the elements.
    pub fn as_read<T>(&self, mut given: Vec<T>, mask: Option<T>) -> Vec<T> {
        if let Some(mask) = mask {
            given.insert(self.0.call.spec.inputs.len().min(given.len()), mask);
        }
        given
    }

    /// Refuses positions and extrema of nothing, which only show after the run. `shape` is the first input's; the
    /// request holds the mask.
    pub fn check_results(
        &self,
        request: &Request,
        shape: &[i64],
        results: &[NamedArray],
    ) -> Result<(), Error> {
        crate::empty::refuse(shape, request, &self.0.call, results)
    }

    /// The results that tell after a run whether no element took part in an output.
    pub fn doubts(&self) -> Result<Vec<Doubt>, Error> {
        crate::empty::doubts(&self.0.call)
    }
}
