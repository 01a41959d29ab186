//! Which cluster a job works on, and how to get in. Each job gets a kubeconfig of its own, with one context and everything inline.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use fs_err as fs;
use kube::config::{KubeConfigOptions, Kubeconfig};
use model::WorkspaceId;
use model::kubernetes::ClusterSpec;
use serde_json::{Value, json};

use super::super::action::StepFailure;
use super::super::{Run, tool};
use super::api::Api;

/// An answer, or what follows of it, comes within this.
const READ: Duration = Duration::from_secs(60);
/// Where a pod finds its service account.
const POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(crate) fn failure(text: impl Into<String>) -> StepFailure {
    StepFailure::new("no_cluster", text)
}

/// The kubeconfig of a job, as JSON.
pub(in crate::execute) fn kubeconfig(run: &Run<'_>, cluster: &ClusterSpec) -> Result<Value, StepFailure> {
    config_of(run.context.tools.kubeconfig.as_deref(), cluster)
}

/// The kubeconfig for a cluster; `given` is the runner's own.
pub(crate) fn config_of(given: Option<&Path>, cluster: &ClusterSpec) -> Result<Value, StepFailure> {
    match cluster {
        ClusterSpec::Runner {} => own(given),
        ClusterSpec::Output { origin, kubeconfig: Some(text), .. } => {
            let parsed = kubernetes::read_yaml(text)
                .map_err(|e| failure(format!("the kubeconfig that {origin} puts out can't be read: {e}")))?;
            // It comes from the vendor's module: it may not name files or programs of this host.
            let flat =
                flat(parsed, None).map_err(|e| failure(format!("the kubeconfig that {origin} puts out: {e}")))?;
            let user = &flat["users"][0]["user"];
            match ["exec", "auth-provider", "tokenFile"].into_iter().find(|key| !user[*key].is_null()) {
                Some(key) => Err(failure(format!(
                    "the kubeconfig that {origin} puts out has `{key}`, which would read or start something on the runner's host: use a token or a certificate"
                ))),
                None => Ok(flat),
            }
        }
        ClusterSpec::Output { origin, endpoint, certificate_authority_data, token, .. } => {
            let user = match token {
                Some(token) => json!({ "token": token }),
                // The cluster that the runner itself is let into may be this one.
                None => own(given)
                    .ok()
                    .filter(|own| server(own) == endpoint.trim_end_matches('/'))
                    .map(|own| own["users"][0]["user"].clone())
                    .ok_or_else(|| {
                        failure(format!(
                            "the output `cluster` of {origin} names no credentials: let it put out `token` or `kubeconfig`, or start the runner with a `--kubeconfig` for {endpoint}"
                        ))
                    })?,
            };
            let mut known = json!({ "server": endpoint });
            if !certificate_authority_data.is_empty() {
                known["certificate-authority-data"] = json!(certificate_authority_data);
            }
            Ok(document(known, user, "default"))
        }
    }
}

fn server(config: &Value) -> &str {
    config["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default().trim_end_matches('/')
}

fn document(cluster: Value, user: Value, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "ferry",
        "clusters": [{ "name": "ferry", "cluster": cluster }],
        "users": [{ "name": "ferry", "user": user }],
        "contexts": [{ "name": "ferry", "context": { "cluster": "ferry", "user": "ferry", "namespace": namespace } }],
    })
}

