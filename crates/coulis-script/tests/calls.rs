//! Schedule traces are read as plain calls.

use coulis_script::{Call, Object, Value, parse_calls};

fn name(text: &str) -> Value {
    Value::Name(text.to_owned())
}

fn entry(key: &str) -> Object {
    Object::Entry { name: "s".to_owned(), key: key.to_owned() }
}

#[test]
fn a_trace_is_read_line_by_line() {
    let text = "# a trace\nko, ki = s[B].split(k, factor=16)\n\nBF = s.rfactor(B, ki)\n\
                s[B.rf].reorder([ko, ki], (i,), -1, 2.5)\ns[\"B.rf\"].pragma(ko, 'unroll', explicit=True)\n\
                tx = thread_axis(\"threadIdx.x\")\n";
    let calls = parse_calls(text).expect("a trace");
    let call =
        |targets: &[&str], object, method: &str, args: Vec<Value>, kwargs: Vec<(&str, Value)>, line| Call {
            targets: targets.iter().map(|t| (*t).to_owned()).collect(),
            object,
            method: method.to_owned(),
            args,
            kwargs: kwargs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            line,
        };
    let text_value = |text: &str| Value::Str(text.to_owned());
    let reordered = vec![
        Value::List(vec![name("ko"), name("ki")]),
        Value::Tuple(vec![name("i")]),
        Value::Int(-1),
        Value::Float(2.5),
    ];
    assert_eq!(
        calls,
        [
            call(&["ko", "ki"], entry("B"), "split", vec![name("k")], vec![("factor", Value::Int(16))], 2),
            call(&["BF"], Object::Name("s".to_owned()), "rfactor", vec![name("B"), name("ki")], vec![], 4),
            call(&[], entry("B.rf"), "reorder", reordered, vec![], 5),
            call(
                &[],
                entry("B.rf"),
                "pragma",
                vec![name("ko"), text_value("unroll")],
                vec![("explicit", Value::Bool(true))],
                6
            ),
            call(&["tx"], Object::Function, "thread_axis", vec![text_value("threadIdx.x")], vec![], 7),
        ]
    );
}

#[test]
fn what_is_not_a_call_is_refused_with_its_place() {
    for (text, line, column) in [
        ("x = 3\n", 1, 5),
        ("s[B].split(k)\nfor i in k:\n    pass\n", 2, 1),
        ("s[B].split(k / 2)\n", 1, 12),
        ("s[B][C].split(k)\n", 1, 1),
        ("s[1].split(k)\n", 1, 3),
        ("s[B].split(99999999999999999999)\n", 1, 12),
        ("s[B].split(*k)\n", 1, 12),
        ("s[B.split(k)\n", 2, 1),
    ] {
        let error = parse_calls(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text} {error}");
    }
}

#[test]
fn a_condition_is_an_argument() {
    let calls = parse_calls("s[B].set_store_predicate(threadIdx_x == 0 and i + 1 < n)\n").expect("a trace");
    let name = |n: &str| Box::new(Value::Name(n.to_owned()));
    let int = |v| Box::new(Value::Int(v));
    let first = Value::Binary("==", name("threadIdx_x"), int(0));
    let second = Value::Binary("<", Box::new(Value::Binary("+", name("i"), int(1))), name("n"));
    assert_eq!(calls[0].args, [Value::Binary("and", Box::new(first), Box::new(second))]);
    let calls = parse_calls("s[B].split(k, factor=T.max(n, 1))\n").expect("a trace");
    assert_eq!(calls[0].kwargs[0].1, Value::Binary("T.max", name("n"), int(1)));
    for wrong in ["T.abs(n)", "T.max(n)", "T.max(n, 1, 2)", "max(n, 1)", "T.max(n, b=1)"] {
        let error = parse_calls(&format!("s[B].split(k, factor={wrong})\n")).expect_err(wrong);
        assert!(error.to_string().contains("a call of `T.max` or `T.min` with two arguments"), "{error}");
    }
    let error = parse_calls("s[B].set_store_predicate(i << 2)\n").expect_err("no condition");
    assert!(error.to_string().contains("a condition of comparisons"), "{error}");
}
