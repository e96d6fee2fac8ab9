//! Calls that this thread made last, known again by what Python gives, before anything is read into a request.
//!
//! Reading names and options, making a request and looking it up takes some microseconds; most programs make a few calls
//! over and over. Only calls without options other than axes and the settings of a map are kept, and none with
//! reducers of the caller's own.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use coulis::reduce::Prepared;
use coulis::{ArrayInfo, Order, Request};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple};

use crate::array::Given;
use crate::dlpack::Place;
use crate::options::Ops;
use crate::result::n_results;

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
    /// Results of each statistic.
    pub n_results: Vec<usize>,
    /// The class of its results, once it was made.
    pub class: OnceCell<Py<PyAny>>,
}

/// A call as Python words it.
pub struct Wanted<'a, 'py> {
    /// The statistics, or the name of a map.
    pub ops: &'a Bound<'py, PyAny>,
    /// The axes.
    pub axis: Option<&'a Bound<'py, PyAny>>,
    /// Whether reduced axes stay.
    pub keepdims: bool,
    /// Where the elements of results lie.
    pub order: Order,
    /// The settings of a map.
    pub map: Option<&'a NormalizeSettings>,
}

/// What is set of a map over the elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NormalizeSettings {
    /// Names of the arrays beside the first.
    pub beside: Vec<String>,
    /// Its numbers.
    pub parameters: Vec<(String, f64)>,
}

/// A call, and the arrays that it was made for.
struct Kept {
    known: Rc<Known>,
    map: Option<NormalizeSettings>,
    infos: Vec<ArrayInfo>,
    place: Place,
}

thread_local! {
    static RECENT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// The call of these arrays, if it is among those made last.
pub fn find(wanted: &Wanted<'_, '_>, inputs: &[Given<'_>]) -> Option<Rc<Known>> {
    RECENT.with_borrow_mut(|recent| {
        let at = recent.iter().position(|kept| kept.is_of(wanted, inputs))?;
        recent[..=at].rotate_right(1);
        Some(recent[0].known.clone())
    })
}

/// Keeps a call, if it is one that [`find`] can tell from others.
pub fn keep(known: &Rc<Known>, map: Option<NormalizeSettings>, inputs: &[Given<'_>]) {
    if !known.ops.reducers.is_empty() {
        return;
    }
    let infos = inputs.iter().map(|input| input.info.clone()).collect();
    let kept = Kept { known: known.clone(), map, infos, place: inputs[0].place };
    RECENT.with_borrow_mut(|recent| {
        recent.truncate(MANY - 1);
        recent.insert(0, kept);
    });
}

impl Kept {
    fn is_of(&self, wanted: &Wanted<'_, '_>, inputs: &[Given<'_>]) -> bool {
        let request = &self.known.request;
        request.keepdims == wanted.keepdims
            && request.order == wanted.order
            && self.infos.len() == inputs.len()
            && self
                .infos
                .iter()
                .zip(inputs)
                .all(|(info, input)| self.place == input.place && *info == input.info)
            && self.map.as_ref() == wanted.map
            && self.known.has_names(wanted.ops)
            && has_axes(request.axes.as_deref(), wanted.axis)
    }
}

impl Known {
    /// A call whose results have no class yet.
    pub fn new(ops: Ops, request: Request, prepared: Prepared) -> Known {
        let n_results = n_results(&ops, &prepared);
        Known { ops, request, prepared, n_results, class: OnceCell::new() }
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
