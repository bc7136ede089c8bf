#!/usr/bin/env bash
# wasm.sh [FOLDER] - makes cortex-verify for WebAssembly (WASI): one file that runs where a browser or node runs.
#
# FOLDER (default build/dist) gets cortex-verify-VERSION.wasm. It is the program of verify/main.c, of the same
# sources as the native one; packaging/wasm/include has what Linux has and WASI has not. Signatures are
# verified by libsodium, compiled here from Debian's source package, which apt checks by its signature.
# CORTEX_SODIUM_SOURCE names an unpacked source of it in place of that. The same commit, compiler and libsodium
# give the same bytes in any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/dist}
jobs=${CORTEX_JOBS:-$(nproc)}
build=build/wasm
./scripts/install-deps.sh wasm

clang=${CORTEX_WASM_CC:-clang-14}
command -v "$clang" >/dev/null || { echo "wasm.sh: there is no $clang (CORTEX_WASM_CC names another)" >&2; exit 1; }
mkdir -p "$build" "$out"

# The source that belongs to the libsodium that other builds link, from the machine's own package sources.
fetch_sodium() {
    local apt=$PWD/$build/apt sources=/etc/apt/sources.list.d/debian.sources
    rm -rf "$apt" "$build/sodium"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    if [ -s "$sources" ]; then
        sed 's/^Types:.*/Types: deb-src/' "$sources" >"$apt/apt.sources"
    else
        sources=/etc/apt/sources.list
        sed -n 's/^deb\(-src\)\{0,1\} /deb-src /p' "$sources" | sort -u >"$apt/apt.list"
    fi
    local options=(-qq -o "Dir::Etc::sourcelist=$(ls "$apt"/apt.*)" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    (cd "$apt" && apt-get "${options[@]}" source --download-only libsodium >&2)
    dpkg-source --no-check -x "$apt"/libsodium_*.dsc "$build/sodium" >/dev/null
}

sodium=${CORTEX_SODIUM_SOURCE:-$build/sodium}
if [ -z "${CORTEX_SODIUM_SOURCE:-}" ] && [ ! -e "$build/sodium/.complete" ]; then
    fetch_sodium
    touch "$build/sodium/.complete"
fi
[ -d "$sodium/src/libsodium" ] || { echo "wasm.sh: $sodium is no source of libsodium" >&2; exit 1; }

# What configure scripts would write: the version, and where OpenSSL's settings of this machine are (only types
# of its headers are used: there is no OpenSSL in the program).
include=$build/include
rm -rf "$include" "$build/objects"
mkdir -p "$include/sodium" "$include/openssl" "$build/objects"
sodium_version=$(sed -n 's/^AC_INIT(\[libsodium\],\[\([0-9.]*\)\].*/\1/p' "$sodium/configure.ac")
library=$(sed -n 's/^SODIUM_LIBRARY_VERSION_\(MAJOR\|MINOR\)=\([0-9]*\)$/-e s|@SODIUM_LIBRARY_VERSION_\1@|\2|/p' \
    "$sodium/configure.ac")
# shellcheck disable=SC2086 # the words of $library are arguments
sed -e "s|@VERSION@|$sodium_version|" -e 's|@SODIUM_LIBRARY_MINIMAL_DEF@||' $library \
    "$sodium/src/libsodium/include/sodium/version.h.in" >"$include/sodium/version.h"
for header in /usr/include/*-linux-gnu*/openssl/{opensslconf,configuration}.h; do
    [ ! -e "$header" ] || ln -sf "$header" "$include/openssl/"
done
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
printf '#include "os/library_linked.h"\n\nconst cx_library_function cx_library_table[] = {{NULL, NULL, NULL}};\n' \
    >"$build/library_none.c"

both=(--target=wasm32-wasi -O2 -ffunction-sections -fdata-sections -D_WASI_EMULATED_SIGNAL
    "-ffile-prefix-map=$PWD/=" "-ffile-prefix-map=$sodium/=libsodium/" -I "$include" -I "$include/sodium"
    -I "$sodium/src/libsodium/include" -I "$sodium/src/libsodium/include/sodium")
ours=("${both[@]}" -std=c17 -D_GNU_SOURCE "-DCX_VERSION=\"$version\"" -D_WASI_EMULATED_PROCESS_CLOCKS
    -D_WASI_EMULATED_GETPID -I packaging/wasm/include -I include -I src -include base/banned.h
    -Wall -Wextra -Wconversion -Wshadow -Werror -fno-strict-overflow -ffp-contract=off)
theirs=("${both[@]}" -w -DCONFIGURED=1)

# compile_list KIND FILE...: KIND is "ours" or "theirs"; an object is named after its source.
compile_list() {
    local kind=$1 file
    shift
    local -n flags=$kind
    for file in "$@"; do
        printf '%s\0' "$clang" "${flags[@]}" -c "$file" -o "$build/objects/$kind-${file//[^A-Za-z0-9]/_}.o"
    done | xargs -0 -n $((${#flags[@]} + 5)) -P "$jobs" -- env
}
own=()
for module in base json cbor crypto tree proof evidence; do
    for file in "src/$module"/*.c; do
        case $file in
        *_linux.c | *_macos.c) ;; # of systems with more than WASI has
        *) own+=("$file") ;;
        esac
    done
done
own+=(src/os/library_linked.c verify/main.c "$build/library_none.c")
mapfile -t others < <(cd "$sodium" && find src/libsodium -name '*.c' | LC_ALL=C sort)
compile_list ours "${own[@]}"
compile_list theirs "${others[@]/#/$sodium/}"

name=cortex-verify-$version.wasm
"$clang" --target=wasm32-wasi -O2 "$build"/objects/*.o -lwasi-emulated-getpid -lwasi-emulated-process-clocks \
    -lwasi-emulated-signal -Wl,--gc-sections -Wl,--strip-all -Wl,--stack-first -Wl,-z,stack-size=8388608 -o "$build/$name"
cp "$build/$name" "$out/$name"
chmod 644 "$out/$name"
printf '%s: %s bytes, libsodium %s, SHA-256 %s\n' "$name" "$(stat -c %s "$out/$name")" "$sodium_version" \
    "$(sha256sum "$out/$name" | cut -d ' ' -f 1)"
