//! Contexts: which control plane, with which token, for which org. One file, readable by its owner only.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use model::env;
use serde::{Deserialize, Serialize};

use crate::args::Global;
use crate::error::{CliError, Exit, Result};

/// Name of the context that `auth login` makes when none is named.
pub(crate) const DEFAULT_NAME: &str = "default";

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Gets the next token when this one has run out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// An org's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { url, token, refresh, org, ca_file } = self;
        let hidden = |secret: &Option<String>| secret.as_ref().map(|_| "…");
        f.debug_struct("Context")
            .field("url", url)
            .field("token", &hidden(token))
            .field("refresh", &hidden(refresh))
            .field("org", org)
            .field("ca_file", ca_file)
            .finish()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Context>,
}

/// The file that a variable names, or `ferry/config.toml` under `$XDG_CONFIG_HOME` or `~/.config`.
pub fn config_path() -> Result<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    var(env::CONFIG)
        .or_else(|| Some(var("XDG_CONFIG_HOME")?.join("ferry/config.toml")))
        .or_else(|| Some(var("HOME")?.join(".config/ferry/config.toml")))
        .ok_or_else(|| {
            CliError::failed("can't store contexts: HOME is not set")
                .hint(format!("set {} to a file, or give `--url` and `--token`", env::CONFIG))
        })
}

/// Reads the contexts; a file that is not there holds none.
pub fn load() -> Result<Contexts> {
    load_from(&config_path()?)
}

/// Adds or replaces a context.
pub fn save_context(name: &str, context: Context, make_current: bool) -> Result<()> {
    update(&config_path()?, |contexts| {
        contexts.contexts.insert(name.to_owned(), context);
        if make_current || contexts.current.is_none() {
            contexts.current = Some(name.to_owned());
        }
    })
}

pub(crate) fn load_from(path: &Path) -> Result<Contexts> {
    let text = match fs_err::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contexts::default()),
        Err(error) => return Err(error.into()),
    };
    toml::from_str(&text).map_err(|error| {
        CliError::failed(format!("{} can't be read: {}", path.display(), error.to_string().trim_end()))
            .hint("fix the file, or delete it and sign in again")
    })
}

/// Commands that change the file do it one after the other.
pub(crate) fn lock(path: &Path) -> Result<std::fs::File> {
    if let Some(directory) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        fs_err::create_dir_all(directory)?;
    }
    let file = fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(path.with_extension("lock"))?;
    let file = file.into_parts().0;
    file.lock()?;
    Ok(file)
}

/// Reads, changes and writes the file, as a whole or not at all.
pub(crate) fn update(path: &Path, change: impl FnOnce(&mut Contexts)) -> Result<()> {
    let _lock = lock(path)?;
    update_locked(path, change)
}

/// The same for who holds the lock.
pub(crate) fn update_locked(path: &Path, change: impl FnOnce(&mut Contexts)) -> Result<()> {
    let mut contexts = load_from(path)?;
    change(&mut contexts);
    let text = toml::to_string(&contexts).map_err(|e| CliError::failed(format!("contexts can't be written: {e}")))?;
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs_err::create_dir_all(directory)?;
    // A temporary file is made with mode 0600, and keeps it when it is renamed.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| CliError::failed(format!("can't write {}: {}", path.display(), e.error)))?;
    Ok(())
}

/// Where a command goes, put together from flags, environment and context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The context that was looked at, where there is one.
    pub context: Option<String>,
    /// The URL is the context's own, so what a command learns may be kept there.
    pub from_context: bool,
    pub url: Option<String>,
    pub token: Option<String>,
    /// The context whose token this is, where it can be renewed.
    pub renews: Option<String>,
    pub org: Option<String>,
    pub ca_file: Option<PathBuf>,
}

impl Target {
    /// Flags win over `FERRY_*`, which win over the context. The first two are one by now: clap has read both.
    pub(crate) fn resolve(global: &Global, contexts: &Contexts) -> Result<Self> {
        // A variable that is set to nothing is not set.
        let given =
            |value: &Option<String>| value.as_deref().map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned);
        let (asked, url) = (given(&global.context), given(&global.url));
        let name = asked.as_ref().or(contexts.current.as_ref());
        let context = name.and_then(|name| contexts.contexts.get(name));
        if let (Some(name), None) = (&asked, context) {
            return Err(unknown_context(name, contexts));
        }
        let from_context = url.is_none() && context.is_some();
        // A token belongs to its control plane: it does not travel to another URL.
        let same_place = match (&url, context) {
            (Some(url), Some(context)) => url.trim_end_matches('/') == context.url.trim_end_matches('/'),
            (None, _) => true,
            (Some(_), None) => false,
        };
        let kept = context.filter(|_| same_place);
        let is_own = given(&global.token).is_none() && kept.is_some_and(|c| c.refresh.is_some());
        Ok(Self {
            renews: if is_own { name.cloned() } else { None },
            context: context.and(name).cloned(),
            from_context,
            url: url.or_else(|| context.map(|c| c.url.clone())),
            token: given(&global.token).or_else(|| kept.and_then(|c| c.token.clone())),
            org: given(&global.org).or_else(|| kept.and_then(|c| c.org.clone())),
            ca_file: global.ca_file.clone().or_else(|| kept.and_then(|c| c.ca_file.clone())),
        })
    }

    pub(crate) fn url(&self) -> Result<&str> {
        self.url.as_deref().ok_or_else(|| {
            let sign_in = "start one with `ferry dev`, sign in with `ferry auth login --url URL`";
            CliError::usage("no control plane is configured").hint(format!("{sign_in}, or set {}", env::URL))
        })
    }

    pub(crate) fn token(&self) -> Result<&str> {
        self.token.as_deref().ok_or_else(|| {
            let url = self.url.as_deref().unwrap_or("the control plane");
            CliError::new(Exit::Denied, format!("not signed in to {url}"))
                .hint(format!("sign in with `ferry auth login --url {url}`, or set {}", env::TOKEN))
        })
    }
}

