//! Set-up, tests, tidy checks and benchmarks of coulis.

fn main() {}
