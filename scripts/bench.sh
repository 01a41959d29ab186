#!/usr/bin/env bash
# Measures the shipped binaries; prints a table and writes target/bench.json.
source "$(dirname "$0")/lib.sh"
scripts/dist.sh
cargo build --profile dist -p bench -p ferry
mkdir -p target
exec "${CARGO_TARGET_DIR:-target}/dist/bench" dist target/bench.json
