//! Logs as people read them: every view shows the same lines, from every place, whether they are hot or sealed.

use api::client::{Client, LogFilter, Tail};
use api::control::{Job, LogRecord, UpdateRunnerSettings};
use futures::StreamExt as _;
use serde_json::Value;
use testkit::Backend;
use testkit::system::{SOON, System, action, script, send, shown, until};

use crate::options;
use crate::security::http;

const FIRST: &str = r#"
i=0; while [ $i -lt 250 ]; do i=$((i+1)); echo "line $i of the first step"; done
printf 'in \033[31mred\033[0m\n'
echo 'went wrong: code 42' >&2
"#;
const SECOND: &str = r#"
sleep 1.2
i=0; while [ $i -lt 120 ]; do i=$((i+1)); echo "second $i"; done
printf 'nul\000and \377\376 invalid\n'
echo 'went wrong: code 43' >&2
"#;

/// All records that a filter lets through, page by page; each cursor once.
pub(crate) async fn records(client: &Client, job: &Job, filter: &LogFilter) -> Vec<LogRecord> {
    let (mut all, mut cursor): (Vec<LogRecord>, Option<String>) = (Vec::new(), None);
    loop {
        let (page, next) = client.log_records(&job.log_stream_id, filter, cursor.as_deref()).await.unwrap();
        assert!(page.len() <= 100);
        all.extend(page);
        let Some(next) = next else { break };
        assert_ne!(Some(&next), cursor.as_ref(), "a page leads to itself");
        cursor = Some(next);
    }
    let mut cursors: Vec<u64> = all.iter().map(|r| r.cursor.parse().unwrap()).collect();
    assert!(cursors.is_sorted(), "in order");
    cursors.dedup();
    assert_eq!(cursors.len(), all.len(), "each cursor once");
    all
}

fn bodies(records: &[LogRecord]) -> Vec<&str> {
    records.iter().map(|r| r.body.as_str()).collect()
}

fn only(change: impl FnOnce(&mut LogFilter)) -> LogFilter {
    let mut filter = LogFilter::default();
    change(&mut filter);
    filter
}

/// A request of the dialect; its answer's cursor and records.
async fn dialect(system: &System, job: &Job, query: &str, cursor: &str) -> (String, Vec<Value>) {
    let url = format!("{}/v1/log-streams/{}/logs{query}", system.control_url, job.log_stream_id);
    let answer = http().get(url).bearer_auth(system.token()).header("X-Nuon-Org-ID", system.org.id.as_str());
    let answer = answer.header("X-Nuon-API-Offset", cursor).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let next = answer.headers().get("x-nuon-api-next").map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
    (next, answer.json().await.unwrap())
}

async fn every_view_agrees(backend: Backend) {
    let system = System::start(options().on(backend).with("FERRY_LOGS__SEAL_QUIET_S", 1)).await;
    let _runner = system.start_runner("a").await;
    let job = system.run(vec![script("first", FIRST), script("second", SECOND)]).await;
    let hot = views(&system, &job).await;
    // The same again from segments.
    sealed(&system).await;
    assert_eq!(views(&system, &job).await, hot);
}

/// The log of the only job is in segments.
async fn sealed(system: &System) {
    let blobs = system.root().join("data/blobs/logs");
    until("the log is sealed", SOON, async || match walk(&blobs).is_empty() {
        false => Ok(()),
        true => Err("no segment".to_owned()),
    })
    .await;
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().flatten();
    entries.flat_map(|e| if e.path().is_dir() { walk(&e.path()) } else { vec![e.path()] }).collect()
}

