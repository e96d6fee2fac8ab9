//! Many threads followed at once: what each of them does at a place of a launch, and the value of expressions there.
//!
//! An expression is looked at once for all threads, node by node, and what is the same for all is computed once. What comes
//! out for a thread is what [`Scene::arrival`] and [`crate::eval::eval_expr`] say of it alone; why a value is not known is
//! left to these.

use std::rc::Rc;

use super::company::Company;
use super::witness::{Arrival, Scene, Step, Thread};
use crate::dtype::DType;
use crate::eval::{Env, Value, eval_binary, eval_call};
use crate::expr::{BinaryOp, Expr, Names, Node, Var, VarId};
use crate::hash::FastMap;
use crate::simplify::count_steps;

/// Steps of analysis that a look at so many threads or places counts as.
pub(super) fn steps_of(n_places: usize) -> u64 {
    n_places.div_ceil(64) as u64
}

/// The values of an expression; none where an operation has none or memory decides.
#[derive(Clone)]
enum Column {
    /// The same for all threads.
    One(Option<Value>),
    /// An integer a thread: what indices and conditions are, as a rule.
    Ints(Rc<Vec<i64>>),
    /// One a thread.
    Each(Rc<Vec<Option<Value>>>),
}

impl Column {
    fn at(&self, thread: usize) -> Option<Value> {
        match self {
            Column::One(value) => *value,
            Column::Ints(values) => Some(Value::Int(values[thread].into())),
            Column::Each(values) => values[thread],
        }
    }

    /// The integer of each thread, where all are known and short.
    fn as_ints(&self) -> Option<Ints<'_>> {
        match self {
            Column::One(Some(Value::Int(value))) => i64::try_from(*value).ok().map(Ints::Same),
            Column::Ints(values) => Some(Ints::Each(values)),
            Column::One(_) | Column::Each(_) => None,
        }
    }
}

/// Integers of threads.
#[derive(Clone, Copy)]
enum Ints<'a> {
    Same(i64),
    Each(&'a [i64]),
}

impl Ints<'_> {
    fn at(self, thread: usize) -> i64 {
        match self {
            Ints::Same(value) => value,
            Ints::Each(values) => values[thread],
        }
    }
}

/// `x op y` of each thread as [`eval_binary`] has it, where that takes no more than words of 64 bits and does not wrap.
fn short_binary(op: BinaryOp, n: usize, [x, y]: [Ints; 2], (least, most): (i64, i64)) -> Option<Vec<i64>> {
    let within = |value: Option<i64>| value.filter(|value| least <= *value && *value <= most);
    let each = |result: &dyn Fn(i64, i64) -> Option<i64>| {
        all(n, (0..n).map(|thread| within(result(x.at(thread), y.at(thread)))))
    };
    match op {
        BinaryOp::Eq => zipped(n, [x, y], |x, y| Some(i64::from(x == y))),
        BinaryOp::Ne => zipped(n, [x, y], |x, y| Some(i64::from(x != y))),
        BinaryOp::Lt => zipped(n, [x, y], |x, y| Some(i64::from(x < y))),
        BinaryOp::Le => zipped(n, [x, y], |x, y| Some(i64::from(x <= y))),
        BinaryOp::Gt => zipped(n, [x, y], |x, y| Some(i64::from(x > y))),
        BinaryOp::Ge => zipped(n, [x, y], |x, y| Some(i64::from(x >= y))),
        BinaryOp::And => zipped(n, [x, y], |x, y| Some(i64::from(x != 0 && y != 0))),
        BinaryOp::Or => zipped(n, [x, y], |x, y| Some(i64::from(x != 0 || y != 0))),
        BinaryOp::Add => zipped(n, [x, y], |x, y| within(x.checked_add(y))),
        BinaryOp::Sub => zipped(n, [x, y], |x, y| within(x.checked_sub(y))),
        BinaryOp::Mul => zipped(n, [x, y], |x, y| within(x.checked_mul(y))),
        BinaryOp::FloorDiv => zipped(n, [x, y], |x, y| within((y > 0).then(|| x.div_euclid(y)))),
        BinaryOp::FloorMod => zipped(n, [x, y], |x, y| within((y > 0).then(|| x.rem_euclid(y)))),
        BinaryOp::Min => each(&|x, y| Some(x.min(y))),
        BinaryOp::Max => each(&|x, y| Some(x.max(y))),
        BinaryOp::BitAnd => each(&|x, y| Some(x & y)),
        BinaryOp::BitOr => each(&|x, y| Some(x | y)),
        BinaryOp::BitXor => each(&|x, y| Some(x ^ y)),
        BinaryOp::Div | BinaryOp::TruncMod | BinaryOp::Shl | BinaryOp::Shr => None,
    }
}

