//! The listings of seed 003 that need no threads, from program to text, line for line.

use coulis_ir::print::print_module;
use coulis_ir::{BinaryOp, DType, Expr, Target, ThreadTag};
use coulis_lower::{Options, lower};
use coulis_schedule::{Schedule, Split, build_nest, thread_index};
use coulis_tensor::{Tensor, TensorError, compute, placeholder, reduce_axis, sum, var};

fn text(schedule: &Schedule, args: &[Tensor]) -> String {
    let target = Target::cpu(64, 2);
    let kernel = build_nest(schedule, args, "main").expect("the nest is built");
    let options = Options { target: &target, simple_mode: true };
    let kernel = lower(kernel, &options, &mut |_, _| {}).expect("the nest lowers");
    print_module(&[kernel])
}

fn check(schedule: &Schedule, args: &[Tensor], want: &str) {
    let found = text(schedule, args);
    let lines = |text: &str| -> Vec<String> {
        let code = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        code.map(str::to_owned).collect()
    };
    let same = lines(&found) == lines(want);
    assert!(same, "found:\n{found}\nwanted:\n{want}");
}

struct RowSum {
    a: Tensor,
    b: Tensor,
    s: Schedule,
}

fn row_sum() -> Result<RowSum, TensorError> {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A")?;
    let k = reduce_axis(&m, "k");
    let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k)))?;
    let s = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).expect("a schedule");
    Ok(RowSum { a, b, s })
}

#[test]
fn listing_1_is_the_default_schedule() {
    let RowSum { a, b, s } = row_sum().expect("a program");
    check(&s, &[a, b], include_str!("listings/1.py"));
}

#[test]
fn listing_2_splits_both_axes() {
    let RowSum { a, b, mut s } = row_sum().expect("a program");
    let k = b.op().reduce_axes()[0].clone();
    s.split(&b, &k, Split::Factor(16)).expect("k splits");
    s.split(&b, &b.op().axes()[0], Split::Factor(32)).expect("i splits");
    check(&s, &[a, b], include_str!("listings/2.py"));
}

#[test]
fn listing_3_binds_rows_to_threads() {
    let RowSum { a, b, mut s } = row_sum().expect("a program");
    let k = b.op().reduce_axes()[0].clone();
    s.split(&b, &k, Split::Factor(16)).expect("k splits");
    let (outer, inner) = s.split(&b, &b.op().axes()[0], Split::Factor(32)).expect("i splits");
    s.bind(&b, &outer, ThreadTag::BlockX).expect("bound");
    s.bind(&b, &inner, ThreadTag::ThreadX).expect("bound");
    check(&s, &[a, b], include_str!("listings/3.py"));
}

#[test]
fn listing_6_begins_as_a_cooperative_call_on_a_register_tile() {
    let RowSum { a, b, mut s } = row_sum().expect("a program");
    let k = b.op().reduce_axes()[0].clone();
    let (_, inner) = s.split(&b, &k, Split::Factor(16)).expect("k splits");
    let partial = s.rfactor(&b, &inner).expect("k_inner factors");
    let row = s.stage(&b).expect("a stage").axes()[0].clone();
    let (outer, inner) = s.split(&b, &row, Split::Factor(32)).expect("rows split");
    s.bind(&b, &outer, ThreadTag::BlockX).expect("bound");
    s.bind(&b, &inner, ThreadTag::ThreadY).expect("bound");
    let over = s.stage(&b).expect("a stage").reduce_axes()[0].clone();
    s.bind(&b, &over, ThreadTag::ThreadX).expect("bound");
    s.compute_at(partial, &b, &over).expect("attached");
    let first = thread_index(ThreadTag::ThreadX).expr();
    s.set_store_predicate(&b, Expr::binary(BinaryOp::Eq, first, Expr::int(0))).expect("a predicate");
    let kernel = build_nest(&s, &[a, b], "main").expect("the nest is built");
    assert_eq!(coulis_ir::print::print_kernel(&kernel), include_str!("listings/6_tiled.py"));
}

#[test]
fn listings_4_and_5_factor_the_inner_part_of_k() {
    let RowSum { a, b, mut s } = row_sum().expect("a program");
    let k = b.op().reduce_axes()[0].clone();
    let (_, inner) = s.split(&b, &k, Split::Factor(16)).expect("k splits");
    s.rfactor(&b, &inner).expect("k_inner factors");
    let body = s.stage(&b).expect("a stage").body_text();
    assert_eq!(body, include_str!("listings/5.txt").trim_end());
    check(&s, &[a, b], include_str!("listings/4.py"));
}

#[test]
fn listing_7_is_a_convolution() {
    let n = var("n");
    let input = placeholder(&[n.expr(), n.expr()], DType::F32, "Input").expect("a tensor");
    let filter = placeholder(&[Expr::int(3), Expr::int(3)], DType::F32, "Filter").expect("a tensor");
    let (di, dj) = (reduce_axis(3, "di"), reduce_axis(3, "dj"));
    let side = n.expr() - Expr::int(2);
    let output = compute(&[side.clone(), side], "Output", |i| {
        let window = input.at((i[0].expr() + di.expr(), i[1].expr() + dj.expr()));
        sum(window * filter.at((&di, &dj)), &[di.clone(), dj.clone()])
    })
    .expect("a tensor");
    let args = [input, filter, output.clone()];
    let s = Schedule::new(&[output], &args).expect("a schedule");
    check(&s, &args, include_str!("listings/7.py"));
}
