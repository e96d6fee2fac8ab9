//! Emits C-family text from checked Flat kernels.
