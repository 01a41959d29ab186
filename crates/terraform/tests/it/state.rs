use serde_json::json;
use terraform::{InstanceStatus, Mode, StateError, read_state, read_state_head};

use crate::{fixture, unmasked};

#[test]
fn a_real_state() {
    let state = read_state(fixture("state.json").as_bytes(), &unmasked).unwrap();
    assert_eq!((state.head.terraform_version.as_str(), state.head.serial > 1), ("1.11.4", true));
    assert_eq!(state.head, read_state_head(fixture("state.json").as_bytes()).unwrap());
    assert_eq!(state.outputs.keys().collect::<Vec<_>>(), ["engine", "public"]);
    assert_eq!(state.outputs["public"].value, json!({"url": "https://example.test", "ports": [80, 443]}));
    assert_eq!(state.sensitive_outputs.keys().collect::<Vec<_>>(), ["secret"]);
    assert_eq!(state.sensitive_outputs["secret"].kind, json!("string"));
    assert_eq!(state.secrets.values, ["hunter2-secret-default", "pw-hunter2-secret-default"]);
    let resources: Vec<(&str, InstanceStatus)> =
        state.resources.iter().map(|resource| (resource.address.as_str(), resource.status)).collect();
    assert_eq!(
        resources,
        [
            ("terraform_data.a", InstanceStatus::Ready),
            ("terraform_data.bytrigger", InstanceStatus::Ready),
            ("terraform_data.counted[0]", InstanceStatus::Tainted),
            ("terraform_data.counted[1]", InstanceStatus::Ready),
            ("terraform_data.each[\"blue\"]", InstanceStatus::Ready),
            ("terraform_data.each[\"green\"]", InstanceStatus::Ready),
            ("terraform_data.forgotten", InstanceStatus::Ready),
            ("terraform_data.old", InstanceStatus::Ready),
        ]
    );
}

/// The addresses are those that `terraform state list` gave for this state.
#[test]
fn addresses_in_modules() {
    let state = read_state(fixture("state_module.json").as_bytes(), &unmasked).unwrap();
    let addresses: Vec<&str> = state.resources.iter().map(|resource| resource.address.as_str()).collect();
    assert_eq!(
        addresses,
        [
            "terraform_data.cbd",
            "terraform_data.fails",
            "module.m[0].data.terraform_remote_state.s",
            "module.m[0].terraform_data.x[\"a\"]",
            "module.m[0].terraform_data.x[\"b\\\"$${c}\"]",
        ]
    );
    let data = &state.resources[2];
    assert_eq!(
        (data.mode, data.kind.as_str(), data.provider.as_str()),
        (Mode::Data, "terraform_remote_state", "terraform")
    );
    assert_eq!(state.resources[1].status, InstanceStatus::Tainted);
}

#[test]
fn a_replacement_that_did_not_end() {
    let state = read_state(fixture("state_deposed.json").as_bytes(), &unmasked).unwrap();
    let found: Vec<_> = state.resources.iter().map(|one| (one.address.as_str(), one.status)).collect();
    let address = "terraform_data.cbd";
    assert_eq!(found, [(address, InstanceStatus::Tainted), (address, InstanceStatus::Deposed)]);
}

#[test]
fn secrets_at_all_kinds_of_paths() {
    let step = |name: &str| json!({"type": "get_attr", "value": name});
    let index = |value, kind: &str| json!({"type": "index", "value": {"value": value, "type": kind}});
    let state = json!({
        "version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "l", "outputs": null,
        "resources": [{
            "mode": "managed", "type": "t", "name": "n", "provider": "provider[\"r/h/t\"]",
            "instances": [
                {
                    "attributes": {
                        "plain": "not-secret", "password": "secret-one", "list": [{"p": "secret-two"}, {"p": "not-secret"}],
                        "map": {"k": {"deep": "secret-three"}}, "set": ["secret-four"], "short": "abc",
                    },
                    "sensitive_attributes": [
                        [step("password")], [step("list"), index(json!(0), "number"), step("p")],
                        [step("map"), index(json!("k"), "string")], [step("set"), index(json!("?"), "string")],
                        [step("short")], [step("no_such_attribute")],
                    ],
                },
                {"deposed": "abcd", "attributes": {"password": "secret-five"}, "sensitive_attributes": [[step("password")]]},
                {"attributes": null, "sensitive_attributes": null, "index_key": "secret-key"},
            ],
        }],
    });
    let mask = |text: &str| text.replace("secret-key", "***");
    let state = read_state(state.to_string().as_bytes(), &mask).unwrap();
    assert_eq!(state.secrets.values, ["secret-five", "secret-four", "secret-one", "secret-three", "secret-two"]);
    assert_eq!(state.resources[1].status, InstanceStatus::Deposed);
    assert_eq!(state.resources[2].address, "t.n[\"***\"]");
}

#[test]
fn documents_that_are_not_states() {
    for (document, expected) in [
        ("", "the state can't be read"),
        ("nope", "the state can't be read"),
        (r#"{"serial":1,"lineage":"x","encrypted_data":"eA=="}"#, "the state is encrypted"),
        ("{}", "this is not a terraform state: it has no version"),
        (r#"{"version":3,"serial":1,"lineage":"x"}"#, "the state has the format version 3; only version 4 is read"),
        (r#"{"version":4,"lineage":"x"}"#, "this is not a terraform state: it has no serial"),
        (r#"{"version":4,"serial":1}"#, "this is not a terraform state: it has no lineage"),
    ] {
        assert_eq!(read_state(document.as_bytes(), &unmasked).unwrap_err().to_string(), expected, "{document}");
        assert_eq!(read_state_head(document.as_bytes()).unwrap_err().to_string(), expected, "{document}");
    }
    let error = read_state(fixture("create.json").as_bytes(), &unmasked).unwrap_err();
    assert!(matches!(error, StateError::NotAState("version")));
}
