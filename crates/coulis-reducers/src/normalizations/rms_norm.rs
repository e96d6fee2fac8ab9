//! Root-mean-square norm.

use super::norms::{about_zero, eps, exact_about_zero};
use crate::normalization::{Along, BesideEntry, NormalizationEntry};

/// `x / sqrt(mean(x^2) + eps) * weight`.
pub static ENTRY: NormalizationEntry = NormalizationEntry {
    name: "rms_norm",
    summary: "Elements over the root of the row's mean square, with a weight for each position of a row.",
    details: "Computed as `x * (1 / sqrt(meansq + eps)) * weight`; `eps` is the distance from 1 to the next value of the \
              input's type unless it is given. A row that holds NaN gives NaN, and so do infinities of a row, whose other \
              elements are 0. Elements that `where` leaves out are mapped as others are, by the mean square of those that take part; where none \
              does they give NaN. The error is at most `56 * eps * (|x| / sqrt(meansq + eps) + 1) * |weight|`, with `eps` of \
              `float32` for elements of at most 32 bits, else of `float64`, however small elements are: where `eps` is next to \
              nothing, small rows are scaled up by a power of two. `float64` elements above 1e154 have no finite square.",
    parameters: &[eps(None)],
    beside: &[BesideEntry {
        name: "weight",
        along: Along::Reduced,
        meaning: "factors of the normalized elements",
    }],
    takes_ddof: false,
    left_out: None,
    example: ">>> import coulis, numpy as np\n\
              >>> coulis.rms_norm(np.array([[3.0, 3.0]]), eps=0)\n\
              array([[1., 1.]])",
    make: about_zero,
    exact: exact_about_zero,
};
