#!/usr/bin/env bash
# Longer proofs, run by hand. PART=sim|linear: the whole count, once. PART=kills|store: the tests that draw their own seeds,
# again and again, for SOAK_MINUTES=20.
source "$(dirname "$0")/lib.sh"
need_rust
part=${PART:-kills}
until=$((SECONDS + ${SOAK_MINUTES:-20} * 60))
if [ "$part" = sim ]; then
    # A seed that breaks an invariant is printed with its story.
    cargo build --release -p ferry
    exec "${CARGO_TARGET_DIR:-target}/release/ferry" sim --seeds "${SEEDS:-10000}" --runners 4 --jobs 24
fi
cargo build --workspace --all-features --bins
if [ "$part" = linear ]; then
    FERRY_LINEAR_OPS=1000000 exec cargo test -p ferry --all-features --test it linear -- --nocapture --test-threads 1
fi
case $part in
    kills) run() { cargo test -q -p ferry --all-features --test it crashes; } ;;
    store) run() { cargo test -q -p store --all-features --test it; } ;;
    *) say "there is no part '$part': use sim, linear, kills or store"; exit 2 ;;
esac
rounds=0
while [ "$SECONDS" -lt "$until" ]; do
    run >target/soak.log 2>&1 || { tail -n 60 target/soak.log; say "soak $part: failed in round $((rounds + 1))"; exit 1; }
    rounds=$((rounds + 1))
    say "soak $part: $rounds rounds good"
done
echo "soak $part: ok, $rounds rounds"
