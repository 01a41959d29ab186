//! Logs: from the pipe to the disk of the control plane, from the pipe to a reader's eye, and any page of a long one.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use api::client::{LogFilter, Tail};
use api::control::Job;
use fs_err as fs;
use futures::StreamExt as _;
use mask::{Masker, Masks};
use testkit::system::{Options, System, action, script};

use crate::{Figure, percentile};

const INGEST_MIB: usize = 512;
const MASK_MIB: usize = 128;
const SECRETS: usize = 200;
const TAILED: usize = 150;
const LINES: u64 = 10_000_000;
const PAGES: u64 = 200;
const LONG: Duration = Duration::from_secs(600);

pub(crate) async fn figures(options: Options, round_trip_ms: f64) -> anyhow::Result<Vec<Figure>> {
    let mut figures = vec![mask()];
    let system = System::start(options).await;
    let _runner = system.start_runner("a").await;
    let (corpus, copy) = (system.witness("corpus"), system.witness("copy"));
    let printed = write_corpus(&corpus, INGEST_MIB << 20)?;
    let mb_s = |took: Duration| printed as f64 / 1e6 / took.as_secs_f64();

    // A child that writes the same bytes to a file.
    let begun = Instant::now();
    let text = format!("cat {} > {} && sync {}", corpus.display(), copy.display(), copy.display());
    ensure!(std::process::Command::new("sh").args(["-c", &text]).status()?.success(), "the floor can't be measured");
    let floor = mb_s(begun.elapsed());
    let begun = Instant::now();
    let job = run(&system, &format!("cat {}", corpus.display())).await?;
    let ingest = mb_s(begun.elapsed());
    figures.push(Figure::higher("log_ingest_mb_s", ingest, "MB/s", 100.0).over("cat to a file, synced", floor));
    let stream = system.client.log_stream(&job.log_stream_id).await?;
    let stored = stream.size_bytes.context("a size")? as f64;
    figures.push(Figure::lower("log_stored_ratio", stored / printed as f64, "", 0.25));

    figures.push(tail(&system).await?.over("HTTP round trip", round_trip_ms));
    figures.push(pages(&system).await?.over("HTTP round trip", round_trip_ms));
    Ok(figures)
}

async fn run(system: &System, text: &str) -> anyhow::Result<Job> {
    let mut wanted = action(vec![script("print", text)]);
    wanted.timeout_s = Some(LONG.as_secs());
    let job = system.submit(&wanted).await;
    Ok(system.until_job(&job.id, "it has ended", LONG, |job| job.status.is_terminal()).await)
}

/// What a run of Terraform and some pods might print; the same in every run.
fn line(n: usize, out: &mut Vec<u8>) {
    let noise = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let _ = match n % 7 {
        0 => writeln!(out, "module.network.aws_subnet.private[{}]: Still creating... [{}s elapsed]", n % 16, n % 600),
        1 => writeln!(
            out,
            "aws_iam_role_policy_attachment.node_{}: Creation complete after {}s [id=node-{noise:016x}]",
            n % 40,
            n % 60
        ),
        2 => writeln!(
            out,
            "{{\"level\":\"info\",\"ts\":1794822{:06}.{:03},\"caller\":\"http/server.go:{}\",\"msg\":\"request\",\"path\":\"/v1/items/{}\",\"status\":200,\"ms\":{}}}",
            n % 1_000_000,
            n % 1000,
            n % 400,
            noise % 90_000,
            noise % 800
        ),
        3 => writeln!(
            out,
            "2026-11-16T09:{:02}:{:02}.{:03}Z INFO  worker-{} processed batch {noise:x} in {} ms",
            n / 60 % 60,
            n % 60,
            n % 1000,
            n % 8,
            noise % 900
        ),
        4 => writeln!(
            out,
            "I1116 09:{:02}:{:02}.{:06} 1 controller.go:{}] reconciling deployment/default/web-{}",
            n / 60 % 60,
            n % 60,
            noise % 1_000_000,
            n % 300,
            n % 50
        ),
        5 => writeln!(out, "  + tags = {{ \"Name\" = \"node-{}\", \"Cluster\" = \"customer-{}\" }}", n % 500, n % 20),
        _ => writeln!(
            out,
            "10.0.{}.{} - - \"GET /healthz HTTP/1.1\" 200 {} \"-\" \"kube-probe/1.34\" {noise:08x}",
            n % 255,
            noise % 255,
            n % 4000
        ),
    };
}

