#!/usr/bin/env python3
"""fleet_scale.py PROGRAM [--nodes 1,2,4,8,16] [--records N] [--seconds S] [--rounds R] [--rtt MS,MS] [--standby]
[--no-fsync] [--json FILE] - throughput of a fleet by how many nodes write (PERFORMANCE.md, F2).

PROGRAM is build/release/bin/bench_fleet.  Each node is a process with a part of its own, and commits N records of
4 KB (default 16) one after the other for S seconds (10), R times (3; the best counts, all are in FILE).  Between nodes
and database lies a network of 10 to 20 ms there and back: a process of this script that passes on each piece when
its time has come.

For each number of nodes: records a second, and what a record costs: CPU of the nodes and of the server, bytes of
write-ahead log, syncs, rows of parts that were locked, statements that waited for a lock of another.  Then the
universal scalability law, X(N) = X(1) N / (1 + s (N-1) + k N (N-1)), by least squares of N/X, each weighted by 1/(N/X):
s is what nodes wait for each other, k what they cost each other.

fleet_scale.py --selftest tries the fit on values that are known.  A PostgreSQL of its own on loopback.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import queue
import random
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/fleet"))
import cluster as clusters  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
TARGET = 0.9


# --- the network ------------------------------------------------------------------------------------

def pass_on(source, target, low, high):
    """Each piece leaves half of the time there and back after it came, and none before an earlier one."""
    pieces = queue.Queue()

    def send():
        due = 0.0
        while (item := pieces.get()) is not None:
            due = max(due, item[0])
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                target.sendall(item[1])
            except OSError:
                return
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    threading.Thread(target=send, daemon=True).start()
    try:
        while data := source.recv(1 << 20):
            pieces.put((time.monotonic() + random.uniform(low, high) / 2000, data))
    except OSError:
        pass
    pieces.put(None)


def run_network(port, low, high, pipe):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    pipe.send(listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pair in ((client, server), (server, client)):
            threading.Thread(target=pass_on, args=(*pair, low, high), daemon=True).start()


# --- the law ----------------------------------------------------------------------------------------

def solve(matrix, right):
    """A small system of equations, by elimination with the largest pivot."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-15:
            return None
        for r in range(size):
            if r != i:
                by = rows[r][i] / rows[i][i]
                rows[r] = [x - by * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(points):
    """(one, s, k) of [(N, X)]: N/X = a + b (N-1) + c N (N-1), with a = 1/one, b = s/one, c = k/one."""
    used = [((1.0, n - 1.0, n * (n - 1.0)), n / x, (x / n) ** 2) for n, x in points]
    matrix = [[sum(w * f[i] * f[j] for f, _, w in used) for j in range(3)] for i in range(3)]
    right = [sum(w * f[i] * y for f, y, w in used) for i in range(3)]
    found = solve(matrix, right) if len(points) >= 3 else None
    return None if found is None or found[0] <= 0 else (1 / found[0], found[1] / found[0], found[2] / found[0])


def selftest():
    for one, s, k in ((1000.0, 0.05, 0.001), (70.0, 0.0, 0.0), (5.0, 0.3, 0.02)):
        got = fit([(n, one * n / (1 + s * (n - 1) + k * n * (n - 1))) for n in (1, 2, 4, 8, 16)])
        assert all(abs(a - b) < 1e-6 * max(1.0, b) for a, b in zip(got, (one, s, k))), (got, one, s, k)
    assert fit([(1, 1.0), (2, 2.0)]) is None
    print("the fit finds what is known")


# --- what the server did ----------------------------------------------------------------------------

def cpu_of_server(pid, gone):
    """CPU seconds of the postmaster and its children; `gone` keeps those of children that ended."""
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    for each in [pid, *map(int, done.stdout.split())]:
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            gone[each] = (int(fields[11]) + int(fields[12])) / TICK
        except (OSError, IndexError):
            pass
    return sum(gone.values())


class Watch(threading.Thread):
    """How many statements wait for a lock of another, looked at 20 times a second."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.waits, self.looks, self.ends = server, collections.Counter(), 0, False

    def run(self):
        sql = "SELECT coalesce(string_agg(wait_event, ' '), '') FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        shell = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", str(self.server.port), "-U", "cortex",
                                  "cortex"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while not self.ends:
            shell.stdin.write(sql + ";\n")
            shell.stdin.flush()
            self.waits.update(shell.stdout.readline().split())
            self.looks += 1
            time.sleep(0.05)
        shell.stdin.close()
        shell.wait()


def counters(server):
    wal = ("SELECT wal_bytes::bigint, wal_sync, wal_records FROM pg_stat_wal" if int(server.sql("SHOW server_version_num")) < 180000
           else "SELECT w.wal_bytes::bigint, (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'), w.wal_records FROM pg_stat_wal w")
    time.sleep(1.2)  # a backend tells of itself once a second
    bytes_, syncs, records = map(int, server.sql(wal).split("\t"))
    parts = int(server.sql("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'cx_part'"))
    return {"wal_bytes": bytes_, "syncs": syncs, "wal_records": records, "part_rows": parts}


# --- one size ---------------------------------------------------------------------------------------

def measure(given, primary, port, nodes, tag):
    env = {**os.environ, "CORTEX_TEST_PG": f"postgresql://cortex@127.0.0.1:{port}/cortex"}
    started = [subprocess.Popen([given.program, "node", f"{tag}-{i}", str(given.records), str(given.seconds)], env=env,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for i in range(nodes)]
    for node in started:
        if node.stdout.readline() != "ready\n":
            sys.exit("a node did not start")
    primary.sql("CHECKPOINT")
    before, gone, watch = counters(primary), {}, Watch(primary)
    cpu = cpu_of_server(primary.pid(), gone)
    watch.start()
    for node in started:
        node.stdin.write("\n")
        node.stdin.flush()
    done = [json.loads(node.stdout.readline()) for node in started]
    cpu = cpu_of_server(primary.pid(), gone) - cpu
    watch.ends = True
    watch.join()
    for node in started:
        node.wait()
    after = counters(primary)
    records = sum(d["commits"] for d in done) * given.records
    commits = records / given.records
    return {"nodes": nodes, "records_s": sum(d["commits"] * given.records / d["seconds"] for d in done),
            "commits": commits, "node_cpu_ms": sum(d["cpu"] for d in done) * 1000 / records,
            "server_cpu_ms": cpu * 1000 / records, "wal_bytes": (after["wal_bytes"] - before["wal_bytes"]) / records,
            "syncs_a_commit": (after["syncs"] - before["syncs"]) / commits,
            "part_rows_a_commit": (after["part_rows"] - before["part_rows"]) / commits,
            "lock_waits": {name: count / max(1, watch.looks) for name, count in watch.waits.items()}, "load": os.getloadavg()[0]}


def show(row, one):
    print(f"{row['nodes']:5} {row['records_s']:10.0f} {row['records_s'] / (row['nodes'] * one):9.2f} {row['node_cpu_ms']:11.3f} "
          f"{row['server_cpu_ms']:13.3f} {row['wal_bytes']:9.0f} {row['syncs_a_commit']:8.2f} {row['part_rows_a_commit']:9.2f} "
          f"{row['load']:6.1f}  " + " ".join(f"{name} {count:.2f}" for name, count in row["lock_waits"].items()), flush=True)


def run_sizes(given, primary, port):
    best = []
    print("nodes  records/s  of N x 1  node CPU ms  server CPU ms  WAL bytes    syncs  row locks   load  lock waits")
    print("                            (a record)     (a record) (a record)  (both a commit)          (at once)")
    rows = []
    for nodes in given.nodes:
        tries = [measure(given, primary, port, nodes, f"n{nodes}-{i}") for i in range(given.rounds)]
        rows += tries
        best.append(max(tries, key=lambda r: r["records_s"]))
        show(best[-1], best[0]["records_s"] / best[0]["nodes"])
    return best, rows


def main():
    reader = argparse.ArgumentParser(usage=__doc__)
    reader.add_argument("program", nargs="?")
    reader.add_argument("--nodes", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2, 4, 8, 16])
    reader.add_argument("--records", type=int, default=16)
    reader.add_argument("--seconds", type=float, default=10)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--rtt", type=lambda t: tuple(float(n) for n in t.split(",")), default=(10.0, 20.0))
    reader.add_argument("--standby", action="store_true")
    reader.add_argument("--no-fsync", action="store_true")
    reader.add_argument("--selftest", action="store_true")
    reader.add_argument("--json")
    given = reader.parse_args()
    if given.selftest:
        return selftest()
    if given.program is None or clusters.BIN is None:
        sys.exit("expected the path of bench_fleet, and a PostgreSQL server that is installed")
    if not given.no_fsync:
        clusters.CONF = clusters.CONF.replace("fsync = off", "fsync = on").replace("full_page_writes = off", "full_page_writes = on")
    clusters.CONF += "max_wal_size = 4GB\n"
    fleet = clusters.Cluster(standby=given.standby)
    near, far = multiprocessing.Pipe()
    network = multiprocessing.Process(target=run_network, args=(fleet.primary.port, *given.rtt, far), daemon=True)
    try:
        cortex = pathlib.Path(given.program).with_name("cortex")
        subprocess.run([cortex, "fleet", "init", "--database", f"postgresql://cortex@127.0.0.1:{fleet.primary.port}/cortex",
                        *([] if given.standby else ["--no-standby"])], check=True, stdout=subprocess.DEVNULL)
        network.start()
        best, rows = run_sizes(given, fleet.primary, near.recv())
    finally:
        network.terminate()
        fleet.close()
    found = fit([(r["nodes"], r["records_s"]) for r in best])
    if found is None:
        print("too few sizes for the law")
    else:
        print(f"USL: one node {found[0]:.0f} records/s, s = {found[1]:.4f}, k = {found[2]:.5f}")
    last = best[-1]["records_s"] / best[-1]["nodes"] / (best[0]["records_s"] / best[0]["nodes"])
    print(f"F2 {best[-1]['nodes']} nodes / {best[-1]['nodes']} x one: {last:.2f} (target {TARGET}): {'ok' if last >= TARGET else 'below'}")
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps({"rows": rows, "law": found, "rtt_ms": given.rtt, "records": given.records,
                                                        "processors": os.cpu_count()}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
