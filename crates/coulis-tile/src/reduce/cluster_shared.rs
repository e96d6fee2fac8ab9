//! `cluster_shared`: the blocks of a cluster fold tiles that each of them has a part of.
//!
//! Each block folds its own part as `shared` does, and leaves the states in its shared memory. After a
//! barrier of the cluster threads read the states of all blocks, in the order of the blocks, and combine
//! them; a second one lets no block end, or fold again, before its states have been read. Where results are
//! in shared memory or registers every block gets them, with the same bits; into global memory the first
//! block writes them. The elements of a result are those of the first block, then those of the second, and so
//! on.
//!
//! Source: CUDA C++ Programming Guide, thread block clusters and distributed shared memory.

use coulis_ir::{Atom, AtomCall, Buffer, ExecScope, Expr, MemScope, Stmt};

use crate::block::{constant, scaled};
use crate::call::{Cluster, Operand};
use crate::facts::Facts;
use crate::need::{
    ALL_THREADS, NO_LANES, NO_THREAD_REDUCE, Need, OLD_VALUE, ONE_WRITER, SHUFFLES, SIZES, THREADS, claimed,
    wanted,
};
use crate::overlap::APART;
use crate::reduce::cooperative::{self, Fold};
use crate::reduce::state::{State, at, registers_of, store_all, value};
use crate::reduce::walk::{Walk, affine, is_private, repeat};
use crate::reduce::{Instructions, element, shared_states};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "cluster_shared",
    aliases: &[],
    doc: "the blocks of a cluster fold a part each, and read the states of one another from distributed shared memory",
    priority: 5,
    needs: &[
        &THREADS,
        &SCOPE,
        &CLUSTERS,
        &OPERANDS,
        &PARTS,
        &NO_LANES,
        &NO_THREAD_REDUCE,
        &ALL_THREADS,
        &SIZES,
        &APART,
        &ONE_WRITER,
        &STATES,
        &SHUFFLES,
    ],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "in each block as `shared`, then blocks ascending",
        longest_chain: "`blocks - 1` more than that of `shared` for the part of a block",
    },
    steps,
    inputs: &[
        ("blocks of a cluster", "one read of another block's memory, and one combination, each"),
        ("length, outputs, axes, threads", "of a block's part, as for `shared`"),
        (
            "destination",
            "shared memory: every block gets the results; registers: every thread does; global memory: the first \
             block writes",
        ),
        ("`accum=True`", "the old value is combined once, when the total is stored"),
    ],
    emit,
};

/// The scope is a cluster.
const SCOPE: Need = Need {
    name: "scope",
    doc: "The scope is a cluster, and the grid has clusters.",
    check: |facts| match (facts.scope, &facts.cluster) {
        (ExecScope::Cluster, Some(_)) => Ok(()),
        (ExecScope::Cluster, None) => {
            wanted("blocks in clusters, by `T.cta_id_in_cluster`", "a grid without clusters")
        }
        (ExecScope::Thread, _) => wanted("a cluster", "one thread"),
        (ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta, _) => {
            wanted("a cluster", format!("a {}", facts.scope.name()))
        }
    },
};

/// The machine has clusters of as many blocks as the call's.
const CLUSTERS: Need = Need {
    name: "clusters",
    doc: "The machine has clusters of so many blocks: CUDA from `sm_90` on, up to 8.",
    check: |facts| {
        let (arch, most) = (&facts.target.arch, facts.target.cluster_blocks);
        match (facts.scope, &facts.cluster) {
            (ExecScope::Cluster, _) if most <= 1 => {
                wanted("a machine with clusters, as sm_90 and later have", arch.clone())
            }
            (ExecScope::Cluster, Some(cluster)) if cluster.blocks.n_threads() > most => {
                wanted(format!("at most {most} ctas in a cluster"), cluster.blocks.n_threads().to_string())
            }
            _ => Ok(()),
        }
    },
};

/// Each block has a part of the sources; destinations are in one kind of memory.
const OPERANDS: Need = Need {
    name: "operands",
    doc: "Each block has a part of the sources of its own, in shared memory or at a place of its own in global \
          memory, which the one block of a cluster of one has anyway; destinations stand all in shared memory, all \
          in registers of one thread, or all in global memory, where the blocks of a cluster name one place.",
    check: |facts| {
        if facts.scope != ExecScope::Cluster {
            return Ok(());
        }
        let described = |o: &Operand| {
            let spread = if o.is_spread { ", spread over threads" } else { "" };
            format!("`{}` in {} memory{spread}", o.tile().name, o.scope().name())
        };
        let is_alone = facts.cluster.as_ref().is_some_and(|cluster| cluster.blocks.n_threads() == 1);
        for src in &facts.srcs {
            match src.scope() {
                MemScope::Shared | MemScope::SharedDyn => {}
                MemScope::Global if src.differs_in_cluster || is_alone => {}
                MemScope::Global => {
                    let found =
                        format!("`{}` in global memory, of which all blocks name one part", src.tile().name);
                    return wanted("a part of its own for each block", found);
                }
                MemScope::Warp | MemScope::Local => {
                    return wanted("sources in shared or global memory", described(src));
                }
            }
        }
        let Some(first) = facts.dsts.first() else { return Ok(()) };
        for dst in &facts.dsts {
            let is_one_place = dst.scope() == MemScope::Global && !dst.differs_in_cluster;
            match dst.scope() {
                MemScope::Global if !is_one_place => {
                    let found = format!("`{}`, of which each block may name another part", dst.tile().name);
                    return wanted("one place for the results of a cluster", found);
                }
                _ if !dst.is_shared() && !is_private(dst) && !is_one_place => {
                    return wanted("results in shared or global memory or in registers", described(dst));
                }
                _ if place_of(dst) != place_of(first) => {
                    let found = format!("{} and {}", described(first), described(dst));
                    return wanted("destinations in one kind of memory", found);
                }
                _ => {}
            }
        }
        Ok(())
    },
};

