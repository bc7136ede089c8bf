#!/usr/bin/env bash
# test-package.sh [FOLDER] - tries the packages in FOLDER (default build/package; made when there are none) in a
# fresh Debian 12 of their own: installed, used, upgraded, removed, purged.  Needs root, for the chroot.
#
# The chroot comes from where this machine's apt gets its packages.  The packages that are upgraded from are the
# same ones under a lower number, so that what is tried is the upgrade and not the difference of two versions.
# Closes with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
packages=${1:-build/package}

./scripts/install-deps.sh package
[ "$(id -u)" -eq 0 ] || {
    echo "test-package.sh needs root: mmdebstrap and chroot make a machine of their own" >&2
    exit 1
}
compgen -G "$packages/cortex_*.deb" >/dev/null || ./scripts/package.sh "$packages"
packages=$(cd "$packages" && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/cortex-machine.XXXXXX")
root=$work/root
finish() {
    umount "$root/proc" "$root/dev" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# Apt's own sources, whatever they are called here; only Debian's.
sources() {
    local file
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        if [ -s "$file" ]; then
            echo "$file"
            return
        fi
    done
    echo "no sources of Debian in /etc/apt" >&2
    return 1
}
mmdebstrap --quiet --variant=minbase \
    --include=cmake,curl,g++,git,make,man-db,pkgconf,systemd-standalone-sysusers bookworm "$root" "$(sources)"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mkdir -p "$root/debs"
cp "$packages"/*.deb "$root/debs/"
rm -f "$root"/debs/*dbgsym*
cp -r "$top/debian/tests" "$root/tests"
# Services are not started while packages are installed: there is no systemd in there.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

cp /etc/resolv.conf "$root/etc/resolv.conf"
chroot "$root" apt-get update -qq

"$top/scripts/older.sh" "$root/debs" "$root/older"

passed=0
failed=0
# try NAME COMMAND...
try() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $name"
    else
        failed=$((failed + 1))
        echo "FAIL $name: $*"
        sed 's/^/     /' "$work/log"
        return 1
    fi
}
# Without this nothing behind it would mean anything.
must() {
    try "$@" || {
        echo "$passed passed, $failed failed, 0 skipped"
        exit 1
    }
}
inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}
absent() {
    ! inside sh -c "$1"
}
any() {
    inside sh -c "$1"
}

set +e # from here on failures are counted
must "cortex-verify installs alone" any "apt-get -y -qq --no-install-recommends install /older/cortex-verify_*.deb"
try "and brings two libraries at most" any \
    'cortex-verify --version && test "$(ldd /usr/bin/cortex-verify | grep -c "=> /")" -le 2'
must "everything installs" any "apt-get -y -qq --no-install-recommends install /older/*.deb"
try "no service was started" absent "test -e /var/lib/cortex/token"
try "its ledger is there, and its own" any \
    "test \"\$(stat -c '%U %a' /var/lib/cortex)\" = 'cortex 700' && test -d /var/lib/cortex/log"
try "the user is there" any "getent passwd cortex | grep -q /var/lib/cortex"
try "without recommended packages doctor says what is missing" any "cortex doctor | grep -q bubblewrap"

try "older: the program" inside /tests/program
try "older: the ledger is written" any \
    "setpriv --reuid cortex --regid cortex --clear-groups cortex memory write --home /var/lib/cortex Fact '{\"statement\":\"kept\",\"subject\":\"s\",\"predicate\":\"p\"}'"
try "an option of the administrator" any "echo '# mine' >>/etc/default/cortex"

must "upgrade" any "apt-get -y -qq --no-install-recommends install /debs/*.deb"
new=$(dpkg-deb -f "$(ls "$root"/debs/cortex_*.deb)" Version)
try "it is the new version" any "dpkg-query -W -f '\${Version}\n' cortex | grep -qx '$new'"
try "the administrator's option is kept" any "grep -q '# mine' /etc/default/cortex"
try "the ledger is kept and holds" any \
    "setpriv --reuid cortex --regid cortex --clear-groups cortex verify --home /var/lib/cortex"
try "the program" inside /tests/program
try "the library's consumers" inside /tests/consumer
try "the service" inside /tests/service
try "manual pages are found" any "test -e /usr/share/man/man3/cx_ledger_open.3.gz -a -e /usr/share/man/man5/cortex-ledger.5.gz \
    -a -e /usr/share/man/man8/cortex-serve.8.gz"

must "remove" any "apt-get -y -qq remove cortex cortex-server cortex-verify libcortex-dev libcortex0.3"
try "programs are gone" absent "test -e /usr/bin/cortex || test -e /usr/bin/cortex-verify || ls /usr/lib/*/libcortex*"
try "the ledger stays" any "test -d /var/lib/cortex/log"
try "the configuration stays" any "test -e /etc/default/cortex"
must "purge" any "dpkg --purge cortex-server"
cp "$work/log" "$work/purged"
try "purge says what it keeps" grep -F "kept /var/lib/cortex" "$work/purged"
try "the configuration is gone" absent "test -e /etc/default/cortex"
try "the ledger stays still" any "test -d /var/lib/cortex/log"
try "nothing else is left" absent "find / -xdev -path /proc -prune -o -path /var/lib/cortex -prune -o -path /tests -prune -o \
    -path /debs -prune -o -path /older -prune -o -path /tmp -prune -o -iname '*cortex*' -print | grep -v '^/var/log/' | grep -v '^/run' | grep ."
try "it can be installed again over the kept ledger" any "apt-get -y -qq --no-install-recommends install /debs/*.deb && \
    setpriv --reuid cortex --regid cortex --clear-groups cortex verify --home /var/lib/cortex"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
