//! Every environment variable that Ferry reads or sets: the only place that spells their names.
//!
//! `docs/environment.md` is generated from this list. A test fails when another source file spells a name of ours.

/// What names of ours begin with.
pub const PREFIX: &str = "FERRY_";
/// The dialect's prefix. Scripts get each built-in variable under both.
pub const DIALECT_PREFIX: &str = "NUON_";

/// Who a variable is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// `ferry`, as a client of the Control API.
    Cli,
    /// `ferry server`, `ferry admin` and `ferry dev`.
    Server,
    /// `ferry-runner`.
    Runner,
    /// The scripts of actions, hooks and runbooks; the runner sets it.
    Scripts,
    /// Terraform and OpenTofu; the runner sets it.
    Terraform,
    /// Another process of Ferry, which the one that sets it starts.
    Own,
    /// Tests, and builds made for them.
    Tests,
}

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    pub reader: Reader,
    pub meaning: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $reader:ident, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub const $constant: &str = $name;)*

        /// All of them, grouped by reader.
        pub const ALL: &[Variable] = &[$(Variable { name: $name, reader: Reader::$reader, meaning: $meaning }),*];
    };
}

variables! {
    CONFIG = "FERRY_CONFIG", Cli, "File with the CLI's contexts. Default: `ferry/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`";
    CONTEXT = "FERRY_CONTEXT", Cli, "Context to use, like `--context`";
    URL = "FERRY_URL", Cli, "Address of the Control API, like `--url`. `ferry-runner run-local` reads it too";
    TOKEN = "FERRY_TOKEN", Cli, "API token, like `--token`. `ferry-runner run-local` reads it too";
    ORG = "FERRY_ORG", Cli, "Org, by name or id, like `--org`. `ferry-runner run-local` reads it too";
    CA_FILE = "FERRY_CA_FILE", Cli, "More root certificates in PEM, like `--ca-file`";

    SERVER_CONFIG = "FERRY_SERVER_CONFIG", Server, "The server's TOML file, like `--config`";
    DATA_DIR = "FERRY_DATA_DIR", Server, "Setting `data_dir`: where the server keeps its files";
    DEV_DIR = "FERRY_DEV_DIR", Server, "Where `ferry dev` keeps its files, like `--data-dir`. Default: `.ferry`";

    RUNNER_URL = "FERRY_RUNNER_URL", Runner, "Address of the Runner API, like `--url`";
    RUNNER_JOIN = "FERRY_RUNNER_JOIN", Runner, "Join credential; or `--join-file`. Needed until the state directory holds a session. Never passed on to jobs";
    RUNNER_TRUST_KEY = "FERRY_RUNNER_TRUST_KEY", Runner, "Fingerprints of trusted signing keys, comma-separated, like `--trust-key`";
    RUNNER_STATE_DIR = "FERRY_RUNNER_STATE_DIR", Runner, "State directory, like `--state-dir`. Default: `/var/lib/ferry-runner`";
    RUNNER_CA_FILE = "FERRY_RUNNER_CA_FILE", Runner, "More root certificates in PEM, like `--ca-file`";
    RUNNER_ALLOW_PATHS = "FERRY_RUNNER_ALLOW_PATHS", Runner, "Extra paths that scripts may use, colon-separated, like `--allow-path`";
    RUNNER_NO_AD_HOC = "FERRY_RUNNER_NO_AD_HOC", Runner, "`true` refuses ad hoc actions, like `--no-ad-hoc`";
    RUNNER_BASE_REGISTRIES = "FERRY_RUNNER_BASE_REGISTRIES", Runner, "Registries of base images that only the runner's host reaches, comma-separated, like `--base-registry`";
    RUNNER_BUILDER = "FERRY_RUNNER_BUILDER", Runner, "`buildah` or `podman`: what builds images where both are installed";
    RUNNER_METRICS_LISTEN = "FERRY_RUNNER_METRICS_LISTEN", Runner, "Address for Prometheus metrics, like `--metrics-listen`. Default: none";
    RUNNER_INSTALL_KEY_FILE = "FERRY_RUNNER_INSTALL_KEY_FILE", Runner, "File with the install's key, like `--install-key-file`";
    RUNNER_INSTALL_KEY_COMMAND = "FERRY_RUNNER_INSTALL_KEY_COMMAND", Runner, "Command that prints the install's key, like `--install-key-command`";
    RUNNER_TERRAFORM_MIRROR = "FERRY_RUNNER_TERRAFORM_MIRROR", Runner, "Where missing versions of Terraform are downloaded from, like `--terraform-mirror`";
    RUNNER_TERRAFORM_CONFIG = "FERRY_RUNNER_TERRAFORM_CONFIG", Runner, "Terraform's CLI configuration file, like `--terraform-config`";
    RUNNER_KUBECONFIG = "FERRY_RUNNER_KUBECONFIG", Runner, "Kubeconfig of the customer's cluster, like `--kubeconfig`";
    RUNNER_REGISTRY = "FERRY_RUNNER_REGISTRY", Runner, "The customer's own registry, like `--registry`";
    RUNNER_SECRET_STORE = "FERRY_RUNNER_SECRET_STORE", Runner, "Where the install's secrets lie, like `--secret-store`";
    RUNNER_VAULT_TOKEN_FILE = "FERRY_RUNNER_VAULT_TOKEN_FILE", Runner, "File with the token for Vault, like `--vault-token-file`";
    RUNNER_LOG = "FERRY_RUNNER_LOG", Runner, "Level of the runner's own log: `error`, `warn`, `info`, `debug`. Default: `info`";

    ORG_ID = "NUON_ORG_ID", Scripts, "Id of the org";
    APP_ID = "NUON_APP_ID", Scripts, "Id of the app";
    INSTALL_ID = "NUON_INSTALL_ID", Scripts, "Id of the install";
    ROLE = "NUON_ROLE", Scripts, "Role that the step runs with, if it has one";
    ACTIONS_OUTPUT_FILEPATH = "NUON_ACTIONS_OUTPUT_FILEPATH", Scripts, "File to append outputs to, one `NAME=VALUE` per line";
    ACTIONS_ROOT = "NUON_ACTIONS_ROOT", Scripts, "Directory that all steps of the action share";
    KUBECONFIG_ENABLED = "NUON_KUBECONFIG_ENABLED", Scripts, "`true` if the step can reach a cluster: `KUBECONFIG` names the file then";
    KUBECONFIG = "KUBECONFIG", Scripts, "Kubeconfig of the cluster that the step may use, made for this job alone";
    MASK_FILE = "FERRY_MASK_FILE", Scripts, "File to append secrets to, one per line: they are masked from then on";
    EXECUTION_ID = "FERRY_EXECUTION_ID", Scripts, "Id of the execution. The runner finds the processes of a job by it";
    DIALECT_API_TOKEN = "NUON_API_TOKEN", Scripts, "Never set: a script gets no token, even if the job's spec names one";
    API_TOKEN = "FERRY_API_TOKEN", Scripts, "Never set, like `NUON_API_TOKEN`";

    TF_CLI_CONFIG_FILE = "TF_CLI_CONFIG_FILE", Terraform, "The file of `--terraform-config`, or one that turns update checks off";
    TF_PLUGIN_CACHE_DIR = "TF_PLUGIN_CACHE_DIR", Terraform, "The runner's provider cache";
    TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE = "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE", Terraform, "`1`: `init` never replaces a cached provider that another run uses";
    TF_IN_AUTOMATION = "TF_IN_AUTOMATION", Terraform, "`1`";
    TF_INPUT = "TF_INPUT", Terraform, "`0`: Terraform never asks";
    CHECKPOINT_DISABLE = "CHECKPOINT_DISABLE", Terraform, "`1`: no update checks";

    PARENT_DEATH = "FERRY_PARENT_DEATH", Own, "Process id of the parent. A process that has it ends when the parent does";
    RUNNER_HIDE = "FERRY_RUNNER_HIDE", Own, "Directory that the scripts of a build must not see: the server's data";

    GIT_REF = "FERRY_GIT_REF", Tests, "When Ferry is built: the commit that `/version` names";
    FORGERIES = "FERRY_FORGERIES", Tests, "When tests are built: how many forged papers are tried";
    CRASH_ONLY = "FERRY_CRASH_ONLY", Tests, "Plays only the cells of a crash matrix whose names contain this";
    CRASH_FILE = "FERRY_CRASH_FILE", Tests, "File that names the crash point at which the process stops (feature `crash-points`)";
    SKEW_FILE = "FERRY_SKEW_FILE", Tests, "File that says how many seconds the clock is off (feature `crash-points`)";
    TEST_PROTOCOL = "FERRY_TEST_PROTOCOL", Tests, "Version of the runner protocol to speak (feature `crash-points`)";
    TEST_ALL = "FERRY_TEST_ALL", Tests, "`1`: a test that this machine can't run is a failure";
    TEST_SKIPPED = "FERRY_TEST_SKIPPED", Tests, "File to which skipped tests are added";
    TEST_WITHOUT = "FERRY_TEST_WITHOUT", Tests, "What `scripts/machine.sh` reports as missing, although it is there";
    TEST_PROGRAM = "FERRY_TEST_PROGRAM", Tests, "`terraform` or `tofu`: what the tests run with";
    TEST_KUBECONFIG = "FERRY_KUBECONFIG", Tests, "Kubeconfig of the cluster that tests use. Default: `KUBECONFIG`";
    DRIFT_LOOKS = "FERRY_DRIFT_LOOKS", Tests, "How often the tests look for drift of real charts. Default: 3";
    PG_DURABLE = "FERRY_PG_DURABLE", Tests, "Set: the tests' PostgreSQL writes to disk";
    IT_DIR = "FERRY_IT_DIR", Tests, "Directory of a test, by which it finds what it left running";
}

