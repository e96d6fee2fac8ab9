//! Work outside of the interpreter's lock: so that other threads of Python go on, no fork happens meanwhile, and
//! Ctrl-C ends what may take long.

use coulis::{Error, interruptible};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::exception;
use crate::fork;

/// Work that ends soon by itself: a launch on a stream, or the read of an array.
pub fn briefly<T: Send, E: Into<Error> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let done = py.detach(|| {
        let _work = fork::work();
        work()
    });
    done.map_err(|error| exception(error.into()))
}

/// Work that may take long: a kernel is compiled, or one that a user wrote runs. Ctrl-C ends it with a `KeyboardInterrupt`.
pub fn at_length<T: Send, E: Into<Error> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    if !hears_of_interrupts(py)? {
        return briefly(py, work);
    }
    let done: PyResult<Result<T, E>> = interruptible(|| {
        // What came before the watch began is noted by the interpreter alone, which would look at it after the work.
        py.check_signals()?;
        Ok(py.detach(|| {
            let _work = fork::work();
            work()
        }))
    });
    done?.map_err(|error| {
        let error = error.into();
        let is_interrupt = error.code == "interrupted";
        match py.check_signals() {
            Err(raised) if is_interrupt => raised,
            _ => exception(error),
        }
    })
}

/// Whether Ctrl-C raises an exception in this thread: it is the main thread's, and the handler is Python's own.
/// Another handler may let the program go on, so nothing is stopped for it.
fn hears_of_interrupts(py: Python<'_>) -> PyResult<bool> {
    struct Parts {
        getsignal: Py<PyAny>,
        sigint: Py<PyAny>,
        raises: Py<PyAny>,
        main_thread: Py<PyAny>,
        get_ident: Py<PyAny>,
    }
    static PARTS: PyOnceLock<Parts> = PyOnceLock::new();
    let parts = PARTS.get_or_try_init(py, || {
        let (signal, threading) = (py.import("signal")?, py.import("threading")?);
        Ok::<_, PyErr>(Parts {
            getsignal: signal.getattr("getsignal")?.unbind(),
            sigint: signal.getattr("SIGINT")?.unbind(),
            raises: signal.getattr("default_int_handler")?.unbind(),
            main_thread: threading.getattr("main_thread")?.unbind(),
            get_ident: threading.getattr("get_ident")?.unbind(),
        })
    })?;
    let main = parts.main_thread.bind(py).call0()?.getattr(pyo3::intern!(py, "ident"))?;
    if !main.eq(parts.get_ident.bind(py).call0()?)? {
        return Ok(false);
    }
    let handler = parts.getsignal.bind(py).call1((&parts.sigint,))?;
    handler.eq(&parts.raises)
}
