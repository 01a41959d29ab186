#!/usr/bin/env bash
# Brings the whole system up, syncs an example app and builds it, runs its actions on the local runner, and leaves the system up (ONCE=1:
# stops it).
source "$(dirname "$0")/lib.sh"
need_rust
bin=${CARGO_TARGET_DIR:-$PWD/target}/debug
data=${FERRY_DEV_DIR:-$PWD/.ferry}
export FERRY_CONFIG=${FERRY_CONFIG:-$data/context.toml}
ferry() { "$bin/ferry" "$@"; }

mkdir -p "$data"
# `ferry dev` holds this lock as long as it runs, and writes its process id there.
if [ -e "$data/dev.lock" ] && ! flock --nonblock "$data/dev.lock" true; then
    pid=$(cat "$data/dev.lock")
    say "A system is up in $data already (process $pid). Use it:"
    say "  export FERRY_CONFIG=$FERRY_CONFIG PATH=$bin:\$PATH"
    say "or stop it, and come again:  kill $pid"
    exit 1
fi

say "building"
cargo build --quiet -p ferry -p runner
"$bin/ferry" dev --data-dir "$data" >"$data/dev.out" 2>&1 &
dev=$!
stop() { kill -TERM "$dev" 2>/dev/null || true; wait "$dev" 2>/dev/null || true; }
trap 'stop; exit 1' INT TERM
trap '[ -n "${ok:-}" ] || { cat "$data/dev.out" >&2; stop; }' EXIT
for _ in $(seq 1 300); do
    grep -q '^Stop: ' "$data/dev.out" && break
    kill -0 "$dev" 2>/dev/null || { say "ferry dev ended"; exit 1; }
    sleep 0.1
done
# It runs in the background here: how to stop it is said at the end.
grep -v '^Stop: ' "$data/dev.out"

run() { printf '\n$ ferry %s\n' "$*"; ferry "$@"; }
run orgs list
run installs list
run apps validate examples/shop
run apps sync examples/shop --app hello
run builds list
run artifacts inspect catalog
run artifacts sync catalog --install local
run apps graph examples/shop
run actions list --install local
run actions run greet --install local
run installs inputs local --set shop_name="Ada's corner"
run actions run greet --install local
run actions run --install local --file examples/hello/action.toml
run jobs list --limit 3

# A whole life of an install, played: no cloud is needed.
run orgs create rehearsal --simulated
run apps create shop
run apps sync examples/shop --app shop --no-wait
run installs create acme --app shop
run installs set acme --approvals approve-all
run workflows watch "$(ferry workflows list --json | sed -n 's/.*"id": "\(wfl[0-9a-z]*\)".*/\1/p' | head -n 1)"
run installs components acme
run installs policies acme
run installs inputs acme --set shop_name="Ada's corner"
run runbooks run reopen --install acme --input reason=stocktaking
run installs schedules acme
run installs deprovision acme
run installs history acme
run installs forget acme --yes
run orgs select demo
run runners get local

if [ "${ONCE:-}" = 1 ]; then
    stop
    ok=1
    echo "demo: ok"
else
    ok=1
    printf '\nThe system stays up (process %s). Use it:\n' "$dev"
    printf '  export FERRY_CONFIG=%s PATH=%s:$PATH\n' "$FERRY_CONFIG" "$bin"
    printf '  ferry actions run --install local --command "uname -a"\nStop it:  kill %s\n' "$dev"
    disown "$dev"
fi
