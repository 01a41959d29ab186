//! A directory as a tar archive: the same files always give the same bytes, and so the same digest.

use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;

const BUFFER: usize = 256 << 10;
const LEVEL: u32 = 6;

/// Why a directory can't be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the link {} leads outside of the directory", .0.display())]
    LinkOutside(PathBuf),
    #[error("{} is neither a file, a directory nor a link", .0.display())]
    UnreadableJob(PathBuf),
    #[error("{} is too large: as an archive it may take {} MiB", .0.display(), .1 >> 20)]
    TooLarge(PathBuf, u64),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Packs everything under `root` but what `skip` says belongs to tools, up to so many bytes.
pub fn pack<W: Write>(root: &Path, to: W, skip: impl Fn(&Path) -> bool, bytes_max: u64) -> Result<W, PackError> {
    if !fs::metadata(root)?.is_dir() {
        return Err(PackError::NotADirectory(root.to_owned()));
    }
    let mut paths = Vec::new();
    walk(root, Path::new(""), &skip, &mut paths)?;
    paths.sort();
    let mut builder = tar::Builder::new(to);
    let mut left = bytes_max;
    for path in paths {
        let size = append(&mut builder, root, &path, left)?;
        left = left.checked_sub(size).ok_or_else(|| PackError::TooLarge(root.to_owned(), bytes_max))?;
    }
    Ok(builder.into_inner()?)
}

/// Packs as `pack` does into a new file, compressed with gzip; the same content gives the same bytes. Returns its size.
pub fn pack_gzip(root: &Path, to: &Path, skip: impl Fn(&Path) -> bool, bytes_max: u64) -> Result<u64, PackError> {
    let file = std::io::BufWriter::with_capacity(BUFFER, fs::File::create(to)?);
    let gzip = flate2::GzBuilder::new().mtime(0).write(file, flate2::Compression::new(LEVEL));
    pack(root, gzip, skip, bytes_max)?.finish()?.flush()?;
    Ok(fs::metadata(to)?.len())
}

fn walk(root: &Path, relative: &Path, skip: &impl Fn(&Path) -> bool, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(relative))? {
        let entry = entry?;
        let path = relative.join(entry.file_name());
        if skip(&path) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(root, &path, skip, paths)?;
        }
        paths.push(path);
    }
    Ok(())
}

/// Returns what the entry takes in the archive.
fn append<W: Write>(builder: &mut tar::Builder<W>, root: &Path, path: &Path, left: u64) -> Result<u64, PackError> {
    let full = root.join(path);
    let metadata = fs::symlink_metadata(&full)?;
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    if metadata.is_dir() {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        builder.append_data(&mut header, path, std::io::empty())?;
    } else if metadata.is_symlink() {
        let target = fs::read_link(&full)?;
        if !stays_inside(path, &target) {
            return Err(PackError::LinkOutside(full));
        }
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        builder.append_link(&mut header, path, target)?;
    } else if metadata.is_file() {
        if metadata.len() > left {
            return Ok(metadata.len());
        }
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 });
        header.set_size(metadata.len());
        // One that grows meanwhile is cut, one that shrinks fails the whole: the header is written already.
        let file = std::io::Read::take(fs::File::open(&full)?, metadata.len());
        builder.append_data(&mut header, path, file)?;
        return Ok(512 + metadata.len().next_multiple_of(512));
    } else {
        return Err(PackError::UnreadableJob(full));
    }
    Ok(512)
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

    fn packed(root: &Path, bytes_max: u64) -> Result<Vec<u8>, PackError> {
        pack(root, Vec::new(), |path| path.ends_with(".git"), bytes_max)
    }

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
        let bytes = packed(one.path(), 1 << 30).expect("archive");
        assert_eq!(packed(two.path(), 1 << 30).expect("archive"), bytes);

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
        let error = packed(directory.path(), 1 << 30).expect_err("a link outside");
        assert!(error.to_string().contains("leads outside"), "{error}");
    }

    #[test]
    fn an_archive_has_a_limit() {
        let directory = tempfile::tempdir().expect("dir");
        fs_err::write(directory.path().join("big"), vec![0; 2 << 20]).expect("file");
        let error = packed(directory.path(), 1 << 20).expect_err("too large");
        assert!(error.to_string().contains("may take 1 MiB"), "{error}");
    }
}
