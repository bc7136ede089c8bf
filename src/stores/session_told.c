/*
 * session_told.c - finds, keeps and reads what a session repeats (session_told.h).
 */
#include "stores/session_told.h"

#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "stores/session_items.h"

#define FORMAT "cortex-session-told-1"
#define ID_SIZE 16
/* Lines that are read at once, in bytes; more where one is longer. */
#define READ_BYTES ((size_t)8 << 20)
/* Of a shorter session it is made faster than files are written. */
#define KEPT_FROM_BYTES ((uint64_t)256 << 10)

typedef struct told_id {
    uint8_t bytes[ID_SIZE];
} told_id;

typedef struct telling {
    cx_home *home;
    const cx_recorded_session *session;
    uint64_t seq;
    uint64_t bytes, lines;
    cx_buf rows;
    uint64_t last_line; /* of the rows */
    /* What was told: sorted ids that were read or merged, and those since. */
    CX_VEC(told_id) ids;
    CX_VEC(told_id) more;
    cx_map seen; /* of `more`, by copies in the arena */
    cx_arena keys;
    uint64_t first_line; /* of the lines that are being read */
    bool failed;         /* memory ran out in a callback */
} telling;

/* --- numbers ---------------------------------------------------------------------------------- */

static void add_number(cx_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        cx_buf_add_byte(out, (uint8_t)(value | 0x80));
    cx_buf_add_byte(out, (uint8_t)value);
}

