"""PostgreSQL for the tests of the fleet: a primary with a synchronous standby, made by hand on loopback,
and a proxy that cuts connections where a test wants it.

Nothing is synced to disk: processes are killed here, not machines.  Clusters of the system are not touched.
"""
import collections
import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time


def bin_folder():
    """The newest server that is installed, or None."""
    given = os.environ.get("CORTEX_PG_BIN")
    found = [given] if given else sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    found = [folder for folder in found if os.path.exists(f"{folder}/initdb")]
    return found[-1] if found else None


BIN = bin_folder()


def server_user():
    """PostgreSQL does not run as root: who runs it then, or None."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return None


USER = server_user()


def as_server(*command, check=True, timeout=90, env=None):
    """Runs a program of the server's as its user."""
    prefix = ["runuser", "-u", USER.pw_name, "--"] if USER else []
    done = subprocess.run([*prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, cwd="/", stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    if check and done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stdout[-2000:]}")
    return done


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


CONF = """
listen_addresses = '127.0.0.1'
fsync = off
full_page_writes = off
max_connections = 60
shared_buffers = 64MB
wal_level = replica
max_wal_senders = 10
wal_keep_size = 512MB
hot_standby = on
wal_receiver_timeout = 5s
wal_sender_timeout = 5s
wal_retrieve_retry_interval = 200ms
log_checkpoints = off
synchronous_commit = on
"""


class Server:
    """One server: a folder, a port, a postmaster."""

    def __init__(self, home, name):
        self.data = f"{home}/{name}"
        self.log = f"{home}/{name}.log"
        self.home = home
        self.port = free_port()

    def create(self, strict=True):
        as_server(f"{BIN}/initdb", "-D", self.data, "-U", "cortex", "-A", "trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync")
        self.write_conf(CONF + (f"synchronous_standby_names = '*'\n" if strict else ""))
        with open(f"{self.data}/pg_hba.conf", "a", encoding="utf-8") as f:
            f.write("host replication cortex 127.0.0.1/32 trust\n")

    def write_conf(self, text):
        with open(f"{self.data}/postgresql.conf", "a", encoding="utf-8") as f:
            f.write(f"{text}\nport = {self.port}\nunix_socket_directories = '{self.home}'\n")

    def copy_of(self, primary):
        """A standby of a running server."""
        as_server(f"{BIN}/pg_basebackup", "-D", self.data, "-h", "127.0.0.1", "-p", str(primary.port), "-U",
                  "cortex", "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.write_conf("")

    def start_first(self):
        """Another program may have taken the port meanwhile."""
        for _ in range(3):
            try:
                self.start()
                return
            except RuntimeError:
                self.port = free_port()
                self.write_conf("")
        self.start()

    def start(self, wait=True, env=None):
        as_server(f"{BIN}/pg_ctl", "-D", self.data, "-l", self.log, "-t", "60", "-w" if wait else "-W", "start", env=env)

    def stop(self, mode="fast", check=True):
        as_server(f"{BIN}/pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "60", "stop", check=check)

    def pid(self):
        """Of the postmaster that this object started, or None."""
        try:
            return int(pathlib.Path(f"{self.data}/postmaster.pid").read_text(encoding="utf-8").split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def kill(self):
        """The postmaster and its children, as by a crash: nothing is written any more."""
        pid = self.pid()
        if pid is None:
            return
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=subprocess.PIPE,
                                  text=True).stdout.split()
        for each in [pid, *map(int, children)]:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)
        try:
            os.unlink(f"{self.data}/postmaster.pid")
        except FileNotFoundError:
            pass

    def promote(self):
        as_server(f"{BIN}/pg_ctl", "-D", self.data, "-w", "-t", "60", "promote")

    def sql(self, text, check=True, timeout=60, database="cortex"):
        """The answer of psql, rows as lines, columns between tabs."""
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h",
                               "127.0.0.1", "-p", str(self.port), "-U", "cortex", "-d", database, "-c", text],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, env={**os.environ, "PGCONNECT_TIMEOUT": "10"})
        if check and done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.rstrip("\n")


