/*
 * vscdb.c - reads the conversations out of Cursor's database (vscdb.h).
 *
 * Table cursorDiskKV(key, value), values as JSON:
 *     composerData:<id>            a conversation: fullConversationHeadersOnly has the ids of its
 *                                  messages in order, or `conversation` the messages themselves
 *     bubbleId:<id>:<message id>   a message
 * Older files have ItemTable with the key workbench.panel.aichat.view.aichat.chatdata: {"tabs":
 * [{"tabId","bubbles"}]}.
 *
 *   V1  The file is a stranger's: it is opened without trust in its schema (CX_DB_EXTERNAL), what
 *       is read must be a plain table, and every size and count has a limit.
 *   V2  Nothing is left out in silence: a message that cannot be read is a line that says why.
 */
#include "import/vscdb.h"

#include <stdio.h>
#include <string.h>

#include "db/api.h"
#include "json/api.h"

#define COMPOSER "composerData:"
#define CHATDATA "workbench.panel.aichat.view.aichat.chatdata"
#define ID_MAX 256 /* bytes of the id of a conversation or message */

typedef struct vscdb {
    const char *path;
    cx_db *db;
    cx_db_statement *one, *many, *first;
    cx_buf *out;
    size_t max_bytes, begin;
    uint64_t rows, conversations;
    cx_arena arena; /* of a conversation */
    cx_map seen;    /* messages of the conversation */
} vscdb;

bool cx_import_is_sqlite(cx_bytes head)
{
    static const char magic[] = "SQLite format 3";
    return head.size >= sizeof magic && memcmp(head.data, magic, sizeof magic) == 0;
}

static cx_status fail_limit(const vscdb *v, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET, "%s has more %s than can be read",
                      v->path, what);
}

/* What SQLite says is of the file: it is damaged, or goes on and on. */
static cx_status of_the_file(const vscdb *v, cx_status status, const cx_err *why, cx_err *err)
{
    if (!cx_failed(status))
        return status;
    if (status.code == CX_E_NOMEM || status.code == CX_E_LIMIT) {
        if (err != NULL)
            *err = *why;
        return status;
    }
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "%s cannot be read as a SQLite database (%.200s); copy it while Cursor is "
                      "closed, and import the copy",
                      v->path, why->message);
}