static bool read_number(cx_bytes *from, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; from->size != 0 && shift < 63; shift += 7) {
        const uint8_t byte = from->data[0];
        *from = cx_bytes_from(from->data + 1, from->size - 1);
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* --- what was told ---------------------------------------------------------------------------- */

static told_id id_of(char space, cx_str id)
{
    told_id made;
    cx_sha256 sha;
    cx_sha256_init(&sha);
    cx_sha256_add(&sha, &space, 1);
    cx_sha256_add(&sha, id.data, id.size);
    const cx_digest digest = cx_sha256_end(&sha);
    memcpy(made.bytes, digest.bytes, sizeof made.bytes);
    return made;
}

static int compare_ids(const void *left, const void *right)
{
    return memcmp(left, right, ID_SIZE);
}

static cx_str key_of(const told_id *id)
{
    return cx_str_from((const char *)id->bytes, sizeof id->bytes);
}

static bool has_id(const telling *t, const told_id *id)
{
    return cx_map_find(&t->seen, key_of(id)) != NULL ||
           (t->ids.count != 0 &&
            bsearch(id, t->ids.items, t->ids.count, sizeof *id, compare_ids) != NULL);
}

static void note_told(void *arg, char space, cx_str text)
{
    telling *t = arg;
    const told_id id = id_of(space, text);
    uint64_t *value;
    bool is_new;
    if (has_id(t, &id))
        return;
    told_id *slot = cx_vec_push(&t->more, cx_alloc_default());
    const cx_str key = cx_arena_copy_str(&t->keys, key_of(&id));
    if (slot == NULL || key.data == NULL ||
        cx_failed(cx_map_put(&t->seen, key, &value, &is_new, NULL))) {
        t->failed = true;
        return;
    }
    *slot = id;
}

static bool answer(void *arg, uint64_t line, uint32_t question, char space, cx_str text, bool known)
{
    telling *t = arg;
    const told_id id = id_of(space, text);
    (void)known; /* what was read told it here, too */
    if (!has_id(t, &id))
        return false;
    add_number(&t->rows, line - t->last_line);
    add_number(&t->rows, question);
    t->last_line = line;
    return true;
}

/* --- the files -------------------------------------------------------------------------------- */

static void begin_text(cx_buf *text)
{
    for (size_t i = 0; i < CX_SESSION_ITEMS_HEAD; i++)
        cx_buf_add_byte(text, '0');
}

static cx_str hex_of(const cx_recorded_session *session, cx_arena *arena)
{
    char hex[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(session->id, CX_SESSION_ID_SIZE), hex);
    return cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
}

static void save_rows(const telling *t)
{
    cx_arena arena;
    cx_buf text;
    cx_json value;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_json_list root = cx_json_list_begin(&arena);
    const cx_str id = hex_of(t->session, &arena);
    root.failed |= id.data == NULL;
    cx_json_put_uint(&root, "bytes", t->bytes);
    cx_json_put_z(&root, "format", FORMAT);
    cx_json_put_uint(&root, "lines", t->lines);
    cx_json_put_uint(&root, "seq", t->seq);
    cx_json_list_put(&root, CX_STR("session"), cx_json_make_str(id));
    begin_text(&text);
    if (!cx_failed(cx_json_list_end_object(&root, &value, NULL)) &&
        !cx_failed(cx_json_write(&text, &value, CX_JSON_PY_COMPACT, NULL))) {
        cx_buf_add_byte(&text, '\n');
        cx_buf_add(&text, t->rows.data, t->rows.size);
        cx_session_items_save(t->home, t->session->id, "", &text);
    }
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

/* The ids first: rows that say more than they do must not be found. */
static void save(telling *t)
{
    cx_buf text;
    for (size_t i = 0; i < t->more.count; i++) {
        told_id *slot = cx_vec_push(&t->ids, cx_alloc_default());
        if (slot == NULL)
            return;
        *slot = t->more.items[i];
    }
    if (t->ids.count != 0)
        qsort(t->ids.items, t->ids.count, sizeof *t->ids.items, compare_ids);
    cx_buf_init(&text, cx_alloc_default());
    begin_text(&text);
    cx_buf_printf(&text, "%llu\n", (unsigned long long)t->lines);
    if (t->ids.count != 0)
        cx_buf_add(&text, t->ids.items, t->ids.count * sizeof *t->ids.items);
    cx_session_items_save(t->home, t->session->id, CX_SESSION_TOLD_IDS, &text);
    cx_buf_done(&text);
    save_rows(t);
}

static bool get_uint(const cx_json *object, const char *name, uint64_t *out)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && cx_json_uint64(value, out);
}

/* The text up to a line feed, which is passed. */
static bool cut_line(cx_str *rest, cx_str *out)
{
    const char *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    if (end == NULL)
        return false;
    *out = cx_str_from(rest->data, (size_t)(end - rest->data));
    *rest = cx_str_from(end + 1, rest->size - out->size - 1);
    return true;
}

static bool load_rows(telling *t, cx_arena *scratch)
{
    cx_buf text;
    cx_str rest, line;
    cx_json root;
    uint64_t seq = 0, number = 0;
    cx_buf_init(&text, cx_alloc_default());
    bool loaded = cx_session_items_load(t->home, t->session->id, "", &text, &rest) &&
                  cut_line(&rest, &line) &&
                  !cx_failed(cx_json_parse_text(line, scratch, &root, NULL)) &&
                  cx_str_is(CX_JSON_GET_STR(&root, "format"), FORMAT) &&
                  cx_str_eq(CX_JSON_GET_STR(&root, "session"), hex_of(t->session, scratch)) &&
                  get_uint(&root, "seq", &seq) && seq == t->seq &&
                  get_uint(&root, "bytes", &t->bytes) && t->bytes <= t->session->offset &&
                  get_uint(&root, "lines", &t->lines) && t->lines <= t->session->lines &&
                  (t->bytes == t->session->offset) == (t->lines == t->session->lines);
    if (loaded)
        cx_buf_add_str(&t->rows, rest);
    for (cx_bytes left = cx_buf_bytes(&t->rows); loaded && left.size != 0;) {
        loaded = read_number(&left, &number) && number <= t->lines - t->last_line;
        t->last_line += loaded ? number : 0;
        loaded = loaded && read_number(&left, &number) && number < UINT32_MAX;
    }
    cx_buf_done(&text);
    return loaded && !t->rows.failed;
}

static bool load_ids(telling *t)
{
    char lines[32];
    cx_buf text;
    cx_str rest, line;
    (void)snprintf(lines, sizeof lines, "%llu", (unsigned long long)t->lines);
    cx_buf_init(&text, cx_alloc_default());
    bool loaded =
        cx_session_items_load(t->home, t->session->id, CX_SESSION_TOLD_IDS, &text, &rest) &&
        cut_line(&rest, &line) && cx_str_is(line, lines) && rest.size % ID_SIZE == 0;
    const size_t count = loaded ? rest.size / ID_SIZE : 0;
    loaded = loaded && cx_vec_reserve(&t->ids, count + 1, cx_alloc_default());
    if (loaded && count != 0)
        memcpy(t->ids.items, rest.data, count * sizeof *t->ids.items);
    t->ids.count = loaded ? count : 0;
    cx_buf_done(&text);
    return loaded;
}

/* --- making ----------------------------------------------------------------------------------- */

static void forget(telling *t)
{
    t->bytes = t->lines = t->last_line = 0;
    cx_buf_clear(&t->rows);
    t->ids.count = 0;
}

static cx_status read_lines(telling *t, cx_bytes lines, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    const cx_import_window window = {.line = t->lines,
                                     .from = t->lines,
                                     .until = UINT64_MAX,
                                     .after_ns = INT64_MIN,
                                     .until_ns = INT64_MAX};
    options.windows = &window;
    options.was_told = answer;
    options.told = note_told;
    options.told_arg = t;
    CX_TRY(cx_import_run_bytes(cx_recorded_session_format_name(t->session->format), &lines, 1,
                               &options, NULL, NULL, NULL, err));
    if (t->failed)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < lines.size; i++)
        t->lines += lines.data[i] == '\n';
    t->bytes += lines.size;
    return cx_buf_check(&t->rows, err);
}

