//! How deep the tree of a text is at most, told from its tokens alone.
//!
//! On the way from an expression to a part of it there is a token for every step. Of a list in brackets only one element is
//! on that way, so of the elements that commas part the one with the most tokens counts, with what is in brackets in
//! it. That is known of elements of names, literals, signs and lambdas, which is what kernels are made of. Where
//! anything else stands, commas may lie within an expression (`yield a, b`), or a tree be made of a faulty text; all
//! tokens in those brackets count then. A line as long as all the combinations of many statistics is thus no deeper
//! than the longest of them.

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Mode;
use ruff_python_parser::lexer::lex;

use crate::error::{Fault, ParseErrorKind, Parsed};

/// Deepest logical line.
const MAX_DEPTH: usize = 20_000;
/// Deepest indentation.
const MAX_INDENT: usize = 100;
/// Most bytes of a text; offsets have 32 bits.
const MAX_BYTES: usize = 1 << 30;

/// A bound on how deep the Python parser's tree is.
///
/// Errors: the text is longer, or nests deeper, than is legal.
pub(crate) fn nesting_bound(text: &str) -> Parsed<usize> {
    if text.len() > MAX_BYTES {
        let kind = ParseErrorKind::TooLong { found: text.len(), limit: MAX_BYTES };
        return Err(Fault::new(0..0, kind));
    }
    let mut lexer = lex(text, Mode::Module);
    let mut line = Line::default();
    let (mut indent, mut most, mut breaks) = (0usize, 0usize, 0usize);
    loop {
        let token = lexer.next_token();
        match token {
            TokenKind::NonLogicalNewline => breaks += 1,
            TokenKind::Indent => indent += 1,
            TokenKind::Dedent => indent = indent.saturating_sub(1),
            TokenKind::Newline | TokenKind::EndOfFile => {}
            _ => line.take(token),
        }
        let ends = matches!(token, TokenKind::Newline | TokenKind::EndOfFile);
        let depth = if ends { std::mem::take(&mut line).depth() } else { line.open.len() };
        most = most.max(depth + indent);
        let tokens = "tokens of a line that may nest in one another";
        for (what, found, limit) in
            [("levels of indentation", indent, MAX_INDENT), (tokens, depth, MAX_DEPTH)]
        {
            if found > limit {
                let kind = ParseErrorKind::TooDeep { what, found, limit };
                return Err(Fault::new(line_start(text, breaks), kind));
            }
        }
        match token {
            TokenKind::EndOfFile => return Ok(most),
            TokenKind::Newline => breaks += 1,
            _ => {}
        }
    }
}

/// The start of the line after that many line breaks; strings over several lines make it an earlier one.
fn line_start(text: &str, breaks: usize) -> Range<usize> {
    let at = match breaks {
        0 => 0,
        n => text.match_indices('\n').nth(n - 1).map_or(0, |(at, _)| at + 1),
    };
    at..at
}

/// The tokens of a logical line so far.
#[derive(Default)]
struct Line {
    /// The brackets that are open, the outermost first.
    open: Vec<Brackets>,
    /// What stands in none.
    outside: Brackets,
}

/// What stands in a pair of brackets.
#[derive(Default)]
struct Brackets {
    /// Tokens of the element that is read, those in brackets in it aside.
    own: usize,
    /// The deepest of the brackets in it.
    inner: usize,
    /// The deepest element before it.
    deepest: usize,
    /// Lambdas whose parameters have not ended: commas part these.
    lambdas: usize,
    /// Whether something was met in which commas may part no elements.
    is_other: bool,
}

impl Brackets {
    fn take(&mut self, token: TokenKind) {
        self.own += 1;
        match token {
            TokenKind::Lambda => self.lambdas += 1,
            TokenKind::Colon if self.lambdas > 0 => self.lambdas -= 1,
            TokenKind::Comma if self.lambdas == 0 && !self.is_other => {
                self.deepest = self.depth();
                (self.own, self.inner) = (0, 0);
            }
            _ => self.is_other |= !is_plain(token),
        }
    }

    fn depth(&self) -> usize {
        self.deepest.max(self.own + self.inner)
    }
}

impl Line {
    fn take(&mut self, token: TokenKind) {
        match token {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => self.open.push(Brackets::default()),
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => self.close(),
            _ => self.innermost().take(token),
        }
    }

    fn innermost(&mut self) -> &mut Brackets {
        self.open.last_mut().unwrap_or(&mut self.outside)
    }

    fn close(&mut self) {
        let Some(closed) = self.open.pop() else { return self.outside.take(TokenKind::Rpar) };
        let around = self.innermost();
        // The brackets are a step, and so is what they are of.
        around.own += 1;
        around.inner = around.inner.max(closed.depth() + 1);
    }

    fn depth(mut self) -> usize {
        while !self.open.is_empty() {
            self.close();
        }
        self.outside.depth()
    }
}

/// Whether a token stands in expressions of names, literals and signs, among which commas part elements.
fn is_plain(token: TokenKind) -> bool {
    use TokenKind as T;
    matches!(
        token,
        T::Name
            | T::Int
            | T::Float
            | T::Complex
            | T::String
            | T::True
            | T::False
            | T::None
            | T::Comma
            | T::Dot
            | T::Equal
            | T::Plus
            | T::Minus
            | T::Star
            | T::Slash
            | T::DoubleSlash
            | T::Percent
            | T::Amper
            | T::Vbar
            | T::CircumFlex
            | T::Tilde
            | T::LeftShift
            | T::RightShift
            | T::Less
            | T::Greater
            | T::LessEqual
            | T::GreaterEqual
            | T::EqEqual
            | T::NotEqual
            | T::And
            | T::Or
            | T::Not
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> usize {
        nesting_bound(text).unwrap_or(usize::MAX)
    }

    #[test]
    fn the_deepest_element_counts_and_not_all_of_them() {
        let list = format!("f(lambda a, b: ({}))\n", "a + (b * a), ".repeat(30_000));
        assert!(bound(&list) < 30, "{}", bound(&list));
        let after = |n: usize| bound(&format!("g((x), 1{})\n", " + a".repeat(n)));
        assert_eq!(after(200) - after(100), 200, "operators behind brackets nest what is in them");
    }

    #[test]
    fn a_refusal_says_what_was_counted_and_how_far() {
        let deep = format!("x = {}x{}\n", "(-".repeat(9_000), ")".repeat(9_000));
        assert_eq!(
            nesting_bound(&deep).unwrap_err().kind.to_string(),
            "nested too deep: at least 27003 tokens of a line that may nest in one another; at most 20000 are legal"
        );
    }

    #[test]
    fn whatever_nests_is_counted() {
        for part in ["(", "-", "f(a, ", "lambda a, b: ", "a + ", "x if y else ", "yield a, ", "lambda, "] {
            let of = |n: usize| bound(&format!("f({}x\n", part.repeat(n)));
            assert!(of(200) - of(100) >= 100, "{part}");
            assert_eq!(of(20_001), usize::MAX, "{part}");
        }
        assert!(bound(&format!("x{}\n", "(a)".repeat(500))) >= 500, "calls of what calls give");
    }
}
