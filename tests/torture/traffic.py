"""Clients of the recorder: signed traces through the program and through the server, each sent until it is
acknowledged; questions over HTTP; a reader of the feed that goes on where it was; imports."""
import http.client
import json
import time

from work import BUSY, Client, Reader

API = "/api/v1/covenant"


class Recorder(Client):
    """One agent's traces, in order; what was not acknowledged is sent again, as it was."""

    actor = "nobody"

    def __init__(self, world, server, name, seed, agent):
        super().__init__(world, server, name, seed)
        self.agent, self.first, self.waiting = agent, 0, None

    def operations(self):
        return [(self.through_the_server, 6), (self.through_the_program, 2)]

    def batch(self):
        """(number, body) of what is to be sent next."""
        if self.waiting is None:
            count = self.rng.choice((1, 1, 3, 10, 40))
            body = self.world.traces(self.agent, self.first, count)
            number = self.oplog.attempt("traces", agent=self.agent, first=self.first, count=count)
            self.first += count
            self.waiting = (number, body)
        return self.waiting

    def acknowledged(self, number, answer):
        bad = [r for r in answer["results"] if r["status"] not in ("stored", "duplicate")]
        if bad or answer["accepted"] != answer["received"]:
            self.world.defect(f"a good trace was not taken: {json.dumps(answer)[:2000]}")
        self.oplog.note(n=number, done=True, traces=[
            [r["trace_id"], r["entry"]["actor"], r["entry"]["seq"], r["content_sha256"]]
            for r in answer["results"]])
        self.waiting = None

    def through_the_server(self):
        number, body = self.batch()
        began = time.monotonic()
        answer = self.server.ask("POST", API + "/events", body)
        if answer is None:
            return
        status, text = answer
        if status == 200:
            self.acknowledged(number, json.loads(text))
        elif status == 503:
            self.world.error("POST events", "503")
            if not self.world.excused(began, time.monotonic()) and not self.server.failed:
                self.world.defect(f"503 while no fault is injected: {text[:1000]!r}")
            self.server.failed = True  # it has to be started again
        else:
            self.world.defect(f"POST events: {status} {text[:1000]!r}")

    def through_the_program(self):
        number, body = self.batch()
        done = self.cortex("record", "-", "--json", stdin=body)
        if done.code == 0:
            self.acknowledged(number, json.loads(done.out.splitlines()[-1]))
        elif done.code == 3:
            self.world.error("record", done.tag())
            if done.tag() not in BUSY and not self.world.poisoned(done.tag()) and \
                    not self.world.excused(done.began, done.ended):
                self.world.defect("record while no fault is injected: " + done.said())
        elif not done.killed:
            self.world.defect("record: " + done.said())


