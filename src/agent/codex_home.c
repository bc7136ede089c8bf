/*
 * codex_home.c - copies the base home of Codex for one agent (codex_home.h).
 */
#include "agent/codex_home.h"

#include <stdlib.h>

#include "os/api.h"
#include "base/api.h"
#include "crypto/api.h"
#include "bundle/api.h"

typedef struct base_entry {
    cx_str path; /* relative to the base */
    cx_file_kind kind;
    bool left_out;
} base_entry;

typedef struct home_copy {
    const char *to;
    cx_file base;
    cx_arena *arena;
    cx_run_mask *mask;
    CX_VEC(base_entry) list;
    bool failed; /* no memory */
    uint64_t bytes;
    cx_json_list files, left_out, removed;
    cx_sha256 listing;
} home_copy;

/* --- listing the base ------------------------------------------------------------------------- */

/* Entries at the top of the base: data of earlier sessions, and logins of MCP servers. */
static bool is_session_path(const char *path)
{
    static const char *const names[] = {"sessions", "archived_sessions", "log", "history.jsonl",
                                        ".credentials.json"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

static cx_walk_step visit_base_entry(void *arg, const cx_walk_entry *entry)
{
    home_copy *c = arg;
    cx_file_kind kind = entry->facts.kind;
    bool left_out = is_session_path(entry->path) || strcmp(entry->name, ".mcp.json") == 0 ||
                    (kind != CX_FILE_REGULAR && kind != CX_FILE_FOLDER);
    cx_str path = cx_arena_copy_str(c->arena, cx_str_z(entry->path));
    base_entry *slot = path.data == NULL ? NULL : cx_vec_push(&c->list, c->arena->alloc);
    if (slot == NULL) {
        c->failed = true;
        return CX_WALK_STOP;
    }
    *slot = (base_entry){path, kind, left_out};
    return left_out ? CX_WALK_SKIP : CX_WALK_ON;
}

static int compare_entries(const void *a, const void *b)
{
    const base_entry *x = a, *y = b;
    return cx_str_cmp(x->path, y->path);
}

static cx_status list_base(home_copy *c, cx_err *err)
{
    const cx_walk_limits limits = {CX_CODEX_FILES_MAX, CX_CODEX_DEPTH_MAX, false};
    CX_TRY(cx_folder_walk(c->base, &limits, visit_base_entry, c, err));
    if (c->failed)
        return cx_fail_nomem(err);
    if (c->list.count != 0)
        qsort(c->list.items, c->list.count, sizeof *c->list.items, compare_entries);
    return CX_SUCCESS;
}

/* --- secrets ---------------------------------------------------------------------------------- */

static cx_status mask_secret(void *mask, cx_str value, cx_err *err)
{
    return cx_run_mask_add(mask, value, err);
}

/* Masks texts under keys that name a secret, at any depth. */
static cx_status mask_secrets(cx_run_mask *mask, const cx_json *value, bool secret, cx_err *err)
{
    if (value->type == CX_JSON_STRING)
        return secret ? cx_run_mask_add(mask, cx_json_text(value), err) : CX_SUCCESS;
    for (uint32_t i = 0; value->type == CX_JSON_ARRAY && i < value->count; i++)
        CX_TRY(mask_secrets(mask, &value->items[i], secret, err));
    for (uint32_t i = 0; value->type == CX_JSON_OBJECT && i < value->count; i++) {
        const cx_json_member *member = &value->members[i];
        bool named = secret || cx_run_mask_name(cx_json_text(&member->name));
        CX_TRY(mask_secrets(mask, &member->value, named, err));
    }
    return CX_SUCCESS;
}

static cx_status mask_login_tokens(home_copy *c, cx_str text, cx_err *err)
{
    cx_json login;
    cx_str own = cx_arena_copy_str(c->arena, text);
    if (own.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(own, CX_CODEX_CONFIG_BYTES_MAX, c->arena, &login, err));
    return mask_secrets(c->mask, &login, false, err);
}

/* --- copying ---------------------------------------------------------------------------------- */

static void add_to_listing(home_copy *c, cx_str path, cx_bytes bytes)
{
    cx_digest digest = cx_digest_of(bytes);
    char hex[2 * sizeof digest.bytes];
    cx_hex_encode((cx_bytes){digest.bytes, sizeof digest.bytes}, hex);
    cx_sha256_add(&c->listing, hex, sizeof hex);
    cx_sha256_add(&c->listing, "  ", 2);
    cx_sha256_add(&c->listing, path.data, path.size);
    cx_sha256_add(&c->listing, "\n", 1);
    cx_json_list_add(&c->files, cx_json_make_str(path));
}

static cx_status write_copy(home_copy *c, cx_str path, const char *to, cx_str text,
                            cx_buf *filtered, cx_err *err)
{
    bool top = memchr(path.data, '/', path.size) == NULL;
    if (top && cx_str_ends(path, CX_STR("config.toml"))) {
        CX_TRY(cx_codex_config_filter(text, mask_secret, c->mask, c->arena, &c->removed, filtered,
                                      err));
        text = cx_buf_str(filtered);
    } else if (cx_str_is(path, "auth.json")) {
        CX_TRY(mask_login_tokens(c, text, err));
    }
    CX_TRY(cx_run_write_file(cx_io_system(), to, cx_str_bytes(text), err));
    add_to_listing(c, path, cx_str_bytes(text));
    return CX_SUCCESS;
}

static cx_status copy_file(home_copy *c, cx_str path, const char *to, cx_err *err)
{
    cx_buf text, filtered;
    cx_buf_init(&text, c->arena->alloc);
    cx_buf_init(&filtered, c->arena->alloc);
    cx_status status = cx_folder_read_file(
        c->base, path.data, (size_t)(CX_CODEX_HOME_BYTES_MAX - c->bytes), &text, err);
    if (!cx_failed(status)) {
        c->bytes += text.size;
        status = write_copy(c, path, to, cx_buf_str(&text), &filtered, err);
    }
    cx_buf_done(&text);
    cx_buf_done(&filtered);
    return status;
}

static cx_status copy_entry(home_copy *c, const base_entry *one, cx_err *err)
{
    if (!cx_utf8_valid(one->path))
        return cx_fail(err, CX_E_FORMAT, "its name is not UTF-8");
    if (one->left_out) {
        /* I1: an agent without its settings would be another agent. */
        if (cx_str_is(one->path, "config.toml") || cx_str_is(one->path, "auth.json"))
            return cx_fail(err, CX_E_DENIED, "it is no regular file");
        cx_json_list_add(&c->left_out, cx_json_make_str(one->path));
        return CX_SUCCESS;
    }
    cx_str to = cx_arena_printf(c->arena, "%s/%s", c->to, one->path.data);
    if (to.data == NULL)
        return cx_fail_nomem(err);
    if (one->kind == CX_FILE_FOLDER)
        return cx_path_make_folders(to.data, err);
    return copy_file(c, one->path, to.data, err);
}

/* The message has no absolute path: it becomes evidence. */
static cx_status copy_entries(home_copy *c, cx_err *err)
{
    for (size_t i = 0; i < c->list.count; i++) {
        cx_err why;
        cx_status status = copy_entry(c, &c->list.items[i], &why);
        if (cx_failed(status)) {
            cx_str name = cx_json_quoted(c->list.items[i].path, c->arena);
            return cx_fail(err, status.code, CX_CODEX_BASE_HOME_ENV ": %.*s: %s", (int)name.size,
                           name.data == NULL ? "" : name.data,
                           status.code == CX_E_IO ? "it cannot be copied" : why.message);
        }
    }
    return CX_SUCCESS;
}

static cx_status make_evidence(home_copy *c, cx_json *out, cx_err *err)
{
    cx_json value;
    cx_digest digest = cx_sha256_end(&c->listing);
    char hex[2 * sizeof digest.bytes];
    cx_hex_encode((cx_bytes){digest.bytes, sizeof digest.bytes}, hex);
    cx_str text = cx_arena_copy_str(c->arena, (cx_str){hex, sizeof hex});
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list object = cx_json_list_begin(c->arena);
    CX_TRY(cx_json_list_end_array(&c->files, &value, err));
    cx_json_list_put(&object, CX_STR("files"), value);
    CX_TRY(cx_json_list_end_array(&c->left_out, &value, err));
    cx_json_list_put(&object, CX_STR("left_out"), value);
    CX_TRY(cx_json_list_end_array(&c->removed, &value, err));
    cx_json_list_put(&object, CX_STR("mcp_servers_removed"), value);
    cx_json_list_put(&object, CX_STR("listing_sha256"), cx_json_make_str(text));
    return cx_json_list_end_object(&object, out, err);
}

/* --- the base --------------------------------------------------------------------------------- */

static cx_status open_base_home(const char *base, cx_file *out, cx_err *err)
{
    cx_facts facts;
    if (base[0] != '/')
        return cx_fail(err, CX_E_USAGE, CX_CODEX_BASE_HOME_ENV ": expected an absolute path");
    if (cx_failed(cx_folder_open(base, out, NULL)))
        return cx_fail(err, CX_E_NOT_FOUND,
                       CX_CODEX_BASE_HOME_ENV " names no folder that can be read");
    cx_status status = cx_file_facts(*out, &facts, err);
    if (!cx_failed(status) && facts.owner_id != 0 && facts.owner_id != cx_user_id())
        status = cx_fail(err, CX_E_DENIED, CX_CODEX_BASE_HOME_ENV " belongs to another user");
    if (!cx_failed(status) && (facts.mode & 0002) != 0)
        status = cx_fail(err, CX_E_DENIED, CX_CODEX_BASE_HOME_ENV ": anybody may write to it");
    if (cx_failed(status))
        cx_folder_close(*out);
    return status;
}

cx_status cx_codex_home_make(const char *base, const char *to, cx_run_mask *mask, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    home_copy c = {.to = to,
                   .arena = arena,
                   .mask = mask,
                   .files = cx_json_list_begin(arena),
                   .left_out = cx_json_list_begin(arena),
                   .removed = cx_json_list_begin(arena)};
    cx_status status;
    CX_TRY(open_base_home(base, &c.base, err));
    cx_sha256_init(&c.listing);
    CX_TRY_GOTO(status, cx_path_make_folders(to, err));
    CX_TRY_GOTO(status, cx_path_set_mode(to, 0700, err));
    CX_TRY_GOTO(status, list_base(&c, err));
    CX_TRY_GOTO(status, copy_entries(&c, err));
    status = make_evidence(&c, out, err);
done:
    cx_vec_done(&c.list, arena->alloc);
    cx_folder_close(c.base);
    return status;
}
