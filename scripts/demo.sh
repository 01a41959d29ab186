#!/usr/bin/env bash
# Brings the whole system up, syncs example apps and builds them, runs actions and real Terraform on local runners, and leaves the system
# up (ONCE=1: stops it; TOFU=1: builds OpenTofu where it is missing, and uses it; KUBE=1: deploys to a Kubernetes cluster too, the one of
# KUBECONFIG or one that it starts).
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

if [ "${KUBE:-}" = 1 ]; then
    scripts/kube-tools.sh
    source scripts/kube-env.sh
    kube_path
    PATH="$(realpath "${bin%/debug}/kube-tools")/bin:$PATH"
    greeter=examples/greeter
    if [ -z "${KUBECONFIG:-}" ]; then
        scripts/kube.sh up
        KUBECONFIG=${FERRY_KUBE_DIR:-/tmp/ferry-kube}/kubeconfig
        # Without the internet, the base of the image is this machine's busybox.
        need busybox busybox-static
        greeter="$data/greeter"
        rm -rf "$greeter" && cp -r examples/greeter "$greeter"
        cp "$(command -v busybox)" "$greeter/src/image/busybox"
        sed -i 's#^FROM busybox.*#FROM scratch\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "--install", "-s", "/bin"]#' "$greeter/src/image/Dockerfile"
    fi
    need buildah buildah unshare util-linux newuidmap uidmap
    export KUBECONFIG
fi

say "building"
scripts/ui.sh
guestbook=examples/guestbook
terraform=$(command -v terraform || true)
if [ "${TOFU:-}" = 1 ]; then
    { scripts/python-tools.sh && scripts/terraform-tools.sh tofu-only; } >"$data/tofu.log" 2>&1 &
    tofu=$!
fi
cargo build --quiet -p ferry -p runner
if [ "${TOFU:-}" = 1 ]; then
    say "building OpenTofu (once; see $data/tofu.log)"
    wait "$tofu" || { tail -n 20 "$data/tofu.log" >&2; exit 1; }
    PATH="$(realpath "${bin%/debug}/terraform-tools")/bin:$PATH"
    terraform=$(command -v tofu)
    guestbook="$data/guestbook-tofu"
    rm -rf "$guestbook" && cp -r examples/guestbook "$guestbook"
    find "$guestbook" -name '*.toml' -exec sed -i 's/^terraform_version = "latest"/terraform_version = "tofu-latest"/' {} +
fi
"$bin/ferry" dev --data-dir "$data" >"$data/dev.out" 2>&1 &
dev=$!
runners=()
stop() { kill -TERM "$dev" "${runners[@]}" 2>/dev/null || true; wait "$dev" "${runners[@]}" 2>/dev/null || true; }
# start_runner INSTALL: what the customer does with the join command.
start_runner() {
    local command
    command=$(ferry runners join-command "$1" 2>/dev/null | grep -o 'FERRY_RUNNER_JOIN=.*')
    env FERRY_RUNNER_STATE_DIR="$data/runner-$1" PATH="$bin:$PATH" sh -c "exec env $command" >"$data/runner-$1.log" 2>&1 &
    runners+=($!)
}
trap 'stop; exit 1' INT TERM
trap '[ -n "${ok:-}" ] || { cat "$data/dev.out" >&2; stop; }' EXIT
for _ in $(seq 1 300); do
    grep -q '^Stop: ' "$data/dev.out" && break
    kill -0 "$dev" 2>/dev/null || { say "ferry dev ended"; exit 1; }
    sleep 0.1
done
# It runs in the background here: how to stop it is said at the end.
grep -v '^Stop: ' "$data/dev.out"

workflow() { ferry workflows list --json | sed -n 's/.*"id": "\(wfl[0-9a-z]*\)".*/\1/p' | head -n 1; }
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

# Terraform for real: what was approved is applied, exactly that, by a runner on the customer's side. The modules use nothing but what is
# built into Terraform.
if [ -n "$terraform" ]; then
    echo "Welcome" >"$data/banner.txt"
    run apps create guestbook
    run apps sync "$guestbook" --app guestbook
    run installs create acme --app guestbook --input banner_file="$data/banner.txt"
    say "
# The customer starts the runner; here that is this machine."
    start_runner acme
    first=$(workflow)
    for _ in $(seq 1 200); do
        ferry workflows get "$first" | grep -q approval-awaiting && break
        sleep 0.1
    done
    step=$(ferry workflows get "$first" --wide | sed -n 's/.*approval-awaiting.*\(stp[0-9a-z]*\).*/\1/p' | head -n 1)
    run steps plan "$step"
    run steps approve "$step"
    say "
