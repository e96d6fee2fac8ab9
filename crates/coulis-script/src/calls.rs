//! Schedule traces: lines such as `ko, ki = s[B].split(k, factor=16)`, as plain calls.
//!
//! What the calls mean is for the owner of the primitives to say; here is only their shape.

use crate::error::{Fault, ParseError, ParseErrorKind, Parsed};
use crate::syntax::with_tree;
use crate::tree::{Line, LineKind, Sign, Term, TermKind};

/// One line of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Names for the results.
    pub targets: Vec<String>,
    /// What is called upon.
    pub object: Object,
    /// The method, or the function by its bare name.
    pub method: String,
    /// Arguments by position.
    pub args: Vec<Value>,
    /// Arguments by keyword, in the order written.
    pub kwargs: Vec<(String, Value)>,
    /// Line of the text, from 1.
    pub line: usize,
}

/// What a call is upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A bare function: `thread_axis(...)`.
    Function,
    /// A named value: `s.rfactor(...)`.
    Name(String),
    /// An entry of a named value: `s[B].split(...)`; the entry's name may be dotted (`B.rf`).
    Entry {
        /// The value.
        name: String,
        /// The entry.
        key: String,
    },
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// `True` or `False`.
    Bool(bool),
    /// A name, which may be dotted.
    Name(String),
    /// An entry of a named value: `s[B]`, as an argument.
    Entry {
        /// The value.
        name: String,
        /// The entry.
        key: String,
    },
    /// `[a, b]`
    List(Vec<Value>),
    /// `(a, b)`
    Tuple(Vec<Value>),
    /// Two values with a sign between them, as written, or in a call of a function: `threadIdx_x == 0`, `a and b`, `T.max(n, 1)`.
    Binary(&'static str, Box<Value>, Box<Value>),
}

/// The calls of a trace, a line each. Comments and blank lines are dropped.
///
/// # Errors
/// The first line that is not a call of the shapes above.
pub fn parse_calls(text: &str) -> Result<Vec<Call>, ParseError> {
    with_tree(text, |lines| {
        let mut calls = Vec::new();
        let (mut at, mut number) = (0, 1);
        for line in lines {
            number += text.as_bytes()[at..line.range.start].iter().filter(|&&b| b == b'\n').count();
            at = line.range.start;
            if !matches!(line.kind, LineKind::Pass) {
                calls.push(call(line, number)?);
            }
        }
        Ok(calls)
    })
}

fn call(line: &Line, number: usize) -> Parsed<Call> {
    let (targets, term) = match &line.kind {
        LineKind::Assign(targets, term) => (&targets[..], term),
        LineKind::Term(term) => (&[][..], term),
        _ => {
            let found = "another statement".to_owned();
            let legal = "a call, or names assigned from a call";
            return Err(Fault::new(line.range.clone(), ParseErrorKind::Unexpected { found, legal }));
        }
    };
    let TermKind::Call(callee, args, keywords) = &term.kind else {
        return Err(term.unexpected("a call such as `s[B].split(k, factor=16)`"));
    };
    let (object, method) = match &callee.kind {
        TermKind::Name(name) => (Object::Function, name.clone()),
        TermKind::Attribute(base, method) => (object(base)?, method.clone()),
        _ => return Err(callee.unexpected("a function, or a method of `s` or `s[name]`")),
    };
    let targets = targets.iter().map(|t| t.name().map(str::to_owned)).collect::<Parsed<_>>()?;
    let args = args.iter().map(value).collect::<Parsed<_>>()?;
    let kwargs =
        keywords.iter().map(|k| Ok((k.name.clone(), value(&k.value)?))).collect::<Parsed<Vec<_>>>()?;
    Ok(Call { targets, object, method, args, kwargs, line: number })
}

fn object(term: &Term) -> Parsed<Object> {
    const LEGAL: &str = "`s` or `s[name]`";
    match &term.kind {
        TermKind::Name(name) => Ok(Object::Name(name.clone())),
        TermKind::Subscript(base, keys) => {
            let name = base.name()?.to_owned();
            let [key] = &keys[..] else { return Err(term.unexpected(LEGAL)) };
            let key = match &key.kind {
                TermKind::Str(text) => text.clone(),
                _ => key.dotted().ok_or_else(|| key.unexpected("the name of a stage"))?,
            };
            Ok(Object::Entry { name, key })
        }
        _ => Err(term.unexpected(LEGAL)),
    }
}

fn value(term: &Term) -> Parsed<Value> {
    if term.literal_int().is_some() {
        return term.fitting("an argument", "64-bit signed integers").map(Value::Int);
    }
    if let Some(value) = term.literal_float() {
        return Ok(Value::Float(value));
    }
    match &term.kind {
        TermKind::Str(text) => Ok(Value::Str(text.clone())),
        TermKind::Subscript(..) => match object(term)? {
            Object::Entry { name, key } => Ok(Value::Entry { name, key }),
            Object::Function | Object::Name(_) => Err(term.unexpected("an entry such as `s[B]`")),
        },
        TermKind::Bool(value) => Ok(Value::Bool(*value)),
        TermKind::List(items) => Ok(Value::List(items.iter().map(value).collect::<Parsed<_>>()?)),
        TermKind::Tuple(items) => Ok(Value::Tuple(items.iter().map(value).collect::<Parsed<_>>()?)),
        TermKind::Binary(sign, a, b) => match sign_text(*sign) {
            Some(text) => Ok(Value::Binary(text, Box::new(value(a)?), Box::new(value(b)?))),
            None => {
                Err(term.unexpected("a condition of comparisons, `and`, `or`, `+`, `-`, `*`, `//` and `%`"))
            }
        },
        TermKind::Call(callee, args, keywords) => {
            let function = callee.dotted().and_then(|name| FUNCTIONS.iter().find(|known| **known == name));
            let ([a, b], true, Some(function)) = (&args[..], keywords.is_empty(), function) else {
                return Err(term.unexpected("a call of `T.max` or `T.min` with two arguments"));
            };
            Ok(Value::Binary(function, Box::new(value(a)?), Box::new(value(b)?)))
        }
        _ => match term.dotted() {
            Some(name) => Ok(Value::Name(name)),
            None => Err(term.unexpected("a number, a string, a bool, a name, a list or a tuple")),
        },
    }
}

/// Functions of two values that may be called in an argument.
const FUNCTIONS: [&str; 2] = ["T.max", "T.min"];

/// A sign that may be in an argument, as written.
fn sign_text(sign: Sign) -> Option<&'static str> {
    match sign {
        Sign::Add => Some("+"),
        Sign::Sub => Some("-"),
        Sign::Mul => Some("*"),
        Sign::FloorDiv => Some("//"),
        Sign::FloorMod => Some("%"),
        Sign::And => Some("and"),
        Sign::Or => Some("or"),
        Sign::Eq => Some("=="),
        Sign::Ne => Some("!="),
        Sign::Lt => Some("<"),
        Sign::Le => Some("<="),
        Sign::Gt => Some(">"),
        Sign::Ge => Some(">="),
        Sign::Div | Sign::BitAnd | Sign::BitOr | Sign::BitXor | Sign::Shl | Sign::Shr | Sign::At => None,
    }
}
