#!/usr/bin/env bash
# run.sh NAME PROGRAM - runs one of the examples in a folder that is gone afterwards, and looks at
# what it said.
set -euo pipefail
[ $# -eq 2 ] || {
    echo "usage: examples/run.sh journal|memory|proof|steps PROGRAM" >&2
    exit 2
}
name=$1
program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# says TEXT: the last output has it.
says() {
    grep -qF -- "$1" "$work/out" || {
        echo "expected: $1"
        exit 1
    }
}

case $name in
journal)
    "$program" "$work/home" | tee "$work/out"
    says "recorded: 1003 entries, root "
    says "entry 2, user.told: (erased)"
    says "verified: holds; 1004 entries, anchored"
    ;;
steps)
    "$program" "$work/home" | tee "$work/out"
    says "conflict: the head is desk#1 by now"
    says "limit: 50000"
    says '"new":50000'
    says '"holds_at_end":true'
    says '"section":"memory"}'
    says 'merged: {"beliefs":{},"context_stack":[],"goals":[],"memory":{"order":{"limit":{"__conflict":true'
    says "nearest: memory.order.limit"
    ;;
memory)
    "$program" "$work/home" | tee "$work/out"
    says "a late writer hears: VersionConflict"
    says "The office opens at 9"
    ;;
proof)
    root=$("$program" make "$work/home" "$work/answer.proof")
    rm -r "$work/home"
    "$program" check "$work/answer.proof" "$root" | tee "$work/out"
    says "holds"
    says "#1 is there"
    other=$(printf '%064d' 0)
    code=0
    "$program" check "$work/answer.proof" "$other" >"$work/out" || code=$?
    cat "$work/out"
    says "broken: "
    [ "$code" -eq 1 ]
    ;;
*)
    echo "no example called $name"
    exit 2
    ;;
esac
