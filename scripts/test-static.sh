#!/usr/bin/env bash
# test-static.sh [x86_64|aarch64] [FOLDER] - tests the programs of one file that scripts/static.sh has put into FOLDER
# (default build/dist), as they are given out: the tests of cortex-verify from outside with its proofs, evidence
# files, witnesses and erasures, and those of cortex that use no other program.
#
# CORTEX_TOOLS (default build/release/bin) has cortex-agents, which makes signed traces for the tests.
# Programs of the other architecture are run by qemu (scripts/emulated.sh).  Where the kernel cannot be told of it,
# only cortex-verify is: then cortex, which makes the proofs, is this machine's (CORTEX_BIN, default the one of
# build/release).  CORTEX_SCRIPTS="verify cli" runs these scripts only.  A test that says nothing about the other
# machine under qemu is named below, with the reason, and counts as skipped when it fails.  Closes with
# `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$(uname -m)
arch=${1:-$here}
out=$(cd "${2:-build/dist}" && pwd)
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
verify=$out/cortex-verify-$version-linux-$arch
[ -x "$verify" ] || { echo "test-static.sh: $verify is missing: run scripts/static.sh $arch" >&2; exit 1; }
tests=(verify evidence witness erasure actions)
emulator=()
if [ "$arch" != "$here" ] && ./scripts/emulated.sh "$arch" true; then
    emulator=(./scripts/emulated.sh "$arch")
fi
if [ "$arch" = "$here" ] || [ -n "${emulator[*]}" ]; then
    cp "$verify" "$bin/cortex-verify"
    cp "$out/cortex-$version-linux-$arch" "$bin/cortex"
    tests+=(ledger answers chain home_root cli contract)
else
    printf '#!/bin/sh\nexec qemu-%s-static "%s" "$@"\n' "$arch" "$verify" >"$bin/cortex-verify"
    chmod 755 "$bin/cortex-verify"
    cp "${CORTEX_BIN:-build/release/bin/cortex}" "$bin/cortex"
fi
read -ra tests <<<"${CORTEX_SCRIPTS:-${tests[*]}}"
cp "${CORTEX_TOOLS:-build/release/bin}/cortex-agents" "$bin/"
export CORTEX_BIN=$bin/cortex CX_TEST_ROOT=$PWD/tests

# What fails under qemu's user mode because of qemu, not because of the machine that it plays: SCRIPT/TEST, why.
emulated='
cli/closed_descriptors_are_noticed qemu opens files of its own: they get the number of the input that was closed
'

passed=0
failed=0
skipped=0
for name in "${tests[@]}"; do
    script=tests/cli/test_$name.py
    echo "-- $script"
    said=$(timeout 1800 "${emulator[@]}" "./$script" 2>&1) || true
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' <<<"$said" | tail -n 1) || line=
    if [ -z "$line" ]; then
        tail -n 20 <<<"$said"
        line='0 passed, 1 failed, 0 skipped'
    fi
    read -r p _ f _ s _ <<<"${line//,/}"
    if [ "$f" -ne 0 ] && [ "$arch" != "$here" ]; then
        for test in $(sed -n 's/^FAIL \([a-z0-9_]*\)$/\1/p' <<<"$said" | sort -u); do
            if reason=$(grep -E "^$name/$test " <<<"$emulated"); then
                echo "skip $reason"
                f=$((f - 1)) s=$((s + 1))
            fi
        done
    fi
    [ "$f" -eq 0 ] || grep -v "^$line\$" <<<"$said" | tail -n 60
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
