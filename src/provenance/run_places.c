/*
 * run_places.c - makes, keeps and reads places in a run (run_places.h).
 */
#include "provenance/run_places.h"

#include <stdio.h>

#include "os/api.h"

#define FORMAT "cortex-run-places-1"
#define FOLDER "places"
#define EVENTS CX_STR("events.jsonl")
#define FILE_BYTES_MAX ((size_t)64 << 20)
#define PIECE_BYTES ((size_t)256 << 10)
#define HEX_SIZE 64

/* --- lines ------------------------------------------------------------------------------------ */

void cx_run_lines_open(cx_run_lines *lines, const cx_run_places *places, uint64_t bytes,
                       uint64_t event)
{
    *lines = (cx_run_lines){.bundle = places->bundle, .bytes = bytes, .event = event};
    cx_buf_init(&lines->piece, places->arena.alloc);
}

void cx_run_lines_close(cx_run_lines *lines)
{
    cx_buf_done(&lines->piece);
}

/* More bytes after those that are not used yet; false at the end of the file. */
static cx_status read_piece(cx_run_lines *lines, bool *out, cx_err *err)
{
    size_t rest = lines->piece.size - lines->used, got = 0;
    if (lines->used != 0 && rest != 0)
        memmove(lines->piece.data, lines->piece.data + lines->used, rest);
    lines->piece.size = rest;
    lines->used = 0;
    uint8_t *room = cx_buf_reserve(&lines->piece, PIECE_BYTES);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_bundle_read_at(lines->bundle, EVENTS, lines->bytes + rest, room, PIECE_BYTES,
                                 &got, err));
    cx_buf_advance(&lines->piece, got);
    *out = got != 0;
    return CX_SUCCESS;
}

cx_status cx_run_lines_next(cx_run_lines *lines, cx_str *out_line, bool *out, cx_err *err)
{
    for (;;) {
        cx_str rest = cx_str_from((const char *)lines->piece.data + lines->used,
                                  lines->piece.size - lines->used);
        *out = cx_run_next_line(&rest, out_line);
        if (!*out && rest.size <= CX_RUN_EVENT_BYTES_MAX) {
            CX_TRY(read_piece(lines, out, err));
            if (!*out)
                return CX_SUCCESS;
            continue;
        }
        if (!*out || out_line->size > CX_RUN_EVENT_BYTES_MAX) {
            if (err != NULL)
                err->line = lines->event + 1;
            return cx_fail(err, CX_E_LIMIT, "event %llu has more than %u bytes",
                           (unsigned long long)lines->event + 1, CX_RUN_EVENT_BYTES_MAX);
        }
        if (lines->digest != NULL)
            cx_sha256_add(lines->digest, out_line->data, out_line->size + 1);
        lines->used += out_line->size + 1;
        lines->bytes += out_line->size + 1;
        lines->event++;
        return CX_SUCCESS;
    }
}

/* --- states ----------------------------------------------------------------------------------- */

void cx_run_places_restore(cx_run_places *p, const cx_place_row *row)
{
    cx_run_weave_restart(&p->weave, row == NULL ? 0 : row->event);
    for (size_t i = 0; row != NULL && i < row->head_count; i++) {
        cx_weave_branch *branch = &p->weave.branches.items[row->heads[i].branch];
        branch->next_seq = row->heads[i].seq;
        branch->newest = row->event - 1;
        memcpy(branch->hash, row->heads[i].hash, sizeof branch->hash);
        if (row->heads[i].branch != 0)
            p->weave.open.items[p->weave.open.count++] = row->heads[i].branch;
    }
}

static void put_head(const cx_run_places *p, uint32_t branch, cx_place_row *row)
{
    const cx_weave_branch *of = &p->weave.branches.items[branch];
    cx_place_head *head = &row->heads[row->head_count++];
    head->branch = branch;
    head->seq = of->next_seq;
    memcpy(head->hash, of->hash, sizeof head->hash);
}

