#!/usr/bin/env bash
# foreign.sh i386|s390x|aarch64 [FOLDER] - builds for another kind of machine and runs the C tests and vectors there.
#
#   i386    32 bits: in a chroot of that architecture, by the same processor
#   s390x   big-endian, 64 bits: cross-compiled, run by qemu's user mode
#   aarch64 64-bit ARM: likewise; and the kernels of crypto, which are chosen at run time, on a processor with
#           all optional instructions, without those for SHA and AES, and without those for CRC either
#
# Packages come from where this machine's apt gets them.  Needs root.  Tests that say nothing about the other
# machine under qemu are named below, each with its reason, and count as skipped when they fail.  FOLDER defaults to
# build/foreign.  CORTEX_ROOMS="fault property" runs the tests of these rooms only (`vectors` are one too); one
# program gets an hour, or CORTEX_SECONDS.  Closes with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
arch=${1:-}
case $arch in
i386 | s390x | aarch64) ;;
*)
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
mkdir -p "${2:-build/foreign}/$arch"
here=$(cd "${2:-build/foreign}/$arch" && pwd)
root=$here/root
build=$here/build
jobs=${CORTEX_JOBS:-$(nproc)}

./scripts/install-deps.sh "foreign-$arch"
libraries=libc6-dev,libsodium-dev,libssl-dev,libsqlite3-dev,libmicrohttpd-dev,libnghttp2-dev,libpq-dev,libseccomp-dev
libraries+=,libpcre2-dev,libutf8proc-dev,libzstd-dev,zlib1g-dev
sources=/etc/apt/sources.list.d/debian.sources
[ -s "$sources" ] || sources=/etc/apt/sources.list

all=()
for folder in tests/unit/*/; do
    all+=("$(basename "$folder")")
done
all+=(property fault home_threads vectors)
read -ra rooms <<<"${CORTEX_ROOMS:-${all[*]}}"
targets=()
for room in "${rooms[@]}"; do
    [[ " ${all[*]} " == *" $room "* ]] || { echo "foreign.sh: $room is none of: ${all[*]}" >&2; exit 2; }
    [ "$room" = vectors ] || targets+=("test_$room")
done
targets+=(cortex cortex-vectors cortex-writer cortex-box cortex-agents cortex-mcp)

# What fails under qemu's user mode because of qemu, not because of the machine that it plays: ROOM/TEST, why.
emulated='
os/spawn_hands_over_only_the_descriptors_listed qemu keeps a descriptor of its own open in every child
os/spawn_runs_an_opened_program_and_a_script_by_its_path execveat of a descriptor: qemu looks for its path
git/pack_that_would_fill_the_memory_is_refused qemu keeps limits of memory to itself, and git starts without one
sandbox/sandbox_without_bubblewrap_refuses_or_is_degraded qemu refuses PR_SET_CHILD_SUBREAPER, so no program starts
sandbox/sandbox_without_bubblewrap_goes_with_who_started_it qemu refuses PR_SET_CHILD_SUBREAPER, so no program starts
sandbox/sandbox_with_an_older_bubblewrap_says_which_one_it_needs qemu -L: / is the folder of the libraries, without /bin
'

options=(-DCMAKE_BUILD_TYPE=Release -DCORTEX_WERROR=OFF -DCORTEX_WEB=OFF -DCORTEX_BENCH=OFF)
if [ "$arch" = i386 ]; then
    [ -d "$root/usr" ] || mmdebstrap --quiet --variant=minbase --arch=i386 \
        --include="$libraries,gcc,cmake,ninja-build,pkgconf,python3,git,bubblewrap" bookworm "$root" "$sources"
    mkdir -p "$root/cortex" "$root/build"
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
    mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
    mountpoint -q "$root/cortex" || mount --bind "$top" "$root/cortex"
    mountpoint -q "$root/build" || { mkdir -p "$build" && mount --bind "$build" "$root/build"; }
    trap 'umount "$root/build" "$root/cortex" "$root/dev" "$root/proc"' EXIT # until `finish` takes it over
    inside() { linux32 chroot "$root" env -i PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C.UTF-8 "$@"; }
    inside cmake -S /cortex -B /build -G Ninja "${options[@]}" >"$here/log"
    inside ninja -C /build -j "$jobs" "${targets[@]}" >>"$here/log"
    bin=/build/bin
    tree=/cortex
else
    # Nothing of the foreign machine is run to make its folder: packages are unpacked, not configured.
    debian=$arch
    [ "$arch" != aarch64 ] || debian=arm64
    ./scripts/sysroot.sh "$debian" "$root"
    # Where the kernel can be told of qemu, programs that a test starts run too; else they are refused.
    emulator=()
    ! ./scripts/emulated.sh "$arch" true || emulator=("$top/scripts/emulated.sh" "$arch")
    inside() { "${emulator[@]}" "$@"; }
    export QEMU_LD_PREFIX=$root
    CORTEX_SYSROOT=$root cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$top/cmake/$arch.cmake" \
        "${options[@]}" >"$here/log"
    run=("qemu-$arch-static" -L "$root" -E "LD_LIBRARY_PATH=/usr/lib/$arch-linux-gnu")
    if [ "$arch" = aarch64 ]; then
        targets+=(hwcap_stub)
        plain_run=("${run[@]}")
        # Every function of ours signs its return address (PAC).  How is the processor's choice: qemu's way of its
        # own takes a tenth of the time that the architecture's own cipher takes in software.
        cpu=max,pauth-impdef=on
        run+=(-cpu "$cpu")
        export QEMU_CPU=$cpu
    fi
    CORTEX_SYSROOT=$root ninja -C "$build" -j "$jobs" "${targets[@]}" >>"$here/log"
    bin=$build/bin
    tree=$top
fi

# What the last program said: of this run alone, so that two of them can share a build and take other rooms.
said=$(mktemp -p "$here" said.XXXXXX)
finish() {
    rm -f "$said" "$said.translated"
    [ "$arch" != i386 ] || umount "$root/build" "$root/cortex" "$root/dev" "$root/proc"
}
trap finish EXIT
passed=0
failed=0
skipped=0
# count ROOM COMMAND...: its closing line is added up; what failed is shown, or known.
count() {
    local room=$1 line p f s name known=0 where began=$SECONDS
    shift
    echo "-- ${*: -1}"
    inside timeout "${CORTEX_SECONDS:-3600}" "${run[@]}" "$@" >"$said" 2>&1 || true
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$said" | tail -n 1) || line=
    if [ -z "$line" ]; then
        echo "FAIL ${*: -1} ended without a result after $((SECONDS - began)) s"
        tail -n 5 "$said"
        failed=$((failed + 1))
        return
    fi
    echo "$line, in $((SECONDS - began)) s"
    sed -n 's/^skip [^:]*: /skipped: /p' "$said" | sort | uniq -c
    for name in $(sed -n 's/^FAIL \([a-z0-9_]*\).*/\1/p' "$said" | sort -u); do
        where=$(grep -E "^$room/$name " <<<"$emulated") || where=
        if [ "$arch" != i386 ] && [ -n "$where" ]; then
            known=$((known + 1))
            echo "skip $where"
        else
            grep "^FAIL $name" "$said"
        fi
    done
    read -r p _ f _ s _ <<<"${line//,/}"
    passed=$((passed + p))
    failed=$((failed + f - known))
    skipped=$((skipped + s + known))
}
run=("${run[@]:-}")
[ -n "${run[0]}" ] || run=()
for room in "${rooms[@]}"; do
    if [ "$room" != vectors ]; then
        count "$room" "$bin/test_$room"
        continue
    fi
    for vectors in lattice ledger trace; do
        count vectors "$bin/cortex-vectors" "$vectors" "$tree/tests/vectors/$vectors"
    done
    inside "${run[@]}" "$bin/cortex" lattice selftest && passed=$((passed + 1)) || failed=$((failed + 1))
