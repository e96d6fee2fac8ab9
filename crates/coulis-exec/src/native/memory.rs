//! Memory that holds machine code: written first, then executable and no longer writable.

use std::sync::OnceLock;

use memmap2::{Mmap, MmapMut};

/// Machine code that stays where it is.
pub(super) struct CodeMemory(Mmap);

impl CodeMemory {
    /// The code in executable memory; `None` where the system gives none.
    pub(super) fn new(code: &[u8]) -> Option<CodeMemory> {
        let mut memory = MmapMut::map_anon(code.len().max(1)).ok()?;
        memory[..code.len()].copy_from_slice(code);
        memory.make_exec().ok().map(CodeMemory)
    }

    /// The address of a byte of the code.
    pub(super) fn at(&self, offset: usize) -> *const u8 {
        self.0.as_ptr().wrapping_add(offset)
    }
}

/// Whether this system gives executable memory at all.
pub(super) fn is_given() -> bool {
    static GIVEN: OnceLock<bool> = OnceLock::new();
    *GIVEN.get_or_init(|| CodeMemory::new(&[0xc3]).is_some())
}
