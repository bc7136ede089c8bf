#!/usr/bin/env bash
# analyze.sh [clang-tidy|cppcheck|gcc]... [-- FILE...] - reads the code by machine; every finding is a failure.
#
# Without words all three read everything of src/ and verify/: an hour of one processor.  Checks that are left
# out, and why, stand in .clang-tidy and below; a single line that is right although a reader stumbles over it
# carries `NOLINT(check)` or `cppcheck-suppress` with its reason, or a row in tools/analyze-known.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD

readers=()
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    readers+=("$1")
    shift
done
[ "$#" -eq 0 ] || shift
[ "${#readers[@]}" -gt 0 ] || readers=(clang-tidy cppcheck gcc)
files=("$@")
if [ "${#files[@]}" -eq 0 ]; then
    mapfile -t files < <(git ls-files 'src/*.c' 'verify/*.c')
fi

./scripts/install-deps.sh analyze
build=build/analyze
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang \
    -DCORTEX_TESTS=OFF -DCORTEX_WEB=OFF >/dev/null
jobs=${CORTEX_JOBS:-$(nproc)}

# One file at a time: what an analyzer keeps from one file spoils its judgement of the next.
read_clang_tidy() {
    printf '%s\n' "${files[@]}" | xargs -P "$jobs" -n 1 clang-tidy -p "$build" --quiet 2>/dev/null |
        grep -E '(error|warning): ' || true
}

# Value flow across branches, one file at a time; style is clang-format's and the reader's business.
read_cppcheck() {
    local filters=() file
    for file in "${files[@]}"; do
        filters+=("--file-filter=*$file")
    done
    mkdir -p "$build/cppcheck"
    cppcheck --project="$build/compile_commands.json" "${filters[@]}" -j "$jobs" --std=c11 --quiet \
        --enable=warning,performance,portability --inline-suppr --cppcheck-build-dir="$build/cppcheck" \
        --template='{file}:{line}:{column}: {severity}: {message} [{id}]' 2>&1 |
        grep -E '(error|warning|performance|portability): ' || true
}

# gcc 12 takes a cx_status that a function returns in a register for one that nobody wrote.  What it has not
# read after five minutes of a processor it never will; that is a finding, too.
read_gcc() {
    local flags=(-O1 -std=c17 -fanalyzer -Wno-analyzer-use-of-uninitialized-value
        -fvisibility=hidden -D_GNU_SOURCE -DCX_VERSION='"0"' -DCX_WITH_PG
        -DCX_ANALYZE -Iinclude -Isrc -include base/banned.h -c -o /dev/null)
    printf '%s\n' "${files[@]}" | xargs -P "$jobs" -I {} sh -c '
        file=$1 && shift && ulimit -t 300 && gcc "$@" "$file" ||
        echo "$file:1:1: warning: it could not be read to its end [-Wanalyzer-gave-up]"' sh {} "${flags[@]}" 2>&1 |
        grep -E 'warning: .*\[-Wanalyzer' || true
}

# Of each row of the list, FILE and CHECK count: lines move.
unknown() {
    sed "s|$top/||" | sort -u | while IFS= read -r line; do
        file=${line%%:*}
        check=$(sed -E 's/.*\[([^],]*).*\]$/\1/' <<<"$line")
        grep -qE "^$file +$check( |$)" tools/analyze-known.txt || printf '%s\n' "$line"
    done
}

wrong=0
for reader in "${readers[@]}"; do
    case $reader in
    clang-tidy) found=$(read_clang_tidy | unknown) ;;
    cppcheck) found=$(read_cppcheck | unknown) ;;
    gcc) found=$(read_gcc | unknown) ;;
    *)
        sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        wrong=1
    fi
    echo "$reader: ${#files[@]} files, $(grep -c . <<<"$found" || true) findings"
done
exit "$wrong"
