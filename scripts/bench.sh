#!/usr/bin/env bash
# Measures the shipped binaries; prints a table and writes target/bench.json. PARTS="idle dispatch …" measures only these.
source "$(dirname "$0")/lib.sh"
if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    need initdb postgresql
fi
need python3 python3
need docker-registry docker-registry
scripts/dist.sh
cargo build --profile dist -p bench
mkdir -p target
# A commit counts when it is on the disk.
export FERRY_PG_DURABLE=1
# shellcheck disable=SC2086
exec "${CARGO_TARGET_DIR:-target}/dist/bench" dist target/bench.json ${PARTS:-}
