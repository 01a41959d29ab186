//! Makes an earlier state the state again. No deployer is needed for that: a state of any of them is brought back as it was.

use std::path::Path;

use fs_err as fs;
use model::deploy::SealedFile;
use serde_json::{Map, Value};

use super::super::Run;
use super::super::action::StepFailure;
use super::super::sealed::private_dir;
use super::super::stages::Stages;
use super::Workspace;

/// The same content under the next serial.
pub(super) async fn restore(
    run: &mut Run<'_>,
    stages: &mut Stages,
    workspace: &Workspace,
    file: &SealedFile,
    over_serial: Option<u64>,
) -> Result<Map<String, Value>, StepFailure> {
    stages.begin(run, 0);
    let keeper = &workspace.keeper;
    let now = workspace.head.as_ref().map(|head| head.serial);
    if over_serial.is_some() && now != over_serial {
        let (asked, now) = (over_serial.unwrap_or_default(), now.unwrap_or_default());
        let text = format!(
            "the state had serial {asked} when this was asked for, and has {now} now: nothing is restored; look at it again"
        );
        return Err(StepFailure::new("state_changed", text));
    }
    let place = private_dir(run.host.dir).join("restored.json");
    keeper.vault.fetch(file, &place).await?;
    let serial = workspace.head.as_ref().map_or(0, |head| head.serial) + 1;
    let path = place.clone();
    let rewritten = tokio::task::spawn_blocking(move || set_serial(&path, serial)).await;
    rewritten.map_err(std::io::Error::other)??;
    let saved = keeper.push(&place, model::deploy::RESTORED).await?;
    let _ = fs::remove_file(&place);
    if saved.quarantined {
        return Err(StepFailure::new("lease_lost", "the lease was lost: nothing was restored"));
    }
    run.say(Some(0), &format!("restored as serial {serial}, revision {}", saved.revision_id));
    Ok(Map::from_iter([
        ("serial".to_owned(), serial.into()),
        ("revision_id".to_owned(), saved.revision_id.to_string().into()),
    ]))
}

/// Gives a state another serial, which stands near its beginning; the rest is copied as it is.
fn set_serial(file: &Path, serial: u64) -> std::io::Result<()> {
    use std::io::{Read as _, Seek as _};
    let bad = || std::io::Error::other("the state's serial can't be found");
    let mut source = fs::File::open(file)?;
    let mut head = Vec::new();
    (&mut source).take(64 << 10).read_to_end(&mut head)?;
    let text = String::from_utf8_lossy(&head);
    let at = text.find("\"serial\"").ok_or_else(bad)?;
    let rest = &text[at + 8..];
    let digits = rest.find(|c: char| c.is_ascii_digit()).ok_or_else(bad)?;
    let length = rest[digits..].find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (from, to) = (at + 8 + digits, at + 8 + digits + length);
    let new = file.with_extension("new");
    let mut target = crate::seal::vault::private_file(&new)?;
    source.rewind()?;
    std::io::copy(&mut (&mut source).take(from as u64), &mut target)?;
    std::io::Write::write_all(&mut target, serial.to_string().as_bytes())?;
    source.seek(std::io::SeekFrom::Start(to as u64))?;
    std::io::copy(&mut source, &mut target)?;
    let told =
        terraform::read_state_head(std::io::BufReader::new(fs::File::open(&new)?)).map_err(std::io::Error::other)?;
    if told.serial != serial {
        return Err(bad());
    }
    fs::rename(&new, file)
}
