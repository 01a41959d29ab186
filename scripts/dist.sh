#!/usr/bin/env bash
# The binaries as they are shipped: dist/ferry, and dist/ferry-runner, static for musl.
source "$(dirname "$0")/lib.sh"
need_rust
need musl-gcc musl-tools
target=x86_64-unknown-linux-musl
rustup target list --installed 2>/dev/null | grep -q "$target" || rustup target add "$target"
FERRY_GIT_REF=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
export FERRY_GIT_REF
cargo build --profile dist -p runner --target "$target"
cargo build --profile dist -p ferry
mkdir -p dist
install -m 755 "${CARGO_TARGET_DIR:-target}/$target/dist/ferry-runner" dist/ferry-runner
install -m 755 "${CARGO_TARGET_DIR:-target}/dist/ferry" dist/ferry
ls -l dist
