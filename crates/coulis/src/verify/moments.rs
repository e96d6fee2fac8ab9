//! What the statistics of a long row follow from, gathered in two reads that hold nothing of the row.
//!
//! Sums are kept in 106 bits, of integers in 128 bits, extrema as they are. That answers every statistic of the catalogue that
//! follows from moments, extrema and counts; exponentials are those of `float64`, as in the exact references for shorter rows
//! ([`coulis_reducers::exact`]), which hold a row in memory. Threads read parts of a row.

use coulis_io::Array;
use coulis_ir::DType;
use coulis_ir::eval::Value;
use coulis_reducers::Request;
use coulis_reducers::exact::{Double, Exact};

use super::value;

/// Elements of a part that one thread reads at a time, at most, where the row can be cut so.
const PART: i64 = 1 << 20;

/// The statistics' common ground.
pub(crate) struct Moments {
    dtype: DType,
    /// Elements that take part.
    pub(crate) n: usize,
    sums: Sums,
    /// Sum of squared distances from the mean.
    spread: Double,
    /// Sum of the exponentials of distances from the greatest value.
    exponentials: Double,
}

/// What one read gathers.
#[derive(Clone, Debug)]
struct Sums {
    n: usize,
    n_nonzero: usize,
    /// Whether all elements are numbers below infinity.
    finite: bool,
    sum: Total,
    magnitude: Total,
    squares: Total,
    least: Option<Extremum>,
    greatest: Option<Extremum>,
}

/// A sum: of integers modulo 2^128, of floats in 106 bits.
#[derive(Clone, Copy, Debug)]
struct Total {
    int: i128,
    float: Double,
}

impl Total {
    const ZERO: Total = Total { int: 0, float: Double::ZERO };

    fn plus(self, other: Total) -> Total {
        Total { int: self.int.wrapping_add(other.int), float: self.float + other.float }
    }

    /// The sum as a number, where it did not wrap.
    fn double(self) -> Double {
        self.float + Double::from(self.int)
    }
}

/// A value, and the first and the last place where it is.
#[derive(Clone, Copy, Debug)]
struct Extremum {
    value: Value,
    first: i64,
    last: i64,
}

impl Extremum {
    /// Of two, the other being further back in the row; `wins` says whether the second value is nearer the end.
    fn or(self, other: Extremum, wins: fn(Value, Value) -> bool) -> Extremum {
        match (wins(self.value, other.value), wins(other.value, self.value)) {
            (true, _) => other,
            (false, true) => self,
            (false, false) => Extremum { last: other.last, ..self },
        }
    }
}

fn is_less(than: Value, a: Value) -> bool {
    match (than, a) {
        (Value::Int(than), Value::Int(a)) => a < than,
        (than, a) => a.as_f64() < than.as_f64(),
    }
}

fn is_greater(than: Value, a: Value) -> bool {
    is_less(a, than)
}

fn double(value: Value) -> Double {
    match value {
        Value::Int(v) => Double::from(v),
        Value::Float(v) => Double::from(v),
    }
}

/// A part of a row: the first input, and the mask where there is one.
struct Part {
    views: Vec<Array>,
    /// Position of its first element.
    position: i64,
}

/// A row that is read more than once.
struct Row {
    parts: Vec<Part>,
    has_mask: bool,
    drops_nan: bool,
}

impl Row {
    /// Cuts the views of a row into parts, in order of position.
    fn new(views: &[Array], has_mask: bool, drops_nan: bool) -> Option<Row> {
        let mut parts = Vec::new();
        let mut left = vec![Part { views: views.to_vec(), position: 0 }];
        while let Some(part) = left.pop() {
            let shape = part.views[0].shape().to_vec();
            let axis = shape.iter().position(|&extent| extent > 1);
            let Some(axis) = axis.filter(|_| shape.iter().product::<i64>() > PART) else {
                parts.push(part);
                continue;
            };
            let step: i64 = shape[axis + 1..].iter().product();
            let half = shape[axis] / 2;
            // The front half is taken from the stack first.
            for (start, extent) in [(half, shape[axis] - half), (0, half)] {
                let cut = |view: &Array| {
                    let mut shape = shape.clone();
                    shape[axis] = extent;
                    view.view(&shape, view.strides(), start * view.strides()[axis]).ok()
                };
                let views = part.views.iter().map(cut).collect::<Option<Vec<Array>>>()?;
                left.push(Part { views, position: part.position + start * step });
            }
        }
        Some(Row { parts, has_mask, drops_nan })
    }

