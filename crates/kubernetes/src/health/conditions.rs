//! Conditions: what many controllers say of their objects, in words that most of them share.

use serde_json::Value;

use super::{Health, Verdict};

/// These must be true.
const GOOD: [&str; 22] = [
    "Ready",
    "Available",
    "Healthy",
    "Synced",
    "Accepted",
    "Programmed",
    "ResolvedRefs",
    "Valid",
    "Established",
    "NamesAccepted",
    "Reconciled",
    "Installed",
    "Deployed",
    "Issued",
    "Bound",
    "Registered",
    "Configured",
    "Validated",
    "Resolved",
    "Online",
    "Connected",
    "Active",
];
/// The ends of names that mean the same, where none of those stands: `AllReplicasReady`, `ClusterAvailable`.
const GOOD_ENDS: [&str; 5] = ["Ready", "Available", "Synced", "Success", "Succeeded"];
/// Ends that are not reached yet.
const ENDS: [&str; 5] = ["Completed", "Complete", "Succeeded", "Finished", "Initialized"];
/// What is under way while it is true.
const WORK: [&str; 16] = [
    "Reconciling",
    "Issuing",
    "Running",
    "Updating",
    "Upgrading",
    "Installing",
    "Creating",
    "Initializing",
    "Deploying",
    "Provisioning",
    "Migrating",
    "Scaling",
    "Pending",
    "Terminating",
    "Restarting",
    "Starting",
];
/// The last word of what is bad while it is true.
const BAD: [&str; 20] = [
    "Stalled",
    "Errors",
    "Violations",
    "Denied",
    "Terminal",
    "Recoverable",
    "Failed",
    "Failing",
    "Failure",
    "Error",
    "Errored",
    "Degraded",
    "Unhealthy",
    "Invalid",
    "Fallback",
    "Rejected",
    "Conflicted",
    "Pressure",
    "Unavailable",
    "Exhausted",
];
/// The same where the first word says it: `InvalidSpec`, `NotReady`.
const BAD_FIRST: [&str; 3] = ["Invalid", "Not", "Non"];
/// In the reason of a condition that is false: it went wrong.
const WENT_WRONG: [&str; 14] = [
    "Failed",
    "Failure",
    "Failing",
    "Error",
    "Err",
    "Invalid",
    "Denied",
    "Rejected",
    "Unhealthy",
    "Exceeded",
    "Aborted",
    "Unable",
    "Cannot",
    "Refused",
];
/// In the reason of a condition that is false: it is not done yet.
const NOT_YET: [&str; 22] = [
    "Progress",
    "Progressing",
    "Pending",
    "Waiting",
    "Creating",
    "Installing",
    "Provisioning",
    "Updating",
    "Upgrading",
    "Initializing",
    "Initialising",
    "Starting",
    "Reconciling",
    "Deploying",
    "Yet",
    "Scheduling",
    "Requested",
    "Issuing",
    "Scaling",
    "Joining",
    "Bootstrapping",
    "Unknown",
];

struct Condition<'o> {
    name: &'o str,
    status: &'o str,
    reason: &'o str,
    message: &'o str,
}

impl Condition<'_> {
    fn health(&self, verdict: Verdict) -> Health {
        let why = match (self.reason, self.message) {
            ("", "") => String::new(),
            (reason, "") => format!(" ({reason})"),
            ("", message) => format!(": {message}"),
            (reason, message) => format!(" ({reason}): {message}"),
        };
        let status = if self.status.is_empty() { "not known" } else { self.status };
        Health::new(verdict, "conditions", format!("{} is {status}{why}", self.name))
    }

    fn is_good(&self) -> bool {
        GOOD.contains(&self.name) || self.name.ends_with("Healthy")
    }

    fn is_bad(&self) -> bool {
        let words = words(self.name);
        let (first, last) = (words.first().copied().unwrap_or_default(), words.last().copied().unwrap_or_default());
        match words.len() {
            0 => false,
            1 => BAD.contains(&last),
            // `NoErrors` is good news.
            _ => first != "No" && (BAD.contains(&last) || BAD_FIRST.contains(&first)),
        }
    }

    fn is_suspension(&self) -> bool {
        matches!(self.name, "Paused" | "Suspended" | "Hibernated" | "Hibernating") || self.name.ends_with("hibernation")
    }

    fn says(&self, some: &[&str]) -> bool {
        words(self.reason).iter().any(|word| some.contains(word))
    }
}

