#!/usr/bin/env bash
# install-deps.sh build|test|package|wasm|analyze|musl|fleet - installs the Debian packages that are missing, and only those.
#
# When nothing is missing it changes nothing and needs no rights.  CORTEX_SKIP_DEPS=1 leaves the
# machine alone, for systems where the same parts come from elsewhere.
set -euo pipefail

# To build the programs and the library, and to show them (curl); git and bubblewrap are what governed
# runs start.
build_packages=(gcc libc6-dev cmake ninja-build pkgconf libsodium-dev libssl-dev
    libsqlite3-dev libmicrohttpd-dev libmicrohttpd12 libpq-dev libpq5 zlib1g-dev zlib1g curl
    git bubblewrap libseccomp-dev libseccomp2 libpcre2-dev libpcre2-8-0 libutf8proc-dev libutf8proc2
    libzstd-dev libzstd1 libnghttp2-dev libnghttp2-14)
# To run every check: the scripts, the second compiler, the layout, public headers read as C++, pytest, whose
# reports governed runs read, strace, which watches the governor for programs of an agent, a gRPC client, and
# mypy and what builds, signs and tests the SDK in Python.
test_packages=(python3 clang libclang-rt-14-dev llvm-14 g++ openssl wrk postgresql-15 sqlite3 chromium
    clang-format-14 python3-pytest strace python3-grpcio mypy python3-cryptography python3-pip python3-setuptools
    python3-wheel)

# To build the page: node's own packages bring npm along, Debian's keep it apart.
if ! command -v node >/dev/null; then
    build_packages+=(nodejs)
fi
if ! command -v npm >/dev/null; then
    build_packages+=(npm)
fi
# To make Debian packages, and to try them in a machine of their own.
package_packages=(python3 debhelper dpkg-dev fakeroot file lintian mmdebstrap systemd-container)
# To compile cortex-verify for WebAssembly (scripts/wasm.sh); libsodium's source is fetched and unpacked there.
wasm_packages=(clang lld wasi-libc libclang-rt-14-dev-wasm32 dpkg-dev libssl-dev patch xz-utils)
# For the tests of a fleet that others skip: PostgreSQL under Patroni with etcd and HAProxy (ctest -L patroni), a pooler, and
# clocks that jump (tests/fleet/faults.py).
fleet_packages=(python3 postgresql-15 patroni etcd-server etcd-client haproxy pgbouncer faketime openssl)
# To read the code by machine (tools/analyze.sh).
analyze_packages=(clang clang-tidy cppcheck python3)

case "${1:-}" in
build) wanted=("${build_packages[@]}") ;;
test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
package) wanted=("${build_packages[@]}" "${package_packages[@]}") ;;
foreign-i386) wanted=(mmdebstrap) ;;
foreign-s390x)
    wanted=("${build_packages[@]}" python3 mmdebstrap qemu-user-static gcc-s390x-linux-gnu libc6-dev-s390x-cross)
    ;;
foreign-aarch64)
    wanted=("${build_packages[@]}" python3 file mmdebstrap qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    ;;
wasm) wanted=("${wasm_packages[@]}") ;;
analyze) wanted=("${build_packages[@]}" "${analyze_packages[@]}") ;;
fleet) wanted=("${build_packages[@]}" "${fleet_packages[@]}") ;;
musl) wanted=(gcc make cmake ninja-build pkgconf mmdebstrap dpkg-dev autoconf automake libtool) ;;
*)
    echo "usage: $0 build|test|package|wasm|analyze|musl|fleet|foreign-i386|foreign-s390x|foreign-aarch64" >&2
    exit 2
    ;;
esac

if [ -n "${CORTEX_SKIP_DEPS:-}" ]; then
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This is not a Debian system, so packages cannot be installed for you." >&2
    echo "Install the equivalents of: ${wanted[*]}" >&2
    echo "then run again with CORTEX_SKIP_DEPS=1." >&2
    exit 1
fi

missing=()
for package in "${wanted[@]}"; do
    # A package of several architectures answers once for each of them.
    if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
        missing+=("$package")
    fi
done
if [ "${#missing[@]}" -eq 0 ]; then
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Missing packages: ${missing[*]}" >&2
        echo "Installing them needs root, and sudo is not here.  Ask somebody who is root to run:" >&2
        echo "    apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
