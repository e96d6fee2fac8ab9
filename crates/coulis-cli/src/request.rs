//! The flags that describe a call, shared by `reduce`, `explain` and `normalize`, and the request that they become;
//! those that reductions alone take; those that normalizations alone take; and those that name a machine which need not be here.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use coulis::{
    Array, DEFAULT_CUDA_ARCH, DType, DeviceChoice, Error, NanPolicy, Normalize, RawSpec, ReadOptions,
    Request, TargetChoice, Tuned, read, read_all, read_text,
};

use crate::failure::{Failure, not_built};
use crate::values::{
    Integers, Names, PerOp, Setting, count, device, dtype, dtypes, factors, integers, number, setting,
};

/// The machine that something is shown for.
#[derive(clap::Args)]
pub struct TargetArgs {
    /// Target, which need not be here: cpu, cuda or hip
    #[arg(long, value_name = "T")]
    target: Option<String>,
    /// Architecture of the target, as sm_90a
    #[arg(long, value_name = "A")]
    arch: Option<String>,
}

impl TargetArgs {
    /// The target that is named, if one is, of that command.
    pub fn choice(&self, command: &str) -> Result<Option<TargetChoice>, Failure> {
        match (self.target.as_deref(), &self.arch) {
            (None, None) => Ok(None),
            (None | Some("cuda"), arch) => Ok(Some(TargetChoice::Cuda { arch: arch.clone() })),
            (Some("cpu"), None) => Ok(Some(TargetChoice::Cpu)),
            (Some("cpu"), Some(_)) => Err(Error::user("cli/arch", "--arch belongs to --target cuda").into()),
            (Some("hip"), _) => Err(not_built(&format!("{command} --target hip"))),
            (Some(other), _) => {
                let message = format!("there is no target `{other}`; targets are cpu, cuda, hip");
                Err(Error::user("cli/target", message).into())
            }
        }
    }

    /// The request, for the target that is named, if one is, in place of its device.
    pub fn on(&self, request: Request, command: &str) -> Result<Request, Failure> {
        let Some(choice) = self.choice(command)? else { return Ok(request) };
        if request.device != DeviceChoice::Auto {
            let message = "--device opens a device, and --target names a machine that need not be here; give one of them";
            return Err(Error::user("cli/target", message).into());
        }
        let device = match choice {
            TargetChoice::Cpu => DeviceChoice::Cpu,
            TargetChoice::Sim { warp } => DeviceChoice::Sim { warp, orders: 1 },
            TargetChoice::Cuda { arch } => {
                DeviceChoice::Elsewhere { arch: arch.unwrap_or_else(|| DEFAULT_CUDA_ARCH.to_owned()) }
            }
        };
        Ok(Request { device, ..request })
    }
}

/// The first flag of `A` that is among the words of the command line.
pub fn first_flag<A: clap::Args>(words: &ArgMatches) -> Option<String> {
    let declared = A::augment_args(clap::Command::new(""));
    let is_given = |arg: &&Arg| words.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    declared.get_arguments().filter(is_given).find_map(Arg::get_long).map(|long| format!("--{long}"))
}

/// What becomes of NaN elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Nan {
    /// A NaN element makes the result NaN.
    Propagate,
    /// NaN elements count as absent.
    Ignore,
}

/// What `reduce` and `explain` take and `normalize` does not, whose result has every element of its input.
#[derive(clap::Args)]
pub struct ReductionArgs {
    /// Keep reduced axes with length 1
    #[arg(long)]
    keepdims: bool,
}

impl ReductionArgs {
    /// The request with what these flags say.
    pub fn on(&self, request: Request) -> Request {
        Request { keepdims: self.keepdims, ..request }
    }
}

/// What a normalization takes beside its name.
#[derive(clap::Args)]
pub struct NormalizationArgs {
    /// A number that the op takes, as eps=1e-6
    #[arg(long, value_name = "NAME=X", value_parser = setting)]
    set: Vec<Setting>,
    /// An array that the op takes, as weight=w.npy
    #[arg(long, value_name = "NAME=FILE", value_parser = setting)]
    beside: Vec<Setting>,
}

impl NormalizationArgs {
    /// The first of these flags that is given.
    pub fn given(&self) -> Option<&'static str> {
        (!self.set.is_empty()).then_some("--set").or((!self.beside.is_empty()).then_some("--beside"))
    }

    /// The request, for that normalization in place of statistics.
    pub fn on(&self, request: Request, op: &str) -> Result<Request, Failure> {
        once("--set", &self.set)?;
        once("--beside", &self.beside)?;
        let names: Vec<&str> = self.beside.iter().map(|s| s.name.as_str()).collect();
        let mut normalize = Normalize::named(op)?.beside(&names);
        for Setting { name, value } in &self.set {
            let number = number(value)
                .map_err(|error| Error::user("normalize/parameter", format!("`{name}`: {error}")))?;
            normalize = normalize.with(name, number);
        }
        Ok(Request { normalize: Some(normalize), ..request })
    }

    /// Opens the arrays beside the elements.
    pub fn inputs(&self) -> Result<Vec<Array>, Failure> {
        self.beside.iter().map(|Setting { value, .. }| Ok(read(value, &ReadOptions::default())?)).collect()
    }
}

