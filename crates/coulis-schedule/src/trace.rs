//! The trace: what was done to a schedule, as data and as code.

use std::fmt;

use coulis_ir::{BinaryOp, Buffer, Expr};
use coulis_tensor::IterVar;

/// An argument of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// An integer.
    Int(i64),
    /// `True` or `False`.
    Bool(bool),
    /// A string.
    Str(String),
    /// An axis, a tensor or a size, by name.
    Name(String),
    /// `s[B]`.
    Stage(String),
    /// An axis by identity, from callers that hold it.
    Axis(IterVar),
    /// A tensor, or the stage that computes it, by identity, from callers that hold it.
    Tensor(Buffer),
    /// `[a, b]`.
    List(Vec<Arg>),
    /// Two arguments with a sign between them, `threadIdx_x == 0`, or in a call, `T.max(n, 1)`.
    Binary(BinaryOp, Box<Arg>, Box<Arg>),
    /// An expression of sizes, from callers that hold it.
    Expr(Expr),
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arg::Int(value) => write!(f, "{value}"),
            Arg::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Arg::Str(value) => f.write_str(&coulis_ir::print::quoted(value)),
            Arg::Name(name) => f.write_str(name),
            Arg::Stage(name) => write!(f, "s[{name}]"),
            Arg::Axis(axis) => f.write_str(axis.name()),
            Arg::Tensor(buffer) => f.write_str(&buffer.name),
            Arg::List(items) => {
                let items: Vec<String> = items.iter().map(Arg::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Arg::Binary(op, a, b) => {
                let nested = |arg: &Arg| match arg {
                    Arg::Binary(inner, ..) if rank(*inner) <= rank(*op) => format!("({arg})"),
                    arg => arg.to_string(),
                };
                let spelling = spelling(*op).unwrap_or("?");
                if CALLS.iter().any(|(called, _)| called == op) {
                    return write!(f, "{spelling}({a}, {b})");
                }
                write!(f, "{} {spelling} {}", nested(a), nested(b))
            }
            Arg::Expr(expr) => f.write_str(&coulis_ir::print::print_expr(expr)),
        }
    }
}

/// The signs that stand between arguments, weakest first, with how strongly they bind.
const SIGNS: &[(BinaryOp, &str, u8)] = &[
    (BinaryOp::Or, "or", 0),
    (BinaryOp::And, "and", 1),
    (BinaryOp::Eq, "==", 2),
    (BinaryOp::Ne, "!=", 2),
    (BinaryOp::Lt, "<", 2),
    (BinaryOp::Le, "<=", 2),
    (BinaryOp::Gt, ">", 2),
    (BinaryOp::Ge, ">=", 2),
    (BinaryOp::Add, "+", 3),
    (BinaryOp::Sub, "-", 3),
    (BinaryOp::Mul, "*", 4),
    (BinaryOp::FloorDiv, "//", 4),
    (BinaryOp::FloorMod, "%", 4),
];

/// The functions of two arguments.
const CALLS: &[(BinaryOp, &str)] = &[(BinaryOp::Max, "T.max"), (BinaryOp::Min, "T.min")];

/// How operations are written in a trace.
fn spellings() -> impl Iterator<Item = (BinaryOp, &'static str)> {
    SIGNS.iter().map(|(op, sign, _)| (*op, *sign)).chain(CALLS.iter().copied())
}

/// The sign or the function of an operation that may stand in a trace; `None` for any other.
pub(crate) fn spelling(op: BinaryOp) -> Option<&'static str> {
    spellings().find(|(other, _)| *other == op).map(|(_, spelling)| spelling)
}

/// The operation of a sign or a function in a trace: `and`, `==`, `//`, `T.max`, and so on.
pub fn operation(spelling: &str) -> Option<BinaryOp> {
    spellings().find(|(_, other)| *other == spelling).map(|(op, _)| op)
}

fn rank(op: BinaryOp) -> u8 {
    SIGNS.iter().find(|(other, _, _)| *other == op).map_or(u8::MAX, |(_, _, rank)| *rank)
}

/// One call of a primitive: `k_outer, k_inner = s[B].split(k, factor=16)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Names given to the results, in order: none, or as many as there are.
    pub results: Vec<String>,
    /// The stage in `s[B].f(...)`; `None` for `s.f(...)`.
    pub object: Option<String>,
    /// The primitive.
    pub primitive: String,
    /// Arguments by position.
    pub args: Vec<Arg>,
    /// Arguments by name.
    pub options: Vec<(String, Arg)>,
}

impl Step {
    /// A step from its parts, as a reader of traces finds them.
    pub fn new(
        results: Vec<String>,
        object: Option<String>,
        primitive: &str,
        args: Vec<Arg>,
        options: Vec<(String, Arg)>,
    ) -> Step {
        Step { results, object, primitive: primitive.to_owned(), args, options }
    }

    /// `s[stage].primitive(args)`.
    pub(crate) fn on_stage(stage: String, primitive: &str, args: Vec<Arg>) -> Step {
        Step::new(Vec::new(), Some(stage), primitive, args, Vec::new())
    }

    /// `s.primitive(args)`.
    pub(crate) fn on_schedule(primitive: &str, args: Vec<Arg>) -> Step {
        Step::new(Vec::new(), None, primitive, args, Vec::new())
    }

    /// The step with one more argument by name.
    pub(crate) fn option(mut self, name: &str, value: Arg) -> Step {
        self.options.push((name.to_owned(), value));
        self
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.results.is_empty() {
            write!(f, "{} = ", self.results.join(", "))?;
        }
        match &self.object {
            Some(stage) => write!(f, "s[{stage}].")?,
            None => f.write_str("s.")?,
        }
        let args = self.args.iter().map(Arg::to_string);
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        let all: Vec<String> = args.chain(options).collect();
        write!(f, "{}({})", self.primitive, all.join(", "))
    }
}

/// What was done, in order. Prints as lines of code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    steps: Vec<Step>,
}

impl Trace {
    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Forgets the steps from that one on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.steps.truncate(len);
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        Ok(())
    }
}
