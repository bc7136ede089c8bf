#!/bin/sh
# fetch-agents.sh DIR - puts a coding agent's command line into DIR, from npm, in the two versions that
# tests/agents/test_codex.py governs.  About 700 MB; never needed to build, run or test anything else.
# Then set CORTEX_AGENTS=DIR.
#
#   DIR/mcp    codex 0.77.0, the server `codex mcp-server`: its own sandbox works inside ours
#   DIR/exec   codex 0.169.0, the command `codex exec`
set -eu
[ $# -eq 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
fetch() {
    mkdir -p "$1/$2"
    npm install --prefix "$1/$2" --no-save --no-audit --no-fund --ignore-scripts "@openai/codex@$3"
}
fetch "$1" mcp 0.77.0
fetch "$1" exec 0.169.0
echo "export CORTEX_AGENTS=$(cd "$1" && pwd)"
