//! Iterations of a parallel loop that are followed one by one, for the sizes of [`super::witness`]: two that meet are shown, and
//! what is not shown is not claimed.
//!
//! Followed are iterations from both ends of the loop and about the numbers that stand in the places (a remainder by a thousand begins
//! anew after so many), with the first ones of loops inside. Places and conditions that come from memory are not known.

use std::collections::HashMap;

use super::witness::{Sample, Step, samples};
use crate::buffer::Buffer;
use crate::eval::{Env, Value, eval_expr};
use crate::expr::{Expr, Node, Var};
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::simplify::Analyzer;
use crate::stmt::Stmt;
use crate::visit::{for_each_expr, uses_any};

/// Iterations that are followed from each end, and to both sides of a number.
const FROM_ENDS: i128 = 16;
/// See [`FROM_ENDS`].
const ABOUT: i128 = 1;
/// Iterations of a loop inside.
const INSIDE: i128 = 8;
/// Places that are looked at for one loop, about.
const MOST: usize = 1 << 11;

/// A store or a read of memory that is not one iteration's own, by any iteration.
pub(super) struct Access<'k> {
    /// The statement; of a read that of the store that may meet it is told.
    pub stmt: &'k Stmt,
    /// What is read or stored.
    pub buffer: Buffer,
    /// Where.
    pub place: Vec<Expr>,
    /// Loops and branches inside the loop that stand around it.
    pub path: Vec<Step>,
    /// Whether it stores.
    pub stores: bool,
}

/// A parallel loop.
pub(super) struct Loop<'a> {
    /// Its index.
    pub var: &'a Var,
    /// The first value of that.
    pub min: &'a Expr,
    /// Iterations.
    pub extent: &'a Expr,
    /// Loops, names and branches around it.
    pub around: &'a [Step],
}

/// A multiple of a loop's index, with what is beside it.
struct Multiple {
    /// How many times the index.
    of: i128,
    /// What is the same in all iterations, and is not known.
    beside: Vec<(Expr, i128)>,
    /// The least and the most of the rest.
    least: i128,
    /// See `least`.
    most: i128,
}

/// Two iterations that meet.
pub(super) struct Meeting<'k> {
    /// The store.
    pub store: &'k Stmt,
    /// The iterations, counted from 0.
    pub iterations: (i128, i128),
    /// Whether the second one reads what the first one stores, and does not store it itself.
    pub reads: bool,
}

