/*
 * ledger.c - the ledger's vectors: which files there are, and values as hex.
 *
 * A folder holds cbor_strict.json and a folder for each scheme, or is itself one scheme's folder.
 * Files that are not there are not asked for; unknown ones are left alone.  Of the large scenario
 * there may be several, of any length: scenario_large*.json.
 */
#include "tests/runner/ledger.h"

#include <glob.h>
#include <stdio.h>

#include "base/hex.h"

runner_ledger_file runner_file;

static const char *const names[] = {
    "cbor_strict.json",    "anchors.json", "journal_tree.json", "mmr.json",
    "journal_proofs.json", "smt.json",     "journal.json",      "codec.json",
    "keys_uri.json",       "entries.json", "d11_seed.json",     "export.json",
    "proof_verdicts.json", "scope.json",   "scenario.json",     "scenario_embed.json",
    "compact_proofs.json", "calls.json",
};

static runner_ledger_table *const tables[] = {
    runner_ledger_codecs, runner_ledger_fields,    runner_ledger_trees,
    runner_ledger_smt,    runner_ledger_keys,      runner_ledger_rest,
    runner_ledger_scope,  runner_ledger_scenarios, runner_ledger_salience};

static void run_file(runner *r, const char *folder, const char *name, cx_scheme scheme)
{
    cx_arena_mark mark = cx_arena_mark_now(&r->arena);
    cx_str path = cx_arena_printf(&r->arena, "%s%s", folder, name);
    cx_json root;
    cx_err err = {0};
    cx_status status =
        path.data == NULL ? cx_fail_nomem(&err) : runner_read_json(r, path, &root, &err);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND)
        runner_fail(r, cx_str_z(name), err.message);
    if (!cx_failed(status)) {
        runner_file = (runner_ledger_file){scheme, path.data, &root};
        for (size_t i = 0; i < CX_COUNT_OF(tables); i++)
            tables[i](r, cx_str_z(name));
    }
    cx_arena_reset(&r->arena, mark);
}

/* A folder without subfolders tells its scheme in its journal_tree.json, or by its own name. */
static cx_scheme scheme_of_folder(runner *r)
{
    cx_scheme scheme = CX_SCHEME_CORTEX_1;
    cx_json tree;
    if (!cx_failed(runner_read_json(r, CX_STR("journal_tree.json"), &tree, NULL)))
        (void)cx_scheme_parse(cx_json_get_str(&tree, CX_STR("scheme")), &scheme);
    else if (strstr(r->folder, "matrix-1") != NULL)
        scheme = CX_SCHEME_MATRIX_1;
    return scheme;
}

static void run_large(runner *r, const char *folder, cx_scheme scheme)
{
    cx_str pattern = cx_arena_printf(&r->arena, "%s/%sscenario_large*.json", r->folder, folder);
    glob_t found;
    if (pattern.data == NULL || glob(pattern.data, 0, NULL, &found) != 0)
        return; /* none */
    for (size_t i = 0; i < found.gl_pathc; i++)
        run_file(r, folder, strrchr(found.gl_pathv[i], '/') + 1, scheme);
    globfree(&found);
}

static void run_folder(runner *r, const char *folder, cx_scheme scheme)
{
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        run_file(r, folder, names[i], scheme);
    run_large(r, folder, scheme);
}

void runner_ledger(runner *r)
{
    r->narrow = true;
    r->by_place = true;
    run_folder(r, "", scheme_of_folder(r));
    run_folder(r, "cortex-1/", CX_SCHEME_CORTEX_1);
    run_folder(r, "matrix-1/", CX_SCHEME_MATRIX_1);
}

void runner_run_one(runner *r, const runner_kind *kind, const char *pointer)
{
    const cx_json *item = cx_json_pointer(runner_file.root, cx_str_z(pointer));
    if (item != NULL)
        runner_run_item(r, kind, runner_file.path, pointer, runner_file.root, item);
}