    /// Gives the elements of a part that take part, with their positions.
    fn each(&self, part: &Part, mut take: impl FnMut(i64, Value)) {
        let mut mask = part.views.last().filter(|_| self.has_mask).map(Array::scalars);
        for (position, scalar) in (part.position..).zip(part.views[0].scalars()) {
            let element = value(scalar);
            let is_in = mask.as_mut().is_none_or(|mask| mask.next().is_some_and(|m| value(m).is_true()));
            if is_in && !(self.drops_nan && element.is_nan()) {
                take(position, element);
            }
        }
    }

    /// Reads all parts, by as many threads as there are cores, and brings together what `read` makes of each, in order.
    fn fold<T: Send>(&self, read: impl Fn(&Part) -> T + Sync, join: impl Fn(T, T) -> T) -> Option<T> {
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = self.parts.len().div_ceil(n_threads).max(1);
        let read = &read;
        let made: Vec<T> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .parts
                .chunks(share)
                .map(|parts| scope.spawn(move || parts.iter().map(read).collect::<Vec<T>>()))
                .collect();
            threads.into_iter().map(|thread| thread.join().ok()).collect::<Option<Vec<_>>>()
        })?
        .into_iter()
        .flatten()
        .collect();
        made.into_iter().reduce(join)
    }
}

impl Sums {
    fn of(row: &Row, part: &Part) -> Sums {
        let mut found = Sums {
            n: 0,
            n_nonzero: 0,
            finite: true,
            sum: Total::ZERO,
            magnitude: Total::ZERO,
            squares: Total::ZERO,
            least: None,
            greatest: None,
        };
        let add = |total: &mut Total, value: Value| match value {
            Value::Int(v) => total.int = total.int.wrapping_add(v),
            Value::Float(v) => total.float = total.float + Double::from(v),
        };
        row.each(part, |position, element| {
            found.n += 1;
            found.n_nonzero += usize::from(element.is_true());
            add(&mut found.sum, element);
            match element {
                Value::Int(v) => {
                    add(&mut found.magnitude, Value::Int(v.abs()));
                    add(&mut found.squares, Value::Int(v.wrapping_mul(v)));
                }
                Value::Float(v) => {
                    found.finite &= v.is_finite();
                    add(&mut found.magnitude, Value::Float(v.abs()));
                    found.squares.float = found.squares.float + Double::from(v) * Double::from(v);
                }
            }
            let here = Extremum { value: element, first: position, last: position };
            found.least = Some(found.least.map_or(here, |old| old.or(here, is_less)));
            found.greatest = Some(found.greatest.map_or(here, |old| old.or(here, is_greater)));
        });
        found
    }

    fn join(self, other: Sums) -> Sums {
        let extremum = |a: Option<Extremum>, b: Option<Extremum>, wins| match (a, b) {
            (Some(a), Some(b)) => Some(a.or(b, wins)),
            (a, b) => a.or(b),
        };
        Sums {
            n: self.n + other.n,
            n_nonzero: self.n_nonzero + other.n_nonzero,
            finite: self.finite && other.finite,
            sum: self.sum.plus(other.sum),
            magnitude: self.magnitude.plus(other.magnitude),
            squares: self.squares.plus(other.squares),
            least: extremum(self.least, other.least, is_less),
            greatest: extremum(self.greatest, other.greatest, is_greater),
        }
    }
}

impl Moments {
    /// Of the elements of a row: the views of an input, and of a mask behind it. `None` where none takes part or some is
    /// no finite number.
    pub(crate) fn of(views: &[Array], has_mask: bool, drops_nan: bool) -> Option<Moments> {
        let row = Row::new(views, has_mask, drops_nan)?;
        let sums = row.fold(|part| Sums::of(&row, part), Sums::join)?;
        if !sums.finite {
            return None;
        }
        let mean = sums.sum.double() / Double::from(sums.n as f64);
        let greatest = sums.greatest?.value.as_f64();
        let distances = |part: &Part| {
            let (mut spread, mut exponentials) = (Double::ZERO, Double::ZERO);
            row.each(part, |_, element| {
                let distance = double(element) - mean;
                spread = spread + distance * distance;
                exponentials = exponentials + Double::from((element.as_f64() - greatest).exp());
            });
            (spread, exponentials)
        };
        let (spread, exponentials) = row.fold(distances, |a, b| (a.0 + b.0, a.1 + b.1))?;
        Some(Moments { dtype: views[0].dtype(), n: sums.n, sums, spread, exponentials })
    }

