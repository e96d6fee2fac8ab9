//! Statements and blocks.

use coulis_ir::{
    Atom, AtomCall, Buffer, DType, Element, Expr, LoopKind, MemScope, ScopeId, Signature, Stmt, SyncKind,
    ThreadTag, Ty, Var,
};

use crate::error::{Fault, ParseErrorKind, Parsed};
use crate::expr::{same_lanes, type_fault};
use crate::func::{Reader, assigns, attr_of, missing};
use crate::names::Entity;
use crate::tree::{Keywords, Line, LineKind, Sign, Term, TermKind};

/// Blocks and flat scopes that may stand inside one another.
const MAX_DEPTH: usize = 1000;

/// One statement read: done, or one that the rest of its block is inside of.
enum Piece {
    Done(Stmt),
    Open(Head),
}

/// A statement but for its body.
enum Head {
    Let(Var, Expr),
    Allocate(Buffer),
    Launch(ThreadTag, Var, Expr),
    Annotate(Option<Var>, String, coulis_ir::Attr),
}

impl Head {
    fn close(self, body: Stmt) -> Stmt {
        match self {
            Head::Let(var, value) => Stmt::let_(var, value, body),
            Head::Allocate(buffer) => Stmt::allocate(buffer, body),
            Head::Launch(tag, var, extent) => Stmt::LaunchThread { tag, var, extent, body: Box::new(body) },
            Head::Annotate(node, key, value) => Stmt::Annotate { node, key, value, body: Box::new(body) },
        }
    }
}

