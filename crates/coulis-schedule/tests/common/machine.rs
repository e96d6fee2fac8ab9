//! A small machine for kernels as schedules make them: threads of a block in lockstep, blocks one after the other.
//!
//! Iterations of parallel and vectorized loops, and blocks of a grid, run last to first, so that an order they must
//! not have is found. Reading what was never written, any index outside a buffer, two threads that store to one
//! element at once, and a cooperative call that not all threads reach, fail the test.

use std::collections::{HashMap, HashSet};

use coulis_ir::eval::{Env, EvalError, Value, eval_expr};
use coulis_ir::stmt::TileOp;
use coulis_ir::{Atom, AtomCall, Buffer, DType, Expr, LoopKind, MemScope, Stmt, ThreadTag, TileCall, Var};

/// A piece of memory.
pub struct Cell {
    pub shape: Vec<i128>,
    pub data: Vec<Option<Value>>,
}

impl Cell {
    fn at(&self, name: &str, indices: &[i128]) -> usize {
        assert_eq!(indices.len(), self.shape.len(), "{name}: rank");
        let mut at = 0;
        for (index, extent) in indices.iter().zip(&self.shape) {
            assert!((0..*extent).contains(index), "{name}{indices:?} is outside {:?}", self.shape);
            at = at * *extent as usize + *index as usize;
        }
        at
    }
}

#[derive(Default)]
struct Lane {
    vars: HashMap<Var, Value>,
    local: HashMap<Var, Cell>,
}

/// Memory by data pointer, and the threads that run.
pub struct Machine {
    pub global: HashMap<Var, Cell>,
    shared: HashMap<Var, Cell>,
    lanes: Vec<Lane>,
    in_launch: bool,
    zeroed: bool,
}

impl Machine {
    /// One thread, and no memory.
    pub fn new() -> Machine {
        let lanes = vec![Lane::default()];
        Machine { global: HashMap::new(), shared: HashMap::new(), lanes, in_launch: false, zeroed: false }
    }

    /// Gives a size its value.
    pub fn set(&mut self, var: &Var, value: Value) {
        self.lanes[0].vars.insert(var.clone(), value);
    }

    /// Runs a kernel's body.
    pub fn execute(&mut self, body: &Stmt) {
        self.run(body, &[0]);
    }

    fn cell(&self, lane: usize, buffer: &Buffer) -> &Cell {
        let found = self.lanes[lane].local.get(&buffer.data).or_else(|| self.shared.get(&buffer.data));
        found.or_else(|| self.global.get(&buffer.data)).unwrap_or_else(|| panic!("{buffer:?} is not alive"))
    }

    fn cell_mut(&mut self, lane: usize, buffer: &Buffer) -> &mut Cell {
        let lane = &mut self.lanes[lane];
        let found = lane.local.get_mut(&buffer.data).or_else(|| self.shared.get_mut(&buffer.data));
        found
            .or_else(|| self.global.get_mut(&buffer.data))
            .unwrap_or_else(|| panic!("{buffer:?} is not alive"))
    }

    fn eval(&self, lane: usize, expr: &Expr) -> Value {
        let mut read = |buffer: &Buffer, indices: &[i128]| -> Result<Value, EvalError> {
            let cell = self.cell(lane, buffer);
            let at = cell.at(&buffer.name, indices);
            Ok(cell.data[at].unwrap_or_else(|| panic!("{buffer:?}{indices:?} is unwritten")))
        };
        let mut env = Env::with_memory(&mut read);
        for (var, value) in &self.lanes[lane].vars {
            env.set(var, *value);
        }
        eval_expr(expr, &mut env).unwrap_or_else(|e| panic!("{expr:?}: {e}"))
    }

    fn int(&self, lane: usize, expr: &Expr) -> i128 {
        self.eval(lane, expr).as_int().expect("an integer")
    }

    /// Makes memory for a buffer.
    pub fn allocate(&mut self, buffer: &Buffer) {
        let scope = if self.in_launch { buffer.scope } else { MemScope::Global };
        // A register tile has one element a thread.
        let shape: Vec<i128> = match &buffer.layout {
            Some(_) => vec![1],
            None => buffer.shape.iter().map(|e| self.int(0, e)).collect(),
        };
        let size = shape.iter().map(|e| (*e).max(0)).product::<i128>() as usize;
        let fill = if std::mem::take(&mut self.zeroed) { Some(Value::Int(0)) } else { None };
        let cell = || Cell { shape: shape.clone(), data: vec![fill; size] };
        match scope {
            MemScope::Local => {
                for lane in &mut self.lanes {
                    lane.local.insert(buffer.data.clone(), cell());
                }
            }
            MemScope::Shared | MemScope::SharedDyn => drop(self.shared.insert(buffer.data.clone(), cell())),
            MemScope::Global if !self.in_launch => drop(self.global.insert(buffer.data.clone(), cell())),
            MemScope::Global | MemScope::Warp => panic!("{buffer:?} is allocated in a launch"),
        }
    }

