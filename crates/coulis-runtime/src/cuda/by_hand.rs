//! Kernels written by hand: what stands around their texts.

use coulis_codegen::{KernelArg, KernelLaunch, Module};
use coulis_ir::{DType, Expr, Var};

use crate::device::Parameter;

/// A module of one kernel of `u32` and `f32` buffers.
pub(crate) struct Text {
    /// The last argument.
    pub(crate) n: Var,
    /// The kernel.
    pub(crate) module: Module,
    /// Its buffers.
    pub(crate) parameters: Vec<Parameter>,
}

/// The module of the kernel `{name}_kernel`, whose arguments are buffers of these types, then `n`.
pub(crate) fn text(name: &str, source: &str, dtypes: &[DType], grid: Expr, block: i32, n: Var) -> Text {
    let one = || Expr::int(1);
    let parameter = |(index, &dtype): (usize, &DType)| {
        let name = ["a", "b", "c"].get(index).copied().unwrap_or("more").to_owned();
        // The text may write any of them.
        Parameter { name, dtype, is_written: true }
    };
    let parameters: Vec<Parameter> = dtypes.iter().enumerate().map(parameter).collect();
    let mut args: Vec<KernelArg> = (0..dtypes.len()).map(KernelArg::Parameter).collect();
    args.push(KernelArg::Scalar { value: n.expr(), dtype: n.dtype() });
    let kernel = KernelLaunch {
        cluster: [1; 3],
        name: format!("{name}_kernel"),
        grid: [grid, one(), one()],
        block: [Expr::int(block), one(), one()],
        args,
        dynamic_shared_bytes: Expr::int(0),
    };
    let module = Module {
        text: source.to_owned(),
        functions: Vec::new(),
        kernels: vec![kernel],
        temporaries: Vec::new(),
        alignments: vec![4; dtypes.len()],
    };
    Text { n, module, parameters }
}

/// The size that such a kernel receives.
pub(crate) fn size() -> Var {
    Var::size("n", DType::I32)
}
