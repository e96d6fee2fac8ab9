//! The bytes behind an array: a shared memory map, an owned allocation aligned for any vector load, or memory of someone
//! else.
//!
//! A mapped file is read as it is at that moment; `mapped` says what becomes of one that is cut short meanwhile.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::MmapMut;

use crate::mapped::Mapped;

/// Alignment of owned bytes: one cache line, which is also the widest vector register.
const ALIGN: usize = 64;

/// From this number of bytes on memory comes from the system in pages of its own, for which large pages are
/// asked: walks over rows far apart meet fewer of them.
const LARGE: usize = 4 << 20;

/// An allocation that the machine refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an allocation of {bytes} bytes was refused by the system")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: u64,
}

/// Owned bytes, aligned to 64 and zeroed at first.
#[derive(Debug)]
pub struct AlignedBytes {
    ptr: NonNull<u8>,
    len: usize,
    /// Where `ptr` points to, where it is not from the allocator.
    pages: Option<MmapMut>,
}

// SAFETY: the allocation is owned by this value alone and has no interior mutability.
unsafe impl Send for AlignedBytes {}
// SAFETY: as above; a shared reference gives shared access only.
unsafe impl Sync for AlignedBytes {}

impl AlignedBytes {
    /// `len` zero bytes; an error instead of an abort when the system has no memory left.
    pub fn zeroed(len: usize) -> Result<AlignedBytes, OutOfMemory> {
        let refused = OutOfMemory { bytes: len as u64 };
        if len >= LARGE {
            let mut pages = MmapMut::map_anon(len).map_err(|_| refused)?;
            // Advice: where the system has no large pages, small ones do.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage);
            let ptr = NonNull::new(pages.as_mut_ptr()).ok_or(refused)?;
            return Ok(AlignedBytes { ptr, len, pages: Some(pages) });
        }
        // A zero length is rounded up to one, so that the pointer is always a real one.
        let layout = Layout::from_size_align(len.max(1), ALIGN).map_err(|_| refused)?;
        // SAFETY: the layout has a size of at least 1.
        let ptr = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(refused)?;
        Ok(AlignedBytes { ptr, len, pages: None })
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Result<AlignedBytes, OutOfMemory> {
        let mut owned = AlignedBytes::zeroed(bytes.len())?;
        owned.as_mut_slice().copy_from_slice(bytes);
        Ok(owned)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// Where they begin, for who takes them to another library: writing there is as with any pointer its affair.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        if self.pages.is_some() {
            return;
        }
        if let Ok(layout) = Layout::from_size_align(self.len.max(1), ALIGN) {
            // SAFETY: `ptr` came from `alloc_zeroed` with this same layout and is freed once.
            unsafe { dealloc(self.ptr.as_ptr(), layout) }
        }
    }
}

/// What keeps memory of someone else alive.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// Memory of someone else, who keeps it as long as `owner` lives.
#[derive(Clone)]
pub(crate) struct Foreign {
    begin: *const u8,
    len: usize,
    _owner: Option<Owner>,
}

// SAFETY: `Foreign::new` promises memory that is only read while it is shared.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({:p}, {} bytes)", self.begin, self.len)
    }
}

impl Foreign {
    /// # Safety
    /// `begin` is not null, and `len` bytes from there are readable and not written as long as the value or a clone
    /// of it lives.
    pub(crate) unsafe fn new(begin: *const u8, len: usize, owner: Option<Owner>) -> Foreign {
        Foreign { begin, len, _owner: owner }
    }
}

/// Shared bytes of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// A file in the page cache.
    Mapped(Arc<Mapped>),
    /// Memory of our own.
    Owned(Arc<AlignedBytes>),
    /// Memory of someone else.
    Foreign(Foreign),
}

impl Storage {
    /// All bytes of the storage.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Mapped(file) => file.bytes(),
            Storage::Owned(owned) => owned.as_slice(),
            // SAFETY: the promise of `Foreign::new`.
            Storage::Foreign(foreign) => unsafe { std::slice::from_raw_parts(foreign.begin, foreign.len) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_bytes_are_aligned_and_zero_at_every_length() {
        for len in [0, 1, 63, 64, 65, 4096, LARGE - 1, LARGE, LARGE + 1] {
            let mut bytes = AlignedBytes::zeroed(len).unwrap();
            assert_eq!(bytes.as_slice(), vec![0; len]);
            assert_eq!(bytes.as_slice().as_ptr() as usize % ALIGN, 0);
            bytes.as_mut_slice().fill(1);
            assert_eq!((bytes.as_slice().len(), bytes.as_slice().last()), (len, (len > 0).then_some(&1)));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn large_memory_is_advised_to_lie_in_large_pages() {
        // `hg` among the flags of a mapping says that large pages were asked for.
        let is_advised = |bytes: &AlignedBytes| {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let at = bytes.as_slice().as_ptr() as usize;
            let mut inside = false;
            for line in maps.lines() {
                let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
                let ends = range.map(|(a, b)| [a, b].map(|end| usize::from_str_radix(end, 16)));
                if let Some([Ok(begin), Ok(end)]) = ends {
                    inside = (begin..end).contains(&at);
                } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| inside) {
                    return flags.split(' ').any(|flag| flag == "hg");
                }
            }
            false
        };
        let has_large_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(is_advised(&AlignedBytes::zeroed(LARGE).unwrap()), has_large_pages);
        assert!(!is_advised(&AlignedBytes::zeroed(4096).unwrap()));
    }

    #[test]
    fn an_impossible_length_is_an_error_not_an_abort() {
        assert_eq!(
            AlignedBytes::zeroed(usize::MAX).unwrap_err().to_string(),
            format!("an allocation of {} bytes was refused by the system", usize::MAX)
        );
    }
}
