//! Facts about this CPU: what text compiled for it depends on, and what the planner asks.

use std::io::Read as _;
use std::sync::OnceLock;

use coulis_exec::{ExecError, Level};
use coulis_ir::Target;

use crate::environment::Environment;
use crate::error::RuntimeError;

/// Every name of an instruction set extension and of the model, as the system lists them: part of the key of
/// compiled files, since the compiler is asked for code for this very CPU.
pub fn fingerprint() -> &'static str {
    static FINGERPRINT: OnceLock<String> = OnceLock::new();
    FINGERPRINT.get_or_init(|| {
        let listing = first_cpu().unwrap_or_default();
        let one_cpu = listing.split("\n\n").next().unwrap_or_default();
        let keep = ["vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features"];
        let lines = one_cpu.lines().filter(|line| keep.iter().any(|name| line.starts_with(name)));
        format!("{}\n{}", std::env::consts::ARCH, lines.collect::<Vec<_>>().join("\n"))
    })
}

/// The beginning of the system's list up to the end of the first CPU: the system makes the list as it is read, which
/// takes milliseconds for many CPUs.
fn first_cpu() -> std::io::Result<String> {
    let mut file = std::fs::File::open("/proc/cpuinfo")?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let n = file.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..n]);
        if n == 0 || bytes.windows(2).any(|pair| pair == b"\n\n") {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// What kernels may use of this CPU: the best that it has, or what `COULIS_CPU` names, to try what another machine would
/// do.
pub fn level(environment: &Environment) -> Result<Level, RuntimeError> {
    let Some(word) = &environment.coulis_cpu else { return Ok(Level::detect()) };
    let named = Level::ALL.into_iter().find(|level| word.to_str() == Some(level.word()));
    let level =
        named.ok_or_else(|| RuntimeError::NoSuchLevel { found: word.to_string_lossy().into_owned() })?;
    if level.is_available() { Ok(level) } else { Err(ExecError::Level { level: level.name() }.into()) }
}

/// The target of compiled C of a level, on `n_threads` threads.
pub fn target(n_threads: usize, level: Level) -> Target {
    let (vector_bytes, n_registers) = vectors(level);
    let n_threads = n_threads.clamp(1, u32::MAX as usize) as u32;
    let machine = Target::cpu(vector_bytes, n_threads);
    Target {
        register_bytes: vector_bytes * n_registers,
        first_cache_bytes: cache_bytes(0).unwrap_or(32 << 10),
        cache_bytes: cache_bytes(2).unwrap_or(machine.cache_bytes),
        pages: pages(),
        reads_ahead: amd_family() == Some(ZEN_4),
        widens_from_memory: amd_family().is_none(),
        separate_adders: amd_family().is_some() && level != Level::Baseline,
        halves_vectors: amd_family() == Some(ZEN_4) && level == Level::Avx512,
        ..machine
    }
}

/// Bytes of a vector register, and their number.
fn vectors(level: Level) -> (u32, u32) {
    match level {
        Level::Baseline if cfg!(target_arch = "x86_64") => (16, 16),
        Level::Baseline => (16, 32),
        Level::Avx2 => (32, 16),
        Level::Avx512 => (64, 32),
    }
}

/// Pages read side by side. Four keep more lines on their way where those that hardware asks for by itself end with a page;
/// AMD's cores (measured on Zen 5) read one stream a fifth faster than four.
fn pages() -> u32 {
    if amd_family().is_some() { 1 } else { 4 }
}

/// The family of Zen 3 and Zen 4; that of Zen 5 is 26.
const ZEN_4: u32 = 25;

/// The family of a core by AMD. Such cores widen halves where they are, while Intel's wait for the port that moves lanes (measured on
/// Zen 5 and Sapphire Rapids).
fn amd_family() -> Option<u32> {
    let value = |name: &str| fingerprint().lines().find(|line| line.starts_with(name))?.split(':').nth(1);
    value("vendor_id").filter(|vendor| vendor.trim() == "AuthenticAMD")?;
    value("cpu family")?.trim().parse().ok()
}

/// Bytes of a cache as Linux lists them: 0 is the first level's of data, 2 the second level.
fn cache_bytes(index: u32) -> Option<u64> {
    let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let scale = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => 1,
    };
    digits.parse::<u64>().ok().map(|n| n * scale)
}
