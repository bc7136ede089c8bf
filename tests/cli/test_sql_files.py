#!/usr/bin/env python3
"""sql/*.sql on a PostgreSQL server: what they make is what the program makes, the program
goes on with it, and queries of the trace format's specification answer.

Uses the server of CORTEX_TEST_PG, else one of its own; skipped where there is none.  Closes with
`N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import kit
from kit import main, skip, skip_all, test

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = sorted((ROOT / "sql").glob("*.sql"))
VECTORS = HERE.parent / "vectors/trace"
URL = os.environ.get("CORTEX_TEST_PG")

if shutil.which("psql") is None:
    skip_all("psql is not installed")
if not URL:
    done = subprocess.run([HERE.parent / "support/postgres.sh", sys.executable, *sys.argv])
    if done.returncode == 77:
        skip_all("no PostgreSQL server is installed")
    sys.exit(done.returncode)


def psql(url, *words, code=0):
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", url, *map(str, words)], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout.strip()


TIMESCALE = psql(URL, "-c", "SELECT count(*) FROM pg_available_extensions WHERE name = 'timescaledb'") != "0"


class Database:
    """One of its own on that server."""

    def __init__(self, name):
        self.name = f"cortex_sql_{name}_{os.getpid()}"
        self.url = re.sub(r"/[^/]*$", "/" + self.name, URL)

    def __enter__(self):
        psql(URL, "-c", f"CREATE DATABASE {self.name}")
        if TIMESCALE:  # the program would make it, and the files use it where it is
            self.ask("CREATE EXTENSION IF NOT EXISTS timescaledb")
        return self

    def __exit__(self, *_):
        psql(URL, "-c", f"DROP DATABASE {self.name} WITH (FORCE)")

    def ask(self, query):
        return psql(self.url, "-v", "ON_ERROR_STOP=1", "-c", query)

    def load(self):
        psql(self.url, *[word for path in FILES for word in ("-f", path)])

    def shape(self):
        """Columns, constraints, indexes and views, without the days that rows have made."""
        return self.ask("""
            SELECT 'column', table_name, column_name, ordinal_position::text, data_type, is_nullable,
                column_default, generation_expression FROM information_schema.columns
                WHERE table_schema = 'cirislens' AND table_name !~ '_p[0-9]{8}$'
            UNION ALL SELECT 'view', viewname, definition, '', '', '', '', '' FROM pg_views
                WHERE schemaname = 'cirislens'
            UNION ALL SELECT 'index', indexname, indexdef, '', '', '', '', '' FROM pg_indexes
                WHERE schemaname = 'cirislens' AND tablename !~ '_p[0-9]{8}$'
            UNION ALL SELECT 'partition key', relname, pg_get_partkeydef(oid), '', '', '', '', ''
                FROM pg_class WHERE relname = 'covenant_traces' AND relkind IN ('p', 'r')
            UNION ALL SELECT 'version', version::text, name, '', '', '', '', ''
                FROM cirislens.cortex_index_versions
            ORDER BY 1, 2, 3, 4""")


class Place(kit.Place):
    def record(self, url):
        self.ok("key", "add", VECTORS / "trust.json")
        for path in sorted((VECTORS / "batches").glob("ingest-conflict-a-*.json")):
            self.run("record", path, "--db", url)


@test
def the_files_make_what_the_program_makes():
    with Database("files") as files, Database("program") as program, Place() as p:
        files.load()
        made = files.shape()
        files.load()
        assert files.shape() == made, "a second time changes nothing"
        p.record(program.url)
        assert made.splitlines() == program.shape().splitlines()
        assert "view|covenant_traces_hourly|" in made and "version|5|" in made


@test
def the_program_goes_on_with_them_and_queries_answer():
    with Database("queries") as db, Place() as p:
        db.load()
        p.record(db.url)
        count = int(db.ask("SELECT count(*) FROM cirislens.covenant_traces WHERE signature_verified = TRUE"))
        assert count > 0, "no trace is there"
        # The queries that docs/sql.md has from the specification, as they are written there.
        page = (ROOT / "docs/sql.md").read_text()
        part = page[page.index("## Queries from the trace format's specification"):page.index("## More queries")]
        queries = re.findall(r"^```sql(?: postgresql)?\n(.*?)^```", part, flags=re.M | re.S)
        assert len(queries) == 3, queries
        assert int(db.ask("SELECT count(*) FROM (%s) AS q" % queries[0].strip().rstrip(";"))) == count
        # The vectors are older than a day: one of them is moved into it for the second query.
        assert db.ask(queries[1]) == db.ask(queries[2]) == ""
        db.ask("UPDATE cirislens.covenant_traces SET timestamp = now() - INTERVAL '1 hour',"
               " idma_fragility_flag = TRUE WHERE id = (SELECT min(id) FROM cirislens.covenant_traces)")
        assert len(db.ask(queries[1]).splitlines()) == 1
        assert db.ask(queries[1]) == db.ask(queries[2])
        # What dashboards read.
        assert int(db.ask("SELECT sum(trace_count) FROM cirislens.covenant_traces_hourly")) == int(db.ask(
            "SELECT count(*) FROM cirislens.covenant_traces WHERE signature_verified AND primary_row"))
        assert int(db.ask("SELECT sum(traces_received_total) FROM cirislens.covenant_trace_metrics")) == int(
            db.ask("SELECT sum(traces_received) FROM cirislens.covenant_trace_batches"))
        alerts = json.loads(p.ok("alert", "list", "--db", db.url, "--json"))["alerts"]
        assert int(db.ask("SELECT count(*) FROM cirislens.coherence_ratchet_alerts")) == len(alerts) > 0


@test
def a_user_who_may_not_make_tables_feeds_those_that_are_there():
    """A database administrator loads the files, and the program's role owns them."""
    if TIMESCALE:
        skip("who owns the parts of a hypertable is TimescaleDB's")
    with Database("role") as db, Place() as p:
        role = db.name + "_role"
        psql(URL, "-c", f"CREATE ROLE {role} LOGIN")
        try:
            db.load()
            db.ask(f"ALTER SCHEMA cirislens OWNER TO {role}")
            db.ask("DO $$ DECLARE t record; BEGIN FOR t IN SELECT relname, relkind FROM pg_class WHERE"
                   " relnamespace = 'cirislens'::regnamespace AND relkind IN ('r', 'p', 'v') LOOP"
                   f" EXECUTE format('ALTER TABLE cirislens.%I OWNER TO {role}', t.relname);"
                   " END LOOP; END $$")
            p.record(re.sub(r"//[^@]*@", f"//{role}@", db.url))
            assert int(db.ask("SELECT count(*) FROM cirislens.covenant_traces")) > 0
        finally:
            db.ask(f"DROP OWNED BY {role} CASCADE")
            psql(URL, "-c", f"DROP ROLE {role}")


@test
def an_error_leaves_nothing_behind():
    with Database("error") as db:
        db.ask("CREATE SCHEMA cirislens")
        db.ask("CREATE TABLE cirislens.covenant_traces (x int)")
        psql(db.url, "-f", FILES[0], code=3)
        assert db.ask("SELECT to_regclass('cirislens.cortex_index_versions') IS NULL") == "t"


main()
