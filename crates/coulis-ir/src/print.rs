//! The printer of the text form, a dialect of TVMScript.
//!
//! What is printed here is read back by `coulis-script`, and printing that again gives the same text. The shape of
//! the text is that of the listings of seed 003 for tensor expressions and of seeds 000 to 002 for tile programs;
//! `docs/dialect.md` has the grammar. Nothing is simplified on the way: what the kernel holds is what is shown.
//!
//! The parts: [`names`] makes hints unique, [`outline`] decides where blocks begin and where aliases of buffers are
//! declared, [`func`] prints signatures and buffers, [`stmt`] statements, [`expr`] expressions, [`tile`] tile calls
//! and reducers.

mod expr;
mod func;
mod names;
mod number;
mod outline;
mod stmt;
mod tile;

use std::collections::HashMap;

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::form::Form;
use crate::kernel::Kernel;
use crate::reducer::Reducer;
use crate::stmt::Stmt;

pub use names::identifier;
pub use number::float_literal;

use names::Names;
use outline::Fields;

/// A module of kernels in the order given, as `print(lower(...))` shows it. Ends with a line break.
pub fn print_module(kernels: &[Kernel]) -> String {
    let mut out = String::from("@I.ir_module\nclass Module:\n");
    for (i, kernel) in kernels.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out.push_str(&Printer::new(kernel.form).kernel(kernel, 1));
    }
    if kernels.is_empty() {
        out.push_str("    pass\n");
    }
    out
}

/// A bare function. Ends with a line break.
pub fn print_kernel(kernel: &Kernel) -> String {
    Printer::new(kernel.form).kernel(kernel, 0)
}

/// A bare function with remarks as comments: those on a statement stand under its line, those on the signature
/// under the `def`. The text is read back as the kernel.
pub fn print_kernel_with_notes(kernel: &Kernel, notes: Notes) -> String {
    Printer { notes, ..Printer::new(kernel.form) }.kernel(kernel, 0)
}

/// Remarks on statements of one kernel, for [`print_kernel_with_notes`]. A statement is known by its place in
/// memory, so the kernel must not be moved or changed in between.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    signature: Vec<String>,
    on_stmts: HashMap<usize, Vec<String>>,
}

impl Notes {
    /// Adds a remark on the signature.
    pub fn on_signature(&mut self, text: String) {
        self.signature.push(text);
    }

    /// Adds a remark on a statement.
    pub fn on_stmt(&mut self, stmt: &Stmt, text: String) {
        let place = match stmt {
            Stmt::If { cond, .. } => place_of(cond),
            other => place_of(other),
        };
        self.on_stmts.entry(place).or_default().push(text);
    }
}

/// The address, as a number.
fn place_of<T>(part: &T) -> usize {
    std::ptr::from_ref(part).addr()
}

/// A statement by itself; free names print by their hints. Each line ends with a line break.
pub fn print_stmt(stmt: &Stmt) -> String {
    Printer::new(Form::infer(stmt)).fragment(stmt)
}

/// An expression by itself; free names print by their hints.
pub fn print_expr(expr: &Expr) -> String {
    Printer::new(Form::Flat).expr(expr)
}

/// A reducer by itself, `T.comm_reducer(lambda x, y: x + y, [T.float32(0)], ...)`.
pub fn print_reducer(reducer: &Reducer) -> String {
    Printer::new(Form::Tiled).reducer(reducer)
}

/// State of one printing: names in scope, and which buffers are one and the same.
struct Printer {
    names: Names,
    form: Form,
    canonical: HashMap<Fields, Buffer>,
    notes: Notes,
    out: String,
}

impl Printer {
    fn new(form: Form) -> Printer {
        let (names, notes) = (Names::default(), Notes::default());
        Printer { names, form, canonical: HashMap::new(), notes, out: String::new() }
    }

    /// The buffer that stands for all buffers with the same fields.
    fn canonical<'b>(&'b self, buffer: &'b Buffer) -> &'b Buffer {
        self.canonical.get(&Fields::of(buffer)).unwrap_or(buffer)
    }

    /// The identifier of a buffer; its hint where it was not declared.
    fn buffer_name(&mut self, buffer: &Buffer) -> String {
        let known = self.canonical(buffer).clone();
        self.names.buffer(&known)
    }

    /// Appends the remarks on a statement, or on the condition of a branch.
    fn notes_on<T>(&mut self, level: usize, part: &T) {
        for text in self.notes.on_stmts.remove(&place_of(part)).unwrap_or_default() {
            self.note(level, &text);
        }
    }

    /// Appends a remark.
    fn note(&mut self, level: usize, text: &str) {
        self.line(level, &format!("# ^^^^ {}", text.replace('\n', " ")));
    }

    /// Appends a line at an indentation level.
    fn line(&mut self, level: usize, text: &str) {
        for _ in 0..level {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// A tuple as Python writes it: `()`, `(a,)`, `(a, b)`.
fn tuple(items: &[String]) -> String {
    match items {
        [only] => format!("({only},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A string literal.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
