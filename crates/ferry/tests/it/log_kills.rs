//! Logs while everything dies: scripts print numbered lines, and runner, executors, server and database are killed at random,
//! 80 times on each database (`FERRY_KILLS`; 1,000 in soak). What arrives is what the script printed, byte for byte; where the
//! spool was full a gap says exactly how much is missing, and only where the executor was killed the end is unknown, and said to be.
//!
//! The seed of the kills is printed; `FERRY_SEED` repeats it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::client::{Client, LogFilter, LogFormat};
use api::control::{CreateActionRun, Job, LogRecord, UpdateRunnerSettings};
use futures::StreamExt as _;
use model::log::{UNKNOWN, describe_gap};
use model::{JobGroup, JobState};
use rustix::process::Signal;
use testkit::load::{acknowledged, read_log};
use testkit::system::{Options, Runner, SOON, System, action, script, send, shown, until};
use testkit::{Backend, OwnPostgres};
use tokio::task::JoinSet;

use crate::logs::records;
use crate::{options, seconds};

/// Scripts that print at a time.
const LANES: u32 = 6;
const KILLS: u64 = 80;
const PIPES: [&str; 2] = ["stdout", "stderr"];
/// How long something is down, at most.
const DOWN_MS: u64 = 500;
/// Between two kills, and after so many of them: then there is a chance that something new is begun.
const BETWEEN_MS: std::ops::Range<u64> = 150..350;
const CALM_MS: std::ops::Range<u64> = 800..1600;
const CALM_EVERY: u64 = 10;
const LOOK: Duration = Duration::from_millis(20);

/// Prints lines of all kinds, each of which the witness has before. Its arguments: the witness, and a number to begin with.
const PRINTER: &str = r#"
w=WITNESS; i=FIRST; last=$((i + 200))
echo begin >> $w
long=0123456789abcdef
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13; do long=$long$long; done
out() { printf "$@" >> $w.stdout; printf "$@"; }
err() { printf "$@" >> $w.stderr; printf "$@" >&2; }
while [ $i -lt $last ]; do
    i=$((i + 1))
    out '%d on stdout %.*s\n' $i $((i * 7919 % 150)) $long
    case $((i % 40)) in
        3) out 'long %d %.*s\n' $i $((i * 104729 % 131072)) $long ;;
        9) out 'no text \377\376 %d \303\000\n' $i ;;
        14) out 'not ended %d, ' $i ;;
        22) err 'long %d %.*s\n' $i $((i * 1299709 % 70000)) $long ;;
        31) err '\200\201%d\r\n' $i ;;
    esac
    [ $((i % 3)) -ne 0 ] || err '%d on stderr\n' $i
    [ $((i % 6)) -ne 0 ] || sleep 0.05
done
out 'the end of %d' $i
err 'the end of %d, too' $i
echo end >> $w
"#;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|n| n.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn draw(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Runner,
    Server,
    Executor,
    Database,
}

impl Victim {
    /// Executors less often, since their scripts end with them, and the database: without it nothing goes on.
    const WEIGHTED: [Self; 9] = {
        use Victim::{Database, Executor, Runner, Server};
        [Runner, Runner, Runner, Server, Server, Server, Executor, Executor, Database]
    };
}

/// What is killed, and brought back.
struct Plant {
    system: System,
    runner: Runner,
    postgres: Option<OwnPostgres>,
    dice: Dice,
    /// When those come back that are down.
    down: BTreeMap<Victim, Instant>,
    kills: BTreeMap<Victim, u64>,
    /// Executions whose executor was killed.
    killed: BTreeSet<String>,
}

