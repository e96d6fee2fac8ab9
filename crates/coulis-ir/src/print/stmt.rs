//! Statements as text.

use super::outline::{Block, Item, Outline};
use super::{Printer, quoted};
use crate::atom::{AtomCall, Element};
use crate::expr::Expr;
use crate::kernel::Attr;
use crate::stmt::{LoopKind, Stmt, SyncKind};

impl Printer {
    /// A statement whose surroundings are not known.
    pub(super) fn fragment(mut self, stmt: &Stmt) -> String {
        let outline = Outline::of(stmt, &[]);
        self.canonical = outline.canonical.clone();
        self.block(&outline.root, &outline, 0);
        self.out
    }

    pub(super) fn block(&mut self, block: &Block<'_>, outline: &Outline<'_>, level: usize) {
        let mark = self.names.mark();
        if block.items.is_empty() {
            self.line(level, "pass");
        }
        for (i, item) in block.items.iter().enumerate() {
            for alias in outline.aliases_before(block.id, i) {
                let text = self.alias(alias);
                let name = self.names.define_buffer(alias, &alias.name);
                self.line(level, &format!("{name} = {text}"));
            }
            self.item(item, outline, level);
        }
        self.names.release(mark);
    }

    fn item(&mut self, item: &Item<'_>, outline: &Outline<'_>, level: usize) {
        match item {
            Item::Leaf(stmt) => {
                self.leaf(stmt, level);
                self.notes_on(level, *stmt);
            }
            Item::Open(stmt) => {
                let head = self.head(stmt);
                let name = self.define_bound(stmt);
                let annotation = match stmt {
                    Stmt::Let { var, .. } => format!(": T.{}", var.dtype()),
                    _ => String::new(),
                };
                self.line(level, &format!("{name}{annotation} = {head}"));
                self.notes_on(level, *stmt);
            }
            Item::With(stmt @ Stmt::Annotate { .. }, body) => {
                let head = self.head(stmt);
                self.line(level, &format!("with {head}:"));
                self.notes_on(level + 1, *stmt);
                self.block(body, outline, level + 1);
            }
            Item::With(stmt, body) => {
                let head = match stmt {
                    Stmt::Let { .. } => format!("T.LetStmt({})", self.head(stmt)),
                    _ => self.head(stmt),
                };
                let mark = self.names.mark();
                let name = self.define_bound(stmt);
                self.line(level, &format!("with {head} as {name}:"));
                self.notes_on(level + 1, *stmt);
                self.block(body, outline, level + 1);
                self.names.release(mark);
            }
            Item::Loop(nest, body) => {
                let mark = self.names.mark();
                let iter = self.loop_iter(nest);
                let mut names = Vec::new();
                for loop_ in nest {
                    if let Stmt::For { var, .. } = loop_ {
                        names.push(self.names.define_var(var));
                    }
                }
                self.line(level, &format!("for {} in {iter}:", names.join(", ")));
                for loop_ in nest {
                    self.notes_on(level + 1, *loop_);
                }
                self.block(body, outline, level + 1);
                self.names.release(mark);
            }
            Item::If(cond, then, otherwise) => {
                let text = self.expr(cond);
                self.line(level, &format!("if {text}:"));
                self.notes_on(level + 1, *cond);
                self.block(then, outline, level + 1);
                if let Some(otherwise) = otherwise {
                    self.line(level, "else:");
                    self.block(otherwise, outline, level + 1);
                }
            }
        }
    }

