#!/bin/sh
# Makes a fixture of an old version: a data directory, a repository with runs, proofs and answers.
#
#     scripts/old_home.sh COMMIT NAME      writes tests/vectors/homes/NAME.tar.xz
#
# Builds that commit in a folder of its own, lets its program fill a data directory
# (tests/vectors/homes/make_home.py), and packs that.  Runs need a sandbox.  The contents have random
# ids and times, so that two runs do not give the same bytes.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 COMMIT NAME" >&2; exit 2; }
commit=$1 name=$2
root=$(cd "$(dirname "$0")/.." && pwd)
work=/tmp/cortex-old-home
mkdir "$work" # always the same: paths of recorded sessions are in the fixture
trap 'rm -rf "$work"' EXIT INT TERM

git clone -q "$root" "$work/old"
git -C "$work/old" checkout -q "$commit"
cd "$work/old"
cmake --preset release > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
cmake --build --preset release --target cortex cortex-verify cortex-agents > "$work/log" 2>&1 ||
    { tail -40 "$work/log" >&2; exit 1; }

CORTEX_BIN="$work/old/build/release/bin/cortex" \
    python3 "$root/tests/vectors/homes/make_home.py" "$work/old" "$work/made"
tar -C "$work/made" --sparse --format=gnu --owner=0 --group=0 --numeric-owner --sort=name -cf - . |
    xz -9e > "$root/tests/vectors/homes/$name.tar.xz"
ls -l "$root/tests/vectors/homes/$name.tar.xz"
