//! Devices: compile cache, buffers, launches.
