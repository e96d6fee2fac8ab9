//! V21, V30 and V31 for whole warps: who reaches a shuffle, a vote, a barrier of some warps or one of a cluster.
//!
//! Every thread of the first block is followed to the statement, for the sizes of [`super::witness`]. A mask has to
//! name the caller and only lanes that come there; a warp barrier waits for all lanes of its warp, a named barrier
//! for as many threads as it says, that of a warpgroup for four warps. Where memory decides who comes, a mask that is no function of the same memory
//! (a ballot's, say) cannot fit, and is refused when it names lanes that other places in memory decide about.
//! Source: faults G1 and G2 (docs/sources.md); CUDA C++ Programming Guide, warp shuffle functions.

use std::rc::Rc;

use crate::hash::FastSet;

use super::company::Company;
use super::crowd::{Crowd, Crowds, needed};
use super::witness::{Arrival, Scene, Step, Thread};
use super::{Check, Group, InLaunch, Property, Report};
use crate::atom::{Atom, AtomCall, Signature};
use crate::eval::{Env, EvalError, eval_expr};
use crate::expr::{Expr, Node, VarId};
use crate::print::print_expr;
use crate::stmt::{Stmt, SyncKind};
use crate::visit::{for_each_expr, for_each_stmt};

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new("V30", "masks name the caller, and lanes that come to the statement"),
        Property::new("V31", "masks are not made of the lanes that happen to be active"),
    ],
    checks: &[Check::Launch(check_lanes)],
};

/// Checks shuffles, votes and barriers of warps in one launch.
fn check_lanes<'k>(at: &mut InLaunch<'_, 'k>, report: &mut Report<'k>) {
    let InLaunch { launched, scenes, target, ref mut crowds } = *at;
    let active = comes_from_active_lanes(launched.launch.body);
    let warp = target.warp.max(1) as usize;
    // Places and masks that were found right: the calls of one tree of shuffles have one place and one mask.
    let mut right: FastSet<(Vec<Step>, Expr)> = FastSet::default();
    launched.each_with_path(&mut |stmt, path| match stmt {
        Stmt::Atom(call) if takes_mask(call.atom) => {
            let Some(mask) = call.args.first() else { return };
            let name = call.atom.name();
            if is_tainted(mask, &active) {
                let text = format!(
                    "the mask of `{name}` is made of the lanes that happen to be active; name the lanes that take \
                     part, by the number of the lane"
                );
                report.at(stmt, "V31", text);
                return;
            }
            let place = (needed(path, &[launched.resolved(mask)]), mask.clone());
            if right.contains(&place) {
                return;
            }
            let mut places = scenes.iter().enumerate().map(|(at, scene)| Place { at, scene, path, warp });
            match places.find_map(|place| place.mask_fault(crowds, call, mask)) {
                Some(text) => report.at(stmt, "V30", text),
                None => {
                    right.insert(place);
                }
            }
        }
        Stmt::Sync(SyncKind::Cluster) => {
            let mut places = scenes.iter().enumerate().map(|(at, scene)| Place { at, scene, path, warp });
            let fault = places.find_map(|place| place.part_of_a_cluster());
            if let Some(text) = fault {
                report.at(stmt, "V21", format!("cluster barrier that {text}"));
            }
        }
        Stmt::Sync(SyncKind::Warp) => {
            let mut places = scenes.iter().enumerate().map(|(at, scene)| Place { at, scene, path, warp });
            let fault = places.find_map(|place| place.part_of_a_warp(crowds));
            if let Some(text) = fault {
                report.at(stmt, "V21", format!("warp barrier that {text}"));
            }
        }
        Stmt::Sync(SyncKind::Warpgroup(id)) => {
            let mut places = scenes.iter().enumerate().map(|(at, scene)| Place { at, scene, path, warp });
            if let Some(text) = places.find_map(|place| place.part_of_a_warpgroup(crowds)) {
                report.at(stmt, "V21", format!("warpgroup barrier {id} that {text}"));
            }
        }
        Stmt::Sync(SyncKind::Named { id, threads }) => {
            let count = *threads as usize;
            let mut places = scenes.iter().enumerate().map(|(at, scene)| Place { at, scene, path, warp });
            let fault = places.find_map(|place| {
                place.part_of_a_warp(crowds).or_else(|| {
                    let found = place.arriving(crowds)?;
                    let wrong = found != 0 && found != count;
                    wrong.then(|| format!("waits for {threads} threads is reached by {found}"))
                })
            });
            if let Some(text) = fault {
                report.at(stmt, "V21", format!("named barrier {id} that {text}"));
            }
        }
        _ => {}
    });
}

