//! Layer norm.

use super::norms::{about_mean, eps, exact_about_mean};
use crate::normalization::{Along, BesideEntry, NormalizationEntry};

/// `(x - mean) / sqrt(var + eps) * weight + bias`, weight and bias lying along the row.
pub static ENTRY: NormalizationEntry = NormalizationEntry {
    name: "layer_norm",
    summary: "Elements less the row's mean over its standard deviation, with a weight and a bias for each position \
              of a row.",
    details: "Computed as `(x - mean) * (1 / sqrt(var + eps)) * weight + bias`; `ddof` is that of the variance. A row that \
              holds NaN or an infinity gives NaN, and so does one of equal elements where `eps` is 0. Elements that \
              `where` leaves out are mapped as others are, by mean and variance of those that take part; where none does they give NaN. The error is at most `factor * eps * (((|x| + |mean|) / sqrt(var + eps) + \
              1) * |weight| + |bias|)`, with `eps` of `float32` and a factor of 56 for `float32`, 296 for narrower floats, \
              where variances err more, and with `eps` of `float64` and `2^24 + 40` at the very worst for others, commonly a \
              few units; however small elements are: where `eps` is next to nothing, small rows are scaled up by a power of \
              two. No difference of `float32` or `bfloat16` elements overflows; `float64` deviations above 1e154 have no finite square.",
    parameters: &[eps(Some(1e-5))],
    beside: &[
        BesideEntry { name: "weight", along: Along::Reduced, meaning: "factors of the normalized elements" },
        BesideEntry { name: "bias", along: Along::Reduced, meaning: "what is added to them" },
    ],
    takes_ddof: true,
    left_out: None,
    example: ">>> import coulis, numpy as np\n\
              >>> coulis.layer_norm(np.array([[1.0, 3.0]]), weight=np.array([10.0, 100.0]), eps=0)\n\
              array([[-10., 100.]])",
    make: about_mean,
    exact: exact_about_mean,
};
