//! Random expressions, evaluated before and after each rule, simplification and proof.

mod elements;
mod narrow;

use std::collections::HashMap;

use crate::args::{Bindings, eval_index};
use crate::buffer::{Buffer, MemScope};
use crate::dtype::{DType, Ty};
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var, VarId};
use crate::op::floor_div;
use crate::simplify::Analyzer;
use crate::simplify::rules::{Kind, RULES};

/// A generator of numbers (splitmix64), the same on every run.
pub(super) struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() % (hi - lo + 1) as u64) as i64
    }

    pub fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// The variables of random expressions, what the analyzer knows of them, and values that agree with it.
pub(super) struct World {
    pub analyzer: Analyzer,
    ints: Vec<Var>,
    floats: Vec<Var>,
    bytes: Vec<Var>,
    table: Buffer,
    /// A condition on memory whose truth the analyzer knows.
    known: Expr,
}

const I: usize = 0;
const J: usize = 1;
const K: usize = 2;
const Q: usize = 3;
const N: usize = 4;
const M: usize = 5;
const P: usize = 6;
const D: usize = 7;
const E: usize = 8;

pub(super) fn world() -> World {
    let var = |name: &str| Var::new(name, DType::I32);
    let size = |name: &str| Var::size(name, DType::I32);
    let ints =
        vec![var("i"), var("j"), var("k"), var("q"), size("n"), size("m"), var("p"), size("d"), var("e")];
    let c = Expr::int;
    let mut analyzer = Analyzer::new();
    analyzer.bind(&ints[I], &c(0), &c(32));
    analyzer.bind(&ints[J], &c(-3), &c(7));
    analyzer.bind(&ints[K], &c(0), &ints[N].expr());
    analyzer.bind(&ints[Q], &c(1), &(ints[M].expr() + c(7)).floordiv(c(8)));
    analyzer.bind(&ints[E], &ints[M].expr(), &c(1));
    analyzer.assume(&ints[D].expr().floormod(c(8)).equal(c(0)));
    analyzer.assume(&ints[P].expr().lt(ints[N].expr() + c(5)));
    let table = Buffer::new("W", DType::I32, vec![c(8)], MemScope::Global);
    let known = table.at([c(0)]).lt(c(0));
    let holds = lanes(&known, &Values::new()) == Some(vec![1]);
    analyzer.assume(&if holds { known.clone() } else { known.clone().logical_not() });
    World {
        analyzer,
        known,
        ints,
        floats: vec![Var::new("x", DType::F32), Var::new("y", DType::F32)],
        bytes: vec![Var::new("a", DType::U8), Var::new("b", DType::U8)],
        table,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int(i128),
    Float(f64),
}

pub(super) type Values = HashMap<VarId, Value>;

impl World {
    pub fn values(&self, dice: &mut Dice) -> Values {
        let n = dice.range(1, 40);
        let m = dice.range(1, 60);
        let mut ints = [0; 9];
        ints[E] = m;
        ints[I] = dice.range(0, 31);
        ints[J] = dice.range(-3, 3);
        ints[K] = dice.range(0, n - 1);
        ints[Q] = dice.range(1, (m + 7) / 8);
        ints[N] = n;
        ints[M] = m;
        ints[P] = dice.range(-30, n + 4);
        ints[D] = 8 * dice.range(0, 6);
        let mut values: Values =
            self.ints.iter().zip(ints).map(|(v, x)| (v.id(), Value::Int(i128::from(x)))).collect();
        for var in &self.bytes {
            values.insert(var.id(), Value::Int(i128::from(dice.range(0, 255))));
        }
        for var in &self.floats {
            let float = dice.of(&[0.0, -0.0, 1.5, -7.25, f64::INFINITY, f64::NAN, 3.0, f64::from(1e30f32)]);
            values.insert(var.id(), Value::Float(float));
        }
        values
    }

    /// Integers of which some may be 0, one of them from memory.
    pub fn some_ints(&self) -> [Expr; 4] {
        let [j, p, d] = [J, P, D].map(|at| self.ints[at].expr());
        let element = self.table.at([j.clone()]).floormod(Expr::int(3));
        [j, p, d, element]
    }

    fn int(&self, dice: &mut Dice, depth: u32) -> Expr {
        let small = [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 33, 64];
        if depth == 0 || dice.below(8) == 0 {
            return match dice.below(4) {
                0 => Expr::int(dice.range(-40, 40) as i32),
                1 if dice.below(8) == 0 => self.table.at([self.int(dice, 0)]),
                _ => dice.of(&self.ints).expr(),
            };
        }
        let positive = Expr::int(dice.of(&small));
        match dice.below(16) {
            0..=3 => self.int(dice, depth - 1) + self.int(dice, depth - 1),
            4..=5 => self.int(dice, depth - 1) - self.int(dice, depth - 1),
            6..=7 => self.int(dice, depth - 1) * positive,
            8 => self.int(dice, depth - 1) * self.int(dice, depth - 1),
            9 => self.int(dice, depth - 1).floordiv(positive),
            10 if dice.below(3) == 0 => {
                let digit = dice.of(&self.ints).expr().floordiv(positive);
                digit.floormod(Expr::int(dice.of(&small)))
            }
            10 => self.int(dice, depth - 1).floormod(positive),
            11 => {
                let divisor = dice.of(&[N, M, D].map(|v| self.ints[v].expr()));
                let scaled = self.int(dice, depth - 1) * divisor.clone() + self.int(dice, depth - 1);
                if dice.below(2) == 0 { scaled.floordiv(divisor) } else { scaled.floormod(divisor) }
            }
            12 if dice.below(3) == 0 => {
                let x = self.int(dice, 0);
                x.clone().min(Expr::int(dice.range(0, 9) as i32)).min(dice.of(&[positive, x]))
            }
            12 => self.int(dice, depth - 1).min(self.int(dice, depth - 1)),
            13 => self.int(dice, depth - 1).max(self.int(dice, depth - 1)),
            14 => {
                let (cond, a) = (self.cond(dice, depth - 1), self.int(dice, depth - 1));
                let b = if dice.below(4) == 0 { a.clone() } else { self.int(dice, depth - 1) };
                if dice.below(2) == 0 { Expr::select(cond, a, b) } else { Expr::if_then_else(cond, a, b) }
            }
            _ => match dice.below(4) {
                0 => Expr::call1(Intrinsic::Abs, self.int(dice, depth - 1)),
                1 => self.int(dice, depth - 1).cast(DType::I64).cast(DType::I32),
                2 => {
                    let x = Var::new("t", DType::I32);
                    let value = self.int(dice, depth - 1);
                    Expr::let_in(x.clone(), value, x.expr() + self.int(dice, depth - 1))
                }
                _ => Expr::binary(
                    dice.of(&[
                        BinaryOp::Div,
                        BinaryOp::TruncMod,
                        BinaryOp::BitAnd,
                        BinaryOp::Shl,
                        BinaryOp::Shr,
                    ]),
                    self.int(dice, depth - 1),
                    Expr::int(dice.of(&[1, 2, 3, 4, 40, -7])),
                ),
            },
        }
    }

    fn cond(&self, dice: &mut Dice, depth: u32) -> Expr {
        let compare = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
        if dice.below(20) == 0 {
            return self.known.clone();
        }
        if depth == 0 || dice.below(3) > 0 {
            let bound = match dice.below(3) {
                0 => Expr::int(dice.range(-64, 128) as i32),
                _ => self.int(dice, depth.saturating_sub(1)),
            };
            return Expr::binary(dice.of(&compare), self.int(dice, depth.saturating_sub(1)), bound);
        }
        let a = self.cond(dice, depth - 1);
        match dice.below(5) {
            0 => a.logical_not(),
            1 => a.likely(),
            2 => a.clone().and(self.cond(dice, depth - 1)).and(a),
            3 => a.and(self.cond(dice, depth - 1)),
            _ => a.or(self.cond(dice, depth - 1)),
        }
    }

    fn float(&self, dice: &mut Dice, depth: u32) -> Expr {
        if depth == 0 {
            let constant = dice.of(&[0.0, -0.0, 1.0, 0.1, -3.5, 1e30]);
            return match dice.below(2) {
                0 => Expr::float(constant, DType::F32),
                _ => dice.of(&self.floats).expr(),
            };
        }
        let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];
        match dice.below(5) {
            4 => {
                let factor = Expr::float(dice.of(&[1.0, 64.0, 2.5, 0.5, 1048576.0]), DType::F64);
                let scaled = self.float(dice, depth - 1).cast(DType::F64) * factor;
                scaled.cast(dice.of(&[DType::F32, DType::F32, DType::F16, DType::BF16])).cast(DType::F32)
            }
            0 => Expr::select(
                self.float(dice, depth - 1).lt(self.float(dice, 0)),
                self.float(dice, depth - 1),
                self.float(dice, 0),
            ),
            1 => self.float(dice, depth - 1).cast(dice.of(&[DType::F16, DType::F64])).cast(DType::F32),
            _ => Expr::binary(dice.of(&ops), self.float(dice, depth - 1), self.float(dice, depth - 1)),
        }
    }

    fn byte(&self, dice: &mut Dice, depth: u32) -> Expr {
        if depth == 0 {
            return match dice.below(2) {
                0 => Expr::int_of(i128::from(dice.range(0, 9)), DType::U8),
                _ => dice.of(&self.bytes).expr(),
            };
        }
        let ops = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::FloorDiv,
            BinaryOp::FloorMod,
            BinaryOp::Min,
            BinaryOp::BitOr,
            BinaryOp::BitXor,
        ];
        match dice.below(6) {
            0 => self.byte(dice, depth - 1).cast(DType::I32).cast(DType::U8),
            _ => Expr::binary(dice.of(&ops), self.byte(dice, depth - 1), self.byte(dice, depth - 1)),
        }
    }

    fn vector(&self, dice: &mut Dice, depth: u32) -> Expr {
        if depth == 0 {
            let base = self.int(dice, 1);
            return match dice.below(2) {
                0 => base.broadcast_to(4),
                _ => Expr::ramp(base, Expr::int(dice.range(-1, 2) as i32), 4),
            };
        }
        let (a, b) = (self.vector(dice, depth - 1), self.vector(dice, depth - 1));
        match dice.below(5) {
            0 => a + b,
            1 => a - b,
            2 => a * Expr::int(dice.range(-2, 3) as i32),
            3 => Expr::select(a.clone().lt(b.clone()), a, b),
            _ => a * b,
        }
    }

    /// A scalar or vector of any kind.
    fn any(&self, dice: &mut Dice) -> Expr {
        let depth = dice.range(1, 4) as u32;
        match dice.below(10) {
            0..=3 => self.int(dice, depth),
            4..=5 => self.cond(dice, depth),
            6 => self.float(dice, depth.min(3)),
            7 => {
                let compare = [BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Eq];
                let (a, b) = (self.byte(dice, depth.min(3)), self.byte(dice, 2));
                if dice.below(2) == 0 { a } else { Expr::binary(dice.of(&compare), a, b) }
            }
            8 => self.vector(dice, (depth - 1).min(2)),
            _ => Expr::binary(
                dice.of(&[BinaryOp::Lt, BinaryOp::Ge]),
                self.vector(dice, 1),
                self.vector(dice, 0),
            ),
        }
    }
}

