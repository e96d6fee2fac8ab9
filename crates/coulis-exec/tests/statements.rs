//! Loops, branches, bindings, allocations, accesses and errors.

mod common;

use common::{Lane, Memory, array, int, iota, kernel, levels, run_at};
use coulis_exec::{ExecError, Pool, Program};
use coulis_ir::args::{ArgInfo, ArrayInfo, Bindings, bind_args};
use coulis_ir::{
    Atom, AtomCall, BinaryOp, Buffer, DType, Element, Expr, LoopKind, MemScope, Stmt, SyncKind, Var, verify,
};

fn ints(values: impl IntoIterator<Item = i64>) -> Vec<Lane> {
    values.into_iter().map(|v| Lane::I(v.into())).collect()
}

/// Runs `body` over int64 arrays A (given) and O (zeros), at every level and with one and three threads.
#[track_caller]
fn check(a: &[i64], n_out: usize, want: &[i64], body: &dyn Fn(&Buffer, &Buffer) -> Stmt) {
    let (x, o) = (array("A", DType::I64, a.len()), array("O", DType::I64, n_out));
    let kernel = kernel(&[x.clone(), o.clone()], body(&x, &o));
    for level in levels() {
        for threads in [1, 3] {
            let mut arrays = [
                Memory::new(DType::I64, &ints(a.iter().copied())),
                Memory::new(DType::I64, &ints(vec![0; n_out])),
            ];
            run_at(&kernel, &mut arrays, level, threads).unwrap_or_else(|e| panic!("{e}"));
            let got: Vec<i128> = arrays[1].lanes().into_iter().map(Lane::int).collect();
            assert_eq!(got, want.iter().map(|v| i128::from(*v)).collect::<Vec<_>>());
        }
    }
}

#[track_caller]
fn check_error(want: ExecError, body: &dyn Fn(&Buffer, &Buffer) -> Stmt) {
    let (x, o) = (array("A", DType::I64, 8), array("O", DType::I64, 8));
    let kernel = kernel(&[x.clone(), o.clone()], body(&x, &o));
    let zeros = || Memory::new(DType::I64, &ints(vec![0; 8]));
    for threads in [1, 3] {
        let result = run_at(&kernel, &mut [zeros(), zeros()], coulis_exec::Level::detect(), threads);
        assert_eq!(result, Err(want.clone()));
    }
}

fn index(name: &str) -> Var {
    Var::size(name, DType::I64)
}

#[test]
fn nested_loops_of_both_index_types_run_in_order() {
    check(&[1, 2, 3, 4, 5, 6], 6, &[1, 3, 6, 10, 15, 21], &|a, o| {
        let (i, j) = (Var::size("i", DType::I32), index("j"));
        let at = i.expr().cast(DType::I64) * int(3) + (j.expr() - int(5));
        let before = at.clone() - int(1);
        let sum = Expr::if_then_else(at.clone().gt(int(0)), o.at(vec![before]), int(0));
        let body = Stmt::store(o, vec![at.clone()], sum + a.at(vec![at]));
        let inner = Stmt::for_(j, int(5), int(3), LoopKind::Unrolled, body);
        Stmt::range(i, Expr::int(2), inner)
    });
}

#[test]
fn loops_without_iterations_do_nothing() {
    for extent in [0, -3] {
        for kind in [LoopKind::Serial, LoopKind::Parallel] {
            check(&[5], 1, &[0], &|_, o| {
                Stmt::for_(index("i"), int(0), int(extent), kind, Stmt::store(o, vec![int(0)], int(7)))
            });
        }
    }
}

#[test]
fn branches_take_one_side() {
    check(&[0; 4], 4, &[10, 20, 10, 20], &|_, o| {
        let i = index("i");
        let even = i.expr().floormod(int(2)).equal(int(0));
        let store = |v| Box::new(Stmt::store(o, vec![i.expr()], int(v)));
        let body = Stmt::If { cond: even, then: store(10), otherwise: Some(store(20)) };
        Stmt::range(i.clone(), int(4), body)
    });
}

