//! Names in scope while a function is read.

use std::collections::HashMap;

use coulis_ir::{Buffer, Expr, ThreadTag, Var};

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Entity {
    /// A scalar.
    Var(Var),
    /// `T.meta_var`: a value that stands wherever its name does.
    Meta(Expr),
    /// `name: T.float32 = value` of a name that is assigned again: one register of the thread.
    Scalar(Buffer),
    /// A parameter that is not matched to a buffer yet.
    Handle(Var),
    /// A buffer; for `T.allocate` its memory too.
    Buffer(Buffer),
    /// `T.env_thread`: a hardware index that is launched later.
    Thread(ThreadTag, Var),
}

/// The names, innermost meaning last.
#[derive(Default)]
pub(crate) struct Scope {
    map: HashMap<String, Vec<Entity>>,
    log: Vec<String>,
}

impl Scope {
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Forgets what was defined since `mark`.
    pub(crate) fn release(&mut self, mark: usize) {
        for name in self.log.drain(mark.min(self.log.len())..).rev() {
            if let Some(meanings) = self.map.get_mut(&name) {
                meanings.pop();
            }
        }
    }

    pub(crate) fn define(&mut self, name: &str, entity: Entity) {
        self.map.entry(name.to_owned()).or_default().push(entity);
        self.log.push(name.to_owned());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Entity> {
        self.map.get(name).and_then(|meanings| meanings.last())
    }

    /// At most five names in scope that look like `name`, sorted.
    pub(crate) fn near(&self, name: &str) -> Vec<String> {
        let stem = |s: &str| s.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_').to_lowercase();
        let wanted = stem(name);
        let mut names: Vec<String> = self
            .map
            .iter()
            .filter(|(known, meanings)| !meanings.is_empty() && stem(known) == wanted)
            .map(|(known, _)| known.clone())
            .collect();
        names.sort();
        names.truncate(5);
        names
    }
}