fn takes_mask(atom: Atom) -> bool {
    match atom.signature() {
        Signature::Shuffle | Signature::Ballot | Signature::Vote | Signature::Redux => true,
        Signature::Mask
        | Signature::Update
        | Signature::Exchange
        | Signature::Remote
        | Signature::Fence
        | Signature::Hint => false,
    }
}

/// Pointers of memory, and names, whose value comes from `tvm_warp_activemask`.
fn comes_from_active_lanes(body: &Stmt) -> FastSet<VarId> {
    let mut active: FastSet<VarId> = FastSet::default();
    loop {
        let before = active.len();
        for_each_stmt(body, &mut |stmt| {
            let new = match stmt {
                Stmt::Atom(call) if call.atom == Atom::ActiveMask => {
                    call.dst.as_ref().map(|e| e.buffer.data.id())
                }
                Stmt::Store { buffer, value, .. } if is_tainted(value, &active) => Some(buffer.data.id()),
                Stmt::Let { var, value, .. } if is_tainted(value, &active) => Some(var.id()),
                _ => None,
            };
            active.extend(new);
        });
        if active.len() == before {
            return active;
        }
    }
}

fn is_tainted(expr: &Expr, sources: &FastSet<VarId>) -> bool {
    if sources.is_empty() {
        return false;
    }
    let mut found = false;
    for_each_expr(expr, &mut |e| match e.node() {
        Node::Var(var) => found |= sources.contains(&var.id()),
        Node::Load(buffer, _) => found |= sources.contains(&buffer.data.id()),
        _ => {}
    });
    found
}

/// A statement in a launch.
struct Place<'s, 'k> {
    /// Position of the scene.
    at: usize,
    scene: &'s Scene<'s, 'k>,
    path: &'s [Step],
    warp: usize,
}

impl Place<'_, '_> {
    /// Why the mask is not that of the lanes that come.
    fn mask_fault(&self, crowds: &mut Crowds, call: &AtomCall, mask: &Expr) -> Option<String> {
        let name = call.atom.name();
        let value = self.scene.launched.resolved(mask);
        let text = || print_expr(mask);
        let mut env = self.scene.host_env();
        let mut crowd = self.crowd(crowds, std::slice::from_ref(&value)).after(&[]);
        let found = crowd.values(&value);
        // What memory holds is not known, and an element at a place that is known is nothing else.
        let is_memory = matches!(value.node(), Node::Load(_, at) if at.iter().all(|i| i.as_int().is_some()));
        let warps = crowd.arrivals.chunks(self.warp).zip(found.chunks(self.warp));
        for (w, (arrivals, found)) in warps.enumerate() {
            let first = w * self.warp;
            let here = (0..).zip(arrivals).fold(0u128, |here, (lane, arrival)| match arrival {
                Arrival::Comes | Arrival::Unknown => here | 1u128.checked_shl(lane).unwrap_or(0),
                Arrival::Absent => here,
            });
            let comes = |lane: &usize| !is_memory && arrivals[*lane] == Arrival::Comes;
            for lane in (0..arrivals.len()).filter(comes) {
                let named = match found[lane] {
                    Some(named) => named.as_int().map(Ok),
                    None => {
                        self.scene.arrival(self.path, &crowd.threads.at(first + lane), &mut env);
                        mask_of(&value, &mut env)
                    }
                };
                let named = match named {
                    Some(Ok(named)) => named,
                    Some(Err(error)) => {
                        return Some(format!(
                            "the mask `{}` of `{name}` has no value in lane {lane} of warp {w}: {error}",
                            text()
                        ));
                    }
                    None => continue,
                };
                if named >> lane & 1 == 0 {
                    return Some(format!(
                        "the mask `{}` of `{name}` is {named:#x} in lane {lane} of warp {w}, which does not name the caller",
                        text()
                    ));
                }
                let absent = (named as u128 & !here).trailing_zeros() as usize;
                if absent < 128.min(self.warp * 2) {
                    return Some(format!(
                        "the mask `{}` of `{name}` is {named:#x} in lane {lane} of warp {w}, and lane {absent}, \
                         which it names, does not come here",
                        text()
                    ));
                }
            }
            let lanes = (0..arrivals.len()).map(|lane| crowd.threads.at(first + lane));
            if let Some(fault) = self.decided_by_memory((name, mask), &value, lanes, &mut env) {
                return Some(fault);
            }
        }
        None
    }