/// The results of an operation for each thread; `None` where one has none.
fn zipped(n: usize, [x, y]: [Ints; 2], result: impl Fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    match (x, y) {
        (Ints::Each(x), Ints::Same(y)) => all(n, x.iter().map(|x| result(*x, y))),
        (Ints::Each(x), Ints::Each(y)) => all(n, x.iter().zip(y).map(|(x, y)| result(*x, *y))),
        (Ints::Same(_), _) => all(n, (0..n).map(|thread| result(x.at(thread), y.at(thread)))),
    }
}

/// `n` values, in memory that is taken once; `None` where one is missing.
fn all(n: usize, values: impl Iterator<Item = Option<i64>>) -> Option<Vec<i64>> {
    let mut found = Vec::with_capacity(n);
    for value in values {
        found.push(value?);
    }
    Some(found)
}

/// Threads of some blocks, in order of the blocks and of their linear index, x fastest.
pub(super) struct Threads {
    blocks: Vec<[i128; 3]>,
    /// Extents of a block.
    extents: [usize; 3],
}

impl Threads {
    /// All threads of those blocks.
    pub fn of(scene: &Scene, blocks: Vec<[i128; 3]>) -> Threads {
        // A scene has at most 1024 threads a block.
        Threads { blocks, extents: scene.block.map(|n| usize::try_from(n).unwrap_or(0)) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len() * self.extents.iter().product::<usize>()
    }

    /// Which of the blocks the one at a position is in.
    pub fn block_of(&self, position: usize) -> usize {
        position / self.extents.iter().product::<usize>()
    }

    /// The one at a position.
    pub fn at(&self, position: usize) -> Thread {
        let [nx, ny, nz] = self.extents;
        let (block, flat) = (self.block_of(position), position % (nx * ny * nz));
        let thread = [flat % nx, flat / nx % ny, flat / (nx * ny)];
        Thread { block: self.blocks[block], thread: thread.map(|i| i as i128) }
    }

    /// Something of each block.
    fn by_block(&self, of: impl Fn(&[i128; 3]) -> i128) -> Column {
        let values: Vec<i128> = self.blocks.iter().map(of).collect();
        if let [first, others @ ..] = &values[..]
            && others.iter().all(|value| value == first)
        {
            return Column::One(Some(Value::Int(*first)));
        }
        let n = self.extents.iter().product();
        let short: Option<Vec<i64>> = values.iter().map(|value| i64::try_from(*value).ok()).collect();
        match short {
            Some(short) => {
                Column::Ints(Rc::new(short.iter().flat_map(|v| std::iter::repeat_n(*v, n)).collect()))
            }
            None => {
                let each = values.iter().flat_map(|v| std::iter::repeat_n(Some(Value::Int(*v)), n));
                Column::Each(Rc::new(each.collect()))
            }
        }
    }

    /// The index of each thread along an axis of the block.
    fn along(&self, axis: usize) -> Column {
        let n = self.extents[axis];
        if n == 1 {
            return Column::One(Some(Value::Int(0)));
        }
        let below: usize = self.extents[..axis].iter().product();
        let mut values = Vec::with_capacity(self.len());
        while values.len() < self.len() {
            for index in 0..n {
                values.extend(std::iter::repeat_n(index as i64, below));
            }
        }
        Column::Ints(Rc::new(values))
    }
}

/// Threads at a place.
pub(super) struct Crowd {
    /// Who they are.
    pub threads: Rc<Threads>,
    /// What each does.
    pub arrivals: Vec<Arrival>,
    host: Rc<Env<'static>>,
    vars: FastMap<VarId, Column>,
    known: FastMap<Expr, Column>,
}

/// Threads of one launch at the places that were looked at: each place is one step after another, and several
/// statements have one as a rule.
#[derive(Default)]
pub(super) struct Crowds {
    known: Vec<Rc<Crowd>>,
    /// By the scene's position.
    starts: FastMap<(usize, Company), usize>,
    next: FastMap<(usize, Step), usize>,
}

impl Crowds {
    /// The threads of a scene, whose position is `at`, after these steps.
    pub fn of(&mut self, (at, scene): (usize, &Scene), company: Company, steps: Vec<Step>) -> Rc<Crowd> {
        let mut place = match self.starts.get(&(at, company)) {
            Some(known) => *known,
            None => {
                let crowd = Crowd::at_start(scene, Threads::of(scene, company.blocks(scene)));
                let place = self.add(crowd);
                self.starts.insert((at, company), place);
                place
            }
        };
        for step in steps {
            let key = (place, step);
            place = match self.next.get(&key) {
                Some(known) => *known,
                None => {
                    let crowd = self.known[place].after(std::slice::from_ref(&key.1));
                    let place = self.add(crowd);
                    self.next.insert(key, place);
                    place
                }
            };
        }
        self.known[place].clone()
    }

