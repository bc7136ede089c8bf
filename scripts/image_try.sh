#!/usr/bin/env bash
# image.sh [--full] [--arch amd64|arm64] [FOLDER] - makes the container image of both architectures, or of one.
#
# FOLDER (default build/dist) gets cortex-VERSION-image.oci.tar, an OCI layout of the programs of one file, which
# static.sh makes when they are not there; or with --full cortex-VERSION-image-full.oci.tar: the usual build with
# Debian's libraries, for an index in PostgreSQL, TLS and webhooks.  A list of what is in it (SPDX) is made too.
# Needs no rights and no container tool, and runs nothing that is in the image.  The same commit and the same
# packages of Debian give the same bytes.  docs/container.md says how it is used.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
full=
architectures=(amd64 arm64)
out=build/dist
jobs=${CORTEX_JOBS:-$(nproc)}
usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --full) full=yes && shift ;;
    --arch)
        case ${2:-} in
        amd64 | arm64) architectures=("$2") && shift 2 ;;
        *) usage ;;
        esac
        ;;
    -*) usage ;;
    *) out=$1 && shift ;;
    esac
done
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

machine_of() {
    case $1 in
    amd64) echo x86_64 ;;
    arm64) echo aarch64 ;;
    esac
}

# The programs of one file.
take_static() {
    local machine
    machine=$(machine_of "$1")
    [ -f "$out/cortex-$version-linux-$machine" ] || ./scripts/static.sh "$machine" "$out"
    mkdir -p "$work/$1/bin"
    cp "$out/cortex-$version-linux-$machine" "$work/$1/bin/cortex"
    cp "$out/cortex-verify-$version-linux-$machine" "$work/$1/bin/cortex-verify"
    # musl, which cortex-verify is linked with, was unpacked for that and need not be installed.
    mkdir "$work/$1/copyright"
    for notice in "build/musl/$machine/usr/share/doc/musl-dev/copyright" /usr/share/doc/musl-dev/copyright; do
        [ -e "$work/$1/copyright/musl-dev" ] || [ ! -e "$notice" ] || cp "$notice" "$work/$1/copyright/musl-dev"
    done
    [ -e "$work/$1/copyright/musl-dev" ] || {
        echo "image.sh: there is no copyright file of musl; remove build/musl/$machine and run again" >&2
        exit 1
    }
}

# The usual build, and Debian's packages that it loads.
build_usual() { mkdir -p "$work/$1/bin" "$work/$1/debs"; if [ "$1" = amd64 ]; then strip -o "$work/$1/bin/cortex" /work/main/build/release/bin/cortex; strip -o "$work/$1/bin/cortex-verify" /work/main/build/release/bin/cortex-verify; else cp /work/main/build/dist/cortex-0.2.0-linux-aarch64 "$work/$1/bin/cortex"; cp /work/main/build/dist/cortex-verify-0.2.0-linux-aarch64 "$work/$1/bin/cortex-verify"; fi; }

fetch_libraries() {
    local sources=/etc/apt/sources.list.d/debian.sources
    local names=ca-certificates,libcurl3-gnutls,libmicrohttpd12,libnghttp2-14,libpcre2-8-0,libpq5,libseccomp2
    names+=,libsodium23,libsqlite3-0,libssl3,libutf8proc2,libzstd1,zlib1g
    [ -s "$sources" ] || sources=/etc/apt/sources.list
    # Packages are unpacked, never installed, and only their archives are kept.
    mmdebstrap --quiet --variant=extract --arch="$1" --skip=essential/unlink,cleanup/apt --include="$names" \
        bookworm "$work/$1/root" "$sources"
    mv "$work/$1/root/var/cache/apt/archives"/*.deb "$work/$1/debs/"
}

# Without the parts of the page the programs are made without it, and the server says so.

options=()
name=cortex-$version-image
if [ -n "$full" ]; then
    command -v mmdebstrap >/dev/null || ./scripts/install-deps.sh package
    options+=(--libraries)
    name+=-full
else
    ./scripts/install-deps.sh build
fi
platforms=()
for arch in "${architectures[@]}"; do
    if [ -n "$full" ]; then
        build_usual "$arch"
        fetch_libraries "$arch"
    else
        take_static "$arch"
    fi
    platforms+=("$arch=$work/$arch")
done
./tools/make_image.py "$out/$name.oci.tar" --version "$version" --commit "$commit" "${options[@]}" "${platforms[@]}"
