//! Unique identifiers for variables and buffers.
//!
//! Handles, buffers, aliases and scalars share one namespace. A name whose hint is taken gets `_1`, `_2` and so on,
//! and becomes free again where its block ends, so that sibling loops print alike. Source: seed 003.

use std::collections::{HashMap, HashSet};

use crate::buffer::{Buffer, BufferId};
use crate::expr::{Var, VarId};

/// Words that Python cannot use as names.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Words that variables and buffers cannot have as names: what the dialect itself is written with.
const DIALECT: &[&str] = &["T", "Tx", "I", "te", "range", "TileLayout", "ComposeLayout"];

enum Undo {
    Live(String),
    Var(VarId, Option<String>),
    Buffer(BufferId, Option<String>),
}

/// Names in scope, with what is needed to leave a scope.
#[derive(Default)]
pub(super) struct Names {
    live: HashSet<String>,
    vars: HashMap<VarId, String>,
    buffers: HashMap<BufferId, String>,
    log: Vec<Undo>,
}

/// The start of a scope.
#[derive(Clone, Copy)]
pub(super) struct Mark(usize);

impl Names {
    /// Begins a scope.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Ends the scope begun at `mark`: its names are free again.
    pub(super) fn release(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            match self.log.pop() {
                Some(Undo::Live(name)) => {
                    self.live.remove(&name);
                }
                Some(Undo::Var(id, old)) => restore(&mut self.vars, id, old),
                Some(Undo::Buffer(id, old)) => restore(&mut self.buffers, id, old),
                None => break,
            }
        }
    }

    /// Takes a name for the rest of the scope.
    fn take(&mut self, hint: &str) -> String {
        let name = self.unused(hint);
        self.live.insert(name.clone());
        self.log.push(Undo::Live(name.clone()));
        name
    }

    fn unused(&self, hint: &str) -> String {
        let base = sanitised(hint);
        let is_free =
            |name: &str| !self.live.contains(name) && !KEYWORDS.contains(&name) && !DIALECT.contains(&name);
        if is_free(&base) {
            return base;
        }
        let mut n = 1usize;
        loop {
            let name = format!("{base}_{n}");
            if is_free(&name) {
                return name;
            }
            n += 1;
        }
    }

    /// Defines a variable for the rest of the scope and returns its name.
    pub(super) fn define_var(&mut self, var: &Var) -> String {
        let name = self.take(var.name());
        self.say_var(var, name.clone());
        name
    }

    /// From here on the variable is written `text`, which takes no name: `A_1.strides[0]`.
    pub(super) fn say_var(&mut self, var: &Var, text: String) {
        let old = self.vars.insert(var.id(), text);
        self.log.push(Undo::Var(var.id(), old));
    }

    /// Defines a buffer for the rest of the scope, by a hint of its own, and returns its name.
    pub(super) fn define_buffer(&mut self, buffer: &Buffer, hint: &str) -> String {
        let name = self.take(hint);
        let old = self.buffers.insert(buffer.id, name.clone());
        self.log.push(Undo::Buffer(buffer.id, old));
        name
    }

    /// Whether the variable has a text.
    pub(super) fn has_var(&self, var: &Var) -> bool {
        self.vars.contains_key(&var.id())
    }

    /// The text of a variable. A free one takes its hint for good.
    pub(super) fn var(&mut self, var: &Var) -> String {
        if let Some(text) = self.vars.get(&var.id()) {
            return text.clone();
        }
        let name = self.unused(var.name());
        self.live.insert(name.clone());
        self.vars.insert(var.id(), name.clone());
        name
    }

    /// The name of a buffer. A free one takes its hint for good.
    pub(super) fn buffer(&mut self, buffer: &Buffer) -> String {
        if let Some(text) = self.buffers.get(&buffer.id) {
            return text.clone();
        }
        let name = self.unused(&buffer.name);
        self.live.insert(name.clone());
        self.buffers.insert(buffer.id, name.clone());
        name
    }
}

fn restore<K: std::hash::Hash + Eq>(map: &mut HashMap<K, String>, key: K, old: Option<String>) {
    match old {
        Some(old) => {
            map.insert(key, old);
        }
        None => {
            map.remove(&key);
        }
    }
}

/// The hint as an identifier: what cannot stand in one becomes `_`.
pub(super) fn sanitised(hint: &str) -> String {
    let mut name: String =
        hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

/// The name as an identifier that texts may have anywhere: as [`sanitised`], and no word of Python's.
pub fn identifier(name: &str) -> String {
    let name = sanitised(name);
    if KEYWORDS.contains(&name.as_str()) { format!("{name}_1") } else { name }
}

/// The name of a function as an identifier, which may be one of any letters.
pub(super) fn function_name(name: &str) -> String {
    let mut name: String = name
        .chars()
        .map(|c| if c.is_alphabetic() || c.is_ascii_digit() || c == '_' { c } else { '_' })
        .collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if KEYWORDS.contains(&name.as_str()) { format!("{name}_1") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn a_taken_name_gets_a_number_until_its_scope_ends() {
        let mut names = Names::default();
        let make = |hint| Var::new(hint, DType::I32);
        assert_eq!(names.define_var(&make("k.outer")), "k_outer");
        let mark = names.mark();
        assert_eq!(names.define_var(&make("k.outer")), "k_outer_1");
        assert_eq!(names.define_var(&make("k_outer")), "k_outer_2");
        names.release(mark);
        assert_eq!(names.define_var(&make("k_outer")), "k_outer_1");
    }

    #[test]
    fn names_of_functions_become_identifiers_and_those_that_are_stay() {
        let odd = [
            ("a-b", "a_b"),
            ("", "_"),
            ("2x", "_2x"),
            ("lambda", "lambda_1"),
            ("a b\n", "a_b_"),
            ("x\u{b2}", "x_"),
        ];
        for (name, want) in odd.into_iter().chain(["T", "k_1", "\u{e9}", "main"].map(|name| (name, name))) {
            assert_eq!(function_name(name), want);
        }
    }

    #[test]
    fn words_of_the_dialect_and_odd_hints_become_identifiers() {
        let mut names = Names::default();
        for (hint, want) in [("T", "T_1"), ("for", "for_1"), ("", "_"), ("2x", "_2x"), ("\u{3b1}.b", "__b")] {
            assert_eq!(names.define_var(&Var::new(hint, DType::I32)), want);
        }
    }
}
