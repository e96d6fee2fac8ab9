//! Where variables live.

use coulis_ir::{Buffer, DType, Expr, Form, Kernel, LoopKind, MemScope, Param, Stmt, Var, verify};

use super::*;
use crate::compile::compile;
use crate::level::Level;
use crate::native::loops::Slots;
use crate::registers::lay_out;

const LANES: i64 = 8;

fn int(value: i64) -> Expr {
    Expr::int_of(value.into(), DType::I64)
}

fn vector(base: Expr) -> Vec<Expr> {
    vec![Expr::ramp(base, int(1), LANES as u32)]
}

fn plan_of(arrays: &[Buffer], body: Stmt, isa: Isa) -> Plan {
    let param = |buffer: &Buffer| Param::Buffer { handle: Var::handle(&buffer.name), buffer: buffer.clone() };
    let kernel = Kernel {
        name: "test".to_owned(),
        params: arrays.iter().map(param).collect(),
        attrs: Default::default(),
        form: Form::Flat,
        body,
    };
    let mut compiled = compile(&verify::verify(kernel).unwrap(), Level::Avx512).unwrap();
    let layout = lay_out(&compiled.code, &compiled.ptrs, &compiled.bases, &mut compiled.parallels);
    let slots = Slots::of(&compiled);
    let region = Region { range: 0..compiled.code.len(), parallel: None };
    plan(&compiled, &layout, &region, isa, &|slot| slots.constant(slot))
}

/// The place of the first elements of a local buffer: set before a loop that adds to what `index` says of its
/// variable, and read after it.
fn place_of_first(index: impl Fn(Expr) -> Expr) -> Place {
    let array = |name, scope| Buffer::new(name, DType::F64, vec![int(8 * LANES)], scope);
    let (given, out) = (array("A", MemScope::Global), array("O", MemScope::Global));
    let local = array("T", MemScope::Local);
    let i = Var::new("i", DType::I64);
    let at = vector(index(i.expr()));
    let sum = local.at(at.clone()) + given.at(vector(i.expr() * int(LANES)));
    let body = [
        Stmt::store(&local, vector(int(0)), given.at(vector(int(0)))),
        Stmt::for_(i, int(0), int(8), LoopKind::Serial, Stmt::store(&local, at, sum)),
        Stmt::store(&out, vector(int(0)), local.at(vector(int(0)))),
    ];
    let plan = plan_of(&[given, out], Stmt::allocate(local, Stmt::seq(body)), Isa::Avx512);
    let elements: Vec<&Variable> = plan.variables.iter().filter(|v| v.base.is_some()).collect();
    assert_eq!(elements.len(), 1, "{elements:?}");
    elements[0].place.clone()
}

#[test]
fn elements_that_a_loop_adds_to_are_in_registers() {
    assert!(matches!(place_of_first(|_| int(0)), Place::Vectors(_)));
}

#[test]
fn elements_whose_buffer_a_loop_accesses_another_way_stay_in_memory() {
    assert_eq!(place_of_first(|i| i * int(LANES)), Place::Memory);
}

#[test]
fn no_narrow_float_is_left_to_the_interpreter() {
    for dtype in [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16] {
        for isa in [Isa::Avx2, Isa::Avx512] {
            let array = |name, dtype| Buffer::new(name, dtype, vec![int(8 * LANES)], MemScope::Global);
            let (given, wide, out) = (array("A", dtype), array("W", DType::F32), array("O", dtype));
            let strided = vec![Expr::ramp(int(0), int(2), LANES as u32)];
            let one = vec![int(0)];
            let body = [
                Stmt::store(&wide, vector(int(0)), given.at(vector(int(0))).cast(DType::F32)),
                Stmt::store(&wide, vector(int(8)), given.at(strided).cast(DType::F32)),
                Stmt::store(&out, vector(int(0)), wide.at(vector(int(0))).cast(dtype)),
                Stmt::store(&out, vec![int(63)], given.at(one).cast(DType::F32).cast(dtype)),
            ];
            let plan = plan_of(&[given, wide, out], Stmt::seq(body), isa);
            assert!(plan.calls.is_empty(), "{dtype} {isa:?}: {:?}", plan.calls);
        }
    }
}