/// Looks at a log in all ways; returns its lines.
async fn views(system: &System, job: &Job) -> Vec<String> {
    let client = &system.client;
    let all = records(client, job, &LogFilter::default()).await;
    let lines: Vec<String> = all.iter().map(|r| r.body.clone()).collect();
    let stdout = records(client, job, &LogFilter::pipe(Some("stdout"))).await;
    assert_eq!(stdout.len(), 250 + 1 + 120 + 1, "{:?}", bodies(&stdout));
    assert_eq!(
        (stdout[0].body.as_str(), stdout[249].body.as_str()),
        ("line 1 of the first step", "line 250 of the first step")
    );
    let lossy: Vec<&LogRecord> = all.iter().filter(|r| r.log_attributes.contains_key("lossy")).collect();
    assert_eq!(lossy.len(), 1);
    assert!(lossy[0].body.starts_with("nul\0and "), "{:?}", lossy[0].body);

    // By step, by level, by text, by expression, and several at once.
    let errors = records(client, job, &only(|f| f.level = Some("error".into()))).await;
    assert_eq!(bodies(&errors), ["went wrong: code 42", "went wrong: code 43"]);
    let second = records(client, job, &only(|f| f.step = Some("second".into()))).await;
    assert!(second.iter().all(|r| r.runner_job_execution_step == "second") && second.len() >= 122, "{}", second.len());
    let found = records(client, job, &only(|f| f.grep = Some("line 24".into()))).await;
    assert_eq!(found.len(), 11, "{:?}", bodies(&found));
    let found = records(client, job, &only(|f| f.regex = Some("^(line|second) 1[0-9]0?( |$)".into()))).await;
    assert_eq!(found.len(), 33, "{:?}", bodies(&found));
    let found = only(|f| (f.regex, f.step) = (Some("code \\d+$".into()), Some("second".into())));
    assert_eq!(bodies(&records(client, job, &found).await), ["went wrong: code 43"]);

    // From a time, and up to one.
    let later = second.iter().find(|r| r.body == "second 1").unwrap();
    let time: model::Timestamp = model::Timestamp::try_from(later.timestamp.clone()).unwrap();
    let since = records(client, job, &only(|f| (f.since, f.pipe) = (Some(time), Some("stdout".into())))).await;
    assert_eq!(since.len(), 121, "{:?}", bodies(&since));
    let until = records(client, job, &only(|f| (f.until, f.pipe) = (Some(time), Some("stdout".into())))).await;
    assert_eq!((until.len() + since.len()) as i64 - stdout.len() as i64, 0, "{:?}", bodies(&until));

    // Backwards, as the dialect does it.
    let (mut back, mut cursor) = (Vec::new(), String::new());
    loop {
        let (next, page) = dialect(system, job, "?order=desc", &cursor).await;
        back.extend(page.iter().map(|r| r["body"].as_str().unwrap().to_owned()));
        if next.is_empty() {
            break;
        }
        cursor = next;
    }
    back.reverse();
    assert_eq!(back, lines);

    // As files.
    let dir = system.root().join("saved");
    fs_err::create_dir_all(&dir).unwrap();
    let id = job.id.as_str();
    for (name, count) in [("log.txt", None), ("log.ndjson", Some(lines.len())), ("log.ndjson.gz", Some(lines.len()))] {
        let file = dir.join(name);
        let output = system.ferry(&["logs", id, "-o", file.to_str().unwrap()]).await;
        assert!(output.status.success(), "{}", shown(&output));
        let mut bytes = fs_err::read(&file).unwrap();
        if name.ends_with(".gz") {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
            bytes = plain;
        }
        match count {
            Some(count) => {
                let read = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
                let read: Vec<LogRecord> = read.map(|line| serde_json::from_slice(line).unwrap()).collect();
                assert_eq!((read.len(), &read), (count, &all));
            }
            None => assert!(String::from_utf8_lossy(&bytes).contains("second 120\n")),
        }
    }
    lines
}

#[tokio::test]
async fn every_view_of_a_log_agrees() {
    every_view_agrees(Backend::Sqlite).await;
}

#[tokio::test]
async fn every_view_of_a_log_agrees_on_postgresql() {
    every_view_agrees(Backend::Postgres).await;
}

