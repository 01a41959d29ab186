//! The program: how it is started, and what it is told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use fs_err as fs;
use kubernetes::PullSecret;
use mask::Masks;
use model::kubernetes::HelmSpec;
use serde_json::{Value, json};

use super::super::action::{StepFailure, base_environment};
use super::super::kubernetes::api::Api;
use super::super::kubernetes::cluster;
use super::super::kubernetes::pulls::ImagePulls;
use super::super::{Run, artifact, tool};
use super::hooks::{self, Hook};
use super::records::{self, Known, Record};
use super::release::{self, Rendered};
use crate::confine::process::{self, Child, Ended, Hear, Interrupt, Stop};

/// What helm may print where it is read.
const OUTPUT_BYTES: u64 = 256 << 20;
/// What of standard error is remembered.
const HEARD_BYTES_MAX: usize = 16 << 10;
const ERROR_CHARS_MAX: usize = 600;
/// Lets what was approved pass, and nothing else. Helm hands it what it is about to apply, and takes what it returns.
const GATE: &str = "#!/bin/sh\nset -eu\ncat >\"$RENDERED_MANIFEST.new\"\nif [ -e \"$RENDERED_MANIFEST\" ]; then\n  cmp -s \"$RENDERED_MANIFEST\" \"$RENDERED_MANIFEST.new\" || { echo 'what helm is about to apply is not what was approved' >&2; exit 1; }\nelse\n  mv \"$RENDERED_MANIFEST.new\" \"$RENDERED_MANIFEST\"\nfi\nif [ -e \"$RENDERED_MANIFEST.returned\" ]; then cat \"$RENDERED_MANIFEST.returned\"; else cat \"$RENDERED_MANIFEST\"; fi\n";
/// Names the file of what was approved to it.
const RENDERED: &str = "RENDERED_MANIFEST";
const GATE_NAME: &str = "ferry-gate";
/// How helm says that the cluster does not serve a kind.
const LACKS_DEFINITIONS: &str = "ensure CRDs are installed first";

pub(super) struct Helm {
    program: String,
    env: BTreeMap<String, String>,
    work: PathBuf,
    /// The namespace and the release.
    of: (String, String),
    values: Vec<String>,
    /// Whole numbers that helm would round if it read them from a file.
    numbers: Vec<String>,
    /// From version 4 on, flags have other names and post-renderers are plugins.
    is_4: bool,
    /// A file of releases that count for a render instead of those in the cluster.
    renders_from: Option<String>,
    creates_namespace: bool,
    pull_secret: Option<PullSecret>,
}

impl Helm {
    pub(super) fn new(
        run: &Run<'_>,
        job: &HelmSpec,
        config: &Value,
        pulls: Option<&ImagePulls>,
    ) -> Result<Self, StepFailure> {
        let program = tool::need("helm", "a chart")?;
        let work = run.host.dir.work();
        for folder in ["tmp", "sources", "helm/plugins"] {
            fs::create_dir_all(work.join(folder))?;
        }
        let mut env = base_environment(|name| std::env::var(name).ok(), &work);
        let place = |folder: &str| work.join("helm").join(folder).to_string_lossy().into_owned();
        for (name, value) in [
            ("HELM_CACHE_HOME", place("cache")),
            ("HELM_CONFIG_HOME", place("config")),
            ("HELM_DATA_HOME", place("data")),
            ("HELM_PLUGINS", place("plugins")),
            ("HELM_DRIVER", job.storage.as_str().to_owned()),
            ("HELM_MAX_HISTORY", "10".to_owned()),
            ("KUBECONFIG", cluster::file(run, config)?.to_string_lossy().into_owned()),
        ] {
            env.insert(name.into(), value);
        }
        let mut values = Vec::new();
        let mut files = Vec::new();
        for (n, text) in job.values_files.iter().enumerate() {
            let parsed: Value = kubernetes::read_yaml(text)
                .map_err(|e| StepFailure::new("bad_values", format!("values file {} is not valid YAML: {e}", n + 1)))?;
            files.push(parsed);
            let file = work.join(format!("values-{n}.yaml"));
            tool::private(&file, text)?;
            values.push(file.to_string_lossy().into_owned());
        }
        if !job.values.is_empty() {
            let set = kubernetes::set_values(&files, &job.values)
                .map_err(|e| StepFailure::new("bad_values", e.to_string()))?;
            let file = work.join("values-set.yaml");
            // JSON is YAML.
            tool::private(&file, &set.to_string())?;
            values.push(file.to_string_lossy().into_owned());
        }
        let mut over = Value::Null;
        if !job.values_override.is_empty() {
            over = kubernetes::read_yaml(&job.values_override).map_err(|e| {
                StepFailure::new("bad_values", format!("the install's override is not valid YAML: {e}"))
            })?;
            if !over.is_object() && !over.is_null() {
                return Err(StepFailure::new("bad_values", "the install's override is not a map of values".to_owned()));
            }
            let file = work.join("values-override.yaml");
            tool::private(&file, &job.values_override)?;
            values.push(file.to_string_lossy().into_owned());
        }
        // Helm lets these win over all files, also over what the install lays over them.
        let numbers = job.values.iter().filter(|(_, text)| kubernetes::is_rounded_in_files(text));
        let numbers = numbers.filter(|(key, _)| !kubernetes::is_overridden(&over, key));
        let numbers = numbers.map(|(key, text)| format!("{key}={text}")).collect();
        let program = program.to_string_lossy().into_owned();
        let is_4 = version_of(&program).starts_with("v4");
        let helm = Self {
            program,
            env,
            work,
            of: (job.namespace.clone(), job.release.clone()),
            values,
            numbers,
            is_4,
            renders_from: None,
            creates_namespace: false,
            pull_secret: pulls.map(|pulls| pulls.secret.clone()),
        };
        helm.write_gate()?;
        Ok(helm)
    }

