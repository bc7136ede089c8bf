#!/usr/bin/env bash
# userland.sh SUITE [--cc gcc|clang] [--mirror URL [--keyring FILE] [--components main,universe]]
#     [--tests LABELS|none] [FOLDER] - builds Cortex in another release of Debian or Ubuntu than this machine's, with
# that release's compiler and libraries, and runs its tests there.
#
# SUITE is a name such as trixie, sid or noble.  Its packages come from where this machine's apt gets its own, or
# from --mirror (Ubuntu: with its keyring, and the components main,universe).  LABELS is a pattern for `ctest -L`,
# by default unit|vectors|cli; CORTEX_TEST names one test, as for `ctest -R`.  FOLDER (default build/userland) keeps
# the user land and the builds for the next time.  Needs mmdebstrap; as another user than root also
# uidmap and a range of user ids in /etc/subuid.  Closes with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() {
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

suite=
cc=gcc
mirror=
keyring=()
components=main
tests='unit|vectors|cli'
out=build/userland
named=no
while [ "$#" -gt 0 ]; do
    case $1 in
    --cc) cc=${2:?--cc needs gcc or clang}; shift ;;
    --mirror) mirror=${2:?--mirror needs a URL}; shift ;;
    --keyring) keyring=(--keyring="${2:?--keyring needs a file}"); shift ;;
    --components) components=${2:?--components needs names}; shift ;;
    --tests) tests=${2:?--tests needs labels}; shift ;;
    -*) usage ;;
    *)
        if [ -z "$suite" ]; then
            suite=$1
        elif [ "$named" = no ]; then
            out=$1
            named=yes
        else
            usage
        fi
        ;;
    esac
    shift
done
[[ "$suite" =~ ^[a-z][a-z0-9-]*$ ]] || usage
case $cc in gcc | clang) ;; *) usage ;; esac
if [ -n "${keyring[*]}" ] && [ ! -r "${keyring[0]#--keyring=}" ]; then
    echo "userland.sh: there is no ${keyring[0]#--keyring=} (of the package ubuntu-keyring)" >&2
    exit 2
fi
command -v mmdebstrap >/dev/null || { echo "userland.sh: needs mmdebstrap: apt-get install mmdebstrap" >&2; exit 1; }
if [ -z "$mirror" ]; then
    mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 'Created-By: Packages' |
        awk '$2 == "Debian" && !/security/ { print $1; exit }')
    [ -n "$mirror" ] || { echo "userland.sh: this machine's apt knows no mirror of Debian: give --mirror" >&2; exit 1; }
fi

mkdir -p "$out/$suite"
here=$(cd "$out/$suite" && pwd)
root=$here/root
build=$here/$cc
jobs=${CORTEX_JOBS:-$(nproc)}

# The same user, or the first of a range of ids that is root only of what is below: what makes the user land and
# what enters it must be one.
as_root=()
mode=root
if [ "$(id -u)" -ne 0 ]; then
    as_root=(unshare --user --map-root-user --map-auto --mount)
    mode=unshare
fi

packages=gcc,g++,clang,cmake,ninja-build,pkgconf,libc6-dev,libsodium-dev,libssl-dev,libsqlite3-dev,libmicrohttpd-dev
packages+=,libnghttp2-dev,libpq-dev,libseccomp-dev,libpcre2-dev,libutf8proc-dev,libzstd-dev,zlib1g-dev,python3
packages+=,python3-pytest,python3-cryptography,git,bubblewrap,openssl,sqlite3,curl,strace,ca-certificates,procps,file
if [ ! -e "$here/complete" ]; then
    echo "userland.sh: unpacking $suite"
    if [ -e "$root" ]; then
        "${as_root[@]}" rm -rf "$root"
    fi
    mkdir -p "$root"
    mmdebstrap --quiet --mode="$mode" --variant=minbase --components="$components" "${keyring[@]}" \
        --include="$packages" "$suite" "$here/root.tar" "$mirror"
    "${as_root[@]}" tar -x -C "$root" --exclude='./dev/*' -f "$here/root.tar"
    rm "$here/root.tar"
    "${as_root[@]}" mkdir -p "$root/cortex" "$root/build" "$root/testdata"
    touch "$here/complete"
fi

# Programs inside see a copy of the source, which tests may write to, their own processes, and the network of this
# machine (tests use its loopback device).  What they write to /tmp is on a disk: where a sync costs nothing, commits
# do not form groups.
mkdir -p "$build" "$here/tmp"
rm -rf "$here/before"
[ ! -e "$here/tree" ] || mv "$here/tree" "$here/before"
mkdir "$here/tree"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar -c --null -T - | tar -x -C "$here/tree"
# Copies keep their times.  A file that was changed after the last copy was made, but before that copy was compiled,
# would seem older than its object.
if [ -e "$here/before" ]; then
    (cd "$here" && LC_ALL=C diff -rq before tree || true) |
        sed -n "s|^Files before/.* and \\(tree/.*\\) differ\$|$here/\\1|p" | xargs -r -d '\n' touch
    rm -rf "$here/before"
fi
# A root of its own by pivot_root, not chroot, and a whole /proc: else governed runs inside could have no sandbox.
# The shell stays, as the process that collects what others leave behind.
# shellcheck disable=SC2016
enter='
    root=$1 place=$2 build=$3 testdata=$4
    shift 4
    mount --bind "$root" "$root"
    mount --bind "$place/tree" "$root/cortex"
    mount --bind "$build" "$root/build"
    mount --bind "$place/tmp" "$root/tmp"
    [ -z "$testdata" ] || mount --bind -o ro "$testdata" "$root/testdata"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount -t proc proc "$root/proc"
    mount -t tmpfs run "$root/run"
    mkdir -p "$root/run/old"
    cd "$root"
    pivot_root . run/old
    cd /build
    umount -l /run/old
    env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LC_ALL=C.UTF-8 \
        ${testdata:+CORTEX_TESTDATA=/testdata} PYTHONDONTWRITEBYTECODE=1 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="*" "$@" &
    wait "$!"
'
inside() {
    "${as_root[@]}" unshare --mount --pid --ipc --fork --kill-child sh -ec "$enter" sh \
        "$root" "$here" "$build" "${CORTEX_TESTDATA:-}" "$@"
}

case $cc in gcc) cxx=g++ ;; *) cxx=clang++ ;; esac
quietly() {
    if ! "$@" >"$here/$cc.log" 2>&1; then
        tail -n 60 "$here/$cc.log"
        echo "userland.sh: $suite: the build failed; $here/$cc.log has all of it" >&2
        exit 1
    fi
}
inside sh -c '. /etc/os-release; echo "$PRETTY_NAME, $(ldd --version | sed -n "1s/.* //p") of glibc, $(cmake --version | head -n 1)"'
inside "$cc" --version | head -n 1
quietly inside cmake -S /cortex -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER="$cxx"
quietly inside nice cmake --build /build -j "$jobs" -- -k 0 # all findings of this compiler at once
echo "userland.sh: $suite: built with $cc"
[ "$tests" != none ] || exit 0

rm -f "$build/results.xml"
inside ctest --test-dir /build -L "$tests" -R "${CORTEX_TEST:-.}" -j "$jobs" --timeout 900 --no-tests=error \
    --output-on-failure --test-output-size-passed 1000000 --test-output-size-failed 1000000 \
    --output-junit /build/results.xml | sed -u -E '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/d' || true
read -r passed failed skipped <<<"$(./tools/sum_results.py "$build/results.xml")"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
