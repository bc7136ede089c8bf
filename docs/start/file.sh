#!/usr/bin/env bash
# file.sh - someone with a file that an agent left, from nothing to what it says; without a server.
. "$(dirname "$0")/measure.sh"

type_in "$cortex" import auto "$here/session.jsonl" -o "$scratch/history.jsonl"
reached 'first record'
type_in "$cortex" lattice why "$scratch/history.jsonl" @main messages --section memory
reached 'first answer'
