//! What declares buffers: `T.match_buffer`, `T.Buffer`, `T.allocate`, `T.alloc_buffer`, views.

use coulis_ir::buffer::BufferData;
use coulis_ir::{Buffer, DType, Expr, MemScope, Param, Stmt, Var};

use crate::error::{ParseErrorKind, Parsed};
use crate::func::{Reader, Slot, dtype_of, missing};
use crate::names::Entity;
use crate::tree::{Keyword, Keywords, Term, TermKind};

impl Reader<'_> {
    /// `T.match_buffer(handle, shape, ...)`.
    pub(crate) fn match_buffer(
        &mut self,
        term: &Term,
        name: &str,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Buffer> {
        const F: &str = "T.match_buffer";
        self.at_most(term, F, args, 3)?;
        let handle_term = args.first().ok_or_else(|| missing(term, F, "a handle"))?;
        let Entity::Handle(handle) = self.lookup(handle_term)?.clone() else {
            return Err(handle_term.unexpected("a parameter of type `T.handle`"));
        };
        let Some(slot) = self.params.iter().position(|(s, _)| matches!(s, Slot::Handle(h) if *h == handle))
        else {
            return Err(handle_term.unexpected("a parameter that is not matched yet"));
        };
        let mut keywords = Keywords::new(F, keywords);
        let shape =
            args.get(1).or_else(|| keywords.take("shape")).ok_or_else(|| missing(term, F, "a shape"))?;
        let dtype = args.get(2).or_else(|| keywords.take("dtype"));
        let data = keywords.take("data").map(|d| self.data(d)).transpose()?;
        let shape = self.shape(shape)?;
        let dtype = dtype.map_or(Ok(DType::F32), dtype_of)?;
        let mut fields =
            self.make_buffer(term, name, data.unwrap_or_else(|| Var::handle(name)), dtype, shape)?;
        self.rare_fields(&mut keywords, &mut fields, StrideNames::Define)?;
        keywords.done()?;
        let buffer = Buffer::from_data(fields);
        self.params[slot].0 = Slot::Done(Param::Buffer { handle, buffer: buffer.clone() });
        Ok(buffer)
    }

    /// `T.Buffer(shape, dtype, data=...)`: another window on declared memory.
    pub(crate) fn alias(
        &mut self,
        term: &Term,
        name: &str,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Buffer> {
        const F: &str = "T.Buffer";
        self.at_most(term, F, args, 2)?;
        let mut keywords = Keywords::new(F, keywords);
        let shape =
            args.first().or_else(|| keywords.take("shape")).ok_or_else(|| missing(term, F, "a shape"))?;
        let dtype = args.get(1).or_else(|| keywords.take("dtype"));
        let data = keywords
            .take("data")
            .ok_or_else(|| missing(term, F, "`data=`, the memory of a declared buffer"))?;
        let data = self.data(data)?;
        let shape = self.shape(shape)?;
        let dtype = dtype.map_or(Ok(DType::F32), dtype_of)?;
        let mut fields = self.make_buffer(term, name, data, dtype, shape)?;
        self.rare_fields(&mut keywords, &mut fields, StrideNames::Refuse)?;
        keywords.done()?;
        Ok(Buffer::from_data(fields))
    }

    /// `T.allocate([extents], dtype, scope)`.
    pub(crate) fn allocation(
        &mut self,
        term: &Term,
        name: &str,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Buffer> {
        const F: &str = "T.allocate";
        self.at_most(term, F, args, 3)?;
        let mut keywords = Keywords::new(F, keywords);
        let shape =
            args.first().or_else(|| keywords.take("extents")).ok_or_else(|| missing(term, F, "extents"))?;
        let dtype =
            args.get(1).or_else(|| keywords.take("dtype")).ok_or_else(|| missing(term, F, "a dtype"))?;
        let scope = args.get(2);
        let shape = self.shape(shape)?;
        let mut fields = self.make_buffer(term, name, Var::handle(name), dtype_of(dtype)?, shape)?;
        if let Some(scope) = scope {
            fields.scope = scope_of(scope)?;
        }
        self.rare_fields(&mut keywords, &mut fields, StrideNames::Refuse)?;
        keywords.done()?;
        Ok(Buffer::from_data(fields))
    }

    /// `T.alloc_buffer(shape, dtype, scope=...)` and its shorthands, which have a scope of their own.
    pub(crate) fn alloc_buffer(
        &mut self,
        term: &Term,
        name: &str,
        scope: MemScope,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Buffer> {
        const F: &str = "T.alloc_buffer";
        self.at_most(term, F, args, 2)?;
        let mut keywords = Keywords::new(F, keywords);
        let shape =
            args.first().or_else(|| keywords.take("shape")).ok_or_else(|| missing(term, F, "a shape"))?;
        let dtype = args.get(1).or_else(|| keywords.take("dtype"));
        let shape = self.shape(shape)?;
        let dtype = dtype.map_or(Ok(DType::F32), dtype_of)?;
        let mut fields = self.make_buffer(term, name, Var::handle(name), dtype, shape)?;
        fields.scope = scope;
        self.rare_fields(&mut keywords, &mut fields, StrideNames::Refuse)?;
        keywords.done()?;
        Ok(Buffer::from_data(fields))
    }

    /// `source.view(extents, ...)` or `source.local(extents, ...)`.
    pub(crate) fn view(
        &mut self,
        term: &Term,
        name: &str,
        source: &Term,
        local: bool,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Stmt> {
        let source = self.buffer(source)?;
        let args = match args {
            [Term { kind: TermKind::Tuple(items) | TermKind::List(items), .. }] => items,
            _ => args,
        };
        let mut shape = Vec::new();
        for extent in args {
            shape.push(self.extent_of_buffer(extent)?);
        }
        let function = if local { "local" } else { "view" };
        let mut keywords = Keywords::new(function, keywords);
        let dtype = keywords.take("dtype").map_or(Ok(source.dtype), dtype_of)?;
        let mut fields = self.make_buffer(term, name, source.data.clone(), dtype, shape)?;
        fields.scope = source.scope;
        fields.align = source.align;
        self.rare_fields(&mut keywords, &mut fields, StrideNames::Refuse)?;
        keywords.done()?;
        if args.is_empty() {
            return Err(missing(term, function, "the extents of the window"));
        }
        Ok(Stmt::View { buffer: Buffer::from_data(fields), source, local })
    }

    /// The memory that `X.data` names; for an allocation also `X`.
    pub(crate) fn data(&mut self, term: &Term) -> Parsed<Var> {
        match &term.kind {
            TermKind::Attribute(base, field) if field == "data" => Ok(self.buffer(base)?.data.clone()),
            _ => Ok(self.buffer(term)?.data.clone()),
        }
    }

    fn rare_fields(
        &mut self,
        keywords: &mut Keywords<'_>,
        fields: &mut BufferData,
        stride_names: StrideNames,
    ) -> Parsed<()> {
        if let Some(strides) = keywords.take("strides") {
            let items = strides.items();
            if items.len() != fields.shape.len() && !items.is_empty() {
                let what = "strides".to_owned();
                let wanted = fields.shape.len().to_string();
                return Err(strides.fault(ParseErrorKind::Count { what, wanted, found: items.len() }));
            }
            for (stride, extent) in items.iter().zip(&fields.shape) {
                let value = match (&stride.kind, stride_names) {
                    (TermKind::Str(name), StrideNames::Define) => Var::new(name, extent.dtype()).expr(),
                    _ => self.scalar_int(stride, "a stride")?,
                };
                fields.strides.push(value);
            }
        }
        if let Some(offset) = keywords.take("elem_offset") {
            fields.elem_offset = self.scalar_int(offset, "an offset")?;
        }
        if let Some(scope) = keywords.take("scope") {
            fields.scope = scope_of(scope)?;
        }
        if let Some(align) = keywords.take("align") {
            fields.align = align.fitting("an alignment", "32-bit integers without sign")?;
        }
        if let Some(kind) = keywords.take("buffer_type") {
            fields.auto_broadcast = match kind.str()? {
                "auto" => true,
                "" | "default" => false,
                _ => return Err(kind.unexpected("\"auto\" or \"default\"")),
            };
        }
        if let Some(layout) = keywords.take("layout") {
            fields.layout = match layout.kind {
                TermKind::None => None,
                _ => self.layout(layout)?,
            };
        }
        if let Some(factor) = keywords.take("offset_factor")
            && factor.literal_int() != Some(1)
        {
            return Err(factor.unexpected("1, the only offset factor"));
        }
        Ok(())
    }

    /// A layout as it is written, or that of a buffer: `X.layout`, `X.layout.storage()`.
    fn layout(&self, term: &Term) -> Parsed<Option<coulis_layout::TileLayout>> {
        if let TermKind::Attribute(base, field) = &term.kind
            && field == "layout"
        {
            return Ok(self.buffer(base)?.layout.clone());
        }
        if let TermKind::Call(callee, args, keywords) = &term.kind
            && let TermKind::Attribute(of, method) = &callee.kind
            && method == "storage"
            && args.is_empty()
            && keywords.is_empty()
        {
            let layout =
                self.layout(of)?.ok_or_else(|| of.unexpected("the layout of a buffer that has one"))?;
            return Ok(Some(layout.storage()));
        }
        crate::layout::read(term).map(Some)
    }

    /// The new variables of `n, m = T.int32(), T.int32()`, if that is what the values are.
    pub(crate) fn new_vars(&mut self, targets: &[Term], values: &[Term]) -> Parsed<Option<Vec<Var>>> {
        if targets.len() != values.len() {
            return Ok(None);
        }
        let mut vars = Vec::new();
        for (target, value) in targets.iter().zip(values) {
            if value.call().is_none() {
                return Ok(None);
            }
            let TermKind::Name(name) = &target.kind else { return Ok(None) };
            match crate::func::scalar_type(value, name)? {
                Some(var) => vars.push(var),
                None => return Ok(None),
            }
        }
        Ok(Some(vars))
    }

    /// The extents of scope ids, `[2, 3]`.
    pub(crate) fn extents(&mut self, args: &[Term]) -> Parsed<Vec<Expr>> {
        let items = match args {
            [list] => list.items(),
            _ => args,
        };
        items.iter().map(|extent| self.scalar_int(extent, "an extent")).collect()
    }
}

/// Whether a string among the strides defines a variable.
#[derive(Clone, Copy)]
enum StrideNames {
    Define,
    Refuse,
}

fn scope_of(term: &Term) -> Parsed<MemScope> {
    MemScope::from_name(term.str()?)
        .ok_or_else(|| term.unexpected("\"global\", \"shared\", \"shared.dyn\", \"warp\" or \"local\""))
}
