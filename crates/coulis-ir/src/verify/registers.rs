//! What of the memory of a thread is live at one time: the bytes that its registers are to hold.
//!
//! Memory is live from its first access to its last, in order of the text; what a loop accesses is live all the while that
//! the loop runs, since one iteration may leave it to the next. Names that are bound to values are not counted.
//!
//! V26 compares this with the target, and planners ask it of their kernels before these are lowered. There a tile call
//! takes as much again as two states: that of the calling thread, and what it receives. Most variants take less. And what a
//! vectorized loop allocates is there for each of its lanes, as is a value that is named before what it reads is
//! stored to, and used after.

use crate::buffer::{Buffer, MemScope};
use crate::expr::{Expr, Var, VarId};
use crate::hash::{FastMap, FastSet, Seen};
use crate::stmt::{LoopKind, Role, Stmt, TileOp};
use crate::target::Target;
use crate::visit::{for_each_expr, for_each_load, for_each_stmt, stmt_children, stmt_exprs, uses_any};

/// States of its reducer that a tile call may have in registers beside its operands.
const STATES_OF_A_CALL: i128 = 2;

/// Bytes of the registers of one thread of a target.
pub fn register_bytes(target: &Target) -> i128 {
    i128::from(target.block.registers) * 4
}

/// The most bytes of local memory of constant size that are live in a thread at one time, in a statement of any form.
pub fn local_bytes(stmt: &Stmt, target: &Target) -> i128 {
    let mut most = 0;
    each_begin(stmt, target, &mut |_, live| most = most.max(live));
    most
}

/// The allocation with which the local memory that is live passes `most` bytes first, and how many these are then.
pub(super) fn first_beyond<'k>(
    stmt: &'k Stmt,
    target: &Target,
    most: i128,
) -> Option<(&'k Stmt, &'k Buffer, i128)> {
    let mut found = None;
    each_begin(stmt, target, &mut |life, live| {
        if live > most && found.is_none() {
            found = life.place.map(|(stmt, buffer)| (stmt, buffer, live));
        }
    });
    found
}

/// Bytes of a buffer, where its extents are constants.
pub(super) fn constant_bytes(buffer: &Buffer) -> Option<i128> {
    let elements = buffer.shape.iter().try_fold(1i128, |n, e| n.checked_mul(e.as_int()?.max(0)))?;
    elements.checked_mul(buffer.dtype.bytes() as i128)
}

/// Memory of a thread, and when it is live.
struct Life<'k> {
    /// Where it is allocated; of what a call takes for itself, nothing says.
    place: Option<(&'k Stmt, &'k Buffer)>,
    /// Bytes of one thread.
    bytes: i128,
    first: usize,
    last: usize,
}

/// Calls `f` for each memory in the order in which they begin to be live, with the bytes that are live then.
fn each_begin<'k>(stmt: &'k Stmt, target: &Target, f: &mut impl FnMut(&Life<'k>, i128)) {
    let lanes = i128::from(target.warp.max(1));
    let mut walk = Walk {
        lanes,
        vector: 1,
        now: 0,
        lives: Vec::new(),
        index: FastMap::default(),
        loops: Vec::new(),
        named: FastMap::default(),
    };
    walk.stmt(stmt);
    let mut lives = walk.lives;
    // What is allocated and not accessed is there, if only once.
    lives.iter_mut().for_each(|life| life.last = life.last.max(life.first));
    let mut begins: Vec<usize> = (0..lives.len()).collect();
    begins.sort_by_key(|&at| lives[at].first);
    let mut ends = begins.clone();
    ends.sort_by_key(|&at| lives[at].last);
    let mut ends = ends.into_iter().peekable();
    let mut live = 0i128;
    for at in begins {
        while let Some(ended) = ends.next_if(|&other| lives[other].last < lives[at].first) {
            live -= lives[ended].bytes;
        }
        live = live.saturating_add(lives[at].bytes);
        f(&lives[at], live);
    }
}

struct Walk<'k> {
    /// Lanes that share memory of a warp.
    lanes: i128,
    /// Lanes of the vectorized loop around.
    vector: i128,
    /// Statements so far.
    now: usize,
    lives: Vec<Life<'k>>,
    /// Places in `lives`, by pointers.
    index: FastMap<VarId, usize>,
    /// What each of the loops around accessed so far, the outermost first.
    loops: Vec<Vec<usize>>,
    /// What names of vectorized loops stand for reads.
    named: FastMap<VarId, FastSet<VarId>>,
}

