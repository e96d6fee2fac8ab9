//! The dispatcher by itself: what becomes of variants that decline late, and of those that fail.

use coulis_ir::stmt::TileOp;
use coulis_ir::{ExecScope, Site, Stmt, TileCall};
use coulis_tile::{
    Accuracy, Decline, Emitted, Need, Numerics, Op, REDUCTIONS, Refusal, Steps, TileError, Variant, dispatch,
    explain_call,
};

const NUMERICS: Numerics = Numerics { flushes_where_allowed: false, order: "none", longest_chain: "0" };

fn no_steps(_: &i64) -> Result<Steps, String> {
    Ok(Steps { longest: 0, elements: 1 })
}

/// An operation with a variant for each outcome; what they look at is the number that the call is about.
struct Outcomes;

impl Op for Outcomes {
    const NAME: &'static str = "tile.test";
    type Facts<'a> = i64;

    fn registry() -> &'static [&'static Variant<Outcomes>] {
        &[&FAILS, &LATE, &LAST]
    }

    fn accuracy(_: &i64, _: Steps, _: Numerics) -> Option<Accuracy> {
        None
    }
}

const NEGATIVE: Need<Outcomes> = Need {
    name: "sign",
    doc: "The number is negative.",
    check: |n| if *n < 0 { Ok(()) } else { Err(("a negative number".to_owned(), n.to_string())) },
};

const SMALL: Need<Outcomes> = Need {
    name: "size",
    doc: "The number is small.",
    check: |n| if *n < 100 { Ok(()) } else { Err(("less than 100".to_owned(), n.to_string())) },
};

/// Accepts negative numbers, and fails on them.
const FAILS: Variant<Outcomes> = Variant {
    name: "fails",
    aliases: &["old_name"],
    doc: "fails",
    priority: 20,
    needs: &[&NEGATIVE, &SMALL],
    numerics: NUMERICS,
    steps: no_steps,
    inputs: &[],
    emit: |n| Err(Refusal::Bug(format!("no idea what to do with {n}"))),
};

/// Declines 7, but only while it emits.
const LATE: Variant<Outcomes> = Variant {
    name: "late",
    aliases: &[],
    doc: "declines late",
    priority: 10,
    needs: &[&SMALL],
    numerics: NUMERICS,
    steps: no_steps,
    inputs: &[],
    emit: |n| match n {
        7 => Err(Refusal::Decline(Decline {
            need: "luck",
            wanted: "another number".to_owned(),
            found: "7".to_owned(),
        })),
        _ => Ok(nothing()),
    },
};

const LAST: Variant<Outcomes> = Variant {
    name: "last",
    aliases: &[],
    doc: "takes what is small",
    priority: 0,
    needs: &[&SMALL],
    numerics: NUMERICS,
    steps: no_steps,
    inputs: &[],
    emit: |_| Ok(nothing()),
};

fn nothing() -> Emitted {
    Emitted { registers: Vec::new(), shared: Vec::new(), body: Stmt::NOP }
}

fn call(forced: Option<&str>) -> TileCall {
    TileCall {
        op: TileOp::Copy,
        scope: ExecScope::Thread,
        dsts: Vec::new(),
        srcs: Vec::new(),
        dispatch: forced.map(str::to_owned),
        options: Vec::new(),
        site: Site::default(),
    }
}

fn chosen(n: i64, forced: Option<&str>) -> Result<&'static str, TileError> {
    dispatch::<Outcomes>(&call(forced), &n).map(|(variant, _)| variant.name)
}

#[test]
fn tile_5_11_a_call_that_nothing_accepts_gets_the_table_with_every_failed_need() {
    let error = chosen(200, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no variant of tile.test accepts the call:\n  \
         fails  20  declined  sign: wanted a negative number, found 200; size: wanted less than 100, found 200\n  \
         late   10  declined  size: wanted less than 100, found 200\n  \
         last    0  declined  size: wanted less than 100, found 200"
    );
}

#[test]
fn tile_5_11_a_forced_variant_that_does_not_exist_is_named() {
    assert_eq!(
        chosen(1, Some("first")).unwrap_err().to_string(),
        "`dispatch=\"first\"` names no variant of tile.test; there are `fails`, `late`, `last`"
    );
    assert_eq!(chosen(1, Some("last")), Ok("last"));
    assert!(matches!(chosen(1, Some("old_name")), Err(TileError::Forced { .. })));
}

#[test]
fn tile_5_11_a_variant_that_fails_is_a_bug_and_no_decline() {
    let error = chosen(-1, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "variant `fails` of tile.test accepted a call and failed on it: no idea what to do with -1"
    );
    assert!(matches!(error, TileError::Bug { variant: "fails", .. }));
}

#[test]
fn tile_5_11_the_search_goes_on_after_a_late_decline_and_the_table_says_why() {
    assert_eq!(chosen(7, None), Ok("last"));
    assert_eq!(chosen(8, None), Ok("late"));
    let rows = explain_call::<Outcomes>(&call(None), &7).unwrap();
    assert_eq!(
        coulis_tile::variant::table(&rows[1..]),
        "  late  10  declined  luck: wanted another number, found 7\n  last   0  chosen"
    );
}

#[test]
fn every_variant_that_combines_several_elements_looks_at_the_laws_of_the_reducer() {
    let asks = |variant: &&&Variant| variant.needs.iter().any(|need| need.name == "laws");
    let others: Vec<&str> = REDUCTIONS.iter().filter(|v| !asks(v)).map(|v| v.name).collect();
    assert_eq!(others, ["alone"]);
}
