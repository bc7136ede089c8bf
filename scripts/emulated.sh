#!/usr/bin/env bash
# emulated.sh aarch64|s390x COMMAND... - runs COMMAND where programs of that kind of machine start like any other, also
# when another program starts them: the kernel hands them to qemu (binfmt_misc).
#
# It is told so in a user namespace of its own: nothing changes for the rest of the machine.  Needs Linux 6.7,
# qemu-user-static and, as another user than root, uidmap.  Ends as COMMAND ends; with 125 and the reason where this
# cannot be had.
set -euo pipefail
arch=${1:-}
case $arch in
aarch64 | s390x) shift ;;
*)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
[ $# -gt 0 ] || { echo "emulated.sh: a command is missing" >&2; exit 2; }
cannot() {
    echo "emulated.sh: $1" >&2
    exit 125
}
# How programs of this kind are known, and what runs them: Debian's own line for the kernel.
known=/usr/lib/binfmt.d/qemu-$arch.conf
[ -r "$known" ] || cannot "there is no $known: install qemu-user-static"
# Return addresses are signed in every function: as the architecture has it, that takes most of the time in qemu.
[ "$arch" != aarch64 ] || export QEMU_CPU="${QEMU_CPU:-max,pauth-impdef=on}"
# shellcheck disable=SC2016 # the words are for the shell inside
inside='
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && cat "$1" >/proc/sys/fs/binfmt_misc/register || exit 125
shift
exec "$@"'
enter=(unshare --mount --fork --kill-child bash -c "$inside" emulated "$known")
if [ "$(id -u)" -ne 0 ]; then
    unshare --user --map-root-user --map-auto true || cannot "no user namespace for this user (/etc/subuid)"
    exec unshare --user --map-root-user --map-auto "${enter[@]}" "$@"
fi
# All users keep their numbers, which `unshare` alone cannot give: a process holds the namespace while it is entered.
unshare --user sleep infinity >/dev/null 2>&1 &
holder=$!
trap 'kill "$holder" 2>/dev/null || true' EXIT
own=$(readlink /proc/self/ns/user)
tries=0
until [ "$(readlink "/proc/$holder/ns/user")" != "$own" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || cannot "no user namespace: the kernel does not allow it"
    sleep 0.05
done
for map in uid_map gid_map; do
    cat "/proc/self/$map" >"/proc/$holder/$map"
done
code=0
nsenter --user --target "$holder" "${enter[@]}" "$@" || code=$?
exit "$code"