/// What Terraform would be led away from its state by, or from what was approved: an app can't set variables that begin like this.
pub const TERRAFORM_RESERVED: [&str; 4] = ["TF_HTTP_", "TF_DATA_DIR", "TF_WORKSPACE", "TF_CLI_"];

/// The variable that overrides a setting of the server: `timing.lease_s` is `FERRY_TIMING__LEASE_S`.
pub fn setting(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase().replace('.', "__"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test compares files")]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }

    /// Names of ours in a line of code, and prefixes that stand alone.
    fn names(line: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for prefix in [PREFIX, DIALECT_PREFIX] {
            for (at, _) in line.match_indices(prefix) {
                let starts = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                let rest = &line[at + prefix.len()..];
                let end = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
                if starts {
                    found.push(&line[at..at + prefix.len() + end.unwrap_or(rest.len())]);
                }
            }
        }
        found
    }

    #[test]
    fn no_other_file_spells_a_variable() {
        let repository = repository();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(repository.join("crates")).expect("crates").flatten() {
            sources(&entry.path().join("src"), &mut files);
        }
        let mut wrong = Vec::new();
        for file in files {
            let name = file.strip_prefix(&repository).expect("in the repository").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file).expect("a source file");
            for (number, line) in text.lines().enumerate() {
                // Tests at the end of a file spell what they expect.
                if line == "#[cfg(test)]" || name == "crates/model/src/env.rs" {
                    break;
                }
                let known = |found: &&str| ALL.iter().any(|v| v.name == *found);
                // The macro that reads a variable while Ferry is built takes a literal only.
                let built = line.contains("env!(");
                let found = names(line).into_iter().find(|found| !(built && known(found)));
                let Some(found) = found.filter(|_| !line.trim_start().starts_with("//")) else { continue };
                wrong.push(format!("{name}:{}: `{found}`: use `model::env`", number + 1));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn each_variable_is_listed_once_and_named_after_its_reader() {
        let names: BTreeSet<&str> = ALL.iter().map(|v| v.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name twice");
        assert!(ALL.is_sorted_by_key(|v| v.reader), "grouped by reader");
        for v in ALL.iter().filter(|v| v.reader == Reader::Runner) {
            assert!(v.name.starts_with("FERRY_RUNNER_"), "{}", v.name);
        }
        assert_eq!(setting("timing.lease_s"), "FERRY_TIMING__LEASE_S");
        assert_eq!(setting("data_dir"), DATA_DIR);
    }

    #[test]
    fn the_page_of_variables_is_generated() {
        let mut text = String::from(
            "# Environment variables\n\nGenerated from `crates/model/src/env.rs` by `make generate`.\n\nA command-line option overrides its variable.\n",
        );
        let sections = [
            (Reader::Cli, "The CLI", "`ferry` reads these."),
            (
                Reader::Server,
                "The server",
                "`ferry server`, `ferry admin` and `ferry dev` read these. Every setting of the server has a variable too: `[timing] lease_s` is\n`FERRY_TIMING__LEASE_S`. `ferry server config` lists the settings ([operations.md](operations.md)).",
            ),
            (Reader::Runner, "The runner", "`ferry-runner` reads these."),
            (
                Reader::Scripts,
                "In scripts",
                "The runner sets these for the steps of actions, hooks and runbooks. Each `NUON_…` variable is also set as `FERRY_…`. Steps also get\n`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_PROTOCOL` and `TRACEPARENT` ([logs.md](logs.md)).",
            ),
            (
                Reader::Terraform,
                "For Terraform",
                "The runner sets these for Terraform and OpenTofu, over what a component's `env_vars` say. A component can't set variables that begin with\n`TF_HTTP_`, `TF_DATA_DIR`, `TF_WORKSPACE` or `TF_CLI_`.",
            ),
            (Reader::Own, "Between processes of Ferry", "Don't set these: one process of Ferry sets them for another."),
            (Reader::Tests, "For builds and tests", "Nothing that ships reads these at run time."),
        ];
        for (reader, title, about) in sections {
            writeln!(text, "\n## {title}\n\n{about}\n\n| variable | meaning |\n|---|---|").expect("write");
            for variable in ALL.iter().filter(|v| v.reader == reader) {
                writeln!(text, "| `{}` | {} |", variable.name, variable.meaning).expect("write");
            }
        }
        let path = repository().join("docs/environment.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::File::create(&path)
                .and_then(|mut f| std::io::Write::write_all(&mut f, text.as_bytes()))
                .expect("written");
        } else {
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "docs/environment.md is old: run `make generate`");
        }
    }
}
