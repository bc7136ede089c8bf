#!/usr/bin/env bash
# posix_variant.sh - builds with CORTEX_PLATFORM=posix into build/posix, and runs the tests that need
# no sandbox.
#
# This is how the files that macOS shares with every POSIX system are tested on Linux: locks of
# flock, poll, fork, handlers for signals, paths without openat2.  Programs whose tests need
# sandboxes (sandbox, agent, candidate), and metrics of memory, are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${CORTEX_JOBS:-$(nproc)}
cmake -S . -B build/posix -G Ninja -DCMAKE_BUILD_TYPE=Release -DCORTEX_PLATFORM=posix >/dev/null
cmake --build build/posix -j "$jobs"
ctest --test-dir build/posix -j "$jobs" --output-on-failure -L unit -E '^test_(sandbox|agent|candidate)$'
ctest --test-dir build/posix -j "$jobs" --output-on-failure -R \
    '^(needs_linux|cli_(ledger|writer|mcp_gateway|watch|witness|live_http|otlp_grpc|up|traces|steps))$'