#[test]
fn a_side_that_is_not_taken_reads_nothing() {
    check(&[1, 2, 3], 5, &[1, 2, 3, -1, -1], &|a, o| {
        let i = index("i");
        let inside = i.expr().lt(int(3));
        let guarded = Expr::if_then_else(inside.clone(), a.at(vec![i.expr()]), int(-1));
        Stmt::range(i.clone(), int(5), Stmt::store(o, vec![i.expr()], guarded))
    });
    check(&[1, 0, 3], 5, &[1, 0, 1, 0, 0], &|a, o| {
        let i = index("i");
        let positive = a.at(vec![i.expr()]).gt(int(0));
        let cond = i.expr().lt(int(3)).and(positive);
        Stmt::range(i.clone(), int(5), Stmt::store(o, vec![i.expr()], cond.cast(DType::I64)))
    });
}

#[test]
fn a_binding_keeps_its_value_when_the_memory_changes() {
    check(&[1, 2, 3, 4], 4, &[101, 101, 101, 101], &|a, o| {
        let v = Var::new("v", DType::I64);
        let all = iota(int(0), 4);
        let spoil = Stmt::store(a, vec![all.clone()], int(100));
        let sum = a.at(vec![all.clone()]) + v.expr().broadcast_to(4);
        Stmt::let_(v, a.at(vec![int(0)]), Stmt::seq([spoil, Stmt::store(o, vec![all], sum)]))
    });
}

#[test]
fn loads_are_read_again_after_a_store_and_in_each_iteration() {
    check(&[1, 0, 0, 0], 4, &[1, 2, 4, 8], &|a, o| {
        let i = index("i");
        let first = || a.at(vec![int(0)]);
        let keep = Stmt::store(o, vec![i.expr()], first());
        let double = Stmt::store(a, vec![int(0)], first() + first());
        let before = Stmt::store(o, vec![int(3)], first());
        Stmt::seq([before, Stmt::range(i.clone(), int(4), Stmt::seq([keep, double]))])
    });
    check(&[1, 0], 2, &[1, 9], &|a, o| {
        let first = || a.at(vec![int(0)]);
        let spoil = Stmt::if_(first().equal(int(1)), Stmt::store(a, vec![int(0)], int(9)));
        let (one, two) = (Stmt::store(o, vec![int(0)], first()), Stmt::store(o, vec![int(1)], first()));
        Stmt::seq([one, spoil, two])
    });
}

#[test]
fn local_vectors_accumulate_in_place_and_overlapping_parts_are_copied_first() {
    let data: Vec<i64> = (1..=32).collect();
    check(&data, 8, &[52, 56, 60, 64, 68, 72, 76, 80], &|a, o| {
        let s = Buffer::new("S", DType::I64, vec![int(8)], MemScope::Local);
        let k = index("k");
        let all = iota(int(0), 8);
        let fold = s.at(vec![all.clone()]) + a.at(vec![iota(k.expr() * int(8), 8)]);
        let body = Stmt::seq([
            Stmt::store(&s, vec![all.clone()], int(0).broadcast_to(8)),
            Stmt::range(k, int(4), Stmt::store(&s, vec![all.clone()], fold)),
            Stmt::store(o, vec![all.clone()], s.at(vec![all])),
        ]);
        Stmt::allocate(s, body)
    });
    // S[1:5] = S[0:4] + S[1:5]: all lanes are read before one is written.
    check(&[1, 2, 3, 4, 5], 5, &[1, 3, 5, 7, 9], &|a, o| {
        let s = Buffer::new("S", DType::I64, vec![int(5)], MemScope::Local);
        let all = iota(int(0), 5);
        let shifted = s.at(vec![iota(int(0), 4)]) + s.at(vec![iota(int(1), 4)]);
        let body = Stmt::seq([
            Stmt::store(&s, vec![all.clone()], a.at(vec![all.clone()])),
            Stmt::store(&s, vec![iota(int(1), 4)], shifted),
            Stmt::store(o, vec![all.clone()], s.at(vec![all])),
        ]);
        Stmt::allocate(s, body)
    });
    // The same in global memory.
    check(&[1, 2, 3, 4, 5], 5, &[1, 3, 5, 7, 9], &|a, o| {
        let all = iota(int(0), 5);
        let shifted = o.at(vec![iota(int(0), 4)]) + o.at(vec![iota(int(1), 4)]);
        Stmt::seq([
            Stmt::store(o, vec![all.clone()], a.at(vec![all])),
            Stmt::store(o, vec![iota(int(1), 4)], shifted),
        ])
    });
}

