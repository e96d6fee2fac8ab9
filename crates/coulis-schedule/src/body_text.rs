//! The body of a stage as text, as seed 003 prints `s[B].op.body`.

use coulis_ir::print::print_expr;
use coulis_ir::visit::for_each_expr;
use coulis_ir::{Expr, Lambda, Node};
use coulis_tensor::{Body, IterVar, Reduction};

use crate::names::identifier;
use crate::stage::Stage;

impl Stage {
    /// The body as a list with one entry a component. It is for reading; nothing parses it.
    pub fn body_text(&self) -> String {
        format!("[{}]", body_texts(&self.body).join(", "))
    }
}

/// The components of a body as text, for reading.
pub fn body_texts(body: &Body) -> Vec<String> {
    let entries: Vec<String> = match body {
        Body::Plain(exprs) => exprs.iter().map(print_expr).collect(),
        Body::Reduce(r) => (0..r.arity()).map(|index| reduction_text(r, index)).collect(),
    };
    let mut names: Vec<String> = Vec::new();
    for expr in body.exprs() {
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, _) = e.node()
                && !names.contains(&buffer.name)
            {
                names.push(buffer.name.clone());
            }
        });
    }
    let dotted = |text: String| names.iter().fold(text, |text, name| with_dots(&text, name));
    entries.into_iter().map(dotted).collect()
}

/// The text with reads of a tensor under its own name, `B.rf[...]`, which is no identifier.
fn with_dots(text: &str, name: &str) -> String {
    let found = format!("{}[", identifier(name));
    let mut parts = text.split(&found);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let inside = result.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        result.push_str(if inside { &found[..found.len() - 1] } else { name });
        result.push('[');
        result.push_str(part);
    }
    result
}

fn reduction_text(r: &Reduction, index: usize) -> String {
    let axes: Vec<String> = r.axes.iter().map(axis_text).collect();
    let condition = r.condition.clone().unwrap_or_else(|| Expr::bool(true));
    format!(
        "T.reduce(T.comm_reducer({}, {}), source={}, init={}, axis=[{}], condition={}, value_index={index})",
        lambda_text(&r.combine),
        exprs_text(&r.identity),
        exprs_text(&r.sources),
        exprs_text(&r.init),
        axes.join(", "),
        print_expr(&condition),
    )
}

fn exprs_text(exprs: &[Expr]) -> String {
    let items: Vec<String> = exprs.iter().map(print_expr).collect();
    format!("[{}]", items.join(", "))
}

fn lambda_text(lambda: &Lambda) -> String {
    let params: Vec<&str> = lambda.params.iter().map(|p| p.name()).collect();
    let results: Vec<String> = lambda.body.iter().map(print_expr).collect();
    let results = if results.len() == 1 { results.join("") } else { format!("({})", results.join(", ")) };
    format!("lambda {}: {results}", params.join(", "))
}

fn axis_text(axis: &IterVar) -> String {
    let range = match axis.dom() {
        Some((min, extent)) => {
            let end = crate::fold::add(min, extent);
            format!("T.Range({}, {})", print_expr(min), print_expr(&end))
        }
        None => "None".to_owned(),
    };
    format!("T.iter_var({}, {range}, \"{}\", \"\")", axis.name(), axis.kind().name())
}
