#!/usr/bin/env bash
# npm-ci.sh build|test|sdk|deploy|objects - brings what web/package-lock.json names into web/node_modules.
#
# `build` is what bundling the page needs, `test` everything.  `sdk` brings what the tests of
# sdk/typescript need into its own node_modules: the types of Node and the packages that it integrates
# with (240 MB).  `deploy` brings the schemas by which tests/deploy reads manifests (60 MB).  `objects` brings
# s3rver, an object store that tests of stored bundles start on loopback (14 MB).
#
# When the lock file is what it was the last time, nothing is done and nothing is asked of the network.
# A registry that is slow is asked three times.  Exits 1 with the reason when it cannot be done: the
# programs are then built without the page, and its tests, or those of the SDK, are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-}
case "$kind" in
build) folder=web omit=(--omit=dev) ;;
test) folder=web omit=() ;;
sdk) folder=sdk/typescript omit=(--omit=optional) ;; # optional are programs for other machines
deploy) folder=tests/deploy omit=() ;;
objects) folder=tests/objects omit=() ;;
*)
    echo "usage: $0 build|test|sdk|deploy|objects" >&2
    exit 2
    ;;
esac
cd "$folder"
case "$kind" in
sdk) without="tests of sdk/typescript are left out" ;;
deploy) without="the test of the manifests is left out" ;;
objects) without="tests with s3rver are left out" ;;
*) without="the page is left out" ;;
esac

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "$without: node and npm (packages nodejs and npm, version 18 or newer) are missing" >&2
    exit 1
fi
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 18 ]; then
    echo "$without: node $(node -v) is older than 18" >&2
    exit 1
fi

stamp=node_modules/.cortex-stamp
wanted=$(sha256sum package-lock.json | cut -d ' ' -f 1)
if [ -f "$stamp" ]; then
    read -r have had_kind <"$stamp"
    if [ "$have" = "$wanted" ] && { [ "$had_kind" = test ] || [ "$had_kind" = "$kind" ]; }; then
        exit 0
    fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for try in 1 2 3; do
    # No script of a package is run: what they would fetch or build is not needed.
    if timeout 180 npm ci "${omit[@]}" --ignore-scripts --no-audit --no-fund --no-progress \
        --fetch-timeout=30000 >"$log" 2>&1; then
        echo "$wanted $kind" >"$stamp"
        exit 0
    fi
    echo "npm ci did not succeed (try $try of 3)" >&2
    sleep "$((try * 2))"
done
tail -5 "$log" >&2
echo "$without: its parts could not be fetched" >&2
exit 1