/// Value of one lane, as the machine computes it; `None` after a division by zero.
fn eval(expr: &Expr, lane: i128, values: &Values) -> Option<Value> {
    let dtype = expr.dtype();
    let wrap = |v: i128| Some(Value::Int(dtype.wrap_int(v)));
    match expr.node() {
        Node::Int(value) => Some(Value::Int(*value)),
        Node::Float(bits) => Some(Value::Float(f64::from_bits(*bits))),
        Node::Var(var) => values.get(&var.id()).copied(),
        Node::Ramp(base, stride) => {
            let (Value::Int(b), Value::Int(s)) = (eval(base, 0, values)?, eval(stride, 0, values)?) else {
                return None;
            };
            wrap(b + lane * s)
        }
        Node::Broadcast(a) => eval(a, 0, values),
        Node::Cast(a) => match (eval(a, lane, values)?, dtype.is_float()) {
            (Value::Int(v), false) => wrap(v),
            (Value::Float(v), true) => Some(Value::Float(dtype.round_float(v))),
            (Value::Int(v), true) => Some(Value::Float(dtype.round_float(v as f64))),
            (Value::Float(_), false) => None,
        },
        Node::Not(a) => match eval(a, lane, values)? {
            Value::Int(v) => Some(Value::Int(i128::from(v == 0))),
            Value::Float(_) => None,
        },
        Node::Select(c, a, b) => {
            let (a, b) = (eval(a, lane, values)?, eval(b, lane, values)?);
            Some(if eval(c, lane, values)? == Value::Int(0) { b } else { a })
        }
        Node::IfThenElse(c, a, b) => {
            eval(if eval(c, lane, values)? == Value::Int(0) { b } else { a }, lane, values)
        }
        Node::Call(Intrinsic::Likely, args) => eval(&args[0], lane, values),
        Node::Call(Intrinsic::Abs, args) => match eval(&args[0], lane, values)? {
            Value::Int(v) => wrap(v.abs()),
            Value::Float(v) => Some(Value::Float(v.abs())),
        },
        // Memory holds anything, the same at the same place.
        Node::Load(_, indices) => match eval(&indices[0], lane, values)? {
            Value::Int(v) => wrap(i128::from(Dice(v as u64).next())),
            Value::Float(_) => None,
        },
        Node::Let(var, value, body) => {
            let mut inner = values.clone();
            inner.insert(var.id(), eval(value, lane, values)?);
            eval(body, lane, &inner)
        }
        Node::Binary(op, a, b) => match (eval(a, lane, values)?, eval(b, lane, values)?) {
            (Value::Int(x), Value::Int(y)) => {
                let truth = |b: bool| Some(Value::Int(i128::from(b)));
                match op {
                    BinaryOp::Add => wrap(x + y),
                    BinaryOp::Sub => wrap(x - y),
                    BinaryOp::Mul => wrap(x * y),
                    BinaryOp::Div => (y != 0).then(|| wrap(x / y))?,
                    BinaryOp::TruncMod => (y != 0).then(|| wrap(x % y))?,
                    BinaryOp::FloorDiv => (y != 0).then(|| wrap(floor_div(x, y)))?,
                    BinaryOp::FloorMod => (y != 0).then(|| wrap(x - y * floor_div(x, y)))?,
                    BinaryOp::Min => wrap(x.min(y)),
                    BinaryOp::Max => wrap(x.max(y)),
                    BinaryOp::Eq => truth(x == y),
                    BinaryOp::Ne => truth(x != y),
                    BinaryOp::Lt => truth(x < y),
                    BinaryOp::Le => truth(x <= y),
                    BinaryOp::Gt => truth(x > y),
                    BinaryOp::Ge => truth(x >= y),
                    BinaryOp::And | BinaryOp::BitAnd => wrap(x & y),
                    BinaryOp::Or | BinaryOp::BitOr => wrap(x | y),
                    BinaryOp::BitXor => wrap(x ^ y),
                    BinaryOp::Shl | BinaryOp::Shr if !(0..32).contains(&y) => {
                        wrap(if op == &BinaryOp::Shr && x < 0 { -1 } else { 0 })
                    }
                    BinaryOp::Shl => wrap(x << y),
                    BinaryOp::Shr => wrap(x >> y),
                }
            }
            (Value::Float(x), Value::Float(y)) => {
                let float = |v: f64| Some(Value::Float(a.dtype().round_float(v)));
                let truth = |b: bool| Some(Value::Int(i128::from(b)));
                match op {
                    BinaryOp::Add => float(x + y),
                    BinaryOp::Sub => float(x - y),
                    BinaryOp::Mul => float(x * y),
                    BinaryOp::Div => float(x / y),
                    BinaryOp::Min => float(if x < y { x } else { y }),
                    BinaryOp::Max => float(if x > y { x } else { y }),
                    BinaryOp::Lt => truth(x < y),
                    _ => None,
                }
            }
            _ => None,
        },
        _ => None,
    }
}

