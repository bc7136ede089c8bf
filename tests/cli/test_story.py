#!/usr/bin/env python3
"""test_story.py - `cortex show` and `cortex why`: one thing found by any of its names, and the way
from a line of code to the decision behind it."""
import json
import subprocess

from kit import BIN, Folder, check, main, test
from run_kit import Repo, sandboxed
from story_kit import Story, ask, fact

def steps(answer, kind):
    return [step for step in answer["steps"] if step["kind"] == kind]


@sandboxed
def why_follows_every_link_from_every_name():
    with Folder() as folder:
        story = Story(folder)
        a_line_is_followed(story)
        everything_is_found(story)


def a_line_is_followed(story):
    text = (story.repo.path / "src/app/main.c").read_text().splitlines()
    line = text.index("/* more */") + 1
    answer = ask(story.repo, "why", f"src/app/main.c:{line}")
    check(answer["verdict"] == "holds", answer)
    kinds = [step["kind"] for step in answer["steps"]]
    check(kinds[:5] == ["line", "commit", "run", "contract", "gates"], kinds)
    check(steps(answer, "commit")[0]["id"] == story.commit)
    run = steps(answer, "run")[0]
    check(run["id"] == story.run and run["link"]["relation"] == "made_by", run)
    check("MERGE_APPLIED" in run["link"]["by"], run["link"])
    trace = steps(answer, "trace")[0]
    check(trace["id"] == story.trace and trace["link"]["verdict"] == "holds", trace)
    parts = [step["facts"]["component"] for step in steps(answer, "component")]
    check("observation" in parts and "rationale" in parts and "action" in parts, parts)
    check(all(len(step["facts"]["node"]) == 64 for step in steps(answer, "component")))
    memories = {step["id"]: step["link"]["relation"] for step in steps(answer, "memory")}
    check(memories == {story.read: "mentions", story.kept: "remembered_as"}, memories)
    # The same end is reached from the other things.
    for start in (story.commit, story.run, "cortex://run/" + story.run, story.run + "/3",
                  story.kept, story.trace, "cortex://trace/" + story.trace):
        other = ask(story.repo, "why", start)
        check(story.read in [step["id"] for step in other["steps"]], start)


@sandboxed
def unproven_statements_are_indeterminate():
    with Folder() as folder:
        story = Story(folder, signed=False)
        answer = ask(story.repo, "why", story.commit, code=3)
        check(answer["verdict"] == "indeterminate", answer["verdict"])
        trace = steps(answer, "trace")[0]
        check(trace["verdict"] == "holds" and trace["link"]["verdict"] == "indeterminate", trace)
        check("did not sign" in trace["link"]["by"], trace)
        check(any("only stated" in text for text in answer["not_proven"]), answer["not_proven"])


@sandboxed
def copied_trailers_and_a_changed_bundle_are_broken():
    with Folder() as folder:
        story = Story(folder)
        message = story.repo.git("log", "-1", "--format=%B")
        story.repo.write("src/app/main.c", "int main(void) { return 1; }\n")
        story.repo.commit(message)
        answer = ask(story.repo, "why", "src/app/main.c:1", code=1)
        link = steps(answer, "run")[0]["link"]
        check(link["verdict"] == "broken" and "no event" in link["by"], link)
        bundle = story.repo.root / "runs" / story.run
        patch = bundle / "patch.diff"
        bundle.chmod(0o755)
        patch.chmod(0o644)
        patch.write_bytes(patch.read_bytes().replace(b"more", b"less"))
        answer = ask(story.repo, "why", story.commit, code=1)
        check(steps(answer, "run")[0]["verdict"] == "broken")
        check(ask(story.repo, "show", story.run, code=1)["verdict"] == "broken")


