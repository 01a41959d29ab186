//! A source directory as a tar archive: the same files always give the same bytes, and so the same digest.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use model::Digest;
use model::constants::ARCHIVE_BYTES;

use crate::error::{CliError, Result};

/// Directories that belong to tools, not to the source.
const SKIPPED: [&str; 2] = [".git", ".terraform"];

/// Packs everything under `root` but what tools keep there for themselves.
pub(crate) fn pack(root: &Path) -> Result<(Digest, Vec<u8>)> {
    pack_up_to(root, ARCHIVE_BYTES)
}

fn pack_up_to(root: &Path, bytes_max: u64) -> Result<(Digest, Vec<u8>)> {
    if !fs_err::metadata(root)?.is_dir() {
        return Err(CliError::usage(format!("{} is not a directory", root.display())));
    }
    let mut paths = Vec::new();
    walk(root, Path::new(""), &mut paths)?;
    paths.sort();

    let mut builder = tar::Builder::new(Vec::new());
    for path in paths {
        append(&mut builder, root, &path)?;
        if builder.get_ref().len() as u64 > bytes_max {
            return Err(CliError::failed(format!(
                "{} is too large: a source directory may take {} MiB as an archive",
                root.display(),
                bytes_max >> 20
            ))
            .hint("leave build output and data out, or let the runner fetch it with `--git`"));
        }
    }
    let bytes = builder.into_inner()?;
    Ok((Digest::of(&bytes), bytes))
}

fn walk(root: &Path, relative: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs_err::read_dir(root.join(relative))? {
        let entry = entry?;
        if SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
            continue;
        }
        let path = relative.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            walk(root, &path, paths)?;
        }
        paths.push(path);
    }
    Ok(())
}

fn append(builder: &mut tar::Builder<Vec<u8>>, root: &Path, path: &Path) -> Result<()> {
    let full = root.join(path);
    let metadata = fs_err::symlink_metadata(&full)?;
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    if metadata.is_dir() {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        builder.append_data(&mut header, path, std::io::empty())?;
    } else if metadata.is_symlink() {
        let target = fs_err::read_link(&full)?;
        if !stays_inside(path, &target) {
            return Err(CliError::failed(format!("the link {} leads outside of the directory", full.display()))
                .hint("a job sees only the files under `--source-dir`; replace the link by what it names"));
        }
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        builder.append_link(&mut header, path, target)?;
    } else if metadata.is_file() {
        if metadata.len() > ARCHIVE_BYTES {
            return Err(CliError::failed(format!("{} is too large for a source archive", full.display()))
                .hint(format!("the whole archive may take {} MiB", ARCHIVE_BYTES >> 20)));
        }
        let contents = fs_err::read(&full)?;
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 });
        header.set_size(contents.len() as u64);
        builder.append_data(&mut header, path, contents.as_slice())?;
    } else {
        return Err(CliError::failed(format!("{} is neither a file, a directory nor a link", full.display())));
    }
    Ok(())
}

/// Whether a link at `path` leads to something under the root, judged by the text alone.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count() as i64 - 1;
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
        if depth < 0 {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;

    fn fill(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            fs_err::create_dir_all(path.parent().expect("parent")).expect("directory");
            fs_err::write(&path, name.as_bytes()).expect("file");
        }
        fs_err::set_permissions(root.join("bin/run"), Permissions::from_mode(0o700)).expect("mode");
        fs_err::create_dir_all(root.join(".git")).expect("directory");
        fs_err::write(root.join(".git/HEAD"), root.to_string_lossy().as_bytes()).expect("file");
        symlink("../b.txt", root.join("bin/link")).expect("link");
    }

    #[test]
    fn the_same_files_give_the_same_archive() {
        let (one, two) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let long = format!("deep/{}/file", "x".repeat(150));
        fill(one.path(), &["b.txt", "a.txt", "bin/run", &long]);
        fill(two.path(), &["bin/run", &long, "a.txt", "b.txt"]);
        fs_err::set_permissions(two.path().join("a.txt"), Permissions::from_mode(0o600)).expect("mode");
        let (digest, bytes) = pack(one.path()).expect("archive");
        assert_eq!(pack(two.path()).expect("archive"), (digest.clone(), bytes.clone()));
        assert_eq!(Digest::of(&bytes), digest);

        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries: Vec<(String, u32, u64)> = archive
            .entries()
            .expect("entries")
            .map(|entry| {
                let entry = entry.expect("entry");
                let header = entry.header();
                assert_eq!((header.mtime().ok(), header.uid().ok(), header.gid().ok()), (Some(0), Some(0), Some(0)));
                let path = entry.path().expect("path").to_string_lossy().into_owned();
                (path, header.mode().expect("mode"), header.size().expect("size"))
            })
            .collect();
        let names: Vec<&str> = entries.iter().map(|e| e.0.as_str()).collect();
        let directory = long.trim_end_matches("/file");
        assert_eq!(names, ["a.txt", "b.txt", "bin", "bin/link", "bin/run", "deep", directory, &long]);
        assert_eq!(entries[0].1, 0o644);
        assert_eq!(entries[4].1, 0o755);
    }

    #[test]
    fn links_stay_inside() {
        let table = [
            ("a", "b", true),
            ("d/a", "../b", true),
            ("d/a", "../../b", false),
            ("a", "/etc/passwd", false),
            ("d/a", "x/../../../b", false),
            ("a", "./d/../b", true),
        ];
        for (path, target, expected) in table {
            assert_eq!(stays_inside(Path::new(path), Path::new(target)), expected, "{path} -> {target}");
        }
        let directory = tempfile::tempdir().expect("dir");
        symlink("/etc/passwd", directory.path().join("out")).expect("link");
        let error = pack(directory.path()).expect_err("a link outside");
        assert!(error.message.contains("leads outside"), "{error}");
    }

    #[test]
    fn an_archive_has_a_limit() {
        let directory = tempfile::tempdir().expect("dir");
        fs_err::write(directory.path().join("big"), vec![0; 2 << 20]).expect("file");
        let error = pack_up_to(directory.path(), 1 << 20).expect_err("too large");
        assert!(error.message.contains("may take 1 MiB"), "{error}");
    }
}
