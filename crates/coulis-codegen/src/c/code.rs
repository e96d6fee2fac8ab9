//! Fragments of expressions with their precedence, and lines of statements.

use std::borrow::Cow;
use std::fmt::{Arguments, Write as _};

/// An expression's text and how tightly its outermost operator binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Text without a final `;`.
    pub text: String,
    /// Precedence; larger binds tighter.
    pub prec: Prec,
}

/// Precedence of C operators, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prec {
    /// `?:`
    Conditional,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `==`, `!=`
    Equality,
    /// `<` and its like
    Relation,
    /// `<<`, `>>`
    Shift,
    /// `+`, `-`
    Sum,
    /// `*`, `/`, `%`
    Product,
    /// casts, `!`, `-`
    Unary,
    /// names, literals, calls, subscripts
    Primary,
}

impl Code {
    /// A name, literal, call or subscript.
    pub fn primary(text: impl Into<String>) -> Code {
        Code { text: text.into(), prec: Prec::Primary }
    }

    /// The text, in parentheses unless it binds at least as tightly as `prec`.
    pub fn at(&self, prec: Prec) -> Cow<'_, str> {
        if self.prec >= prec {
            Cow::Borrowed(&self.text)
        } else {
            Cow::Owned(["(", &self.text, ")"].concat())
        }
    }

    /// `a op b` of a left-associative operator.
    pub fn infix(op: &str, prec: Prec, a: &Code, b: &Code) -> Code {
        let chained = if a.prec == prec { prec } else { Prec::Unary };
        let (left, right) = match prec {
            Prec::Sum | Prec::Product => (prec, tighter(prec)),
            Prec::Relation | Prec::Equality => (Prec::Sum, Prec::Sum),
            Prec::And | Prec::Or if a.prec == prec => (prec, Prec::Equality),
            Prec::And | Prec::Or => (Prec::Equality, Prec::Equality),
            // Mixed bit operations read better, and warn less, with parentheses.
            Prec::Shift | Prec::BitAnd | Prec::BitXor | Prec::BitOr => (chained, Prec::Unary),
            Prec::Conditional | Prec::Unary | Prec::Primary => (Prec::Unary, Prec::Unary),
        };
        Code { text: [&a.at(left), " ", op, " ", &b.at(right)].concat(), prec }
    }

    /// A call.
    pub fn call(name: &str, args: &[&Code]) -> Code {
        let length: usize = args.iter().map(|a| a.text.len() + 2).sum();
        let mut text = String::with_capacity(name.len() + 2 + length);
        text.push_str(name);
        text.push('(');
        for (nth, arg) in args.iter().enumerate() {
            text.push_str(if nth > 0 { ", " } else { "" });
            text.push_str(&arg.text);
        }
        text.push(')');
        Code::primary(text)
    }

    /// A C cast.
    pub fn cast(ty: &str, a: &Code) -> Code {
        Code { text: ["(", ty, ")", &a.at(Prec::Unary)].concat(), prec: Prec::Unary }
    }
}

fn tighter(prec: Prec) -> Prec {
    if prec == Prec::Sum { Prec::Product } else { Prec::Unary }
}

/// The text of a line.
pub trait Line {
    /// Writes it at the end.
    fn add_to(self, text: &mut String);
}

impl Line for &str {
    fn add_to(self, text: &mut String) {
        text.push_str(self);
    }
}

impl Line for &String {
    fn add_to(self, text: &mut String) {
        text.push_str(self);
    }
}

impl Line for Arguments<'_> {
    fn add_to(self, text: &mut String) {
        // Writing into a string does not fail.
        let _ = text.write_fmt(self);
    }
}

/// Writes a number at the end of a text.
pub fn push_number(text: &mut String, number: u64) {
    let (mut digits, mut rest, mut at) = ([0u8; 20], number, 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    digits[at..].iter().for_each(|digit| text.push(char::from(*digit)));
}

/// Lines of a function's body, indented.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    depth: usize,
    indent: &'static str,
}

impl Lines {
    /// Lines at nesting depth 1, each level indented by that.
    pub fn in_function(indent: &'static str) -> Lines {
        Lines { text: String::new(), depth: 1, indent }
    }

    /// No lines yet, one level deeper than these.
    pub fn nested(&self) -> Lines {
        Lines { text: String::new(), depth: self.depth + 1, indent: self.indent }
    }

    /// The lines of another, as they are indented.
    pub fn append(&mut self, other: Lines) {
        self.text.push_str(&other.text);
    }

    /// One line as it is.
    pub fn line(&mut self, text: impl Line) {
        self.line_with(text, "\n");
    }

    fn line_with(&mut self, text: impl Line, end: &str) {
        for _ in 0..self.depth {
            self.text.push_str(self.indent);
        }
        text.add_to(&mut self.text);
        self.text.push_str(end);
    }

    /// One statement: here and in [`Lines::statement_of`] only the `;` is written.
    pub fn statement(&mut self, text: impl Line) {
        self.line_with(text, ";\n");
    }

    /// One statement that is given in pieces.
    pub fn statement_of(&mut self, pieces: &[&str]) {
        for _ in 0..self.depth {
            self.text.push_str(self.indent);
        }
        pieces.iter().for_each(|piece| self.text.push_str(piece));
        self.text.push_str(";\n");
    }

    /// Opens a block: `head {`.
    pub fn open(&mut self, head: impl Line) {
        self.line_with(head, " {\n");
        self.depth += 1;
    }

    /// Closes a block.
    pub fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Closes a branch and opens the other.
    pub fn otherwise(&mut self) {
        self.depth -= 1;
        self.line("} else {");
        self.depth += 1;
    }

    /// All lines.
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_shown() {
        for number in [0, 7, 10, 99, 100, 4_294_967_296, u64::MAX] {
            let mut text = "x".to_owned();
            push_number(&mut text, number);
            assert_eq!(text, format!("x{number}"));
        }
    }

    #[test]
    fn lines_are_indented_however_they_are_given() {
        let mut lines = Lines::in_function("  ");
        lines.open(format_args!("if ({})", 1));
        lines.statement(&"a".to_owned());
        lines.statement("b");
        lines.close();
        assert_eq!(lines.into_text(), "  if (1) {\n    a;\n    b;\n  }\n");
    }
}
