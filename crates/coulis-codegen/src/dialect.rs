//! Dialects: how each target spells what the walker decides.

mod c;

use crate::EmitError;
use crate::c::helper::{Helper, Needs};
use crate::c::types::VTy;

/// Every dialect. One file each.
pub static DIALECTS: &[&dyn Dialect] = &[&c::C];

/// A target's spelling.
pub trait Dialect: Sync {
    /// Name in options and listings.
    fn name(&self) -> &'static str;

    /// Words that names must not take: keywords, and what the prelude defines.
    fn reserved(&self) -> &'static [&'static str];

    /// Definitions of the scalar type names and of the entry's parameter types.
    fn prelude(&self) -> &'static str;

    /// The declaration of a vector type's name.
    fn vector_type(&self, ty: VTy) -> String;

    /// The declaration of `name`, the same type aligned to its lanes only and allowed to alias others.
    fn unaligned_type(&self, ty: VTy, name: &str) -> String;

    /// The definition of a helper.
    fn helper(&self, helper: Helper, needs: &mut dyn Needs) -> Result<String, EmitError>;

    /// The head of the entry function, without the brace. Pointers are in `buf`, scalars in `scalar`.
    fn entry_head(&self, name: &str) -> String;

    /// The head of a function that runs iterations `begin..end` of a parallel loop, without the brace.
    fn body_head(&self, name: &str) -> String;

    /// The call that runs `body` for iterations `0..extent` with the context `context`, on all threads.
    fn parallel_call(&self, body: &str, extent: &str, context: &str) -> String;

    /// The declaration of an array of one thread.
    fn local_array(&self, element: &str, name: &str, length: u64) -> String;

    /// The hint that memory at an address will be read soon; `None` drops it.
    fn prefetch(&self, address: &str) -> Option<String> {
        let _ = address;
        None
    }
}
