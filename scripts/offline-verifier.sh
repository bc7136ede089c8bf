#!/usr/bin/env bash
# offline-verifier.sh [FOLDER] - makes the offline verifier: one HTML file that checks what cortex-verify checks.
#
# FOLDER (default build/dist) gets cortex-verifier-VERSION.html and the program that it carries,
# cortex-verify-VERSION.wasm (scripts/wasm.sh), and is shown their SHA-256. The same commit gives the same bytes,
# for as long as Debian's compiler and libsodium are the same (docs/offline-verifier.md).
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/dist}"
out=$(cd "${1:-build/dist}" && pwd)
./scripts/npm-ci.sh build
./scripts/wasm.sh "$out"
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=cortex-verifier-$version.html
node web/offline.mjs --program "$out/cortex-verify-$version.wasm" --version "$version" --out "$out/$name" >/dev/null
printf '%s: %s bytes, SHA-256 %s\n' "$name" "$(stat -c %s "$out/$name")" "$(sha256sum "$out/$name" | cut -d ' ' -f 1)"
