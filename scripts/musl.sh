#!/usr/bin/env bash
# musl.sh x86_64|aarch64 FOLDER [all] - makes FOLDER a place where programs of one file are linked with musl in
# place of glibc: Debian's musl, the kernel's headers, and libsodium built for it from Debian's source package.
#
# `all` builds every other library too that `cortex` carries, so that the whole program and its unit tests (but
# test_crypto, which asks libcrypto) can be tried over musl; it needs tclsh and gperf.  FOLDER/musl.specs turns
# Debian's compiler for ARCH into one for musl, and cmake/musl.cmake reads it; what is there already is kept.
# Nothing that is built depends on the name of FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:-}
case $arch in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
mkdir -p "${2:?musl.sh ARCH FOLDER}"
root=$(cd "$2" && pwd)
wanted=(libsodium)
[ "${3:-}" != all ] || wanted+=(sqlite3 zlib libzstd pcre2 libseccomp nghttp2 utf8proc libmicrohttpd)
jobs=${CORTEX_JOBS:-$(nproc)}
compiler=gcc
[ "$arch" = "$(uname -m)" ] || compiler=$arch-linux-gnu-gcc
tools=${compiler%gcc}

sources=/etc/apt/sources.list.d/debian.sources
[ -s "$sources" ] || sources=/etc/apt/sources.list
if [ ! -e "$root/.base" ]; then
    rm -rf "$root"
    mkdir -p "$root"
    # Of OpenSSL and zlib, which are loaded and not linked, the headers are enough.
    mmdebstrap --quiet --variant=extract --arch="$debian" --include=musl-dev,linux-libc-dev,libssl-dev,zlib1g-dev \
        bookworm - "$sources" |
        tar -x -C "$root" --wildcards "./usr/lib/$arch-linux-musl" "./usr/include/$arch-linux-musl" \
            "./usr/include/linux" "./usr/include/asm-generic" "./usr/include/openssl" './usr/include/z*.h' \
            "./usr/share/doc/musl-dev" \
            "./usr/include/$arch-linux-gnu/asm" "./usr/include/$arch-linux-gnu/openssl"
    touch "$root/.base"
fi

# The compiler's own headers and libgcc stay; everything of glibc is replaced.  libgcc has one function of arm64
# that asks glibc's own name for what the kernel told the program, so that function is not used.
headers="-nostdinc -isystem $root/usr/include/$arch-linux-musl -isystem include%s -isystem $root/opt/include"
headers+=" -idirafter $root/usr/include -idirafter $root/usr/include/$arch-linux-gnu"
[ "$arch" != aarch64 ] || headers+=" -mno-outline-atomics"
lib=$root/usr/lib/$arch-linux-musl
cat >"$root/musl.specs" <<END
%rename cpp_options old_cpp_options

*cpp_options:
$headers %(old_cpp_options)

*cc1:
%(cc1_cpu) $headers

*link_libgcc:
-L$lib -L$root/opt/lib -L .%s

*libgcc:
--start-group libgcc.a%s libgcc_eh.a%s -lc --end-group

*startfile:
%{static-pie:$lib/rcrt1.o; static:$lib/crt1.o; :$lib/Scrt1.o} $lib/crti.o %{static:crtbeginT.o%s; :crtbeginS.o%s}

*endfile:
%{static:crtend.o%s; :crtendS.o%s} $lib/crtn.o

*link:
-nostdlib --build-id %{static-pie:-static -pie --no-dynamic-linker -z text} %{static:-static}

*lib:
-lc

END