class Asker(Reader):
    """Questions over HTTP, and stateless commands."""

    def operations(self):
        return [(self.roots_over_http, 6), (self.consistency, 4), (self.entry, 4), (self.traces, 4),
                (self.about_an_agent, 3), (self.metrics, 1), (self.imports, 2), (self.command_gate, 1)]

    def get(self, path, accepted=(200, 404)):
        began = time.monotonic()
        answer = self.server.ask("GET", path)
        if answer is None:
            return None
        status, body = answer
        if status == 503 and (self.server.failed or self.world.excused(began, time.monotonic()) or
                              b"index" in body):
            self.world.error("GET", "503")
            return None
        if status == 500 and self.world.excused(began, time.monotonic()):
            self.world.error("GET", "500")
            return None
        if status not in accepted:
            self.world.defect(f"GET {path}: {status} {body[:1000]!r}")
        return body if status == 200 else None

    def roots_over_http(self):
        body = self.get("/api/v1/roots")
        for row in json.loads(body)["actors"] if body else ():
            self.oplog.note(root=row["journal_root"], size=row["journal_size"], actor=row["actor"])

    def an_actor(self):
        body = self.get("/api/v1/roots")
        rows = [r for r in json.loads(body)["actors"] if r["journal_size"] > 1] if body else []
        return self.rng.choice(rows) if rows else None

    def consistency(self):
        row = self.an_actor()
        if row is None:
            return
        old = self.rng.randrange(1, row["journal_size"])
        body = self.get(f"/api/v1/proofs/consistency?actor={row['actor'].replace(':', '%3A')}"
                        f"&from={old}&to={row['journal_size']}")
        if body:
            self.keep_proof(json.loads(body), row, "consistency", old)

    def entry(self):
        row = self.an_actor()
        if row is None:
            return
        seq = self.rng.randrange(row["journal_size"])
        body = self.get(f"/api/v1/proofs/entry?actor={row['actor'].replace(':', '%3A')}&seq={seq}"
                        f"&size={row['journal_size']}")
        if body:
            self.keep_proof(json.loads(body), row, "inclusion", seq)

    def keep_proof(self, answer, row, what, about):
        """Checked against the tree that is made anew at the end."""
        self.oplog.note(root=row["journal_root"], size=row["journal_size"], actor=row["actor"], proof=what,
                       about=about, answer={k: v for k, v in answer.items() if k != "proof"})

    def traces(self):
        self.get(API + f"/traces?limit={self.rng.choice((1, 50, 1000))}&verified=any")

    def about_an_agent(self):
        agent = self.rng.choice(self.world.agents)
        self.get(self.rng.choice((
            f"{API}/chain/{agent}", f"{API}/capacity/{agent}", f"{API}/wakeup/{agent}", f"{API}/alerts",
            f"/api/v1/lattice/agent/{agent}/heads", f"/api/v1/lattice/agent/{agent}/verify?strict=1",
            f"/api/v1/lattice/agent/{agent}/state?node=%40agent%2F{agent}")), (200, 404, 409))

    def metrics(self):
        for path in ("/metrics", "/healthz", "/openapi.json"):
            self.get(path, (200,))

    def imports(self):
        """The output appears only when all of it is there; then it holds."""
        name, file = self.rng.choice(self.world.imports)
        number = self.oplog.attempt("import", format=name)
        out = self.world.disk / f"import-{number}.jsonl"
        done = self.cortex("import", name, file, "-o", out, "--json")
        self.good(done, accepted=(0, 1))
        if out.exists():
            verified = self.world.run("lattice", "verify", "--content-ids", "--require-seals", out, bad=False)
            if verified.code != 0:
                self.world.defect(f"import of {file}: " + verified.said())
            out.unlink()
        elif done.code in (0, 1):
            self.world.defect("no output: " + done.said())

    def command_gate(self):
        words, code = self.rng.choice((("git status", 0), ("rm -rf /", 4), ("curl x", 4)))
        done = self.cortex("gate", "command", "--pack", "medium", "--json", words, cwd=self.world.repo)
        if not done.killed and done.code == 0 and code == 4:
            self.world.defect("the gate let it through: " + done.said())
        self.good(done, accepted=(0, 4))


class Follower(Client):
    """Reads the feed over all lives of the server; what is stored comes exactly once."""

    def __init__(self, world, server, name, seed):
        super().__init__(world, server, name, seed)
        self.last, self.seen = "0.0", {}

    def run(self):
        while not self.world.stopping.is_set():
            port = self.server.port
            if port is not None:
                try:
                    self.follow(port)
                except (OSError, http.client.HTTPException, ValueError):
                    pass
            time.sleep(0.2)

    def follow(self, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/api/v1/feed", headers={
                "Authorization": "Bearer " + self.server.token, "Last-Event-ID": self.last})
            response = connection.getresponse()
            if response.status != 200:
                return
            event = {}
            while not self.world.stopping.is_set():
                line = response.readline().decode()
                if not line.endswith("\n"):
                    return  # cut in the middle: this event comes again
                line = line.rstrip("\n")
                if line == "" and event:
                    self.take(event)
                    event = {}
                elif line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    event[name] = value
        finally:
            connection.close()

    def take(self, event):
        if "id" not in event or "data" not in event:
            return
        self.last = event["id"]
        data = json.loads(event["data"])
        if "trace_id" in data:
            key = (data["trace_id"], event.get("event"))
            self.seen[key] = self.seen.get(key, 0) + 1
