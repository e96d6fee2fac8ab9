//! Operations that move lanes: copies, broadcasts, ramps, choices, strided and indexed accesses.

use std::marker::PhantomData;

use super::{Fns, Lane, Op, VecFn, fns_on_arms};
use crate::level::Level;

struct Select<T>(PhantomData<T>);

impl<T: Copy> Lane for Select<T> {
    type A = u8;
    type B = T;
    type C = T;
    type Out = T;
    #[inline(always)]
    fn f(a: u8, b: T, c: T) -> T {
        if a != 0 { b } else { c }
    }
}

macro_rules! by_size {
    ($bytes:expr, $t:ident => $body:expr) => {
        match $bytes {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}

/// Copies lanes of `bytes` bytes from the first operand; the memories may overlap.
pub(crate) fn copy(bytes: usize) -> VecFn {
    unsafe fn run<T>(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: both are valid for `n` lanes.
        unsafe { std::ptr::copy(a.cast::<T>(), d.cast::<T>(), n) }
    }
    by_size!(bytes, T => run::<T>)
}

/// Fills with the one lane of the first operand.
pub(crate) fn broadcast(bytes: usize) -> VecFn {
    unsafe fn run<T: Copy>(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `a` holds one lane, `d` has room for `n`.
        unsafe { std::slice::from_raw_parts_mut(d.cast::<T>(), n).fill(*a.cast::<T>()) }
    }
    by_size!(bytes, T => run::<T>)
}

/// `a + i * b` on integers, wrapping.
pub(crate) fn ramp(bytes: usize) -> VecFn {
    macro_rules! run {
        ($t:ty) => {{
            unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
                // SAFETY: `a` and `b` hold one lane each, `d` has room for `n`.
                let (mut value, stride, lanes) = unsafe {
                    (*a.cast::<$t>(), *b.cast::<$t>(), std::slice::from_raw_parts_mut(d.cast::<$t>(), n))
                };
                for lane in lanes {
                    *lane = value;
                    value = value.wrapping_add(stride);
                }
            }
            run
        }};
    }
    match bytes {
        1 => run!(u8),
        2 => run!(u16),
        4 => run!(u32),
        _ => run!(u64),
    }
}

/// `a ? b : c` lane by lane.
pub(crate) fn select(bytes: usize, level: Level) -> Fns {
    by_size!(bytes, T => fns_on_arms::<Select<T>>(level)).being(Op::Select(bytes as u8))
}

/// Whether one of `n` lanes is zero.
pub(crate) fn any_zero(bytes: usize) -> unsafe fn(*const u8, usize) -> bool {
    unsafe fn check<T: Copy + Default + PartialEq>(a: *const u8, n: usize) -> bool {
        // SAFETY: the caller gives `n` lanes.
        (0..n).any(|i| unsafe { *a.cast::<T>().add(i) } == T::default())
    }
    by_size!(bytes, T => check::<T>)
}

/// Destination, source lane 0, stride in elements, lanes.
pub(crate) type StridedFn = unsafe fn(*mut u8, *const u8, isize, usize);

/// Reads lanes that lie `stride` apart.
pub(crate) fn gather_strided(bytes: usize) -> StridedFn {
    unsafe fn run<T: Copy>(d: *mut u8, a: *const u8, stride: isize, n: usize) {
        for i in 0..n {
            // SAFETY: the caller checked that all lanes lie inside the buffer.
            unsafe { *d.cast::<T>().add(i) = *a.cast::<T>().offset(i as isize * stride) };
        }
    }
    by_size!(bytes, T => run::<T>)
}

/// Writes lanes that lie `stride` apart, in order.
pub(crate) fn scatter_strided(bytes: usize) -> StridedFn {
    unsafe fn run<T: Copy>(d: *mut u8, a: *const u8, stride: isize, n: usize) {
        for i in 0..n {
            // SAFETY: the caller checked that all lanes lie inside the buffer.
            unsafe { *d.cast::<T>().offset(i as isize * stride) = *a.cast::<T>().add(i) };
        }
    }
    by_size!(bytes, T => run::<T>)
}

/// Destination, element 0 of the buffer, indices, lanes, and the indices `[lo, hi)` that exist. The result is the
/// first lane whose index does not exist, if any.
pub(crate) type GatherFn = unsafe fn(*mut u8, *const u8, *const i64, usize, i64, i64) -> Option<usize>;

/// Reads lanes by their indices.
pub(crate) fn gather(bytes: usize) -> GatherFn {
    unsafe fn run<T: Copy>(
        d: *mut u8,
        a: *const u8,
        at: *const i64,
        n: usize,
        lo: i64,
        hi: i64,
    ) -> Option<usize> {
        for i in 0..n {
            // SAFETY: `at` and `d` have `n` lanes, and the index is checked before the access.
            unsafe {
                let index = *at.add(i);
                if !(lo..hi).contains(&index) {
                    return Some(i);
                }
                *d.cast::<T>().add(i) = *a.cast::<T>().offset(index as isize);
            }
        }
        None
    }
    by_size!(bytes, T => run::<T>)
}

/// Element 0 of the buffer, values, indices, lanes, and the indices that exist; the result as for [`GatherFn`].
pub(crate) type ScatterFn = unsafe fn(*mut u8, *const u8, *const i64, usize, i64, i64) -> Option<usize>;

/// Writes lanes by their indices, in order: of equal indices the last lane stays.
pub(crate) fn scatter(bytes: usize) -> ScatterFn {
    unsafe fn run<T: Copy>(
        d: *mut u8,
        a: *const u8,
        at: *const i64,
        n: usize,
        lo: i64,
        hi: i64,
    ) -> Option<usize> {
        for i in 0..n {
            // SAFETY: `at` and `a` have `n` lanes, and the index is checked before the access.
            unsafe {
                let index = *at.add(i);
                if !(lo..hi).contains(&index) {
                    return Some(i);
                }
                *d.cast::<T>().offset(index as isize) = *a.cast::<T>().add(i);
            }
        }
        None
    }
    by_size!(bytes, T => run::<T>)
}
