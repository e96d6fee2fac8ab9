//! Tile calls of scheduled reductions, from text to Flat form.

use coulis_ir::print::print_module;
use coulis_ir::{Form, Kernel, Target};
use coulis_lower::{Options, lower};
use coulis_script::parse_module;
use std::path::Path;

/// Listing 6 of seed 003 before dispatch: rows split by 32, the factored axis of 16 on `threadIdx.x`.
const LISTING_6: &str = r#"
@T.prim_func
def default_function(A: T.handle, B: T.handle):
    n, m = T.int32(), T.int32()
    A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
    B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
    blockIdx_x = T.launch_thread("blockIdx.x", (n + 31) // 32)
    threadIdx_y = T.launch_thread("threadIdx.y", 32)
    threadIdx_x = T.launch_thread("threadIdx.x", 16)
    B_rf = T.allocate([1], "float32", "local")
    B_rf[0] = T.float32(0)
    for k_outer in range((m + 15) // 16):
        if T.likely(blockIdx_x * 32 + threadIdx_y < n):
            if T.likely(k_outer * 16 + threadIdx_x < m):
                B_rf[0] = B_rf[0] + A_1[blockIdx_x * 32 + threadIdx_y, k_outer * 16 + threadIdx_x]
    red_buf0 = T.alloc_buffer([32, 16], "float32", scope="local", layout=TileLayout(S[(32, 16) : (16 @ tx, 1 @ tx)]))
    mine = red_buf0.local(1)
    mine[0] = B_rf[0]
    total = red_buf0.view(32, layout=TileLayout(S[32 : 16 @ tx] + R[16 : 1 @ tx]))
    Tx.cta.reduce(total, red_buf0, reducer=T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), axes=(1,), accum=False)
    whole = total.local(1)
    if threadIdx_x == 0 and blockIdx_x * 32 + threadIdx_y < n:
        B_1[blockIdx_x * 32 + threadIdx_y] = whole[0]
"#;

fn parsed(text: &str) -> Kernel {
    parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0)
}

fn lowered(kernel: Kernel, target: &Target) -> Kernel {
    let options = Options { target, simple_mode: false };
    let flat = lower(kernel, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{e}"));
    match coulis_ir::verify::verify(flat) {
        Ok(checked) => checked.kernel().clone(),
        Err(faults) => panic!("{faults}:\n{}", faults.listing),
    }
}

#[track_caller]
fn check_golden(file: &str, kernel: Kernel) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/lower").join(file);
    let got = print_module(&[kernel]);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &got).expect("the golden is written");
    }
    let want = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(got, want, "found:\n{got}\nwanted:\n{want}");
}

#[test]
fn listing_6_folds_by_shuffles_within_half_a_warp() {
    let kernel = parsed(LISTING_6);
    assert_eq!(kernel.form, Form::Tiled);
    let flat = lowered(kernel, &Target::cuda("sm_90a").unwrap());
    let program = coulis_ir::device::host_program(&flat).unwrap();
    assert_eq!(program.launches[0].n_threads(), Some(512));
    check_golden("listing_6_cross_thread.py", flat);
}

/// A kernel of one block whose threads each hold one element of `A`, folded along `axes` of a tile of `extents`
/// (outermost first, z, y, x) into `B`, one a group.
struct Call<'a> {
    extents: [u32; 3],
    reduced: &'a [usize],
    dtypes: &'a [&'a str],
    reducer: &'a str,
    options: &'a str,
}

