//! Over a grid of calls: two variants of one priority never accept the same call, and some variant accepts each.

use coulis_ir::stmt::Region;
use coulis_ir::{Buffer, DType, ExecScope, Expr, Lambda, MemScope, Reducer, Target, ThreadTag, Var};
use coulis_tile::{
    ActiveSet, Block, Call, Digit, Facts, Groups, NamedBarriers, Operand, Options, REDUCTIONS, ReduceOp,
    ThreadIndex, Verdict,
};

fn max_of(dtypes: &[DType]) -> Reducer {
    let vars = |name: &str| -> Vec<Var> { dtypes.iter().map(|&d| Var::new(name, d)).collect() };
    let (x, y) = (vars("x"), vars("y"));
    let body = x.iter().zip(&y).map(|(x, y)| x.expr().max(y.expr())).collect();
    let params = x.into_iter().chain(y).collect();
    Reducer::plain(Lambda { params, body }, dtypes.iter().map(|&d| Expr::constant(0, d)).collect())
}

/// Calls `check` with the facts of a block of `extents` (x, y, z) that folds over the dimensions of `reduced`.
fn with_facts(
    extents: [u32; 3],
    reduced: [bool; 3],
    dtypes: &[DType],
    warp: u32,
    check: &mut dyn FnMut(&Facts),
) {
    let tags = [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ];
    let index = |(tag, extent): (ThreadTag, u32)| {
        let var = Var::new(tag.name(), DType::I32);
        ThreadIndex { tag, var, extent }
    };
    let block = Block::new(tags.into_iter().zip(extents).map(index).collect());
    let weights = [1, extents[0], extents[0] * extents[1]];
    let digits = |wanted: bool| -> Vec<Digit> {
        let mut digits: Vec<Digit> = Vec::new();
        for dim in (0..3).rev().filter(|&d| reduced[d] == wanted && extents[d] > 1) {
            let digit = Digit { extent: extents[dim], stride: weights[dim] };
            match digits.last_mut() {
                Some(outer) if outer.stride == digit.extent * digit.stride => {
                    *outer = Digit { extent: outer.extent * digit.extent, stride: digit.stride };
                }
                _ => digits.push(digit),
            }
        }
        digits
    };
    let reducer = max_of(dtypes);
    let operands: Vec<Operand> = dtypes
        .iter()
        .map(|&d| Buffer::new("t", d, vec![Expr::int(1)], MemScope::Local))
        .map(|register| Operand {
            region: Region::whole(&register),
            register,
            is_spread: true,
            differs_in_cluster: false,
        })
        .collect();
    let target = Target::simulated(warp);
    let (active, barriers) = (ActiveSet::all(block.n_threads()), NamedBarriers::default());
    let call = Call {
        target: &target,
        scope: ExecScope::Cta,
        cluster: None,
        block: &block,
        active: &active,
        barriers: &barriers,
        dsts: operands.clone(),
        srcs: operands,
        options: Options::default(),
        repeated_along: None,
    };
    check(&Facts {
        call,
        reducer: &reducer,
        accum: false,
        reduced: vec![0],
        groups: Ok(Groups { spatial: digits(false), reduce: digits(true) }),
    });
}

/// The variant that is chosen, after a look at all that accept.
fn chosen(facts: &Facts) -> &'static str {
    let rows = coulis_tile::explain::<ReduceOp>(facts, None);
    let accepts = |at: &usize| !matches!(rows[*at].verdict, Verdict::Declined(_));
    let accepting: Vec<usize> = (0..rows.len()).filter(accepts).collect();
    for pair in accepting.windows(2) {
        let (a, b) = (REDUCTIONS[pair[0]], REDUCTIONS[pair[1]]);
        assert!(a.priority > b.priority, "{} and {}: {facts:?}", a.name, b.name);
    }
    let first = rows.iter().find(|r| r.verdict == Verdict::Chosen).map(|r| r.name);
    first.unwrap_or_else(|| panic!("no variant: {facts:?}"))
}

#[test]
fn one_variant_of_a_priority_accepts_a_call_and_some_variant_always_does() {
    let mut seen: Vec<&str> = Vec::new();
    for warp in [32, 64] {
        for x in [1, 2, 3, 4, 8, 11, 12, 16, 20, 26, 32, 48, 64, 96, 100, 128, 201, 256, 512, 1024] {
            for (y, z) in [(1, 1), (2, 1), (3, 2), (4, 4), (1, 3), (16, 1), (32, 1), (8, 8)] {
                if x * y * z > 1024 {
                    continue;
                }
                for reduced in 1..8u32 {
                    let reduced = [reduced & 1 != 0, reduced & 2 != 0, reduced & 4 != 0];
                    for dtypes in [&[DType::F32][..], &[DType::Bool], &[DType::I64, DType::F16]] {
                        with_facts([x, y, z], reduced, dtypes, warp, &mut |facts| seen.push(chosen(facts)));
                    }
                }
            }
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["alone", "shared_tree", "warp_shuffle", "warp_shuffle_two_stage"]);
}

#[test]
fn states_that_do_not_fit_in_shared_memory_are_declined_at_the_limit() {
    // 1024 states of 227 bytes fit in 227 KiB, which a block may ask for; one byte more a state does not.
    let fitting = [&[DType::F64; 28][..], &[DType::Bool; 3]].concat();
    for (dtypes, fits) in [(fitting.clone(), true), ([&fitting[..], &[DType::Bool]].concat(), false)] {
        with_facts([2, 512, 1], [false, true, false], &dtypes, 32, &mut |facts| {
            let rows = coulis_tile::explain::<ReduceOp>(facts, None);
            let chosen = rows.iter().any(|row| row.verdict == Verdict::Chosen);
            assert_eq!(chosen, fits, "{}", coulis_tile::variant::table(&rows));
        });
    }
}

#[test]
fn names_are_unique_and_priorities_descend() {
    assert!(REDUCTIONS.windows(2).all(|pair| pair[0].priority >= pair[1].priority));
    for (at, variant) in REDUCTIONS.iter().enumerate() {
        assert!(REDUCTIONS[..at].iter().all(|other| other.name != variant.name), "{}", variant.name);
        assert!(!variant.doc.is_empty() && !variant.inputs.is_empty(), "{}", variant.name);
    }
}
