"""PostgreSQL under Patroni with etcd, and HAProxy before it, all on loopback and in one temporary folder.

Each program is started in the foreground by this module, is stopped by its process id, and is none of the system's.
Settings that all members share are those of packaging/patroni/dcs.yaml, and HAProxy's are packaging/patroni/haproxy.cfg:
what the documentation recommends is what is tried.  Nothing is synced to disk: processes are killed here, not machines.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import cluster as clusters

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging" / "patroni"
STALE, STALE_S = "Synchronous replication key updated by someone else", 40
PROGRAMS = {"patroni": "patroni", "etcd": "etcd-server", "etcdctl": "etcd-client", "haproxy": "haproxy", "psql": "postgresql-client"}

MEMBER = """
scope: cortex
name: {name}
restapi:
  listen: 127.0.0.1:{rest}
  connect_address: 127.0.0.1:{rest}
etcd3:
  host: 127.0.0.1:{etcd}
bootstrap:
  dcs:
{dcs}
  initdb:
    - encoding: UTF8
    - locale: C.UTF-8
    - data-checksums
    - no-sync
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {data}
  bin_dir: {bin}
  pgpass: {home}/{name}.pgpass
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  basebackup:
    - checkpoint: fast
    - no-sync
  authentication:
    superuser:
      username: cortex
    replication:
      username: replicator
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
  parameters:
    fsync: "off"
    shared_buffers: 64MB
    unix_socket_directories: {home}