    fn add(&mut self, crowd: Crowd) -> usize {
        self.known.push(Rc::new(crowd));
        self.known.len() - 1
    }
}

/// The steps that decide who comes, and the names that these steps and the expressions use.
pub(super) fn needed(path: &[Step], used: &[Expr]) -> Vec<Step> {
    let mut names = used.iter().fold(Names::default(), |names, e| names.and(e.names()));
    let mut kept = Vec::new();
    for step in path.iter().rev() {
        match step {
            Step::Cond(cond, _) => names = names.and(cond.names()),
            Step::Loop(_, min, extent) => names = names.and(min.names()).and(extent.names()),
            Step::Name(var, value) if Names::of(var).may_meet(names) => names = names.and(value.names()),
            Step::Name(..) => continue,
        }
        kept.push(step.clone());
    }
    kept.reverse();
    kept
}

impl Crowd {
    /// The threads where the launch begins.
    pub fn at_start(scene: &Scene, threads: Threads) -> Crowd {
        let arrivals = vec![Arrival::Comes; threads.len()];
        let (threads, host) = (Rc::new(threads), Rc::new(scene.host_env()));
        let mut vars: FastMap<VarId, Column> = FastMap::default();
        let launch = &scene.launched.launch;
        let mut place = |var: &Option<Var>, column: &dyn Fn() -> Column| {
            if let Some(var) = var {
                vars.insert(var.id(), column());
            }
        };
        for axis in 0..3 {
            let cluster = scene.cluster[axis];
            place(&launch.grid[axis].0, &|| threads.by_block(|block| block[axis]));
            place(&launch.cluster[axis].0, &|| threads.by_block(|block| block[axis] % cluster));
            place(&launch.block[axis].0, &|| threads.along(axis));
        }
        Crowd { threads, arrivals, host, vars, known: FastMap::default() }
    }

    /// The same threads after more steps.
    pub fn after(&self, steps: &[Step]) -> Crowd {
        let mut crowd = Crowd {
            threads: self.threads.clone(),
            arrivals: self.arrivals.clone(),
            host: self.host.clone(),
            vars: self.vars.clone(),
            known: self.known.clone(),
        };
        steps.iter().for_each(|step| crowd.take(step));
        crowd
    }

