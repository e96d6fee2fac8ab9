//! Programs: the operations behind some outputs, producers first, and the order of arguments.

use coulis_ir::Buffer;

use crate::error::TensorError;
use crate::tensor::{Op, OpKind, Tensor};

/// What is to be computed, without a word on how.
#[derive(Clone, Debug)]
pub struct Program {
    ops: Vec<Op>,
    outputs: Vec<Tensor>,
    args: Vec<Tensor>,
}

impl Program {
    /// The program that computes `outputs`. `args` lists every input that is read, every output, and any computed
    /// tensor that the caller wants to keep.
    pub fn new(outputs: &[Tensor], args: &[Tensor]) -> Result<Program, TensorError> {
        if outputs.is_empty() {
            return Err(TensorError::NoOutput);
        }
        let mut ops = Vec::new();
        for output in outputs {
            if matches!(output.op().kind(), OpKind::Placeholder) {
                return Err(TensorError::OutputIsInput { tensor: output.name().to_owned() });
            }
            visit(output.op(), &mut ops);
        }
        let names = || args.iter().map(|a| a.name().to_owned()).collect::<Vec<_>>();
        for (position, arg) in args.iter().enumerate() {
            let tensor = arg.name().to_owned();
            if args[..position].contains(arg) {
                return Err(TensorError::DuplicateArgument { tensor });
            }
            if !ops.contains(arg.op()) && !matches!(arg.op().kind(), OpKind::Placeholder) {
                return Err(TensorError::UnusedArgument { tensor });
            }
        }
        for op in &ops {
            let input = matches!(op.kind(), OpKind::Placeholder);
            if let Some(tensor) = op.tensors().into_iter().find(|t| input && !args.contains(t)) {
                return Err(TensorError::MissingInput { tensor: tensor.name().to_owned(), args: names() });
            }
        }
        for output in outputs {
            if !args.contains(output) {
                return Err(TensorError::MissingOutput { tensor: output.name().to_owned(), args: names() });
            }
        }
        check_axes(&ops)?;
        Ok(Program { ops, outputs: outputs.to_vec(), args: args.to_vec() })
    }

    /// The program that computes `outputs`, with every input and then every output as its arguments.
    pub fn of_outputs(outputs: &[Tensor]) -> Result<Program, TensorError> {
        let mut ops = Vec::new();
        outputs.iter().for_each(|output| visit(output.op(), &mut ops));
        let inputs = ops.iter().filter(|op| matches!(op.kind(), OpKind::Placeholder)).flat_map(Op::tensors);
        let args: Vec<Tensor> = inputs.chain(outputs.iter().cloned()).collect();
        Program::new(outputs, &args)
    }

    /// The same with further arguments behind its own, of which those count that it has not got.
    pub fn with_args(&self, further: &[Tensor]) -> Result<Program, TensorError> {
        let mut args = self.args.clone();
        for arg in further {
            if !args.contains(arg) {
                args.push(arg.clone());
            }
        }
        Program::new(&self.outputs, &args)
    }

    /// Every operation, inputs included, producers first.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// What is computed.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// Parameters in order.
    pub fn args(&self) -> &[Tensor] {
        &self.args
    }

    /// The operation that makes the buffer.
    pub fn op_of(&self, buffer: &Buffer) -> Option<&Op> {
        self.ops.iter().find(|op| op.outputs().contains(buffer))
    }
}

fn visit(op: &Op, ops: &mut Vec<Op>) {
    if ops.contains(op) {
        return;
    }
    for input in op.inputs() {
        visit(input, ops);
    }
    ops.push(op.clone());
}

fn check_axes(ops: &[Op]) -> Result<(), TensorError> {
    for (position, second) in ops.iter().enumerate() {
        for first in &ops[..position] {
            if let Some(axis) = second.reduce_axes().iter().find(|a| first.reduce_axes().contains(a)) {
                return Err(TensorError::SharedAxis {
                    axis: axis.name().to_owned(),
                    first: first.name().to_owned(),
                    second: second.name().to_owned(),
                });
            }
        }
    }
    Ok(())
}
