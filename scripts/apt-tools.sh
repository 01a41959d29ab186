#!/usr/bin/env bash
# The Debian packages whose programs tests and benches use: clients of registries, and a registry to compare with.
source "$(dirname "$0")/lib.sh"
need skopeo skopeo
need buildah buildah
need podman podman
need runc runc
need docker-registry docker-registry
