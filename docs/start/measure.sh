# measure.sh - what the scripts of this folder share: a scratch folder, the server, and the measure of
# commands and seconds.  It is sourced.
#
#   CORTEX   the program; default: cortex in PATH

set -euo pipefail
cortex=$(command -v "${CORTEX:-cortex}") || { echo "cortex is not in PATH; set CORTEX" >&2; exit 3; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
server=
trap 'stop_server; rm -rf "$scratch"' EXIT
export CORTEX_HOME=$scratch/data HOME=$scratch
unset CLAUDE_CONFIG_DIR CODEX_HOME XDG_DATA_HOME
commands=0
began=$(date +%s%N)

# What a person types, and what it prints.
type_in() {
    commands=$((commands + 1))
    printf '$ %s\n' "$*" | sed "s|$cortex|cortex|g; s|$here/||g; s|$scratch|~|g"
    "$@"
}

# `cortex up`, on free ports and without a browser; sets url, otlp and session.
up() {
    commands=$((commands + 1))
    echo '$ cortex up'
    mkfifo "$scratch/said"
    "$cortex" up --no-open --json --listen 127.0.0.1:0 --otlp 127.0.0.1:0 "$@" >"$scratch/said" &
    server=$!
    read -r said <"$scratch/said"
    url=$(member url)
    otlp=$(member otlp_url)
    session=$(member session)
}

member() {
    python3 -c 'import json,sys; print(json.loads(sys.argv[1])[sys.argv[2]] or "")' "$said" "$1"
}

stop_server() {
    [ -z "$server" ] || { kill -INT "$server" 2>/dev/null && wait "$server"; } || true
    server=
}

# "first record", "first answer": commands and seconds since the start.
reached() {
    local ms=$((($(date +%s%N) - began) / 1000000))
    printf '# %s: %d commands, %d.%02d s\n' "$1" "$commands" $((ms / 1000)) $((ms % 1000 / 10))
}
