#!/usr/bin/env bash
# cargo-deny: built once, by exact version, into a cache. Takes some minutes of CPU, so `make lint` does without (scripts/deny.py).
source "$(dirname "$0")/lib.sh"
version=0.20.2
tools="$HOME/.cache/ferry-tools/cargo-deny-$version"
if [ ! -e "$tools/done" ]; then
    need_rust
    say "building cargo-deny $version (once)"
    rm -rf "$tools"
    mkdir -p "$tools"
    cargo install cargo-deny --version "=$version" --locked --root "$tools" --target-dir "$tools/target"
    rm -rf "$tools/target"
    touch "$tools/done"
fi
mkdir -p "${CARGO_TARGET_DIR:-target}"
ln -sfn "$tools" "${CARGO_TARGET_DIR:-target}/deny-tools"