class Proxy:
    """A port that leads to a server, which may change; cuts connections when it is told to.

    A statement with values begins with Bind, and COMMIT is a query of its own: no start of a connection is cut.
    "request": it is lost; "answer": it arrives, its answer is lost.  "hold": the network is silent from the COMMIT on,
    and neither side hears of it, until `release`.
    """

    KINDS = ("request", "answer", "commit-request", "commit-answer", "commit-hold")

    def __init__(self, server):
        self.server = server
        self.armed = set()  # of KINDS: the next one
        self.cuts = collections.Counter()  # those that happened
        self.before_cut = lambda: None
        self.skips = 0  # statements that pass before something is cut
        self.released = threading.Event()
        self.blocks = False  # a cut is the end of the network
        self.blocked = False  # as a network that is gone: nothing new passes
        self.delay = 0.0  # seconds, of each piece that passes
        self.lock = threading.Lock()
        self.closed = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
                upstream = self.reach()
                if upstream is None:
                    client.close()
                    self.refuse()
                    continue
            except OSError:
                continue
            threading.Thread(target=self.connect, args=(client, upstream), daemon=True).start()

    def reach(self):
        if self.blocked:
            return None
        try:
            return socket.create_connection(("127.0.0.1", self.server.port), timeout=5)
        except OSError:
            return None

    def refuse(self):
        """As the system of a machine whose server is down does, until it is up."""
        self.listener.close()
        while not self.closed and (probe := self.reach()) is None:
            time.sleep(0.05)
        if not self.closed:
            probe.close()
            self.listener = socket.create_server(("127.0.0.1", self.port))

    def connect(self, client, upstream):
        upstream.settimeout(None)
        state = {"lose": False}
        threading.Thread(target=self.pump, args=(upstream, client, state, False), daemon=True).start()
        self.pump(client, upstream, state, True)

    def take_cut(self, kind):
        with self.lock:
            if kind not in self.armed:
                return False
            self.armed.discard(kind)
            self.cuts[kind] += 1
        self.before_cut()
        return True

    def release(self):
        """Ends what is held; later holds end by themselves."""
        self.released.set()
        self.released = threading.Event()

    def passes(self, data, state):
        """Whether a request goes on to the server."""
        is_commit = data[:1] == b"Q" and data[5:11] == b"COMMIT"
        if data[:1] != b"B" and not is_commit:
            return True
        if self.skips:
            self.skips -= 1
            return True
        kind = "commit-" if is_commit else ""
        if is_commit and self.take_cut("commit-hold"):
            self.released.wait(30)
            return False
        if self.take_cut(kind + "request"):
            self.blocked = self.blocks
            return False
        state["lose"] = state["lose"] or self.take_cut(kind + "answer")
        return True

    def pump(self, source, target, state, is_request):
        try:
            while data := source.recv(1 << 16):
                if is_request and not self.passes(data, state):
                    break
                if not is_request and state["lose"]:
                    self.blocked = self.blocks
                    break
                if self.delay:
                    time.sleep(self.delay)
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def close(self):
        self.closed = True
        self.released.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()


class Cluster:
    """A primary, a synchronous standby, and a proxy before each."""

    def __init__(self, standby=True):
        self.home = tempfile.mkdtemp(prefix="cortex-fleet.")
        os.chmod(self.home, 0o755)
        if USER:
            os.chown(self.home, USER.pw_uid, USER.pw_gid)
        self.made = 0
        self.servers = []
        self.proxies = []
        try:
            self.open(standby)
        except BaseException:
            self.close()
            raise

    def open(self, standby):
        self.primary = self.new_server()
        self.primary.create(strict=standby)
        self.primary.start_first()
        as_server(f"{BIN}/createdb", "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "cortex", "cortex") \
            if not standby else self.create_database()
        self.standby = None
        if standby:
            self.add_standby()
        self.proxies = [Proxy(self.primary), Proxy(self.standby or self.primary)]

    def create_database(self):
        """Without waiting for a standby that is not there yet."""
        subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "cortex", "-d",
                        "postgres", "-c", "SET synchronous_commit = local", "-c", "CREATE DATABASE cortex"],
                       check=True, stdin=subprocess.DEVNULL)

    def new_server(self):
        self.made += 1
        server = Server(self.home, f"s{self.made}")
        self.servers.append(server)
        return server

    def add_standby(self):
        self.standby = self.new_server()
        self.standby.copy_of(self.primary)
        self.standby.start_first()
        self.wait_for_standby()

    def bring_standby_back(self):
        """After a test that failed without it: the next one must not fail for that."""
        if self.standby is not None and self.standby.pid() is None:
            self.standby.start()
            self.wait_for_standby()

    def wait_for_standby(self):
        for _ in range(200):
            if self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', "
                                "'quorum')") == "1":
                return
            time.sleep(0.05)
        raise RuntimeError("the standby does not follow")

    def url(self):
        hosts = ",".join(f"127.0.0.1:{p.port}" for p in self.proxies)
        return f"postgresql://cortex@{hosts}/cortex?target_session_attrs=read-write&connect_timeout=2"

    def arm(self, kind):
        """Of a connection to the primary; False when one of that kind is still to come."""
        proxy = next(proxy for proxy in self.proxies if proxy.server is self.primary)
        if kind in proxy.armed:
            return False
        proxy.armed.add(kind)
        return True

    def disarm(self):
        for proxy in self.proxies:
            proxy.armed.clear()

    def failover(self):
        """The primary is lost; the standby becomes it, and gets a standby of its own."""
        lost = self.primary
        lost.kill()
        begun = time.monotonic()
        self.standby.promote()
        took = time.monotonic() - begun
        self.primary = self.standby
        shutil.rmtree(lost.data, ignore_errors=True)
        self.servers.remove(lost)
        index = 0 if self.proxies[0].server is lost else 1
        self.add_standby()
        self.proxies[index].server = self.standby
        return took

    def close(self):
        for proxy in self.proxies:
            proxy.close()
        for server in self.servers:
            server.stop("immediate", check=False)
        shutil.rmtree(self.home, ignore_errors=True)
