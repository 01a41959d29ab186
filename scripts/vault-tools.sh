#!/usr/bin/env bash
# Vault, for `make soak PART=vault`: built once from Go modules (five minutes of CPU), by exact version, into a cache.
source "$(dirname "$0")/lib.sh"
version=1.19.0
tool="$HOME/.cache/ferry-tools/vault-$version"
if [ ! -x "$tool" ]; then
    need_go
    say "building Vault $version"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    sources=$(go mod download -json "github.com/hashicorp/vault@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    cp -r "$sources" "$scratch/vault"
    chmod -R u+w "$scratch/vault"
    # Its parts come from their own releases, not from its repository.
    for part in api api/auth/approle api/auth/kubernetes api/auth/userpass sdk; do
        go mod edit -C "$scratch/vault" -dropreplace "github.com/hashicorp/vault/$part"
    done
    CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false -p=2" go build -C "$scratch/vault" -tags minimal -trimpath -o "$scratch/out" .
    mkdir -p "$(dirname "$tool")"
    mv "$scratch/out" "$tool"
fi
ln -sfn "$tool" "${CARGO_TARGET_DIR:-target}/vault"
