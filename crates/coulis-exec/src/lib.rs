//! Executes checked Flat kernels on the CPU without a compiler.
