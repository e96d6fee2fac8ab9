//! Calls that this thread made last, known again by what Python gives, before anything is read into a request.
//!
//! Reading names and options, making a request and looking it up takes some microseconds; most programs make a few calls
//! over and over. Only calls without options other than axes are kept, and none with reducers of the caller's own.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use coulis::reduce::Prepared;
use coulis::{ArrayInfo, Request};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple};

use crate::array::Given;
use crate::dlpack::Place;
use crate::options::Ops;

/// Calls that are kept; the oldest goes first.
const MANY: usize = 8;

/// A call without its arrays.
pub struct Known {
    /// Its statistics.
    pub ops: Ops,
    /// What was asked.
    pub request: Request,
    /// Its kernel, bound to arrays of one type, shape and strides.
    pub prepared: Prepared,
    /// The class of its results, once it was made.
    pub class: OnceCell<Py<PyAny>>,
}

/// A call, and the array that it was made for.
struct Kept {
    known: Rc<Known>,
    info: ArrayInfo,
    place: Place,
}

thread_local! {
    static RECENT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// The call of these statistics of an array, if it is among those made last.
pub fn find(
    ops: &Bound<'_, PyAny>,
    axis: Option<&Bound<'_, PyAny>>,
    keepdims: bool,
    input: &Given<'_>,
) -> Option<Rc<Known>> {
    RECENT.with_borrow_mut(|recent| {
        let at = recent.iter().position(|kept| kept.is_of(ops, axis, keepdims, input))?;
        recent[..=at].rotate_right(1);
        Some(recent[0].known.clone())
    })
}

/// Keeps a call, if it is one that [`find`] can tell from others.
pub fn keep(known: &Rc<Known>, input: &Given<'_>) {
    if !known.ops.reducers.is_empty() {
        return;
    }
    let kept = Kept { known: known.clone(), info: input.info.clone(), place: input.place };
    RECENT.with_borrow_mut(|recent| {
        recent.truncate(MANY - 1);
        recent.insert(0, kept);
    });
}

impl Kept {
    fn is_of(
        &self,
        ops: &Bound<'_, PyAny>,
        axis: Option<&Bound<'_, PyAny>>,
        keepdims: bool,
        input: &Given<'_>,
    ) -> bool {
        let request = &self.known.request;
        request.keepdims == keepdims
            && self.place == input.place
            && self.info == input.info
            && self.known.has_names(ops)
            && has_axes(request.axes.as_deref(), axis)
    }
}

impl Known {
    /// A call whose results have no class yet.
    pub fn new(ops: Ops, request: Request, prepared: Prepared) -> Known {
        Known { ops, request, prepared, class: OnceCell::new() }
    }

    fn has_names(&self, ops: &Bound<'_, PyAny>) -> bool {
        let names = &self.ops.names;
        let is = |op: &Bound<'_, PyAny>, name: &String| {
            op.cast::<PyString>().is_ok_and(|op| op.to_str().is_ok_and(|op| op == name))
        };
        if self.ops.is_single {
            return is(ops, &names[0]);
        }
        if let Ok(list) = ops.cast::<PyList>() {
            return list.len() == names.len() && list.iter().zip(names).all(|(op, name)| is(&op, name));
        }
        match ops.cast::<PyTuple>() {
            Ok(tuple) => {
                tuple.len() == names.len() && tuple.iter().zip(names).all(|(op, name)| is(&op, name))
            }
            Err(_) => false,
        }
    }
}

/// Whether Python names these axes, by integers that say so at once.
fn has_axes(known: Option<&[i64]>, given: Option<&Bound<'_, PyAny>>) -> bool {
    let is = |given: &Bound<'_, PyAny>, axis: i64| {
        given.is_instance_of::<PyInt>()
            && !given.is_instance_of::<PyBool>()
            && given.extract::<i64>().is_ok_and(|given| given == axis)
    };
    match (known, given.filter(|given| !given.is_none())) {
        (None, None) => true,
        (Some(known), Some(given)) => match given.cast::<PyTuple>() {
            Ok(tuple) => tuple.len() == known.len() && tuple.iter().zip(known).all(|(g, &k)| is(&g, k)),
            Err(_) => known.len() == 1 && is(given, known[0]),
        },
        (None, Some(_)) | (Some(_), None) => false,
    }
}