impl Reader<'_> {
    /// The statements of a block; what it defines is forgotten at its end.
    pub(crate) fn block(&mut self, lines: &[Line]) -> Parsed<Stmt> {
        let mark = self.scope.mark();
        let depth = self.depth;
        let mut open: Vec<(Head, Vec<Stmt>)> = Vec::new();
        let mut stmts: Vec<Stmt> = Vec::new();
        self.deeper(lines.first())?;
        for (at, line) in lines.iter().enumerate() {
            self.is_reassigned = match &line.kind {
                LineKind::Annotated(target, ..) => {
                    target.name().is_ok_and(|name| assigns(&lines[at + 1..], name))
                }
                _ => false,
            };
            let piece = self.line(line)?;
            stmts.append(&mut self.pending);
            match piece {
                Piece::Done(stmt) => stmts.push(stmt),
                Piece::Open(head) => {
                    self.deeper(Some(line))?;
                    open.push((head, std::mem::take(&mut stmts)));
                }
            }
        }
        let mut body = Stmt::seq(stmts);
        while let Some((head, mut before)) = open.pop() {
            before.push(head.close(body));
            body = Stmt::seq(before);
        }
        self.depth = depth;
        self.scope.release(mark);
        Ok(body)
    }

    fn deeper(&mut self, line: Option<&Line>) -> Parsed<()> {
        self.depth += 1;
        match line {
            Some(line) if self.depth > MAX_DEPTH => {
                let (what, found) = ("levels of statements", self.depth);
                Err(Fault::new(line.range.clone(), ParseErrorKind::TooDeep { what, found, limit: MAX_DEPTH }))
            }
            _ => Ok(()),
        }
    }

    fn line(&mut self, line: &Line) -> Parsed<Piece> {
        let done = |stmt| Ok(Piece::Done(stmt));
        match &line.kind {
            LineKind::Pass | LineKind::Import => done(Stmt::NOP),
            LineKind::Term(Term { kind: TermKind::Str(_), .. }) => done(Stmt::NOP),
            LineKind::Term(term) => self.command(term),
            LineKind::Assign(targets, value) => self.assign(line, targets, value),
            LineKind::Annotated(target, annotation, value) => {
                let name = target.name()?;
                let var = crate::func::scalar_type(annotation, name)?
                    .ok_or_else(|| annotation.unexpected("a dtype such as `T.int32`"))?;
                let value_expr = self.expr_as(value, var.dtype())?;
                if value_expr.ty() != Ty::scalar(var.dtype()) {
                    return Err(type_fault(value, "a bound value", value_expr.ty(), var.dtype().name()));
                }
                if self.is_reassigned {
                    let one = vec![Expr::int(1)];
                    let register = Buffer::new(name, var.dtype(), one, MemScope::Local);
                    self.define(name, target, Entity::Scalar(register.clone()))?;
                    let set = Stmt::store(&register, [Expr::int(0)], value_expr);
                    return done(Stmt::seq([Stmt::AllocBuffer(register), set]));
                }
                self.define(name, target, Entity::Var(var.clone()))?;
                Ok(Piece::Open(Head::Let(var, value_expr)))
            }
            LineKind::Update(target, sign, value) => self.update(target, *sign, value),
            LineKind::For(targets, iter, body) => self.loops(targets, iter, body).map(Piece::Done),
            LineKind::If(cond, then, otherwise) => {
                let cond_value = self.condition(cond)?;
                if cond_value.lanes() != 1 {
                    return Err(type_fault(cond, "a condition", cond_value.ty(), "scalar bools"));
                }
                let before = std::mem::take(&mut self.pending);
                let then = Box::new(self.block(then)?);
                let otherwise = match otherwise {
                    Some(body) => Some(Box::new(self.block(body)?)),
                    None => None,
                };
                self.pending = before;
                done(Stmt::If { cond: cond_value, then, otherwise })
            }
            LineKind::With(items, body) => self.with(items, body).map(Piece::Done),
            LineKind::Function(_) | LineKind::Class(..) => {
                let found = "a definition".to_owned();
                let legal = "statements of a kernel";
                Err(Fault::new(line.range.clone(), ParseErrorKind::Unexpected { found, legal }))
            }
        }
    }

    fn assign(&mut self, line: &Line, targets: &[Term], value: &Term) -> Parsed<Piece> {
        if let [target @ Term { kind: TermKind::Subscript(base, indices), .. }] = targets {
            return self.store(target, base, indices, value).map(Piece::Done);
        }
        if let [target] = targets
            && let Some(register) = self.scalar(target)
        {
            return self.store_at(register, vec![Expr::int(0)], value).map(Piece::Done);
        }
        let values = match &value.kind {
            TermKind::Tuple(items) => items,
            _ => std::slice::from_ref(value),
        };
        if let Some(vars) = self.new_vars(targets, values)? {
            for (var, target) in vars.into_iter().zip(targets) {
                self.define(target.name()?, target, Entity::Var(var))?;
            }
            return Ok(Piece::Done(Stmt::NOP));
        }
        if let Some((path, args, keywords)) = value.call()
            && let Some(id) = scope_id(&path)
        {
            Keywords::new(&path, keywords).done()?;
            return self.scope_ids(value, id, targets, args).map(Piece::Done);
        }
        let [target] = targets else {
            let what = "targets of this assignment".to_owned();
            let kind = ParseErrorKind::Count { what, wanted: "1".to_owned(), found: targets.len() };
            return Err(Fault::new(line.range.clone(), kind));
        };
        let name = target.name()?.to_owned();
        if let Some(stmt) = self.view_statement(&name, target, value)? {
            return Ok(Piece::Done(stmt));
        }
        if let Some((path, args, keywords)) = value.call() {
            let alloc_scope = match path.as_str() {
                "T.alloc_buffer" => Some(MemScope::Global),
                "T.alloc_local" => Some(MemScope::Local),
                "T.alloc_shared" => Some(MemScope::Shared),
                _ => None,
            };
            if let Some(scope) = alloc_scope {
                let buffer = self.alloc_buffer(value, &name, scope, args, keywords)?;
                self.define(&name, target, Entity::Buffer(buffer.clone()))?;
                return Ok(Piece::Done(Stmt::AllocBuffer(buffer)));
            }
            match path.as_str() {
                "T.meta_var" => {
                    Keywords::new(&path, keywords).done()?;
                    let [meant] = self.exactly(value, &path, args)?;
                    let meant = self.expr(meant)?;
                    self.define(&name, target, Entity::Meta(meant))?;
                    return Ok(Piece::Done(Stmt::NOP));
                }
                "T.match_buffer" => {
                    let buffer = self.match_buffer(value, &name, args, keywords)?;
                    self.define(&name, target, Entity::Buffer(buffer))?;
                    return Ok(Piece::Done(Stmt::NOP));
                }
                "T.Buffer" | "T.decl_buffer" => {
                    let buffer = self.alias(value, &name, args, keywords)?;
                    self.define(&name, target, Entity::Buffer(buffer))?;
                    return Ok(Piece::Done(Stmt::NOP));
                }
                "T.env_thread" => {
                    Keywords::new(&path, keywords).done()?;
                    let [tag] = self.exactly(value, &path, args)?;
                    let tag = thread_tag(tag)?;
                    let var = Var::new(&name, DType::I32);
                    self.define(&name, target, Entity::Thread(tag, var))?;
                    return Ok(Piece::Done(Stmt::NOP));
                }
                "T.allocate" | "T.launch_thread" => {
                    let head = self.head(value, Some(target))?;
                    return Ok(Piece::Open(head));
                }
                _ => {}
            }
        }
        // A plain name for a value, as in `row = bx * 8 + warp`.
        let bound = self.expr(value)?;
        if bound.lanes() != 1 {
            return Err(type_fault(value, "a bound value", bound.ty(), "scalars"));
        }
        let var = Var::new(&name, bound.dtype());
        self.define(&name, target, Entity::Var(var.clone()))?;
        Ok(Piece::Open(Head::Let(var, bound)))
    }

    fn view_statement(&mut self, name: &str, target: &Term, value: &Term) -> Parsed<Option<Stmt>> {
        if let TermKind::Call(callee, args, keywords) = &value.kind
            && let TermKind::Attribute(source, method) = &callee.kind
            && (method == "local" || method == "view")
            && matches!(&source.kind, TermKind::Name(name) if name != "T")
        {
            let stmt = self.view(value, name, source, method == "local", args, keywords)?;
            if let Stmt::View { buffer, .. } = &stmt {
                self.define(name, target, Entity::Buffer(buffer.clone()))?;
            }
            return Ok(Some(stmt));
        }
        Ok(None)
    }

    fn store(&mut self, target: &Term, base: &Term, indices: &[Term], value: &Term) -> Parsed<Stmt> {
        let buffer = self.buffer_or_view(base)?;
        let indices = self.indices(target, &buffer, indices)?;
        self.store_at(buffer, indices, value)
    }

    /// The register of a scalar that is assigned again, where the target names one.
    fn scalar(&self, target: &Term) -> Option<Buffer> {
        match self.scope.get(target.name().ok()?)? {
            Entity::Scalar(register) => Some(register.clone()),
            _ => None,
        }
    }

    fn store_at(&mut self, buffer: Buffer, indices: Vec<Expr>, value: &Term) -> Parsed<Stmt> {
        if let Some((path, args, keywords)) = value.call()
            && let Some(atom) = path.strip_prefix("T.").and_then(Atom::from_name)
        {
            Keywords::new(&path, keywords).done()?;
            return self.atom(value, atom, Some(Element { buffer, indices }), args);
        }
        let stored = self.expr_as(value, buffer.dtype)?;
        if stored.dtype() != buffer.dtype {
            return Err(type_fault(value, "a stored value", stored.ty(), buffer.dtype.name()));
        }
        for index in &indices {
            same_lanes(value, index.ty(), stored.ty())?;
        }
        Ok(Stmt::Store { buffer, indices, value: stored })
    }

    /// An atom with its operands. Constants take the type that the atom asks for.
    fn atom(&mut self, term: &Term, atom: Atom, dst: Option<Element>, args: &[Term]) -> Parsed<Stmt> {
        let signature = atom.signature();
        let mut terms = args;
        let mut memory = None;
        if signature.has_memory() {
            let Some((first, rest)) = args.split_first() else {
                return Err(missing(term, atom.name(), "the memory that it works on"));
            };
            let TermKind::Subscript(base, indices) = &first.kind else {
                return Err(first.unexpected("an element of a buffer"));
            };
            let buffer = self.buffer_or_view(base)?;
            let indices = self.indices(first, &buffer, indices)?;
            memory = Some(Element { buffer, indices });
            terms = rest;
        }
        if terms.len() != signature.arity() {
            let what = format!("arguments of `{}`", atom.name());
            let wanted = (signature.arity() + usize::from(memory.is_some())).to_string();
            return Err(term.fault(ParseErrorKind::Count { what, wanted, found: args.len() }));
        }
        let of_memory = memory.as_ref().map(|e| e.buffer.dtype);
        let mut values = Vec::new();
        for (at, value) in terms.iter().enumerate() {
            let value = match (signature, at) {
                (Signature::Shuffle, 2..) | (Signature::Remote, _) => self.expr_as(value, DType::I32)?,
                (Signature::Update | Signature::Exchange, _) => {
                    self.expr_as(value, of_memory.unwrap_or(DType::I32))?
                }
                (Signature::Ballot | Signature::Vote, 1) => self.condition(value)?,
                _ => self.expr(value)?,
            };
            values.push(value);
        }
        Ok(Stmt::Atom(Box::new(AtomCall { atom, dst, memory, args: values })))
    }

    /// `A[i] += x`, which is read as `A[i] = A[i] + x`.
    fn update(&mut self, target: &Term, sign: Sign, value: &Term) -> Parsed<Piece> {
        if let Some(register) = self.scalar(target) {
            let whole = Term {
                range: value.range.clone(),
                kind: TermKind::Binary(sign, Box::new(target.clone()), Box::new(value.clone())),
            };
            return self.store_at(register, vec![Expr::int(0)], &whole).map(Piece::Done);
        }
        let TermKind::Subscript(base, indices) = &target.kind else {
            return Err(target.unexpected("an element of a buffer"));
        };
        let whole = Term {
            range: value.range.clone(),
            kind: TermKind::Binary(sign, Box::new(target.clone()), Box::new(value.clone())),
        };
        self.store(target, base, indices, &whole).map(Piece::Done)
    }

    /// A call that stands as a statement.
    fn command(&mut self, term: &Term) -> Parsed<Piece> {
        const LEGAL: &str = "`T.func_attr`, `T.attr`, `T.device_entry`, scope ids such as `T.cta_id`, barriers such \
                             as `T.cuda.cta_sync`, atoms such as `T.cuda.atomic_add`, `Tx` calls";
        let Some((path, args, keywords)) = term.call() else {
            return Err(term.unexpected("a statement"));
        };
        if path.starts_with("Tx.") {
            return self.tile_call(term, &path, args, keywords).map(Piece::Done);
        }
        if path == "T.attr" {
            return self.head(term, None).map(Piece::Open);
        }
        Keywords::new(&path, keywords).done()?;
        if let Some(id) = scope_id(&path) {
            return self.scope_ids(term, id, &[], args).map(Piece::Done);
        }
        if let Some(atom) = path.strip_prefix("T.").and_then(Atom::from_name) {
            return self.atom(term, atom, None, args).map(Piece::Done);
        }
        let stmt = match path.as_str() {
            "T.func_attr" => {
                let [dict] = self.exactly(term, &path, args)?;
                self.func_attr(dict)?;
                Stmt::NOP
            }
            "T.device_entry" => {
                self.exactly::<0>(term, &path, args)?;
                Stmt::DeviceEntry
            }
            "T.cuda.cluster_sync" => self.plain_sync(term, &path, args, SyncKind::Cluster)?,
            "T.cuda.cta_sync" => self.plain_sync(term, &path, args, SyncKind::Cta)?,
            "T.cuda.warp_sync" => self.plain_sync(term, &path, args, SyncKind::Warp)?,
            "T.cuda.warpgroup_sync" => {
                let [id] = self.exactly(term, &path, args)?;
                Stmt::Sync(SyncKind::Warpgroup(id.fitting("a barrier", "32-bit integers without sign")?))
            }
            "T.cuda.named_barrier_sync" => {
                const LEGAL: &str = "32-bit integers without sign";
                let [id, threads] = self.exactly(term, &path, args)?;
                let (id, threads) =
                    (id.fitting("a barrier", LEGAL)?, threads.fitting("a number of threads", LEGAL)?);
                Stmt::Sync(SyncKind::Named { id, threads })
            }
            _ => return Err(term.fault(ParseErrorKind::UnknownFunction { name: path, legal: LEGAL })),
        };
        Ok(Piece::Done(stmt))
    }

    /// A barrier without arguments.
    fn plain_sync(&mut self, term: &Term, path: &str, args: &[Term], kind: SyncKind) -> Parsed<Stmt> {
        self.exactly::<0>(term, path, args)?;
        Ok(Stmt::Sync(kind))
    }

    /// A launch, allocation, binding or annotation. `target` names what it defines.
    fn head(&mut self, term: &Term, target: Option<&Term>) -> Parsed<Head> {
        const LEGAL: &str = "`T.launch_thread`, `T.allocate`, `T.LetStmt` or `T.attr`";
        let Some((path, args, keywords)) = term.call() else {
            return Err(term.unexpected(LEGAL));
        };
        let named = || target.ok_or_else(|| missing(term, &path, "a name for what it defines"));
        match path.as_str() {
            "T.allocate" => {
                let target = named()?;
                let buffer = self.allocation(term, target.name()?, args, keywords)?;
                self.define(target.name()?, target, Entity::Buffer(buffer.clone()))?;
                Ok(Head::Allocate(buffer))
            }
            "T.LetStmt" => {
                let target = named()?;
                Keywords::new(&path, keywords).done()?;
                let [value] = self.exactly(term, &path, args)?;
                let bound = self.expr(value)?;
                if bound.lanes() != 1 {
                    return Err(type_fault(value, "a bound value", bound.ty(), "scalars"));
                }
                let var = Var::new(target.name()?, bound.dtype());
                self.define(target.name()?, target, Entity::Var(var.clone()))?;
                Ok(Head::Let(var, bound))
            }
            "T.launch_thread" => {
                Keywords::new(&path, keywords).done()?;
                let [what, extent] = self.exactly(term, &path, args)?;
                let extent = self.scalar_int(extent, "an extent")?;
                if let TermKind::Name(name) = &what.kind {
                    let Entity::Thread(tag, var) = self.lookup(what)?.clone() else {
                        return Err(what.unexpected("a name defined by `T.env_thread`, or a tag"));
                    };
                    let var =
                        if var.dtype() == extent.dtype() { var } else { Var::new(name, extent.dtype()) };
                    self.scope.define(name, Entity::Var(var.clone()));
                    return Ok(Head::Launch(tag, var, extent));
                }
                let tag = thread_tag(what)?;
                let target = named()?;
                let var = Var::new(target.name()?, extent.dtype());
                self.define(target.name()?, target, Entity::Var(var.clone()))?;
                Ok(Head::Launch(tag, var, extent))
            }
            "T.attr" => {
                Keywords::new(&path, keywords).done()?;
                let [node, key, value] = self.exactly(term, &path, args)?;
                let node = match &node.kind {
                    TermKind::None => None,
                    TermKind::Str(name) => {
                        let var =
                            self.annotated.entry(name.clone()).or_insert_with(|| Var::new(name, DType::I32));
                        Some(var.clone())
                    }
                    TermKind::Name(_) => match self.lookup(node)? {
                        Entity::Var(var) | Entity::Thread(_, var) | Entity::Handle(var) => Some(var.clone()),
                        Entity::Buffer(buffer) => Some(buffer.data.clone()),
                        Entity::Meta(_) | Entity::Scalar(_) => {
                            return Err(node.unexpected("a variable or a buffer"));
                        }
                    },
                    TermKind::Attribute(_, field) if field == "data" => Some(self.data(node)?),
                    _ => match self.expr(node)?.as_var() {
                        Some(var) => Some(var.clone()),
                        None => return Err(node.unexpected("a variable, a name as a string, or `None`")),
                    },
                };
                Ok(Head::Annotate(node, key.str()?.to_owned(), attr_of(value)?))
            }
            _ => Err(term.unexpected(LEGAL)),
        }
    }

    fn with(&mut self, items: &[(Term, Option<Term>)], body: &[Line]) -> Parsed<Stmt> {
        let mark = self.scope.mark();
        let mut heads = Vec::new();
        for (maker, target) in items {
            heads.push(self.head(maker, target.as_ref())?);
        }
        let before = std::mem::take(&mut self.pending);
        let body = self.block(body)?;
        self.pending = before;
        self.scope.release(mark);
        Ok(heads.into_iter().rev().fold(body, |body, head| head.close(body)))
    }

    fn loops(&mut self, targets: &[Term], iter: &Term, body: &[Line]) -> Parsed<Stmt> {
        const LEGAL: &str =
            "`range`, `T.grid`, `T.serial`, `T.parallel`, `T.unroll` or `T.vectorized` of one or two ends";
        let Some((path, args, keywords)) = iter.call() else {
            return Err(iter.unexpected(LEGAL));
        };
        Keywords::new(&path, keywords).done()?;
        let kind = match path.as_str() {
            "range" | "T.serial" | "T.grid" => LoopKind::Serial,
            "T.parallel" => LoopKind::Parallel,
            "T.unroll" => LoopKind::Unrolled,
            "T.vectorized" => LoopKind::Vectorized,
            _ => return Err(iter.unexpected(LEGAL)),
        };
        let mut ranges = Vec::new();
        match (path.as_str(), args) {
            ("T.grid", extents) => {
                for extent in extents {
                    let extent = self.scalar_int(extent, "an extent")?;
                    ranges.push((Expr::int_of(0, extent.dtype()), extent));
                }
            }
            (_, [extent]) => {
                let extent = self.scalar_int(extent, "an extent")?;
                ranges.push((Expr::int_of(0, extent.dtype()), extent));
            }
            (_, [start, stop]) => ranges.push(self.ends(start, stop)?),
            _ => return Err(iter.unexpected(LEGAL)),
        }
        if ranges.len() != targets.len() {
            let what = "loop variables".to_owned();
            let wanted = ranges.len().to_string();
            return Err(iter.fault(ParseErrorKind::Count { what, wanted, found: targets.len() }));
        }
        let mark = self.scope.mark();
        let mut vars = Vec::new();
        for (target, (_, extent)) in targets.iter().zip(&ranges) {
            let var = Var::new(target.name()?, extent.dtype());
            self.scope.define(target.name()?, Entity::Var(var.clone()));
            vars.push(var);
        }
        let before = std::mem::take(&mut self.pending);
        let body = self.block(body)?;
        self.pending = before;
        self.scope.release(mark);
        let nest = vars.into_iter().zip(ranges).rev();
        Ok(nest.fold(body, |body, (var, (min, extent))| Stmt::for_(var, min, extent, kind, body)))
    }

    fn scope_ids(&mut self, term: &Term, id: ScopeId, targets: &[Term], args: &[Term]) -> Parsed<Stmt> {
        let extents = self.extents(args)?;
        if !targets.is_empty() && !extents.is_empty() && targets.len() != extents.len() {
            let what = format!("names for `T.{}`", id.name());
            let wanted = extents.len().to_string();
            return Err(term.fault(ParseErrorKind::Count { what, wanted, found: targets.len() }));
        }
        let mut vars = Vec::new();
        for (i, target) in targets.iter().enumerate() {
            let dtype = extents.get(i).map_or(DType::I32, Expr::dtype);
            let var = Var::new(target.name()?, dtype);
            self.define(target.name()?, target, Entity::Var(var.clone()))?;
            vars.push(var);
        }
        Ok(Stmt::ScopeIds { id, vars, extents })
    }
}

fn scope_id(path: &str) -> Option<ScopeId> {
    let name = path.strip_prefix("T.")?;
    ScopeId::ALL.into_iter().find(|id| id.name() == name)
}

fn thread_tag(term: &Term) -> Parsed<ThreadTag> {
    let name = term.str()?;
    ThreadTag::ALL.into_iter().find(|tag| tag.name() == name).ok_or_else(|| {
        term.unexpected("\"blockIdx.x\" to \"threadIdx.z\", \"clusterCtaIdx.x\" to \".z\" or \"vthread\"")
    })
}