pub(crate) fn unknown_context(name: &str, contexts: &Contexts) -> CliError {
    let error = CliError::new(Exit::NotFound, format!("there is no context `{name}`"));
    let names: Vec<&str> = contexts.contexts.keys().map(String::as_str).collect();
    match crate::commands::closest(name, names.iter().copied()) {
        Some(close) => error.hint(format!("did you mean `{close}`?")),
        None if names.is_empty() => error.hint("create one with `ferry auth login` or `ferry dev`"),
        None => error.hint(format!("there are: {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn context(url: &str, token: &str, org: &str) -> Context {
        Context { url: url.into(), token: Some(token.into()), refresh: None, org: Some(org.into()), ca_file: None }
    }

    fn contexts() -> Contexts {
        Contexts {
            current: Some("dev".into()),
            contexts: BTreeMap::from([
                ("dev".to_owned(), context("http://dev", "dev-token", "dev-org")),
                ("prod".to_owned(), context("https://prod", "prod-token", "prod-org")),
            ]),
        }
    }

    #[test]
    fn a_flag_wins_over_the_context() {
        let some = |text: &str| Some(text.to_owned());
        // (context, url, token, org) given; (url, token, org, the context is used) expected.
        type Given = (Option<&'static str>, Option<&'static str>, Option<&'static str>, Option<&'static str>);
        type Expected = (Option<&'static str>, Option<&'static str>, Option<&'static str>, bool);
        let table: [(Given, Expected); 6] = [
            ((None, None, None, None), (Some("http://dev"), Some("dev-token"), Some("dev-org"), true)),
            ((Some("prod"), None, None, None), (Some("https://prod"), Some("prod-token"), Some("prod-org"), true)),
            ((None, None, Some("t"), None), (Some("http://dev"), Some("t"), Some("dev-org"), true)),
            ((None, None, None, Some("o")), (Some("http://dev"), Some("dev-token"), Some("o"), true)),
            // Neither token nor org of the context go to another control plane.
            ((None, Some("http://other"), None, None), (Some("http://other"), None, None, false)),
            ((None, Some("http://dev/"), None, None), (Some("http://dev/"), Some("dev-token"), Some("dev-org"), false)),
        ];
        for (given, expected) in table {
            let global = Global {
                context: given.0.and_then(some),
                url: given.1.and_then(some),
                token: given.2.and_then(some),
                org: given.3.and_then(some),
                ..Global::default()
            };
            let target = Target::resolve(&global, &contexts()).expect("target");
            let found = (target.url.as_deref(), target.token.as_deref(), target.org.as_deref(), target.from_context);
            assert_eq!(found, expected, "{given:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said_with_a_hint() {
        let nowhere = Target::resolve(&Global::default(), &Contexts::default()).expect("target");
        let error = nowhere.url().expect_err("no url");
        assert_eq!(error.exit, Exit::Usage);
        assert!(error.hint.is_some_and(|h| h.contains("ferry dev")));
        assert_eq!(nowhere.token().expect_err("no token").exit, Exit::Denied);
        let global = Global { context: Some("prdo".into()), ..Global::default() };
        let error = Target::resolve(&global, &contexts()).expect_err("unknown");
        assert_eq!((error.exit, error.hint.as_deref()), (Exit::NotFound, Some("did you mean `prod`?")));
    }

    #[test]
    fn the_file_is_written_whole_and_for_its_owner_only() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("a/b/config.toml");
        assert_eq!(load_from(&path), Ok(Contexts::default()));
        let all = contexts();
        update(&path, |c| *c = all.clone()).expect("write");
        assert_eq!(load_from(&path), Ok(all));
        let mode = fs_err::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let files = fs_err::read_dir(path.parent().expect("parent")).expect("list").count();
        assert_eq!(files, 2, "no temporary file stays beside it and its lock");

        fs_err::write(&path, "current = ").expect("write");
        assert!(update(&path, |_| ()).is_err(), "a broken file is not overwritten");
        assert_eq!(fs_err::read_to_string(&path).expect("read"), "current = ");
    }

    #[test]
    fn tokens_do_not_show_in_debug_output() {
        assert!(!format!("{:?}", contexts()).contains("dev-token"));
    }
}