/// Refuses a name that a flag gives twice.
fn once(flag: &str, settings: &[Setting]) -> Result<(), Failure> {
    let again = |(at, setting): (usize, &Setting)| {
        settings[..at]
            .iter()
            .find(|before| before.name == setting.name)
            .map(|before| (before, setting.clone()))
    };
    match settings.iter().enumerate().find_map(again) {
        Some((first, Setting { name, value })) => {
            let message = format!("{flag} gives `{name}` twice: {} and {value}", first.value);
            Err(Error::user("cli/value", message).into())
        }
        None => Ok(()),
    }
}

/// The help of FILE.
fn file() -> String {
    let read = coulis::extensions();
    format!(
        "Array file: {read}, or raw with --raw-shape. A second file holds the second input of ops that take two, as \
         dot and wmean do; a normalization takes one file"
    )
}

/// The flags of a call but its ops.
#[derive(clap::Args)]
pub struct RequestArgs {
    #[arg(value_name = "FILE", required = true, num_args = 1..=2, help = file())]
    pub files: Vec<PathBuf>,
    /// Reduced axes, negative ones from the end; all axes without it
    #[arg(long, value_name = "LIST", value_parser = integers, allow_hyphen_values = true)]
    axis: Option<Integers>,
    /// Member of a .npz or .safetensors file; given twice, the second is that of the second file
    #[arg(long, value_name = "NAME")]
    key: Vec<String>,
    /// Shape of a raw file
    #[arg(long, value_name = "LIST", value_parser = integers, allow_hyphen_values = true, requires = "raw_dtype")]
    raw_shape: Option<Integers>,
    /// Dtype of a raw file
    #[arg(long, value_name = "T", value_parser = dtype, requires = "raw_shape")]
    raw_dtype: Option<DType>,
    /// Type in which sums, products and the like are accumulated
    #[arg(long, value_name = "T", value_parser = dtype)]
    acc_dtype: Option<DType>,
    /// Type of the results: one for all, or op=T,...
    #[arg(long, value_name = "T|OP=T,...", value_parser = dtypes)]
    out_dtype: Option<PerOp<DType>>,
    /// Subtracted from the count in var and std
    #[arg(long, value_name = "N", value_parser = number, default_value_t = 0.0, allow_hyphen_values = true)]
    ddof: f64,
    /// What becomes of NaN elements
    #[arg(long, value_enum, default_value_t = Nan::Propagate)]
    nan: Nan,
    /// Bool array, broadcast to the input: which elements take part
    #[arg(long = "where", value_name = "FILE")]
    where_: Option<PathBuf>,
    /// Factor of the result: one for all, or op=X,...
    #[arg(long, value_name = "X|OP=X,...", value_parser = factors, allow_hyphen_values = true)]
    alpha: Option<PerOp<f64>>,
    /// Factor of the prior that is added: one for all, or op=X,...
    #[arg(long, value_name = "X|OP=X,...", value_parser = factors, allow_hyphen_values = true)]
    beta: Option<PerOp<f64>>,
    /// The priors, by the name of the result that they are added to; a .npy holds that of the only one
    #[arg(long, value_name = "FILE.npz", requires = "beta")]
    prior: Option<PathBuf>,
    /// Where to run: auto (where the data lies, which for files is the CPU), cpu, cuda or cuda:N
    #[arg(long, value_name = "D", value_parser = device, default_value = "auto")]
    device: DeviceChoice,
    /// CPU threads; all of them without it
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Run the trace in this file instead of the planner's choice
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Plan as if `coulis tune` had found nothing
    #[arg(long)]
    untuned: bool,
}

impl RequestArgs {
    /// Opens the inputs.
    pub fn inputs(&self) -> Result<Vec<Array>, Failure> {
        if self.key.len() > self.files.len() {
            let message = format!("--key is given {} times for {} files", self.key.len(), self.files.len());
            return Err(Error::user("cli/key", message).into());
        }
        let raw = match (&self.raw_shape, self.raw_dtype) {
            (Some(shape), Some(dtype)) => Some(RawSpec { shape: shape.0.clone(), dtype }),
            _ => None,
        };
        let options = |i: usize| ReadOptions { key: self.key.get(i).cloned(), raw: raw.clone() };
        self.files.iter().enumerate().map(|(i, path)| Ok(read(path, &options(i))?)).collect()
    }

    /// The request, with the arrays and the trace that its flags name read from their files.
    pub fn request(&self, ops: &Names) -> Result<Request, Failure> {
        let prior = self.prior.as_ref().map(read_all).transpose()?.unwrap_or_default();
        let plan = self.replay.as_ref().map(|path| {
            read_text(path).map_err(|error| {
                let why = error.to_string().to_lowercase();
                Error::user("read/trace", format!("cannot read the trace `{}`: {why}", path.display()))
            })
        });
        let where_ = self.where_.as_ref().map(|path| read(path, &ReadOptions::default())).transpose()?;
        Ok(Request {
            ops: ops.0.clone(),
            axes: self.axis.clone().map(|axes| axes.0),
            nan: match self.nan {
                Nan::Propagate => NanPolicy::Propagate,
                Nan::Ignore => NanPolicy::Ignore,
            },
            where_,
            ddof: self.ddof,
            acc_dtype: self.acc_dtype,
            out_dtypes: self.out_dtype.clone().unwrap_or_default().0,
            alpha: self.alpha.clone().unwrap_or_default().0,
            beta: self.beta.clone().unwrap_or_default().0,
            prior: prior.into_iter().collect(),
            threads: self.threads,
            device: self.device.clone(),
            plan: plan.transpose()?,
            tuned: if self.untuned { Tuned::Ignored } else { Tuned::Recorded },
            ..Request::new(&[])
        })
    }
}
