/*
 * approval_text.c - an approval as a document: the table of scopes, reading and writing the
 * payload, and its form in events and listings.
 */
#include "crypto/api.h"
#include "approval/approval.h"
#include "rules/api.h"

/* --- scopes ----------------------------------------------------------------------------------- */

typedef enum scope_value { NO_VALUE, A_PATH, A_FIELD } scope_value;

static const struct {
    const char *name;
    scope_value value;
} scopes[] = {
    {"wide_path", A_PATH},     {"permission", A_FIELD},
    {"network", NO_VALUE},     {"sampling", NO_VALUE},
    {"script", A_PATH},        {"unlock", A_PATH},
    {"override_file", A_PATH}, {"sandbox_degraded", NO_VALUE},
};

/* FIELD=VALUE; the policy gate checks the value. */
static bool is_permission_value(cx_str value)
{
    static const char *const fields[] = {"filesystem=", "shell=", "network=", "mcp_tools="};
    for (size_t i = 0; i < CX_COUNT_OF(fields); i++) {
        cx_str field = cx_str_z(fields[i]);
        if (cx_str_starts(value, field))
            return value.size > field.size;
    }
    return false;
}

bool cx_run_scope_valid(cx_str scope)
{
    const char *colon = scope.size == 0 ? NULL : memchr(scope.data, ':', scope.size);
    cx_str name = scope, value = {NULL, 0};
    if (scope.size > CX_RUN_PATH_BYTES_MAX || cx_run_token_trim(scope).size != scope.size)
        return false;
    if (colon != NULL) {
        name.size = (size_t)(colon - scope.data);
        value = cx_str_from(colon + 1, scope.size - name.size - 1);
    }
    for (size_t i = 0; i < CX_COUNT_OF(scopes); i++) {
        if (!cx_str_is(name, scopes[i].name))
            continue;
        if (scopes[i].value == NO_VALUE)
            return colon == NULL;
        return value.size != 0 && (scopes[i].value == A_PATH || is_permission_value(value));
    }
    return false;
}

/* --- reading ---------------------------------------------------------------------------------- */

static const char *const members[] = {"version",    "approval_id", "run_id",   "contract_sha256",
                                      "scopes",     "reason",      "approver", "issued_at",
                                      "expires_at", "nonce"};

/* Text for display and comparison: not blank, no control characters, at most `size_max` bytes. */
static bool is_plain_text(cx_str text, size_t size_max)
{
    if (text.size > size_max || cx_run_token_trim(text).size == 0)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7F)
            return false;
    }
    return true;
}

/* A name of files, with the characters of run ids (§1 R6). */
static bool is_plain_id(cx_str text)
{
    if (text.size == 0 || text.size > CX_RUN_ID_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!alphanumeric && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
        if (c == '.' && i + 1 < text.size && text.data[i + 1] == '.')
            return false;
    }
    return true;
}

static cx_status read_text(const cx_json *root, const char *name, cx_arena *arena, cx_str *out,
                           cx_err *err)
{
    cx_str text = cx_json_get_str(root, cx_str_z(name));
    if (!is_plain_text(text, 4096))
        return cx_fail(err, CX_E_FORMAT, "approval: expected text in '%s', not blank", name);
    *out = cx_arena_copy_str(arena, text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status read_scopes(const cx_json *list, cx_arena *arena, cx_str_list *out, cx_err *err)
{
    if (list == NULL || list->type != CX_JSON_ARRAY || list->count == 0 ||
        list->count > CX_RUN_APPROVAL_SCOPES_MAX)
        return cx_fail(err, CX_E_FORMAT, "approval: expected 1 to %d 'scopes'",
                       CX_RUN_APPROVAL_SCOPES_MAX);
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, list->count);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *item = &list->items[i];
        if (item->type != CX_JSON_STRING || !cx_run_scope_valid(cx_json_text(item)))
            return cx_fail(err, CX_E_FORMAT,
                           "approval: scope %u is none of wide_path:PATH permission:FIELD=VALUE "
                           "network sampling script:PATH unlock:PATH override_file:PATH "
                           "sandbox_degraded",
                           (unsigned)i + 1);
        items[i] = cx_arena_copy_str(arena, cx_json_text(item));
        if (items[i].data == NULL)
            return cx_fail_nomem(err);
    }
    *out = (cx_str_list){items, list->count};
    return CX_SUCCESS;
}