impl Plant {
    async fn start(backend: Backend) -> Self {
        let seed = setting("FERRY_SEED").unwrap_or_else(|| runner::session::random_u128() as u64 >> 1);
        eprintln!("{backend:?}: FERRY_SEED={seed}");
        let postgres = (backend == Backend::Postgres).then(OwnPostgres::start);
        // Leases that outlive every absence: what is unknown here is so because its executor was killed.
        let options = options()
            .on(backend)
            .with("FERRY_TIMING__LEASE_S", 60)
            .with("FERRY_TIMING__OFFLINE_S", 600)
            .with("FERRY_LOGS__SEAL_QUIET_S", 1)
            .with("FERRY_LOG__LEVEL", "warn");
        let database_url = postgres.as_ref().map(|p| p.url.clone());
        let system = System::start(Options { database_url, ..options }).await;
        let settings = UpdateRunnerSettings {
            groups: Some(BTreeMap::from([(JobGroup::Actions, LANES)])),
            // Less than some scripts print: its files come and go, and it is full at times.
            spool_bytes: Some(512 << 10),
            ..Default::default()
        };
        system.client.update_runner_settings(system.install.runner_id.as_str(), &settings).await.unwrap();
        let runner = system.start_runner("a").await;
        let (dice, down, kills, killed) = (Dice(seed | 1), BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { system, runner, postgres, dice, down, kills, killed }
    }

    /// Kills so many times, each a moment after the one before, whatever is down by then.
    async fn kill_at_random(&mut self, times: u64) {
        for n in 1.. {
            if self.kills.values().sum::<u64>() == times {
                return;
            }
            let between = if n % CALM_EVERY == 0 { CALM_MS } else { BETWEEN_MS };
            let pause = between.start + self.dice.draw(between.end - between.start);
            let next = Instant::now() + Duration::from_millis(pause);
            while Instant::now() < next {
                self.bring_back();
                tokio::time::sleep(LOOK).await;
            }
            self.kill_one();
        }
    }

    /// Kills one of those that are there, if any is.
    fn kill_one(&mut self) {
        let mut there = Victim::WEIGHTED.to_vec();
        while !there.is_empty() {
            let victim = there[self.dice.draw(there.len() as u64) as usize];
            if !self.down.contains_key(&victim) && self.kill(victim) {
                *self.kills.entry(victim).or_default() += 1;
                return;
            }
            there.retain(|v| *v != victim);
        }
    }

    /// False when there is none.
    fn kill(&mut self, victim: Victim) -> bool {
        match victim {
            Victim::Runner => {
                assert!(self.runner.process.is_alive(), "the runner ended by itself:\n{}", self.runner.log());
                self.runner.kill();
            }
            Victim::Server => self.system.kill_server(),
            Victim::Executor => return self.kill_executor(),
            Victim::Database => match &self.postgres {
                Some(postgres) => postgres.kill(),
                None => return false,
            },
        }
        self.down.insert(victim, Instant::now() + Duration::from_millis(self.dice.draw(DOWN_MS)));
        true
    }

    fn kill_executor(&mut self) -> bool {
        let all = self.system.executors();
        if all.is_empty() {
            return false;
        }
        let pid = all[self.dice.draw(all.len() as u64) as usize];
        let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let dir = command.split(|b| *b == 0).nth(2).map(String::from_utf8_lossy).unwrap_or_default();
        let Some(execution) = Path::new(&*dir).file_name() else { return false };
        // Noted before: there is no telling how far it comes.
        self.killed.insert(execution.to_string_lossy().into_owned());
        send(pid, Signal::KILL);
        true
    }

    /// Starts what has been down for long enough.
    fn bring_back(&mut self) {
        let due: Vec<Victim> = self.down.iter().filter(|(_, at)| **at <= Instant::now()).map(|(v, _)| *v).collect();
        for victim in due {
            self.down.remove(&victim);
            match (victim, &self.postgres) {
                (Victim::Runner, _) => self.runner = self.system.resume_runner("a"),
                (Victim::Server, _) => self.system.spawn_server(),
                (Victim::Database, Some(postgres)) => tokio::task::block_in_place(|| postgres.restart()),
                (Victim::Database, None) | (Victim::Executor, _) => {}
            }
        }
        // Without its database it does not start.
        if !self.down.contains_key(&Victim::Server) && !self.system.server_lives() {
            self.down.insert(Victim::Server, Instant::now() + Duration::from_millis(200));
        }
    }

    /// Brings everything back, and waits until the runner has delivered what its executors left.
    async fn settle(&mut self) {
        let began = Instant::now();
        let executions = self.runner.state_dir.join("executions");
        loop {
            self.bring_back();
            // The directory is made with the first execution.
            let left: Vec<_> =
                fs_err::read_dir(&executions).into_iter().flatten().map(|e| e.unwrap().file_name()).collect();
            if self.down.is_empty() && left.is_empty() && self.system.client.orgs().await.is_ok() {
                return;
            }
            assert!(began.elapsed() < SOON, "{:?} are down, {left:?} are left:\n{}", self.down, self.runner.log());
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// An execution of it may still be at work, or be begun.
fn is_over(job: &Job) -> bool {
    let dead = || job.executions.last().is_some_and(|e| e.finished_at.is_some());
    job.status.is_terminal() || (job.status == JobState::Unknown && dead())
}

/// Scripts, one after the other, until it is time to stop.
struct Lane {
    client: Client,
    install: String,
    witnesses: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Lane {
    async fn run(self, lane: u32) -> Vec<Job> {
        let mut jobs = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let name = format!("{lane}-{}", jobs.len());
            let text = PRINTER.replace("WITNESS", &self.witnesses.join(&name).display().to_string());
            let text = text.replace("FIRST", &(lane as usize * 1000 + jobs.len() * 37).to_string());
            let wanted = CreateActionRun { name: Some(name.clone()), ..action(vec![script("print", &text)]) };
            let client = self.client.with_idempotency_key(name);
            let job = acknowledged(|| client.create_action_run(&self.install, &wanted)).await.unwrap();
            jobs.push(self.until_over(job).await);
        }
        jobs
    }

    /// However long it takes while there are kills.
    async fn until_over(&self, job: Job) -> Job {
        let mut stopped = None;
        loop {
            let seen = self.client.job(&job.id).await;
            match seen {
                Ok(job) if is_over(&job) => return job,
                Err(error) if !error.is_transient() => panic!("{}: {error}", job.id),
                Ok(_) | Err(_) => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                let since: &mut Instant = stopped.get_or_insert_with(Instant::now);
                assert!(since.elapsed() < SOON, "{} does not end: {seen:#?}", job.id);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// What gaps say is missing.
fn gaps(records: &[LogRecord], pipe: &str) -> Vec<u64> {
    let tail = format!(" bytes of {pipe} are missing here]");
    records.iter().filter_map(|r| r.body.strip_prefix('[')?.strip_suffix(&tail)?.parse().ok()).collect()
}

/// A log as text has its bytes, and each gap in its place: the bytes before every gap with its length, and those after the last.
fn cut_at_gaps(mut text: &[u8]) -> (Vec<(&[u8], u64)>, &[u8]) {
    let find = |text: &[u8], part: &[u8]| text.windows(part.len()).position(|w| w == part);
    let (mut cut, mut from) = (Vec::new(), 0);
    let end = b" bytes are missing here]\n";
    while let Some(found) = find(&text[from..], end).map(|at| from + at) {
        let digits = text[..found].iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let start = found - digits;
        assert!(text[..start].ends_with(b"\n["), "a gap is a line of its own");
        cut.push((&text[..start - 2], std::str::from_utf8(&text[start..found]).unwrap().parse().unwrap()));
        text = &text[found + end.len()..];
        from = 0;
    }
    (cut, text)
}

/// Compares one log with what the script wrote; says whether it came to its end, and how many gaps there are.
async fn compare(plant: &Plant, job: &Job) -> (bool, usize) {
    let system = &plant.system;
    let job = system.job(&job.id).await;
    let name = job.name.as_deref().unwrap();
    let told = format!("{name}, {} ({}), {:#?}", job.id, job.status_description, job.executions);
    let was_killed = job.executions.iter().any(|e| plant.killed.contains(e.id.as_str()));
    let finished = job.status == JobState::Finished;
    assert!(finished || (job.status == JobState::Unknown && was_killed), "{}: {told}", job.status);
    let ran = system.lines(name);
    let ran: Vec<&str> = ran.iter().map(String::as_str).collect();
    assert!(["begin", "end"].starts_with(&ran) && (!finished || ran.len() == 2), "it ran otherwise: {ran:?}: {told}");
    let mut gap_count = 0;
    for pipe in PIPES {
        let written = fs_err::read(system.witness(&format!("{name}.{pipe}"))).unwrap_or_default();
        let text = read_text(&system.client, &job, pipe).await;
        let unknown = format!("\n[{}]\n", describe_gap(UNKNOWN, None));
        let marked = text.ends_with(unknown.as_bytes());
        assert_eq!(marked, !finished, "only where the executor was killed the end is unknown: {pipe} of {told}");
        let (before, last) = cut_at_gaps(&text[..text.len() - if marked { unknown.len() } else { 0 }]);
        let mut place = 0;
        for (bytes, missing) in before.iter().copied().chain([(last, 0)]) {
            let came = written.get(place..).is_some_and(|rest| rest.starts_with(bytes));
            assert!(came, "at byte {place} of {}, {} others came: {pipe} of {told}", written.len(), bytes.len());
            place += bytes.len() + missing as usize;
        }
        assert!(if finished { place == written.len() } else { place <= written.len() }, "{place}: {pipe} of {told}");
        // The other views have the same.
        let raw = read_log(&system.client, &job, Some(pipe)).await.unwrap();
        let pieces: Vec<&[u8]> = before.iter().map(|(bytes, _)| *bytes).chain([last]).collect();
        assert!(raw == pieces.concat(), "raw {pipe} differs: {told}");
        let records = records(&system.client, &job, &LogFilter::pipe(Some(pipe))).await;
        let lengths: Vec<u64> = before.iter().map(|(_, missing)| *missing).collect();
        assert_eq!(gaps(&records, pipe), lengths, "{pipe} of {told}");
        let unknown = records.iter().filter(|r| r.body == format!("[{}]", describe_gap(UNKNOWN, Some(pipe)))).count();
        assert_eq!(unknown, usize::from(!finished), "{pipe} of {told}");
        gap_count += lengths.len();
    }
    (finished, gap_count)
}

async fn read_text(client: &Client, job: &Job, pipe: &str) -> Vec<u8> {
    let filter = LogFilter::pipe(Some(pipe));
    let pieces = client.log_bytes(&job.log_stream_id, LogFormat::Text, &filter, false).await.unwrap();
    pieces.map(|piece| piece.unwrap()).collect::<Vec<_>>().await.concat()
}

async fn killed_at_random(backend: Backend) {
    let mut plant = Plant::start(backend).await;
    let (began, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let mut lanes = JoinSet::new();
    for n in 1..=LANES {
        let lane = Lane {
            client: plant.system.client.clone(),
            install: plant.system.install.id.to_string(),
            witnesses: plant.system.root().join("witness"),
            stop: Arc::clone(&stop),
        };
        lanes.spawn(lane.run(n));
    }
    plant.kill_at_random(setting("FERRY_KILLS").unwrap_or(KILLS)).await;
    let killing = began.elapsed();
    stop.store(true, Ordering::Relaxed);
    let (jobs, ()) = tokio::join!(lanes.join_all(), plant.settle());
    // What the last ones left.
    plant.settle().await;
    let jobs: Vec<Job> = jobs.into_iter().flatten().collect();
    let (mut whole, mut gaps) = (0, 0);
    for job in &jobs {
        let (finished, found) = compare(&plant, job).await;
        whole += usize::from(finished);
        gaps += found;
    }
    plant.system.until_quiet().await;
    let (status, _) = plant.system.stop_server().await;
    assert!(status.success(), "{status}");
    let verified = plant.system.admin(&["verify"]).await;
    assert!(verified.status.success(), "{}", shown(&verified));
    eprintln!(
        "{backend:?}: {:?} in {killing:.0?}; {} scripts, {whole} of them to their end; {gaps} gaps; {}; all in {:.0?}",
        plant.kills,
        jobs.len(),
        String::from_utf8_lossy(&verified.stderr).trim(),
        began.elapsed(),
    );
    // How many depends on how busy the machine is.
    assert!(whole > 0, "no script came to its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_exact_whoever_is_killed() {
    killed_at_random(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_exact_whoever_is_killed_on_postgresql() {
    killed_at_random(Backend::Postgres).await;
}

/// Numbered lines on both pipes, each of which the witness has before; between them it waits for gates.
const TALKER: &str = r#"
w=WITNESS
say() {
    i=$1
    while [ $i -lt $2 ]; do
        i=$((i + 1))
        printf '%d on stdout %.*s\n' $i $((i % 40)) ________________________________________ >> $w.stdout
        printf '%d on stdout %.*s\n' $i $((i % 40)) ________________________________________
        printf '%d on stderr\n' $i >> $w.stderr
        printf '%d on stderr\n' $i >&2
    done
    echo $2 >> $w
}
until_open() { while [ ! -e $w.$1 ]; do sleep 0.05; done; }
say 0 100
until_open away
# What the runner tries to send meanwhile: the flood comes after it.
say 100 110
sleep 2
say 110 20000
until_open back
say 20000 20100
"#;

/// How much unsent log the runner keeps here; the talker prints several times that while the server is away.
const SPOOL_BYTES: u64 = 128 << 10;

#[tokio::test]
async fn a_server_that_is_away_for_longer_than_the_spool_lasts_leaves_one_gap_in_each_pipe() {
    let mut system = System::start(options()).await;
    let settings = UpdateRunnerSettings { spool_bytes: Some(SPOOL_BYTES), ..Default::default() };
    system.client.update_runner_settings(system.install.runner_id.as_str(), &settings).await.unwrap();
    let _runner = system.start_runner("a").await;
    let job = system.script(&TALKER.replace("WITNESS", &system.witness("talker").display().to_string())).await;
    let open = |system: &System, gate: &str| fs_err::write(system.witness(&format!("talker.{gate}")), "").unwrap();
    system.until_witness("talker", "100").await;
    system.kill_server();
    open(&system, "away");
    // The script is not stopped: it comes to the end of this although nobody takes what it prints.
    system.until_witness("talker", "20000").await;
    system.start_server().await;
    let sent = async || system.text_log(&job, Some("stdout")).await.lines().count();
    let taken = until("the spool is sent", SOON, async || {
        let before = sent().await;
        tokio::time::sleep(seconds(4)).await;
        if before > 100 && sent().await == before { Ok(before) } else { Err(before.to_string()) }
    })
    .await;
    open(&system, "back");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(system.lines("talker"), ["100", "110", "20000", "20100"]);
    for pipe in PIPES {
        let (log, written) =
            (system.raw_log(&job, Some(pipe)).await, fs_err::read(system.witness(&format!("talker.{pipe}"))).unwrap());
        let gaps = gaps(&records(&system.client, &job, &LogFilter::pipe(Some(pipe))).await, pipe);
        assert_eq!(gaps.len(), 1, "one gap in {pipe}: {gaps:?}");
        assert_eq!(log.len() as u64 + gaps[0], written.len() as u64, "its count is right");
        let common = log.iter().zip(&written).take_while(|(a, b)| a == b).count();
        assert!(written.ends_with(&log[common..]), "what came before it and after it is what was printed there");
        assert!(log[common..].split(|b| *b == b'\n').count() > 100, "all of what was printed in the end is there");
        eprintln!("{pipe}: {} bytes came, {} are missing; {taken} lines before it", log.len(), gaps[0]);
    }
    system.until_quiet().await;
    system.stop_server().await;
    let verified = system.admin(&["verify"]).await;
    assert!(verified.status.success(), "{}", shown(&verified));
}
