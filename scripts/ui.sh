#!/usr/bin/env bash
# Builds the dashboard into ui/dist, where `ferry` takes it from. Does nothing where it is built from these very files.
#   ui.sh         build
#   ui.sh check   its types, its tests, its size and its colours too
source "$(dirname "$0")/lib.sh"
source scripts/node.sh
# Everything that the result follows from.
wanted=$(cat ui/package-lock.json ui/vite.config.ts ui/index.html ui/tsconfig.json scripts/ui.sh \
    $(find ui/src ui/scripts -type f | LC_ALL=C sort) | sha256sum | cut -c1-16)
locked=$(sha256sum ui/package-lock.json | cut -c1-16)
if [ "$(cat ui/node_modules/.locked 2>/dev/null)" != "$locked" ]; then
    say "installing the packages of the dashboard"
    (cd ui && npm ci --silent --no-audit --no-fund --ignore-scripts >/dev/null)
    printf '%s' "$locked" >ui/node_modules/.locked
fi
if [ "$(cat ui/node_modules/.built 2>/dev/null)" != "$wanted" ] || [ ! -e ui/dist/index.html ]; then
    say "building the dashboard"
    (cd ui && npm run --silent build >/dev/null)
    printf '%s' "$wanted" >ui/node_modules/.built
    # Files that were not there before are seen only by a fresh compilation.
    touch crates/server/src/web_ui.rs
fi
if [ "${1:-}" = check ]; then
    (cd ui && npm run --silent types && npm run --silent test && npm run --silent size && npm run --silent contrast)
fi
