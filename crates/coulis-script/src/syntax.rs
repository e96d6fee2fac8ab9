//! From Python text to the small tree. The only file that knows the Python parser.
//!
//! A stack that runs out cannot be caught. The Python parser grows its own, but its tree is dropped, and walked here,
//! by plain recursion. So the tokens are counted first (`nesting.rs`). What passes is read on a thread with a stack for
//! that depth, and expressions deeper than any kernel needs are refused before they reach the rest of coulis.

use std::ops::Range;

use ruff_python_ast as py;
use ruff_text_size::{Ranged, TextRange};

use crate::error::{Fault, ParseError, ParseErrorKind, Parsed};
use crate::nesting::nesting_bound;
use crate::tree::{Function, Keyword, Line, LineKind, Parameter, Sign, Term, TermKind};

/// Deepest expression.
const MAX_TERM_DEPTH: usize = 400;
/// Stack to drop one level of the Python parser's tree, with a margin for debug builds.
const STACK_PER_LEVEL: usize = 4 << 10;
/// Stack for the deepest expression that is not refused, and everything else.
const STACK_BASE: usize = 32 << 20;

/// Parses `text` and hands the tree to `then`, all on a stack that suffices.
pub(crate) fn with_tree<T: Send>(
    text: &str,
    then: impl FnOnce(&[Line]) -> Parsed<T> + Send,
) -> Result<T, ParseError> {
    let depth = nesting_bound(text).map_err(|fault| fault.locate(text))?;
    let whole = || Fault::new(0..0, ParseErrorKind::Resources).locate(text);
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("coulis-parse".to_owned())
            .stack_size(STACK_BASE + depth * STACK_PER_LEVEL)
            .spawn_scoped(scope, || parse(text).and_then(|lines| then(&lines)))
            .map_err(|_| whole())?;
        match worker.join() {
            Ok(result) => result.map_err(|fault| fault.locate(text)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn parse(text: &str) -> Parsed<Vec<Line>> {
    match ruff_python_parser::parse_module(text) {
        Ok(parsed) => lines(&parsed.into_syntax().body),
        Err(error) => {
            let message = error.error.to_string();
            Err(Fault::new(bytes(error.location), ParseErrorKind::Syntax { message }))
        }
    }
}

fn bytes(range: TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

fn refused<T>(node: &impl Ranged, found: &str, legal: &'static str) -> Parsed<T> {
    Err(Fault::new(bytes(node.range()), ParseErrorKind::Unexpected { found: found.to_owned(), legal }))
}

const STATEMENTS: &str = "an assignment, a call, `for`, `if`, `with`, `pass`, a function or a class";

fn lines(body: &[py::Stmt]) -> Parsed<Vec<Line>> {
    body.iter().map(line).collect()
}

fn line(stmt: &py::Stmt) -> Parsed<Line> {
    let kind = match stmt {
        py::Stmt::Assign(assign) => match &assign.targets[..] {
            [py::Expr::Tuple(tuple)] => LineKind::Assign(terms(&tuple.elts, 0)?, term(&assign.value, 0)?),
            [target] => LineKind::Assign(vec![term(target, 0)?], term(&assign.value, 0)?),
            _ => return refused(stmt, "an assignment to several targets", "`target = value`"),
        },
        py::Stmt::AnnAssign(assign) => match &assign.value {
            Some(value) => {
                LineKind::Annotated(term(&assign.target, 0)?, term(&assign.annotation, 0)?, term(value, 0)?)
            }
            None => return refused(stmt, "an annotation without a value", "`name: type = value`"),
        },
        py::Stmt::AugAssign(assign) => {
            let Some(sign) = sign(assign.op) else {
                return refused(stmt, "this operator", "`+=`, `-=`, `*=`, `/=`, `//=`, `%=`");
            };
            LineKind::Update(term(&assign.target, 0)?, sign, term(&assign.value, 0)?)
        }
        py::Stmt::Expr(expr) => LineKind::Term(term(&expr.value, 0)?),
        py::Stmt::For(loop_) => {
            if loop_.is_async || !loop_.orelse.is_empty() {
                return refused(stmt, "an async loop or a loop with an else", "`for names in range(...):`");
            }
            let targets = match &*loop_.target {
                py::Expr::Tuple(tuple) => terms(&tuple.elts, 0)?,
                target => vec![term(target, 0)?],
            };
            LineKind::For(targets, term(&loop_.iter, 0)?, lines(&loop_.body)?)
        }
        py::Stmt::If(branch) => {
            let mut otherwise: Option<Vec<Line>> = None;
            for clause in branch.elif_else_clauses.iter().rev() {
                let body = lines(&clause.body)?;
                otherwise = Some(match &clause.test {
                    None => body,
                    Some(test) => vec![Line {
                        range: bytes(clause.range()),
                        kind: LineKind::If(term(test, 0)?, body, otherwise),
                    }],
                });
            }
            LineKind::If(term(&branch.test, 0)?, lines(&branch.body)?, otherwise)
        }
        py::Stmt::With(with) => {
            if with.is_async {
                return refused(stmt, "an async with", "`with maker as name:`");
            }
            let item = |item: &py::WithItem| -> Parsed<(Term, Option<Term>)> {
                let target = item.optional_vars.as_deref().map(|t| term(t, 0)).transpose()?;
                Ok((term(&item.context_expr, 0)?, target))
            };
            LineKind::With(with.items.iter().map(item).collect::<Parsed<_>>()?, lines(&with.body)?)
        }
        py::Stmt::Pass(_) => LineKind::Pass,
        py::Stmt::Import(_) | py::Stmt::ImportFrom(_) => LineKind::Import,
        py::Stmt::FunctionDef(function) => LineKind::Function(self::function(function)?),
        py::Stmt::ClassDef(class) => LineKind::Class(decorators(&class.decorator_list)?, lines(&class.body)?),
        py::Stmt::Return(_)
        | py::Stmt::Delete(_)
        | py::Stmt::TypeAlias(_)
        | py::Stmt::While(_)
        | py::Stmt::Match(_)
        | py::Stmt::Raise(_)
        | py::Stmt::Try(_)
        | py::Stmt::Assert(_)
        | py::Stmt::Global(_)
        | py::Stmt::Nonlocal(_)
        | py::Stmt::Break(_)
        | py::Stmt::Continue(_)
        | py::Stmt::IpyEscapeCommand(_) => return refused(stmt, "this statement", STATEMENTS),
    };
    Ok(Line { range: bytes(stmt.range()), kind })
}

fn decorators(list: &[py::Decorator]) -> Parsed<Vec<Term>> {
    list.iter().map(|d| term(&d.expression, 0)).collect()
}

fn function(function: &py::StmtFunctionDef) -> Parsed<Function> {
    let parameters = &function.parameters;
    let is_plain = parameters.posonlyargs.is_empty()
        && parameters.vararg.is_none()
        && parameters.kwonlyargs.is_empty()
        && parameters.kwarg.is_none()
        && parameters.args.iter().all(|p| p.default.is_none());
    if function.is_async || function.type_params.is_some() || !is_plain {
        return refused(&function.name, "a signature of another kind", "`def name(param: type, ...):`");
    }
    let params = parameters
        .args
        .iter()
        .map(|p| {
            Ok(Parameter {
                range: bytes(p.range()),
                name: p.parameter.name.to_string(),
                annotation: p.parameter.annotation.as_deref().map(|a| term(a, 0)).transpose()?,
            })
        })
        .collect::<Parsed<_>>()?;
    Ok(Function {
        decorators: decorators(&function.decorator_list)?,
        name: function.name.to_string(),
        params,
        body: lines(&function.body)?,
    })
}

fn sign(op: py::Operator) -> Option<Sign> {
    match op {
        py::Operator::Add => Some(Sign::Add),
        py::Operator::Sub => Some(Sign::Sub),
        py::Operator::Mult => Some(Sign::Mul),
        py::Operator::Div => Some(Sign::Div),
        py::Operator::FloorDiv => Some(Sign::FloorDiv),
        py::Operator::Mod => Some(Sign::FloorMod),
        py::Operator::BitAnd => Some(Sign::BitAnd),
        py::Operator::BitOr => Some(Sign::BitOr),
        py::Operator::BitXor => Some(Sign::BitXor),
        py::Operator::LShift => Some(Sign::Shl),
        py::Operator::RShift => Some(Sign::Shr),
        py::Operator::MatMult => Some(Sign::At),
        py::Operator::Pow => None,
    }
}

fn comparison(op: py::CmpOp) -> Option<Sign> {
    match op {
        py::CmpOp::Eq => Some(Sign::Eq),
        py::CmpOp::NotEq => Some(Sign::Ne),
        py::CmpOp::Lt => Some(Sign::Lt),
        py::CmpOp::LtE => Some(Sign::Le),
        py::CmpOp::Gt => Some(Sign::Gt),
        py::CmpOp::GtE => Some(Sign::Ge),
        py::CmpOp::Is | py::CmpOp::IsNot | py::CmpOp::In | py::CmpOp::NotIn => None,
    }
}

fn terms(exprs: &[py::Expr], depth: usize) -> Parsed<Vec<Term>> {
    exprs.iter().map(|e| term(e, depth)).collect()
}

fn boxed(expr: &py::Expr, depth: usize) -> Parsed<Box<Term>> {
    term(expr, depth).map(Box::new)
}

fn too_deep(expr: &py::Expr, found: usize) -> Box<Fault> {
    let kind = ParseErrorKind::TooDeep { what: "levels of an expression", found, limit: MAX_TERM_DEPTH };
    Fault::new(bytes(expr.range()), kind)
}

fn term(expr: &py::Expr, depth: usize) -> Parsed<Term> {
    let depth = depth + 1;
    if depth > MAX_TERM_DEPTH {
        return Err(too_deep(expr, depth));
    }
    let kind = match expr {
        py::Expr::NumberLiteral(number) => match &number.value {
            py::Number::Int(value) => match value.as_u64() {
                Some(value) => TermKind::Int(value),
                None => {
                    let kind = ParseErrorKind::Range {
                        what: "an integer",
                        found: value.to_string().chars().take(40).collect(),
                        legal: format!("at most {}", u64::MAX),
                    };
                    return Err(Fault::new(bytes(expr.range()), kind));
                }
            },
            py::Number::Float(value) => TermKind::Float(*value),
            py::Number::Complex { .. } => return refused(expr, "a complex number", "an integer or a float"),
        },
        py::Expr::StringLiteral(text) => TermKind::Str(text.value.to_str().to_owned()),
        py::Expr::BooleanLiteral(value) => TermKind::Bool(value.value),
        py::Expr::NoneLiteral(_) => TermKind::None,
        py::Expr::Name(name) => TermKind::Name(name.id.to_string()),
        py::Expr::Attribute(attribute) => {
            TermKind::Attribute(boxed(&attribute.value, depth)?, attribute.attr.to_string())
        }
        py::Expr::Call(call) => {
            let keyword = |k: &py::Keyword| -> Parsed<Keyword> {
                let Some(name) = &k.arg else {
                    return refused(k, "`**`", "`keyword=value`");
                };
                let range = bytes(k.range());
                Ok(Keyword { range, name: name.to_string(), value: term(&k.value, depth)? })
            };
            let keywords = call.arguments.keywords.iter().map(keyword).collect::<Parsed<_>>()?;
            TermKind::Call(boxed(&call.func, depth)?, terms(&call.arguments.args, depth)?, keywords)
        }
        py::Expr::Subscript(subscript) => {
            let indices = match &*subscript.slice {
                py::Expr::Tuple(tuple) => terms(&tuple.elts, depth)?,
                index => vec![term(index, depth)?],
            };
            TermKind::Subscript(boxed(&subscript.value, depth)?, indices)
        }
        py::Expr::BinOp(binary) => {
            let Some(sign) = sign(binary.op) else {
                return refused(expr, "`**`", "`T.pow(x, y)`");
            };
            TermKind::Binary(sign, boxed(&binary.left, depth)?, boxed(&binary.right, depth)?)
        }
        py::Expr::BoolOp(bools) => {
            let sign = match bools.op {
                py::BoolOp::And => Sign::And,
                py::BoolOp::Or => Sign::Or,
            };
            let mut values = bools.values.iter();
            let mut left = match values.next() {
                Some(first) => term(first, depth)?,
                None => return refused(expr, "nothing", "operands"),
            };
            for (n, value) in values.enumerate() {
                if depth + n > MAX_TERM_DEPTH {
                    return Err(too_deep(value, depth + n));
                }
                let right = term(value, depth)?;
                let range = left.range.start..right.range.end;
                left = Term { range, kind: TermKind::Binary(sign, Box::new(left), Box::new(right)) };
            }
            left.kind
        }
        py::Expr::Compare(compare) => match (&compare.ops[..], &compare.comparators[..]) {
            ([op], [right]) => match comparison(*op) {
                Some(sign) => TermKind::Binary(sign, boxed(&compare.left, depth)?, boxed(right, depth)?),
                None => return refused(expr, "`is` or `in`", "`==`, `!=`, `<`, `<=`, `>`, `>=`"),
            },
            _ => return refused(expr, "a chain of comparisons", "comparisons joined by `and`"),
        },
        py::Expr::UnaryOp(unary) => match unary.op {
            py::UnaryOp::Not => TermKind::Not(boxed(&unary.operand, depth)?),
            py::UnaryOp::USub => TermKind::Neg(boxed(&unary.operand, depth)?),
            py::UnaryOp::UAdd => return term(&unary.operand, depth),
            py::UnaryOp::Invert => return refused(expr, "`~`", "`x ^ mask`"),
        },
        py::Expr::If(branch) => TermKind::Conditional {
            cond: boxed(&branch.test, depth)?,
            then: boxed(&branch.body, depth)?,
            otherwise: boxed(&branch.orelse, depth)?,
        },
        py::Expr::Tuple(tuple) => TermKind::Tuple(terms(&tuple.elts, depth)?),
        py::Expr::List(list) => TermKind::List(terms(&list.elts, depth)?),
        py::Expr::Dict(dict) => {
            let item = |item: &py::DictItem| -> Parsed<(Term, Term)> {
                match &item.key {
                    Some(key) => Ok((term(key, depth)?, term(&item.value, depth)?)),
                    None => refused(&item.value, "`**`", "`key: value`"),
                }
            };
            TermKind::Dict(dict.items.iter().map(item).collect::<Parsed<_>>()?)
        }
        py::Expr::Lambda(lambda) => {
            let params = match &lambda.parameters {
                None => Vec::new(),
                Some(p) => {
                    let is_plain = p.posonlyargs.is_empty()
                        && p.vararg.is_none()
                        && p.kwonlyargs.is_empty()
                        && p.kwarg.is_none()
                        && p.args.iter().all(|a| a.default.is_none());
                    if !is_plain {
                        return refused(expr, "parameters of another kind", "`lambda x, y: value`");
                    }
                    p.args.iter().map(|a| a.parameter.name.to_string()).collect()
                }
            };
            TermKind::Lambda(params, boxed(&lambda.body, depth)?)
        }
        py::Expr::Slice(slice) => {
            let part = |e: &Option<Box<py::Expr>>| e.as_deref().map(|e| boxed(e, depth)).transpose();
            TermKind::Slice(part(&slice.lower)?, part(&slice.upper)?, part(&slice.step)?)
        }
        py::Expr::Named(_)
        | py::Expr::Set(_)
        | py::Expr::ListComp(_)
        | py::Expr::SetComp(_)
        | py::Expr::DictComp(_)
        | py::Expr::Generator(_)
        | py::Expr::Await(_)
        | py::Expr::Yield(_)
        | py::Expr::YieldFrom(_)
        | py::Expr::FString(_)
        | py::Expr::TString(_)
        | py::Expr::BytesLiteral(_)
        | py::Expr::EllipsisLiteral(_)
        | py::Expr::Starred(_)
        | py::Expr::IpyEscapeCommand(_) => {
            return refused(
                expr,
                "this expression",
                "names, numbers, strings, operations, calls and indices",
            );
        }
    };
    Ok(Term { range: bytes(expr.range()), kind })
}
