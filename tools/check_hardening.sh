#!/usr/bin/env bash
# check_hardening.sh CC LIBCORTEX.A PROGRAM.. - the built files carry the marks of what they are compiled with.
#
# Every object of the library is marked for IBT and shadow stacks (x86-64) or BTI and PAC (arm64).  A
# program is marked for shadow stacks; for IBT where the start files of the C library allow it.  Calls are
# checked (FORTIFY), relocations are read-only, and the stack is not executable.  Exit 77: another machine.
set -euo pipefail
export LC_ALL=C
if [ "$#" -lt 3 ]; then
    echo "usage: $0 CC LIBCORTEX.A PROGRAM.." >&2
    exit 2
fi
cc=$1 library=$2
shift 2

machine=$(readelf -h "$1" | sed -n 's/^ *Machine: *//p')
case $machine in
*X86-64*) marks="IBT SHSTK" ;;
*AArch64*) marks="BTI PAC" ;;
*)
    echo "no marks are known for $machine"
    exit 77
    ;;
esac

wrong=0
say() {
    echo "$*"
    wrong=1
}

# marked FILE MARK: in the property notes of FILE, which is one object
marked() {
    readelf -n "$1" 2>/dev/null | grep "feature:.*\b$2\b" >/dev/null
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readelf -n "$library" 2>/dev/null >"$work/notes"
objects=$(grep -c '^File: ' "$work/notes" || true)
[ "$objects" -gt 0 ] || say "$library has no objects"
for mark in $marks; do
    awk -v mark="$mark" '
        function close_one() { if (name != "" && !found) print name }
        /^File: / { close_one(); name = $2; found = 0 }
        /feature:/ && $0 ~ ("(^|[ ,])" mark "([ ,]|$)") { found = 1 }
        END { close_one() }' "$work/notes" >"$work/unmarked"
    [ ! -s "$work/unmarked" ] || say "not marked $mark: $(tr '\n' ' ' <"$work/unmarked")"
done

start_files=yes
for name in Scrt1.o crti.o crtn.o; do
    marked "$("$cc" -print-file-name="$name")" "${marks%% *}" || start_files=no
done
for program in "$@"; do
    for mark in $marks; do
        if [ "$mark" != SHSTK ] && [ "$start_files" = no ]; then
            continue # the linker takes the mark away: what is jumped to there has no landing place
        fi
        marked "$program" "$mark" || say "$program is not marked $mark"
    done
    readelf -W --dyn-syms "$program" | grep '_chk@' >/dev/null || say "$program calls no checked function"
    readelf -W -d "$program" | grep 'FLAGS.*NOW' >/dev/null || say "$program binds lazily"
    readelf -W -l "$program" | grep 'GNU_RELRO' >/dev/null || say "$program has no read-only relocations"
    readelf -W -l "$program" | grep 'GNU_STACK' | grep -v "RWE" >/dev/null || say "$program has an executable stack"
done
[ "$wrong" -ne 0 ] || echo "$objects objects and $# programs are marked ($marks; start files: $start_files)"
exit "$wrong"
