//! An install of a simulated org, and servers that share its store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use conductor::{Conductor, Timing};
use model::runner::RunnerKind;
use model::{
    AccountId, AppId, Clock as _, ConfigId, InputsId, InstallId, OrgId, Role, RunnerId, SectionId, Timestamp, TokenId,
};
use serde_json::{Value, json};
use store::{
    App, Commit, Config, ConfigStatus, Install, InstallInputs, MasterKeys, NewRunner, NewToken, Org, S3Options,
    Section, Store, StoreConfig, WorkflowRow,
};
use testkit::{FakeClock, FreshDatabase};

const MASTER: &str = "m1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) clock: FakeClock,
    pub(crate) install: Install,
    pub(crate) account: AccountId,
}

pub(crate) fn unique() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

impl World {
    pub(crate) async fn new(place: &FreshDatabase, app: Value) -> Result<Self> {
        Self::of(place, app, true).await
    }

    /// One whose steps are carried out by a runner.
    pub(crate) async fn real(place: &FreshDatabase, app: Value) -> Result<Self> {
        Self::of(place, app, false).await
    }

    async fn of(place: &FreshDatabase, app: Value, sandbox_mode: bool) -> Result<Self> {
        let clock = FakeClock::default();
        let now = clock.now();
        let config = StoreConfig {
            database_url: place.database_url.clone(),
            blobs_url: place.blobs_url(),
            pg_connections: 8,
            s3: S3Options::default(),
        };
        let store = Store::open(&config, MasterKeys::parse(MASTER)?, now).await?;
        let account = AccountId::new(now, unique());
        let token = NewToken {
            id: TokenId::new(now, unique()),
            account_id: account.clone(),
            org_id: None,
            role: Role::Admin,
            name: "first".into(),
            token: "fat_first".into(),
            expires_at: None,
            runner_id: None,
        };
        anyhow::ensure!(store.bootstrap(account.clone(), "someone@example.com", token, now).await?);
        let (org_id, build) = (OrgId::new(now, unique()), RunnerId::new(now, unique()));
        let org = Org {
            id: org_id.clone(),
            name: "acme".into(),
            sandbox_mode,
            simulation: json!({ "step_ms": 1000, "seed": 1 }),
            build_runner_id: build.clone(),
            created_by: account.clone(),
            created_at: now,
            updated_at: now,
        };
        let runner = |id, name: &str, kind, install_id| NewRunner {
            id,
            org_id: org_id.clone(),
            name: name.to_owned(),
            kind,
            install_id,
        };
        store.create_org(org, runner(build, "build", RunnerKind::Build, None), None).await?;
        let app_id = AppId::new(now, unique());
        let new = App {
            id: app_id.clone(),
            org_id: org_id.clone(),
            name: "web".into(),
            display_name: "web".into(),
            description: String::new(),
            settings: Default::default(),
            created_by: account.clone(),
            created_at: now,
            updated_at: now,
        };
        store.create_app(new, None).await?;
        let install = Install {
            id: InstallId::new(now, unique()),
            org_id: org_id.clone(),
            app_id,
            name: "one".into(),
            platform: "local".into(),
            cloud: json!({}),
            runner_id: RunnerId::new(now, unique()),
            config_id: None,
            settings: Default::default(),
            created_by: account.clone(),
            created_at: now,
            updated_at: now,
        };
        let own = runner(install.runner_id.clone(), "one", RunnerKind::Install, Some(install.id.clone()));
        let inputs = InstallInputs::first(InputsId::new(now, unique()), &install, BTreeMap::new());
        store.create_install(install.clone(), own, inputs, None, None).await?;
        let world = Self { store, clock, install, account };
        world.commit(app).await?;
        Ok(world)
    }

    /// Another server on the same store.
    pub(crate) async fn server(&self) -> Result<Conductor> {
        Ok(Conductor::new(self.store.clone(), Arc::new(self.clock.clone()), Timing::default()).await?)
    }

    /// The next version of the app.
    pub(crate) async fn commit(&self, app: Value) -> Result<()> {
        let (now, locals) = (self.clock.now(), BTreeMap::new());
        let config = config::AppConfig::from_json(&app).map_err(|e| anyhow::anyhow!("{e}"))?;
        let before = self.store.active_config(&self.install.org_id, &self.install.app_id).await?;
        let id = ConfigId::new(now, unique());
        let sections = conductor::apps::parts(&config, &locals).into_iter().map(|part| Section {
            id: SectionId::new(now, unique()),
            config_id: id.clone(),
            kind: part.kind,
            name: part.name,
            entity_id: None,
            checksum: String::new(),
            body: part.body,
            created_by: self.account.clone(),
            created_at: now,
        });
        let commit = Commit {
            digest: conductor::apps::digest(&config, &locals),
            based_on: before.map(|before| before.id),
            read: Default::default(),
            sections: sections.collect(),
            entities: Vec::new(),
            description: String::new(),
            state: None,
            actor: self.account.clone(),
            now,
        };
        let draft = Config {
            id,
            org_id: self.install.org_id.clone(),
            app_id: self.install.app_id.clone(),
            version: None,
            status: ConfigStatus::Draft,
            description: String::new(),
            digest: None,
            same_as: None,
            readme: String::new(),
            cli_version: String::new(),
            state: String::new(),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        self.store.commit_config(draft, commit).await?;
        Ok(())
    }

    pub(crate) async fn workflows(&self) -> Result<Vec<WorkflowRow>> {
        Ok(self.store.workflows(&self.install.org_id, Some(&self.install.id), None, 0, 100).await?)
    }

    pub(crate) async fn schedules(&self) -> Result<Vec<store::Schedule>> {
        Ok(self.store.schedules(&self.install.org_id, &self.install.id).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
