//! Readers of array files, memory-mapped where the format allows.
