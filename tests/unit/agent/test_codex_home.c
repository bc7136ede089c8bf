/*
 * A config.toml without MCP servers, and copies of a base home: what is kept, left out, refused.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "agent/codex_home.h"
#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct filtered {
    cx_arena arena;
    cx_buf out;
    cx_json removed;
    cx_buf secrets; /* each in brackets */
    cx_status status;
    cx_err err;
} filtered;

static cx_status keep(void *arg, cx_str value, cx_err *err)
{
    cx_buf *secrets = arg;
    cx_buf_printf(secrets, "<%.*s>", (int)value.size, value.data);
    return cx_buf_check(secrets, err);
}

static void filter(filtered *f, cx_str text)
{
    memset(f, 0, sizeof *f);
    cx_arena_init(&f->arena, cx_alloc_default(), 0);
    cx_buf_init(&f->out, cx_alloc_default());
    cx_buf_init(&f->secrets, cx_alloc_default());
    cx_json_list removed = cx_json_list_begin(&f->arena);
    f->status =
        cx_codex_config_filter(text, keep, &f->secrets, &f->arena, &removed, &f->out, &f->err);
    CHECK_STATUS(cx_json_list_end_array(&removed, &f->removed, &f->err), &f->err);
}

static void done(filtered *f)
{
    cx_buf_done(&f->out);
    cx_buf_done(&f->secrets);
    cx_arena_done(&f->arena);
}

static void check_kept(const char *text, const char *kept, size_t removed)
{
    filtered f;
    filter(&f, cx_str_z(text));
    CHECK_STATUS(f.status, &f.err);
    CHECK_STR(cx_buf_str(&f.out), kept);
    CHECK_INT(f.removed.count, removed);
    done(&f);
}

/* codex_home.h I2 */
CX_TEST(codex_config_drops_servers)
{
    check_kept("", "", 0);
    check_kept("# only a comment", "# only a comment", 0);
    check_kept("a = 1\n[mcp_servers.x]\ncommand = \"y\"\n[b]\nc = 2\n", "a = 1\n[b]\nc = 2\n", 1);
    check_kept("[mcp_servers]\nx = {command = \"y\"}\nz.command = 'q'\n[b]\n", "[b]\n", 2);
    check_kept("[mcp_servers.x]\n[mcp_servers.x.env]\nA = \"b\"\n[ mcp_servers . \"y\" ]\n", "", 2);
    check_kept("[[mcp_servers]]\na = 1\n[[mcp_servers.x]]\nb = 1\n[[other]]\n", "[[other]]\n", 2);
    check_kept("mcp_servers.x.command = \"y\"\nmodel = \"m\"\n", "model = \"m\"\n", 1);
    check_kept("mcp_servers = { x = { command = \"y\" }, \"z\" = {} }\na = 1", "a = 1", 2);
    check_kept("a = 1 # [mcp_servers]\r\n[mcp_servers.x] # c\r\nb = 1\r\n[c]\r\n",
               "a = 1 # [mcp_servers]\r\n[c]\r\n", 1);
    /* The name as its writer likes it. */
    check_kept("\"mcp_servers\".x = 1\n'mcp_servers'.y = 2\n", "", 2);
    check_kept("[\"mcp\\u005fservers\".x]\na = 1\n[\"\\U0000006dcp_servers\"]\nb = 1\n", "", 2);
    check_kept("[mcp_servers.\"a.b\"]\n[mcp_servers.'a.b'.env]\n", "", 1);
}

/* codex_home.h I2 */
CX_TEST(codex_config_keeps_everything_else)
{
    static const char *const whole[] = {
        "[mcp_servers_old]\na = 1\n[x.mcp_servers]\nb = 1\n[x]\nmcp_servers = 1\n",
        "a = \"[mcp_servers]\"\nb = '[mcp_servers.x]'\n",
        "a = \"\"\"\n[mcp_servers.x]\ncommand = \\\"\"\"\"\"\nb = 1\n",
        "a = '''\n[mcp_servers]\n\\'''\nb = '''''''\nc = 1\n",
        "a = \"\"\"x\\\n   \n  [mcp_servers]\"\"\"\n",
        "a = [\n  \"]\", # ] [mcp_servers]\n  ['b', {c = \"}\"}],\n]\n",
        "a = {b = [1,\n2], c.d = 1979-05-27 07:32:00, e = +1_000.5e-3}\nf = -inf\ng = 07:32:00\n",
        "\"a\\\"b\" = true\n'c' . d=false\n\n\t# e\n  [ f . 'g' ]\t\n",
        "a = \"\"\nb = ''\nc = \"\"\"\"\"\"\n\"\" = 1\n",
    };
    for (size_t i = 0; i < CX_COUNT_OF(whole); i++)
        check_kept(whole[i], whole[i], 0);
}

