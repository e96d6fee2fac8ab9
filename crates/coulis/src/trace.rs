//! Traces as text: what `--plan` prints, read back as steps of a schedule.

use coulis_schedule::trace::operation;
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
        Value::Binary(sign, a, b) => match operation(sign) {
            Some(op) => Arg::Binary(op, Box::new(arg(*a, line)?), Box::new(arg(*b, line)?)),
            None => return Err(no_argument(sign, line)),
        },
        Value::Float(value) => return Err(no_argument(&value.to_string(), line)),
    })
}

fn no_argument(found: &str, line: usize) -> Error {
    let message = format!(
        "line {line}: {found} is no argument of a primitive; legal are names, integers, strings, stages, lists and \
         conditions"
    );
    Error::user("trace", message)
}