static cx_status read_time(const cx_json *root, const char *name, cx_arena *arena, cx_str *out,
                           int64_t *out_ns, cx_err *err)
{
    CX_TRY(read_text(root, name, arena, out, err));
    if (!cx_run_time_parse(*out, out_ns))
        return cx_fail(err, CX_E_FORMAT,
                       "approval: expected a time such as 2026-01-31T12:00:00Z in '%s'", name);
    return CX_SUCCESS;
}

static cx_status check_members(const cx_json *root, cx_err *err)
{
    if (root->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "approval: expected an object");
    for (size_t i = 0; i < CX_COUNT_OF(members); i++) {
        if (cx_json_get(root, cx_str_z(members[i])) == NULL)
            return cx_fail(err, CX_E_FORMAT, "approval: found no '%s'", members[i]);
    }
    if (root->count != CX_COUNT_OF(members))
        return cx_fail(err, CX_E_FORMAT, "approval: found unknown members");
    if (!cx_str_is(CX_JSON_GET_STR(root, "version"), "v1"))
        return cx_fail(err, CX_E_FORMAT, "approval: expected 'version' v1");
    return CX_SUCCESS;
}

cx_status cx_run_approval_decode(cx_bytes payload, cx_arena *arena, cx_run_approval *out,
                                 cx_err *err)
{
    cx_json root;
    cx_run_approval a = {0};
    CX_TRY(cx_run_json_read(cx_bytes_str(payload), CX_RUN_DSSE_BYTES_MAX, arena, &root, err));
    CX_TRY(check_members(&root, err));
    CX_TRY(read_text(&root, "approval_id", arena, &a.approval_id, err));
    if (!is_plain_id(a.approval_id))
        return cx_fail(err, CX_E_FORMAT,
                       "approval: expected an 'approval_id' of letters, digits, '.', '_', '-'");
    if (CX_JSON_GET(&root, "run_id")->type != CX_JSON_NULL) {
        CX_TRY(read_text(&root, "run_id", arena, &a.run_id, err));
        if (!is_plain_id(a.run_id))
            return cx_fail(err, CX_E_FORMAT, "approval: expected a run's id in 'run_id', or null");
    }
    if (!cx_digest_parse(CX_JSON_GET_STR(&root, "contract_sha256"), &a.contract_sha256))
        return cx_fail(err, CX_E_FORMAT,
                       "approval: expected 64 lower-case hex digits in 'contract_sha256'");
    CX_TRY(read_scopes(CX_JSON_GET(&root, "scopes"), arena, &a.scopes, err));
    CX_TRY(read_text(&root, "reason", arena, &a.reason, err));
    CX_TRY(read_text(&root, "approver", arena, &a.approver, err));
    CX_TRY(read_time(&root, "issued_at", arena, &a.issued_at, &a.issued_ns, err));
    CX_TRY(read_time(&root, "expires_at", arena, &a.expires_at, &a.expires_ns, err));
    if (a.expires_ns <= a.issued_ns)
        return cx_fail(err, CX_E_FORMAT, "approval: it expires before it was issued");
    CX_TRY(read_text(&root, "nonce", arena, &a.nonce, err));
    if (a.nonce.size < 16 || a.nonce.size > 256)
        return cx_fail(err, CX_E_FORMAT, "approval: expected a 'nonce' of 16 to 256 bytes");
    *out = a;
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_str(cx_json_list *object, const char *name, cx_str text)
{
    cx_json_list_put(object, cx_str_z(name), cx_json_make_str(text));
}

static void put_digest(cx_json_list *object, const char *name, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_str text = cx_arena_copy_str(object->arena, cx_str_from(hex, sizeof hex));
    if (text.data == NULL)
        object->failed = true;
    else
        put_str(object, name, text);
}

static cx_status put_words(cx_json_list *object, const char *name, cx_str_list words, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(object->arena);
    cx_json value;
    for (size_t i = 0; i < words.count; i++)
        cx_json_list_add(&list, cx_json_make_str(words.items[i]));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

cx_status cx_run_approval_encode(const cx_run_approval *approval, cx_arena *arena, cx_buf *out,
                                 cx_err *err)
{
    CX_ASSERT(approval->scopes.count != 0 && approval->nonce.size != 0);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    put_str(&object, "version", CX_STR("v1"));
    put_str(&object, "approval_id", approval->approval_id);
    if (approval->run_id.data == NULL)
        cx_json_list_put(&object, CX_STR("run_id"), cx_json_make_null());
    else
        put_str(&object, "run_id", approval->run_id);
    put_digest(&object, "contract_sha256", &approval->contract_sha256);
    CX_TRY(put_words(&object, "scopes", approval->scopes, err));
    put_str(&object, "reason", approval->reason);
    put_str(&object, "approver", approval->approver);
    put_str(&object, "issued_at", approval->issued_at);
    put_str(&object, "expires_at", approval->expires_at);
    put_str(&object, "nonce", approval->nonce);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_json_write(out, &value, CX_JSON_JCS, err);
}

cx_status cx_run_approval_json(const cx_run_approval *approval, bool full, cx_arena *arena,
                               cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    put_str(&object, "approval_id", approval->approval_id);
    CX_TRY(put_words(&object, "scopes", approval->scopes, err));
    put_digest(&object, "sha256", &approval->sha256);
    if (full) {
        if (approval->run_id.data == NULL)
            cx_json_list_put(&object, CX_STR("run_id"), cx_json_make_null());
        else
            put_str(&object, "run_id", approval->run_id);
        put_digest(&object, "contract_sha256", &approval->contract_sha256);
        put_str(&object, "reason", approval->reason);
        put_str(&object, "approver", approval->approver);
        put_str(&object, "issued_at", approval->issued_at);
        put_str(&object, "expires_at", approval->expires_at);
    }
    return cx_json_list_end_object(&object, out, err);
}

/* "wide_path" of "wide_path:src/". */
static cx_str scope_name(cx_str scope)
{
    const char *colon = scope.size == 0 ? NULL : memchr(scope.data, ':', scope.size);
    return colon == NULL ? scope : cx_str_from(scope.data, (size_t)(colon - scope.data));
}

cx_status cx_run_approval_wanted_json(cx_str_list wanted, const cx_digest *contract_sha256,
                                      uint64_t timeout_sec, cx_arena *arena, cx_json *out,
                                      cx_err *err)
{
    static const cx_str steps[] = {
        {"cortex contract lint CONTRACT", 29},
        {"sha256sum CONTRACT: it must be contract_sha256", 46},
        {"cortex approvals list", 21},
    };
    cx_json_list object = cx_json_list_begin(arena);
    cx_str *names = CX_ARENA_ARRAY(arena, cx_str, wanted.count + 1);
    cx_buf action;
    size_t count = 0;
    if (names == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&action, arena->alloc);
    cx_buf_add_z(&action, "cortex approve --contract CONTRACT");
    for (size_t i = 0; i < wanted.count; i++) {
        cx_str name = scope_name(wanted.items[i]);
        if (!cx_str_list_has((cx_str_list){names, count}, name))
            names[count++] = name;
        cx_buf_printf(&action, " --scope '%.*s'", (int)wanted.items[i].size, wanted.items[i].data);
    }
    cx_buf_add_z(&action, " --reason WHY --key KEYFILE");
    cx_str how = cx_arena_copy_str(arena, cx_buf_str(&action));
    cx_status status = cx_buf_check(&action, err);
    cx_buf_done(&action);
    CX_TRY(status);
    if (how.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(put_words(&object, "reason", (cx_str_list){names, count}, err));
    CX_TRY(put_words(&object, "scopes", wanted, err));
    put_digest(&object, "contract_sha256", contract_sha256);
    cx_json_list_put(&object, CX_STR("timeout_sec"), cx_json_make_uint(arena, timeout_sec));
    CX_TRY(put_words(&object, "actions", (cx_str_list){&how, 1}, err));
    CX_TRY(put_words(&object, "verify_steps", (cx_str_list){steps, CX_COUNT_OF(steps)}, err));
    return cx_json_list_end_object(&object, out, err);
}
