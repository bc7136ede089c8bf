/*
 * test_agent_ops.c - the operations of a replay script, each once, and what they may not reach.
 */
#include "agent/agent_ops.h"

#include <stdlib.h>

#include "os/folder.h"
#include "tests/test.h"

typedef struct place {
    char path[64];
    cx_file folder;
    cx_arena arena;
    cx_err err;
} place;

static bool open_place(place *p)
{
    *p = (place){.path = "/tmp/cx_agent_XXXXXX"};
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    bool made = mkdtemp(p->path) != NULL;
    CHECK(made);
    if (made)
        CHECK_STATUS(cx_folder_open(p->path, &p->folder, &p->err), &p->err);
    return made;
}

static void close_place(place *p)
{
    cx_folder_close(p->folder);
    CHECK_STATUS(cx_path_remove_tree(p->path, &p->err), &p->err);
    cx_arena_done(&p->arena);
}

/* The code of the first that fails. */
static cx_code apply(place *p, const char *text)
{
    cx_json ops;
    cx_status status = cx_run_json_read(cx_str_z(text), 0, &p->arena, &ops, &p->err);
    if (!cx_failed(status))
        status = cx_agent_ops_check(&ops, &p->err);
    for (size_t i = 0; !cx_failed(status) && i < ops.count; i++)
        status = cx_agent_op_apply(p->path, &ops.items[i], cx_alloc_default(), &p->err);
    return status.code;
}

static bool holds(place *p, const char *path, const char *expected)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    bool same = !cx_failed(cx_folder_read_file(p->folder, path, 1000, &text, &p->err)) &&
                cx_str_is(cx_buf_str(&text), expected);
    cx_buf_done(&text);
    return same;
}

CX_TEST(agent_ops_change_files)
{
    place p;
    cx_facts facts;
    if (!open_place(&p))
        return;
    CHECK_INT(apply(&p, "[[\"write\",\"a/b/c\",\"one\\n\"],[\"append\",\"a/b/c\",\"two\\n\"],"
                        "[\"append\",\"new\",\"x\"],[\"write_b64\",\"bin\",\"AAE=\"],"
                        "[\"copy\",\"a/b/c\",\"d/e\"],[\"rename\",\"new\",\"f/g\"],"
                        "[\"hardlink\",\"d/e\",\"h\"],[\"symlink\",\"nowhere\",\"l\"],"
                        "[\"chmod\",\"h\",\"755\"],[\"mkfifo\",\"p\"],[\"mkdir\",\"m/n\"],"
                        "[\"touch\",\"h\"],[\"delete\",\"a\"]]"),
              CX_OK);
    CHECK(holds(&p, "d/e", "one\ntwo\n"));
    CHECK(holds(&p, "f/g", "x"));
    CHECK_STATUS(cx_folder_facts(p.folder, "bin", &facts, &p.err), &p.err);
    CHECK_INT(facts.size_bytes, 2);
    CHECK_STATUS(cx_folder_facts(p.folder, "h", &facts, &p.err), &p.err);
    CHECK_INT(facts.link_count, 2);
    CHECK_INT(facts.mode, 0755);
    CHECK_STATUS(cx_folder_facts(p.folder, "l", &facts, &p.err), &p.err);
    CHECK_INT(facts.kind, CX_FILE_LINK);
    CHECK_STATUS(cx_folder_facts(p.folder, "p", &facts, &p.err), &p.err);
    CHECK_INT(facts.kind, CX_FILE_SPECIAL);
    CHECK_INT(cx_folder_facts(p.folder, "a", &facts, &p.err).code, CX_E_NOT_FOUND);
    /* A link takes the place of a file. */
    CHECK_INT(apply(&p, "[[\"symlink\",\"f/g\",\"d/e\"]]"), CX_OK);
    close_place(&p);
}

CX_TEST(agent_ops_stay_below_the_worktree)
{
    static const char *const refused[] = {
        "[[\"write\",\"../escape\",\"x\"]]",
        "[[\"write\",\"/tmp/cx_agent_escape\",\"x\"]]",
        "[[\"write\",\"out/escape\",\"x\"]]",
        "[[\"rename\",\"in\",\"../escape\"]]",
        "[[\"copy\",\"in\",\"out/escape\"]]",
        "[[\"hardlink\",\"/etc/passwd\",\"stolen\"]]",
        "[[\"chmod\",\"out\",\"777\"]]",
        "[[\"write\",\"out\",\"x\"]]",
        "[[\"delete\",\"../x\"]]",
    };
    place p;
    if (!open_place(&p))
        return;
    CHECK_INT(apply(&p, "[[\"symlink\",\"/tmp\",\"out\"],[\"write\",\"in\",\"x\"]]"), CX_OK);
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++)
        if (apply(&p, refused[i]) == CX_OK)
            cx_test_fail(__FILE__, __LINE__, "was applied: %s", refused[i]);
    close_place(&p);
}

CX_TEST(agent_ops_that_are_none_are_refused)
{
    static const char *const refused[] = {
        "{}",
        "[{}]",
        "[[]]",
        "[[1]]",
        "[[\"burn\",\"x\"]]",
        "[[\"write\",\"a\"]]",
        "[[\"write\",\"a\",1]]",
        "[[\"write\",\"a\\u0000b\",\"x\"]]",
        "[[\"delete\",\"a\",\"b\"]]",
        "[[\"git\"]]",
    };
    place p;
    if (!open_place(&p))
        return;
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++)
        CHECK_INT(apply(&p, refused[i]), CX_E_FORMAT);
    CHECK_INT(apply(&p, "[[\"chmod\",\"a\",\"9\"]]"), CX_E_FORMAT);
    CHECK_INT(apply(&p, "[[\"write_b64\",\"a\",\"?\"]]"), CX_E_FORMAT);
    CHECK_INT(apply(&p, "[[\"delete\",\"a\"]]"), CX_E_NOT_FOUND);
    close_place(&p);
}

CX_TEST(agent_ops_use_git_without_anybodys_configuration)
{
    place p;
    if (!open_place(&p))
        return;
    CHECK_INT(apply(&p, "[[\"git\",\"init\",\"-q\",\"-b\",\"main\"],[\"write\",\"a\",\"x\\n\"],"
                        "[\"git\",\"add\",\"a\"],[\"git\",\"commit\",\"-qm\",\"one\"],"
                        "[\"gitlink\",\"sub\"],[\"git\",\"commit\",\"-qm\",\"two\"]]"),
              CX_OK);
    CHECK(holds(&p, ".git/HEAD", "ref: refs/heads/main\n"));
    CHECK_INT(apply(&p, "[[\"git\",\"no-such-command\"]]"), CX_E_FORMAT);
    CHECK(strstr(p.err.message, "no-such-command") != NULL);
    close_place(&p);
}
