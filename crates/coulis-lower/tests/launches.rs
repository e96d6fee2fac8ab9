//! Launches become outermost, virtual threads loops, and barriers stand where threads share memory.

use coulis_ir::device::host_program;
use coulis_ir::print::print_kernel;
use coulis_ir::{Kernel, Target};
use coulis_lower::{LowerError, Options, PASSES, lower};
use coulis_script::parse_module;

fn parsed(body: &str) -> Kernel {
    let head = "@T.prim_func\ndef f(A: T.Buffer((4096,), \"float32\"), B: T.Buffer((4096,), \"float32\"), n: T.int32):\n";
    let text: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!("{head}{text}");
    parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0)
}

/// The kernel after the pass of that name.
fn after(pass: &str, body: &str) -> Result<Kernel, LowerError> {
    let target = Target::cuda("sm_90a").expect("known");
    let options = Options { target: &target, simple_mode: false };
    let mut kernel = parsed(body);
    kernel.form = coulis_ir::Form::Nest;
    let mut found = None;
    assert!(PASSES.iter().any(|p| p.name == pass));
    lower(kernel, &options, &mut |p, k| {
        if p.name == pass {
            found = Some(k.clone());
        }
    })?;
    Ok(found.expect("the pass ran"))
}

/// The lines of the body, without the launches.
fn lines(kernel: &Kernel) -> Vec<String> {
    let text = print_kernel(kernel);
    let body = text.lines().skip(2).map(str::trim).filter(|l| !l.contains("launch_thread") && !l.is_empty());
    body.map(|l| if l == "T.cuda.cta_sync()" { "sync".to_owned() } else { l.to_owned() }).collect()
}

#[track_caller]
fn check_barriers(body: &str, want: &[&str]) {
    let head = "tx = T.launch_thread(\"threadIdx.x\", 32)\ns = T.allocate([64], \"float32\", \"shared\")\nx = T.allocate([1], \"float32\", \"local\")\n";
    let kernel = after("place_barriers", &format!("{head}{body}")).unwrap_or_else(|e| panic!("{e}"));
    let found = lines(&kernel);
    assert_eq!(found[2..], *want, "\n{}", print_kernel(&kernel));
}

#[test]
fn a_barrier_stands_between_a_store_and_a_load_of_another_thread() {
    check_barriers("s[tx] = A[tx]\nx[0] = s[31 - tx]", &["s[tx] = A[tx]", "sync", "x[0] = s[31 - tx]"]);
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    check_barriers("s[tx] = A[tx]\nx[0] = s[tx]", &["s[tx] = A[tx]", "x[0] = s[tx]"]);
    check_barriers(
        "for k in range(2):\n    s[k * 32 + tx] = A[tx]\nfor k in range(2):\n    x[0] = s[k * 32 + tx]",
        &["for k in range(2):", "s[k * 32 + tx] = A[tx]", "for k in range(2):", "x[0] = s[k * 32 + tx]"],
    );
    check_barriers(
        "for k in range(2):\n    s[tx * 2 + k] = A[tx]\nx[0] = s[tx * 2 + 1]",
        &["for k in range(2):", "s[tx * 2 + k] = A[tx]", "x[0] = s[tx * 2 + 1]"],
    );
}

#[test]
fn threads_that_some_dimension_tells_apart_do_not_wait_for_each_other() {
    // Flat places of loops that reach past a row would meet the next thread's.
    let own_row = [
        "r = T.allocate([32, 5], \"float32\", \"shared\")",
        "for k, l in T.grid(2, 4):",
        "if k * 4 + l < 5:",
        "r[tx, k * 4 + l] = A[tx]",
        "x[0] = r[tx, 0]",
    ];
    check_barriers(
        "r = T.allocate([32, 5], \"float32\", \"shared\")\nfor k, l in T.grid(2, 4):\n    if k * 4 + l < 5:\n        \
         r[tx, k * 4 + l] = A[tx]\nx[0] = r[tx, 0]",
        &own_row,
    );
    let divided = "r = T.allocate([4, 13], \"float32\", \"shared\")\nfor k in range(2):\n    if k * 8 + tx % 8 < 13:\n        \
         r[tx // 8, k * 8 + tx % 8] = A[tx]\n";
    let stored = [
        "r = T.allocate([4, 13], \"float32\", \"shared\")",
        "for k in range(2):",
        "if k * 8 + tx % 8 < 13:",
        "r[tx // 8, k * 8 + tx % 8] = A[tx]",
    ];
    check_barriers(
        &format!("{divided}x[0] = r[tx // 8, tx % 8]"),
        &[&stored[..], &["x[0] = r[tx // 8, tx % 8]"]].concat(),
    );
    // The same row, but another column.
    check_barriers(
        &format!("{divided}x[0] = r[tx // 8, 7 - tx % 8]"),
        &[&stored[..], &["sync", "x[0] = r[tx // 8, 7 - tx % 8]"]].concat(),
    );
}

