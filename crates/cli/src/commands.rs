//! One file per noun. A command gets what was typed, asks the control plane, and prints through `Output`.

use std::io::BufRead as _;
use std::time::Duration;

use api::client::{Client, ClientError, Options};
use model::OrgId;

use crate::args::{Command, Global, Yes};
use crate::context::{self, Target};
use crate::error::{CliError, Result};
use crate::output::Output;

mod apps;
mod contexts;
mod events;
mod fleet;
mod health;
mod ids;
mod installs;
mod jobs;
mod logs;
mod people;
mod registry;
mod runners;
mod terraform;
mod version;
mod workflows;

pub(crate) use ids::is_brief;
pub(crate) use workflows::{plan_lines, plan_summary, plan_title};

/// For one try of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// With more names than this, a list of all of them helps nobody.
const NAMES_SHOWN: usize = 8;

/// The exit code of the command.
pub(crate) async fn dispatch(global: &Global, out: &Output, command: Command) -> Result<u8> {
    match command {
        Command::Auth(command) => people::auth::run(global, out, command).await,
        Command::Contexts(command) => contexts::run(global, out, command),
        Command::Members(command) => people::members::run(&connect(global).await?, out, command).await,
        Command::Orgs(command) => people::orgs::run(global, out, command).await,
        Command::Apps(command) => Box::pin(apps::run(global, out, command)).await,
        Command::Installs(command) => Box::pin(installs::run(&connect(global).await?, out, command)).await,
        Command::Workflows(command) => Box::pin(workflows::run(&connect(global).await?, out, command)).await,
        Command::States(command) => Box::pin(terraform::states::run(&connect(global).await?, out, command)).await,
        Command::Steps(command) => Box::pin(workflows::steps(&connect(global).await?, out, command)).await,
        Command::Components(command) => {
            Box::pin(registry::builds::components(&connect(global).await?, out, command)).await
        }
        Command::Builds(command) => Box::pin(registry::builds::run(&connect(global).await?, out, command)).await,
        Command::Artifacts(command) => Box::pin(registry::artifacts::run(&connect(global).await?, out, command)).await,
        Command::Registry(command) => registry::artifacts::registry(global, out, command).await,
        Command::Sources(command) => registry::artifacts::sources(&connect(global).await?, out, command).await,
        Command::Policies(command) => Box::pin(apps::policies::run(out, command)).await,
        Command::Health(command) => health::run(out, command),
        Command::Fleet(args) => fleet::fleet(&connect(global).await?, out, args).await,
        Command::Approvals(args) => fleet::approvals(&connect(global).await?, out, args).await,
        Command::Runbooks(command) => Box::pin(workflows::runbooks::run(&connect(global).await?, out, command)).await,
        Command::Actions(command) => Box::pin(workflows::actions::run(&connect(global).await?, out, command)).await,
        Command::Jobs(command) => Box::pin(jobs::run(&connect(global).await?, out, command)).await,
        Command::Logs(args) => logs::run(&connect(global).await?, out, args).await,
        Command::Runners(command) => Box::pin(runners::run(&connect(global).await?, out, command)).await,
        Command::Tokens(command) => people::tokens::run(&connect(global).await?, out, command).await,
        Command::Events(args) => events::run(&connect(global).await?, out, args).await,
        Command::Version => version::run(global, out).await,
    }
}

pub(crate) fn target(global: &Global) -> Result<Target> {
    Target::resolve(global, &context::load()?)
}

/// A client that is signed in, for no org.
pub(crate) fn sign_in(target: &Target) -> Result<Client> {
    let options = Options { ca_file: target.ca_file.clone(), timeout: REQUEST_TIMEOUT };
    let client = Client::new(target.url()?, Some(target.token()?.to_owned()), None, &options)?;
    Ok(match &target.renews {
        Some(context) => client.renewing(people::renew::renewal(context.clone(), options)),
        None => client,
    })
}

/// A client for the org that was named.
pub(crate) async fn connect(global: &Global) -> Result<Client> {
    let target = target(global)?;
    let client = sign_in(&target)?;
    let org = match target.org {
        None => None,
        Some(org) if OrgId::parse(&org).is_ok() => Some(org),
        Some(name) => Some(people::orgs::find(&client, &name).await?.id.to_string()),
    };
    Ok(client.with_org(org))
}

/// What a name that was not found could have meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    App,
    Install,
    Runner,
}

/// Adds a guess to the error of a name that does not exist.
pub(crate) async fn explain(client: &Client, kind: Kind, wanted: &str, error: ClientError) -> CliError {
    let what = match kind {
        Kind::App => "app",
        Kind::Install => "install",
        Kind::Runner => "runner",
    };
    // Something else that belongs to it may be what is missing.
    let told = error.to_string();
    let about_it = [format!("no such {what}"), format!("no {what} `{wanted}`")].iter().any(|part| told.contains(part));
    if error.status() != Some(404) || !about_it {
        return error.into();
    }
    let names: std::result::Result<Vec<String>, ClientError> = match kind {
        Kind::App => client.apps().await.map(|all| all.into_iter().map(|a| a.name).collect()),
        Kind::Install => client.installs(None).await.map(|all| all.into_iter().map(|i| i.name).collect()),
        Kind::Runner => client.runners(None).await.map(|all| all.into_iter().map(|r| r.name).collect()),
    };
    let error = CliError::from(error);
    match names.ok().and_then(|names| suggestion(wanted, &names)) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

pub(crate) fn suggestion(wanted: &str, names: &[String]) -> Option<String> {
    match closest(wanted, names.iter().map(String::as_str)) {
        Some(close) => Some(format!("did you mean `{close}`?")),
        None if (1..=NAMES_SHOWN).contains(&names.len()) => Some(format!("there are: {}", names.join(", "))),
        None => None,
    }
}

/// The name that was most likely meant.
pub(crate) fn closest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let far = (wanted.chars().count() / 3).max(1);
    names
        .map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Asks a person before something that can't be undone; `what` is what would happen, as the subject of a sentence.
pub(crate) fn confirm(out: &Output, yes: Yes, what: &str, question: &str) -> Result<()> {
    if yes.given() {
        return Ok(());
    }
    if !out.can_ask() {
        return Err(CliError::usage(format!("{what} needs confirmation; pass `--yes` when there is no terminal")));
    }
    ask(out, question)
}

/// Asks a person. Anything but a yes is a no, and an error.
pub(crate) fn ask(out: &Output, question: &str) -> Result<()> {
    out.stderr_bytes(format!("{question} [y/N]: ").as_bytes());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(CliError::failed("nothing was changed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_offered() {
        let names = ["production", "staging", "dev"].map(str::to_owned);
        let table = [
            ("producton", Some("did you mean `production`?")),
            ("Stagin", Some("did you mean `staging`?")),
            ("dve", Some("did you mean `dev`?")),
            ("zzz", Some("there are: production, staging, dev")),
        ];
        for (wanted, expected) in table {
            assert_eq!(suggestion(wanted, &names).as_deref(), expected, "{wanted}");
        }
        assert_eq!(suggestion("x", &[]), None);
        let many: Vec<String> = (0..20).map(|i| format!("install-number-{i}")).collect();
        assert_eq!(suggestion("x", &many), None);
    }
}
