//! A number of things in the words of a message.

use std::fmt::Display;

/// So many things: `1 dimension`, `2 dimensions`. `what` is the word for one, which takes an `s` for any other number.
pub fn counted(n: impl Display, what: &str) -> String {
    let n = n.to_string();
    let plural = if n == "1" { "" } else { "s" };
    format!("{n} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_alone_is_singular() {
        let found = [0, 1, 2, 11].map(|n| counted(n, "dimension"));
        assert_eq!(found, ["0 dimensions", "1 dimension", "2 dimensions", "11 dimensions"]);
    }
}
