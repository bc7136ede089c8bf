#!/usr/bin/env python3
"""The checks of tools/ find what they are there for, and nothing else."""
import collections
import datetime
import functools
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent.parent / "tools")]
sys.dont_write_bytecode = True
import check_commits  # noqa: E402
import check_coverage  # noqa: E402
import check_format  # noqa: E402
import check_names  # noqa: E402
import check_prose  # noqa: E402
import module_table  # noqa: E402
import quarantine  # noqa: E402
import sum_results  # noqa: E402
from kit import Folder, check, main, run, skip, test  # noqa: E402

TODAY = datetime.date(2026, 11, 27)


def equal(found, expected):
    check(found == expected, f"\nfound    {found!r}\nexpected {expected!r}")


# --- check_format.py --------------------------------------------------------------------------


def banner(name):
    return check_format.banner_line(name)


@test
def a_broken_banner_becomes_one_line():
    equal(len(banner("reading")), 100)
    for broken in ("/* --- reading " + "-" * 90 + "\n */", "/* --- reading\n * " + "-" * 80 + " */",
                   "/* --- reading " + "-" * 95 + " */", "/* --- reading */"):
        equal(check_format.with_banners(f"int a;\n\n{broken}\n\nint b;\n"),
              f"int a;\n\n{banner('reading')}\n\nint b;\n")


@test
def a_banner_stands_between_empty_lines():
    good = f"int a;\n\n{banner('reading')}\n\nint b;\n"
    equal(check_format.with_banners(f"int a;\n{banner('reading')}\nint b;\n"), good)
    equal(check_format.with_banners(good), good)
    short = "/* --- a short one is good too --- */\n"
    equal(check_format.with_banners(f"int a;\n\n{short}\n"), f"int a;\n\n{short}\n")


@test
def text_of_a_banner_becomes_a_comment_below_it():
    equal(check_format.with_banners("/* --- the tree " + "-" * 70 + "\n *\n * What it is.\n */\n"),
          f"{banner('the tree')}\n\n/*\n * What it is.\n */\n")
    long = check_format.with_banners("/* --- " + "word " * 17 + "end (and more) ---\n */\n")
    check(max(len(line) for line in long.split("\n")) <= 100 and "(and more)" in long, long)


@test
def a_wide_comment_flows_into_its_next_line():
    wide = " * " + "word " * 20 + "over the edge"
    equal(check_format.narrow(f"/*\n{wide}\n * and on.\n */"),
          "/*\n * " + "word " * 18 + "word\n * word over the edge and on.\n */")
    check(check_format.too_wide(f"/*\n{wide}\n */"))
    check(not check_format.too_wide("/*\n * " + "x" * 120 + "\n */"), "one word cannot be broken")


@test
def items_and_rows_keep_their_shape():
    equal(check_format.narrow("/*\n *   I1  " + "word " * 20 + "\n *   I2  another\n */"),
          "/*\n *   I1  " + "word " * 17 + "word\n *       word word\n *   I2  another\n */")
    row = check_format.narrow("/*\n *   name    " + "word " * 20 + "\n *           and on\n */")
    check("\n *           word" in row and "and on" in row, row)
    sentences = check_format.narrow("/*\n * One.  Two " + "word " * 20 + "\n * more.\n */")
    equal(sentences.split("\n")[2][:8], " * word ")


@test
def a_comment_does_not_close_on_a_line_of_its_own():
    text = "/* " + "word " * 18 + "word ab */"
    lines = check_format.narrow(text).split("\n")
    check(len(text) > 100 and lines[-1] == " * ab */", lines)


@test
def files_are_fixed_and_then_accepted():
    if check_format.find_clang_format() is None:
        skip("no clang-format 14")
    tool = HERE.parent.parent / "tools" / "check_format.py"
    with Folder() as folder:
        (folder / ".clang-format").write_text((HERE.parent.parent / ".clang-format").read_text())
        path = folder / "a.c"
        path.write_text("/* --- a\n * ---- */\nint  f( void ) { return 1; }\n")
        done = run(sys.executable, tool, path)
        check(done.returncode == 1 and b"a.c: code, banners" in done.stdout, done)
        check(run(sys.executable, tool, "--fix", path).returncode == 0)
        equal(path.read_text(), f"{banner('a')}\n\nint f(void)\n{{\n    return 1;\n}}\n")
        check(run(sys.executable, tool, path).returncode == 0)