    /// The right-hand side of a binding, allocation, launch or annotation.
    fn head(&mut self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Let { value, .. } => self.expr(value),
            Stmt::Allocate { buffer, .. } => self.allocation(buffer),
            Stmt::LaunchThread { tag, extent, .. } => {
                format!("T.launch_thread({}, {})", quoted(tag.name()), self.expr(extent))
            }
            Stmt::Annotate { node, key, value, .. } => {
                let node = match node {
                    Some(var) if self.names.has_var(var) => self.names.var(var),
                    Some(var) => quoted(var.name()),
                    None => "None".to_owned(),
                };
                format!("T.attr({node}, {}, {})", quoted(key), attr(value))
            }
            other => {
                debug_assert!(false, "{} has no head", other.kind_name());
                String::new()
            }
        }
    }

    /// Names what a binding, allocation or launch defines.
    fn define_bound(&mut self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Let { var, .. } | Stmt::LaunchThread { var, .. } => self.names.define_var(var),
            Stmt::Allocate { buffer, .. } => {
                let known = self.canonical(buffer).clone();
                let name = self.names.define_buffer(&known, &buffer.name);
                self.names.say_var(&buffer.data, name.clone());
                name
            }
            _ => String::new(),
        }
    }

    fn loop_iter(&mut self, nest: &[&Stmt]) -> String {
        if let [Stmt::For { min, extent, kind, .. }] = nest {
            let maker = match kind {
                LoopKind::Serial => "range".to_owned(),
                LoopKind::Parallel | LoopKind::Unrolled | LoopKind::Vectorized => {
                    format!("T.{}", kind.name())
                }
            };
            if min.is_int(0) && min.ty() == extent.ty() {
                return format!("{maker}({})", self.expr(extent));
            }
            let (start, end) = self.range_ends(min, extent);
            return format!("{maker}({start}, {end})");
        }
        let extents: Vec<String> = nest
            .iter()
            .filter_map(|s| match s {
                Stmt::For { extent, .. } => Some(self.expr(extent)),
                _ => None,
            })
            .collect();
        format!("T.grid({})", extents.join(", "))
    }

    /// `old[0] = T.cuda.atomic_add(counter[0], 1)`.
    fn atom(&mut self, call: &AtomCall) -> String {
        let mut args: Vec<String> = call.memory.iter().map(|e| self.element(e)).collect();
        args.extend(call.args.iter().map(|a| self.expr(a)));
        let target = call.dst.as_ref().map(|e| self.element(e) + " = ").unwrap_or_default();
        format!("{target}T.{}({})", call.atom.name(), args.join(", "))
    }

    fn element(&mut self, element: &Element) -> String {
        let name = self.buffer_name(&element.buffer);
        name + &self.indices(&element.indices)
    }

    fn leaf(&mut self, stmt: &Stmt, level: usize) {
        let text = match stmt {
            Stmt::Store { buffer, indices, value } => {
                let name = self.buffer_name(buffer);
                let indices = self.indices(indices);
                format!("{name}{indices} = {}", self.expr(value))
            }
            Stmt::DeviceEntry => "T.device_entry()".to_owned(),
            Stmt::ScopeIds { id, vars, extents } => {
                let extents: Vec<String> = extents.iter().map(|e: &Expr| self.expr(e)).collect();
                let extents =
                    if extents.is_empty() { String::new() } else { format!("[{}]", extents.join(", ")) };
                let names: Vec<String> = vars.iter().map(|v| self.names.define_var(v)).collect();
                let targets =
                    if names.is_empty() { String::new() } else { format!("{} = ", names.join(", ")) };
                format!("{targets}T.{}({extents})", id.name())
            }
            Stmt::AllocBuffer(buffer) => {
                let text = self.alloc_buffer(buffer);
                let known = self.canonical(buffer).clone();
                let name = self.names.define_buffer(&known, &buffer.name);
                self.names.say_var(&buffer.data, format!("{name}.data"));
                format!("{name} = {text}")
            }
            Stmt::View { buffer, source, local } => {
                let text = self.view(buffer, source, *local);
                let known = self.canonical(buffer).clone();
                format!("{} = {text}", self.names.define_buffer(&known, &buffer.name))
            }
            Stmt::Tile(call) => self.tile_call(call),
            Stmt::Sync(SyncKind::Cluster) => "T.cuda.cluster_sync()".to_owned(),
            Stmt::Sync(SyncKind::Cta) => "T.cuda.cta_sync()".to_owned(),
            Stmt::Sync(SyncKind::Warp) => "T.cuda.warp_sync()".to_owned(),
            Stmt::Sync(SyncKind::Warpgroup(id)) => format!("T.cuda.warpgroup_sync({id})"),
            Stmt::Sync(SyncKind::Named { id, threads }) => {
                format!("T.cuda.named_barrier_sync({id}, {threads})")
            }
            Stmt::Atom(call) => self.atom(call),
            other => {
                debug_assert!(false, "{} is not a leaf", other.kind_name());
                return;
            }
        };
        self.line(level, &text);
    }
}

/// The text of an attribute's value.
pub(super) fn attr(value: &Attr) -> String {
    match value {
        Attr::Bool(value) => format!("T.bool({})", if *value { "True" } else { "False" }),
        Attr::Int(value) if i32::try_from(*value).is_ok() => value.to_string(),
        Attr::Int(value) => format!("T.int64({value})"),
        Attr::Str(value) => quoted(value),
    }
}
