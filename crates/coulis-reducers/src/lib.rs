//! The catalogue of reducers, one file each.