    fn write_gate(&self) -> std::io::Result<()> {
        let dir = self.work.join("helm/plugins").join(GATE_NAME);
        fs::create_dir_all(&dir)?;
        let script = self.gate();
        fs::write(&script, GATE)?;
        fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
        if self.is_4 {
            let plugin = json!({
                "apiVersion": "v1", "type": "postrenderer/v1", "name": GATE_NAME, "version": "1.0.0", "runtime": "subprocess",
                "runtimeConfig": { "platformCommand": [{ "command": "${HELM_PLUGIN_DIR}/gate.sh" }] },
            });
            fs::write(dir.join("plugin.yaml"), plugin.to_string())?;
        }
        Ok(())
    }

    fn gate(&self) -> PathBuf {
        self.work.join("helm/plugins").join(GATE_NAME).join("gate.sh")
    }

    pub(super) fn chart(&self) -> PathBuf {
        self.work.join("sources/artifact.tgz")
    }

    pub(super) async fn fetch_chart(&self, run: &mut Run<'_>, job: &HelmSpec) -> Result<(), StepFailure> {
        artifact::layer(run, &job.repository, &job.digest).await.map(drop)
    }

    fn argv(&self, words: &[&str]) -> Vec<String> {
        let (namespace, _) = &self.of;
        let fixed = ["--namespace", namespace.as_str()];
        std::iter::once(self.program.as_str()).chain(words.iter().copied()).chain(fixed).map(str::to_owned).collect()
    }

    /// Runs helm to its end. What it says of a failure is the failure.
    async fn run(
        &self,
        run: &Run<'_>,
        stage: usize,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        mut stop: tokio::sync::watch::Receiver<Option<Stop>>,
    ) -> Result<(), StepFailure> {
        use std::os::unix::process::ExitStatusExt as _;
        let what = argv.get(1).cloned().unwrap_or_default();
        let heard = RefCell::new(Overheard::default());
        let child = Child {
            interrupt: Interrupt::Leader,
            hear_errors: Some(&heard),
            ..Child::new(argv, self.work.clone(), env, stage)
        };
        match process::run(&child, &run.host, &mut stop).await? {
            Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
            Ended::Exited(status) if status.success() => Ok(()),
            Ended::Exited(status) => {
                let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
                // What is cut before it is masked may still show a part of a secret.
                let why = heard.borrow().error(&run.host.secrets.masks());
                let message = if why.is_empty() {
                    format!("`helm {what}` failed; the log says why")
                } else {
                    format!("`helm {what}` failed: {why}")
                };
                Err(StepFailure::Failed { error: model::JobError::new("helm_failed", message), exit_code: Some(code) })
            }
        }
    }

