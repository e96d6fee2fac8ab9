//! The files under `tests/files/parse` are read, and print as they should.

use std::path::{Path, PathBuf};

use coulis_ir::print::{print_kernel, print_module};
use coulis_ir::{Form, Kernel};
use coulis_script::parse_module;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/parse")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse(path: &Path, text: &str) -> Vec<Kernel> {
    parse_module(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn python_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of files")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    files.sort();
    files
}

#[test]
fn the_listings_of_seed_003_print_as_they_are() {
    let files = python_files(&folder());
    let listings: Vec<_> = files.iter().filter(|p| p.to_string_lossy().contains("seed003")).collect();
    assert_eq!(listings.len(), 5);
    for path in listings {
        let text = read(path);
        let kernels = parse(path, &text);
        assert_eq!(print_module(&kernels), text, "{}", path.display());
        assert_eq!(parse(path, &print_module(&kernels)), kernels);
        assert_eq!(kernels[0].form, Form::Flat);
    }
}

#[test]
fn programs_as_users_write_them_print_canonically() {
    let mut checked = 0;
    for path in python_files(&folder()) {
        let printed = folder().join("printed").join(path.file_name().expect("a name"));
        if printed.exists() {
            let kernels = parse(&path, &read(&path));
            assert_eq!(print_kernel(&kernels[0]), read(&printed), "{}", path.display());
            assert_eq!(kernels[0].form, Form::Tiled);
            checked += 1;
        }
    }
    assert_eq!(checked, 4);
}

#[test]
fn canonical_text_is_a_fixed_point() {
    for path in python_files(&folder().join("printed")) {
        let text = read(&path);
        let kernels = parse(&path, &text);
        assert_eq!(print_kernel(&kernels[0]), text, "{}", path.display());
    }
}

#[test]
fn several_functions_keep_their_order() {
    let text = "@I.ir_module\nclass Module:\n    @T.prim_func\n    def main(n: T.int32):\n        pass\n\n    \
                @T.prim_func\n    def again(n: T.int32):\n        pass\n";
    let kernels = parse_module(text).expect("two functions");
    assert_eq!(kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["main", "again"]);
    assert_eq!(print_module(&kernels), text);
}
