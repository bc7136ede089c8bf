#!/usr/bin/env python3
"""packaging/container and packaging/kubernetes: valid by their schemas, without rights that they do not need, and
really started where podman and the image are.

The schemas are of npm (scripts/npm-ci.sh deploy).  Closes with `N passed, N failed, N skipped`.
"""
import functools
import json
import os
import pathlib
import shutil
import ssl
import time
import urllib.request

from image_kit import VERSION, Podman
from kit import TESTS, Folder, check, clean_env, main, run, skip, test

ROOT = TESTS.parent
KUBERNETES = ROOT / "packaging/kubernetes"
FLEET = ROOT / "packaging/kubernetes-fleet"
COMPOSE = ROOT / "packaging/container/compose.yaml"
FULL = f"cortex-{VERSION}-image-full.oci.tar"
NODE = shutil.which("node")


@functools.cache
def read(*files):
    """What tests/deploy/check.mjs says of each document."""
    if NODE is None or not (TESTS / "deploy/node_modules/.cortex-stamp").exists():
        skip("the schemas are not here (scripts/npm-ci.sh deploy)")
    done = run(NODE, TESTS / "deploy/check.mjs", *files)
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def manifests(folder=KUBERNETES):
    found = {}
    for one in read(*sorted(folder.glob("*.yaml"))):
        check(one["errors"] == [], one["file"], one["errors"])
        found.setdefault(one["kind"], []).append(one["object"])
    return found


def compose():
    one, = read(COMPOSE)
    check(one["errors"] == [], one["errors"])
    return one["object"]


@test
def every_manifest_fits_its_schema():
    found = manifests()
    check(set(found) == {"PersistentVolumeClaim", "Job", "Kustomization", "NetworkPolicy", "Service", "ServiceAccount",
                         "StatefulSet"}, found.keys())
    listed = found["Kustomization"][0]["resources"]
    there = {path.name for path in KUBERNETES.glob("*.yaml")}
    check(set(listed) == there - {"kustomization.yaml", "init.yaml"}, listed)


@test
def every_manifest_of_a_fleet_fits_its_schema():
    found = manifests(FLEET)
    check(set(found) == {"Deployment", "Job", "Kustomization", "NetworkPolicy", "Service", "ServiceAccount"}, found.keys())
    listed = found["Kustomization"][0]["resources"]
    there = {path.name for path in FLEET.glob("*.yaml")}
    check(set(listed) == there - {"kustomization.yaml", "init.yaml"}, listed)


@test
def what_does_not_fit_is_found():
    with Folder() as folder:
        wrong = []
        for source, changes in (
                (KUBERNETES / "statefulset.yaml", (
                    ("readOnlyRootFilesystem", "readOnlyRootFileSystem"), ("replicas: 1", "replicas: one"),
                    ("  serviceName: cortex\n", "  serviceNam: cortex\n"), ("kind: StatefulSet", "kind: StatefulSets"),
                    ("apiVersion: apps/v1", "apiVersion: apps/v7"), ("scheme: HTTPS", "scheme: [TLS]"),
                    ("memory: 2Gi", "memory: two"), ("mountPath: /var/lib/cortex", "mountPath: [x]"))),
                (COMPOSE, (("read_only: true", "readonly: true"), ("  cortex:\n    image:", "  cortex:\n    imag:"),
                           ("retries: 3", "retries: [3]")))):
            for old, new in changes:
                check(old in source.read_text(), old)
                path = folder / f"{len(wrong)}.yaml"
                path.write_text(source.read_text().replace(old, new))
                wrong.append((path, new))
        for (path, new), said in zip(wrong, read(*(path for path, _ in wrong)), strict=True):
            check(said["errors"] and said["file"] == str(path), f"'{new}' was not found")


