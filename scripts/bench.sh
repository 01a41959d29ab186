#!/usr/bin/env bash
# Measures the shipped binaries; prints a table and writes target/bench.json. PARTS="idle dispatch …" measures only these.
source "$(dirname "$0")/lib.sh"
need initdb postgresql python3 python3 docker-registry docker-registry skopeo skopeo
scripts/node-tools.sh
scripts/dist.sh
cargo build --profile dist -p bench
mkdir -p target
# Charts and manifests are measured on a cluster of our own, unless KUBECONFIG names one.
case " ${PARTS:-kube} " in
    *" kube "* | *" health "*)
        source scripts/kube-env.sh
        scripts/kube-tools.sh
        kube_path
        PATH="$PATH:$(realpath "${CARGO_TARGET_DIR:-target}/kube-tools")/bin"
        if ! kube_is_given; then
            unset KUBECONFIG
            scripts/kube.sh status >/dev/null || trap 'scripts/kube.sh down' EXIT
            scripts/kube.sh up >/dev/null
            export FERRY_KUBECONFIG="$kube_dir/kubeconfig"
        fi
        ;;
esac
# A commit counts when it is on the disk.
export FERRY_PG_DURABLE=1
# shellcheck disable=SC2086
"${CARGO_TARGET_DIR:-target}/dist/bench" dist target/bench.json ${PARTS:-}
