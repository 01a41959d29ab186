#!/usr/bin/env bash
# Shows that the fixture provider does what its README.md says, with a real program: prove.sh [terraform|tofu]
source "$(dirname "$0")/../../scripts/lib.sh"
program=${1:-terraform}
tools=$(realpath "${CARGO_TARGET_DIR:-target}/terraform-tools")
[ "$program" != tofu ] || program="$tools/bin/tofu"
export TF_CLI_CONFIG_FILE="$tools/tfrc" TF_IN_AUTOMATION=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/world"
cd "$dir" || exit

tf() { "$program" "$@" -no-color >log 2>&1; }

fail() {
    cat log
    say "prove: $1"
    exit 1
}

# good WHAT COMMAND…, bad WHAT COMMAND…: the command must succeed, must fail.
good() { "${@:2}" || fail "$1: failed"; }
bad() { ! "${@:2}" || fail "$1: did not fail"; }
says() { grep -qF -- "$1" log || fail "does not say: $1"; }

# plans ADD CHANGE DESTROY
plans() {
    good plan tf plan -input=false
    says "Plan: $1 to add, $2 to change, $3 to destroy."
}
settled() {
    good plan tf plan -input=false
    says "No changes."
}
apply() { tf apply -input=false -auto-approve; }
# witnessed LINE COUNT
witnessed() { [ "$(grep -cxF "$1" world/witness.log)" = "$2" ] || fail "not witnessed $2 times: $1"; }
holds() { [ "$(cat "world/$1.json")" = "$2" ] || fail "$1 does not hold $2"; }

# things NAME ARGUMENTS, …: writes the module anew.
things() {
    printf 'terraform {\n  required_providers {\n    fixture = { source = "example.test/ferry/fixture" }\n  }\n}\n' >main.tf
    while [ $# -gt 0 ]; do
        printf 'resource "fixture_thing" "%s" {\n  world = "%s"\n  %s\n}\n' "$1" "$dir/world" "$2" >>main.tf
        shift 2
    done
}

things a 'name = "a"' b $'name = "b"\n  size = 2' c $'name = "c"\n  secret = "hush"'
good init tf init
plans 3 0 0
good "apply of three" apply
settled
witnessed "create a" 1
holds b '{"size":2}'
! grep -q hush log || fail "the secret is told"

echo '{"size":7}' >world/b.json
plans 0 1 0
says "~ size    = 7 -> 2"
good "undoing drift" apply
holds b '{"size":2}'
rm world/a.json
plans 1 0 0
good "making again what was deleted" apply
witnessed "create a" 2

things a 'name = "a"' b $'name = "b"\n  size = 3' c 'name = "d"'
plans 1 1 1
says "forces replacement"
good "update and replacement" apply
settled
holds b '{"size":3}'
witnessed "update b" 2
witnessed "delete c" 1
witnessed "create d" 1

things a $'name = "a"\n  size = 1\n  fail = "update"' b $'name = "b"\n  size = 3\n  fail = "delete"' c 'name = "d"'
bad "update" apply
says "Told to fail: update"
things a 'name = "a"' c 'name = "d"'
bad "delete" apply
says "Told to fail: delete"
witnessed "delete b" 0
things a 'name = "a"' b $'name = "b"\n  size = 3' c 'name = "d"' e $'name = "e"\n  fail = "create"'
bad "create" apply
says "Told to fail: create"
[ ! -e world/e.json ] || fail "made, though told to fail"
things a 'name = "a"' b $'name = "b"\n  size = 3' c 'name = "d"' e $'name = "e"\n  fail = "after_create"'
bad "after_create" apply
witnessed "create e" 1
things a 'name = "a"' b $'name = "b"\n  size = 3' c 'name = "d"' e 'name = "e"'
plans 1 0 1
says "is tainted, so"
good "replacing what is tainted" apply
witnessed "create e" 2
settled

echo '{"size":5}' >world/f.json
things a 'name = "a"' b $'name = "b"\n  size = 3' c 'name = "d"' e 'name = "e"' f $'name = "f"\n  size = 5'
bad "creating what exists" apply
says "Failed to create"
printf 'import {\n  to = fixture_thing.f\n  id = "%s/world/f"\n}\n' "$dir" >import.tf
good "plan of an import" tf plan -input=false
says "Plan: 1 to import, 0 to add, 0 to change, 0 to destroy."
sed -i 's|id = .*|id = "f"|' import.tf
FIXTURE_WORLD="$dir/world" good "import" apply
rm import.tf
settled

good destroy tf destroy -input=false -auto-approve
[ "$(ls world)" = witness.log ] || fail "things are left"

for name in time tls http; do
    [ -d "$tools/mirror/registry.terraform.io/hashicorp/$name" ] || { echo "prove: ok, without the real providers"; exit 0; }
done
cat >main.tf <<'END'
resource "random_pet" "name" {}
resource "time_static" "now" {}
resource "tls_private_key" "key" { algorithm = "ED25519" }
data "http" "nobody" {
  url   = "http://127.0.0.1:9/"
  count = 0
}
resource "local_file" "all" {
  filename = "${path.module}/all.txt"
  content  = "${random_pet.name.id} ${time_static.now.id} ${tls_private_key.key.public_key_openssh}"
}
END
good "init of real providers" tf init
good "apply of real providers" apply
says "4 added"
settled
grep -q ssh-ed25519 all.txt || fail "the file is not what it should be"
good "destroy of real providers" tf destroy -input=false -auto-approve
echo "prove: ok"