#[test]
fn in_place_choices_and_extrema_keep_the_other_operand() {
    check(&[3, -4, 5, -6], 4, &[3, 0, 5, 0], &|a, o| {
        let s = Buffer::new("S", DType::I64, vec![int(4)], MemScope::Local);
        let all = iota(int(0), 4);
        let (x, old) = (a.at(vec![all.clone()]), s.at(vec![all.clone()]));
        let better = x.clone().gt(old.clone());
        let body = Stmt::seq([
            Stmt::store(&s, vec![all.clone()], int(0)),
            Stmt::store(&s, vec![all.clone()], Expr::select(better, x.clone(), old.clone())),
            Stmt::store(
                &s,
                vec![all.clone()],
                Expr::select(x.clone().lt(old.clone()), old.clone(), x.clone().max(old.clone())),
            ),
            Stmt::store(&s, vec![all.clone()], x.max(old.clone())),
            Stmt::store(o, vec![all], old),
        ]);
        Stmt::allocate(s, body)
    });
}

#[test]
fn strided_repeated_reversed_and_general_indices_reach_the_right_elements() {
    let data: Vec<i64> = (0..12).collect();
    let ramp = |base, stride| Expr::ramp(int(base), int(stride), 4);
    for (at, want) in [
        (ramp(2, 1), [2, 3, 4, 5]),
        (ramp(1, 3), [1, 4, 7, 10]),
        (ramp(11, -2), [11, 9, 7, 5]),
        (ramp(6, 0), [6, 6, 6, 6]),
        (int(5).broadcast_to(4), [5, 5, 5, 5]),
        (ramp(0, 1) * int(2).broadcast_to(4) + int(3).broadcast_to(4), [3, 5, 7, 9]),
        (ramp(0, 1) * ramp(0, 1), [0, 1, 4, 9]),
        (int(11).broadcast_to(4) - ramp(0, 1) * ramp(0, 1), [11, 10, 7, 2]),
    ] {
        check(&data, 4, &want, &|a, o| Stmt::store(o, vec![iota(int(0), 4)], a.at(vec![at.clone()])));
    }
    check(&[1, 2, 3, 4], 10, &[0, 1, 0, 0, 2, 0, 0, 3, 0, 4], &|a, o| {
        let three = Expr::ramp(int(1), int(3), 3);
        let value = a.at(vec![iota(int(0), 3)]);
        let squares = iota(int(2), 2) * iota(int(2), 2);
        Stmt::seq([
            Stmt::store(o, vec![squares], a.at(vec![Expr::ramp(int(3), int(0), 2)])),
            Stmt::store(o, vec![three], value),
        ])
    });
}

#[test]
fn ramps_are_values_too() {
    check(&[4], 4, &[4, 7, 10, 13], &|a, o| {
        let value = Expr::ramp(a.at(vec![int(0)]), int(3), 4);
        Stmt::store(o, vec![iota(int(0), 4)], value)
    });
}

