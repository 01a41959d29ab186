//! Files and directories that only their owner may read, whatever the umask says.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Creates a directory, and those above it that are missing, for the owner alone. One that is there stays as it is, since it may hold
/// what is not ours; if others can read it, that is logged.
pub fn private_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        let mode = fs_err::metadata(path)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let mode = format!("{mode:o}");
            tracing::warn!(directory = %path.display(), mode, "other users can read this directory; run `chmod 700` on it");
        }
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file for writing that only its owner may read; one that others could read is tightened.
pub fn private_file(path: &Path, truncate: bool) -> io::Result<fs_err::File> {
    let mut options = fs_err::OpenOptions::new();
    options.create(true).write(true).truncate(truncate);
    options.options_mut().mode(0o600);
    let file = options.open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        tracing::info!(file = %path.display(), "other users could read this file; its mode is 600 now");
    }
    Ok(file)
}