# The rest is approved as it comes: two components side by side, then the one that needs both."
    run workflows approve-all "$first"
    run workflows watch "$first"
    run installs components acme
    say "
# Another input: only what reads it moves."
    run installs inputs acme --set shards=3 --approve-all
    say "
# Nothing has drifted; then somebody changes a file that the web tier reads."
    run installs drift acme --component web
    echo "Closed on Sundays" >"$data/banner.txt"
    run installs drift acme --component web || true
    run installs deploy acme --component web --approve-all
    say "
# A new version of the app, and the way back."
    rm -rf "$data/guestbook" && cp -r "$guestbook" "$data/guestbook"
    sed -i 's/engine = "postgres"/engine = "mysql"/' "$data/guestbook/src/database/main.tf"
    run apps sync "$data/guestbook" --app guestbook
    run installs deploy acme --approve-all
    run installs rollback acme --approve-all
    say "
# Every state is kept, sealed with a key that only the customer has; the vendor sees addresses."
    run states list acme
    run states show acme --component web
    run installs deprovision acme --approve-all
else
    say "terraform is not on PATH, so this part is left out. To add it with OpenTofu (built once, six minutes of CPU): make demo TOFU=1"
fi

# An image, a chart, manifests, a job and a secret on a real cluster.
if [ "${KUBE:-}" = 1 ]; then
    say "
# Kubernetes: plans are the cluster's own dry runs, and a chart is applied exactly as it was approved."
    run apps create greeter
    run apps sync "$greeter" --app greeter
    run installs create kai --app greeter
    FERRY_RUNNER_KUBECONFIG=$KUBECONFIG start_runner kai
    first=$(workflow)
    for want in sandbox base web announce; do
        for _ in $(seq 1 900); do
            step=$(ferry workflows get "$first" --wide | sed -n 's/.*approval-awaiting.*\(stp[0-9a-z]*\).*/\1/p' | head -n 1)
            [ -n "$step" ] && break
            sleep 0.1
        done
        [ "$want" = sandbox ] || run steps plan "$step"
        run steps approve "$step"
    done
    run workflows watch "$first"
    run actions run look --install kai
    say "
# The image came along, the job has run once, and the secret was made up on the customer's side."
    run installs components kai
    run installs secrets kai
    run installs health kai
    say "
# The customer sets another secret. Who still has the old one is named."
    printf 'a token of my own' | FERRY_RUNNER_STATE_DIR="$data/runner-kai" "$bin/ferry-runner" secrets set token
    run installs sync-secrets kai
    run installs secrets kai
    kubectl --kubeconfig "$KUBECONFIG" --namespace greeter-kai rollout restart deployment greeter
    say "
# Somebody changes the cluster by hand: that is found, and put back."
    kubectl --kubeconfig "$KUBECONFIG" --namespace greeter-kai scale deployment greeter --replicas 2
    run installs drift kai || true
    run installs drift kai --reconcile --approve-all || true
    run installs deprovision kai --yes
fi

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
# An install whose plan waits for you: the dashboard opens on it.
run installs create yours --app shop
for _ in $(seq 1 200); do
    ferry approvals --install yours --json 2>/dev/null | grep -q digest && break
    sleep 0.1
done
run approvals
run fleet
waits=$(ferry workflows list --json | sed -n 's/.*"id": "\(wfl[0-9a-z]*\)".*/\1/p' | head -n 1)
rehearsal=$(ferry orgs list --json | sed -n '/"id"/h;/"name": "rehearsal"/{x;s/.*"\(org[0-9a-z]*\)".*/\1/p}' | head -n 1)
run orgs select demo
run runners get local

if [ "${ONCE:-}" = 1 ]; then
    stop
    ok=1
    echo "demo: ok"
else
    ok=1
    printf '\nThe system stays up (process %s). Use it:\n' "$dev"
    printf '  %s   (the dashboard: signs your browser in, once, and opens a plan that waits for you)\n' \
        "$(ferry auth link --to "/o/$rehearsal/workflows/$waits" 2>/dev/null)"
    printf '  export FERRY_CONFIG=%s PATH=%s:$PATH\n' "$FERRY_CONFIG" "$bin"
    printf '  ferry actions run --install local --command "uname -a"\nStop it:  kill %s\n' "$dev"
    disown "$dev"
fi