/// The parts of the blocks follow one another, and are combined in order.
const PARTS: Need = Need {
    name: "laws",
    doc: "The reducer claims to be associative where there are several blocks, or an old value takes part: states of \
          parts that follow one another are combined in order.",
    check: |facts| {
        let n_blocks = facts.cluster.as_ref().map_or(1, |cluster| cluster.blocks.n_threads());
        match n_blocks > 1 && !facts.reducer.claims.associative {
            false => (OLD_VALUE.check)(facts),
            true => {
                wanted("a reducer that is associative for parts of several blocks", claimed(facts.reducer))
            }
        }
    },
};

/// What a block exchanges with others, and its warps among themselves, fits in its shared memory.
const STATES: Need = Need {
    name: "shared memory",
    doc: "What a block exchanges with others, and its warps among themselves, fits in its shared memory.",
    check: |facts| {
        let (Ok(staging), Ok(walk)) = (cooperative::shared_bytes(facts), Walk::of(facts)) else {
            return Ok(());
        };
        let bytes = staging + State::bytes(facts.reducer) * u64::from(walk.n_outputs());
        let limit = u64::from(facts.target.block.shared_bytes);
        match bytes <= limit {
            true => Ok(()),
            false => wanted(format!("states of at most {limit} bytes in all"), format!("{bytes} bytes")),
        }
    },
};

/// Who writes a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One thread of each block.
    Block,
    /// Every thread.
    Thread,
    /// One thread of the first block.
    Grid,
}

fn place_of(dst: &Operand) -> Place {
    match dst.scope() {
        MemScope::Shared | MemScope::SharedDyn => Place::Block,
        MemScope::Warp | MemScope::Local => Place::Thread,
        MemScope::Global => Place::Grid,
    }
}

fn cluster_of<'f>(facts: &'f Facts) -> Result<&'f Cluster, String> {
    facts.cluster.as_ref().ok_or_else(|| "a grid without clusters".to_owned())
}

fn steps(facts: &Facts) -> Result<Steps, String> {
    let (part, n_blocks) = (cooperative::steps(facts)?, u64::from(cluster_of(facts)?.blocks.n_threads()));
    let elements = part.elements * n_blocks;
    Ok(Steps { elements, ..Steps::chain(n_blocks).over(part) })
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let cluster = cluster_of(facts).map_err(Refusal::Bug)?;
    let walk = Walk::of(facts).map_err(Refusal::Bug)?;
    let together = facts.participants().map_err(Refusal::Bug)?;
    let (n_blocks, n_outputs) = (cluster.blocks.n_threads(), walk.n_outputs());
    let number = cluster.blocks.linear();
    let states = shared_states("cluster_state", facts.reducer, n_outputs);

    let begin = scaled(number.clone(), walk.n_elements());
    let Fold { state, mut registers, mut shared, mut stmts, sync } =
        cooperative::fold(facts, Instructions::default(), &begin, &|state, p| {
            let places: Vec<_> = states.iter().map(|b| element(b, p)).collect();
            store_all(&places, state.values())
        })?;
    stmts.push(sync.clone());

    let remote = registers_of(facts.reducer, "remote");
    let total = |p: &Expr| {
        let one_block = |block: &Expr| {
            let reads = states.iter().zip(&remote).map(|(from, to)| read(from, p, block, to));
            let values: Vec<Expr> = remote.iter().map(value).collect();
            Stmt::seq(reads.chain([state.merge(&values)]))
        };
        Stmt::seq([
            state.clear(),
            repeat("block", n_blocks, one_block),
            state.finish_onto(&walk.outputs(facts, p), facts.accum),
        ])
    };
    let place = facts.dsts.first().map_or(Place::Block, place_of);
    let totals = match place {
        Place::Thread => repeat("p", n_outputs, total),
        Place::Block | Place::Grid => {
            let rank = together.rank(facts.block);
            repeat("step", n_outputs.div_ceil(together.n_threads), |step| {
                let p = affine(step, together.n_threads, &rank);
                match n_outputs.is_multiple_of(together.n_threads) {
                    true => total(&p),
                    false => Stmt::if_(p.clone().lt(constant(n_outputs)), total(&p)),
                }
            })
        }
    };
    stmts.push(match place {
        Place::Grid if n_blocks > 1 => Stmt::if_(number.equal(constant(0)), totals),
        Place::Grid | Place::Block | Place::Thread => totals,
    });
    stmts.push(sync);
    registers.extend(remote.iter().cloned());
    shared.extend(states.iter().cloned());
    Ok(Emitted { registers, shared, body: Stmt::seq(stmts) })
}

/// Reads a state's field from a block's memory into a register.
fn read(from: &Buffer, p: &Expr, block: &Expr, to: &Buffer) -> Stmt {
    Stmt::Atom(Box::new(AtomCall {
        atom: Atom::ClusterLoad,
        dst: Some(at(to)),
        memory: Some(element(from, p)),
        args: vec![block.clone()],
    }))
}