cx_status cx_run_places_now(cx_run_places *p, uint64_t event, cx_place_row *out, cx_err *err)
{
    const cx_weave *w = &p->weave;
    *out = (cx_place_row){.event = event,
                          .heads = CX_ARENA_ARRAY(&p->arena, cx_place_head, w->open.count + 1)};
    if (out->heads == NULL)
        return cx_fail_nomem(err);
    if (w->branches.items[0].newest != CX_WEAVE_NONE)
        put_head(p, 0, out);
    for (size_t i = 0; i < w->open.count; i++)
        put_head(p, w->open.items[i], out);
    return CX_SUCCESS;
}

/* --- making ----------------------------------------------------------------------------------- */

/* The events after those that were read; *out_valid is the first that may have another node. */
static cx_status note_events(cx_run_places *p, uint64_t *out_valid, cx_err *err)
{
    cx_run_lines lines;
    cx_status status = CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(&p->scratch);
    *out_valid = p->events;
    cx_run_lines_open(&lines, p, p->bytes, p->events);
    for (bool more = true; more && !cx_failed(status);) {
        cx_run_event_read event;
        cx_str line;
        uint32_t branch = 0;
        status = cx_run_lines_next(&lines, &line, &more, err);
        if (cx_failed(status) || !more)
            break;
        status = cx_run_weave_parse(line, p->events, &p->scratch, &event, err);
        if (!cx_failed(status))
            status = cx_run_weave_note(&p->weave, &event, p->events, &branch, err);
        if (!cx_failed(status) && branch != 0 &&
            p->weave.branches.items[branch].joined < *out_valid) /* L2 */
            *out_valid = p->weave.branches.items[branch].joined;
        p->events += !cx_failed(status);
        p->bytes = lines.bytes;
        cx_arena_reset(&p->scratch, mark);
    }
    cx_run_lines_close(&lines);
    return status;
}

static cx_status add_row(cx_run_places *p, cx_run_lines *lines, cx_err *err)
{
    cx_place_row row, *slot;
    CX_TRY(cx_run_places_now(p, lines->event, &row, err));
    row.bytes = lines->bytes;
    row.sha256 = cx_sha256_end(lines->digest);
    cx_sha256_init(lines->digest);
    if ((slot = cx_vec_push(&p->rows, p->arena.alloc)) == NULL)
        return cx_fail_nomem(err);
    *slot = row;
    return CX_SUCCESS;
}

static cx_status weave_event(cx_run_places *p, cx_run_lines *lines, cx_err *err)
{
    cx_run_event_read event;
    cx_str line;
    bool more;
    const uint64_t at = lines->event;
    cx_arena_mark mark = cx_arena_mark_now(&p->scratch);
    CX_TRY(cx_run_lines_next(lines, &line, &more, err));
    if (!more)
        return cx_fail(err, CX_E_CONFLICT, "events.jsonl changed while it was read");
    CX_TRY(cx_run_weave_parse(line, at, &p->scratch, &event, err));
    cx_buf_clear(&p->node);
    CX_TRY(cx_run_weave_node(&p->weave, &event, at, &p->scratch, &p->node, err));
    cx_arena_reset(&p->scratch, mark);
    return CX_SUCCESS;
}

/* Rows from the last one on. */
static cx_status make_rows(cx_run_places *p, cx_err *err)
{
    const cx_place_row *last = p->rows.count == 0 ? NULL : &p->rows.items[p->rows.count - 1];
    const uint64_t first = last == NULL ? 0 : last->event;
    cx_run_lines lines;
    cx_sha256 digest;
    cx_status status = CX_SUCCESS;
    cx_run_places_restore(p, last);
    cx_run_lines_open(&lines, p, last == NULL ? 0 : last->bytes, first);
    cx_sha256_init(&digest);
    lines.digest = &digest;
    while (!cx_failed(status) && lines.event < p->events) {
        if (lines.event != first && lines.event % p->stride == 0)
            status = add_row(p, &lines, err);
        if (!cx_failed(status))
            status = weave_event(p, &lines, err);
    }
    cx_run_lines_close(&lines);
    return status;
}

