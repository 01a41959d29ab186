#!/usr/bin/env bash
# Every test. What the machine can't do is said first; the tests that this costs are skipped, listed and counted.
# FERRY_TEST_ALL=1: a skipped test is a failure, but for those that want ../shared where there is none.
source "$(dirname "$0")/lib.sh"
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
need_rust
need python3 python3
scripts/apt-tools.sh check
scripts/machine.sh
# Without terraform the suite runs with OpenTofu.
command -v terraform >/dev/null 2>&1 || export FERRY_TEST_PROGRAM=${FERRY_TEST_PROGRAM:-tofu}

# tools: what tests use besides our own binaries; fetched and built while cargo builds.
tools() {
    scripts/apt-tools.sh
    scripts/python-tools.sh
    scripts/terraform-tools.sh
    [ "${FERRY_TEST_PROGRAM:-}" != tofu ] || scripts/terraform-tools.sh tofu
    scripts/oci-tools.sh
    scripts/node-tools.sh
    scripts/ui.sh check
}
tools >"$target/test-tools.log" 2>&1 &
tools=$!
trap 'kill "$tools" 2>/dev/null || true' EXIT
# Binaries and tests in one go, so that nothing is built twice.
cargo build --workspace --all-features --bins --tests --message-format=json-render-diagnostics >"$target/test-binaries.json"
say "waiting for the tools of the tests ($target/test-tools.log)"
wait "$tools" || { tail -n 30 "$target/test-tools.log" >&2; say "the tools of the tests can't be made"; exit 1; }
trap - EXIT
PATH="$(realpath "$target/terraform-tools")/bin:$PATH"
scripts/hygiene.sh
exec scripts/run-tests.py "$target/test-binaries.json" "$target/test-logs" "$target/test-skipped"
