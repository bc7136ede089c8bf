/*
 * cmd_show.c - `cortex show`: identifies an object (docs/formats/provenance.md).
 */
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/provenance/session.h"
#include "crypto/api.h"
#include "evidence/api.h"
#include "import/api.h"
#include "proof/api.h"

static void add_row(cx_buf *out, const char *label, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(out, "%-10s ", label);
    cx_shown_add(out, text);
    cx_buf_add_byte(out, '\n');
}

#define VALUE_SHOWN_MAX 200

/* A fact on one line; what is long is left to --json. */
static void add_fact(cx_buf *out, const cx_json_member *member, cx_arena *arena)
{
    const cx_json *value = &member->value;
    cx_str name = cx_json_text(&member->name);
    cx_buf text;
    if (value->type == CX_JSON_NULL)
        return;
    cx_buf_init(&text, arena->alloc);
    if (value->type == CX_JSON_STRING)
        cx_buf_add_str(&text, cx_json_text(value));
    else if (cx_failed(cx_json_write(&text, value, CX_JSON_PY_COMPACT, NULL)))
        cx_buf_clear(&text);
    cx_buf_printf(out, "  %-20.*s ", (int)name.size, name.data);
    bool cut = text.size > VALUE_SHOWN_MAX;
    cx_shown_add(out, cx_str_from((const char *)text.data, cut ? VALUE_SHOWN_MAX : text.size));
    cx_buf_add_z(out, cut ? " ..\n" : "\n");
    cx_buf_done(&text);
}

static void add_links(cx_buf *out, const cx_json *links)
{
    if (links == NULL || links->count == 0)
        return;
    cx_buf_add_z(out, "links\n");
    for (uint32_t i = 0; i < links->count; i++) {
        const cx_json *one = &links->items[i];
        cx_str relation = CX_JSON_GET_STR(one, "relation"), kind = CX_JSON_GET_STR(one, "kind");
        cx_str verdict = CX_JSON_GET_STR(one, "verdict");
        cx_buf_printf(out, "  %-16.*s %-8.*s ", (int)relation.size, relation.data, (int)kind.size,
                      kind.data);
        cx_shown_add(out, CX_JSON_GET_STR(one, "id"));
        cx_buf_printf(out, "\n  %-16s %.*s: ", "", (int)verdict.size, verdict.data);
        cx_shown_add(out, CX_JSON_GET_STR(one, "by"));
        cx_buf_add_byte(out, '\n');
    }
}

static void add_next(cx_buf *out, const cx_json *next)
{
    for (uint32_t i = 0; next != NULL && i < next->count; i++) {
        cx_buf_add_z(out, i == 0 ? "next       " : "           ");
        cx_shown_add(out, cx_json_text(&next->items[i]));
        cx_buf_add_byte(out, '\n');
    }
}

static void print_object(cx_buf *out, const cx_json *shown, cx_arena *arena)
{
    cx_str verdict = CX_JSON_GET_STR(shown, "verdict"), by = CX_JSON_GET_STR(shown, "by");
    const cx_json *where = CX_JSON_GET(shown, "where"), *facts = CX_JSON_GET(shown, "facts");
    cx_str kind = CX_JSON_GET_STR(shown, "kind");
    cx_str label = cx_arena_copy_str(arena, kind);
    add_row(out, label.data == NULL ? "object" : label.data, CX_JSON_GET_STR(shown, "id"));
    add_row(out, "what", CX_JSON_GET_STR(shown, "title"));
    cx_buf_printf(out, "%-10s %.*s: ", "verdict", (int)verdict.size, verdict.data);
    cx_shown_add(out, by);
    cx_buf_add_byte(out, '\n');
    cx_str matched = CX_JSON_GET_STR(shown, "matched");
    if (matched.data != NULL && !cx_str_is(matched, "id"))
        add_row(out, "found by", matched);
    for (uint32_t i = 0; where != NULL && i < where->count; i++)
        if (where->members[i].value.type == CX_JSON_STRING) {
            cx_str name = cx_arena_copy_str(arena, cx_json_text(&where->members[i].name));
            if (name.data != NULL)
                add_row(out, name.data, cx_json_text(&where->members[i].value));
        }
    for (uint32_t i = 0; facts != NULL && i < facts->count; i++)
        add_fact(out, &facts->members[i], arena);
    add_links(out, CX_JSON_GET(shown, "links"));
    add_next(out, CX_JSON_GET(shown, "next"));
}

/* --- files ------------------------------------------------------------------------------------ */

/* What a file is, and the command that shows more of it. */
static cx_str describe_file(cx_bytes bytes, const char *proof, cx_arena *arena, const char **next)
{
    cx_import_guessed guessed;
    if (strcmp(proof, "unknown") != 0)
        return cx_str_z(proof);
    cx_import_guess(bytes, &guessed);
    *next = guessed.is_lattice || guessed.format != NULL ? "view" : "verify";
    cx_str what = guessed.is_blank     ? CX_STR("an empty file")
                  : guessed.is_lattice ? CX_STR("a history of nodes")
                  : guessed.format != NULL
                      ? cx_arena_printf(arena, "a %s session or trace", guessed.format)
                  : guessed.other != NULL ? cx_str_z(guessed.other->description)
                                          : CX_STR("no proof and no session that is known");
    return what.data == NULL ? CX_STR("a file") : what;
}