# --- check_names.py ---------------------------------------------------------------------------


def names_in(text):
    """Counter of the retired words that C code has: (where, word)."""
    return collections.Counter((rule.where, rule.word)
                               for rule, _, _ in check_names.findings(text, check_names.rules()))


@test
def retired_names_are_found_as_parts_of_identifiers():
    equal(names_in("int cx_desk_new(int desktop, int by_desk);\n"), {("name", "desk"): 2})
    equal(names_in("cx_turn *txn = CX_GO(a);\n"), {("name", "cx_turn"): 1, ("name", "cx_go"): 1})
    equal(names_in("int an_agents_turn; int returns; int github;\n"), {})


@test
def retired_words_are_found_in_comments_and_not_in_strings():
    equal(names_in("/* Nobody waits. */\nint a; // somebody\n"),
          {("comment", "nobody"): 1, ("comment", "somebody"): 1})
    equal(names_in('print("nobody /* nobody */ desk"); c = \'"\'; /* ok */\n'), {})
    equal(names_in("/* It stands\n * in it. */\n"), {("comment", "stand in"): 1})
    places = check_names.findings("int a;\n/*\n * by nobody\n */\n", check_names.rules())
    equal([line for _, line, _ in places], [3])


@test
def exempt_files_may_explain_a_retired_word():
    glossary = HERE.parent.parent / "docs" / "glossary.md"
    words = [word for word in check_prose.retired() if word[0] == "covenant"]
    equal([what for what, _, _ in check_prose.findings(glossary, words)], [])
    equal(found("The covenant.\n"), {"covenant": 1})


# --- module_table.py --------------------------------------------------------------------------


@test
def circles_between_modules_are_found():
    graph = collections.defaultdict(set, {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()})
    equal(module_table.circles(graph), [["b", "c"]])
    graph["c"] = {"d"}
    equal(module_table.circles(graph), [])


@test
def lines_that_are_comments_are_counted():
    equal(module_table.comment_lines("/* a */\nint b; /* c */\n/*\n * d\n */\n"), 4)
    equal(module_table.comment_lines('char *a = "/* b */";\n// c\n'), 1)


# --- check_prose.py ---------------------------------------------------------------------------


def found(text):
    """Counter of the rules and words that a page breaks."""
    with Folder() as folder:
        (folder / "page.md").write_text(text)
        return collections.Counter(
            what for what, _, _ in check_prose.findings(folder / "page.md", check_prose.retired()))


@test
def retired_words_are_found_in_prose_only():
    equal(found("Somebody wrote it anew.\n"), {"somebody": 1, "anew": 1})
    equal(found("Nobody\n\n| a | nobody |\n\n# Nobody\n"), {"nobody": 3})
    equal(found("`nobody` [text](nobody.md) https://nobody.example\n\n```\nnobody\n```\n\n    nobody\n"),
          {})
    equal(found("It came out\notherwise.\n"), {"came out otherwise": 1})
    equal(found("A foreign key, a foreign trace.\n"), {"foreign": 1})
    equal(found("mushroom thingy\n"), {})


@test
def wide_prose_is_found():
    wide = "word " * 25
    equal(found(f"{wide}\n\n- {wide}\n"), {check_prose.WIDE: 2})
    equal(found(f"| {wide} |\n\n    {wide}\n\n# {wide}\n\n```\n{wide}\n```\n\n{'x' * 120}\n"), {})