impl Loop<'_> {
    /// Two iterations of which one stores what the other stores or reads; the accesses are those of one buffer.
    pub fn meeting<'k>(&self, kernel: &Kernel, accesses: &[&Access<'k>]) -> Option<Meeting<'k>> {
        if !accesses.iter().any(|access| access.stores) || self.lie_apart(accesses) {
            return None;
        }
        samples(kernel).iter().find_map(|sample| self.meeting_in(sample, accesses))
    }

    /// Whether bounds show that iterations are apart in one dimension: the index is a multiple of the loop's, with less beside it
    /// than that multiple, and what is not known of it is the same in all accesses.
    fn lie_apart(&self, accesses: &[&Access]) -> bool {
        let n_dims = accesses[0].place.len();
        accesses.iter().all(|access| access.place.len() == n_dims)
            && (0..n_dims).any(|d| self.are_apart_along(d, accesses))
    }

    fn are_apart_along(&self, d: usize, accesses: &[&Access]) -> bool {
        let of_each: Option<Vec<Multiple>> =
            accesses.iter().map(|access| self.multiple(&access.place[d], &access.path)).collect();
        let Some(all) = of_each else { return false };
        let is_same = |other: &Multiple| other.of == all[0].of && other.beside == all[0].beside;
        let least = all.iter().map(|one| one.least).min().unwrap_or(0);
        let most = all.iter().map(|one| one.most).max().unwrap_or(0);
        all.iter().all(is_same) && all[0].of.abs() > most - least
    }

    /// An index as a multiple of the loop's and what is beside it.
    fn multiple(&self, index: &Expr, path: &[Step]) -> Option<Multiple> {
        let (base, reach) = match index.node() {
            Node::Ramp(base, step) => (base, step.as_int()? * (i128::from(index.lanes()) - 1)),
            _ => (index, 0),
        };
        let sum = Analyzer::new().linear(base)?;
        let (least, most) = (sum.constant + reach.min(0), sum.constant + reach.max(0));
        let mut found = Multiple { of: 0, beside: Vec::new(), least, most };
        for (term, coeff) in sum.terms {
            let inside = path.iter().find_map(|step| match step {
                Step::Loop(var, min, extent) if term.as_var() == Some(var) => Some((min, extent)),
                _ => None,
            });
            if term.as_var() == Some(self.var) {
                found.of = coeff;
            } else if let Some((min, extent)) = inside {
                let (min, extent) = (min.as_int()?, extent.as_int()?);
                let ends = [coeff * min, coeff * (min + extent.max(1) - 1)];
                found.least += ends[0].min(ends[1]);
                found.most += ends[0].max(ends[1]);
            } else if self.varies(&term, path) {
                return None;
            } else {
                found.beside.push((term, coeff));
            }
        }
        found.beside.sort_by_key(|(term, _)| print_expr(term));
        Some(found)
    }

    /// Whether a term may differ between iterations, or between those of loops inside.
    fn varies(&self, term: &Expr, path: &[Step]) -> bool {
        let inside = path.iter().filter_map(|step| match step {
            Step::Loop(var, ..) | Step::Name(var, _) => Some(var.clone()),
            Step::Cond(..) => None,
        });
        let vars: Vec<Var> = inside.chain([self.var.clone()]).collect();
        uses_any(term, &vars) || term.reads_memory()
    }

    fn meeting_in<'k>(&self, sample: &Sample, accesses: &[&Access<'k>]) -> Option<Meeting<'k>> {
        let mut env = sample.env();
        let mut comes = false;
        follow(self.around, &mut env, 1, &mut |_| comes = true);
        if !comes {
            return None;
        }
        let (first, n) = (int(self.min, &mut env)?, int(self.extent, &mut env)?);
        let iterations = self.iterations(n, accesses, &mut env);
        let budget = (MOST / iterations.len().max(1) / accesses.len()).max(1);
        let mut stored: HashMap<Vec<i128>, (i128, &'k Stmt)> = HashMap::new();
        // Stores first, so that reads find those of later iterations.
        for access in accesses.iter().filter(|a| a.stores).chain(accesses.iter().filter(|a| !a.stores)) {
            for &iteration in &iterations {
                env.set(self.var, Value::Int(first + iteration));
                let mut found = None;
                let mut left = budget;
                follow(&access.path, &mut env, INSIDE, &mut |env| {
                    if left == 0 || found.is_some() {
                        return;
                    }
                    left -= 1;
                    for place in places(&access.place, env) {
                        match stored.get(&place) {
                            Some((other, store)) if *other != iteration => {
                                let (store, reads) =
                                    (if access.stores { access.stmt } else { store }, !access.stores);
                                found = Some(Meeting { store, iterations: (*other, iteration), reads });
                            }
                            Some(_) => {}
                            None if access.stores => {
                                stored.insert(place, (iteration, access.stmt));
                            }
                            None => {}
                        }
                    }
                });
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// The iterations that are followed, of so many.
    fn iterations(&self, n: i128, accesses: &[&Access], env: &mut Env) -> Vec<i128> {
        let mut about = vec![0, n - 1];
        for access in accesses {
            for index in &access.place {
                for_each_expr(index, &mut |e| {
                    if let Node::Binary(_, _, number) = e.node() {
                        about.extend(int(number, env));
                    }
                });
            }
        }
        let mut found: Vec<i128> = (0..FROM_ENDS).flat_map(|i| [i, n - 1 - i]).collect();
        found.extend(about.iter().flat_map(|at| (-ABOUT..=ABOUT).map(move |i| at.saturating_add(i))));
        found.retain(|i| (0..n).contains(i));
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn int(expr: &Expr, env: &mut Env) -> Option<i128> {
    eval_expr(expr, env).ok()?.as_int()
}

/// Calls `f` where the path leads to, once for each combination of the first `most` iterations of its loops; never where that is not
/// known.
fn follow<'e>(path: &[Step], env: &mut Env<'e>, most: i128, f: &mut impl FnMut(&mut Env<'e>)) {
    let Some((step, rest)) = path.split_first() else { return f(env) };
    match step {
        Step::Name(var, value) => {
            match eval_expr(value, env) {
                Ok(value) => env.set(var, value),
                Err(_) => env.unset(var),
            }
            follow(rest, env, most, f);
        }
        Step::Cond(cond, wanted) => {
            if eval_expr(cond, env).is_ok_and(|value| value.is_true() == *wanted) {
                follow(rest, env, most, f);
            }
        }
        Step::Loop(var, min, extent) => {
            let (Some(first), Some(n)) = (int(min, env), int(extent, env)) else { return };
            for i in 0..n.min(most) {
                env.set(var, Value::Int(first + i));
                follow(rest, env, most, f);
            }
        }
    }
}

/// The elements that a place names, one a lane; none that is not known.
fn places(place: &[Expr], env: &mut Env) -> Vec<Vec<i128>> {
    let lanes = place.last().map_or(1, Expr::lanes);
    let of_lane = |lane: u32, env: &mut Env| -> Option<Vec<i128>> {
        let index = |e: &Expr, env: &mut Env| match e.node() {
            Node::Ramp(base, step) => Some(int(base, env)? + int(step, env)? * i128::from(lane)),
            _ if e.lanes() == 1 => int(e, env),
            _ => None,
        };
        place.iter().map(|e| index(e, env)).collect()
    };
    (0..lanes).filter_map(|lane| of_lane(lane, env)).collect()
}
