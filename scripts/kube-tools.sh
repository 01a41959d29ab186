#!/usr/bin/env bash
# The programs of a Kubernetes cluster for tests, helm, and real charts: built or fetched once, by exact version, into a cache.
#   kube-tools.sh        Kubernetes, etcd, helm 3, and the charts that `make test-kube` uses
#   kube-tools.sh bin    Kubernetes and etcd only (14 minutes of CPU), for `make kube-up`
#   kube-tools.sh soak   also helm 4 and the charts that `make soak` uses
# Programs of Kubernetes that are on PATH, all of them, are used instead. FERRY_KUBE_TOOLS names another directory for the cache.
source "$(dirname "$0")/lib.sh"
source scripts/kube-env.sh
wanted=${1:-test}
helm4=4.3.1
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

# place OUT: what was built appears at once and complete, so that an interrupted run leaves nothing that looks done.
place() {
    mkdir -p "$(dirname "$1")"
    mv "$scratch/out" "$1"
}

# module_dir MODULE VERSION: where Go keeps the sources of a module.
module_dir() {
    local told
    told=$(go mod download -json "$1@$2") || { say "$told"; return 1; }
    sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$told"
}

# Kubernetes replaces its own parts by folders of its repository, so it is built as a dependency, with these parts in the version that
# was released with it. etcd is a module apart: it must not change the versions of Kubernetes' dependencies.
modules() {
    local sources minor=${kube_version#1.}
    [ ! -e "$scratch/kube" ] || return 0
    need_go 1.26
    sources=$(module_dir k8s.io/kubernetes "v$kube_version")
    mkdir "$scratch/kube" "$scratch/etcd"
    {
        echo "module kube"
        grep -E '^(go|godebug) ' "$sources/go.mod"
        echo "require k8s.io/kubernetes v$kube_version"
        sed -n "s#^[[:space:]]*\(k8s.io/[a-z-]*\) => \./staging.*#replace \1 => \1 v0.$minor#p" "$sources/go.mod"
    } >"$scratch/kube/go.mod"
    {
        echo "module etcd"
        grep -E '^go ' "$sources/go.mod"
        echo "require go.etcd.io/etcd/server/v3 v$etcd_version"
    } >"$scratch/etcd/go.mod"
}

# program NAME: one static binary.
program() {
    local started=$SECONDS module=kube package="k8s.io/kubernetes/cmd/$1" version=k8s.io/component-base/version flags
    [ ! -x "$kube_tools/bin/$1" ] || return 0
    modules
    [ "$1" != etcd ] || { module=etcd package=go.etcd.io/etcd/server/v3; }
    flags="-s -w -X $version.gitVersion=v$kube_version -X $version.gitMajor=1 -X $version.gitMinor=$(cut -d. -f2 <<<"$kube_version")"
    say "building $1"
    CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local GOFLAGS="-mod=mod -buildvcs=false -p=2" \
        go build -C "$scratch/$module" -trimpath -ldflags "$flags -X $version.gitTreeState=clean" -o "$scratch/out" "$package"
    place "$kube_tools/bin/$1"
    say "built $1: $((SECONDS - started)) s, $(($(stat -c %s "$kube_tools/bin/$1") / 1000000)) MB"
}

helm3() {
    [ ! -x "$kube_tools/bin/helm" ] || return 0
    scripts/python-tools.sh
    cp --dereference "$target/python-tools/bin/helm" "$scratch/out"
    place "$kube_tools/bin/helm"
}

helm4() {
    [ ! -x "$kube_tools/bin/helm4" ] || return 0
    need_go 1.26
    say "building helm $helm4"
    mkdir "$scratch/helm"
    CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-buildvcs=false -p=2" GOBIN="$scratch/helm" \
        go install -trimpath -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=v$helm4" "helm.sh/helm/v4/cmd/helm@v$helm4"
    mv "$scratch/helm/helm" "$scratch/out"
    place "$kube_tools/bin/helm4"
}

# chart MODULE VERSION PATH: a chart that a project keeps in its own repository, out of its Go module.
chart() {
    local sources name=${3##*/}
    [ ! -e "$kube_tools/charts/$name" ] || return 0
    need_go 1.26
    say "fetching the chart $name"
    sources=$(module_dir "$1" "$2")
    cp -r "$sources/$3" "$scratch/out"
    chmod -R u+w "$scratch/out"
    place "$kube_tools/charts/$name"
}

charts() {
    chart github.com/cert-manager/cert-manager v1.21.2 deploy/charts/cert-manager
    chart sigs.k8s.io/metrics-server v0.9.0 charts/metrics-server
    chart github.com/fluxcd/flagger v1.36.1 charts/flagger
    chart sigs.k8s.io/descheduler v0.36.0 charts/descheduler
}

more_charts() {
    chart github.com/kyverno/kyverno v1.19.1 charts/kyverno-policies
    chart github.com/aws/karpenter-provider-aws v1.14.1 charts/karpenter
    chart github.com/aws/karpenter-provider-aws v1.14.1 charts/karpenter-crd
    chart github.com/fluxcd/flagger v1.36.1 charts/podinfo
    chart github.com/fluxcd/flagger v1.36.1 charts/grafana
    chart github.com/fluxcd/flagger v1.36.1 charts/loadtester
}

case $wanted in
    bin | test | soak) ;;
    *) say "usage: kube-tools.sh [bin|soak]"; exit 2 ;;
esac
mkdir -p "$kube_tools" "$target"
exec 9>"$kube_tools/lock"
flock --nonblock 9 || { say "waiting for another run"; flock 9; }
scratch=$(mktemp -d "$kube_tools/scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# What a killed run left behind.
find "$kube_tools" -maxdepth 1 -name 'scratch.*' ! -path "$scratch" -exec rm -rf {} +

kube_programs_on_path || for name in "${kube_programs[@]}"; do program "$name"; done
case $wanted in
    test) helm3; charts ;;
    soak) helm3; charts; helm4; more_charts ;;
esac
ln -sfn "$kube_tools" "$target/kube-tools"
