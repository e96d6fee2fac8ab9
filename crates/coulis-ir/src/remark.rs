//! Keys of all remarks ([`Stmt::Annotate`](crate::Stmt::Annotate)) that coulis writes or reads.

/// The key of an allocation that is kept twice, so that one half is filled while the other is read.
pub const DOUBLE_BUFFER: &str = "double_buffer";

/// The key of a loop that stays a loop: no pass writes its iterations out, and compilers of its text are told not to.
pub const ROLLED: &str = "rolled";
/// The key of memory that begins as zeros: the remark stands at the allocation.
pub const ZEROED: &str = "zeroed";
/// The value of [`ZEROED`] where a call also leaves the memory so, and it need not be filled again.
pub const LEFT_ZERO: &str = "left";
/// The key of a launch that the last block of the launch before it does.
pub const IN_LAST_BLOCK: &str = "in_last_block";
/// The key of an allocation that stays where it stands.
pub const IN_PLACE: &str = "in_place";
/// The key of statements whose accesses to shared memory are ordered among themselves.
pub const SYNCHRONIZED: &str = "synchronized";
/// The key of statements whose results in global memory other threads of the block read in the same launch.
pub const HANDED_OVER: &str = "handed_over";

/// What the keys of pragmas begin with.
const PRAGMA: &str = "pragma_";

/// The pragma of loops that are expanded: as [`LoopKind::Unrolled`](crate::LoopKind::Unrolled), of which no remark is left.
pub const UNROLL: &str = "unroll";
/// The pragma of loops over lanes: as [`LoopKind::Vectorized`](crate::LoopKind::Vectorized), of which no remark is left.
pub const VECTORIZE: &str = "vectorize";
/// The pragma under which constant serial loops of up to so many steps are expanded.
pub const AUTO_UNROLL_MAX_STEP: &str = "auto_unroll_max_step";
/// The pragma that chooses between expanded text and a request to the compiler.
pub const UNROLL_EXPLICIT: &str = "unroll_explicit";
/// The pragma of loops that ask for the memory of the iteration that many later.
pub const PREFETCH: &str = "prefetch";
/// The pragma of loops that ask for the memory that lies that many bytes behind what they read; by more than
/// [`PREFETCH_NEAR_BYTES`], into the second-level cache only.
pub const PREFETCH_BYTES: &str = "prefetch_bytes";
/// What is asked for by more bytes before it is read does not stay in a first-level cache until then.
pub const PREFETCH_NEAR_BYTES: i64 = 16 << 10;
/// As [`PREFETCH`], into the second-level cache only.
pub const PREFETCH_L2: &str = "prefetch_l2";
/// The pragma of loops whose results nothing reads soon; 0 is none.
pub const STREAM: &str = "stream";
/// The pragma of loops whose copies of words into shared memory pass no registers, and are there when the loop ends; 0 is none.
pub const ASYNC_COPY: &str = "async_copy";
/// The pragma of launches of which a multiprocessor is to hold that many blocks.
pub const RESIDENT: &str = "resident";

/// The key of the remark of a pragma.
pub fn pragma_key(pragma: &str) -> String {
    format!("{PRAGMA}{pragma}")
}

/// Whether a remark's key is that of the pragma.
pub fn is_pragma(key: &str, pragma: &str) -> bool {
    key.strip_prefix(PRAGMA) == Some(pragma)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_that_of_the_pragma_it_was_made_of_alone() {
        assert_eq!(pragma_key(STREAM), "pragma_stream");
        assert!(is_pragma(&pragma_key(STREAM), STREAM));
        for other in [STREAM, "pragma_", "pragma_streams", "pragma_pragma_stream", DOUBLE_BUFFER] {
            assert!(!is_pragma(other, STREAM), "{other}");
        }
    }
}
