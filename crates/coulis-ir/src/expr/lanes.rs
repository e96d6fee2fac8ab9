//! What is known of the lanes of vectors of integers.

use super::{BinaryOp, Expr, Node};
use crate::dtype::DType;

impl Expr {
    /// The ramp of integers of the type that this is, or the sum of such ramps, single integers and integers
    /// that are known, where it is the conversion of wider ones: the low digits of a sum are those of the sum
    /// of low digits. Single integers are added before they are spread over lanes. A sum that is known in every
    /// lane is a ramp where its lanes are evenly spaced. To be evaluated and not to be reasoned about, since it
    /// may wrap.
    pub fn as_narrow_ramp(&self) -> Option<Expr> {
        let Node::Cast(wide) = self.node() else { return None };
        let (from, to) = (wide.dtype(), self.dtype());
        if !(from.is_int() && to.is_int() && to.bytes() < from.bytes()) {
            return None;
        }
        let digits = |e: &Expr| match e.as_int() {
            Some(value) => Expr::int_of(value, to),
            None => e.clone().cast(to),
        };
        let term = |e: &Expr| match e.node() {
            Node::Ramp(base, stride) => Some(Expr::ramp(digits(base), digits(stride), e.lanes())),
            Node::Broadcast(value) => Some(digits(value).broadcast_to(e.lanes())),
            _ => e.constant_lanes().map(|_| e.clone().cast(to)),
        };
        match wide.node() {
            Node::Ramp(..) => term(wide),
            Node::Binary(BinaryOp::Add, ..) if self.lanes() > 1 => {
                if let Some(known) = wide.constant_lanes() {
                    return ramp_of(&known, to);
                }
                let mut terms = Vec::new();
                wide.collect_terms(&mut terms);
                let narrow: Option<Vec<Expr>> = terms.iter().map(term).collect();
                narrow?.into_iter().reduce(|sum, term| sum + term)
            }
            _ => None,
        }
    }

    /// Adds the terms of a sum of vectors: its single integers are one, where the first of them stands.
    fn collect_terms(&self, terms: &mut Vec<Expr>) {
        match self.node() {
            Node::Binary(BinaryOp::Add, a, b) if self.constant_lanes().is_none() => {
                a.collect_terms(terms);
                b.collect_terms(terms);
            }
            Node::Broadcast(value) => {
                let first = terms.iter_mut().find_map(|term| match term.node() {
                    Node::Broadcast(of_it) => Some((of_it.clone(), term)),
                    _ => None,
                });
                match first {
                    Some((of_it, term)) => *term = (of_it + value.clone()).broadcast_to(self.lanes()),
                    None => terms.push(self.clone()),
                }
            }
            _ => terms.push(self.clone()),
        }
    }

    /// The integers of a vector of several, where they are known: those of ramps, sums, products and
    /// quotients by positive numbers of constants.
    pub fn constant_lanes(&self) -> Option<Vec<i128>> {
        let lanes = self.lanes();
        if lanes == 1 || !self.dtype().is_int() {
            return None;
        }
        let wrapped = |values: Vec<i128>| values.into_iter().map(|v| self.dtype().wrap_int(v)).collect();
        match self.node() {
            Node::Broadcast(value) => value.as_int().map(|value| vec![value; lanes as usize]),
            Node::Ramp(base, stride) => {
                let (base, stride) = (base.as_int()?, stride.as_int()?);
                Some(wrapped((0..i128::from(lanes)).map(|lane| base + lane * stride).collect()))
            }
            Node::Cast(a) => a.constant_lanes().map(wrapped),
            Node::Binary(op, a, b) => {
                let of: fn(i128, i128) -> Option<i128> = match op {
                    BinaryOp::Add => |x, y| Some(x + y),
                    BinaryOp::Sub => |x, y| Some(x - y),
                    BinaryOp::Mul => |x, y| x.checked_mul(y),
                    BinaryOp::FloorDiv => |x, y| (y > 0).then(|| x.div_euclid(y)),
                    BinaryOp::FloorMod => |x, y| (y > 0).then(|| x.rem_euclid(y)),
                    _ => return None,
                };
                let (x, y) = (a.constant_lanes()?, b.constant_lanes()?);
                let values: Option<Vec<i128>> = x.into_iter().zip(y).map(|(x, y)| of(x, y)).collect();
                values.map(wrapped)
            }
            _ => None,
        }
    }
}

