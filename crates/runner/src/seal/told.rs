//! What a state puts out, as the control plane may know it: values that anybody may see, and a sealed file with the others. It goes
//! with every state that an apply saves, so that an apply whose result never comes can be settled with what it saved.

use mask::Masks;
use model::deploy::SealedFile;
use serde_json::{Map, Value, json};

use crate::seal::vault::{Keeper, Plain, Result};

/// Values of before that are remembered for masking.
const FILLED_MAX: usize = 1_000;

pub(crate) struct Told {
    pub(crate) document: Map<String, Value>,
    /// Outputs that hold a secret though they are not marked as sensitive.
    pub(crate) hidden: Vec<String>,
}

impl Keeper {
    pub(crate) async fn outputs(&self, state: &terraform::State) -> Result<Told> {
        let (mut public, mut values, mut shapes, mut hidden) = (Map::new(), Map::new(), Map::new(), Vec::new());
        // What holds a secret is one, whatever it is called: of `***` nobody could make use.
        let (of_state, of_job) = (Masks::new(&state.secrets.values), Masks::new(&self.secrets));
        for (name, output) in &state.outputs {
            let masked = of_job.mask_value(of_state.mask_value(output.value.clone()));
            if masked == output.value {
                public.insert(name.clone(), masked);
                continue;
            }
            hidden.push(name.clone());
            shapes.insert(name.clone(), shape(&output.kind));
            values.insert(name.clone(), output.value.clone());
        }
        for (name, output) in &state.sensitive_outputs {
            shapes.insert(name.clone(), shape(&output.kind));
            values.insert(name.clone(), output.value.clone());
        }
        let mut sealed = Map::new();
        if !values.is_empty() {
            sealed.insert("file".into(), json!(self.seal(&Value::Object(values)).await?));
            sealed.insert("shapes".into(), Value::Object(shapes));
        }
        // The next plan shows what was there before: these must not be seen in it, also when others took their place.
        let mut filled = self.filled.clone().unwrap_or_default();
        filled.sort();
        filled.dedup();
        filled.truncate(FILLED_MAX);
        if !filled.is_empty() {
            sealed.insert("known".into(), json!(self.seal(&json!(filled)).await?));
        }
        let mut document = Map::new();
        if !sealed.is_empty() {
            document.insert("sealed".into(), Value::Object(sealed));
        }
        document.insert("outputs".into(), Value::Object(public));
        document.insert("serial".into(), json!(state.head.serial));
        document.insert("lineage".into(), json!(state.head.lineage));
        Ok(Told { document, hidden })
    }

    async fn seal(&self, what: &Value) -> Result<SealedFile> {
        self.vault.put(Plain::Memory(what.to_string().into())).await
    }
}

/// The names of what is in a sensitive output, as far as its type has names: an object's attributes; the rest is one value.
fn shape(kind: &Value) -> Value {
    match (kind.get(0).and_then(Value::as_str), kind.get(1).and_then(Value::as_object)) {
        (Some("object"), Some(fields)) => {
            Value::Object(fields.iter().map(|(name, kind)| (name.clone(), shape(kind))).collect())
        }
        _ => Value::Null,
    }
}