/// `CrashLoop` is two words, and so is `crash-loop`.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for part in text.split(|c: char| !c.is_alphanumeric()) {
        let mut start = 0;
        let bytes = part.as_bytes();
        for at in 1..bytes.len() {
            let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if bytes[at].is_ascii_uppercase() && (bytes[at - 1].is_ascii_lowercase() || next_is_lower) {
                found.push(&part[start..at]);
                start = at;
            }
        }
        found.push(&part[start..]);
    }
    found.retain(|word| !word.is_empty());
    found
}

/// The conditions of an object and of its parts; those that speak of an older generation are left out.
fn of(object: &Value) -> Vec<Condition<'_>> {
    let status = &object["status"];
    let parts = ["parents", "listeners", "ancestors"].into_iter();
    let parts = parts.flat_map(|list| status[list].as_array().into_iter().flatten());
    let lists = std::iter::once(status).chain(parts).filter_map(|part| part["conditions"].as_array());
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    lists
        .flatten()
        .filter(|condition| condition["observedGeneration"].as_i64().is_none_or(|seen| seen >= generation))
        .map(|condition| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default();
            Condition { name: text("type"), status: text("status"), reason: text("reason"), message: text("message") }
        })
        .collect()
}

/// None where no condition says anything that is known.
pub(super) fn judge(object: &Value) -> Option<Health> {
    let all = of(object);
    let has_any = object["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
    if all.is_empty() && has_any {
        let why = "its conditions are about an earlier change";
        return Some(Health::new(Verdict::Progressing, "generation", why));
    }
    let is_true = |it: &&Condition<'_>| it.status == "True";
    let is_false = |it: &&Condition<'_>| it.status == "False";
    // What is tried again after it failed is no progress.
    let work = all.iter().filter(is_true).find(|it| WORK.contains(&it.name) && !it.says(&["Retry", "Retrying"]));
    if let Some(bad) = all.iter().filter(is_true).find(|it| it.is_bad()) {
        return Some(bad.health(Verdict::Degraded));
    }
    let has_good = all.iter().any(Condition::is_good);
    let is_end = |it: &&Condition<'_>| ENDS.contains(&it.name);
    let is_good = |it: &&Condition<'_>| match has_good {
        true => it.is_good(),
        false => !is_end(it) && GOOD_ENDS.iter().any(|end| it.name.ends_with(end)),
    };
    let broken = |it: &&Condition<'_>| it.says(&WENT_WRONG) && (is_good(it) || is_end(it) || it.name == "Progressing");
    if let Some(broken) = all.iter().filter(is_false).find(broken) {
        return Some(broken.health(Verdict::Degraded));
    }
    if let Some(paused) = all.iter().filter(is_true).find(|it| it.is_suspension()) {
        return Some(Health::suspended("conditions", paused.name));
    }
    // `Active` is about being used, and says nothing where something else says how the object is.
    let speaks = all.iter().any(|it| it.is_good() && it.name != "Active");
    let missing = |it: &&Condition<'_>| is_good(it) && (it.name != "Active" || !speaks);
    if let Some(missing) = all.iter().filter(is_false).find(missing) {
        let verdict = match work.is_some() || missing.says(&NOT_YET) {
            true => Verdict::Progressing,
            false => Verdict::Degraded,
        };
        return Some(missing.health(verdict));
    }
    let undecided = |it: &&Condition<'_>| !matches!(it.status, "True" | "False") && missing(it);
    if let Some(undecided) = all.iter().find(undecided) {
        return Some(undecided.health(Verdict::Progressing));
    }
    let is_ready = all.iter().filter(is_true).any(|it| is_good(&it));
    if let Some(work) = work.filter(|it| !is_ready || it.name == "Reconciling" || it.name == "Issuing") {
        return Some(work.health(Verdict::Progressing));
    }
    if is_ready {
        return Some(Health::healthy("conditions"));
    }
    let end = all.iter().find(is_end)?;
    Some(match end.status {
        "True" => Health::healthy("conditions"),
        _ => end.health(Verdict::Progressing),
    })
}