@test
def wrapping_keeps_words_and_structure():
    with Folder() as folder:
        path = folder / "page.md"
        path.write_text("# Title\n\n- item " + "word " * 25 + "`a b`\n  more\n- next\n\n1. " + "one " * 30
                        + "\n\n> " + "said " * 30 + "\n\n| " + "cell " * 30 + "|\n")
        before = path.read_text()
        check_prose.fix(path)
        text = path.read_text()
        equal([w for w in text.split() if w != ">"], [w for w in before.split() if w != ">"])
        lines = text.split("\n")
        check(all(len(line) <= 100 or line.startswith("|") for line in lines), text)
        check(lines[3].startswith("  word") and "`a b` more" in text and "\n- next\n" in text, text)
        check("\n   one" in text and text.count("\n> said") == 2, text)
        check_prose.fix(path)
        equal(path.read_text(), text)


@test
def a_wrapped_line_does_not_become_a_list():
    block = check_prose.Block(1, True)
    block.lines = ["word " * 19 + "ends - not an item, and 3. is none either, " + "word " * 12]
    check(all(not check_prose.ITEM.match(line) for line in check_prose.wrapped(block)))


# --- check_commits.py -------------------------------------------------------------------------


def faults(message, changed=100):
    return list(check_commits.faults(message, changed))


@test
def good_messages_pass():
    for message in ("run: git is closed\n\nIt was open.\n", "run, base/io: a\n\nb\n"):
        equal(faults(message), [])
    equal(faults("docs: a word\n", 2), [])


@test
def bad_messages_are_told_apart():
    equal(faults("Fixed it\n\nwhy\n"), ['expected "module: what changes"'])
    equal(faults("run: " + "x" * 68 + "\n\nwhy\n"), ["73 columns, at most 72"])
    equal(faults("run: done.\n\nwhy\n"), ["ends with a full stop"])
    equal(faults("run: done\nwhy\n"), ["no empty line below the subject"])
    equal(faults("run: done\n"), ["changes 100 lines and does not say why"])
    equal(faults("run: done\n\nSigned-off-by: A <a@b>\n"), ["changes 100 lines and does not say why"])


# --- sum_results.py and the quarantine --------------------------------------------------------


@test
def a_flaky_test_counts_as_failed_unless_it_is_listed():
    first = {"a": (3, 0, 0), "b": (1, 1, 0), "c": (0, 1, 0)}
    again = {"b": (2, 0, 0), "c": (0, 1, 0)}
    counts, remarks = sum_results.with_second(first, again, {})
    equal(counts, first)
    check(len(remarks) == 1 and remarks[0].startswith("FLAKY: b "), remarks)
    counts, remarks = sum_results.with_second(first, again, {"b": "slow disk"})
    equal(counts, {"a": (3, 0, 0), "b": (2, 0, 0), "c": (0, 1, 0)})
    check(len(remarks) == 1 and "slow disk" in remarks[0], remarks)


@test
def entries_of_the_quarantine_end():
    with Folder() as folder:
        path = folder / "quarantine.txt"

        def read(*lines):
            path.write_text("# comment\n" + "".join(line + "\n" for line in lines))
            return quarantine.read(path, TODAY)

        equal(read("a\t2026-10-28\twhy"), ({"a": "why"}, []))
        for line, word in (("a\t2026-10-27\twhy", "31 days"), ("a\t2026-11-28\twhy", "future"),
                           ("a\t2026-11-27\t ", "reason"), ("a why", "tabs"), ("a\tnever\twhy", "tabs")):
            good, wrong = read(line)
            check(not good and len(wrong) == 1 and word in wrong[0], line, wrong)
        good, wrong = read("a\t2026-11-01\twhy", "a\t2026-11-02\twhy")
        check(len(good) == 1 and "twice" in wrong[0], wrong)


# --- check_coverage.py ------------------------------------------------------------------------


SECTIONS = {"F": "1 1.1"}
COMMANDS = {"run": {"json"}, "run show": {"json", "repo"}}


def coverage(folder, **changed):
    """A page with one row in each of two sections; `changed` replaces cells of the first."""
    cells = {"row": "F1-1", "asked": "a run ends", "state": "there", "shown": "`good_messages_pass`", "reason": "",
             **changed}
    text = ("# Page\n\n## Summary\n\n" + check_coverage.FIRST + check_coverage.LAST + "\n## F. Text\n\n### F1 One\n\n"
            "| row | what is asked | state | shown by | why |\n|---|---|---|---|---|\n| "
            + " | ".join(cells.values()) + " |\n\n### F1.1 Two\n\n| F1.1-1 | x | there | `cortex run` | |\n")
    page = folder / "page.md"
    page.write_text(check_coverage.with_summary(text))
    return page


