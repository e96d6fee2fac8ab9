//! Instruction-set levels: each vector loop is compiled once for each, and the best one is picked at run time.
//!
//! The levels differ in speed only: every operation has one rounding at every level, so the bits agree.

/// What the vector loops may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What every machine of the architecture has.
    Baseline,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, DQ, BW and VL.
    Avx512,
}

impl Level {
    /// The best level of this machine.
    pub fn detect() -> Level {
        if Level::Avx512.is_available() {
            Level::Avx512
        } else if Level::Avx2.is_available() {
            Level::Avx2
        } else {
            Level::Baseline
        }
    }

    /// Every level, slowest first.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Avx2 => "AVX2",
            Level::Avx512 => "AVX-512",
        }
    }

    /// The word by which it is asked for.
    pub const fn word(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Whether this machine has what the level uses.
    pub fn is_available(self) -> bool {
        match self {
            Level::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && Level::Avx2.is_available()
            }
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512 => false,
        }
    }
}
