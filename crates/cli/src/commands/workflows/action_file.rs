//! An action as a file, with the keys of an app's action (`actions/*.toml`), run without an app.
//!
//! What only a synced app can do (templates, roles, images, access to a cluster) is refused and said so: a step must not run without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::spec::{Source, StepSpec};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::{CliError, Result};

/// What a run needs of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ActionFile {
    pub name: Option<String>,
    pub timeout: Option<String>,
    /// For all steps.
    pub env: BTreeMap<String, String>,
    pub steps: Vec<StepSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    name: Option<String>,
    timeout: Option<String>,
    /// For all steps; an app's action has it in each step only.
    #[serde(default, alias = "env")]
    env_vars: BTreeMap<String, String>,
    #[serde(default)]
    steps: Vec<ReadStep>,
    // These say when an app runs it, and how it is listed: not how.
    #[serde(rename = "triggers")]
    _triggers: Option<IgnoredAny>,
    #[serde(rename = "dependencies")]
    _dependencies: Option<IgnoredAny>,
    #[serde(rename = "labels")]
    _labels: Option<IgnoredAny>,
    // These need a synced app.
    role: Option<IgnoredAny>,
    break_glass_role: Option<IgnoredAny>,
    image: Option<IgnoredAny>,
    kubernetes_context: Option<IgnoredAny>,
    #[serde(default)]
    enable_kube_config: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadStep {
    name: String,
    command: Option<String>,
    inline_contents: Option<String>,
    #[serde(default, alias = "env")]
    env_vars: BTreeMap<String, String>,
    public_repo: Option<ReadRepo>,
    connected_repo: Option<ReadRepo>,
    local: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadRepo {
    repo: String,
    directory: String,
    branch: String,
}

/// Reads an action; `path` is where it came from, `-` for stdin.
pub(super) fn parse(path: &Path, text: &str) -> Result<ActionFile> {
    let wrong = |message: String| CliError::usage(format!("{}: {message}", path.display()));
    let read: Read = toml::from_str(text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
    let keys = [
        ("role", read.role.is_some()),
        ("break_glass_role", read.break_glass_role.is_some()),
        ("image", read.image.is_some()),
        ("kubernetes_context", read.kubernetes_context.is_some()),
        ("enable_kube_config", read.enable_kube_config),
    ];
    if let Some((key, _)) = keys.iter().find(|(_, given)| *given) {
        return Err(needs_app(wrong(format!("`{key}` works only for actions of a synced app"))));
    }
    let mut steps = Vec::with_capacity(read.steps.len());
    for step in read.steps {
        steps.push(step.spec(path)?);
    }
    Ok(ActionFile { name: read.name, timeout: read.timeout, env: read.env_vars, steps })
}

fn needs_app(error: CliError) -> CliError {
    error
        .hint("put the file into the app's `actions` directory, run `ferry apps sync DIR`, then run the action by name")
}

impl ReadStep {
    fn spec(self, path: &Path) -> Result<StepSpec> {
        let name = self.name;
        let wrong = |message: String| CliError::usage(format!("{}: step `{name}`: {message}", path.display()));
        if self.local.is_some() {
            return Err(
                wrong("`local` is a directory of a synced app".into()).hint("upload it with `--source-dir DIR`")
            );
        }
        let inline_contents = match self.inline_contents {
            Some(text) => Some(contents(path, text).map_err(wrong)?),
            None => None,
        };
        let texts = self.env_vars.values().chain(&self.command).chain(&inline_contents);
        if texts.into_iter().any(|text| config::is_template(text)) {
            return Err(needs_app(wrong("templates (`{{ .nuon… }}`) work only in actions of a synced app".into())));
        }
        let source = self.public_repo.or(self.connected_repo).map(ReadRepo::source);
        Ok(StepSpec { inline_contents, command: self.command, source, env: self.env_vars, name })
    }
}

impl ReadRepo {
    fn source(self) -> Source {
        let whole = self.repo.contains("://") || self.repo.starts_with("git@");
        Source::Git {
            url: if whole {
                self.repo
            } else {
                format!("https://github.com/{}.git", self.repo.trim_end_matches(".git"))
            },
            reference: Some(self.branch),
            directory: Some(self.directory).filter(|directory| directory != "."),
            submodules: false,
            credentials: None,
        }
    }
}

/// The script itself, or that of the file which it names: `./scripts/check.sh`.
fn contents(path: &Path, text: String) -> std::result::Result<String, String> {
    let address = text.trim();
    if address.contains(char::is_whitespace) || address.contains(['{', '}']) {
        return Ok(text);
    }
    if ["http://", "https://", "git::", "git@"].iter().any(|scheme| address.starts_with(scheme)) {
        return Err(format!("`{address}` is fetched only for a synced app: download it, and name the file"));
    }
    if !address.starts_with("./") && !address.starts_with("../") {
        return Ok(text);
    }
    let places = places(path);
    let found = places.iter().map(|place| place.join(address)).find(|file| file.is_file());
    let file = found.ok_or_else(|| format!("there is no file `{address}` beside the action"))?;
    fs_err::read_to_string(&file).map_err(|error| error.to_string())
}

/// Where paths start, in order: the app's `actions` directory that the file lies in, then the file's own.
fn places(path: &Path) -> Vec<PathBuf> {
    let own = match path.parent() {
        Some(parent) if path != Path::new("-") => parent.to_owned(),
        _ => PathBuf::new(),
    };
    let whole = std::path::absolute(&own).unwrap_or_else(|_| own.clone());
    let actions = whole.ancestors().find(|directory| directory.file_name().is_some_and(|name| name == "actions"));
    actions.map(Path::to_owned).into_iter().chain([own]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_apps_action_can_be_run() {
        let text = r#"
            name = "deploy"
            timeout = "5m"
            dependencies = ["db"]
            enable_kube_config = false
            [labels]
            team = "web"
            [[triggers]]
            type = "manual"
            [[steps]]
            name = "one"
            command = "./one.sh"
            [steps.env_vars]
            A = "1"
            [steps.public_repo]
            repo = "acme/scripts"
            directory = "deploy"
            branch = "main"
            [[steps]]
            name = "two"
            inline_contents = "echo two"
        "#;
        let file = parse(Path::new("a.toml"), text).expect("an action");
        assert_eq!((file.name.as_deref(), file.timeout.as_deref()), (Some("deploy"), Some("5m")));
        assert_eq!(file.steps[0].env["A"], "1");
        let git = Source::Git {
            url: "https://github.com/acme/scripts.git".into(),
            reference: Some("main".into()),
            directory: Some("deploy".into()),
            submodules: false,
            credentials: None,
        };
        assert_eq!((&file.steps[0].source, &file.steps[1].source), (&Some(git), &None));
    }

    /// Every key of an app's action is either understood or refused by name: none is unknown.
    #[test]
    fn every_key_of_the_app_format_is_known() {
        let schema = config::schema("action").expect("a schema");
        let keys = |table: &serde_json::Value| -> Vec<String> {
            table["properties"].as_object().expect("keys").keys().cloned().collect()
        };
        let (own, steps) = (keys(&schema), keys(&schema["definitions"]["ActionStep"]));
        assert!(own.contains(&"timeout".to_owned()) && steps.contains(&"env_vars".to_owned()));
        let own = own.iter().map(|key| format!("{key} = 1"));
        for text in own.chain(steps.iter().map(|key| format!("[[steps]]\n{key} = 1"))) {
            if let Err(error) = parse(Path::new("a.toml"), &text) {
                assert!(!error.message.contains("unknown field"), "{text}: {error}");
            }
        }
    }

    #[test]
    fn scripts_lie_beside_the_action_or_in_the_apps_directory() {
        let root = tempfile::tempdir().expect("directory");
        let actions = root.path().join("shop/actions");
        fs_err::create_dir_all(actions.join("group")).expect("directories");
        fs_err::write(actions.join("check.sh"), "echo of the app").expect("written");
        fs_err::write(actions.join("group/own.sh"), "echo of the group").expect("written");
        let file = actions.join("group/a.toml");
        for (address, expected) in [
            ("./check.sh", Ok("echo of the app")),
            ("./own.sh", Ok("echo of the group")),
            ("echo ./check.sh", Ok("echo ./check.sh")),
            ("make", Ok("make")),
            ("./gone.sh", Err("there is no file `./gone.sh` beside the action")),
            (
                "https://example.com/x.sh",
                Err("`https://example.com/x.sh` is fetched only for a synced app: download it, and name the file"),
            ),
        ] {
            let found = contents(&file, address.to_owned());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{address}");
        }
    }

    #[test]
    fn what_needs_a_synced_app_is_refused() {
        let step = "[[steps]]\nname = \"x\"\n";
        for (text, part) in [
            (format!("role = \"r\"\n{step}command = \"y\""), "`role` works only"),
            (format!("image = \"i\"\n{step}command = \"y\""), "`image` works only"),
            (format!("enable_kube_config = true\n{step}command = \"y\""), "`enable_kube_config` works only"),
            (format!("{step}command = \"echo {{{{ .nuon.install.id }}}}\""), "templates"),
            (format!("{step}command = \"y\"\n[steps.local]\ndirectory = \"src\""), "`local`"),
            (format!("{step}comand = \"y\""), "comand"),
        ] {
            let error = parse(Path::new("a.toml"), &text).expect_err(part);
            assert!(error.message.contains("a.toml") && error.message.contains(part), "{error}");
        }
    }
}
