//! Random elements, on which laws are tried.

use coulis_ir::eval::{EvalError, Value};
use coulis_ir::{DType, Reducer};

use crate::scalar::{Scalar, State};

/// Exponent of the largest finite value of a type of floats.
fn max_exponent(dtype: DType) -> i32 {
    match dtype {
        DType::F64 => 1023,
        DType::F32 | DType::BF16 => 127,
        DType::F16 | DType::F8E5M2 => 15,
        DType::F8E4M3 => 8,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => 0,
    }
}

/// Which values elements are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Draw {
    /// Any integer, and floats around one.
    Moderate,
    /// Any integer, and floats of up to a million.
    Large,
    /// Any integer, and floats of every finite magnitude.
    Any,
    /// Values at which operations change their behaviour.
    Special,
}

impl Draw {
    /// Whether floats are so large that what is computed of them may be infinite.
    pub(super) fn may_overflow(self) -> bool {
        match self {
            Draw::Large | Draw::Any => true,
            Draw::Moderate | Draw::Special => false,
        }
    }
}

/// Draws elements, distinct where states have several fields, in ascending position.
pub(super) struct Elements<'r> {
    reducer: &'r Reducer,
    drawn: Vec<Vec<Value>>,
    draw: Draw,
}

impl<'r> Elements<'r> {
    pub(super) fn new(reducer: &'r Reducer, draw: Draw) -> Elements<'r> {
        Elements { reducer, drawn: Vec::new(), draw }
    }

    pub(super) fn lift(&mut self, run: &Scalar, random: &mut Random) -> Result<State, EvalError> {
        let (element, position) = self.next(random);
        run.lift(&element, position)
    }

    /// An element and its position.
    pub(super) fn next(&mut self, random: &mut Random) -> (Vec<Value>, i64) {
        let mut element = self.draw(random);
        for _ in 0..100 {
            let fresh = |e: &Vec<Value>| element.iter().zip(e).all(|(x, y)| x != y);
            if self.reducer.arity() == 1 || self.drawn.iter().all(fresh) {
                break;
            }
            element = self.draw(random);
        }
        self.drawn.push(element.clone());
        (element, self.drawn.len() as i64 - 1)
    }

    fn draw(&self, random: &mut Random) -> Vec<Value> {
        let dtypes = self.reducer.input_dtypes();
        dtypes.into_iter().map(|dtype| random.value(dtype, self.draw)).collect()
    }
}

/// A stream of pseudo-random values (the splitmix64 generator).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A value of the type.
    pub(super) fn value(&mut self, dtype: DType, draw: Draw) -> Value {
        if draw == Draw::Special {
            return self.special(dtype);
        }
        if !dtype.is_float() {
            return Value::Int(dtype.wrap_int(i128::from(self.next() as i64)));
        }
        let exponents = match (draw, dtype.bytes() >= 4) {
            (Draw::Moderate | Draw::Special, true) => -3..=3,
            (Draw::Moderate | Draw::Special, false) => -1..=1,
            (Draw::Large, true) => 0..=20,
            (Draw::Large, false) => 0..=4,
            (Draw::Any, _) => 0..=max_exponent(dtype),
        };
        let exponent = exponents.start() + self.below(exponents.clone().count() as u64) as i32;
        let mantissa = 1.0 + (self.next() >> 12) as f64 * 2f64.powi(-52);
        let sign = if self.next() & 1 == 0 { 1.0 } else { -1.0 };
        // Narrow types round the largest to infinity.
        let most = dtype.max_finite();
        Value::Float(sign * (mantissa * 2f64.powi(exponent)).min(most)).cast(dtype)
    }

    /// One of four small whole numbers of either sign, so that some are equal, and so are some of their squares.
    pub(super) fn few(&mut self, dtype: DType) -> Value {
        let value = i128::from(self.below(4)) - 1;
        if dtype.is_float() { Value::Float(value as f64) } else { Value::Int(dtype.wrap_int(value)) }
    }

    /// A value at which operations change their behaviour.
    fn special(&mut self, dtype: DType) -> Value {
        match dtype.int_range() {
            Some((min, max)) => {
                let all = [min, max, 0, 1, min + 1, max - 1];
                Value::Int(dtype.wrap_int(all[self.below(6) as usize]))
            }
            None => Value::Float([0.0, -0.0, 1.0, -1.0, 0.5, 2.0][self.below(6) as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_any_magnitude_are_finite() {
        let mut random = Random(7);
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
            for _ in 0..20_000 {
                let value = random.value(dtype, Draw::Any).as_f64();
                assert!(value.is_finite(), "{dtype}: {value}");
            }
        }
    }
}
