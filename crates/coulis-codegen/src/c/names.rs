//! Names in emitted text: legal identifiers, unique in the translation unit, none of the dialect's own words.

use std::rc::Rc;

use coulis_ir::hash::{FastMap, FastSet, roomy_set};

use crate::c::code::push_number;

/// Hands out names.
#[derive(Debug, Default)]
pub struct Namer {
    reserved: Rc<FastSet<&'static str>>,
    taken: FastSet<String>,
    /// The number to try next after a name.
    next: FastMap<String, u32>,
}

impl Namer {
    /// A namer that never gives out a word of `reserved`.
    pub fn new(reserved: &[&'static str]) -> Namer {
        Namer { reserved: Rc::new(reserved.iter().copied().collect()), ..Namer::default() }
    }

    /// One that gave out no name so far, and never gives out the same words as this one.
    pub fn anew(&self) -> Namer {
        Namer { reserved: self.reserved.clone(), taken: roomy_set(), ..Namer::default() }
    }

    /// A name like `hint`: other characters become `_`, a number is appended where the name is taken.
    pub fn fresh(&mut self, hint: &str) -> String {
        let base = sanitised(hint);
        if !self.reserved.contains(base.as_str()) && !self.taken.contains(base.as_str()) {
            self.taken.insert(base.clone());
            return base;
        }
        let number = match self.next.get_mut(base.as_str()) {
            Some(number) => number,
            None => self.next.entry(base.clone()).or_insert(1),
        };
        loop {
            let mut name = String::with_capacity(base.len() + 8);
            name.push_str(&base);
            name.push('_');
            push_number(&mut name, u64::from(*number));
            *number += 1;
            if !self.reserved.contains(name.as_str()) && !self.taken.contains(name.as_str()) {
                self.taken.insert(name.clone());
                return name;
            }
        }
    }
}

/// `hint` as an identifier that is neither a type name of the text (`f32`, `i8x16`) nor begins as a helper's
/// (`cx_`) or the compiler's own (`_`).
pub fn sanitised(hint: &str) -> String {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut name = match hint.len() <= 64 && hint.bytes().all(is_legal) {
        true => hint.to_owned(),
        false => hint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(64).collect(),
    };
    let first_is_letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !first_is_letter || name.starts_with("cx_") {
        name.insert_str(0, "v_");
    }
    if is_type_name(&name) {
        name.push('_');
    }
    name
}

fn is_type_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(['b', 'i', 'u', 'f']) else { return false };
    !rest.is_empty()
        && rest.chars().all(|c| c.is_ascii_digit() || c == 'x' || c == '_')
        && ["8", "16", "32", "64"].iter().any(|w| rest.starts_with(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_anew_and_reserved_words_stay_reserved() {
        let mut namer = Namer::new(&["int", "x_1"]);
        assert_eq!([namer.fresh("x"), namer.fresh("x")], ["x", "x_2"]);
        let mut other = namer.anew();
        assert_eq!([other.fresh("x"), other.fresh("int")], ["x", "int_1"]);
    }

    #[test]
    fn names_are_identifiers_and_never_repeat() {
        let mut namer = Namer::new(&["int", "for"]);
        let check = |namer: &mut Namer, hint: &str, want: &str| assert_eq!(namer.fresh(hint), want);
        check(&mut namer, "S.rf", "S_rf");
        check(&mut namer, "S.rf", "S_rf_1");
        check(&mut namer, "S_rf_1", "S_rf_1_1");
        check(&mut namer, "int", "int_1");
        check(&mut namer, "f32", "f32_");
        check(&mut namer, "i8x16", "i8x16_");
        check(&mut namer, "i", "i");
        check(&mut namer, "i_8", "i_8");
        check(&mut namer, "2x", "v_2x");
        check(&mut namer, "é", "v__");
        check(&mut namer, "", "v_");
        check(&mut namer, "cx_min", "v_cx_min");
        check(&mut namer, "__attribute__", "v___attribute__");
    }
}
