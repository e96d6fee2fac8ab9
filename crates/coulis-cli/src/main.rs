//! The coulis command line.

fn main() {}
