//! Work on the store's own data, beside a running server: backups, and new master keys.

use std::io::{Read, Write};
use std::path::{Component, Path};
use std::time::Duration;

use crate::crypto;
use crate::db::params;
use crate::{Result, Store, StoreError, runners::signing};

/// What a backup of an embedded store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupSize {
    pub files: u64,
    pub bytes: u64,
}

const DATABASES: [&str; 2] = ["ferry.db", "logs.db"];
const PAGES_PER_STEP: i32 = 1000;

fn fault(e: impl std::fmt::Display) -> StoreError {
    StoreError::Config(e.to_string())
}

/// Writes a tar of both databases and the blobs of an embedded store, while it is in use. The main database is copied first,
/// then the logs, then the blobs: what an earlier one names, a later one has.
pub fn backup(database_dir: &Path, blobs_dir: &Path, out: impl Write) -> Result<BackupSize> {
    let mut tar = tar::Builder::new(out);
    let mut size = BackupSize { files: 0, bytes: 0 };
    for name in DATABASES {
        let copy = tempfile::NamedTempFile::new_in(database_dir).map_err(fault)?;
        let source = rusqlite::Connection::open_with_flags(
            database_dir.join(name),
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        source.busy_timeout(Duration::from_secs(10))?;
        let mut target = rusqlite::Connection::open(copy.path())?;
        rusqlite::backup::Backup::new(&source, &mut target)?.run_to_completion(
            PAGES_PER_STEP,
            Duration::from_millis(1),
            None,
        )?;
        drop(target);
        add(&mut tar, copy.path(), &Path::new("db").join(name), &mut size)?;
    }
    add_tree(&mut tar, blobs_dir, Path::new("blobs"), &mut size)?;
    tar.into_inner().and_then(|mut out| out.flush()).map_err(fault)?;
    Ok(size)
}

fn add<W: Write>(tar: &mut tar::Builder<W>, path: &Path, name: &Path, size: &mut BackupSize) -> Result<()> {
    let mut file = fs_err::File::open(path).map_err(fault)?;
    let length = file.metadata().map_err(fault)?.len();
    let mut header = tar::Header::new_gnu();
    header.set_size(length);
    header.set_mode(0o600);
    // A file that grows meanwhile is cut at what it had: databases are copies, blobs do not change.
    tar.append_data(&mut header, name, (&mut file).take(length)).map_err(fault)?;
    size.files += 1;
    size.bytes += length;
    Ok(())
}

fn add_tree<W: Write>(tar: &mut tar::Builder<W>, dir: &Path, name: &Path, size: &mut BackupSize) -> Result<()> {
    let mut entries: Vec<_> = fs_err::read_dir(dir).map_err(fault)?.collect::<std::io::Result<_>>().map_err(fault)?;
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_tree(tar, &path, &name, size)?,
            Ok(kind) if kind.is_file() => match add(tar, &path, &name, size) {
                // A log that was pruned a moment ago.
                Err(_) if !path.exists() => {}
                other => other?,
            },
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Unpacks a backup into a store that does not exist yet.
pub fn restore(database_dir: &Path, blobs_dir: &Path, from: impl Read) -> Result<BackupSize> {
    if database_dir.join(DATABASES[0]).exists() {
        let place = database_dir.display();
        return Err(StoreError::Config(format!(
            "{place} holds a database already; restore into an empty data directory"
        )));
    }
    let mut size = BackupSize { files: 0, bytes: 0 };
    for entry in tar::Archive::new(from).entries().map_err(fault)? {
        let mut entry = entry.map_err(fault)?;
        let name = entry.path().map_err(fault)?.into_owned();
        let plain = name.components().all(|c| matches!(c, Component::Normal(_)));
        let target = match (name.strip_prefix("db"), name.strip_prefix("blobs")) {
            (Ok(rest), _) if plain => database_dir.join(rest),
            (_, Ok(rest)) if plain => blobs_dir.join(rest),
            _ => return Err(StoreError::Config(format!("`{}` does not belong in a backup", name.display()))),
        };
        if let Some(parent) = target.parent() {
            crate::private_dir(parent).map_err(fault)?;
        }
        let mut file = crate::private_file(&target, true).map_err(fault)?;
        size.bytes += std::io::copy(&mut entry, &mut file).map_err(fault)?;
        file.sync_all().map_err(fault)?;
        size.files += 1;
    }
    if !database_dir.join(DATABASES[0]).exists() {
        return Err(StoreError::Config("this is no backup of Ferry: it holds no database".into()));
    }
    Ok(size)
}

impl Store {
    /// Wraps every data key and signing key under the first master key. Returns how many it changed; afterwards the other
    /// master keys are not needed any more.
    pub async fn rewrap(&self) -> Result<u64> {
        let masters = self.masters().clone();
        let mut changes = Vec::new();
        for row in self.main().query("SELECT org_id, id, master_id, wrapped FROM data_keys", vec![]).await? {
            let (org, id): (model::OrgId, u64) = (row.get("org_id")?, row.get("id")?);
            let place = crypto::data_key_place(&org, id as u32);
            let (old, wrapped) = (row.get::<String>("master_id")?, row.get::<Vec<u8>>("wrapped")?);
            if let Some((master, fresh)) = masters.rewrap(&old, &place, &wrapped)? {
                let sql = "UPDATE data_keys SET master_id = $3, wrapped = $4 WHERE org_id = $1 AND id = $2";
                changes.push((sql, params![&org, id, master, fresh]));
            }
        }
        for row in self.main().query("SELECT fingerprint, master_id, wrapped FROM signing_keys", vec![]).await? {
            let fingerprint: String = row.get("fingerprint")?;
            let (old, wrapped) = (row.get::<String>("master_id")?, row.get::<Vec<u8>>("wrapped")?);
            if let Some((master, fresh)) = masters.rewrap(&old, &signing::place(&fingerprint), &wrapped)? {
                let sql = "UPDATE signing_keys SET master_id = $2, wrapped = $3 WHERE fingerprint = $1";
                changes.push((sql, params![fingerprint, master, fresh]));
            }
        }
        for row in self
            .main()
            .query("SELECT issuer, subject, refresh FROM identities WHERE refresh IS NOT NULL", vec![])
            .await?
        {
            let (issuer, subject): (String, String) = (row.get("issuer")?, row.get("subject")?);
            let sealed: Vec<u8> = row.get("refresh")?;
            let Some(plain) = self.open_from_browser(crate::people::identities::SEALED, &sealed) else { continue };
            let sql = "UPDATE identities SET refresh = $3 WHERE issuer = $1 AND subject = $2";
            let fresh = self.seal_for_browser(crate::people::identities::SEALED, &plain);
            let key = |sealed: &[u8]| sealed.split(|b| *b == b':').next().map(<[u8]>::to_vec);
            if key(&fresh) != key(&sealed) {
                changes.push((sql, params![issuer, subject, fresh]));
            }
        }
        let count = changes.len() as u64;
        self.main()
            .write(changes, |tx, changes| {
                Box::pin(async move {
                    for (sql, values) in changes {
                        tx.exec(*sql, values.clone()).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        Ok(count)
    }
}
