//! Passes that turn a Nest kernel into a Flat one.
