#!/usr/bin/env bash
# test-service.sh [FOLDER] - the packages in FOLDER (default build/package; made when there are none) on a Debian 12
# that systemd boots: debian/tests/systemd says what is tried.  Needs root.
#
# The machine is a container of systemd-nspawn without a network: its own systemd starts the unit with all that it
# asks for, on this machine's kernel.  What is upgraded from are the same packages under a lower number.
# Closes with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
packages=${1:-build/package}

./scripts/install-deps.sh package
[ "$(id -u)" -eq 0 ] || {
    echo "test-service.sh needs root: systemd-nspawn makes a machine of its own" >&2
    exit 1
}
compgen -G "$packages/cortex_*.deb" >/dev/null || ./scripts/package.sh "$packages"
packages=$(cd "$packages" && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/cortex-booted.XXXXXX")
root=$work/root
trap 'rm -rf "$work"' EXIT
sources=/etc/apt/sources.list.d/debian.sources
[ -s "$sources" ] || sources=/etc/apt/sources.list

# What the packages depend on and recommend comes with the machine: it has no network.
mmdebstrap --quiet --variant=minbase --include=bubblewrap,curl,dbus,git,libmicrohttpd12,libnghttp2-14,libpcre2-8-0,libseccomp2 \
    --include=libsodium23,libsqlite3-0,libssl3,libutf8proc2,libzstd1,perl-base,procps,systemd,systemd-sysv,zlib1g \
    bookworm "$root" "$sources"
mkdir "$root/debs"
for name in cortex cortex-server cortex-verify; do
    cp "$packages/${name}"_[0-9]*.deb "$root/debs/"
done
cp -r debian/tests "$root/tests"
"$top/scripts/older.sh" "$root/debs" "$root/older"
chroot "$root" sh -c 'dpkg -i /older/*.deb' >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}

# The machine's last service is the test; then it turns itself off.
cat >"$root/etc/systemd/system/try.service" <<'U'
[Unit]
After=multi-user.target cortex.service
[Service]
Type=oneshot
ExecStart=/tests/systemd
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=append:/said
StandardError=inherit
TimeoutStartSec=1200
[Install]
WantedBy=graphical.target
U
mkdir -p "$root/etc/systemd/system/graphical.target.wants"
ln -s ../try.service "$root/etc/systemd/system/graphical.target.wants/"
timeout 1500 systemd-nspawn --quiet --register=no --keep-unit --private-network --boot --directory="$root" \
    --console=pipe </dev/null >"$work/console" 2>&1 || true
[ -s "$root/said" ] || {
    echo "it did not boot:" >&2
    tail -n 30 "$work/console" >&2
    exit 1
}
cat "$root/said"
tail -n 1 "$root/said" | grep -qE '^[1-9][0-9]* passed, 0 failed, [0-9]+ skipped$'
