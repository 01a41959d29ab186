//! What must not be seen in a reason: values that the control plane has named, and the app's secrets in the customer's store, which
//! change while they are observed.

use std::collections::BTreeMap;
use std::sync::Arc;

use mask::Masks;
use model::health::Observation;

use crate::directory::ExecutionContext;
use crate::execute::secrets::{KnownValues, known_values};

pub(super) struct Hidden {
    fixed: Vec<String>,
    /// The app's secrets.
    names: Vec<String>,
    /// Their values as they were read last, and before that: pods go on with an old value.
    values: BTreeMap<String, [Vec<String>; 2]>,
    /// Why some can't be read.
    told: Option<String>,
    pub(super) masks: Arc<Masks>,
}

impl Hidden {
    pub(super) fn new(fixed: Vec<String>, names: Vec<String>) -> Self {
        let masks = Arc::new(Masks::new(&fixed));
        Self { fixed, names, values: BTreeMap::new(), told: None, masks }
    }

    /// Whether a secret of the app was never read, so that nobody knows what to mask.
    pub(super) fn is_blind(&self) -> bool {
        self.names.iter().any(|name| !self.values.contains_key(name))
    }

    /// What keeps secrets out of logs: all of them, where nobody knows the secrets.
    pub(super) fn of_logs(&self) -> Arc<Masks> {
        if self.is_blind() { Arc::new(Masks::of_everything()) } else { Arc::clone(&self.masks) }
    }

    /// Reads the app's secrets anew; whether there is something else to mask.
    pub(super) async fn read(&mut self, context: &ExecutionContext) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let ca_file = context.ca_file.as_deref();
        self.learn(known_values(&self.names, &context.tools, &context.state_dir, ca_file).await)
    }

    fn learn(&mut self, known: KnownValues) -> bool {
        if let Some(told) = known.told.as_ref().filter(|_| known.told != self.told) {
            tracing::warn!("{told}");
        }
        self.told = known.told;
        let mut changed = false;
        for (name, now) in known.values {
            match self.values.get_mut(&name) {
                Some([last, _]) if *last == now => continue,
                Some([last, before]) => *before = std::mem::replace(last, now),
                None => drop(self.values.insert(name, [now, Vec::new()])),
            }
            changed = true;
        }
        if changed {
            let values = self.values.values().flatten().flatten();
            self.masks = Arc::new(Masks::new(&self.fixed.iter().chain(values).cloned().collect::<Vec<_>>()));
        }
        changed
    }
}

/// What programs have printed is not told while nobody knows what to mask in it.
pub(super) fn withhold(observation: &mut Observation) {
    let reasons = observation.objects.iter_mut().map(|it| &mut it.reason).chain([&mut observation.reason]);
    for reason in reasons {
        if let Some((name, _)) = reason.strip_prefix("probe `").and_then(|rest| rest.split_once("`: ")) {
            *reason = format!("probe `{name}` fails; why is not shown, because the app's secrets can't be read");
        }
    }
}

#[cfg(test)]
mod tests {
    use model::health::Verdict;

    use super::*;

    fn read(pairs: &[(&str, &[&str])], told: Option<&str>) -> KnownValues {
        let of = |(name, values): &(&str, &[&str])| {
            ((*name).to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
        };
        KnownValues { values: pairs.iter().map(of).collect(), told: told.map(str::to_owned) }
    }

    #[test]
    fn a_rotated_secret_is_masked_in_both_values_and_an_unread_one_hides_every_log() {
        let mut hidden = Hidden::new(vec!["of the plane".into()], vec!["a".into(), "b".into()]);
        assert!(hidden.is_blind());
        assert!(hidden.learn(read(&[("a", &["first value"])], Some("`b` can't be read"))));
        assert!(hidden.is_blind(), "one is not known");
        assert_eq!(hidden.of_logs().mask_text("whatever it says"), "***");
        assert_eq!(hidden.of_logs().mask_text(""), "", "nothing was printed");
        assert!(hidden.learn(read(&[("a", &["first value"]), ("b", &[])], None)));
        assert!(!hidden.is_blind());
        assert!(!hidden.learn(read(&[("a", &["first value"]), ("b", &[])], None)), "nothing new");
        assert!(hidden.learn(read(&[("a", &["second value"])], Some("`b` can't be read"))));
        assert!(!hidden.is_blind(), "what was read once is masked though the store is away");
        let text = hidden.of_logs().mask_text("first value, second value, of the plane, another");
        assert_eq!(text, "***, ***, ***, another");
    }

    #[test]
    fn what_a_probe_says_is_withheld() {
        let mut told = Observation {
            component: "web".into(),
            generation: 1,
            verdict: Verdict::Unhealthy,
            reason: "probe `db`: `check` ended with exit status: 1: my password".into(),
            stuck: false,
            judged: 1,
            objects: Vec::new(),
        };
        withhold(&mut told);
        assert!(told.reason.starts_with("probe `db` fails") && !told.reason.contains("password"), "{}", told.reason);
    }
}
