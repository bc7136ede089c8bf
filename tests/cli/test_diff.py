#!/usr/bin/env python3
"""`cortex gate diff`, `hooks ..`, `hook ..` and `worktrees list` from outside, on real repositories
(run.md §9, §11, §19; §24: 1 to 10, 17 and 22).

    test_diff.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import os
import pathlib

from kit import BIN, TESTS, Folder, check, main, run, test

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
CONTRACT = json.loads((TESTS / "vectors/run/golden/success/contract.input.json").read_text())
RUN_ID = "run_20260101_000000_00000000000000000000000000000000"


def git(repo, *words, code=0, env=None):
    done = run("git", "-C", repo, *words, env={**ENV, **(env or {})})
    check(done.returncode == code, words, "exit", done.returncode, done.stderr.decode()[:800])
    return done.stdout.decode()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_repo(folder):
    repo = folder / "repo"
    write(repo / "src/app/main.c", "int main(void) { return 0; }\n")
    write(repo / "README.md", "readme\n")
    write(repo / "scripts/test.sh", "#!/bin/sh\nexit 0\n")
    write(repo / ".gitignore", ".runtime-cache/\nignored/\n")
    git(folder, "init", "-q", "-b", "main", "repo")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "base")
    return repo


def cortex(repo, *words, code=0, stdin=None):
    done = run(BIN, *words, env=ENV, cwd=repo, stdin=stdin)
    check(done.returncode == code, words, "exit", done.returncode, "expected", code,
          done.stdout.decode()[:1500], done.stderr.decode()[:1500])
    return done.stdout.decode()


def judge(repo, *more, code=4, allow="src/app/"):
    """(set of rules, the whole answer)"""
    answer = json.loads(cortex(repo, "gate", "diff", "--json", "--allow", allow, *more, code=code))
    check(answer["allow"] is (code == 0), answer)
    return set(answer["rules"]), answer


def refused(name, change, *rules, allow="src/app/", more=()):
    """A repository, changed, is refused by exactly these rules."""
    with Folder() as folder:
        repo = make_repo(folder)
        base = git(repo, "rev-parse", "HEAD").strip()
        change(repo)
        found, answer = judge(repo, "--baseline", base, *more, allow=allow)
        check(found == set(rules), name, "found", sorted(found), "expected", sorted(rules), answer)


@test
def a_clean_tree_and_a_change_inside_are_allowed():
    with Folder() as folder:
        repo = make_repo(folder)
        rules, answer = judge(repo, code=0)
        check(rules == set() and answer["changed"] == [] and answer["violations"] == [], answer)
        tree = git(repo, "rev-parse", "HEAD^{tree}").strip()
        check(answer["tree"] == tree, answer["tree"], tree)
        write(repo / "src/app/new file.c", "x\n")
        rules, answer = judge(repo, code=0)
        check(answer["changed"] == ["src/app/new file.c"], answer)
        git(repo, "add", "-A")
        check(answer["tree"] == git(repo, "write-tree").strip())


@test
def a_violation_names_rule_path_and_view_in_every_format():
    with Folder() as folder:
        repo = make_repo(folder)
        write(repo / "README.md", "changed\n")
        _, answer = judge(repo)
        found = answer["violations"][0]
        check(found["rule"] == "D07" and found["path"] == "README.md" and found["view"] == "disk",
              answer)
        text = cortex(repo, "gate", "diff", "--allow", "src/app/", code=4)
        check("D07 README.md" in text, text)
        sarif = json.loads(cortex(repo, "gate", "diff", "--allow", "src/app/", "--format", "sarif",
                                  code=4))
        check(sarif["runs"][0]["results"][0]["ruleId"] == "D07", sarif)
        rule = sarif["runs"][0]["tool"]["driver"]["rules"][0]  # code scanning asks for all three
        check(all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help")), rule)


@test
def usage_is_checked():
    with Folder() as folder:
        repo = make_repo(folder)
        cortex(repo, "gate", "diff", code=2)
        cortex(repo, "gate", "diff", "--allow", "a", "--contract", "b", code=2)
        cortex(repo, "gate", "diff", "--contract", folder / "absent.json", code=3)
        cortex(folder, "gate", "diff", "--allow", "a", code=3)


# --- sentences of section 24 -----------------------------------------------------------------------


@test
def sentence_1_tabs_in_names_and_binary_with_and_without_attributes():
    def tab(repo):
        write(repo / "src/app/a\tb\tpath", "text\n")
    with Folder() as folder:
        repo = make_repo(folder)
        tab(repo)
        git(repo, "add", "-A")
        _, answer = judge(repo, code=0)
        check(answer["changed"] == ["src/app/a\tb\tpath"], answer)

    def binary(repo):
        (repo / "src/app/b.bin").write_bytes(b"\0\1\2")

    def hidden(repo):
        write(repo / ".git/info/attributes", "*.bin text diff -binary\n")
        binary(repo)
        git(repo, "add", "-A")
    refused("binary", binary, "D12")
    refused("binary and attributes", hidden, "D12")


@test
def sentence_2_old_sides_of_links_and_submodules_are_seen():
    with Folder() as folder:
        repo = make_repo(folder)
        os.symlink("main.c", repo / "src/app/link.c")
        head = git(repo, "rev-parse", "HEAD").strip()
        git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},src/app/sub")
        git(repo, "add", "src/app/link.c")
        git(repo, "commit", "-q", "-m", "old sides")
        os.unlink(repo / "src/app/link.c")
        write(repo / "src/app/link.c", "a file now\n")
        git(repo, "rm", "-q", "--cached", "src/app/sub")
        rules, _ = judge(repo)
        check(rules == {"D09", "D10"}, rules)


@test
def sentence_3_an_untracked_link_is_refused():
    refused("link", lambda repo: os.symlink("main.c", repo / "src/app/l.c"), "D09")


@test
def sentence_4_a_submodule_in_index_or_head_alone_is_refused():
    def add(repo):
        head = git(repo, "rev-parse", "HEAD").strip()
        git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},src/app/sub")

    def commit(repo):
        add(repo)
        git(repo, "commit", "-q", "-m", "sub")
        git(repo, "update-index", "--force-remove", "src/app/sub")
    refused("index", add, "D10")
    refused("head", commit, "D10")


@test
def sentence_5_a_path_committed_and_reverted_is_refused():
    def change(repo):
        write(repo / "README.md", "changed\n")
        git(repo, "commit", "-qam", "out")
        git(repo, "revert", "--no-edit", "HEAD")
    refused("revert", change, "D07")


@test
def sentence_6_a_baseline_by_id_does_not_move():
    with Folder() as folder:
        repo = make_repo(folder)
        base = git(repo, "rev-parse", "HEAD").strip()
        write(repo / "README.md", "changed\n")
        git(repo, "commit", "-qam", "out")
        check(judge(repo, "--baseline", base)[0] == {"D07"})


@test
def sentence_7_a_baseline_that_looks_like_an_option_is_refused():
    with Folder() as folder:
        repo = make_repo(folder)
        write(repo / "README.md", "changed\n")
        for ref in ("--cached", "--stat", "-p", "", "HEAD..main", "HEAD:README.md", ":/base", "absent",
                    "HEAD@{u}", "a b"):
            done = run(BIN, "gate", "diff", "--json", "--allow", "src/app/", f"--baseline={ref}",
                       env=ENV, cwd=repo)
            check(done.returncode == 4, ref, done.returncode, done.stdout.decode(),
                  done.stderr.decode())
            check(json.loads(done.stdout)["rules"] == ["D01"], ref, done.stdout.decode())


@test
def sentence_8_flags_and_excludes_hide_nothing():
    def flag(name):
        def change(repo):
            git(repo, "update-index", name, "README.md")
            write(repo / "README.md", "changed\n")
        return change

    def exclude(repo):
        write(repo / ".git/info/exclude", "evil.c\n")
        write(repo / "evil.c", "x\n")
    refused("assume", flag("--assume-unchanged"), "D04", "D07")
    refused("skip", flag("--skip-worktree"), "D04", "D07")
    refused("exclude", exclude, "D07")
    refused("ignored", lambda repo: write(repo / "ignored/x", "x\n"), "D07")


@test
def sentence_9_names_that_only_look_alike_are_not_confused():
    with Folder() as folder:
        repo = make_repo(folder)
        write(repo / ".github/workflows/ci.yml", "x\n")
        check(judge(repo, allow="github/")[0] == {"D07"})
    with Folder() as folder:
        repo = make_repo(folder)
        write(repo / "gitignore", "x\n")
        write(repo / "envoy/conf.yaml", "x\n")
        judge(repo, "--allow", "gitignore", allow="envoy/", code=0)


@test
def sentence_10_no_name_is_exempt():
    for name in ("patch.diff", "docs/.codex-memory.jsonl", "AGENTS.override.md", "events.jsonl"):
        refused(name, lambda repo, name=name: write(repo / name, "x\n"), "D07")


@test
def sentence_11_a_nested_env_file_is_protected():
    refused("env", lambda repo: write(repo / "src/app/.env", "S=1\n"), "D06")
    refused("env", lambda repo: write(repo / "src/app/.ENV.local", "S=1\n"), "D06")


@test
def a_git_entry_that_is_a_file_or_a_link_is_checked():
    refused("fifo", lambda repo: os.mkfifo(repo / "src/app/pipe"), "D08")
    refused("set-uid", lambda repo: os.chmod(repo / "src/app/main.c", 0o4755), "D11")

    def nested(repo):
        git(repo, "init", "-q", "src/app/inner")
    refused("nested", nested, "D05")

    def bare(repo):
        git(repo, "init", "-q", "--bare", "--template=", "src/app/inner.git")
    refused("bare", bare, "D05")


@test
def the_index_alone_can_be_judged():
    with Folder() as folder:
        repo = make_repo(folder)
        write(repo / "README.md", "changed\n")
        judge(repo, "--index", code=0)
        git(repo, "add", "README.md")
        rules, answer = judge(repo, "--index")
        check(rules == {"D07"} and answer["violations"][0]["view"] == "index", answer)


@test
def a_contract_says_what_is_allowed():
    with Folder() as folder:
        repo = make_repo(folder)
        contract = folder / "contract.json"
        contract.write_text(json.dumps(CONTRACT))
        write(repo / "src/app/new.c", "x\n")
        answer = json.loads(cortex(repo, "gate", "diff", "--contract", contract, "--json"))
        check(answer["allow"] is True, answer)
        write(repo / "README.md", "x\n")
        cortex(repo, "gate", "diff", "--contract", contract, code=4)
        contract.write_text(json.dumps({**CONTRACT, "allowed_paths": ["*"]}))
        answer = json.loads(cortex(repo, "gate", "diff", "--contract", contract, "--json", code=4))
        check(answer["allow"] is False and answer["violations"][0]["rule"] == "K02", answer)


@test
def repositories_with_sha256_names_are_judged_too():
    with Folder() as folder:
        git(folder, "init", "-q", "-b", "main", "--object-format=sha256", "repo")
        repo = folder / "repo"
        write(repo / "src/app/main.c", "int main(void) { return 0; }\n")
        write(repo / "README.md", "readme\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "base")
        _, answer = judge(repo, code=0)
        check(answer["tree"] == git(repo, "rev-parse", "HEAD^{tree}").strip(), answer)
        write(repo / "README.md", "x\n")
        check(judge(repo)[0] == {"D07"})


# --- pull requests ---------------------------------------------------------------------------------

INSIDE = ".cortex/contract.json"


def make_pull(folder, **changes):
    """A repository whose main branch has a contract for src/app/, and a branch `work` from it."""
    repo = make_repo(folder)
    write(repo / INSIDE, json.dumps({**CONTRACT, **changes}))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "contract")
    git(repo, "checkout", "-q", "-b", "work")
    return repo


def commit(repo, path, text, message="change"):
    write(repo / path, text)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", message)


def judge_pull(repo, *more, code=4, head="work"):
    answer = json.loads(cortex(repo, "gate", "diff", "--json", "--baseline", "main", "--head", head,
                               "--contract-in", INSIDE, *more, code=code))
    return set(answer.get("rules", [])), answer


@test
def a_pull_request_is_judged_by_the_contract_of_its_base():
    with Folder() as folder:
        repo = make_pull(folder)
        commit(repo, "src/app/new.c", "int x;\n")
        _, answer = judge_pull(repo, code=0)
        check(answer["changed"] == ["src/app/new.c"], answer)
        check(answer["tree"] == git(repo, "rev-parse", "work^{tree}").strip(), answer)
        # The files on disk, the index and HEAD have no part in it.
        git(repo, "checkout", "-q", "main")
        write(repo / "README.md", "changed\n")
        git(repo, "add", "-A")
        judge_pull(repo, code=0)
        git(repo, "reset", "-q", "--hard", "HEAD")
        git(repo, "checkout", "-q", "work")
        commit(repo, "README.md", "changed\n")
        git(repo, "checkout", "-q", "main")
        rules, answer = judge_pull(repo)
        check(rules == {"D07"}, answer)


@test
def a_pull_request_cannot_bring_a_bare_repository():
    for files in ({"HEAD": "ref: refs/heads/main\n", "objects/info/x": "x", "refs/x": "x", "config": "[core]\n"},
                  {"HEAD": "ref: refs/heads/main\n", "commondir": "../x\n"}):
        with Folder() as folder:
            repo = make_pull(folder)
            for name, text in files.items():
                write(repo / "src/app/b" / name, text)
            git(repo, "add", "-A", "-f")
            git(repo, "commit", "-q", "-m", "b")
            rules, answer = judge_pull(repo)
            check(rules == {"D05"}, answer)
    with Folder() as folder:  # a file of that name is none
        repo = make_pull(folder)
        write(repo / "src/app/b/HEAD", "x\n")
        write(repo / "src/app/b/objects/x", "x\n")
        git(repo, "add", "-A", "-f")
        git(repo, "commit", "-q", "-m", "b")
        judge_pull(repo, code=0)


@test
def what_a_commit_changed_and_another_took_back_is_seen():
    with Folder() as folder:
        repo = make_pull(folder)
        commit(repo, "README.md", "secret\n")
        commit(repo, "README.md", "readme\n")
        rules, answer = judge_pull(repo)
        check(rules == {"D07"} and all(v["view"].startswith("commit ")
                                       for v in answer["violations"]), answer)


@test
def a_pull_request_cannot_bring_or_widen_its_contract():
    wide = json.dumps({**CONTRACT, "allowed_paths": ["src/", "README.md", ".cortex/"]})
    with Folder() as folder:
        repo = make_pull(folder)
        commit(repo, INSIDE, wide)
        commit(repo, "README.md", "changed\n")
        rules, answer = judge_pull(repo)
        check({v["path"]: v["rule"] for v in answer["violations"]} ==
              {INSIDE: "D06", "README.md": "D07"}, answer)
    # Not even when the base's contract allows its folder, by any name of that file.
    for name in (INSIDE, ".Cortex/CONTRACT.json", ".cortex/contract.json/x"):
        with Folder() as folder:
            repo = make_pull(folder, allowed_paths=["src/", ".cortex/", ".Cortex/"])
            git(repo, "rm", "-q", "--cached", INSIDE)
            (repo / INSIDE).unlink()
            commit(repo, name, wide)
            rules, answer = judge_pull(repo)
            check("D06" in rules, name, answer)
            check(name in [v["path"] for v in answer["violations"] if v["rule"] == "D06"], answer)
    # A base without one has none, whatever the pull request adds.
    with Folder() as folder:
        repo = make_repo(folder)
        git(repo, "checkout", "-q", "-b", "work")
        commit(repo, INSIDE, wide)
        done = run(BIN, "gate", "diff", "--baseline", "main", "--head", "work", "--contract-in",
                   INSIDE, env=ENV, cwd=repo)
        check(done.returncode == 3 and b"has no contract at .cortex/contract.json" in done.stderr,
              done.stderr)
    with Folder() as folder:
        repo = make_repo(folder)
        (repo / ".cortex").mkdir()
        (repo / INSIDE).symlink_to("../README.md")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "link")
        git(repo, "branch", "work")
        done = run(BIN, "gate", "diff", "--baseline", "main", "--head", "work", "--contract-in",
                   INSIDE, env=ENV, cwd=repo)
        check(done.returncode == 3 and b"no regular file" in done.stderr, done.stderr)


@test
def a_base_that_moved_on_is_not_the_pull_requests_doing():
    with Folder() as folder:
        repo = make_pull(folder)
        commit(repo, "src/app/new.c", "int x;\n")
        git(repo, "checkout", "-q", "main")
        commit(repo, "README.md", "newer\n")
        judge_pull(repo, code=0)
        # .. nor when the base is merged into it.
        git(repo, "checkout", "-q", "work")
        git(repo, "merge", "-q", "--no-edit", "main")
        _, answer = judge_pull(repo, code=0)
        check(answer["changed"] == ["src/app/new.c"], answer)
        # What the merge itself adds is.
        git(repo, "checkout", "-q", "-B", "work", "HEAD~1")
        git(repo, "merge", "-q", "--no-commit", "--no-ff", "main")
        write(repo / "scripts/test.sh", "#!/bin/sh\nexit 1\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "merge")
        rules, answer = judge_pull(repo)
        check({v["path"] for v in answer["violations"]} == {"scripts/test.sh"}, answer)
        # .. also when a later commit takes it back.
        write(repo / "scripts/test.sh", "#!/bin/sh\nexit 0\n")
        git(repo, "commit", "-q", "-a", "-m", "back")
        rules, answer = judge_pull(repo)
        check({v["path"] for v in answer["violations"]} == {"scripts/test.sh"}, answer)
        # A merge of a branch that the base does not have hides nothing.
        git(repo, "checkout", "-q", "-B", "side", "main")
        commit(repo, "README.md", "side\n")
        git(repo, "checkout", "-q", "-B", "work", "main")
        commit(repo, "src/app/other.c", "int y;\n")
        git(repo, "merge", "-q", "--no-edit", "-s", "ours", "side")
        rules, answer = judge_pull(repo)
        check({v["path"] for v in answer["violations"]} == {"README.md"}, answer)


@test
def a_merge_of_the_past_does_not_bring_it_back():
    with Folder() as folder:
        repo = make_pull(folder)
        git(repo, "checkout", "-q", "main")
        old = git(repo, "rev-parse", "HEAD").strip()
        commit(repo, "README.md", "fixed\n")
        git(repo, "checkout", "-q", "-B", "work", "main")
        commit(repo, "src/app/new.c", "int x;\n")
        # A merge of what is merged already, with the old README.md as if that were its result.
        write(repo / "README.md", "readme\n")
        git(repo, "add", "-A")
        tree = git(repo, "write-tree").strip()
        merge = git(repo, "commit-tree", tree, "-p", "work", "-p", old, "-m", "merge").strip()
        git(repo, "reset", "-q", "--hard", merge)
        rules, answer = judge_pull(repo)
        check([(v["rule"], v["path"], v["view"]) for v in answer["violations"]] ==
              [("D07", "README.md", "head")], answer)


@test
def a_finding_about_no_path_is_about_the_contract():
    with Folder() as folder:
        repo = make_pull(folder)
        who = "committer a <a@example.com> 1700000000 +0000\ndata 1\nx\n"
        lines = [f"commit refs/heads/many\n{who}from refs/heads/work^0\n"]
        lines += [f"commit refs/heads/many\n{who}" for _ in range(1000)]
        done = run("git", "-C", repo, "fast-import", "--quiet", env=ENV, stdin="\n".join(lines).encode())
        check(done.returncode == 0, done.stderr)
        rules, _ = judge_pull(repo, head="many")
        check(rules == {"D15"}, rules)
        sarif = json.loads(cortex(repo, "gate", "diff", "--baseline", "main", "--head", "many",
                                  "--contract-in", INSIDE, "--format", "sarif", code=4))
        [result] = sarif["runs"][0]["results"]
        check(result["ruleId"] == "D15" and
              result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == INSIDE, sarif)
        git(repo, "update-ref", "refs/heads/many", "many~1")
        judge_pull(repo, head="many", code=0)


@test
def what_cannot_be_compared_is_exit_3():
    def fails(repo, words, *expected):
        done = run(BIN, "gate", "diff", *words, env=ENV, cwd=repo)
        check(done.returncode == 3, words, done.returncode, done.stderr)
        check(all(text in done.stderr.decode() for text in expected), done.stderr.decode())

    with Folder() as folder:
        repo = make_pull(folder)
        commit(repo, "src/app/new.c", "int x;\n")
        commit(repo, "src/app/new.c", "int xy;\n")
        allow = ("--allow", "src/app/")
        fails(repo, ("--baseline", "f" * 40, "--head", "work", *allow), "does not have the commit",
              "shallow")
        fails(repo, ("--baseline", "main", "--head", "--cached", *allow), "does not have the commit")
        git(repo, "checkout", "-q", "--orphan", "alone")
        git(repo, "commit", "-q", "-m", "alone")
        fails(repo, ("--baseline", "main", "--head", "alone", *allow), "no history in common")
        # Crosswise merges have two newest ancestors.
        git(repo, "checkout", "-q", "-b", "a", "work")
        commit(repo, "src/app/a.c", "a\n")
        git(repo, "checkout", "-q", "-b", "b", "work")
        commit(repo, "src/app/b.c", "b\n")
        git(repo, "branch", "a0", "a")
        git(repo, "checkout", "-q", "a")
        git(repo, "merge", "-q", "--no-edit", "b")
        git(repo, "checkout", "-q", "b")
        git(repo, "merge", "-q", "--no-edit", "a0")
        fails(repo, ("--baseline", "a", "--head", "b", *allow), "crosswise")
        git(folder, "clone", "-q", "--depth", "2", "--no-single-branch", f"file://{repo}", "shallow")
        fails(folder / "shallow", ("--baseline", "origin/main", "--head", "origin/work", *allow),
              "shallow clone")
        for words in (("--head", "work", *allow), ("--contract-in", INSIDE),
                      ("--baseline", "main", "--head", "work", "--index", *allow),
                      ("--baseline", "main", "--contract-in", INSIDE, *allow)):
            cortex(repo, "gate", "diff", *words, code=2)


@test
def programs_named_in_the_repository_are_not_started_for_a_pull_request():
    with Folder() as folder:
        repo = make_pull(folder)
        mark = folder / "started"
        program = folder / "program.sh"
        write(program, f"#!/bin/sh\necho run >>{mark}\ncat\n")
        program.chmod(0o755)
        commit(repo, "src/app/.gitattributes", "* diff=x filter=x\n")
        commit(repo, "src/app/new.c", "int x;\n")
        for name in ("diff.x.textconv", "diff.x.command", "diff.external", "filter.x.clean",
                     "filter.x.smudge", "core.fsmonitor", "core.pager"):
            git(repo, "config", name, str(program))
        hooks = repo / ".git/hooks"
        for name in ("post-checkout", "reference-transaction", "post-index-change"):
            write(hooks / name, program.read_text())
            (hooks / name).chmod(0o755)
        rules, answer = judge_pull(repo)
        check(rules == {"D06"}, answer)  # .gitattributes
        check(not mark.exists(), "a program was started")


# --- hooks -----------------------------------------------------------------------------------------


def states(repo, *words):
    return {hook["name"]: (hook["state"], hook["chained"])
            for hook in json.loads(cortex(repo, "hooks", *words, "--json"))["hooks"]}


def active_run(repo, contract):
    """The work tree of an active run with this contract."""
    root = repo / ".runtime-cache/cortexpilot"
    tree = root / "worktrees" / RUN_ID / "task"
    git(repo, "worktree", "add", "-q", "-b", f"cortex/{RUN_ID}/task", tree)
    base = git(repo, "rev-parse", "HEAD").strip()
    if contract is not None:
        contract = {**contract, "rollback": {**contract["rollback"], "baseline_ref": base}}
        write(root / "active/runs" / RUN_ID / "contract.json", json.dumps(contract))
    else:
        (root / "active/runs" / RUN_ID).mkdir(parents=True)
    return tree


@test
def hooks_are_installed_chained_and_removed():
    with Folder() as folder:
        repo = make_repo(folder)
        hooks = repo / ".git/hooks"
        hooks.mkdir(exist_ok=True)
        before = "#!/bin/sh\ntouch \"$(git rev-parse --show-toplevel)/../ran\"\n"
        write(hooks / "pre-commit", before)
        (hooks / "pre-commit").chmod(0o755)
        check(states(repo, "status") == {"pre-commit": ("foreign", False),
                                         "pre-push": ("absent", False)})
        for _ in range(2):  # twice is the same as once
            check(states(repo, "install") == {"pre-commit": ("installed", True),
                                              "pre-push": ("installed", False)})
        check((hooks / "pre-commit.before-cortex").read_text() == before)
        text = (hooks / "pre-commit").read_text()
        (hooks / "pre-commit").write_text(text.replace(" hook ", "  hook "))
        check(states(repo, "status")["pre-commit"] == ("outdated", True))
        check(states(repo, "install")["pre-commit"] == ("installed", True))
        tree = active_run(repo, CONTRACT)
        write(tree / "src/app/new.c", "x\n")
        git(tree, "add", "-A")
        told = json.loads(cortex(tree, "hook", "pre-commit", "--json"))
        check(told == {"allow": True, "violations": []}, told)
        git(tree, "commit", "-q", "-m", "inside")
        check(list(folder.glob("**/ran")) != [], "the hook from before did not run")
        check(states(repo, "remove") == {"pre-commit": ("foreign", False),
                                         "pre-push": ("absent", False)})
        check((hooks / "pre-commit").read_text() == before)


@test
def two_foreign_hooks_are_not_overwritten():
    with Folder() as folder:
        repo = make_repo(folder)
        write(repo / ".git/hooks/pre-push", "#!/bin/sh\n")
        write(repo / ".git/hooks/pre-push.before-cortex", "#!/bin/sh\n")
        done = run(BIN, "hooks", "install", env=ENV, cwd=repo)
        check(done.returncode == 3, done.returncode)
        check(not (repo / ".git/hooks/pre-commit").exists(), "half of the hooks are installed")


@test
def sentence_22_without_a_contract_the_hook_rejects():
    with Folder() as folder:
        repo = make_repo(folder)
        cortex(repo, "hooks", "install", "--enforce", "people")
        write(repo / "src/app/new.c", "x\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "no run", code=1)
        cortex(repo, "hook", "pre-commit", code=4)
        cortex(repo, "hook", "pre-push", code=4, stdin=b"")
        told = json.loads(cortex(repo, "hook", "pre-commit", "--json", code=4))
        check(told["allow"] is False and told["violations"], told)
        with Folder() as elsewhere:
            told = json.loads(cortex(elsewhere, "hook", "pre-commit", "--json", code=4))
            check("error" in told, told)
        tree = active_run(repo, None)  # a run whose contract cannot be read
        cortex(tree, "hook", "pre-commit", code=4)
        write(repo / ".runtime-cache/cortexpilot/active/runs" / RUN_ID / "contract.json", "{}")
        cortex(tree, "hook", "pre-commit", code=4)


@test
def hooks_let_people_commit_and_push_unless_asked():
    with Folder() as folder:
        repo = make_repo(folder)
        git(folder, "init", "-q", "--bare", "away.git")
        git(repo, "remote", "add", "away", folder / "away.git")
        told = run(BIN, "hooks", "install", env=ENV, cwd=repo).stderr
        check(b"your own commits and pushes are not" in told and b"--enforce people" in told, told)
        hooks = json.loads(cortex(repo, "hooks", "status", "--json"))["hooks"]
        check([hook["enforce"] for hook in hooks] == ["runs", "runs"], hooks)
        write(repo / "own.c", "x\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "a person's own")
        git(repo, "push", "-q", "away", "HEAD")
        git(repo, "worktree", "add", "-q", "-b", "feature", folder / "own tree")
        write(folder / "own tree/more.c", "x\n")
        git(folder / "own tree", "add", "-A")
        git(folder / "own tree", "commit", "-q", "-m", "in a work tree of one's own")
        # A run is checked as before, also on a branch that it made or without one.
        tree = active_run(repo, CONTRACT)
        write(tree / "README.md", "outside\n")
        git(tree, "commit", "-q", "-am", "outside", code=1)
        for words in (("switch", "-q", "-c", "away"), ("checkout", "-q", "--detach")):
            git(tree, *words)
            git(tree, "commit", "-q", "-am", "outside", code=1)
        git(repo, "switch", "-q", "-c", "cortex/unknown/task")
        git(repo, "commit", "-q", "--allow-empty", "-m", "of no run", code=1)
        git(repo, "switch", "-q", "-")
        told = run(BIN, "hooks", "install", "--enforce", "people", env=ENV, cwd=repo)
        check(b"yours too" in told.stderr and b"for runs and people" in told.stdout, told)
        git(repo, "commit", "-q", "--allow-empty", "-m", "a person's own", code=1)
        done = run(BIN, "hooks", "install", "--enforce", "everyone", env=ENV, cwd=repo)
        check(done.returncode == 2, done)


@test
def pre_commit_judges_the_index_that_is_committed():
    with Folder() as folder:
        repo = make_repo(folder)
        cortex(repo, "hooks", "install")
        tree = active_run(repo, CONTRACT)
        write(tree / "README.md", "outside\n")
        git(tree, "commit", "-q", "-am", "outside", code=1)  # with an index of its own
        git(tree, "commit", "-q", "--only", "README.md", "-m", "outside", code=1)
        done = run(BIN, "hook", "pre-commit", env=ENV, cwd=tree)
        check(done.returncode == 0, "nothing is staged")
        git(tree, "add", "README.md")
        done = run(BIN, "hook", "pre-commit", env=ENV, cwd=tree)
        check(done.returncode == 4 and b"D07 README.md" in done.stderr, done.stderr)
        told = json.loads(cortex(tree, "hook", "pre-commit", "--json", code=4))
        check(told["allow"] is False and [(v["rule"], v["path"]) for v in told["violations"]] ==
              [("D07", "README.md")], told)
        git(tree, "reset", "-q", "--hard")
        write(tree / "src/app/new.c", "x\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "inside")


@test
def pre_push_judges_every_commit():
    with Folder() as folder:
        repo = make_repo(folder)
        git(folder, "init", "-q", "--bare", "away.git")
        git(repo, "remote", "add", "away", folder / "away.git")
        tree = active_run(repo, CONTRACT)
        branch = f"cortex/{RUN_ID}/task"
        write(tree / "src/app/new.c", "x\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "inside")
        cortex(repo, "hooks", "install")
        git(tree, "push", "-q", "away", branch)
        git(tree, "push", "-q", "away", f":{branch}", code=1)  # a deletion
        good = git(tree, "rev-parse", "HEAD").strip()
        write(tree / "README.md", "outside\n")
        git(tree, "commit", "-q", "--no-verify", "-am", "outside")
        git(tree, "revert", "--no-edit", "HEAD")
        git(tree, "push", "-q", "away", branch, code=1)
        git(tree, "reset", "-q", "--hard", f"{good}~1")
        write(tree / "src/app/other.c", "y\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "--no-verify", "-m", "other")
        git(tree, "push", "-q", "-f", "away", branch, code=1)  # no fast-forward
        check(git(folder / "away.git", "rev-parse", branch).strip() == good)
        cortex(tree, "hook", "pre-push", code=4, stdin=b"not a line\n")


@test
def work_trees_are_listed_with_their_runs():
    with Folder() as folder:
        repo = make_repo(folder)
        tree = active_run(repo, CONTRACT)
        for place in (repo, tree):
            found = json.loads(cortex(place, "worktrees", "list", "--json"))["worktrees"]
            check([item["run_id"] for item in found] == [None, RUN_ID], found)
            check(pathlib.Path(found[1]["path"]) == tree, found)
            check(found[1]["branch"] == f"refs/heads/cortex/{RUN_ID}/task", found)
        check(RUN_ID in cortex(repo, "worktrees", "list"))


main()
