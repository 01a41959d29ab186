#!/usr/bin/env bash
# The conformance suite of the OCI distribution specification, and the oras client: built once, by exact version, into a cache.
source "$(dirname "$0")/lib.sh"
tools="$HOME/.cache/ferry-tools/oci-$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-12)"

# build OUT MODULE VERSION COMMAND…: runs a Go command in a copy of a module, with the module's own list of checksums.
build() {
    local out=$1 module=$2 version=$3 copy dir
    shift 3
    dir=$(go mod download -json "$module@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    copy=$(mktemp -d)
    cp -r "$dir/." "$copy"
    chmod -R u+w "$copy"
    (cd "$copy" && CGO_ENABLED=0 GOWORK=off GOFLAGS="-buildvcs=false -p=2" go "$@" -trimpath -ldflags "-s -w" -o "$tools/$out" .)
    rm -rf "$copy"
}

if [ ! -e "$tools/done" ]; then
    need_go
    say "building the registry's test tools"
    rm -rf "$tools"
    mkdir -p "$tools"
    build oci-conformance github.com/opencontainers/distribution-spec/conformance v0.0.0-20230516164017-7fcdf80f3c8b test -c
    build oras oras.land/oras v1.3.3 build -C cmd/oras
    touch "$tools/done"
fi
ln -sfn "$tools" "${CARGO_TARGET_DIR:-target}/oci-tools"
