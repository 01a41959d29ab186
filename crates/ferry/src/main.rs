//! The binary `ferry`: hands over to the control plane, the local system, or the client.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the edge that talks to a person")]

mod dev;
mod serve;
mod simulate;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// The system's gives memory back and asks for it again all the time when many requests are under way: a quarter of the
/// throughput, measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "ferry", version, about = "Deploy and operate software in your customers' clouds", after_help = cli::EXIT_CODES)]
struct Ferry {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: Top,
}

#[derive(Subcommand)]
enum Top {
    #[command(flatten)]
    Client(cli::Command),
    /// Run the control plane
    Server(serve::ServerArgs),
    /// Run the whole system on this machine
    Dev(dev::DevArgs),
    /// Back up, restore and check the control plane's data
    Admin(serve::AdminArgs),
    /// Simulate a failing fleet and check the invariants
    Sim(simulate::SimArgs),
    /// Write shell completions
    Completions(cli::CompletionsArgs),
}

fn main() -> ExitCode {
    // Once, before anything speaks TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Ferry { global, command } = Ferry::parse();
    let outcome = match command {
        Top::Client(command) => return on_runtime(Box::pin(cli::run(global, command))),
        Top::Completions(args) => return cli::completions(args.shell, Ferry::command()),
        Top::Server(args) => follow_parent().and_then(|()| serve::server(args, global.json)),
        Top::Sim(args) => simulate::run(&args, global.json),
        Top::Admin(args) => on_runtime(serve::admin(args)),
        Top::Dev(args) => on_runtime(Box::pin(dev::run(args))),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// A server of `ferry dev` stops when that is gone, however it went.
fn follow_parent() -> anyhow::Result<()> {
    let Ok(parent) = std::env::var(model::env::PARENT_DEATH) else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_pid().to_string());
    anyhow::ensure!(now == Some(parent), "the `ferry dev` that started this server is gone");
    Ok(())
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(future)
}

#[cfg(test)]
mod generated {
    use std::fmt::Write as _;

    use clap::CommandFactory as _;

    fn describe(command: &mut clap::Command, path: &str, out: &mut String) {
        let help = command.clone().term_width(100).render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(out, "## `{path}`\n\n```text\n{}\n```\n\n", help.join("\n").trim_end());
        let names: Vec<String> = command
            .get_subcommands()
            .filter(|c| c.get_name() != "help" && !c.is_hide_set())
            .map(|c| c.get_name().to_owned())
            .collect();
        for name in names {
            if let Some(inner) = command.find_subcommand_mut(&name) {
                describe(inner, &format!("{path} {name}"), out);
            }
        }
    }

    /// The committed reference is what the binary says. `make generate` writes it anew.
    #[test]
    fn the_cli_reference_is_current() {
        let mut command = super::Ferry::command();
        command.build();
        let mut text = String::from("# The `ferry` command\n\nGenerated from the binary by `make generate`.\n\n");
        describe(&mut command, "ferry", &mut text);
        let path = format!("{}/../../docs/cli.md", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            fs_err::write(&path, text).expect("written");
        } else {
            let committed = fs_err::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "docs/cli.md is old: run `make generate`");
        }
    }
}

/// What holds for every command, known by walking the whole command line.
#[cfg(test)]
mod every_command {
    use std::ffi::OsString;

    use clap::parser::ValueSource;
    use clap::{Arg, ArgMatches, Command, CommandFactory as _};

    /// Commands that do something, each by its words.
    fn leaves(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        let mut inner = command.get_subcommands().filter(|inner| inner.get_name() != "help").peekable();
        if inner.peek().is_none() {
            found.push((words.to_vec(), command.clone()));
        }
        for inner in inner {
            leaves(inner, &[words, &[inner.get_name().to_owned()]].concat(), found);
        }
    }

    fn all() -> Vec<(Vec<String>, Command)> {
        let mut command = super::Ferry::command();
        command.build();
        let mut found = Vec::new();
        leaves(&command, &[], &mut found);
        assert!(found.len() > 100, "{}", found.len());
        found
    }

