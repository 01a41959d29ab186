#!/usr/bin/env bash
# What this machine can do for the tests.
#   machine.sh        says what it can't do, and which tests that costs
#   machine.sh NEED   exits 0 where the need is met; else prints the reason and exits 1 (tests call this: crates/needs)
# FERRY_TEST_WITHOUT="NEED …" has these needs count as not met.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

needs=(SmallDisk Images Cgroups Landlock Corpus Spec Vectors)
# Of `make test-kube` only: they are about the cluster that runs meanwhile.
cluster_needs=(Kube KubeNode KubeOwn)

SmallDisk() {
    mounts || small_shm || { echo "it can't mount a tmpfs, and /dev/shm is no small file system"; return 1; }
}

mounts() {
    local dir status
    dir=$(mktemp -d)
    mount -t tmpfs -o size=1m tmpfs "$dir" 2>/dev/null
    status=$?
    [ $status = 0 ] && umount "$dir"
    rmdir "$dir"
    return $status
}

# What Docker gives a container: 64 MiB of its own. A larger one is the machine's memory, which no test may fill.
small_shm() {
    local kib
    kib=$(df --output=size /dev/shm 2>/dev/null | tail -n 1)
    [ "${kib:-0}" -ge 61440 ] && [ "$kib" -le 131072 ] && [ -w /dev/shm ]
}

# What a build's cell is made of (crates/runner/src/confine/cell.rs).
Images() {
    local users=()
    [ "$(id -u)" = 0 ] || users=(--user --map-root-user --map-auto)
    unshare --mount "${users[@]}" unshare --user --map-root-user --mount --ipc --uts --cgroup --pid --net --fork --kill-child \
        mount -t proc proc /proc 2>/dev/null || { echo "it can't create namespaces and mounts"; return 1; }
}

Cgroups() {
    local line dir
    while IFS=: read -r _ names dir; do
        case ",$names," in
            ,, | *,memory,*) line=$names ;;
            *) continue ;;
        esac
        for dir in "/sys/fs/cgroup/$line$dir" "/sys/fs/cgroup/$line"; do
            [ -e "$dir/cgroup.procs" ] && [ -w "$dir" ] && return 0
        done
    done </proc/self/cgroup
    echo "it can't create control groups"
    return 1
}

Landlock() {
    python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 1)' || {
        echo "its kernel has no landlock"
        return 1
    }
}

Corpus() {
    local dir=${FERRY_CORPUS:-../shared/corpus}
    [ -d "$dir" ] || { echo "there is no $dir"; return 1; }
}

Spec() {
    [ -e ../shared/spec/control-api-main.json ] || { echo "there is no ../shared/spec"; return 1; }
}

kube() {
    KUBECONFIG=${FERRY_KUBECONFIG:-${KUBECONFIG:-/nowhere}} kubectl --request-timeout 10s "$@" 2>/dev/null
}

Kube() {
    [ -n "${FERRY_KUBECONFIG:-${KUBECONFIG:-}}" ] || { echo "neither FERRY_KUBECONFIG nor KUBECONFIG names a cluster"; return 1; }
    kube get --raw /readyz >/dev/null || { echo "the cluster does not answer"; return 1; }
}

# scripts/kube-node.sh gives its node this label.
KubeNode() {
    Kube || return 1
    kube get nodes --selector ferry.test/images=true --no-headers | grep -w Ready >/dev/null || { echo "the cluster has no node with the test images"; return 1; }
}

# Its parts can be killed.
KubeOwn() {
    Kube || return 1
    [ "${FERRY_KUBECONFIG:-$KUBECONFIG}" = "${FERRY_KUBE_DIR:-/tmp/ferry-kube}/kubeconfig" ] ||
        { echo "the cluster was not started by scripts/kube.sh"; return 1; }
}

Vectors() {
    [ -d ../shared/vectors/kubernetes ] || { echo "there is no ../shared/vectors"; return 1; }
}

look() {
    case " ${FERRY_TEST_WITHOUT:-} " in
        *" $1 "*) echo "FERRY_TEST_WITHOUT names it"; return 1 ;;
        *) "$1" ;;
    esac
}

# The tests whose first lines name the need.
tests_that_need() {
    find crates -name '*.rs' -not -path 'crates/needs/*' -print0 | sort -z | xargs -0 awk -v need="needs!($1)" '
        match($0, /fn [a-z0-9_]+/) { name = substr($0, RSTART + 3, RLENGTH - 3) }
        index($0, need) { print "    " name }'
}

if [ $# = 1 ]; then
    case " ${needs[*]} ${cluster_needs[*]} " in
        *" $1 "*) look "$1" ;;
        *) echo "there is no need '$1'; there are: ${needs[*]} ${cluster_needs[*]}" >&2; exit 2 ;;
    esac
    exit
fi
for need in "${needs[@]}"; do
    reason=$(look "$need") && continue
    tests=$(tests_that_need "$need")
    echo "This machine lacks $need: $reason. It skips $(wc -l <<<"$tests") tests:"
    echo "$tests"
done
