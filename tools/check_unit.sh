#!/bin/sh
# check_unit.sh - the service's unit is as closed as docs/installing.md says; 77 where nobody can tell.
#
# The scale of systemd-analyze goes from 0 (nothing is exposed) to 10; times ten here.
set -eu
cd "$(dirname "$0")/.."
command -v systemd-analyze >/dev/null || exit 77
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
