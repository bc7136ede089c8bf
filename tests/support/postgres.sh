#!/usr/bin/env bash
# postgres.sh COMMAND [ARGUMENT...] - runs a command beside a PostgreSQL of its own.
#
# A new cluster is made in a temporary directory, listens on a socket there and on a free port of
# 127.0.0.1, and is stopped and removed when the command ends.  Clusters of the system are not
# touched.  The command finds:
#
#     CORTEX_TEST_PG          postgresql://cortex@127.0.0.1:PORT/cortex
#     CORTEX_TEST_PG_CONTROL  a script that takes stop, start, restart, crash (for tests of faults)
#     CORTEX_TEST_PG_SOCKET   the directory of the socket
#
# The exit code is the command's; 77 when no PostgreSQL is installed.  What is written is not synced
# to disk: nothing here outlives the command.
set -euo pipefail

if [ "$#" -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi

# The newest server there is.
bin=${CORTEX_PG_BIN:-}
if [ -z "$bin" ]; then
    for folder in /usr/lib/postgresql/*/bin; do
        [ -x "$folder/initdb" ] && bin=$folder
    done
fi
if [ -z "$bin" ] || [ ! -x "$bin/initdb" ]; then
    echo "no PostgreSQL server is installed (package postgresql-15)" >&2
    exit 77
fi

# PostgreSQL does not run as root.
user=$(id -un)
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    user=nobody
    if getent passwd postgres >/dev/null; then
        user=postgres
    fi
    as_user=(runuser -u "$user" --)
fi

home=$(mktemp -d /tmp/cortex-pg.XXXXXX)
data=$home/data
started=no
child=

finish() {
    trap - EXIT INT TERM HUP
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    if [ "$started" = yes ]; then
        "${as_user[@]}" "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true
    fi
    rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

chmod 755 "$home"
mkdir "$data"
if [ "${#as_user[@]}" -gt 0 ]; then
    chown "$user" "$home" "$data"
fi

fail() {
    echo "$1" >&2
    cat "$home/log" >&2 2>/dev/null || true
    exit 1
}

cd "$home"
"${as_user[@]}" "$bin/initdb" -D "$data" -U cortex -A trust -E UTF8 --locale=C.UTF-8 \
    --no-sync >"$home/init.log" 2>&1 || { cat "$home/init.log" >&2; exit 1; }

# A port that nobody listens on; another program may take it first, so a few are tried.
free_port() {
    local port tries
    for tries in 1 2 3 4 5 6 7 8 9 10; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 30000))
        if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
    return 1
}

cat >>"$data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$home'
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = ${CORTEX_TEST_PG_CONNECTIONS:-30}
shared_buffers = 128MB
max_wal_size = 4GB
${CORTEX_TEST_PG_CONF:-}
CONF

for tries in 1 2 3; do
    port=$(free_port) || fail "no free port"
    echo "port = $port" >>"$data/postgresql.conf"
    if "${as_user[@]}" "$bin/pg_ctl" -D "$data" -l "$home/log" -w -t 60 start >/dev/null 2>&1; then
        started=yes
        break
    fi
done
[ "$started" = yes ] || fail "PostgreSQL did not start"
"${as_user[@]}" "$bin/createdb" -h 127.0.0.1 -p "$port" -U cortex cortex || fail "no database"

cat >"$home/control" <<CONTROL
#!/usr/bin/env bash
# Stops and starts the cluster of this test.
case "\${1:-}" in
stop) exec ${as_user[*]} $bin/pg_ctl -D $data -m fast -w -t 60 stop ;;
crash) exec ${as_user[*]} $bin/pg_ctl -D $data -m immediate -w -t 60 stop ;;
start) exec ${as_user[*]} $bin/pg_ctl -D $data -l $home/log -w -t 60 start ;;
restart) exec ${as_user[*]} $bin/pg_ctl -D $data -l $home/log -m fast -w -t 60 restart ;;
*) exit 2 ;;
esac
CONTROL
chmod 755 "$home/control"

export CORTEX_TEST_PG="postgresql://cortex@127.0.0.1:$port/cortex"
export CORTEX_TEST_PG_CONTROL=$home/control
export CORTEX_TEST_PG_SOCKET=$home
cd "$OLDPWD"
# In the background, so that a signal to this script is not held up by the command.
"$@" &
child=$!
code=0
wait "$child" || code=$?
child=
exit "$code"
