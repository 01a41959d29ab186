#!/usr/bin/env bash
# A Kubernetes cluster on this machine's loopback, for tests and for trying things. One cluster at a time.
#   kube.sh up [node|api]        starts it, or says that it is up, and prints the line that selects it.
#                                node: with containerd, a kubelet and real pods. api: API server and controllers only.
#                                Default: node where the machine has the rights for it (FERRY_KUBE_MODE)
#   kube.sh down                 stops it and removes all that it left on the machine
#   kube.sh status               shows its parts; exits 1 if it is not healthy
#   kube.sh kill PART            kills a part with SIGKILL: etcd, apiserver, controllers, scheduler, containerd, kubelet, proxy, registry
#   kube.sh start PART [FLAG…]   starts a killed part again, with more flags, and waits until it works
#   kube.sh image NAME DIRECTORY ENTRYPOINT [ENV]   makes an image of a directory, for pods. ENTRYPOINT and ENV are JSON lists
# Its files are in /tmp/ferry-kube (FERRY_KUBE_DIR; keep it short: it holds unix sockets).
source "$(dirname "$0")/lib.sh"
source scripts/kube-env.sh
source scripts/kube-node.sh
kube_path

kubeconfig="$kube_dir/kubeconfig"
export KUBECACHEDIR="$kube_dir/cache"
# Where Kubernetes' own Service answers.
service_ip=10.96.0.1
started=$(date +%s%N)

progress() {
    printf '%6.1f s  %s\n' "$((($(date +%s%N) - started) / 1000000))e-3" "$*" >&2
}

fail() {
    say "kube: $*"
    exit 1
}

# Ports, counted from the one of the API server.
port() {
    local base offset
    base=$(<"$kube_dir/port")
    case $1 in
        apiserver) offset=0 ;;
        etcd) offset=1 ;;
        etcd-peer) offset=2 ;;
        controllers) offset=3 ;;
        scheduler) offset=4 ;;
        kubelet) offset=5 ;;
        kubelet-health) offset=6 ;;
        proxy-health) offset=7 ;;
        proxy-metrics) offset=8 ;;
    esac
    echo $((base + offset))
}

choose_ports() {
    local base offset
    for base in 16443 17443 18443 19443; do
        for offset in {0..8}; do
            is_free $((base + offset)) || continue 2
        done
        echo "$base" >"$kube_dir/port"
        break
    done
    [ -e "$kube_dir/port" ] || fail "no ports are free for the API server"
    for base in 5001 5101 5201 5301; do
        is_free "$base" || continue
        echo "127.0.0.1:$base" >"$kube_dir/registry"
        return
    done
    fail "no port is free for the registry"
}

