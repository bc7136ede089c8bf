#!/usr/bin/env bash
# sdk_typescript.sh types|unit|server|packages|docs - tests of sdk/typescript; 77 with the reason where
# they cannot run. The package is built into a temporary folder, as npm would install it.
set -euo pipefail
cd "$(dirname "$0")/../sdk/typescript"
root=$(cd ../.. && pwd)

skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}
command -v node >/dev/null || skip "node is not there (scripts/install-deps.sh build)"
[ -d "$root/web/node_modules/esbuild" ] || skip "web/node_modules is not there (scripts/npm-ci.sh test)"

kind=${1:-}
case "$kind" in
unit | server | docs) ;;
types)
    [ -d "$root/web/node_modules/typescript" ] || skip "TypeScript is not there (scripts/npm-ci.sh test)"
    [ -d node_modules/@types/node ] || skip "the types of Node are not there (scripts/npm-ci.sh sdk)"
    ;;
packages)
    [ -d node_modules/openai ] || skip "the packages are not there (scripts/npm-ci.sh sdk)"
    ;;
*)
    echo "usage: $0 types|unit|server|packages|docs" >&2
    exit 2
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$work/node_modules/@cortex/recorder
mkdir -p "$package"
cp package.json README.md "$package/"
node build.mjs --out "$package/dist" >"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
export CX_SDK_PACKAGE=$package CX_ROOT=$root

# What the user who runs the tests has set does not reach them.
unset CORTEX_URL CORTEX_TOKEN CORTEX_AGENT CORTEX_KEY CORTEX_SPOOL CORTEX_HOME
export HOME=$work XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data
mkdir -p "$work/state"

code=0
timeout 280 node --test --test-reporter=tap test/"$kind"/*.test.mjs >"$work/tap" 2>&1 || code=$?
count() { sed -n "s/^# $1 //p" "$work/tap" | tail -1; }
[ "$code" -eq 0 ] || cat "$work/tap"
grep -h "# SKIP" "$work/tap" || true
echo "$(count pass) passed, $(count fail) failed, $(count skipped) skipped"
exit "$code"