void runner_run_nth(runner *r, const runner_kind *kind, const char *list, size_t index)
{
    char pointer[64];
    (void)snprintf(pointer, sizeof pointer, "%s/%zu", list, index);
    runner_run_one(r, kind, pointer);
}

/* --- values that follow from others of their file -------------------------------------------- */

static struct pending {
    cx_status status;
    const cx_json *value;
    const cx_err *err;
} pending;

static cx_status value_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)r;
    (void)item;
    if (cx_failed(pending.status)) {
        *err = *pending.err;
        return pending.status;
    }
    *out = *pending.value;
    return CX_SUCCESS;
}

/* Members that ask or explain. */
static bool asks(cx_str name)
{
    static const char *const words[] = {"uris", "keys", "note", "op"};
    for (size_t i = 0; i < CX_COUNT_OF(words); i++)
        if (cx_str_is(name, words[i]))
            return true;
    return false;
}

static cx_status value_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    *out = *item;
    if (item->type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    cx_json_list object = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < item->count; i++)
        if (!asks(cx_json_text(&item->members[i].name)))
            cx_json_list_put(&object, cx_json_text(&item->members[i].name), item->members[i].value);
    return cx_json_list_end_object(&object, out, err);
}

void runner_value(runner *r, const char *pointer, cx_status status, const cx_json *value,
                  const cx_err *err)
{
    static const runner_kind kind = {"", value_got, value_expect};
    pending = (struct pending){status, value, err};
    runner_run_one(r, &kind, pointer);
}

void runner_value_hex(runner *r, const char *pointer, cx_bytes bytes)
{
    cx_json value;
    cx_err err = {0};
    cx_status status = runner_hex(r, bytes, &value, &err);
    runner_value(r, pointer, status, &value, &err);
}

void runner_value_digest(runner *r, const char *pointer, const cx_digest *digest)
{
    runner_value_hex(r, pointer, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

void runner_value_text(runner *r, const char *pointer, cx_str text)
{
    cx_json value = cx_json_make_str(text);
    runner_value(r, pointer, CX_SUCCESS, &value, NULL);
}

void runner_value_uint(runner *r, const char *pointer, uint64_t number)
{
    cx_json value = cx_json_make_uint(&r->arena, number);
    runner_value(r, pointer, CX_SUCCESS, &value, NULL);
}

const char *runner_pointer(runner *r, const char *list, size_t index, const char *member)
{
    cx_str text = cx_arena_printf(&r->arena, "%s/%zu/%s", list, index, member);
    return text.data == NULL ? "/out of memory" : text.data;
}

/* --- values ---------------------------------------------------------------------------------- */

cx_status runner_hex(runner *r, cx_bytes bytes, cx_json *out, cx_err *err)
{
    char *text = cx_arena_push(&r->arena, 2 * bytes.size + 1, 1);
    if (text == NULL)
        return cx_fail_nomem(err);
    cx_hex_encode(bytes, text);
    *out = cx_json_make_str(cx_str_from(text, 2 * bytes.size));
    return CX_SUCCESS;
}

cx_status runner_digest(runner *r, const cx_digest *digest, cx_json *out, cx_err *err)
{
    return runner_hex(r, cx_bytes_from(digest->bytes, sizeof digest->bytes), out, err);
}

cx_status runner_digests(runner *r, const cx_digest *digests, size_t count, cx_json *out,
                         cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json value;
        CX_TRY(runner_digest(r, &digests[i], &value, err));
        cx_json_list_add(&list, value);
    }
    return cx_json_list_end_array(&list, out, err);
}

cx_status runner_bytes(runner *r, const cx_json *object, const char *name, cx_bytes *out,
                       cx_err *err)
{
    cx_str hex;
    if (object->type == CX_JSON_STRING)
        hex = cx_json_text(object);
    else
        CX_TRY(runner_text(object, name, &hex, err));
    uint8_t *bytes = cx_arena_push(&r->arena, hex.size / 2 + 1, 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    if (hex.size % 2 != 0 || !cx_hex_decode(hex, bytes, hex.size / 2))
        return cx_fail(err, CX_E_FORMAT, "'%s' of the case is not hex", name);
    *out = cx_bytes_from(bytes, hex.size / 2);
    return CX_SUCCESS;
}

const cx_json *runner_array(const cx_json *root, const char *pointer)
{
    const cx_json *list = cx_json_pointer(root, cx_str_z(pointer));
    return list != NULL && list->type == CX_JSON_ARRAY ? list : NULL;
}

cx_str runner_str(const cx_json *value)
{
    return value != NULL && value->type == CX_JSON_STRING ? cx_json_text(value) : CX_STR("");
}

cx_status runner_number(const cx_json *object, const char *name, uint64_t *out, cx_err *err)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    if (value == NULL || !cx_json_uint64(value, out))
        return cx_fail(err, CX_E_FORMAT, "the case has no number '%s'", name);
    return CX_SUCCESS;
}

cx_status runner_signed(const cx_json *object, const char *name, int64_t *out, cx_err *err)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    if (value == NULL || !cx_json_int64(value, out))
        return cx_fail(err, CX_E_FORMAT, "the case has no number '%s'", name);
    return CX_SUCCESS;
}