done

# instructions WANTED: the optional ones that the last program came upon are these and no others.
instructions() {
    local found
    found=$(awk '$3 ~ /^(crc32cx|pmull|sha1c|sha256h)$/ {print $3}' "$said.translated" | sort -u | xargs)
    if [ "$found" = "$1" ]; then
        echo "optional instructions: ${found:-none}"
        passed=$((passed + 1))
    else
        echo "FAIL optional instructions: ${found:-none}, expected ${1:-none}"
        failed=$((failed + 1))
    fi
}
# kernels NAME MODEL HIDDEN WANTED: the kernels on another processor.  qemu has no model without these
# instructions: bits of AT_HWCAP are hidden (tests/stub/hwcap_stub.c), and what qemu translates is looked at.
kernels() {
    echo "-- $1:"
    run=("${plain_run[@]}" -cpu "$2" -E "LD_PRELOAD=$build/stub/libhwcap.so" -E "CORTEX_TEST_HWCAP_OFF=$3")
    "${run[@]}" "$bin/cortex" version
    "${run[@]}" "$bin/cortex" lattice selftest --json && passed=$((passed + 1)) || failed=$((failed + 1))
    run+=(-d in_asm -D "$said.translated")
    count crypto "$bin/test_crypto"
    instructions "$4"
}
if [ "$arch" = aarch64 ] && [[ " ${rooms[*]} " == *" crypto "* ]]; then
    kernels "all instructions" "$cpu" 0 "crc32cx pmull sha1c sha256h"
    kernels "CRC alone, as a Raspberry Pi 4" cortex-a72 0x78 "crc32cx"
    kernels "neither SHA nor CRC" cortex-a57 0xf8 ""
fi
echo "$arch: $passed passed, $failed failed, $skipped skipped" | sed 's/^[^:]*: //'
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
