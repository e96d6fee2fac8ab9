//! What the statistics of a long row follow from, gathered in two reads that hold nothing of the row.
//!
//! Sums are kept in 106 bits, of integers in 128 bits, extrema as they are. Which statistics follow from that
//! the catalogue says ([`coulis_reducers::Entry::answer_from`]); exponentials are those of `float64`, as in
//! the exact references for shorter rows ([`coulis_reducers::exact`]), which hold a row in memory. Threads
//! read parts of a row.

use coulis_io::Array;
use coulis_ir::eval::Value;
use coulis_reducers::exact::{Double, Extremum, Moments, Total};

use super::value;

/// Elements of a part that one thread reads at a time, at most, where the row can be cut so.
const PART: i64 = 1 << 20;

/// What the first read gathers.
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

/// Of two, the other being further back in the row; `wins` says whether the second value is nearer the end.
fn nearer(a: Extremum, other: Extremum, wins: fn(Value, Value) -> bool) -> Extremum {
    match (wins(a.value, other.value), wins(other.value, a.value)) {
        (true, _) => other,
        (false, true) => a,
        (false, false) => Extremum { last: other.last, ..a },
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
            found.least = Some(found.least.map_or(here, |old| nearer(old, here, is_less)));
            found.greatest = Some(found.greatest.map_or(here, |old| nearer(old, here, is_greater)));
        });
        found
    }

    fn join(self, other: Sums) -> Sums {
        let extremum = |a: Option<Extremum>, b: Option<Extremum>, wins| match (a, b) {
            (Some(a), Some(b)) => Some(nearer(a, b, wins)),
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

/// The moments of the elements of a row: the views of an input, and of a mask behind it. `None` where none takes part or
/// some is no finite number, or sums of them may not be.
pub(crate) fn moments_of(views: &[Array], has_mask: bool, drops_nan: bool) -> Option<Moments> {
    let row = Row::new(views, has_mask, drops_nan)?;
    let Sums { n, n_nonzero, finite, sum, magnitude, squares, least, greatest } =
        row.fold(|part| Sums::of(&row, part), Sums::join)?;
    if !finite || magnitude.float.value() >= 2f64.powi(1000) {
        return None;
    }
    let (least, greatest) = (least?, greatest?);
    let mean = sum.double() / Double::from(n as f64);
    let distances = |part: &Part| {
        let (mut spread, mut exponentials) = (Double::ZERO, Double::ZERO);
        row.each(part, |_, element| {
            let distance = double(element) - mean;
            spread = spread + distance * distance;
            exponentials = exponentials + Double::from((element.as_f64() - greatest.value.as_f64()).exp());
        });
        (spread, exponentials)
    };
    let (spread, exponentials) = row.fold(distances, |a, b| (a.0 + b.0, a.1 + b.1))?;
    let dtype = views[0].dtype();
    Some(Moments { dtype, n, n_nonzero, sum, magnitude, squares, spread, exponentials, least, greatest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Init, input};
    use coulis_ir::{DType, NanPolicy};
    use coulis_reducers::ReducerRequest;
    use coulis_reducers::exact::{Exact, reference_at};

    /// Compares every answer with the catalogue's, for elements with positions. The result: the reducers of one input
    /// that have no answer, and have one for other rows.
    #[track_caller]
    fn check(
        moments: &Moments,
        request: &ReducerRequest,
        elements: &[(i64, Vec<Value>)],
        what: &str,
    ) -> Vec<&'static str> {
        let mut found_without = Vec::new();
        for entry in coulis_reducers::CATALOGUE.iter().filter(|e| e.n_inputs == 1 && e.follows_from_moments())
        {
            let Some(found) = entry.answer_from(moments, request) else {
                found_without.push(entry.name);
                continue;
            };
            let want = reference_at(entry, request, elements.to_vec()).unwrap();
            assert_eq!(found.len(), want.len(), "{}", entry.name);
            for (found, want) in found.iter().zip(&want) {
                let of = |exact: &Exact| match exact.value {
                    // Integers are cast to the result's type before they are compared; no other result is beyond it.
                    Value::Int(v) => (v as i64) as f64,
                    Value::Float(v) => v,
                };
                let (f, w) = (of(found), of(want));
                assert!((f - w).abs() <= 1e-14 * w.abs(), "{what}: {}: {f} {w}", entry.name);
                assert!((found.scale - want.scale).abs() <= 1e-14 * want.scale, "{what}: {}", entry.name);
                let ints = [found.value, want.value].map(|v| matches!(v, Value::Int(_)));
                assert_eq!(ints[0], ints[1], "{what}: {}: {found:?} {want:?}", entry.name);
            }
        }
        found_without
    }

    #[test]
    fn answers_from_moments_are_those_of_the_catalogue() {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::I8, DType::U16, DType::Bool, DType::I64] {
            let row = input(dtype, &[1000], Init::Uniform).unwrap();
            let elements: Vec<_> = (0..).zip(row.scalars().map(|s| vec![value(s)])).collect();
            for ddof in [0.0, 1.0] {
                let request = ReducerRequest { ddof, ..ReducerRequest::new(&[dtype]) };
                let moments = moments_of(std::slice::from_ref(&row), false, false).unwrap();
                // Squares of 64 bits may wrap.
                let without: &[&str] = if dtype == DType::I64 { &["meansq", "norm2"] } else { &[] };
                let what = format!("{dtype}, ddof {ddof}");
                assert_eq!(check(&moments, &request, &elements, &what), without, "{what}");
            }
        }
    }

    #[test]
    fn integers_of_64_bits_wrap_as_their_sums_do() {
        let row = Array::from_slice(&[3], &[i64::MAX, i64::MAX, 5]).unwrap();
        let elements: Vec<_> = (0..).zip(row.scalars().map(|s| vec![value(s)])).collect();
        let moments = moments_of(&[row], false, false).unwrap();
        let without = check(&moments, &ReducerRequest::new(&[DType::I64]), &elements, "wrapped");
        assert_eq!(without, ["meansq", "norm2"]);
        let rounded = ReducerRequest::new(&[DType::I64]).with_acc(DType::I32);
        let of_sums = ["sum", "sumsq", "norm1", "meansq", "norm2"];
        let without = check(&moments, &rounded, &elements, "rounded");
        let has_none = |name: &&str| without.contains(name);
        assert!(of_sums.iter().all(has_none), "what an accumulator wraps at is its own matter: {without:?}");
    }

    #[test]
    fn masks_and_dropped_elements_keep_the_positions_of_the_others() {
        let values = [f32::NAN, 3.0, -2.0, f32::NAN, 3.0, -2.0, 9.0];
        let row = Array::from_slice(&[7], &values).unwrap();
        let mask = Array::from_bools(&[7], &[true, true, true, true, true, true, false]).unwrap();
        let request = ReducerRequest { nan: NanPolicy::Ignore, ..ReducerRequest::new(&[DType::F32]) };
        let kept = [(1, 3.0), (2, -2.0), (4, 3.0), (5, -2.0)];
        let elements: Vec<_> = kept.iter().map(|&(at, x)| (at, vec![Value::Float(x)])).collect();
        let moments = moments_of(&[row.clone(), mask], true, true).unwrap();
        assert_eq!(check(&moments, &request, &elements, "masked"), [""; 0]);
        assert!(moments_of(std::slice::from_ref(&row), false, false).is_none(), "NaN is no finite number");
        let none = Array::from_bools(&[7], &[false; 7]).unwrap();
        assert!(moments_of(&[row, none], true, false).is_none(), "no element takes part");
        let large = Array::from_slice(&[2], &[f64::MAX, -f64::MAX]).unwrap();
        assert!(moments_of(&[large], false, false).is_none(), "the sum of magnitudes overflows");
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
