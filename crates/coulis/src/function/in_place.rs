//! Calls on memory of the caller: arrays are read and written where they are.

use coulis_ir::DType;
use coulis_ir::args::{ArgInfo, ArrayInfo, BindError, Bindings, bind_args};
use coulis_runtime::Window;
use coulis_sim::{SimArg, SimArray};

use super::arguments::{check_reach, fits_int32};
use super::{Function, Runner};
use crate::device::accused;
use crate::error::Error;

/// An argument in memory of the caller.
pub enum InPlace<'a> {
    /// For a scalar.
    Int(i64),
    /// For a buffer that the kernel does not store to.
    Read {
        /// Element type, shape and strides.
        info: ArrayInfo,
        /// The memory that holds every element.
        bytes: &'a [u8],
        /// Where element `[0, ..., 0]` is in it, in bytes.
        offset: usize,
    },
    /// For a buffer that the kernel may store to; element `[0, ..., 0]` is at its begin.
    Write {
        /// Element type, shape and strides.
        info: ArrayInfo,
        /// The memory that holds every element.
        bytes: &'a mut [u8],
    },
}

impl InPlace<'_> {
    fn info(&self) -> ArgInfo {
        match self {
            InPlace::Int(value) => ArgInfo::Scalar(*value),
            InPlace::Read { info, .. } | InPlace::Write { info, .. } => ArgInfo::Array(info.clone()),
        }
    }
}

impl Function {
    /// Calls the function on memory of the caller, one argument a parameter. A device with memory of its own copies the
    /// arrays there and the written ones back. Types, shapes, strides and overlaps inside an output are checked first.
    pub fn call_in_place(&self, arguments: &mut [InPlace<'_>]) -> Result<(), Error> {
        let infos: Vec<ArgInfo> = arguments.iter().map(InPlace::info).collect();
        let (function, bindings) = self.bound(&infos)?;
        for (facts, argument) in self.parameters.iter().zip(arguments.iter()) {
            if let (true, InPlace::Read { .. }) = (facts.is_written, argument) {
                let message = format!("`{}` is an output, and its array may not be written", facts.name);
                return Err(Error::user("call/output", message));
            }
        }
        match &function.runner {
            Runner::Executable(executable) => {
                let mut windows = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    windows.push(
                        match argument {
                            InPlace::Int(_) => continue,
                            InPlace::Read { info, bytes, offset } => Window::read(bytes, *offset, info),
                            InPlace::Write { info, bytes } => Window::write(bytes, info),
                        }
                        .map_err(|error| Error::user("call/memory", error))?,
                    );
                }
                Ok(coulis_runtime::call(&**executable, &bindings, &mut windows)?)
            }
            Runner::Simulator(options) => {
                let parameters = function.parameters.iter().zip(arguments);
                let mut args: Vec<SimArg<'_>> = parameters
                    .map(|(facts, argument)| match argument {
                        InPlace::Int(value) => SimArg::Scalar(*value),
                        InPlace::Read { info, bytes, offset } => {
                            SimArg::Array(SimArray { offset: *offset, ..SimArray::read(bytes, info.clone()) })
                        }
                        InPlace::Write { info, bytes } => SimArg::Array(SimArray {
                            initialised: facts.is_read,
                            ..SimArray::update(bytes, info.clone())
                        }),
                    })
                    .collect();
                let report = coulis_sim::run(&function.checked, &mut args, options)
                    .map_err(|error| Error::user("sim", error))?;
                if report.is_clean() { Ok(()) } else { Err(accused(&report)) }
            }
        }
    }

    /// The function for arguments of these kinds, itself or its twin with int64 sizes, and the values of its sizes.
    fn bound(&self, infos: &[ArgInfo]) -> Result<(&Function, Bindings), Error> {
        let bindings = bind_args(self.kernel(), infos);
        let is_beyond = match &bindings {
            Ok(bindings) => !fits_int32(self.kernel(), infos, bindings),
            Err(error) => matches!(error, BindError::Range { dtype: DType::I32, .. }),
        };
        if is_beyond && let Some(twin) = self.twin()? {
            return twin.bound(infos);
        }
        let bindings = bindings.map_err(|error| Error::user("call/arguments", error))?;
        check_reach(self.kernel(), &self.parameters, infos)?;
        Ok((self, bindings))
    }
}
