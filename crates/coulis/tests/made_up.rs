//! A reducer that no catalogue has, through every strategy and both ways to run, against a plain fold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis_io::{AlignedBytes, Array};
use coulis_ir::args::{ArgInfo, ArrayInfo, bind_args, compact_strides};
use coulis_ir::{DType, Expr, Lambda, Reducer, Var};
use coulis_lower::Options;
use coulis_plan::{
    Machine, Map, Order, OutputSpec, Problem, ResultForm, STRATEGIES, Spec, choose_named, schedule,
};
use coulis_reducers::{Staged, UserReducer, comm_reducer};
use coulis_runtime::{Cpu, CpuKind, CpuOptions, Device, Window};

/// How many elements are above 2, the largest squared distance from 5, and the sum of positions times elements: three
/// fields that are no statistic of the catalogue, all exact.
fn made_up() -> Reducer {
    let int = |v: i64| Expr::int_of(i128::from(v), DType::I64);
    let lift = |v: &[Expr], at: &Expr| {
        let wide = v[0].clone().cast(DType::I64);
        let above = Expr::select(wide.clone().gt(int(2)), int(1), int(0));
        let distance = wide - int(5);
        vec![above, (distance.clone() * distance), at.clone() * v[0].clone().cast(DType::I64)]
    };
    let combine = |x: &[Expr], y: &[Expr]| {
        vec![x[0].clone() + y[0].clone(), x[1].clone().max(y[1].clone()), x[2].clone() + y[2].clone()]
    };
    let identity = vec![int(0), int(-1), int(0)];
    let user =
        UserReducer { lift: Some(&lift), ..UserReducer::new("made_up", &[DType::I16], identity, &combine) };
    comm_reducer(&user).unwrap()
}

/// The output and the position of each element, of a fold over these axes.
fn places(shape: &[i64], axes: &[usize]) -> Vec<(usize, i64)> {
    let mut places = vec![(0, 0)];
    for (axis, &extent) in shape.iter().enumerate() {
        let step = |(output, position): (usize, i64), i: i64| match axes.contains(&axis) {
            true => (output, position * extent + i),
            false => (output * extent as usize + i as usize, position),
        };
        places = places.into_iter().flat_map(|place| (0..extent).map(move |i| step(place, i))).collect();
    }
    places
}

fn plain_fold(shape: &[i64], axes: &[usize], values: &[i16]) -> Vec<[i64; 3]> {
    let kept = shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    let mut out = vec![[0, -1, 0]; kept.map(|(_, extent)| extent).product::<i64>() as usize];
    for ((output, position), v) in places(shape, axes).into_iter().zip(values) {
        let state = &mut out[output];
        let v = i64::from(*v);
        state[0] += i64::from(v > 2);
        state[1] = state[1].max((v - 5) * (v - 5));
        state[2] += position * v;
    }
    out
}

/// The position of the first element that is true, and whether there is one: two fields, which that element settles.
fn first_true() -> Reducer {
    let int = |v: i64| Expr::int_of(i128::from(v), DType::I64);
    let lift = move |v: &[Expr], at: &Expr| {
        let flag = |yes: Expr, no: i64| Expr::select(v[0].clone(), yes, int(no));
        vec![flag(at.clone(), i64::MAX), flag(int(1), 0)]
    };
    let combine =
        |x: &[Expr], y: &[Expr]| vec![x[0].clone().min(y[0].clone()), x[1].clone().max(y[1].clone())];
    let identity = vec![int(i64::MAX), int(0)];
    let user = UserReducer {
        lift: Some(&lift),
        ..UserReducer::new("first_true", &[DType::Bool], identity, &combine)
    };
    let reducer = comm_reducer(&user).unwrap();
    let state = ["at", "is_found"].map(|name| Var::new(name, DType::I64));
    let is_found = state[1].expr().equal(int(1));
    let settled = Some(Lambda { params: state.to_vec(), body: vec![is_found] });
    Reducer { settled, step_needs_ascending: true, ..reducer }
}

fn list(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|axis| *axis as i64).collect()
}

