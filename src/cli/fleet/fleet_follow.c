/*
 * fleet_follow.c - `cortex fleet checkpoint --check FILE`: whether each part of a fleet still leads
 * from what was stated of it.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/fleet/fleet_args.h"
#include "cli/fleet/fleet_statement.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/checkpoint.h"
#include "ledger/api.h"

enum { LIMITS_MAX = 4 };

typedef struct result {
    cx_verdict verdict;
    const char *reason; /* NULL when it holds */
    cx_str detail;
    uint64_t commits; /* now */
} result;

typedef struct checking {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *url;
    cx_fleet *fleet;
    cx_cli_fleet_file file;
    cx_cli_fleet_statement statement;
    cx_cli_stored_checkpoint checkpoint;
    cx_vkey *keys;
    size_t key_count;
    result of_file; /* proof, signature, and the journal that recorded it */
    result *of_parts;
    bool is_signed; /* by a key given */
    bool other_fleet;
    uint64_t new_parts;
    const char *limits[LIMITS_MAX];
    size_t limit_count;
} checking;

static const result holds = {.verdict = CX_HOLDS};

/* What is wrong first is said; what is broken stays so. */
static void set_result(checking *c, result *out, cx_verdict verdict, const char *reason,
                       const char *message)
{
    if (out->verdict == CX_BROKEN || (out->verdict != CX_HOLDS && verdict != CX_BROKEN))
        return;
    out->verdict = verdict;
    out->reason = reason;
    out->detail = cx_arena_copy_str(&c->cli->arena, cx_str_z(message));
}

/* C2: what the database says is a finding, that it says nothing is none. */
static void set_error(checking *c, result *out, cx_status status, cx_err *err)
{
    bool broken = status.code == CX_E_CONFLICT || status.code == CX_E_FORMAT;
    const char *otherwise = broken ? "Damaged" : "NotRead";
    set_result(c, out, broken ? CX_BROKEN : CX_INDETERMINATE,
               err->tag == NULL ? otherwise : err->tag, err->message);
}

/* --- the file --------------------------------------------------------------------------------- */

static cx_status read_keys(checking *c, cx_err *err)
{
    const cx_cli_given *given = NULL;
    c->keys = CX_ARENA_ARRAY(&c->cli->arena, cx_vkey, c->args->given_count + 1);
    if (c->keys == NULL)
        return cx_fail_nomem(err);
    while ((given = cx_cli_next(c->args, "key", given)) != NULL) {
        if (c->key_count == CX_NOTE_KEYS_MAX)
            return cx_fail(err, CX_E_USAGE, "option --key: at most %d keys", CX_NOTE_KEYS_MAX);
        CX_TRY(
            cx_cli_read_key(c->cli, "option --key", given->values[0], &c->keys[c->key_count], err));
        c->key_count++;
    }
    return CX_SUCCESS;
}

/* C1 */
static cx_status read_statement(checking *c, cx_err *err)
{
    cx_inclusion proof;
    cx_entry entry;
    CX_TRY(cx_inclusion_decode(c->file.proof, &c->cli->arena, &proof, err));
    CX_TRY(cx_entry_decode(proof.entry, &entry, err));
    if (!cx_kinds_is(entry.kind, CX_KIND_FLEET_CHECKPOINT) || entry.seq != c->file.seq)
        set_result(c, &c->of_file, CX_BROKEN, "NotAStatement",
                   "its proof is of another entry than a statement about parts");
    else if (!cx_str_eq(cx_bytes_str(entry.payload), c->file.statement))
        set_result(c, &c->of_file, CX_BROKEN, "StatementChanged",
                   "the statement is not the one that its proof is of");
    if (c->of_file.verdict == CX_BROKEN)
        return CX_SUCCESS;
    return cx_cli_fleet_statement_read(cx_bytes_str(entry.payload), &c->cli->arena, &c->statement,
                                       err);
}