#[tokio::test]
async fn the_command_line_shows_what_is_asked_for() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let job = system.run(vec![script("first", FIRST), script("second", SECOND)]).await;
    let id = job.id.as_str();
    let said = async |words: &[&str]| {
        let output = system.ferry(words).await;
        assert!(output.status.success(), "{words:?}: {}", shown(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(
        said(&["logs", id, "--grep", "line 25"]).await,
        "line 25 of the first step\nline 250 of the first step\n"
    );
    assert_eq!(
        said(&["logs", id, "-f", "--grep", "code 4[0-9]", "-E", "--pipe", "stderr", "--step", "second"]).await,
        "went wrong: code 43\n"
    );
    assert!(
        said(&["logs", id, "--step", "first", "--pipe", "stdout"]).await.contains("in red\n"),
        "no colours for a file"
    );
    assert_eq!(said(&["logs", id, "--grep", "in red"]).await, "in red\n", "as it is seen");
    assert!(said(&["logs", id, "--raw"]).await.contains("in \u{1b}[31mred\u{1b}[0m\n"), "raw is raw");
    assert_eq!(
        said(&["logs", job.log_stream_id.as_str(), "--level", "error"]).await,
        "went wrong: code 42\nwent wrong: code 43\n"
    );
    let records: Value = serde_json::from_str(&said(&["logs", id, "--grep", "second 1", "--json"]).await).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 1 + 10 + 21, "{records}");
    assert_eq!(said(&["logs", id, "--since", "1h", "--until", "2020-01-01T00:00:00Z"]).await, "");
    for (words, hint) in [
        (vec!["logs", id, "--grep", "(", "-E"], "regular expression"),
        (vec!["logs", id, "--step", "third"], "it has first, second"),
        (vec!["logs", id, "--since", "soon"], "is not a time"),
    ] {
        let output = system.ferry(&words).await;
        assert!(!output.status.success() && shown(&output).contains(hint), "{}", shown(&output));
    }
}

/// Lines in pieces: slowly, with the other pipe in between, through a character, over the end of a batch; and one without an end.
const PIECES: &str = r#"
printf 'instal'; sleep 0.4; echo meanwhile >&2; printf 'ling caf\303'; sleep 0.4; printf '\251 ... '; sleep 0.4; echo done
printf 'half of stderr, ' >&2; sleep 0.4; echo one; echo two; sleep 0.4; echo 'the other half' >&2
head -c 150000 /dev/zero | tr '\0' x; sleep 0.4; echo ' long'
printf 'no end'
"#;

#[tokio::test]
async fn a_line_that_was_printed_in_pieces_is_one() {
    let system = System::start(options().with("FERRY_LOGS__SEAL_QUIET_S", 3)).await;
    let _runner = system.start_runner("a").await;
    let job = system.submit(&action(vec![script("a", PIECES), script("b", "echo ' of a'")])).await;
    let filter = only(|f| f.regex = Some("installing café|half of|x long|end".into()));
    let mut live = system.client.tail_of(&job.log_stream_id, &filter, None);
    let mut followed = String::new();
    while let Some(Ok(Tail::Chunk(chunk))) = live.next().await {
        followed.push_str(&chunk.text);
    }
    let job = system.until_over(&job.id).await;
    let long = format!("{} long", "x".repeat(150_000));
    let expected = ["installing café ... done", "half of stderr, the other half", &long, "no end"];
    assert_eq!(followed.lines().collect::<Vec<_>>(), expected);
    let mut live = system.client.tail_of(&job.log_stream_id, &LogFilter::pipe(Some("stdout")), None);
    let mut plain = String::new();
    while let Some(Ok(Tail::Chunk(chunk))) = live.next().await {
        plain.push_str(&chunk.text);
    }
    assert!(plain.starts_with("installing café ... done\n"), "characters are whole: {}", &plain[..40]);
    for round in ["hot", "sealed"] {
        if round == "sealed" {
            sealed(&system).await;
        }
        assert_eq!(bodies(&records(&system.client, &job, &filter).await), expected, "{round}");
        let all = records(&system.client, &job, &LogFilter::pipe(Some("stdout"))).await;
        let lines = ["installing café ... done", "one", "two", &long, "no end", " of a"];
        assert_eq!(bodies(&all), lines, "{round}");
        let steps: Vec<&str> = all.iter().map(|r| r.runner_job_execution_step.as_str()).collect();
        assert_eq!(steps, ["a", "a", "a", "a", "a", "b"], "{round}");
        // From every place, in both directions.
        for (at, record) in all.iter().enumerate() {
            let (_, found) = dialect(&system, &job, "?pipe=stdout", &record.cursor).await;
            let texts: Vec<&str> = found.iter().map(|r| r["body"].as_str().unwrap()).collect();
            assert_eq!(texts, lines[at..], "{round}: from {at}");
            let (_, found) = dialect(&system, &job, "?pipe=stdout&order=desc", &record.cursor).await;
            let texts: Vec<&str> = found.iter().rev().map(|r| r["body"].as_str().unwrap()).collect();
            assert_eq!(texts, lines[..=at], "{round}: back from {at}");
        }
        let raw = system.raw_log(&job, Some("stdout")).await;
        let printed = format!("installing café ... done\none\ntwo\n{long}\nno end of a\n");
        assert_eq!(String::from_utf8(raw).unwrap(), printed, "{round}: raw is what was printed");
    }
}

/// A machine that is gone leaves a line without an end: it is there all the same, once, from every place.
#[tokio::test]
async fn the_last_line_of_a_machine_that_is_gone_is_shown() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let errors = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo err $i >&2; done";
    let job =
        system.script(&format!("printf 'part one'; sleep 0.5; printf ', two'; sleep 0.5; {errors}; sleep 1000")).await;
    let mut live = system.client.tail_of(&job.log_stream_id, &only(|f| f.grep = Some("part".into())), None);
    until("all of it is there", SOON, async || {
        let errors = system.text_log(&job, Some("stderr")).await;
        if errors.ends_with("err 150\n") { Ok(()) } else { Err(errors) }
    })
    .await;
    let gone: Vec<i32> = system.executors().into_iter().chain(system.children()).collect();
    runner.kill();
    for pid in gone {
        send(pid, rustix::process::Signal::KILL);
    }
    let unknown = |job: &Job| job.status == model::JobState::Unknown;
    let job = system.until_job(&job.id, "nobody knows", 3 * SOON, unknown).await;
    let mut followed = String::new();
    while let Some(Ok(Tail::Chunk(chunk))) = live.next().await {
        followed.push_str(&chunk.text);
    }
    assert_eq!(followed, "part one, two\n", "also for who was there before");
    let (mut back, mut cursor) = (Vec::new(), String::new());
    loop {
        let (next, page) = dialect(&system, &job, "?order=desc", &cursor).await;
        back.extend(page.iter().map(|r| r["body"].as_str().unwrap().to_owned()));
        if next.is_empty() {
            break;
        }
        cursor = next;
    }
    back.reverse();
    let all = records(&system.client, &job, &LogFilter::default()).await;
    assert_eq!(bodies(&all), back);
    assert_eq!((all.len() >= 151, all.last().unwrap().body.as_str()), (true, "part one, two"));
    for record in [&all[10], &all[60], &all[all.len() - 1]] {
        let (_, found) = dialect(&system, &job, "", &record.cursor).await;
        assert_eq!(found[0]["body"].as_str().unwrap(), record.body);
    }
}

