#!/usr/bin/env bash
# older.sh FROM TO - the packages in FROM once more in TO, under the number 0.0.9: what tests upgrade from, so that
# what they try is the upgrade and not the difference of two versions.
set -euo pipefail
from=${1:?older.sh FROM TO}
to=${2:?older.sh FROM TO}
mkdir -p "$to"
one=$(mktemp -d)
trap 'rm -rf "$one"' EXIT
for deb in "$from"/*.deb; do
    dpkg-deb -R "$deb" "$one/package"
    sed -i -E 's/^Version: .*/Version: 0.0.9/; s/\(= 0\.[^)]*\)/(= 0.0.9)/; s/(cortex[^ ]*) \(>= [^)]*\)/\1 (>= 0.0.9)/' \
        "$one/package/DEBIAN/control"
    name=$(basename "$deb")
    dpkg-deb --root-owner-group -Znone -b "$one/package" "$to/${name/_*_/_0.0.9_}" >/dev/null
    rm -rf "$one/package"
done
