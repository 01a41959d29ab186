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