/// Every lane, floats as bits with one NaN.
pub(super) fn lanes(expr: &Expr, values: &Values) -> Option<Vec<i128>> {
    let lane = |lane: u32| {
        Some(match eval(expr, i128::from(lane), values)? {
            Value::Int(v) => v,
            Value::Float(v) if v.is_nan() => -1,
            Value::Float(v) => i128::from(v.to_bits()),
        })
    };
    (0..expr.lanes()).map(lane).collect()
}

/// Whether the values leave the range in which index arithmetic is promised to stay.
fn index_arithmetic_stays_in_range(expr: &Expr, values: &Values) -> bool {
    let bindings: Bindings = values
        .iter()
        .filter_map(|(id, v)| match v {
            Value::Int(v) => Some((*id, *v as i64)),
            Value::Float(_) => None,
        })
        .collect();
    let mut within = true;
    crate::visit::for_each_expr(expr, &mut |e| {
        if e.dtype() == DType::I32
            && e.ty() == Ty::scalar(DType::I32)
            && let Ok(v) = eval_index(e, &bindings)
        {
            within &= i32::try_from(v).is_ok();
        }
    });
    within
}

#[track_caller]
fn check_equal(what: &str, world: &World, before: &Expr, after: &Expr, dice: &mut Dice) -> u32 {
    assert_eq!(before.ty(), after.ty(), "{what} changes the type of {before:?} to {after:?}");
    let mut compared = 0;
    for _ in 0..8 {
        let values = world.values(dice);
        let Some(want) = lanes(before, &values) else { continue };
        if !index_arithmetic_stays_in_range(before, &values) {
            continue;
        }
        let got = lanes(after, &values);
        assert_eq!(got.as_ref(), Some(&want), "{what}: {before:?} became {after:?} with {values:?}");
        compared += 1;
    }
    compared
}

