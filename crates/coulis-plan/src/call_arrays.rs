//! What the arrays of a call look like in a problem's dimensions, and where they begin.

use coulis_ir::DType;
use coulis_ir::args::ArrayInfo;

use crate::problem::Role;
use crate::program::Spec;

impl Spec {
    /// What the arrays of a call look like in canonical dimensions: inputs, then the mask, then those beside the elements.
    pub fn array_infos(&self) -> Vec<ArrayInfo> {
        let beside = self.map.iter().flat_map(|map| map.beside.iter().copied());
        let dtypes = self.inputs.iter().copied().chain(self.mask.then_some(DType::Bool));
        let dims = self.problem.given_dims();
        dtypes
            .chain(beside)
            .enumerate()
            .map(|(array, dtype)| {
                let parts = &self.problem.parts[array];
                let whole = dims.len() - usize::from(!parts.is_empty());
                let own = dims[..whole].iter().map(|d| (d.extent, d.strides[array]));
                let (mut shape, strides): (Vec<i64>, Vec<i64>) =
                    own.chain(parts.iter().map(|part| (part.extent, part.stride))).unzip();
                if let Some(row) = shape.last_mut() {
                    *row += self.offset(array);
                }
                ArrayInfo { dtype, shape, strides }
            })
            .collect()
    }

    /// Where the arrays of [`Spec::array_infos`] begin: elements from the first one of each.
    pub fn array_starts(&self) -> Vec<i64> {
        let all = self.problem.starts.iter().enumerate();
        all.take(self.n_read() + self.map.as_ref().map_or(0, |map| map.beside.len()))
            .map(|(array, start)| start - self.offset(array))
            .collect()
    }

    /// Where the outputs (and priors) of a call begin: elements from the first one.
    pub fn output_start(&self) -> i64 {
        // Those of statistics have one for each step of the loops, and no loop over them is turned.
        self.map.as_ref().map_or(0, |map| self.problem.starts[self.n_read() + map.beside.len()])
    }

    /// What the outputs (and priors) of a call look like in canonical dimensions.
    pub fn output_infos(&self) -> Vec<ArrayInfo> {
        let of_role = |reduced: bool| self.problem.dims.iter().filter(move |d| d.is_reduced() == reduced);
        let dims: Vec<(i64, i64)> = match &self.map {
            None => of_role(false)
                .filter_map(|d| match d.role {
                    Role::Kept { out_stride } => Some((d.extent, out_stride)),
                    Role::Reduced { .. } => None,
                })
                .collect(),
            Some(map) => {
                let result = self.n_read() + map.beside.len();
                of_role(false).chain(of_role(true)).map(|d| (d.extent, d.strides[result])).collect()
            }
        };
        let (shape, strides): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
        self.outputs
            .iter()
            .map(|o| ArrayInfo { dtype: o.dtype, shape: shape.clone(), strides: strides.clone() })
            .collect()
    }
}
