//! A launch that asks for it becomes what the last block of the launch before it does.
//!
//! `launch { first }` and a marked `launch { second }` become one launch whose blocks each do `first` and
//! take a ticket, and of which the block with the highest ticket does `second`. The marked launch has one
//! block, or one for each group of blocks that have an index in common with it; then each group has tickets
//! of its own, where each is shown to leave its block all that this reads, and where not, the launch stays
//! one of its own. It has either as many threads along each axis as the one before, or fewer whole warps
//! along x, whose threads then never wait for all of a block; the other threads of the last block are done.
//! What `second` computes, and in which order, stays the same, so results do; what is saved is a launch.
//! Order: after everything that looks at launches one by one.
//!
//! Source: threadFenceReduction in NVIDIA's samples (the last block to finish folds what all left).

use coulis_ir::hash::FastMap;

use coulis_ir::expr::{Expr, Var};
use coulis_ir::remark::IN_LAST_BLOCK;
use coulis_ir::ticket::Tickets;
use coulis_ir::visit::{for_each_stmt, rewrite_stmt};
use coulis_ir::{DType, Form, Kernel, Stmt, SyncKind, ThreadTag};

use crate::binders::substituted;
use crate::blocks_apart::{Region, blocks_are_apart};
use crate::pass::{LowerError, Options, Pass};
use crate::walk::try_map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "finish_in_last_block",
    from: Form::Flat,
    to: Form::Flat,
    run: finish_in_last_block,
    doc: "moves a launch that asks for it into the last block of the launch before it",
};

/// Moves marked launches into the last block of those before them.
pub fn finish_in_last_block(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    let mut join = Join { name: &kernel.name, warp: i128::from(options.target.warp), tickets: Vec::new() };
    let body = join.host(kernel.body)?;
    let body = join.tickets.into_iter().rev().fold(body, |body, tickets| tickets.with_counter(body));
    Ok(Kernel { body, ..kernel })
}

/// A launch: its indices and what its threads execute.
struct Launch {
    indices: Vec<(ThreadTag, Var, Expr)>,
    body: Stmt,
}

impl Launch {
    fn of(stmt: Stmt) -> Launch {
        let (mut indices, mut body) = (Vec::new(), stmt);
        while let Stmt::LaunchThread { tag, var, extent, body: inner } = body {
            indices.push((tag, var, extent));
            body = *inner;
        }
        Launch { indices, body }
    }

    fn stmt(self) -> Stmt {
        self.indices.into_iter().rev().fold(self.body, |body, (tag, var, extent)| Stmt::LaunchThread {
            tag,
            var,
            extent,
            body: Box::new(body),
        })
    }

    /// Extent along an index; `None` where it is not a constant.
    fn extent(&self, tag: ThreadTag) -> Option<i128> {
        self.indices.iter().find(|(own, ..)| *own == tag).map_or(Some(1), |(_, _, extent)| extent.as_int())
    }

    /// Its blocks, where they are a constant of at least 1.
    fn n_blocks(&self) -> Option<i128> {
        let blocks = [ThreadTag::BlockX, ThreadTag::BlockY, ThreadTag::BlockZ];
        let n = blocks.into_iter().try_fold(1i128, |n, tag| n.checked_mul(self.extent(tag)?));
        n.filter(|n| (1..=i128::from(u32::MAX)).contains(n))
    }

    fn threads(&self) -> [Option<i128>; 3] {
        [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ].map(|tag| self.extent(tag))
    }

    /// Whether its threads wait for more than their warp.
    fn has_barriers(&self) -> bool {
        let mut found = false;
        for_each_stmt(&self.body, &mut |s| found |= matches!(s, Stmt::Sync(kind) if *kind != SyncKind::Warp));
        found
    }
}

struct Join<'k> {
    name: &'k str,
    warp: i128,
    tickets: Vec<Tickets>,
}