    /// The same threads where names are known beside. They are those of the path that the threads took.
    pub fn with_names(&self, path: &[Step]) -> Crowd {
        let mut crowd = Crowd { known: FastMap::default(), ..self.after(&[]) };
        path.iter().filter(|step| matches!(step, Step::Name(..))).for_each(|step| crowd.take(step));
        crowd
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Name(var, value) => {
                let column = self.column(value);
                self.vars.insert(var.id(), column);
            }
            Step::Cond(cond, wanted) => {
                let column = self.column(cond);
                let decided = |value: Value| match value.is_true() == *wanted {
                    true => Arrival::Comes,
                    false => Arrival::Absent,
                };
                match &column {
                    Column::One(value) => {
                        let all = value.map_or(Arrival::Unknown, decided);
                        self.decide(|_| all);
                    }
                    Column::Ints(values) => self.decide(|thread| match (values[thread] != 0) == *wanted {
                        true => Arrival::Comes,
                        false => Arrival::Absent,
                    }),
                    Column::Each(values) => {
                        self.decide(|thread| values[thread].map_or(Arrival::Unknown, decided));
                    }
                }
            }
            Step::Loop(var, min, extent) => {
                let (first, n) = (self.column(min), self.column(extent));
                let whole = |column: &Column, thread| column.at(thread).and_then(Value::as_int);
                let arrival = |thread| match (whole(&first, thread), whole(&n, thread)) {
                    (Some(_), Some(n)) if n <= 0 => Arrival::Absent,
                    (Some(_), Some(_)) => Arrival::Comes,
                    _ => Arrival::Unknown,
                };
                if let (Column::One(_), Column::One(_)) = (&first, &n) {
                    let all = arrival(0);
                    self.decide(|_| all);
                } else {
                    self.decide(arrival);
                }
                self.vars.insert(var.id(), first);
            }
        }
    }

    fn decide(&mut self, arrival: impl Fn(usize) -> Arrival) {
        for (thread, found) in self.arrivals.iter_mut().enumerate() {
            if *found == Arrival::Comes {
                *found = arrival(thread);
            }
        }
    }

    /// The value of an expression for each thread.
    pub fn values(&mut self, expr: &Expr) -> Vec<Option<Value>> {
        let column = self.column(expr);
        (0..self.threads.len()).map(|thread| column.at(thread)).collect()
    }

    /// The integer of each thread.
    pub fn ints(&mut self, expr: &Expr) -> Vec<Option<i128>> {
        let column = self.column(expr);
        (0..self.threads.len()).map(|thread| column.at(thread).and_then(Value::as_int)).collect()
    }

    /// Whether the integers of the threads that come are known, short, and farther apart than `reach` each.
    pub fn are_apart(&mut self, expr: &Expr, reach: i64) -> bool {
        let column = self.column(expr);
        let Some(ints) = column.as_ints() else { return false };
        let coming = self.arrivals.iter().enumerate().filter(|(_, found)| **found == Arrival::Comes);
        let mut places: Vec<i64> = coming.map(|(thread, _)| ints.at(thread)).collect();
        if !places.is_sorted() {
            places.sort_unstable();
        }
        places.windows(2).all(|pair| pair[1].checked_sub(pair[0]).is_some_and(|gap| gap > reach))
    }

    /// The integer that an expression is for all threads, where it is the same and known.
    pub fn one_int(&mut self, expr: &Expr) -> Option<i128> {
        match self.column(expr) {
            Column::One(value) => value?.as_int(),
            Column::Ints(_) | Column::Each(_) => None,
        }
    }

    fn column(&mut self, expr: &Expr) -> Column {
        match expr.node() {
            _ if expr.lanes() != 1 => return Column::One(None),
            Node::Int(value) => return Column::One(Some(Value::Int(*value))),
            Node::Float(bits) => return Column::One(Some(Value::Float(f64::from_bits(*bits)))),
            Node::Var(var) => {
                return match self.vars.get(&var.id()) {
                    Some(column) => column.clone(),
                    None => Column::One(self.host.get(var)),
                };
            }
            _ => {}
        }
        if let Some(known) = self.known.get(expr) {
            return known.clone();
        }
        let column = self.column_of_node(expr);
        if matches!(column, Column::Ints(_) | Column::Each(_)) {
            count_steps(steps_of(self.threads.len()));
        }
        self.known.insert(expr.clone(), column.clone());
        column
    }

