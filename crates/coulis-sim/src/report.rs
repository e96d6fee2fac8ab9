//! What a run gives in addition to its outputs: violations and counters, with a table for people.

use std::fmt;

use crate::violation::Violation;

/// Accesses of one kind to global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions of a warp.
    pub requests: u64,
    /// Bytes that threads asked for.
    pub bytes: u64,
    /// Sectors of 32 bytes that instructions touched.
    pub sectors: u64,
    /// Lines of 128 bytes that instructions touched.
    pub lines: u64,
}

impl Traffic {
    /// Bytes asked for by byte moved. 1 is coalesced; it is larger where threads ask for the same bytes.
    pub fn efficiency(&self) -> Option<f64> {
        (self.sectors > 0).then(|| self.bytes as f64 / (self.sectors * 32) as f64)
    }
}

/// What the machine would have been busy with, in the ascending order of blocks and warps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Launches of a grid.
    pub launches: u64,
    /// Blocks.
    pub blocks: u64,
    /// Threads.
    pub threads: u64,
    /// Statements times the threads that executed them: stores, bindings, conditions, iterations of loops,
    /// atoms, barriers.
    pub thread_statements: u64,
    /// Statements times the warps that executed them.
    pub warp_statements: u64,
    /// Loads from global memory.
    pub global_loads: Traffic,
    /// Stores to global memory.
    pub global_stores: Traffic,
    /// Instructions of a warp on shared memory.
    pub shared_requests: u64,
    /// Additional turns that they took, since threads asked for different words of one of 32 banks of 4 bytes.
    pub bank_conflicts: u64,
    /// Barriers times the warps that met them: of the block, of a warpgroup, named.
    pub barriers: u64,
    /// Barriers of a warp.
    pub warp_barriers: u64,
    /// Shuffles times the warps that executed them.
    pub shuffles: u64,
    /// Folds of a warp in one instruction, times the warps that executed them.
    pub reduxes: u64,
    /// Votes times the warps that executed them.
    pub votes: u64,
    /// Atomic updates times the threads that executed them.
    pub atomics: u64,
    /// Fences times the warps that executed them.
    pub fences: u64,
}

impl Counters {
    /// Name and value of each counter, in the order of the table.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let percent = |t: &Traffic| t.efficiency().map_or("-".to_owned(), |e| format!("{:.1} %", 100.0 * e));
        let (loads, stores) = (&self.global_loads, &self.global_stores);
        vec![
            ("launches", self.launches.to_string()),
            ("blocks", self.blocks.to_string()),
            ("threads", self.threads.to_string()),
            ("thread statements", self.thread_statements.to_string()),
            ("warp statements", self.warp_statements.to_string()),
            ("global load requests", loads.requests.to_string()),
            ("global load bytes", loads.bytes.to_string()),
            ("global load sectors", loads.sectors.to_string()),
            ("global load lines", loads.lines.to_string()),
            ("global load efficiency", percent(loads)),
            ("global store requests", stores.requests.to_string()),
            ("global store bytes", stores.bytes.to_string()),
            ("global store sectors", stores.sectors.to_string()),
            ("global store lines", stores.lines.to_string()),
            ("global store efficiency", percent(stores)),
            ("shared requests", self.shared_requests.to_string()),
            ("bank conflicts", self.bank_conflicts.to_string()),
            ("barriers", self.barriers.to_string()),
            ("warp barriers", self.warp_barriers.to_string()),
            ("shuffles", self.shuffles.to_string()),
            ("reduxes", self.reduxes.to_string()),
            ("votes", self.votes.to_string()),
            ("atomics", self.atomics.to_string()),
            ("fences", self.fences.to_string()),
        ]
    }
}

/// What a run gives in addition to the outputs, which are changed in place.
#[derive(Clone, Debug, PartialEq)]
pub struct SimReport {
    /// Kernel name.
    pub kernel: String,
    /// What was found, in the order of its text.
    pub violations: Vec<Violation>,
    /// The printed kernel with each violation as a comment under its statement.
    pub listing: String,
    /// What was counted.
    pub counters: Counters,
}

impl SimReport {
    /// Whether there is no violation.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for SimReport {
    /// The counters as a table, then the violations, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.counters.rows();
        let left = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let right = rows.iter().map(|(_, value)| value.len()).max().unwrap_or(0);
        for (name, value) in rows {
            writeln!(f, "{name:<left$}  {value:>right$}")?;
        }
        match self.violations.len() {
            0 => writeln!(f, "no violation"),
            1 => writeln!(f, "1 violation"),
            n => writeln!(f, "{n} violations"),
        }?;
        self.violations.iter().try_for_each(|violation| writeln!(f, "- {violation}"))
    }
}
