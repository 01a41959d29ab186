//! What a session does with its executions: their directories, their executors, and what is left of them.

use super::*;

/// How often the end of an executor that is not our child is looked for.
const WATCH: Duration = Duration::from_millis(100);
/// How often a state is moved to where it waits.
const RESCUE_TRIES_MAX: u32 = 30;
const LEFTOVER_GRACE: Duration = Duration::from_secs(10);

impl Driver {
    /// Takes over what an earlier process left: executors that run, results that are not delivered, and the dead.
    pub(super) fn adopt(&mut self) -> anyhow::Result<()> {
        let (dirs, rest) = ExecutionDir::list(self.state.path())?;
        rest.into_iter().for_each(|path| self.sweeper.tree(path));
        for dir in dirs {
            let Ok(assignment) = dir.assignment() else {
                // Not even whole: missing from our list, the claim goes back to the queue.
                self.sweeper.tree(dir.set_aside()?);
                continue;
            };
            let found = find(&dir);
            tracing::info!(execution = %assignment.execution_id, ?found, "takes an execution over");
            crash_point!("runner.adopt");
            self.core.adopt(&assignment, found);
            if found == Found::Unstarted {
                // The server may have granted the start. Nothing was begun, and nothing will be: it is told so.
                let (ended, _) = watch::channel(false);
                self.watched.insert(assignment.execution_id.clone(), Watched { dir, assignment, ended });
            } else {
                self.watch(dir, assignment, None, found);
            }
        }
        Ok(())
    }

    /// Gets the spec, checks both papers, and writes everything into a directory.
    pub(super) fn prepare(&mut self, nonce: String, assignment: Assignment) {
        crash_point!("runner.poll_answered");
        let (client, trusted, context) = (self.client.clone(), self.trusted.clone(), self.context(&nonce));
        let refused = Arc::clone(&self.refused);
        self.aside(async move {
            let id = assignment.execution_id.clone();
            let about = About { id: &id, token: &assignment.execution_token };
            let spec = match &assignment.spec {
                Some(text) => Bytes::copy_from_slice(text.as_bytes()),
                None => match client.spec(about).await {
                    Ok(spec) => spec,
                    Err(error) => {
                        tracing::warn!(execution = %id, %error, "the spec can't be had");
                        return Event::NotPrepared(id);
                    }
                },
            };
            match make_dir(&trusted, &context, &assignment, &spec) {
                Ok(_) => {
                    crash_point!("runner.prepared");
                    Event::Prepared(id)
                }
                Err(error) if error.code == PAPERS_REFUSED => {
                    tracing::error!(execution = %id, error = error.message, "the papers are refused; nothing is run");
                    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                    refused.insert(id.clone(), (assignment, error));
                    Event::Refused(id)
                }
                Err(error) => {
                    tracing::error!(execution = %id, error = error.message, "the execution can't be prepared");
                    Event::NotPrepared(id)
                }
            }
        });
    }

    pub(super) fn context(&self, nonce: &str) -> ExecutionContext {
        ExecutionContext {
            runner_id: self.session.runner_id.clone(),
            generation: self.session.generation,
            nonce: nonce.to_owned(),
            trust: self.session.trust.clone(),
            keys: self.session.keys.clone(),
            runner_url: self.session.url.clone(),
            state_dir: self.state.path().to_owned(),
            spool_bytes: self.session.settings.spool_bytes,
            execution_disk_bytes: self.session.settings.execution_disk_bytes,
            offline_s: self.session.timing.offline_s,
            ca_file: self.options.ca_file.clone(),
            allow_paths: self.options.allow_paths.clone(),
            no_ad_hoc: self.options.no_ad_hoc,
            kind: Some(self.options.kind),
            base_registries: self.options.base_registries.clone(),
            tools: self.options.tools.clone(),
            hide: std::env::var_os(env::RUNNER_HIDE).map(PathBuf::from),
            boot_id: process::boot_id(),
        }
    }

    pub(super) fn refuse(&mut self, id: ExecutionId) {
        let taken = self.refused.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some((assignment, error)) = taken else { return };
        let client = self.client.clone();
        self.aside(async move {
            let about = About { id: &id, token: &assignment.execution_token };
            Delivery::refuse(&client, about, assignment.epoch, error).await;
            Event::Delivered(id)
        });
    }

    pub(super) fn refuse_unreadable(&self, unreadable: UnreadableJob) {
        tracing::error!(execution = %unreadable.execution_id, job_type = unreadable.job_type, "a job of an unknown type is refused");
        let text = format!(
            "runner {} does not know jobs of type `{}`: update the runner",
            env!("CARGO_PKG_VERSION"),
            unreadable.job_type
        );
        let client = self.client.clone();
        self.aside(async move {
            let about = About { id: &unreadable.execution_id, token: &unreadable.execution_token };
            Delivery::refuse(&client, about, unreadable.epoch, JobError::new("unknown_job_type", text)).await;
            Event::Delivered(unreadable.execution_id)
        });
    }

