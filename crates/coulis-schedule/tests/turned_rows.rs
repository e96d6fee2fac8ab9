//! Rows that are taken from their first boundary on: what is folded is not in ascending order, and positions are right all the same.

mod common;

use common::check;
use common::fixture::states_of_rows;
use coulis_ir::{DType, Expr, MemScope};

#[test]
fn positions_of_equal_elements_are_the_first_wherever_the_row_is_begun() {
    for (op, dtype) in [("argmax", DType::Bool), ("argmin_last", DType::I8), ("maxloc", DType::F32)] {
        let (mut s, a, state, _) = states_of_rows(op, dtype, [Expr::int(9), Expr::int(13)]);
        let reader = s.stage(&state[0]).expect("a stage").id();
        s.from_boundary(&a, MemScope::Local, &[reader.into()], 4).expect("a copy");
        check(&s, &[&[]]);
    }
}
