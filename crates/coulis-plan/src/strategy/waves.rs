//! How many blocks of a launch run at once, and into how many it is cut so that few of these wait for the last of them.

use coulis_ir::Target;

use super::ceil_div;

/// Registers of a thread beside those of its states.
const OTHER_REGISTERS: i64 = 28;

/// Parts that blocks which are fewer than those that run at once are cut into: as many as do, or one more where that would leave
/// more than a quarter of these idle and there is room for `most`.
pub fn filled(n_blocks: i64, at_once: i64, most: i64) -> i64 {
    let parts = at_once / n_blocks.max(1);
    let is_idle = parts > 0 && 4 * parts * n_blocks < 3 * at_once;
    if is_idle && (parts + 1) * n_blocks <= most { parts + 1 } else { parts }
}

/// Parts that blocks which are not many times those that run at once are cut into, so that few of these wait for the last: the
/// fewest that cost them a sixth of their time at most.
pub fn balanced(n_blocks: i64, at_once: i64) -> i64 {
    [1, 2, 4, 8].into_iter().find(|parts| is_busy(n_blocks.saturating_mul(*parts), at_once)).unwrap_or(1)
}

/// Turns of each of so many parts of `turns`, but for the last, that are whole steps of `unroll` turns; `None` where that would make
/// the parts much longer, or fewer. What is left of a step is under conditions, and each read of it waits for the one before.
pub fn whole_turns(turns: i64, parts: i64, unroll: i64) -> Option<i64> {
    const LITTLE: i64 = 8;
    let each = ceil_div(turns, parts);
    let whole = ceil_div(each, unroll) * unroll;
    let is_little = LITTLE * (whole - each) <= each;
    (parts > 1 && is_little && ceil_div(turns, whole) == parts).then_some(whole)
}

/// About as many chunks as wanted of so many pieces: a divisor of their number where there is one, so that no piece of a
/// chunk is missing.
pub fn chunks_of(pieces: i64, wanted: i64) -> i64 {
    if pieces <= wanted {
        return pieces;
    }
    let near = |n: &i64| pieces % n == 0;
    (0..wanted / 2).flat_map(|by| [wanted + by, wanted - by]).find(near).unwrap_or(wanted)
}

/// About so many parts of `turns` turns that are whole steps of `unroll` turns each, but for the last part; no more of them where
/// `is_crowd`, as they all run at once.
pub fn whole_steps(turns: i64, parts: i64, unroll: i64, is_crowd: bool) -> i64 {
    let each = ceil_div(turns, parts);
    if each <= unroll || each % unroll == 0 {
        return parts;
    }
    let more = if is_crowd { unroll - 1 } else { unroll / 2 };
    ceil_div(turns, (each + more) / unroll * unroll)
}

/// How several long `pieces`, each of so many turns, are cut into about `parts` parts, none of which is of two pieces: how many these
/// are, and the turns of each but the last of a piece, `fewest` of them at least. `None` where pieces are short, or parts are better of
/// several.
pub fn cut_pieces(
    (pieces, of_piece): (i64, i64),
    parts: i64,
    fewest: i64,
    whole: &dyn Fn(i64, i64) -> Option<i64>,
) -> Option<(i64, i64)> {
    const LONG: i64 = 4;
    if parts < 2 || !(2..2 * parts).contains(&pieces) || of_piece < LONG * fewest {
        return None;
    }
    let parts = ((2 * parts + pieces) / (2 * pieces)).clamp(1, (of_piece / fewest).max(1));
    let each = whole(of_piece, parts).unwrap_or(ceil_div(of_piece, parts));
    Some((pieces * ceil_div(of_piece, each), each))
}

/// Whether strips are better twice as wide, where neighbours both read the sector in which one ends and the next begins: where
/// `one` of them are well more than the blocks that run at once, unless those `two` would leave more of these to wait. Measured:
/// `bench/results/h100-experiments.md`.
pub fn are_better_wide(one: i64, two: i64, at_once: i64) -> bool {
    let at_once = at_once.max(1);
    // Of the time of all waves, the part in which blocks run, in thousandths.
    let busy = |blocks: i64| match at_once / blocks.max(1) {
        0 => 1000 * blocks / (at_once * ceil_div(blocks, at_once)),
        parts => 1000 * parts * blocks / at_once,
    };
    8 * one > 9 * at_once && busy(two) >= busy(one)
}

