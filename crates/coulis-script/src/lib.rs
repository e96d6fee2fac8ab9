//! Reads the TVMScript dialect of coulis: kernels and schedule traces.
