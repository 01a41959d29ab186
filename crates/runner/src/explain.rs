//! What a customer's security team wants to know, told offline from the state directory.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::seal::vault::{self, Tools};
use crate::session::{HEALTH_DIR, StateDir};
use crate::watcher::SUMMARY;
use crate::{confine::limits, confine::shim};

/// Everything as one value; `text` draws it.
pub fn explain(state: &StateDir) -> anyhow::Result<Value> {
    let session = state.session()?;
    let history: Vec<_> = state.history().into_iter().rev().take(20).collect();
    let (cgroups_complete, cgroups) = limits::available();
    let host = json!({
        "user_id": rustix::process::geteuid().as_raw(),
        "limits": cgroups,
        "limits_complete": cgroups_complete,
        "landlock": shim::landlock_available(),
    });
    let disabled = state.disabled_since();
    let Some(s) = session else {
        let key = install_key(&Tools::default(), state.path());
        return Ok(
            json!({ "joined": false, "state_dir": state.path(), "disabled_since": disabled, "install_key": key, "host": host }),
        );
    };
    Ok(json!({
        "joined": true,
        "state_dir": state.path(),
        "runner": { "id": s.runner_id, "name": s.name, "kind": s.kind, "org_id": s.org_id, "install_id": s.install_id, "generation": s.generation, "joined_at": s.joined_at },
        "running_pid": state.holder(),
        "disabled_since": disabled,
        "trusted_keys": s.trust,
        "hosts": [s.url],
        "metrics_listen": s.metrics_listen,
        "proxies": proxies(&s.url),
        "identity": identity(s.user_id.unwrap_or_else(|| rustix::process::geteuid().as_raw())),
        "runs_as_root": s.user_id == Some(0),
        "ad_hoc_actions": !s.no_ad_hoc,
        "cluster": cluster(&s.tools),
        "registry": registry(&s.tools),
        "secret_store": secret_store(&s.tools, state.path()),
        "observes": observes(state.path()),
        "install_key": install_key(&s.tools, state.path()),
        "install_key_advice": vault::backup_advice(&s.tools, state.path()),
        "job_groups": s.settings.groups,
        "settings": s.settings,
        "timing": s.timing,
        "extra_paths_for_scripts": s.allow_paths,
        "host": host,
        "last": history,
    }))
}

/// The user's name, where this host knows one.
fn identity(user_id: u32) -> String {
    let users = fs_err::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user_id.to_string()).then(|| format!("`{name}`, "))
    });
    format!("user {}user id {user_id} of this host, and no cloud role", name.unwrap_or_default())
}

/// The cluster that jobs reach through this runner.
fn cluster(tools: &Tools) -> String {
    match &tools.kubeconfig {
        Some(path) => format!("what the kubeconfig {} lets into", path.display()),
        None if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => "its own, as the pod's service account".into(),
        None => "none by itself; an app's sandbox may put one out".into(),
    }
}

/// Where images are copied to.
fn registry(tools: &Tools) -> String {
    match &tools.registry {
        Some(registry) => format!("{registry}: images are copied there"),
        None => "none by itself: pods pull images from the control plane's, with a login that the runner renews".into(),
    }
}

/// Where the runner reads secrets.
fn secret_store(tools: &Tools, state_dir: &std::path::Path) -> String {
    let place = tools.secret_store.clone();
    let place = place.unwrap_or_else(|| crate::secret_store::folder(state_dir).display().to_string());
    format!("{place}; values go to the cluster only, never to the control plane")
}

/// What is observed, as the process that does it has noted.
fn observes(state_dir: &std::path::Path) -> Value {
    let place = state_dir.join(HEALTH_DIR).join(SUMMARY);
    let told = fs_err::read(place).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    told.map_or_else(|| json!([]), |mut told| told["components"].take())
}

/// One component that is observed, in a line.
fn observed(component: &Value) -> String {
    let name = component["name"].as_str().unwrap_or_default();
    let probes = component["probes"].as_array().into_iter().flatten();
    let probes: Vec<String> = probes
        .map(|probe| match probe["command"].as_array() {
            Some(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                format!("runs `{}`", words.join(" "))
            }
            None => format!("asks {}", probe["url"].as_str().unwrap_or_default()),
        })
        .collect();
    let objects = format!("{} objects of component {name}", component["objects"]);
    match probes.is_empty() {
        true => objects,
        false => format!("{objects}; {}", probes.join(", ")),
    }
}

