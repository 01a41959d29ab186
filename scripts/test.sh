#!/usr/bin/env bash
# Everything that must hold before a change lands.
source "$(dirname "$0")/lib.sh"
need_rust
need python3 python3
# The server's binaries, not the client: Debian keeps them out of PATH.
if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    need initdb postgresql
fi
cargo fmt --all --check
cargo clippy --workspace --all-targets --all-features -- -D warnings
cargo build --workspace --all-features --bins
mkdir -p target
scripts/python-tools.sh
scripts/apt-tools.sh
scripts/oci-tools.sh
scripts/terraform-tools.sh
# Most tests wait for processes; more threads than cores keep both busy.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-4} cargo test --workspace --all-features --lib --bins --tests 2>&1 | tee target/test.log
scripts/hygiene.sh
awk '/^test result:/ { passed += $4; failed += $6 } END { print passed " passed, " failed " failed" }' target/test.log
