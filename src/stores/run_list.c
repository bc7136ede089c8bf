/*
 * run_list.c - governed runs that a data directory knows of.
 *
 * A run's rows are run/<id>/ and, for each event, run/<id>/<u32be>; so the first row of a run comes
 * before those of its events, and a scan backwards from run/<id>/ finds the run before it.
 */
#include "stores/run_list.h"

#include "base/api.h"
#include "recorder/api.h"
#include "rules/api.h"

#define PREFIX "run/"

typedef struct looking {
    cx_home *home;
    cx_arena *arena;
    cx_str before; /* the run that was found last */
    cx_str found;  /* data NULL: none */
    cx_str first_row;
} looking;

/* The id in a row's key. */
static bool read_id(cx_bytes key, cx_str *out)
{
    const size_t prefix = sizeof PREFIX - 1;
    if (key.size <= prefix || memcmp(key.data, PREFIX, prefix) != 0)
        return false;
    cx_str rest = cx_bytes_str(cx_bytes_from(key.data + prefix, key.size - prefix));
    const char *slash = memchr(rest.data, '/', rest.size);
    *out = cx_str_from(rest.data, slash == NULL ? 0 : (size_t)(slash - rest.data));
    return cx_run_id_valid(*out);
}

static cx_status see_run(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    looking *l = arg;
    cx_str id;
    (void)value;
    if (!read_id(key, &id) || cx_str_eq(id, l->before))
        return CX_SUCCESS;
    *stop = true;
    l->found = cx_arena_copy_str(l->arena, id);
    return l->found.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status find_before(looking *l, cx_err *err)
{
    cx_run_row_key key;
    cx_scan scan = {.common = true,
                    .prefix = cx_str_bytes(CX_STR(PREFIX)),
                    .backwards = true,
                    .row = see_run,
                    .arg = l};
    if (l->before.size != 0)
        scan.from = cx_run_row_name(&key, l->before);
    l->found = (cx_str){NULL, 0};
    return cx_home_scan(l->home, &scan, err);
}

static cx_status take_first_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    looking *l = arg;
    (void)key;
    *stop = true;
    l->first_row = cx_arena_copy_str(l->arena, cx_bytes_str(value));
    return l->first_row.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Where the entry about the first event is. */
typedef struct first_event {
    cx_arena *arena;
    cx_str journal;
    cx_run_place place;
    bool found;
} first_event;

static cx_status take_event_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    first_event *event = arg;
    (void)key;
    *stop = true;
    event->found = cx_run_event_row_decode(value, event->journal, &event->place);
    if (event->found)
        event->place.journal = cx_arena_copy_str(event->arena, event->place.journal);
    return event->found && event->place.journal.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status read_created(looking *l, cx_run_listed *out, cx_err *err)
{
    cx_run_row_key key;
    cx_entry_view view;
    first_event event = {.arena = l->arena, .journal = out->actor};
    const cx_scan scan = {.common = true,
                          .prefix = cx_run_event_row_name(&key, out->run_id, 1),
                          .row = take_event_row,
                          .arg = &event};
    CX_TRY(cx_home_scan(l->home, &scan, err));
    if (!event.found)
        return CX_SUCCESS;
    cx_status status =
        cx_home_entry(l->home, event.place.journal, event.place.seq, l->arena, &view, err);
    if (!cx_failed(status))
        out->created_ns = view.entry.created_at_ns;
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status read_seal(looking *l, const cx_run_row *row, cx_run_listed *out, cx_err *err)
{
    cx_entry_view view;
    cx_json seal;
    if (!row->sealed)
        return CX_SUCCESS;
    cx_status status =
        cx_home_entry(l->home, row->seal.journal, row->seal.seq, l->arena, &view, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    status = cx_run_json_read(cx_bytes_str(view.payload), 0, l->arena, &seal, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || !cx_str_eq(CX_JSON_GET_STR(&seal, "run_id"), out->run_id))
        return CX_SUCCESS;
    out->sealed_ns = view.entry.created_at_ns;
    out->task_id = CX_JSON_GET_STR(&seal, "task_id");
    out->status = CX_JSON_GET_STR(&seal, "status");
    return CX_SUCCESS;
}

static cx_status read_run(looking *l, cx_run_listed *out, cx_err *err)
{
    cx_run_row_key key;
    cx_run_row row;
    *out = (cx_run_listed){.run_id = l->found, .created_ns = INT64_MIN, .sealed_ns = INT64_MIN};
    const cx_scan scan = {
        .common = true, .prefix = cx_run_row_name(&key, l->found), .row = take_first_row, .arg = l};
    l->first_row = (cx_str){NULL, 0};
    CX_TRY(cx_home_scan(l->home, &scan, err));
    if (!cx_run_row_decode(cx_str_bytes(l->first_row), &row))
        return CX_SUCCESS;
    out->actor = row.journal;
    CX_TRY(read_created(l, out, err));
    return read_seal(l, &row, out, err);
}

cx_status cx_run_list_recorded(cx_home *home, cx_str cursor, size_t limit, cx_arena *arena,
                               cx_run_listed **out, size_t *out_count, cx_err *err)
{
    CX_ASSERT(home != NULL && (cursor.data == NULL || cx_run_id_valid(cursor)));
    looking l = {.home = home, .arena = arena, .before = cursor};
    cx_run_listed *list = CX_ARENA_ARRAY(arena, cx_run_listed, limit + 1);
    size_t count = 0;
    if (list == NULL)
        return cx_fail_nomem(err);
    for (; count < limit; count++) {
        CX_TRY(find_before(&l, err));
        if (l.found.data == NULL)
            break;
        CX_TRY(read_run(&l, &list[count], err));
        l.before = l.found;
    }
    *out = list;
    *out_count = count;
    return CX_SUCCESS;
}
