//! Rows that are taken from their first boundary on: what is folded is not in ascending order, and positions are right all the same.

mod common;

use std::slice::from_ref;

use common::check;
use coulis_ir::{DType, Expr, MemScope};
use coulis_reducers::{ReducerRequest, find};
use coulis_schedule::Schedule;
use coulis_tensor::{compute_tuple, placeholder, reduce, reduce_axis};

#[test]
fn positions_of_equal_elements_are_the_first_wherever_the_row_is_begun() {
    for (op, dtype) in [("argmax", DType::Bool), ("argmin_last", DType::I8), ("maxloc", DType::F32)] {
        let (n, m) = (Expr::int(9), Expr::int(13));
        let a = placeholder(&[n.clone(), m.clone()], dtype, "A").expect("a tensor");
        let k = reduce_axis(m, "k");
        let reducer =
            find(op).expect("in the catalogue").build(&ReducerRequest::new(&[dtype])).expect("built");
        let state =
            compute_tuple(from_ref(&n), "S", |i| reduce(&reducer, &[a.at((&i[0], &k))], from_ref(&k)));
        let state = state.expect("tensors");
        let args = [from_ref(&a), &state[..]].concat();
        let mut s = Schedule::new(&state, &args).expect("a schedule");
        let reader = s.stage(&state[0]).expect("a stage").id();
        s.from_boundary(&a, MemScope::Local, &[reader.into()], 4).expect("a copy");
        check(&s, &[&[]]);
    }
}
