//! Functions: signature, attributes, body.

use std::collections::BTreeMap;
use std::ops::Range;

use coulis_ir::buffer::BufferData;
use coulis_ir::buffer::{MOST_BYTES, oversize};
use coulis_ir::{Attr, Buffer, DType, Expr, Form, Kernel, MemScope, Param, Site, Stmt, Var};

use crate::error::{Fault, ParseErrorKind, Parsed, Places};
use crate::names::{Entity, Scope};
use crate::tree::{Function, Keywords, Line, LineKind, Parameter, Term, TermKind};

/// What is known while one function is read.
pub(crate) struct Reader<'t> {
    /// The text that it is in.
    pub(crate) places: &'t Places<'t>,
    pub(crate) scope: Scope,
    /// Parameters as read so far; a handle waits for its `T.match_buffer`.
    pub(crate) params: Vec<(Slot, Range<usize>)>,
    pub(crate) attrs: BTreeMap<String, Attr>,
    /// Statements that an expression of the statement being read needs before it.
    pub(crate) pending: Vec<Stmt>,
    /// Variables that annotations name and nothing binds.
    pub(crate) annotated: BTreeMap<String, Var>,
    /// Whether the rest of the block assigns the scalar again that the line being read annotates.
    pub(crate) is_reassigned: bool,
    /// Blocks and flat scopes around the statement being read.
    pub(crate) depth: usize,
}

/// A parameter.
pub(crate) enum Slot {
    Handle(Var),
    Done(Param),
}

