#!/usr/bin/env bash
# bootstrap.sh - from a fresh Debian 12 machine to a built program and a look at what it does.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-deps.sh build

echo "Building (release)"
cmake --preset release --log-level=WARNING
cmake --build --preset release --target cortex cortex-verify cortex_shared cortex_static

echo
./build/release/bin/cortex demo
./examples/ledger.sh
./examples/traces.sh