static cx_status check_file(checking *c, cx_err *err)
{
    const cx_journal_point point = {c->checkpoint.checkpoint.size, c->checkpoint.checkpoint.root};
    bool by_note = c->key_count != 0 && c->checkpoint.is_note;
    const cx_check_options trust = {.keys = c->keys,
                                    .key_count = by_note ? c->key_count : 0,
                                    .checkpoint =
                                        by_note ? c->checkpoint.bytes : (cx_bytes){NULL, 0},
                                    .journal = by_note ? NULL : &point,
                                    .require = by_note ? CX_REQUIRE_SIGNED : CX_REQUIRE_ANCHORED};
    cx_check_result found;
    CX_TRY(cx_check_run(c->file.proof, &trust, &c->cli->arena, &found, err));
    if (found.kind != CX_CHECK_INCLUSION) {
        set_result(c, &c->of_file, CX_BROKEN, "BadProof", "it has no proof of an entry");
        return CX_SUCCESS;
    }
    if (found.finding.verdict != CX_HOLDS)
        set_result(c, &c->of_file, found.finding.verdict,
                   found.finding.reason == NULL ? "BadProof" : found.finding.reason,
                   found.finding.message);
    else if (c->key_count != 0 && !found.is_signed)
        set_result(c, &c->of_file, CX_INDETERMINATE, "NotSigned",
                   "none of the keys given has signed it");
    c->is_signed = found.finding.verdict == CX_HOLDS && found.is_signed;
    return c->of_file.verdict == CX_BROKEN ? CX_SUCCESS : read_statement(c, err);
}

static cx_status read_question(checking *c, cx_err *err)
{
    const char *path = cx_cli_value(c->args, "check");
    cx_bytes text;
    cx_err why = {0};
    CX_TRY(cx_cli_fleet_url(c->args, &c->url, err));
    CX_TRY(read_keys(c, err));
    CX_TRY(cx_cli_read_file(c->cli, path, &text, err));
    cx_status status = cx_cli_fleet_file_read(cx_bytes_str(text), &c->cli->arena, &c->file, &why);
    if (!cx_failed(status))
        status = cx_cli_parse_checkpoint(c->file.checkpoint, &c->checkpoint, &why);
    if (cx_failed(status))
        return cx_fail_at(err, why.code, why.tag, why.offset, "%s: %s", path, why.message);
    c->of_file = holds;
    return check_file(c, err);
}

/* --- a part ----------------------------------------------------------------------------------- */

static cx_status compare_roots(checking *c, cx_home *home, const cx_cli_fleet_part *part,
                               cx_err *err)
{
    cx_cli_ledger l = {.cli = c->cli,
                       .args = c->args,
                       .arena = &c->cli->arena,
                       .actor = CX_STR(CX_HOME_ROOT_ACTOR),
                       .home = home};
    cx_checkpoint older = {.size = part->roots, .root = part->roots_root}, now = {.size = 0};
    cx_home_root root;
    CX_TRY(cx_home_root_now(home, &root, err));
    if (root.entries < part->root.entries || root.actors < part->root.actors)
        return cx_fail_at(err, CX_E_CONFLICT, "RolledBack", CX_NO_OFFSET,
                          "it has %" PRIu64 " entries of %" PRIu64 " actors, and %" PRIu64
                          " of %" PRIu64 " were stated",
                          root.entries, root.actors, part->root.entries, part->root.actors);
    if (root.entries == part->root.entries && !cx_digest_eq(&root.root, &part->root.root))
        return cx_fail_at(err, CX_E_CONFLICT, "RootMismatch", CX_NO_OFFSET,
                          "it has as many entries as were stated, and another root over its "
                          "actors: something in it was written anew");
    if (part->roots == 0)
        return CX_SUCCESS;
    CX_TRY(cx_cli_fleet_roots_of(home, &now.size, &now.root, err));
    return cx_cli_check_follows(&l, &older, &now, NULL, err);
}

static void check_home(checking *c, const cx_cli_fleet_part *part, result *out)
{
    cx_home *home = NULL;
    cx_err err = {0};
    if (!part->has_home)
        return;
    cx_status status = cx_cli_fleet_home_open(c->cli, c->url, part->name, &home, &err);
    if (cx_failed(status))
        set_result(c, out, CX_INDETERMINATE, err.tag == NULL ? "NotRead" : err.tag, err.message);
    else if (home == NULL)
        set_result(c, out, CX_BROKEN, "NoHome", "the part has no data directory any more");
    else if (cx_failed(status = compare_roots(c, home, part, &err)))
        set_error(c, out, status, &err);
    cx_cli_fleet_home_close(c->cli, home);
}

static void check_part(checking *c, const cx_cli_fleet_part *part, result *out)
{
    cx_err err = {0};
    cx_fleet_chain chain;
    *out = holds;
    cx_status status = cx_fleet_follows(c->fleet, part->name, &part->point, &out->commits, &err);
    bool pruned =
        status.code == CX_E_UNSUPPORTED && err.tag != NULL && strcmp(err.tag, "Pruned") == 0;
    /* Not known to hold; the rest may be broken all the same. */
    if (pruned) {
        set_error(c, out, status, &err);
        status = CX_SUCCESS;
    }
    if (!cx_failed(status) && cx_cli_has(c->args, "chains"))
        status = cx_fleet_check(c->fleet, part->point.number, &chain, &err);
    if (cx_failed(status))
        set_error(c, out, status, &err);
    else
        check_home(c, part, out);
}

