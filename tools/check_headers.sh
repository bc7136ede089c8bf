#!/usr/bin/env bash
# check_headers.sh - every header compiles alone, and twice in a row.
#
# Headers of src/ as C17, the way our own files see them; public ones as C11 and C++11 without any
# help, the way a stranger's program sees them.  CC and CXX choose the compilers.  Exits 77 when
# all C checks hold but there is no C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

cc=${CC:-gcc}
cxx=${CXX:-g++}
warnings=(-Wall -Wextra -Wconversion -Wshadow -Werror)
jobs=${CORTEX_JOBS:-$(getconf _NPROCESSORS_ONLN)}

# alone INCLUDE COMPILER FLAG...: compiles a file that only includes INCLUDE, twice.
alone() {
    local include=$1
    shift
    # The main file needs one declaration of its own: an empty one is not C.
    if ! printf '#include %s\n#include %s\nextern int cx_header_alone;\n' "$include" "$include" |
        "$@" -fsyntax-only "${warnings[@]}" -; then
        echo "FAILED: $include alone, with: $*"
        return 1
    fi
}

count=0
wrong=0
waits=() # for what was started, oldest first

# begins INCLUDE COMPILER FLAG...: alone, beside as many others as there are processors.
begins() {
    count=$((count + 1))
    if [ "${#waits[@]}" -ge "$jobs" ]; then
        ends
    fi
    alone "$@" &
    waits+=("$!")
}

# The oldest of them.
ends() {
    wait "${waits[0]}" || wrong=1
    waits=("${waits[@]:1}")
}

shopt -s nullglob
for header in include/cortex/*.h; do
    begins "<${header#include/}>" "$cc" -x c -std=c11 -pedantic -Wstrict-prototypes -Iinclude
done
for header in src/*/*.h; do
    begins "\"${header#src/}\"" "$cc" -x c -std=c17 -D_GNU_SOURCE -Iinclude -Isrc
done
has_cxx=no
if command -v "$cxx" >/dev/null; then
    has_cxx=yes
    for header in include/cortex/*.h; do
        begins "<${header#include/}>" "$cxx" -x c++ -std=c++11 -pedantic -Iinclude
    done
fi
while [ "${#waits[@]}" -gt 0 ]; do
    ends
done
if [ "$has_cxx" = no ]; then
    [ "$wrong" -eq 0 ] || exit 1
    echo "$count checks hold; $cxx is not here, so nothing was read as C++"
    exit 77
fi

if [ "$count" -eq 0 ]; then
    echo "no headers found"
    exit 1
fi
[ "$wrong" -ne 0 ] || echo "$count checks hold ($cc, $cxx)"
exit "$wrong"
