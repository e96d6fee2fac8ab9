//! Arrays that are a GPU's own memory: bases one element off an aligned address, odd, stepped and negative strides, each
//! compared with exact results; the same prepared call on bases of several alignments, one after the other.
//!
//! Without a GPU each test prints SKIP. `COULIS_FULL_SIZES` adds arrays of 200 MB, which tools that slow
//! kernels down are spared.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/gpu.rs"]
mod gpu;

use coulis::reduce::{Prepared, array_info, prepare, verify_outcome};
use coulis::{Array, DType, DeviceChoice, DevicePointer, NamedArray, Outcome, Request, StreamHandle};
use coulis_runtime::Cuda;
use coulis_runtime::cuda::DeviceMemory;

use common::{Special, array, numbers};
use gpu::gpu;

fn full_sizes() -> bool {
    std::env::var_os("COULIS_FULL_SIZES").is_some()
}

/// An array's whole storage on the device, `lead` bytes behind an address that is aligned to 256.
struct There {
    memory: DeviceMemory,
    lead: usize,
}

impl There {
    fn new(cuda: &Cuda, array: &Array, lead: usize) -> There {
        let (bytes, _) = array.storage();
        let mut memory = DeviceMemory::new(cuda.context(), lead + bytes.len()).unwrap();
        memory.upload(cuda.stream(), lead, bytes).unwrap();
        There { memory, lead }
    }

    /// The address of the first element of a view of the array.
    fn pointer(&self, view: &Array) -> DevicePointer {
        let address = self.memory.pointer() as usize + self.lead + view.storage().1;
        // SAFETY: the memory holds the storage that the view lies in, and outlives the launches on it, which are waited for.
        unsafe { DevicePointer::new(address) }
    }
}

/// Runs a prepared call on views in device memory and compares every result with the exact one.
#[track_caller]
fn check(cuda: &Cuda, prepared: &Prepared, views: &[Array], there: &[There], request: &Request, what: &str) {
    let mut pointers: Vec<DevicePointer> = views.iter().zip(there).map(|(v, t)| t.pointer(v)).collect();
    let mut made = Vec::new();
    for (name, info) in prepared.results() {
        let bytes = info.shape.iter().product::<i64>() as usize * info.dtype.bytes();
        let mut memory = DeviceMemory::new(cuda.context(), bytes).unwrap();
        // What is not written shows.
        memory.fill(cuda.stream(), 0xa5).unwrap();
        cuda.stream().synchronize().unwrap();
        // SAFETY: as large as the result, not used otherwise, and alive until the launch was waited for.
        pointers.push(unsafe { DevicePointer::new(memory.pointer() as usize) });
        made.push((name.to_owned(), info.clone(), memory));
    }
    let stream = StreamHandle::default();
    prepared.launch_on_stream(&pointers, stream).unwrap_or_else(|why| panic!("{what}: {why}"));
    prepared.wait(stream).unwrap_or_else(|why| panic!("{what}: {why}"));
    let mut results = Vec::new();
    for (name, info, memory) in made {
        let mut bytes = vec![0u8; memory.bytes()];
        memory.download(cuda.stream(), 0, &mut bytes).unwrap();
        results.push(NamedArray { name, array: Array::from_bytes(info.dtype, &info.shape, &bytes).unwrap() });
    }
    let outcome = Outcome {
        results,
        plan: prepared.plan().clone(),
        seconds: 0.0,
        bytes: 0,
        device: "cuda".to_owned(),
        axes: Vec::new(),
        notices: Vec::new(),
    };
    let report = verify_outcome(views, request, &outcome).unwrap();
    let wrong = report.results.iter().find(|result| result.refuted.is_some());
    assert!(wrong.is_none(), "{what} by {}: {wrong:?}", prepared.plan().name);
}

fn call(ops: &[&str], axes: &[i64]) -> Request {
    Request { device: DeviceChoice::Cuda(0), ..Request::new(ops).over(axes) }
}

/// Checks a view at every distance of up to 16 bytes from an aligned address, aligned ones first and last.
fn at_every_alignment(cuda: &Cuda, view: &Array, request: &Request, what: &str) {
    let prepared = prepare(&[array_info(view)], request).unwrap_or_else(|why| panic!("{what}: {why}"));
    let width = view.dtype().bytes();
    for lead in (0..=16).step_by(width).chain([0]) {
        let there = [There::new(cuda, view, lead)];
        let what = format!("{what}, {lead} bytes off");
        check(cuda, &prepared, std::slice::from_ref(view), &there, request, &what);
    }
}

