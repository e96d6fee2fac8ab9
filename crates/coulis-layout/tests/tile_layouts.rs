//! The worked examples of layouts, one table a derived operation, and random layouts against the definition.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use coulis_layout::{LayoutError, Swizzle, TileLayout, thread_axis_unit};
use proptest::prelude::*;

/// From a coordinate to steps along axes.
type Places<'a> = &'a dyn Fn(&[i64]) -> Vec<(&'static str, i64)>;

type Iters<'a> = &'a [(i64, i64, &'a str)];

fn s(iters: Iters) -> TileLayout {
    TileLayout::sharded(iters)
}

/// The place without the axes on which it is 0.
fn place(layout: &TileLayout, coord: &[i64], shape: &[i64]) -> BTreeMap<String, i64> {
    let mut at = layout.apply(coord, shape).unwrap();
    at.retain(|_, v| *v != 0);
    at
}

/// Every coordinate of a shape, row-major.
fn coords(shape: &[i64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![Vec::new()], |all, &n| {
        let longer = |c: &Vec<i64>| (0..n).map(|i| [&c[..], &[i]].concat()).collect::<Vec<_>>();
        all.iter().flat_map(longer).collect()
    })
}

#[track_caller]
fn check_text(layout: &TileLayout, want: &str) {
    assert_eq!(layout.to_string(), format!("TileLayout({want})"));
}

#[track_caller]
fn check_places(layout: &TileLayout, shape: &[i64], want: Places) {
    for coord in coords(shape) {
        let want: BTreeMap<String, i64> =
            want(&coord).into_iter().filter(|(_, v)| *v != 0).map(|(k, v)| (k.to_owned(), v)).collect();
        assert_eq!(place(layout, &coord, shape), want, "{coord:?} of {layout}");
    }
}

/// The accumulator of a warp's matrix product: (8, 8) tiles of pairs of registers over 8 by 4 lanes.
fn accumulator() -> TileLayout {
    let pair = TileLayout::row_major(&[1, 2]);
    let tile = pair.tiled(&[1, 2], &s(&[(8, 4, "laneid"), (4, 1, "laneid")]), &[8, 4]).unwrap();
    tile.tiled(&[8, 8], &s(&[(2, 1, "m"), (16, 2, "m")]), &[2, 16]).unwrap()
}

#[test]
fn e1_rows_lie_one_after_the_other() {
    check_places(&TileLayout::row_major(&[4, 8]), &[4, 8], &|c| vec![("m", 8 * c[0] + c[1])]);
    let part = TileLayout::row_major(&[32, 32]).slice(&[32, 32], &[(1, 5), (1, 8)]).unwrap().unwrap();
    check_text(&part, "S[(5, 8) : (32, 1)] + 33");
}

#[test]
fn e2_elements_are_spread_over_lanes_and_warps_and_stand_twice() {
    let tile = s(&[(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")])
        .replicated(&[(2, 4, "warpid")])
        .moved(5, "warpid");
    check_places(&tile, &[8, 16], &|c| {
        vec![("laneid", 4 * c[0] + c[1] / 2 % 4), ("warpid", 5 + c[1] / 8), ("m", c[1] % 2)]
    });
    assert_eq!((tile.span("laneid"), tile.span("warpid"), tile.span("m")), (32, 1 + 1 + 4 + 5, 2));
}

#[test]
fn e3_a_vector_over_lanes_is_reduced_to_one_element_in_all_of_them() {
    let lanes = s(&[(32, 1, "laneid")]);
    check_places(&lanes, &[32], &|c| vec![("laneid", c[0])]);
    let whole = s(&[(1, 1, "m")]).replicated(&[(32, 1, "laneid")]);
    assert_eq!(lanes.reduced(&[32], &[0]).unwrap(), whole.canonical());
}

#[test]
fn e4_registers_are_reduced_over_lanes_one_by_one() {
    let tile = s(&[(32, 1, "laneid"), (4, 1, "m")]);
    check_places(&tile, &[32, 4], &|c| vec![("laneid", c[0]), ("m", c[1])]);
    assert_eq!(tile.reduced(&[32, 4], &[0]).unwrap(), s(&[(4, 1, "m")]).replicated(&[(32, 1, "laneid")]));
}

#[test]
fn e5_an_accumulator_is_tiles_of_tiles() {
    let tile = accumulator();
    check_text(&tile, "S[(2, 8, 16, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]");
    check_places(&tile, &[16, 128], &|c| {
        vec![("laneid", 4 * (c[0] % 8) + c[1] % 8 / 2), ("m", 2 * (c[0] / 8) + 4 * (c[1] / 8) + c[1] % 2)]
    });
    check_text(&tile.storage(), "S[(2, 16, 2) : (2, 4, 1)]");
    assert_eq!((tile.storage().size(), tile.memory_span()), (64, 64));
    let groups = tile.group(&[16, 128]).unwrap();
    assert_eq!([groups[0].len(), groups[1].len()], [2, 3]);
}

#[test]
fn e6_its_rows_reduced_keep_a_copy_in_each_lane_of_a_quad() {
    let tile = s(&[(2, 1, "m"), (32, 1, "laneid")]);
    check_places(&tile, &[16, 4], &|c| vec![("laneid", 4 * (c[0] % 8) + c[1]), ("m", c[0] / 8)]);
    let groups = tile.group(&[16, 4]).unwrap();
    assert_eq!(groups[0], s(&[(2, 1, "m"), (8, 4, "laneid")]).shard);
    assert_eq!(groups[1], s(&[(4, 1, "laneid")]).shard);
}

#[test]
fn e7_rows_of_a_warpgroup() {
    let tile = s(&[(128, 1, "tid_in_wg"), (16, 1, "m")]);
    check_places(&tile, &[128, 16], &|c| vec![("tid_in_wg", c[0]), ("m", c[1])]);
    assert_eq!((tile.memory_span(), tile.is_distributed()), (16, true));
}

#[test]
fn e8_registers_with_gaps_out_of_order() {
    let tile = s(&[(32, 1, "laneid"), (2, 2, "m"), (2, 4, "m")]);
    let storage = tile.storage();
    assert_eq!((storage.size(), tile.memory_span()), (4, 7));
    let order: Vec<i64> = (0..4).map(|i| storage.apply(&[i], &[4]).unwrap()["m"]).collect();
    assert_eq!(order, [0, 4, 2, 6]);
}

#[test]
fn layouts_are_made_in_each_of_their_forms() {
    check_text(&TileLayout::row_major(&[8]), "S[8]");
    check_text(&s(&[(8, 4, "laneid"), (2, 1, "m")]), "S[(8, 2) : (4 @ laneid, 1)]");
    check_text(&s(&[(1, 1, "m")]).replicated(&[(32, 1, "laneid")]), "S[1] + R[32 : 1 @ laneid]");
    check_text(&TileLayout::row_major(&[4]).moved(5, "warpid").moved(64, "m"), "S[4] + 5 @ warpid + 64");
}

#[test]
fn several_offsets_add_up() {
    let tile = TileLayout::row_major(&[4]).moved(3, "m").moved(2, "laneid").moved(5, "m").moved(-2, "laneid");
    check_places(&tile, &[4], &|c| vec![("m", c[0] + 8)]);
    check_text(&tile.canonical(), "S[4] + 8");
}

#[test]
fn the_canonical_form_fuses_what_continues() {
    let m = "m";
    for (shard, want) in [
        (&[(1, 7, m)][..], &[][..]),
        (&[(4, 8, m), (8, 1, m)], &[(32, 1, m)]),
        (&[(4, 16, m), (8, 1, m)], &[(4, 16, m), (8, 1, m)]),
        (&[(2, 64, m), (4, 16, m), (16, 1, m)], &[(128, 1, m)]),
        (&[(4, 8, m), (1, 3, "laneid"), (8, 1, m)], &[(32, 1, m)]),
        (&[(4, 8, m), (2, 1, "laneid"), (8, 1, m)], &[(4, 8, m), (2, 1, "laneid"), (8, 1, m)]),
        (&[(8, 4, "laneid"), (4, 1, "laneid"), (2, 1, m)], &[(32, 1, "laneid"), (2, 1, m)]),
        (&[(8, 1, m), (4, 8, m)], &[(8, 1, m), (4, 8, m)]),
        (&[(4, 0, m), (8, 1, m)], &[(4, 0, m), (8, 1, m)]),
        (&[(3, 10, m), (5, 2, m)], &[(15, 2, m)]),
        (&[(2, -2, m), (2, -1, m)], &[(4, -1, m)]),
    ] {
        assert_eq!(s(shard).canonical(), s(want), "{}", s(shard));
    }
    let replicas = s(&[]).replicated(&[(2, 4, "warpid"), (4, 1, "laneid"), (1, 9, m), (2, 2, "laneid")]);
    let sorted = s(&[]).replicated(&[(4, 1, "laneid"), (2, 2, "laneid"), (2, 4, "warpid")]);
    assert_eq!(replicas.canonical(), sorted);
    assert_eq!(TileLayout::row_major(&[4]).moved(0, m).canonical(), TileLayout::row_major(&[4]));
}

#[test]
fn thread_axes_become_the_widest_scope_among_them() {
    let cases: &[(Iters, Iters)] = &[
        (&[(4, 1, "wid_in_wg"), (32, 1, "laneid"), (2, 1, "m")], &[(128, 1, "tid_in_wg"), (2, 1, "m")]),
        (&[(8, 1, "warpid"), (32, 1, "laneid")], &[(256, 1, "tx")]),
        (&[(2, 1, "wgid"), (128, 1, "tid_in_wg")], &[(256, 1, "tx")]),
        (&[(2, 1, "wgid"), (4, 1, "wid_in_wg"), (32, 1, "laneid")], &[(256, 1, "tx")]),
        (&[(2, 1, "wgid"), (4, 1, "wid_in_wg")], &[(8, 1, "warpid")]),
        (&[(32, 1, "laneid"), (2, 1, "m")], &[(32, 1, "laneid"), (2, 1, "m")]),
        (&[(32, 1, "laneid"), (4, 1, "wid_in_wg")], &[(32, 1, "tid_in_wg"), (4, 32, "tid_in_wg")]),
        // Lanes of warpgroups, without a word on the warp, hang together with nothing.
        (&[(2, 1, "wgid"), (32, 1, "laneid")], &[(2, 1, "wgid"), (32, 1, "laneid")]),
        (&[(2, 1, "bx"), (8, 1, "warpid"), (32, 1, "laneid")], &[(2, 1, "bx"), (256, 1, "tx")]),
    ];
    for (shard, want) in cases {
        assert_eq!(s(shard).canonical_on(32), s(want), "{}", s(shard));
    }
    let wide = s(&[(4, 1, "wid_in_wg"), (64, 1, "laneid")]).moved(1, "wid_in_wg").moved(3, "laneid");
    assert_eq!(wide.canonical_on(64), s(&[(256, 1, "tid_in_wg")]).moved(67, "tid_in_wg"));
    assert!(!s(&[(2, 1, "wgid"), (32, 1, "laneid")]).is_connected());
    assert_eq!(
        ["laneid", "warpid", "wgid", "m"].map(|a| thread_axis_unit(a, 64)),
        [Some(1), Some(64), Some(256), None]
    );
}

#[test]
fn tiles_are_shared_out_over_threads() {
    let check =
        |inner: TileLayout, inner_shape: &[i64], outer: TileLayout, outer_shape: &[i64], want: &str| {
            check_text(&inner.tiled(inner_shape, &outer, outer_shape).unwrap(), want);
        };
    // A fragment of a matrix product, a block's tile over warps, a quad, and a tile that all warps hold.
    check(
        TileLayout::row_major(&[1, 2]),
        &[1, 2],
        s(&[(8, 4, "laneid"), (4, 1, "laneid")]),
        &[8, 4],
        "S[(32, 2) : (1 @ laneid, 1)]",
    );
    check(
        s(&[(32, 1, "laneid"), (4, 1, "m")]),
        &[32, 4],
        s(&[(4, 1, "warpid")]),
        &[4, 1],
        "S[(4, 32, 4) : (1 @ warpid, 1 @ laneid, 1)]",
    );
    check(
        TileLayout::row_major(&[2, 2]),
        &[2, 2],
        s(&[(4, 1, "laneid")]).replicated(&[(8, 4, "laneid")]),
        &[2, 2],
        "S[(2, 2, 2, 2) : (2 @ laneid, 2, 1 @ laneid, 1)] + R[8 : 4 @ laneid]",
    );
    check(
        s(&[(32, 1, "laneid")]),
        &[32],
        s(&[(1, 1, "m")]).replicated(&[(4, 1, "warpid")]).moved(2, "warpid"),
        &[1],
        "S[32 : 1 @ laneid] + R[4 : 1 @ warpid] + 2 @ warpid",
    );
}

#[test]
fn copies_fill_a_larger_shape() {
    let atom = s(&[(8, 4, "laneid"), (4, 1, "laneid"), (2, 1, "m")]);
    let filled = atom.tiled_to(&[8, 8], &[16, 16]).unwrap();
    check_text(&filled, "S[(2, 8, 2, 4, 2) : (4, 4 @ laneid, 2, 1 @ laneid, 1)]");
    assert!(matches!(atom.tiled_to(&[8, 8], &[16, 12]), Err(LayoutError::Tiles { .. })));
    assert!(matches!(atom.tiled_to(&[8, 8], &[16]), Err(LayoutError::Tiles { .. })));
}

#[test]
fn sizes_and_spans_count_an_axis() {
    let tile =
        s(&[(4, 16, "laneid"), (8, 1, "m"), (2, 8, "laneid")]).replicated(&[(2, 16, "m")]).moved(5, "m");
    assert_eq!((tile.size(), tile.size_along("laneid"), tile.size_along("m")), (64, 8, 8));
    assert_eq!((tile.span("laneid"), tile.span("m")), (1 + 48 + 8, 1 + 7 + 16 + 5));
    assert_eq!((tile.span("warpid"), tile.memory_span()), (1, 29));
}

#[test]
fn a_part_is_laid_out_like_the_whole() {
    let m = "m";
    for (shard, shape, region, want) in [
        (&[(8, 1, m)][..], &[8][..], &[(2, 3)][..], Some("S[3] + 2")),
        (&[(4, 8, m), (8, 1, m)], &[32], &[(8, 16)], Some("S[16] + 8")),
        (&[(4, 16, m), (8, 1, m)], &[32], &[(8, 16)], Some("S[(2, 8) : (16, 1)] + 16")),
        (&[(4, 16, m), (8, 1, m)], &[32], &[(10, 4)], Some("S[4] + 18")),
        // Half of one period and half of the next.
        (&[(4, 16, m), (8, 1, m)], &[32], &[(12, 8)], Some("S[(2, 4) : (12, 1)] + 20")),
        (&[(4, 16, m), (8, 1, m)], &[32], &[(6, 4)], Some("S[(2, 2) : (10, 1)] + 6")),
        (&[(4, 16, m), (8, 1, m)], &[32], &[(6, 6)], None),
        (&[(2, 1, "laneid"), (8, 1, m)], &[16], &[(4, 8)], None),
        (
            &[(4, 2, m), (8, 1, "laneid"), (2, 1, m)],
            &[32, 2],
            &[(8, 8), (0, 2)],
            Some("S[(8, 2) : (1 @ laneid, 1)] + 2"),
        ),
        (
            &[(4, 2, m), (8, 1, "laneid"), (2, 1, m)],
            &[32, 2],
            &[(8, 24), (1, 1)],
            Some("S[(3, 8) : (2, 1 @ laneid)] + 3"),
        ),
        (&[(32, 1, "laneid")], &[32], &[(16, 16)], Some("S[16 : 1 @ laneid] + 16 @ laneid")),
    ] {
        let found = s(shard).slice(shape, region).unwrap().map(|l| l.to_string());
        assert_eq!(found, want.map(|w| format!("TileLayout({w})")), "{region:?} of {}", s(shard));
    }
    let whole = TileLayout::row_major(&[8]);
    for (region, ok) in [((0, 8), true), ((7, 1), true), ((0, 9), false), ((8, 1), false), ((3, 0), false)] {
        assert_eq!(whole.slice(&[8], &[region]).is_ok(), ok, "{region:?}");
    }
    assert!(matches!(whole.slice(&[8], &[]), Err(LayoutError::Rank { wanted: 1, found: 0 })));
}

#[test]
fn dimensions_change_places() {
    let tile = accumulator();
    let turned = tile.permuted(&[16, 128], &[1, 0]).unwrap();
    for coord in [[0, 0], [8, 9], [15, 127], [3, 70]] {
        assert_eq!(place(&turned, &[coord[1], coord[0]], &[128, 16]), place(&tile, &coord, &[16, 128]));
    }
    for order in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert!(matches!(tile.permuted(&[16, 128], order), Err(LayoutError::Order { .. })), "{order:?}");
    }
}

#[test]
fn a_swizzle_permutes_addresses_within_its_blocks() {
    for swizzle in [
        Swizzle { per_element: 2, swizzle_len: 3, atom_len: 3 },
        Swizzle { per_element: 0, swizzle_len: 1, atom_len: 4 },
        Swizzle { per_element: 3, swizzle_len: 0, atom_len: 3 },
    ] {
        let block = 1 << (swizzle.per_element + swizzle.swizzle_len + swizzle.atom_len);
        let mut images: Vec<i64> = (0..block).map(|a| swizzle.apply(a)).collect();
        images.sort_unstable();
        assert!(images.into_iter().eq(0..block));
        assert!((0..256).all(|a| swizzle.apply(swizzle.apply(a)) == a), "{swizzle:?} is its own inverse");
    }
    let tile =
        TileLayout::row_major(&[8, 32]).swizzled(Swizzle { per_element: 2, swizzle_len: 3, atom_len: 3 });
    check_places(&tile, &[8, 32], &|c| vec![("m", 32 * c[0] + ((c[1] / 4) ^ c[0]) * 4 + c[1] % 4)]);
}

/// The place by the definition: the row-major position, split digit by digit.
fn defined(layout: &TileLayout, coord: &[i64], shape: &[i64]) -> BTreeMap<String, i64> {
    let flat = coord.iter().zip(shape).fold(0, |at, (c, n)| at * n + c);
    let mut at: BTreeMap<String, i64> = BTreeMap::new();
    let mut weight = layout.shard.iter().map(|it| it.extent).product::<i64>();
    for it in &layout.shard {
        weight /= it.extent;
        *at.entry(it.step.axis.clone()).or_default() += flat / weight % it.extent * it.step.stride;
    }
    for offset in &layout.offset {
        *at.entry(offset.axis.clone()).or_default() += offset.stride;
    }
    at.retain(|_, v| *v != 0);
    at
}

fn any_iter() -> impl Strategy<Value = (i64, i64, &'static str)> {
    (1i64..5, -3i64..20, prop::sample::select(vec!["m", "laneid", "warpid"]))
}

fn any_layout(most: usize) -> impl Strategy<Value = TileLayout> {
    let offset = prop::collection::vec((-4i64..9, prop::sample::select(vec!["m", "laneid"])), 0..3);
    (prop::collection::vec(any_iter(), 1..most), offset).prop_map(|(shard, offset)| {
        offset.into_iter().fold(s(&shard), |layout, (distance, axis)| layout.moved(distance, axis))
    })
}

/// A shape that the layout's iterators fill dimension by dimension, some dimensions made of two of them.
fn any_shaped(most: usize) -> impl Strategy<Value = (TileLayout, Vec<i64>)> {
    (any_layout(most), prop::collection::vec(any::<bool>(), most)).prop_map(|(layout, joins)| {
        let mut shape: Vec<i64> = Vec::new();
        for (it, join) in layout.shard.iter().zip(joins) {
            match shape.last_mut() {
                Some(last) if join => *last *= it.extent,
                _ => shape.push(it.extent),
            }
        }
        (layout, shape)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_random_layout_places_elements_as_defined((layout, shape) in any_shaped(5)) {
        for coord in coords(&shape) {
            let want = defined(&layout, &coord, &shape);
            prop_assert_eq!(&place(&layout, &coord, &shape), &want);
            prop_assert_eq!(&place(&layout.canonical(), &coord, &shape), &want);
        }
        let grouped: Vec<_> = layout.group(&shape).unwrap();
        for (iters, n) in grouped.iter().zip(&shape) {
            prop_assert_eq!(iters.iter().map(|it| it.extent).product::<i64>(), *n);
        }
        // The iterators of the dimensions one after another are the layout.
        let shard = grouped.into_iter().flatten().collect();
        let regrouped = TileLayout { shard, ..layout.clone() };
        for coord in coords(&shape) {
            prop_assert_eq!(place(&regrouped, &coord, &shape), defined(&layout, &coord, &shape));
        }
    }

    #[test]
    fn a_random_layout_splits_iterators_where_a_shape_asks_for_it(
        (layout, shape) in any_shaped(5),
        at in 0usize..5,
    ) {
        // A dimension of 4 that one iterator fills, as two of 2.
        let at = at % shape.len();
        let mut split = shape.clone();
        if shape[at] % 2 == 0 {
            split.splice(at..=at, [2, shape[at] / 2]);
        }
        // The dimensions the other way round, whose boundaries are where no iterators meet.
        let turned = shape.iter().rev().copied().collect();
        for shape in [split, turned] {
            let Ok(grouped) = layout.group(&shape) else { continue };
            for (iters, n) in grouped.iter().zip(&shape) {
                prop_assert_eq!(iters.iter().map(|it| it.extent).product::<i64>(), *n);
            }
            let shard = grouped.into_iter().flatten().collect();
            let regrouped = TileLayout { shard, ..layout.clone() };
            for coord in coords(&shape) {
                prop_assert_eq!(place(&regrouped, &coord, &shape), defined(&layout, &coord, &shape));
            }
        }
    }

    #[test]
    fn the_storage_of_a_random_layout_is_what_one_thread_holds((layout, _) in any_shaped(5)) {
        let shape: Vec<i64> = layout.shard.iter().map(|it| it.extent).collect();
        let storage = layout.storage();
        let is_kept: Vec<bool> = layout.shard.iter().map(|it| it.step.axis == "m").collect();
        let own = |of: &[i64]| -> Vec<i64> {
            of.iter().zip(&is_kept).filter(|(_, kept)| **kept).map(|(c, _)| *c).collect()
        };
        prop_assert_eq!(storage.size(), own(&shape).iter().product::<i64>());
        for coord in coords(&shape) {
            let mut want = defined(&layout, &coord, &shape);
            want.retain(|axis, _| axis == "m");
            prop_assert_eq!(place(&storage, &own(&coord), &own(&shape)), want);
        }
    }

    #[test]
    fn the_span_of_a_random_layout_ends_past_its_last_place(
        shard in prop::collection::vec((1i64..5, 0i64..20, prop::sample::select(vec!["m", "laneid"])), 1..5),
        replica in prop::collection::vec((1i64..4, 0i64..20, prop::sample::select(vec!["m", "laneid"])), 0..3),
        offset in 0i64..9,
    ) {
        let layout = s(&shard).replicated(&replica).moved(offset, "m");
        let shape: Vec<i64> = layout.shard.iter().map(|it| it.extent).collect();
        let copies: Vec<i64> = layout.replica.iter().map(|it| it.extent).collect();
        for axis in ["m", "laneid"] {
            let base = coords(&shape).iter().map(|c| defined(&layout, c, &shape).get(axis).copied().unwrap_or(0)).max();
            let further = coords(&copies).iter().map(|c| {
                let steps = c.iter().zip(&layout.replica).filter(|(_, it)| it.step.axis == axis);
                steps.map(|(at, it)| at * it.step.stride).sum::<i64>()
            }).max();
            prop_assert_eq!(layout.span(axis), 1 + base.unwrap() + further.unwrap());
        }
        prop_assert_eq!(layout.memory_span(), layout.span("m"));
    }

    #[test]
    fn elements_at_one_address_are_found_where_there_are_any(
        iters in prop::collection::vec((1i64..6, -6i64..20), 1..4),
        offset in -9i64..20,
        swizzle in prop::option::of((0u32..3, 0u32..4, 0u32..4)),
    ) {
        let shard: Vec<_> = iters.iter().map(|&(extent, stride)| (extent, stride, "m")).collect();
        let mut layout = s(&shard).moved(offset, "m");
        layout.swizzle = swizzle.map(|(per_element, swizzle_len, atom_len)| Swizzle { per_element, swizzle_len, atom_len });
        let n = layout.size();
        let address = |at: i64| layout.apply(&[at], &[n]).unwrap()["m"];
        let mut addresses: Vec<i64> = (0..n).map(address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        match layout.overlap() {
            None => prop_assert_eq!(addresses.len() as i64, n),
            Some((first, second)) => {
                prop_assert!(first < second && second < n);
                prop_assert_eq!(address(first), address(second));
            }
        }
    }

    #[test]
    fn a_random_tiling_places_tiles_and_elements_in_them(
        (inner, inner_shape) in any_shaped(3),
        outer in any_layout(4),
    ) {
        let n = inner_shape.len();
        let outer_shape: Vec<i64> = (0..n).map(|d| if d == 0 { outer.size() } else { 1 }).collect();
        let tiled = inner.tiled(&inner_shape, &outer, &outer_shape).unwrap();
        let whole: Vec<i64> = inner_shape.iter().zip(&outer_shape).map(|(a, b)| a * b).collect();
        for coord in coords(&whole) {
            let of: Vec<i64> = coord.iter().zip(&inner_shape).map(|(c, n)| c / n).collect();
            let inside: Vec<i64> = coord.iter().zip(&inner_shape).map(|(c, n)| c % n).collect();
            let mut want = defined(&inner, &inside, &inner_shape);
            for (axis, at) in defined(&outer, &of, &outer_shape) {
                *want.entry(axis.clone()).or_default() += at * inner.span(&axis);
            }
            want.retain(|_, v| *v != 0);
            prop_assert_eq!(place(&tiled, &coord, &whole), want);
        }
    }

    #[test]
    fn a_random_part_places_elements_as_the_whole_does(
        (layout, shape) in any_shaped(5),
        cuts in prop::collection::vec((0i64..64, 0i64..64), 5),
    ) {
        let cut = |(&n, &(a, b)): (&i64, &(i64, i64))| { let start = a % n; (start, 1 + b % (n - start)) };
        let region: Vec<(i64, i64)> = shape.iter().zip(&cuts).map(cut).collect();
        let Some(part) = layout.slice(&shape, &region).unwrap() else { return Ok(()) };
        let extents: Vec<i64> = region.iter().map(|r| r.1).collect();
        for coord in coords(&extents) {
            let at: Vec<i64> = coord.iter().zip(&region).map(|(c, r)| c + r.0).collect();
            prop_assert_eq!(place(&part, &coord, &extents), defined(&layout, &at, &shape));
        }
    }

    #[test]
    fn every_part_of_one_iterator_a_dimension_has_a_layout(shard in prop::collection::vec(any_iter(), 1..4), seed in 0i64..9999) {
        let layout = s(&shard);
        let shape: Vec<i64> = shard.iter().map(|it| it.0).collect();
        let region: Vec<(i64, i64)> = shape.iter().map(|n| { let at = seed % n; (at, 1 + seed / 7 % (n - at)) }).collect();
        prop_assert!(layout.slice(&shape, &region).unwrap().is_some());
    }

    #[test]
    fn fusing_thread_axes_keeps_threads_apart(warps in 1i64..5, lanes in 1i64..33, registers in 1i64..4) {
        let tile = s(&[(warps, 1, "warpid"), (lanes, 1, "laneid"), (registers, 1, "m")]);
        let fused = tile.canonical_on(32);
        let size = tile.size();
        for i in 0..size {
            let (before, after) = (tile.apply(&[i], &[size]).unwrap(), fused.apply(&[i], &[size]).unwrap());
            let thread = |p: &BTreeMap<String, i64>| -> i64 {
                p.iter().filter_map(|(axis, at)| Some(thread_axis_unit(axis, 32)? * at)).sum()
            };
            prop_assert_eq!(thread(&before), thread(&after));
            prop_assert_eq!(before.get("m").copied().unwrap_or(0), after.get("m").copied().unwrap_or(0));
        }
    }
}
