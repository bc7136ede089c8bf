#!/usr/bin/env bash
# analyze.sh [clang-tidy|cppcheck|gcc]... [-- FILE...] - reads the code by machine; every finding is a failure.
#
# Without words all three read everything of src/ and verify/: three quarters of an hour of one processor at first.
# What was said about a file is kept in build/analyze until the file, what it includes, or its reader is another:
# a run that was broken off goes on where it was, and later ones read only what has changed.  Checks that are left
# out, and why, stand in .clang-tidy and below; a single line that is right although a reader stumbles over it
# carries `NOLINT(check)` or `cppcheck-suppress` with its reason, or its file a row in tools/analyze-known.txt.
# CORTEX_JOBS says how many files are read at once.  Exit code 1: there are findings without a reason.
set -euo pipefail
cd "$(dirname "$0")/.."

known=tools/analyze-known.txt
said=build/analyze/said
# A reader gets so many seconds of a processor for a file; what it has not read by then it hardly ever will.
limit=120

# Defines and folders are those of the build.  gcc 12 takes a cx_status in a register for one that nobody wrote.
c_flags=(-std=c17 -D_GNU_SOURCE '-DCX_VERSION="0"' -DCX_WITH_PG -Iinclude -Isrc -include base/banned.h)
gcc_flags=(-O1 -fanalyzer -Wno-analyzer-use-of-uninitialized-value -fvisibility=hidden -DCX_ANALYZE -c -o /dev/null)
# Value flow across branches; style is clang-format's and the reader's business.
cppcheck_flags=(--std=c11 --quiet --enable=warning,performance,portability --inline-suppr
    -D_GNU_SOURCE '-DCX_VERSION="0"' -DCX_WITH_PG -Iinclude -Isrc --include=src/base/banned.h
    '--template={file}:{line}:{column}: {severity}: {message} [{id}]')

# What a file is to a reader: its text with everything that it includes, what comments tell the reader, and who
# reads it how.  Lines may move and other comments change without it becoming another.
identity() {
    local reader=$1 file=$2 preprocess=(clang -E)
    {
        echo "$file $limit"
        case $reader in
        clang-tidy)
            clang-tidy --version
            cat .clang-tidy
            ;;
        cppcheck) echo "$(cppcheck --version) ${cppcheck_flags[*]}" ;;
        gcc)
            preprocess=(gcc -E -DCX_ANALYZE -fvisibility=hidden -O1)
            echo "$(gcc --version) ${gcc_flags[*]}"
            ;;
        esac
        "${preprocess[@]}" -P "${c_flags[@]}" "$file"
        "${preprocess[@]}" -P -C "${c_flags[@]}" "$file" | grep -oE 'NOLINT[A-Z]*\([^)]*\)|cppcheck-suppress [^ ]*' ||
            true
    } 2>/dev/null | sha256sum | cut -d' ' -f1
}

# Lines of standard input that no row of the list gives a reason for.  FILE and CHECK count: lines move.
unexplained() {
    local line file check
    while IFS= read -r line; do
        file=${line%%:*}
        check=$(sed -E 's/.*\[([^],]*).*\]$/\1/' <<<"$line")
        grep -qE "^$file +$check( |$)" "$known" || printf '%s\n' "$line"
    done
}

# read_one READER FILE: one line, `kept` or `read` and the name of what was said.  One file at a time: what a reader
# keeps from one file spoils its judgement of the next.  A finding without a reason is looked for again each time,
# so that its line is today's.
read_one() {
    local reader=$1 file=$2 name all lines code=0
    name=$said/$reader-$(identity "$reader" "$file")
    if [ -e "$name" ] && [ -z "$(unexplained <"$name")" ]; then
        echo "kept $name"
        return
    fi
    case $reader in
    clang-tidy) all=$(ulimit -t "$limit" && clang-tidy --quiet "$file" -- "${c_flags[@]}" 2>/dev/null) || code=$? ;;
    cppcheck) all=$(ulimit -t "$limit" && cppcheck "${cppcheck_flags[@]}" "$file" 2>&1) || code=$? ;;
    gcc) all=$(ulimit -t "$limit" && gcc "${c_flags[@]}" "${gcc_flags[@]}" "$file" 2>&1) || code=$? ;;
    esac
    lines=$(grep -E '^[^ ]+: (error|warning|performance|portability): .*\]$' <<<"$all" |
        sed "s|^$PWD/||" | sort -u) || true
    # clang-tidy ends with 1 when it found something; a signal, or an error with nothing said, is no clean file.
    if [ "$code" -ge 124 ] || { [ "$code" -ne 0 ] && [ -z "$lines" ]; }; then
        lines+="${lines:+$'\n'}$file:1:1: warning: it could not be read to its end [$reader-gave-up]"
    fi
    printf '%s' "${lines:+$lines$'\n'}" >"$name.$$"
    mv "$name.$$" "$name"
    echo "read $name"
}

if [ "${1:-}" = --one ]; then
    read_one "$2" "$3"
    exit
fi

readers=()
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    clang-tidy | cppcheck | gcc) readers+=("$1") ;;
    *)
        sed -n '2,9s/^# \{0,1\}//p' tools/analyze.sh >&2
        exit 2
        ;;
    esac
    shift
done
[ "$#" -eq 0 ] || shift
[ "${#readers[@]}" -gt 0 ] || readers=(clang-tidy cppcheck gcc)
files=("$@")
if [ "${#files[@]}" -eq 0 ]; then
    mapfile -t files < <(git ls-files 'src/*.c' 'verify/*.c')
fi
for file in "${files[@]}"; do
    [ -e "$file" ] || { echo "analyze.sh: $file: no such file" >&2; exit 2; }
done

./scripts/install-deps.sh analyze
mkdir -p "$said"
jobs=${CORTEX_JOBS:-$(nproc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

table=$(printf '%-12s %6s %6s %6s %10s %10s' reader files read kept explained findings)
wrong=0
for reader in "${readers[@]}"; do
    printf '%s\n' "${files[@]}" | xargs -P "$jobs" -I {} tools/analyze.sh --one "$reader" {} >"$work/names" || true
    if [ "$(wc -l <"$work/names")" -ne "${#files[@]}" ]; then
        echo "analyze.sh: $reader: not every file was read; run it again" >&2
        exit 3
    fi
    # A header's finding comes once for each file that includes it.
    cut -d' ' -f2 "$work/names" | xargs cat | sort -u >"$work/all"
    unexplained <"$work/all" | tee "$work/found"
    all=$(wc -l <"$work/all")
    found=$(wc -l <"$work/found")
    [ "$found" -eq 0 ] || wrong=1
    table+=$'\n'$(printf '%-12s %6d %6d %6d %10d %10d' "$reader" "${#files[@]}" \
        "$(grep -c '^read' "$work/names")" "$(grep -c '^kept' "$work/names")" "$((all - found))" "$found")
    cat "$work/all" >>"$work/everything"
done
printf '%s\n' "$table"

# A row that explains nothing any more may go: said when everything was read by everybody.
if [ "$#" -eq 0 ] && [ "${#readers[@]}" -eq 3 ]; then
    grep -vE '^#|^ *$' "$known" | while read -r file check _; do
        grep -qE "^$file:.*\[$check[],]" "$work/everything" || echo "explains nothing: $file $check"
    done
fi
exit "$wrong"
