//! A kernel with the arrays that it takes, and the kernels of a call for memory that begins elsewhere than accesses do.
//!
//! Accesses of several elements begin at multiples of their width. Where arrays lie is known at a launch alone, so a call is
//! planned for memory that begins at such a multiple; for other memory it is planned once more, with what is known of it.

use std::sync::{Arc, PoisonError};

use coulis_io::Array;
use coulis_ir::args::{ArgInfo, ArrayInfo, Bindings, bind_args};
use coulis_plan::Spec;
use coulis_runtime::Window;

use super::compiled::{self, Compiled};
use super::{Call, Parts};
use crate::error::Error;

/// A kernel with the arrays that it takes.
pub(super) struct BoundKernel {
    pub compiled: Arc<Compiled>,
    pub bindings: Bindings,
    pub infos: Vec<ArrayInfo>,
    /// Bytes from the first element of each array to where the kernel has it.
    pub starts: Vec<isize>,
}

impl BoundKernel {
    pub fn new(compiled: Arc<Compiled>, spec: &Spec) -> Result<BoundKernel, Error> {
        let mut infos = spec.array_infos();
        let outputs = spec.output_infos();
        let priors = outputs.iter().zip(&spec.outputs).filter(|(_, o)| o.beta != 0.0).map(|(i, _)| i.clone());
        infos.extend(priors);
        infos.extend(outputs.iter().cloned());
        let starts =
            spec.array_starts().into_iter().chain(std::iter::repeat(spec.output_start())).zip(&infos);
        let starts = starts.map(|(start, info)| start as isize * info.dtype.bytes() as isize).collect();
        let args: Vec<ArgInfo> = infos.iter().cloned().map(ArgInfo::Array).collect();
        let bindings = bind_args(&compiled.signature, &args).map_err(|e| Error::bug("reduce/bind", e))?;
        Ok(BoundKernel { compiled, bindings, infos, starts })
    }

    /// Whether what the kernel has of each of these arrays is memory that they have, which may not be so of what is before them.
    fn begins_within(&self, inputs: &[&Array]) -> bool {
        inputs
            .iter()
            .zip(&self.starts)
            .all(|(array, start)| array.storage().1.checked_add_signed(*start).is_some())
    }

    /// The memory of arrays as the kernel sees it.
    pub fn windows<'a>(
        &self,
        inputs: &[&'a Array],
        priors: &[&'a Array],
        outputs: &'a mut [&mut [u8]],
    ) -> Result<Vec<Window<'a>>, Error> {
        let mut windows = Vec::with_capacity(self.infos.len());
        for (array, (info, start)) in inputs.iter().chain(priors).zip(self.infos.iter().zip(&self.starts)) {
            let (bytes, offset) = array.storage();
            windows.push(Window::read(bytes, offset.wrapping_add_signed(*start), info)?);
        }
        let n_read = windows.len();
        let placed = self.infos.iter().zip(&self.starts).skip(n_read);
        for (bytes, (info, start)) in outputs.iter_mut().zip(placed) {
            windows.push(Window::write(bytes, 0usize.wrapping_add_signed(*start), info)?);
        }
        Ok(windows)
    }
}

/// Where memory begins that is not aligned for every access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Alignment {
    /// Each input so many elements behind an address that is, and the rest at one.
    Behind(Vec<i64>),
    /// Anywhere.
    Anywhere,
}

impl Parts {
    pub(super) fn kernel_at(&self, alignment: Alignment) -> Result<Arc<BoundKernel>, Error> {
        let known = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = known().get(&alignment).cloned() {
            return Ok(kernel);
        }
        let kernel = match &alignment {
            Alignment::Behind(offsets) => {
                let call = Call { spec: self.call.spec.with_offsets(offsets), ..self.call.clone() };
                BoundKernel::new(compiled::compile_own(&call, &self.request, &self.device)?, &call.spec)?
            }
            Alignment::Anywhere => {
                let compiled = compiled::compile_by_elements(&self.call, &self.request, &self.device)?;
                BoundKernel::new(compiled, &self.call.spec)?
            }
        };
        Ok(known().entry(alignment).or_insert(Arc::new(kernel)).clone())
    }

    /// As [`Parts::kernel_at`], for arrays of the host, of which nothing but themselves may be read.
    pub(super) fn kernel_on_host(
        &self,
        alignment: Alignment,
        inputs: &[&Array],
    ) -> Result<Arc<BoundKernel>, Error> {
        let kernel = self.kernel_at(alignment)?;
        if kernel.begins_within(inputs) { Ok(kernel) } else { self.kernel_at(Alignment::Anywhere) }
    }
}