/* What can be seen of a file without anything else: its hash, and what proof it is. */
static int show_file(cx_cli *cli, const cx_cli_args *args, const char *path)
{
    cx_err err = {0};
    cx_bytes bytes;
    cx_buf out;
    if (cx_failed(cx_cli_read_file(cli, path, &bytes, &err)))
        return cx_cli_ledger_fail(cli, args, &err);
    cx_digest digest = cx_digest_of(bytes);
    const char *kind =
        cx_evidence_recognise(bytes) ? "evidence" : cx_check_kind_name(cx_check_recognise(bytes));
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "json")) {
        cx_json_list list = cx_json_list_begin(&cli->arena);
        cx_json_put_str(&list, "kind", CX_STR("file"));
        cx_json_put_str(&list, "id", cx_str_z(path));
        cx_json_put_str(&list, "file_kind", cx_str_z(kind));
        cx_json_put_uint(&list, "bytes", bytes.size);
        cx_json_put_digest(&list, "sha256", &digest);
        if (cx_failed(cx_cli_end_json(&list, &out, &err)))
            return cx_cli_ledger_fail(cli, args, &err);
    } else {
        const char *next = "verify";
        cx_str what = describe_file(bytes, kind, &cli->arena, &next);
        add_row(&out, "file", cx_str_z(path));
        cx_buf_printf(&out, "%-10s %.*s, %zu bytes\n%-10s ", "what", (int)what.size, what.data,
                      bytes.size, "sha256");
        cx_cli_add_digest(&out, &digest);
        cx_buf_printf(&out, "\n%-10s cortex %s ", "next", next);
        cx_shown_add(&out, cx_cli_quoted(&cli->arena, path));
        cx_buf_add_byte(&out, '\n');
    }
    int code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static bool is_file(const char *path)
{
    cx_facts facts;
    return !cx_failed(cx_path_facts(path, true, &facts, NULL)) && facts.kind == CX_FILE_REGULAR;
}

/* --- the command ------------------------------------------------------------------------------ */

static cx_status show_objects(cx_cli *cli, const cx_cli_args *args, cx_cli_session *session,
                              cx_buf *out, cx_json *list, int *code, cx_err *err)
{
    cx_prov_object object;
    cx_json shown;
    CX_TRY(cx_cli_session_find(cli, session, args->operands[0], true, &object, list, err));
    CX_TRY(cx_prov_show(&session->sources, &object, &cli->arena, &shown, err));
    *code =
        cx_str_is(CX_JSON_GET_STR(&shown, "verdict"), "broken") ? CX_EXIT_BROKEN : CX_EXIT_HOLDS;
    if (!cx_cli_has(args, "json")) {
        print_object(out, &shown, &cli->arena);
        return cx_buf_check(out, err);
    }
    CX_TRY(cx_json_write(out, &shown, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

/* Several objects match: the answer lists them, and the exit code is 2. */
static void add_candidates(const cx_cli_args *args, const cx_json *list, cx_buf *out)
{
    cx_err ignored;
    cx_buf_clear(out);
    if (list->type != CX_JSON_OBJECT)
        return;
    if (!cx_cli_has(args, "json"))
        cx_cli_session_candidates(out, list);
    else if (!cx_failed(cx_json_write(out, list, CX_JSON_PY_COMPACT, &ignored)))
        cx_buf_add_byte(out, '\n');
}

static int run_show(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_cli_session session = {0};
    cx_json list = {0};
    cx_buf out;
    int code = CX_EXIT_HOLDS;
    cx_buf_init(&out, cli->alloc);
    cx_status status = cx_cli_session_open(cli, args, &session, &err);
    if (!cx_failed(status))
        status = show_objects(cli, args, &session, &out, &list, &code, &err);
    cx_cli_session_close(&session);
    if (status.code == CX_E_NOT_FOUND && err.tag != NULL && strcmp(err.tag, "NoThing") == 0 &&
        is_file(args->operands[0])) {
        cx_buf_done(&out);
        return show_file(cli, args, args->operands[0]);
    }
    if (cx_failed(status)) {
        bool listed = list.type == CX_JSON_OBJECT;
        add_candidates(args, &list, &out);
        if (listed)
            cx_cli_complain("%s: %s", args->command->name, err.message);
        code =
            listed ? cx_cli_answer(cli, &out, CX_EXIT_USAGE) : cx_cli_session_fail(cli, args, &err);
    } else {
        code = cx_cli_answer(cli, &out, code);
    }
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false}};
static const cx_cli_option options[] = {CX_CLI_OPTIONS_SESSION, CX_CLI_OPTION_JSON,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_show = {
    .name = "show",
    .purpose = "show any object by its id, hash, URI or root",
    .about = "Finds memories, traces, runs, events, commits, entries (ACTOR/SEQ), snapshots "
             "(ACTOR@N), journals, lattice nodes, keys, actors, lines (FILE:LINE) and proof files. "
             "Shows what each is, whether it is what was recorded, its references with the "
             "evidence for each, and commands to continue with. Hashes and ids may be shortened to "
             "8 characters: when several objects match, they are listed.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 shown\n1 shown, and it differs from what was recorded\n2 usage error, or ID is "
             "unknown or ambiguous\n3 could not be searched",
    .example = "cortex show 6e908976",
    .run = run_show,
};