def check_pod(owner):
    """The specification of a pod that has what it needs, and no more."""
    spec = owner["spec"]["template"]["spec"]
    check(spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False, spec)
    check(not [name for name in spec if name.startswith("host")], spec)
    pod = spec["securityContext"]
    check(pod["runAsNonRoot"] is True and pod["runAsUser"] == pod["fsGroup"] == 65532, pod)
    check(pod["seccompProfile"] == {"type": "RuntimeDefault"}, pod)
    container, = spec["containers"]
    check(container["image"] == f"localhost/cortex:{VERSION}-full", container["image"])
    check(container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                           "capabilities": {"drop": ["ALL"]}}, container["securityContext"])
    check("memory" in container["resources"]["limits"], container["resources"])
    volumes = {volume["name"] for volume in spec["volumes"]}
    check({mount["name"] for mount in container["volumeMounts"]} == volumes, volumes)
    return spec


@test
def pods_have_no_rights_that_they_do_not_need():
    found = manifests()
    for owner in (*found["StatefulSet"], *found["Job"]):
        spec = check_pod(owner)
        claims = [volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"] if "persistentVolumeClaim" in volume]
        check(claims == [found["PersistentVolumeClaim"][0]["metadata"]["name"]], claims)
    check(found["ServiceAccount"][0]["automountServiceAccountToken"] is False)
    found = manifests(FLEET)
    for owner in (*found["Deployment"], *found["Job"]):
        spec = check_pod(owner)
        check(not [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume], "a node has no state of its own")
        password, = [one for one in spec["containers"][0]["env"] if one["name"] == "PGPASSWORD"]
        check(password["valueFrom"]["secretKeyRef"] == {"name": "cortex-database", "key": "password"}, password)
        check(":" not in spec["containers"][0]["args"][2][len("postgresql://"):].split("@")[0], "a password on the command line")
    check(found["ServiceAccount"][0]["automountServiceAccountToken"] is False)


@test
def nodes_are_reached_by_clients_and_nodes_only():
    found = manifests(FLEET)
    nodes, = found["Deployment"]
    labels = nodes["spec"]["selector"]["matchLabels"]
    pod = nodes["spec"]["template"]
    check(nodes["spec"]["replicas"] >= 2 and labels.items() <= pod["metadata"]["labels"].items(), labels)
    service, = found["Service"]
    check(service["spec"]["selector"] == labels and service["spec"]["type"] == "ClusterIP", service)
    container, = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    args = container["args"]
    check(args[args.index("--listen") + 1] == f"0.0.0.0:{ports['https']}" and "--insecure" not in args, args)
    check(args[args.index("--node-listen") + 1] == f"0.0.0.0:{ports['node']}", args)
    check(args[args.index("--node-address") + 1] == f"$(POD_IP):{ports['node']}", args)
    check("--tls-cert" in args and service["spec"]["ports"][0]["targetPort"] == "https", args)
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in found["NetworkPolicy"]}
    own = {"podSelector": {"matchLabels": labels}}
    check(policies["cortex-fleet"]["ingress"] == [
        {"from": [{"podSelector": {"matchLabels": {"cortex-client": "true"}}}], "ports": [{"port": "https", "protocol": "TCP"}]},
        {"from": [own], "ports": [{"port": "node", "protocol": "TCP"}]}], policies["cortex-fleet"])
    check(policies["cortex-fleet"]["egress"] == [{"to": [own], "ports": [{"port": "node", "protocol": "TCP"}]}])
    client = policies["cortex-fleet-database"]["podSelector"]["matchLabels"]
    for owner in (nodes, *found["Job"]):
        check(client.items() <= owner["spec"]["template"]["metadata"]["labels"].items(), client)


