//! What is not of the dialect is refused: where it stands, what was found, what is legal. Nothing panics.

mod generate;

use std::sync::OnceLock;

use coulis_ir::print::print_kernel;
use coulis_script::{parse_calls, parse_module};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A kernel of one buffer, one size and these statements.
fn kernel(body: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "@T.prim_func\ndef main(A_ptr: T.handle, n: T.int32):\n    A = T.match_buffer(A_ptr, (n, 8))\n{body}"
    )
}

/// The message about `body`; its first line is line 4 of the text.
#[track_caller]
fn check(body: &str, want: &str) {
    let text = kernel(body);
    let error = parse_module(&text).expect_err(body);
    assert_eq!(error.to_string(), want, "{body}");
    assert!(error.range.start <= error.range.end && error.range.end <= text.len());
}

#[test]
fn a_function_that_takes_no_other_keyword_says_so() {
    let text =
        "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\", strides=(2,))):\n    A[0] = T.float32(1)\n";
    let message = parse_module(text).unwrap_err().to_string();
    assert_eq!(message, "line 2, column 36: `T.Buffer` has no argument `strides`; it takes no others here");
}

#[test]
fn parameters_have_no_more_bytes_than_are_counted() {
    let limit = "of float32, which is more than 9223372036854775807 bytes, the most that is legal";
    for (param, first) in [
        ("A: T.Buffer((4, 4611686018427387904), \"float32\")", ""),
        ("A_ptr: T.handle", "    A = T.match_buffer(A_ptr, (4, 4611686018427387904), \"float32\")\n"),
    ] {
        let text = format!("@T.prim_func\ndef main({param}):\n{first}    pass\n");
        let error = parse_module(&text).expect_err(param).to_string();
        assert!(error.ends_with(&format!(": `A` has 4 * 4611686018427387904 {limit}")), "{error}");
    }
}

#[test]
fn buffers_have_no_extents_below_0() {
    for (declaration, column) in [
        ("x = T.alloc_shared([-8, 64], \"float32\")", 25),
        ("x = T.alloc_buffer((64, -8), \"float32\")", 29),
        ("x = T.allocate([-8], \"float32\", \"local\")", 21),
        ("x = T.Buffer((-8,), \"float32\", data=A.data)", 19),
        ("x = A.view(-8, 4)", 16),
    ] {
        check(
            declaration,
            &format!("line 4, column {column}: an extent of a buffer: found -8; legal: at least 0"),
        );
    }
    for param in ["A: T.Buffer((-8,))", "n: T.int32, A: T.Buffer((n, -8))"] {
        let text = format!("@T.prim_func\ndef main({param}):\n    pass\n");
        let error = parse_module(&text).expect_err(param).to_string();
        assert!(error.ends_with("an extent of a buffer: found -8; legal: at least 0"), "{error}");
    }
    let text = kernel("x = T.alloc_shared([0, 64], \"float32\")\ny = T.alloc_shared([n - 8], \"float32\")");
    parse_module(&text).unwrap();
}

