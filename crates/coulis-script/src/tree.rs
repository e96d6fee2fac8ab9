//! The small tree between Python and the intermediate representation: what of Python the dialect uses.

use std::ops::Range;

use crate::error::{Fault, ParseErrorKind, Parsed};

/// An expression with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) range: Range<usize>,
    pub(crate) kind: TermKind,
}

/// A sign between two operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sign {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    FloorMod,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    At,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug)]
pub(crate) enum TermKind {
    Int(u64),
    Float(f64),
    Str(String),
    Bool(bool),
    None,
    Name(String),
    Attribute(Box<Term>, String),
    Call(Box<Term>, Vec<Term>, Vec<Keyword>),
    /// Indices; an empty tuple is no index.
    Subscript(Box<Term>, Vec<Term>),
    Binary(Sign, Box<Term>, Box<Term>),
    Not(Box<Term>),
    Neg(Box<Term>),
    Conditional {
        cond: Box<Term>,
        then: Box<Term>,
        otherwise: Box<Term>,
    },
    Tuple(Vec<Term>),
    List(Vec<Term>),
    Dict(Vec<(Term, Term)>),
    Lambda(Vec<String>, Box<Term>),
    Slice(Option<Box<Term>>, Option<Box<Term>>, Option<Box<Term>>),
}

/// An argument by keyword.
#[derive(Clone, Debug)]
pub(crate) struct Keyword {
    pub(crate) range: Range<usize>,
    pub(crate) name: String,
    pub(crate) value: Term,
}

/// A statement with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) range: Range<usize>,
    pub(crate) kind: LineKind,
}

#[derive(Clone, Debug)]
pub(crate) enum LineKind {
    /// `a, b = value`
    Assign(Vec<Term>, Term),
    /// `a: annotation = value`
    Annotated(Term, Term, Term),
    /// `a += value`
    Update(Term, Sign, Term),
    Term(Term),
    For(Vec<Term>, Term, Vec<Line>),
    If(Term, Vec<Line>, Option<Vec<Line>>),
    With(Vec<(Term, Option<Term>)>, Vec<Line>),
    Pass,
    Import,
    Function(Function),
    Class(Vec<Term>, Vec<Line>),
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) decorators: Vec<Term>,
    pub(crate) name: String,
    pub(crate) params: Vec<Parameter>,
    pub(crate) body: Vec<Line>,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) range: Range<usize>,
    pub(crate) name: String,
    pub(crate) annotation: Option<Term>,
}