    /// The exact results of a statistic of the catalogue; `None` where they do not follow from this.
    pub(crate) fn answer(&self, op: &str, request: &Request) -> Option<Vec<Exact>> {
        let sums = &self.sums;
        let float = |value: f64, scale: f64| Some(vec![Exact { value: Value::Float(value), scale }]);
        let relative = |value: f64| float(value, value.abs());
        let exactly =
            |values: &[Value]| Some(values.iter().map(|&value| Exact { value, scale: 0.0 }).collect());
        let int = |value: i128| exactly(&[Value::Int(value)]);
        let total = |total: Total| match request.acc {
            _ if self.dtype.is_float() => float(total.double().value(), sums.magnitude.double().value()),
            None => int(total.int),
            // What it wraps at, or rounds to, is the accumulator's matter.
            Some(_) => None,
        };
        let (least, greatest) = (sums.least?, sums.greatest?);
        let n = Double::from(self.n as f64);
        // Squares of 64 bits may wrap at 128.
        let squares = (self.dtype.is_float() || self.dtype.bytes() < 8).then(|| sums.squares.double());
        let degrees = self.n as f64 - request.ddof;
        let variance = match () {
            () if degrees <= 0.0 => Double::from(f64::NAN),
            () if least.value.same(greatest.value) => Double::ZERO,
            () => self.spread / Double::from(degrees),
        };
        match op {
            "sum" => total(sums.sum),
            "norm1" => total(sums.magnitude),
            "sumsq" if self.dtype.is_float() => {
                float(sums.squares.double().value(), sums.squares.double().value())
            }
            "sumsq" => total(sums.squares),
            "mean" => float((sums.sum.double() / n).value(), sums.magnitude.double().value() / self.n as f64),
            "meansq" => relative((squares? / n).value()),
            "norm2" => relative(squares?.sqrt().value()),
            "var" => relative(variance.value()),
            "std" => relative(variance.sqrt().value()),
            "logsumexp" => relative(greatest.value.as_f64() + self.exponentials.value().ln()),
            "count" => int(self.n as i128),
            "count_nonzero" => int(sums.n_nonzero as i128),
            "any" => int(i128::from(sums.n_nonzero > 0)),
            "all" => int(i128::from(sums.n_nonzero == self.n)),
            "min" => exactly(&[least.value]),
            "max" => exactly(&[greatest.value]),
            "absmax" => exactly(&[match (least.value, greatest.value) {
                (Value::Int(a), Value::Int(b)) => Value::Int(a.abs().max(b.abs())),
                (a, b) => Value::Float(a.as_f64().abs().max(b.as_f64().abs())),
            }]),
            "argmin" => int(least.first.into()),
            "argmin_last" => int(least.last.into()),
            "argmax" => int(greatest.first.into()),
            "argmax_last" => int(greatest.last.into()),
            "minloc" => exactly(&[least.value, Value::Int(least.first.into())]),
            "maxloc" => exactly(&[greatest.value, Value::Int(greatest.first.into())]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Init, input};
    use coulis_ir::NanPolicy;
    use coulis_reducers::exact::reference_at;

    /// Compares every answer with the catalogue's, for elements with positions.
    #[track_caller]
    fn check(moments: &Moments, request: &Request, elements: &[(i64, Vec<Value>)], what: &str) {
        for entry in coulis_reducers::CATALOGUE.iter().filter(|e| e.n_inputs == 1) {
            let Some(found) = moments.answer(entry.name, request) else {
                assert!(entry.name == "prod" || request.inputs[0] == DType::I64, "{what}: {}", entry.name);
                continue;
            };
            let want = reference_at(entry, request, elements.to_vec()).unwrap();
            assert_eq!(found.len(), want.len(), "{}", entry.name);
            for (found, want) in found.iter().zip(&want) {
                let of = |exact: &Exact| match (exact.value, entry.name) {
                    // Both are cast to the result's type before they are compared.
                    (Value::Int(v), "sum" | "norm1" | "sumsq") => (v as i64) as f64,
                    (value, _) => value.as_f64(),
                };
                let (f, w) = (of(found), of(want));
                assert!((f - w).abs() <= 1e-14 * w.abs(), "{what}: {}: {f} {w}", entry.name);
                assert!((found.scale - want.scale).abs() <= 1e-14 * want.scale, "{what}: {}", entry.name);
                let ints = [found.value, want.value].map(|v| matches!(v, Value::Int(_)));
                assert_eq!(ints[0], ints[1], "{what}: {}: {found:?} {want:?}", entry.name);
            }
        }
    }

    #[test]
    fn answers_from_moments_are_those_of_the_catalogue() {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::I8, DType::U16, DType::Bool, DType::I64] {
            let row = input(dtype, &[1000], Init::Uniform).unwrap();
            let elements: Vec<_> = (0..).zip(row.scalars().map(|s| vec![value(s)])).collect();
            for ddof in [0.0, 1.0] {
                let request = Request { ddof, ..Request::new(&[dtype]) };
                let moments = Moments::of(std::slice::from_ref(&row), false, false).unwrap();
                check(&moments, &request, &elements, &format!("{dtype}, ddof {ddof}"));
            }
        }
    }

    #[test]
    fn integers_of_64_bits_wrap_as_their_sums_do() {
        let row = Array::from_slice(&[3], &[i64::MAX, i64::MAX, 5]).unwrap();
        let elements: Vec<_> = (0..).zip(row.scalars().map(|s| vec![value(s)])).collect();
        let moments = Moments::of(&[row], false, false).unwrap();
        check(&moments, &Request::new(&[DType::I64]), &elements, "wrapped");
        assert!(moments.answer("norm2", &Request::new(&[DType::I64])).is_none());
    }

    #[test]
    fn masks_and_dropped_elements_keep_the_positions_of_the_others() {
        let values = [f32::NAN, 3.0, -2.0, f32::NAN, 3.0, -2.0, 9.0];
        let row = Array::from_slice(&[7], &values).unwrap();
        let mask = Array::from_bools(&[7], &[true, true, true, true, true, true, false]).unwrap();
        let request = Request { nan: NanPolicy::Ignore, ..Request::new(&[DType::F32]) };
        let kept = [(1, 3.0), (2, -2.0), (4, 3.0), (5, -2.0)];
        let elements: Vec<_> = kept.iter().map(|&(at, x)| (at, vec![Value::Float(x)])).collect();
        let moments = Moments::of(&[row.clone(), mask], true, true).unwrap();
        check(&moments, &request, &elements, "masked");
        assert!(Moments::of(std::slice::from_ref(&row), false, false).is_none(), "NaN is no finite number");
        let none = Array::from_bools(&[7], &[false; 7]).unwrap();
        assert!(Moments::of(&[row, none], true, false).is_none(), "no element takes part");
    }

    #[test]
    fn a_row_is_cut_into_parts_in_order_of_position() {
        let array = input(DType::U8, &[5, 3, 1 << 19], Init::Uniform).unwrap();
        // The middle axis is walked backwards.
        let strides = [array.strides()[0], -array.strides()[1], 1];
        let view = array.view(&[5, 3, 1 << 19], &strides, 2 * array.strides()[1]).unwrap();
        let row = Row::new(std::slice::from_ref(&view), false, false).unwrap();
        assert!(row.parts.len() > 4);
        let mut next = 0;
        for part in &row.parts {
            assert_eq!(part.position, next);
            let first = part.views[0].scalars().next().unwrap();
            let (outer, middle) = (next / (3 << 19), next / (1 << 19) % 3);
            let start = outer * array.strides()[0] + (2 - middle) * array.strides()[1] + next % (1 << 19);
            assert_eq!(first, array.view(&[1], &[1], start).unwrap().scalars().next().unwrap());
            next += part.views[0].len() as i64;
        }
        assert_eq!(next, 15 << 19);
    }
}
