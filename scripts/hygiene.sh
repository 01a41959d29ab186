#!/usr/bin/env bash
# Facts about the tree that no compiler checks.
source "$(dirname "$0")/lib.sh"
fail=0
# Later sentences speak of these: they must exist.
for file in README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md LICENSE docs/glossary.md; do
    [ -s "$file" ] || { say "hygiene: $file is missing"; fail=1; }
done
# It can be read in ten minutes, or it is not read.
if [ "$(wc -m <ARCHITECTURE.md)" -gt 12000 ]; then
    say "hygiene: ARCHITECTURE.md has more than 12,000 characters: move what is deeper to docs/design"
    fail=1
fi
python3 scripts/links.py || fail=1
[ "$fail" = 0 ] && echo "hygiene: ok"
exit "$fail"
