#!/bin/sh
# check_unit.sh - the service's unit is one that systemd reads without a word, alone and opened for governed runs, and
# is as closed as docs/installing.md says; 77 where nobody can tell.
#
# The scale of systemd-analyze goes from 0 (nothing is exposed) to 10; times ten here.  Read is what the package
# installs; only the program, which need not be installed here, is another.
set -eu
cd "$(dirname "$0")/.."
command -v systemd-analyze >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
installed() { sed -e 's|^ExecStart=/usr/bin/cortex |ExecStart=/bin/true |' -e 's|REPOSITORY|shop|' "$1"; }
reads() {
    said=$(systemd-analyze verify --man=no --recursive-errors=no "$work/cortex.service" 2>&1) || said="$said (refused)"
    [ -z "$said" ] || { printf '%s: %s\n' "$1" "$said"; exit 1; }
}
installed debian/cortex-server.cortex.service >"$work/cortex.service"
reads "the unit"
mkdir "$work/cortex.service.d"
installed debian/governed-runs.conf >"$work/cortex.service.d/governed-runs.conf"
reads "the unit opened for governed runs"
said=$(systemd-analyze security --offline=true --threshold=15 debian/cortex-server.cortex.service) || {
    printf '%s\n' "$said" | grep -v '^✓'
    exit 1
}
printf '%s\n' "$said" | tail -n 1
level=$(printf '%s\n' "$said" | sed -n 's/.*: \([0-9.]*\) .*/\1/p' | tail -n 1)
grep -qF "rates it $level" docs/installing.md || {
    echo "docs/installing.md says another level than $level"
    exit 1
}
