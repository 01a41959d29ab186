# shellcheck shell=bash disable=SC2154
# Sourced by kube.sh: the node of the test cluster. containerd, the scheduler, the kubelet, kube-proxy, images, and what all of them
# leave on a machine.
node_parts=(containerd scheduler kubelet proxy)
# An address as the node's name, so that the API server finds the kubelet without DNS.
node_name=127.0.0.1
pod_network=10.244.77.0/24
bridge=ferry-kube0
containerd_socket="$kube_dir/containerd.sock"

# Prints why no pods can run here, or nothing.
why_no_node() {
    local dir pid
    [ "$(id -u)" = 0 ] || { echo "you are not root"; return; }
    unshare --mount --net --pid --fork true 2>/dev/null || { echo "it can't create namespaces"; return; }
    for dir in $(cgroup_roots); do
        { mkdir "$dir/ferry-probe-$$" && rmdir "$dir/ferry-probe-$$"; } 2>/dev/null || { echo "it can't create control groups"; return; }
    done
    # One that has ended and was not waited for yet is none.
    for pid in $(pgrep --runstates R,S,D,T,I -x kubelet); do
        [ "$pid" = "$(pid_of kubelet)" ] || { echo "another kubelet runs here"; return; }
    done
    has iptables || return 0
    iptables --wait -t nat -n -L >/dev/null 2>&1 || echo "it can't set up a network for them (iptables)"
}

# One for each controller with cgroup v1, one for all with v2.
cgroup_roots() {
    awk '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /memory|pids|cpu|freezer|systemd|devices|blkio/) { print $2 }' /proc/mounts
}

node_is_ready() {
    kube get node "$node_name" --no-headers 2>/dev/null | grep -w Ready >/dev/null
}

prepare_node() {
    mkdir "$kube_dir"/{cni,kubelet,images}
    record_machine
    configure_containerd
    start_containerd
    test_images
    progress "containerd ready, test images made"
}

start_node() {
    start_scheduler
    start_kubelet
    start_proxy
    network_of_pods
    progress "node ready"
}

