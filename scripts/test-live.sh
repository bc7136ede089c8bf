#!/bin/sh
# test-live.sh [--install] [--table FILE] PROGRAM [WORD..] - tries `cortex hook` with the real command lines
# of Claude Code, Codex and Gemini CLI.  No account, no key and no model is needed: the test plays the model
# on loopback.  PROGRAM is the cortex to try; words choose cases or agents (claude, codex, gemini).
#
#   CORTEX_AGENTS    the folder of the agents; default ./.agents.  They are in its folder live/
#   --install        puts the current versions there first, from npm (about 1 GB)
#   --table FILE     writes the results as Markdown
#
# Never needed to build, run or test anything else.  About ten minutes for all of it.
set -eu
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
CORTEX_AGENTS=${CORTEX_AGENTS:-$here/.agents}
install=0
while [ $# -gt 0 ]; do
    case $1 in
    --install) install=1 ;;
    --table) [ $# -ge 2 ] || usage; CORTEX_LIVE_TABLE=$2; export CORTEX_LIVE_TABLE; shift ;;
    -*) usage ;;
    *) break ;;
    esac
    shift
done
if [ "$install" = 1 ]; then
    mkdir -p "$CORTEX_AGENTS/live"
    npm install --prefix "$CORTEX_AGENTS/live" --no-save --no-audit --no-fund --ignore-scripts \
        @anthropic-ai/claude-code@latest @openai/codex@latest @google/gemini-cli@latest
    (cd "$CORTEX_AGENTS/live/node_modules/@anthropic-ai/claude-code" && node install.cjs)
fi
[ $# -ge 1 ] || [ "$install" = 0 ] || exit 0
[ $# -ge 1 ] && [ -x "$1" ] || usage
export CORTEX_AGENTS CORTEX_LIVE_ALL=1
exec python3 "$here/tests/live/test_agents.py" "$@"
