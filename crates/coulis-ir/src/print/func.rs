//! Signatures, and everything that declares a buffer.

use super::names::function_name;
use super::outline::Outline;
use super::stmt::attr;
use super::{Printer, quoted, tuple};
use crate::buffer::{Buffer, MemScope};
use crate::dtype::DType;
use crate::expr::{Expr, Var, VarKind};
use crate::form::Form;
use crate::kernel::{Kernel, Param};
use crate::visit::for_each_expr;

impl Printer {
    /// A function, indented by `level`.
    pub(super) fn kernel(mut self, kernel: &Kernel, level: usize) -> String {
        let params: Vec<Buffer> = kernel.param_buffers().cloned().collect();
        let outline = Outline::of(&kernel.body, &params);
        self.canonical = outline.canonical.clone();
        let form = if Form::infer(&kernel.body) == kernel.form {
            String::new()
        } else {
            format!("(form={})", quoted(kernel.form.name()))
        };
        self.line(level, &format!("@T.prim_func{form}"));
        let signature: Vec<String> = kernel.params.iter().map(|p| self.param(p, &params)).collect();
        self.line(level, &format!("def {}({}):", function_name(&kernel.name), signature.join(", ")));
        for text in std::mem::take(&mut self.notes.signature) {
            self.note(level + 1, &text);
        }
        if !kernel.attrs.is_empty() {
            let attrs: Vec<String> =
                kernel.attrs.iter().map(|(k, v)| format!("{}: {}", quoted(k), attr(v))).collect();
            self.line(level + 1, &format!("T.func_attr({{{}}})", attrs.join(", ")));
        }
        for param in &kernel.params {
            if let Param::Buffer { handle, buffer } = param
                && !is_inline(handle, buffer, &params)
            {
                self.match_buffer(handle, buffer, level + 1);
            }
        }
        self.block(&outline.root, &outline, level + 1);
        self.out
    }

    fn param(&mut self, param: &Param, params: &[Buffer]) -> String {
        match param {
            Param::Scalar(var) => format!("{}: {}", self.names.define_var(var), annotation(var)),
            Param::Buffer { handle, buffer } if is_inline(handle, buffer, params) => {
                let known = self.canonical(buffer).clone();
                let name = self.names.define_buffer(&known, &buffer.name);
                self.names.say_var(&buffer.data, format!("{name}.data"));
                self.names.say_var(handle, name.clone());
                let shape = tuple(&self.exprs(&buffer.shape));
                format!("{name}: T.Buffer({shape}, {})", quoted(buffer.dtype.name()))
            }
            Param::Buffer { handle, .. } => format!("{}: T.handle", self.names.define_var(handle)),
        }
    }

    fn match_buffer(&mut self, handle: &Var, buffer: &Buffer, level: usize) {
        self.define_shape_vars(buffer, level);
        let known = self.canonical(buffer).clone();
        let mut fresh = Vec::new();
        let strides: Vec<String> = (0..buffer.strides.len())
            .map(|i| match inline_stride(buffer, i) {
                Some(var) if !self.names.has_var(var) => {
                    fresh.push((var, i));
                    quoted(&super::names::sanitised(var.name()))
                }
                _ => self.expr(&buffer.strides[i]),
            })
            .collect();
        let data = self.names.has_var(&buffer.data).then(|| self.names.var(&buffer.data));
        let handle = self.names.var(handle);
        let args = self.buffer_args(buffer, data, &strides, MemScope::Global);
        let name = self.names.define_buffer(&known, &buffer.name);
        for (var, i) in fresh {
            self.names.say_var(var, format!("{name}.strides[{i}]"));
        }
        if !self.names.has_var(&buffer.data) {
            self.names.say_var(&buffer.data, format!("{name}.data"));
        }
        self.line(level, &format!("{name} = T.match_buffer({handle}, {args})"));
    }

    /// Defines the variables that appear here first: the bare entries of the shape on one line, others one a line.
    fn define_shape_vars(&mut self, buffer: &Buffer, level: usize) {
        let mut bare: Vec<&Var> = Vec::new();
        for var in buffer.shape.iter().filter_map(Expr::as_var) {
            if !self.names.has_var(var) && !bare.contains(&var) {
                bare.push(var);
            }
        }
        if !bare.is_empty() {
            let makers: Vec<String> = bare.iter().map(|v| constructor(v)).collect();
            let names: Vec<String> = bare.iter().map(|v| self.names.define_var(v)).collect();
            self.line(level, &format!("{} = {}", names.join(", "), makers.join(", ")));
        }
        let mut others = Vec::new();
        let strides = (0..buffer.strides.len()).filter(|&i| inline_stride(buffer, i).is_none());
        for expr in
            buffer.shape.iter().chain(strides.map(|i| &buffer.strides[i])).chain([&buffer.elem_offset])
        {
            for_each_expr(expr, &mut |e| others.extend(e.as_var().cloned()));
        }
        for var in others {
            if !self.names.has_var(&var) {
                let name = self.names.define_var(&var);
                self.line(level, &format!("{name} = {}", constructor(&var)));
            }
        }
    }

