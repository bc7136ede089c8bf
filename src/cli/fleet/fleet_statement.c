/*
 * fleet_statement.c - a statement about all parts of a fleet as JSON, and its file.
 */
#include "cli/fleet/fleet_statement.h"

#include <string.h>

#include "cli/ledger/ledger.h"
#include "json/api.h"

#define STATEMENT_TYPE "cortex.fleet.statement.v1"
#define FILE_TYPE "cortex.fleet.checkpoint.v1"

/* --- writing ---------------------------------------------------------------------------------- */

static void put_home(cx_json_list *json, const cx_cli_fleet_part *part)
{
    cx_json_list root = cx_json_list_begin(json->arena), roots = cx_json_list_begin(json->arena);
    if (!part->has_home) {
        cx_json_put_null(json, "home_root");
        cx_json_put_null(json, "home_roots");
        return;
    }
    cx_json_put_uint(&root, "actors", part->root.actors);
    cx_json_put_uint(&root, "entries", part->root.entries);
    cx_json_put_digest(&root, "root", &part->root.root);
    cx_json_put_object(json, "home_root", &root);
    if (part->roots == 0) {
        cx_json_put_null(json, "home_roots");
        return;
    }
    cx_json_put_digest(&roots, "root", &part->roots_root);
    cx_json_put_uint(&roots, "size", part->roots);
    cx_json_put_object(json, "home_roots", &roots);
}

static void put_part(cx_json_list *parts, const cx_cli_fleet_part *part)
{
    cx_json_list json = cx_json_list_begin(parts->arena);
    cx_json_put_uint(&json, "commits", part->point.commits);
    cx_json_put_uint(&json, "epoch", part->point.epoch);
    cx_json_put_digest(&json, "head", &part->point.head);
    put_home(&json, part);
    cx_json_put_hex(&json, "id", cx_bytes_from(part->point.id, sizeof part->point.id));
    cx_json_put_str(&json, "name", part->name);
    cx_json_put_uint(&json, "part", part->point.number);
    cx_json_add_object(parts, &json);
}