@test
def one_server_is_reached_by_its_clients_only():
    found = manifests()
    server, = found["StatefulSet"]
    check(server["spec"]["replicas"] == 1, "one process writes a ledger")
    labels = server["spec"]["template"]["metadata"]["labels"]
    check(server["spec"]["selector"]["matchLabels"] == labels)
    service, = found["Service"]
    check(service["spec"]["selector"] == labels and service["spec"]["type"] == "ClusterIP", service)
    container, = server["spec"]["template"]["spec"]["containers"]
    port, = container["ports"]
    check(service["spec"]["ports"][0]["targetPort"] == port["name"] == "https" and port["containerPort"] == 8420)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        check(container[probe]["httpGet"]["port"] == "https" and container[probe]["httpGet"]["scheme"] == "HTTPS", probe)
    check(container["readinessProbe"]["httpGet"]["path"] == "/readyz")
    check("--tls-cert" in container["args"] and "--insecure" not in container["args"], container["args"])
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in found["NetworkPolicy"]}
    for spec in policies.values():
        check(spec["policyTypes"] == ["Ingress", "Egress"] and spec["egress"] == [], spec)
    check(policies["cortex"]["podSelector"]["matchLabels"] == labels)
    check(policies["cortex"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": {"cortex-client": "true"}}}],
                                             "ports": [{"port": "https", "protocol": "TCP"}]}], policies["cortex"])
    job, = found["Job"]
    check(policies["cortex-init"]["podSelector"]["matchLabels"] == job["spec"]["template"]["metadata"]["labels"])
    check(job["spec"]["template"]["metadata"]["labels"] != labels, "the job must not be reached through the service")


@test
def compose_publishes_on_loopback_and_needs_a_password():
    services = compose()["services"]
    cortex, postgres = services["cortex"], services["postgres"]
    check(cortex["image"] == f"localhost/cortex:{VERSION}-full", cortex["image"])
    check(cortex["ports"] == ["127.0.0.1:8420:8420"] and "ports" not in postgres, cortex["ports"])
    check(cortex["read_only"] is True and cortex["cap_drop"] == ["ALL"], cortex)
    check(all(one["security_opt"] == ["no-new-privileges:true"] for one in services.values()))
    check(cortex["environment"]["PGPASSWORD"] == postgres["environment"]["POSTGRES_PASSWORD"])
    check(cortex["environment"]["PGPASSWORD"].startswith("${POSTGRES_PASSWORD:?"), "a password of everyone")
    check(compose()["networks"]["database"] == {"internal": True} and postgres["networks"] == ["database"])
    check(cortex["healthcheck"]["test"] == ["CMD", "/usr/bin/cortex", "ready"])


# Podman that starts nothing: podman-compose makes networks and volumes even when it is only asked what it would do.
PODMAN = """#!/bin/sh
echo "$@" >>"$HERE/asked"
[ "$1" != --version ] || echo podman version 4.3.1
[ "$2" != inspect ] || echo '[]'
"""


@test
def podman_compose_reads_the_file():
    if shutil.which("podman-compose") is None:
        skip("podman-compose is not here")
    with Folder() as folder:
        shutil.copy(COMPOSE, folder / "compose.yaml")
        podman = folder / "podman"
        podman.write_text(PODMAN)
        podman.chmod(0o755)
        words = ("podman-compose", "--podman-path", podman, "-f", folder / "compose.yaml", "up", "-d")
        env = {"HOME": str(folder), "HERE": str(folder)}
        done = run(*words, env=clean_env(**env), cwd=folder)
        check(done.returncode != 0 and b"set it to a password" in done.stdout + done.stderr, done.stdout, done.stderr)
        check("run " not in (folder / "asked").read_text() if (folder / "asked").exists() else True)
        done = run(*words, env=clean_env(POSTGRES_PASSWORD="s3cret", **env), cwd=folder)
        started = [line for line in (folder / "asked").read_text().splitlines() if line.startswith("run ")]
        check(done.returncode == 0 and len(started) == 2, done.stdout, done.stderr, started)
        cortex, = [line for line in started if "PGPASSWORD=s3cret" in line]
        check(all(word in cortex for word in ("--read-only", "--cap-drop ALL", "-p 127.0.0.1:8420:8420", "--healthcheck-command")),
              cortex)


KUBECTL = """#!/bin/sh
echo "$@" >>"$HERE/asked"
case $1 in
get) [ -e "$HERE/secret" ] ;;
exec) echo cortex_TOKEN ;;
create) cat >"$HERE/secret" ;;
esac
"""