#[test]
fn every_rule_keeps_values() {
    let world = world();
    let mut dice = Dice(1);
    let mut fired = vec![0u32; RULES.len()];
    for _ in 0..4_000 {
        let expr = world.any(&mut dice);
        let operands_done = world.analyzer.simplify_operands(&expr);
        for (rule, fired) in RULES.iter().zip(&mut fired) {
            for before in [&expr, &operands_done] {
                let Some(after) = (rule.apply)(&world.analyzer, before) else { continue };
                let is_tried = rule.kinds & Kind::of(before.node()) as u8 != 0;
                assert!(
                    is_tried,
                    "{} applies to a kind of node for which it is not listed: {before:?}",
                    rule.name
                );
                if after != *before {
                    *fired += check_equal(rule.name, &world, before, &after, &mut dice);
                }
            }
        }
    }
    let rare: Vec<_> = RULES.iter().zip(fired).filter(|(_, n)| *n < 20).map(|(r, n)| (r.name, n)).collect();
    assert!(rare.is_empty(), "compared too seldom: {rare:?}");
}

#[test]
fn simplified_expressions_keep_values_and_do_not_change_again() {
    let world = world();
    let mut dice = Dice(2);
    let (mut compared, mut unstable) = (0, 0);
    for _ in 0..2_500 {
        let expr = world.any(&mut dice);
        let simple = world.analyzer.simplify(&expr);
        compared += check_equal("simplify", &world, &expr, &simple, &mut dice);
        unstable += u32::from(world.analyzer.alone().simplify(&simple) != simple);
    }
    assert!(compared > 12_000, "{compared}");
    assert!(unstable < 25, "{unstable} of 2500 change when simplified again");
}