/// The runner's own cluster: the file that it was given, or the service account of its pod.
fn own(given: Option<&Path>) -> Result<Value, StepFailure> {
    if let Some(path) = given {
        let text =
            fs::read_to_string(path).map_err(|e| failure(format!("the runner's kubeconfig can't be read: {e}")))?;
        let parsed = kubernetes::read_yaml(&text).map_err(|e| failure(format!("{}: {e}", path.display())))?;
        return flat(parsed, path.parent()).map_err(|e| failure(format!("{}: {e}", path.display())));
    }
    let pod = Path::new(POD);
    let host = std::env::var("KUBERNETES_SERVICE_HOST").ok();
    let (Some(host), Ok(token)) = (host, fs::read_to_string(pod.join("token"))) else {
        return Err(failure(
            "the runner has no cluster: start it with `--kubeconfig FILE`, run it in a pod with a service account, or let the sandbox put out `cluster`",
        ));
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let port = std::env::var("KUBERNETES_SERVICE_PORT").unwrap_or_else(|_| "443".into());
    let authority = fs::read(pod.join("ca.crt")).map(|ca| B64.encode(ca)).unwrap_or_default();
    let cluster = json!({ "server": format!("https://{host}:{port}"), "certificate-authority-data": authority });
    Ok(document(cluster, json!({ "token": token.trim() }), "default"))
}

/// A kubeconfig with its current context alone, and what it names as files inline. Without a directory no file is read.
fn flat(config: Value, dir: Option<&Path>) -> Result<Value, String> {
    let named = |list: &str, of: &str, name: &Value| {
        let found = config[list].as_array().into_iter().flatten().find(|item| item["name"] == *name);
        found
            .map(|item| item[of].clone())
            .ok_or_else(|| format!("it has no {of} `{}`", name.as_str().unwrap_or_default()))
    };
    let context = named("contexts", "context", &config["current-context"])?;
    let mut cluster = named("clusters", "cluster", &context["cluster"])?;
    let mut user = named("users", "user", &context["user"]).unwrap_or_else(|_| json!({}));
    inline(&mut cluster, "certificate-authority", dir)?;
    for key in ["client-certificate", "client-key", "tokenFile"] {
        inline(&mut user, key, dir)?;
    }
    Ok(document(cluster, user, context["namespace"].as_str().unwrap_or("default")))
}

/// Puts the content of a file where its name stands.
fn inline(table: &mut Value, key: &str, dir: Option<&Path>) -> Result<(), String> {
    let Some(file) = table[key].as_str().map(str::to_owned) else { return Ok(()) };
    let Some(dir) = dir else { return Err(format!("it names the file `{file}`: put its content inline")) };
    let bytes = fs::read(dir.join(&file)).map_err(|e| e.to_string())?;
    let Some(fields) = table.as_object_mut() else { return Ok(()) };
    fields.remove(key);
    match key {
        "tokenFile" => fields.insert("token".into(), json!(String::from_utf8_lossy(&bytes).trim())),
        key => fields.insert(format!("{key}-data"), json!(B64.encode(bytes))),
    };
    Ok(())
}

/// The kubeconfig for programs that may use a cluster and need not: None where the runner has none of its own.
pub(in crate::execute) fn for_programs(
    run: &Run<'_>,
    cluster: Option<&ClusterSpec>,
) -> Result<Option<PathBuf>, StepFailure> {
    match cluster {
        None => Ok(None),
        Some(cluster) => match (kubeconfig(run, cluster), cluster) {
            (Ok(config), _) => file(run, &config).map(Some),
            (Err(_), ClusterSpec::Runner {}) => Ok(None),
            (Err(failure), ClusterSpec::Output { .. }) => Err(failure),
        },
    }
}

/// Writes the kubeconfig for the programs of a job.
pub(in crate::execute) fn file(run: &Run<'_>, config: &Value) -> Result<PathBuf, StepFailure> {
    let place = run.host.dir.work().join("kubeconfig.json");
    tool::private(&place, &config.to_string())?;
    Ok(place)
}

/// Opens the way to the API server for a component, and says which cluster that is.
pub(crate) async fn connect(config: &Value, component: &WorkspaceId) -> Result<Api, StepFailure> {
    open(config, format!("{}{component}", super::MANAGER_PREFIX)).await
}

/// The same under a given name, whose the fields are that it sets.
pub(crate) async fn open(config: &Value, manager: String) -> Result<Api, StepFailure> {
    Api::open(client(config, READ).await?, server(config).to_owned(), manager).await
}

async fn client(config: &Value, read_timeout: Duration) -> Result<kube::Client, StepFailure> {
    let parsed = Kubeconfig::from_yaml(&config.to_string())
        .map_err(|e| failure(format!("the kubeconfig can't be used: {e}")))?;
    let options = KubeConfigOptions::default();
    let mut made = kube::Config::from_custom_kubeconfig(parsed, &options)
        .await
        .map_err(|e| failure(format!("the kubeconfig can't be used: {e}")))?;
    made.connect_timeout = Some(Duration::from_secs(10));
    made.read_timeout = Some(read_timeout);
    made.write_timeout = Some(Duration::from_secs(60));
    kube::Client::try_from(made).map_err(|e| failure(format!("the kubeconfig can't be used: {e}")))
}

/// The way into a cluster for who only looks, and for long; `given` is the runner's own kubeconfig.
pub(crate) async fn observe(given: Option<&Path>, cluster: &ClusterSpec) -> Result<(Value, Api), StepFailure> {
    let config = config_of(given, cluster)?;
    let client = client(&config, super::WATCH + READ).await?;
    let api = Api::open(client, server(&config).to_owned(), String::new()).await?;
    Ok((config, api))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_becomes_its_current_context() {
        let dir = tempfile::tempdir().expect("dir");
        fs_err::write(dir.path().join("ca.crt"), "CA").expect("file");
        let config = json!({
            "current-context": "b",
            "contexts": [{ "name": "a", "context": { "cluster": "x", "user": "x" } },
                { "name": "b", "context": { "cluster": "y", "user": "y", "namespace": "shop" } }],
            "clusters": [{ "name": "y", "cluster": { "server": "https://y/", "certificate-authority": "ca.crt" } }],
            "users": [{ "name": "y", "user": { "token": "t" } }],
        });
        let flat_one = flat(config.clone(), Some(dir.path())).expect("config");
        assert_eq!(server(&flat_one), "https://y");
        assert_eq!(flat_one["clusters"][0]["cluster"]["certificate-authority-data"], "Q0E=");
        assert_eq!(flat_one["contexts"][0]["context"]["namespace"], "shop");
        assert!(flat(config, None).expect_err("a file").contains("ca.crt"));
        assert!(flat(json!({ "current-context": "z" }), None).expect_err("no context").contains("`z`"));
    }
}
