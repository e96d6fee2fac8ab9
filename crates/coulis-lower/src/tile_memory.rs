//! The memory behind the buffers of a tile program: registers of tiles that are spread over threads, windows,
//! and addresses by layout.
//!
//! A buffer is accessed in one of four ways. It is memory as it stands; it is laid out, and an element's address is an
//! expression of its coordinates; it is a window on either; or it is spread over threads, and no thread accesses it
//! but through `.local` windows and tile calls.

use coulis_ir::hash::FastMap;
use std::cell::RefCell;

use coulis_ir::buffer::BufferId;
use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::visit::rewrite_stmt;
use coulis_ir::{Buffer, DType, Kernel, MemScope, Param, Stmt};
use coulis_tile::address::{AddressError, physical_index, physical_size};
use coulis_tile::{TileError, is_row_major};

use crate::pass::LowerError;
use crate::walk::Rewriter;

/// How a buffer is accessed.
enum Way {
    /// As this buffer, at the same coordinates.
    As(Buffer),
    /// As an element of this one-dimensional buffer, at the address that the layout gives.
    Laid(Buffer),
    /// Not at all: it is spread over threads, and these are the calling thread's registers of it.
    Spread(Buffer),
}

/// The memory behind the buffers of a kernel.
#[derive(Default)]
pub(crate) struct TileMemory {
    ways: FastMap<BufferId, Way>,
    /// What one thread holds, one-dimensional and in physical order, by pointer: of tiles that were allocated so.
    registers: FastMap<Var, Buffer>,
}

pub(crate) fn unsupported(what: impl Into<String>) -> LowerError {
    LowerError::from(TileError::Unsupported { what: what.into() })
}

fn constant(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I32)
}

/// The number of elements of a shape, where it is constant.
fn size_of(buffer: &Buffer) -> Option<i64> {
    let extent = |e: &Expr| e.as_int().and_then(|n| i64::try_from(n).ok());
    buffer.shape.iter().try_fold(1i64, |n, e| n.checked_mul(extent(e)?))
}

/// A one-dimensional view of `n` elements of the same memory.
fn flat(buffer: &Buffer, n: i64) -> Buffer {
    buffer.derive(|b| {
        b.layout = None;
        b.strides = Vec::new();
        b.shape = vec![constant(n)];
    })
}

/// Refuses a layout that has another number of elements than its buffer, or that memory does not have.
fn check_layout(buffer: &Buffer) -> Result<(), LowerError> {
    let Some(layout) = &buffer.layout else { return Ok(()) };
    let name = || buffer.name.clone();
    if layout.has_negative_steps() {
        let layout = layout.to_string();
        return Err(LowerError::from(TileError::Backwards { buffer: name(), layout }));
    }
    let span = physical_size(layout);
    if span > i64::from(i32::MAX) {
        return Err(LowerError::from(TileError::from(AddressError::Wide { buffer: name(), span })));
    }
    match size_of(buffer) {
        Some(wanted) if layout.size() != wanted => {
            let (found, layout) = (layout.size(), layout.to_string());
            Err(LowerError::from(TileError::LayoutSize { buffer: name(), wanted, layout, found }))
        }
        _ => Ok(()),
    }
}

/// Refuses a layout in which writing an element changes another one.
fn check_overlap(buffer: &Buffer) -> Result<(), LowerError> {
    let Some(layout) = &buffer.layout else { return Ok(()) };
    let Some((first, second)) = layout.overlap() else { return Ok(()) };
    let coords = |element: i64| {
        let mut rest = element;
        let mut coords: Vec<i64> = Vec::with_capacity(buffer.rank());
        for extent in buffer.shape.iter().rev().map(|e| e.as_int().map_or(1, |n| n as i64)) {
            coords.push(rest % extent);
            rest /= extent;
        }
        coords.reverse();
        coords
    };
    Err(LowerError::from(TileError::Overlap {
        buffer: buffer.name.clone(),
        layout: layout.to_string(),
        first: coords(first),
        second: coords(second),
    }))
}

