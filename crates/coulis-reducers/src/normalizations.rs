//! The slice of all normalizations, and look-up by name.

use crate::normalization::{NormalizationEntry, NormalizationError};

mod batch_norm;
mod layer_norm;
mod log_softmax;
mod norms;
mod rms_norm;
mod softmax;

/// Every normalization, in the order of the documentation.
pub static NORMALIZATIONS: &[&NormalizationEntry] =
    &[&softmax::ENTRY, &log_softmax::ENTRY, &layer_norm::ENTRY, &rms_norm::ENTRY, &batch_norm::ENTRY];

/// The normalization of that name.
pub fn find_normalization(name: &str) -> Result<&'static NormalizationEntry, NormalizationError> {
    NORMALIZATIONS.iter().find(|e| e.name == name).copied().ok_or_else(|| NormalizationError::Unknown {
        name: name.to_owned(),
        legal: NORMALIZATIONS.iter().map(|e| e.name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;

    use super::*;
    use crate::{NormalizationRequest, ReducerRequest};

    fn request(dtype: DType) -> NormalizationRequest {
        NormalizationRequest::new(ReducerRequest::new(&[dtype]))
    }

    #[test]
    fn maps_give_wide_results_where_these_are_asked_for() {
        for entry in NORMALIZATIONS {
            for dtype in DType::ALL {
                let plain = entry.build(&request(dtype)).unwrap();
                let wide = entry.build(&NormalizationRequest { wide: true, ..request(dtype) }).unwrap();
                assert_eq!(wide.map.body[0].dtype(), DType::F64, "{} of {dtype}", entry.name);
                assert_eq!(wide.result.dtype, plain.result.dtype, "{} of {dtype}", entry.name);
                assert_eq!(wide.reducer.results, plain.reducer.results, "{} of {dtype}", entry.name);
            }
        }
    }

    #[test]
    fn every_normalization_takes_every_type_and_gives_floats() {
        for entry in NORMALIZATIONS {
            for dtype in DType::ALL {
                let normalization = entry.build(&request(dtype)).unwrap();
                let want = if dtype.is_float() { dtype } else { DType::F64 };
                assert_eq!(normalization.result.dtype, want, "{} of {dtype}", entry.name);
                assert!(normalization.bound.is_some(), "{} states its bound", entry.name);
            }
        }
    }

    #[test]
    fn what_a_normalization_does_not_have_is_refused_by_name() {
        let refused = |name: &str, request: &NormalizationRequest| {
            find_normalization(name).and_then(|e| e.build(request)).unwrap_err().to_string()
        };
        let plain = request(DType::F32);
        let names: Vec<&str> = NORMALIZATIONS.iter().map(|entry| entry.name).collect();
        assert_eq!(
            refused("softmin", &plain),
            format!("unknown normalization `softmin`; legal ones are {}", names.join(", "))
        );
        let with = |name: &str, value| NormalizationRequest {
            parameters: vec![(name.to_owned(), value)],
            ..plain.clone()
        };
        assert_eq!(
            refused("softmax", &with("eps", 1.0)),
            "`softmax` takes no parameter `eps`; it takes none"
        );
        assert_eq!(
            refused("layer_norm", &with("eps", -1.0)),
            "`eps` of `layer_norm` is to be a finite number of at least 0, got -1"
        );
        let beside = vec![("gain".to_owned(), DType::F32)];
        assert_eq!(
            refused("rms_norm", &NormalizationRequest { beside, ..plain.clone() }),
            "`rms_norm` takes no array `gain`; it takes weight"
        );
    }
}
