//! An outcome as text: a table for people, JSON and CSV for programs.

use coulis::{DType, NamedArray, Outcome, Scalar};

use crate::numbers::{exact, json, short};

/// Rows of a table that are shown in full; of more, the first and the last half of these.
const MAX_ROWS: usize = 40;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for people; long ones are cut.
    Table,
    /// One JSON object, everything in it.
    Json,
    /// One row an output position.
    Csv,
}

/// What an outcome does not know: the input.
pub struct Input {
    /// Its shape.
    pub shape: Vec<i64>,
    /// Its dtype.
    pub dtype: DType,
}

/// The whole answer in the given format, with its last line end.
pub fn present(format: Format, input: &Input, outcome: &Outcome) -> String {
    match format {
        Format::Table => as_table(input, outcome),
        Format::Json => as_json(input, outcome),
        Format::Csv => as_csv(input, outcome),
    }
}

fn as_json(input: &Input, outcome: &Outcome) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let list = |result: &NamedArray| format!("[{}]", joined(result.array.scalars().map(json), ","));
    let mut fields: Vec<String> = Vec::new();
    let mut results = outcome.results.iter().peekable();
    while let Some(result) = results.next() {
        let Some((op, part)) = result.name.split_once('.') else {
            fields.push(format!("{}:{}", quoted(&result.name), list(result)));
            continue;
        };
        let mut parts = vec![format!("{}:{}", quoted(part), list(result))];
        let is_same_op = |next: &&NamedArray| next.name.split_once('.').is_some_and(|(name, _)| name == op);
        while let Some(next) = results.next_if(|next| is_same_op(next)) {
            parts.push(format!("{}:{}", quoted(&next.name[op.len() + 1..]), list(next)));
        }
        fields.push(format!("{}:{{{}}}", quoted(op), parts.join(",")));
    }
    format!(
        "{{\"device\":{},\"shape\":[{}],\"dtype\":{},\"axes\":[{}],\"plan\":{},\"seconds\":{},\"bytes\":{},\"results\":{{{}}}}}\n",
        quoted(&outcome.device),
        joined(&input.shape, ","),
        quoted(input.dtype.name()),
        joined(&outcome.axes, ","),
        quoted(&outcome.plan.name),
        json(Scalar::Float(outcome.seconds)),
        outcome.bytes,
        fields.join(",")
    )
}

fn as_csv(input: &Input, outcome: &Outcome) -> String {
    let kept = kept_lengths(input, outcome);
    let index_names = (0..kept.len()).map(|i| format!("i{i}"));
    let names = outcome.results.iter().map(|result| result.name.clone());
    let mut text = joined(index_names.chain(names), ",") + "\n";
    let mut columns: Vec<_> = outcome.results.iter().map(|result| result.array.scalars()).collect();
    let mut index = vec![0; kept.len()];
    for _ in 0..kept.iter().product::<i64>() {
        let values = columns.iter_mut().filter_map(Iterator::next).map(exact);
        text += &joined(index.iter().map(i64::to_string).chain(values), ",");
        text.push('\n');
        step(&mut index, &kept);
    }
    text
}