#[test]
fn another_order_of_the_same_memory_is_another_thread() {
    check_barriers(
        "for k in range(2):\n    s[k * 32 + tx] = A[tx]\nfor k in range(2):\n    x[0] = s[tx * 2 + k]",
        &[
            "for k in range(2):",
            "s[k * 32 + tx] = A[tx]",
            "sync",
            "for k in range(2):",
            "x[0] = s[tx * 2 + k]",
        ],
    );
    check_barriers(
        "for k in range(3):\n    s[tx * 2 + k] = A[tx]\nx[0] = s[tx * 2]",
        &["for k in range(3):", "sync", "s[tx * 2 + k] = A[tx]", "sync", "x[0] = s[tx * 2]"],
    );
}

#[test]
fn what_an_iteration_reads_is_over_before_the_next_one_writes() {
    check_barriers(
        "for k in range(n):\n    s[tx] = A[k * 32 + tx]\n    x[0] = s[31 - tx]",
        &["for k in range(n):", "sync", "s[tx] = A[k * 32 + tx]", "sync", "x[0] = s[31 - tx]"],
    );
}

#[test]
fn two_halves_that_alternate_need_one_barrier_an_iteration() {
    let kernel = after(
        "place_barriers",
        "tx = T.launch_thread(\"threadIdx.x\", 32)\ns = T.allocate([2, 32], \"float32\", \"shared\")\n\
         x = T.allocate([1], \"float32\", \"local\")\ns[0, tx] = A[tx]\nfor k in range(n):\n    \
         s[(k + 1) % 2, tx] = A[k * 32 + tx]\n    x[0] = s[k % 2, 31 - tx]",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let found = lines(&kernel);
    assert_eq!(
        found[2..],
        [
            "s[0, tx] = A[tx]",
            "sync",
            "for k in range(n):",
            "sync",
            "s[(k + 1) % 2, tx] = A[k * 32 + tx]",
            "x[0] = s[k % 2, 31 - tx]"
        ]
    );
}

#[test]
fn a_barrier_goes_before_a_branch_that_threads_do_not_share() {
    check_barriers(
        "s[tx] = A[tx]\nif tx == 0:\n    x[0] = s[1]",
        &["s[tx] = A[tx]", "sync", "if tx == 0:", "x[0] = s[1]"],
    );
    check_barriers(
        "if tx < 1:\n    s[0] = A[0]\nx[0] = s[0]",
        &["if tx < 1:", "s[0] = A[0]", "sync", "x[0] = s[0]"],
    );
    // One thread meets only itself.
    check_barriers(
        "if tx == 0:\n    s[0] = A[0]\n    x[0] = s[0]",
        &["if tx == 0:", "s[0] = A[0]", "x[0] = s[0]"],
    );
}

#[test]
fn barriers_of_the_text_count() {
    check_barriers(
        "s[tx] = A[tx]\nT.cuda.cta_sync()\nx[0] = s[31 - tx]",
        &["s[tx] = A[tx]", "sync", "x[0] = s[31 - tx]"],
    );
    // Under a condition that all threads share, one of the branches may have no barrier.
    check_barriers(
        "s[tx] = A[tx]\nif n > 3:\n    T.cuda.cta_sync()\nx[0] = s[31 - tx]",
        &["s[tx] = A[tx]", "if n > 3:", "sync", "sync", "x[0] = s[31 - tx]"],
    );
}

#[test]
fn threads_that_would_wait_where_not_all_come_are_refused() {
    let body = "tx = T.launch_thread(\"threadIdx.x\", 32)\ns = T.allocate([64], \"float32\", \"shared\")\n\
                if tx < 16:\n    s[tx] = A[tx]\n    B[tx] = s[15 - tx]";
    let error = after("place_barriers", body).map(|k| print_kernel(&k)).expect_err("divergent");
    assert_eq!(
        error.to_string(),
        "threads share `s` under `tx < 16`, where a barrier would not be reached by all of them"
    );
}

/// The body under `ty` of 4 and `tx` of 8 threads, which share `s`: whether it needs no barrier where it stands.
#[track_caller]
fn check_divergent(body: &str, is_legal: bool) {
    let head = "ty = T.launch_thread(\"threadIdx.y\", 4)\ntx = T.launch_thread(\"threadIdx.x\", 8)\n\
                s = T.allocate([64], \"float32\", \"shared\")\nx = T.allocate([1], \"float32\", \"local\")\n";
    match after("place_barriers", &format!("{head}{body}")) {
        Ok(kernel) => {
            let text = print_kernel(&kernel);
            assert!(is_legal && !text.contains("sync"), "{text}");
        }
        Err(error) => assert!(!is_legal && error.to_string().starts_with("threads share `s`"), "{error}"),
    }
}

#[test]
fn threads_that_conditions_let_pass_are_told_apart_among_themselves() {
    // One condition names a thread in y, and the place tells it in x.
    check_divergent("if ty == 2:\n    s[tx] = A[tx]\n    x[0] = s[tx]", true);
    check_divergent("if ty >= 2:\n    s[tx] = A[tx]\n    x[0] = s[tx]", false);
    check_divergent(
        "if ty >= 3:\n    for k in range(4):\n        s[tx * 4 + k] = A[k]\n    x[0] = s[tx * 4]",
        true,
    );
    check_divergent(
        "if ty >= 3:\n    for k in range(5):\n        s[tx * 4 + k] = A[k]\n    x[0] = s[tx * 4]",
        false,
    );
    // Fewer threads of x pass than there are places from one y to the next.
    check_divergent("if tx < 5:\n    s[ty * 5 + tx] = A[tx]\n    x[0] = s[ty * 5 + tx]", true);
    check_divergent("if tx < 6:\n    s[ty * 5 + tx] = A[tx]\n    x[0] = s[ty * 5 + tx]", false);
    // Each access has conditions of its own.
    check_divergent(
        "if ty < 2:\n    if tx < 3:\n        s[ty * 5 + tx] = A[tx]\n    if tx < 5:\n        x[0] = s[ty * 5 + tx]",
        true,
    );
    check_divergent(
        "if ty < 2:\n    if tx < 3:\n        s[ty * 5 + tx] = A[tx]\n    x[0] = s[ty * 5 + tx]",
        false,
    );
    // So has what else is done.
    check_divergent("if ty != 0:\n    x[0] = A[0]\nelse:\n    s[tx] = A[tx]\n    x[0] = s[tx]", true);
    check_divergent("if ty == 0:\n    x[0] = A[0]\nelse:\n    s[tx] = A[tx]\n    x[0] = s[tx]", false);
    // Conditions on sums and multiples are conditions on what they are of.
    check_divergent("if tx * 2 < 8:\n    s[ty * 4 + tx] = A[tx]\n    x[0] = s[ty * 4 + tx]", true);
    check_divergent("if tx + 3 < 8:\n    s[ty * 5 + tx] = A[tx]\n    x[0] = s[ty * 5 + tx]", true);
    check_divergent("if tx // 4 == n:\n    s[ty * 4 + tx] = A[tx]\n    x[0] = s[ty * 4 + tx]", false);
    // An index of one value is any other's.
    check_divergent("if tx == 3:\n    s[ty * 8 + tx] = A[tx]\n    x[0] = s[ty * 8 + 3]", true);
    check_divergent("if tx == 3:\n    s[ty * 8 + tx] = A[tx]\n    x[0] = s[ty * 8 + 4]", true);
    check_divergent("if tx == 3:\n    s[ty + tx] = A[tx]\n    x[0] = s[ty + 4]", false);
    // What memory says may be another value for the next access.
    check_divergent("if A[0] < T.float32(tx):\n    s[tx] = A[tx]\n    x[0] = s[tx]", false);
}

#[test]
fn places_above_each_other_do_not_meet() {
    let step = |passed: i32, apart: i32| {
        format!("if ty == 0 and tx < {passed}:\n    x[0] = s[tx + {apart}]\n    s[tx] = x[0]")
    };
    check_divergent(&step(4, 4), true);
    check_divergent(&step(5, 4), false);
    check_divergent(&step(4, 3), false);
    check_divergent("if ty == 0:\n    for k in range(n):\n        s[k + 8] = A[k]\n    x[0] = s[tx]", true);
    check_divergent("if ty == 0:\n    for k in range(n):\n        s[k] = A[k]\n    x[0] = s[tx + 8]", false);
}

#[test]
fn a_thread_index_is_divided_by_what_does_not_divide_its_extent() {
    let own = "s[ty * 9 + tx // 3 * 3 + tx % 3]";
    check_divergent(&format!("if tx < 7:\n    {own} = A[tx]\n    x[0] = {own}"), true);
    check_divergent("if tx < 7:\n    s[ty * 9 + tx // 3] = A[tx]\n    x[0] = s[ty * 9 + tx // 3]", false);
    let turned = "s[ty * 9 + tx % 3 * 3 + tx // 3]";
    check_divergent(&format!("if tx < 7:\n    {turned} = A[tx]\n    x[0] = {turned}"), true);
    check_divergent(&format!("if tx < 7:\n    {turned} = A[tx]\n    x[0] = {own}"), false);
}

#[test]
fn siblings_of_one_index_become_one_launch() {
    let kernel = after(
        "unify_launches",
        "bx = T.launch_thread(\"blockIdx.x\", n)\ns = T.allocate([64], \"float32\", \"shared\")\n\
         with T.launch_thread(\"threadIdx.x\", 64) as t:\n    s[t] = A[t]\n\
         for k in range(2):\n    with T.launch_thread(\"threadIdx.x\", 64) as u:\n        B[bx * 64 + u] = s[u]",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let text = print_kernel(&kernel);
    assert_eq!(text.matches("launch_thread").count(), 2, "{text}");
    assert_eq!(
        lines(&kernel),
        [
            "s = T.allocate([64], \"float32\", \"shared\")",
            "s[t] = A[t]",
            "for k in range(2):",
            "B[bx * 64 + t] = s[t]"
        ]
    );
    assert_eq!(host_program(&kernel).map(|p| p.launches.len()), Ok(1));
}

#[test]
fn stages_at_the_root_stay_launches_of_their_own() {
    let kernel = after(
        "unify_launches",
        "g = T.allocate([64], \"float32\", \"global\")\n\
         with T.launch_thread(\"threadIdx.x\", 64) as t:\n    g[t] = A[t]\n\
         for k in range(2):\n    with T.launch_thread(\"threadIdx.x\", 32) as u:\n        B[u * 2 + k] = g[u * 2 + k]",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let program = host_program(&kernel).unwrap_or_else(|e| panic!("{e}"));
    let threads: Vec<Option<i128>> =
        program.launches.iter().map(coulis_ir::device::Launch::n_threads).collect();
    assert_eq!((threads, program.temporaries.len()), (vec![Some(64), Some(32)], 1));
}

#[test]
fn launches_that_do_not_agree_are_refused() {
    for (body, message) in [
        (
            "bx = T.launch_thread(\"blockIdx.x\", n)\nwith T.launch_thread(\"threadIdx.x\", 64) as t:\n    B[t] = A[t]\n\
             with T.launch_thread(\"threadIdx.x\", 32) as u:\n    B[u] = A[u]",
            "`threadIdx.x` is launched with extent `64` and with extent `32` in one kernel; they must be equal",
        ),
        (
            "for k in range(4):\n    with T.launch_thread(\"threadIdx.x\", k + 1) as t:\n        B[t] = A[t]",
            "`threadIdx.x` is launched with extent `k + 1`, and `k` is not known where the kernel is launched",
        ),
    ] {
        let error = after("unify_launches", body).map(|k| print_kernel(&k)).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_virtual_thread_is_a_loop_inside_the_launches() {
    let kernel = after(
        "expand_vthreads",
        "v = T.launch_thread(\"vthread\", 2)\ntx = T.launch_thread(\"threadIdx.x\", 32)\nB[v * 32 + tx] = A[v * 32 + tx]",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(lines(&kernel), ["for v in range(2):", "B[v * 32 + tx] = A[v * 32 + tx]"]);
    assert!(host_program(&kernel).is_ok());
}

#[test]
fn filling_that_depends_on_the_use_before_it_is_not_moved_ahead() {
    let kernel = after(
        "inject_double_buffer",
        "tx = T.launch_thread(\"threadIdx.x\", 32)\nfor k in range(n):\n    with T.attr(None, \"double_buffer\", 1):\n        \
         s = T.allocate([32], \"float32\", \"shared\")\n        s[tx] = B[tx]\n        B[tx] = s[31 - tx]",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        lines(&kernel),
        [
            "for k in range(n):",
            "s = T.allocate([32], \"float32\", \"shared\")",
            "s[tx] = B[tx]",
            "B[tx] = s[31 - tx]"
        ]
    );
}