/* --- on the disk ------------------------------------------------------------------------------ */

static void put_rows(const cx_run_places *p, cx_json_list *root)
{
    cx_json_list rows = cx_json_list_begin(root->arena);
    for (size_t i = 0; i < p->rows.count; i++) {
        const cx_place_row *row = &p->rows.items[i];
        cx_json_list one = cx_json_list_begin(root->arena), heads = cx_json_list_begin(root->arena);
        for (size_t k = 0; k < row->head_count; k++) {
            cx_json_list head = cx_json_list_begin(root->arena);
            cx_json value;
            cx_json_list_add(&head, cx_json_make_uint(root->arena, row->heads[k].branch));
            cx_json_list_add(&head, cx_json_make_int(root->arena, row->heads[k].seq));
            cx_json_list_add(&head,
                             cx_json_make_str(cx_str_from(row->heads[k].hash, CX_NODE_HASH_SIZE)));
            if (cx_failed(cx_json_list_end_array(&head, &value, NULL)))
                heads.failed = true;
            else
                cx_json_list_add(&heads, value);
        }
        cx_json_put_uint(&one, "bytes", row->bytes);
        cx_json_put_uint(&one, "event", row->event);
        cx_json_put_array(&one, "heads", &heads);
        cx_json_put_digest(&one, "sha256", &row->sha256);
        cx_json_add_object(&rows, &one);
    }
    cx_json_put_array(root, "rows", &rows);
}

static void put_tasks(const cx_run_places *p, cx_json_list *root)
{
    cx_json_list tasks = cx_json_list_begin(root->arena);
    for (size_t i = 1; i < p->weave.branches.count; i++) {
        const cx_weave_branch *task = &p->weave.branches.items[i];
        cx_json_list one = cx_json_list_begin(root->arena);
        cx_json value;
        cx_json_list_add(&one, cx_json_make_str(task->task_id));
        cx_json_list_add(&one, cx_json_make_uint(root->arena, task->last));
        cx_json_list_add(&one, task->joined == CX_WEAVE_NONE
                                   ? cx_json_make_null()
                                   : cx_json_make_uint(root->arena, task->joined));
        if (cx_failed(cx_json_list_end_array(&one, &value, NULL)))
            tasks.failed = true;
        else
            cx_json_list_add(&tasks, value);
    }
    cx_json_put_array(root, "tasks", &tasks);
}

static cx_status write_text(const cx_run_places *p, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json value;
    cx_json_list root = cx_json_list_begin(arena);
    char hex[HEX_SIZE];
    cx_json_put_uint(&root, "bytes", p->bytes);
    cx_json_put_uint(&root, "events", p->events);
    cx_json_put_z(&root, "format", FORMAT);
    put_rows(p, &root);
    cx_json_list_put(&root, CX_STR("run_id"), cx_json_make_str(cx_run_weave_run(&p->weave)));
    cx_json_put_uint(&root, "stride", p->stride);
    put_tasks(p, &root);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    for (size_t i = 0; i < HEX_SIZE; i++)
        cx_buf_add_byte(out, '0');
    cx_buf_add_byte(out, '\n');
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(out, err));
    const cx_digest digest =
        cx_digest_of(cx_bytes_from(out->data + HEX_SIZE + 1, out->size - HEX_SIZE - 1));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    memcpy(out->data, hex, sizeof hex);
    return CX_SUCCESS;
}