fn as_table(input: &Input, outcome: &Outcome) -> String {
    let kept = kept_lengths(input, outcome);
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    let shorts = |result: &NamedArray| -> Vec<String> {
        result.array.scalars().map(|scalar| short(scalar, result.array.dtype())).collect()
    };
    if kept.is_empty() {
        for result in &outcome.results {
            table.add_row([result.name.clone(), joined(shorts(result), " ")]);
        }
        return trimmed(&table.to_string());
    }
    let index_names = (0..kept.len()).map(|i| format!("i{i}"));
    table.set_header(index_names.chain(outcome.results.iter().map(|result| result.name.clone())));
    let n_rows = kept.iter().product::<i64>() as usize;
    let mut columns: Vec<_> = outcome.results.iter().map(|result| result.array.scalars()).collect();
    let mut index = vec![0; kept.len()];
    for row in 0..n_rows {
        let values: Vec<Scalar> = columns.iter_mut().filter_map(Iterator::next).collect();
        let is_shown = n_rows <= MAX_ROWS || row < MAX_ROWS / 2 || n_rows - MAX_ROWS / 2 <= row;
        if is_shown {
            let shown =
                values.iter().zip(&outcome.results).map(|(&v, result)| short(v, result.array.dtype()));
            table.add_row(index.iter().map(i64::to_string).chain(shown));
        } else if row == MAX_ROWS / 2 {
            table.add_row(vec!["...".to_owned(); kept.len() + values.len()]);
        }
        step(&mut index, &kept);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    trimmed(&table.to_string())
}

/// Lengths of the axes that are not reduced.
fn kept_lengths(input: &Input, outcome: &Outcome) -> Vec<i64> {
    let kept = input.shape.iter().enumerate().filter(|(axis, _)| !outcome.axes.contains(axis));
    kept.map(|(_, &length)| length).collect()
}

/// The next index in row-major order.
fn step(index: &mut [i64], lengths: &[i64]) {
    for (position, &length) in index.iter_mut().zip(lengths).rev() {
        *position += 1;
        if *position < length {
            return;
        }
        *position = 0;
    }
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}

/// Lines without blanks at their ends, each with a line end.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis::{Array, PlanInfo};

    fn outcome(axes: &[usize], results: Vec<(&str, Array)>) -> Outcome {
        let named = |(name, array): (&str, Array)| NamedArray { name: name.to_owned(), array };
        Outcome {
            results: results.into_iter().map(named).collect(),
            plan: PlanInfo {
                name: "rows".to_owned(),
                trace: String::new(),
                reasons: Vec::new(),
                tuned: None,
            },
            seconds: 0.5,
            bytes: 40,
            device: "cpu".to_owned(),
            axes: axes.to_vec(),
            notices: Vec::new(),
        }
    }

    fn two_rows() -> (Input, Outcome) {
        let sum = Array::from_slice(&[2], &[0.1_f32, f32::NAN]).unwrap();
        let any = Array::from_bools(&[2], &[true, false]).unwrap();
        let value = Array::from_slice(&[2], &[7_u8, 9]).unwrap();
        let index = Array::from_slice(&[2], &[3_i64, 4]).unwrap();
        let results = vec![("sum", sum), ("any", any), ("maxloc.value", value), ("maxloc.index", index)];
        (Input { shape: vec![2, 5], dtype: DType::F32 }, outcome(&[1], results))
    }

    #[test]
    fn json_has_all_keys_in_order_and_groups_the_parts_of_an_op() {
        let (input, outcome) = two_rows();
        assert_eq!(
            present(Format::Json, &input, &outcome),
            concat!(
                r#"{"device":"cpu","shape":[2,5],"dtype":"float32","axes":[1],"plan":"rows","seconds":0.5,"bytes":40,"#,
                r#""results":{"sum":[0.10000000149011612,"NaN"],"any":[true,false],"#,
                r#""maxloc":{"value":[7,9],"index":[3,4]}}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn csv_has_a_row_for_each_output_position() {
        let (input, outcome) = two_rows();
        assert_eq!(
            present(Format::Csv, &input, &outcome),
            "i0,sum,any,maxloc.value,maxloc.index\n0,0.10000000149011612,true,7,3\n1,NaN,false,9,4\n"
        );
    }

    #[test]
    fn kept_indices_count_in_row_major_order_and_reduced_axes_are_left_out() {
        let max = Array::from_slice(&[2, 1, 2], &[1_i8, 2, 3, 4]).unwrap();
        let input = Input { shape: vec![2, 9, 2], dtype: DType::I8 };
        assert_eq!(
            present(Format::Csv, &input, &outcome(&[1], vec![("max", max)])),
            "i0,i1,max\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n"
        );
    }

    #[test]
    fn a_full_reduction_is_a_table_of_one_line_an_op() {
        let input = Input { shape: vec![3], dtype: DType::F32 };
        let sum = Array::from_slice(&[], &[0.1_f32]).unwrap();
        let max = Array::from_slice(&[], &[-7_i32]).unwrap();
        let text = present(Format::Table, &input, &outcome(&[0], vec![("sum", sum), ("max", max)]));
        assert_eq!(text, " sum  0.1\n max  -7\n");
    }

    #[test]
    fn a_table_of_the_longest_legal_length_is_whole_and_one_more_row_is_cut() {
        for (n_rows, want) in [(40, 41), (41, 42), (1000, 42)] {
            let sum = Array::from_slice(&[n_rows], &vec![1_i64; n_rows as usize]).unwrap();
            let input = Input { shape: vec![n_rows, 2], dtype: DType::I64 };
            let text = present(Format::Table, &input, &outcome(&[1], vec![("sum", sum)]));
            assert_eq!(text.lines().count(), want, "{n_rows}");
        }
    }

    #[test]
    fn no_output_position_is_a_header_alone() {
        let none = Array::from_slice::<f32>(&[0], &[]).unwrap();
        let input = Input { shape: vec![0, 4], dtype: DType::F32 };
        assert_eq!(present(Format::Csv, &input, &outcome(&[1], vec![("sum", none)])), "i0,sum\n");
    }
}
