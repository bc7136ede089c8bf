/*
 * run_part.c - opens a part of a run (run_part.h).
 */
#include "provenance/run_part.h"

#include "audit/api.h"
#include "lattice/api.h"
#include "provenance/run_places.h"

#define EVENTS CX_STR("events.jsonl")
#define PIECE_BYTES ((size_t)1 << 20)

typedef struct part {
    cx_run_places places;
    uint64_t from, end; /* events */
    cx_buf *lines;
    cx_place_row start; /* of the state where the part begins */
} part;

/* --- weaving ---------------------------------------------------------------------------------- */

static bool rows_agree(const cx_place_row *a, const cx_place_row *b)
{
    if (a->head_count != b->head_count || !cx_digest_eq(&a->sha256, &b->sha256))
        return false;
    for (size_t i = 0; i < a->head_count; i++)
        if (a->heads[i].branch != b->heads[i].branch || a->heads[i].seq != b->heads[i].seq ||
            memcmp(a->heads[i].hash, b->heads[i].hash, sizeof a->heads[i].hash) != 0)
            return false;
    return true;
}

/* Whether what was woven since the row before leads to this one (L3 of run_places.h). */
static cx_status check_row(part *p, const cx_place_row *row, cx_run_lines *lines, bool *out_agrees,
                           cx_err *err)
{
    cx_place_row now;
    CX_TRY(cx_run_places_now(&p->places, lines->event, &now, err));
    now.sha256 = cx_sha256_end(lines->digest);
    cx_sha256_init(lines->digest);
    *out_agrees = row->bytes == lines->bytes && rows_agree(row, &now);
    return CX_SUCCESS;
}

static cx_status weave_line(part *p, cx_run_lines *lines, cx_err *err)
{
    cx_run_places *places = &p->places;
    cx_run_event_read event;
    cx_str line;
    bool more;
    const uint64_t at = lines->event;
    cx_arena_mark mark = cx_arena_mark_now(&places->scratch);
    CX_TRY(cx_run_lines_next(lines, &line, &more, err));
    if (!more)
        return cx_fail(err, CX_E_CONFLICT, "events.jsonl changed while it was read");
    CX_TRY(cx_run_weave_parse(line, at, &places->scratch, &event, err));
    cx_buf_clear(&places->node);
    CX_TRY(cx_run_weave_node(&places->weave, &event, at, &places->scratch,
                             at < p->from ? &places->node : p->lines, err));
    cx_arena_reset(&places->scratch, mark);
    return CX_SUCCESS;
}

/* From the row at or before the part on; *out_agrees false: the rows are of other events. */
static cx_status weave_lines(part *p, cx_run_lines *lines, size_t next_row, bool *out_agrees,
                             cx_err *err)
{
    const cx_place_row *rows = p->places.rows.items;
    *out_agrees = true;
    for (;;) {
        if (next_row < p->places.rows.count && rows[next_row].event == lines->event) {
            CX_TRY(check_row(p, &rows[next_row++], lines, out_agrees, err));
            if (!*out_agrees)
                return CX_SUCCESS;
        }
        if (lines->event == p->from)
            CX_TRY(cx_run_places_now(&p->places, p->from, &p->start, err));
        if (lines->event == p->end)
            return CX_SUCCESS;
        CX_TRY(weave_line(p, lines, err));
    }
}

static cx_status weave_part(part *p, bool *out_agrees, cx_err *err)
{
    cx_run_places *places = &p->places;
    const cx_place_row *row = NULL;
    size_t next = 0;
    cx_run_lines lines;
    cx_sha256 digest;
    while (next < places->rows.count && places->rows.items[next].event <= p->from)
        row = &places->rows.items[next++];
    cx_buf_clear(p->lines);
    cx_run_places_restore(places, row);
    cx_run_lines_open(&lines, places, row == NULL ? 0 : row->bytes, row == NULL ? 0 : row->event);
    cx_sha256_init(&digest);
    lines.digest = &digest;
    cx_status status = weave_lines(p, &lines, next, out_agrees, err);
    cx_run_lines_close(&lines);
    return status;
}

/* --- the lattice ------------------------------------------------------------------------------ */

/* P2 */
static bool is_known(const part *p, cx_str name)
{
    for (size_t i = 0; i < p->start.head_count; i++)
        if (cx_str_eq(name, cx_str_from(p->start.heads[i].hash, CX_NODE_HASH_SIZE)))
            return true;
    return false;
}

static cx_status verify_part(part *p, const cx_lattice *lattice, cx_lattice_report **out,
                             cx_err *err)
{
    const size_t count = cx_lattice_missing_count(lattice);
    bool *known = CX_ARENA_ARRAY(&p->places.scratch, bool, count + 1);
    if (known == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        cx_node child;
        known[i] = is_known(p, cx_lattice_missing(lattice, i, &child));
    }
    return cx_lattice_verify_part(lattice, NULL, known, out, err);
}

