#!/usr/bin/env bash
# web.sh lint|unit|browser - the page's own tests; 77 with the reason where they cannot run.
set -euo pipefail
cd "$(dirname "$0")/../web"

skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}
command -v node >/dev/null || skip "node is not there (scripts/install-deps.sh build)"
[ -d node_modules/vitest ] || skip "web/node_modules is not there (scripts/npm-ci.sh test)"

case "${1:-}" in
lint)
    [ -d node_modules/@biomejs/biome ] || skip "Biome is not there (scripts/npm-ci.sh test)"
    exec node node_modules/@biomejs/biome/bin/biome ci --colors=off --error-on-warnings .
    ;;
unit)
    node node_modules/typescript/bin/tsc --noEmit
    out=$(mktemp)
    trap 'rm -f "$out"' EXIT
    code=0
    node node_modules/vitest/vitest.mjs run --testTimeout=120000 --reporter=default --reporter=json --outputFile.json="$out" || code=$?
    [ -s "$out" ] || { echo "Vitest ended before it had results" >&2; exit 1; }
    node -e 'const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
        console.log(`${r.numPassedTests} passed, ${r.numFailedTests} failed, ${r.numPendingTests} skipped`);' "$out"
    exit "$code"
    ;;
browser) exec node test/browser/run.mjs ;;
*)
    echo "usage: $0 lint|unit|browser" >&2
    exit 2
    ;;
esac
