//! Tests of the simplifier: the written forms, the proofs that lowering needs, and evaluation of random expressions
//! before and after.

mod forms;
mod random;