is_free() {
    ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# ----- processes

# spawn PART COMMAND…: its process id goes to a file with its start time, so that a number that was given away again is not killed.
spawn() {
    local part=$1
    shift
    setsid "$@" >>"$kube_dir/log/$part.log" 2>&1 </dev/null 9>&- &
    echo "$! $(start_time "$!")" >"$kube_dir/run/$part"
}

start_time() {
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

# pid_of PART: prints its process id while it runs.
pid_of() {
    local pid begun
    [ -s "$kube_dir/run/$1" ] || return 1
    read -r pid begun <"$kube_dir/run/$1"
    [ -n "$begun" ] && [ "$(start_time "$pid")" = "$begun" ] && [ "$(sed 's/.*) //' "/proc/$pid/stat" | cut -c1)" != Z ] && echo "$pid"
}

# wait_for PART COMMAND…: until the command succeeds, at most 90 s.
wait_for() {
    local part=$1
    shift
    for _ in {1..900}; do
        "$@" >/dev/null 2>&1 && return 0
        pid_of "$part" >/dev/null || break
        sleep 0.1
    done
    tail -n 15 "$kube_dir/log/$part.log" >&2
    if pid_of "$part" >/dev/null; then fail "$part does not work after 90 s (above: its log)"; else fail "$part ended (above: its log)"; fi
}

# end PART…: with SIGKILL; waits until they are gone.
end() {
    local part pid
    for part in "$@"; do
        pid=$(pid_of "$part") && kill -KILL "$pid" 2>/dev/null
    done
    for part in "$@"; do
        for _ in {1..100}; do
            pid_of "$part" >/dev/null || break
            sleep 0.05
        done
    done
    return 0
}

# ----- the control plane

kube() {
    kubectl --kubeconfig "$kubeconfig" --request-timeout 5s "$@"
}

# certificate NAME SUBJECT EXTENSION…: signed by the cluster's own authority.
certificate() {
    local name=$1 subject=$2 extension extensions=()
    shift 2
    for extension in "$@"; do extensions+=(-addext "$extension"); done
    openssl req -x509 -CA ca.crt -CAkey ca.key -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj "$subject" \
        -keyout "$name.key" -out "$name.crt" -config openssl.cnf -addext basicConstraints=critical,CA:FALSE "${extensions[@]}" 2>/dev/null
}

credentials() (
    umask 077
    cd "$kube_dir/pki"
    printf '[req]\ndistinguished_name = dn\n[dn]\n' >openssl.cnf
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=ferry-kube -keyout ca.key -out ca.crt \
        -config openssl.cnf -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,digitalSignature 2>/dev/null
    certificate apiserver /CN=kube-apiserver extendedKeyUsage=serverAuth \
        "subjectAltName=IP:127.0.0.1,IP:$service_ip,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    # With this the API server calls the kubelet.
    certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client extendedKeyUsage=clientAuth
    openssl ecparam -name prime256v1 -genkey -noout -out service-accounts.key
    openssl ec -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
    token=$(openssl rand -hex 16)
    echo "$token,admin,admin,\"system:masters\"" >tokens.csv
    cat >"$kubeconfig" <<YAML
apiVersion: v1
kind: Config
current-context: ferry-kube
contexts: [{name: ferry-kube, context: {cluster: ferry-kube, user: ferry-kube}}]
clusters: [{name: ferry-kube, cluster: {server: "https://127.0.0.1:$(port apiserver)", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: ferry-kube, user: {token: $token}}]
YAML
)

start_etcd() {
    local url peer
    url="http://127.0.0.1:$(port etcd)" peer="http://127.0.0.1:$(port etcd-peer)"
    spawn etcd etcd --data-dir "$kube_dir/etcd" --listen-client-urls "$url" --advertise-client-urls "$url" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
        --unsafe-no-fsync --log-level warn "$@"
}

start_apiserver() {
    local pki="$kube_dir/pki"
    spawn apiserver kube-apiserver --etcd-servers "http://127.0.0.1:$(port etcd)" \
        --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$(port apiserver)" --cert-dir "$pki" \
        --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" --client-ca-file "$pki/ca.crt" \
        --token-auth-file "$pki/tokens.csv" --authorization-mode Node,RBAC --allow-privileged=true \
        --kubelet-client-certificate "$pki/kubelet-client.crt" --kubelet-client-key "$pki/kubelet-client.key" \
        --kubelet-preferred-address-types Hostname --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$pki/service-accounts.pub" --service-account-signing-key-file "$pki/service-accounts.key" \
        --service-cluster-ip-range 10.96.0.0/16 --endpoint-reconciler-type none "$@"
    wait_for apiserver kube get --raw /readyz
}

start_controllers() {
    spawn controllers kube-controller-manager --kubeconfig "$kubeconfig" --bind-address 127.0.0.1 --secure-port "$(port controllers)" \
        --cert-dir "$kube_dir/pki/controllers" --service-account-private-key-file "$kube_dir/pki/service-accounts.key" \
        --root-ca-file "$kube_dir/pki/ca.crt" --cluster-signing-cert-file "$kube_dir/pki/ca.crt" \
        --cluster-signing-key-file "$kube_dir/pki/ca.key" --leader-elect=false "$@"
    # A namespace without it takes no pods.
    wait_for controllers kube --namespace default get serviceaccount default
}

start_registry() {
    cat >"$kube_dir/registry.yaml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: $kube_dir/registry-data}
  delete: {enabled: true}
http: {addr: $(<"$kube_dir/registry")}
YAML
    spawn registry docker-registry serve "$kube_dir/registry.yaml"
    wait_for registry answers "$(<"$kube_dir/registry")"
}

answers() {
    ! is_free "${1##*:}"
}

# ----- commands

parts() {
    printf '%s\n' registry etcd apiserver controllers
    [ "$(cat "$kube_dir/mode" 2>/dev/null)" = api ] || printf '%s\n' "${node_parts[@]}"
}

is_healthy() {
    local part
    for part in $(parts); do
        pid_of "$part" >/dev/null || return 1
    done
    kube get --raw /readyz >/dev/null 2>&1 || return 1
    [ "$(<"$kube_dir/mode")" = api ] || node_is_ready
}

up() {
    local mode=${1:-${FERRY_KUBE_MODE:-}} why
    if kube_is_given; then
        kubectl get --raw /readyz >/dev/null || fail "the cluster of KUBECONFIG=$KUBECONFIG does not answer. Unset KUBECONFIG to start one here"
        say "using the cluster of KUBECONFIG=$KUBECONFIG: it answers"
        return
    fi
    case $mode in
        "" | node) why=$(why_no_node) ;;
        api) why= ;;
        *) fail "there is no mode '$mode': use node or api" ;;
    esac
    if [ -n "$why" ]; then
        [ -z "$mode" ] || fail "no pods can run on this machine: $why"
        say "No pods can run on this machine: $why. Starting the API server and controllers only."
        mode=api
    fi
    mode=${mode:-node}
    if [ -d "$kube_dir" ]; then
        if [ "$(cat "$kube_dir/mode" 2>/dev/null)" = "$mode" ] && is_healthy; then
            say "the cluster is up already"
            selection
            return
        fi
        say "taking down what is left of another cluster"
        down
    fi
    install_packages "$mode"
    kube_programs_on_path || scripts/kube-tools.sh bin
    # A link that somebody else made must lead nowhere.
    mkdir -m 700 "$kube_dir"
    mkdir "$kube_dir"/{log,run,pki}
    echo "$mode" >"$kube_dir/mode"
    choose_ports
    start_registry
    start_etcd
    credentials
    start_apiserver
    progress "API server ready"
    # Nothing of the node waits for the controllers.
    [ "$mode" = api ] || prepare_node
    start_controllers
    progress "controllers ready"
    [ "$mode" = api ] || start_node
    selection
}