/* The lines after those that were read; *out_lines is false when it is no file of lines. */
static cx_status read_on(telling *t, cx_session_told_read read, void *arg, cx_buf *text,
                         bool *out_lines, cx_err *err)
{
    *out_lines = true;
    for (uint64_t at = t->bytes; at < t->session->offset;) {
        CX_TRY(read(arg, at, &at, text, err));
        size_t end = text->size;
        while (end != 0 && text->data[end - 1] != '\n')
            end--;
        if (end == 0 || (text->size < READ_BYTES && at < t->session->offset))
            continue;
        if (t->bytes == 0)
            *out_lines = cx_import_reads_lines(cx_recorded_session_format_name(t->session->format),
                                               cx_bytes_from(text->data, end), cx_alloc_default());
        if (!*out_lines)
            return CX_SUCCESS;
        CX_TRY(read_lines(t, cx_bytes_from(text->data, end), err));
        memmove(text->data, text->data + end, text->size - end);
        text->size -= end;
    }
    return CX_SUCCESS;
}

static cx_status open_told(telling *t, cx_session_told_read read, void *arg, cx_arena *arena,
                           bool *out_lines, cx_err *err)
{
    cx_buf text;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    bool loaded = load_rows(t, arena);
    cx_arena_reset(arena, mark);
    *out_lines = true;
    if (loaded && t->bytes == t->session->offset)
        return CX_SUCCESS;
    if (!loaded || !load_ids(t))
        forget(t);
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = read_on(t, read, arg, &text, out_lines, err);
    cx_buf_done(&text);
    CX_TRY(status);
    if (*out_lines && t->session->offset >= KEPT_FROM_BYTES)
        save(t);
    return CX_SUCCESS;
}

static cx_status keep(const telling *t, cx_arena *arena, const cx_session_told **out, cx_err *err)
{
    cx_session_told *told = CX_ARENA_NEW(arena, cx_session_told);
    const cx_str rows = cx_arena_copy_str(arena, cx_buf_str(&t->rows));
    if (told == NULL || rows.data == NULL)
        return cx_fail_nomem(err);
    *told = (cx_session_told){t->bytes, t->lines, cx_str_bytes(rows)};
    *out = told;
    return CX_SUCCESS;
}

cx_status cx_session_told_open(cx_home *home, const cx_recorded_session *session,
                               cx_session_told_read read, void *read_arg, cx_arena *arena,
                               const cx_session_told **out, cx_err *err)
{
    telling t = {.home = home, .session = session};
    cx_session_piece first;
    bool lines = false;
    *out = NULL;
    if (session->offset == 0)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_session_piece(home, session, 0, &first, err));
    t.seq = first.seq;
    cx_buf_init(&t.rows, cx_alloc_default());
    cx_arena_init(&t.keys, cx_alloc_default(), 0);
    cx_map_init(&t.seen, cx_alloc_default(), (uint64_t)(uintptr_t)home);
    cx_status status = open_told(&t, read, read_arg, arena, &lines, err);
    if (!cx_failed(status) && lines && t.lines == session->lines)
        status = keep(&t, arena, out, err);
    cx_map_done(&t.seen);
    cx_arena_done(&t.keys);
    cx_vec_done(&t.ids, cx_alloc_default());
    cx_vec_done(&t.more, cx_alloc_default());
    cx_buf_done(&t.rows);
    return status;
}

/* --- answers ---------------------------------------------------------------------------------- */

cx_status cx_session_told_answers(const cx_session_told *told, uint64_t head, uint64_t from,
                                  uint64_t until, cx_session_answers *out, cx_err *err)
{
    uint64_t line = 0, step, question;
    for (cx_bytes left = told->rows; left.size != 0;) {
        if (!read_number(&left, &step) || !read_number(&left, &question))
            break;
        line += step;
        if (line > head && (line <= from || line > until))
            continue;
        uint64_t *of = cx_vec_push(&out->lines, cx_alloc_default());
        uint32_t *which = cx_vec_push(&out->questions, cx_alloc_default());
        if (of == NULL || which == NULL)
            return cx_fail_nomem(err);
        *of = line;
        *which = (uint32_t)question;
    }
    return CX_SUCCESS;
}

void cx_session_answers_done(cx_session_answers *answers)
{
    cx_vec_done(&answers->lines, cx_alloc_default());
    cx_vec_done(&answers->questions, cx_alloc_default());
}

bool cx_session_was_told(void *arg, uint64_t line, uint32_t question, char space, cx_str id,
                         bool known)
{
    const cx_session_answers *answers = arg;
    size_t low = 0, high = answers->lines.count;
    (void)space;
    (void)id;
    (void)known;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint64_t at = answers->lines.items[middle];
        if (at < line || (at == line && answers->questions.items[middle] < question))
            low = middle + 1;
        else
            high = middle;
    }
    return low < answers->lines.count && answers->lines.items[low] == line &&
           answers->questions.items[low] == question;
}
