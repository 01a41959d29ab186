#!/usr/bin/env bash
# Measures the shipped binaries; prints a table and writes target/bench.json. PARTS="idle dispatch …" measures only these.
source "$(dirname "$0")/lib.sh"
need initdb postgresql python3 python3 docker-registry docker-registry
scripts/dist.sh
cargo build --profile dist -p bench
mkdir -p target
# A commit counts when it is on the disk.
export FERRY_PG_DURABLE=1
# shellcheck disable=SC2086
exec "${CARGO_TARGET_DIR:-target}/dist/bench" dist target/bench.json ${PARTS:-}