impl TileMemory {
    /// The parameters without layouts. An argument is as many elements in a row as its shape has; where a layout is not
    /// row-major it says which of them is which.
    pub(crate) fn parameters(&mut self, kernel: &Kernel) -> Result<Vec<Param>, LowerError> {
        let plain = |param: &Param| match param {
            Param::Buffer { handle, buffer } if let Some(layout) = &buffer.layout => {
                let own = buffer.derive(|b| b.layout = None);
                let way = if is_row_major(buffer) {
                    Way::As(own.clone())
                } else if layout.is_distributed() {
                    return Err(unsupported(format!(
                        "a parameter, `{}`, that is spread over threads,",
                        buffer.name
                    )));
                } else {
                    check_layout(buffer)?;
                    check_overlap(buffer)?;
                    let n = physical_size(layout);
                    if size_of(buffer) != Some(n) {
                        return Err(too_large(buffer, n, buffer));
                    }
                    Way::Laid(flat(&own, n))
                };
                self.ways.insert(buffer.id, way);
                Ok(Param::Buffer { handle: handle.clone(), buffer: own })
            }
            other => Ok(other.clone()),
        };
        kernel.params.iter().map(plain).collect()
    }

    /// The memory of one thread, or of all, for a buffer that the program allocates.
    pub(crate) fn allocated(&mut self, buffer: &Buffer) -> Result<Buffer, LowerError> {
        let Some(layout) = &buffer.layout else { return Ok(buffer.clone()) };
        check_layout(buffer)?;
        if !layout.is_distributed() {
            if is_row_major(buffer) {
                let plain = buffer.derive(|b| b.layout = None);
                self.ways.insert(buffer.id, Way::As(plain.clone()));
                return Ok(plain);
            }
            let own = flat(buffer, physical_size(layout));
            check_overlap(buffer)?;
            self.ways.insert(buffer.id, Way::Laid(own.clone()));
            return Ok(own);
        }
        if buffer.scope != MemScope::Local {
            let scope = buffer.scope.name();
            return Err(unsupported(format!("a distributed tile, `{}`, in {scope} memory", buffer.name)));
        }
        let own = flat(buffer, layout.memory_span());
        self.registers.insert(buffer.data.clone(), own.clone());
        self.ways.insert(buffer.id, Way::Spread(own.clone()));
        Ok(own)
    }

    /// Notes a window on the memory of `source`.
    pub(crate) fn window(&mut self, buffer: &Buffer, source: &Buffer, local: bool) -> Result<(), LowerError> {
        check_layout(buffer)?;
        let own = self.registers.get(&source.data).cloned();
        let layout = buffer.layout.as_ref();
        let is_spread = layout.is_some_and(|layout| layout.is_distributed());
        let way = match (own, is_spread) {
            (Some(_), true) if local => {
                return Err(unsupported(format!("`.local` with thread axes, as `{}` is,", buffer.name)));
            }
            (None, _) if local => {
                return Err(LowerError::from(TileError::NotSpread { buffer: source.name.clone() }));
            }
            (Some(own), true) => Way::Spread(self.fitting(own, buffer)?),
            (Some(own), false) if local => {
                let n = own.shape[0].as_int();
                match layout {
                    Some(layout) if !is_row_major(buffer) => {
                        if n.is_some_and(|n| i128::from(physical_size(layout)) > n) {
                            return Err(too_large(buffer, physical_size(layout), &own));
                        }
                        Way::Laid(own)
                    }
                    _ if size_of(buffer).map(i128::from) != n => {
                        return Err(unsupported(format!(
                            "a window `{}` other than all {} elements of a thread",
                            buffer.name,
                            n.unwrap_or(0)
                        )));
                    }
                    _ if buffer.rank() == 1 && buffer.dtype == own.dtype => Way::As(own),
                    _ => Way::As(buffer.derive(|b| b.layout = None)),
                }
            }
            // A window on a whole tile without a layout is there to be refused when it is accessed.
            (Some(own), false) => Way::Spread(own),
            (None, true) => {
                if source.scope != MemScope::Local {
                    let scope = source.scope.name();
                    return Err(unsupported(format!(
                        "a distributed tile, `{}`, in {scope} memory",
                        buffer.name
                    )));
                }
                let n = size_of(source).unwrap_or(0);
                Way::Spread(self.fitting(flat(source, n), buffer)?)
            }
            (None, false) => match layout {
                Some(layout) if !is_row_major(buffer) => {
                    let wanted = physical_size(layout);
                    self.check_reach(buffer, wanted, source)?;
                    Way::Laid(flat(buffer, wanted))
                }
                _ => {
                    let sizes = (size_of(buffer), size_of(source));
                    if let (Some(wanted), Some(found)) = sizes
                        && buffer.dtype == source.dtype
                        && wanted != found
                        && layout.is_none()
                    {
                        let (buffer, memory) = (buffer.name.clone(), source.name.clone());
                        let fault = TileError::WindowSize { buffer, wanted, memory, found };
                        return Err(LowerError::from(fault));
                    }
                    self.check_reach(buffer, sizes.0.unwrap_or(0), source)?;
                    Way::As(buffer.derive(|b| b.layout = None))
                }
            },
        };
        self.ways.insert(buffer.id, way);
        Ok(())
    }

