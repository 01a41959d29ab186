//! Ten thousand runners parked on one server: what each costs, what they ask while nothing happens, and how they come back.
//! The drones live in a process of their own (`bench herd …`), so that the server's figures are the server's.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use api::client::{Client, Options};
use serde::{Deserialize, Serialize};
use testkit::system::System;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::drone::{self, Tally};

const ADDRESSES: u8 = 4;

/// Where a herd goes: the words of its command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) control_url: String,
    pub(crate) runner_url: String,
    pub(crate) token: String,
    pub(crate) org: String,
    pub(crate) count: usize,
    pub(crate) ca_file: Option<std::path::PathBuf>,
}

/// What a herd says, one line a second.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) polls: u64,
}

/// The herd's own process.
pub(crate) async fn run(goal: Goal) -> anyhow::Result<()> {
    let options = Options { ca_file: goal.ca_file.clone(), ..Options::default() };
    let control = Client::new(&goal.control_url, Some(goal.token), Some(goal.org), &options)?;
    let https = drone::clients(ADDRESSES, goal.ca_file.as_deref())?;
    let drones = drone::join(&control, &goal.runner_url, &https, "herd", goal.count).await?;
    let tally = Tally::default();
    for (n, drone) in drones.into_iter().enumerate() {
        tokio::spawn(drone.fly(tally.clone()));
        // As they would come to be: not all in one moment.
        if n % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let said = Said { polls: tally.polls.load(Ordering::Relaxed) };
        println!("{}", serde_json::to_string(&said)?);
        std::io::stdout().flush()?;
    }
}

/// A herd as its owner sees it.
pub(crate) struct Herd {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
    pub(crate) count: usize,
}

impl Herd {
    /// Starts a herd, and returns when all of it is parked.
    pub(crate) async fn park(system: &System, count: usize, ca_file: Option<&Path>) -> anyhow::Result<Self> {
        let goal = Goal {
            control_url: system.control_url.clone(),
            runner_url: system.runner_url.clone(),
            token: system.token().into(),
            org: system.org.id.to_string(),
            count,
            ca_file: ca_file.map(Path::to_owned),
        };
        Self::start("herd", &serde_json::to_string(&goal)?, &system.runner_url, count).await
    }

    /// Starts `bench MODE GOAL`, whose connections go to this URL.
    pub(crate) async fn start(mode: &str, goal: &str, url: &str, count: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([mode, goal])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("its output")?).lines();
        let port = url.rsplit(':').next().and_then(|p| p.parse().ok()).context("a port")?;
        let mut herd = Self { child, lines, port, count };
        herd.said().await?;
        let until = Instant::now() + Duration::from_secs(600);
        while herd.connected()? < count {
            ensure!(Instant::now() < until, "{} of {count} drones are parked", herd.connected()?);
            herd.said().await?;
        }
        Ok(herd)
    }

    /// The next thing that it says.
    pub(crate) async fn said(&mut self) -> anyhow::Result<Said> {
        let line = tokio::time::timeout(Duration::from_secs(300), self.lines.next_line()).await??;
        let Some(line) = line else { bail!("the herd ended") };
        Ok(serde_json::from_str(&line)?)
    }

    /// How many connections to the server stand, by the kernel's own list.
    pub(crate) fn connected(&self) -> anyhow::Result<usize> {
        let wanted = format!(":{:04X}", self.port);
        let is_ours = |line: &&str| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&wanted)) && words.nth(1) == Some("01")
        };
        Ok(fs_err::read_to_string("/proc/net/tcp")?.lines().filter(is_ours).count())
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// How a herd came back after its server was killed and started again.
#[derive(Debug)]
pub(crate) struct Return {
    pub(crate) all_s: f64,
    pub(crate) mean_per_s: f64,
    pub(crate) peak_per_s: f64,
}

/// Kills the server, starts it again, and watches the herd come back.
pub(crate) async fn restart(system: &mut System, herd: &Herd) -> anyhow::Result<Return> {
    system.kill_server();
    system.start_server().await;
    let started = Instant::now();
    let mut seen = vec![(0.0, 0)];
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (at, now) = (started.elapsed().as_secs_f64(), herd.connected()?);
        seen.push((at, now));
        if now >= herd.count {
            break;
        }
        ensure!(at < 120.0, "{now} of {} came back in two minutes", herd.count);
    }
    let all_s = seen.last().map_or(0.0, |(at, _)| *at);
    // Over whole seconds, starting anywhere: the steepest one counts.
    let mut peak: f64 = 0.0;
    for (n, (from, before)) in seen.iter().enumerate() {
        if let Some((to, after)) = seen[n..].iter().find(|(at, _)| *at >= from + 1.0) {
            peak = peak.max((*after as f64 - *before as f64) / (to - from));
        }
    }
    Ok(Return { all_s, mean_per_s: herd.count as f64 / all_s, peak_per_s: peak })
}