#[test]
fn ramps_of_narrower_integers_keep_low_digits() {
    let first = (1i64 << 32) - 2;
    check(&[first], 4, &[-2, -1, 0, 1], &|a, o| {
        let wide = Expr::ramp(a.at(vec![int(0)]), int(1), 4);
        Stmt::store(o, vec![iota(int(0), 4)], wide.cast(DType::I32).cast(DType::I64))
    });
}

#[test]
fn shared_expressions_under_a_let_see_their_own_binding() {
    check(&[1, 2, 3], 3, &[4, 9, 16], &|a, o| {
        let (i, v) = (index("i"), Var::new("v", DType::I64));
        let square = Expr::let_in(v.clone(), a.at(vec![i.expr()]) + int(1), v.expr() * v.expr());
        Stmt::range(i.clone(), int(3), Stmt::store(o, vec![i.expr()], square))
    });
}

#[test]
fn parallel_loops_share_outer_memory_and_own_inner_memory() {
    let data: Vec<i64> = (0..64).collect();
    let want: Vec<i64> = (0..8).map(|i| (0..8).map(|k| 10 * (8 * i + k) + i).sum()).collect();
    check(&data, 8, &want, &|a, o| {
        let ten = Buffer::new("T", DType::I64, vec![int(8)], MemScope::Local);
        let part = Buffer::new("P", DType::I64, vec![int(8)], MemScope::Local);
        let (i, k) = (index("i"), index("k"));
        let all = iota(int(0), 8);
        let scaled = a.at(vec![iota(i.expr() * int(8), 8)]) * ten.at(vec![all.clone()]);
        let own = i.expr().broadcast_to(8);
        let fill = Stmt::store(&part, vec![all.clone()], scaled + own);
        let add = Stmt::store(o, vec![i.expr()], o.at(vec![i.expr()]) + part.at(vec![k.expr()]));
        let body = Stmt::allocate(part, Stmt::seq([fill, Stmt::range(k, int(8), add)]));
        let rows = Stmt::for_(i, int(0), int(8), LoopKind::Parallel, body);
        let init = Stmt::store(&ten, vec![all], int(10).broadcast_to(8));
        Stmt::allocate(ten, Stmt::seq([init, rows]))
    });
}

#[test]
fn a_parallel_loop_inside_another_runs_too() {
    check(&[0], 12, &(0..12).collect::<Vec<_>>(), &|_, o| {
        let (i, j) = (Var::size("i", DType::I32), index("j"));
        let at = i.expr().cast(DType::I64) * int(4) + j.expr();
        let inner = Stmt::for_(j, int(0), int(4), LoopKind::Parallel, Stmt::store(o, vec![at.clone()], at));
        Stmt::for_(i, Expr::int(0), Expr::int(3), LoopKind::Parallel, inner)
    });
}

#[test]
fn allocations_of_a_length_known_at_launch_work_and_are_zero_sized_at_times() {
    let n = Var::size("n", DType::I64);
    let a = Buffer::new("A", DType::I32, vec![n.expr()], MemScope::Global);
    let o = Buffer::new("O", DType::I32, vec![n.expr()], MemScope::Global);
    let t = Buffer::new("T", DType::I32, vec![n.expr(), int(2)], MemScope::Global);
    let (i, j) = (index("i"), index("j"));
    let fill = Stmt::store(&t, vec![i.expr() * int(2) + int(1)], a.at(vec![i.expr()]) + Expr::int(1));
    let back = Stmt::store(&o, vec![j.expr()], t.at(vec![j.expr() * int(2) + int(1)]));
    let loops = [Stmt::for_(i, int(0), n.expr(), LoopKind::Parallel, fill), Stmt::range(j, n.expr(), back)];
    let kernel = kernel(&[a, o], Stmt::allocate(t, Stmt::seq(loops)));
    for len in [0usize, 1, 5, 300_000] {
        let lanes = |add: i64| ints((0..len as i64).map(|v| v + add));
        let mut arrays = [Memory::new(DType::I32, &lanes(0)), Memory::new(DType::I32, &lanes(0))];
        run_at(&kernel, &mut arrays, coulis_exec::Level::detect(), 2).unwrap();
        assert!(arrays[1].lanes().iter().zip(lanes(1)).all(|(got, want)| got.same(want)));
    }
}