    /// What the command itself was told.
    fn innermost(matches: &ArgMatches) -> &ArgMatches {
        matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
    }

    /// The option as it is typed, and the value that it must have then.
    fn typed(option: &Arg) -> (Vec<String>, Vec<OsString>) {
        let long = format!("--{}", option.get_long().expect("a long name"));
        match option.get_possible_values().first() {
            _ if !option.get_action().takes_values() => (vec![long], Vec::new()),
            // A flag of its own kind, like `--color`.
            Some(value) => {
                let value = value.get_name().to_owned();
                (vec![long, value.clone()], vec![value.into()])
            }
            None => (vec![long, "some-value".into()], vec!["some-value".into()]),
        }
    }

    #[test]
    fn global_options_work_before_and_after_it() {
        let root = super::Ferry::command();
        let options: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
        let names: Vec<&str> = options.iter().filter_map(|arg| arg.get_long()).collect();
        assert_eq!(names, ["json", "context", "url", "token", "org", "wide", "color", "plain", "ca-file"]);
        for (words, _) in all() {
            for option in &options {
                let (typed, value) = typed(option);
                let mut between = words.clone();
                between.splice(1..1, typed.iter().cloned());
                for line in [[typed.clone(), words.clone()].concat(), [words.clone(), typed].concat(), between] {
                    let whole = std::iter::once("ferry".to_owned()).chain(line.iter().cloned());
                    // What the command needs besides is not the question here.
                    let matches = super::Ferry::command().ignore_errors(true).get_matches_from(whole);
                    let told = innermost(&matches);
                    let id = option.get_id().as_str();
                    let line = line.join(" ");
                    assert_eq!(told.value_source(id), Some(ValueSource::CommandLine), "{line}");
                    if !value.is_empty() {
                        let raw: Vec<OsString> = told.get_raw(id).into_iter().flatten().map(Into::into).collect();
                        assert_eq!(raw, value, "{line}");
                    }
                }
            }
        }
    }

    /// What a new user reads: a sentence about every command, in few words, and one about each of its arguments.
    #[test]
    fn everything_is_explained() {
        let mut wrong = Vec::new();
        for (words, command) in all() {
            let words = words.join(" ");
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let length = about.split_whitespace().count();
            if length == 0 || length > 12 {
                wrong.push(format!("{words}: {length} words: {about}"));
            }
            for arg in command.get_arguments() {
                if arg.get_help().is_none() {
                    wrong.push(format!("{words}: `{}` is not explained", arg.get_id()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A command asks by way of `cli::args::Yes`, so one that asks has the flag. Here: the flag is the same everywhere.
    #[test]
    fn yes_means_the_same_everywhere() {
        let mut found = Vec::new();
        for (words, command) in all() {
            for arg in command.get_arguments() {
                let is_yes = arg.get_id() == "yes";
                assert_eq!(arg.get_long() == Some("yes"), is_yes, "{words:?}");
                assert_eq!(arg.get_short() == Some('y'), is_yes, "{words:?} {}", arg.get_id());
                if is_yes {
                    let help = arg.get_help().map(ToString::to_string);
                    assert_eq!(help.as_deref(), Some("Go ahead without asking"), "{words:?}");
                    assert!(arg.get_long_help().is_none() && !arg.get_action().takes_values(), "{words:?}");
                    found.push(words.join(" "));
                }
            }
        }
        let expected = [
            "installs sync",
            "installs inputs",
            "installs overrides",
            "installs provision",
            "installs deploy",
            "installs teardown",
            "installs reprovision",
            "installs deprovision",
            "installs rollback",
            "installs drift",
            "installs erase-telemetry",
            "installs forget",
            "installs sync-secrets",
            "members remove",
            "orgs revoke-invite",
            "apps retire",
            "apps delete",
            "workflows watch",
            "states restore",
            "states unlock",
            "runbooks run",
            "jobs erase-log",
            "runners revoke",
            "tokens revoke",
        ];
        found.sort();
        let mut expected = expected.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }
}