impl Reader<'_> {
    /// Nothing is known yet of a function in that text.
    pub(crate) fn new<'t>(places: &'t Places<'t>) -> Reader<'t> {
        Reader {
            places,
            scope: Scope::default(),
            params: Vec::new(),
            attrs: BTreeMap::new(),
            pending: Vec::new(),
            annotated: BTreeMap::new(),
            is_reassigned: false,
            depth: 0,
        }
    }

    /// Where a term stands.
    pub(crate) fn site(&self, term: &Term) -> Site {
        let (line, column) = self.places.at(term.range.start);
        Site { place: u32::try_from(line).ok().zip(u32::try_from(column).ok()) }
    }

    /// The kernel; its form is for the caller to set.
    pub(crate) fn function(mut self, function: &Function) -> Parsed<Kernel> {
        for param in &function.params {
            self.parameter(param)?;
        }
        let body = self.block(&function.body)?;
        let mut params = Vec::new();
        for (slot, range) in self.params {
            match slot {
                Slot::Done(param) => params.push(param),
                Slot::Handle(handle) => {
                    let function = format!("{}: T.handle", handle.name());
                    let kind = ParseErrorKind::Missing { function, what: "a `T.match_buffer`" };
                    return Err(Fault::new(range, kind));
                }
            }
        }
        Ok(Kernel { name: function.name.clone(), params, attrs: self.attrs, form: Form::Flat, body })
    }

    fn parameter(&mut self, param: &Parameter) -> Parsed<()> {
        const LEGAL: &str = "`T.handle`, `T.Buffer(shape, dtype)` or a dtype such as `T.int32`";
        let annotation = param.annotation.as_ref().ok_or_else(|| {
            let what = "a type";
            Fault::new(param.range.clone(), ParseErrorKind::Missing { function: param.name.clone(), what })
        })?;
        if self.scope.get(&param.name).is_some() {
            let kind = ParseErrorKind::AlreadyDefined { name: param.name.clone() };
            return Err(Fault::new(param.range.clone(), kind));
        }
        let (entity, slot) = if let Some(("T.Buffer", args, keywords)) =
            annotation.call().as_ref().map(|(path, args, keywords)| (path.as_str(), *args, *keywords))
        {
            let mut keywords = Keywords::new("T.Buffer", keywords);
            let shape = args.first().or_else(|| keywords.take("shape"));
            let shape = shape.ok_or_else(|| missing(annotation, "T.Buffer", "a shape"))?;
            let dtype = args.get(1).or_else(|| keywords.take("dtype"));
            self.at_most(annotation, "T.Buffer", args, 2)?;
            keywords.done()?;
            let shape = self.shape(shape)?;
            let dtype = dtype.map_or(Ok(DType::F32), dtype_of)?;
            check_size(annotation, &param.name, &shape, dtype)?;
            let buffer = Buffer::new(&param.name, dtype, shape, MemScope::Global);
            let handle = Var::handle(&param.name);
            (Entity::Buffer(buffer.clone()), Slot::Done(Param::Buffer { handle, buffer }))
        } else if matches!(annotation.dotted().as_deref(), Some("T.handle")) {
            let handle = Var::handle(&param.name);
            (Entity::Handle(handle.clone()), Slot::Handle(handle))
        } else {
            let var = scalar_type(annotation, &param.name)?.ok_or_else(|| annotation.unexpected(LEGAL))?;
            (Entity::Var(var.clone()), Slot::Done(Param::Scalar(var)))
        };
        self.scope.define(&param.name, entity);
        self.params.push((slot, param.range.clone()));
        Ok(())
    }

    /// `T.func_attr({...})`.
    pub(crate) fn func_attr(&mut self, dict: &Term) -> Parsed<()> {
        let TermKind::Dict(items) = &dict.kind else {
            return Err(dict.unexpected("a dict of attributes"));
        };
        for (key, value) in items {
            self.attrs.insert(key.str()?.to_owned(), attr_of(value)?);
        }
        Ok(())
    }

    /// Defines a name that must be new, but for a parameter that is matched to a buffer under its own name.
    pub(crate) fn define(&mut self, name: &str, at: &Term, entity: Entity) -> Parsed<()> {
        match (self.scope.get(name), &entity) {
            (None, _) | (Some(Entity::Handle(_)), Entity::Buffer(_)) => {
                self.scope.define(name, entity);
                Ok(())
            }
            _ => Err(at.fault(ParseErrorKind::AlreadyDefined { name: name.to_owned() })),
        }
    }

    /// The meaning of a name.
    pub(crate) fn lookup(&self, term: &Term) -> Parsed<&Entity> {
        let name = term.name()?;
        self.scope.get(name).ok_or_else(|| {
            term.fault(ParseErrorKind::UnknownName { name: name.to_owned(), near: self.scope.near(name) })
        })
    }

    /// The buffer that a name stands for.
    pub(crate) fn buffer(&self, term: &Term) -> Parsed<Buffer> {
        match self.lookup(term)? {
            Entity::Buffer(buffer) => Ok(buffer.clone()),
            Entity::Var(_) | Entity::Meta(_) | Entity::Scalar(_) | Entity::Handle(_) | Entity::Thread(..) => {
                Err(term.unexpected("a buffer"))
            }
        }
    }

    /// Refuses more than `most` arguments by position.
    pub(crate) fn at_most(&self, at: &Term, function: &str, args: &[Term], most: usize) -> Parsed<()> {
        if args.len() <= most {
            return Ok(());
        }
        let what = format!("arguments of `{function}` by position");
        Err(at.fault(ParseErrorKind::Count { what, wanted: format!("at most {most}"), found: args.len() }))
    }

    /// Exactly `N` arguments by position.
    pub(crate) fn exactly<'t, const N: usize>(
        &self,
        at: &Term,
        function: &str,
        args: &'t [Term],
    ) -> Parsed<&'t [Term; N]> {
        args.try_into().map_err(|_| {
            let what = format!("arguments of `{function}`");
            at.fault(ParseErrorKind::Count { what, wanted: N.to_string(), found: args.len() })
        })
    }

    /// A shape: a tuple or list of extents, or one of them.
    pub(crate) fn shape(&mut self, term: &Term) -> Parsed<Vec<Expr>> {
        term.items().iter().map(|extent| self.extent_of_buffer(extent)).collect()
    }

    /// A scalar integer, which is at least 0 where it is a constant.
    pub(crate) fn extent_of_buffer(&mut self, term: &Term) -> Parsed<Expr> {
        let extent = self.scalar_int(term, "an extent")?;
        match extent.as_int() {
            Some(value) if value < 0 => Err(term.fault(ParseErrorKind::Range {
                what: "an extent of a buffer",
                found: value.to_string(),
                legal: "at least 0".to_owned(),
            })),
            _ => Ok(extent),
        }
    }

    /// A buffer of these fields named `name`, which `term` declares.
    pub(crate) fn make_buffer(
        &self,
        term: &Term,
        name: &str,
        data: Var,
        dtype: DType,
        shape: Vec<Expr>,
    ) -> Parsed<BufferData> {
        check_size(term, name, &shape, dtype)?;
        Ok(BufferData {
            id: coulis_ir::BufferId(0),
            name: name.to_owned(),
            data,
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: Expr::int(0),
            scope: MemScope::Global,
            align: 64,
            layout: None,
            auto_broadcast: false,
        })
    }
}