impl Call<'_> {
    fn text(&self) -> String {
        use std::fmt::Write;
        let [z, y, x] = self.extents;
        let weights = [x * y, x, 1];
        let tuple = |of: Vec<String>| format!("({})", of.join(", "));
        let kept: Vec<usize> = (0..3).filter(|d| !self.reduced.contains(d)).collect();
        let steps = |dims: &[usize]| {
            let extents = tuple(dims.iter().map(|&d| self.extents[d].to_string()).collect());
            format!("{extents} : {}", tuple(dims.iter().map(|&d| format!("{} @ tx", weights[d])).collect()))
        };
        let shape = |dims: &[usize]| dims.iter().map(|&d| self.extents[d].to_string()).collect::<Vec<_>>().join(", ");
        let groups: u32 = kept.iter().map(|&d| self.extents[d]).product();
        let mut text = String::from("@T.prim_func\ndef call(");
        let n = self.dtypes.len();
        let params: Vec<String> = self.dtypes.iter().enumerate().flat_map(|(i, d)| {
            [format!("A{i}: T.Buffer(({},), \"{d}\")", x * y * z), format!("B{i}: T.Buffer(({groups},), \"{d}\")")]
        }).collect();
        writeln!(text, "{}):", params.join(", ")).unwrap();
        for (tag, extent) in [("z", z), ("y", y), ("x", x)] {
            writeln!(text, "    t{tag} = T.launch_thread(\"threadIdx.{tag}\", {extent})").unwrap();
        }
        for (i, d) in self.dtypes.iter().enumerate() {
            writeln!(text, "    r{i} = T.alloc_buffer([{z}, {y}, {x}], \"{d}\", scope=\"local\", layout=TileLayout(S[{}]))", steps(&[0, 1, 2])).unwrap();
            writeln!(text, "    mine{i} = r{i}.local(1)").unwrap();
            writeln!(text, "    mine{i}[0] = A{i}[tz * {} + ty * {x} + tx]", x * y).unwrap();
        }
        for i in 0..n {
            let (extents, shard) = match kept.is_empty() {
                true => ("1".to_owned(), "1 : 1 @ tx".to_owned()),
                false => (shape(&kept), steps(&kept)),
            };
            writeln!(text, "    total{i} = r{i}.view({extents}, layout=TileLayout(S[{shard}] + R[{}]))", steps(self.reduced)).unwrap();
        }
        let all = |name: &str| (0..n).map(|i| format!("{name}{i}")).collect::<Vec<_>>().join(", ");
        let axes = self.reduced.iter().map(|a| format!("{a},")).collect::<String>();
        let (dsts, srcs) = match n {
            1 => (all("total"), all("r")),
            _ => (format!("({})", all("total")), format!("({})", all("r"))),
        };
        writeln!(text, "    Tx.cta.reduce({dsts}, {srcs}, reducer={}, axes=({axes}), accum=False{})", self.reducer, self.options).unwrap();
        let mut group = String::from("0");
        for &d in &kept {
            group = format!("({group}) * {} + {}", self.extents[d], ["tz", "ty", "tx"][d]);
        }
        let first: Vec<String> = self.reduced.iter().map(|&d| format!("{} == 0", ["tz", "ty", "tx"][d])).collect();
        for i in 0..n {
            writeln!(text, "    whole{i} = total{i}.local(1)").unwrap();
        }
        writeln!(text, "    if {}:", first.join(" and ")).unwrap();
        for i in 0..n {
            writeln!(text, "        B{i}[{group}] = whole{i}[0]").unwrap();
        }
        text
    }
}

const SUM: &str = "T.comm_reducer(lambda x, y: x + y, [T.float32(0)])";

#[test]
fn probe() {
    for (extents, reduced, options) in [
        ([1, 1, 20], &[2usize][..], ""),
        ([1, 2, 512], &[2][..], ""),
        ([1, 16, 26], &[2][..], ""),
        ([1, 4, 8], &[1][..], ""),
        ([1, 4, 8], &[1][..], ", dispatch=\"serial\""),
    ] {
        let call = Call { extents, reduced, dtypes: &["float32"], reducer: SUM, options };
        println!("{}", call.text());
        let flat = lowered(parsed(&call.text()), &Target::cuda("sm_90a").unwrap());
        println!("{}", print_module(&[flat]));
    }
}