    /// Runs helm and reads what it prints.
    async fn output(
        &self,
        run: &Run<'_>,
        stage: usize,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
    ) -> Result<String, StepFailure> {
        use std::io::Read as _;
        let file = self.work.join("tmp/helm-output");
        let place = file.to_string_lossy().into_owned();
        let shell = ["/bin/sh", "-c", "out=$1; shift; umask 077; exec \"$@\" >\"$out\"", "sh", &place];
        let what = argv.get(1).cloned().unwrap_or_default();
        let argv = shell.into_iter().map(str::to_owned).chain(argv).collect();
        let ran = self.run(run, stage, argv, env, run.stop.clone()).await;
        let mut text = String::new();
        let read = fs::File::open(&file).and_then(|f| f.take(OUTPUT_BYTES).read_to_string(&mut text));
        let _ = fs::remove_file(&file);
        match ran {
            Err(StepFailure::Failed { mut error, exit_code }) => {
                error.message = error.message.replace("`helm -c`", &format!("`helm {what}`"));
                Err(StepFailure::Failed { error, exit_code })
            }
            Err(stopped) => Err(stopped),
            Ok(()) => {
                read?;
                Ok(text)
            }
        }
    }

    fn upgrade_words(&self, job: &HelmSpec) -> Vec<String> {
        let chart = self.chart().to_string_lossy().into_owned();
        let mut words: Vec<String> =
            ["upgrade", &self.of.1, &chart, "--install", "--reset-values"].map(str::to_owned).into();
        if self.creates_namespace {
            words.push("--create-namespace".into());
        }
        words.extend(self.values_words());
        let gate = if self.is_4 { GATE_NAME.to_owned() } else { self.gate().to_string_lossy().into_owned() };
        words.extend(["--post-renderer".to_owned(), gate]);
        if job.take_ownership {
            words.push("--take-ownership".into());
        }
        if job.skip_crds {
            words.push("--skip-crds".into());
        }
        words
    }