/* Derived, and made again when it is missing: a folder that cannot be written is no error. */
static void save(cx_run_places *p)
{
    cx_buf text;
    cx_arena_mark mark = cx_arena_mark_now(&p->scratch);
    cx_str folder = cx_run_store_path(p->store, &p->scratch, FOLDER, (cx_str){NULL, 0});
    cx_str path = cx_run_store_path(p->store, &p->scratch, FOLDER, p->run_id);
    cx_buf_init(&text, p->arena.alloc);
    if (folder.data != NULL && path.data != NULL && p->rows.count > 1 &&
        !cx_failed(write_text(p, &p->scratch, &text, NULL)) && text.size <= FILE_BYTES_MAX &&
        !cx_failed(cx_path_make_folders(folder.data, NULL))) {
        cx_status written = cx_run_write_file(p->store->io, path.data, cx_buf_bytes(&text), NULL);
        (void)written;
    }
    cx_buf_done(&text);
    cx_arena_reset(&p->scratch, mark);
}

static bool get_uint(const cx_json *object, const char *name, uint64_t *out)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && cx_json_uint64(value, out);
}

static const cx_json *item_of(const cx_json *list, size_t at, cx_json_type type)
{
    return list->type == CX_JSON_ARRAY && at < list->count && list->items[at].type == type
               ? &list->items[at]
               : NULL;
}

static bool load_task(cx_run_places *p, const cx_json *value)
{
    const cx_json *id = item_of(value, 0, CX_JSON_STRING), *last = item_of(value, 1, CX_JSON_INT);
    const cx_json *joined = item_of(value, 2, CX_JSON_INT);
    const size_t before = p->weave.branches.count;
    uint32_t branch;
    if (id == NULL || last == NULL || value->count != 3 ||
        (joined == NULL && item_of(value, 2, CX_JSON_NULL) == NULL) ||
        cx_failed(cx_run_weave_task(&p->weave, cx_json_text(id), &branch, NULL)) ||
        branch != before)
        return false;
    cx_weave_branch *task = &p->weave.branches.items[branch];
    return cx_json_uint64(last, &task->last) && task->last < p->events &&
           (joined == NULL || (cx_json_uint64(joined, &task->joined) && task->joined < p->events));
}

static bool load_head(const cx_run_places *p, const cx_json *value, cx_place_head *out)
{
    const cx_json *branch = item_of(value, 0, CX_JSON_INT), *seq = item_of(value, 1, CX_JSON_INT);
    const cx_json *hash = item_of(value, 2, CX_JSON_STRING);
    uint64_t number = UINT64_MAX;
    if (branch == NULL || seq == NULL || hash == NULL || !cx_json_uint64(branch, &number) ||
        number >= p->weave.branches.count || !cx_json_int64(seq, &out->seq) || out->seq < 0 ||
        hash->count != sizeof out->hash)
        return false;
    out->branch = (uint32_t)number;
    memcpy(out->hash, hash->text, sizeof out->hash);
    return true;
}

static bool load_row(cx_run_places *p, const cx_json *value)
{
    const cx_json *heads = cx_json_get_typed(value, CX_STR("heads"), CX_JSON_ARRAY);
    cx_place_row row = {.event = 0};
    if (heads == NULL || !get_uint(value, "event", &row.event) ||
        !get_uint(value, "bytes", &row.bytes) || row.event != (p->rows.count + 1) * p->stride ||
        row.event > p->events || row.bytes > p->bytes || heads->count > p->weave.branches.count ||
        !cx_digest_parse(CX_JSON_GET_STR(value, "sha256"), &row.sha256))
        return false;
    row.heads = CX_ARENA_ARRAY(&p->arena, cx_place_head, heads->count + 1);
    if (row.heads == NULL)
        return false;
    for (; row.head_count < heads->count; row.head_count++)
        if (!load_head(p, &heads->items[row.head_count], &row.heads[row.head_count]))
            return false;
    cx_place_row *slot = cx_vec_push(&p->rows, p->arena.alloc);
    if (slot != NULL)
        *slot = row;
    return slot != NULL;
}

