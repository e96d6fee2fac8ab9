//! What the memory system would do for one instruction of a warp: sectors, lines, bank conflicts.
//!
//! Source: CUDA C++ Best Practices Guide, coalesced access to global memory (32-byte sectors, 128-byte lines) and
//! shared memory (32 banks of 4 bytes; threads that ask for the same word are served together). Accesses of more than
//! 4 bytes a thread are served for as many threads at a time as 128 bytes hold.

use crate::report::Traffic;

/// Counts an instruction whose active lanes touch `bytes` bytes each from these addresses.
pub(crate) fn count_global(traffic: &mut Traffic, addresses: &[u64], bytes: u64) {
    traffic.requests += 1;
    traffic.bytes += addresses.len() as u64 * bytes;
    traffic.sectors += distinct(addresses, bytes, 5);
    traffic.lines += distinct(addresses, bytes, 7);
}

/// Aligned pieces of `1 << shift` bytes that are touched.
fn distinct(addresses: &[u64], bytes: u64, shift: u32) -> u64 {
    let mut n = 0;
    let mut next = 0;
    let mut ascending = true;
    for address in addresses {
        let (first, last) = (address >> shift, (address + bytes - 1) >> shift);
        if n > 0 && first + 1 < next {
            ascending = false;
            break;
        }
        n += (last + 1).saturating_sub(next.max(first));
        next = next.max(last + 1);
    }
    if ascending {
        return n;
    }
    let pieces = addresses.iter().flat_map(|a| (a >> shift)..=((a + bytes - 1) >> shift));
    let mut pieces: Vec<u64> = pieces.collect();
    pieces.sort_unstable();
    pieces.dedup();
    pieces.len() as u64
}

/// Turns of the 32 banks beyond the first that an instruction takes.
pub(crate) fn bank_conflicts(addresses: &[u64], bytes: u64) -> u64 {
    let at_once = (128 / bytes.max(4)).max(1) as usize;
    addresses.chunks(at_once).map(|part| turns(part, bytes) - 1).sum()
}

fn turns(addresses: &[u64], bytes: u64) -> u64 {
    let mut words = [0u64; 32];
    let mut used = 0u32;
    let mut clash = false;
    let mut ask = |word: u64| {
        let bank = (word % 32) as usize;
        clash |= used >> bank & 1 == 1 && words[bank] != word;
        used |= 1 << bank;
        words[bank] = word;
    };
    for address in addresses {
        match bytes {
            // An element does not cross words.
            1 | 2 | 4 => ask(address >> 2),
            _ => ((address >> 2)..=((address + bytes - 1) >> 2)).for_each(&mut ask),
        }
    }
    if !clash {
        return 1;
    }
    let mut all: Vec<u64> = addresses.iter().flat_map(|a| (a >> 2)..=((a + bytes - 1) >> 2)).collect();
    all.sort_unstable();
    all.dedup();
    let mut n = [0u64; 32];
    all.iter().for_each(|word| n[(word % 32) as usize] += 1);
    n.into_iter().max().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(addresses: &[u64], bytes: u64) -> (u64, u64) {
        let mut traffic = Traffic::default();
        count_global(&mut traffic, addresses, bytes);
        (traffic.sectors, traffic.lines)
    }

    #[test]
    fn sectors_and_lines_are_those_that_are_touched() {
        let at = |stride: u64| (0..32).map(|i| i * stride).collect::<Vec<u64>>();
        assert_eq!(sectors(&at(4), 4), (4, 1));
        assert_eq!(sectors(&at(8), 8), (8, 2));
        assert_eq!(sectors(&at(128), 4), (32, 32));
        assert_eq!(sectors(&[0; 32], 4), (1, 1));
        let mut backwards = at(4);
        backwards.reverse();
        assert_eq!(sectors(&backwards, 4), (4, 1));
        assert_eq!(sectors(&[30], 4), (2, 1));
    }

    #[test]
    fn banks_serve_one_word_each_a_turn() {
        let at = |stride: u64| (0..32).map(|i| i * stride).collect::<Vec<u64>>();
        assert_eq!(bank_conflicts(&at(4), 4), 0);
        assert_eq!(bank_conflicts(&at(8), 4), 1);
        assert_eq!(bank_conflicts(&at(128), 4), 31);
        assert_eq!(bank_conflicts(&at(132), 4), 0);
        assert_eq!(bank_conflicts(&[64; 32], 4), 0);
        assert_eq!(bank_conflicts(&at(8), 8), 0);
        assert_eq!(bank_conflicts(&at(1), 1), 0);
    }
}