CX_TEST(codex_config_refuses_what_it_cannot_read)
{
    static const char *const wrong[] = {
        "a",
        "a =",
        "= 1",
        "a = 1 b = 2",
        "a = b",
        "a = \"x",
        "a = \"x\ny\"",
        "a = \"\"\"x\"\"",
        "a = 'x\n[mcp_servers.y]",
        "a = '''x",
        "a = \"\\x41\"",
        "a = \"\\u12\"",
        "a = \"\\ud800\"",
        "a = \"\\U00110000\"",
        "a = \"b\\\nc\"",
        "a = [1 2]",
        "a = [1",
        "a = {b = 1",
        "a = {b = 1,}",
        "a = {b = 1\n}",
        "a = {b}",
        "[a",
        "[a]]",
        "[[a]",
        "[[a] ]",
        "[]",
        "[a] b = 1",
        "[a.]",
        "a..b = 1",
        "a b = 1",
        "\"\"\"a\"\"\" = 1",
        "m\xC3\xA9 = 1",
        "a = 1\rb = 2",
        "a = \"\x01\"",
        "# \x7F",
        "a = \"\xFF\"",
        "\xEF\xBB\xBF[mcp_servers.x]",
        "mcp_servers",
        "mcp_servers.x",
    };
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++) {
        filtered f;
        filter(&f, cx_str_z(wrong[i]));
        CHECK_INT(f.status.code, CX_E_FORMAT);
        CHECK(strncmp(f.err.message, "line ", 5) == 0);
        done(&f);
    }
    filtered f;
    filter(&f, (cx_str){"a = 1\n\0[mcp_servers]", 20});
    CHECK_INT(f.status.code, CX_E_FORMAT);
    CHECK(strncmp(f.err.message, "line 2:", 7) == 0);
    done(&f);
}

/* `count` times `each` after "a = ", and the status. */
static cx_code repeated(const char *each, size_t count)
{
    filtered f;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "a = ");
    for (size_t i = 0; i < count; i++)
        cx_buf_add_z(&text, each);
    filter(&f, cx_buf_str(&text));
    cx_code code = f.status.code;
    done(&f);
    cx_buf_done(&text);
    return code;
}

CX_TEST(codex_config_limits)
{
    CHECK_INT(repeated("[", 100000), CX_E_FORMAT);
    CHECK_INT(repeated("{a=", 100000), CX_E_FORMAT);
    CHECK_INT(repeated("1", CX_CODEX_CONFIG_BYTES_MAX), CX_E_LIMIT);
    CHECK_INT(repeated("1", CX_CODEX_CONFIG_BYTES_MAX - 4), CX_OK);
}

CX_TEST(codex_config_names_secrets_and_servers)
{
    filtered f;
    filter(&f,
           CX_STR("name = \"n\"\napi_key = \"one\"\n[p.x]\nbearer_token = 'two'\nh = {\"X-Secret\" "
                  "= \"th\\u0072ee\", q = \"no\"}\nkeys = [\"four\"]\n[tokens]\na = \"five\"\n"
                  "[mcp_servers.s1]\n[mcp_servers.s0]\n"));
    CHECK_STATUS(f.status, &f.err);
    CHECK_STR(cx_buf_str(&f.secrets), "<one><two><three><four><five>");
    CHECK_INT(f.removed.count, 2);
    CHECK_STR(cx_json_text(&f.removed.items[0]), "s1");
    CHECK_STR(cx_json_text(&f.removed.items[1]), "s0");
    done(&f);
}

/* --- a home ----------------------------------------------------------------------------------- */

static char place[FOLDER_PATH_SIZE];
static cx_arena arena;

static const char *at(const char *name)
{
    return cx_arena_printf(&arena, "%s/%s", place, name).data;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "wb");
    CX_ASSERT(file != NULL);
    CHECK(fwrite(text, 1, strlen(text), file) == strlen(text));
    CHECK(fclose(file) == 0);
}

static void fresh(const char *name)
{
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(place, name);
    CHECK_INT(mkdir(place, 0700), 0);
    CHECK_INT(mkdir(at("base"), 0755), 0);
}

static void over(void)
{
    folder_remove(place);
    cx_arena_done(&arena);
}

static cx_code make(cx_json *out, cx_run_mask *mask, cx_err *err)
{
    static const char *const none[] = {NULL};
    cx_json unused;
    CHECK_STATUS(cx_run_mask_init(mask, none, &arena, err), err);
    return cx_codex_home_make(at("base"), at("copy"), mask, &arena, out == NULL ? &unused : out,
                              err)
        .code;
}

static unsigned mode_of(const char *name)
{
    struct stat facts;
    return lstat(at(name), &facts) == 0 ? facts.st_mode & 07777u : 0;
}