    pub(super) fn start(&mut self, id: ExecutionId) {
        // It was prepared beside the loop: its directory is found here.
        if !self.watched.contains_key(&id)
            && let Ok(dir) = ExecutionDir::open(&self.state.path().join("executions").join(id.as_str()))
            && let Ok(assignment) = dir.assignment()
        {
            let (ended, _) = watch::channel(false);
            self.watched.insert(id.clone(), Watched { dir, assignment, ended });
        }
        let Some(watched) = self.watched.get(&id) else { return self.handle(Event::NotPrepared(id)) };
        let (client, token) = (self.client.clone(), watched.assignment.execution_token.clone());
        self.aside(async move {
            crash_point!("runner.before_start");
            match client.start(About { id: &id, token: &token }).await {
                Ok(_) => {
                    crash_point!("runner.start_acked");
                    Event::Started(id)
                }
                Err(error) if error.is_transient() => Event::StartFailed(id),
                Err(error) => {
                    tracing::warn!(execution = %id, %error, "the start was not granted");
                    Event::StartRefused(id)
                }
            }
        });
    }

    pub(super) fn spawn(&mut self, id: &ExecutionId) {
        // Nothing in between: a process that dies here leaves a job that the server calls started and nobody began.
        let Some(watched) = self.watched.remove(id) else { return };
        let Watched { dir, assignment, .. } = watched;
        let spawned = dir.mark_started().map_err(anyhow::Error::from).and_then(|()| {
            crash_point!("runner.started_marked");
            spawn_executor(&dir)
        });
        crash_point!("runner.spawned");
        let child = match spawned {
            Ok(child) => Some(child),
            Err(error) => {
                tracing::error!(execution = %id, %error, "the executor can't be started");
                // Nothing ran, and that is certain: a result, not a riddle.
                let error = JobError::new("executor_error", format!("the executor can't be started: {error}"));
                let _ = dir.write_result(&ExecutionResult::without_work(Outcome::Failed, error, now()));
                None
            }
        };
        self.watch(dir, assignment, child, Found::Running);
        self.write_session();
    }

    /// Watches an executor to its end, and delivers its log meanwhile.
    pub(super) fn watch(
        &mut self,
        dir: ExecutionDir,
        assignment: Assignment,
        child: Option<tokio::process::Child>,
        found: Found,
    ) {
        let id = assignment.execution_id.clone();
        let (ended, watching) = watch::channel(false);
        match Delivery::new(self.client.clone(), dir.clone()) {
            Ok(delivery) => {
                let (id, fresh) = (id.clone(), child.is_some());
                self.aside(async move {
                    delivery.run(fresh, watching).await;
                    Event::Delivered(id)
                });
            }
            Err(error) => tracing::error!(execution = %id, %error, "an execution directory can't be read"),
        }
        if found != Found::WithResult {
            let (id, dir, events) = (id.clone(), dir.clone(), self.events.clone());
            let (state_dir, rescued) = (self.state.path().to_owned(), Arc::clone(&self.rescued));
            self.aside(async move {
                await_executor(&dir, child).await;
                let has_result = matches!(dir.result(), Ok(Some(_)));
                if !has_result {
                    tracing::error!(execution = %id, "the executor died without a result");
                    let left = process::reap_leftovers(&dir, LEFTOVER_GRACE).await;
                    if left > 0 {
                        tracing::error!(execution = %id, left, "processes of a dead executor can't be killed");
                    }
                    if let Err(error) = spool::mark_death(&dir.spool()) {
                        tracing::error!(execution = %id, %error, "the log can't say that its end may be missing");
                    }
                    take_rescued(&id, &dir, &state_dir).await;
                }
                // With or without a result, a state may wait now: the control plane hears of it before it hears of the end.
                let _ = events.send(Event::Rescues(rescue::open(&state_dir))).await;
                rescued.notify_one();
                Event::Ended { id, has_result }
            });
        }
        self.watched.insert(id, Watched { dir, assignment, ended });
    }

    pub(super) fn renew(&self, held: Vec<api::runner::Held>) {
        let client = self.client.clone();
        let bound = Duration::from_secs((self.session.timing.lease_s / 3).max(1));
        self.aside(async move {
            crash_point!("runner.before_renew");
            match client.renew(held, bound).await {
                Ok(answer) => {
                    crash_point!("runner.renewed");
                    Event::Renewed(Box::new(answer))
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease was not renewed");
                    Event::RenewFailed { over: error.over() }
                }
            }
        });
    }