impl Term {
    /// What it is, for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            TermKind::Int(value) => format!("the integer {value}"),
            TermKind::Float(value) => format!("the float {value:?}"),
            TermKind::Str(text) => format!("the string {:?}", text.chars().take(40).collect::<String>()),
            TermKind::Bool(true) => "`True`".to_owned(),
            TermKind::Bool(false) => "`False`".to_owned(),
            TermKind::None => "`None`".to_owned(),
            TermKind::Name(name) => format!("`{name}`"),
            TermKind::Attribute(_, name) => match self.dotted() {
                Some(path) => format!("`{path}`"),
                None => format!("an attribute `.{name}`"),
            },
            TermKind::Call(callee, ..) => match callee.dotted() {
                Some(path) => format!("a call of `{path}`"),
                None => "a call".to_owned(),
            },
            TermKind::Subscript(..) => "an indexed value".to_owned(),
            TermKind::Binary(..) => "an operation".to_owned(),
            TermKind::Not(_) => "a `not`".to_owned(),
            TermKind::Neg(_) => "a negation".to_owned(),
            TermKind::Conditional { .. } => "a conditional expression".to_owned(),
            TermKind::Tuple(_) => "a tuple".to_owned(),
            TermKind::List(_) => "a list".to_owned(),
            TermKind::Dict(_) => "a dict".to_owned(),
            TermKind::Lambda(..) => "a lambda".to_owned(),
            TermKind::Slice(..) => "a slice".to_owned(),
        }
    }

    /// Whether both read the same, wherever they stand.
    pub(crate) fn reads_as(&self, other: &Term) -> bool {
        let all = |a: &[Term], b: &[Term]| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.reads_as(y));
        let maybe = |a: &Option<Box<Term>>, b: &Option<Box<Term>>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a.reads_as(b),
            _ => false,
        };
        match (&self.kind, &other.kind) {
            (TermKind::Int(a), TermKind::Int(b)) => a == b,
            (TermKind::Float(a), TermKind::Float(b)) => a.to_bits() == b.to_bits(),
            (TermKind::Str(a), TermKind::Str(b)) | (TermKind::Name(a), TermKind::Name(b)) => a == b,
            (TermKind::Bool(a), TermKind::Bool(b)) => a == b,
            (TermKind::None, TermKind::None) => true,
            (TermKind::Attribute(a, x), TermKind::Attribute(b, y)) => x == y && a.reads_as(b),
            (TermKind::Call(f, a, k), TermKind::Call(g, b, l)) => {
                let same = |(x, y): (&Keyword, &Keyword)| x.name == y.name && x.value.reads_as(&y.value);
                f.reads_as(g) && all(a, b) && k.len() == l.len() && k.iter().zip(l).all(same)
            }
            (TermKind::Subscript(a, x), TermKind::Subscript(b, y)) => a.reads_as(b) && all(x, y),
            (TermKind::Binary(p, a, x), TermKind::Binary(q, b, y)) => {
                p == q && a.reads_as(b) && x.reads_as(y)
            }
            (TermKind::Not(a), TermKind::Not(b)) | (TermKind::Neg(a), TermKind::Neg(b)) => a.reads_as(b),
            (
                TermKind::Conditional { cond: c, then: x, otherwise: a },
                TermKind::Conditional { cond: d, then: y, otherwise: b },
            ) => c.reads_as(d) && x.reads_as(y) && a.reads_as(b),
            (TermKind::Tuple(a), TermKind::Tuple(b)) | (TermKind::List(a), TermKind::List(b)) => all(a, b),
            (TermKind::Dict(a), TermKind::Dict(b)) => {
                let same = |(x, y): (&(Term, Term), &(Term, Term))| x.0.reads_as(&y.0) && x.1.reads_as(&y.1);
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (TermKind::Lambda(p, a), TermKind::Lambda(q, b)) => p == q && a.reads_as(b),
            (TermKind::Slice(a, b, c), TermKind::Slice(x, y, z)) => maybe(a, x) && maybe(b, y) && maybe(c, z),
            _ => false,
        }
    }

    /// `a.b.c` of a name and attributes.
    pub(crate) fn dotted(&self) -> Option<String> {
        match &self.kind {
            TermKind::Name(name) => Some(name.clone()),
            TermKind::Attribute(base, name) => Some(format!("{}.{name}", base.dotted()?)),
            _ => None,
        }
    }

    /// The path called, if this is a call of a dotted path, with the arguments.
    pub(crate) fn call(&self) -> Option<(String, &[Term], &[Keyword])> {
        match &self.kind {
            TermKind::Call(callee, args, keywords) => Some((callee.dotted()?, args, keywords)),
            _ => None,
        }
    }

    /// An error about this place.
    pub(crate) fn fault(&self, kind: ParseErrorKind) -> Box<Fault> {
        Fault::new(self.range.clone(), kind)
    }

    /// The error that something else must stand here.
    pub(crate) fn unexpected(&self, legal: &'static str) -> Box<Fault> {
        self.fault(ParseErrorKind::Unexpected { found: self.describe(), legal })
    }

    pub(crate) fn name(&self) -> Parsed<&str> {
        match &self.kind {
            TermKind::Name(name) => Ok(name),
            _ => Err(self.unexpected("a name")),
        }
    }

    pub(crate) fn str(&self) -> Parsed<&str> {
        match &self.kind {
            TermKind::Str(text) => Ok(text),
            _ => Err(self.unexpected("a string")),
        }
    }

    pub(crate) fn bool(&self) -> Parsed<bool> {
        match &self.kind {
            TermKind::Bool(value) => Ok(*value),
            _ => Err(self.unexpected("`True` or `False`")),
        }
    }

    /// An integer literal, with sign.
    pub(crate) fn integer(&self) -> Parsed<i128> {
        self.literal_int().ok_or_else(|| self.unexpected("an integer"))
    }

    /// An integer literal that fits `T`.
    pub(crate) fn fitting<T: TryFrom<i128>>(&self, what: &'static str, legal: &'static str) -> Parsed<T> {
        let value = self.integer()?;
        T::try_from(value).map_err(|_| {
            self.fault(ParseErrorKind::Range { what, found: value.to_string(), legal: legal.to_owned() })
        })
    }

    /// The value of an integer literal, with sign.
    pub(crate) fn literal_int(&self) -> Option<i128> {
        match &self.kind {
            TermKind::Int(value) => Some(i128::from(*value)),
            TermKind::Neg(inner) => match inner.kind {
                TermKind::Int(value) => Some(-i128::from(value)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of a float literal, with sign; integers are not floats.
    pub(crate) fn literal_float(&self) -> Option<f64> {
        match &self.kind {
            TermKind::Float(value) => Some(*value),
            TermKind::Neg(inner) => match inner.kind {
                TermKind::Float(value) => Some(-value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The elements of a tuple or list, or the term alone.
    pub(crate) fn items(&self) -> &[Term] {
        match &self.kind {
            TermKind::Tuple(items) | TermKind::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }
}

/// Arguments by keyword, each of which is taken once.
pub(crate) struct Keywords<'t> {
    function: String,
    left: Vec<&'t Keyword>,
    known: Vec<&'static str>,
}

impl<'t> Keywords<'t> {
    pub(crate) fn new(function: &str, keywords: &'t [Keyword]) -> Keywords<'t> {
        Keywords { function: function.to_owned(), left: keywords.iter().collect(), known: Vec::new() }
    }

    /// The value of a keyword, if given.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'t Term> {
        self.known.push(name);
        let at = self.left.iter().position(|k| k.name == name)?;
        Some(&self.left.remove(at).value)
    }

    /// Refuses what was not taken.
    pub(crate) fn done(self) -> Parsed<()> {
        match self.left.first() {
            None => Ok(()),
            Some(keyword) => Err(Fault::new(
                keyword.range.clone(),
                ParseErrorKind::UnknownKeyword {
                    function: self.function,
                    keyword: keyword.name.clone(),
                    legal: self.known,
                },
            )),
        }
    }
}