static bool load_text(cx_run_places *p, cx_str text)
{
    cx_json root;
    cx_digest digest;
    uint64_t stride;
    if (text.size <= HEX_SIZE || text.data[HEX_SIZE] != '\n' ||
        !cx_digest_parse(cx_str_from(text.data, HEX_SIZE), &digest))
        return false;
    text = cx_str_from(text.data + HEX_SIZE + 1, text.size - HEX_SIZE - 1);
    const cx_digest found = cx_digest_of(cx_str_bytes(text));
    if (!cx_digest_eq(&digest, &found) ||
        cx_failed(cx_json_parse_text(text, &p->scratch, &root, NULL)))
        return false;
    const cx_json *rows = cx_json_get_typed(&root, CX_STR("rows"), CX_JSON_ARRAY);
    const cx_json *tasks = cx_json_get_typed(&root, CX_STR("tasks"), CX_JSON_ARRAY);
    cx_str run = CX_JSON_GET_STR(&root, "run_id");
    if (rows == NULL || tasks == NULL || !cx_str_is(CX_JSON_GET_STR(&root, "format"), FORMAT) ||
        !get_uint(&root, "stride", &stride) || stride != p->stride ||
        !get_uint(&root, "events", &p->events) || !get_uint(&root, "bytes", &p->bytes) ||
        p->events > CX_RUN_EVENTS_MAX || run.data == NULL ||
        cx_failed(cx_run_weave_begin(&p->weave, run, NULL)))
        return false;
    for (size_t i = 0; i < tasks->count; i++)
        if (!load_task(p, &tasks->items[i]))
            return false;
    for (size_t i = 0; i < rows->count; i++)
        if (!load_row(p, &rows->items[i]))
            return false;
    return true;
}

/* --- the whole -------------------------------------------------------------------------------- */

static void init(cx_run_places *p)
{
    const cx_alloc *alloc = p->store->alloc;
    cx_arena_init(&p->arena, alloc, 0);
    cx_arena_init(&p->scratch, alloc, 0);
    cx_buf_init(&p->node, alloc);
    cx_run_weave_init(&p->weave, alloc);
    p->events = p->bytes = 0;
}

void cx_run_places_close(cx_run_places *p)
{
    cx_vec_done(&p->rows, p->arena.alloc);
    cx_run_weave_done(&p->weave);
    cx_buf_done(&p->node);
    cx_arena_done(&p->scratch);
    cx_arena_done(&p->arena);
}

static cx_status make_room(cx_run_places *p, cx_err *err)
{
    return cx_vec_reserve(&p->weave.open, p->weave.branches.count + 1, p->arena.alloc)
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

cx_status cx_run_places_forget(cx_run_places *p, cx_err *err)
{
    cx_run_places_close(p);
    init(p);
    return make_room(p, err);
}

cx_status cx_run_places_open(cx_run_places *p, const cx_run_store *store, cx_run_bundle *bundle,
                             cx_str run_id, uint64_t stride, cx_err *err)
{
    const cx_run_entry *events = cx_run_bundle_find(bundle, EVENTS);
    cx_buf text;
    *p = (cx_run_places){.store = store, .bundle = bundle, .run_id = run_id, .stride = stride};
    init(p);
    cx_str path = cx_run_store_path(store, &p->scratch, FOLDER, run_id);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, store->alloc);
    bool loaded = !cx_failed(cx_io_read_file(store->io, path.data, FILE_BYTES_MAX, &text, NULL)) &&
                  load_text(p, cx_buf_str(&text)) && events != NULL &&
                  p->bytes <= events->size_bytes;
    cx_buf_done(&text);
    return loaded ? make_room(p, err) : cx_run_places_forget(p, err);
}

cx_status cx_run_places_extend(cx_run_places *p, cx_err *err)
{
    const uint64_t before = p->events;
    uint64_t valid;
    CX_TRY(note_events(p, &valid, err));
    if (p->events == before)
        return CX_SUCCESS;
    while (p->rows.count != 0 && p->rows.items[p->rows.count - 1].event > valid)
        p->rows.count--;
    CX_TRY(make_room(p, err));
    CX_TRY(make_rows(p, err));
    save(p);
    return CX_SUCCESS;
}
