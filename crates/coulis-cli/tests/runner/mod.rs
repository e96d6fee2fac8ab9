//! Runs the built binary and looks at what a user sees: exit code, standard output, standard error.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and each test file uses its part of the runner"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The project's root, where the tests run, so that messages name short paths.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs `coulis` with these words.
pub fn coulis(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coulis")).args(words).current_dir(root()).output().unwrap()
}

/// Standard output of a call that must succeed.
#[track_caller]
pub fn answer(words: &[&str]) -> String {
    let output = coulis(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The same of a call that reads `input`.
#[track_caller]
pub fn answer_to(words: &[&str], input: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coulis"));
    let pipes = command.args(words).current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that a call is refused with exactly this text, says nothing on standard output, and exits with 2. Notes
/// (that no compiler was found, say) may come before the text.
#[track_caller]
pub fn refused(words: &[&str], want: &str) {
    let output = coulis(words);
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!(lines.join("\n"), want, "{words:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{words:?}");
    assert_eq!(output.status.code(), Some(2), "{words:?}");
}

/// As `refused` for a mistake that the reader of the command line finds: it adds a last hint to its text.
#[track_caller]
pub fn misused(words: &[&str], want: &str) {
    refused(words, &format!("error: {want}\n\nFor more information, try '--help'."));
}

/// A .npy file of version 1.0 with this type, shape and data.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

/// A folder for the files of one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder named after the test.
    pub fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("coulis-cli-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and gives its path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }

    /// Names of the files in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
