//! What every simulation begins with: a clock that it moves, a store in memory, and an org with an app.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conductor::Draw;
use futures::FutureExt as _;
use model::runner::RunnerKind;
use model::{AccountId, AppId, Clock, InputsId, InstallId, OrgId, Role, RunnerId, Timestamp, TokenId};
use serde_json::{Value, json};
use store::{App, Install, InstallInputs, MasterKeys, NewRunner, NewToken, Org, Result, S3Options, Store, StoreConfig};

use crate::chance::Chance;

/// Some day in 2027.
const START_US: i64 = 1_800_000_000_000_000;
const MASTER: &str = "m1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What the server's machine shows: the time that passes, and by how much the clock on its wall is off.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    passed_ms: AtomicU64,
    off_ms: AtomicI64,
}

impl ServerClock {
    /// So much time has passed since the beginning.
    pub(crate) fn stand_at(&self, passed_ms: u64) {
        self.passed_ms.store(passed_ms, Ordering::Relaxed);
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.passed_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn set_off(&self, off_ms: i64) {
        self.off_ms.store(off_ms, Ordering::Relaxed);
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        at(self.passed_ms.load(Ordering::Relaxed), self.off_ms.load(Ordering::Relaxed))
    }

    fn steady(&self) -> Duration {
        Duration::from_millis(self.passed_ms.load(Ordering::Relaxed))
    }
}

/// The time on a clock that is off by so much.
pub(crate) fn at(passed_ms: u64, off_ms: i64) -> Timestamp {
    Timestamp::from_micros(START_US).plus_ms(passed_ms as i64 + off_ms)
}

/// All futures of the simulation are ready at once, but for held polls.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("nothing here waits for anything")
}

/// A new org with an app, in a store of its own.
pub(crate) struct Founding {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ServerClock>,
    /// Where a conductor takes its ids and tokens from.
    pub(crate) draw: Arc<Draw>,
    pub(crate) account: AccountId,
    pub(crate) org: OrgId,
    pub(crate) app: AppId,
}

impl Founding {
    /// With a `simulation` the org plays its steps itself.
    pub(crate) fn new(simulation: Option<Value>, chance: &mut Chance) -> Result<Self> {
        let clock = Arc::new(ServerClock::default());
        let now = clock.now();
        let config = StoreConfig {
            database_url: "memory:".into(),
            blobs_url: "memory:".into(),
            pg_connections: 0,
            s3: S3Options::default(),
        };
        let masters = MasterKeys::parse(MASTER).expect("a good key");
        let store = ready(Store::open(&config, masters, now))?;
        let dice = Mutex::new(Chance::new(chance.next()));
        let draw: Arc<Draw> =
            Arc::new(move |bytes: &mut [u8]| dice.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes));
        let (account, org) = (AccountId::new(now, chance.u128()), OrgId::new(now, chance.u128()));
        let token = TokenId::new(now, chance.u128());
        let build = RunnerId::new(now, chance.u128());
        let app = AppId::new(now, chance.u128());
        let founding = Self { store, clock, draw, account, org, app };
        founding.make(token, build, simulation)?;
        Ok(founding)
    }

    fn make(&self, token: TokenId, build: RunnerId, simulation: Option<Value>) -> Result<()> {
        let (now, store) = (self.clock.now(), &self.store);
        let token = NewToken {
            id: token,
            account_id: self.account.clone(),
            org_id: None,
            role: Role::Admin,
            name: "first".into(),
            token: "fry_simulated".into(),
            expires_at: None,
            runner_id: None,
        };
        ready(store.bootstrap(self.account.clone(), "someone@example.com", token, now))?;
        let org = Org {
            id: self.org.clone(),
            name: "acme".into(),
            sandbox_mode: simulation.is_some(),
            simulation: simulation.unwrap_or_else(|| json!({})),
            build_runner_id: build.clone(),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        let (name, kind, org_id) = ("build".to_owned(), RunnerKind::Build, self.org.clone());
        ready(store.create_org(org, NewRunner { id: build, org_id, name, kind, install_id: None }, None))?;
        let app = App {
            id: self.app.clone(),
            org_id: self.org.clone(),
            name: "web".into(),
            display_name: "web".into(),
            description: String::new(),
            settings: Default::default(),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        ready(store.create_app(app, None)).map(|_| ())
    }

    /// An install of the app, with its runner.
    pub(crate) fn add_install(&self, name: String, chance: &mut Chance) -> Result<Install> {
        let now = self.clock.now();
        let (id, runner) = (InstallId::new(now, chance.u128()), RunnerId::new(now, chance.u128()));
        let install = Install {
            id: id.clone(),
            org_id: self.org.clone(),
            app_id: self.app.clone(),
            name: name.clone(),
            platform: "local".into(),
            cloud: json!({}),
            runner_id: runner.clone(),
            config_id: None,
            settings: Default::default(),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        let (org_id, kind) = (self.org.clone(), RunnerKind::Install);
        let new = NewRunner { id: runner, org_id, name, kind, install_id: Some(id) };
        let inputs = InstallInputs::first(InputsId::new(now, chance.u128()), &install, BTreeMap::new());
        ready(self.store.create_install(install.clone(), new, inputs, None, None))?;
        Ok(install)
    }
}
