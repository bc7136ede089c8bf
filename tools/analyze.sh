#!/usr/bin/env bash
# analyze.sh [clang-tidy|cppcheck|gcc]... [-- FILE...] - reads the code by machine; every finding is a failure.
#
# Without words all three read everything of src/ and verify/: an hour of one processor, and later only what has
# changed.  Checks that are left out, and why, stand in .clang-tidy and below; a single line that is right although
# a reader stumbles over it carries `NOLINT(check)` or `cppcheck-suppress` with its reason, or a row in
# tools/analyze-known.txt.
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
clean=$build/clean
mkdir -p "$clean"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang \
    -DCORTEX_TESTS=OFF -DCORTEX_WEB=OFF >/dev/null
cmake --build "$build" --target assets_table.c >/dev/null
jobs=${CORTEX_JOBS:-$(nproc)}

# What a file is to an analyzer: its text with everything that it includes, comments too, and who reads it how.
# Defines and folders are those of the build.
c_flags=(-std=c17 -D_GNU_SOURCE '-DCX_VERSION="0"' -DCX_WITH_PG -Iinclude -Isrc -include base/banned.h)
gcc_flags=(-O1 -fanalyzer -Wno-analyzer-use-of-uninitialized-value -fvisibility=hidden -DCX_ANALYZE -c -o /dev/null)

# identity READER FILE
identity() {
    {
        echo "$2"
        if [ "$1" = clang-tidy ]; then
            clang-tidy --version
            cat .clang-tidy
            clang -E -C "${c_flags[@]}" "$2"
        else
            gcc --version
            echo "${gcc_flags[@]}"
            gcc -E -C "${c_flags[@]}" "${gcc_flags[@]:1:4}" "$2"
        fi
    } 2>/dev/null | sha256sum | cut -d' ' -f1
}

# One file at a time: what an analyzer keeps from one file spoils its judgement of the next.  A file about which
# there was nothing to say is not read again until it, what it includes, or its reader is another.
# gcc gets five minutes of a processor; what it has not read by then it never will.
read_one() {
    local reader=$1 file=$2 said name code=0
    name=$clean/$reader-$(identity "$reader" "$file")
    [ ! -e "$name" ] || return 0
    if [ "$reader" = clang-tidy ]; then
        said=$(clang-tidy -p "$build" --quiet "$file" 2>/dev/null | grep -E '(error|warning): ') || true
    else
        said=$(ulimit -t 300 && gcc "${c_flags[@]}" "${gcc_flags[@]}" "$file" 2>&1) || code=$?
        said=$(grep -E 'warning: .*\[-Wanalyzer' <<<"$said") || true
        [ "$code" -eq 0 ] ||
            said+="${said:+$'\n'}$file:1:1: warning: it could not be read to its end [-Wanalyzer-gave-up]"
    fi
    if [ -n "$said" ]; then
        printf '%s\n' "$said"
    else
        touch "$name"
    fi
}
# Bash passes functions on, but no arrays.
one_by_one() {
    export build clean
    export -f identity read_one
    printf '%s\n' "${files[@]}" | xargs -P "$jobs" -I {} bash -c \
        "$(declare -p c_flags gcc_flags)"'; read_one "$@"' bash "$1" {}
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
    clang-tidy) found=$(one_by_one clang-tidy | unknown) ;;
    cppcheck) found=$(read_cppcheck | unknown) ;;
    gcc) found=$(one_by_one gcc | unknown) ;; # 12 takes a cx_status in a register for one that nobody wrote
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