/// Blocks of so many threads that a multiprocessor is to hold: enough to keep the memory busy, for which so many threads are, and no
/// more than their threads have registers for, each with so many bytes of states.
pub fn resident(target: &Target, threads: i64, states: i64, busy: i64) -> i64 {
    let busy = (busy / threads.max(1)).max(1);
    blocks_by(target, threads, registers(states)).clamp(1, busy)
}

/// Blocks that each of so many multiprocessors is to hold of those of one launch, at most `most` and, where they do not all run at
/// once, at least `least`: as many as leave few of them to wait for at the end. 0 where that cannot be had.
pub fn held(n_blocks: i64, n_multiprocessors: i64, least: i64, most: i64) -> i64 {
    if n_blocks <= n_multiprocessors * most {
        return ceil_div(n_blocks, n_multiprocessors);
    }
    (least..=most).rev().find(|held| is_busy(n_blocks, n_multiprocessors * held)).unwrap_or(0)
}

/// Whether blocks of which so many run at once wait for the last of them no more than a sixth of their time.
fn is_busy(n_blocks: i64, at_once: i64) -> bool {
    6 * n_blocks >= 5 * at_once * ceil_div(n_blocks, at_once)
}

/// Registers of a thread with so many bytes of states, about.
pub fn registers(states: i64) -> i64 {
    OTHER_REGISTERS + states * 3 / 8
}

/// Blocks of so many threads that a multiprocessor has registers for, so many a thread.
pub fn blocks_by(target: &Target, threads: i64, registers: i64) -> i64 {
    i64::from(target.multiprocessor.registers) / (threads.max(1) * registers)
}

/// Whether a few registers more would leave a multiprocessor fewer of such blocks: then the compiler is told how many it is to hold,
/// since parts are made for so many.
pub fn is_close(target: &Target, threads: i64, states: i64, busy: i64) -> bool {
    const FEW: i64 = 8;
    blocks_by(target, threads, registers(states) + FEW) < resident(target, threads, states, busy)
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;
    use coulis_reducers::ReducerRequest;

    use super::*;
    use crate::plan::choose;
    use crate::strategy::near_rows::tests::spec;

    #[test]
    fn rows_are_kept_where_there_is_one_for_each_multiprocessor_that_the_machine_has() {
        for (arch, n_multiprocessors) in [("sm_80", 108), ("sm_86", 84), ("sm_89", 142)] {
            let target = Target::cuda(arch).unwrap();
            for (n_rows, is_kept) in [(n_multiprocessors, true), (n_multiprocessors - 1, false)] {
                let rows = spec("softmax", ReducerRequest::new(&[DType::F32]), &[n_rows, 16_384], 1);
                let name = choose(&rows, &target).unwrap().strategy.name;
                assert_eq!(name == "gpu_kept_rows", is_kept, "{n_rows} rows on {arch}: {name}");
            }
        }
    }

    #[test]
    fn strips_are_twice_as_wide_where_they_are_more_than_run_at_once() {
        let of = |one: i64| are_better_wide(one, ceil_div(one, 2), 528);
        assert_eq!([126, 528, 594, 595, 1047].map(of), [false, false, false, true, true]);
        assert!(!are_better_wide(1568, 784, 528), "half of the second wave would wait");
        assert!(are_better_wide(2, 1, 0), "a machine of fewer threads than a block");
    }

    #[test]
    fn parts_are_whole_steps_but_for_the_last() {
        for (turns, parts, is_crowd, found) in [
            (29_400, 2112, false, 1838),
            (489, 122, false, 123),
            (489, 122, true, 62),
            (512, 128, false, 128),
            // Less than a step each.
            (300, 122, false, 122),
        ] {
            assert_eq!(whole_steps(turns, parts, 4, is_crowd), found, "{turns} in {parts}");
        }
    }

    #[test]
    fn chunks_hold_as_many_pieces_each_where_a_near_number_of_them_does() {
        assert_eq!(chunks_of(7, 100), 7);
        assert_eq!(chunks_of(4096, 1056), 1024);
        assert_eq!(chunks_of(228_261, 1056), 1056, "which is 3 times 11 times a prime");
    }
}