impl<'k> Walk<'k> {
    fn stmt(&mut self, stmt: &'k Stmt) {
        self.now += 1;
        for expr in stmt_exprs(stmt) {
            self.reads(expr);
        }
        match stmt {
            Stmt::Allocate { buffer, .. } | Stmt::AllocBuffer(buffer) => self.declare(stmt, buffer),
            Stmt::View { .. } => {}
            Stmt::Tile(call) => {
                let state: i128 = match &call.op {
                    TileOp::Copy => 0,
                    TileOp::Reduce { .. } => call.dsts.iter().map(|d| d.buffer.dtype.bytes() as i128).sum(),
                    TileOp::ReduceBy { reducer, .. } => {
                        reducer.fields.iter().map(|field| field.dtype.bytes() as i128).sum()
                    }
                };
                let (bytes, first, last) = (STATES_OF_A_CALL * state, self.now, self.now);
                self.lives.push(Life { place: None, bytes, first, last });
                stmt.each_buffer(&mut |buffer, _| self.access(buffer));
            }
            _ => stmt.each_buffer(&mut |buffer, _| self.access(buffer)),
        }
        let Stmt::For { extent, kind, body, .. } = stmt else {
            let first = self.now;
            let kept = match stmt {
                Stmt::Let { var, value, body } if self.vector > 1 && self.is_kept(var, value, body) => {
                    self.vector.saturating_mul(value.dtype().bytes() as i128)
                }
                _ => 0,
            };
            stmt_children(stmt).for_each(|child| self.stmt(child));
            if kept > 0 {
                let at = self.lives.len();
                self.lives.push(Life { place: None, bytes: kept, first, last: self.now });
                self.live(at, first);
            }
            return;
        };
        if extent.is_int(1) {
            return self.stmt(body);
        }
        if *kind == LoopKind::Vectorized {
            let around = self.vector;
            self.vector = around.saturating_mul(extent.as_int().unwrap_or(1).max(1));
            self.stmt(body);
            self.vector = around;
            return;
        }
        let first = self.now;
        self.loops.push(Vec::new());
        self.stmt(body);
        let (accessed, last) = (self.loops.pop().unwrap_or_default(), self.now);
        for at in accessed {
            self.live(at, first);
            self.live(at, last);
        }
    }

    fn declare(&mut self, stmt: &'k Stmt, buffer: &'k Buffer) {
        let sharers = match buffer.scope {
            MemScope::Local => 1,
            MemScope::Warp => self.lanes,
            MemScope::Global | MemScope::Shared | MemScope::SharedDyn => return,
        };
        let of_layout = buffer
            .layout
            .as_ref()
            .map(|layout| i128::from(layout.memory_span()).saturating_mul(buffer.dtype.bytes() as i128));
        let Some(bytes) = of_layout.or_else(|| constant_bytes(buffer)) else { return };
        let bytes = (bytes / sharers).saturating_mul(self.vector);
        let life = Life { place: Some((stmt, buffer)), bytes, first: self.now, last: 0 };
        self.index.insert(buffer.data.id(), self.lives.len());
        self.lives.push(life);
    }

    fn reads(&mut self, expr: &'k Expr) {
        for_each_load(expr, &mut Seen::default(), &mut |buffer, _| self.access(buffer));
    }

    /// Whether a named value is kept in memory: something that it reads is stored to before it is used. Others are
    /// computed where they are used.
    fn is_kept(&mut self, var: &Var, value: &Expr, body: &Stmt) -> bool {
        let mut read = FastSet::default();
        for_each_load(value, &mut Seen::default(), &mut |buffer, _| {
            read.insert(buffer.data.id());
        });
        for_each_expr(value, &mut |part| {
            if let Some(of_name) = part.as_var().and_then(|var| self.named.get(&var.id())) {
                read.extend(of_name);
            }
        });
        let (mut is_stored, mut is_kept) = (false, false);
        for_each_stmt(body, &mut |stmt| {
            let uses = |expr: &&Expr| uses_any(expr, std::slice::from_ref(var));
            is_kept |= is_stored && stmt_exprs(stmt).iter().any(uses);
            stmt.each_buffer(&mut |buffer, role| {
                is_stored |= role == Role::Written && read.contains(&buffer.data.id());
            });
        });
        if !is_kept {
            self.named.insert(var.id(), read);
        }
        is_kept
    }

    fn access(&mut self, buffer: &Buffer) {
        if let Some(&at) = self.index.get(&buffer.data.id()) {
            self.live(at, self.now);
        }
    }

    /// Notes that a memory is live at a time, in all loops around.
    fn live(&mut self, at: usize, time: usize) {
        let life = &mut self.lives[at];
        // From an allocation to the first access nothing is kept.
        life.first = if life.last == 0 { time } else { life.first.min(time) };
        life.last = life.last.max(time);
        if let Some(accessed) = self.loops.last_mut().filter(|accessed| accessed.last() != Some(&at)) {
            accessed.push(at);
        }
    }
}
