//! The registry beside Debian's `docker-registry`: the same client, the same bytes, in turns, over loopback.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use model::Digest;
use reqwest::Method;
use testkit::system::{Options, System};
use tokio::process::{Child, Command};

use crate::Figure;
use crate::system::rss_mib;

pub(crate) const LAYERS: usize = 10;
pub(crate) const LAYER_BYTES: usize = (1 << 30) / LAYERS;
const SMALL_BLOBS: usize = 1000;
const SMALL_BYTES: usize = 4096;
const PULLERS: usize = 50;
const PULLED_BYTES: usize = 16 << 20;
const ROUNDS: usize = 3;
/// Layers that a client moves at a time, as clients do.
const AT_A_TIME: usize = 3;
const PIECE_BYTES: usize = 64 << 10;
const OTHER: &str = "docker-registry";

/// A registry, and who we are there.
struct Target {
    http: reqwest::Client,
    url: String,
    /// What names of repositories begin with.
    prefix: String,
    password: Option<String>,
}

impl Target {
    fn call(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.url) };
        let call = self.http.request(method, url);
        match &self.password {
            Some(password) => call.bearer_auth(password),
            None => call,
        }
    }

    /// Begins, sends, ends: as podman, skopeo and docker do it.
    async fn push(&self, repository: &str, bytes: &Bytes, digest: &Digest) -> anyhow::Result<()> {
        let location = |answer: &reqwest::Response| -> anyhow::Result<String> {
            Ok(answer.headers().get("location").context("no Location")?.to_str()?.to_owned())
        };
        let path = format!("/v2/{}{repository}/blobs/uploads/", self.prefix);
        let begun = self.call(Method::POST, &path).send().await?.error_for_status()?;
        let pieces: Vec<_> = (0..bytes.len()).step_by(PIECE_BYTES).collect();
        let bytes = bytes.clone();
        let pieces = pieces
            .into_iter()
            .map(move |at| Ok::<_, std::io::Error>(bytes.slice(at..bytes.len().min(at + PIECE_BYTES))));
        let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
        let sent = self.call(Method::PATCH, &location(&begun)?).body(body).send().await?.error_for_status()?;
        let last = location(&sent)?;
        let last = format!("{last}{}digest={digest}", if last.contains('?') { '&' } else { '?' });
        self.call(Method::PUT, &last).send().await?.error_for_status()?;
        Ok(())
    }

    async fn pull(&self, repository: &str, digest: &Digest, size: usize) -> anyhow::Result<()> {
        let path = format!("/v2/{}{repository}/blobs/{digest}", self.prefix);
        let answer = self.call(Method::GET, &path).send().await?.error_for_status()?;
        let read = answer.bytes_stream().try_fold(0, async |sum, piece| Ok(sum + piece.len())).await?;
        anyhow::ensure!(read == size, "{read} bytes of {size}");
        Ok(())
    }

    async fn push_all(&self, repository: &str, blobs: &[(Bytes, Digest)], at_a_time: usize) -> anyhow::Result<f64> {
        let at = Instant::now();
        let pushes = blobs.iter().map(|(bytes, digest)| self.push(repository, bytes, digest));
        futures::stream::iter(pushes).buffer_unordered(at_a_time).try_collect::<Vec<()>>().await?;
        Ok(at.elapsed().as_secs_f64())
    }

    async fn pull_all(&self, repository: &str, blobs: &[(Bytes, Digest)], at_a_time: usize) -> anyhow::Result<f64> {
        let at = Instant::now();
        let pulls = blobs.iter().map(|(bytes, digest)| self.pull(repository, digest, bytes.len()));
        futures::stream::iter(pulls).buffer_unordered(at_a_time).try_collect::<Vec<()>>().await?;
        Ok(at.elapsed().as_secs_f64())
    }
}

/// Bytes that no one has pushed before.
pub(crate) fn blobs(seed: u64, count: usize, length: usize) -> Vec<(Bytes, Digest)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut blob = || {
        let bytes: Vec<u8> =
            std::iter::repeat_with(&mut next).take(length.div_ceil(8)).flatten().take(length).collect();
        let digest = Digest::of(&bytes);
        (Bytes::from(bytes), digest)
    };
    (0..count).map(|_| blob()).collect()
}

/// Seconds of one registry: push and pull 1 GiB, push many small blobs, many pull at once.
#[derive(Debug, Default, Clone, Copy)]
struct Times {
    push: f64,
    pull: f64,
    small: f64,
    parallel: f64,
}