cx_status cx_cli_fleet_statement_write(const cx_cli_fleet_statement *statement, cx_arena *arena,
                                       cx_buf *out, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(arena), parts = cx_json_list_begin(arena);
    cx_json value;
    for (size_t i = 0; i < statement->count; i++)
        put_part(&parts, &statement->parts[i]);
    cx_json_put_hex(&json, "fleet", cx_bytes_from(statement->fleet, sizeof statement->fleet));
    cx_json_put_array(&json, "parts", &parts);
    cx_json_put_z(&json, "type", STATEMENT_TYPE);
    CX_TRY(cx_json_list_end_object(&json, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

cx_status cx_cli_fleet_file_write(const cx_cli_fleet_file *file, cx_arena *arena, cx_buf *out,
                                  cx_err *err)
{
    cx_json_list json = cx_json_list_begin(arena);
    cx_json statement;
    cx_buf proof;
    CX_TRY(cx_json_parse_text(file->statement, arena, &statement, err));
    cx_buf_init(&proof, cx_alloc_default());
    cx_base64_add(&proof, file->proof, CX_BASE64);
    cx_json_put_z(&json, "actor", CX_FLEET_JOURNAL);
    cx_json_put_str(&json, "checkpoint", cx_bytes_str(file->checkpoint));
    cx_json_put_str(&json, "part", file->part);
    cx_json_put_str(&json, "proof", cx_buf_str(&proof));
    cx_json_put_uint(&json, "seq", file->seq);
    cx_json_put_bool(&json, "signed", file->is_signed);
    cx_json_put(&json, "statement", statement);
    cx_json_put_z(&json, "type", FILE_TYPE);
    cx_status status = cx_buf_check(&proof, err);
    if (!cx_failed(status))
        status = cx_cli_end_json(&json, out, err);
    cx_buf_done(&proof);
    CX_TRY(status);
    return cx_buf_check(out, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status bad_statement(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadStatement", CX_NO_OFFSET,
                      "the statement about the parts cannot be read: expected %s", what);
}

static bool read_uint(const cx_json *object, cx_str name, uint64_t *out)
{
    const cx_json *value = cx_json_get(object, name);
    return value != NULL && cx_json_uint64(value, out);
}

static bool read_home(const cx_json *json, cx_cli_fleet_part *out)
{
    const cx_json *root = CX_JSON_GET(json, "home_root"), *roots = CX_JSON_GET(json, "home_roots");
    if (root == NULL || roots == NULL)
        return false;
    out->has_home = root->type == CX_JSON_OBJECT;
    if (out->has_home && !(read_uint(root, CX_STR("actors"), &out->root.actors) &&
                           read_uint(root, CX_STR("entries"), &out->root.entries) &&
                           cx_digest_parse(CX_JSON_GET_STR(root, "root"), &out->root.root)))
        return false;
    if (roots->type != CX_JSON_OBJECT)
        return true;
    return read_uint(roots, CX_STR("size"), &out->roots) && out->roots != 0 && out->has_home &&
           cx_digest_parse(CX_JSON_GET_STR(roots, "root"), &out->roots_root);
}

static bool read_part(const cx_json *json, cx_cli_fleet_part *out)
{
    uint64_t number = 0;
    *out = (cx_cli_fleet_part){.name = CX_JSON_GET_STR(json, "name")};
    bool fits = cx_fleet_is_part_name(out->name) && read_uint(json, CX_STR("part"), &number) &&
                number < CX_FLEET_PARTS_MAX &&
                read_uint(json, CX_STR("commits"), &out->point.commits) &&
                read_uint(json, CX_STR("epoch"), &out->point.epoch) &&
                out->point.commits <= INT64_MAX && out->point.epoch <= INT64_MAX &&
                cx_digest_parse(CX_JSON_GET_STR(json, "head"), &out->point.head) &&
                cx_hex_decode(CX_JSON_GET_STR(json, "id"), out->point.id, sizeof out->point.id);
    out->point.number = (unsigned)number;
    return fits && read_home(json, out);
}

cx_status cx_cli_fleet_statement_read(cx_str payload, cx_arena *arena, cx_cli_fleet_statement *out,
                                      cx_err *err)
{
    cx_json json;
    CX_TRY(cx_json_parse_text(payload, arena, &json, err));
    const cx_json *parts = cx_json_get_typed(&json, CX_STR("parts"), CX_JSON_ARRAY);
    *out = (cx_cli_fleet_statement){.count = 0};
    if (!cx_str_is(CX_JSON_GET_STR(&json, "type"), STATEMENT_TYPE) || parts == NULL)
        return bad_statement("parts, and the type " STATEMENT_TYPE, err);
    if (!cx_hex_decode(CX_JSON_GET_STR(&json, "fleet"), out->fleet, sizeof out->fleet))
        return bad_statement("the fleet's id, 32 hex digits", err);
    out->parts = CX_ARENA_ARRAY(arena, cx_cli_fleet_part, parts->count + 1);
    if (out->parts == NULL)
        return cx_fail_nomem(err);
    for (; out->count < parts->count; out->count++)
        if (!read_part(&parts->items[out->count], &out->parts[out->count]))
            return bad_statement("of each part its name, number, id, epoch, commits, head and "
                                 "roots",
                                 err);
    return CX_SUCCESS;
}

static cx_status bad_file(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadFleetCheckpoint", CX_NO_OFFSET,
                      "expected the file that 'cortex fleet checkpoint -o FILE' writes: %s", what);
}

static cx_status read_proof(cx_str text, cx_arena *arena, cx_bytes *out, cx_err *err)
{
    cx_buf bytes;
    cx_str copy = {NULL, 0};
    cx_buf_init(&bytes, cx_alloc_default());
    bool good = text.size != 0 && cx_base64_decode(text, CX_BASE64, &bytes);
    if (good)
        copy = cx_arena_copy_str(arena, cx_buf_str(&bytes));
    cx_buf_done(&bytes);
    if (!good)
        return bad_file("its proof is not in base64", err);
    *out = cx_str_bytes(copy);
    return copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_cli_fleet_file_read(cx_str text, cx_arena *arena, cx_cli_fleet_file *out, cx_err *err)
{
    cx_json json;
    cx_err why = {0};
    cx_status status = cx_json_parse_text(text, arena, &json, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return bad_file(why.message, err);
    const cx_json *statement = cx_json_get_typed(&json, CX_STR("statement"), CX_JSON_OBJECT);
    if (!cx_str_is(CX_JSON_GET_STR(&json, "type"), FILE_TYPE) || statement == NULL)
        return bad_file("its type is not " FILE_TYPE, err);
    *out = (cx_cli_fleet_file){.part = CX_JSON_GET_STR(&json, "part")};
    if (!cx_fleet_is_part_name(out->part) || !read_uint(&json, CX_STR("seq"), &out->seq))
        return bad_file("it does not say which part recorded it, and as which entry", err);
    out->checkpoint = cx_str_bytes(CX_JSON_GET_STR(&json, "checkpoint"));
    cx_buf copy;
    cx_buf_init(&copy, cx_alloc_default());
    status = cx_json_write(&copy, statement, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        out->statement = cx_arena_copy_str(arena, cx_buf_str(&copy));
    cx_buf_done(&copy);
    CX_TRY(status);
    if (out->statement.data == NULL)
        return cx_fail_nomem(err);
    return read_proof(CX_JSON_GET_STR(&json, "proof"), arena, &out->proof, err);
}
