#!/usr/bin/env python3
"""make.py - makes the evidence files of this folder anew, with $CORTEX_BIN.

They pin the format: a program that cannot read them, or would write other bytes for the same data, has
changed it.  Needs a sandbox, and cortex-agents beside the program.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "cli"))

from kit import Folder, Place, check  # noqa: E402
from story_kit import Story, fact  # noqa: E402


def evidence(repo, name, path, key):
    done = repo.cortex("evidence", name, "--sign", key, "-o", path)
    check(done.returncode == 0, name, done.stderr)


with Folder() as folder:
    story = Story(folder)
    repo = story.repo
    key = repo.base / "vectors.key"
    made = repo.cortex("key", "new", key, "--name", "vectors", "--json")
    (HERE / "key.txt").write_text(json.loads(made.stdout)["public_key"] + "\n")
    check(repo.cortex("snapshot", "--actor", "desk").returncode == 0)
    sealed = repo.cortex("snapshot", "seal", "0", "--sign", key, "--actor", "desk")
    check(sealed.returncode == 0, sealed.stderr)
    evidence(repo, story.commit, HERE / "commit.cxe", key)
    evidence(repo, story.trace, HERE / "trace.cxe", key)
    evidence(repo, story.kept, HERE / "memory.cxe", key)
    gone = fact(repo)
    check(repo.cortex("erase", gone, "--reason", "asked for", "--actor", "desk").returncode == 0)
    evidence(repo, gone, HERE / "erased.cxe", key)

with Place() as place:
    text = json.dumps({"statement": "the sky is blue", "subject": "sky", "predicate": "is"})
    memory = place.ok("memory", "write", "Fact", text, "--actor", "ann").strip()
    place.ok("memory", "write", "Fact", text, "--actor", "bob")
    key = place.folder / "home.key"
    made = place.json("key", "new", key, "--name", "vectors.example/home")
    (HERE / "home_key.txt").write_text(made["public_key"] + "\n")
    place.ok("checkpoint", "--all", "--sign", key)
    place.ok("append", "note.more", "x", "--actor", "ann")
    place.ok("evidence", memory, "-o", HERE / "home.cxe")
