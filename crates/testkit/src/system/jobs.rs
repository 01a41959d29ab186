//! Jobs of a test: submitting them, waiting for them, and what they leave to be looked at.

use super::*;

impl System {
    // --- jobs ---

    /// Queues an action.
    pub async fn submit(&self, action: &CreateActionRun) -> Job {
        self.client.create_action_run(self.install.id.as_str(), action).await.expect("a job")
    }

    /// Queues a script of one step.
    pub async fn script(&self, text: &str) -> Job {
        self.submit(&action(vec![script("run", text)])).await
    }

    /// Runs an action to its end.
    pub async fn run(&self, steps: Vec<StepSpec>) -> Job {
        let job = self.submit(&action(steps)).await;
        self.until_over(&job.id).await
    }

    pub async fn job(&self, id: &JobId) -> Job {
        self.client.job(id).await.expect("the job")
    }

    pub async fn until_job(&self, id: &JobId, what: &str, bound: Duration, good: impl Fn(&Job) -> bool) -> Job {
        until(what, bound, async || match self.client.job(id).await {
            Ok(job) if good(&job) => Ok(job),
            Ok(job) => Err(format!(
                "job {} is {} ({}), error {:?}, executions {:?}",
                job.id, job.status, job.status_description, job.error, job.executions
            )),
            Err(error) => Err(error.to_string()),
        })
        .await
    }

    pub async fn until_state(&self, id: &JobId, state: JobState, bound: Duration) -> Job {
        self.until_job(id, &format!("the job is {state}"), bound, |job| job.status == state).await
    }

    pub async fn until_over(&self, id: &JobId) -> Job {
        self.until_job(id, "the job is over", SOON, |job| job.status.is_terminal()).await
    }

    /// Waits until a queued job says that it waits for this.
    pub async fn until_waiting(&self, id: &JobId, part: &str) -> Job {
        let what = format!("the job waits, and says `{part}`");
        let says = |job: &Job| job.waiting_reason.as_ref().is_some_and(|reason| reason.contains(part));
        self.until_job(id, &what, SOON, says).await
    }

    /// The log of a job, byte for byte.
    pub async fn raw_log(&self, job: &Job, pipe: Option<&str>) -> Vec<u8> {
        crate::load::read_log(&self.client, job, pipe).await.expect("a log")
    }

    pub async fn text_log(&self, job: &Job, pipe: Option<&str>) -> String {
        String::from_utf8_lossy(&self.raw_log(job, pipe).await).into_owned()
    }

    // --- witnesses ---

    /// A file that scripts may write to.
    pub fn witness(&self, name: &str) -> PathBuf {
        self.root.join("witness").join(name)
    }

    /// The lines that scripts have left in a witness.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = fs_err::read_to_string(self.witness(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub async fn until_witness(&self, name: &str, line: &str) {
        until(&format!("`{line}` in witness {name}"), SOON, async || {
            let lines = self.lines(name);
            if lines.iter().any(|l| l == line) { Ok(()) } else { Err(format!("{lines:?}")) }
        })
        .await;
    }

    /// A script that says `begin` in its witness, writes numbered lines until `open` is called, and says `end`.
    pub fn held_script(&self, name: &str) -> String {
        let (witness, gate) = (self.witness(name), self.witness(&format!("{name}.go")));
        format!(
            "echo begin >> {0}\ni=0\nwhile [ ! -e {1} ]; do i=$((i+1)); echo \"line $i\"; sleep 0.05; done\necho \"last $i\"\necho end >> {0}\n",
            witness.display(),
            gate.display()
        )
    }

    /// Starts a held script and waits until it runs.
    pub async fn held(&self, name: &str) -> Job {
        let job = self.script(&self.held_script(name)).await;
        self.until_witness(name, "begin").await;
        self.until_state(&job.id, JobState::Running, SOON).await
    }

    /// Lets a held script go on to its end.
    pub fn open(&self, name: &str) {
        fs_err::write(self.witness(&format!("{name}.go")), "").expect("a gate");
    }

    /// A held script ran once, and its log has every line once, in order.
    pub async fn assert_whole(&self, job: &Job, name: &str) {
        assert_eq!(self.lines(name), ["begin", "end"], "the script ran once, to its end");
        let log = self.text_log(job, Some("stdout")).await;
        let lines: Vec<&str> = log.lines().collect();
        let (last, numbered) = lines.split_last().expect("a log");
        let expected: Vec<String> = (1..=numbered.len()).map(|n| format!("line {n}")).collect();
        assert_eq!(numbered, expected, "every line once, in order");
        assert_eq!(*last, format!("last {}", numbered.len()), "and the log is whole");
    }
}

/// An action that carries its steps.
pub fn action(steps: Vec<StepSpec>) -> CreateActionRun {
    CreateActionRun {
        name: None,
        steps,
        run_env_vars: BTreeMap::new(),
        timeout_s: None,
        secrets: Vec::new(),
        limits: Limits::default(),
        target: None,
        priority: 0,
    }
}

/// A step with a script.
pub fn script(name: &str, text: &str) -> StepSpec {
    let empty = BTreeMap::new();
    StepSpec { name: name.into(), inline_contents: Some(text.into()), command: None, source: None, env: empty }
}

/// A step with a command line.
pub fn command(name: &str, line: &str) -> StepSpec {
    StepSpec { inline_contents: None, command: Some(line.into()), ..script(name, "") }
}
