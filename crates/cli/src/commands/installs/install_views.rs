//! What there is on an install: its components, what it does by the clock, what policies said; and its end.

use std::collections::BTreeMap;

use api::client::Client;
use model::secrets::SecretOutput;

use crate::args::{Limit, Yes};
use crate::commands::confirm;
use crate::commands::{Kind, explain};
use crate::error::Result;
use crate::output::{Output, cell, dim, id, status, strong};

pub(crate) async fn components(client: &Client, out: &Output, install: &str) -> Result<()> {
    let found = match client.install_components(install).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    let headers = ["NAME", "STATUS", "?TYPE", "?VERSION", "?LAST DEPLOY", "?WHEN"];
    out.list(&found, "the app of this install has no components", &headers, |component| {
        let own = component.component.as_ref();
        let last = component.install_deploys.first();
        vec![
            strong(own.map_or("", |own| own.name.as_str())),
            match (component.enabled, component.drifted) {
                (false, _) if matches!(component.status.as_str(), "pending" | "inactive") => dim("left out"),
                // What has failed, or is unknown, is worse than a difference.
                (_, true) if component.status == "active" => status("drifted"),
                (_, _) => status(&component.status),
            },
            cell(own.map_or("", |own| own.component_type.as_str())),
            cell(if component.config_version > 0 { component.config_version.to_string() } else { String::new() }),
            match last {
                None => dim("never"),
                Some(last) if last.status == "cancelled" && last.planned_at.is_none() => dim("not attempted"),
                Some(last) => status(&last.status),
            },
            last.map_or_else(|| dim("-"), |last| dim(out.time(last.updated_at))),
        ]
    })?;
    Ok(())
}

pub(crate) async fn secrets(client: &Client, out: &Output, install: &str) -> Result<()> {
    let state = match client.install_state(install, None).await {
        Ok(found) => found.state,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    let found: BTreeMap<String, SecretOutput> = serde_json::from_value(state["secrets"].clone()).unwrap_or_default();
    let found: Vec<SecretOutput> = found.into_values().collect();
    let headers = ["NAME", "VALUE", "WRITTEN", "?TO", "OLD VALUE IN"];
    let none = "no secrets were copied yet: they are when the install is provisioned or deployed, and by `ferry installs sync-secrets`";
    out.list(&found, none, &headers, |secret| {
        let targets = secret.targets.iter().map(|to| format!("{}/{}:{}", to.namespace, to.name, to.key));
        vec![
            strong(&secret.name),
            if secret.exists { cell(format!("{} bytes", secret.length)) } else { dim("none") },
            secret.timestamp.map_or_else(|| dim("-"), |at| cell(out.time(at))),
            dim(targets.collect::<Vec<_>>().join(", ")),
            cell(secret.readers.join(", ")),
        ]
    })?;
    Ok(())
}

pub(crate) async fn schedules(client: &Client, out: &Output, install: &str) -> Result<()> {
    let found = match client.schedules(install).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    let headers = ["WHAT", "CRON (UTC)", "NEXT", "?LAST", "?WORKFLOW", "NOTE"];
    let none = "no schedules: actions with a `cron` trigger and components with a `drift_schedule` have one, a moment after the install is created";
    out.list(&found, none, &headers, |schedule| {
        let what = match (schedule.kind.as_str(), schedule.name.as_str()) {
            ("drift", "") => "drift of the sandbox".to_owned(),
            ("drift", name) => format!("drift of {name}"),
            (_, name) => format!("action {name}"),
        };
        vec![
            strong(what),
            cell(&schedule.cron),
            cell(out.time(schedule.next_at)),
            schedule.last_at.map_or_else(|| dim("never"), |at| dim(out.time(at))),
            id(&schedule.workflow_id).dim(),
            cell(&schedule.note),
        ]
    })?;
    Ok(())
}

pub(crate) async fn policies(client: &Client, out: &Output, install: &str, limit: Limit) -> Result<()> {
    let mut found = match client.policy_reports(install, limit.fetch()).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    let more = limit.cut(&mut found);
    if out.json {
        return Ok(out.json(&found)?);
    }
    let headers = ["STEP", "POLICIES", "DENIED", "WARNED", "?WHEN", "?WORKFLOW"];
    out.list(&found, "no policy reports yet", &headers, |report| {
        vec![
            strong(&report.step),
            cell(report.policy_count),
            cell(report.deny_count),
            cell(report.warn_count),
            dim(out.time(report.evaluated_at)),
            id(&report.workflow_id).dim(),
        ]
    })?;
    let said = found.iter().flat_map(|report| report.violations.iter().map(move |said| (report, said)));
    let rows: Vec<_> = said
        .map(|(report, said)| {
            vec![status(&said.severity), strong(&said.policy_name), cell(&said.message), dim(&report.step)]
        })
        .collect();
    if !rows.is_empty() {
        out.table(&["VERDICT", "POLICY", "MESSAGE", "?STEP"], rows)?;
    }
    out.more(more);
    Ok(())
}

pub(crate) async fn forget(client: &Client, out: &Output, install: &str, force: bool, yes: Yes) -> Result<()> {
    let question = format!(
        "delete the records of install `{install}`, its state and its history? Its runner can't connect any more; nothing in the customer's account changes"
    );
    confirm(out, yes, &format!("forgetting install `{install}`"), &question)?;
    match client.forget_install(install, force).await {
        Ok(answer) if out.json => out.json(&answer)?,
        Ok(_) => out.success(&format!("install `{install}` is forgotten")),
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    }
    Ok(())
}
