#!/usr/bin/env bash
# The Python packages that tests use: an SDK of existing clients, a tester of API documents, and helm. Installed once, by exact version.
source "$(dirname "$0")/lib.sh"
need python3 python3
tools="$HOME/.cache/ferry-tools/python-$(sha256sum scripts/python-tools.txt | cut -c1-12)"
if [ ! -e "$tools/done" ]; then
    python3 -c 'import venv, ensurepip' 2>/dev/null || need_package python3-venv
    say "installing Python packages for tests"
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check -r scripts/python-tools.txt
    touch "$tools/done"
fi
ln -sfn "$tools" "${CARGO_TARGET_DIR:-target}/python-tools"