/* --- the journal that recorded it ------------------------------------------------------------- */

static cx_status journal_now(checking *c, cx_home *home, cx_err *err)
{
    cx_cli_ledger l = {.cli = c->cli,
                       .args = c->args,
                       .arena = &c->cli->arena,
                       .actor = CX_STR(CX_FLEET_JOURNAL),
                       .home = home};
    cx_checkpoint now;
    cx_err why = {0};
    cx_status status = cx_cli_checkpoint_now(&l, c->checkpoint.checkpoint.origin, &now, &why);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_CONFLICT, "Truncated", CX_NO_OFFSET,
                          "the journal " CX_FLEET_JOURNAL " is not in the part that recorded it");
    if (cx_failed(status)) {
        *err = why;
        return status;
    }
    return cx_cli_check_follows(&l, &c->checkpoint.checkpoint, &now, NULL, err);
}

static void check_journal(checking *c)
{
    cx_home *home = NULL;
    cx_err err = {0};
    cx_status status = cx_cli_fleet_home_open(c->cli, c->url, c->file.part, &home, &err);
    if (status.code == CX_E_NOT_FOUND || (!cx_failed(status) && home == NULL))
        set_result(c, &c->of_file, CX_BROKEN, "PartRemoved",
                   "the part that recorded it is not there any more");
    else if (cx_failed(status))
        set_result(c, &c->of_file, CX_INDETERMINATE, err.tag == NULL ? "NotRead" : err.tag,
                   err.message);
    else if (cx_failed(status = journal_now(c, home, &err)))
        set_error(c, &c->of_file, status, &err);
    cx_cli_fleet_home_close(c->cli, home);
}

/* --- all of them ------------------------------------------------------------------------------ */

static cx_status note_row(void *arg, const cx_fleet_row *row, cx_err *err)
{
    checking *c = arg;
    (void)err;
    for (size_t i = 0; i < c->statement.count; i++) {
        if (!cx_str_eq(c->statement.parts[i].name, row->name))
            continue;
        if (row->moved_to.size != 0)
            set_result(c, &c->of_parts[i], CX_INDETERMINATE, "PartMoved",
                       "it was moved to another database: what was written since is there");
        return CX_SUCCESS;
    }
    c->new_parts++;
    return CX_SUCCESS;
}

static void add_limit(checking *c, const char *text)
{
    CX_ASSERT(c->limit_count < LIMITS_MAX);
    c->limits[c->limit_count++] = text;
}

static cx_status check_all(checking *c, cx_err *err)
{
    const cx_fleet_options options = {.node = "cortex-fleet", .read_only = true};
    uint8_t id[16];
    CX_TRY(cx_fleet_open(c->url, &options, &c->fleet, err));
    c->of_parts = CX_ARENA_ARRAY(&c->cli->arena, result, c->statement.count + 1);
    if (c->of_parts == NULL)
        return cx_fail_nomem(err);
    cx_fleet_id(c->fleet, id);
    if (memcmp(id, c->statement.fleet, sizeof id) != 0)
        set_result(c, &c->of_file, CX_BROKEN, "OtherFleet",
                   "the database has another fleet than the one that it is about");
    check_journal(c);
    for (size_t i = 0; i < c->statement.count; i++)
        check_part(c, &c->statement.parts[i], &c->of_parts[i]);
    CX_TRY(cx_fleet_list(c->fleet, note_row, c, err));
    if (c->key_count == 0)
        add_limit(c, "its signature was not checked: no key was given");
    if (!cx_cli_has(c->args, "chains"))
        add_limit(c, "the links of commits were recomputed, and not their bytes; see --chains");
    if (c->new_parts != 0)
        add_limit(c, "parts that were made since are not in it");
    add_limit(c, "what was recorded since is not in it, and may have been replaced");
    return CX_SUCCESS;
}

static cx_verdict verdict_of(const checking *c)
{
    cx_verdict verdict = c->of_file.verdict;
    for (size_t i = 0; c->of_parts != NULL && i < c->statement.count; i++) {
        cx_verdict part = c->of_parts[i].verdict;
        if (part == CX_BROKEN || verdict == CX_HOLDS)
            verdict = part;
    }
    return verdict;
}

