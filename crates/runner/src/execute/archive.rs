//! Unpacks a source archive (tar, plain, gzip or zstd) that was uploaded before, named by its digest.
//!
//! Nothing in it may reach outside: no absolute paths, no `..`, no links that lead out, no devices; and it has a bound.

use std::collections::BTreeSet;
use std::io::{Read, Seek as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use model::Digest;
use sha2::Digest as _;
use tar::EntryType;

use super::Run;
use super::action::StepFailure;

const ENTRIES_MAX: usize = 200_000;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) async fn unpack(
    run: &mut Run<'_>,
    digest: &Digest,
    place: &Path,
    disk_bytes: u64,
) -> Result<(), StepFailure> {
    let bad = |message: String| StepFailure::new("source_failed", message);
    let file = place.with_extension("tar");
    let fetcher = run.fetcher;
    let dir = run.host.dir;
    tokio::select! {
        fetched = fetcher.fetch(dir, digest, &file) => {
            fetched.map_err(|e| bad(format!("the archive {digest} can't be fetched: {e}")))?;
        }
        stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
    }
    unpack_file(file, digest.clone(), place.to_owned(), disk_bytes).await
}

/// Unpacks a file that is there already, and removes it.
pub(super) async fn unpack_file(
    file: PathBuf,
    digest: Digest,
    place: PathBuf,
    disk_bytes: u64,
) -> Result<(), StepFailure> {
    let bad = |message: String| StepFailure::new("source_failed", message);
    let unpacked = tokio::task::spawn_blocking(move || {
        let unpacked = check_and_unpack(&file, &digest, &place, disk_bytes);
        let _ = fs::remove_file(&file);
        unpacked.map_err(|e| format!("the archive {digest} can't be unpacked: {e}"))
    });
    unpacked.await.map_err(|e| bad(e.to_string()))?.map_err(bad)
}

fn check_and_unpack(file: &Path, digest: &Digest, place: &Path, bytes_max: u64) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let mut source = fs::File::open(file).map_err(text)?;
    let mut hash = sha2::Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match source.read(&mut buffer).map_err(text)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    if Digest::from_hash(&hash.finalize()) != *digest {
        return Err("its content has another digest".into());
    }
    source.rewind().map_err(text)?;
    let mut magic = [0; 4];
    let zstd = source.read_exact(&mut magic).is_ok() && magic == ZSTD_MAGIC;
    source.rewind().map_err(text)?;
    if zstd {
        unpack_tar(zstd::Decoder::new(source).map_err(text)?, place, bytes_max)
    } else if magic[..2] == GZIP_MAGIC {
        unpack_tar(flate2::read::GzDecoder::new(source), place, bytes_max)
    } else {
        unpack_tar(source, place, bytes_max)
    }
}

fn unpack_tar(source: impl Read, place: &Path, bytes_max: u64) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let mut archive = tar::Archive::new(source);
    let mut total = 0u64;
    // Directories known to be real ones, so that not every parent is looked at for every file.
    let mut real = BTreeSet::from([place.to_owned()]);
    for (count, entry) in archive.entries().map_err(text)?.enumerate() {
        let mut entry = entry.map_err(text)?;
        let name = entry.path().map_err(text)?.into_owned();
        let named = |what: &str| format!("`{}` {what}", name.display());
        total = total.saturating_add(entry.size());
        if count >= ENTRIES_MAX || total > bytes_max {
            return Err(format!("it holds more than {ENTRIES_MAX} entries or {bytes_max} bytes"));
        }
        let Some(relative) = plain(&name) else { return Err(named("leads out of the archive")) };
        if relative.as_os_str().is_empty() {
            continue;
        }
        let target = place.join(&relative);
        make_parents(place, &relative, &mut real).map_err(|e| named(&e))?;
        match entry.header().entry_type() {
            EntryType::Directory => make_real_dir(&target, &mut real).map_err(|e| named(&e))?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let _ = fs::remove_file(&target);
                let mut file = fs::File::create_new(&target).map_err(text)?;
                std::io::copy(&mut entry, &mut file).map_err(text)?;
                let mode = entry.header().mode().unwrap_or(0o644) & 0o777 | 0o600;
                fs::set_permissions(&target, PermissionsExt::from_mode(mode)).map_err(text)?;
            }
            EntryType::Symlink => {
                let link = entry.link_name().map_err(text)?.ok_or_else(|| named("is a link to nothing"))?;
                if !stays_inside(&relative, &link) {
                    return Err(named("is a link that leads out of the archive"));
                }
                let _ = fs::remove_file(&target);
                std::os::unix::fs::symlink(&link, &target).map_err(text)?;
            }
            EntryType::XGlobalHeader | EntryType::XHeader => {}
            _ => return Err(named("is neither file nor directory nor symbolic link")),
        }
    }
    Ok(())
}