@test
def a_token_goes_into_a_secret_and_nowhere_else():
    with Folder() as folder:
        kubectl = folder / "kubectl"
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)
        env = clean_env(KUBECTL=str(kubectl), HERE=str(folder))
        script = KUBERNETES / "token.sh"
        check(run("bash", script, "only-one-word", env=env).returncode == 2)
        done = run("bash", script, "agents", "trace:write", "space", env=env)
        check(done.returncode == 0 and b"TOKEN" not in done.stdout + done.stderr, done.stdout, done.stderr)
        check((folder / "secret").read_text() == "cortex_TOKEN")
        asked = (folder / "asked").read_text().splitlines()
        check("cortex_TOKEN" not in " ".join(asked) and all("--namespace=space" in line for line in asked), asked)
        check(asked[1].endswith("-- /usr/bin/cortex token add --scope trace:write --name agents"), asked)
        done = run("bash", script, "agents", "trace:write", env=env)
        check(done.returncode == 1 and b"exists" in done.stderr, done.stderr)


# --- really run, where podman and the image are -----------------------------------------------------------------------

def certificate(folder):
    if shutil.which("openssl") is None:
        skip("openssl is not here")
    folder.mkdir()
    done = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
               "-subj", "/CN=cortex", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "tls.key", "-out",
               folder / "tls.crt")
    check(done.returncode == 0, done.stderr)
    for path in folder.iterdir():
        path.chmod(0o440)
        if os.geteuid() == 0:
            os.chown(path, 65532, 65532)
    return folder


def started(container, podman, *more):
    """A pod's container with the arguments, environment and mounts of its manifest."""
    env = [word for one in container["env"] for word in ("--env", f"{one['name']}={one['value']}")]
    return [*env, *more]


@test
def the_pods_start_as_their_manifests_say():
    found = manifests()
    job = found["Job"][0]["spec"]["template"]["spec"]["containers"][0]
    server = found["StatefulSet"][0]["spec"]["template"]["spec"]["containers"][0]
    with Folder() as folder:
        podman = Podman(folder, FULL)
        try:
            tls = certificate(folder / "tls")
            args = ["127.0.0.1:0" if word == "0.0.0.0:8420" else word for word in server["args"]]
            podman.run(*job["args"], more=started(job, podman), code=0)
            check(podman.run(*job["args"], more=started(job, podman)).returncode == 1, "the job made a second ledger")
            pod = podman.start(*args, more=started(server, podman, "-v", f"{tls}:/etc/cortex/tls:ro"))
            url = podman.wait_ready(pod)
            check(url.startswith("https://"), url)
            context = ssl.create_default_context(cafile=tls / "tls.crt")
            for probe in ("livenessProbe", "readinessProbe"):
                with urllib.request.urlopen(url + server[probe]["httpGet"]["path"], timeout=10, context=context) as answer:
                    check(answer.status == 200)
            done = podman.inside(pod, "token", "add", "--scope", "trace:write", "--name", "a")
            check(done.returncode == 0 and done.stdout.startswith(b"cortex_"), done.stderr)
        finally:
            podman.end()


@test
def the_server_of_compose_indexes_in_postgresql():
    where = os.environ.get("CORTEX_TEST_PG")
    if not where:
        skip("no PostgreSQL (tests/support/postgres.sh)")
    command = ["127.0.0.1:0" if word == "0.0.0.0:8420" else where if word.startswith("postgresql:") else word
               for word in compose()["services"]["cortex"]["command"]]
    check(where in command, command)
    with Folder() as folder:
        podman = Podman(folder, FULL)
        try:
            podman.run("init", code=0)
            container = podman.start(*command)
            podman.wait_ready(container)
            for _ in range(200):
                done = run("psql", where, "-Atc", "select count(*) from information_schema.tables where table_schema like 'c%'")
                if done.returncode == 0 and int(done.stdout) > 0:
                    break
                time.sleep(0.1)
            check(done.returncode == 0 and int(done.stdout) > 0, done.stdout, done.stderr)
            podman.run("trace", "query", "--db", where, code=0)
            # A database that is away does not stop what is recorded.
            run(*podman.base, "stop", "-t", "20", container)
            away = [word if word != where else "postgresql://cortex@127.0.0.1:1/cortex" for word in command]
            podman.wait_ready(podman.start(*away))
        finally:
            podman.end()


if __name__ == "__main__":
    main()