#[test]
fn bases_one_element_off_an_aligned_address_are_read_right_after_and_before_aligned_ones() {
    let Some(cuda) = gpu() else { return };
    for (nth, dtype) in DType::ALL.into_iter().enumerate() {
        let shapes: [[i64; 2]; 3] = [[3, 4096], [64, 96], [2000, 8]];
        let shape = shapes[nth % 3];
        let n = (shape[0] * shape[1]) as usize;
        let input = array(dtype, &shape, &numbers(n, Special::Zeros, 3));
        for axes in [&[1i64][..], &[0], &[0, 1]] {
            let request = call(&["sum", "max", "argmin"], axes);
            at_every_alignment(cuda, &input, &request, &format!("{dtype} {shape:?} over {axes:?}"));
        }
    }
}

#[test]
fn odd_stepped_and_negative_strides_are_read_right_at_every_alignment() {
    let Some(cuda) = gpu() else { return };
    let (rows, columns) = (37i64, 128i64);
    for dtype in [DType::F32, DType::F16, DType::I8, DType::F64] {
        let line = array(dtype, &[40_000], &numbers(40_000, Special::Zeros, 5));
        let odd = columns + 1;
        // Shape, strides and place of the first element.
        let views: [(&str, [i64; 2], i64); 8] = [
            ("odd rows", [odd, 1], 0),
            ("rows three apart", [columns + 3, 1], 0),
            ("rows of 16 bytes more", [columns + 16, 1], 0),
            ("backward columns", [columns, -1], columns - 1),
            ("backward rows", [-columns, 1], (rows - 1) * columns),
            ("backward odd rows and columns", [-odd, -1], rows * odd - 1),
            ("every second", [2 * columns, 2], 0),
            ("every third, backward", [3 * columns, -3], 3 * columns - 1),
        ];
        for (name, strides, start) in views {
            let view = line.view(&[rows, columns], &strides, start).unwrap();
            for axes in [&[1i64][..], &[0], &[0, 1]] {
                let request = call(&["sum", "min", "argmax"], axes);
                at_every_alignment(cuda, &view, &request, &format!("{name} of {dtype} over {axes:?}"));
            }
        }
    }
}

#[test]
fn inputs_of_different_alignments_are_read_right_together() {
    let Some(cuda) = gpu() else { return };
    let shape = [16i64, 1024];
    let inputs = [3, 4].map(|seed| array(DType::F32, &shape, &numbers(1 << 14, Special::Zeros, seed)));
    let request = call(&["dot"], &[1]);
    let prepared = prepare(&inputs.each_ref().map(array_info), &request).unwrap();
    for leads in [[0, 0], [4, 0], [0, 4], [8, 12], [0, 0]] {
        let there = [0, 1].map(|at| There::new(cuda, &inputs[at], leads[at]));
        check(cuda, &prepared, &inputs, &there, &request, &format!("{leads:?} bytes off"));
    }
}

#[test]
fn rows_of_200_megabytes_are_read_right_at_odd_bases_and_strides() {
    let Some(cuda) = gpu() else { return };
    if !full_sizes() {
        println!("SKIP: COULIS_FULL_SIZES is not set");
        return;
    }
    const N: i64 = 50_000_000;
    let line = coulis::bench::input(DType::F32, &[3 * N + 8], coulis::bench::Init::Uniform).unwrap();
    let views: [(&str, Vec<i64>, Vec<i64>, i64); 6] = [
        ("one row", vec![1, N], vec![N, 1], 1),
        ("one row backward", vec![1, N], vec![N, -1], N + 2),
        ("three rows an odd stride apart", vec![3, N - 1], vec![N + 1, 1], 0),
        ("every second", vec![1, N], vec![N, 2], 3),
        ("columns of an odd stride", vec![N / 64, 64], vec![65, 1], 1),
        ("columns backward", vec![N / 64, 64], vec![-65, 1], N / 64 * 65 - 64),
    ];
    for (name, shape, strides, start) in views {
        let view = line.view(&shape, &strides, start).unwrap();
        let axes = if name.starts_with("columns") { [0] } else { [1] };
        let request = call(&["sum", "mean", "max", "argmax"], &axes);
        let prepared = prepare(&[array_info(&view)], &request).unwrap();
        for lead in [0, 4] {
            let there = [There::new(cuda, &view, lead)];
            let views = std::slice::from_ref(&view);
            check(cuda, &prepared, views, &there, &request, &format!("{name}, {lead} bytes off"));
        }
    }
}