/// A quota holds jobs up in nothing: what they print beyond it is left out, and marked, byte by byte.
#[tokio::test]
async fn a_quota_leaves_out_what_is_printed_beyond_it_and_says_so() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let text = "head -c 2000000 /dev/urandom | base64 -w 100; echo the end";
    let free = system.run(vec![script("free", text)]).await;
    let whole = system.raw_log(&free, Some("stdout")).await.len();
    let said = async |words: &[&str]| {
        let output = system.ferry(words).await;
        assert!(output.status.success(), "{words:?}: {}", shown(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let kept = said(&["orgs", "logs", "--quota", "1MiB", "--retention", "30d"]).await;
    assert!(kept.contains("1 MiB") && kept.contains("30.0 days"), "{kept}");
    let held = system.run(vec![script("held", text)]).await;
    assert_eq!(held.status, model::JobState::Finished);
    let records = records(&system.client, &held, &LogFilter::pipe(Some("stdout"))).await;
    let missing = |r: &LogRecord| r.body.strip_prefix('[')?.split(' ').next()?.parse::<usize>().ok();
    let missing: usize = records.iter().map(|r| missing(r).unwrap_or_else(|| panic!("{}", r.body))).sum();
    assert_eq!(missing, whole, "every byte is counted");
    assert!(system.raw_log(&held, Some("stdout")).await.is_empty());

    // Room again: the next one is whole. What is deleted is gone, and known to be.
    said(&["orgs", "logs", "--quota", "0"]).await;
    let next = system.run(vec![script("next", text)]).await;
    assert_eq!(system.raw_log(&next, Some("stdout")).await.len(), whole);
    said(&["jobs", "erase-log", next.id.as_str(), "--yes"]).await;
    let output = system.ferry(&["logs", next.id.as_str()]).await;
    assert!(output.stdout.is_empty() && shown(&output).contains("the log was deleted at"), "{}", shown(&output));
    let output = system.ferry(&["orgs", "logs", "--retention", "1h"]).await;
    assert!(!output.status.success() && shown(&output).contains("at least a day"), "{}", shown(&output));
}

/// One line of 64 MiB, bytes that are no text, and lines as fast as they come: what arrives is what was written. In soak it is a
/// GiB (`FERRY_LOG_MIB`).
#[tokio::test]
async fn a_flood_arrives_byte_for_byte() {
    let mib: u64 = std::env::var("FERRY_LOG_MIB").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    let system = System::start(options()).await;
    // Every byte is compared: the spool holds all that the server is not fast enough for, and random bytes do not compress.
    let settings = UpdateRunnerSettings { spool_bytes: Some((mib + 256) << 20), ..Default::default() };
    system.client.update_runner_settings(system.install.runner_id.as_str(), &settings).await.unwrap();
    let _runner = system.start_runner("a").await;
    let written = system.witness("written");
    let text = format!(
        "{{ head -c 67108864 /dev/zero | tr '\\0' x; echo; head -c {} /dev/urandom; printf 'a\\000b\\377\\n'; seq 1 200000; }} | tee {}",
        mib << 20,
        written.display()
    );
    let mut wanted = action(vec![script("flood", &text)]);
    wanted.timeout_s = Some(1800);
    let began = std::time::Instant::now();
    let job = system.submit(&wanted).await;
    let job = system.until_job(&job.id, "it has ended", crate::seconds(1800), |j| j.status.is_terminal()).await;
    assert_eq!(job.status, model::JobState::Finished, "{}", job.status_description);
    let (log, file) = (system.raw_log(&job, Some("stdout")).await, fs_err::read(&written).unwrap());
    eprintln!("{} bytes in {:?}", file.len(), began.elapsed());
    let differs = log.iter().zip(&file).position(|(a, b)| a != b);
    assert!(log == file, "{} bytes came of {}; the first that differs is {differs:?}", log.len(), file.len());
}
