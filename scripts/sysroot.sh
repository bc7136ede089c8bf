#!/usr/bin/env bash
# sysroot.sh ARCH FOLDER - unpacks the libraries of another of Debian's architectures into FOLDER, for a
# cross-compiler.  Nothing in them is run.  What is there already is kept.
set -euo pipefail
arch=$1
root=$2
[ ! -e "$root/.complete" ] || exit 0
libraries=libc6-dev,libgcc-12-dev,libsodium-dev,libssl-dev,libsqlite3-dev,libmicrohttpd-dev,libnghttp2-dev
libraries+=,libpq-dev,libseccomp-dev,libpcre2-dev,libutf8proc-dev,libzstd-dev,zlib1g-dev
sources=/etc/apt/sources.list.d/debian.sources
[ -s "$sources" ] || sources=/etc/apt/sources.list
rm -rf "$root"
mkdir -p "$(dirname "$root")"
mmdebstrap --quiet --variant=extract --arch="$arch" --include="$libraries" bookworm "$root" "$sources"
# The compiler looks in /lib and in /usr/lib; Debian has both in one place since then.
cp -a "$root/lib/." "$root/usr/lib/"
rm -rf "${root:?}/lib"
ln -s usr/lib "$root/lib"
touch "$root/.complete"