# Debian's source packages, checked by apt against Debian's keys like any package, patched by Debian.
work=$root/source
mkdir -p "$work" "$root/opt/lib/pkgconfig" "$root/opt/include" "$root/apt/lists/partial"
sed 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$sources" >"$root/apt/source.${sources##*.}"
apt_source() {
    apt-get -qq -o Dir::Etc::sourcelist="$root/apt/source.${sources##*.}" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$root/apt/lists" -o APT::Sandbox::User=root "$@"
}
# unpacked PACKAGE - its source in $work/PACKAGE.
unpacked() {
    rm -rf "${work:?}/$1" "${work:?}/$1.download"
    mkdir "$work/$1.download"
    # A mirror may lack the newest of the security updates: then the release's own.
    (cd "$work/$1.download" && { apt_source source --download-only "$1" || { rm -f ./* &&
        apt_source source --download-only "$1/bookworm"; }; } >/dev/null 2>&1)
    dpkg-source --no-check -x "$work/$1.download"/*.dsc "$work/$1" >/dev/null 2>&1
}

# A library is position-independent, for programs at an address of their own each time, has a section for each
# function, and knows no path of this machine.
flags="-O2 -fPIC -ffunction-sections -fdata-sections -fstack-protector-strong -fno-asynchronous-unwind-tables"
cc=("$compiler" "-specs=$root/musl.specs")
configured() {
    [ -e configure ] || autoreconf -fi
    ./configure CC="${cc[*]}" AR="${tools}ar" RANLIB="${tools}ranlib" CFLAGS="$flags -ffile-prefix-map=$PWD=." \
        --host="$arch-linux-musl" --prefix="$root/opt" --disable-shared --enable-static --disable-dependency-tracking "$@"
    make -j "$jobs"
}
# pc NAME LIBRARY VERSION - for libraries that describe themselves otherwise, or not at all.
pc() {
    printf 'Name: %s\nDescription: for musl\nVersion: %s\nCflags: -I%s\nLibs: -L%s -l%s\n' \
        "$1" "$3" "$root/opt/include" "$root/opt/lib" "$2" >"$root/opt/lib/pkgconfig/$1.pc"
}
build_libsodium() {
    configured --disable-debug
    make install
}
build_zlib() {
    CC="${cc[*]}" AR="${tools}ar" RANLIB="${tools}ranlib" CFLAGS="$flags" ./configure --static --prefix="$root/opt"
    make -j "$jobs" install
}
build_libzstd() {
    make -C lib -j "$jobs" CC="${cc[*]}" AR="${tools}ar" CFLAGS="$flags" libzstd.a
    cp lib/libzstd.a "$root/opt/lib/"
    cp lib/*.h "$root/opt/include/"
    pc libzstd zstd 1.5
}
build_utf8proc() {
    make CC="${cc[*]}" AR="${tools}ar" CFLAGS="$flags" libutf8proc.a
    cp libutf8proc.a "$root/opt/lib/"
    cp utf8proc.h "$root/opt/include/"
    pc libutf8proc utf8proc 2.8
}
build_pcre2() {
    configured --enable-jit
    make install
}
build_nghttp2() {
    configured --enable-lib-only
    make install
}
build_libmicrohttpd() {
    configured --disable-https --disable-doc --disable-examples --disable-curl
    make install
}
build_libseccomp() {
    configured
    make install
}
# The one file that holds all of it is made for this machine (with tclsh), and compiled for the other.
build_sqlite3() {
    ./configure --disable-tcl --disable-readline
    make sqlite3.c
    "${cc[@]}" $flags -DSQLITE_THREADSAFE=1 -DHAVE_USLEEP=1 -DSQLITE_ENABLE_FTS5 \
        -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_OMIT_LOAD_EXTENSION -c sqlite3.c -o sqlite3.o
    "${tools}ar" rcsD "$root/opt/lib/libsqlite3.a" sqlite3.o
    cp sqlite3.h "$root/opt/include/"
    pc sqlite3 sqlite3 3.40
}
# Loaded, not linked: its headers are enough.
printf 'Name: libcrypto\nDescription: headers alone\nVersion: 3\n' >"$root/opt/lib/pkgconfig/libcrypto.pc"
for library in "${wanted[@]}"; do
    [ ! -e "$root/.$library" ] || continue
    [ -e "$root/apt/updated" ] || { apt_source update >/dev/null && touch "$root/apt/updated"; }
    echo "musl.sh: building $library"
    unpacked "$library"
    if ! (cd "$work/$library" && "build_${library//-/_}") >"$work/$library.log" 2>&1; then
        tail -n 30 "$work/$library.log" >&2
        echo "musl.sh: $library was not built; $work/$library.log has all of it" >&2
        exit 1
    fi
    rm -rf "${work:?}/$library" "${work:?}/$library.download"
    touch "$root/.$library"
done
