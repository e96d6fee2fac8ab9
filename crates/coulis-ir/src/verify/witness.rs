//! What threads of a launch do for some sizes: the witness of faults that are claimed of the kernel.
//!
//! Sizes are given values, strides those of compact arrays, loops their first iteration; then the conditions around
//! a statement, its indices and masks are evaluated for each thread of a block. What comes out is no guess: a call
//! with these sizes does it. Values from memory are not known, and nothing is claimed of what depends on them.

use crate::hash::FastMap;

use crate::device::{HostParts, Launch};
use crate::dtype::DType;
use crate::eval::{Env, Value, eval_expr};
use crate::expr::{Expr, Node, Var, VarId};
use crate::kernel::{Kernel, Param};
use crate::stmt::{MAX_BLOCK_THREADS, Stmt, ThreadTag};
use crate::visit::{map_children, uses_any};

/// One launch of a kernel, with what the host knows.
pub(super) struct Launched<'k> {
    /// Its extents, variables and body.
    pub launch: Launch<'k>,
    /// Its `launch_thread` statements, the outermost first.
    pub chain: Vec<&'k Stmt>,
    /// Values of names that the host computes.
    pub lets: Vec<(Var, Expr)>,
    /// Local memory of one element that is written by one statement, and what is written.
    pub once: FastMap<VarId, Expr>,
}

/// The launches of a kernel.
pub(super) fn launched<'k>(parts: &HostParts<'k>) -> Vec<Launched<'k>> {
    let launches = parts.program.launches.iter().zip(&parts.chains);
    launches
        .map(|(launch, chain)| Launched {
            launch: launch.clone(),
            chain: chain.clone(),
            lets: parts.program.lets.clone(),
            once: written_once(launch.body),
        })
        .collect()
}

/// Local memory that one store writes, at element 0, with that value.
fn written_once(body: &Stmt) -> FastMap<VarId, Expr> {
    let mut values: FastMap<VarId, Option<Expr>> = FastMap::default();
    crate::visit::for_each_stmt(body, &mut |stmt| match stmt {
        Stmt::Store { buffer, indices, value } if buffer.scope == crate::MemScope::Local => {
            let first = indices.iter().all(|i| i.is_int(0)) && value.lanes() == 1;
            let is_new = !values.contains_key(&buffer.data.id());
            values.insert(buffer.data.id(), (first && is_new).then(|| value.clone()));
        }
        other => other.each_buffer(&mut |buffer, role| {
            if role == crate::Role::Written {
                values.insert(buffer.data.id(), None);
            }
        }),
    });
    values.into_iter().filter_map(|(id, value)| Some((id, value?))).collect()
}

/// What stands around a statement inside a launch. Loads of memory that is written once are replaced by what is
/// written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// The branch that is taken when the condition has that value.
    Cond(Expr, bool),
    /// A loop: variable, first value, number of turns.
    Loop(Var, Expr, Expr),
    /// A name.
    Name(Var, Expr),
}

impl<'k> Launched<'k> {
    /// Calls `f` on each statement of the launch with what stands around it, in order of the text.
    pub fn each_with_path(&self, f: &mut impl FnMut(&'k Stmt, &[Step])) {
        self.walk(self.launch.body, &mut Vec::new(), f);
    }

    fn walk(&self, stmt: &'k Stmt, path: &mut Vec<Step>, f: &mut impl FnMut(&'k Stmt, &[Step])) {
        f(stmt, path);
        let mut inside = |step: Step, body: &'k Stmt, path: &mut Vec<Step>| {
            path.push(step);
            self.walk(body, path, f);
            path.pop();
        };
        match stmt {
            Stmt::For { var, min, extent, body, .. } => {
                let step = Step::Loop(var.clone(), self.resolved(min), self.resolved(extent));
                inside(step, body, path);
            }
            Stmt::Let { var, value, body } => {
                inside(Step::Name(var.clone(), self.resolved(value)), body, path)
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = self.resolved(cond);
                inside(Step::Cond(cond.clone(), true), then, path);
                if let Some(otherwise) = otherwise {
                    inside(Step::Cond(cond, false), otherwise, path);
                }
            }
            _ => crate::visit::stmt_children(stmt).for_each(|s| self.walk(s, path, f)),
        }
    }

    /// The expression with loads of memory that is written once replaced by what is written.
    pub fn resolved(&self, expr: &Expr) -> Expr {
        if self.once.is_empty() || !expr.reads_memory() {
            return expr.clone();
        }
        match expr.node() {
            Node::Load(buffer, _) if expr.lanes() == 1 => match self.once.get(&buffer.data.id()) {
                // A value that reads memory again, itself perhaps, stays unknown.
                Some(value) if value.dtype() == expr.dtype() && !value.reads_memory() => value.clone(),
                _ => expr.clone(),
            },
            Node::Load(..) => expr.clone(),
            _ => map_children(expr, &mut |child| self.resolved(child)),
        }
    }
}

