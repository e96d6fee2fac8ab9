//! The blocks of a printed function, and where aliases of buffers are declared.
//!
//! The text form has no statement for an alias (a buffer that looks at the memory of a declared one). It is declared
//! by `X = T.Buffer(..., data=...)` in the innermost block that contains all its uses, right before the first
//! statement there that uses it; a binding counts as one statement with everything after it. Source: the listings
//! of seed 003.

use std::collections::{HashMap, HashSet, VecDeque};

use coulis_layout::TileLayout;

use crate::buffer::{Buffer, BufferId, MemScope};
use crate::dtype::DType;
use crate::expr::{Expr, Node, Var, VarId};
use crate::stmt::{LoopKind, Stmt};
use crate::visit::{for_each_expr, stmt_exprs, uses_any};

/// All of a buffer but its identity and name. Buffers that agree in it are printed as one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Fields {
    data: VarId,
    dtype: DType,
    shape: Vec<Expr>,
    strides: Vec<Expr>,
    elem_offset: Expr,
    scope: MemScope,
    align: u32,
    layout: Option<TileLayout>,
    auto_broadcast: bool,
}

impl Fields {
    pub(super) fn of(buffer: &Buffer) -> Fields {
        Fields {
            data: buffer.data.id(),
            dtype: buffer.dtype,
            shape: buffer.shape.clone(),
            strides: buffer.strides.clone(),
            elem_offset: buffer.elem_offset.clone(),
            scope: buffer.scope,
            align: buffer.align,
            layout: buffer.layout.clone(),
            auto_broadcast: buffer.auto_broadcast,
        }
    }
}

/// One printed statement.
pub(super) enum Item<'a> {
    /// A statement without a block.
    Leaf(&'a Stmt),
    /// A binding, allocation or launch that the rest of the block is inside of.
    Open(&'a Stmt),
    /// The same, or an annotation, with a block of its own.
    With(&'a Stmt, Block<'a>),
    /// One loop, or several that print as `T.grid`.
    Loop(Vec<&'a Stmt>, Block<'a>),
    /// A branch.
    If(&'a Expr, Block<'a>, Option<Block<'a>>),
}

/// Statements at one indentation.
pub(super) struct Block<'a> {
    pub(super) id: usize,
    pub(super) items: Vec<Item<'a>>,
}

/// A function's blocks, with the aliases to declare before each statement.
pub(super) struct Outline<'a> {
    pub(super) root: Block<'a>,
    pub(super) canonical: HashMap<Fields, Buffer>,
    aliases: HashMap<(usize, usize), Vec<Buffer>>,
}

impl<'a> Outline<'a> {
    /// `params` are declared before the body.
    pub(super) fn of(body: &'a Stmt, params: &[Buffer]) -> Outline<'a> {
        let mut builder = Builder::default();
        for buffer in params {
            builder.declare(buffer);
        }
        let root = builder.block(body);
        let aliases = builder.place();
        Outline { root, canonical: builder.canonical, aliases }
    }

    /// The aliases to declare right before statement `item` of block `block`.
    pub(super) fn aliases_before(&self, block: usize, item: usize) -> &[Buffer] {
        self.aliases.get(&(block, item)).map_or(&[], Vec::as_slice)
    }
}

/// What a statement is to the placement of aliases.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Binding,
    Scope,
    Other,
}

/// Where an alias is used: statements from the outermost block inward, and how many of the blocks all uses share.
struct Uses {
    buffer: Buffer,
    first: Vec<(usize, usize)>,
    shared: usize,
    after: Vec<(usize, usize)>,
}

#[derive(Default)]
struct Builder {
    canonical: HashMap<Fields, Buffer>,
    /// Buffers declared here or around here.
    declared: Vec<BufferId>,
    /// Pointers with a declared buffer.
    known: HashSet<VarId>,
    path: Vec<(usize, usize)>,
    n_blocks: usize,
    kinds: HashMap<usize, Vec<Kind>>,
    uses: Vec<Uses>,
    use_index: HashMap<(BufferId, Vec<usize>), usize>,
    /// The binding of each variable now: a serial number and, for those bound by a flat statement, its place.
    bindings: HashMap<VarId, (usize, Option<(usize, usize)>)>,
    n_bindings: usize,
}

