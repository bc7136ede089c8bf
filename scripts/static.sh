#!/usr/bin/env bash
# static.sh [x86_64|aarch64] [FOLDER] - makes cortex and cortex-verify as one file each, which need
# nothing of the system that they run on but its kernel.
#
# FOLDER (default build/dist) gets cortex-VERSION-linux-ARCH and cortex-verify-VERSION-linux-ARCH, stripped, less than
# 12 MB and 1 MB, their symbols as NAME.debug, and is shown what was made.  The other architecture is cross-compiled
# over Debian's libraries, unpacked in build/foreign/ARCH/root, and tried under qemu.  cortex is linked with glibc,
# cortex-verify with musl (scripts/musl.sh), which is a third of its size.  The same commit gives the same bytes in
# any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
here=$(uname -m)
arch=${1:-$here}
out=${2:-build/dist}
jobs=${CORTEX_JOBS:-$(nproc)}
case $arch in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
*)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
if [ "$arch" != "$here" ] && [ "$arch" != aarch64 ]; then
    echo "static.sh: $arch programs are made on a machine of that kind" >&2
    exit 2
fi

options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCORTEX_STATIC=ON -DCORTEX_TESTS=OFF -DCORTEX_PG=OFF)
build=build/static-$arch
run=()
prefix=
if [ "$arch" = "$here" ]; then
    ./scripts/install-deps.sh build
else
    ./scripts/install-deps.sh "foreign-$arch"
    prefix=$arch-linux-gnu-
    root=$top/build/foreign/$arch/root
    ./scripts/sysroot.sh "$debian" "$root"
    options+=(-DCMAKE_TOOLCHAIN_FILE="$top/cmake/$arch.cmake")
    export CORTEX_SYSROOT=$root
    run=("qemu-$arch-static")
fi
# Times of the build never reach the programs; the page's files are made from the same packages.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
# built FOLDER PROGRAM OPTION... - PROGRAM in FOLDER/bin; what was said is shown when it failed.
built() {
    local folder=$1 program=$2
    shift 2
    mkdir -p "$folder"
    # Not `if !`: bash goes on, as if it had worked, when the log cannot be written.
    if { cmake -S . -B "$folder" "$@" && cmake --build "$folder" -j "$jobs" --target "$program"; } \
        >"$folder.log" 2>&1; then
        return
    fi
    [ ! -e "$folder.log" ] || cat "$folder.log" >&2
    exit 1
}
built "$build" cortex "${options[@]}"
./scripts/install-deps.sh musl
./scripts/musl.sh "$arch" "build/musl/$arch"
export CORTEX_MUSL=$top/build/musl/$arch CORTEX_MUSL_ARCH=$arch
built "$build-verify" cortex-verify -G Ninja -DCMAKE_BUILD_TYPE=Release -DCORTEX_STATIC=ON -DCORTEX_VERIFY_ONLY=ON \
    -DCORTEX_TESTS=OFF -DCMAKE_TOOLCHAIN_FILE="$top/cmake/musl.cmake"

mkdir -p "$out"
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for made in "$build/bin/cortex" "$build-verify/bin/cortex-verify"; do
    name=${made##*/}-$version-linux-$arch
    "${prefix}objcopy" --only-keep-debug "$made" "$out/$name.debug"
    "${prefix}strip" -o "$out/$name" "$made"
    (cd "$out" && "${prefix}objcopy" --add-gnu-debuglink="$name.debug" "$name")
    chmod 755 "$out/$name"
    if file "$out/$name" | grep -q 'dynamically linked'; then
        echo "static.sh: $name asks for libraries" >&2
        exit 1
    fi
    "${run[@]}" "$out/$name" --version | sed "s|^|$name: |"
    size=$(stat -c %s "$out/$name")
    printf '%s: %s bytes\n' "$name" "$size"
    case $name in
    cortex-verify-*) most=1000000 ;;
    *) most=12000000 ;;
    esac
    if [ "$size" -ge "$most" ]; then
        echo "static.sh: $name is too large: less than $most bytes were promised" >&2
        exit 1
    fi
done
"${run[@]}" "$out/cortex-$version-linux-$arch" lattice selftest | tail -n 1
