//! Programs that the host has: found on PATH, run under the execution's limits, heard into its log or into a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Run;
use super::action::StepFailure;
use crate::confine::process::{self, Child, Ended};
use crate::seal::vault::private_file;

/// Where a program is, as a shell would find it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let paths = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&paths).map(|dir| dir.join(name)).find(is_program)
}

/// Says what is missing, and what for.
pub(super) fn need(name: &str, what_for: &str) -> Result<PathBuf, StepFailure> {
    find(name).ok_or_else(|| {
        StepFailure::new("tool_missing", format!("{what_for} needs `{name}` on the runner's PATH: install it there"))
    })
}

/// Writes a file that its owner alone may read, from its first byte on.
pub(crate) fn private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    fs_err::create_dir_all(file.parent().unwrap_or(file))?;
    private_file(file)?.write_all(text.as_bytes())
}

/// Runs a program; its output goes to the log.
pub(super) async fn run(
    run: &mut Run<'_>,
    step: usize,
    dir: &Path,
    env: BTreeMap<String, String>,
    argv: &[&str],
) -> Result<(), StepFailure> {
    match status(run, step, dir, env, argv).await? {
        0 => Ok(()),
        code => {
            let program = argv.first().copied().unwrap_or_default();
            let message =
                format!("`{program} {}` failed with exit code {code}", argv.get(1).copied().unwrap_or_default());
            Err(StepFailure::Failed { error: model::JobError::new("build_failed", message), exit_code: Some(code) })
        }
    }
}

/// Runs a program; returns its exit code, 128 and the signal where it was killed.
pub(super) async fn status(
    run: &mut Run<'_>,
    step: usize,
    dir: &Path,
    env: BTreeMap<String, String>,
    argv: &[&str],
) -> Result<i32, StepFailure> {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    exit_code(run, &Child::new(argv, dir.to_owned(), env, step)).await
}

/// The same for any child.
pub(super) async fn exit_code(run: &mut Run<'_>, child: &Child<'_>) -> Result<i32, StepFailure> {
    use std::os::unix::process::ExitStatusExt as _;
    match process::run(child, &run.host, &mut run.stop).await? {
        Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
        Ended::Exited(status) => Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())),
    }
}

/// Runs a program whose standard output is wanted, up to so many bytes; the rest goes to the log. None where it failed.
pub(super) async fn output(
    run: &mut Run<'_>,
    step: usize,
    dir: &Path,
    env: BTreeMap<String, String>,
    argv: &[&str],
    bytes_max: u64,
) -> Result<Option<String>, StepFailure> {
    use std::io::Read as _;
    let file = run.host.dir.work().join("tmp/output");
    let place = file.to_string_lossy().into_owned();
    let shell = ["/bin/sh", "-c", "out=$1; shift; exec \"$@\" >\"$out\"", "sh", &place];
    let argv: Vec<&str> = shell.iter().copied().chain(argv.iter().copied()).collect();
    let code = status(run, step, dir, env, &argv).await?;
    let mut text = String::new();
    let read = fs_err::File::open(&file).and_then(|f| f.take(bytes_max + 1).read_to_string(&mut text));
    let _ = fs_err::remove_file(&file);
    if code != 0 {
        return Ok(None);
    }
    read?;
    if text.len() as u64 > bytes_max {
        return Err(StepFailure::new("build_failed", format!("the output has more than {bytes_max} bytes")));
    }
    Ok(Some(text))
}