CX_TEST(codex_home_is_a_private_copy)
{
    cx_run_mask mask;
    cx_err err;
    cx_json said;
    cx_str shown;
    fresh("codex-home");
    put("base/config.toml", "model = \"m\"\n[mcp_servers.x]\ncommand = \"y\"\n");
    put("base/auth.json", "{\"tokens\":{\"id\":\"abcdef-ghijkl\"},\"mode\":\"plain-text\"}");
    CHECK_INT(mkdir(at("base/prompts"), 0755), 0);
    put("base/prompts/a.md", "do\n");
    CHECK_INT(mkdir(at("base/sessions"), 0755), 0);
    put("base/sessions/old", "private\n");
    put("base/history.jsonl", "private\n");
    put("base/.credentials.json", "{}");
    CHECK_INT(symlink("/etc/passwd", at("base/link")), 0);
    CHECK_INT(mkfifo(at("base/pipe"), 0600), 0);
    CHECK_INT(make(&said, &mask, &err), CX_OK);
    CHECK_INT(mode_of("copy"), 0700);
    CHECK_INT(mode_of("copy/config.toml"), 0600);
    CHECK_INT(mode_of("copy/prompts"), 0700);
    CHECK_INT(mode_of("copy/sessions") + mode_of("copy/link") + mode_of("copy/pipe"), 0);
    const cx_json *files = CX_JSON_GET(&said, "files"), *left = CX_JSON_GET(&said, "left_out");
    CHECK_INT(files->count, 3);
    CHECK_STR(cx_json_text(&files->items[2]), "prompts/a.md");
    CHECK_INT(left->count, 5);
    CHECK_INT(CX_JSON_GET(&said, "mcp_servers_removed")->count, 1);
    CHECK_INT(CX_JSON_GET_STR(&said, "listing_sha256").size, 64);
    CHECK_STATUS(cx_run_mask_text(&mask, CX_STR("plain-text abcdef-ghijkl"), &arena, &shown, &err),
                 &err);
    CHECK_STR(shown, "plain-text [masked]");
    cx_run_mask_done(&mask);
    over();
}

static void check_refused(cx_code code, const char *message)
{
    cx_run_mask mask;
    cx_err err;
    CHECK_INT(make(NULL, &mask, &err), code);
    CHECK_STR(cx_str_z(err.message), message);
    CHECK(strstr(err.message, place) == NULL); /* it becomes evidence */
    cx_run_mask_done(&mask);
}

/* codex_home.h I1 */
CX_TEST(codex_home_that_cannot_be_copied)
{
    fresh("codex-home-refused");
    put("base/config.toml", "a = 1\nb\n");
    check_refused(CX_E_FORMAT, CX_CODEX_BASE_HOME_ENV ": config.toml: line 2: expected '='");
    CHECK_INT(unlink(at("base/config.toml")), 0);
    CHECK_INT(symlink("/etc/passwd", at("base/config.toml")), 0);
    check_refused(CX_E_DENIED, CX_CODEX_BASE_HOME_ENV ": config.toml: it is no regular file");
    CHECK_INT(unlink(at("base/config.toml")), 0);
    put("base/a\xFF", "");
    check_refused(CX_E_FORMAT, CX_CODEX_BASE_HOME_ENV ": a\\377: its name is not UTF-8");
    CHECK_INT(unlink(at("base/a\xFF")), 0);
    CHECK_INT(chmod(at("base"), 0777), 0);
    check_refused(CX_E_DENIED, CX_CODEX_BASE_HOME_ENV ": anybody may write to it");
    CHECK_INT(rmdir(at("base")), 0);
    check_refused(CX_E_NOT_FOUND, CX_CODEX_BASE_HOME_ENV " names no folder that can be read");
    over();
}

CX_TEST(codex_home_of_too_much)
{
    cx_run_mask mask;
    cx_err err;
    fresh("codex-home-limits");
    put("base/auth.json", "no JSON");
    CHECK(make(NULL, &mask, &err) != CX_OK);
    cx_run_mask_done(&mask);
    put("base/auth.json", "{}");
    CHECK_INT(truncate(at("base/auth.json"), (CX_CODEX_HOME_BYTES_MAX) + 1), 0);
    CHECK_INT(make(NULL, &mask, &err), CX_E_LIMIT);
    cx_run_mask_done(&mask);
    put("base/auth.json", "{}");
    for (int i = 0; i < CX_CODEX_FILES_MAX; i++)
        put(cx_arena_printf(&arena, "base/%d", i).data, "");
    CHECK_INT(make(NULL, &mask, &err), CX_E_LIMIT);
    CHECK(strstr(err.message, place) == NULL);
    cx_run_mask_done(&mask);
    over();
}
