#!/usr/bin/env bash
# bootstrap.sh - from a fresh Debian 12 machine to a built program and a look at what it does.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-deps.sh build

# Without the page everything else is built all the same.
./scripts/npm-ci.sh build || true

echo "Building (release)"
cmake --preset release --log-level=WARNING
cmake --build --preset release --target cortex cortex-verify cortex_shared cortex_static

echo
# Where the kernel gives no sandbox, the governed run is not shown: it says so and exits 3.
./build/release/bin/cortex demo || [ $? -eq 3 ]
