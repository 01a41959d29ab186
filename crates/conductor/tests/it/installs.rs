//! An install and the workflow that provisions it come into being together, or not at all.

use std::collections::BTreeMap;

use conductor::{By, SettingsChange, WantedInstall};
use model::Digest;
use serde_json::json;
use store::Idempotency;

use crate::kit::World;

#[test]
fn the_same_request_finds_the_install_and_its_first_workflow() {
    testkit::on_both(|place| async move {
        let repo = json!({ "repo": "a/b", "branch": "main", "directory": "." });
        let db =
            json!({ "name": "db", "type": "terraform_module", "terraform_version": "1.11.3", "public_repo": repo });
        let world = World::new(&place, json!({ "components": [db] })).await?;
        let server = world.server().await?;
        let idem = || Idempotency { scope: world.account.clone(), key: "k".into(), request_digest: Digest::of(b"r") };
        let by = By { org: world.install.org_id.clone(), account: world.account.clone(), who: "me".into() };
        let app = world.store.app(&by.org, world.install.app_id.as_str()).await?;
        let wanted = || WantedInstall {
            name: "two".into(),
            platform: "local",
            cloud: json!({}),
            settings: SettingsChange::default(),
            inputs: BTreeMap::new(),
        };
        let create = || server.create_install(&by, &app, wanted(), Some(idem()));
        let (install, first) = create().await?;
        let first = first.expect("it provisions at once");
        // Whoever asked died before the answer came, and asks again.
        let (again, found) = create().await?;
        assert_eq!((again.id, found), (install.id.clone(), Some(first)));
        let workflows = world.store.workflows(&install.org_id, Some(&install.id), None, 0, 10).await?;
        assert_eq!(workflows.len(), 1);
        Ok(())
    });
}