static cx_status step(vscdb *v, cx_db_statement *statement, bool *out_row, cx_err *err)
{
    cx_err why = {0};
    cx_status status = cx_db_step(statement, out_row, &why);
    if (!cx_failed(status) && *out_row && ++v->rows > CX_VSCDB_ROWS_MAX)
        return fail_limit(v, "rows", err);
    return of_the_file(v, status, &why, err);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Else it could become members of the line that it is put into. */
static cx_status is_json(vscdb *v, cx_bytes value, bool *out, cx_err *err)
{
    cx_json parsed;
    cx_arena_mark mark = cx_arena_mark_now(&v->arena);
    cx_status status = cx_json_parse_text(cx_bytes_str(value), &v->arena, &parsed, NULL);
    cx_arena_reset(&v->arena, mark);
    *out = !cx_failed(status);
    return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Valid JSON has line ends between its tokens only. */
static void add_value(cx_buf *out, cx_bytes value)
{
    size_t from = out->size;
    cx_buf_add(out, value.data, value.size);
    for (size_t i = from; !out->failed && i < out->size; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
}

static cx_status add_text(cx_buf *out, const char *name, cx_str text, cx_err *err)
{
    const cx_json value = cx_json_make_str(text);
    cx_buf_printf(out, "\"%s\":", name);
    return cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
}

static cx_status end_line(vscdb *v, cx_err *err)
{
    cx_buf_add_z(v->out, "}\n");
    CX_TRY(cx_buf_check(v->out, err));
    return v->out->size - v->begin > v->max_bytes ? fail_limit(v, "bytes", err) : CX_SUCCESS;
}

/* `value` is JSON; size 0: `missing` says why there is none. */
static cx_status add_message(vscdb *v, cx_str composer, cx_str bubble, cx_bytes value,
                             const char *missing, cx_err *err)
{
    bool good = false;
    if (value.size != 0)
        CX_TRY(is_json(v, value, &good, err));
    if (value.size != 0 && !good) {
        value.size = 0;
        missing = "it is no JSON";
    }
    cx_buf_add_byte(v->out, '{');
    if (value.size != 0) {
        cx_buf_add_z(v->out, "\"bubble\":");
        add_value(v->out, value);
        cx_buf_add_byte(v->out, ',');
    }
    CX_TRY(add_text(v->out, "bubbleId", bubble, err));
    cx_buf_add_byte(v->out, ',');
    CX_TRY(add_text(v->out, "composerId", composer, err));
    if (value.size == 0) {
        cx_buf_add_byte(v->out, ',');
        CX_TRY(add_text(v->out, "missing", cx_str_z(missing), err));
    }
    return end_line(v, err);
}

static cx_status add_composer(vscdb *v, cx_str composer, cx_bytes value, cx_err *err)
{
    if (++v->conversations > CX_VSCDB_CONVERSATIONS_MAX)
        return fail_limit(v, "conversations", err);
    bool good = false;
    CX_TRY(is_json(v, value, &good, err));
    cx_buf_add_z(v->out, "{\"composer\":");
    add_value(v->out, good ? value : cx_str_bytes(CX_STR("null")));
    cx_buf_add_byte(v->out, ',');
    CX_TRY(add_text(v->out, "composerId", composer, err));
    return end_line(v, err);
}

/* --- messages --------------------------------------------------------------------------------- */

static cx_status note_seen(vscdb *v, cx_str bubble, bool *out_new, cx_err *err)
{
    uint64_t *slot;
    cx_str kept = cx_arena_copy_str(&v->arena, bubble);
    return kept.data == NULL ? cx_fail_nomem(err) : cx_map_put(&v->seen, kept, &slot, out_new, err);
}

/* A row (value, size): a value that is too long is not read. */
static cx_status add_row(vscdb *v, const cx_db_statement *row, int column, cx_str composer,
                         cx_str bubble, cx_err *err)
{
    char why[80];
    int64_t size = cx_db_int(row, column + 1);
    (void)snprintf(why, sizeof why, size == 0 ? "it is empty" : "it has %lld bytes",
                   (long long)size);
    return add_message(v, composer, bubble, cx_db_bytes(row, column), why, err);
}

static cx_status add_named(vscdb *v, cx_str composer, cx_str bubble, cx_err *err)
{
    bool is_new = false, found = false;
    if (bubble.size == 0 || bubble.size > ID_MAX)
        return CX_SUCCESS;
    CX_TRY(note_seen(v, bubble, &is_new, err));
    if (!is_new)
        return CX_SUCCESS;
    cx_str key = cx_arena_printf(&v->arena, "bubbleId:%.*s:%.*s", (int)composer.size, composer.data,
                                 (int)bubble.size, bubble.data);
    if (key.data == NULL)
        return cx_fail_nomem(err);
    cx_db_bind_text(v->one, 1, key);
    cx_status status = step(v, v->one, &found, err);
    if (!cx_failed(status) && found)
        status = add_row(v, v->one, 0, composer, bubble, err);
    else if (!cx_failed(status))
        status = add_message(v, composer, bubble, (cx_bytes){NULL, 0}, "it is not there", err);
    cx_db_reset(v->one);
    return status;
}

static cx_str id_of(const cx_json *header)
{
    return header->type == CX_JSON_OBJECT ? CX_JSON_GET_STR(header, "bubbleId") : (cx_str){NULL, 0};
}

/* Messages that no list names: they were said, too. */
static cx_status add_unnamed(vscdb *v, cx_str composer, cx_err *err)
{
    bool row = false;
    cx_status status = CX_SUCCESS;
    cx_str from = cx_arena_printf(&v->arena, "bubbleId:%.*s:", (int)composer.size, composer.data);
    cx_str to = cx_arena_printf(&v->arena, "bubbleId:%.*s;", (int)composer.size, composer.data);
    if (from.data == NULL || to.data == NULL)
        return cx_fail_nomem(err);
    cx_db_bind_text(v->many, 1, from);
    cx_db_bind_text(v->many, 2, to);
    for (;;) {
        bool is_new = false;
        CX_TRY_GOTO(status, step(v, v->many, &row, err));
        if (!row)
            break;
        cx_str key = cx_db_text(v->many, 0);
        cx_str bubble = cx_str_from(key.data + from.size, key.size - from.size);
        if (bubble.size > ID_MAX)
            continue;
        CX_TRY_GOTO(status, note_seen(v, bubble, &is_new, err));
        if (is_new)
            CX_TRY_GOTO(status, add_row(v, v->many, 1, composer, bubble, err));
    }
done:
    cx_db_reset(v->many);
    return status;
}

#define NOT_WRITTEN "it has a number that no double can hold"

/* Nothing when it cannot be written again. */
static cx_status write_value(cx_buf *out, const cx_json *value, cx_err *err)
{
    cx_status status = cx_json_write(out, value, CX_JSON_PY_COMPACT, NULL);
    return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Of old files: messages in the conversation itself. */
static cx_status add_inline(vscdb *v, cx_str composer, const cx_json *list, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (uint32_t i = 0; list != NULL && i < list->count && !cx_failed(status); i++) {
        const cx_json *item = &list->items[i];
        cx_str id = id_of(item);
        bool is_new = true;
        if (id.size == 0)
            id = cx_arena_printf(&v->arena, "%u", (unsigned)i);
        if (id.data == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        CX_TRY_GOTO(status, note_seen(v, id, &is_new, err));
        if (!is_new || item->type != CX_JSON_OBJECT)
            continue;
        cx_buf_clear(&text);
        CX_TRY_GOTO(status, write_value(&text, item, err));
        status = add_message(v, composer, id, cx_buf_bytes(&text), NOT_WRITTEN, err);
    }
done:
    cx_buf_done(&text);
    return status;
}

static const cx_json *list_at(const cx_json *value, const char *name)
{
    return value == NULL || value->type != CX_JSON_OBJECT
               ? NULL
               : cx_json_get_typed(value, cx_str_z(name), CX_JSON_ARRAY);
}

static void forget_seen(vscdb *v)
{
    cx_map_done(&v->seen);
    cx_map_init(&v->seen, cx_alloc_default(), cx_io_seed(cx_io_system()));
}

static cx_status add_conversation(vscdb *v, cx_str composer, cx_bytes value, cx_err *err)
{
    cx_json parsed;
    cx_arena_mark mark = cx_arena_mark_now(&v->arena);
    CX_TRY(add_composer(v, composer, value, err));
    cx_status status = cx_json_parse_text(cx_bytes_str(value), &v->arena, &parsed, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *found = cx_failed(status) ? NULL : &parsed;
    const cx_json *list = list_at(found, "fullConversationHeadersOnly");
    CX_TRY(add_inline(v, composer, list_at(found, "conversation"), err));
    for (uint32_t i = 0; list != NULL && i < list->count; i++)
        CX_TRY(add_named(v, composer, id_of(&list->items[i]), err));
    CX_TRY(add_unnamed(v, composer, err));
    forget_seen(v);
    cx_arena_reset(&v->arena, mark);
    return CX_SUCCESS;
}

/* --- the tables ------------------------------------------------------------------------------- */

/* V1: neither a view nor a table that a program stands for. */
static cx_status has_table(vscdb *v, const char *name, bool *out, cx_err *err)
{
    static const char sql[] =
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name ="
        " ?1 AND sql NOT LIKE 'CREATE VIRTUAL%' AND sql NOT LIKE '%GENERATED%'"
        " AND rootpage > 0";
    cx_db_statement *statement;
    cx_err why = {0};
    bool row = false;
    cx_status status = cx_db_prepare(v->db, sql, &statement, &why);
    if (cx_failed(status))
        return of_the_file(v, status, &why, err);
    cx_db_bind_text(statement, 1, cx_str_z(name));
    status = step(v, statement, &row, err);
    *out = !cx_failed(status) && row && cx_db_int(statement, 0) == 1;
    cx_db_finish(statement);
    return status;
}

static cx_status prepare(vscdb *v, const char *sql, cx_db_statement **out, cx_err *err)
{
    cx_err why = {0};
    return of_the_file(v, cx_db_prepare(v->db, sql, out, &why), &why, err);
}

/* A value and its size; one that is too long comes as NULL. */
#define VALUE                                                           \
    "CASE WHEN length(CAST(value AS BLOB)) <= 67108864 THEN value END," \
    " coalesce(length(CAST(value AS BLOB)), 0)"
_Static_assert(CX_VSCDB_VALUE_MAX == 67108864, "the limit in VALUE");

static cx_status prepare_all(vscdb *v, cx_err *err)
{
    CX_TRY(prepare(v, "SELECT " VALUE " FROM cursorDiskKV WHERE key = ?1", &v->one, err));
    CX_TRY(prepare(v,
                   "SELECT key, " VALUE " FROM cursorDiskKV WHERE key >= ?1 AND key < ?2"
                   " ORDER BY key",
                   &v->many, err));
    return prepare(v,
                   "SELECT key, " VALUE " FROM cursorDiskKV WHERE key > ?1 AND key <"
                   " 'composerData;' ORDER BY key LIMIT 1",
                   &v->first, err);
}

/* One conversation after the other, so that only one is in memory. */
static cx_status next_conversation(vscdb *v, cx_buf *key, cx_buf *value, bool *out_row, cx_err *err)
{
    cx_db_bind_text(v->first, 1, cx_buf_str(key));
    CX_TRY(step(v, v->first, out_row, err));
    if (*out_row) {
        cx_str name = cx_db_text(v->first, 0);
        cx_bytes bytes = cx_db_bytes(v->first, 1);
        cx_buf_clear(key);
        cx_buf_clear(value);
        cx_buf_add_str(key, name);
        if (bytes.size == 0)
            cx_buf_add_z(value, "null");
        else
            cx_buf_add(value, bytes.data, bytes.size);
    }
    cx_db_reset(v->first);
    CX_TRY(cx_buf_check(key, err));
    return cx_buf_check(value, err);
}

static cx_status read_conversations(vscdb *v, cx_err *err)
{
    cx_buf key, value;
    bool row = true;
    cx_status status = prepare_all(v, err);
    cx_buf_init(&key, cx_alloc_default());
    cx_buf_init(&value, cx_alloc_default());
    cx_buf_add_z(&key, COMPOSER);
    while (row && !cx_failed(status)) {
        CX_TRY_GOTO(status, next_conversation(v, &key, &value, &row, err));
        size_t skip = sizeof COMPOSER - 1;
        if (!row || key.size <= skip || key.size - skip > ID_MAX)
            continue;
        cx_str id = cx_str_from((const char *)key.data + skip, key.size - skip);
        status = add_conversation(v, id, cx_buf_bytes(&value), err);
    }
done:
    cx_buf_done(&key);
    cx_buf_done(&value);
    return status;
}

/* A tab is a conversation. */
static cx_status add_tabs(vscdb *v, cx_bytes chats, cx_err *err)
{
    cx_json parsed;
    cx_buf text;
    cx_status status = cx_json_parse_text(cx_bytes_str(chats), &v->arena, &parsed, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *tabs = list_at(cx_failed(status) ? NULL : &parsed, "tabs");
    if (tabs == NULL)
        return add_composer(v, CX_STR("chatdata"), chats, err);
    status = CX_SUCCESS;
    cx_buf_init(&text, cx_alloc_default());
    for (uint32_t i = 0; i < tabs->count && !cx_failed(status); i++) {
        const cx_json *tab = &tabs->items[i];
        cx_str id = tab->type == CX_JSON_OBJECT ? CX_JSON_GET_STR(tab, "tabId") : (cx_str){"", 0};
        if (id.size == 0 || id.size > ID_MAX)
            id = CX_STR("chatdata");
        cx_buf_clear(&text);
        forget_seen(v);
        CX_TRY_GOTO(status, write_value(&text, tab, err));
        CX_TRY_GOTO(status, add_composer(v, id, cx_buf_bytes(&text), err));
        status = add_inline(v, id, list_at(tab, "bubbles"), err);
    }
done:
    cx_buf_done(&text);
    return status;
}

/* Old files keep all chats of a workspace in one value. */
static cx_status read_chats(vscdb *v, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(
        prepare(v, "SELECT " VALUE " FROM ItemTable WHERE key = '" CHATDATA "'", &statement, err));
    cx_status status = step(v, statement, &row, err);
    if (!cx_failed(status) && row && cx_db_bytes(statement, 0).size != 0)
        status = add_tabs(v, cx_db_bytes(statement, 0), err);
    cx_db_finish(statement);
    return status;
}

static cx_status read_tables(vscdb *v, cx_err *err)
{
    bool has = false;
    CX_TRY(has_table(v, "cursorDiskKV", &has, err));
    if (has)
        CX_TRY(read_conversations(v, err));
    CX_TRY(has_table(v, "ItemTable", &has, err));
    if (has)
        CX_TRY(read_chats(v, err));
    if (v->conversations != 0)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "%s is a SQLite database without conversations of Cursor (state.vscdb in "
                      "User/globalStorage has them); of other programs, export the sessions as "
                      "JSON first, for example with `opencode export`",
                      v->path);
}

cx_status cx_import_read_vscdb(const char *path, size_t max_bytes, cx_buf *out, cx_err *err)
{
    vscdb v = {.path = path, .out = out, .begin = out->size, .max_bytes = max_bytes};
    cx_err why = {0};
    cx_status status = cx_db_open(path, CX_DB_EXTERNAL, &v.db, &why);
    if (cx_failed(status))
        return of_the_file(&v, status, &why, err);
    cx_arena_init(&v.arena, cx_alloc_default(), 0);
    cx_map_init(&v.seen, cx_alloc_default(), cx_io_seed(cx_io_system()));
    status = read_tables(&v, err);
    cx_map_done(&v.seen);
    cx_arena_done(&v.arena);
    cx_db_finish(v.one);
    cx_db_finish(v.many);
    cx_db_finish(v.first);
    cx_db_close(v.db);
    return status;
}
