#!/bin/sh
# test-timescale.sh URL - runs every test that uses PostgreSQL on a server that has TimescaleDB.
#
# URL is postgresql://USER@HOST:PORT/DATABASE of an empty database that the tests may change; USER may
# create databases.  Fails when the extension is not there: a run without it would say nothing.  PRESET (default: release)
# names the build.  Write date, versions and machine of a good run into docs/sql.md.
set -eu
if [ $# -ne 1 ]; then
    echo "usage: $0 postgresql://USER@HOST:PORT/DATABASE" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")/.." && pwd)
bin=$here/build/${PRESET:-release}/bin
for program in cortex test_db test_index; do
    if [ ! -x "$bin/$program" ]; then
        echo "$0: $bin/$program does not exist: build it first" >&2
        exit 3
    fi
done
psql "$1" -v ON_ERROR_STOP=1 -qc 'CREATE EXTENSION IF NOT EXISTS timescaledb' || {
    echo "$0: the server has no TimescaleDB, or this user may not create the extension" >&2
    exit 3
}
psql "$1" -Atc "SELECT 'server ' || current_setting('server_version') || ', timescaledb ' || extversion
    FROM pg_extension WHERE extname = 'timescaledb'"
CORTEX_TEST_PG=$1 "$bin/test_index"
CORTEX_TEST_PG=$1 "$bin/test_db"
CORTEX_TEST_PG=$1 CORTEX_BIN=$bin/cortex "$here/tests/cli/test_sql_files.py"
date -u '+passed on %Y-%m-%d, '"$(uname -sm)"
