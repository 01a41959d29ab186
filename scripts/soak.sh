#!/usr/bin/env bash
# Longer proofs, run by hand. PART=kills|store: the tests that draw their own seeds, again and again, SOAK_MINUTES=20.
# PART=load: servers and databases killed under full load (a release build), FERRY_SOAK_S=600 for each of three variants.
# PART=networks: every bad network for FERRY_SOAK_S=120, wrong clocks, full disks.
source "$(dirname "$0")/lib.sh"
need_rust
part=${PART:-kills}
until=$((SECONDS + ${SOAK_MINUTES:-20} * 60))
if [ "$part" = load ]; then
    cargo build --release --workspace --all-features --bins
    export FERRY_SOAK_S=${FERRY_SOAK_S:-600}
    exec cargo test --release -p ferry --all-features --test it load_kills -- --nocapture
fi
cargo build --workspace --all-features --bins
if [ "$part" = networks ]; then
    export FERRY_SOAK_S=${FERRY_SOAK_S:-120}
    exec cargo test -p ferry --all-features --test it -- --nocapture bad_networks clocks disk_full
fi
case $part in
    kills) run() { cargo test -q -p ferry --all-features --test it crashes; } ;;
    store) run() { cargo test -q -p store --all-features --test it; } ;;
    *) say "there is no part '$part': use kills, store, load or networks"; exit 2 ;;
esac
rounds=0
while [ "$SECONDS" -lt "$until" ]; do
    run >target/soak.log 2>&1 || { tail -n 60 target/soak.log; say "soak $part: failed in round $((rounds + 1))"; exit 1; }
    rounds=$((rounds + 1))
    say "soak $part: $rounds rounds good"
done
echo "soak $part: ok, $rounds rounds"
