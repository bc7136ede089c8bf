#!/usr/bin/env bash
# check_symbols.sh [--update] LIBCORTEX.SO - the exported symbols are the ones we meant to export.
#
# Compares the library's dynamic symbols with tools/symbols.txt, and both with the functions that
# include/cortex marks CX_API.  --update rewrites the list; the difference is then reviewed with
# the change that caused it.
set -euo pipefail
export LC_ALL=C
top=$(cd "$(dirname "$0")/.." && pwd)
list=$top/tools/symbols.txt

update=no
if [ "${1:-}" = --update ]; then
    update=yes
    shift
fi
if [ "$#" -ne 1 ]; then
    echo "usage: $0 [--update] LIBCORTEX.SO" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `name@@VERSION T ...`; the versions themselves are absolute symbols.
nm -D --defined-only --format=posix "$1" | sed -n '/ A /!s/[@ ].*//p' | sort -u >"$work/exported"

# `CX_API type name(`, possibly over several lines.
grep -hv '^#' "$top"/include/cortex/*.h | tr '\n' ' ' | grep -oE 'CX_API [^;(#]*\(' |
    sed -E 's/.*[ *]([A-Za-z0-9_]+) *\($/\1/' | sort -u >"$work/declared"

if [ "$update" = yes ]; then
    cp "$work/exported" "$list"
    echo "$(wc -l <"$list") symbols written to tools/symbols.txt"
fi

# differs TITLE EXPECTED GOT
differs() {
    if diff "$2" "$3" >"$work/diff"; then
        return 1
    fi
    echo "$1"
    sed -n -e 's/^< /  missing: /p' -e 's/^> /  not expected: /p' "$work/diff"
}

wrong=0
if differs "Exported symbols against tools/symbols.txt (accept with tools/check_symbols.sh --update):" \
    "$list" "$work/exported"; then
    wrong=1
fi
if differs "Exported symbols against what include/cortex declares with CX_API:" \
    "$work/declared" "$work/exported"; then
    wrong=1
fi
if grep -v '^cx_' "$work/exported"; then
    echo "  not named cx_..."
    wrong=1
fi
if [ ! -s "$work/exported" ]; then
    echo "$1 exports nothing"
    wrong=1
fi
[ "$wrong" -ne 0 ] || echo "$(wc -l <"$work/exported") exported symbols, as listed"
exit "$wrong"