static cx_status find_end(part *p, uint64_t size, cx_err *err)
{
    const uint64_t events = p->places.events;
    if (p->from >= events)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                          "found a part from event %llu, expected one below %llu",
                          (unsigned long long)p->from, (unsigned long long)events);
    p->end = events - p->from > size ? p->from + size : events;
    return CX_SUCCESS;
}

/* With places that were made again when those that there were do not fit. */
static cx_status make_lines(part *p, uint64_t size, cx_err *err)
{
    bool agrees;
    CX_TRY(cx_run_places_extend(&p->places, err));
    CX_TRY(find_end(p, size, err));
    CX_TRY(weave_part(p, &agrees, err));
    if (agrees)
        return CX_SUCCESS;
    CX_TRY(cx_run_places_forget(&p->places, err));
    CX_TRY(cx_run_places_extend(&p->places, err));
    CX_TRY(find_end(p, size, err));
    CX_TRY(weave_part(p, &agrees, err));
    return agrees ? CX_SUCCESS
                  : cx_fail(err, CX_E_CONFLICT, "events.jsonl changed while it was read");
}

cx_status cx_run_part_of(const cx_run_store *store, cx_run_bundle *bundle, cx_str run_id,
                         const cx_run_part_sizes *sizes, uint64_t from,
                         const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                         cx_lattice_report **out_report, cx_err *err)
{
    part p = {.from = from, .lines = lines};
    *out = NULL;
    cx_status status = cx_run_places_open(&p.places, store, bundle, run_id, sizes->stride, err);
    if (!cx_failed(status))
        status = make_lines(&p, sizes->part, err);
    if (!cx_failed(status))
        status = cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err);
    if (!cx_failed(status))
        status = verify_part(&p, *out, out_report, err);
    cx_run_places_close(&p.places);
    if (cx_failed(status)) {
        cx_lattice_close(*out);
        *out = NULL;
    }
    return status;
}

cx_status cx_run_open_part(const cx_run_store *store, cx_str name, uint64_t from,
                           const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                           cx_lattice_report **out_report, cx_err *err)
{
    static const cx_run_part_sizes sizes = {CX_RUN_PLACES_STRIDE, CX_STEPS_PART};
    cx_run_bundle *bundle = NULL;
    if (memchr(name.data, '/', name.size) != NULL)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "NoParts", CX_NO_OFFSET,
                          "one branch of a run has no parts: name the run alone, or open the "
                          "branch whole");
    CX_TRY(cx_run_view_open(store, name, &bundle, err));
    cx_status status =
        cx_run_part_of(store, bundle, name, &sizes, from, options, lines, out, out_report, err);
    cx_run_bundle_close(bundle);
    return status;
}

/* --- how long a run is ------------------------------------------------------------------------ */

static cx_status count_lines(cx_run_bundle *bundle, uint64_t from, uint64_t *out, cx_err *err)
{
    cx_buf piece;
    cx_status status = CX_SUCCESS;
    size_t got = 1;
    cx_buf_init(&piece, cx_alloc_default());
    uint8_t *room = cx_buf_reserve(&piece, PIECE_BYTES);
    if (room == NULL)
        status = cx_fail_nomem(err);
    while (!cx_failed(status) && got != 0) {
        status = cx_run_bundle_read_at(bundle, EVENTS, from, room, PIECE_BYTES, &got, err);
        if (cx_failed(status))
            break;
        from += got;
        for (const uint8_t *at = room; (at = memchr(at, '\n', (size_t)(room + got - at))) != NULL;
             at++)
            ++*out;
    }
    cx_buf_done(&piece);
    return status;
}

/* *out_events are those that the places tell of, and the lines after them. */
static cx_status open_places(const cx_run_store *store, cx_run_bundle *bundle, cx_str run_id,
                             cx_run_places *places, uint64_t *out_events, cx_err *err)
{
    CX_TRY(cx_run_places_open(places, store, bundle, run_id, CX_RUN_PLACES_STRIDE, err));
    *out_events = places->events;
    return count_lines(bundle, places->bytes, out_events, err);
}

cx_status cx_run_extent(const cx_run_store *store, cx_str name, cx_steps_extent *out, cx_err *err)
{
    cx_run_bundle *bundle = NULL;
    cx_run_places places;
    *out = (cx_steps_extent){.parts = false};
    if (memchr(name.data, '/', name.size) != NULL)
        return CX_SUCCESS;
    CX_TRY(cx_run_view_open(store, name, &bundle, err));
    cx_status status = open_places(store, bundle, name, &places, &out->entries, err);
    out->parts = out->entries != 0;
    cx_run_places_close(&places);
    cx_run_bundle_close(bundle);
    return status;
}

cx_status cx_run_part_prepare(const cx_run_store *store, cx_str run_id, cx_err *err)
{
    cx_run_bundle *bundle = NULL;
    cx_run_places places;
    uint64_t events = 0;
    CX_TRY(cx_run_view_open(store, run_id, &bundle, err));
    cx_status status = open_places(store, bundle, run_id, &places, &events, err);
    if (!cx_failed(status) && events > CX_STEPS_PART)
        status = cx_run_places_extend(&places, err);
    cx_run_places_close(&places);
    cx_run_bundle_close(bundle);
    return status;
}
