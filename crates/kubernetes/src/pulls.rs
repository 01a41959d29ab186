//! Pods whose images need a login get the name of the Secret that has it.

use serde_json::{Value, json};

use crate::is_hook;

/// Where each kind keeps the spec of its pods.
const PODS: [(&str, &str); 8] = [
    ("Pod", "/spec"),
    ("Deployment", "/spec/template/spec"),
    ("StatefulSet", "/spec/template/spec"),
    ("DaemonSet", "/spec/template/spec"),
    ("ReplicaSet", "/spec/template/spec"),
    ("ReplicationController", "/spec/template/spec"),
    ("Job", "/spec/template/spec"),
    ("CronJob", "/spec/jobTemplate/spec/template/spec"),
];

/// Repositories, as images name them, that can only be pulled with a Secret of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullSecret {
    pub name: String,
    pub repositories: Vec<String>,
}

impl PullSecret {
    fn is_for(&self, image: &str) -> bool {
        let rest = |repository: &String| image.strip_prefix(repository.as_str());
        self.repositories.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with([':', '@']))
    }

    /// The pods of an object get the Secret if one of their images needs it. Returns whether they did.
    pub fn add_to(&self, object: &mut Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default();
        let Some((_, place)) = PODS.iter().find(|(known, _)| *known == kind) else { return false };
        let Some(pod) = object.pointer_mut(place) else { return false };
        if !self.is_needed(pod) || names_secret(pod, &self.name) {
            return false;
        }
        let entry = json!({ "name": self.name });
        match pod.get_mut("imagePullSecrets").and_then(Value::as_array_mut) {
            Some(secrets) => secrets.push(entry),
            None => pod["imagePullSecrets"] = json!([entry]),
        }
        true
    }

    fn is_needed(&self, pod: &Value) -> bool {
        let all = ["containers", "initContainers"].into_iter().filter_map(|key| pod[key].as_array()).flatten();
        all.filter_map(|container| container["image"].as_str()).any(|image| self.is_for(image))
    }

    /// Whether pods of an object name the Secret.
    pub fn is_in(&self, object: &Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default();
        let place = PODS.iter().find(|(known, _)| *known == kind);
        place.and_then(|(_, place)| object.pointer(place)).is_some_and(|pod| names_secret(pod, &self.name))
    }

    /// A rendered chart. What needs nothing stays as it is, to the byte; so do hooks, which not every Helm would let pass here.
    pub fn add_to_text(&self, text: &str) -> Result<String, crate::ManifestError> {
        let mut documents: Vec<String> = vec![String::new()];
        for line in text.split_inclusive('\n') {
            if line.trim_end() == "---" {
                documents.push(line.to_owned());
            } else if let Some(last) = documents.last_mut() {
                last.push_str(line);
            }
        }
        for document in &mut documents {
            if !self.repositories.iter().any(|repository| document.contains(repository.as_str())) {
                continue;
            }
            let mut objects = crate::read_objects(document)?;
            if !objects
                .iter_mut()
                .filter(|object| !is_hook(object))
                .fold(false, |any, object| self.add_to(object) | any)
            {
                continue;
            }
            // Comments name the template, and JSON is YAML.
            let head: String = document.split_inclusive('\n').take_while(|line| is_head(line)).collect();
            let bodies: Vec<String> = objects.iter().map(|object| format!("{object}\n")).collect();
            *document = format!("{head}{}", bodies.join("---\n"));
        }
        Ok(documents.concat())
    }
}

fn is_head(line: &str) -> bool {
    line.trim_end() == "---" || line.starts_with('#') || line.trim().is_empty()
}

fn names_secret(pod: &Value, name: &str) -> bool {
    pod["imagePullSecrets"].as_array().into_iter().flatten().any(|secret| secret["name"] == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> PullSecret {
        PullSecret { name: "login".into(), repositories: vec!["r.example/shop/web".into()] }
    }

    fn deployment(image: &str) -> Value {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": { "template": { "spec": { "containers": [{ "name": "web", "image": image }] } } } })
    }

    #[test]
    fn pods_get_the_secret_that_their_images_need() {
        for (image, gets) in [
            ("r.example/shop/web:1", true),
            ("r.example/shop/web@sha256:00", true),
            ("r.example/shop/web", true),
            ("r.example/shop/website:1", false),
            ("other.example/r.example/shop/web:1", false),
        ] {
            let mut object = deployment(image);
            assert_eq!(secret().add_to(&mut object), gets, "{image}");
            assert_eq!(secret().is_in(&object), gets, "{image}");
            assert!(!secret().add_to(&mut object), "not twice");
        }
        let mut others = deployment("r.example/shop/web:1");
        others["spec"]["template"]["spec"]["imagePullSecrets"] = json!([{ "name": "mine" }]);
        assert!(secret().add_to(&mut others));
        assert_eq!(
            others["spec"]["template"]["spec"]["imagePullSecrets"],
            json!([{ "name": "mine" }, { "name": "login" }])
        );
        let mut map = json!({ "kind": "ConfigMap", "data": { "image": "r.example/shop/web:1" } });
        assert!(!secret().add_to(&mut map));
    }

    #[test]
    fn a_text_changes_only_where_it_must() {
        let other = "---\n# Source: web/templates/map.yaml\napiVersion: v1\nkind:   ConfigMap # as it was\nmetadata: {name: a}\n";
        let web = "---\n# Source: web/templates/web.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{image: 'r.example/shop/web:1'}]}}}\n";
        let text = secret().add_to_text(&format!("{other}{web}")).expect("YAML");
        assert!(text.starts_with(other), "{text}");
        assert!(text.contains("---\n# Source: web/templates/web.yaml\n{"), "{text}");
        let objects = crate::parse(&text).expect("it is still YAML");
        assert!(secret().is_in(&objects[1]));
        assert_eq!(secret().add_to_text(other).expect("YAML"), other);
    }
}
