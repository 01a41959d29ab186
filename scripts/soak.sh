#!/usr/bin/env bash
# Longer proofs, run by hand, each part in at most half an hour; release builds.
#   PART=sim       10,000 seeds of the simulator (SEEDS)
#   PART=fleet     workflows of 1,000 fleets (FERRY_FLEET_SEEDS) of 50 installs (FERRY_FLEET_INSTALLS), to each of which 20
#                  things happen (FERRY_FLEET_EVENTS): people, failures, dying servers, jumping clocks
#   PART=scale     an app of 5,000 components, the most there may be (FERRY_SCALE_COMPONENTS), provisioned and torn down
#   PART=terraform Terraform's suite with OpenTofu, all real providers, a plan of 200 MB and a state of 100 MB
#   PART=logs      a GiB printed at once arrives byte for byte; 1,000 kills on each database (FERRY_KILLS, FERRY_SEED) while
#                  scripts print; a real OpenTelemetry collector takes what is ours; 10 million random cases of masking
#   PART=linear    a million operations against both databases (FERRY_LINEAR_OPS)
#   PART=load      the server killed under full load for 600 s (FERRY_SOAK_S); FERRY_LOAD=replicas: one of two replicas on
#                  PostgreSQL; FERRY_LOAD=database: PostgreSQL itself
#   PART=networks  every bad network for 120 s (FERRY_SOAK_S), wrong clocks, full disks
#   PART=herd      10,000 runners come back to a server that was killed (RUNNERS)
#   PART=forgery   a million forged papers
#   PART=kills     the tests that kill, with new seeds, again and again for 20 minutes (SOAK_MINUTES)
#   PART=store     the tests of the store, likewise
#   PART=apps      every mutation of real apps; requests of the dialect's document, 60 for each operation (FERRY_EXAMPLES)
#   PART=flakes    the process tests, 10 times (N), beside a busy build; names each test that failed even once and keeps its log
#   PART=kube      50 looks for drift at each real chart (FERRY_DRIFT_LOOKS); every victim at every crash point of manifests and
#                  charts; charts and the deployers' contract with helm 4
#   PART=vault     secrets are read from a real Vault
#   PART=deny      cargo-deny itself over deny.toml; `make lint` checks the same with scripts/deny.py
#   PART=templates 20,000 templates (COUNT, SEED) against real Go with sprig
source "$(dirname "$0")/lib.sh"
need_rust
part=${PART:-kills}
until=$((SECONDS + ${SOAK_MINUTES:-20} * 60))
target=${CARGO_TARGET_DIR:-target}
bins="$target/release"
mkdir -p "$target"
it() { cargo test --release -p ferry --all-features --test it -- --nocapture "$@"; }

again_and_again() {
    local rounds=0
    while [ "$SECONDS" -lt "$until" ]; do
        "$@" >"$target/soak.log" 2>&1 || { tail -n 60 "$target/soak.log"; say "soak $part: failed in round $((rounds + 1))"; exit 1; }
        rounds=$((rounds + 1))
        say "soak $part: $rounds rounds good"
    done
    say "soak $part: ok, $rounds rounds"
}

# What Go gives is the measure, so without it there is nothing to compare.
templates() {
    command -v go >/dev/null 2>&1 || { say "Go is missing: install it (1.22 or later), this part compares with it"; exit 1; }
    local go
    go="$(realpath -m "$target")/templates-go"
    go build -C crates/template/tests/go -o "$go" . &&
        cargo run --release -q -p template --example against_go -- "$go" "${COUNT:-20000}" "${SEED:-1}"
}

fleet() {
    FERRY_FLEET_SEEDS=${FERRY_FLEET_SEEDS:-1000} FERRY_FLEET_INSTALLS=${FERRY_FLEET_INSTALLS:-50} \
        FERRY_FLEET_EVENTS=${FERRY_FLEET_EVENTS:-20} \
        cargo test --release -p sim --all-features --test it fleet -- --nocapture
}