    fn free(&mut self, buffer: &Buffer) {
        self.global.remove(&buffer.data);
        self.shared.remove(&buffer.data);
        for lane in &mut self.lanes {
            lane.local.remove(&buffer.data);
        }
    }

    fn run(&mut self, stmt: &Stmt, active: &[usize]) {
        if active.is_empty() {
            return;
        }
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.run(s, active)),
            Stmt::For { var, min, extent, kind, body } => {
                let range = |m: &Machine, lane: usize| (m.int(lane, min), m.int(lane, extent));
                let ranges: Vec<(i128, i128)> = active.iter().map(|l| range(self, *l)).collect();
                let most = ranges.iter().map(|(_, extent)| *extent).max().unwrap_or(0);
                let mut order: Vec<i128> = (0..most.max(0)).collect();
                if matches!(kind, LoopKind::Parallel | LoopKind::Vectorized) {
                    order.reverse();
                }
                for i in order {
                    let inside: Vec<usize> =
                        active.iter().zip(&ranges).filter(|(_, (_, e))| i < *e).map(|(l, _)| *l).collect();
                    for (lane, (min, _)) in active.iter().zip(&ranges) {
                        self.lanes[*lane].vars.insert(var.clone(), Value::Int(min + i));
                    }
                    self.run(body, &inside);
                }
                for lane in active {
                    self.lanes[*lane].vars.remove(var);
                }
            }
            Stmt::If { cond, then, otherwise } => {
                let (yes, no): (Vec<usize>, Vec<usize>) =
                    active.iter().partition(|lane| self.eval(**lane, cond).is_true());
                self.run(then, &yes);
                if let Some(otherwise) = otherwise {
                    self.run(otherwise, &no);
                }
            }
            Stmt::Store { buffer, indices, value } => self.store(buffer, indices, value, active),
            Stmt::Let { var, value, body } => {
                for lane in active {
                    let value = self.eval(*lane, value);
                    self.lanes[*lane].vars.insert(var.clone(), value);
                }
                self.run(body, active);
                for lane in active {
                    self.lanes[*lane].vars.remove(var);
                }
            }
            Stmt::Allocate { buffer, body } => {
                let zeroed = self.zeroed;
                self.allocate(buffer);
                self.run(body, active);
                if zeroed {
                    let left = &self.global[&buffer.data].data;
                    assert!(left.iter().all(|v| *v == Some(Value::Int(0))), "{buffer:?} is left as {left:?}");
                }
                self.free(buffer);
            }
            Stmt::AllocBuffer(buffer) => self.allocate(buffer),
            Stmt::View { .. } | Stmt::Sync(_) => {}
            Stmt::Annotate { key, body, .. } => {
                self.zeroed = key == "zeroed";
                self.run(body, active);
            }
            Stmt::LaunchThread { tag: ThreadTag::VThread, var, extent, body } => {
                for i in 0..self.int(active[0], extent) {
                    active.iter().for_each(|l| {
                        self.lanes[*l].vars.insert(var.clone(), Value::Int(i));
                    });
                    self.run(body, active);
                }
            }
            Stmt::LaunchThread { .. } => self.launch(stmt),
            Stmt::Tile(call) => {
                assert_eq!(active.len(), self.lanes.len(), "not all threads reach the call");
                self.reduce(call);
            }
            Stmt::Atom(call) => active.iter().for_each(|lane| self.atom(*lane, call)),
            other => panic!("{} is not what a schedule makes", other.kind_name()),
        }
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr, active: &[usize]) {
        assert_eq!(value.dtype(), buffer.dtype, "{buffer:?}: type of the value");
        let mut stores = Vec::new();
        for lane in active {
            let indices: Vec<i128> = indices.iter().map(|i| self.int(*lane, i)).collect();
            let at = self.cell(*lane, buffer).at(&buffer.name, &indices);
            stores.push((*lane, at, self.eval(*lane, value)));
        }
        let own = self.in_launch && self.lanes[active[0]].local.contains_key(&buffer.data);
        let mut seen = HashSet::new();
        for (lane, at, value) in stores {
            assert!(own || seen.insert(at), "{buffer:?}[{at}] is stored by two threads at once");
            self.cell_mut(lane, buffer).data[at] = Some(value);
        }
    }

    fn launch(&mut self, stmt: &Stmt) {
        assert!(!self.in_launch, "a launch inside a launch");
        let (mut grid, mut block, mut body) = (Vec::new(), Vec::new(), stmt);
        while let Stmt::LaunchThread { tag, var, extent, body: inner } = body {
            if *tag == ThreadTag::VThread {
                break;
            }
            let is_block = matches!(tag, ThreadTag::BlockX | ThreadTag::BlockY | ThreadTag::BlockZ);
            let list = if is_block { &mut grid } else { &mut block };
            list.push((*tag, var.clone(), self.int(0, extent)));
            body = inner;
        }
        // Threads stand in linear order, x fastest.
        block.sort_by_key(|(tag, _, _)| *tag);
        let sizes = std::mem::take(&mut self.lanes[0].vars);
        let n: i128 = block.iter().map(|(_, _, e)| *e).product();
        let n_blocks: i128 = grid.iter().map(|(_, _, e)| (*e).max(0)).product();
        for number in (0..n_blocks).rev() {
            self.lanes = (0..n)
                .map(|thread| {
                    let mut lane = Lane { vars: sizes.clone(), local: HashMap::new() };
                    for (list, mut rest) in [(&grid, number), (&block, thread)] {
                        for (_, var, extent) in list {
                            lane.vars.insert(var.clone(), Value::Int(rest % extent));
                            rest /= extent;
                        }
                    }
                    lane
                })
                .collect();
            self.in_launch = true;
            let all: Vec<usize> = (0..n as usize).collect();
            self.run(body, &all);
            self.in_launch = false;
            self.shared.clear();
        }
        self.lanes = vec![Lane { vars: sizes, local: HashMap::new() }];
    }

    /// A cooperative fold of register tiles, by their layouts.
    fn reduce(&mut self, call: &TileCall) {
        let TileOp::ReduceBy { reducer, axes, accum: false } = &call.op else { panic!("{call:?}") };
        let tile = &call.srcs[0].buffer;
        let shape: Vec<i64> = tile.shape.iter().map(|e| e.as_int().expect("a constant") as i64).collect();
        let shard = &tile.layout.as_ref().expect("a layout").shard;
        let mut groups: HashMap<Vec<i64>, Vec<usize>> = HashMap::new();
        for element in 0..shape.iter().product::<i64>() {
            let (mut rest, mut lane, mut group) = (element, 0, Vec::new());
            for (dim, extent) in shape.iter().enumerate().rev() {
                let index = rest % extent;
                rest /= extent;
                lane += index * shard[dim].step.stride;
                if !axes.contains(&(dim as i64)) {
                    group.push(index);
                }
            }
            groups.entry(group).or_default().push(lane as usize);
        }
        assert_eq!(groups.values().map(Vec::len).sum::<usize>(), self.lanes.len(), "threads of the tile");
        for lanes in groups.values() {
            let state = |m: &Machine, lane: usize| -> Vec<Value> {
                let one = |r: &coulis_ir::stmt::Region| m.lanes[lane].local[&r.buffer.data].data[0];
                call.srcs.iter().map(|r| one(r).expect("a state is written")).collect()
            };
            let mut total = state(self, lanes[0]);
            for lane in &lanes[1..] {
                let args: Vec<Value> = total.into_iter().chain(state(self, *lane)).collect();
                for (param, arg) in reducer.combine.params.iter().zip(args) {
                    self.lanes[*lane].vars.insert(param.clone(), arg);
                }
                total = reducer.combine.body.iter().map(|e| self.eval(*lane, e)).collect();
            }
            for lane in lanes {
                for (dst, value) in call.dsts.iter().zip(&total) {
                    self.cell_mut(*lane, &dst.buffer).data[0] = Some(*value);
                }
            }
        }
    }

    fn atom(&mut self, lane: usize, call: &AtomCall) {
        match call.atom {
            Atom::ThreadFence => {}
            Atom::AtomicAdd => {
                let (memory, dst) =
                    (call.memory.as_ref().expect("memory"), call.dst.as_ref().expect("a result"));
                let at: Vec<i128> = memory.indices.iter().map(|i| self.int(lane, i)).collect();
                let cell = self.cell(lane, &memory.buffer);
                let place = cell.at(&memory.buffer.name, &at);
                let old = cell.data[place].expect("a counter is written");
                let add = self.int(lane, &call.args[0]);
                assert_eq!(memory.buffer.dtype, DType::U32);
                let new = Value::Int(old.as_int().expect("an integer") + add);
                self.cell_mut(lane, &memory.buffer).data[place] = Some(new);
                self.cell_mut(lane, &dst.buffer).data[0] = Some(old);
            }
            other => panic!("{} is not what a schedule makes", other.name()),
        }
    }
}
