//! Names in the words of a message.

/// Names that stay readable in one sentence.
const MOST: usize = 5;

/// Names in backticks, in order; of many the first five, and how many more there are. `none` where there are none.
pub fn quoted_names(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n <= MOST => shown.join(", "),
        n => format!("{} and {} more", shown.join(", "), n - MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted_names;

    #[test]
    fn many_names_are_five_and_a_number() {
        let found = [0, 1, 5, 6].map(|n| {
            let names: Vec<String> = "abcdef".chars().take(n).map(String::from).collect();
            quoted_names(&names)
        });
        let five = "`a`, `b`, `c`, `d`, `e`";
        assert_eq!(found, ["none", "`a`", five, &format!("{five} and 1 more")]);
    }
}