#[test]
fn mistakes_are_named_with_their_place() {
    check("A[0, 0] = x", "line 4, column 15: nothing named `x` is in scope");
    check(
        "for k_1 in range(n):\n    A[0, k] = 0",
        "line 5, column 14: nothing named `k` is in scope; near it: k_1",
    );
    check("A[0, 0, 0] = 1", "line 4, column 5: indices of `A`: wanted 2, or 1 in all, found 3");
    check("A[0, 0] = n", "line 4, column 15: a stored value: found int32; legal: float32");
    check(
        "A[0, 0] = A[0, 1] + n",
        "line 4, column 25: the right operand: found int32; legal: float32 as on the left",
    );
    check(
        "A[n / 2, 0] = 1",
        "line 4, column 7: operands of `/`: found int32; legal: floats; integers divide by `//` or `T.Div`",
    );
    let integers = "int8, int16, int32, int64, uint8, uint16, uint32, uint64";
    check(
        "A[0, 0] = A[0, 1] // A[0, 0]",
        &format!("line 4, column 15: operands of this operation: found float32; legal: {integers}"),
    );
    check(
        "A[0, 0] = T.Cast(\"float32\", (n < 3) + (n < 4))",
        &format!(
            "line 4, column 33: operands of this operation: found bool; legal: {integers}, float16, bfloat16, float32, \
             float64"
        ),
    );
    check(
        "A[0, 0] = A[0, 1] + T.tvm_warp_shuffle_down(255, A[0, 0], 4, 8, 32)",
        "line 4, column 25: `T.tvm_warp_shuffle_down` is a statement and no part of an expression; legal: alone on the \
         right of `=`, as in `x[0] = T.tvm_warp_shuffle_down(...)`",
    );
    check("if n:\n    pass", "line 4, column 8: a condition: found int32; legal: bool");
    check(
        "n = T.allocate([4], \"float32\")",
        "line 4, column 5: `n` is defined already; legal: a name that is new in its block",
    );
    check("x = T.allocate([4])", "line 4, column 9: `T.allocate` needs a dtype");
    check(
        "x = T.allocate([4, 4611686018427387904], \"float32\")",
        "line 4, column 9: `x` has 4 * 4611686018427387904 of float32, which is more than 9223372036854775807 bytes, \
         the most that is legal",
    );
    check(
        "x = T.allocate([4], \"float31\")",
        "line 4, column 25: unknown dtype `float31`; legal dtypes are bool, int8 to int64, uint8 to uint64, float16, \
         bfloat16, float32, float64, float8_e4m3, float8_e5m2, and short names of these such as i32, bf16 and f64",
    );
    check(
        "x = T.allocate([4], \"int8\", \"local\", size=3)",
        "line 4, column 42: `T.allocate` has no argument `size`; legal: strides, elem_offset, scope, align, \
         buffer_type, layout, offset_factor",
    );
    check(
        "x = T.alloc_buffer((4,), layout=TileLayout(S[4 : 1 @ lanid]))",
        "line 4, column 58: an axis of a layout: found lanid; legal: m, TLane, TCol, P, F, Bank, laneid, tid_in_wg, tx, wid_in_wg, \
         warpid, wgid, bx, by, bz, cbx, cby, cbz",
    );
    check("A[0, 0] = T.uint8(256)", "line 4, column 23: an integer: found 256; legal: uint8: 0 to 255");
    check(
        "A[0, 0:n] = 1",
        "line 4, column 10: found a slice; legal here: a slice whose length is a constant multiple of a constant \
         step, as in `k:k + 256:16`",
    );
    check(
        "A[0, 0:4] = A[0, 0:8]",
        "line 4, column 17: a vector: found float32x8; legal: 4 lanes or a scalar",
    );
    check(
        "while n > 0:\n    pass",
        "line 4, column 5: found this statement; legal here: an assignment, a call, `for`, `if`, `with`, `pass`, a \
         function or a class",
    );
    check(
        "for i in A:\n    pass",
        "line 4, column 14: found `A`; legal here: `range`, `T.grid`, `T.serial`, `T.parallel`, `T.unroll` or \
         `T.vectorized` of one or two ends",
    );
    check("for i, j in T.grid(4):\n    pass", "line 4, column 17: loop variables: wanted 1, found 2");
    check(
        "A[0, 0] = 1 < n < 2",
        "line 4, column 15: found a chain of comparisons; legal here: comparisons joined by `and`",
    );
    check(
        "Tx.cta.sum(A, A, speed=9)",
        "line 4, column 22: `Tx.cta.sum` has no argument `speed`; legal: axes, accum, dispatch, ftz, thread_reduce, \
         lanes, warps",
    );
    check("Tx.sum(A)", "line 4, column 5: `Tx.sum` needs a source");
    check("A[0, 0] = (1", "line 5, column 1: not Python syntax: unexpected EOF while parsing");
}