/// Refuses a buffer of more bytes than are counted.
fn check_size(at: &Term, name: &str, shape: &[Expr], dtype: DType) -> Parsed<()> {
    match oversize(shape, dtype) {
        Some(found) => {
            let buffer = name.to_owned();
            Err(at.fault(ParseErrorKind::TooLarge { buffer, found, limit: MOST_BYTES }))
        }
        None => Ok(()),
    }
}

/// The error that `function` lacks something.
pub(crate) fn missing(at: &Term, function: &str, what: &'static str) -> Box<Fault> {
    at.fault(ParseErrorKind::Missing { function: function.to_owned(), what })
}

/// A dtype by its name as a string.
pub(crate) fn dtype_of(term: &Term) -> Parsed<DType> {
    term.str()?.parse().map_err(|error| term.fault(ParseErrorKind::DType(error)))
}

/// `T.int32`, `T.int32()` or `T.int32(is_size_var=True)`: a variable of that type, if it is one of these.
pub(crate) fn scalar_type(term: &Term, name: &str) -> Parsed<Option<Var>> {
    let (path, keywords) = match term.call() {
        Some((path, [], keywords)) => (path, keywords),
        Some(_) => return Ok(None),
        None => match term.dotted() {
            Some(path) => (path, &[][..]),
            None => return Ok(None),
        },
    };
    let Some(dtype) = path.strip_prefix("T.").and_then(|name| name.parse::<DType>().ok()) else {
        return Ok(None);
    };
    let mut keywords = Keywords::new(&path, keywords);
    let is_size = keywords.take("is_size_var").map_or(Ok(false), Term::bool)?;
    keywords.done()?;
    Ok(Some(if is_size { Var::size(name, dtype) } else { Var::new(name, dtype) }))
}

/// The value of an attribute or option: `T.bool(True)`, `True`, an integer, `T.int64(16)`, a string.
pub(crate) fn attr_of(term: &Term) -> Parsed<Attr> {
    const LEGAL: &str = "a bool, an integer or a string";
    let of_int = |term: &Term| term.fitting("an attribute", "64-bit signed integers").map(Attr::Int);
    match &term.kind {
        TermKind::Bool(value) => Ok(Attr::Bool(*value)),
        TermKind::Str(text) => Ok(Attr::Str(text.clone())),
        TermKind::Int(_) | TermKind::Neg(_) => of_int(term),
        _ => match term.call() {
            Some((path, [value], [])) if path == "T.bool" => value.bool().map(Attr::Bool),
            Some((path, [value], [])) if path == "T.int64" || path == "T.int32" => of_int(value),
            _ => Err(term.unexpected(LEGAL)),
        },
    }
}

/// Whether a line, or one in the blocks of a line, assigns the name.
pub(crate) fn assigns(lines: &[Line], name: &str) -> bool {
    let is_named = |target: &Term| target.name().is_ok_and(|own| own == name);
    lines.iter().any(|line| match &line.kind {
        LineKind::Assign(targets, _) => matches!(&targets[..], [one] if is_named(one)),
        LineKind::Update(target, ..) => is_named(target),
        LineKind::For(_, _, body) | LineKind::With(_, body) | LineKind::Class(_, body) => assigns(body, name),
        LineKind::If(_, then, otherwise) => {
            assigns(then, name) || assigns(otherwise.as_deref().unwrap_or_default(), name)
        }
        LineKind::Function(function) => assigns(&function.body, name),
        LineKind::Annotated(..) | LineKind::Term(_) | LineKind::Pass | LineKind::Import => false,
    })
}