    /// Refuses a window that reaches over more elements than the memory of what it looks at has.
    fn check_reach(&self, buffer: &Buffer, wanted: i64, source: &Buffer) -> Result<(), LowerError> {
        let memory = match self.ways.get(&source.id) {
            Some(Way::As(memory) | Way::Laid(memory)) => memory,
            Some(Way::Spread(_)) | None => source,
        };
        match size_of(memory) {
            Some(n) if buffer.dtype == memory.dtype && wanted > n => Err(too_large(buffer, wanted, memory)),
            _ => Ok(()),
        }
    }

    /// The registers, where the layout of `buffer` stays inside them.
    fn fitting(&self, own: Buffer, buffer: &Buffer) -> Result<Buffer, LowerError> {
        let span = buffer.layout.as_ref().map_or(0, |layout| layout.memory_span());
        match own.shape[0].as_int() {
            Some(n) if i128::from(span) > n => Err(too_large(buffer, span, &own)),
            _ => Ok(own),
        }
    }

    /// The calling thread's registers of a buffer that is spread over threads.
    pub(crate) fn registers(&self, buffer: &Buffer) -> Option<Buffer> {
        match self.ways.get(&buffer.id) {
            Some(Way::Spread(own)) => Some(own.clone()),
            Some(Way::As(_) | Way::Laid(_)) | None => None,
        }
    }

    /// The statement with accesses going to the memory behind their buffers.
    pub(crate) fn redirect(&self, body: Stmt) -> Result<Stmt, LowerError> {
        let error: RefCell<Option<LowerError>> = RefCell::default();
        let place = |buffer: &Buffer, indices: Vec<Expr>| match self.place(buffer, &indices) {
            Ok(place) => place,
            Err(found) => {
                error.borrow_mut().get_or_insert(found);
                (buffer.clone(), indices)
            }
        };
        let mut exprs = Rewriter::new(Expr::reads_memory, |e: &Expr| match e.node() {
            Node::Load(buffer, indices) => {
                let (memory, indices) = place(buffer, indices.clone());
                Some(Expr::load(memory, indices))
            }
            _ => None,
        });
        let body = rewrite_stmt(body, &mut |e| exprs.of(e), &mut |stmt| match stmt {
            Stmt::Store { buffer, indices, value } => {
                let (buffer, indices) = place(&buffer, indices);
                Stmt::Store { buffer, indices, value }
            }
            Stmt::Atom(mut call) => {
                for element in call.dst.iter_mut().chain(&mut call.memory) {
                    (element.buffer, element.indices) =
                        place(&element.buffer, std::mem::take(&mut element.indices));
                }
                Stmt::Atom(call)
            }
            other => other,
        });
        match error.into_inner() {
            Some(error) => Err(error),
            None => Ok(body),
        }
    }

    fn place(&self, buffer: &Buffer, indices: &[Expr]) -> Result<(Buffer, Vec<Expr>), LowerError> {
        match self.ways.get(&buffer.id) {
            None => Ok((buffer.clone(), indices.to_vec())),
            Some(Way::As(other)) => Ok((other.clone(), indices.to_vec())),
            Some(Way::Laid(memory)) => {
                let address = physical_index(buffer, indices);
                match address.map_err(TileError::from)? {
                    Some(at) => Ok((memory.clone(), vec![at])),
                    None => Ok((memory.clone(), indices.to_vec())),
                }
            }
            Some(Way::Spread(_)) => Err(LowerError::DirectAccess { buffer: buffer.name.clone() }),
        }
    }
}

fn too_large(buffer: &Buffer, wanted: i64, source: &Buffer) -> LowerError {
    LowerError::from(TileError::Window {
        buffer: buffer.name.clone(),
        wanted,
        memory: source.name.clone(),
        found: size_of(source).unwrap_or(0),
    })
}