/// Where the key is that seals states, plans and sensitive outputs.
fn install_key(tools: &Tools, state_dir: &std::path::Path) -> String {
    match &tools.install_key_command {
        Some(command) => format!("printed by `{command}`"),
        None => {
            let place = tools.key_file(state_dir);
            let there = if place.exists() {
                ""
            } else {
                " (not there. A new install gets one with the first job that needs it; for an install that was used before, restore its key with `ferry-runner key restore FILE`)"
            };
            format!("{}{there}", place.display())
        }
    }
}

fn proxies(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    crate::net::proxy_for(&url, |name| std::env::var(name).ok())
}

fn listens_on(metrics: &Value) -> String {
    match metrics.as_str().unwrap_or_default() {
        "" => "no port".into(),
        address => format!("{address}, where it shows its own counters (/metrics), and nothing else"),
    }
}

pub fn text(e: &Value) -> String {
    let mut out = String::new();
    let mut row = |key: &str, value: String| {
        let _ = writeln!(out, "{key:<22} {value}");
    };
    let plain = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    row("state directory", plain(&e["state_dir"]));
    if e["joined"] == false {
        row(
            "session",
            "none: this runner has not joined a control plane; it connects to nothing and runs nothing".into(),
        );
    } else {
        let r = &e["runner"];
        row("runner", format!("{} ({} runner {})", plain(&r["name"]), plain(&r["kind"]), plain(&r["id"])));
        row("session", format!("generation {}, joined {}", r["generation"], plain(&r["joined_at"])));
        row("process", e["running_pid"].as_i64().map_or_else(|| "not running".into(), |p| format!("running, pid {p}")));
    }
    row(
        "switched",
        e["disabled_since"].as_str().map_or_else(
            || "on (`ferry-runner disable` switches it off)".into(),
            |since| format!("OFF since {since}: takes no jobs (`ferry-runner enable` switches it on)"),
        ),
    );
    row("install's key", plain(&e["install_key"]));
    if let Some(advice) = e["install_key_advice"].as_str() {
        row("", format!("WARNING: {advice}"));
    }
    if e["cluster"].is_string() {
        row("Kubernetes cluster", plain(&e["cluster"]));
        row("images", plain(&e["registry"]));
        row("secrets", plain(&e["secret_store"]));
    }
    if e["joined"] == true {
        for key in e["trusted_keys"].as_array().into_iter().flatten() {
            row("trusts key", format!("{}; jobs signed by any other key are refused", plain(key)));
        }
        for host in e["hosts"].as_array().into_iter().flatten() {
            row("talks to", format!("{}, outbound only", plain(host)));
        }
        row("listens on", listens_on(&e["metrics_listen"]));
        if let Some(proxy) = e["proxies"].as_str() {
            row("through proxy", proxy.to_owned());
        }
        let health = e["observes"].as_array().cloned().unwrap_or_default();
        row(
            "observes health",
            match health.is_empty() {
                true => "of nothing".into(),
                false => "and reports verdicts, names of objects and reasons, masked:".into(),
            },
        );
        for component in &health {
            row("", observed(component));
        }
        row("works as", plain(&e["identity"]));
        if e["runs_as_root"] == true {
            row("", "WARNING: this user is root; run the runner as its own user (docs/operations.md)".into());
        }
        for path in e["extra_paths_for_scripts"].as_array().into_iter().flatten() {
            row("scripts may also use", plain(path));
        }
        let ad_hoc = if e["ad_hoc_actions"] == true {
            "allowed (`--no-ad-hoc` refuses them)"
        } else {
            "REFUSED: only scripts that are part of the app's config are run"
        };
        row("ad hoc actions", ad_hoc.into());
        for (group, slots) in e["job_groups"].as_object().into_iter().flatten() {
            row("takes jobs of group", format!("{group}, {slots} at a time"));
        }
        row("keeps free on disk", format!("{} MiB", e["settings"]["disk_floor_bytes"].as_u64().unwrap_or(0) >> 20));
    }
    row("limits of scripts", plain(&e["host"]["limits"]));
    let confined = if e["host"]["landlock"] == true {
        "landlock: scripts can't read the runner's keys, other jobs' files or other processes' environment"
    } else {
        "MISSING: this kernel has no landlock; scripts can read what their user can"
    };
    row("confinement", confined.into());
    if e["joined"] == true {
        let last = e["last"].as_array().cloned().unwrap_or_default();
        row("ran last", if last.is_empty() { "nothing yet".into() } else { format!("{} executions:", last.len()) });
        for line in last {
            let name = line["name"].as_str().map(|n| format!(" `{n}`")).unwrap_or_default();
            let text =
                format!("{} {}{name} {}", plain(&line["time"]), plain(&line["job_type"]), plain(&line["outcome"]));
            row("", text);
        }
    }
    out
}
