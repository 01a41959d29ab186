#!/usr/bin/env bash
# Node, the OpenID provider that tests sign in with, and what drives a browser. Installed once, by exact version.
source "$(dirname "$0")/lib.sh"
target=${CARGO_TARGET_DIR:-target}
source scripts/node.sh
tools="$HOME/.cache/ferry-tools/idp-$(sha256sum tests/idp/package-lock.json | cut -c1-12)"
if [ ! -e "$tools/done" ]; then
    say "installing the OpenID provider of the tests, and a driver of browsers"
    rm -rf "$tools"
    mkdir -p "$tools"
    cp tests/idp/package.json tests/idp/package-lock.json "$tools"
    (cd "$tools" && npm ci --silent --no-audit --no-fund --ignore-scripts >/dev/null)
    touch "$tools/done"
fi
ln -sfn "$(command -v node)" "$tools/node"
ln -sfn "$tools" "$target/idp-tools"
