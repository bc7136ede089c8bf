#!/usr/bin/env bash
# foreign.sh i386|s390x [FOLDER] - builds for another kind of machine and runs the C tests and vectors there.
#
#   i386    32 bits: in a chroot of that architecture, by the same processor
#   s390x   big-endian, 64 bits: cross-compiled, run by qemu's user mode
#
# Packages come from where this machine's apt gets them.  Needs root.  Tests that say nothing about the other
# machine under qemu are named below, each with its reason, and count as skipped; one that does not fail after all
# fails the script.  FOLDER defaults to build/foreign.  Closes with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
arch=${1:-}
case $arch in
i386 | s390x) ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
mkdir -p "${2:-build/foreign}/$arch"
here=$(cd "${2:-build/foreign}/$arch" && pwd)
root=$here/root
build=$here/build
jobs=${CORTEX_JOBS:-$(nproc)}

./scripts/install-deps.sh "foreign-$arch"
libraries=libc6-dev,libsodium-dev,libssl-dev,libsqlite3-dev,libmicrohttpd-dev,libpq-dev,libseccomp-dev
libraries+=,libpcre2-dev,libutf8proc-dev,libzstd-dev,zlib1g-dev
sources=/etc/apt/sources.list.d/debian.sources
[ -s "$sources" ] || sources=/etc/apt/sources.list

rooms=(base json crypto cbor log db ledger lattice memory trace import recorder evidence cli property run server
    fault home_threads)
targets=("${rooms[@]/#/test_}" cortex cortex-vectors cortex-holder cortex-box cortex-agents cortex-mcp)

# ROOM TEST: what fails under qemu because of qemu, not because of the machine that it plays.
emulated() {
    sed -n 's/^    #: //p' "$top/scripts/foreign.sh" | sed 's/ .*//' | tr '/' ' '
}

options=(-DCMAKE_BUILD_TYPE=Release -DCORTEX_WERROR=OFF -DCORTEX_WEB=OFF -DCORTEX_BENCH=OFF)
if [ "$arch" = i386 ]; then
    [ -d "$root/usr" ] || mmdebstrap --quiet --variant=minbase --arch=i386 \
        --include="$libraries,gcc,cmake,ninja-build,pkgconf,python3,git,bubblewrap" bookworm "$root" "$sources"
    mkdir -p "$root/cortex" "$root/build"
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
    mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
    mountpoint -q "$root/cortex" || mount --bind "$top" "$root/cortex"
    mountpoint -q "$root/build" || { mkdir -p "$build" && mount --bind "$build" "$root/build"; }
    trap 'umount "$root/build" "$root/cortex" "$root/dev" "$root/proc"' EXIT
    inside() { linux32 chroot "$root" env -i PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C.UTF-8 "$@"; }
    inside cmake -S /cortex -B /build -G Ninja "${options[@]}" >"$here/log"
    inside ninja -C /build -j "$jobs" "${targets[@]}" >>"$here/log"
    bin=/build/bin
    tree=/cortex
else
    # Nothing of the foreign machine is run to make its folder: packages are unpacked, not configured.
    if [ ! -d "$root/usr" ]; then
        mmdebstrap --quiet --variant=extract --arch=s390x --include="$libraries,libgcc-12-dev" bookworm "$root" \
            "$sources"
        cp -a "$root/lib/." "$root/usr/lib/"
        rm -rf "$root/lib"
        ln -s usr/lib "$root/lib"
    fi
    inside() { "$@"; }
    CORTEX_SYSROOT=$root cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$top/cmake/s390x.cmake" \
        "${options[@]}" >"$here/log"
    CORTEX_SYSROOT=$root ninja -C "$build" -j "$jobs" "${targets[@]}" >>"$here/log"
    run=(qemu-s390x-static -L "$root" -E "LD_LIBRARY_PATH=/usr/lib/s390x-linux-gnu")
    bin=$build/bin
    tree=$top
fi

passed=0
failed=0
skipped=0
# count COMMAND...: its closing line is added up, and what failed is shown.
count() {
    local line
    echo "-- ${*: -1}"
    inside timeout 3600 "${run[@]}" "$@" >"$here/said" 2>&1 || true
    grep '^FAIL' "$here/said" || true
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$here/said" | tail -n 1)
    if [ -z "$line" ]; then
        echo "FAIL $1 ended without a result"
        tail -n 5 "$here/said"
        failed=$((failed + 1))
        return
    fi
    read -r p _ f _ s _ <<<"${line//,/}"
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
}
run=("${run[@]:-}")
[ -n "${run[0]}" ] || run=()
rooms="base json crypto cbor log db ledger lattice memory trace import recorder cli property"
# Under qemu there are no sandboxes, no second process of the same kind, and no honest clock.
[ "$arch" = s390x ] || rooms+=" run server fault home_threads"
for room in $rooms; do
    count "$bin/test_$room"
done
for vectors in lattice ledger trace; do
    count "$bin/cortex-vectors" "$vectors" "$tree/tests/vectors/$vectors"
done
inside "${run[@]}" "$bin/cortex" lattice selftest && passed=$((passed + 1)) || failed=$((failed + 1))
echo "$arch: $passed passed, $failed failed, $skipped skipped" | sed 's/^[^:]*: //'
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
