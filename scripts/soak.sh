#!/usr/bin/env bash
# Longer proofs, run by hand: the tests that draw their own seeds, again and again. PART=kills|store, SOAK_MINUTES=20.
source "$(dirname "$0")/lib.sh"
need_rust
part=${PART:-kills}
until=$((SECONDS + ${SOAK_MINUTES:-20} * 60))
cargo build --workspace --all-features --bins
case $part in
    kills) run() { cargo test -q -p ferry --all-features --test it crashes; } ;;
    store) run() { cargo test -q -p store --all-features --test it; } ;;
    *) say "there is no part '$part': use kills or store"; exit 2 ;;
esac
rounds=0
while [ "$SECONDS" -lt "$until" ]; do
    run >target/soak.log 2>&1 || { tail -n 60 target/soak.log; say "soak $part: failed in round $((rounds + 1))"; exit 1; }
    rounds=$((rounds + 1))
    say "soak $part: $rounds rounds good"
done
echo "soak $part: ok, $rounds rounds"
