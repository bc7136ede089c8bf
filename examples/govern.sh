#!/usr/bin/env bash
# govern.sh [BIN] - a shell script as the agent: one change that is merged, one that is refused.
#
# Makes a small repository in a temporary folder, lets a script work in it under a contract, looks at
# the evidence, and lets another script try to write where it may not.  BIN is the folder of the
# programs, default build/release/bin.  KEEP=1 leaves the folder for a look.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "${1:-$here/build/release/bin}" && pwd)
folder=$(mktemp -d)
trap '[ -n "${KEEP:-}" ] && echo "left in $folder" || { chmod -R u+w "$folder"; rm -rf "$folder"; }' EXIT
export PATH=$bin:$PATH CORTEX_HOME=$folder/home
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=you GIT_AUTHOR_EMAIL=you@example.invalid
export GIT_COMMITTER_NAME=you GIT_COMMITTER_EMAIL=you@example.invalid
unset CORTEXPILOT_RUNTIME_ROOT

say() {
    printf '\n\033[1m# %s\033[0m\n' "$*"
}
show() {
    printf '$ %s\n' "$*"
    "$@"
}
fails_with() {
    local wanted=$1 code=0
    shift
    printf '$ %s\n' "$*"
    "$@" || code=$?
    if [ "$code" -ne "$wanted" ]; then
        echo "exit $code, expected $wanted" >&2
        exit 1
    fi
}

if ! cortex doctor --json 2>/dev/null | grep -q '"name":"bwrap","status":"ok"'; then
    echo "this machine has no sandbox: see 'cortex doctor'" >&2
    exit 77
fi

say "A repository with a bug, and an agent that is a shell script"
mkdir "$folder/shop" && cd "$folder/shop"
git init -q -b main .
mkdir src tests agents
printf 'def refund(paid, asked):\n    return asked\n' >src/refund.py
cat >tests/test_refund.py <<'PY'
import pathlib, runpy
refund = runpy.run_path(str(pathlib.Path(__file__).parent.parent / "src/refund.py"))["refund"]
assert refund(500, 400) == 400
assert refund(500, 5000) == 500, "nobody gets back more than was paid"
print("ok")
PY
cat >agents/fix.sh <<'SH'
#!/bin/sh
# The prompt comes on standard input; the last line is the reply, one JSON object.
cat >/dev/null
sed -i 's/return asked/return min(paid, asked)/' src/refund.py
echo '{"task_id":"refund_limit","status":"SUCCESS","summary":"capped","evidence_refs":{},"failure":null}'
SH
sed 's|^sed.*|rm tests/test_refund.py; echo "print(\\"ok\\")" >tests/test_refund.py|' \
    agents/fix.sh >agents/cheat.sh
git add -A && git commit -qm "a shop"
show cortex init --yes >"$folder/init.txt"
tail -1 "$folder/init.txt"
show cortex runner add fixer --full --default sh agents/fix.sh
show cortex runner add cheater sh agents/cheat.sh
python3 - <<'PY'
import json, pathlib
for name in ("policies/command_allowlist.json", "policies/packs/low.json"):
    policy = json.loads(pathlib.Path(name).read_text())
    policy["allow"].append(["python3", "tests/"])
    pathlib.Path(name).write_text(json.dumps(policy, indent=2) + "\n")
PY
git add -A && git commit -qm "how agents may work here"

say "What it may do, in one file"
show cortex contract new 'refund() must never return more than was paid' --id refund_limit \
    --path src/refund.py --test 'python3 tests/test_refund.py' -o "$folder/task.json"
show cortex contract lint "$folder/task.json"

say "The run: worktree, sandbox, gates, tests, merge"
show cortex run "$folder/task.json" | tee "$folder/run.txt"
run=$(sed -n 's/^SUCCESS  //p' "$folder/run.txt")
show git log --oneline -3
show cat src/refund.py

say "The evidence"
show cortex run verify "$run"
show cortex run replay "$run" --reexec
show cortex lattice why "@run/$run" "@run/$run/refund_limit" state
show cortex run export "$run" --output "$folder/refund.cxr"

say "An agent that changes the test in place of the bug"
git revert --no-edit HEAD >/dev/null
before=$(git rev-parse main)
fails_with 4 cortex run "$folder/task.json" --runner cheater
[ "$(git rev-parse main)" = "$before" ] && [ -z "$(git status --porcelain)" ]
echo "main is where it was"

say "One byte of the evidence, changed"
cp -r ".runtime-cache/cortexpilot/runs/$run" "$folder/$run"
chmod -R u+w "$folder/$run"
sed -i 's/min(paid, asked)/max(paid, asked)/' "$folder/$run/patch.diff"
fails_with 1 cortex run verify "$folder/$run"