impl Builder {
    fn declare(&mut self, buffer: &Buffer) {
        self.known.insert(buffer.data.id());
        let first = self.canonical.entry(Fields::of(buffer)).or_insert_with(|| buffer.clone());
        self.declared.push(first.id);
    }

    fn bind(&mut self, var: &Var, place: Option<(usize, usize)>) {
        self.n_bindings += 1;
        self.bindings.insert(var.id(), (self.n_bindings, place));
    }

    fn use_buffer(&mut self, buffer: &Buffer) {
        let buffer = self.canonical.entry(Fields::of(buffer)).or_insert_with(|| buffer.clone()).clone();
        if self.declared.contains(&buffer.id) || !self.known.contains(&buffer.data.id()) {
            return;
        }
        let bound: Vec<(usize, Option<(usize, usize)>)> =
            vars_of(&buffer).iter().filter_map(|v| self.bindings.get(&v.id()).copied()).collect();
        let key = (buffer.id, bound.iter().map(|b| b.0).collect());
        match self.use_index.get(&key) {
            Some(&i) => {
                let uses = &mut self.uses[i];
                let same = uses.first.iter().zip(&self.path).take_while(|(a, b)| a.0 == b.0).count();
                uses.shared = uses.shared.min(same);
            }
            None => {
                self.use_index.insert(key, self.uses.len());
                let after = bound.iter().filter_map(|b| b.1).collect();
                self.uses.push(Uses { buffer, first: self.path.clone(), shared: self.path.len(), after });
            }
        }
    }

    fn use_exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        for expr in exprs {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, _) = e.node() {
                    self.use_buffer(buffer);
                }
            });
        }
    }

    fn block<'a>(&mut self, body: &'a Stmt) -> Block<'a> {
        let id = self.n_blocks;
        self.n_blocks += 1;
        self.path.push((id, 0));
        let (saved, n_declared) = (self.bindings.clone(), self.declared.len());
        let mut items = Vec::new();
        let mut kinds = Vec::new();
        let mut queue: VecDeque<&'a Stmt> = body.in_sequence().into();
        while let Some(stmt) = queue.pop_front() {
            let place = (id, items.len());
            if let Some(top) = self.path.last_mut() {
                *top = place;
            }
            let item = self.item(stmt, queue.is_empty(), place);
            kinds.push(match (&item, stmt) {
                (Item::Open(_), Stmt::Let { .. }) => Kind::Binding,
                (Item::Open(_), _) => Kind::Scope,
                _ => Kind::Other,
            });
            if let (Item::Open(_), Some(body)) = (&item, scoped_body(stmt)) {
                queue = body.in_sequence().into();
            }
            items.push(item);
        }
        self.bindings = saved;
        self.declared.truncate(n_declared);
        self.path.pop();
        self.kinds.insert(id, kinds);
        Block { id, items }
    }

    fn inner<'a>(&mut self, bound: &[&Var], body: &'a Stmt) -> Block<'a> {
        let saved: Vec<_> = bound.iter().map(|v| (v.id(), self.bindings.get(&v.id()).copied())).collect();
        for var in bound {
            self.bind(var, None);
        }
        let block = self.block(body);
        for (id, old) in saved {
            match old {
                Some(old) => self.bindings.insert(id, old),
                None => self.bindings.remove(&id),
            };
        }
        block
    }

    fn item<'a>(&mut self, stmt: &'a Stmt, is_last: bool, place: (usize, usize)) -> Item<'a> {
        match stmt {
            Stmt::For { .. } => {
                let nest = grid(stmt);
                let mut vars = Vec::new();
                let mut body = stmt;
                for loop_ in &nest {
                    self.use_exprs(stmt_exprs(loop_));
                    if let Stmt::For { var, body: inner, .. } = loop_ {
                        vars.push(var);
                        body = inner;
                    }
                }
                Item::Loop(nest, self.inner(&vars, body))
            }
            Stmt::If { cond, then, otherwise } => {
                self.use_exprs([cond]);
                let then = self.block(then);
                let otherwise = otherwise.as_deref().map(|s| self.block(s));
                Item::If(cond, then, otherwise)
            }
            Stmt::Annotate { body, .. } => Item::With(stmt, self.inner(&[], body)),
            Stmt::Let { body, .. } | Stmt::Allocate { body, .. } | Stmt::LaunchThread { body, .. } => {
                self.use_exprs(stmt_exprs(stmt));
                let var = match stmt {
                    Stmt::Let { var, .. } | Stmt::LaunchThread { var, .. } => Some(var),
                    Stmt::Allocate { buffer, .. } => {
                        self.declare(buffer);
                        Some(&buffer.data)
                    }
                    _ => None,
                };
                if is_last {
                    if let Some(var) = var {
                        self.bind(var, Some(place));
                    }
                    Item::Open(stmt)
                } else {
                    let vars: Vec<&Var> = var.into_iter().collect();
                    let body = self.inner(&vars, body);
                    if let Stmt::Allocate { .. } = stmt {
                        self.declared.pop();
                    }
                    Item::With(stmt, body)
                }
            }
            Stmt::Store { buffer, .. } => {
                self.use_buffer(buffer);
                self.use_exprs(stmt_exprs(stmt));
                Item::Leaf(stmt)
            }
            Stmt::Tile(call) => {
                for region in call.dsts.iter().chain(&call.srcs) {
                    self.use_buffer(&region.buffer);
                }
                self.use_exprs(stmt_exprs(stmt));
                Item::Leaf(stmt)
            }
            Stmt::ScopeIds { vars, .. } => {
                self.use_exprs(stmt_exprs(stmt));
                for var in vars {
                    self.bind(var, Some(place));
                }
                Item::Leaf(stmt)
            }
            Stmt::AllocBuffer(buffer) => {
                self.declare(buffer);
                self.bind(&buffer.data, Some(place));
                Item::Leaf(stmt)
            }
            Stmt::View { buffer, source, .. } => {
                self.use_buffer(source);
                self.declare(buffer);
                Item::Leaf(stmt)
            }
            Stmt::Atom(call) => {
                call.elements().for_each(|e| self.use_buffer(&e.buffer));
                self.use_exprs(stmt_exprs(stmt));
                Item::Leaf(stmt)
            }
            Stmt::Seq(_) | Stmt::DeviceEntry | Stmt::Sync(_) => Item::Leaf(stmt),
        }
    }

    /// The place of each alias.
    fn place(&self) -> HashMap<(usize, usize), Vec<Buffer>> {
        let mut places: HashMap<(usize, usize), Vec<Buffer>> = HashMap::new();
        for uses in &self.uses {
            let Some(&(block, first)) = uses.shared.checked_sub(1).and_then(|i| uses.first.get(i)) else {
                continue;
            };
            let kinds = self.kinds.get(&block).map_or(&[][..], Vec::as_slice);
            let mut at = first;
            for j in (0..first).rev() {
                match kinds.get(j) {
                    Some(Kind::Binding) => at = j,
                    Some(Kind::Other) => {}
                    Some(Kind::Scope) | None => break,
                }
            }
            let earliest = uses.after.iter().filter(|p| p.0 == block).map(|p| p.1 + 1).max().unwrap_or(0);
            places.entry((block, at.max(earliest))).or_default().push(uses.buffer.clone());
        }
        places
    }
}