terraform() {
    PATH="$(realpath "$target/terraform-tools/bin"):$PATH"
    export PATH FERRY_ALL_PROVIDERS=1
    it real_providers
    it heavy --ignored --test-threads 1
    FERRY_TEST_PROGRAM=tofu it terraform:: states::
}

kube() {
    local tools
    scripts/python-tools.sh && scripts/kube-tools.sh soak
    FERRY_DRIFT_LOOKS=${FERRY_DRIFT_LOOKS:-50} scripts/test-kube.sh charts
    FERRY_ALL_KILLS=1 scripts/test-kube.sh whoever_dies
    # What is called helm is version 4 then.
    tools=$(realpath "$target/kube-tools")
    mkdir -p "$target/helm4" && ln -sf "$tools/bin/helm4" "$target/helm4/helm"
    PATH="$(realpath "$target/helm4"):$PATH" scripts/test-kube.sh helm
    PATH="$(realpath "$target/helm4"):$PATH" scripts/test-kube.sh charts_keep
}

case $part in
    templates) templates && exit 0 || exit 1 ;;
    forgery) FERRY_FORGERIES=1000000 cargo test --release -p model forgeries -- --nocapture && exit 0 || exit 1 ;;
    fleet) fleet && exit 0 || exit 1 ;;
    flakes) exec scripts/flakes.sh ;;
    kube) kube && exit 0 || exit 1 ;;
    deny) scripts/deny-tools.sh && "$target/deny-tools/bin/cargo-deny" --locked check --deny warnings licenses bans sources && exit 0 || exit 1 ;;
    store) again_and_again cargo test --release -q -p store --all-features --test it && exit 0 || exit 1 ;;
    vault) scripts/vault-tools.sh ;;&
    logs) scripts/python-tools.sh && scripts/apt-tools.sh && scripts/otel-collector.sh ;;&
    terraform) scripts/terraform-tools.sh all && scripts/terraform-tools.sh tofu ;;&
    apps) scripts/python-tools.sh && FERRY_ALL_MUTATIONS=1 cargo test --release -p config --test it -- --nocapture mutations ;;&
    sim | scale | terraform | logs | linear | load | networks | herd | kills | apps | vault) cargo build --release --workspace --all-features --bins ;;
    *) say "there is no part '$part': use sim, fleet, scale, terraform, logs, linear, load, networks, herd, forgery, kills, store, apps, flakes, kube, vault, deny or templates"; exit 2 ;;
esac
case $part in
    # A seed that breaks an invariant is printed with its story.
    sim) "$bins/ferry" sim --seeds "${SEEDS:-10000}" --runners 4 --jobs 24 ;;
    scale) FERRY_SCALE_COMPONENTS=${FERRY_SCALE_COMPONENTS:-5000} FERRY_SCALE_S=${FERRY_SCALE_S:-900} it scale ;;
    terraform) terraform ;;
    logs)
        FERRY_LOG_MIB=1024 it a_flood
        FERRY_KILLS=${FERRY_KILLS:-1000} it log_kills
        it telemetry --include-ignored
        FERRY_MASK_CASES=10000000 FERRY_SEED=$RANDOM cargo test --release -p mask --test it -- --nocapture
        ;;
    linear) FERRY_LINEAR_OPS=${FERRY_LINEAR_OPS:-1000000} it linear --test-threads 1 ;;
    load) FERRY_SOAK_S=${FERRY_SOAK_S:-600} FERRY_LOAD=${FERRY_LOAD:-server} it load_kills ;;
    networks) FERRY_SOAK_S=${FERRY_SOAK_S:-120} it bad_networks clocks disk_full ;;
    herd) "$bins/bench" return "$bins" "${RUNNERS:-10000}" ;;
    kills) again_and_again it crashes ;;
    vault) it vault:: --ignored ;;
    apps) FERRY_EXAMPLES=${FERRY_EXAMPLES:-60} it clients ;;
esac