    fn values_words(&self) -> Vec<String> {
        let files = self.values.iter().flat_map(|file| ["--values".to_owned(), file.clone()]);
        let numbers = self.numbers.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]);
        files.chain(numbers).collect()
    }

    fn full(&self, words: &[String]) -> Vec<String> {
        self.argv(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Gets ready for renders beside these records. Those that are stuck would make helm refuse, so it gets the others as a file.
    pub(super) fn prepare(&mut self, records: &[Record], creates_namespace: bool) -> Result<(), StepFailure> {
        self.creates_namespace = creates_namespace;
        let known: Vec<Known> = records.iter().map(|record| record.known.clone()).collect();
        let usable = known.len() - records::stuck(&known).len();
        if usable < known.len() {
            let releases: Vec<&Value> = records[..usable].iter().map(|record| &record.content).collect();
            let file = self.work.join("tmp/releases.json");
            tool::private(&file, &json!(releases).to_string())?;
            self.renders_from = Some(file.to_string_lossy().into_owned());
        }
        Ok(())
    }

    /// What helm would apply, against the real cluster, without applying it.
    pub(super) async fn render(
        &self,
        run: &Run<'_>,
        api: &Api,
        job: &HelmSpec,
        stage: usize,
        install: bool,
    ) -> Result<Rendered, StepFailure> {
        let place = self.work.join("tmp/rendered.yaml");
        let _ = fs::remove_file(&place);
        let mut words = self.upgrade_words(job);
        words.extend(["--dry-run=server", "--output", "json"].map(str::to_owned));
        let mut env = self.env.clone();
        env.insert(RENDERED.into(), place.to_string_lossy().into_owned());
        if let Some(releases) = &self.renders_from {
            env.insert("HELM_DRIVER".into(), "memory".into());
            env.insert("HELM_MEMORY_DRIVER_DATA".into(), releases.clone());
        }
        let crds = if install && !job.skip_crds {
            let chart = self.chart().to_string_lossy().into_owned();
            self.output(run, stage, self.argv(&["show", "crds", &chart]), self.env.clone()).await?
        } else {
            String::new()
        };
        let mut manifest = None;
        let hooks = match self.output(run, stage, self.full(&words), env).await {
            Ok(text) => {
                let bad = |e: serde_json::Error| {
                    StepFailure::new("helm_failed", format!("the dry run can't be read: line {}", e.line()))
                };
                let told: Value = serde_json::from_str(&text).map_err(bad)?;
                manifest = told["manifest"].as_str().map(str::to_owned);
                hooks::read(&told["hooks"])?
            }
            // A dry run installs no definitions, and then knows no objects of theirs. What it renders has passed the gate before.
            Err(StepFailure::Failed { error, .. })
                if !crds.trim().is_empty() && error.message.contains(LACKS_DEFINITIONS) =>
            {
                self.hooks_offline(run, api, job, stage).await?
            }
            Err(failure) => return Err(failure),
        };
        // A chart of hooks alone renders nothing else.
        let gated = fs::read_to_string(&place).unwrap_or_default();
        // From version 4 on, the gate sees hooks, too.
        let manifest = manifest.unwrap_or_else(|| gated.clone());
        let Some(secret) = &self.pull_secret else {
            let gated = (gated != manifest).then_some(gated);
            return Ok(Rendered { manifest, gated, returned: None, hooks, crds });
        };
        let add = |text: &str| secret.add_to_text(text).map_err(|e| StepFailure::new("bad_manifest", e.to_string()));
        let (manifest, returned) = (add(&manifest)?, add(&gated)?);
        let returned = (returned != gated).then_some(returned);
        let gated = (gated != manifest).then_some(gated);
        Ok(Rendered { manifest, gated, returned, hooks, crds })
    }

    /// The hooks of a chart, rendered without asking the cluster whether it knows their kinds.
    async fn hooks_offline(
        &self,
        run: &Run<'_>,
        api: &Api,
        job: &HelmSpec,
        stage: usize,
    ) -> Result<Vec<Hook>, StepFailure> {
        let chart = self.chart().to_string_lossy().into_owned();
        let (version, served) = api.capabilities().await.map_err(|e| e.of("list", "what it serves"))?;
        let mut words =
            ["template", &job.release, &chart, "--dry-run=server", "--kube-version", &version, "--api-versions"]
                .map(str::to_owned)
                .to_vec();
        words.push(served.join(","));
        words.extend(self.values_words());
        let text = self.output(run, stage, self.full(&words), self.env.clone()).await?;
        release::hooks(&text)
    }

    /// Applies exactly what was rendered for the plan.
    pub(super) async fn upgrade(
        &self,
        run: &Run<'_>,
        job: &HelmSpec,
        rendered: &Rendered,
        stage: usize,
        until: Instant,
        stop: tokio::sync::watch::Receiver<Option<Stop>>,
    ) -> Result<(), StepFailure> {
        let approved = self.work.join("approved.yaml");
        tool::private(&approved, rendered.gated.as_ref().unwrap_or(&rendered.manifest))?;
        if let Some(returned) = &rendered.returned {
            tool::private(&self.work.join("approved.yaml.returned"), returned)?;
        }
        let mut words = self.upgrade_words(job);
        // Hooks take their time, too.
        words.extend(["--timeout".to_owned(), left(until)]);
        if job.rollout.wait {
            words.push("--wait".into());
        }
        if job.rollout.rollback {
            words.push(if self.is_4 { "--rollback-on-failure" } else { "--atomic" }.to_owned());
        }
        let mut env = self.env.clone();
        env.insert(RENDERED.into(), approved.to_string_lossy().into_owned());
        self.run(run, stage, self.full(&words), env, stop).await
    }

    pub(super) async fn uninstall(
        &self,
        run: &Run<'_>,
        job: &HelmSpec,
        stage: usize,
        until: Instant,
    ) -> Result<(), StepFailure> {
        let words = ["uninstall", &job.release, "--ignore-not-found", "--wait", "--timeout", &left(until)];
        self.run(run, stage, self.argv(&words), self.env.clone(), run.stop.clone()).await
    }
}

/// The time that is left, as helm takes it.
fn left(until: Instant) -> String {
    format!("{}s", until.saturating_duration_since(Instant::now()).as_secs().max(1))
}

/// Asked once for each file.
fn version_of(program: &str) -> String {
    let asked =
        std::process::Command::new(program).args(["version", "--template", "{{.Version}}"]).env_clear().output();
    asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Hears what helm says of a failure; the log gets it as it is.
#[derive(Default)]
struct Overheard(Vec<u8>);

impl Overheard {
    fn error(&self, masks: &Masks) -> String {
        let text = masks.mask_text(&String::from_utf8_lossy(&self.0));
        let at = text.find("Error: ").map_or(0, |at| at + "Error: ".len());
        let text = text[at..].split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(ERROR_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    }
}

impl Hear for Overheard {
    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let room = HEARD_BYTES_MAX.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.to_vec()
    }

    fn end(&mut self) -> Vec<u8> {
        Vec::new()
    }
}
