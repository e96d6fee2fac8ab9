//! Calls on memory of the caller: arrays are read and written where they are.

use coulis_ir::DType;
use coulis_ir::args::{ArgInfo, ArrayInfo, BindError, Bindings, bind_args};
use coulis_runtime::{DevicePointer, Executable, StreamHandle, Window};
use coulis_sim::{SimArg, SimArray};

use super::arguments::check_reach;
use super::simulate::refused;
use super::{Function, Runner};
use crate::device::check_report;
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
    /// For a buffer that the kernel may store to.
    Write {
        /// Element type, shape and strides.
        info: ArrayInfo,
        /// The memory that holds every element.
        bytes: &'a mut [u8],
        /// Where element `[0, ..., 0]` is in it, in bytes.
        offset: usize,
    },
}

/// An argument in memory of a device.
pub enum OnDevice {
    /// For a scalar.
    Int(i64),
    /// For a buffer: its type, shape and strides, and where it is.
    Array(ArrayInfo, DevicePointer),
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
                            InPlace::Write { info, bytes, offset } => Window::write(bytes, *offset, info),
                        }
                        .map_err(|error| Error::user("call/memory", error))?,
                    );
                }
                let report = coulis_runtime::call(&**executable, &bindings, &mut windows)?;
                check_report(report.as_ref())
            }
            Runner::Simulator(options) => {
                let parameters = function.parameters.iter().zip(arguments);
                let mut args: Vec<SimArg<'_>> = parameters
                    .map(|(facts, argument)| match argument {
                        InPlace::Int(value) => SimArg::Scalar(*value),
                        InPlace::Read { info, bytes, offset } => {
                            SimArg::Array(SimArray { offset: *offset, ..SimArray::read(bytes, info.clone()) })
                        }
                        InPlace::Write { info, bytes, offset } => SimArg::Array(SimArray {
                            offset: *offset,
                            initialised: facts.is_read,
                            ..SimArray::update(bytes, info.clone())
                        }),
                    })
                    .collect();
                let report = coulis_sim::run(&function.checked, &mut args, options).map_err(refused)?;
                check_report(Some(&report))
            }
        }
    }

    /// Puts one call on a stream of the device and does not wait; one argument a parameter, in memory of that device.
    pub fn call_on_stream(&self, arguments: &[OnDevice], stream: StreamHandle) -> Result<(), Error> {
        let info = |argument: &OnDevice| match argument {
            OnDevice::Int(value) => ArgInfo::Scalar(*value),
            OnDevice::Array(info, _) => ArgInfo::Array(info.clone()),
        };
        let infos: Vec<ArgInfo> = arguments.iter().map(info).collect();
        let (function, bindings) = self.bound(&infos)?;
        let pointers: Vec<DevicePointer> = arguments
            .iter()
            .filter_map(|argument| match argument {
                OnDevice::Int(_) => None,
                OnDevice::Array(_, pointer) => Some(*pointer),
            })
            .collect();
        let executable = function.executable()?;
        let report = coulis_runtime::call_on_stream(executable, &bindings, &pointers, stream)?;
        check_report(report.as_ref())
    }

    /// Waits until everything on a stream of the device is done. Faults of kernels show here.
    pub fn wait(&self, stream: StreamHandle) -> Result<(), Error> {
        Ok(coulis_runtime::wait_for_stream(self.executable()?, stream)?)
    }

    fn executable(&self) -> Result<&dyn Executable, Error> {
        match &self.runner {
            Runner::Executable(executable) => Ok(&**executable),
            Runner::Simulator(_) => {
                let message =
                    "the simulator has no memory and no streams of its own; give it arrays of the host";
                Err(Error::user("call/memory", message))
            }
        }
    }

    /// The function for arguments of these kinds, itself or its twin with int64 sizes, and the values of its sizes.
    fn bound(&self, infos: &[ArgInfo]) -> Result<(&Function, Bindings), Error> {
        let bindings = bind_args(self.kernel(), infos);
        let is_beyond = match &bindings {
            Ok(bindings) => !self.fits_int32(infos, bindings),
            Err(error) => matches!(error, BindError::Range { dtype: DType::I32, .. }),
        };
        if is_beyond && let Some(twin) = self.twin()? {
            return twin.bound(infos);
        }
        let bindings = bindings.map_err(|error| Error::user("call/arguments", error))?;
        check_reach(self.kernel(), &self.parameters, infos)?;
        self.check_own_memory(&bindings)?;
        Ok((self, bindings))
    }
}
