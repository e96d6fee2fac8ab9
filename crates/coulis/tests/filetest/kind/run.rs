//! `# test: run device=NAME [random=SEED] [n=5 ...]`: the function is called. Printed are its buffers after the call.
//!
//! Parameters are given by `# given:` lines; `random` fills what is read and not given; other words are sizes and
//! scalars by name. A line is printed for each buffer that is written: `B float32 [3]: 1 2 3`. What a device
//! refuses or finds at run time is a fault, `# error CODE: MESSAGE`. Devices are the lines of [`DEVICES`].

use coulis::{Arguments, Array, CompileOptions, DType, DeviceChoice, Scalar, Value, text};

use crate::filetest::{Found, Given, Kind, Task};

/// The kind.
pub static KIND: Kind =
    Kind { name: "run", words: &["device=", "random=", "*="], is_canonical: |_| false, run };

/// Runs a file.
type Device = fn(&Task) -> Result<Found, String>;

/// Devices by name, and what runs a file on each.
const DEVICES: &[(&str, Device)] = &[("cpu", on_cpu), ("cpu_exec", on_executor)];

fn run(task: &Task) -> Result<Found, String> {
    let name = task.words.get("device").map_or("", String::as_str);
    match DEVICES.iter().find(|(n, _)| *n == name) {
        Some((_, device)) => device(task),
        None => {
            let names: Vec<&str> = DEVICES.iter().map(|d| d.0).collect();
            Err(format!("there is no device `{name}`; devices are {}", names.join(", ")))
        }
    }
}

/// Compiled where there is a compiler, else executed.
fn on_cpu(task: &Task) -> Result<Found, String> {
    call(task, DeviceChoice::Cpu)
}

fn on_executor(task: &Task) -> Result<Found, String> {
    call(task, DeviceChoice::CpuExecuted)
}

fn call(task: &Task, device: DeviceChoice) -> Result<Found, String> {
    let options = CompileOptions { device, threads: Some(2), ..CompileOptions::default() };
    let function = match text::compile_one(task.text, &options) {
        Ok(function) => function,
        Err(error) => return Ok(Found::error(&error)),
    };
    let mut arguments = Arguments::default();
    for (key, value) in task.words.iter().filter(|(key, _)| *key != "device") {
        let number: i64 = value.parse().map_err(|_| format!("`{key}={value}` is no number"))?;
        if key == "random" {
            arguments.random = Some(number as u64);
        } else {
            arguments.values.insert(key.clone(), Value::Int(number));
        }
    }
    for given in task.given {
        let dtype = function.parameters().iter().find(|p| p.name == given.name).map(|p| p.dtype);
        let Some(dtype) = dtype else { return Err(format!("there is no parameter `{}`", given.name)) };
        arguments.values.insert(given.name.clone(), Value::Array(array(given, dtype)?));
    }
    let buffers = match function.call_named(&arguments) {
        Ok(called) => called.buffers,
        Err(error) => return Ok(Found::error(&error)),
    };
    let is_written = |name: &str| function.parameters().iter().any(|p| p.name == name && p.is_written);
    let written = buffers.iter().filter(|b| is_written(&b.name));
    Ok(Found::printed(written.map(|b| shown(&b.name, &b.array)).collect()))
}

/// The elements of a `# given:` line as an array of the parameter's type.
pub fn array(given: &Given, dtype: DType) -> Result<Array, String> {
    macro_rules! of {
        ($ty:ty) => {{
            let wrong = |e: &String| format!("`{e}` is no {dtype}");
            let parsed = given.elements.iter().map(|e| e.parse::<$ty>().map_err(|_| wrong(e)));
            let values = parsed.collect::<Result<Vec<$ty>, String>>()?;
            Array::from_slice(&given.shape, &values).map_err(|e| e.to_string())
        }};
    }
    match dtype {
        DType::I8 => of!(i8),
        DType::I16 => of!(i16),
        DType::I32 => of!(i32),
        DType::I64 => of!(i64),
        DType::U8 => of!(u8),
        DType::U16 => of!(u16),
        DType::U32 => of!(u32),
        DType::U64 => of!(u64),
        DType::F32 => of!(f32),
        DType::F64 => of!(f64),
        DType::F16 => of!(half::f16),
        DType::BF16 => of!(half::bf16),
        DType::Bool => {
            let wrong = |e: &String| format!("`{e}` is no bool");
            let parsed = given.elements.iter().map(|e| e.parse::<bool>().map(u8::from).map_err(|_| wrong(e)));
            let bytes = parsed.collect::<Result<Vec<u8>, String>>()?;
            Array::from_bytes(dtype, &given.shape, &bytes).map_err(|e| e.to_string())
        }
        DType::F8E4M3 | DType::F8E5M2 => Err(format!("elements of {dtype} cannot be given")),
    }
}

/// `B float32 [3]: 1 2 3`
pub fn shown(name: &str, array: &Array) -> String {
    let dtype = array.dtype();
    let words = array.scalars().map(|scalar| match scalar {
        Scalar::Float(value) if dtype == DType::F32 => (value as f32).to_string(),
        Scalar::Float(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::UInt(value) => value.to_string(),
        Scalar::Bool(value) => value.to_string(),
    });
    format!("{name} {dtype} {:?}: {}\n", array.shape(), words.collect::<Vec<_>>().join(" "))
}
