# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of the test cluster, after lib.sh: which versions, and where things are.
kube_version=1.37.1
etcd_version=3.7.3
kube_programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
kube_tools=${FERRY_KUBE_TOOLS:-$HOME/.cache/ferry-tools/kube-$kube_version}
# Short: it holds unix sockets.
kube_dir=${FERRY_KUBE_DIR:-/tmp/ferry-kube}

# Whether the machine has a Kubernetes of its own, which is used instead of one that we build.
kube_programs_on_path() {
    local name
    for name in "${kube_programs[@]}"; do
        command -v "$name" >/dev/null 2>&1 || return 1
    done
}

# Debian keeps iptables and runc out of a user's PATH.
kube_path() {
    kube_programs_on_path || PATH="$kube_tools/bin:$PATH"
    PATH="$PATH:/usr/sbin:/sbin"
    export PATH
}

# Whether the user chose a cluster that is not ours.
kube_is_given() {
    [ -n "${KUBECONFIG:-}" ] && [ "$KUBECONFIG" != "$kube_dir/kubeconfig" ]
}