#[test]
fn a_module_holds_functions_only() {
    for (text, want) in [
        (
            "x = 3\n",
            "line 1, column 1: found a statement outside of functions; legal here: `@I.ir_module` classes and \
             `@T.prim_func` functions",
        ),
        (
            "def f():\n    pass\n",
            "line 1, column 1: found a function of 0 decorators; legal here: a function with the decorator `@T.prim_func`",
        ),
        (
            "@T.prim_func\ndef f(A: T.handle):\n    pass\n",
            "line 2, column 7: `A: T.handle` needs a `T.match_buffer`",
        ),
        (
            "@T.prim_func\ndef f(A: T.handle, A: T.int32):\n    pass\n",
            "line 2, column 20: `A` is defined already; legal: a name that is new in its block",
        ),
    ] {
        let error = parse_module(text).expect_err(text);
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn an_empty_text_has_no_kernels() {
    assert_eq!(parse_module("").map(|k| k.len()), Ok(0));
    assert_eq!(parse_module("# a comment\nimport x\nfrom y import z\n").map(|k| k.len()), Ok(0));
}

#[test]
fn text_that_nests_without_end_is_refused() {
    for n in [500, 5_000, 19_000, 200_000] {
        for text in [
            kernel(&format!("A[0, 0] = {}1.0{}", "(".repeat(n), ")".repeat(n))),
            kernel(&format!("A[0, 0] = {}1.0", "-".repeat(n))),
            kernel(&format!("A[0, 0] = {}True", "not ".repeat(n))),
            kernel(&format!("A[0, 0] = 1.0{}", " + 1.0".repeat(n))),
            kernel(&format!("A[0, 0] = 1.0{}", ".x".repeat(n))),
            kernel(&format!("A[0, 0] = 1.0{}", "[0".repeat(n))),
            kernel(&format!("A[0, 0] = {}1.0", "lambda: ".repeat(n))),
            kernel(&format!("A[0, 0] = {}1.0", "1.0 if n > 0 else ".repeat(n))),
            kernel(&format!("A[0, 0] = T.exp({}", "T.exp(".repeat(n))),
            kernel(&format!("if n > 0{}:\n    pass", " and n > 0".repeat(n))),
            kernel(&(0..n.min(5_000)).map(|i| format!("x{i}: T.int32 = n\n")).collect::<String>()),
            kernel(&(0..n.min(1_500)).map(|i| format!("{}if n > 0:\n", " ".repeat(i))).collect::<String>()),
            "[".repeat(n),
        ] {
            let parsed = parse_module(&text);
            // Parentheses alone nest nothing, and some hundred bindings in a block are legal.
            let is_legal = n < 10_000 && text.contains("((") || n == 500 && text.contains("x0");
            let found = parsed.as_ref().err();
            assert_eq!(parsed.is_ok(), is_legal, "{n} {found:?} {}", &text[..200.min(text.len())]);
        }
    }
}

#[test]
fn odd_values_are_refused_or_read_but_never_panic() {
    for body in [
        "A[0, 0] = T.float32(1e999)",
        "A[T.int64(-9223372036854775808), 0] = -1e-999",
        "A[9223372036854775808, 0] = 0",
        "A[2147483647:2147483651, 0] = 0",
        "A[T.Ramp(0, 1, 0), 0] = 0",
        "A[T.Ramp(0, 1, 4294967295), 0] = 0",
        "A[T.Ramp(T.Ramp(0, 1, 4), 1, 4), 0] = 0",
        "for i in range(-2147483648, 2147483647):\n    pass",
        "x = T.alloc_buffer((4,), layout=TileLayout(S[(9223372036854775807, 9223372036854775807)]))",
        "x = T.alloc_buffer((4,), layout=TileLayout(S[0]))",
        "x = T.alloc_buffer((4,), layout=TileLayout(S[(4, -8)]))",
        "x = T.alloc_buffer((4,), layout=TileLayout(R[4:1]))",
        "x = T.alloc_buffer((), align=99999999999)",
        "Tx.reduce(A, A, reducer=T.comm_reducer(lambda: (), []))",
        "Tx.reduce(A, A, reducer=T.comm_reducer(lambda x, y: x, [T.float32(0)], finish=lambda s: ()))",
        "Tx.copy((), A)",
        "T.cta_id([n, n, n, n])",
        "y = A.view()",
        "y = A.view(4).view(2)",
        "A.strides[0]",
        "A[A.strides[7], 0] = 1",
        "T.attr(A, \"k\", 1)",
        "T.attr(3, \"k\", 1)",
        "with T.allocate([4], \"float32\"):\n    pass",
        "with T.attr(n, \"k\", 1) as q:\n    pass",
        "A[0, 0] = T.Let(v, where={v: 1.0})",
        "A[0, 0] = T.Let(v, where={1: 1.0})",
        "A[0, 0] = T.Cast(\"float32x0\", 1)",
        "A[0, 0] = T.Cast(\"xx\", 1)",
        "A[0, 0] = T.fma(1, 2, 3)",
        "A[0, 0] = T.likely(1)",
        "A[0, 0] = f\"{n}\"",
        "A[0, 0] = -True",
        "A[0, 0] = T.Select(n > 0, A[0, 0:4], A[0, 0:8])",
        "T.func_attr({1: 2})",
        "T.func_attr({\"a\": 9223372036854775808})",
        "x, y = n",
        "x, y = T.int32(), T.int32()",
        "return n",
    ] {
        if let Ok(kernels) = parse_module(&kernel(body)) {
            let text = print_kernel(&kernels[0]);
            let again = parse_module(&text).unwrap_or_else(|error| panic!("{body}: {error}\n{text}"));
            assert_eq!(print_kernel(&again[0]), text);
        }
    }
}

/// The files of the project and some generated kernels.
fn texts() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let folder = format!("{}/../../tests/files/parse", env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the folder of files") {
            files.push(entry.expect("an entry").path());
        }
        files.retain(|path| path.extension().is_some_and(|e| e == "py"));
        files.sort();
        let files = files.iter().map(|path| std::fs::read_to_string(path).expect("a file"));
        let generated = (0..60).map(|seed| print_kernel(&generate::kernel(seed))).filter(|t| t.len() < 3000);
        files.chain(generated).collect()
    })
}

