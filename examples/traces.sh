#!/usr/bin/env bash
# traces.sh [FOLDER] - signed traces on a small example: received, checked, searched, questioned.
#
# FOLDER holds the programs (build/release/bin).  Everything else happens in a temporary folder that is
# removed at the end.  Exits 0 when every step came out as it should.  The traces and keys of
# examples/traces/ are invented; cortex-agents made them.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "${1:-$root/build/release/bin}" && pwd)
traces=$root/examples/traces
work=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
export CORTEX_HOME=$work/home
alpha=976dbe5047633d39
beta=0f1710aec6e6a530

say() { printf '\n%s\n' "$*"; }
# Shows a command and runs it; its exit code must be the first argument.
show() {
    local expected=$1 code=0
    shift
    printf '  $ %s\n' "$*" | sed -e "s#$work/##g" -e "s#$traces#examples/traces#g" |
        sed -e 's/Bearer [^ ]*/Bearer .../'
    PATH=$bin:$PATH "$@" >out 2>&1 || code=$?
    sed -e "s#$work/##g" -e "s#$traces#examples/traces#g" -e 's/^/    /' out | cut -c 1-160
    if [ "$code" -ne "$expected" ]; then
        echo "traces.sh: exit code $code, expected $expected" >&2
        exit 1
    fi
}

say "Three agents sign what they decide. Their keys are pinned first: an unknown key is never verified."
show 0 cortex init
show 0 cortex key add "$traces/trust.json"

say "Traces from files: each is checked, and kept with the bytes that were signed."
show 0 cortex record "$traces/alpha.json"
show 0 cortex record "$traces/beta.json"
show 0 cortex record "$traces/alpha.json"

say "One score is changed on the way."
sed 's/"plausibility_score": 0.9/"plausibility_score": 0.99/' "$traces/alpha.json" >changed.json
show 1 cortex record changed.json

say "Did alpha wake up as it should? Do the agents' audit logs hold together?"
show 0 cortex trace wakeup $alpha
show 0 cortex trace chain $alpha
show 1 cortex trace chain $beta

say "Over HTTP: a server takes what agents post, and answers when it is on the disk."
"$bin/cortex" serve --listen 127.0.0.1:0 >server.log 2>&1 &
server=$!
for _ in $(seq 100); do
    grep -q 'listens on' server.log && break
    sleep 0.1
done
url=$(sed -n 's/.*listens on \(http[^ ]*\).*/\1/p' server.log)
token="Authorization: Bearer $(cat "$CORTEX_HOME/token")"
show 0 curl -sS -H "$token" -H 'Content-Type: application/json' \
    --data-binary "@$traces/later.json" "$url/api/v1/covenant/events"
for _ in $(seq 100); do
    curl -sS -H "$token" "$url/readyz" | grep -q current && break
    sleep 0.1
done
show 0 curl -sS -H "$token" "$url/api/v1/covenant/traces?agent_id_hash=$alpha&limit=1"

say "While it runs, other programs go on writing: through its socket."
show 1 cortex detect
kill -TERM "$server"
wait "$server"
server=

say "Each trace is also a piece of history that the debugger reads. Why did beta use a tool?"
show 0 cortex lattice verify "@agent/$beta"
show 0 cortex lattice why "@agent/$beta" "@agent/$beta" ASPDMA_RESULT
show 0 cortex verify --home home
say "All of it is in one ledger: what was accepted is there, and nothing was called verified that was not."
