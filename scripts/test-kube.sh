#!/usr/bin/env bash
# The tests that need a Kubernetes cluster: with the one that KUBECONFIG names, else with one of our own, which stays up only if it was.
#   test-kube.sh [FILTER]   only the tests with this in their names
# FERRY_TEST_ALL=1: a skipped test is a failure. FERRY_KUBE_MODE=api: a cluster without pods.
source "$(dirname "$0")/lib.sh"
source scripts/kube-env.sh
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
need_rust
need python3 python3
scripts/apt-tools.sh check

# tools: what tests use besides our own binaries; fetched and built while cargo builds.
tools() {
    scripts/apt-tools.sh
    scripts/python-tools.sh
    scripts/terraform-tools.sh
    [ "${FERRY_TEST_PROGRAM:-}" != tofu ] || scripts/terraform-tools.sh tofu
    scripts/kube-tools.sh
}
# Without terraform the suite runs with OpenTofu.
command -v terraform >/dev/null 2>&1 || export FERRY_TEST_PROGRAM=${FERRY_TEST_PROGRAM:-tofu}
tools >"$target/kube-tools.log" 2>&1 &
tools=$!
trap 'kill "$tools" 2>/dev/null || true' EXIT
# The same as for `make test`, so that nothing is built twice.
cargo build --workspace --all-features --bins --tests --message-format=json-render-diagnostics >"$target/test-binaries.json"
say "waiting for Kubernetes and its tools ($target/kube-tools.log; the first time this builds Kubernetes, which takes minutes)"
wait "$tools" || { tail -n 30 "$target/kube-tools.log" >&2; say "the tools of the tests can't be made"; exit 1; }
trap - EXIT
kube_path
# helm
PATH="$PATH:$(realpath "$target/kube-tools")/bin:$(realpath "$target/terraform-tools")/bin"
if kube_is_given; then
    scripts/kube.sh up
    export FERRY_KUBECONFIG=$KUBECONFIG
else
    unset KUBECONFIG
    # A cluster that was up stays up, as long as it is as healthy as it was.
    if ! scripts/kube.sh status >/dev/null; then
        trap 'scripts/kube.sh down' EXIT
    fi
    scripts/kube.sh up >/dev/null
    export FERRY_KUBECONFIG="$kube_dir/kubeconfig" KUBECACHEDIR="$kube_dir/cache"
fi
scripts/run-tests.py "$target/test-binaries.json" "$target/test-logs" "$target/test-kube-skipped" --cluster "$@"
