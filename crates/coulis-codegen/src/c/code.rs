//! Fragments of expressions with their precedence, and lines of statements.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

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
    pub fn line(&mut self, text: impl Display) {
        self.line_with(text, "");
    }

    fn line_with(&mut self, text: impl Display, end: &str) {
        for _ in 0..self.depth {
            self.text.push_str(self.indent);
        }
        // Writing into a string does not fail.
        let _ = writeln!(self.text, "{text}{end}");
    }

    /// One statement: here and in [`Lines::statement_of`] only the `;` is written.
    pub fn statement(&mut self, text: impl Display) {
        self.line_with(text, ";");
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
    pub fn open(&mut self, head: impl Display) {
        self.line_with(head, " {");
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