/// The path without `.`; none when it is absolute or goes up.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Nothing is unpacked through a link: every parent must be a real directory.
fn make_parents(place: &Path, relative: &Path, real: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let mut parent = place.to_owned();
    for component in relative.parent().into_iter().flat_map(Path::components) {
        parent.push(component);
        if !real.contains(&parent) {
            make_real_dir(&parent, real)?;
        }
    }
    Ok(())
}

fn make_real_dir(path: &Path, real: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err("goes through something that is not a directory".into()),
        Err(_) => fs::create_dir(path).map_err(|e| e.to_string())?,
    }
    real.insert(path.to_owned());
    Ok(())
}

/// Whether a link in the archive stays inside. `..` may only come first: after a name it could follow another link and
/// go up from there.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count() - 1;
    let mut named = false;
    for component in target.components() {
        match component {
            Component::ParentDir if named || depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => named = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(builder: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8], mode: u32) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        // Written directly, because the safe way refuses the names that are tested here.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, content).expect("append");
    }

    fn link(builder: &mut tar::Builder<Vec<u8>>, name: &str, target: &str) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        header.set_path(name).expect("path");
        header.set_link_name(target).expect("link");
        header.set_cksum();
        builder.append(&header, &[][..]).expect("append");
    }

    fn unpack(build: impl Fn(&mut tar::Builder<Vec<u8>>), compress: bool) -> (tempfile::TempDir, Result<(), String>) {
        let mut builder = tar::Builder::new(Vec::new());
        build(&mut builder);
        let mut bytes = builder.into_inner().expect("tar");
        if compress {
            bytes = zstd::encode_all(&bytes[..], 1).expect("zstd");
        }
        let dir = tempfile::tempdir().expect("dir");
        let place = dir.path().join("source");
        fs::create_dir(&place).expect("dir");
        let path = dir.path().join("a.tar");
        fs::write(&path, &bytes).expect("write");
        let result = check_and_unpack(&path, &Digest::of(&bytes), &place, 1 << 20);
        (dir, result)
    }

    #[test]
    fn files_directories_and_inner_links_are_unpacked() {
        for compress in [false, true] {
            let (dir, result) = unpack(
                |b| {
                    file(b, "./a/run.sh", b"#!/bin/sh\n", 0o4755);
                    link(b, "a/link", "../a/run.sh");
                },
                compress,
            );
            assert_eq!(result, Ok(()));
            let path = dir.path().join("source/a/link");
            assert_eq!(fs::read(&path).expect("read"), b"#!/bin/sh\n");
            assert_eq!(fs::metadata(&path).expect("meta").permissions().mode() & 0o7777, 0o755);
        }
    }

    #[test]
    fn nothing_gets_out() {
        type Build = fn(&mut tar::Builder<Vec<u8>>);
        let cases: [(Build, &str); 8] = [
            (|b| file(b, "../x", b"", 0o644), "leads out"),
            (|b| file(b, "/x", b"", 0o644), "leads out"),
            (|b| link(b, "x", "/etc"), "leads out"),
            (|b| link(b, "a/x", "../.."), "leads out"),
            (|b| link(b, "x", "a/../.."), "leads out"),
            (
                |b| {
                    link(b, "d", ".");
                    file(b, "d/x", b"", 0o644);
                },
                "not a directory",
            ),
            (|b| file(b, "big", &vec![0; 2 << 20], 0o644), "more than"),
            (
                |b| {
                    let mut header = tar::Header::new_gnu();
                    header.set_entry_type(EntryType::Fifo);
                    header.set_path("pipe").expect("path");
                    header.set_size(0);
                    header.set_cksum();
                    b.append(&header, &[][..]).expect("append");
                },
                "neither file",
            ),
        ];
        for (build, part) in cases {
            let (dir, result) = unpack(build, false);
            let error = result.expect_err(part);
            assert!(error.contains(part), "{error}");
            assert!(!dir.path().join("x").exists());
        }
        let dir = tempfile::tempdir().expect("dir");
        fs::write(dir.path().join("a.tar"), "other").expect("write");
        let wrong = check_and_unpack(&dir.path().join("a.tar"), &Digest::of(b"x"), dir.path(), 1);
        assert!(wrong.expect_err("digest").contains("another digest"));
    }

    /// What lies under a directory, without following links: paths, and bytes of files.
    fn found(dir: &Path) -> (Vec<PathBuf>, u64) {
        let (mut paths, mut bytes, mut left) = (Vec::new(), 0, vec![dir.to_owned()]);
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).expect("dir").flatten() {
                let meta = fs::symlink_metadata(entry.path()).expect("meta");
                if meta.is_dir() {
                    left.push(entry.path());
                }
                bytes += if meta.is_file() { meta.len() } else { 0 };
                paths.push(entry.path());
            }
        }
        (paths, bytes)
    }

    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Headers that lie, with checksums that are right: whatever they say, nothing gets out, and nothing panics.
        #[test]
        fn anything_at_all_stays_inside(
            changes in proptest::collection::vec((0usize..6, 0usize..345, prop_oneof![Just(b'/'), Just(b'.'), Just(b'0'), Just(b'7'), Just(0), Just(0x80), any::<u8>()]), 1..12),
            cut in prop_oneof![3 => Just(None), 1 => (0usize..6000).prop_map(Some)],
            compress in any::<bool>(),
        ) {
            let mut builder = tar::Builder::new(Vec::new());
            file(&mut builder, "a/one", &[1; 700], 0o644);
            link(&mut builder, "a/link", "../a/one");
            file(&mut builder, "two", b"2", 0o755);
            let mut bytes = builder.into_inner().expect("tar");
            for (block, at, value) in changes {
                let start = (block * 512).min(bytes.len() - 512);
                let header = &mut bytes[start..start + 512];
                header[at] = value;
                header[148..156].fill(b' ');
                let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
                header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
            bytes.truncate(cut.unwrap_or(bytes.len()));
            if compress {
                bytes = zstd::encode_all(&bytes[..], 1).expect("zstd");
            }
            let dir = tempfile::tempdir().expect("dir");
            let place = dir.path().join("source");
            fs::create_dir(&place).expect("dir");
            let path = dir.path().join("a.tar");
            fs::write(&path, &bytes).expect("write");
            let _ = check_and_unpack(&path, &Digest::of(&bytes), &place, 1 << 20);
            let (paths, size) = found(dir.path());
            prop_assert!(paths.iter().all(|p| *p == path || p.starts_with(&place)), "{paths:?}");
            prop_assert!(size <= (1 << 20) + bytes.len() as u64, "{size} bytes");
        }
    }

    /// A few kilobytes that would become gigabytes.
    #[test]
    fn a_bomb_is_defused() {
        let mut header = tar::Header::new_gnu();
        header.set_path("zeros").expect("path");
        header.set_size(64 << 30);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(vec![0; 8 << 20]);
        let bytes = zstd::encode_all(&bytes[..], 1).expect("zstd");
        assert!(bytes.len() < 10_000, "{}", bytes.len());
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("a.tar");
        fs::write(&path, &bytes).expect("write");
        let place = dir.path().join("source");
        fs::create_dir(&place).expect("dir");
        let refused = check_and_unpack(&path, &Digest::of(&bytes), &place, 1 << 20).expect_err("refused");
        assert!(refused.contains("more than"), "{refused}");
        assert_eq!(found(&place).1, 0);
    }
}
