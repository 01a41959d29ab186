//! Opening a session: the one that was joined before, or a new one.

use super::*;

/// Resumes the session in the state directory, or joins and opens a new one.
pub(super) async fn open_session(
    options: &Options,
    state: &StateDir,
    http: &reqwest::Client,
) -> anyhow::Result<(SessionFile, Signatory)> {
    if let (Some(mut session), Some(key)) = (state.session()?, state.key()?) {
        if session.kind != options.kind {
            bail!("{} holds a {} runner", state.path().display(), session.kind.as_str());
        }
        if !options.trust_keys.is_empty() {
            session.trust.clone_from(&options.trust_keys);
        }
        if !options.url.is_empty() {
            session.url.clone_from(&options.url);
        }
        session.allow_paths.clone_from(&options.allow_paths);
        session.no_ad_hoc = options.no_ad_hoc;
        session.tools.clone_from(&options.tools);
        session.ca_file.clone_from(&options.ca_file);
        tracing::info!(runner = %session.runner_id, generation = session.generation, "resumes its session");
        return Ok((session, key));
    }
    if options.trust_keys.is_empty() {
        bail!(
            "no key is trusted: pass --trust-key as the join command has it; a server can't vouch for itself, so without one nothing is run"
        );
    }
    let Some(credential) = options.join.clone() else {
        bail!(
            "this runner has not joined yet: set {} as `ferry runners join-command` prints it, or pass --join-file",
            env::RUNNER_JOIN
        );
    };
    join(options, state, http, &credential).await
}

async fn join(
    options: &Options,
    state: &StateDir,
    http: &reqwest::Client,
    credential: &str,
) -> anyhow::Result<(SessionFile, Signatory)> {
    let door = Unjoined { http, url: options.url.trim_end_matches('/') };
    let offered = patiently("ask for the server's keys", || door.keys()).await?;
    let mut trusted = TrustedKeys::new(options.trust_keys.clone());
    if trusted.learn(&offered.keys) == 0 {
        bail!(
            "the server's signing keys are not the ones that this runner trusts ({}); this is not the control plane that made the join command, or its key was replaced",
            options.trust_keys.join(", ")
        );
    }
    let key = own_key(state)?;
    let hostname = hostname();
    let answer = patiently("join", || door.join(credential, &key, &hostname)).await?;
    if answer.kind != options.kind {
        bail!("this join command is for a {} runner", answer.kind.as_str());
    }
    crash_point!("runner.joined");
    let session = SessionFile {
        metrics_listen: String::new(),
        runner_id: answer.runner_id,
        name: answer.name,
        kind: answer.kind,
        org_id: answer.org_id,
        install_id: answer.install_id,
        generation: answer.generation,
        url: options.url.trim_end_matches('/').to_owned(),
        trust: options.trust_keys.clone(),
        keys: answer.keys,
        settings: answer.settings,
        timing: answer.timing,
        allow_paths: options.allow_paths.clone(),
        no_ad_hoc: options.no_ad_hoc,
        tools: options.tools.clone(),
        user_id: None,
        ca_file: options.ca_file.clone(),
        joined_at: now(),
        process: 0,
        pid: 0,
        process_started_at: None,
        answered_at: None,
        groups: serde_json::Value::Null,
    };
    state.write_session(&session)?;
    tracing::info!(runner = %session.runner_id, generation = session.generation, "joined");
    Ok((session, key))
}

/// The key of the session, written before the join: a process that dies in between leaves it to the next, whose join is
/// then the same one again and not a rival's.
fn own_key(state: &StateDir) -> anyhow::Result<Signatory> {
    if let Some(key) = state.key()? {
        return Ok(key);
    }
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| anyhow::anyhow!("no randomness: {e}"))?;
    state.write_key(&seed)?;
    crash_point!("runner.key_written");
    Ok(Signatory::from_seed(&seed))
}

/// Tries for as long as the control plane can't be reached; a refusal ends it.
async fn patiently<T, F>(what: &str, call: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = Result<T, CallError>>,
{
    let patience = Patience::endless(Duration::from_millis(250), Duration::from_secs(10));
    let tried = patience.keep(call, |error| tracing::warn!(%error, "can't {what}, will try again")).await;
    tried.map_err(|error| anyhow::anyhow!("can't {what}: {error}"))
}
