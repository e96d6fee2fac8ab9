//! Times of several turns, and ratios between what was timed in the same turn.

use std::collections::BTreeMap;

/// Milliseconds by name of who was timed in a turn; who sat it out is missing.
pub type Turn = BTreeMap<String, f64>;

/// All turns of a workload.
#[derive(Clone, Debug, Default)]
pub struct Turns(Vec<Turn>);

impl Turns {
    /// Adds one.
    pub fn push(&mut self, turn: Turn) {
        self.0.push(turn);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many times as long as `to` `of` took: the median of the ratios of the turns that both took part
    /// in. `None` where there is none.
    pub fn ratio(&self, of: &str, to: &str) -> Option<f64> {
        median(self.0.iter().filter_map(|turn| Some(turn.get(of)? / turn.get(to)?)))
    }

    /// The least time.
    pub fn best(&self, of: &str) -> Option<f64> {
        self.times(of).reduce(f64::min)
    }

    /// The time in the middle.
    pub fn median(&self, of: &str) -> Option<f64> {
        median(self.times(of))
    }

    fn times(&self, of: &str) -> impl Iterator<Item = f64> {
        self.0.iter().filter_map(move |turn| turn.get(of).copied())
    }
}

/// The value in the middle, the mean of both where there are two.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some((values[last / 2] + values[last.div_ceil(2)]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(list: &[&[(&str, f64)]]) -> Turns {
        let turn =
            |times: &&[(&str, f64)]| times.iter().map(|(name, ms)| ((*name).to_owned(), *ms)).collect();
        Turns(list.iter().map(turn).collect())
    }

    #[test]
    fn a_ratio_pairs_times_of_one_turn() {
        // The machine runs at half the rate in the second turn and at a third in the last; the best times of each
        // library would say 0.5.
        let found = turns(&[&[("a", 2.0), ("b", 2.2)], &[("a", 4.0), ("b", 4.0)], &[("a", 6.0), ("b", 1.0)]]);
        assert_eq!(found.ratio("b", "a"), Some(1.0));
        assert_eq!([found.best("a"), found.best("b"), found.median("b")], [Some(2.0), Some(1.0), Some(2.2)]);
    }

    #[test]
    fn who_sat_a_turn_out_is_not_paired_in_it() {
        let found = turns(&[&[("a", 1.0), ("b", 3.0)], &[("a", 100.0)], &[("b", 100.0)], &[]]);
        assert_eq!(found.ratio("b", "a"), Some(3.0));
        assert_eq!([found.ratio("b", "c"), found.ratio("c", "b"), found.best("c")], [None; 3]);
        assert_eq!(found.len(), 4);
        assert_eq!(Turns::default().ratio("a", "a"), None);
    }

    #[test]
    fn of_an_even_number_of_turns_both_in_the_middle_count() {
        let found = turns(&[&[("a", 1.0), ("b", 1.0)], &[("a", 1.0), ("b", 2.0)]]);
        assert_eq!(found.ratio("b", "a"), Some(1.5));
    }
}