#[test]
fn strided_arguments_reach_from_their_first_element_in_both_directions() {
    let (n, s) = (Var::size("n", DType::I64), Var::new("s", DType::I64));
    let a = Buffer::new("A", DType::I64, vec![n.expr()], MemScope::Global)
        .derive(|data| data.strides = vec![s.expr()]);
    let o = array("O", DType::I64, 3);
    let at = Expr::ramp(int(0), s.expr(), 3);
    let kernel = kernel(&[a.clone(), o.clone()], Stmt::store(&o, vec![iota(int(0), 3)], a.at(vec![at])));
    let program = Program::compile(&verify::verify(kernel.clone()).unwrap()).unwrap();
    let mut data: Vec<i64> = (0..9).collect();
    let array = |shape, stride| {
        ArgInfo::Array(ArrayInfo { dtype: DType::I64, shape: vec![shape], strides: vec![stride] })
    };
    for (first, stride, n, want) in
        [(0, 2, 3, Some([0, 2, 4])), (8, -3, 3, Some([8, 5, 2])), (0, 4, 2, None), (4, 0, 3, Some([4; 3]))]
    {
        let mut out = [0i64; 3];
        let bindings = bind_args(&kernel, &[array(n, stride), array(3, 1)]).unwrap();
        let buffers = [data[first..].as_mut_ptr().cast::<u8>(), out.as_mut_ptr().cast()];
        // SAFETY: the elements that shape and stride reach lie inside `data`.
        let result = unsafe { program.run(&bindings, &buffers, Pool::global(1)) };
        match want {
            Some(want) => {
                assert_eq!(result, Ok(()));
                assert_eq!(out, want);
            }
            None => {
                let error = ExecError::OutOfBounds { buffer: "A".to_owned(), index: 8, lo: 0, hi: 5 };
                assert_eq!(result, Err(error));
            }
        }
    }
}

#[test]
fn accesses_outside_of_buffers_are_errors_at_both_ends() {
    let outside =
        |buffer: &str, index, hi| ExecError::OutOfBounds { buffer: buffer.to_owned(), index, lo: 0, hi };
    // The verifier proves what it can, so the indices depend on data: A holds zeros.
    let at = |a: &Buffer, index| a.at(vec![int(0)]) + int(index);
    for (index, bad) in [(7, None), (8, Some(8)), (-1, Some(-1))] {
        let body = |a: &Buffer, o: &Buffer| Stmt::store(o, vec![int(0)], a.at(vec![at(a, index)]));
        match bad {
            None => check(&[0, 0, 0, 0, 0, 0, 0, 3], 1, &[3], &body),
            Some(index) => check_error(outside("A", index, 8), &body),
        }
    }
    let four = || iota(int(0), 4);
    check_error(outside("A", 8, 8), &|a, o| Stmt::store(o, vec![four()], a.at(vec![iota(at(a, 5), 4)])));
    check_error(outside("O", -1, 8), &|a, o| Stmt::store(o, vec![iota(at(a, -1), 4)], a.at(vec![four()])));
    check_error(outside("A", 9, 8), &|a, o| {
        Stmt::store(o, vec![four()], a.at(vec![Expr::ramp(at(a, 0), int(3), 4)]))
    });
    check_error(outside("A", 9, 8), &|a, o| {
        let squares = iota(at(a, 0), 4) * iota(at(a, 0), 4);
        Stmt::store(o, vec![four()], a.at(vec![squares]))
    });
    check_error(outside("O", 9, 8), &|a, o| {
        let squares = iota(at(a, 0), 4) * iota(at(a, 0), 4);
        Stmt::store(o, vec![squares], a.at(vec![four()]))
    });
    check_error(outside("S", 4, 4), &|a, o| {
        let s = Buffer::new("S", DType::I64, vec![int(4)], MemScope::Local);
        let i = index("i");
        let body = Stmt::store(&s, vec![at(a, 4)], i.expr());
        let rows = Stmt::for_(i, int(4), int(2), LoopKind::Parallel, Stmt::allocate(s, body));
        Stmt::seq([rows, Stmt::store(o, vec![int(0)], int(0))])
    });
}

