//! An execution's directory with good papers, and an executor on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use api::runner::Assignment;
use model::log::{Body, Chunk, Pipe};
use model::papers::{EndorsedKey, Grant, Order, Signatory};
use model::runner::RunnerKind;
use model::spec::{ActionSpec, JobSpec, Limits, StepSpec, Work};
use model::{Digest, ExecutionId, ExecutionResult, JobId, LogStreamId, OrgId, RunnerId, Timestamp};
use runner::directory::{ExecutionContext, ExecutionDir};
use runner::logs::spool::SpoolReader;

pub(crate) struct World {
    pub(crate) state: tempfile::TempDir,
    pub(crate) spec: JobSpec,
    pub(crate) offline_s: u64,
    pub(crate) kind: Option<RunnerKind>,
    pub(crate) no_ad_hoc: bool,
    signatory: Signatory,
}

pub(crate) struct Running {
    pub(crate) dir: ExecutionDir,
    pub(crate) executor: Child,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

pub(crate) fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}

pub(crate) fn random() -> u128 {
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 32 | u128::from(std::process::id())
}

pub(crate) fn step(name: &str, command: &str) -> StepSpec {
    StepSpec {
        name: name.into(),
        inline_contents: None,
        command: Some(command.into()),
        source: None,
        env: BTreeMap::new(),
    }
}

pub(crate) fn script(name: &str, text: &str) -> StepSpec {
    StepSpec { inline_contents: Some(text.into()), command: None, ..step(name, "") }
}

impl World {
    pub(crate) fn new(steps: Vec<StepSpec>) -> Self {
        let action =
            ActionSpec { steps, builtin_env: BTreeMap::new(), run_env: BTreeMap::new(), override_env: BTreeMap::new() };
        Self::with_work(Work::ActionsWorkflow(action))
    }

    pub(crate) fn with_work(work: Work) -> Self {
        let spec = JobSpec {
            org_id: OrgId::new(now(), random()),
            app_id: None,
            install_id: None,
            job_id: JobId::new(now(), random()),
            timeout_s: 60,
            grace_s: 1,
            limits: Limits::default(),
            secrets: Vec::new(),
            cluster: None,
            pulls: None,
            store_secrets: Vec::new(),
            sealed: Vec::new(),
            trace: None,
            work,
        };
        let state = tempfile::tempdir().expect("state directory");
        Self { state, spec, offline_s: 900, kind: None, no_ad_hoc: false, signatory: Signatory::from_seed(&[5; 32]) }
    }

    pub(crate) fn action(&mut self) -> &mut ActionSpec {
        match &mut self.spec.work {
            Work::ActionsWorkflow(action) => action,
            _ => panic!("not an action"),
        }
    }