fn elements(shape: &[i64]) -> Vec<i16> {
    (0..shape.iter().product::<i64>()).map(|i| ((i * 7919 + 13) % 61 - 30) as i16).collect()
}

fn info(dtype: DType, shape: &[i64]) -> ArrayInfo {
    ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) }
}

/// The bools of these elements: one in 61 is true.
fn flags(shape: &[i64]) -> Vec<bool> {
    elements(shape).into_iter().map(|v| v == 30).collect()
}

/// The fold of bools over axes, and its results.
fn fold_flags(shape: &[i64], axes: &[usize]) -> (Spec, Vec<Vec<i64>>) {
    let infos = [info(DType::Bool, shape)];
    let problem = Problem::new(&infos, None, Some(&list(axes)), ResultForm::default(), true).unwrap();
    let mut wanted = vec![vec![], vec![]];
    for ((output, position), flag) in places(shape, axes).into_iter().zip(flags(shape)) {
        if output >= wanted[0].len() {
            wanted[0].resize(output + 1, i64::MAX);
            wanted[1].resize(output + 1, 0);
        }
        if flag {
            wanted[0][output] = wanted[0][output].min(position);
            wanted[1][output] = 1;
        }
    }
    let outputs = vec![OutputSpec::plain(DType::I64); 2];
    (Spec::new(problem, vec![DType::Bool], false, first_true(), outputs, None), wanted)
}

/// The fold over axes, and its results.
fn fold(shape: &[i64], axes: &[usize]) -> (Spec, Vec<Vec<i64>>) {
    let problem =
        Problem::new(&[info(DType::I16, shape)], None, Some(&list(axes)), ResultForm::default(), true)
            .unwrap();
    let outputs = vec![OutputSpec::plain(DType::I64); 3];
    let folded = plain_fold(shape, axes, &elements(shape));
    let wanted = (0..3).map(|slot| folded.iter().map(|w| w[slot]).collect());
    (Spec::new(problem, vec![DType::I16], false, made_up(), outputs, None), wanted.collect())
}

/// How much less the squared distance of each element from 5 is than the largest, of one fold and of two: with the count of what is
/// above 2 in what is kept, the second of which is the largest of that.
fn map(shape: &[i64], axes: &[usize]) -> (Spec, Vec<Vec<i64>>) {
    let problem =
        Problem::of_map(&[info(DType::I16, shape)], None, &[], Some(&list(axes)), Order::RowMajor, true)
            .unwrap();
    let wide = |name: &str| Var::new(name, DType::I64);
    let (x, [count, largest, moment]) = (Var::new("x", DType::I16), ["a", "b", "c"].map(wide));
    let distance = x.expr().cast(DType::I64) - Expr::int_of(5, DType::I64);
    let square = distance.clone() * distance;
    let params = vec![x, count.clone(), largest.clone(), moment];
    let combine = |x: &[Expr], y: &[Expr]| vec![x[0].clone().max(y[0].clone())];
    let least = vec![Expr::int_of(-1, DType::I64)];
    let second = comm_reducer(&UserReducer::new("largest", &[DType::I64], least, &combine)).unwrap();
    let (kept, most) = (wide("kept"), wide("most"));
    let less = kept.expr() - most.expr();
    let staged = Staged {
        first: made_up(),
        kept: Lambda { params: params.clone(), body: vec![square.clone() + count.expr()] },
        absent: 0.0,
        second,
        map: Lambda { params: vec![kept, most], body: vec![less] },
    };
    let lambda = Lambda { params, body: vec![square - largest.expr()] };
    let map = Some(Map { lambda, beside: Vec::new(), staged: Some(staged), left_out: None });
    let outputs = vec![OutputSpec::plain(DType::I64)];
    let values = elements(shape);
    let folded = plain_fold(shape, axes, &values);
    let places = places(shape, axes);
    let less = |((row, _), v): (&(usize, i64), &i16)| (i64::from(*v) - 5).pow(2) - folded[*row][1];
    let wanted = places.iter().zip(&values).map(less).collect();
    (Spec::new(problem, vec![DType::I16], false, made_up(), outputs, map), vec![wanted])
}