def everything_is_found(story):
    repo = story.repo
    check(repo.cortex("snapshot", "--actor", "desk").returncode == 0)
    entry = json.loads(repo.cortex("log", "--actor", "desk", "--json").stdout.splitlines()[0])
    roots = json.loads(repo.cortex("roots", "--actor", "desk", "--json").stdout)
    seal = ask(repo, "show", story.run)["facts"]["seal"]
    trace = ask(repo, "show", story.trace)
    nodes = [step["facts"]["node"] for step in ask(repo, "why", story.trace)["steps"]
             if step["kind"] == "component"]
    names = {
        story.run: "run", story.run[:-6]: "run", seal["manifest_sha256"][:16]: "run",
        story.commit: "commit", story.commit[:10].upper(): "commit",
        story.run + "/5": "event", "desk/0": "entry", entry["leaf_hash"][:12]: "entry",
        "desk": "actor", "desk@0": "snapshot", roots["actors"][0]["overall_root"][:20]: "snapshot",
        story.read: "memory", story.read.split("/")[-1].split("#")[0]: "memory",
        story.trace: "trace", trace["facts"]["content_sha256"][:8]: "trace",
        trace["facts"]["key_id"]: "key", nodes[2]: "node", nodes[2][:12]: "node",
    }
    for name, kind in names.items():
        shown = ask(repo, "show", name)
        check(shown["kind"] == kind, name, kind, shown)
        check(shown["verdict"] == "holds" and shown["here"], name, shown)
    ties = {(link["relation"], link["id"]) for link in ask(repo, "show", story.kept)["links"]}
    check(("derived_from", story.trace) in ties and ("derived_from", story.run) in ties, ties)
    ties = {(link["relation"], link["id"]) for link in trace["links"]}
    check(("mentions", story.read) in ties and ("remembered_as", story.kept) in ties, ties)


@test
def show_and_why_report_unknown_ids():
    with Folder() as folder:
        repo = Repo(folder)
        fact(repo)
        for name in ("12345678", "nobody", "run_20260101_000000_" + "0" * 32, "desk/99",
                     "matrix://cortex/Fact/01HF7YAT000000000000000003#1", "\x1b[31mred", "x" * 1025, ""):
            done = repo.cortex("show", name)
            check(done.returncode == 2, name, done.returncode, done.stderr)
            check(b"\x1b[31m" not in done.stderr, done.stderr)
            check(repo.cortex("why", name).returncode == 2, name)
        done = repo.cortex("why", "src/app/main.c:100000")
        check(done.returncode == 3, done.returncode, done.stdout, done.stderr)
        check(repo.cortex("why", "@agent/x").returncode == 2)
        # Without a home and outside of a repository nothing is there, and that is no crash.
        lonely = folder / "lonely"
        lonely.mkdir()
        done = subprocess.run([BIN, "show", "12345678"], cwd=lonely, capture_output=True,
                              env={"HOME": str(lonely), "PATH": "/usr/bin:/bin"}, check=False)
        check(done.returncode == 2 and b"no home" in done.stderr, done.stderr)


@test
def an_ambiguous_id_lists_its_candidates():
    with Folder() as folder:
        repo = Repo(folder)
        # Ids of the same second begin alike; two in a row may be of different ones.
        facts = [fact(repo), fact(repo)]
        while facts[-1].split("/")[-1][:8] != facts[-2].split("/")[-1][:8]:
            facts.append(fact(repo))
        prefix = facts[-1].split("/")[-1][:8]
        done = repo.cortex("show", prefix, "--json")
        check(done.returncode == 2, done.returncode, done.stdout, done.stderr)
        found = {item["id"] for item in json.loads(done.stdout)["candidates"]}
        check(found == {one for one in facts if one.split("/")[-1].startswith(prefix)}, found)
        check(repo.cortex("why", prefix).returncode == 2)


@test
def erased_and_uncommitted_objects_are_indeterminate():
    with Folder() as folder:
        repo = Repo(folder)
        memory = fact(repo)
        check(repo.cortex("erase", memory, "--reason", "asked for", "--actor", "desk").returncode == 0)
        shown = ask(repo, "show", memory)
        check(shown["verdict"] == "indeterminate" and "erased" in shown["by"], shown)
        repo.write("src/app/main.c", "int changed;\n")
        answer = ask(repo, "why", "src/app/main.c:1", code=3)
        check("not committed" in answer["steps"][0]["by"], answer)


main()