#[test]
fn division_by_zero_is_an_error_where_it_is_reached() {
    for op in [BinaryOp::Div, BinaryOp::TruncMod, BinaryOp::FloorDiv, BinaryOp::FloorMod] {
        check_error(ExecError::DivisionByZero, &|a, o| {
            Stmt::store(o, vec![int(0)], Expr::binary(op, int(1), a.at(vec![int(0)])))
        });
        check_error(ExecError::DivisionByZero, &|a, o| {
            let all = iota(int(0), 8);
            Stmt::store(o, vec![all.clone()], Expr::binary(op, int(1), a.at(vec![all])))
        });
        check(&[0], 1, &[5], &|a, o| {
            let zero = a.at(vec![int(0)]);
            let safe = zero.clone().not_equal(int(0));
            Stmt::store(o, vec![int(0)], Expr::if_then_else(safe, Expr::binary(op, int(1), zero), int(5)))
        });
    }
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    check_error(ExecError::UnsupportedStmt { stmt: "sync" }, &|_, _| Stmt::Sync(SyncKind::Cta));
}

#[test]
fn a_call_with_wrong_arguments_is_an_error() {
    let n = Var::size("n", DType::I64);
    let o = Buffer::new("O", DType::I64, vec![n.expr()], MemScope::Global);
    let checked =
        verify::verify(kernel(std::slice::from_ref(&o), Stmt::store(&o, vec![int(0)], n.expr()))).unwrap();
    let program = Program::compile(&checked).unwrap();
    let mut out = [0i64; 2];
    let pool = Pool::global(1);
    let bindings = Bindings::from([(n.id(), 2)]);
    let pointer = out.as_mut_ptr().cast::<u8>();
    let error = |bindings: &Bindings, buffers: &[*mut u8]| {
        // SAFETY: `pointer` has two elements; the other calls are refused before any access.
        unsafe { program.run(bindings, buffers, pool) }
    };
    assert_eq!(error(&bindings, &[pointer]), Ok(()));
    assert_eq!(error(&Bindings::new(), &[pointer]), Err(ExecError::UnboundVar { var: "n".to_owned() }));
    assert_eq!(
        error(&bindings, &[]),
        Err(ExecError::BufferCount { kernel: "test".to_owned(), wanted: 1, found: 0 })
    );
    let odd = pointer.wrapping_add(1);
    assert_eq!(error(&bindings, &[odd]), Err(ExecError::Misaligned { buffer: "O".to_owned(), bytes: 8 }));
    assert_eq!(out, [2, 0]);
}

#[test]
fn a_hint_does_nothing_even_where_it_is_outside() {
    check(&[7], 1, &[7], &|a, o| {
        let place = Element { buffer: a.clone(), indices: vec![int(1 << 20)] };
        let hint = AtomCall { atom: Atom::Prefetch, dst: None, memory: Some(place), args: Vec::new() };
        Stmt::seq([Stmt::Atom(Box::new(hint)), Stmt::store(o, vec![int(0)], a.at([int(0)]))])
    });
}

#[test]
fn vectors_from_before_a_parallel_loop_are_known_in_it() {
    check(&[1, 2, 3, 4, 5, 6, 7, 8], 8, &[6, 9, 12, 15, 18, 21, 24, 27], &|a, o| {
        let i = index("i");
        let at = iota(i.expr() * int(4), 4);
        let three = int(3).broadcast_to(4);
        let value = a.at(vec![at.clone()]) * three.clone() + three;
        let body = Stmt::store(o, vec![at], value);
        Stmt::for_(i, int(0), int(2), LoopKind::Parallel, body)
    });
}

