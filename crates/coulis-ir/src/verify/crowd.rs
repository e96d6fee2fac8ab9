//! Many threads followed at once: what each of them does at a place of a launch, and the value of expressions there.
//!
//! An expression is looked at once for all threads, node by node, and what is the same for all is computed once. What comes
//! out for a thread is what [`Scene::arrival`] and [`crate::eval::eval_expr`] say of it alone; why a value is not known is
//! left to these.

use std::rc::Rc;

use super::witness::{Arrival, Scene, Step, Thread};
use crate::dtype::DType;
use crate::eval::{Env, Value, eval_binary, eval_call};
use crate::expr::{BinaryOp, Expr, Names, Node, Var, VarId};
use crate::hash::FastMap;

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

/// `x op y` as [`eval_binary`] has it, where that takes no more than words of 64 bits and does not wrap.
fn short_binary(op: BinaryOp, x: i64, y: i64, (least, most): (i64, i64)) -> Option<i64> {
    let result = match op {
        BinaryOp::Eq => return Some(i64::from(x == y)),
        BinaryOp::Ne => return Some(i64::from(x != y)),
        BinaryOp::Lt => return Some(i64::from(x < y)),
        BinaryOp::Le => return Some(i64::from(x <= y)),
        BinaryOp::Gt => return Some(i64::from(x > y)),
        BinaryOp::Ge => return Some(i64::from(x >= y)),
        BinaryOp::And => return Some(i64::from(x != 0 && y != 0)),
        BinaryOp::Or => return Some(i64::from(x != 0 || y != 0)),
        BinaryOp::Add => x.checked_add(y)?,
        BinaryOp::Sub => x.checked_sub(y)?,
        BinaryOp::Mul => x.checked_mul(y)?,
        BinaryOp::FloorDiv if y > 0 => x.div_euclid(y),
        BinaryOp::FloorMod if y > 0 => x.rem_euclid(y),
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::BitAnd => x & y,
        BinaryOp::BitOr => x | y,
        BinaryOp::BitXor => x ^ y,
        BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::Div
        | BinaryOp::TruncMod
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    };
    (least <= result && result <= most).then_some(result)
}

/// Threads at a place.
pub(super) struct Crowd {
    /// Who they are.
    pub threads: Rc<Vec<Thread>>,
    /// What each does.
    pub arrivals: Vec<Arrival>,
    host: Rc<Env<'static>>,
    vars: FastMap<VarId, Column>,
    known: FastMap<Expr, Column>,
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
    /// The threads at the end of the path.
    pub fn new(scene: &Scene, threads: Vec<Thread>, path: &[Step]) -> Crowd {
        let mut crowd = Crowd::at_start(scene, threads);
        path.iter().for_each(|step| crowd.take(step));
        crowd
    }

    /// The threads where the launch begins.
    pub fn at_start(scene: &Scene, threads: Vec<Thread>) -> Crowd {
        let arrivals = vec![Arrival::Comes; threads.len()];
        let (threads, host) = (Rc::new(threads), Rc::new(scene.host_env()));
        let (vars, known) = (FastMap::default(), FastMap::default());
        let mut crowd = Crowd { threads, arrivals, host, vars, known };
        let launch = &scene.launched.launch;
        for axis in 0..3 {
            let cluster = scene.cluster[axis];
            crowd.place(launch.grid[axis].0.as_ref(), |t| t.block[axis]);
            crowd.place(launch.cluster[axis].0.as_ref(), |t| t.block[axis] % cluster);
            crowd.place(launch.block[axis].0.as_ref(), |t| t.thread[axis]);
        }
        crowd
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

    /// Gives a launched index its values.
    fn place(&mut self, var: Option<&Var>, position: impl Fn(&Thread) -> i128) {
        let Some(var) = var else { return };
        let short = self.ints_of(|t| i64::try_from(position(&self.threads[t])).ok());
        let column = short.unwrap_or_else(|| {
            Column::Each(Rc::new(self.threads.iter().map(|t| Some(Value::Int(position(t)))).collect()))
        });
        self.vars.insert(var.id(), column);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Name(var, value) => {
                let column = self.column(value);
                self.vars.insert(var.id(), column);
            }
            Step::Cond(cond, wanted) => {
                let column = self.column(cond);
                self.decide(|thread| match column.at(thread) {
                    Some(value) if value.is_true() == *wanted => Arrival::Comes,
                    Some(_) => Arrival::Absent,
                    None => Arrival::Unknown,
                });
            }
            Step::Loop(var, min, extent) => {
                let (first, n) = (self.column(min), self.column(extent));
                let whole = |column: &Column, thread| column.at(thread).and_then(Value::as_int);
                self.decide(|thread| match (whole(&first, thread), whole(&n, thread)) {
                    (Some(_), Some(n)) if n <= 0 => Arrival::Absent,
                    (Some(_), Some(_)) => Arrival::Comes,
                    _ => Arrival::Unknown,
                });
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
                    .and_then(|((x, y), range)| self.ints_of(|t| short_binary(*op, x.at(t), y.at(t), range)))
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
            Node::Select(cond, a, b) => {
                self.joined([cond, a, b], |[cond, a, b]| if cond?.is_true() { b.and(a) } else { a.and(b) })
            }
            Node::IfThenElse(cond, a, b) => {
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
        let mut values = Vec::with_capacity(self.threads.len());
        for thread in 0..self.threads.len() {
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
        let mut seen = [false; 2];
        for n_steps in 0..=path.len() {
            let steps = needed(&path[..n_steps], &values);
            let mut crowd = Crowd::new(&scene, threads.clone(), &steps);
            let columns: Vec<Vec<Option<Value>>> = values.iter().map(|value| crowd.values(value)).collect();
            for (at, thread) in threads.iter().enumerate() {
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
    }
}