    /// Makes the directory; `change` may spoil the papers before they are signed, or the spec after.
    pub(crate) fn prepare(&self, change: impl FnOnce(&mut Order, &mut Grant, &mut Vec<u8>)) -> ExecutionDir {
        let mut bytes = serde_json::to_vec(&self.spec).expect("spec");
        let runner_id = RunnerId::new(now(), random());
        let mut order = Order {
            org_id: self.spec.org_id.clone(),
            runner_id: runner_id.clone(),
            install_id: None,
            job_id: self.spec.job_id.clone(),
            job_type: self.spec.work.job_type(),
            operation: "exec".into(),
            role: None,
            spec_digest: Digest::of(&bytes),
            artifact_digests: self.spec.work.artifacts(),
            plan_digest: None,
            not_before: now(),
            not_after: now().plus_s(600),
        };
        let execution_id = ExecutionId::new(now(), random());
        let mut grant = Grant {
            order_digest: Digest::of(b""),
            runner_id: runner_id.clone(),
            generation: 1,
            execution_id: execution_id.clone(),
            epoch: 1,
            lease_s: 30,
            offline_s: self.offline_s,
            nonce: "nonce".into(),
        };
        change(&mut order, &mut grant, &mut bytes);
        let signed_order = self.signatory.order(&order);
        grant.order_digest = signed_order.digest();
        let assignment = Assignment {
            job_id: self.spec.job_id.clone(),
            job_type: self.spec.work.job_type(),
            group: self.spec.work.job_type().group(),
            name: None,
            execution_id,
            epoch: 1,
            log_stream_id: LogStreamId::new(now(), random()),
            order: signed_order,
            grant: self.signatory.grant(&grant),
            execution_token: "execution-token".into(),
            spec: None,
        };
        let context = ExecutionContext {
            no_ad_hoc: self.no_ad_hoc,
            runner_id,
            generation: 1,
            nonce: "nonce".into(),
            trust: vec![self.signatory.fingerprint().to_owned()],
            keys: vec![EndorsedKey { public: self.signatory.public(), endorsed_by: None, signature: None }],
            runner_url: "http://127.0.0.1:1".into(),
            state_dir: self.state.path().to_owned(),
            spool_bytes: 64 << 20,
            execution_disk_bytes: 1 << 30,
            offline_s: 900,
            ca_file: None,
            allow_paths: Vec::new(),
            kind: self.kind,
            base_registries: Vec::new(),
            tools: Default::default(),
            hide: None,
            boot_id: String::new(),
        };
        fs_err::write(self.state.path().join("session.key"), "the-runners-key").expect("key");
        ExecutionDir::create(self.state.path(), &assignment, &bytes, &context).expect("directory")
    }

    pub(crate) fn start(&self) -> Running {
        let dir = self.prepare(|_, _, _| {});
        dir.mark_started().expect("started");
        start(dir)
    }

    pub(crate) fn finish(&self) -> (ExecutionResult, Running) {
        let mut running = self.start();
        let result = running.result();
        (result, running)
    }
}

pub(crate) fn start(dir: ExecutionDir) -> Running {
    let executor = Command::new(env!("CARGO_BIN_EXE_ferry-runner"))
        .arg("execute")
        .arg(dir.path())
        .env("RUNNER_SECRET", "of-the-runner")
        .stdin(Stdio::null())
        .spawn()
        .expect("executor");
    Running { dir, executor }
}

impl Running {
    /// Waits for the executor's end and reads its result.
    pub(crate) fn result(&mut self) -> ExecutionResult {
        wait_until("the executor ends", || self.executor.try_wait().expect("wait").is_some());
        assert!(!self.dir.executor_alive());
        let result = self.dir.result().expect("result").expect("there is a result");
        assert_eq!(self.chunks().len() as u64, result.log_chunks);
        assert_eq!(marked(self.dir.name()), Vec::<u32>::new(), "no process is left");
        result
    }

    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let mut reader = SpoolReader::new(&self.dir.spool(), 0);
        let mut chunks = Vec::new();
        while let Some(batch) = reader.next_batch().expect("batch") {
            chunks.extend(Chunk::decode_all(&batch.bytes).expect("frames"));
        }
        chunks
    }

    pub(crate) fn pipe(&self, pipe: Pipe) -> String {
        let bytes: Vec<u8> = self
            .chunks()
            .into_iter()
            .filter(|c| c.pipe == pipe)
            .flat_map(|c| match c.body {
                Body::Data(data) => data,
                Body::Gap(n) => panic!("a gap of {n} bytes"),
            })
            .collect();
        String::from_utf8(bytes).expect("text")
    }

    pub(crate) fn wait_for_output(&self, text: &str) {
        wait_until(text, || self.pipe(Pipe::Stdout).contains(text));
    }
}

/// Processes that carry an execution's mark.
pub(crate) fn marked(execution: &str) -> Vec<u32> {
    let mark = format!("FERRY_EXECUTION_ID={execution}");
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let environ = fs_err::read(Path::new("/proc").join(pid.to_string()).join("environ"));
            environ.is_ok_and(|bytes| bytes.split(|b| *b == 0).any(|v| v == mark.as_bytes()))
        })
        .collect()
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}
