//! A plan of twenty megabytes: run with `--release --nocapture large` for its figures.

use std::time::Instant;

use policy::{Limits, PolicyKind, Subject, evaluate};
use serde_json::{Value, json};

use crate::policy;

/// What the process has had in memory at most, in MiB.
fn peak_mib() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
}

#[test]
fn a_large_plan_is_judged() {
    let resource = |n: usize| {
        json!({
            "address": format!("module.net.aws_security_group_rule.rule[{n}]"), "mode": "managed", "type": "aws_security_group_rule",
            "name": "rule", "index": n, "provider_name": "registry.terraform.io/hashicorp/aws",
            "change": {
                "actions": ["create"], "before": null, "after_unknown": { "id": true, "arn": true },
                "after": {
                    "type": "ingress", "from_port": n % 65536, "to_port": n % 65536, "protocol": "tcp",
                    "cidr_blocks": [if n == 17 { "0.0.0.0/0" } else { "10.0.0.0/8" }],
                    "description": "x".repeat(300), "tags": { "Name": format!("rule-{n}"), "env": "prod", "team": "core" },
                },
            },
        })
    };
    let changes: Vec<Value> = (0..28_000).map(resource).collect();
    let subject = Subject::Plan(json!({ "format_version": "1.2", "resource_changes": changes }));
    let bytes = serde_json::to_vec(&subject).expect("JSON").len();
    assert!(bytes > 20_000_000, "{bytes}");
    let rules = "package nuon
deny contains sprintf(\"%s is open to the world\", [rc.address]) if {
    some rc in input.plan.resource_changes
    rc.type == \"aws_security_group_rule\"
    \"create\" in rc.change.actions
    some cidr in rc.change.after.cidr_blocks
    cidr == \"0.0.0.0/0\"
}";
    let before = peak_mib();
    let start = Instant::now();
    let report = evaluate(&[policy(PolicyKind::TerraformModule, rules)], &subject, Limits::default());
    println!(
        "{bytes} bytes of plan: {:?}, peak memory {before} MiB before and {} MiB after",
        start.elapsed(),
        peak_mib()
    );
    assert_eq!(report.verdicts.len(), 1, "{report:?}");
    assert_eq!(report.verdicts[0].message, "module.net.aws_security_group_rule.rule[17] is open to the world");
}
