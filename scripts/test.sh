#!/usr/bin/env bash
# test.sh [--quick] - from a fresh Debian 12 machine to every test run.
#
# --quick is for before a commit: the release build and the unit tests, the checks and the faster tests
# of the programs over it, in less than four minutes on two cores.
#
# Every test program closes with `N passed, N failed, N skipped`; a check without such a line counts
# as one.  The last line printed here is their sum, and the only line of that form.  The exit code
# is 0 only when something ran and nothing failed.
#
# CORTEX_JOBS limits how much runs at once.  CORTEX_TESTDATA names a folder with other people's test
# suites; tests that need it are skipped without it.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=no
case "${1:-}" in
"") ;;
--quick) quick=yes ;;
*)
    echo "usage: $0 [--quick]" >&2
    exit 2
    ;;
esac

jobs=${CORTEX_JOBS:-$(nproc)}
# Tests wait for disks and clocks, too: of the time of most long ones, a quarter to a half is work of a processor.
at_once=$((jobs + 2))
passed=0
failed=0
skipped=0
reached_end=no
log=$(mktemp)
beside_log=$(mktemp)
ahead= # what builds ahead of its part
memory= # a folder in memory

finish() {
    stop_ahead
    rm -f "$log" "$beside_log"
    if [ -n "$memory" ]; then
        rm -rf "$memory"
    fi
    if [ "$reached_end" = no ]; then
        echo "test.sh stopped before its end" >&2
        failed=$((failed + 1))
    fi
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || exit 1
    exit 0
}
trap finish EXIT
trap 'exit 1' INT TERM

part() {
    printf '\n== %s (%d s)\n' "$*" "$SECONDS"
}

# Shows what a command said only when it failed.
quietly() {
    if "$@" >"$log" 2>&1; then
        return 0
    fi
    echo "FAILED: $*"
    cat "$log"
    return 1
}

# build PRESET [TARGET...]; a build that fails counts as one failure.
build() {
    local preset=$1
    shift
    local targets=()
    stop_ahead
    if [ "$#" -gt 0 ]; then
        targets=(--target "$@")
    fi
    if ! quietly cmake --preset "$preset" ||
        ! quietly cmake --build --preset "$preset" -j "$jobs" "${targets[@]}"; then
        failed=$((failed + 1))
        return 1
    fi
}

# ahead PRESET [TARGET...]: what tests leave of the processors while they wait builds what a later part needs.
# That part stops it and builds the rest; what does not build fails there.
ahead() {
    local preset=$1
    shift
    quietly cmake --preset "$preset" >/dev/null || return 0
    # In a session of its own: where the kernel shares among sessions, a priority counts only inside of one.
    # shellcheck disable=SC2016 # the inner shell expands it
    setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 ninja "$@"' ahead \
        -C "build/$preset" -j "$jobs" "$@" >/dev/null 2>&1 &
    ahead=$!
}

stop_ahead() {
    if [ -n "$ahead" ]; then
        kill "$ahead" 2>/dev/null || true
        wait "$ahead" 2>/dev/null || true
        ahead=
    fi
}

# Where there is memory enough, what is tested again under the sanitizers has its files there, and so have the tests
# that make most of them (tests/extra.cmake): it saves a third of the time.  On the disk runs everything else.
free_kib() {
    df --output=avail "$1" 2>/dev/null | tail -n 1
}
available_kib() {
    sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo
}
if [ -w /dev/shm ] && [ "$(free_kib /dev/shm)" -gt $((4 << 20)) ] && [ "$(available_kib)" -gt $((8 << 20)) ]; then
    memory=$(mktemp -d /dev/shm/cortex-tests-XXXXXX)
    chmod 1777 "$memory" # as /tmp: PostgreSQL and some tests are other users
    export CORTEX_TEST_MEMORY=$memory
fi

# What ctest is started through; see ThreadSanitizer below.
through=()

