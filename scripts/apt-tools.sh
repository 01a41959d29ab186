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