    /// The arguments that every maker of buffers takes, without leading ones of its own.
    fn buffer_args(
        &mut self,
        buffer: &Buffer,
        data: Option<String>,
        strides: &[String],
        usual_scope: MemScope,
    ) -> String {
        let mut args = vec![tuple(&self.exprs(&buffer.shape))];
        if self.form == Form::Tiled || buffer.dtype != DType::F32 {
            args.push(quoted(buffer.dtype.name()));
        }
        args.extend(data.map(|d| format!("data={d}")));
        args.extend(self.rare_args(buffer, strides, usual_scope, 64));
        args.join(", ")
    }

    fn rare_args(
        &mut self,
        buffer: &Buffer,
        strides: &[String],
        usual_scope: MemScope,
        usual_align: u32,
    ) -> Vec<String> {
        let mut args = Vec::new();
        if !strides.is_empty() {
            args.push(format!("strides={}", tuple(strides)));
        }
        if buffer.elem_offset != Expr::int(0) {
            args.push(format!("elem_offset={}", self.expr(&buffer.elem_offset)));
        }
        if buffer.scope != usual_scope {
            args.push(format!("scope={}", quoted(buffer.scope.name())));
        }
        if buffer.align != usual_align {
            args.push(format!("align={}", buffer.align));
        }
        if buffer.auto_broadcast {
            args.push("buffer_type=\"auto\"".to_owned());
        }
        args.extend(buffer.layout.as_ref().map(|layout| format!("layout={layout}")));
        args
    }

    /// `T.Buffer(...)`: another window on declared memory.
    pub(super) fn alias(&mut self, buffer: &Buffer) -> String {
        let data = self.names.var(&buffer.data);
        let strides = self.exprs(&buffer.strides);
        format!("T.Buffer({})", self.buffer_args(buffer, Some(data), &strides, MemScope::Global))
    }

    /// `T.allocate([extents], dtype, scope)`, with what else is not usual.
    pub(super) fn allocation(&mut self, buffer: &Buffer) -> String {
        let shape = self.exprs(&buffer.shape).join(", ");
        let strides = self.exprs(&buffer.strides);
        let mut args = vec![format!("[{shape}]"), quoted(buffer.dtype.name()), quoted(buffer.scope.name())];
        args.extend(self.rare_args(buffer, &strides, buffer.scope, 64));
        format!("T.allocate({})", args.join(", "))
    }

    /// `T.alloc_buffer(shape, dtype, scope=...)`.
    pub(super) fn alloc_buffer(&mut self, buffer: &Buffer) -> String {
        let strides = self.exprs(&buffer.strides);
        format!("T.alloc_buffer({})", self.buffer_args(buffer, None, &strides, MemScope::Global))
    }

    /// `source.view(extents, ...)` or `source.local(extents, ...)`.
    pub(super) fn view(&mut self, buffer: &Buffer, source: &Buffer, local: bool) -> String {
        let name = self.buffer_name(source);
        let mut args = self.exprs(&buffer.shape);
        if buffer.dtype != source.dtype {
            args.push(format!("dtype={}", quoted(buffer.dtype.name())));
        }
        let strides = self.exprs(&buffer.strides);
        args.extend(self.rare_args(buffer, &strides, source.scope, source.align));
        format!("{name}.{}({})", if local { "local" } else { "view" }, args.join(", "))
    }
}

/// Whether the parameter prints as `A: T.Buffer((3, 3), "float32")`.
fn is_inline(handle: &Var, buffer: &Buffer, params: &[Buffer]) -> bool {
    let sharers = params.iter().filter(|other| other.data == buffer.data).count();
    buffer.shape.iter().all(|e| e.as_int().is_some())
        && buffer.strides.is_empty()
        && buffer.elem_offset == Expr::int(0)
        && buffer.scope == MemScope::Global
        && buffer.align == 64
        && buffer.layout.is_none()
        && !buffer.auto_broadcast
        && handle.name() == buffer.name
        && sharers == 1
}

/// The variable of a stride that may be declared by its quoted name: of unknown sign, of its extent's type, and
/// nowhere else in the buffer.
fn inline_stride(buffer: &Buffer, i: usize) -> Option<&Var> {
    let var = buffer.strides[i].as_var()?;
    let extent = buffer.shape.get(i)?;
    let mut n = 0;
    for expr in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
        for_each_expr(expr, &mut |e| n += usize::from(e.as_var() == Some(var)));
    }
    (n == 1 && var.kind() == VarKind::Plain && var.dtype() == extent.dtype()).then_some(var)
}

/// `T.int32()`: a new variable.
fn constructor(var: &Var) -> String {
    match var.kind() {
        VarKind::Plain => format!("T.{}()", var.dtype()),
        VarKind::Size => format!("T.{}(is_size_var=True)", var.dtype()),
        VarKind::Handle => "T.handle()".to_owned(),
    }
}

/// `T.int32`: the type of a scalar parameter.
fn annotation(var: &Var) -> String {
    match var.kind() {
        VarKind::Plain => format!("T.{}", var.dtype()),
        VarKind::Size => format!("T.{}(is_size_var=True)", var.dtype()),
        VarKind::Handle => "T.handle".to_owned(),
    }
}