cx_status runner_count(const cx_json *object, const char *name, size_t *out, cx_err *err)
{
    int64_t number;
    CX_TRY(runner_signed(object, name, &number, err));
    *out = number < 0 ? 0 : (size_t)number;
    return CX_SUCCESS;
}

cx_status runner_put_hex(runner *r, cx_json_list *object, const char *name, cx_bytes bytes,
                         cx_err *err)
{
    cx_json value;
    CX_TRY(runner_hex(r, bytes, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

cx_status runner_put_digest(runner *r, cx_json_list *object, const char *name,
                            const cx_digest *digest, cx_err *err)
{
    return runner_put_hex(r, object, name, cx_bytes_from(digest->bytes, sizeof digest->bytes), err);
}

void runner_put_uint(runner *r, cx_json_list *object, const char *name, uint64_t number)
{
    cx_json_list_put(object, cx_str_z(name), cx_json_make_uint(&r->arena, number));
}

static CX_RESULT fixed_of(runner *r, const cx_json *object, const char *name, void *out,
                          size_t size, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(runner_bytes(r, object, name, &bytes, err));
    if (bytes.size != size)
        return cx_fail(err, CX_E_FORMAT, "'%s' of the case is not %zu bytes", name, size);
    memcpy(out, bytes.data, size);
    return CX_SUCCESS;
}

cx_status runner_digest_of(runner *r, const cx_json *object, const char *name, cx_digest *out,
                           cx_err *err)
{
    return fixed_of(r, object, name, out->bytes, sizeof out->bytes, err);
}

cx_status runner_id_of(runner *r, const cx_json *object, const char *name, cx_id *out, cx_err *err)
{
    return fixed_of(r, object, name, out->bytes, sizeof out->bytes, err);
}

cx_digest runner_numbered(const char *name, uint64_t number)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%s%llu", name, (unsigned long long)number);
    return cx_digest_of(cx_bytes_from(text, (size_t)size));
}

cx_digest runner_ruled(const char *rule, const char *otherwise, uint64_t number)
{
    char name[40];
    cx_str text = cx_json_get_str(runner_file.root, cx_str_z(rule));
    const char *from = text.size == 0 ? NULL : memchr(text.data, '\'', text.size);
    const char *to =
        from == NULL ? NULL : memchr(from + 1, '\'', (size_t)(text.data + text.size - from) - 1);
    if (to == NULL || (size_t)(to - from) > sizeof name)
        return runner_numbered(otherwise, number);
    memcpy(name, from + 1, (size_t)(to - from) - 1);
    name[to - from - 1] = 0;
    return runner_numbered(name, number);
}