configure_containerd() {
    local registry plugin='plugins."io.containerd.grpc.v1.cri"'
    registry=$(<"$kube_dir/registry")
    mkdir -p "$kube_dir/registries/$registry"
    cat >"$kube_dir/registries/$registry/hosts.toml" <<TOML
[host."http://$registry"]
capabilities = ["pull", "resolve"]
TOML
    cat >"$kube_dir/containerd.toml" <<TOML
version = 2
root = "$kube_dir/containerd/root"
state = "$kube_dir/containerd/state"
[grpc]
address = "$containerd_socket"
[plugins."io.containerd.internal.v1.opt"]
path = "$kube_dir/containerd/opt"
[$plugin]
sandbox_image = "ferry.test/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
[$plugin.cni]
bin_dir = "${CNI_BIN:-/usr/lib/cni}"
conf_dir = "$kube_dir/cni"
[$plugin.registry]
config_path = "$kube_dir/registries"
[$plugin.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[$plugin.containerd.runtimes.runc.options]
Root = "$kube_dir/runc"
TOML
    # Pods need no way out of the machine, so there is no address translation to clean up after.
    cat >"$kube_dir/cni/10-ferry-kube.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "ferry-kube", "plugins": [
  {"type": "bridge", "bridge": "$bridge", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$kube_dir/cni-data",
            "ranges": [[{"subnet": "$pod_network"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
}

start_containerd() {
    spawn containerd containerd --config "$kube_dir/containerd.toml" "$@"
    wait_for containerd containers version
}

containers() {
    ctr --address "$containerd_socket" --namespace k8s.io "$@"
}

start_scheduler() {
    spawn scheduler kube-scheduler --kubeconfig "$kubeconfig" --bind-address 127.0.0.1 --secure-port "$(port scheduler)" \
        --cert-dir "$kube_dir/pki/scheduler" --leader-elect=false "$@"
}

# The label tells tests that the node has the images of test_images.
start_kubelet() {
    cat >"$kube_dir/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $(port kubelet)
healthzPort: $(port kubelet-health)
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $kube_dir/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$containerd_socket
podLogsDir: $kube_dir/pod-logs
# A log that is rotated while somebody follows it may lose some of its bytes.
containerLogMaxSize: 200Mi
volumePluginDir: $kube_dir/volume-plugins
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
evictionHard: {memory.available: 1Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imagePullCredentialsVerificationPolicy: NeverVerify
resolvConf: ""
YAML
    spawn kubelet kubelet --config "$kube_dir/kubelet.yaml" --kubeconfig "$kubeconfig" --root-dir "$kube_dir/kubelet" \
        --cert-dir "$kube_dir/pki/kubelet" --hostname-override "$node_name" --node-labels ferry.test/images=true "$@"
    wait_for kubelet node_is_ready
}

start_proxy() {
    cat >"$kube_dir/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 127.0.0.1
healthzBindAddress: 127.0.0.1:$(port proxy-health)
metricsBindAddress: 127.0.0.1:$(port proxy-metrics)
mode: iptables
iptables: {localhostNodePorts: false}
clusterCIDR: $pod_network
hostnameOverride: "$node_name"
clientConnection: {kubeconfig: $kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
YAML
    spawn proxy kube-proxy --config "$kube_dir/proxy.yaml" "$@"
    wait_for proxy answers "127.0.0.1:$(port proxy-health)"
}

# Pods reach the API server at its Service's address, although it listens on loopback only; and each other where the machine's
# firewall forwards nothing.
network_of_pods() {
    ip link show "$bridge" >/dev/null 2>&1 || { ip link add "$bridge" type bridge && ip link set "$bridge" up; }
    echo 1 >/proc/sys/net/ipv4/ip_forward
    echo 1 >"/proc/sys/net/ipv4/conf/$bridge/route_localnet"
    iptables --wait -t nat -I PREROUTING -s "$pod_network" -d "$service_ip" -p tcp --dport 443 -m comment --comment ferry-kube \
        -j DNAT --to-destination "127.0.0.1:$(port apiserver)"
    iptables --wait -I FORWARD -i "$bridge" -m comment --comment ferry-kube -j ACCEPT
    iptables --wait -I FORWARD -o "$bridge" -m comment --comment ferry-kube -j ACCEPT
}

# ----- images

# The images of the tests, from scratch around busybox. Each prints what it does and ends at SIGTERM.
#   ferry.test/app:1, app:2      answers on port 8080 with its version: / and /healthz
#   ferry.test/unready:1         the same, but /healthz is not found
#   ferry.test/crash:1           ends with exit code 3 after a last line on stderr
#   ferry.test/sleep:1           sleeps
#   ferry.test/shell:1           /bin/sh, for commands of your own (not `wget -T`: it crashes in the static busybox)
#   REGISTRY/pulled:1            the same, only in the registry
test_images() {
    local root="$kube_dir/images/root" program pulled
    mkdir -p "$root"/{bin,tmp,www}
    chmod 1777 "$root/tmp"
    cp "$(type -P busybox)" "$root/bin/busybox"
    for program in sh sleep echo printf cat ls env id date hostname wget httpd nc true false test grep sed head tail touch mkdir rm kill; do
        ln -s busybox "$root/bin/$program"
    done
    cat >"$root/bin/app" <<'APP'
#!/bin/sh
# app serve|unready|crash|sleep
trap 'echo "stopping"; exit 0' TERM INT
case $1 in
    serve | unready)
        mkdir -p /tmp/www
        echo "app ${VERSION:-0}" >/tmp/www/index.html
        [ "$1" = unready ] || echo ok >/tmp/www/healthz
        echo "app ${VERSION:-0} listens on port 8080"
        httpd -f -p 8080 -h /tmp/www &
        ;;
    crash)
        echo "app starts"
        echo "fatal: the database at db:5432 does not answer" >&2
        exit 3
        ;;
    *)
        echo "app sleeps"
        sleep 2147483647 &
        ;;
esac
wait
APP
    chmod 755 "$root/bin/app"
    pulled="$(<"$kube_dir/registry")/pulled:1"
    new_archive "$root"
    add_image ferry.test/pause:1 '["/bin/sleep", "2147483647"]'
    add_image ferry.test/app:1 '["/bin/app", "serve"]' '["VERSION=1"]'
    add_image ferry.test/app:2 '["/bin/app", "serve"]' '["VERSION=2"]'
    add_image ferry.test/unready:1 '["/bin/app", "unready"]' '["VERSION=1"]'
    add_image ferry.test/crash:1 '["/bin/app", "crash"]'
    add_image ferry.test/sleep:1 '["/bin/app", "sleep"]'
    add_image ferry.test/shell:1 '["/bin/sh"]'
    add_image "$pulled" '["/bin/app", "serve"]' '["VERSION=pulled"]'
    import_archive
    containers images push --plain-http "$pulled" >/dev/null
    containers images rm "$pulled" >/dev/null
}

# image NAME DIRECTORY ENTRYPOINT [ENV]: of a directory as its only layer. A name in the registry is pushed there.
image() {
    known_part containerd
    new_archive "$2"
    add_image "$1" "$3" "${4:-[]}"
    import_archive
    case $1 in
        "$(<"$kube_dir/registry")"/*)
            containers images push --plain-http "$1" >/dev/null
            containers images rm "$1" >/dev/null
            ;;
    esac
}

# new_archive DIRECTORY: begins an archive as `docker save` writes it, with one layer for all of its images.
new_archive() {
    archive=$(mktemp -d "$kube_dir/images/archive.XXXXXX")
    entries=()
    tar -C "$1" --owner=0 --group=0 --sort=name -cf "$archive/layer.tar" .
    layer=$(sha256sum "$archive/layer.tar" | cut -d' ' -f1)
}

# add_image NAME ENTRYPOINT [ENV]
add_image() {
    local config="config-${#entries[@]}.json" env='"PATH=/bin"' architecture
    case $(uname -m) in
        x86_64) architecture=amd64 ;;
        aarch64) architecture=arm64 ;;
        *) architecture=$(uname -m) ;;
    esac
    [ -z "${3:-}" ] || [ "$3" = "[]" ] || env="$env, ${3:1:-1}"
    cat >"$archive/$config" <<JSON
{"architecture": "$architecture", "os": "linux", "config": {"Entrypoint": $2, "Env": [$env]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
JSON
    entries+=("{\"Config\": \"$config\", \"RepoTags\": [\"$1\"], \"Layers\": [\"layer.tar\"]}")
}

import_archive() {
    (IFS=,; echo "[${entries[*]}]" >"$archive/manifest.json")
    tar -C "$archive" -cf - . | containers images import - >/dev/null
    rm -rf "$archive"
}

# ----- what it leaves on the machine

# Programs with fixed paths use these; the ones that are not there before the cluster are removed with it, if they are empty.
shared_directories=(/run/netns /run/containerd/s /run/containerd/fifo /run/containerd/runc/k8s.io /run/containerd/runc /run/containerd
    /var/lib/cni/results /var/lib/cni /var/lib/kubelet/device-plugins /var/lib/kubelet /var/log/containers)

record_machine() {
    local dir
    cat /proc/sys/net/ipv4/ip_forward >"$kube_dir/ip_forward"
    for dir in "${shared_directories[@]}"; do
        [ -e "$dir" ] || echo "$dir"
    done >"$kube_dir/new-directories"
}

# Works without containerd, which may have been killed: what its containers have is read from their directories.
remove_node() {
    local bundles="$kube_dir/containerd/state/io.containerd.runtime.v2.task/k8s.io" containers namespaces sockets id
    containers=$(ls "$bundles" 2>/dev/null || true)
    namespaces=$(cat "$bundles"/*/config.json 2>/dev/null | grep -o '/run/netns/cni-[0-9a-f-]*' | sort -u || true)
    sockets=$(cat "$bundles"/*/address 2>/dev/null | sed 's#unix://#\n#g' || true)
    # shellcheck disable=SC2086
    kill_containers $containers
    # shellcheck disable=SC2086
    remove_network $namespaces
    unmount_all
    # shellcheck disable=SC2086
    remove_cgroups $containers
    # shellcheck disable=SC2086
    rm -f $sockets /var/lib/kubelet/device-plugins/{kubelet.sock,kubelet_internal_checkpoint}
    for id in $containers; do rm -f /var/lib/cni/results/*-"$id"-*; done
    find /var/log/containers -type l -lname "$kube_dir/*" -delete 2>/dev/null || true
    remove_directories
}

# kill_containers ID…: with their shims, which would report the end of a container to nobody.
kill_containers() {
    local dir
    for _ in {1..100}; do
        # shellcheck disable=SC2046
        kill -KILL $(shims) $(cgroups_of "$@" | while read -r dir; do find "$dir" -name cgroup.procs -exec cat {} +; done | sort -u) \
            2>/dev/null || return 0
        sleep 0.05
    done
    say "some containers could not be killed"
}

# cgroups_of ID…: where runc and containerd put them.
cgroups_of() {
    local root id
    for root in $(cgroup_roots); do
        for id in "$@"; do
            [ ! -d "$root/k8s.io/$id" ] || echo "$root/k8s.io/$id"
        done
    done
}

shims() {
    local pid
    for pid in $(pgrep -f "containerd-shim.* -address $containerd_socket"); do
        # Not a shell or an editor that has the words in its own command.
        [[ "$(readlink "/proc/$pid/exe")" != */containerd-shim* ]] || echo "$pid"
    done
}

# remove_network NAMESPACE…
remove_network() {
    local name command
    for name in "$@"; do
        ip netns delete "${name##*/}" 2>/dev/null || true
    done
    ip link delete "$bridge" 2>/dev/null || true
    [ ! -e "$kube_dir/proxy.yaml" ] || kube-proxy --config "$kube_dir/proxy.yaml" --cleanup >/dev/null 2>&1 || true
    for command in iptables ip6tables; do
        remove_rules "$command" 2>/dev/null || true
    done
    [ ! -s "$kube_dir/ip_forward" ] || cat "$kube_dir/ip_forward" >/proc/sys/net/ipv4/ip_forward
}

# Our own rules, and what kube-proxy forgets when it cleans up.
remove_rules() {
    local table rule chain
    for table in nat filter mangle; do
        "$1-save" -t "$table" | grep -e '--comment ferry-kube ' -e '-j KUBE-' | while read -r rule; do
            # shellcheck disable=SC2086
            "$1" --wait -t "$table" ${rule/#-A/-D} || true
        done || true
        "$1-save" -t "$table" | sed -n 's/^:\(KUBE-[^ ]*\) .*/\1/p' | while read -r chain; do
            "$1" --wait -t "$table" -F "$chain" && "$1" --wait -t "$table" -X "$chain" || true
        done || true
    done
}

unmount_all() {
    local point
    awk -v dir="$kube_dir/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | while read -r point; do
        umount --lazy "$point" || true
    done
}

# remove_cgroups ID…
remove_cgroups() {
    local dir root
    for _ in {1..40}; do
        for dir in $(cgroups_of "$@"); do
            find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || true
        done
        [ -n "$(cgroups_of "$@")" ] || break
        sleep 0.05
    done
    for root in $(cgroup_roots); do
        rmdir "$root/k8s.io" 2>/dev/null || true
    done
}

remove_directories() {
    local dir
    while read -r dir; do
        [ -d "$dir" ] && [ -z "$(ls -A "$dir")" ] || continue
        # What first adds a network namespace mounts the directory of all.
        ! mountpoint --quiet "$dir" || umount "$dir" || continue
        rmdir "$dir" || true
    done < <(cat "$kube_dir/new-directories" 2>/dev/null || true)
}