@functools.cache
def facts():
    return check_coverage.Facts(check_coverage.ROOT, COMMANDS, {"key"})


def said(page, text=None):
    return check_coverage.faults(page.read_text() if text is None else text, facts(), page, SECTIONS)


@test
def a_whole_page_of_coverage_passes():
    with Folder() as folder:
        for shown in ("`good_messages_pass`", "`script:write_outside`, `cortex run show --json`", "`lattice_diff`",
                      "`vectors_run`, `check_docs`", "`cortex-verify --key`", "`./scripts/test.sh`",
                      "`GET /api/v1/runs/{id}`", "`tests/vectors/run/lock.json`", "`the_queries_of_the_seed_run`"):
            equal(said(coverage(folder, shown=shown)), [])
        for state, shown, reason in (("partly", "`cortex run`", "The other half is missing."),
                                     ("different", "`cortex run`", "[page](page.md#f1-one)"),
                                     ("not there", "", "Nothing of it exists yet.")):
            equal(said(coverage(folder, state=state, shown=shown, reason=reason)), [])


@test
def what_shows_a_row_must_exist():
    with Folder() as folder:
        for shown, why in (("`good_messages_passed`", "no such test"), ("`equal`", "no such test"),
                           ("`script:nothing`", "no such test"), ("`nothing_diff`", "no such test"),
                           ("`cortex runs`", "no such command"), ("`cortex run show --jsn`", "no option --jsn"),
                           ("`cortex run --repo`", "no option --repo"), ("`cortex-verify --kex`", "no option --kex"),
                           ("`./scripts/none.sh`", "no such file"), ("`./README.md`", "no program"),
                           ("`GET /api/v1/nothing`", "no such route"), ("`DELETE /api/v1/runs`", "no such route"),
                           ("`tests/../../x`", "no such file"), ("`/etc/passwd`", "no such file"),
                           ("good_messages_pass", "not in backquotes"), ("", "nothing shows it")):
            wrong = said(coverage(folder, shown=shown))
            check(wrong and any(why in one for one in wrong), shown, wrong)


@test
def a_row_of_coverage_is_whole():
    with Folder() as folder:
        for changed, why in (({"row": "F2-1"}, "not of section"), ({"row": "F1-0"}, "not of section"),
                             ({"asked": ""}, "what is asked"), ({"state": ""}, "the state is"),
                             ({"state": "done"}, "the state is"), ({"state": "partly"}, "without a reason"),
                             ({"state": "different", "reason": "because"}, "without a reason"),
                             ({"state": "not there", "reason": "", "shown": ""}, "without a reason"),
                             ({"reason": "[x](nowhere.md)"}, "no page nowhere.md"),
                             ({"reason": "[x](page.md#nowhere)"}, "no heading #nowhere")):
            wrong = said(coverage(folder, **changed))
            check(len(wrong) == 1 and why in wrong[0], changed, wrong)


@test
def a_page_of_coverage_is_whole():
    with Folder() as folder:
        page = coverage(folder)
        text = page.read_text()
        row = "| F1.1-1 | x | there | `cortex run` | |\n"
        for old, new, why in (("### F1.1 Two", "### F1.2 Two", "no section F1.1"),
                              ("### F1.1 Two", "### F1.2 Two", "F1.2 is no section"),
                              (row, "", "section F1.1 has no row"),
                              (row, row + row, "is there twice"),
                              (row, row + "| F1.1-2 | x | there |\n", "3 columns"),
                              (row, row + row.replace("1.1-1", "1.1-2"), "out of date"),
                              (check_coverage.LAST, "", "summary are missing")):
            check(old in text, old)
            wrong = said(page, text.replace(old, new))
            check(any(why in one for one in wrong), why, wrong)


main()