/// Rows of `extent` elements, `lanes` of them side by side: the columns are read with a stride and added one by one.
fn side_by_side(a: &Buffer, o: &Buffer, dtype: DType, extent: i64, lanes: i64) -> Stmt {
    let s = Buffer::new("S", dtype, vec![int(lanes)], MemScope::Local);
    let block = index("block");
    let all = || vec![iota(int(0), lanes as usize)];
    let column = |c: i64| {
        let first = block.expr() * int(lanes * extent) + int(c);
        a.at(vec![Expr::ramp(first, int(extent), lanes as u32)])
    };
    let first = Stmt::store(&s, all(), column(0));
    let folds = (1..extent).map(|c| {
        let odd = c % 2 == 1;
        let (old, new) = (s.at(all()), column(c));
        // An order that matters.
        Stmt::store(
            &s,
            all(),
            if odd { old - new } else { old * Expr::constant(3, dtype).broadcast_to(lanes as u32) + new },
        )
    });
    let out = Stmt::store(o, vec![iota(block.expr() * int(lanes), lanes as usize)], s.at(all()));
    let body = Stmt::seq([first].into_iter().chain(folds).chain([out]));
    Stmt::for_(block, int(0), int(3), LoopKind::Parallel, Stmt::allocate(s, body))
}

#[test]
fn columns_that_are_read_together_are_the_columns() {
    for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::I16, DType::U8] {
        for (extent, lanes) in [(7, 16), (4, 4), (9, 8), (5, 32), (3, 7), (8, 12)] {
            let n = (3 * extent * lanes) as usize;
            let (a, o) = (array("A", dtype, n), array("O", dtype, (3 * lanes) as usize));
            let kernel = kernel(&[a.clone(), o.clone()], side_by_side(&a, &o, dtype, extent, lanes));
            let value = |i: usize| (i * 7 % 23) as i128;
            let lane = |v: i128| if dtype.is_float() { Lane::F(v as f64) } else { Lane::I(v) };
            let given: Vec<Lane> = (0..n).map(|i| lane(value(i))).collect();
            for level in levels() {
                let mut arrays =
                    [Memory::new(dtype, &given), Memory::new(dtype, &vec![lane(0); (3 * lanes) as usize])];
                run_at(&kernel, &mut arrays, level, 2).unwrap();
                for (row, got) in arrays[1].lanes().into_iter().enumerate() {
                    let at = |c: usize| value(row * extent as usize + c);
                    let fold = |s: i128, c: usize| if c % 2 == 1 { s - at(c) } else { s * 3 + at(c) };
                    let want = (1..extent as usize).fold(at(0), fold);
                    let want = if dtype.is_float() { lane(want) } else { Lane::I(dtype.wrap_int(want)) };
                    assert!(want.same(got), "{dtype:?} {extent} {lanes} {level:?} row {row}");
                }
            }
        }
    }
}

