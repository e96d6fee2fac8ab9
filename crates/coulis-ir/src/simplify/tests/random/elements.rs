//! Where the elements of random expressions lie.

use super::{Dice, lanes, world};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr};
use crate::simplify::element_range;

#[test]
fn elements_are_in_the_range_of_what_they_are_made_of() {
    let world = world();
    let mut dice = Dice(6);
    let (mut narrower, x) = (0, world.int(&mut dice, 0));
    for _ in 0..2_000 {
        let (any, byte) = (world.any(&mut dice), world.byte(&mut dice, 3).cast(DType::I64));
        let halved = Expr::binary(BinaryOp::Shr, x.clone(), Expr::int(dice.range(0, 40) as i32));
        let masked =
            Expr::binary(BinaryOp::BitAnd, world.int(&mut dice, 2), Expr::int(dice.range(0, 99) as i32));
        for expr in [any, byte.clone() - masked.clone().cast(DType::I64), masked - halved] {
            let Some((least, most)) = element_range(&expr) else {
                assert!(expr.dtype().is_float());
                continue;
            };
            narrower += u32::from(expr.dtype().int_range().is_some_and(|range| range != (least, most)));
            for _ in 0..6 {
                let Some(got) = lanes(&expr, &world.values(&mut dice)) else { continue };
                let holds = got.iter().all(|element| (least..=most).contains(element));
                assert!(holds, "{expr:?} in {least}..={most} is {got:?}");
            }
        }
    }
    assert!(narrower > 2_000, "{narrower}");
}