    /// Why a mask that is the same whatever memory holds does not fit a condition on memory.
    fn decided_by_memory(
        &self,
        (name, written): (&str, &Expr),
        mask: &Expr,
        lanes: impl Iterator<Item = Thread>,
        env: &mut Env,
    ) -> Option<String> {
        let depth = self.path.iter().position(|step| match step {
            Step::Cond(cond, _) => cond.reads_memory(),
            Step::Loop(_, _, extent) => extent.reads_memory(),
            Step::Name(..) => false,
        })?;
        let decider = match self.path.get(depth)? {
            Step::Cond(cond, _) => cond,
            Step::Loop(_, _, extent) => extent,
            Step::Name(..) => return None,
        };
        let outer = self.path.get(..depth)?;
        let mut read_at = |thread: Thread| {
            if self.scene.arrival(outer, &thread, env) != Arrival::Comes {
                return None;
            }
            let named = self.scene.value(mask, env)?;
            Some((self.places_read(decider, env)?, named))
        };
        let all: Vec<_> = lanes.map(&mut read_at).collect();
        for (lane, here) in all.iter().enumerate() {
            let Some((places, named)) = here else { continue };
            let other = all.iter().enumerate().find(|(other, there)| {
                let differs = there.as_ref().is_some_and(|(p, _)| p != places);
                named >> other & 1 == 1 && differs
            });
            if let Some((other, _)) = other {
                return Some(format!(
                    "the mask `{}` of `{name}` names lanes {lane} and {other}, and `{}` may differ between them",
                    print_expr(written),
                    print_expr(decider)
                ));
            }
        }
        None
    }

    /// The places in memory that threads share and a value depends on; `None` where private memory takes part.
    fn places_read(&self, expr: &Expr, env: &mut Env) -> Option<Vec<(VarId, Vec<i128>)>> {
        let mut places = Vec::new();
        let mut known = true;
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, indices) = e.node() {
                let at: Option<Vec<i128>> = indices.iter().map(|i| self.scene.value(i, env)).collect();
                let shared = !matches!(buffer.scope, crate::MemScope::Local | crate::MemScope::Warp);
                known &= shared && at.is_some();
                places.push((buffer.data.id(), at.unwrap_or_default()));
            }
        });
        known.then_some(places)
    }

    /// The threads of the first block here, and what the expressions name.
    fn crowd(&self, crowds: &mut Crowds, used: &[Expr]) -> Rc<Crowd> {
        crowds.of((self.at, self.scene), Company::Block, needed(self.path, used))
    }

    /// Which lanes of a warp come, where some do and some do not.
    fn part_of_a_warp(&self, crowds: &mut Crowds) -> Option<String> {
        for (w, lanes) in self.crowd(crowds, &[]).arrivals.chunks(self.warp).enumerate() {
            let lane = |wanted| lanes.iter().position(|arrival| *arrival == wanted);
            if let (Some(here), Some(absent)) = (lane(Arrival::Comes), lane(Arrival::Absent)) {
                return Some(format!("lane {here} of warp {w} reaches and lane {absent} does not"));
            }
        }
        None
    }

    /// How many threads of a warpgroup come, where some do and others do not, or are not in the block.
    fn part_of_a_warpgroup(&self, crowds: &mut Crowds) -> Option<String> {
        let threads = 4 * self.warp;
        for (w, group) in self.crowd(crowds, &[]).arrivals.chunks(threads).enumerate() {
            let absent = group.iter().filter(|arrival| **arrival == Arrival::Absent).count();
            let found = group.len() - absent;
            if found < threads && group.contains(&Arrival::Comes) {
                return Some(format!("waits for {threads} threads is reached by {found} of warpgroup {w}"));
            }
        }
        None
    }

    /// Which blocks of the first cluster come, where some do and some do not. Threads of one block are another matter.
    fn part_of_a_cluster(&self) -> Option<String> {
        let mut env = self.scene.host_env();
        let [x, y, z] = self.scene.cluster;
        let blocks = (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
        let first = |block: [i128; 3]| Thread { block, thread: [0; 3] };
        let all: Vec<(Thread, Arrival)> =
            blocks.map(first).map(|t| (t, self.scene.arrival(self.path, &t, &mut env))).collect();
        let one = |wanted: Arrival| all.iter().find(|(_, found)| *found == wanted);
        let ((here, _), (absent, _)) = (one(Arrival::Comes)?, one(Arrival::Absent)?);
        Some(format!("{} reaches and {} does not", here.name(), absent.name()))
    }

    /// Threads of the block that come; `None` where memory decides.
    fn arriving(&self, crowds: &mut Crowds) -> Option<usize> {
        self.crowd(crowds, &[]).arrivals.iter().try_fold(0, |n, arrival| match arrival {
            Arrival::Comes => Some(n + 1),
            Arrival::Absent => Some(n),
            Arrival::Unknown => None,
        })
    }
}

/// The lanes that a mask names, or that the machine says nothing of it; `None` where memory decides.
fn mask_of(mask: &Expr, env: &mut Env) -> Option<Result<i128, EvalError>> {
    match eval_expr(mask, env) {
        Ok(value) => value.as_int().map(Ok),
        Err(error @ EvalError::DivisionByZero) => Some(Err(error)),
        Err(_) => None,
    }
}
