//! Tensor expressions: placeholders, computes, reductions, and their reference evaluator.
