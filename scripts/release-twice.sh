#!/usr/bin/env bash
# release-twice.sh TAG FOLDER OPTION... - makes a release twice, in two clean clones, and compares every byte.
#
# OPTIONs are those of release.sh, --key among them.  The second time in a folder of another name and length, in another
# time zone, locale, umask, with one job, and later.  FOLDER gets the artefacts in `one` and `two`; nothing that the
# first has made reaches the second: each clone unpacks the other architecture's libraries itself and, where
# CMAKE_C_COMPILER_LAUNCHER is ccache, has a cache of its own, which is kept.  A run that was complete is not made
# again: after a failure the same command goes on.  Closes with `N passed, N failed, N skipped`, a file each.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 4 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
tag=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2
options=()
while [ $# -gt 0 ]; do
    case $1 in
    --key | --attest) options+=("$1" "$(realpath "${2:?$1 needs a file}")") && shift 2 ;;
    *) options+=("$1") && shift ;;
    esac
done
commit=$(git rev-parse --verify --quiet "$tag^{commit}") || { echo "release-twice.sh: there is no tag $tag" >&2; exit 2; }

# once NAME CLONE - a whole release in FOLDER/NAME, made in a new clone.
once() {
    local made=$out/$1 clone=$out/clones/$2
    if [ "$(cat "$made.complete" 2>/dev/null)" = "$commit ${options[*]}" ]; then
        echo "release-twice.sh: $1 is there"
        return
    fi
    rm -rf "$made" "$clone" "$clone.tmp"
    mkdir -p "$(dirname "$clone")" "$clone.tmp"
    git clone --quiet --no-local . "$clone"
    (cd "$clone" && TMPDIR=$clone.tmp CCACHE_DIR=$out/cache-$1 ./scripts/release.sh "$tag" "$made" "${options[@]}")
    rm -rf "$clone" "$clone.tmp"
    echo "$commit ${options[*]}" >"$made.complete"
}
(
    umask 022
    export TZ=UTC LC_ALL=C
    once one a
)
(
    umask 002
    export TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 CORTEX_JOBS=1
    once two another/place/with/a/longer/name
)

passed=0
failed=0
while IFS= read -r name; do
    if [ -f "$out/one/$name" ] && [ -f "$out/two/$name" ] && cmp "$out/one/$name" "$out/two/$name"; then
        passed=$((passed + 1))
        (cd "$out/one" && sha256sum "$name")
    else
        failed=$((failed + 1))
        echo "FAIL $name"
    fi
done < <({ ls -A "$out/one" && ls -A "$out/two"; } | LC_ALL=C sort -u)
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