fn write_corpus(path: &Path, bytes: usize) -> anyhow::Result<usize> {
    let mut file = std::io::BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    let (mut written, mut text) = (0, Vec::new());
    for n in 0.. {
        text.clear();
        line(n, &mut text);
        file.write_all(&text)?;
        written += text.len();
        if written >= bytes {
            break;
        }
    }
    file.flush()?;
    Ok(written)
}

/// Masking alone, with many secrets in all their forms.
fn mask() -> Figure {
    let secret = |n: usize| format!("s3cr3t/{:x}-{n}+{:x}", n.wrapping_mul(0x517C_C1B7), n.wrapping_mul(0xC2B2_AE3D));
    let masks = Masks::new(&(0..SECRETS).map(secret).collect::<Vec<_>>());
    let mut corpus = Vec::new();
    for n in 0.. {
        line(n, &mut corpus);
        if n % 5_000 == 0 {
            corpus.extend_from_slice(secret(n % SECRETS).as_bytes());
        }
        if corpus.len() >= MASK_MIB << 20 {
            break;
        }
    }
    let (mut masker, mut out) = (Masker::default(), Vec::with_capacity(128 << 10));
    let begun = Instant::now();
    for piece in corpus.chunks(64 << 10) {
        out.clear();
        masker.push(&masks, piece, &mut out);
    }
    let took = begun.elapsed().as_secs_f64();
    let mut copied = Vec::with_capacity(128 << 10);
    let begun = Instant::now();
    for piece in corpus.chunks(64 << 10) {
        copied.clear();
        copied.extend_from_slice(std::hint::black_box(piece));
    }
    let floor = corpus.len() as f64 / 1e6 / begun.elapsed().as_secs_f64();
    Figure::higher("mask_mb_s", corpus.len() as f64 / 1e6 / took, "MB/s", 300.0).over("a copy", floor)
}

/// From the moment that a line is printed to the moment that it is seen on a tail.
async fn tail(system: &System) -> anyhow::Result<Figure> {
    let text = format!("i=0; while [ $i -lt {TAILED} ]; do i=$((i+1)); date +%s%N; sleep 0.05; done");
    let job = system.submit(&action(vec![script("tick", &text)])).await;
    let mut tail = system.client.tail(&job.log_stream_id, None);
    let mut seen = Vec::new();
    while let Some(item) = tail.next().await {
        match item? {
            Tail::Chunk(chunk) if chunk.pipe == "stdout" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as f64;
                for printed in chunk.text.lines().filter_map(|line| line.parse::<f64>().ok()) {
                    seen.push((now - printed) / 1e6);
                }
            }
            Tail::Chunk(_) => {}
            Tail::End { .. } => break,
        }
    }
    ensure!(seen.len() == TAILED, "{} lines of {TAILED} were seen", seen.len());
    Ok(Figure::lower("log_tail_p99_ms", percentile(&mut seen, 0.99), "ms", 150.0))
}

/// Pages all over a log of ten million lines.
async fn pages(system: &System) -> anyhow::Result<Figure> {
    let job = run(system, &format!("seq 1 {LINES}")).await?;
    let (client, all) = (&system.client, LogFilter::pipe(Some("stdout")));
    let edge = async |cursor: Option<&str>| client.log_records(&job.log_stream_id, &all, cursor).await;
    let first: u64 = edge(None).await?.0.first().context("a record")?.cursor.parse()?;
    let url = format!("{}/v1/log-streams/{}/logs?order=desc&pipe=stdout", system.control_url, job.log_stream_id);
    let request = reqwest::Client::builder().tls_certs_only([]).no_proxy().build()?.get(url);
    let request = request.bearer_auth(system.token()).header("X-Nuon-Org-ID", system.org.id.as_str());
    let newest: Vec<api::control::LogRecord> = request.send().await?.json().await?;
    let last: u64 = newest.first().context("a last record")?.cursor.parse()?;
    let mut times = Vec::new();
    for n in 0..PAGES {
        // All over the log, in no order.
        let at = first + (last - first) / PAGES * (n * 73 % PAGES);
        let begun = Instant::now();
        let (page, _) = edge(Some(&at.to_string())).await?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        ensure!(!page.is_empty(), "an empty page");
    }
    Ok(Figure::lower("log_page_ms", percentile(&mut times, 0.99), "ms", 20.0))
}
