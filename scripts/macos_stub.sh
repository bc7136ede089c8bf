#!/usr/bin/env bash
# macos_stub.sh [--target TRIPLE] - compiles every C file of a macOS build, without a Mac.
#
# clang reads each file for arm64-apple-macos13 (--target for another) with -fsyntax-only and our own
# headers of what macOS has (tests/macos/README.md); a call or constant that is Linux's own is an
# error.  Headers of libraries are those that this machine has.  Nothing is linked or run: what it
# shows is that the files name only what those headers declare, with these types.
set -euo pipefail
cd "$(dirname "$0")/.."

target=arm64-apple-macos13
case "${1:-}" in
"") ;;
--target) target=${2:?"--target: expected a triple such as x86_64-apple-macos13"} ;;
*)
    echo "usage: $0 [--target TRIPLE]" >&2
    exit 2
    ;;
esac
for program in clang cmake ninja python3; do
    if ! command -v "$program" >/dev/null; then
        echo "macos_stub.sh needs $program: apt install clang cmake ninja-build python3" >&2
        exit 77
    fi
done
build=build/macos-stub
rm -rf "$build/include"
mkdir -p "$build/include"
machine=/usr/include/$(gcc -print-multiarch 2>/dev/null || true)
for name in sodium.h sodium sqlite3.h microhttpd.h zlib.h zconf.h pcre2.h nghttp2 utf8proc.h postgresql; do
    if [ -e "/usr/include/$name" ]; then
        ln -s "/usr/include/$name" "$build/include/$name"
    fi
done
mkdir "$build/include/openssl"
for folder in /usr/include/openssl "$machine/openssl"; do
    for header in "$folder"/*.h; do
        [ -e "$header" ] && ln -sf "$header" "$build/include/openssl/"
    done
done
cmake -S . -B "$build" -G Ninja -DCORTEX_PLATFORM=macos -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang -DCORTEX_TESTS=OFF -DCORTEX_WEB=OFF >"$build/configure.log"
exec tests/macos/compile.py "$build" "$target"