/// One of the texts with some bytes replaced, removed, repeated or put elsewhere.
fn mutated(which: usize, edits: &[(usize, usize, u8)]) -> String {
    let texts = texts();
    let mut text = texts[which % texts.len()].clone().into_bytes();
    for &(at, kind, byte) in edits {
        if text.is_empty() {
            break;
        }
        let at = at % text.len();
        let end = (at + 1 + usize::from(byte) % 12).min(text.len());
        match kind % 5 {
            0 => text[at] = byte,
            1 => {
                text.drain(at..end);
            }
            2 => {
                let part = text[at..end].to_vec();
                text.splice(at..at, part);
            }
            3 => {
                let part: Vec<u8> = text.drain(at..end).collect();
                let to = usize::from(byte) * 7 % (text.len() + 1);
                text.splice(to..to, part);
            }
            _ => {
                let signs = b"()[]{}:,.=+-*/%<>\"'\\\n #@0aT";
                text[at] = signs[usize::from(byte) % signs.len()];
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Whatever is read can be printed, and read again.
fn check_any(text: &str) {
    if let Ok(kernels) = parse_module(text) {
        for kernel in &kernels {
            let printed = print_kernel(kernel);
            let again =
                parse_module(&printed).unwrap_or_else(|error| panic!("{error}\n{text}\n---\n{printed}"));
            assert_eq!(print_kernel(&again[0]), printed, "{text}");
            assert!(again[0] == *kernel, "{text}\n---\n{printed}");
        }
    }
    if let Err(error) = parse_calls(text) {
        assert!(error.range.end <= text.len() && error.line >= 1 && error.column >= 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::default() })]

    #[test]
    fn mutated_kernels_never_panic(
        which in any::<usize>(),
        edits in prop::collection::vec((any::<usize>(), 0usize..5, any::<u8>()), 1..6),
    ) {
        check_any(&mutated(which, &edits));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_any(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_words_of_the_dialect_never_panic(words in prop::collection::vec(prop::sample::select(vec![
        "A", "n", "T", ".", "(", ")", "[", "]", "{", "}", ",", ":", "=", "+", "-", "*", "/", "//", "%", "<", "and", "or",
        "not", "0", "1", "4", "2.5", "\"float32\"", "\"x\"", "\n    ", "\n        ", "for", "in", "range", "if", "else", "with",
        "as", "T.exp", "T.Ramp", "T.Broadcast", "T.Cast", "T.Let", "T.allocate", "T.Buffer", "T.launch_thread", "T.attr",
        "T.alloc_buffer", "Tx.sum", "Tx.copy", "A.data", "A.strides", "A.view", "lambda", "x", "T.comm_reducer", "layout=",
        "TileLayout", "S", "R", "@", "where=", "data=", "T.int64", "T.Select", "None", "True",
    ]), 0..40)) {
        check_any(&kernel(&words.join(" ")));
    }
}