    pub(super) fn touch(&mut self, ids: &[ExecutionId]) {
        self.renewals += 1;
        // Unlike any number that an earlier process wrote.
        let mark = u64::from(std::process::id()) << 32 | self.renewals;
        for watched in ids.iter().filter_map(|id| self.watched.get(id)) {
            if let Err(error) = watched.dir.touch_renewed(mark) {
                tracing::warn!(%error, "a renewal can't be noted");
            }
        }
    }

    pub(super) fn remove(&mut self, id: &ExecutionId) {
        let Some(watched) = self.watched.remove(id) else {
            // Prepared beside the loop, and given up before it was seen here.
            let left = ExecutionDir::open(&self.state.path().join("executions").join(id.as_str()));
            if let Ok(dir) = left {
                self.sweep(id, dir);
            }
            return;
        };
        if watched.dir.is_started() {
            let outcome = match watched.dir.result() {
                Ok(Some(result)) => serde_json::to_value(result.outcome).ok(),
                Ok(None) | Err(_) => None,
            };
            let outcome = outcome.and_then(|o| o.as_str().map(str::to_owned)).unwrap_or_else(|| "unknown".into());
            let a = &watched.assignment;
            let line = HistoryLine {
                time: now(),
                job_id: a.job_id.to_string(),
                execution_id: id.to_string(),
                job_type: a.job_type.to_string(),
                name: a.name.clone(),
                outcome,
            };
            if let Err(error) = self.state.add_history(line) {
                tracing::warn!(%error, "the history can't be written");
            }
        }
        crash_point!("runner.before_remove");
        self.sweep(id, watched.dir);
    }

    pub(super) fn sweep(&self, id: &ExecutionId, dir: ExecutionDir) {
        if let Err(error) = self.sweeper.execution(dir, self.state.path()) {
            tracing::error!(execution = %id, %error, "an execution directory can't be removed yet");
        }
    }
}

/// How an execution stands that an earlier process left.
fn find(dir: &ExecutionDir) -> Found {
    // What was written last may be missing after the machine went down: then its absence proves nothing.
    let same_boot = dir.context().is_ok_and(|context| context.boot_id == process::boot_id());
    if !dir.is_started() {
        return if same_boot { Found::Unstarted } else { Found::Dead };
    }
    // Life first: the result is the last thing that an executor writes.
    match (dir.executor_alive(), dir.result()) {
        (true, _) => Found::Running,
        (false, Ok(Some(_))) => Found::WithResult,
        // The earlier process died before its executor took the lock; one that comes late finds it used.
        (false, Ok(None)) if same_boot && dir.take_back() => Found::Unstarted,
        (false, _) if dir.executor_alive() => Found::Running,
        (false, _) => Found::Dead,
    }
}

/// Checks the papers; only then is a directory made.
fn make_dir(
    trusted: &TrustedKeys,
    context: &ExecutionContext,
    assignment: &Assignment,
    spec: &[u8],
) -> Result<ExecutionDir, JobError> {
    let expected =
        Expected { runner_id: &context.runner_id, generation: context.generation, nonce: &context.nonce, now: now() };
    check_papers(trusted, &expected, assignment, spec)?;
    ExecutionDir::create(&context.state_dir, assignment, spec, context)
        .map_err(|e| JobError::new("no_directory", e.to_string()))
}

/// Starts an executor that outlives this process: no kill on drop, output into a file.
fn spawn_executor(dir: &ExecutionDir) -> anyhow::Result<tokio::process::Child> {
    let log = fs_err::File::create(dir.path().join("executor.log"))?.into_parts().0;
    let child = tokio::process::Command::new("/proc/self/exe")
        .arg("execute")
        .arg(dir.path())
        .arg0("ferry-runner")
        .env_remove(env::RUNNER_JOIN)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(false)
        .spawn()?;
    Ok(child)
}

/// Puts a state that a dead executor left where it waits. On a full disk this is tried again for a while; after that the state stays
/// in the execution's directory, which is not removed with it.
async fn take_rescued(id: &ExecutionId, dir: &ExecutionDir, state_dir: &Path) {
    for tries in 0..RESCUE_TRIES_MAX {
        match rescue::take(dir, state_dir) {
            Ok(_) => return,
            Err(error) if tries == 0 => {
                let why = vault::named(&rescue::place(state_dir), &error);
                tracing::error!(execution = %id, why, "Terraform's state that this execution left can't be kept yet: free disk space");
            }
            Err(_) => {}
        }
        tokio::time::sleep(RESCUE).await;
    }
}

/// Returns when the executor is gone, and none can come any more.
async fn await_executor(dir: &ExecutionDir, child: Option<tokio::process::Child>) {
    if let Some(mut child) = child {
        let _ = child.wait().await;
    }
    while dir.executor_alive() || !dir.close() {
        tokio::time::sleep(WATCH).await;
    }
}
