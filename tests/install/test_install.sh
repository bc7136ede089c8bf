#!/usr/bin/env bash
# test_install.sh BUILD_DIR CC - installs a build into a fresh prefix and uses it from there.
#
# Everything a consumer needs must come from the prefix: the sources are out of reach of the
# consumer's include path.  Shared and static, through pkg-config and through find_package.
# shellcheck disable=SC2317  # functions are called through try
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
cc=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
passed=0
failed=0

# try NAME COMMAND...
try() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name: $*"
        cat "$work/log"
    fi
}

finish() {
    rm -rf "$work"
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || exit 1
    exit 0
}

try "install" cmake --install "$build" --prefix "$prefix"
[ "$failed" -eq 0 ] || finish

pc=$(find "$prefix" -name cortex.pc)
libdir=$(dirname "$(find "$prefix" -name libcortex.so)")
# In front of what the machine has, never instead: libsodium is found there.
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
version=$(pkg-config --modversion cortex)

no_build_paths() {
    ! grep -rlF -e "$build" -e "$(dirname "$(dirname "$here")")" "$prefix"
}

# compile NAME FLAG...
compile() {
    local name=$1
    shift
    "$cc" -std=c11 -Wall -Wextra -Werror -DEXPECTED_VERSION="\"$version\"" \
        "$here/consumer.c" -o "$work/$name" "$@"
}

needs_shared_library() {
    readelf -d "$1" | grep -F "Shared library: [libcortex.so"
}

carries_version() {
    readelf -V "$1" | grep -F "CORTEX_${version%.*}"
}

try "the program runs" "$prefix/bin/cortex" --version
try "the manual page is there" test -s "$prefix/share/man/man1/cortex.1"
# Made by the program; a build of some targets only lacks them.
if [ -e "$build/share/man.stamp" ]; then
    for page in man1/cortex-run.1 man3/cx_ledger_open.3 man5/cortex-ledger.5 man8/cortex-serve.8; do
        try "$page is there" test -s "$prefix/share/man/$page"
    done
fi
if [ -e "$build/share/cortex.zsh" ]; then
    for script in bash-completion/completions/cortex zsh/vendor-completions/_cortex \
        fish/vendor_completions.d/cortex.fish; do
        try "$script is there" test -s "$prefix/share/$script"
    done
fi
try "no path of the build in what was installed" no_build_paths

# What pkg-config says is split into words.
read -r -a shared_flags <<<"$(pkg-config --cflags --libs cortex)"
try "pkg-config, shared" compile pc_shared "${shared_flags[@]}"
try "pkg-config, shared, runs" env LD_LIBRARY_PATH="$libdir" "$work/pc_shared"
try "pkg-config, shared, needs the library" needs_shared_library "$work/pc_shared"
try "its symbols carry the version of the interface" carries_version "$work/pc_shared"
case $cc in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac
try "pkg-config, C++" "$cxx" -x c++ -Wall -Wextra -Werror -DEXPECTED_VERSION="\"$version\"" \
    "$here/consumer.c" -o "$work/pc_cxx" -x none "${shared_flags[@]}"
try "pkg-config, C++, runs" env LD_LIBRARY_PATH="$libdir" "$work/pc_cxx"

examples=$here/../../examples
for name in journal memory proof; do
    try "example $name compiles" "$cc" -std=c11 -Wall -Wextra -Werror "$examples/$name.c" \
        -o "$work/example_$name" "${shared_flags[@]}"
    try "example $name runs" env LD_LIBRARY_PATH="$libdir" "$examples/run.sh" "$name" \
        "$work/example_$name"
done

# `-l:` picks the archive although the shared library stands beside it.
static_libs=$(pkg-config --static --cflags --libs cortex)
read -r -a static_flags <<<"${static_libs/-lcortex/-l:libcortex.a}"
try "pkg-config, static" compile pc_static "${static_flags[@]}"
try "pkg-config, static, runs" "$work/pc_static"

try "find_package" cmake -S "$here" -B "$work/consumer" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" -DEXPECTED_VERSION="$version"
try "find_package, builds" cmake --build "$work/consumer"
try "find_package, shared, runs" "$work/consumer/with_shared"
try "find_package, static, runs" "$work/consumer/with_static"
finish