impl Join<'_> {
    /// A statement of the host.
    fn host(&mut self, stmt: Stmt) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::Seq(stmts) => {
                let mut out: Vec<Stmt> = Vec::with_capacity(stmts.len());
                for stmt in stmts {
                    let next = match stmt {
                        Stmt::Annotate { key, body, .. } if key == IN_LAST_BLOCK => {
                            match out.pop_if(|s| matches!(s, Stmt::LaunchThread { .. })) {
                                Some(before) => self.joined(Launch::of(before), Launch::of(*body))?,
                                None => return Err(refused("there is no launch right before it")),
                            }
                        }
                        other => self.host(other)?,
                    };
                    out.push(next);
                }
                Ok(Stmt::seq(out))
            }
            Stmt::Annotate { key, .. } if key == IN_LAST_BLOCK => {
                Err(refused("there is no launch right before it"))
            }
            Stmt::LaunchThread { .. } => Ok(stmt),
            other => try_map_children(other, &mut |s| self.host(s)),
        }
    }

    fn joined(&mut self, first: Launch, mut second: Launch) -> Result<Stmt, LowerError> {
        let Some(n_blocks) = first.n_blocks() else {
            return Err(refused("the launch before it has a number of blocks that is not a constant"));
        };
        let group = common_index(&first, &second)?;
        if group.as_ref().is_some_and(|group| !group.is_apart) {
            return Ok(Stmt::seq([first.stmt(), second.stmt()]));
        }
        let (own, wanted) = (first.threads(), second.threads());
        let condition = if own == wanted {
            None
        } else {
            match (own, wanted) {
                ([Some(all), Some(1), Some(1)], [Some(few), Some(1), Some(1)])
                    if few < all && few % self.warp == 0 && (few == self.warp || !second.has_barriers()) =>
                {
                    // Where a block is one warp, its barriers are that warp's.
                    second.body = rewrite_stmt(second.body, &mut |_| None, &mut |s| match s {
                        Stmt::Sync(_) => Stmt::Sync(SyncKind::Warp),
                        other => other,
                    });
                    Some(few)
                }
                _ => {
                    let text = "its threads are neither those of the launch before it nor fewer whole warps \
                                along x that wait for no others";
                    return Err(refused(text));
                }
            }
        };
        let mut values = FastMap::default();
        for (tag, var, _) in &second.indices {
            let mine = first.indices.iter().find(|(other, ..)| other == tag);
            let mine = mine.filter(|_| tag.is_thread() || group.as_ref().is_some_and(|g| g.tag == *tag));
            let value = mine.map_or(Expr::int(0), |(_, mine, _)| mine.expr());
            values.insert(
                var.clone(),
                if value.dtype() == var.dtype() { value } else { value.cast(var.dtype()) },
            );
        }
        let mut last = substituted(second.body, &values);
        let x = first.indices.iter().find(|(tag, ..)| *tag == ThreadTag::ThreadX).map(|(_, var, _)| var);
        if let (Some(few), Some(x)) = (condition, x) {
            last = Stmt::if_(x.expr().lt(Expr::int_of(few, x.dtype())), last);
        }
        let threads = first.indices.iter().filter(|(tag, _, n)| tag.is_thread() && !n.is_int(1));
        let is_zero = threads.map(|(_, var, _)| var.expr().equal(Expr::int_of(0, var.dtype())));
        let name = match self.tickets.len() {
            0 => self.name.to_owned(),
            n => format!("{}.{n}", self.name),
        };
        let n_groups = group.as_ref().map_or(1, |g| g.extent);
        let row = group.map_or(Expr::int(0), |g| g.var.expr());
        let is_first = is_zero.reduce(|a, b| a.and(b));
        let tickets = Tickets::new(&name, Expr::int_of(n_groups, row.dtype()), row, is_first);
        let highest = Expr::int_of(n_blocks / n_groups - 1, DType::U32);
        let last = tickets.around(&highest, Stmt::if_(tickets.is_last(), last));
        self.tickets.push(tickets);
        Ok(Launch { body: Stmt::seq([first.body, last]), ..first }.stmt())
    }
}

/// An index that blocks of both launches have.
struct Group {
    tag: ThreadTag,
    var: Var,
    extent: i128,
    /// Whether blocks of the second read only what those of their index leave.
    is_apart: bool,
}

/// The index of the second launch's blocks, which is to be one of the first's too; none where it has one block.
///
/// Errors: it is not.
fn common_index(first: &Launch, second: &Launch) -> Result<Option<Group>, LowerError> {
    let mut found: Option<Group> = None;
    let mut values = FastMap::default();
    for (tag, own, extent) in second.indices.iter().filter(|(tag, ..)| !tag.is_thread()) {
        if extent.is_int(1) {
            continue;
        }
        let (Some(extent), Some((_, var, _))) =
            (extent.as_int(), first.indices.iter().find(|(other, ..)| other == tag))
        else {
            return Err(refused("it has blocks that the launch before it does not have"));
        };
        if first.extent(*tag) != Some(extent) || found.is_some() {
            return Err(refused("its blocks are not those of one index of the launch before it"));
        }
        let mine = var.expr();
        values.insert(own.clone(), if mine.dtype() == own.dtype() { mine } else { mine.cast(own.dtype()) });
        found = Some(Group { tag: *tag, var: var.clone(), extent, is_apart: false });
    }
    if let Some(group) = &mut found {
        let of = |launch: &Launch| launch.indices.iter().map(|(_, v, n)| (v.clone(), n.clone())).collect();
        let after = substituted(second.body.clone(), &values);
        let mut indices: Vec<(Var, Expr)> = of(second);
        indices.extend(of(first).into_iter().filter(|(var, _)| *var == group.var));
        let (before, after) =
            (Region { indices: of(first), body: &first.body }, Region { indices, body: &after });
        let above = first.indices.iter().find(|(tag, ..)| !tag.is_thread() && *tag != group.tag);
        group.is_apart = blocks_are_apart(&before, &after, &group.var, above.map(|(_, var, _)| var));
    }
    Ok(found)
}

fn refused(reason: &'static str) -> LowerError {
    LowerError::LastBlock { reason }
}
