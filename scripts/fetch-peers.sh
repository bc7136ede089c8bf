#!/bin/sh
# fetch-peers.sh DIR - puts what some tests and benchmarks are compared with into DIR, from npm:
# second opinions, never needed to build, run or test.  Then set CORTEX_PEERS=DIR.
#
#   ajv 8.17.1 (with ajv-formats 3.0.1)   JSON Schema: tests/diff/schema_diff.py, bench_schema
set -eu
[ $# -eq 1 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
npm install --prefix "$1" --no-save --no-audit --no-fund --ignore-scripts \
    ajv@8.17.1 ajv-formats@3.0.1
echo "export CORTEX_PEERS=$(cd "$1" && pwd)"
