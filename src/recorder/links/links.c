/*
 * links.c - where entries are that link traces, memories, runs and commits.
 *
 * A row has hashes of the two names and the place of the entry; what an entry links is read from it
 * again when it is asked for.  So a row that is wrong leads to nothing, and rows have no content.
 *
 *   L1  Rows and the position after them are one transaction; programs that read on at the same
 *       time take turns.
 *   L2  Rows of an entry or a memory that was erased are gone when the log was read that far.
 *   L3  A file of another data directory, or of a log that was put back, is emptied and made again:
 *       the last entry that was read must still be what it was.
 *   L4  A file that cannot be written or read costs time, not answers: the log is read into a
 *       private database.
 *
 * A batch's entry comes after its traces: a trace waits in a row until its batch is read.
 */
#include "recorder/links.h"

#include "base/api.h"
#include "bundle/api.h"
#include "crypto/api.h"
#include "db/api.h"
#include "os/api.h"
#include "proof/api.h"
#include "recorder/links/extract.h"

#define FORMAT 1
#define FRAMES_AT_ONCE 16384
#define WAITING_MAX 65536 /* traces whose batch was not read yet; the oldest are dropped */
#define NAME_MAX (2 + CX_ACTOR_SIZE_MAX + 64)

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS at (format INTEGER, home BLOB, position_commit INTEGER,"
    " position_frames INTEGER, actor BLOB, seq INTEGER, leaf BLOB);"
    "CREATE TABLE IF NOT EXISTS actors (id INTEGER PRIMARY KEY, name BLOB UNIQUE);"
    /* The places of the entry that links and, where a batch states a run, of the trace. */
    "CREATE TABLE IF NOT EXISTS links (id INTEGER PRIMARY KEY, name_from INTEGER, name_to INTEGER,"
    " kind_from INTEGER, kind_to INTEGER, actor INTEGER, seq INTEGER, trace_actor INTEGER,"
    " trace_seq INTEGER);"
    "CREATE INDEX IF NOT EXISTS links_from ON links (name_from);"
    "CREATE INDEX IF NOT EXISTS links_to ON links (name_to);"
    "CREATE INDEX IF NOT EXISTS links_place ON links (seq, actor);"
    "CREATE INDEX IF NOT EXISTS links_trace ON links (trace_seq, trace_actor)"
    " WHERE trace_seq IS NOT NULL;"
    "CREATE TABLE IF NOT EXISTS waiting (id INTEGER PRIMARY KEY, batch BLOB, actor INTEGER,"
    " seq INTEGER);"
    "CREATE INDEX IF NOT EXISTS waiting_batch ON waiting (batch);";

static const char empty[] = "DROP TABLE IF EXISTS at; DROP TABLE IF EXISTS actors;"
                            "DROP TABLE IF EXISTS links; DROP TABLE IF EXISTS waiting;";

typedef enum statement {
    GET_POSITION,
    PUT_POSITION,
    GET_ACTOR,
    PUT_ACTOR,
    NAME_ACTOR,
    PUT_LINK,
    PUT_WAITING,
    GET_WAITING,
    DROP_WAITING,
    DROP_ENTRY,
    DROP_TRACE,
    DROP_FROM,
    FIND_FROM,
    FIND_TO,
    STATEMENT_COUNT
} statement;

static const char *const statements[STATEMENT_COUNT] = {
    [GET_POSITION] =
        "SELECT format, home, position_commit, position_frames, actor, seq, leaf FROM at",
    [PUT_POSITION] = "INSERT OR REPLACE INTO at (rowid, format, home, position_commit,"
                     " position_frames, actor, seq, leaf) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [GET_ACTOR] = "SELECT id FROM actors WHERE name = ?1",
    [PUT_ACTOR] = "INSERT INTO actors (name) VALUES (?1) RETURNING id",
    [NAME_ACTOR] = "SELECT name FROM actors WHERE id = ?1",
    [PUT_LINK] = "INSERT INTO links (name_from, name_to, kind_from, kind_to, actor, seq,"
                 " trace_actor, trace_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [PUT_WAITING] = "INSERT INTO waiting (batch, actor, seq) VALUES (?1, ?2, ?3)",
    [GET_WAITING] = "DELETE FROM waiting WHERE batch = ?1 RETURNING actor, seq",
    [DROP_WAITING] = "DELETE FROM waiting WHERE id <= (SELECT max(id) FROM waiting) - ?1",
    [DROP_ENTRY] = "DELETE FROM links WHERE seq = ?1 AND actor = ?2",
    [DROP_TRACE] = "DELETE FROM links WHERE trace_seq = ?1 AND trace_actor = ?2",
    [DROP_FROM] = "DELETE FROM links WHERE name_from = ?1",
    [FIND_FROM] = "SELECT actor, seq, trace_actor, trace_seq FROM links"
                  " WHERE name_from = ?1 AND (?2 = 0 OR kind_to = ?2) ORDER BY id",
    [FIND_TO] = "SELECT actor, seq, trace_actor, trace_seq FROM links"
                " WHERE name_to = ?1 AND (?2 = 0 OR kind_from = ?2) ORDER BY id",
};

struct cx_links {
    cx_home *home;
    const cx_alloc *alloc;
    cx_db *db;
    bool in_file;
    cx_db_statement *prepared[STATEMENT_COUNT];
    uint8_t home_id[16];
    cx_arena arena; /* of one frame */
    cx_position at;
    cx_str last_actor; /* of the last entry that was read; in `arena_of_last` */
    uint64_t last_seq;
    bool has_last, dropped;
    cx_arena arena_of_last;
    cx_arena_mark no_last;
    bool (*stop)(void *arg); /* asked after a step; NULL = the log is read to its end */
    void *stop_arg;
    bool stopped;
};

/* --- names ------------------------------------------------------------------------------------ */

/* The name of an object in the rows: a memory's is without its version. */
static int64_t name_of(cx_prov_kind kind, cx_str id)
{
    char storage[NAME_MAX];
    cx_uri uri;
    size_t size = 0;
    int64_t hash;
    storage[size++] = (char)('A' + kind);
    if (kind == CX_PROV_MEMORY && !cx_failed(cx_uri_parse(id, &uri, NULL))) {
        cx_ulid_format(&uri.id, storage + size);
        size += CX_ULID_SIZE;
    } else {
        size_t used = id.size < sizeof storage - size ? id.size : sizeof storage - size;
        if (used != 0)
            memcpy(storage + size, id.data, used);
        size += used;
    }
    const cx_digest digest = cx_digest_of(cx_bytes_from(storage, size));
    memcpy(&hash, digest.bytes, sizeof hash);
    return hash;
}

static int64_t name_of_memory(const cx_id *id)
{
    char ulid[1 + CX_ULID_SIZE];
    int64_t hash;
    ulid[0] = (char)('A' + CX_PROV_MEMORY);
    cx_ulid_format(id, ulid + 1);
    const cx_digest digest = cx_digest_of(cx_bytes_from(ulid, sizeof ulid));
    memcpy(&hash, digest.bytes, sizeof hash);
    return hash;
}

static cx_status find_actor(cx_links *links, cx_str name, int64_t *out, cx_err *err)
{
    bool row;
    for (statement i = GET_ACTOR; i <= PUT_ACTOR; i++) {
        cx_db_statement *s = links->prepared[i];
        cx_db_bind_bytes(s, 1, cx_str_bytes(name));
        CX_TRY(cx_db_step(s, &row, err));
        *out = row ? cx_db_int(s, 0) : 0;
        cx_db_reset(s);
        if (row)
            return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_FORMAT, "an actor could not be added to the links");
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct adding {
    cx_links *links;
    int64_t actor, trace_actor;
    uint64_t trace_seq; /* 0: the entry itself */
} adding;

static cx_status add_row(void *ctx, const cx_link *link, cx_err *err)
{
    const adding *a = ctx;
    cx_db_statement *s = a->links->prepared[PUT_LINK];
    cx_db_bind_int(s, 1, name_of(link->from_kind, link->from));
    cx_db_bind_int(s, 2, name_of(link->to_kind, link->to));
    cx_db_bind_int(s, 3, link->from_kind);
    cx_db_bind_int(s, 4, link->to_kind);
    cx_db_bind_int(s, 5, a->actor);
    cx_db_bind_int(s, 6, (int64_t)link->seq);
    cx_db_bind_null(s, 7);
    cx_db_bind_null(s, 8);
    if (a->trace_seq != 0) {
        cx_db_bind_int(s, 7, a->trace_actor);
        cx_db_bind_int(s, 8, (int64_t)a->trace_seq - 1);
    }
    return cx_db_execute(s, err);
}

static cx_status wait_for_batch(cx_links *links, int64_t actor, uint64_t seq, const uint8_t *batch,
                                cx_err *err)
{
    cx_db_statement *s = links->prepared[PUT_WAITING];
    cx_db_bind_bytes(s, 1, cx_bytes_from(batch, CX_TRACE_BATCH_ID_SIZE));
    cx_db_bind_int(s, 2, actor);
    cx_db_bind_int(s, 3, (int64_t)seq);
    return cx_db_execute(s, err);
}

static cx_link stated(const cx_tail_item *batch, cx_str run_id, cx_str trace_id)
{
    return (cx_link){.from_kind = CX_PROV_TRACE,
                     .to_kind = CX_PROV_RUN,
                     .from = trace_id,
                     .to = run_id,
                     .relation = "performed_in",
                     .ground = CX_LINK_STATED,
                     .actor = batch->actor,
                     .seq = batch->entry.seq};
}

static cx_status read_entry(cx_links *links, int64_t actor, uint64_t seq, cx_arena *arena,
                            cx_tail_item *out, bool *out_found, cx_err *err)
{
    bool row;
    cx_db_statement *s = links->prepared[NAME_ACTOR];
    *out_found = false;
    cx_db_bind_int(s, 1, actor);
    CX_TRY(cx_db_step(s, &row, err));
    cx_str name =
        row ? cx_arena_copy_str(arena, cx_bytes_str(cx_db_bytes(s, 0))) : (cx_str){NULL, 0};
    cx_db_reset(s);
    if (!row)
        return CX_SUCCESS;
    if (name.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_home_entry_item(links->home, name, seq, arena, out, err);
    *out_found = !cx_failed(status);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status add_stated(adding *a, const cx_tail_item *batch, cx_str run_id, cx_err *err)
{
    cx_tail_item trace;
    uint8_t own[CX_TRACE_BATCH_ID_SIZE];
    cx_str id;
    bool found;
    CX_TRY(read_entry(a->links, a->trace_actor, a->trace_seq - 1, &a->links->arena, &trace, &found,
                      err));
    if (!found || !cx_links_trace(&trace, &id, own))
        return CX_SUCCESS;
    const cx_link link = stated(batch, run_id, id);
    return add_row(a, &link, err);
}

/* A row for each trace of the batch. */
static cx_status end_batch(cx_links *links, const cx_tail_item *item, int64_t actor, cx_str run_id,
                           const uint8_t *batch, cx_err *err)
{
    CX_VEC(adding) found = {0};
    cx_db_statement *s = links->prepared[GET_WAITING];
    cx_status status;
    bool row = true;
    cx_db_bind_bytes(s, 1, cx_bytes_from(batch, CX_TRACE_BATCH_ID_SIZE));
    while (!cx_failed(status = cx_db_step(s, &row, err)) && row) {
        adding *slot = cx_vec_push(&found, links->alloc);
        if (slot == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        *slot = (adding){links, actor, cx_db_int(s, 0), (uint64_t)cx_db_int(s, 1) + 1};
    }
    cx_db_reset(s);
    for (size_t i = 0; !cx_failed(status) && cx_run_id_valid(run_id) && i < found.count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&links->arena);
        status = add_stated(&found.items[i], item, run_id, err);
        cx_arena_reset(&links->arena, mark);
    }
    cx_vec_done(&found, links->alloc);
    return status;
}

static cx_status drop_rows(cx_links *links, statement which, int64_t first, int64_t second,
                           cx_err *err)
{
    cx_db_statement *s = links->prepared[which];
    cx_db_bind_int(s, 1, first);
    if (which != DROP_FROM)
        cx_db_bind_int(s, 2, second);
    CX_TRY(cx_db_execute(s, err));
    links->dropped = links->dropped || cx_db_changes(links->db) != 0;
    return CX_SUCCESS;
}

/* L2 */
static cx_status forget(cx_links *links, const cx_tail_item *item, int64_t actor, cx_err *err)
{
    cx_payload payload;
    if (cx_str_is(item->entry.kind, "redact_memory"))
        return item->has_subject
                   ? drop_rows(links, DROP_FROM, name_of_memory(&item->subject), 0, err)
                   : CX_SUCCESS;
    if (cx_failed(
            cx_payload_decode(CX_ENTRY_REDACT, item->entry.payload, &links->arena, &payload, NULL)))
        return CX_SUCCESS;
    const int64_t seq = (int64_t)payload.as.redact.target_seq;
    CX_TRY(drop_rows(links, DROP_ENTRY, seq, actor, err));
    return drop_rows(links, DROP_TRACE, seq, actor, err);
}

static cx_status add_item(cx_links *links, const cx_tail_item *item, cx_err *err)
{
    adding a = {.links = links};
    uint8_t batch[CX_TRACE_BATCH_ID_SIZE];
    cx_str text;
    cx_str kind = item->entry.kind;
    const bool erases = cx_str_is(kind, "redact") || cx_str_is(kind, "redact_memory");
    const bool trace = cx_str_is(kind, "trace.received"), of_batch = cx_str_is(kind, "trace.batch");
    if (!erases && !trace && !of_batch && !cx_str_is(kind, "write") && !cx_str_is(kind, "update") &&
        !cx_str_is(kind, "run.seal"))
        return CX_SUCCESS;
    CX_TRY(find_actor(links, item->actor, &a.actor, err));
    if (erases)
        return forget(links, item, a.actor, err);
    if (of_batch)
        return cx_links_batch(item, &links->arena, &text, batch)
                   ? end_batch(links, item, a.actor, text, batch, err)
                   : CX_SUCCESS;
    if (trace && cx_links_trace(item, &text, batch))
        CX_TRY(wait_for_batch(links, a.actor, item->entry.seq, batch, err));
    return cx_links_of_entry(item, &links->arena, add_row, &a, err);
}

/* --- position --------------------------------------------------------------------------------- */

static cx_status put_position(cx_links *links, cx_err *err)
{
    cx_db_statement *s = links->prepared[PUT_POSITION];
    cx_entry_view view;
    cx_status status = CX_SUCCESS;
    cx_db_bind_int(s, 1, FORMAT);
    cx_db_bind_bytes(s, 2, cx_bytes_from(links->home_id, sizeof links->home_id));
    cx_db_bind_int(s, 3, (int64_t)links->at.commit);
    cx_db_bind_int(s, 4, (int64_t)links->at.frames);
    for (int i = 5; i <= 7; i++)
        cx_db_bind_null(s, i);
    if (links->has_last)
        status = cx_home_entry(links->home, links->last_actor, links->last_seq, &links->arena,
                               &view, err);
    if (links->has_last && !cx_failed(status)) {
        cx_db_bind_bytes(s, 5, cx_str_bytes(links->last_actor));
        cx_db_bind_int(s, 6, (int64_t)links->last_seq);
        cx_db_bind_bytes(s, 7, cx_bytes_from(view.leaf_hash.bytes, sizeof view.leaf_hash.bytes));
    }
    return cx_failed(status) && status.code != CX_E_NOT_FOUND ? status : cx_db_execute(s, err);
}

static cx_status keep_last(cx_links *links, cx_str actor, uint64_t seq, cx_err *err)
{
    if (!links->has_last || !cx_str_eq(links->last_actor, actor)) {
        cx_arena_reset(&links->arena_of_last, links->no_last);
        links->last_actor = cx_arena_copy_str(&links->arena_of_last, actor);
        if (links->last_actor.data == NULL)
            return cx_fail_nomem(err);
    }
    links->last_seq = seq;
    links->has_last = true;
    return CX_SUCCESS;
}

/* L3: the last entry that was read, by its hash. */
static cx_status is_of_log(cx_links *links, cx_db_statement *s, bool *out, cx_err *err)
{
    cx_entry_view view;
    cx_bytes id = cx_db_bytes(s, 1), leaf = cx_db_bytes(s, 6);
    *out = cx_db_int(s, 0) == FORMAT && id.size == sizeof links->home_id &&
           memcmp(id.data, links->home_id, id.size) == 0 &&
           (uint64_t)cx_db_int(s, 2) <= cx_home_durable(links->home);
    if (!*out || cx_db_is_null(s, 4))
        return CX_SUCCESS;
    CX_TRY(keep_last(links, cx_bytes_str(cx_db_bytes(s, 4)), (uint64_t)cx_db_int(s, 5), err));
    cx_status status =
        cx_home_entry(links->home, links->last_actor, links->last_seq, &links->arena, &view, err);
    *out = !cx_failed(status) && leaf.size == sizeof view.leaf_hash.bytes &&
           memcmp(leaf.data, view.leaf_hash.bytes, leaf.size) == 0;
    return cx_failed(status) && status.code != CX_E_NOT_FOUND ? status : CX_SUCCESS;
}

static void finish_statements(cx_links *links)
{
    for (unsigned i = 0; i < STATEMENT_COUNT; i++) {
        cx_db_finish(links->prepared[i]);
        links->prepared[i] = NULL;
    }
}

static cx_status prepare(cx_links *links, cx_err *err)
{
    CX_TRY(cx_db_run(links->db, schema, err));
    for (unsigned i = 0; i < STATEMENT_COUNT; i++)
        CX_TRY(cx_db_prepare(links->db, statements[i], &links->prepared[i], err));
    return CX_SUCCESS;
}

static cx_status get_position(cx_links *links, bool *out_good, cx_err *err)
{
    cx_db_statement *s = links->prepared[GET_POSITION];
    bool row;
    links->at = (cx_position){0, 0};
    links->has_last = false;
    *out_good = true;
    CX_TRY(cx_db_step(s, &row, err));
    cx_status status = row ? is_of_log(links, s, out_good, err) : CX_SUCCESS;
    if (row && *out_good)
        links->at = (cx_position){(uint64_t)cx_db_int(s, 2), (uint64_t)cx_db_int(s, 3)};
    cx_db_reset(s);
    return status;
}

/* --- reading on ------------------------------------------------------------------------------- */

static cx_status add_frames(cx_links *links, cx_tail *tail, bool *out_end, cx_err *err)
{
    cx_tail_item item;
    for (unsigned i = 0; i < FRAMES_AT_ONCE; i++) {
        CX_TRY(cx_tail_next(tail, &item, out_end, err));
        if (*out_end)
            return CX_SUCCESS;
        cx_arena_mark mark = cx_arena_mark_now(&links->arena);
        if (item.has_entry) {
            CX_TRY(add_item(links, &item, err));
            CX_TRY(keep_last(links, item.actor, item.entry.seq, err));
        }
        cx_arena_reset(&links->arena, mark);
        links->at = item.position_after;
    }
    return CX_SUCCESS;
}

static cx_status end_transaction(cx_links *links, cx_status status, cx_err *err)
{
    if (!cx_failed(status)) {
        cx_db_statement *s = links->prepared[DROP_WAITING];
        cx_db_bind_int(s, 1, WAITING_MAX);
        status = cx_db_execute(s, err);
    }
    if (!cx_failed(status))
        status = put_position(links, err);
    if (!cx_failed(status))
        status = cx_db_commit(links->db, err);
    if (cx_failed(status))
        cx_db_rollback(links->db);
    return status;
}

/* Where the last transaction ended; another program may have moved the position since. */
typedef struct reading {
    cx_tail *tail;
    cx_position at;
} reading;

static cx_status begin_at(cx_links *links, reading *r, cx_err *err)
{
    if (r->tail != NULL && r->at.commit == links->at.commit && r->at.frames == links->at.frames)
        return CX_SUCCESS;
    cx_tail_end(r->tail);
    r->tail = NULL;
    return cx_tail_begin(links->home, links->at, &r->tail, err);
}

/* L1: the position is read again once no other program can move it. */
static cx_status read_on(cx_links *links, reading *r, bool *out_end, cx_err *err)
{
    bool good;
    CX_TRY(cx_db_begin_write(links->db, err));
    cx_status status = get_position(links, &good, err);
    if (!cx_failed(status) && !good)
        status = cx_fail(err, CX_E_FORMAT, "the links are of another log");
    if (!cx_failed(status))
        status = begin_at(links, r, err);
    if (!cx_failed(status))
        status = add_frames(links, r->tail, out_end, err);
    r->at = links->at;
    return end_transaction(links, status, err);
}

cx_status cx_links_refresh(cx_links *links, cx_err *err)
{
    reading r = {0};
    bool good, end = false;
    CX_TRY(get_position(links, &good, err));
    if (!good) {
        finish_statements(links);
        CX_TRY(cx_db_run(links->db, empty, err));
        CX_TRY(prepare(links, err));
    }
    cx_status status = CX_SUCCESS;
    end = good && links->at.commit == cx_home_durable(links->home) && links->at.frames == 0;
    while (!end && !links->stopped && !cx_failed(status)) {
        status = read_on(links, &r, &end, err);
        links->stopped = !end && links->stop != NULL && links->stop(links->stop_arg);
    }
    cx_tail_end(r.tail);
    if (cx_failed(status) || !links->dropped || !links->in_file)
        return status;
    links->dropped = false;
    return cx_db_forget_deleted(links->db, true, err);
}

/* --- questions -------------------------------------------------------------------------------- */

typedef struct answering {
    const cx_links_question *question;
    cx_arena *arena;
    CX_VEC(cx_link) found;
    bool more;
} answering;

static cx_status answer_link(void *ctx, const cx_link *link, cx_err *err)
{
    answering *a = ctx;
    const cx_links_question *q = a->question;
    const cx_prov_kind kind = q->to ? link->to_kind : link->from_kind;
    const cx_prov_kind other = q->to ? link->from_kind : link->to_kind;
    if (kind != q->kind || !cx_str_eq(q->to ? link->to : link->from, q->id) ||
        (q->other_kind != CX_PROV_NONE && other != q->other_kind))
        return CX_SUCCESS;
    a->more = a->found.count == CX_LINKS_FOUND_MAX;
    if (a->more)
        return CX_SUCCESS;
    cx_link *slot = cx_vec_push(&a->found, a->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *link;
    slot->from = cx_arena_copy_str(a->arena, link->from);
    slot->to = cx_arena_copy_str(a->arena, link->to);
    slot->actor = cx_arena_copy_str(a->arena, link->actor);
    return slot->from.data == NULL || slot->to.data == NULL || slot->actor.data == NULL
               ? cx_fail_nomem(err)
               : CX_SUCCESS;
}

typedef struct place {
    int64_t actor, trace_actor;
    uint64_t seq, trace_seq;
    bool has_trace;
} place;

static cx_status answer_batch(cx_links *links, const cx_tail_item *item, const place *at,
                              answering *a, cx_err *err)
{
    cx_tail_item trace;
    uint8_t of_batch[CX_TRACE_BATCH_ID_SIZE], of_trace[CX_TRACE_BATCH_ID_SIZE];
    cx_str run_id, trace_id;
    bool found;
    CX_TRY(read_entry(links, at->trace_actor, at->trace_seq, &links->arena, &trace, &found, err));
    if (!found || !cx_links_batch(item, &links->arena, &run_id, of_batch) ||
        !cx_links_trace(&trace, &trace_id, of_trace) || !cx_run_id_valid(run_id) ||
        memcmp(of_batch, of_trace, sizeof of_batch) != 0)
        return CX_SUCCESS;
    const cx_link link = stated(item, run_id, trace_id);
    return answer_link(a, &link, err);
}

/* The entry is read again: what it links now is the answer. */
static cx_status answer_place(cx_links *links, const place *at, answering *a, cx_err *err)
{
    cx_tail_item item;
    bool found;
    cx_arena_mark mark = cx_arena_mark_now(&links->arena);
    cx_status status = read_entry(links, at->actor, at->seq, &links->arena, &item, &found, err);
    if (!cx_failed(status) && found)
        status = at->has_trace ? answer_batch(links, &item, at, a, err)
                               : cx_links_of_entry(&item, &links->arena, answer_link, a, err);
    cx_arena_reset(&links->arena, mark);
    return status;
}

cx_status cx_links_find(cx_links *links, const cx_links_question *question, cx_arena *arena,
                        const cx_link **out, size_t *out_count, bool *out_more, cx_err *err)
{
    answering a = {.question = question, .arena = arena};
    cx_db_statement *s = links->prepared[question->to ? FIND_TO : FIND_FROM];
    place before = {0};
    cx_status status;
    bool row;
    cx_db_bind_int(s, 1, name_of(question->kind, question->id));
    cx_db_bind_int(s, 2, question->other_kind);
    while (!cx_failed(status = cx_db_step(s, &row, err)) && row && !a.more) {
        const place at = {.actor = cx_db_int(s, 0),
                          .seq = (uint64_t)cx_db_int(s, 1),
                          .has_trace = !cx_db_is_null(s, 2),
                          .trace_actor = cx_db_int(s, 2),
                          .trace_seq = (uint64_t)cx_db_int(s, 3)};
        if (!at.has_trace && !before.has_trace && before.actor == at.actor && before.seq == at.seq)
            continue; /* all links of that entry were told */
        before = at;
        status = answer_place(links, &at, &a, err);
        if (cx_failed(status))
            break;
    }
    cx_db_reset(s);
    cx_link *list = CX_ARENA_ARRAY(arena, cx_link, a.found.count + 1);
    if (list == NULL)
        status = cx_failed(status) ? status : cx_fail_nomem(err);
    else if (a.found.count != 0)
        memcpy(list, a.found.items, a.found.count * sizeof *list);
    *out = list;
    *out_count = a.found.count;
    *out_more = a.more;
    cx_vec_done(&a.found, arena->alloc);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status open_database(cx_links *links, const char *path, cx_err *err)
{
    links->in_file = path != NULL;
    if (path != NULL && !cx_db_in_files(path))
        cx_db_make_private(path);
    CX_TRY(cx_db_open(path == NULL ? "" : path, path == NULL ? CX_DB_SCRATCH : CX_DB_WRITE,
                      &links->db, err));
    CX_TRY(prepare(links, err));
    return cx_links_refresh(links, err);
}

static void close_database(cx_links *links)
{
    finish_statements(links);
    if (links->db != NULL)
        cx_db_close(links->db);
    links->db = NULL;
}

/* In a part of a fleet only its node may write, and has it among the part's files. */
static bool may_have_file(const char *path, const char *home_path)
{
    cx_facts facts;
    return cx_db_in_files(path) || (!cx_failed(cx_path_facts(home_path, true, &facts, NULL)) &&
                                    facts.kind == CX_FILE_FOLDER);
}

static cx_status open_file_or_none(cx_links *links, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, links->alloc, 0);
    const char *path = cx_links_path(cx_home_path(links->home), &arena);
    const bool has_file = path != NULL && may_have_file(path, cx_home_path(links->home));
    cx_status status = has_file ? open_database(links, path, err) : CX_SUCCESS;
    if (!has_file || (cx_failed(status) && status.code != CX_E_NOMEM)) { /* L4 */
        close_database(links);
        status = open_database(links, NULL, err);
    }
    cx_arena_done(&arena);
    return status;
}

const char *cx_links_path(const char *home_path, cx_arena *arena)
{
    return cx_arena_printf(arena, "%s/links.db", home_path).data;
}

static cx_links *new_links(cx_home *home, const cx_alloc *alloc)
{
    alloc = alloc == NULL ? cx_alloc_default() : alloc;
    cx_links *links = cx_alloc_zeroed(alloc, 1, sizeof *links);
    if (links == NULL)
        return NULL;
    links->home = home;
    links->alloc = alloc;
    cx_arena_init(&links->arena, alloc, 0);
    cx_arena_init(&links->arena_of_last, alloc, 0);
    links->no_last = cx_arena_mark_now(&links->arena_of_last);
    cx_home_id(home, links->home_id);
    return links;
}

cx_status cx_links_open(cx_home *home, const cx_alloc *alloc, cx_links **out, cx_err *err)
{
    cx_links *links = new_links(home, alloc);
    if (links == NULL)
        return cx_fail_nomem(err);
    cx_status status = open_file_or_none(links, err);
    if (cx_failed(status)) {
        cx_links_close(links);
        return status;
    }
    *out = links;
    return CX_SUCCESS;
}

cx_status cx_links_read_on(cx_home *home, bool (*stop)(void *arg), void *arg, bool *out_end,
                           cx_err *err)
{
    cx_arena arena;
    cx_links *links = new_links(home, NULL);
    if (links == NULL)
        return cx_fail_nomem(err);
    links->stop = stop;
    links->stop_arg = arg;
    cx_arena_init(&arena, links->alloc, 0);
    const char *path = cx_links_path(cx_home_path(home), &arena);
    cx_status status = CX_SUCCESS;
    if (path == NULL)
        status = cx_fail_nomem(err);
    else if (!cx_db_in_files(path) && may_have_file(path, cx_home_path(home)))
        status = open_database(links, path, err);
    *out_end = !links->stopped;
    cx_links_close(links);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_links_forget_erased(cx_home *home, cx_err *err)
{
    cx_links *links = NULL;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const char *path = cx_links_path(cx_home_path(home), &arena);
    const bool is_there = path != NULL && cx_db_is_there(path);
    cx_status status = is_there ? cx_links_open(home, NULL, &links, err) : CX_SUCCESS;
    if (links != NULL && !links->in_file)
        status = cx_fail(err, CX_E_IO,
                         "rows of what was erased may be left in %s: it cannot be read or written; "
                         "remove it, it is made again",
                         path);
    cx_links_close(links);
    cx_arena_done(&arena);
    return status;
}

static cx_status remove_file(const char *path, cx_arena *arena, cx_err *err)
{
    static const char *const ends[] = {"-wal", "-shm", ""};
    const cx_io *io = cx_io_system();
    for (size_t i = 0; i < CX_COUNT_OF(ends); i++) {
        cx_str name = cx_arena_printf(arena, "%s%s", path, ends[i]);
        if (name.data == NULL)
            return cx_fail_nomem(err);
        int failed = io->unlink(io, name.data);
        if (failed != 0 && cx_fail_os(NULL, -failed, "unlink").code != CX_E_NOT_FOUND)
            return cx_fail_os(err, -failed, "%s", name.data);
    }
    return CX_SUCCESS;
}

cx_status cx_links_clear(const char *home_path, cx_err *err)
{
    cx_db *db = NULL;
    cx_facts facts;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const char *path = cx_links_path(home_path, &arena);
    cx_status status = path == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    if (!cx_failed(status) && !cx_failed(cx_path_facts(path, false, &facts, NULL))) {
        cx_status emptied = cx_db_open(path, CX_DB_WRITE, &db, NULL);
        if (!cx_failed(emptied))
            emptied = cx_db_run(db, empty, NULL);
        if (db != NULL)
            cx_db_close(db);
        if (cx_failed(emptied)) /* it is damaged */
            status = remove_file(path, &arena, err);
    }
    cx_arena_done(&arena);
    return status;
}

void cx_links_close(cx_links *links)
{
    if (links == NULL)
        return;
    close_database(links);
    cx_arena_done(&links->arena);
    cx_arena_done(&links->arena_of_last);
    cx_alloc_free(links->alloc, links, sizeof *links);
}
