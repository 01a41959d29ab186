#!/usr/bin/env bash
# The Debian packages whose programs tests and benches use: PostgreSQL, clients of registries, a registry to compare with, and what
# builds need.
#   apt-tools.sh check   only says what is missing, and fails where it can't be installed
source "$(dirname "$0")/lib.sh"
[ "${1:-}" != check ] || need_package() { can_install "$@"; }
need initdb postgresql python3 python3 protoc protobuf-compiler /usr/include/google/protobuf/empty.proto libprotobuf-dev \
    skopeo skopeo buildah buildah podman podman runc runc docker-registry docker-registry busybox busybox-static \
    slirp4netns slirp4netns ip iproute2 newuidmap uidmap chromium chromium
[ "${1:-}" != check ] || exit 0
# Prometheus's own checker of metrics, out of the package that has all of Prometheus.
promtool="$HOME/.cache/ferry-tools/promtool"
if [ ! -x "$promtool" ]; then
    say "fetching promtool"
    scratch=$(mktemp -d)
    # Where nothing had to be installed, the lists may be old, or missing.
    (cd "$scratch" && { apt-get download -qq prometheus || { as_root apt-get update -qq && apt-get download -qq prometheus; }; } >/dev/null 2>&1)
    dpkg-deb --fsys-tarfile "$scratch"/prometheus_*.deb | tar -x -C "$scratch" ./usr/bin/promtool
    mkdir -p "$(dirname "$promtool")"
    mv "$scratch/usr/bin/promtool" "$promtool"
    rm -r "$scratch"
fi
ln -sfn "$promtool" "${CARGO_TARGET_DIR:-target}/promtool"
