//! A source directory as a tar archive, ready to be uploaded.

use std::path::Path;

use archive::PackError;
use model::Digest;
use model::constants::ARCHIVE_BYTES;

use crate::error::{CliError, Result};

/// Directories that belong to tools, not to the source.
const SKIPPED: [&str; 2] = [".git", ".terraform"];

/// Packs everything under `root` but what tools keep there for themselves.
pub(crate) fn pack(root: &Path) -> Result<(Digest, Vec<u8>)> {
    let skip = |path: &Path| SKIPPED.iter().any(|skipped| path.file_name().is_some_and(|name| name == *skipped));
    let bytes = archive::pack(root, Vec::new(), skip, ARCHIVE_BYTES).map_err(|error| {
        let hint = match &error {
            PackError::TooLarge(..) => "leave build output and data out, or let the runner fetch it from git",
            PackError::LinkOutside(_) => {
                "a job sees only the files under the directory; replace the link by what it names"
            }
            PackError::NotADirectory(_) | PackError::UnreadableJob(_) | PackError::Io(_) => "",
        };
        let told = CliError::failed(error.to_string());
        if hint.is_empty() { told } else { told.hint(hint) }
    })?;
    Ok((Digest::of(&bytes), bytes))
}