/* --- the answer ------------------------------------------------------------------------------- */

static const char *word_of(cx_verdict verdict)
{
    return verdict == CX_HOLDS ? "holds" : verdict == CX_BROKEN ? "broken" : "indeterminate";
}

static void put_result(cx_json_list *json, const result *of)
{
    cx_json_put_maybe(json, "detail", of->detail);
    cx_json_put_maybe(json, "reason", of->reason == NULL ? CX_STR("") : cx_str_z(of->reason));
    cx_json_put_z(json, "verdict", word_of(of->verdict));
}

static cx_status write_json(const checking *c, cx_buf *out, cx_err *err)
{
    cx_arena *arena = &c->cli->arena;
    cx_json_list json = cx_json_list_begin(arena), parts = cx_json_list_begin(arena);
    cx_json_list file = cx_json_list_begin(arena);
    cx_str limits[LIMITS_MAX];
    for (size_t i = 0; c->of_parts != NULL && i < c->statement.count; i++) {
        cx_json_list part = cx_json_list_begin(arena);
        cx_json_put_uint(&part, "commits", c->of_parts[i].commits);
        cx_json_put_uint(&part, "commits_stated", c->statement.parts[i].point.commits);
        cx_json_put_str(&part, "name", c->statement.parts[i].name);
        cx_json_put_uint(&part, "part", c->statement.parts[i].point.number);
        put_result(&part, &c->of_parts[i]);
        cx_json_add_object(&parts, &part);
    }
    for (size_t i = 0; i < c->limit_count; i++)
        limits[i] = cx_str_z(c->limits[i]);
    put_result(&file, &c->of_file);
    cx_json_put_object(&json, "file", &file);
    cx_json_put_strs(&json, "limits", limits, c->limit_count);
    cx_json_put_uint(&json, "new_parts", c->new_parts);
    cx_json_put_array(&json, "parts", &parts);
    cx_json_put_str(&json, "recorded_by", c->file.part);
    cx_json_put_uint(&json, "seq", c->file.seq);
    cx_json_put_bool(&json, "signed", c->is_signed);
    cx_json_put_z(&json, "verdict", word_of(verdict_of(c)));
    return cx_cli_end_json(&json, out, err);
}

static void write_line(cx_buf *out, cx_str name, const result *of)
{
    cx_buf_printf(out, "%-13s ", word_of(of->verdict));
    cx_shown_add(out, name);
    if (of->reason != NULL) {
        cx_buf_printf(out, "  %s: ", of->reason);
        cx_shown_add(out, of->detail);
    }
}

static cx_status write_text(const checking *c, cx_buf *out, cx_err *err)
{
    write_line(out, CX_STR("the file"), &c->of_file);
    if (c->of_file.reason == NULL)
        cx_buf_printf(out, "  entry %" PRIu64 " of " CX_FLEET_JOURNAL " in the part %.*s%s",
                      c->file.seq, (int)c->file.part.size, c->file.part.data,
                      c->is_signed ? ", signed by a key given" : "");
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; c->of_parts != NULL && i < c->statement.count; i++) {
        const result *of = &c->of_parts[i];
        write_line(out, c->statement.parts[i].name, of);
        if (of->reason == NULL)
            cx_buf_printf(out, "  %" PRIu64 " of %" PRIu64 " commits",
                          c->statement.parts[i].point.commits, of->commits);
        cx_buf_add_byte(out, '\n');
    }
    for (size_t i = 0; i < c->limit_count; i++)
        cx_buf_printf(out, "limit: %s\n", c->limits[i]);
    return cx_buf_check(out, err);
}

int cx_cli_fleet_follow(cx_cli *cli, const cx_cli_args *args)
{
    static const int codes[] = {[CX_HOLDS] = CX_EXIT_HOLDS,
                                [CX_BROKEN] = CX_EXIT_BROKEN,
                                [CX_INDETERMINATE] = CX_EXIT_UNCHECKED};
    cx_err err = {0};
    checking c = {.cli = cli, .args = args};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = read_question(&c, &err);
    if (!cx_failed(status) && c.of_file.verdict != CX_BROKEN)
        status = check_all(&c, &err);
    if (!cx_failed(status))
        status = cx_cli_has(args, "json") ? write_json(&c, &out, &err) : write_text(&c, &out, &err);
    status = cx_cli_part_denied(status, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, codes[verdict_of(&c)]);
    cx_buf_done(&out);
    cx_fleet_close(c.fleet);
    return code;
}
