//! A store with an org, an install and a runner that has joined; and the moves that the tests make with them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use model::papers::Signed;
use model::runner::HeldState;
use model::runner::RunnerKind;
use model::{
    AccountId, AppId, Clock as _, CredentialId, ExecutionId, ExecutionResult, InputsId, InstallId, JobGroup, JobId,
    JobState, JobType, LogStreamId, OrgId, Outcome, Role, RunnerId, Timestamp, TokenId, constants,
};
use store::{
    App, CLAIMS_PER_POLL, Install, InstallInputs, MasterKeys, NewJob, NewRunner, NewToken, Org, PollInput, PollOutput,
    S3Options, Store, StoreConfig, StoreError,
};
pub(crate) use testkit::{Backend, FakeClock, FreshDatabase};

pub(crate) const LEASE_S: u64 = constants::LEASE_S;
pub(crate) const M1: &str = "m1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
pub(crate) const M2: &str = "m2://////////////////////////////////////////8=";
pub(crate) const TOKEN: &str = "fat_thefirst8and44moreofthetokenthatnobodymaysee0000";

pub(crate) struct World {
    pub(crate) place: Arc<FreshDatabase>,
    pub(crate) store: Store,
    pub(crate) clock: FakeClock,
    pub(crate) account: AccountId,
    pub(crate) org: OrgId,
    pub(crate) app: AppId,
    pub(crate) install: InstallId,
    pub(crate) runner: RunnerId,
    pub(crate) credential: String,
    pub(crate) generation: u64,
}

/// An execution as its runner sees it.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) job: JobId,
    pub(crate) id: ExecutionId,
    pub(crate) epoch: u64,
    pub(crate) generation: u64,
}

/// Runs a test in a fresh world on both databases.
pub(crate) fn on_both<F, Fut>(test: F)
where
    F: Fn(World) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let test = &test;
    testkit::on_both(|place| run(place, test));
}

/// Runs a test in a fresh world on one database.
pub(crate) fn on<F, Fut>(backend: Backend, test: F)
where
    F: Fn(World) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let test = &test;
    testkit::on(backend, |place| run(place, test));
}

async fn run<F, Fut>(place: FreshDatabase, test: F) -> Result<()>
where
    F: Fn(World) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    // A test takes along only the fields of its world that it uses: the place stays until it is over.
    let place = Arc::new(place);
    Box::pin(test(World::new(Arc::clone(&place)).await?)).await
}

pub(crate) async fn open(place: &FreshDatabase) -> Result<Store, StoreError> {
    open_with(place, M1).await
}

pub(crate) async fn open_with(place: &FreshDatabase, masters: &str) -> Result<Store, StoreError> {
    let config = StoreConfig {
        database_url: place.database_url.clone(),
        blobs_url: place.blobs_url(),
        pg_connections: 8,
        s3: S3Options::default(),
    };
    Store::open(&config, MasterKeys::parse(masters)?, FakeClock::START).await
}

/// Different in every call.
pub(crate) fn unique() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn result_of(outcome: Outcome, now: Timestamp) -> ExecutionResult {
    ExecutionResult {
        outcome,
        error: None,
        steps: Vec::new(),
        outputs: serde_json::Map::new(),
        log_chunks: 0,
        started_at: now,
        finished_at: now,
    }
}

