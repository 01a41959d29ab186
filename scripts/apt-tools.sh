#!/usr/bin/env bash
# The Debian packages whose programs tests and benches use: clients of registries, a registry to compare with, and what builds need.
source "$(dirname "$0")/lib.sh"
need skopeo skopeo
need buildah buildah
need podman podman
need runc runc
need docker-registry docker-registry
need busybox busybox-static
need slirp4netns slirp4netns
need ip iproute2
need newuidmap uidmap
# Prometheus's own checker of metrics, out of the package that has all of Prometheus.
promtool="$HOME/.cache/ferry-tools/promtool"
if [ ! -x "$promtool" ]; then
    say "fetching promtool"
    scratch=$(mktemp -d)
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq >/dev/null
    (cd "$scratch" && apt-get download -qq prometheus 2>/dev/null)
    dpkg-deb --fsys-tarfile "$scratch"/prometheus_*.deb | tar -x -C "$scratch" ./usr/bin/promtool
    mkdir -p "$(dirname "$promtool")"
    mv "$scratch/usr/bin/promtool" "$promtool"
    rm -r "$scratch"
fi
ln -sfn "$promtool" "${CARGO_TARGET_DIR:-target}/promtool"
