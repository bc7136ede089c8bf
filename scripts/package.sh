#!/usr/bin/env bash
# package.sh [--version V] [FOLDER] - the .deb set of this tree, into FOLDER (default build/package).
#
# Built by Debian's own tools from a copy of the tree, so that nothing here changes; then lintian looks at it.
# --version V gives the packages another version number (scripts/test-package.sh tries an upgrade with it).
# What is built depends on the tree and debian/changelog alone: scripts/reproducible.sh compares two builds.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD

version=
if [ "${1:-}" = --version ]; then
    version=${2:?--version needs a number}
    shift 2
fi
out=${1:-build/package}
mkdir -p "$out"
out=$(cd "$out" && pwd)

./scripts/install-deps.sh package

# Tracked files and new ones, as they lie here; the name of the folder reaches no binary.  After a failure it
# stays, to be looked at.
work=$out/work
rm -rf "$work"
mkdir -p "$work/cortex"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar -c --null -T - | tar -x -C "$work/cortex"

# The page for browsers is made of what its lock file names; without it the packages lack the page.
if ./scripts/npm-ci.sh build; then
    cp -a web/node_modules "$work/cortex/web/"
fi

cd "$work/cortex"
if [ -n "$version" ]; then
    sed -i "1s/(.*)/($version)/" debian/changelog
fi
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }parallel=${CORTEX_JOBS:-$(nproc)}"
dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo
rm -f "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out"
cd "$out"
rm -rf "$work"

echo
# Errors fail; warnings are shown.
lintian --info --display-info --fail-on error --suppress-tags-from-file "$top/debian/lintian-ignored" ./*.changes
ls -l ./*.deb
