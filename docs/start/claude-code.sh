#!/usr/bin/env bash
# claude-code.sh - a user of Claude Code, from nothing to the last session.  A session of two lines
# stands for the user's own.
. "$(dirname "$0")/measure.sh"

mkdir -p "$HOME/.claude/projects/shop"
cp "$here/session.jsonl" "$HOME/.claude/projects/shop/"
began=$(date +%s%N)
up
reached 'first record'
# The browser opens at this session by itself; here its first request is made without one.
curl -sSf "$url/api/v1/view/$session/summary" \
    -H "Authorization: Bearer $(cat "$CORTEX_HOME/token")" | grep -q '"nodes"'
reached 'first answer'
type_in "$cortex" lattice why @session/session @main messages --section memory