# What selects the cluster in a shell: the only line on stdout.
selection() {
    say "The cluster is up ($(<"$kube_dir/mode")). Its registry is $(<"$kube_dir/registry"). Stop it with: make kube-down. Select it with:"
    if kube_programs_on_path; then echo "export KUBECONFIG=$kubeconfig"; else echo "export KUBECONFIG=$kubeconfig PATH=\"$kube_tools/bin:\$PATH\""; fi
}

install_packages() {
    need openssl openssl docker-registry docker-registry pgrep procps
    [ "$1" = api ] || need containerd containerd runc runc /usr/lib/cni/bridge containernetworking-plugins iptables iptables \
        busybox busybox-static ip iproute2
    # The images hold nothing else, so it must be the static one.
    [ "$1" = api ] || ! ldd "$(type -P busybox)" >/dev/null 2>&1 || need_package busybox-static
}

down() {
    if [ ! -d "$kube_dir" ]; then
        say "no cluster is up"
        return
    fi
    [ -O "$kube_dir" ] || fail "$kube_dir belongs to another user"
    local mode
    mode=$(cat "$kube_dir/mode" 2>/dev/null || true)
    # Its state is thrown away, so nothing is asked to end by itself.
    end "${node_parts[@]}" controllers apiserver etcd registry
    [ "$mode" = api ] || remove_node
    rm -rf "$kube_dir"
    progress "the cluster is down"
}

status() {
    local part pid
    if [ ! -d "$kube_dir" ]; then
        echo "no cluster is up"
        return 1
    fi
    for part in $(parts); do
        if pid=$(pid_of "$part"); then echo "$part: running ($pid)"; else echo "$part: not running"; fi
    done
    if is_healthy; then echo "healthy"; else echo "not healthy"; return 1; fi
}

known_part() {
    [ -d "$kube_dir" ] || fail "no cluster is up. Start one with: make kube-up"
    [[ " $(parts | paste -sd' ') " == *" ${1:-} "* ]] || fail "there is no part '${1:-}' in this cluster; there are: $(parts | paste -sd' ')"
}

start() {
    local part=$1
    shift
    pid_of "$part" >/dev/null && fail "$part runs already"
    "start_$part" "$@"
    [ "$part" != etcd ] || wait_for etcd answers "127.0.0.1:$(port etcd)"
}

# Two callers must not start or stop it at once.
lock() {
    mkdir -p "$kube_tools"
    exec 9>"$kube_tools/cluster.lock"
    flock --nonblock 9 || { say "waiting for another run"; flock 9; }
}

usage() {
    sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' scripts/kube.sh
    exit 2
}

main() {
    local command=${1:-}
    [ $# = 0 ] || shift
    case $command in
        up) lock; up "$@" ;;
        down) lock; down ;;
        status) status ;;
        kill) known_part "${1:-}"; end "$1" ;;
        start) known_part "${1:-}"; start "$@" ;;
        image) [ $# -ge 3 ] || usage >&2; image "$@" ;;
        *) usage >&2 ;;
    esac
}

main "$@"
