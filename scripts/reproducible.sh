#!/usr/bin/env bash
# reproducible.sh [FOLDER] - builds the packages twice and compares every byte.
#
# The second time in another folder of another length, in another time zone, locale, umask and with one job,
# later.  FOLDER (default build/reproducible) keeps both.  Takes two full builds.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/reproducible}
first=$out/one
second=$out/another/place/with/a/longer/name

umask 022
TZ=UTC LC_ALL=C ./scripts/package.sh "$first"
umask 002
TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 CORTEX_JOBS=1 ./scripts/package.sh "$second"

passed=0
failed=0
for deb in "$first"/*.deb; do
    name=$(basename "$deb")
    if cmp "$deb" "$second/$name"; then
        passed=$((passed + 1))
        sha256sum "$deb" | sed "s|$first/||"
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