/// Those integers, at least two, as a ramp, where they are evenly spaced.
fn ramp_of(known: &[i128], to: DType) -> Option<Expr> {
    let [first, second, ..] = known else { return None };
    let step = second - first;
    let is_even = known.windows(2).all(|pair| pair[1] - pair[0] == step);
    is_even.then(|| Expr::ramp(Expr::int_of(*first, to), Expr::int_of(step, to), known.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Var;

    #[test]
    fn a_ramp_cast_to_narrower_integers_is_one_of_these() {
        let wide = |base: i128| Expr::ramp(Expr::int_of(base, DType::I64), Expr::int_of(3, DType::I64), 4);
        let narrow = |base| Expr::ramp(Expr::int(base), Expr::int(3), 4);
        assert_eq!(wide(5).cast(DType::I32).as_narrow_ramp(), Some(narrow(5)));
        assert_eq!(wide((1 << 33) - 1).cast(DType::I32).as_narrow_ramp(), Some(narrow(-1)), "low digits");
        for other in [wide(5).cast(DType::F32), narrow(5).cast(DType::I64), narrow(5).cast(DType::U32)] {
            assert_eq!(other.as_narrow_ramp(), None, "{other:?}");
        }
        let thirds = wide(5).floordiv(Expr::int_of(3, DType::I64).broadcast_to(4));
        assert_eq!(thirds.constant_lanes(), Some(vec![1, 2, 3, 4]));
        let base = Var::new("i", DType::I64).expr();
        let sum = (base.clone().broadcast_to(4) + thirds.clone()).cast(DType::I32);
        let narrow_sum = base.clone().cast(DType::I32).broadcast_to(4) + thirds.clone().cast(DType::I32);
        assert_eq!(sum.as_narrow_ramp(), Some(narrow_sum));
        let other = Var::new("j", DType::I64).expr();
        let sum = ((base.clone().broadcast_to(4) + thirds.clone()) + other.clone().broadcast_to(4))
            .cast(DType::I32);
        let narrow_sum = (base.clone() + other).cast(DType::I32).broadcast_to(4) + thirds.cast(DType::I32);
        assert_eq!(sum.as_narrow_ramp(), Some(narrow_sum), "one number is spread");
        let unknown = wide(5).floordiv(base.broadcast_to(4));
        assert_eq!((unknown.constant_lanes(), unknown.cast(DType::I32).as_narrow_ramp()), (None, None));
    }

    #[test]
    fn a_sum_known_in_every_lane_is_a_ramp_or_stays() {
        let five = Expr::int_of(5, DType::I64).broadcast_to(4);
        let ramp = Expr::ramp(Expr::int_of(0, DType::I64), Expr::int_of(1, DType::I64), 4);
        let narrow = Expr::ramp(Expr::int(5), Expr::int(1), 4);
        assert_eq!((ramp.clone() + five.clone()).cast(DType::I32).as_narrow_ramp(), Some(narrow));
        let halves = ramp.floordiv(Expr::int_of(2, DType::I64).broadcast_to(4));
        let uneven = halves + five;
        assert_eq!(uneven.constant_lanes(), Some(vec![5, 5, 6, 6]));
        assert_eq!(uneven.clone().cast(DType::I32).as_narrow_ramp(), None);
        let base = Var::new("i", DType::I64).expr();
        let sum = (base.clone().broadcast_to(4) + uneven.clone()).cast(DType::I32);
        let parts = base.cast(DType::I32).broadcast_to(4) + uneven.cast(DType::I32);
        assert_eq!(sum.as_narrow_ramp(), Some(parts));
    }
}
