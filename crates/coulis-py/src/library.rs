//! Which library an array is of, and how that library makes arrays for results.
//!
//! A type belongs to the first library in its method resolution order that is known here. What a library is asked to do
//! is written in Python (`coulis._libraries`), but for NumPy, whose calls are short enough for that to show.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use coulis::{DType, strides_in};
use half_bits::to_f64;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::exchange::Exchange;

mod half_bits;

/// The library of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// NumPy; full reductions give scalars.
    NumPy,
    /// Anything else that `coulis._libraries` knows, by its name there.
    Named(&'static str),
}

/// Libraries with an adapter of their own. Others that follow the Array API standard go by `other`.
const NAMED: [&str; 5] = ["torch", "cupy", "jax", "pyarrow", "dask"];

/// What is known of a type of arrays.
#[derive(Clone, Copy)]
pub struct TypeFacts {
    /// Its library; `None` where it is none that is known by name.
    pub library: Option<Library>,
    /// Whether it is NumPy's array, or one derived from it.
    pub is_ndarray: bool,
    /// Whether it is an array of NumPy with a mask next to it.
    pub is_masked: bool,
    /// Its functions for the exchange of arrays, where it has them.
    pub exchange: Option<&'static Exchange>,
}

impl TypeFacts {
    /// The facts of an object's type, which are found out once.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<TypeFacts> {
        type Known = HashMap<usize, (Py<PyType>, TypeFacts)>;
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let ty = object.get_type();
        let key = ty.as_ptr().addr();
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, facts)) = lock().get_or_insert_default().get(&key) {
            return Ok(*facts);
        }
        let py = object.py();
        let library = Library::of_type(&ty)?;
        let is_ndarray = library == Some(Library::NumPy) && ty.is_subclass(numpy(py)?.ndarray.bind(py))?;
        let facts = TypeFacts {
            library,
            is_ndarray,
            is_masked: is_ndarray && ty.hasattr(intern!(py, "harden_mask"))?,
            exchange: Exchange::of_type(&ty),
        };
        lock().get_or_insert_default().insert(key, (ty.unbind(), facts));
        Ok(facts)
    }
}

impl Library {
    fn of_type(ty: &Bound<'_, PyType>) -> PyResult<Option<Library>> {
        for class in ty.mro() {
            let module: String = match class.getattr(intern!(ty.py(), "__module__"))?.extract() {
                Ok(module) => module,
                Err(_) => continue,
            };
            let root = module.split('.').next().unwrap_or_default();
            let root = if root == "jaxlib" { "jax" } else { root };
            if root == "numpy" {
                return Ok(Some(Library::NumPy));
            }
            if let Some(name) = NAMED.iter().find(|name| **name == root) {
                return Ok(Some(Library::Named(name)));
            }
        }
        Ok(None)
    }

    /// The adapter of a library that is not NumPy.
    pub fn adapter<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = match self {
            Library::NumPy => "numpy",
            Library::Named(name) => name,
        };
        static TABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let table = TABLE.get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("coulis._libraries")?.getattr("ADAPTERS")?.unbind())
        })?;
        table.bind(py).get_item(name)
    }

    /// Whether its arrays lie in memory in any order of their axes.
    pub fn has_strides(self) -> bool {
        matches!(self, Library::NumPy | Library::Named("torch" | "cupy"))
    }

    /// Tells the library that the elements of its array are about to be overwritten.
    ///
    /// Errors: the library's arrays are not written, or this one is not to be; `what` is its name in the message.
    pub fn written(self, object: &Bound<'_, PyAny>, what: &str) -> PyResult<()> {
        if self == Library::NumPy {
            return Ok(());
        }
        let py = object.py();
        self.adapter(py)?.call_method1(intern!(py, "written"), (object, what)).map(drop)
    }
}

/// NumPy's parts that are used often.
pub struct NumPy {
    /// `numpy.ndarray`.
    pub ndarray: Py<PyAny>,
    /// `numpy.asarray`.
    pub asarray: Py<PyAny>,
    empty: Py<PyAny>,
    /// Scalar types by [`DType`], in the order of [`DType::ALL`]; those of `ml_dtypes` where that is installed.
    scalars: Vec<Option<Py<PyAny>>>,
}

