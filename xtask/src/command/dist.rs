//! `cargo xtask dist`: the binaries that a machine without cargo needs, in `dist/`.

use std::fs;

use super::{Command, no_words};
use crate::step::{Failure, Step, root};

/// The command.
pub const COMMAND: Command = Command {
    name: "dist",
    about: "build the binaries for machines without cargo, in dist/",
    run: |words| {
        no_words(words)?;
        dist()
    },
};

/// Binaries, under the folder of release builds.
const BINARIES: [&str; 4] = ["coulis", "xtask", "device-tests", "examples/reduction_tutorial"];

/// Bytes of all binaries at most: what is easily carried to another machine.
const MAX_BYTES: u64 = 40 << 20;

fn dist() -> Result<(), Failure> {
    let packages = ["--package=coulis-cli", "--package=xtask", "--package=coulis-device-tests"];
    Step::cargo(&["build", "--release", "--bins"]).words(&packages.map(str::to_owned)).run()?;
    Step::cargo(&["build", "--release", "--package=coulis", "--example=reduction_tutorial"]).run()?;
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let (built, dist) = (built.join("release"), root().join("dist"));
    fs::create_dir_all(&dist).map_err(|source| Failure::File { path: dist.clone(), source })?;
    let mut total = 0;
    for binary in BINARIES {
        let from = built.join(binary);
        let name = from.file_name().unwrap_or_default();
        let bytes = fs::copy(&from, dist.join(name))
            .map_err(|source| Failure::File { path: from.clone(), source })?;
        println!("{:>6.1} MiB  dist/{}", bytes as f64 / (1 << 20) as f64, name.to_string_lossy());
        total += bytes;
    }
    if total > MAX_BYTES {
        return Err(Failure::TooLarge { total, limit: MAX_BYTES });
    }
    Ok(())
}
