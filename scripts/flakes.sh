#!/usr/bin/env bash
# The process tests, N times, beside a busy build: names each test that failed even once. Logs of failed rounds stay.
source "$(dirname "$0")/lib.sh"
target=${CARGO_TARGET_DIR:-target}
rounds=${N:-10}
logs="$target/flakes"
rm -rf "$logs"
mkdir -p "$logs"
scripts/apt-tools.sh && scripts/python-tools.sh && scripts/terraform-tools.sh && scripts/oci-tools.sh
cargo build --workspace --all-features --bins --tests --message-format=json-render-diagnostics >"$target/test-binaries.json"
tests=$(scripts/run-tests.py "$target/test-binaries.json" --path ferry it)

# A real build, again and again, in a place of its own.
busy() {
    while :; do
        rm -rf "$target/flakes-build"
        cargo build --quiet --release --manifest-path tests/provider/Cargo.toml --target-dir "$target/flakes-build" >/dev/null 2>&1 || sleep 1
    done
}
set -m
busy &
busy=$!
set +m
trap 'kill -- -"$busy" 2>/dev/null || true; rm -rf "$target/flakes-build"' EXIT

failed=0
for round in $(seq 1 "$rounds"); do
    log=$(realpath -m "$logs/$round.log")
    # A filter for a few tests: FLAKES="crashes::".
    if (cd crates/ferry && RUST_TEST_THREADS=${RUST_TEST_THREADS:-5} timeout 3600 "$tests" ${FLAKES:-} >"$log" 2>&1); then
        say "round $round of $rounds: ok"
        rm "$log"
    else
        failed=$((failed + 1))
        say "round $round of $rounds: failed, see $log"
    fi
done
if [ "$failed" = 0 ]; then
    echo "flakes: none in $rounds rounds"
    exit 0
fi
echo "flakes: $failed of $rounds rounds failed. Failures of each test:"
grep -h '^test .* \.\.\. FAILED$' "$logs"/*.log | awk '{ print $2 }' | sort | uniq -c | sort -rn
exit 1
