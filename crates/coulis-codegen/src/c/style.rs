//! How dialects lay text out, and what they leave to the compiler of the text.

use crate::c::code::{Code, Prec};

/// The layout of a dialect's text.
#[derive(Debug)]
pub struct Style {
    /// Where parentheses stand.
    pub parentheses: Parentheses,
    /// One level of indentation.
    pub indent: &'static str,
    /// How the declaration of a value that does not change begins.
    pub constant: &'static str,
    /// Texts longer than this get a name of their own.
    pub long: usize,
    /// Where sharing is left to the compiler: shared texts of values from memory that are longer than this get a name all
    /// the same.
    pub repeatable: usize,
    /// What becomes of vectors, of unrolled loops and of arrays with constant places.
    pub vectors: Vectors,
    /// What sums and products of signed integers do beyond their range.
    pub overflow: Overflow,
    /// Whether products of values from memory that have 64 bits, or are taken to as many, are functions of
    /// their own, which the compiler does not look into.
    pub opaque_wide_products: bool,
}

/// Where parentheses stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parentheses {
    /// Where precedence asks for them.
    AsNeeded,
    /// Around every operation, as in seed 003.
    Everywhere,
}

/// What becomes of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// Vectors are values of vector types. Unrolled loops are written out, shared expressions are named, and arrays
    /// with constant places become variables.
    Values,
    /// Vectors are written lane by lane, memory is accessed in words of several elements. Unrolling, sharing and
    /// registers are left to the compiler.
    Lanes,
}

/// What sums and products of signed integers do beyond their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// They wrap.
    Wraps,
    /// Undefined: values are computed by way of unsigned types. Indices, which are shown to fit, are not.
    Undefined,
}

impl Style {
    /// `a op b` of a left-associative operator.
    pub fn infix(&self, op: &str, prec: Prec, a: &Code, b: &Code) -> Code {
        match self.parentheses {
            Parentheses::AsNeeded => Code::infix(op, prec, a, b),
            Parentheses::Everywhere => Code::primary(["(", &a.text, " ", op, " ", &b.text, ")"].concat()),
        }
    }

    /// A cast.
    pub fn cast(&self, ty: &str, a: &Code) -> Code {
        match self.parentheses {
            Parentheses::AsNeeded => Code::cast(ty, a),
            Parentheses::Everywhere => Code::primary(["((", ty, ")", &a.at(Prec::Unary), ")"].concat()),
        }
    }

    /// `cond ? a : b`.
    pub fn conditional(&self, cond: &Code, a: &Code, b: &Code) -> Code {
        let text = format!("{} ? {} : {}", cond.at(Prec::Or), a.at(Prec::Or), b.at(Prec::Or));
        match self.parentheses {
            Parentheses::AsNeeded => Code { text, prec: Prec::Conditional },
            Parentheses::Everywhere => Code::primary(format!("({text})")),
        }
    }

    /// `(cond)`, with one pair of parentheses.
    pub fn condition(&self, cond: &Code) -> String {
        if self.parentheses == Parentheses::Everywhere && is_enclosed(&cond.text) {
            return cond.text.clone();
        }
        ["(", &cond.text, ")"].concat()
    }
}

/// Whether the first character is a parenthesis that the last one closes.
pub fn is_enclosed(text: &str) -> bool {
    let mut depth = 0usize;
    for (position, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return position > 0 && position + 1 == text.len();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_enclosed;

    #[test]
    fn one_pair_of_parentheses_is_told_from_two() {
        for (text, want) in
            [("(a < b)", true), ("(a) < (b)", false), ("f(x)", false), ("((a) < (b))", true), ("", false)]
        {
            assert_eq!(is_enclosed(text), want, "{text}");
        }
    }
}