/// Values of sizes, strides and scalars of a call.
pub(super) struct Sample {
    values: FastMap<Var, i128>,
}

/// Calls whose threads are looked at: large and all different sizes, and equal middling ones.
pub(super) fn samples(kernel: &Kernel) -> Vec<Sample> {
    let unequal = [1009, 1013, 1019, 1021, 1031, 1033, 1039];
    let pick = |values: &[i128]| {
        let mut sample = Sample { values: FastMap::default() };
        let mut next = values.iter().cycle();
        let mut free = |expr: &Expr, sample: &mut Sample| {
            crate::visit::for_each_expr(expr, &mut |e| {
                if let Some(var) = e.as_var() {
                    let value = || next.next().copied().unwrap_or(1);
                    sample.values.entry(var.clone()).or_insert_with(value);
                }
            });
        };
        for param in &kernel.params {
            match param {
                Param::Scalar(var) => free(&var.expr(), &mut sample),
                Param::Buffer { buffer, .. } => {
                    buffer.shape.iter().for_each(|e| free(e, &mut sample));
                    // Free strides step over what those that are given reach, the last over the least.
                    let extents: Vec<i128> = (buffer.shape.iter())
                        .map(|e| sample.int(e, &mut sample.env()).unwrap_or(1).max(1))
                        .collect();
                    let given = buffer.strides.iter().zip(&extents);
                    let mut reach = given
                        .filter_map(|(at, extent)| Some(at.as_int()?.abs().saturating_mul(*extent)))
                        .fold(1, i128::max);
                    for (at, extent) in buffer.strides.iter().zip(&extents).rev() {
                        if let Some(var) = at.as_var() {
                            let stride = *sample.values.entry(var.clone()).or_insert(reach);
                            reach = reach.max(stride.saturating_mul(*extent));
                        }
                    }
                    if let Some(var) = buffer.elem_offset.as_var() {
                        sample.values.entry(var.clone()).or_insert(0);
                    }
                }
            }
        }
        sample
    };
    let large = pick(&unequal);
    // Without sizes all calls are alike.
    if large.values.is_empty() { vec![large] } else { vec![large, pick(&[64])] }
}

impl Sample {
    /// These values.
    pub fn env(&self) -> Env<'static> {
        let mut env = Env::new();
        for (var, value) in &self.values {
            let value = var.dtype().wrap_int(*value);
            let typed = if var.dtype().is_float() { Value::Float(value as f64) } else { Value::Int(value) };
            env.set(var, typed);
        }
        env
    }

    fn int(&self, expr: &Expr, env: &mut Env) -> Option<i128> {
        eval_expr(expr, env).ok()?.as_int()
    }
}

/// One thread of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thread {
    /// `blockIdx.x`, `.y`, `.z`.
    pub block: [i128; 3],
    /// `threadIdx.x`, `.y`, `.z`.
    pub thread: [i128; 3],
}

impl Thread {
    /// Its index of a block or in it; 0 of other tags.
    pub fn position(&self, tag: ThreadTag) -> i128 {
        match tag {
            ThreadTag::BlockX => self.block[0],
            ThreadTag::BlockY => self.block[1],
            ThreadTag::BlockZ => self.block[2],
            ThreadTag::ThreadX => self.thread[0],
            ThreadTag::ThreadY => self.thread[1],
            ThreadTag::ThreadZ => self.thread[2],
            ThreadTag::ClusterX | ThreadTag::ClusterY | ThreadTag::ClusterZ | ThreadTag::VThread => 0,
        }
    }

    /// As errors name it: `thread (3, 0, 0) of block (0, 0, 0)`.
    pub fn name(&self) -> String {
        let list = |v: [i128; 3]| format!("({}, {}, {})", v[0], v[1], v[2]);
        format!("thread {} of block {}", list(self.thread), list(self.block))
    }
}

/// A launch for some sizes.
pub(super) struct Scene<'s, 'k> {
    pub launched: &'s Launched<'k>,
    sample: &'s Sample,
    /// Extents of the grid.
    pub grid: [i128; 3],
    /// Blocks of a cluster.
    pub cluster: [i128; 3],
    /// Extents of a block.
    pub block: [i128; 3],
}

