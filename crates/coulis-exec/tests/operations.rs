//! Every operation on every type, scalar and vector, at every level, against the model.

mod common;

use common::{Lane, check_lanes, interesting, pairs};
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic};

/// The 8-bit floats are for storage and conversion only.
fn computes(dtype: DType) -> bool {
    !matches!(dtype, DType::F8E4M3 | DType::F8E5M2)
}

fn is_defined(op: BinaryOp, dtype: DType) -> bool {
    match op {
        _ if !computes(dtype) => false,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => dtype != DType::Bool,
        BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::Shl | BinaryOp::Shr => {
            dtype.is_int()
        }
        BinaryOp::And | BinaryOp::Or => dtype == DType::Bool,
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => !dtype.is_float(),
        _ => true,
    }
}

#[test]
fn every_binary_operation_agrees_with_the_model_on_every_type() {
    for dtype in DType::ALL {
        for op in BinaryOp::ALL.into_iter().filter(|op| is_defined(*op, dtype)) {
            let (a, mut b) = pairs(dtype);
            let divides =
                matches!(op, BinaryOp::Div | BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod);
            for lane in &mut b {
                if let Lane::I(value) = lane
                    && divides
                    && *value == 0
                {
                    *value = 3;
                }
            }
            let out = if op.is_comparison() { DType::Bool } else { dtype };
            check_lanes(&format!("{op:?} {dtype}"), out, &[(dtype, a), (dtype, b)], &|x| {
                Expr::binary(op, x[0].clone(), x[1].clone())
            });
        }
    }
}

#[test]
fn division_by_powers_of_two_rounds_down() {
    for dtype in [DType::I8, DType::I32, DType::I64, DType::U16] {
        for divisor in [1, 2, 8, 64] {
            for op in [BinaryOp::FloorDiv, BinaryOp::FloorMod, BinaryOp::Div, BinaryOp::TruncMod] {
                check_lanes(
                    &format!("{op:?} {dtype} {divisor}"),
                    dtype,
                    &[(dtype, interesting(dtype))],
                    &|x| Expr::binary(op, x[0].clone(), Expr::int_of(divisor, dtype)),
                );
            }
        }
    }
}

#[test]
fn every_conversion_agrees_with_the_model() {
    for from in DType::ALL {
        for to in DType::ALL {
            check_lanes(&format!("{from} to {to}"), to, &[(from, interesting(from))], &|x| {
                x[0].clone().cast(to)
            });
        }
    }
}

#[test]
fn conversions_round_once() {
    let ties = |v: f64| [v, v.next_up(), v.next_down(), -v].map(Lane::F).to_vec();
    for (to, tie) in [(DType::F16, 1.0 + 2f64.powi(-11)), (DType::BF16, 1.0 + 2f64.powi(-8))] {
        check_lanes("tie", to, &[(DType::F64, ties(tie))], &|x| x[0].clone().cast(to));
    }
    let near = [(1i128 << 62) + (1 << 54), (1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 54) - 1];
    let lanes = near.map(Lane::I).to_vec();
    check_lanes("wide tie", DType::BF16, &[(DType::I64, lanes)], &|x| x[0].clone().cast(DType::BF16));
}

#[test]
fn every_function_agrees_with_the_model() {
    for dtype in [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::F32, DType::F64] {
        for f in Intrinsic::ALL {
            if matches!(f, Intrinsic::Popcount | Intrinsic::Likely) {
                continue;
            }
            let out = if f.is_predicate() { DType::Bool } else { dtype };
            let (a, b) = pairs(dtype);
            let mut c = a.clone();
            c.rotate_left(5);
            check_lanes(&format!("{f:?} {dtype}"), out, &[(dtype, a), (dtype, b), (dtype, c)], &|x| {
                Expr::call(f, x[..f.arity()].to_vec())
            });
        }
    }
}

#[test]
fn functions_of_integers_agree_with_the_model() {
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for f in [Intrinsic::Abs, Intrinsic::Popcount] {
            check_lanes(&format!("{f:?} {dtype}"), dtype, &[(dtype, interesting(dtype))], &|x| {
                Expr::call1(f, x[0].clone())
            });
        }
    }
}

#[test]
fn select_and_not_agree_with_the_model() {
    for dtype in DType::ALL {
        let (a, b) = pairs(dtype);
        check_lanes(&format!("select {dtype}"), dtype, &[(dtype, a), (dtype, b)], &|x| {
            let wide = if dtype.is_float() { DType::F64 } else { dtype };
            let cond = x[0].clone().cast(wide).le(x[1].clone().cast(wide)).logical_not();
            Expr::select(cond, x[1].clone(), x[0].clone())
        });
    }
}
