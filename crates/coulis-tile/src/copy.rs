//! Copies: what their variants look at, and the list of these variants.

pub mod fallback;
pub mod vec_auto;

use coulis_ir::{DType, Element, Expr, Stmt};

use crate::block::constant;
use crate::call::{Call, Operand};
use crate::dispatch::Op;
use crate::need::{Answer, Need, wanted};
use crate::rounding::{Accuracy, Steps};
use crate::variant::{Numerics, Variant};

/// Copies.
pub struct CopyOp;

impl Op for CopyOp {
    const NAME: &'static str = "tile.copy";
    type Facts<'a> = CopyFacts<'a>;

    fn registry() -> &'static [&'static Variant<CopyOp>] {
        COPIES
    }

    fn accuracy(_: &CopyFacts<'_>, _: Steps, _: Numerics) -> Option<Accuracy> {
        None
    }
}

/// Copies combine nothing.
fn no_steps(_: &CopyFacts) -> Result<Steps, String> {
    Ok(Steps { longest: 0, elements: 1 })
}

/// Every variant of copies, highest priority first.
pub static COPIES: &[&Variant<CopyOp>] = &[&vec_auto::VARIANT, &fallback::VARIANT];

/// A copy as variants see it: one source and one destination.
#[derive(Clone, Debug)]
pub struct CopyFacts<'a> {
    /// What every call has.
    pub call: Call<'a>,
}

impl<'a> std::ops::Deref for CopyFacts<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        &self.call
    }
}

impl CopyFacts<'_> {
    fn dst(&self) -> &Operand {
        &self.call.dsts[0]
    }

    fn src(&self) -> &Operand {
        &self.call.srcs[0]
    }

    /// The extents that both regions run over: those of the source that are not 1.
    fn extents(&self) -> Vec<Expr> {
        counted(self.src()).map(|(_, extent)| extent.clone()).collect()
    }

    /// Where element `coords` of the extents above is in a region.
    fn element(operand: &Operand, coords: &[Expr]) -> Element {
        let mut coords = coords.iter();
        let full: Vec<Expr> = operand
            .region
            .ranges
            .iter()
            .map(|(_, extent)| match extent.is_int(1) {
                true => constant(0),
                false => coords.next().cloned().unwrap_or_else(|| constant(0)),
            })
            .collect();
        operand.element(&full)
    }

    /// The copy of one element.
    fn step(&self, coords: &[Expr]) -> Stmt {
        let Element { buffer, indices } = CopyFacts::element(self.dst(), coords);
        let from = CopyFacts::element(self.src(), coords);
        Stmt::Store { buffer, indices, value: Expr::load(from.buffer, from.indices) }
    }
}

/// The dimensions of a region whose extent is not 1.
fn counted(operand: &Operand) -> impl Iterator<Item = &(Expr, Expr)> {
    operand.region.ranges.iter().filter(|(_, extent)| !extent.is_int(1))
}

/// `expr` as digits of these extents, innermost last; the outermost takes the whole quotient.
fn digits(expr: &Expr, extents: &[Expr]) -> Vec<Expr> {
    let mut rest = expr.clone();
    let mut found = Vec::with_capacity(extents.len());
    for (at, extent) in extents.iter().enumerate().rev() {
        let extent = extent.clone().cast(DType::I32);
        if at == 0 {
            found.push(rest.clone());
        } else {
            found.push(rest.clone().floormod(extent.clone()));
            rest = rest.floordiv(extent);
        }
    }
    found.reverse();
    found
}

/// Source and destination have one element type.
const SAME_TYPE: Need<CopyOp> = Need {
    name: "types",
    doc: "Source and destination have one element type.",
    check: |facts| {
        let [to, from] = [facts.dst().tile().dtype, facts.src().tile().dtype];
        if to == from {
            return Ok(());
        }
        wanted("one element type", format!("{from} to {to}"))
    },
};

/// Source and destination run over the same extents, those of 1 aside.
const SAME_EXTENTS: Need<CopyOp> = Need {
    name: "extents",
    doc: "Source and destination run over the same extents, those of 1 aside.",
    check: |facts| {
        let extents =
            |operand: &Operand| counted(operand).map(|(_, extent)| extent.clone()).collect::<Vec<_>>();
        let [to, from] = [extents(facts.dst()), extents(facts.src())];
        let same = |a: &Expr, b: &Expr| match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        };
        if to.len() == from.len() && to.iter().zip(&from).all(|(a, b)| same(a, b)) {
            return Ok(());
        }
        let text = |extents: &[Expr]| {
            let texts: Vec<String> = extents.iter().map(coulis_ir::print::print_expr).collect();
            format!("({})", texts.join(", "))
        };
        wanted("the same extents", format!("{} to {}", text(&from), text(&to)))
    },
};

/// Every thread that takes part can address both operands.
const ADDRESSABLE: Need<CopyOp> = Need {
    name: "operands",
    doc: "Every thread that takes part can address both operands.",
    check: |facts| addressable(facts),
};

fn addressable(facts: &CopyFacts) -> Answer {
    use coulis_ir::{ExecScope, MemScope};
    for operand in [facts.src(), facts.dst()] {
        let tile = operand.tile();
        if operand.is_spread {
            return wanted(
                "memory that one thread can address",
                format!("`{}`, spread over threads", tile.name),
            );
        }
        let is_private = matches!(operand.scope(), MemScope::Local | MemScope::Warp);
        if is_private && facts.scope != ExecScope::Thread {
            let found =
                format!("`{}` in {} memory at {} scope", tile.name, tile.scope.name(), facts.scope.name());
            return wanted("memory that all threads of the scope share", found);
        }
    }
    Ok(())
}

/// The threads of the scope come together.
const TOGETHER: Need<CopyOp> = Need {
    name: "active threads",
    doc: "The threads of the scope come together.",
    check: |facts| match facts.participants() {
        Ok(_) if facts.scope == coulis_ir::ExecScope::Cluster => {
            wanted("one thread, a warp, a warpgroup or a cta", "a cluster")
        }
        Ok(_) => Ok(()),
        Err(found) => wanted("all threads of the scope", found),
    },
};