#[test]
fn what_is_proved_holds() {
    let world = world();
    let mut dice = Dice(3);
    let (mut proved, mut refuted) = (0, 0);
    for _ in 0..3_000 {
        let cond = world.cond(&mut dice, 3);
        let (holds, fails) =
            (world.analyzer.can_prove(&cond), world.analyzer.can_prove(&cond.clone().logical_not()));
        if !holds && !fails {
            continue;
        }
        assert!(!(holds && fails), "{cond:?} is proved and refuted");
        for _ in 0..8 {
            let values = world.values(&mut dice);
            let Some(got) = lanes(&cond, &values) else { continue };
            if !index_arithmetic_stays_in_range(&cond, &values) {
                continue;
            }
            assert_eq!(got, [i128::from(holds)], "{cond:?} with {values:?}");
            *(if holds { &mut proved } else { &mut refuted }) += 1;
        }
    }
    assert!(proved > 700 && refuted > 700, "{proved} {refuted}");
}

#[test]
fn an_assumed_condition_leads_to_nothing_false() {
    let world = world();
    let mut dice = Dice(4);
    let mut compared = 0;
    for _ in 0..800 {
        let cond = world.cond(&mut dice, 2);
        let expr = world.int(&mut dice, 3);
        let analyzer = world.analyzer.with(&cond);
        let simple = analyzer.simplify(&expr);
        for _ in 0..12 {
            let values = world.values(&mut dice);
            let holds = lanes(&cond, &values) == Some(vec![1])
                && index_arithmetic_stays_in_range(&cond, &values)
                && index_arithmetic_stays_in_range(&expr, &values);
            if let (true, Some(want)) = (holds, lanes(&expr, &values)) {
                assert_eq!(lanes(&simple, &values), Some(want), "{expr:?} under {cond:?} became {simple:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// Knowledge added step by step, with questions between: what is found out before, and asked of those that know less, is
/// what an analyzer finds that knows the same and has asked nothing.
#[test]
fn what_was_found_out_before_is_what_would_be_found_out_now() {
    let world = world();
    let mut dice = Dice(0);
    let mut asked_outside = 0;
    for _ in 0..120 {
        let mut known = world.analyzer.clone();
        for _ in 0..4 {
            let var = Var::new("w", DType::I32);
            let value = world.int(&mut dice, 2);
            match dice.below(4) {
                0 => known.assume(&world.cond(&mut dice, 2)),
                1 => known.bind(&var, &Expr::int(0), &Expr::int(5)),
                2 => known.bind_value(&var, &value.cast(DType::I32)),
                _ => known = known.clone(),
            }
            let around = known.clone();
            for _ in 0..3 {
                let expr = world.int(&mut dice, 3);
                let cond = world.cond(&mut dice, 2).cast(DType::I32);
                let expr = match dice.below(4) {
                    0 => expr,
                    1 => expr.clone() + var.expr().cast(expr.dtype()),
                    2 => cond.equal(Expr::int(0)).cast(DType::I32) + expr,
                    _ => Expr::select(cond.not_equal(Expr::int(0)), expr, var.expr()),
                };
                asked_outside += u32::from(known.outer.is_some() && !expr.names().may_meet(known.own));
                assert_eq!(known.simplify(&expr), known.alone().simplify(&expr), "{expr:?}");
            }
            drop(around);
        }
    }
    assert!(asked_outside > 200, "{asked_outside}");
}

#[test]
fn bounds_and_classes_hold() {
    let world = world();
    let mut dice = Dice(5);
    for _ in 0..2_000 {
        let expr = world.int(&mut dice, 3);
        let bounds = world.analyzer.const_bounds(&expr);
        let (coeff, base) = world.analyzer.modular(&expr);
        for _ in 0..6 {
            let values = world.values(&mut dice);
            let Some(got) = lanes(&expr, &values) else { continue };
            if !index_arithmetic_stays_in_range(&expr, &values) {
                continue;
            }
            assert!(bounds.0.is_none_or(|lo| lo <= got[0]), "{expr:?} in {bounds:?} is {}", got[0]);
            assert!(bounds.1.is_none_or(|hi| got[0] <= hi), "{expr:?} in {bounds:?} is {}", got[0]);
            let gap = got[0] - base;
            let member = if coeff == 0 { gap == 0 } else { gap % coeff == 0 };
            assert!(member, "{expr:?} in class {:?} is {}", (coeff, base), got[0]);
        }
    }
}
