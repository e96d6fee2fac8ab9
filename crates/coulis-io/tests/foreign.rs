//! Arrays over memory of someone else: read where it is, kept as long as needed, refused where it cannot be read.

use std::sync::Arc;

use coulis_io::{Array, ShapeError};
use coulis_ir::DType;

fn values(array: &Array) -> Vec<f64> {
    array.scalars().map(|s| s.to_f64()).collect()
}

#[test]
fn foreign_memory_is_read_under_any_strides() {
    let memory: Arc<Vec<f32>> = Arc::new((0..12).map(|i| i as f32).collect());
    let at = |index: usize| (&raw const memory[index]).cast::<u8>();
    for (shape, strides, first, wanted) in [
        (&[3][..], &[1][..], 0, &[0.0, 1.0, 2.0][..]),
        (&[3], &[-2], 11, &[11.0, 9.0, 7.0]),
        (&[2, 2], &[0, -1], 5, &[5.0, 4.0, 5.0, 4.0]),
        (&[], &[], 7, &[7.0]),
        (&[0, 3], &[3, 1], 0, &[]),
    ] {
        // SAFETY: all elements lie in the vector, which the array keeps.
        let array =
            unsafe { Array::from_foreign(DType::F32, shape, strides, at(first), Some(memory.clone())) };
        assert_eq!(values(&array.unwrap()), wanted);
    }
}

#[test]
fn the_owner_lives_as_long_as_a_clone_of_the_array() {
    let memory: Arc<Vec<u8>> = Arc::new(vec![1, 2, 3]);
    // SAFETY: the array keeps the vector.
    let array =
        unsafe { Array::from_foreign(DType::U8, &[3], &[1], memory.as_ptr(), Some(memory.clone())) }.unwrap();
    let view = array.view(&[2], &[1], 1).unwrap();
    drop(array);
    assert_eq!(Arc::strong_count(&memory), 2);
    assert_eq!(values(&view), [2.0, 3.0]);
    drop(view);
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn memory_that_no_array_can_have_is_refused() {
    let memory = [0u32; 4];
    let first = memory.as_ptr().cast::<u8>();
    // SAFETY: what is refused is not read.
    let of = |shape: &[i64], strides: &[i64], first| unsafe {
        Array::from_foreign(DType::F32, shape, strides, first, None).unwrap_err()
    };
    assert!(matches!(of(&[1], &[1], first.wrapping_add(2)), ShapeError::Misaligned { .. }));
    assert!(matches!(of(&[1], &[1], std::ptr::null()), ShapeError::NoMemory { .. }));
    assert!(matches!(of(&[2], &[], first), ShapeError::StrideCount { .. }));
    assert!(matches!(of(&[-1], &[1], first), ShapeError::Negative { .. }));
    assert!(matches!(of(&[3], &[i64::MAX], first), ShapeError::Overflow { .. }));
}
