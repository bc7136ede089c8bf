#!/usr/bin/env bash
# ledger.sh [FOLDER] - the ledger's main job on a small example: record, prove, catch.
#
# FOLDER holds the programs (build/release/bin).  Everything else happens in a temporary folder that is
# removed at the end.  Exits 0 when every step came out as it should.
set -euo pipefail

bin=$(cd "${1:-$(dirname "$0")/../build/release/bin}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export CORTEX_HOME=$work/home CORTEX_ACTOR=coder

say() { printf '\n%s\n' "$*"; }
# Shows a command and runs it; its exit code must be the first argument.
show() {
    local expected=$1 code=0
    shift
    printf '  $ %s\n' "$*" | sed "s#$work/##g"
    PATH=$bin:$PATH "$@" >out 2>&1 || code=$?
    sed -e "s#$work/##g" -e 's/^/    /' out
    if [ "$code" -ne "$expected" ]; then
        echo "ledger.sh: exit code $code, expected $expected" >&2
        exit 1
    fi
}

say "An agent records what it knows. Every write is a leaf, every state a root."
show 0 cortex init
show 0 cortex memory write Fact '{"statement":"the refund limit is 500","subject":"policy","predicate":"is"}' --tag policy
fact=$(cat out)
show 0 cortex memory write Goal '{"statement":"refund order 4711","status":"active"}'
goal=$(cat out)
show 0 cortex memory link "$goal" derived_from "$fact"
show 0 cortex roots

say "Somebody without the home is shown one memory of it, and can check that."
show 0 cortex snapshot make --reason for-audit
show 0 cortex prove "$fact" -o fact.proof
root=$("$bin/cortex" roots | sed -n 's/^ *overall *//p')
show 0 cortex-verify fact.proof --overall-root "$root"

say "An auditor keeps a signed statement about the journal."
show 0 cortex key new auditor.key
show 0 cortex checkpoint --sign auditor.key -o then.note
vkey=$("$bin/cortex" key show auditor.key | head -n 1)
show 0 cortex memory update "$fact" '{"statement":"the refund limit is 50000","subject":"policy","predicate":"is"}'
show 0 cortex verify --home home --checkpoint then.note --key "$vkey"

say "One byte of the log is changed behind everybody's back."
cp -r home edited
byte=$(grep -abo 'refund limit is 500"' edited/log/000000.seg | head -n 1 | cut -d: -f1 || true)
[ -n "$byte" ] || byte=$(grep -abo 'refund limit is 500' edited/log/000000.seg | head -n 1 | cut -d: -f1)
printf 'X' | dd of=edited/log/000000.seg bs=1 seek="$byte" conv=notrunc status=none
show 1 cortex verify --home edited

say "The whole history is told anew, without the entry that set the limit."
show 0 cortex init told-anew
show 0 cortex memory write --home told-anew Goal '{"statement":"refund order 4711","status":"active"}'
show 1 cortex verify --home told-anew --checkpoint then.note --key "$vkey"

say "What must be forgotten is destroyed; every proof and root still holds."
show 0 cortex erase "$fact" --reason "asked for by the customer"
if grep -aqr 'refund limit is' home; then
    echo "ledger.sh: the erased text is still there" >&2
    exit 1
fi
show 0 cortex verify --home home --checkpoint then.note --key "$vkey"
