//! An install and the workflow that provisions it come into being together, or not at all.

use std::collections::BTreeMap;

use model::runner::RunnerKind;
use model::{Digest, InputsId, InstallId, RunnerId};
use serde_json::json;
use store::{Idempotency, Install, InstallInputs, NewRunner};

use crate::kit::{World, unique};

#[test]
fn the_same_request_finds_the_install_and_its_first_workflow() {
    testkit::on_both(|place| async move {
        let repo = json!({ "repo": "a/b", "branch": "main", "directory": "." });
        let db =
            json!({ "name": "db", "type": "terraform_module", "terraform_version": "1.11.3", "public_repo": repo });
        let world = World::new(&place, json!({ "components": [db] })).await?;
        let server = world.server().await?;
        let idem = || Idempotency { scope: world.account.clone(), key: "k".into(), request_digest: Digest::of(b"r") };
        let create = || {
            let now = world.now();
            let install = Install {
                id: InstallId::new(now, unique()),
                name: "two".into(),
                runner_id: RunnerId::new(now, unique()),
                ..world.install.clone()
            };
            let runner = NewRunner {
                id: install.runner_id.clone(),
                org_id: install.org_id.clone(),
                name: "two".into(),
                kind: RunnerKind::Install,
                install_id: Some(install.id.clone()),
            };
            let inputs = InstallInputs::first(InputsId::new(now, unique()), &install, BTreeMap::new());
            server.create_install(install, runner, inputs, Some(idem()))
        };
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
