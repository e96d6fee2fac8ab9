//! Folds without the fields that only count, of which the value is known where every element takes part.

use coulis_ir::counts::Count;
use coulis_ir::{Lambda, Reducer};

/// The fields of a reducer that only count, unless there are no others.
pub(crate) fn counts(reducer: &Reducer) -> Vec<Count> {
    let found = coulis_ir::counts::counts(reducer);
    if found.len() == reducer.arity() { Vec::new() } else { found }
}

/// The fold without those fields. Its `finish` still takes all of them.
pub(crate) fn without(mut reducer: Reducer, counts: &[Count]) -> Reducer {
    let n = reducer.arity();
    let stays = |at: usize| counts.iter().all(|c| c.field != at);
    let results = |lambda: &mut Lambda| retain(&mut lambda.body, stays);
    let two_states = |lambda: &mut Lambda| {
        retain(&mut lambda.body, stays);
        retain(&mut lambda.params, |at| stays(at % n));
    };
    results(&mut reducer.lift);
    two_states(&mut reducer.combine);
    reducer.step.iter_mut().for_each(two_states);
    if let Some(quick) = &mut reducer.quick {
        results(&mut quick.close);
        let begins = quick
            .rewalks
            .iter_mut()
            .flat_map(|walk| [&mut walk.needed, &mut walk.start].into_iter().chain(&mut walk.gives_up));
        for lambda in begins.chain([&mut quick.close]).chain(&mut quick.spoilt) {
            retain(&mut lambda.params, |at| at >= n || stays(at));
        }
        *quick = quick.condensed();
    }
    retain(&mut reducer.fields, stays);
    retain(&mut reducer.identity, stays);
    reducer
}

fn retain<T>(items: &mut Vec<T>, stays: impl Fn(usize) -> bool) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        stays(at - 1)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::DType;
    use coulis_reducers::{ReducerRequest, find, product};

    fn fields(names: &[&str], dtype: DType) -> (Vec<Count>, Vec<String>, usize) {
        let request = ReducerRequest::new(&[dtype]);
        let parts: Vec<_> = names.iter().map(|n| (*n, find(n).unwrap().build(&request).unwrap())).collect();
        let reducer = product(&parts).unwrap().reducer;
        let counts = counts(&reducer);
        let left = without(reducer, &counts);
        let run = left.quick.as_ref().map_or(0, |q| q.identity.len());
        (counts, left.fields.iter().map(|f| f.name.clone()).collect(), run)
    }

    #[test]
    fn a_second_walk_over_a_run_takes_the_state_without_its_counts() {
        let request = ReducerRequest::new(&[DType::F32]).with_length(1 << 20).with_two_walks();
        let parts: Vec<_> =
            ["mean", "argmax"].iter().map(|n| (*n, find(n).unwrap().build(&request).unwrap())).collect();
        let reducer = product(&parts).unwrap().reducer;
        let counts = counts(&reducer);
        let left = without(reducer, &counts);
        assert_eq!(counts.len(), 1);
        let quick = left.quick.unwrap();
        let params = left.fields.len() + quick.identity.len();
        let [walk] = &quick.rewalks[..] else { panic!("{:?}", quick.rewalks) };
        for lambda in [&quick.close, &walk.needed, &walk.start] {
            assert_eq!(lambda.params.len(), params);
        }
    }

    #[test]
    fn a_count_that_nothing_else_reads_is_taken_out() {
        let one = |field| vec![Count { field, each: 1 }];
        assert_eq!(fields(&["mean"], DType::F16), (one(1), vec!["sum".to_owned()], 1));
        let both = vec!["sum".to_owned(), "sumsq".to_owned()];
        assert_eq!(fields(&["mean", "meansq"], DType::F16), (one(1), both, 2));
        assert_eq!(fields(&["count"], DType::F32).0, [], "it has nothing else");
        assert_eq!(fields(&["var"], DType::F32).0, [], "deviations need it");
        assert_eq!(fields(&["sum"], DType::I32).0, []);
    }
}