/// Runs a call by one strategy; `false` where it declines.
fn run(device: &dyn Device, strategy: &str, shape: &[i64], (spec, wanted): (Spec, Vec<Vec<i64>>)) -> bool {
    let target = device.target();
    let Ok((strategy, sketch)) = choose_named(&spec, &target, strategy).unwrap() else { return false };
    let planned = schedule(&spec, strategy, &sketch).unwrap();
    let nest =
        coulis_schedule::build_nest(&planned.schedule, planned.statement.program.args(), "made_up").unwrap();
    let options = Options { target: &target, simple_mode: false };
    let flat = coulis_lower::lower(nest, &options, &mut |_, _| {}).unwrap();
    let checked = coulis_ir::verify::verify(flat).unwrap();
    let executable = device.compile(&checked).unwrap();
    let infos: Vec<ArrayInfo> = spec.array_infos().into_iter().chain(spec.output_infos()).collect();
    let args: Vec<ArgInfo> = infos.iter().cloned().map(ArgInfo::Array).collect();
    let bindings = bind_args(checked.kernel(), &args).unwrap();
    let input = match spec.inputs[..] {
        [DType::Bool] => {
            let bytes: Vec<u8> = flags(shape).into_iter().map(u8::from).collect();
            let owned = AlignedBytes::copy_of(&bytes).unwrap();
            Array::from_owned(DType::Bool, shape, owned).unwrap()
        }
        _ => Array::from_slice(shape, &elements(shape)).unwrap(),
    };
    let mut results: Vec<AlignedBytes> =
        wanted.iter().map(|want| AlignedBytes::zeroed(want.len() * 8).unwrap()).collect();
    {
        let (bytes, offset) = input.storage();
        let mut windows = vec![Window::read(bytes, offset, &infos[0]).unwrap()];
        for (bytes, info) in results.iter_mut().zip(&infos[1..]) {
            windows.push(Window::write(bytes.as_mut_slice(), 0, info).unwrap());
        }
        coulis_runtime::call(&*executable, &bindings, &mut windows).unwrap();
    }
    for (slot, (result, want)) in results.iter().zip(&wanted).enumerate() {
        let found: Vec<i64> =
            result.as_slice().chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().unwrap())).collect();
        assert_eq!(&found, want, "{} on {} of {shape:?}, field {slot}", strategy.name, device.name());
    }
    true
}

/// Shapes and axes that some strategy accepts.
const SHAPES: &[(&[i64], &[usize])] = &[
    (&[9000, 3, 2], &[1]),
    (&[2100, 5], &[1]),
    (&[17, 1300], &[1]),
    (&[70, 700], &[1]),
    (&[130, 700], &[0]),
    (&[900, 3], &[0]),
    (&[3, 27, 70], &[1]),
    // No cache holds it.
    (&[64, 64, 1030], &[0, 2]),
    (&[6, 50, 7], &[1]),
    (&[9], &[0]),
    (&[40000], &[0]),
];

fn every_strategy_runs(kind: CpuKind, shapes: &[(&[i64], &[usize])]) {
    let options = CpuOptions { kind, n_threads: Some(2), ..CpuOptions::default() };
    let (device, _) = Cpu::open(&options).unwrap();
    for strategy in STRATEGIES.iter().filter(|s| s.machine == Machine::Loops) {
        let mut runs = 0;
        for (shape, axes) in shapes {
            for call in [fold(shape, axes), fold_flags(shape, axes), map(shape, axes)] {
                runs += usize::from(run(&*device, strategy.name, shape, call));
            }
        }
        assert!(runs > 0, "{} accepts none of the shapes on {}", strategy.name, device.name());
    }
}

#[test]
fn a_made_up_reducer_is_executed_by_every_strategy() {
    every_strategy_runs(CpuKind::Executed, SHAPES);
}

#[test]
fn a_made_up_reducer_is_compiled_by_every_strategy() {
    every_strategy_runs(CpuKind::Auto, &SHAPES[..8]);
}
