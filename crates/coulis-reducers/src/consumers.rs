//! The slice of all consumers, and look-up by name.

use crate::consumer::{ConsumerEntry, ConsumerError};

mod batch_norm;
mod layer_norm;
mod log_softmax;
mod normalized;
mod rms_norm;
mod softmax;

/// Every consumer, in the order of the documentation.
pub static CONSUMERS: &[&ConsumerEntry] =
    &[&softmax::ENTRY, &log_softmax::ENTRY, &layer_norm::ENTRY, &rms_norm::ENTRY, &batch_norm::ENTRY];

/// The consumer of that name.
pub fn find_consumer(name: &str) -> Result<&'static ConsumerEntry, ConsumerError> {
    CONSUMERS.iter().find(|e| e.name == name).copied().ok_or_else(|| ConsumerError::Unknown {
        name: name.to_owned(),
        legal: CONSUMERS.iter().map(|e| e.name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;

    use super::*;
    use crate::{ConsumerRequest, ReducerRequest};

    fn request(dtype: DType) -> ConsumerRequest {
        ConsumerRequest {
            fold: ReducerRequest::new(&[dtype]),
            parameters: Vec::new(),
            extras: Vec::new(),
            wide: false,
        }
    }

    #[test]
    fn maps_give_wide_results_where_these_are_asked_for() {
        for entry in CONSUMERS {
            for dtype in DType::ALL {
                let plain = entry.build(&request(dtype)).unwrap();
                let wide = entry.build(&ConsumerRequest { wide: true, ..request(dtype) }).unwrap();
                assert_eq!(wide.map.body[0].dtype(), DType::F64, "{} of {dtype}", entry.name);
                assert_eq!(wide.result.dtype, plain.result.dtype, "{} of {dtype}", entry.name);
                assert_eq!(wide.reducer.results, plain.reducer.results, "{} of {dtype}", entry.name);
            }
        }
    }

    #[test]
    fn every_consumer_takes_every_type_and_gives_floats() {
        for entry in CONSUMERS {
            for dtype in DType::ALL {
                let consumer = entry.build(&request(dtype)).unwrap();
                let want = if dtype.is_float() { dtype } else { DType::F64 };
                assert_eq!(consumer.result.dtype, want, "{} of {dtype}", entry.name);
                assert!(consumer.bound.is_some(), "{} states its bound", entry.name);
            }
        }
    }

    #[test]
    fn what_a_consumer_does_not_have_is_refused_by_name() {
        let refused = |name: &str, request: &ConsumerRequest| {
            find_consumer(name).and_then(|e| e.build(request)).unwrap_err().to_string()
        };
        let plain = request(DType::F32);
        let names: Vec<&str> = CONSUMERS.iter().map(|entry| entry.name).collect();
        assert_eq!(
            refused("softmin", &plain),
            format!("unknown consumer `softmin`; legal ones are {}", names.join(", "))
        );
        let with = |name: &str, value| ConsumerRequest {
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
        let extras = vec![("gain".to_owned(), DType::F32)];
        assert_eq!(
            refused("rms_norm", &ConsumerRequest { extras, ..plain.clone() }),
            "`rms_norm` takes no array `gain`; it takes weight"
        );
    }
}
