//! Large documents are read within a fixed amount of memory. `FERRY_PLAN_MIB=200` reads documents of that size.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::io::Read;
use std::time::Instant;

use terraform::{Limits, read_plan, read_state, secrets_of_plan};

const MIB: usize = 1 << 20;
/// What reading may add to the process at its peak, whatever the size of the document.
const PEAK_MIB_MAX: usize = 48;

/// Makes a document piece by piece: it is never in memory as a whole.
struct Generated<F> {
    piece: F,
    next: usize,
    buffer: Vec<u8>,
    read: usize,
}

impl<F: Fn(usize) -> Option<String>> Generated<F> {
    fn new(piece: F) -> Self {
        Self { piece, next: 0, buffer: Vec::new(), read: 0 }
    }
}

impl<F: Fn(usize) -> Option<String>> Read for Generated<F> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.read == self.buffer.len() {
            self.buffer = (self.piece)(self.next).unwrap_or_default().into_bytes();
            self.next += 1;
            self.read = 0;
        }
        let count = to.len().min(self.buffer.len() - self.read);
        to[..count].copy_from_slice(&self.buffer[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

fn attributes(i: usize, password: &str) -> String {
    let tags: Vec<String> = (0..20).map(|tag| format!(r#""tag{tag}":"value {tag} of resource {i}""#)).collect();
    let user_data = "#!/bin/sh echo ".repeat(100);
    format!(
        r#"{{"id":"i-{i:010}","password":"{password}-{i}","tags":{{{}}},"user_data":"{user_data}"}}"#,
        tags.join(",")
    )
}

/// The resources twice, as in a real plan: what is planned, and what changes.
fn plan(bytes: usize) -> (usize, impl Fn(usize) -> Option<String>) {
    let resource = |i: usize| {
        let action = if i % 100 == 7 { r#"["delete","create"]"# } else { r#"["update"]"# };
        let (before, after) = (attributes(i, "before-secret"), attributes(i + 1, "after-secret"));
        format!(
            r#"{{"address":"aws_db_instance.it[{i}]","mode":"managed","type":"aws_db_instance","name":"it","index":{i},
            "provider_name":"registry.terraform.io/hashicorp/aws","change":{{"actions":{action},"before":{before},
            "after":{after},"after_unknown":{{"arn":true}},"before_sensitive":{{"password":true}},
            "after_sensitive":{{"password":true}}}}}}"#
        )
    };
    let planned =
        |i: usize| format!(r#"{{"address":"aws_db_instance.it[{i}]","values":{}}}"#, attributes(i, "planned"));
    let count = bytes / (resource(1000).len() + planned(1000).len());
    let piece = move |n: usize| match n {
        0 => Some(r#"{"format_version":"1.2","planned_values":{"root_module":{"resources":[null"#.to_owned()),
        n if n <= count => Some(format!(",{}", planned(n))),
        n if n == count + 1 => Some(format!("]}}}},\"resource_changes\":[{}", resource(0))),
        n if n <= 2 * count => Some(format!(",{}", resource(n - count - 1))),
        n if n == 2 * count + 1 => Some("]}".to_owned()),
        _ => None,
    };
    (count, piece)
}

/// One resource with very many instances.
fn state(bytes: usize) -> (usize, impl Fn(usize) -> Option<String>) {
    let instance = |i: usize| {
        format!(
            r#"{{"index_key":{i},"attributes":{},"sensitive_attributes":[[{{"type":"get_attr","value":"password"}}]]}}"#,
            attributes(i, "secret")
        )
    };
    let count = bytes / instance(1000).len();
    let piece = move |n: usize| {
        match n {
        0 => Some(
            r#"{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":"l","outputs":{},"resources":[{"mode":"managed",
            "type":"aws_db_instance","name":"it","provider":"provider[\"r/h/aws\"]","instances":["#
                .to_owned()
                + &instance(0),
        ),
        n if n < count => Some(format!(",{}", instance(n))),
        n if n == count => Some("]}]}".to_owned()),
        _ => None,
    }
    };
    (count, piece)
}

fn memory_mib(field: &str) -> usize {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

fn measured<T>(what: &str, mib: usize, read: impl FnOnce() -> T) -> T {
    let (before, start) = (memory_mib("VmRSS"), Instant::now());
    let result = read();
    let (peak, took) = (memory_mib("VmHWM"), start.elapsed());
    println!("{what}: {mib} MiB in {:.1} s, {before} MiB before, {peak} MiB at the peak", took.as_secs_f64());
    assert!(peak <= before.max(16) + PEAK_MIB_MAX, "{what}: {before} MiB before, {peak} MiB at the peak");
    result
}

#[test]
fn large_documents_take_little_memory() {
    let mib = std::env::var("FERRY_PLAN_MIB").map_or(30, |mib| mib.parse().unwrap());
    let (count, piece) = plan(mib * MIB);
    let mask = |text: &str| text.to_owned();
    let plan = measured("plan", mib, || read_plan(Generated::new(&piece), &mask, &Limits::default()).unwrap());
    assert_eq!((plan.changes.update + plan.changes.replace) as usize, count);
    assert_eq!(plan.resources.len() as u64 + plan.omitted.resources, count as u64);
    let bytes = serde_json::to_string(&plan).unwrap().len();
    assert!(bytes < 9 * MIB, "{bytes}");
    assert!(plan.resources.iter().filter(|change| change.stateful).count() >= count / 100);
    drop(plan);

    let secrets = measured("secrets", mib, || secrets_of_plan(Generated::new(&piece)).unwrap());
    assert_eq!(secrets.values.len() as u64 + secrets.omitted, 2 * count as u64);
    drop(secrets);

    let (count, piece) = state(mib * MIB / 2);
    let state = measured("state", mib / 2, || read_state(Generated::new(&piece), &mask).unwrap());
    assert_eq!(state.resources.len() as u64 + state.resources_omitted, count as u64);
}
