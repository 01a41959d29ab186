//! What `init` made of a module, kept for the next execution of the same module on the same state: an apply need not do again what
//! its plan has done, and gets the very modules and providers that the plan had. Only the runner can reach it, and it is only a cache:
//! without it, `init` runs.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use model::terraform::Module;
use model::{Digest, JobId};
use serde_json::json;

use super::super::Run;
use super::super::build::PROVIDERS;
use super::{Ready, Site, program};
use crate::directory::remove_tree;

/// What `init` leaves beside a module.
const DATA: &str = ".terraform";
const LOCK: &str = ".terraform.lock.hcl";
const KEPT_MAX: usize = 100;
const BYTES_MAX: u64 = 16 << 20;

/// Where it is kept for whoever comes next; None where it can't be.
pub(super) fn place(run: &Run<'_>, site: &Site<'_>, ready: &Ready) -> Option<PathBuf> {
    let Module::Artifact { digest, .. } = &site.job.module else { return None };
    // Links lead into the module itself, which will lie elsewhere.
    if ready.dir.join(PROVIDERS).exists() {
        return None;
    }
    let program = fs::metadata(&ready.program).ok()?;
    let config = run.context.tools.terraform_config.as_ref().map(fs::read).transpose().ok()?;
    let same = json!([
        digest,
        ready.program,
        [program.len(), program.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos() as u64],
        ready.backend.config(),
        config.map(|bytes| Digest::of(&bytes)),
        site.job.env,
    ]);
    Some(program::cache(run).join("init").join(Digest::of(same.to_string().as_bytes()).hex()))
}

/// Where it is kept for the apply of one plan alone.
pub(super) fn of_plan(place: &Path, plan: &JobId) -> PathBuf {
    place.with_extension(plan.as_str())
}

/// Whether another `init` of the module could only come to the same: all that it would choose is fixed by the module itself. `locked`:
/// it brought the versions of its providers along.
pub(super) fn is_settled(module: &Path, locked: bool) -> bool {
    let fetched = |entry: fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let modules = fs::read_dir(module.join(DATA).join("modules"));
    let modules = modules.into_iter().flatten().flatten().any(fetched);
    !modules && (locked || !module.join(DATA).join("providers").exists())
}

/// Whether the module brought the versions of its providers along.
pub(super) fn is_locked(module: &Path) -> bool {
    module.join(LOCK).exists()
}

/// Puts it beside the module. False: there is none, or not a whole one.
pub(super) fn take(place: &Path, module: &Path) -> bool {
    let laid = place.is_dir() && copy(&place.join(DATA), &module.join(DATA), false, &mut 0).is_ok();
    let locked = laid && (!place.join(LOCK).exists() || fs::copy(place.join(LOCK), module.join(LOCK)).is_ok());
    if !locked {
        let _ = remove_tree(&module.join(DATA));
    }
    locked
}

/// Keeps what `init` has just made; the oldest ones go.
pub(super) fn keep(place: &Path, module: &Path) -> io::Result<()> {
    let (Some(all), Some(name)) = (place.parent(), place.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    fs::create_dir_all(all)?;
    let new = all.join(format!("new-{name}"));
    remove_tree(&new)?;
    fs::create_dir(&new)?;
    let kept = copy(&module.join(DATA), &new.join(DATA), true, &mut 0).and_then(|()| {
        if module.join(LOCK).exists() {
            fs::copy(module.join(LOCK), new.join(LOCK))?;
            fs::File::open(new.join(LOCK))?.sync_all()?;
        }
        remove_tree(place)?;
        fs::rename(&new, place)
    });
    if kept.is_err() {
        remove_tree(&new)?;
    }
    let mut there: Vec<_> = fs::read_dir(all)?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    there.sort();
    for (_, old) in there.iter().rev().skip(KEPT_MAX) {
        remove_tree(old)?;
    }
    kept
}

/// Copies a tree; links stay links, and must lead somewhere.
fn copy(from: &Path, to: &Path, durable: bool, bytes: &mut u64) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy(&source, &target, durable, bytes)?;
        } else if kind.is_symlink() {
            fs::metadata(&source)?;
            fs_err::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else {
            *bytes += entry.metadata()?.len();
            if *bytes > BYTES_MAX {
                return Err(io::Error::other("it is too large to be kept"));
            }
            fs::copy(&source, &target)?;
            if durable {
                fs::File::open(&target)?.sync_all()?;
            }
        }
    }
    Ok(())
}