/// What a thread does at a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It does not come there.
    Absent,
    /// Whether it comes there depends on memory.
    Unknown,
    /// It comes there.
    Comes,
}

/// Whether who comes to the end of the path, or one of the values there, depends on one of the variables.
pub(super) fn depends_on(path: &[Step], values: &[Expr], mut vars: Vec<Var>) -> bool {
    for step in path {
        match step {
            Step::Cond(cond, _) if uses_any(cond, &vars) => return true,
            Step::Loop(_, min, extent) if uses_any(min, &vars) || uses_any(extent, &vars) => return true,
            Step::Name(var, value) if uses_any(value, &vars) => vars.push(var.clone()),
            Step::Cond(..) | Step::Loop(..) | Step::Name(..) => {}
        }
    }
    values.iter().any(|value| uses_any(value, &vars))
}

impl<'s, 'k> Scene<'s, 'k> {
    /// The launch in a call of those sizes; `None` where its extents are not known or legal, or no thread runs.
    pub fn new(launched: &'s Launched<'k>, sample: &'s Sample) -> Option<Scene<'s, 'k>> {
        let mut scene = Scene { launched, sample, grid: [1; 3], cluster: [1; 3], block: [1; 3] };
        let mut env = scene.host_env();
        for axis in 0..3 {
            scene.grid[axis] = sample.int(&launched.launch.grid[axis].1, &mut env)?;
            scene.cluster[axis] = sample.int(&launched.launch.cluster[axis].1, &mut env)?;
            scene.block[axis] = sample.int(&launched.launch.block[axis].1, &mut env)?;
        }
        let threads: i128 = scene.block.iter().product();
        let fits = (1..=i128::from(MAX_BLOCK_THREADS)).contains(&threads);
        let legal = scene.grid.iter().chain(&scene.cluster).all(|n| *n > 0) && fits;
        legal.then_some(scene)
    }

    /// What the host knows; [`Scene::arrival`] adds what a thread does.
    pub fn host_env(&self) -> Env<'static> {
        let mut env = self.sample.env();
        for (var, value) in &self.launched.lets {
            if let Ok(value) = eval_expr(value, &mut env) {
                env.set(var, value);
            }
        }
        env
    }

    /// Threads of a block, in order of their linear index, x fastest.
    #[cfg(test)]
    pub fn threads_of(&self, block: [i128; 3]) -> Vec<Thread> {
        let [nx, ny, nz] = self.block;
        let mut threads = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                threads.extend((0..nx).map(|x| Thread { block, thread: [x, y, z] }));
            }
        }
        threads
    }

    /// What the thread does at the end of the path. Where it comes, `env` has its values.
    pub fn arrival(&self, path: &[Step], thread: &Thread, env: &mut Env) -> Arrival {
        let launch = &self.launched.launch;
        let in_cluster: [i128; 3] = std::array::from_fn(|axis| thread.block[axis] % self.cluster[axis]);
        let indices = (launch.grid.iter().zip(thread.block))
            .chain(launch.cluster.iter().zip(in_cluster))
            .chain(launch.block.iter().zip(thread.thread));
        for ((var, _), value) in indices {
            if let Some(var) = var {
                env.set(var, Value::Int(value));
            }
        }
        for step in path {
            match step {
                Step::Name(var, value) => match eval_expr(value, env) {
                    Ok(value) => env.set(var, value),
                    Err(_) => env.unset(var),
                },
                Step::Cond(cond, wanted) => match eval_expr(cond, env) {
                    Ok(value) if value.is_true() == *wanted => {}
                    Ok(_) => return Arrival::Absent,
                    Err(_) => return Arrival::Unknown,
                },
                Step::Loop(var, min, extent) => {
                    let first = self.value(min, env);
                    let (Some(first), Some(n)) = (first, self.value(extent, env)) else {
                        return Arrival::Unknown;
                    };
                    if n <= 0 {
                        return Arrival::Absent;
                    }
                    env.set(var, Value::Int(first));
                }
            }
        }
        Arrival::Comes
    }

    /// An integer that is known.
    pub fn value(&self, expr: &Expr, env: &mut Env) -> Option<i128> {
        self.sample.int(expr, env)
    }

    /// Values of the launched indices and sizes as constants, for simplification: those of the sample only.
    pub fn constants(&self) -> FastMap<Var, Expr> {
        let int = |(var, value): (&Var, &i128)| {
            let known = !var.dtype().is_float() && var.dtype() != DType::Bool;
            known.then(|| (var.clone(), Expr::int_of(*value, var.dtype())))
        };
        self.sample.values.iter().filter_map(int).collect()
    }
}
