//! A reduction compiler: one read of the data, any set of statistics, at memory speed.
