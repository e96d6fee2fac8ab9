//! Batch norm.

use super::norms::{about_mean, eps, exact_about_mean};
use crate::normalization::{Along, BesideEntry, NormalizationEntry};

/// `(x - mean) / sqrt(var + eps) * weight + bias`, weight and bias lying along the kept axes.
pub static ENTRY: NormalizationEntry = NormalizationEntry {
    name: "batch_norm",
    summary: "Elements less their channel's mean over its standard deviation, with a weight and a bias for each channel.",
    details: "Channels are what the reduced axes leave: of images in NCHW order the axes are 0, 2 and 3. Everything else is \
              as in `layer_norm`, error bound included; the statistics are those of the call's data.",
    parameters: &[eps(Some(1e-5))],
    beside: &[
        BesideEntry { name: "weight", along: Along::Kept, meaning: "factors of the normalized elements" },
        BesideEntry { name: "bias", along: Along::Kept, meaning: "what is added to them" },
    ],
    takes_ddof: true,
    left_out: None,
    example: ">>> import coulis, numpy as np\n\
              >>> coulis.batch_norm(np.array([[1.0, 10.0], [3.0, 30.0]]), axis=0, eps=0)\n\
              array([[-1., -1.],\n       [ 1.,  1.]])",
    make: about_mean,
    exact: exact_about_mean,
};
