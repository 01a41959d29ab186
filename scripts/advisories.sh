#!/usr/bin/env bash
# Known vulnerabilities of our dependencies, from RustSec's database on GitHub, or from a copy of it (ADVISORY_DB=URL).
# Not a part of `make lint`: what it finds depends on the day, not on the change.
source "$(dirname "$0")/lib.sh"
url=https://github.com/RustSec/advisory-db
need git git
if [ -n "${ADVISORY_DB:-}" ]; then
    # git goes to the copy instead.
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$ADVISORY_DB.insteadOf" GIT_CONFIG_VALUE_0="$url"
fi
if ! timeout 60 git ls-remote --exit-code "$url" HEAD >/dev/null 2>&1; then
    say "advisories: not checked: the database can't be fetched from ${ADVISORY_DB:-$url}. Name a copy with ADVISORY_DB=URL."
    exit 1
fi
scripts/deny-tools.sh
"${CARGO_TARGET_DIR:-target}/deny-tools/bin/cargo-deny" --locked check advisories
