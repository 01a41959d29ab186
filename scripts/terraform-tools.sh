#!/usr/bin/env bash
# Providers for tests of Terraform, in a mirror on disk, since tests reach no registry: our own, and real ones from Go modules.
# Built once, by exact version, into a cache.
#   terraform-tools.sh        the fixture provider, local and random
#   terraform-tools.sh all    also time, tls and http
#   terraform-tools.sh tofu   also OpenTofu, as bin/tofu (six minutes of CPU)
#   terraform-tools.sh tofu-only   OpenTofu and nothing else
# A test sets TF_CLI_CONFIG_FILE to target/terraform-tools/tfrc.
source "$(dirname "$0")/lib.sh"
cache="$HOME/.cache/ferry-tools"
tools="$cache/terraform-$(cat "${BASH_SOURCE[0]}" tests/provider/Cargo.* tests/provider/src/*.rs | sha256sum | cut -c1-12)"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

# module OUT MODULE VERSION PACKAGE [LDFLAGS]: builds a command in a copy of its module, with the module's own list of checksums.
module() {
    local out=$1 module=$2 version=$3 package=$4 flags=${5:-} told dir copy
    [ ! -e "$out" ] || return 0
    need_go
    say "building ${module##*/} $version"
    copy="$scratch/${module##*/}"
    told=$(go mod download -json "$module@$version") || { say "$told"; exit 1; }
    dir=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$told")
    cp -r "${dir:?}/." "$copy"
    chmod -R u+w "$copy"
    (cd "$copy" && CGO_ENABLED=0 GOWORK=off GOFLAGS="-buildvcs=false -p=2" go build -trimpath -ldflags "-s -w $flags" -o "$scratch/out" "$package")
    place "$out"
    rm -rf "$copy"
}

# place OUT: what was built appears at once and complete, so that an interrupted run leaves nothing that looks done.
place() {
    mkdir -p "$(dirname "$1")"
    mv "$scratch/out" "$1"
}

# provider NAME VERSION MODULE_VERSION: the version is the one that the mirror tells; the module's may be a commit after it.
provider() {
    local first="$tools/mirror/registry.terraform.io/hashicorp/$1/$2/linux_amd64/terraform-provider-$1_v$2"
    local second="${first/registry.terraform.io/registry.opentofu.org}"
    module "$first" "github.com/hashicorp/terraform-provider-$1" "$3" .
    # OpenTofu does not follow links to directories.
    [ -e "$second" ] || { ln "$first" "$scratch/out" && place "$second"; }
}

fixture() {
    local out="$tools/mirror/example.test/ferry/fixture/0.1.0/linux_amd64/terraform-provider-fixture_v0.1.0"
    [ ! -e "$out" ] || return 0
    need_rust
    need protoc protobuf-compiler
    [ -e /usr/include/google/protobuf/empty.proto ] || need_package libprotobuf-dev
    say "building the fixture provider"
    cargo build --quiet --release --locked --manifest-path tests/provider/Cargo.toml --target-dir "$target/fixture-provider"
    cp "$target/fixture-provider/release/ferry-fixture-provider" "$scratch/out"
    place "$out"
}

mkdir -p "$cache" "$target"
exec 9>"$cache/terraform.lock"
flock --nonblock 9 || { say "waiting for another run"; flock 9; }
scratch=$(mktemp -d "$cache/terraform-scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# What a killed run left behind.
find "$cache" -maxdepth 1 -name 'terraform-scratch.*' ! -path "$scratch" -exec rm -rf {} +

if [ "${1:-}" != tofu-only ]; then
    fixture
    provider local 2.9.0 v1.4.1-0.20260806152022-9068a4b7aa37
    provider random 3.9.0 v1.3.2-0.20260824155315-e1092b0cfc07
fi
case "${1:-}" in
    "") ;;
    all)
        provider time 0.14.2 v0.14.2
        provider tls 4.3.0 v1.2.1-0.20260819085117-d044ca7c6f52
        provider http 3.6.1 v1.2.1-0.20260814132659-be89f04ea469
        ;;
    tofu | tofu-only) module "$tools/bin/tofu" github.com/opentofu/opentofu v1.12.6 ./cmd/tofu "-X github.com/opentofu/opentofu/version.dev=no" ;;
    *) say "usage: terraform-tools.sh [all|tofu|tofu-only]"; exit 2 ;;
esac
cat >"$scratch/out" <<END
disable_checkpoint = true
provider_installation {
  filesystem_mirror {
    path = "$tools/mirror"
  }
}
END
place "$tools/tfrc"
ln -sfn "$tools" "$target/terraform-tools"