"""


def missing():
    """Why this cannot run here, or None."""
    if clusters.BIN is None:
        return "no PostgreSQL server is installed"
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program, path=PATH) is None]
    return f"not installed: {', '.join(packages)} (scripts/install-deps.sh fleet)" if packages else None


def version():
    """Of Patroni, as numbers."""
    said = subprocess.run(["patroni", "--version"], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "PATH": PATH}).stdout
    return tuple(int(number) for number in re.findall("[0-9]+", said)[:3])


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


class Program:
    """A process in the foreground, by the server's user."""

    def __init__(self, home, name):
        self.home, self.name = home, name
        self.log = f"{home}/{name}.log"
        self.process = None

    def run(self, *command, env=None):
        as_user = {"user": clusters.USER.pw_uid, "group": clusters.USER.pw_gid, "extra_groups": []} if clusters.USER else {}
        base = {"PATH": PATH, "HOME": self.home, "LC_ALL": "C.UTF-8"}
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.home,
                                            env={**base, **(env or {})}, start_new_session=True, **as_user)

    def last_lines(self, count):
        try:
            lines = pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-count:])

    def running(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if self.running():
            self.process.send_signal(number)

    def end(self, number=signal.SIGTERM, seconds=30):
        """SIGKILL after `seconds`."""
        if self.process is None:
            return
        self.send(signal.SIGCONT)
        self.send(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Etcd(Program):
    def __init__(self, home):
        super().__init__(home, "etcd")
        self.port, self.peer = clusters.free_port(), clusters.free_port()

    def start(self):
        url, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer}"
        self.run("etcd", "--name", "e1", "--data-dir", f"{self.home}/etcd", "--listen-client-urls", url,
                 "--advertise-client-urls", url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"e1={peer}", "--log-level", "warn")

    def get(self, key):
        return subprocess.run(["etcdctl", "--endpoints", f"127.0.0.1:{self.port}", "get", "--print-value-only", key],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=20,
                              stdin=subprocess.DEVNULL, env={**os.environ, "ETCDCTL_API": "3"}).stdout.strip()


class Proxy(Program):
    """HAProxy with the configuration that the documentation recommends."""

    def __init__(self, home, members):
        super().__init__(home, "haproxy")
        self.port = clusters.free_port()
        self.env = {"CORTEX_DB_LISTEN": f"127.0.0.1:{self.port}"}
        for n, member in enumerate(members, 1):
            self.env.update({f"CORTEX_DB{n}": f"127.0.0.1:{member.port}", f"CORTEX_DB{n}_HOST": "127.0.0.1",
                             f"CORTEX_DB{n}_REST": str(member.rest)})

    def start(self):
        self.run("haproxy", "-db", "-f", str(PACKAGING / "haproxy.cfg"), env=self.env)


class Member(clusters.Server):
    """A server, and the Patroni that starts and stops it."""

    def __init__(self, home, name, etcd, dcs):
        super().__init__(home, name)
        self.name, self.rest = name, clusters.free_port()
        self.config = f"{home}/{name}.yml"
        indented = "".join(f"    {line}\n" for line in dcs.splitlines())
        pathlib.Path(self.config).write_text(
            MEMBER.format(name=name, rest=self.rest, etcd=etcd.port, dcs=indented, port=self.port, data=self.data,
                          bin=clusters.BIN, home=home), encoding="utf-8")
        self.patroni = Program(home, f"patroni-{name}")

    def start_patroni(self):
        self.patroni.run("patroni", self.config, env={"PATRONI_LOG_LEVEL": "INFO"})

    def ask(self, method, path, body=None, timeout=3):
        """(status, text) of its REST interface; status 0: no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def processes(self):
        """The postmaster and its children."""
        pid = self.pid()
        if pid is None or not os.path.exists(f"/proc/{pid}"):
            return []
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True,
                                  check=False).stdout.split()
        return [pid, *map(int, children)]

    def signal_all(self, number):
        """Patroni and all processes of the server, as when the machine stands still or goes on."""
        self.patroni.send(number)
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def lose(self):
        """kill -9 of Patroni and of all processes of the server."""
        self.patroni.end(signal.SIGKILL)
        self.kill_server()

    def kill_server(self):
        """kill -9 of the postmaster and its children; their pid file stays, as after a crash."""
        pids = self.processes()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while any(os.path.exists(f"/proc/{pid}") for pid in pids[:1]):
            time.sleep(0.01)


class Cluster:
    """etcd, three members with a synchronous standby, and HAProxy."""

    def __init__(self, members=3):
        self.home = tempfile.mkdtemp(prefix="cortex-patroni.")
        os.chmod(self.home, 0o755)
        if clusters.USER:
            os.chown(self.home, clusters.USER.pw_uid, clusters.USER.pw_gid)
        self.restarts_of_stale = 0
        self.etcd = Etcd(self.home)
        dcs = (PACKAGING / "dcs.yaml").read_text(encoding="utf-8")
        self.members = [Member(self.home, f"db{n + 1}", self.etcd, dcs) for n in range(members)]
        self.proxy = Proxy(self.home, self.members)
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def open(self):
        self.etcd.start()
        self.members[0].start_patroni()
        self.wait(lambda: self.leader() is not None, "a first primary")
        for member in self.members[1:]:
            member.start_patroni()
        self.wait_healthy()
        self.proxy.start()
        # It takes all servers for primaries until it has asked them.
        self.wait(lambda: self.server_by_proxy() == "f", "HAProxy leads to the primary")
        self.primary.sql("CREATE DATABASE cortex", database="postgres")

    def wait(self, condition, what, seconds=180):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"waited {seconds} s for {what}: {self.state()}\n{self.tails()}")
            time.sleep(0.1)

    def server_by_proxy(self):
        """Whether the server that HAProxy leads to is a standby: t, f, or nothing."""
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", str(self.proxy.port), "-U", "cortex",
                               "-d", "postgres", "-c", "SELECT pg_is_in_recovery()"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, check=False,
                              env={**os.environ, "PGCONNECT_TIMEOUT": "5"}).stdout.strip()

    def programs(self):
        return [self.etcd, self.proxy, *(member.patroni for member in self.members)]

    def tails(self):
        """The last words of each program."""
        return "\n".join(f"{program.name}:\n{program.last_lines(12)}" for program in self.programs())

    def leader(self):
        """The member that says that it is the primary and has the lock, or None."""
        for member in self.members:
            if member.ask("GET", "/primary")[0] == 200:
                return member
        return None

    @property
    def primary(self):
        self.wait(lambda: self.leader() is not None, "a primary")
        return self.leader()

    def state(self):
        """What Patroni says of its members."""
        for member in self.members:
            status, text = member.ask("GET", "/cluster")
            if status == 200:
                return [(m["name"], m["role"], m["state"]) for m in json.loads(text)["members"]]
        return []

    def synchronous(self):
        """The member for which commits wait, or None."""
        names = [name for name, role, _ in self.state() if role == "sync_standby"]
        return next((member for member in self.members if member.name in names), None)

    def healthy(self):
        """One primary; all others follow it, and one of them synchronously."""
        state, leader = self.state(), self.leader()
        roles = sorted(role for _, role, _ in state)
        if leader is None or len(state) != len(self.members) or roles.count("leader") != 1 or \
                roles.count("sync_standby") != 1 or any(what not in ("running", "streaming") for _, _, what in state):
            return False
        try:
            text = leader.sql("SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) FROM "
                              "pg_stat_replication WHERE state = 'streaming'", database="postgres", timeout=10)
        except (RuntimeError, subprocess.TimeoutExpired):
            return False
        return text == f"{len(self.members) - 1}\t1"

    def wait_healthy(self):
        stale_at = time.monotonic() + STALE_S

        def healthy():
            nonlocal stale_at
            if self.healthy():
                return True
            if time.monotonic() > stale_at and self.restart_stale():
                self.restarts_of_stale += 1
                stale_at = time.monotonic() + STALE_S
            return False

        self.wait(healthy, "one primary with all its standbys", 240)

    def restart_stale(self):
        """Patroni before 3.1 can keep an old copy of a key of etcd after it stood still, and then never names a synchronous
        standby again (its pull request 2783): the documentation says to start it again.  The server is not touched."""
        leader = self.leader()
        if leader is None or leader.patroni.last_lines(4).count(STALE) == 0:
            return False
        leader.patroni.end(signal.SIGKILL)
        leader.start_patroni()
        return True

    def configure(self, **settings):
        """Changes what all members share; None takes a setting out."""
        status, text = self.primary.ask("PATCH", "/config", settings)
        if status != 200:
            raise RuntimeError(f"PATCH /config: {status} {text}")
        for member in self.members:
            self.wait(lambda: all(self.setting(member, name) == value for name, value in settings.items()), "the settings")

    def setting(self, member, name):
        status, text = member.ask("GET", "/config")
        return json.loads(text).get(name) if status == 200 else self

    def url_by_proxy(self):
        return f"postgresql://cortex@127.0.0.1:{self.proxy.port}/cortex?target_session_attrs=read-write&connect_timeout=2"

    def url_of_all(self):
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://cortex@{hosts}/cortex?target_session_attrs=read-write&connect_timeout=2"

    def close(self):
        self.proxy.end()
        for member in self.members:
            member.signal_all(signal.SIGCONT)
            member.patroni.end()
        for member in self.members:  # of a Patroni that was killed
            member.kill_server()
        self.etcd.end()
        shutil.rmtree(self.home, ignore_errors=True)