    fn column_of_node(&mut self, expr: &Expr) -> Column {
        let dtype = expr.dtype();
        match expr.node() {
            Node::Int(_) | Node::Float(_) | Node::Var(_) => self.column(expr),
            Node::Binary(op, a, b) => {
                let of = a.dtype();
                let columns = [self.column(a), self.column(b)];
                let short = columns[0].as_ints().zip(columns[1].as_ints()).zip(short_range(of));
                short
                    .filter(|_| !are_alike(&columns))
                    .and_then(|((x, y), range)| short_binary(*op, self.threads.len(), [x, y], range))
                    .map(|values| Column::Ints(Rc::new(values)))
                    .unwrap_or_else(|| {
                        self.each(&columns, |t| {
                            eval_binary(*op, columns[0].at(t)?, columns[1].at(t)?, of).ok()
                        })
                    })
            }
            Node::Not(a) => self.joined([a], |[a]| Some(Value::Int(i128::from(!a?.is_true())))),
            Node::Cast(a) => {
                let column = self.column(a);
                let short = column.as_ints().zip(short_range(dtype).filter(|_| dtype != DType::Bool));
                short
                    .filter(|_| !are_alike(std::slice::from_ref(&column)))
                    .and_then(|(x, (least, most))| {
                        self.ints_of(|t| Some(x.at(t)).filter(|x| (least..=most).contains(x)))
                    })
                    .unwrap_or_else(|| {
                        self.each(std::slice::from_ref(&column), |t| Some(column.at(t)?.cast(dtype)))
                    })
            }
            Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
                self.joined([cond, a, b], |[cond, a, b]| if cond?.is_true() { a } else { b })
            }
            Node::Call(intrinsic, args) => {
                let of = args.first().map_or(dtype, Expr::dtype);
                let columns: Vec<Column> = args.iter().map(|arg| self.column(arg)).collect();
                self.each(&columns, |thread| {
                    let args: Option<Vec<Value>> = columns.iter().map(|c| c.at(thread)).collect();
                    eval_call(*intrinsic, &args?, of).ok()
                })
            }
            // Of memory nothing is known.
            Node::Load(..) => Column::One(None),
            Node::Ramp(base, _) | Node::Broadcast(base) => self.column(base),
            Node::Let(var, value, body) => {
                let value = self.column(value);
                let shadowed = self.vars.insert(var.id(), value.clone());
                let outer = std::mem::take(&mut self.known);
                let result = self.column(body);
                self.known = outer;
                match shadowed {
                    Some(old) => self.vars.insert(var.id(), old),
                    None => self.vars.remove(&var.id()),
                };
                let both = [value, result];
                self.each(&both, |thread| both[0].at(thread).and(both[1].at(thread)))
            }
        }
    }

    fn joined<const N: usize>(
        &mut self,
        operands: [&Expr; N],
        value: impl Fn([Option<Value>; N]) -> Option<Value>,
    ) -> Column {
        let columns = operands.map(|operand| self.column(operand));
        self.each(&columns, |thread| value(std::array::from_fn(|i| columns[i].at(thread))))
    }

    /// Integers of all threads; `None` where one has none.
    fn ints_of(&self, value: impl Fn(usize) -> Option<i64>) -> Option<Column> {
        let n = self.threads.len();
        let mut values = Vec::with_capacity(n);
        for thread in 0..n {
            values.push(value(thread)?);
        }
        Some(Column::Ints(Rc::new(values)))
    }

    /// The value of each thread, or of one where the operands are the same for all.
    fn each(&self, operands: &[Column], value: impl Fn(usize) -> Option<Value>) -> Column {
        if are_alike(operands) {
            return Column::One(value(0));
        }
        Column::Each(Rc::new((0..self.threads.len()).map(value).collect()))
    }
}

/// Whether each of the operands is the same for all threads.
fn are_alike(operands: &[Column]) -> bool {
    operands.iter().all(|column| matches!(column, Column::One(_)))
}