# run_tests PRESET [CTEST-ARGUMENT...]
#
# What failed runs once more, alone, so that the log tells a test that is flaky from code that is wrong.
# Both count as failed; a flaky test counts as passed only while tests/quarantine.txt lists it.
run_tests() {
    local preset=$1 counts more_passed more_failed more_skipped
    local folder=$PWD/build/$preset ended=0
    shift
    rm -f "$folder/results.xml" "$folder/results-alone.xml"
    one_ctest "$preset" "$folder/results.xml" "$@" -j "$at_once" || ended=1
    if [ "$ended" -ne 0 ]; then
        echo "-- what failed runs again, alone"
        ended=0
        one_ctest "$preset" "$folder/results-alone.xml" "$@" -j 1 --rerun-failed || ended=1
    fi
    counts=$(./tools/sum_results.py "$folder/results.xml" "$folder/results-alone.xml")
    read -r more_passed more_failed more_skipped <<<"$counts"
    if [ "$ended" -ne 0 ] && [ "$more_failed" -eq 0 ]; then
        more_failed=1
    fi
    passed=$((passed + more_passed))
    failed=$((failed + more_failed))
    skipped=$((skipped + more_skipped))
}

# one_ctest PRESET RESULTS [CTEST-ARGUMENT...]
one_ctest() {
    local preset=$1 results=$2
    shift 2
    # A failing program's own closing line is left out: there is only one in this output.
    "${through[@]}" ctest --preset "$preset" "$@" --timeout 600 --no-tests=error \
        --test-output-size-passed 1000000 --test-output-size-failed 1000000 \
        --output-junit "$results" |
        sed -u -E '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/d'
}

# A single check that prints no counts; exit code 77 means skipped.
check() {
    local ended=0
    "$@" >"$log" 2>&1 || ended=$?
    if [ "$ended" -eq 0 ]; then
        passed=$((passed + 1))
    elif [ "$ended" -eq 77 ]; then
        skipped=$((skipped + 1))
    else
        echo "FAILED: $*"
        cat "$log"
        failed=$((failed + 1))
    fi
}

part "packages"
./scripts/install-deps.sh test

if [ -e .git ]; then
    part "commit messages"
    check ./tools/check_commits.py
fi

if [ "$quick" = yes ]; then
    export CC=gcc CXX=g++
    part "release, gcc: what is quick"
    if build release; then
        run_tests release -L 'unit|check|cli|vectors' -LE slow
    fi
    part "done; not run: what is slow, the sanitizers, the page"
    reached_end=yes
    exit 0
fi

# The page and its tests; where its parts cannot be had, both are left out, and the tests say so.
./scripts/npm-ci.sh test || true
./scripts/npm-ci.sh objects || true
# cortex-verify as WebAssembly, and the page that carries it; without them their tests are skipped.  Only tests
# need them, so they are made beside the build.
beside() {
    ./scripts/offline-verifier.sh || echo "FAILED: ./scripts/offline-verifier.sh"
    ./scripts/npm-ci.sh deploy || true
}
beside >"$beside_log" 2>&1 &
beside=$!
# The packages that the SDK for TypeScript integrates with are 240 MB: its tests with them run where
# `scripts/npm-ci.sh sdk` has brought them, and are skipped elsewhere.

# Tests of the PostgreSQL index run beside a server of their own; without one they are skipped.
if compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    through=(./tests/support/postgres.sh)
fi

export CC=gcc CXX=g++
part "release, gcc: everything"
if build release; then
    wait "$beside" || true
    ! grep -q FAILED "$beside_log" || cat "$beside_log"
    ahead asan
    run_tests release
fi

part "AddressSanitizer and UBSan, clang"
unset CC CXX
if build asan; then
    CC=gcc CXX=g++ ahead tsan threaded_tests
    on_disk=${TMPDIR:-/tmp}
    export TMPDIR=${memory:-$on_disk}
    run_tests asan -LE 'web|artefact|governed|nodes'
    export TMPDIR=$on_disk # where threads race with syncs that take their time
fi

through=()
export CC=gcc CXX=g++
part "ThreadSanitizer: the tests that use threads"
if build tsan threaded_tests; then
    # Kernels that scatter memory more widely than this compiler's ThreadSanitizer knows make it
    # refuse to start, so the scattering is switched off where that is allowed.
    if setarch "$(uname -m)" -R true 2>/dev/null; then
        through=(setarch "$(uname -m)" -R)
    fi
    run_tests tsan -L threads
    through=()
fi

part "headers stand alone, clang"
unset CC CXX
check env CC=clang CXX=clang++ ./tools/check_headers.sh

part "done"
reached_end=yes