/// The name of an error's variant.
pub(crate) fn variant(error: &StoreError) -> String {
    format!("{error:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

impl World {
    async fn new(place: Arc<FreshDatabase>) -> Result<Self> {
        let store = open(&place).await?;
        let clock = FakeClock::default();
        let now = clock.now();
        let account = AccountId::new(now, unique());
        let token = NewToken {
            id: TokenId::new(now, unique()),
            account_id: account.clone(),
            org_id: None,
            role: Role::Admin,
            name: "first".into(),
            token: TOKEN.into(),
            expires_at: None,
            runner_id: None,
        };
        anyhow::ensure!(store.bootstrap(account.clone(), "someone@example.com", token, now).await?);
        let org = new_org(&store, &account, "acme", now).await?;
        let (app, install, runner) = new_install(&store, &account, &org, "web", now).await?;
        let credential = format!("jc_{}", unique());
        let id = CredentialId::new(now, unique());
        store.add_credential(&org, &runner, id, &credential, account.as_str(), now).await?;
        let mut world = Self { place, store, clock, account, org, app, install, runner, credential, generation: 0 };
        world.join().await?;
        Ok(world)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.place.backend == Backend::Sqlite
    }

    /// A new session of the runner, without the key of the one before.
    pub(crate) async fn join(&mut self) -> Result<()> {
        let key = format!("public{}", unique());
        let joined = self.store.join(&self.credential, &key, "1.0", "host", self.now()).await?;
        self.generation = joined.generation;
        Ok(())
    }

    pub(crate) fn job(&self, job_type: JobType) -> NewJob {
        let now = self.now();
        NewJob {
            id: JobId::new(now, unique()),
            org_id: self.org.clone(),
            runner_id: self.runner.clone(),
            install_id: Some(self.install.clone()),
            job_type,
            operation: "exec".into(),
            name: None,
            target: None,
            priority: 0,
            timeout_s: 300,
            spec: b"{}".to_vec(),
            order: Signed { payload: "{}".into(), key: "fk_0".into(), signature: "s".into() },
            log_stream_id: LogStreamId::new(now, unique()),
            created_by: self.account.to_string(),
            run: None,
            build: None,
            step_id: None,
            restores: None,
            now,
        }
    }

    pub(crate) async fn enqueue(&self, new: NewJob) -> Result<JobId> {
        Ok(self.store.enqueue(new, None).await?.job.id)
    }

    pub(crate) async fn queued(&self, job_type: JobType) -> Result<JobId> {
        self.enqueue(self.job(job_type)).await
    }

    /// One poll with so many free slots in each of the groups; `held` says which executors are dead.
    pub(crate) async fn poll(
        &self,
        free: &[(JobGroup, u32)],
        held: &[(&Claim, bool)],
    ) -> Result<PollOutput, StoreError> {
        self.store.poll(self.poll_input(free, held)).await
    }

    pub(crate) fn poll_input(&self, free: &[(JobGroup, u32)], held: &[(&Claim, bool)]) -> PollInput {
        let now = self.now();
        PollInput {
            runner_id: self.runner.clone(),
            generation: self.generation,
            order: (1, unique() as u64),
            free: free.iter().copied().collect(),
            held: held
                .iter()
                .map(|(c, dead)| (c.id.clone(), c.epoch, if *dead { HeldState::Dead } else { HeldState::Alive }))
                .collect(),
            lease_s: LEASE_S,
            now,
            fresh: (0..CLAIMS_PER_POLL).map(|_| (ExecutionId::new(now, unique()), "hash".into())).collect(),
        }
    }

    /// Takes what the queue offers to four slots of every group, with a list of what is held.
    pub(crate) async fn take(&self, held: &[&Claim]) -> Result<Vec<Claim>, StoreError> {
        let free: Vec<_> = JobGroup::ALL.iter().map(|g| (*g, 4)).collect();
        let held: Vec<_> = held.iter().map(|c| (*c, false)).collect();
        Ok(claims(&self.poll(&free, &held).await?, self.generation))
    }

    /// Takes the one job that the queue offers.
    pub(crate) async fn claimed(&self, held: &[&Claim]) -> Result<Claim> {
        self.take(held).await?.pop().context("the queue offers a job")
    }

    /// Queues a job, takes and starts it.
    pub(crate) async fn running(&self, new: NewJob, held: &[&Claim]) -> Result<Claim> {
        self.enqueue(new).await?;
        let claim = self.claimed(held).await?;
        self.start(&claim).await?;
        Ok(claim)
    }

    pub(crate) async fn start(&self, claim: &Claim) -> Result<(), StoreError> {
        self.store.start(&self.runner, claim.generation, &claim.id, LEASE_S, self.now()).await.map(|_| ())
    }

    /// Writes a result; says whether it was recorded.
    pub(crate) async fn report(&self, claim: &Claim, outcome: Outcome) -> Result<bool, StoreError> {
        let now = self.now();
        let result = result_of(outcome, now);
        let written = self
            .store
            .write_result(&self.org, (&self.runner, self.generation), &claim.id, claim.epoch, &result, now)
            .await?;
        Ok(written.recorded)
    }

    /// Renews one lease; says whether it is still ours.
    pub(crate) async fn renew(&self, claim: &Claim) -> Result<bool, StoreError> {
        let held = vec![(claim.id.clone(), claim.epoch)];
        let (renewed, lost, _) = self.store.renew(&self.runner, self.generation, held, LEASE_S, self.now()).await?;
        assert_eq!(renewed.len() + lost.len(), 1);
        Ok(lost.is_empty())
    }

    /// Lets all leases run out.
    pub(crate) async fn silence(&self) -> Result<usize, StoreError> {
        self.clock.advance_s(LEASE_S as i64 + 1);
        self.store.expire_leases(self.now(), 100).await
    }

    pub(crate) async fn state(&self, job: &JobId) -> Result<JobState, StoreError> {
        Ok(self.store.job(&self.org, job).await?.state)
    }

    /// Everything that lies in the database, as bytes.
    pub(crate) async fn dump(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.is_sqlite() {
            for file in fs_err::read_dir(self.place.dir.path().join("db"))? {
                bytes.extend(fs_err::read(file?.path())?);
            }
            return Ok(bytes);
        }
        let client = connect(&self.place).await?;
        client.batch_execute("SET bytea_output = 'escape'").await?;
        let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'";
        for table in client.query(tables, &[]).await? {
            let name: String = table.get(0);
            for row in client.query(&format!("SELECT t::text FROM {name} t"), &[]).await? {
                bytes.extend(row.get::<_, String>(0).into_bytes());
            }
        }
        Ok(bytes)
    }
}

/// A connection of one's own to the PostgreSQL of a place.
pub(crate) async fn connect(place: &FreshDatabase) -> Result<tokio_postgres::Client> {
    let (client, connection) = tokio_postgres::connect(&place.database_url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub(crate) fn claims(output: &PollOutput, generation: u64) -> Vec<Claim> {
    let claim = |a: &store::Assigned| Claim {
        job: a.job.id.clone(),
        id: a.execution_id.clone(),
        epoch: a.job.epoch,
        generation,
    };
    output.claimed.iter().map(claim).collect()
}

pub(crate) async fn new_org(store: &Store, account: &AccountId, name: &str, now: Timestamp) -> Result<OrgId> {
    let (org, runner) = org_named(account, name, now);
    let id = org.id.clone();
    store.create_org(org, runner, None).await?;
    Ok(id)
}

pub(crate) fn org_named(account: &AccountId, name: &str, now: Timestamp) -> (Org, NewRunner) {
    let (id, runner) = (OrgId::new(now, unique()), RunnerId::new(now, unique()));
    let org = Org {
        id: id.clone(),
        name: name.into(),
        sandbox_mode: false,
        simulation: serde_json::json!({}),
        build_runner_id: runner.clone(),
        created_by: account.clone(),
        created_at: now,
        updated_at: now,
    };
    (org, NewRunner { id: runner, org_id: id, name: "build".into(), kind: RunnerKind::Build, install_id: None })
}

pub(crate) fn app_named(account: &AccountId, org: &OrgId, name: &str, now: Timestamp) -> App {
    App {
        id: AppId::new(now, unique()),
        org_id: org.clone(),
        name: name.into(),
        display_name: name.into(),
        description: String::new(),
        settings: Default::default(),
        created_by: account.clone(),
        created_at: now,
        updated_at: now,
    }
}

pub(crate) async fn new_install(
    store: &Store,
    account: &AccountId,
    org: &OrgId,
    name: &str,
    now: Timestamp,
) -> Result<(AppId, InstallId, RunnerId)> {
    let app = app_named(account, org, name, now);
    let app_id = app.id.clone();
    store.create_app(app, None).await?;
    let (install, runner) = install_named(account, org, &app_id, name, now);
    let ids = (app_id, install.id.clone(), runner.id.clone());
    let inputs = no_inputs(&install);
    store.create_install(install, runner, inputs, None, None).await?;
    Ok(ids)
}

pub(crate) fn no_inputs(install: &Install) -> InstallInputs {
    InstallInputs::first(InputsId::new(install.created_at, unique()), install, Default::default())
}

pub(crate) fn install_named(
    account: &AccountId,
    org: &OrgId,
    app: &AppId,
    name: &str,
    now: Timestamp,
) -> (Install, NewRunner) {
    let (id, runner) = (InstallId::new(now, unique()), RunnerId::new(now, unique()));
    let install = Install {
        id: id.clone(),
        org_id: org.clone(),
        app_id: app.clone(),
        name: name.into(),
        platform: "local".into(),
        cloud: serde_json::json!({}),
        config_id: None,
        settings: Default::default(),
        runner_id: runner.clone(),
        created_by: account.clone(),
        created_at: now,
        updated_at: now,
    };
    let kind = RunnerKind::Install;
    (install, NewRunner { id: runner, org_id: org.clone(), name: name.into(), kind, install_id: Some(id) })
}

/// PostgreSQL shows an event when no older transaction is open, those of other tests included: it is looked for until it is as expected.
pub(crate) async fn eventually<T: PartialEq + std::fmt::Debug>(
    expected: T,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<()> {
    let started = std::time::Instant::now();
    loop {
        let seen = look().await?;
        if seen == expected {
            return Ok(());
        }
        assert!(started.elapsed().as_secs() < 20, "expected {expected:?}, and it is {seen:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