/// The least and the greatest integer of a type whose values 64 bits with a sign hold.
fn short_range(dtype: DType) -> Option<(i64, i64)> {
    let (least, most) = dtype.int_range()?;
    Some((i64::try_from(least).ok()?, i64::try_from(most).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::eval_expr;
    use crate::verify::witness::{Launched, samples};
    use crate::{Form, Kernel, Stmt, ThreadTag};

    /// Every path of a launch of 96 threads with conditions, names and loops, thread by thread and all at once.
    #[test]
    fn a_crowd_does_what_its_threads_do_one_by_one() {
        let int = |n: i32| Expr::int(n);
        let [tx, bx, row, i, zero] = ["tx", "bx", "row", "i", "zero"].map(|name| Var::new(name, DType::I32));
        let body = Stmt::seq([]);
        let launch = |tag, var: &Var, extent: i32, body| Stmt::LaunchThread {
            tag,
            var: var.clone(),
            extent: int(extent),
            body: Box::new(body),
        };
        let body = launch(ThreadTag::BlockX, &bx, 3, launch(ThreadTag::ThreadX, &tx, 96, body));
        let kernel = Kernel {
            name: "crowd".to_owned(),
            params: Vec::new(),
            attrs: Default::default(),
            form: Form::Flat,
            body,
        };
        let Ok(parts) = crate::device::host_parts(&kernel) else { panic!("launches stand outermost") };
        let found = crate::verify::witness::launched(&parts);
        let launched: &Launched = &found[0];
        let samples = samples(&kernel);
        let scene = Scene::new(launched, &samples[0]).expect("extents are constants");
        let lane = tx.expr().floormod(int(32));
        let trap = tx.expr().floordiv(zero.expr());
        let memory = crate::Buffer::new("m", DType::I32, vec![int(1)], crate::MemScope::Global).at([int(0)]);
        let path = [
            Step::Name(row.clone(), tx.expr().floordiv(int(32)) + bx.expr() * int(3)),
            Step::Name(zero.clone(), bx.expr() - bx.expr()),
            Step::Cond(lane.clone().lt(int(20)).or(row.expr().equal(int(1))), true),
            Step::Loop(i.clone(), lane.clone() - int(5), row.expr() + lane.clone() - int(4)),
            Step::Cond(Expr::binary(BinaryOp::Max, i.expr(), int(3)).equal(int(3)), false),
        ];
        let values = [
            i.expr() * row.expr() + lane.clone(),
            Expr::if_then_else(lane.clone().gt(int(9)), trap.clone(), int(7)),
            Expr::select(lane.clone().gt(int(9)), trap.clone(), int(7)),
            Expr::if_then_else(lane.clone().gt(int(9)), memory, lane.clone()).cast(DType::U8),
            Expr::call1(crate::Intrinsic::Popcount, tx.expr()),
            Expr::let_in(zero.clone(), lane.clone() - int(8), trap),
        ];
        let threads: Vec<Thread> =
            [[0; 3], [1, 0, 0]].into_iter().flat_map(|b| scene.threads_of(b)).collect();
        let mut crowds = Crowds::default();
        let mut seen = [false; 2];
        for n_steps in 0..=path.len() {
            let steps = needed(&path[..n_steps], &values);
            let mut crowd = crowds.of((0, &scene), Company::Neighbours, steps).after(&[]);
            assert_eq!(crowd.threads.len(), threads.len());
            let columns: Vec<Vec<Option<Value>>> = values.iter().map(|value| crowd.values(value)).collect();
            for (at, thread) in threads.iter().enumerate() {
                assert_eq!(crowd.threads.at(at), *thread);
                let mut env = scene.host_env();
                let arrival = scene.arrival(&path[..n_steps], thread, &mut env);
                assert!(crowd.arrivals[at] == arrival, "{} after {n_steps} steps", thread.name());
                if arrival == Arrival::Comes {
                    for (column, value) in columns.iter().zip(&values) {
                        assert_eq!(
                            column[at],
                            eval_expr(value, &mut env).ok(),
                            "{value:?} of {}",
                            thread.name()
                        );
                        seen[usize::from(column[at].is_some())] = true;
                    }
                }
            }
        }
        assert_eq!(seen, [true; 2]);
        // Places of the first threads of four, and of all: apart by 4 elements, and by 1.
        let quarter = tx.expr().floormod(int(4)).equal(int(0));
        let mut crowd = crowds.of((0, &scene), Company::Block, vec![Step::Cond(quarter, true)]).after(&[]);
        let backwards = int(200) - tx.expr();
        assert!(crowd.are_apart(&tx.expr(), 3) && crowd.are_apart(&backwards, 3));
        assert!(!crowd.are_apart(&tx.expr(), 4) && !crowd.are_apart(&tx.expr().floordiv(int(8)), 0));
        let mut all = crowds.of((0, &scene), Company::Block, Vec::new()).after(&[]);
        assert!(all.are_apart(&tx.expr(), 0) && !all.are_apart(&tx.expr(), 1));
        let unknown = crate::Buffer::new("m", DType::I32, vec![int(1)], crate::MemScope::Global).at([int(0)]);
        assert!(!all.are_apart(&unknown, 0));
    }
}
