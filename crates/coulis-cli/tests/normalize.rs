//! `coulis normalize`: what it writes, and what it says of words that it does not know.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod runner;

use runner::{Folder, answer, npy, refused};

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Three rows of three.
fn rows(folder: &Folder) -> String {
    let values = [1.0, 2.0, 3.0, -1.0, 0.0, 1000.0, 5.0, 5.0, 5.0];
    folder.file("x.npy", &npy("<f4", "(3, 3)", &floats(&values)))
}

/// The last column of a CSV answer.
fn column(text: &str) -> Vec<f64> {
    text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn softmax_and_weighted_norms_of_a_file_are_what_their_definitions_say() {
    let folder = Folder::new("normalize");
    let x = rows(&folder);
    let found = column(&answer(&["normalize", &x, "--op", "softmax", "--axis", "1", "--format", "csv"]));
    let exps: Vec<f64> = [-2.0f64, -1.0, 0.0].iter().map(|v| v.exp()).collect();
    let total: f64 = exps.iter().sum();
    let first: Vec<f64> = exps.iter().map(|e| e / total).collect();
    let wanted = [&first[..], &[0.0, 0.0, 1.0], &[1.0 / 3.0; 3]].concat();
    for (found, wanted) in found.iter().zip(&wanted) {
        assert!((found - wanted).abs() < 1e-7, "{found} {wanted}");
    }

    let weight = folder.file("w.npy", &npy("<f4", "(3,)", &floats(&[1.0, 2.0, 3.0])));
    let beside = format!("weight={weight}");
    let words = ["normalize", &x, "--op", "layer_norm", "--axis", "1", "--set", "eps=0", "--beside", &beside];
    let found = column(&answer(&[&words[..], &["--format", "csv"]].concat()));
    let scale = 1.5f64.sqrt();
    assert!((found[0] + scale).abs() < 1e-6 && found[1] == 0.0 && (found[2] - 3.0 * scale).abs() < 1e-6);
    assert!(found[6..].iter().all(|v| v.is_nan()), "a constant row over a deviation of 0");
}

#[test]
fn a_mask_in_a_file_says_which_elements_take_part() {
    let folder = Folder::new("normalize-where");
    let x = rows(&folder);
    let mask = folder.file("m.npy", &npy("|b1", "(3, 3)", &[1, 1, 0, 0, 0, 0, 1, 0, 1]));
    let words = ["normalize", &x, "--op", "softmax", "--axis", "1", "--where", &mask, "--format", "csv"];
    let found = column(&answer(&words));
    let first = 1.0 / (1.0 + 1f64.exp());
    assert!((found[0] - first).abs() < 1e-7 && (found[1] - (1.0 - first)).abs() < 1e-7, "{found:?}");
    assert_eq!(found[2..], [0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.5]);
    let bytes = folder.file("b.npy", &npy("|u1", "(3,)", &[1, 1, 0]));
    let words = ["normalize", &x, "--op", "softmax", "--axis", "1", "--where", &bytes];
    refused(
        &words,
        "error[reduce/where]: `where` is to be of bool, which elements take part, got uint8 of shape [3]; a comparison \
         gives bool, as `x != 0` does",
    );
}

#[test]
fn a_mapped_file_has_the_shape_of_the_input_and_a_plan_is_a_trace() {
    let folder = Folder::new("normalize-out");
    let (x, out) = (rows(&folder), folder.path("y.npy"));
    assert_eq!(answer(&["normalize", &x, "--op", "softmax", "--axis", "1", "--out", &out]), "");
    let sums = answer(&["reduce", &out, "--ops", "sum", "--axis", "1", "--format", "csv"]);
    assert!(column(&sums).iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{sums}");
    assert!(answer(&["normalize", &x, "--op", "softmax", "--axis", "1", "--plan"]).contains("s["));
}

#[test]
fn a_normalization_shows_its_kernel_and_is_explained() {
    let folder = Folder::new("normalize-kernel");
    let x = rows(&folder);
    for (words, emit, wanted) in [
        (
            &["--arch", "sm_90a"][..],
            &["--target", "cuda", "--arch", "sm_90a", "--emit", "cuda"][..],
            "__global__",
        ),
        (&[], &["--emit", "c"], "coulis_reduce"),
    ] {
        let call = ["normalize", &x, "--op", "softmax", "--axis", "1", "--kernel"];
        let kernel = folder.file("k.py", answer(&[&call[..], words].concat()).as_bytes());
        assert!(answer(&[&["lower", &kernel][..], emit].concat()).contains(wanted));
    }
    let weight = folder.file("w.npy", &npy("<f4", "(3,)", &floats(&[1.0, 2.0, 3.0])));
    let beside = format!("weight={weight}");
    let call = ["explain", &x, "--op", "layer_norm", "--axis", "1", "--set", "eps=0", "--beside", &beside];
    let text = answer(&call);
    assert!(text.starts_with("plan ") && text.contains(&format!("bytes {}\n", 4 * (9 + 9 + 3))), "{text}");

    refused(
        &["explain", &x],
        "error[cli/ops]: an array file is explained for given statistics or a normalization; add --ops LIST or --op NAME, or give one kernel's .py file",
    );
    refused(
        &["explain", &x, "--ops", "sum", "--set", "eps=0"],
        "error[cli/op]: --set belongs to --op NAME, which is not given",
    );
}

#[test]
fn words_that_no_map_knows_are_refused_with_those_that_are_legal() {
    let folder = Folder::new("normalize-words");
    let x = rows(&folder);
    let beside = |name: &str| format!("{name}={x}");
    let (weight, gain) = (beside("weight"), beside("gain"));
    let names: Vec<&str> = coulis::NORMALIZATIONS.iter().map(|entry| entry.name).collect();
    let unknown = format!(
        "error[normalize/request]: unknown normalization `softmx`; legal ones are {}",
        names.join(", ")
    );
    let cases: [(&[&str], &str); 7] = [
        (&["--op", "softmx"], &unknown),
        (
            &["--op", "softmax", "--set", "eps=1"],
            "error[normalize/request]: `softmax` takes no parameter `eps`; it takes none",
        ),
        (&["--op", "layer_norm", "--set", "eps=a"], "error[normalize/parameter]: `eps`: `a` is not a number"),
        (
            &["--op", "rms_norm", "--beside", &weight],
            "error[normalize/shape]: `weight` of `rms_norm` is to have a shape that broadcasts to that of the \
             reduced axes, [3], got [3, 3]",
        ),
        (
            &["--op", "layer_norm", "--beside", &gain],
            "error[normalize/request]: `layer_norm` takes no array `gain`; it takes weight, bias",
        ),
        (
            &["--op", "layer_norm", "--set", "eps=0", "--set", "eps=1"],
            "error[cli/value]: --set gives `eps` twice: 0 and 1",
        ),
        (
            &["--op", "rms_norm", "--beside", &weight, "--beside", &weight],
            &format!("error[cli/value]: --beside gives `weight` twice: {x} and {x}"),
        ),
    ];
    for (words, message) in cases {
        refused(&[&["normalize", &x, "--axis", "1"], words].concat(), message);
    }
}

#[test]
fn the_help_names_every_normalization_and_what_it_takes() {
    let help = answer(&["normalize", "--help"]);
    let words: Vec<&str> = help.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    for entry in coulis::NORMALIZATIONS {
        let takes = entry.parameters.iter().map(|p| p.name).chain(entry.beside.iter().map(|b| b.name));
        for name in std::iter::once(entry.name).chain(takes) {
            assert!(words.contains(&name), "`{name}` of `{}`:\n{help}", entry.name);
        }
    }
}