async fn round(target: &Target, round: usize) -> anyhow::Result<Times> {
    let repository = format!("round{round}");
    let seed = round as u64 * 100;
    let layers = blobs(seed + 1, LAYERS, LAYER_BYTES);
    let push = target.push_all(&repository, &layers, AT_A_TIME).await?;
    let pull = target.pull_all(&repository, &layers, AT_A_TIME).await?;
    drop(layers);
    let many = blobs(seed + 2, SMALL_BLOBS, SMALL_BYTES);
    let small = target.push_all(&repository, &many, 8).await?;
    let one = blobs(seed + 3, 1, PULLED_BYTES);
    target.push_all(&repository, &one, 1).await?;
    let same: Vec<_> = std::iter::repeat_n(one[0].clone(), PULLERS).collect();
    let parallel = target.pull_all(&repository, &same, PULLERS).await?;
    Ok(Times { push, pull, small, parallel })
}

/// Debian's registry on a directory, as it comes, but for its address.
pub(crate) struct DockerRegistry {
    child: Child,
    pub(crate) url: String,
    _dir: tempfile::TempDir,
}

impl DockerRegistry {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let config = dir.path().join("config.yml");
        let root = dir.path().join("data");
        let text = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\nhttp: {{addr: \"127.0.0.1:{port}\"}}\n",
            root.display()
        );
        fs_err::write(&config, text)?;
        let child = Command::new(OTHER)
            .arg("serve")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("docker-registry is missing: run scripts/apt-tools.sh")?;
        let url = format!("http://127.0.0.1:{port}");
        for _ in 0..200 {
            if reqwest::Client::builder().no_proxy().build()?.get(format!("{url}/v2/")).send().await.is_ok() {
                return Ok(Self { child, url, _dir: dir });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("docker-registry did not come up")
    }
}

/// The most memory that a process has had.
fn peak_rss_mib(pid: u32) -> anyhow::Result<f64> {
    let status = fs_err::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"))?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
}

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let system = System::start(options).await;
    let other = DockerRegistry::start().await?;
    let prefix = format!("{}/", system.org.id);
    let theirs = Target { http: http.clone(), url: other.url.clone(), prefix: String::new(), password: None };
    let mut ours = Target { http, url: system.control_url.clone(), prefix, password: None };
    let mut times: Vec<(Times, Times)> = Vec::new();
    let server = system.server().pid() as u32;
    let before = rss_mib(server)?;
    for n in 0..ROUNDS {
        ours.password = Some(token(&ours, &system, n).await?);
        // Who goes first changes: the disk still writes what the one before has left.
        let (a, b);
        if n % 2 == 0 {
            a = round(&ours, n).await?;
            b = round(&theirs, n).await?;
        } else {
            b = round(&theirs, n).await?;
            a = round(&ours, n).await?;
        }
        eprintln!("ours {a:?}\n{OTHER} {b:?}");
        times.push((a, b));
    }
    let (peak, their_peak) = (peak_rss_mib(server)?, peak_rss_mib(other.child.id().context("it has ended")?)?);
    eprintln!("memory: ours {before:.1} MiB idle, {peak:.1} MiB at most; {OTHER} {their_peak:.1} MiB at most");
    let times = Arc::new(times);
    let median = |of: fn(&Times) -> f64| {
        let mut ours: Vec<f64> = times.iter().map(|(a, _)| of(a)).collect();
        let mut theirs: Vec<f64> = times.iter().map(|(_, b)| of(b)).collect();
        (crate::percentile(&mut ours, 0.5), crate::percentile(&mut theirs, 0.5))
    };
    let figure = |name, of| {
        let (ours, theirs) = median(of);
        Figure::lower(name, ours, "s", theirs).over(OTHER, theirs)
    };
    Ok(vec![
        figure("push_1gib_s", |t| t.push),
        figure("pull_1gib_s", |t| t.pull),
        figure("push_1000_blobs_s", |t| t.small),
        figure("pull_50_parallel_s", |t| t.parallel),
        Figure::lower("registry_rss_mib", peak, "MiB", their_peak).over(OTHER, their_peak),
    ])
}

/// A token for what a round does.
async fn token(target: &Target, system: &System, round: usize) -> anyhow::Result<String> {
    let url = format!("{}/v2/token?service=ferry&scope=repository:{}round{round}:pull,push", target.url, target.prefix);
    let answer = target.http.get(url).basic_auth("any", Some(system.token())).send().await?.error_for_status()?;
    let answer: serde_json::Value = answer.json().await?;
    Ok(answer["token"].as_str().context("no token")?.to_owned())
}