#[test]
fn short_loops_do_what_their_iterations_do_in_order() {
    // Each iteration reads what the one before wrote, a choice hides a read outside, and a sum is repeated.
    check(&[1, 2, 3, 4], 4, &[1, 3, 6, 10], &|a, o| {
        let i = index("i");
        let before = o.at(vec![i.expr() - int(1)]);
        let old = Expr::if_then_else(i.expr().gt(int(0)), before, int(0));
        Stmt::range(i.clone(), int(4), Stmt::store(o, vec![i.expr()], old + a.at(vec![i.expr()])))
    });
    check(&[1, 2, 3], 5, &[1, 2, 3, -1, -1], &|a, o| {
        let i = index("i");
        let guarded = Expr::if_then_else(i.expr().lt(int(3)), a.at(vec![i.expr()]), int(-1));
        Stmt::range(i.clone(), int(5), Stmt::store(o, vec![i.expr()], guarded))
    });
    check(&[5, 6, 7], 3, &[105, 106, 107], &|a, o| {
        let (i, v) = (index("i"), Var::new("v", DType::I64));
        let spoil = Stmt::store(a, vec![i.expr()], int(0));
        let keep = Stmt::store(o, vec![i.expr()], v.expr() + int(100));
        let body = Stmt::let_(v.clone(), a.at(vec![i.expr()]), Stmt::seq([spoil, keep]));
        Stmt::range(i.clone(), int(3), body)
    });
    check(&[0; 2], 2, &[21, 1000], &|_, o| {
        let i = index("i");
        let (first, second) = (vec![int(0)], vec![int(1)]);
        let three = Stmt::store(o, first.clone(), o.at(first) + int(3));
        let last = Stmt::store(o, second, int(1000));
        Stmt::seq([Stmt::range(i, int(7), three), last])
    });
    check(&[1, 2, 3, 4, 5], 5, &[5, 4, 3, 2, 1], &|a, o| {
        let i = index("i");
        Stmt::range(i.clone(), int(5), Stmt::store(o, vec![i.expr()], a.at(vec![int(4) - i.expr()])))
    });
}

#[test]
fn a_vector_store_into_memory_that_it_reads_loads_all_lanes_first() {
    let unit = |from: usize, lanes: usize| iota(int(from as i64), lanes);
    let types = [DType::F32, DType::F64, DType::F16, DType::I8, DType::I32, DType::I64];
    let shifts = [(0, 1), (1, 0), (0, 16), (3, 7)];
    let lengths = [2, 4, 8, 15, 16, 17, 31, 32, 33, 48, 64, 80];
    let cases = types.into_iter().flat_map(|d| shifts.map(|shift| (d, shift)));
    for ((dtype, (from, into)), n) in cases.flat_map(|case| lengths.map(|n| (case, n))) {
        let lane = |i: usize| match dtype.is_float() {
            true => Lane::F(i as f64),
            false => Lane::I(i as i128),
        };
        let before: Vec<Lane> = (0..96).map(lane).collect();
        let (b, o) = (array("B", dtype, 96), array("O", dtype, 96));
        let read = || b.at(vec![unit(from, n)]);
        let apart = Expr::ramp(int((into + n) as i64 - 1), int(-1), n as u32);
        // The lanes as they are, in reverse, and an operand of an operation.
        for (index, value, is_doubled) in [
            (unit(into, n), read(), false),
            (apart, read(), false),
            (unit(into, n), read() + b.at(vec![unit(from, n)]), true),
        ] {
            let is_reversed = index != unit(into, n);
            let all = unit(0, 96);
            let copy = Stmt::store(&o, vec![all.clone()], b.at(vec![all]));
            let body = Stmt::seq([Stmt::store(&b, vec![index], value), copy]);
            let kernel = kernel(&[b.clone(), o.clone()], body);
            let mut want = before.clone();
            for i in 0..n {
                let at = into + if is_reversed { n - 1 - i } else { i };
                let sum = |x: Lane| match x {
                    Lane::I(v) => Lane::I(dtype.wrap_int(v + v)),
                    Lane::F(v) => Lane::F(v + v),
                };
                want[at] = if is_doubled { sum(before[from + i]) } else { before[from + i] };
            }
            for level in levels() {
                let mut arrays = [Memory::new(dtype, &before), Memory::new(dtype, &before)];
                run_at(&kernel, &mut arrays, level, 1).unwrap_or_else(|e| panic!("{e}"));
                let differs = |(got, want): (Lane, &Lane)| !got.same(*want);
                let wrong = arrays[1].lanes().into_iter().zip(&want).position(differs);
                assert_eq!(
                    wrong, None,
                    "{dtype:?} {level:?}: {n} lanes from {from} to {into}, {is_reversed}"
                );
            }
        }
    }
}