/// What a statement that may print flat has inside.
fn scoped_body(stmt: &Stmt) -> Option<&Stmt> {
    match stmt {
        Stmt::Let { body, .. } | Stmt::Allocate { body, .. } | Stmt::LaunchThread { body, .. } => Some(body),
        _ => None,
    }
}

/// The variables that a declaration of the buffer mentions.
fn vars_of(buffer: &Buffer) -> Vec<Var> {
    let mut vars = vec![buffer.data.clone()];
    for expr in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
        for_each_expr(expr, &mut |e| vars.extend(e.as_var().cloned()));
    }
    vars
}

/// Whether this is a serial loop from 0 to an extent of its variable's type.
fn is_plain_loop(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::For { min, extent, kind, .. } => {
            *kind == LoopKind::Serial && min.is_int(0) && min.ty() == extent.ty()
        }
        _ => false,
    }
}

/// The loops that print together: serial ones from 0, directly nested, with extents that do not use each other.
fn grid(outer: &Stmt) -> Vec<&Stmt> {
    let mut nest = vec![outer];
    let mut vars = Vec::new();
    let mut current = outer;
    while let Stmt::For { var, body, .. } = current {
        vars.push(var.clone());
        let [inner] = body.in_sequence()[..] else { break };
        let Stmt::For { extent, .. } = inner else { break };
        if !is_plain_loop(current) || !is_plain_loop(inner) || uses_any(extent, &vars) {
            break;
        }
        nest.push(inner);
        current = inner;
    }
    nest
}
