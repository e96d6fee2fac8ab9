//! The median of samples.

/// The sample in the middle, the mean of both where there are two; not a number of none.
pub fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n => (samples[(n - 1) / 2] + samples[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_middle_of_an_odd_and_of_an_even_number_and_of_none() {
        assert_eq!(median([3.0, 100.0, 2.0]), 3.0);
        assert_eq!(median([4.0, 1.0, 100.0, 2.0]), 3.0);
        assert_eq!(median([7.0]), 7.0);
        assert!(median([]).is_nan());
    }
}
