//! Parallel loops: the body becomes a function that runs a range of iterations, with what it uses in a struct.

use std::fmt::Write as _;

use coulis_ir::{Expr, Stmt, Var};

use crate::EmitError;
use crate::c::code::{Code, Lines, Prec};
use crate::c::deps::captures;
use crate::c::types::CTy;
use crate::c::value::Val;
use crate::c::{Frame, INTERRUPT, Walker};

impl Walker<'_> {
    pub(super) fn parallel_loop(
        &mut self,
        var: &Var,
        min: &Expr,
        extent: &Expr,
        body: &Stmt,
    ) -> Result<(), EmitError> {
        let cpu = self.cpu()?;
        let ty = CTy::carrier(var.dtype());
        let start = self.code(min)?;
        let start = self.simple(ty, start);
        let extent = self.code(extent)?;
        let extent = self.simple(CTy::I64, extent);
        let function = self.namer.fresh(&format!("{}_body", self.entry));
        let context = self.namer.fresh(&format!("{}_context", self.entry));

        let used = captures(body, var);
        let mut fields = vec![("i32 *const".to_owned(), "status".to_owned())];
        if self.options.ends_early {
            fields.push((INTERRUPT.to_owned(), "interrupt".to_owned()));
        }
        let mut inside =
            Frame { lines: Lines::in_function(self.style().indent), parallel: true, ..Frame::default() };
        inside.streams = self.f.streams;
        for data in &used.data {
            let Some(pointer) = self.f.pointers.get(data) else { continue };
            let element = CTy::memory(pointer.dtype).name();
            fields.push((format!("{element} *const"), pointer.name.to_string()));
            inside.pointers.insert(*data, pointer.clone());
        }
        for var in &used.vars {
            let Some(val) = self.f.vars.get(&var.id()) else {
                return Err(EmitError::Unbound { name: var.name().to_owned() });
            };
            if val.parts[0].lanes > 0 {
                return Err(self.unsupported(format!("vector `{}` inside a parallel loop", var.name())));
            }
            let name = val.code().text.clone();
            fields.push((format!("const {}", val.ty.name()), name.clone()));
            inside.vars.insert(var.id(), Val::scalar(val.ty, Code::primary(name)));
        }
        let has_start = start.text != "0";
        if has_start {
            fields.push((format!("const {}", ty.name()), "first".to_owned()));
        }

        let outer = std::mem::replace(&mut self.f, inside);
        self.f.lines.statement(format_args!("const struct {context} *const c = context"));
        for (spelled, name) in &fields {
            self.f.lines.statement(format_args!("{spelled} {name} = c->{name}"));
        }
        let bound = |what: &str| {
            let wide = if ty == CTy::I64 {
                Code::primary(what)
            } else {
                Code::cast(ty.name(), &Code::primary(what))
            };
            if has_start { Code::infix("+", Prec::Sum, &Code::primary("first"), &wide) } else { wide }
        };
        let (begin, end) = (bound("begin"), bound("end"));
        self.f.memo.push(Default::default());
        self.f.uses.push(Default::default());
        let written = self.serial_loop(var, &begin, end, body).and_then(|()| self.drain());
        let inside = std::mem::replace(&mut self.f, outer);
        written?;

        let mut text = String::new();
        let _ = writeln!(text, "\nstruct {context} {{");
        for (spelled, name) in &fields {
            let _ = writeln!(text, "    {spelled} {name};");
        }
        let _ = writeln!(text, "}};\n\n{}\n{{", cpu.body_head(&function));
        text.push_str(&inside.lines.into_text());
        text.push_str("}\n");
        self.functions.push_str(&text);

        let values: Vec<String> = fields
            .iter()
            .map(|(_, name)| if name == "first" && has_start { start.text.clone() } else { name.clone() })
            .collect();
        let name = self.namer.fresh("context");
        self.f.lines.statement(format_args!("const struct {context} {name} = {{ {} }}", values.join(", ")));
        let call = cpu.parallel_call(&function, &extent.text, &format!("(void *)&{name}"));
        self.f.lines.open(format_args!("if ({} > 0)", extent.at(Prec::Sum)));
        self.f.lines.statement(&call);
        self.f.lines.close();
        for data in used.data {
            self.forget_memory(data);
        }
        Ok(())
    }
}
