//! The table of cases: what the reference's tests hold, and the tests here that stand for each row.
//!
//! A row of the reductions counts the cases that the reference collects; a probe is a call that the reference accepts
//! and gets wrong, or takes silently. A row without a test, or a test of another name, is a failure.

/// A row of the reference's tests: its number, its cases, those of them that the reference skips, and its tests here.
type Row = (&'static str, u32, u32, &'static [&'static str]);

/// Reductions.
const REDUCTIONS: &[Row] = &[
    ("5.1 #0", 12, 0, &["tile_5_1_0_rows_of_a_tile"]),
    ("5.1 #1", 12, 0, &["tile_5_1_1_columns_of_a_tile"]),
    ("5.1 #2", 12, 0, &["tile_5_1_2_two_trailing_axes_of_four"]),
    ("5.1 #3", 12, 0, &["tile_5_1_3_a_middle_axis"]),
    ("5.1 #4", 12, 0, &["tile_5_1_4_rows_of_seven"]),
    ("5.1 #5", 12, 0, &["tile_5_1_5_parts_of_tiles"]),
    ("5.2 warp", 6, 0, &["tile_5_2_warp_one_warp_of_a_block"]),
    ("5.2 warpgroup", 6, 0, &["tile_5_2_warpgroup_one_warpgroup_of_a_block"]),
    ("5.2 thread", 6, 0, &["tile_5_2_thread_one_thread_of_a_block"]),
    ("5.3 (1)", 6, 0, &["tile_5_3_one_element"]),
    ("5.3 (4)", 6, 0, &["tile_5_3_four_elements"]),
    ("5.3 (7)", 6, 0, &["tile_5_3_seven_elements_are_one_too_few_for_packing"]),
    ("5.3 (16)", 6, 0, &["tile_5_3_sixteen_elements"]),
    ("5.3 (32)", 6, 0, &["tile_5_3_thirty_two_elements"]),
    ("5.3 (4,8)->(8)", 6, 0, &["tile_5_3_columns"]),
    ("5.3 (4,8)->(4)", 6, 0, &["tile_5_3_rows"]),
    ("5.3 (3,4,5)", 6, 0, &["tile_5_3_outer_and_inner_axis"]),
    ("5.3 (2,3,4)->(2,3)", 6, 0, &["tile_5_3_last_axis_of_three"]),
    ("5.3 (2,3,4)->(3,4)", 6, 0, &["tile_5_3_first_axis_of_three"]),
    ("5.4 (64)", 3, 0, &["tile_5_4_rows_of_64_registers"]),
    ("5.4 (64) accum", 3, 0, &["tile_5_4_rows_of_64_registers_and_the_old_value"]),
    ("5.4 (64) slice", 3, 0, &["tile_5_4_a_part_of_the_registers"]),
    ("5.4 (4,8)->(1,1)", 3, 0, &["tile_5_4_both_inner_axes"]),
    ("5.4 (4,8)->(4,1)", 3, 0, &["tile_5_4_the_last_of_two_inner_axes"]),
    ("5.4 (4,8)->(1,8)", 3, 0, &["tile_5_4_the_first_of_two_inner_axes"]),
    ("5.5 (1,1)", 24, 6, &["tile_5_5_an_accumulator_of_one_warp", SKIPPED]),
    ("5.5 (1,4)", 24, 6, &["tile_5_5_accumulators_of_four_warps", SKIPPED]),
    ("5.5 (2,8)", 24, 6, &["tile_5_5_accumulators_of_two_warpgroups", SKIPPED]),
    (
        "5.6 chunks",
        20,
        0,
        &["tile_5_6_extrema_of_whole_chunks", "tile_5_6_extrema_of_three_are_one_instruction"],
    ),
    ("5.6 others", 16, 0, &["tile_5_6_extrema_of_other_lengths"]),
    ("5.7 chunks", 10, 0, &["tile_5_7_sums_of_whole_chunks", "tile_seed_002_pairs_are_one_instruction"]),
    ("5.7 others", 10, 0, &["tile_5_7_sums_of_other_lengths"]),
    ("5.8 full warp", 4, 0, &["tile_5_8_all_lanes_know_the_total_of_a_warp"]),
    ("5.8 multi element", 4, 0, &["tile_5_8_registers_are_folded_over_lanes_one_by_one"]),
    ("5.8 gapped permuted", 1, 0, &["tile_5_8_registers_with_gaps_out_of_order"]),
    ("5.8 multi-warp loop", 1, 0, &["tile_5_8_totals_of_warps_meet_in_shared_memory_again_and_again"]),
    ("5.9", 2, 0, &["tile_5_9_rows_of_a_warpgroup"]),
];

const SKIPPED: &str = "tile_5_5_old_values_of_a_partial_fold_that_the_reference_skips";

/// Functions of one value a thread.
const INTRINSICS: &[Row] = &[
    (
        "5.10 warp",
        10,
        0,
        &[
            "tile_5_10_warp_reduce_gives_every_lane_the_total_of_its_neighbours",
            "tile_5_10_masks_name_the_lanes_and_text_asks_for_no_active_mask",
        ],
    ),
    (
        "5.10 cta",
        10,
        0,
        &[
            "tile_5_10_cta_reduce_gives_every_thread_the_total_of_the_block",
            "tile_5_10_widths_and_scratch_are_checked",
        ],
    ),
];

/// The dispatcher.
const DISPATCHER: &[Row] = &[
    ("5.11 scope", 1, 0, &["tile_5_11_a_call_that_nothing_accepts_gets_the_table_with_every_failed_need"]),
    ("5.11 unknown", 1, 0, &["tile_5_11_a_forced_variant_that_does_not_exist_is_named"]),
    ("5.11 throws", 1, 0, &["tile_5_11_a_variant_that_fails_is_a_bug_and_no_decline"]),
    ("5.11 table", 1, 0, &["tile_tables_name_the_call_and_every_variant"]),
];

/// Probes of wrong answers, of declines without a reason, and of what is taken silently: name and test.
const PROBES: &[(&str, &str)] = &[
    ("W1", "tile_w1_masks_are_made_from_the_active_set"),
    ("lane_replica_strided", "tile_w2_lane_replica_strided"),
    ("lane_replica_in_half_warp_branch", "tile_w2_lane_replica_in_half_warp_branch"),
    ("view_nonpow2_lanes", "tile_w3_view_nonpow2_lanes"),
    ("view_nonpow2_stride", "tile_view_nonpow2_stride"),
    ("shared_threads48_len32", "tile_w4_shared_threads48_len32"),
    ("shared_threads12_len5_accum", "tile_w4_shared_threads12_len5_accum"),
    ("shared_threads24_len32", "tile_w4_shared_threads24_len32"),
    ("shared_divergent_cta", "tile_w5_shared_divergent_cta"),
    ("shared_warp_scope_16_threads", "tile_w5_shared_warp_scope_16_threads"),
    ("shared_wg_unguarded_two_wgs", "tile_w6_shared_wg_unguarded_two_wgs"),
    ("local_dst_too_small", "tile_w7_local_dst_too_small"),
    ("local_default_axes_oob", "tile_w7_local_default_axes_oob"),
    ("lane_replica_accum", "tile_w7_lane_replica_accum"),
    ("lane_replica_slice", "tile_w7_lane_replica_slice"),
    ("lane_replica_fold_local", "tile_w7_lane_replica_fold_local"),
    ("view_slice_partial_lane", "tile_w7_view_slice_partial_lane"),
    ("view_spatial_src_offset", "tile_w7_view_spatial_src_offset"),
    ("W7e", "tile_w7_transposed_lanes_are_told_apart"),
    ("W8", "tile_w8_results_of_several_instances_are_told_apart"),
    ("W8 blocks", "tile_w8_blocks_that_write_the_same_results_are_told_apart"),
    ("W9", "tile_w9_identities_are_infinities_and_nan_is_kept"),
    ("cta_reduce_twice_same_scratch", "tile_w10_cta_reduce_twice_same_scratch"),
    ("view_slice_single", "tile_w11_view_slice_single"),
    ("seed000", "tile_seed_000_rows_are_summed_by_three_shuffles"),
    ("shared_one_long_row_t1024", "tile_w13_shared_one_long_row_t1024"),
    ("W13", "tile_w13_few_rows_are_folded_by_all_warps"),
    ("shared_first_axis_128", "tile_w14_shared_first_axis_128"),
    ("W14", "tile_w14_lanes_that_read_one_row_read_different_banks"),
    ("packed_2d_src", "tile_packed_2d_src_and_parts_at_any_place"),
    ("packed_2d_to_scalar", "tile_packed_2d_to_scalar"),
    ("W14 vectors", "tile_w14_long_rows_are_read_by_vectors_of_16_bytes"),
    ("W16", "tile_w16_rows_of_integers_in_shared_memory_fold_by_one_instruction_a_warp"),
    ("W18", "tile_w18_a_barrier_beside_the_programs_own_is_not_repeated"),
    ("shared_warp_thread64", "tile_shared_warp_thread64"),
    ("W21", "tile_w21_every_thread_copies_its_share_of_a_length_that_does_not_divide"),
    ("mixed_shared_to_local, global_to_global", "tile_mixed_shared_to_local_and_global_to_global"),
    ("shared_unknown_cfg", "tile_shared_unknown_cfg"),
    ("shared_forced_unknown", "tile_shared_forced_unknown"),
    ("shared_forced_local", "tile_shared_forced_local"),
    ("packed_forced", "tile_packed_forced"),
    ("packed_forced_local", "tile_packed_forced_local"),
    ("packed_axes_empty", "tile_packed_axes_empty"),
    ("view_mismatch", "tile_view_mismatch"),
    ("view_no_layout_thread_axis", "tile_view_no_layout_thread_axis"),
    ("view_dst_dropped_dim", "tile_view_dst_dropped_dim"),
    ("view_dropped_middle", "tile_view_dropped_middle"),
    ("shared_axes_dup", "tile_shared_axes_dup"),
    ("shared_axes_empty", "tile_shared_axes_empty"),
    ("shared_dst_transposed_size", "tile_shared_dst_transposed_size"),
    ("shared_swizzled_src", "tile_shared_swizzled_src"),
    ("shared_loop_region", "tile_shared_loop_region"),
    ("shared_threads32_len1", "tile_shared_threads32_len1"),
];

/// Where the tests are.
const SOURCES: &[&str] = &[
    include_str!("forced.rs"),
    include_str!("intrinsics.rs"),
    include_str!("packed.rs"),
    include_str!("probes.rs"),
    include_str!("redux.rs"),
    include_str!("registers.rs"),
    include_str!("replicas.rs"),
    include_str!("seeds.rs"),
    include_str!("shared.rs"),
    include_str!("views.rs"),
    include_str!("../tile_programs/main.rs"),
    include_str!("../../../coulis-tile/tests/dispatcher.rs"),
];

fn is_a_test(name: &str) -> bool {
    let head = format!("#[test]\nfn {name}() {{");
    SOURCES.iter().any(|source| source.contains(&head))
}

#[test]
fn tile_every_case_of_the_reference_has_a_test() {
    for (rows, cases, skipped) in [(REDUCTIONS, 308, 18), (INTRINSICS, 20, 0), (DISPATCHER, 4, 0)] {
        assert_eq!(rows.iter().map(|row| row.1).sum::<u32>(), cases);
        assert_eq!(rows.iter().map(|row| row.2).sum::<u32>(), skipped);
        for (id, _, _, tests) in rows {
            let missing: Vec<&&str> = tests.iter().filter(|test| !is_a_test(test)).collect();
            assert!(!tests.is_empty() && missing.is_empty(), "{id}: {missing:?}");
        }
    }
}

#[test]
fn tile_every_probe_has_a_test() {
    let missing: Vec<&str> = PROBES.iter().filter(|(_, test)| !is_a_test(test)).map(|(id, _)| *id).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (at, (id, test)) in PROBES.iter().enumerate() {
        assert!(PROBES[..at].iter().all(|(other, own)| other != id && own != test), "{id} twice");
    }
}
