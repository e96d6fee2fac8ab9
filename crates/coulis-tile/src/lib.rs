//! Tile calls: each is replaced by the statements of the best variant that accepts it.
//!
//! A variant states its needs, its priority and its numerics, and answers with statements or with the needs that
//! failed. The same dispatcher serves schedules that bind reduce axes to threads and kernels written with tile calls.

#![forbid(unsafe_code)]
