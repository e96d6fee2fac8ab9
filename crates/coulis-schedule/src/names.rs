//! Names in traces: of axes, stages, tensors and sizes.
//!
//! A name is an identifier, so that a trace is read back, and each thing of a kind has its own: the second `B` is `B_1`,
//! and where something else is called `B_1` already, `B_2`.

pub(crate) use coulis_ir::print::identifier;

/// The names with `_1`, `_2`, … behind those that stood before, so that no two are alike and none is taken.
pub(crate) fn numbered(own: &[String], taken: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(own.len());
    for name in own {
        let is_free = |found: &String| {
            !names.contains(found) && !taken.contains(found) && (found == name || !own.contains(found))
        };
        let tried = (0..).map(|nth| if nth == 0 { name.clone() } else { format!("{name}_{nth}") });
        names.extend(tried.into_iter().find(is_free));
    }
    names
}

/// The name of the one that `is_it` finds among things of those names.
pub(crate) fn name_of<T>(
    things: &[T],
    name: impl Fn(&T) -> &str,
    is_it: impl Fn(&T) -> bool,
) -> Option<String> {
    let at = things.iter().position(is_it)?;
    let own = identifier(name(&things[at]));
    // The first of a name keeps it, as no number makes a name that another one has of its own.
    if !things[..at].iter().any(|other| gives(name(other), &own)) {
        return Some(own);
    }
    let all: Vec<String> = things.iter().map(|thing| identifier(name(thing))).collect();
    Some(numbered(&all, &[]).swap_remove(at))
}

/// Whether the name as an identifier is that one. Planning asks this of many names, few of which have to be rewritten.
fn gives(name: &str, wanted: &str) -> bool {
    let is_plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    // Of such a name only a word of Python's is changed, and only by `_1`.
    if is_plain && wanted.strip_suffix("_1") != Some(name) {
        return name == wanted;
    }
    identifier(name) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: &[&str], taken: &[&str], want: &[&str]) {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(numbered(&texts(own), &texts(taken)), texts(want));
    }

    #[test]
    fn equal_names_are_numbered_and_no_number_is_given_twice() {
        check(&["n", "n", "n_1", "m", "n", "m"], &[], &["n", "n_2", "n_1", "m", "n_3", "m_1"]);
        check(&["n", "n", "n_1", "m", "n", "m"], &["n"], &["n_2", "n_3", "n_1", "m", "n_4", "m_1"]);
    }

    #[test]
    fn one_of_several_is_named_as_all_together_are() {
        let things = ["B", "B.rf", "B", "B_1", "B_rf", "for", "", "for_1"];
        let named = |at: usize| name_of(&things, |name| name, |name| std::ptr::eq(name, &things[at]));
        let found: Vec<String> = (0..things.len()).map(|at| named(at).expect("it is there")).collect();
        assert_eq!(found, ["B", "B_rf", "B_2", "B_1", "B_rf_1", "for_1", "_", "for_1_1"]);
    }
}