/// NumPy, which is imported when the first array of it comes.
pub fn numpy(py: Python<'_>) -> PyResult<&NumPy> {
    static NUMPY: PyOnceLock<NumPy> = PyOnceLock::new();
    NUMPY.get_or_try_init(py, || {
        let module = py.import("numpy")?;
        let get = |name: &str| Ok::<_, PyErr>(module.getattr(name)?.unbind());
        let narrow = py.import("ml_dtypes").ok();
        let scalar = |dtype: &DType| match dtype {
            DType::BF16 => narrow.as_ref()?.getattr("bfloat16").ok(),
            DType::F8E4M3 => narrow.as_ref()?.getattr("float8_e4m3fn").ok(),
            DType::F8E5M2 => narrow.as_ref()?.getattr("float8_e5m2").ok(),
            DType::Bool => module.getattr("bool_").ok(),
            other => module.getattr(other.name()).ok(),
        };
        Ok(NumPy {
            ndarray: get("ndarray")?,
            asarray: get("asarray")?,
            empty: get("empty")?,
            scalars: DType::ALL.iter().map(|d| scalar(d).map(Bound::unbind)).collect(),
        })
    })
}

impl NumPy {
    /// The scalar type of an element type.
    fn scalar_type<'py>(&self, py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
        let at = DType::ALL.iter().position(|d| *d == dtype);
        let found = at.and_then(|at| self.scalars[at].as_ref());
        found.map(|ty| ty.bind(py).clone()).ok_or_else(|| {
            let message = format!("results of {dtype} need the package ml_dtypes, which is not installed");
            pyo3::exceptions::PyRuntimeError::new_err(message)
        })
    }

    /// An array of a type of `ml_dtypes`, of which DLPack does not speak, as integers of as many bytes in the same memory, and its
    /// type; `None` of other arrays.
    pub fn as_integers<'py>(
        &self,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, DType)>> {
        let py = array.py();
        let dtype = array.getattr(intern!(py, "dtype"))?;
        let ty = dtype.getattr(intern!(py, "type"))?;
        let is_native = dtype.getattr(intern!(py, "isnative"))?.is_truthy()?;
        for held in [DType::BF16, DType::F8E4M3, DType::F8E5M2] {
            if is_native && self.scalar_type(py, held).is_ok_and(|known| known.is(&ty)) {
                let bytes = if held.bytes() == 1 { DType::U8 } else { DType::U16 };
                let view = array.call_method1(intern!(py, "view"), (self.scalar_type(py, bytes)?,))?;
                return Ok(Some((view, held)));
            }
        }
        Ok(None)
    }

    /// An unwritten array without gaps, with its axes in this order from the outermost in memory.
    pub fn empty<'py>(
        &self,
        py: Python<'py>,
        shape: &[i64],
        dtype: DType,
        order: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (extents, ty) = (PyTuple::new(py, shape)?, self.scalar_type(py, dtype)?);
        if order.is_sorted() {
            return self.empty.bind(py).call1((extents, ty));
        }
        let steps = strides_in(shape, order).into_iter().map(|step| step * dtype.bytes() as i64);
        self.ndarray.bind(py).call1((extents, ty, py.None(), 0, PyTuple::new(py, steps.collect::<Vec<_>>())?))
    }

    /// A scalar of the element whose bytes are given.
    pub fn scalar<'py>(&self, py: Python<'py>, dtype: DType, bytes: [u8; 8]) -> PyResult<Bound<'py, PyAny>> {
        let ty = self.scalar_type(py, dtype)?;
        let bits = u64::from_le_bytes(bytes);
        match dtype {
            DType::Bool => ty.call1((bits & 0xff != 0,)),
            DType::I8 => ty.call1((bits as i8,)),
            DType::I16 => ty.call1((bits as i16,)),
            DType::I32 => ty.call1((bits as i32,)),
            DType::I64 => ty.call1((bits as i64,)),
            DType::U8 => ty.call1((bits as u8,)),
            DType::U16 => ty.call1((bits as u16,)),
            DType::U32 => ty.call1((bits as u32,)),
            DType::U64 => ty.call1((bits,)),
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
                ty.call1((to_f64(dtype, bytes)?,))
            }
        }
    }
}
