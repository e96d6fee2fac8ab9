//! Schedules: primitives that rewrite a loop nest, their legality, and the trace that records them.
