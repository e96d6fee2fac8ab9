//! Files: modules of functions, and bare functions.

use coulis_ir::{Form, Kernel};

use crate::error::{Fault, ParseError, ParseErrorKind, Parsed, Places};
use crate::func::Reader;
use crate::syntax::with_tree;
use crate::tree::{Function, Keywords, Line, LineKind, Term, TermKind};

/// The kernels of a text, in its order: those of its modules (`@I.ir_module class ...`) and its bare functions.
/// Imports, comments and documentation strings are read and dropped.
///
/// # Errors
/// The first thing that is not of the dialect.
pub fn parse_module(text: &str) -> Result<Vec<Kernel>, ParseError> {
    let places = Places::of(text);
    with_tree(text, |lines| {
        let mut kernels = Vec::new();
        for line in lines {
            match &line.kind {
                LineKind::Class(decorators, body) => {
                    module_decorator(line, decorators)?;
                    for line in body {
                        read_line(line, &places, &mut kernels)?;
                    }
                }
                _ => read_line(line, &places, &mut kernels)?,
            }
        }
        Ok(kernels)
    })
}

fn read_line(line: &Line, places: &Places, kernels: &mut Vec<Kernel>) -> Parsed<()> {
    match &line.kind {
        LineKind::Import | LineKind::Pass => {}
        LineKind::Term(Term { kind: TermKind::Str(_), .. }) => {}
        LineKind::Function(function) => kernels.push(read_function(line, places, function)?),
        _ => {
            let found = "a statement outside of functions".to_owned();
            let legal = "`@I.ir_module` classes and `@T.prim_func` functions";
            return Err(Fault::new(line.range.clone(), ParseErrorKind::Unexpected { found, legal }));
        }
    }
    Ok(())
}

fn module_decorator(line: &Line, decorators: &[Term]) -> Parsed<()> {
    let is_module = |term: &Term| {
        term.dotted().as_deref() == Some("I.ir_module") || term.call().is_some_and(|c| c.0 == "I.ir_module")
    };
    match decorators {
        [only] if is_module(only) => Ok(()),
        [only] => Err(only.unexpected("`@I.ir_module`")),
        _ => {
            let found = format!("a class of {} decorators", decorators.len());
            let legal = "a class with the decorator `@I.ir_module`";
            Err(Fault::new(line.range.clone(), ParseErrorKind::Unexpected { found, legal }))
        }
    }
}

fn read_function(line: &Line, places: &Places, function: &Function) -> Parsed<Kernel> {
    const LEGAL: &str = "a function with the decorator `@T.prim_func`";
    let form = match &function.decorators[..] {
        [only] if only.dotted().as_deref() == Some("T.prim_func") => None,
        [only] => match only.call() {
            Some((path, [], keywords)) if path == "T.prim_func" => {
                let mut keywords = Keywords::new("T.prim_func", keywords);
                let form = keywords.take("form").map(read_form).transpose()?;
                keywords.done()?;
                form
            }
            _ => return Err(only.unexpected("`@T.prim_func`")),
        },
        more => {
            let found = format!("a function of {} decorators", more.len());
            return Err(Fault::new(line.range.clone(), ParseErrorKind::Unexpected { found, legal: LEGAL }));
        }
    };
    let mut kernel = Reader::new(places).function(function)?;
    kernel.form = form.unwrap_or_else(|| Form::infer(&kernel.body));
    Ok(kernel)
}

fn read_form(term: &Term) -> Parsed<Form> {
    let name = term.str()?;
    [Form::Nest, Form::Tiled, Form::Flat]
        .into_iter()
        .find(|form| form.name() == name)
        .ok_or_else(|| term.unexpected("\"Nest\", \"Tiled\" or \"Flat\""))
}
