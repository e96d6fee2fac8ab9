//! Tile calls: `Tx[.scope].copy`, `.sum`, `.max`, `.min`, `.reduce`.

use coulis_ir::stmt::{Region, TileOp};
use coulis_ir::{Attr, ExecScope, Stmt, TileCall};

use crate::error::{ParseErrorKind, Parsed};
use crate::func::{Reader, attr_of, missing};
use crate::tree::{Keyword, Keywords, Term, TermKind};

/// Options that a variant may read.
const OPTIONS: [&str; 4] = ["ftz", "thread_reduce", "lanes", "warps"];

impl Reader<'_> {
    pub(crate) fn tile_call(
        &mut self,
        term: &Term,
        path: &str,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Stmt> {
        const LEGAL: &str = "`Tx.copy`, `.sum`, `.max`, `.min` or `.reduce`, after `Tx` also `.thread`, `.warp`, \
                             `.warpgroup` or `.wg`, `.cta`, `.cluster`";
        let unknown = || term.fault(ParseErrorKind::UnknownFunction { name: path.to_owned(), legal: LEGAL });
        let parts: Vec<&str> = path.split('.').collect();
        let (scope, method) = match parts[..] {
            [_, method] => (ExecScope::Thread, method),
            [_, scope, method] => (exec_scope(scope).ok_or_else(unknown)?, method),
            _ => return Err(unknown()),
        };
        let mut keywords = Keywords::new(path, keywords);
        let most = if method == "copy" { 2 } else { 4 };
        self.at_most(term, path, args, most)?;
        let dst = args.first().or_else(|| keywords.take("dst"));
        let src = args.get(1).or_else(|| keywords.take("src"));
        let dst = dst.ok_or_else(|| missing(term, path, "a destination"))?;
        let src = src.ok_or_else(|| missing(term, path, "a source"))?;
        let dsts = self.regions(dst)?;
        let srcs = self.regions(src)?;
        let op = match method {
            "copy" => {
                if dsts.len() != 1 || srcs.len() != 1 {
                    let found = dsts.len() + srcs.len();
                    let what = "operands of a copy".to_owned();
                    return Err(term.fault(ParseErrorKind::Count { what, wanted: "2".to_owned(), found }));
                }
                TileOp::Copy
            }
            "sum" | "max" | "min" | "reduce" => {
                let axes = args.get(2).or_else(|| keywords.take("axes"));
                let axes = axes.map_or(Ok(vec![-1]), |axes| {
                    let legal = "64-bit signed integers";
                    axes.items().iter().map(|a| a.fitting("an axis", legal)).collect::<Parsed<Vec<i64>>>()
                })?;
                let accum = args.get(3).or_else(|| keywords.take("accum"));
                let accum = accum.map_or(Ok(false), Term::bool)?;
                if method == "reduce" {
                    let reducer =
                        keywords.take("reducer").ok_or_else(|| missing(term, path, "`reducer=`"))?;
                    match (&reducer.kind, reducer.call()) {
                        (TermKind::Str(name), _) => TileOp::Reduce { name: name.clone(), axes, accum },
                        (_, Some((name, args, keywords))) if name == "T.comm_reducer" => {
                            let reducer = Box::new(self.comm_reducer(reducer, args, keywords)?);
                            TileOp::ReduceBy { reducer, axes, accum }
                        }
                        _ => return Err(reducer.unexpected("a reducer's name or `T.comm_reducer(...)`")),
                    }
                } else {
                    TileOp::Reduce { name: method.to_owned(), axes, accum }
                }
            }
            _ => return Err(unknown()),
        };
        let dispatch = match keywords.take("dispatch") {
            None | Some(Term { kind: TermKind::None, .. }) => None,
            Some(name) => Some(name.str()?.to_owned()),
        };
        let mut options: Vec<(String, Attr)> = Vec::new();
        for name in OPTIONS {
            if let Some(value) = keywords.take(name) {
                options.push((name.to_owned(), attr_of(value)?));
            }
        }
        keywords.done()?;
        let site = self.site(term);
        Ok(Stmt::Tile(Box::new(TileCall { op, scope, dsts, srcs, dispatch, options, site })))
    }

    fn regions(&mut self, term: &Term) -> Parsed<Vec<Region>> {
        match &term.kind {
            TermKind::Tuple(items) | TermKind::List(items) => items.iter().map(|i| self.region(i)).collect(),
            _ => Ok(vec![self.region(term)?]),
        }
    }
}

fn exec_scope(name: &str) -> Option<ExecScope> {
    match name {
        "thread" => Some(ExecScope::Thread),
        "warp" => Some(ExecScope::Warp),
        "warpgroup" | "wg" => Some(ExecScope::Warpgroup),
        "cta" => Some(ExecScope::Cta),
        "cluster" => Some(ExecScope::Cluster),
        _ => None,
    }
}
