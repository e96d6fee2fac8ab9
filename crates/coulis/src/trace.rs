//! Traces as text: what `--plan` prints, read back as steps of a schedule.

use coulis_schedule::{Arg, Step};
use coulis_script::{Call, Object, Value};

use crate::error::Error;

/// The steps of a trace.
pub fn parse(text: &str) -> Result<Vec<Step>, Error> {
    coulis_script::parse_calls(text)?.into_iter().map(step).collect()
}

fn step(call: Call) -> Result<Step, Error> {
    let object = match call.object {
        Object::Name(_) => None,
        Object::Entry { key, .. } => Some(key),
        Object::Function => {
            let message = format!(
                "line {}: `{}` is to be called on a schedule `s` or a stage `s[name]`",
                call.line, call.method
            );
            return Err(Error::user("trace", message));
        }
    };
    let args = call.args.into_iter().map(|v| arg(v, call.line)).collect::<Result<_, _>>()?;
    let options = call
        .kwargs
        .into_iter()
        .map(|(name, value)| Ok((name, arg(value, call.line)?)))
        .collect::<Result<_, Error>>()?;
    Ok(Step::new(call.targets, object, &call.method, args, options))
}

fn arg(value: Value, line: usize) -> Result<Arg, Error> {
    Ok(match value {
        Value::Int(value) => Arg::Int(value),
        Value::Bool(value) => Arg::Bool(value),
        Value::Str(value) => Arg::Str(value),
        Value::Name(name) => Arg::Name(name),
        Value::Entry { key, .. } => Arg::Stage(key),
        Value::List(items) | Value::Tuple(items) => {
            Arg::List(items.into_iter().map(|v| arg(v, line)).collect::<Result<_, _>>()?)
        }
        Value::Float(value) => {
            let message = format!(
                "line {line}: {value} is no argument of a primitive; legal are names, integers, strings, stages and lists"
            );
            return Err(Error::user("trace", message));
        }
    })
}
