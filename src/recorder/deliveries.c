/*
 * deliveries.c - the queue of alerts on their way out, in HOME/alerts.db; see deliveries.h.
 */
#include "recorder/deliveries.h"

#include <inttypes.h>

#include "db/api.h"
#include "recorder/internal.h"

#define COLLECTED_AT_ONCE 256
#define ERROR_MAX 200 /* bytes of a reason that are kept */
#define MS INT64_C(1000000)
#define DAY_NS (INT64_C(86400) * 1000000000)

struct cx_deliveries {
    const cx_alloc *alloc;
    cx_arena arena; /* of the path */
    const char *path;
    cx_lock lock; /* of the connection */
    cx_db *db;    /* NULL = not opened yet */
    bool writes;
};

static const char schema[] =
    /* The write-ahead log reaches the disk with every commit (V1, V2). */
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS destinations(name TEXT PRIMARY KEY, next_seq INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS deliveries(number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " destination TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, event TEXT NOT NULL,"
    " alert_id TEXT NOT NULL, body TEXT NOT NULL, alert TEXT, at_ns INTEGER NOT NULL,"
    " state TEXT NOT NULL, attempts INTEGER NOT NULL, next_ns INTEGER NOT NULL,"
    " tried_ns INTEGER, error TEXT, UNIQUE(destination, seq));"
    "CREATE INDEX IF NOT EXISTS deliveries_by_state ON deliveries(destination, state, number);"
    "CREATE INDEX IF NOT EXISTS deliveries_by_alert ON deliveries(alert_id, seq);"
    "CREATE TABLE IF NOT EXISTS detection(one INTEGER PRIMARY KEY CHECK(one = 1),"
    " log_commit INTEGER NOT NULL, log_frames INTEGER NOT NULL)";

const char *cx_destination_name(cx_destination destination)
{
    static const char *const names[CX_DESTINATIONS] = {"webhook", "alertmanager", "command"};
    CX_ASSERT(destination < CX_DESTINATIONS);
    return names[destination];
}

const char *cx_delivery_state_name(cx_delivery_state state)
{
    static const char *const names[CX_DELIVERY_STATES] = {"waiting", "delivered", "failed",
                                                          "expired"};
    CX_ASSERT(state < CX_DELIVERY_STATES);
    return names[state];
}

static cx_str name_of(cx_destination destination)
{
    return cx_str_z(cx_destination_name(destination));
}

/* --- opening ---------------------------------------------------------------------------------- */

cx_status cx_deliveries_new(const cx_alloc *alloc, const char *home_path, cx_deliveries **out,
                            cx_err *err)
{
    cx_deliveries *deliveries = cx_alloc_zeroed(alloc, 1, sizeof *deliveries);
    if (deliveries == NULL)
        return cx_fail_nomem(err);
    deliveries->alloc = alloc;
    cx_arena_init(&deliveries->arena, alloc, 0);
    cx_lock_init(&deliveries->lock);
    deliveries->path = cx_arena_printf(&deliveries->arena, "%s/alerts.db", home_path).data;
    if (deliveries->path == NULL) {
        cx_deliveries_free(deliveries);
        return cx_fail_nomem(err);
    }
    *out = deliveries;
    return CX_SUCCESS;
}

void cx_deliveries_free(cx_deliveries *deliveries)
{
    if (deliveries == NULL)
        return;
    cx_db_close(deliveries->db);
    cx_lock_done(&deliveries->lock);
    cx_arena_done(&deliveries->arena);
    cx_alloc_free(deliveries->alloc, deliveries, sizeof *deliveries);
}

static cx_status open_to_write(cx_deliveries *deliveries, cx_err *err)
{
    if (deliveries->db != NULL && deliveries->writes)
        return CX_SUCCESS;
    cx_db_close(deliveries->db);
    deliveries->db = NULL;
    CX_TRY(cx_db_open(deliveries->path, CX_DB_WRITE, &deliveries->db, err));
    deliveries->writes = true;
    cx_status status = cx_db_run(deliveries->db, schema, err);
    if (cx_failed(status)) {
        cx_db_close(deliveries->db);
        deliveries->db = NULL;
    }
    return status;
}

/* Takes the lock, also when it fails: end_change gives it back. */
static cx_status begin_change(cx_deliveries *deliveries, cx_err *err)
{
    cx_lock_enter(&deliveries->lock);
    CX_TRY(open_to_write(deliveries, err));
    return cx_db_begin_write(deliveries->db, err);
}

/* `begun` is what begin_change returned, `status` the outcome of the change. */
static cx_status end_change(cx_deliveries *deliveries, cx_status begun, cx_status status,
                            cx_err *err)
{
    if (!cx_failed(status))
        status = cx_db_commit(deliveries->db, err);
    if (!cx_failed(status)) /* it is in no log */
        status = cx_db_publish(deliveries->db, err);
    if (cx_failed(status) && !cx_failed(begun))
        cx_db_rollback(deliveries->db);
    cx_lock_leave(&deliveries->lock);
    return status;
}

/* Takes the lock, also when it fails.  `*out_there` false: nothing was ever sent from here. */
static cx_status begin_reading(cx_deliveries *deliveries, bool *out_there, cx_err *err)
{
    cx_err failure = {0};
    cx_lock_enter(&deliveries->lock);
    *out_there = true;
    if (deliveries->db != NULL)
        return CX_SUCCESS;
    cx_status status = cx_db_open(deliveries->path, CX_DB_READ, &deliveries->db, &failure);
    deliveries->writes = false;
    if (status.code == CX_E_NOT_FOUND) {
        *out_there = false;
        return CX_SUCCESS;
    }
    if (cx_failed(status))
        *err = failure;
    return status;
}

static void end_reading(cx_deliveries *deliveries)
{
    cx_lock_leave(&deliveries->lock);
}

/* One integer for the destination's name (?1) and, where the statement has it, ?2; `*out_found`
 * false: there is no row, or it is NULL. */
static cx_status read_integer(cx_db *db, const char *sql, cx_str name, int64_t second, int64_t *out,
                              bool *out_found, cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    *out_found = false;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_db_bind_text(statement, 1, name);
    if (strstr(sql, "?2") != NULL)
        cx_db_bind_int(statement, 2, second);
    cx_status status = cx_db_step(statement, &there, err);
    if (!cx_failed(status) && there && !cx_db_is_null(statement, 0)) {
        *out = cx_db_int(statement, 0);
        *out_found = true;
    }
    cx_db_finish(statement);
    return status;
}

static cx_status change_row(cx_db *db, const char *sql, cx_str name, int64_t second, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_db_bind_text(statement, 1, name);
    cx_db_bind_int(statement, 2, second);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

/* --- from the journal ------------------------------------------------------------------------- */

static cx_status journal_size(cx_home *home, uint64_t *out, cx_err *err)
{
    cx_actor_info info;
    cx_err none = {0};
    cx_status status = cx_home_actor(home, CX_ACTOR_ALERTS, &info, &none);
    *out = 0;
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        *err = none;
        return status;
    }
    *out = info.entry_count;
    return CX_SUCCESS;
}

#define SELECT_NEXT_SEQ "SELECT next_seq FROM destinations WHERE name = ?1"
#define SET_NEXT_SEQ                                          \
    "INSERT INTO destinations(name, next_seq) VALUES(?1, ?2)" \
    " ON CONFLICT(name) DO UPDATE SET next_seq = ?2"

static cx_status begin_destination(cx_db *db, cx_destination destination, uint64_t size,
                                   cx_err *err)
{
    int64_t next = 0;
    bool known = false;
    CX_TRY(read_integer(db, SELECT_NEXT_SEQ, name_of(destination), 0, &next, &known, err));
    /* A journal that is shorter is that of an older backup. */
    if (!known || next < 0 || (uint64_t)next > size)
        CX_TRY(change_row(db, SET_NEXT_SEQ, name_of(destination), (int64_t)size, err));
    return change_row(db,
                      "UPDATE deliveries SET next_ns = ?2 WHERE destination = ?1"
                      " AND state = 'waiting'",
                      name_of(destination), 0, err);
}

cx_status cx_deliveries_begin(cx_recorder *recorder, cx_destination destination, cx_err *err)
{
    uint64_t size;
    CX_TRY(journal_size(recorder->home, &size, err));
    const cx_status begun = begin_change(recorder->deliveries, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = begin_destination(recorder->deliveries->db, destination, size, err);
    return end_change(recorder->deliveries, begun, status, err);
}

/* One entry of the journal, and what the queue knows of its alert. */
typedef struct alert_entry {
    uint64_t seq;
    cx_json value;  /* of the payload */
    cx_json raised; /* of a mark: the alert itself */
    bool has_raised;
    char id[2 * 16 + 24], home_id[2 * 16 + 1];
    cx_alert_event event;
} alert_entry;

/* The alert of a mark, from the message that said that it was raised. */
static cx_status find_raised(cx_db *db, cx_str alert_id, cx_arena *arena, alert_entry *entry,
                             cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    cx_str text = {NULL, 0};
    CX_TRY(cx_db_prepare(db,
                         "SELECT alert FROM deliveries WHERE alert_id = ?1 AND alert IS NOT NULL"
                         " LIMIT 1",
                         &statement, err));
    cx_db_bind_text(statement, 1, alert_id);
    cx_status status = cx_db_step(statement, &there, err);
    if (!cx_failed(status) && there) {
        text = cx_arena_copy_str(arena, cx_db_text(statement, 0));
        status = text.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_db_finish(statement);
    if (!cx_failed(status) && there) {
        status = cx_json_parse_text(text, arena, &entry->raised, err);
        entry->has_raised = !cx_failed(status);
    }
    return status;
}

/* `*out_there` false: an entry that says nothing of an alert, or whose payload was erased. */
static cx_status read_alert_entry(cx_recorder *recorder, uint64_t seq, cx_arena *arena,
                                  alert_entry *out, bool *out_there, cx_err *err)
{
    cx_entry_view view;
    uint8_t home_id[16];
    *out = (alert_entry){.seq = seq};
    *out_there = false;
    CX_TRY(cx_home_entry(recorder->home, CX_ACTOR_ALERTS, seq, arena, &view, err));
    bool raised = cx_str_eq(view.entry.kind, CX_KIND_ALERT);
    if (view.payload_erased || (!raised && !cx_str_eq(view.entry.kind, CX_KIND_ALERT_ACK)))
        return CX_SUCCESS;
    cx_status status = cx_json_parse_text(cx_bytes_str(view.payload), arena, &out->value, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || out->value.type != CX_JSON_OBJECT ||
        CX_JSON_GET_STR(&out->value, "alert_id").data == NULL)
        return CX_SUCCESS;
    *out_there = true;
    cx_home_id(recorder->home, home_id);
    cx_hex_encode(cx_bytes_from(home_id, sizeof home_id), out->home_id);
    (void)snprintf(out->id, sizeof out->id, "%s-%" PRIu64, out->home_id, seq);
    out->event = (cx_alert_event){
        .id = cx_str_z(out->id),
        .home_id = cx_str_z(out->home_id),
        .type = raised ? CX_STR("alert.raised")
                : cx_str_is(CX_JSON_GET_STR(&out->value, "state"), "resolved")
                    ? CX_STR("alert.resolved")
                    : CX_STR("alert.acknowledged"),
        .alert_id = CX_JSON_GET_STR(&out->value, "alert_id"),
        .at_ns = view.entry.created_at_ns,
        .alert = raised ? &out->value : NULL,
        .mark = raised ? NULL : &out->value,
    };
    return CX_SUCCESS;
}

static cx_status insert_delivery(cx_db *db, const alert_entry *entry, cx_destination destination,
                                 cx_str body, cx_err *err)
{
    cx_db_statement *statement;
    cx_buf alert;
    CX_TRY(cx_db_prepare(db,
                         "INSERT OR IGNORE INTO deliveries(destination, seq, id, event, alert_id,"
                         " body, alert, at_ns, state, attempts, next_ns)"
                         " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'waiting', 0, 0)",
                         &statement, err));
    cx_buf_init(&alert, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    cx_db_bind_text(statement, 1, name_of(destination));
    cx_db_bind_int(statement, 2, (int64_t)entry->seq);
    cx_db_bind_text(statement, 3, entry->event.id);
    cx_db_bind_text(statement, 4, entry->event.type);
    cx_db_bind_text(statement, 5, entry->event.alert_id);
    cx_db_bind_text(statement, 6, body);
    cx_db_bind_null(statement, 7);
    if (entry->event.mark == NULL) {
        status = cx_json_write(&alert, entry->event.alert, CX_JSON_PY_COMPACT, err);
        cx_db_bind_text(statement, 7, cx_buf_str(&alert));
    }
    cx_db_bind_int(statement, 8, entry->event.at_ns);
    if (!cx_failed(status))
        status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    cx_buf_done(&alert);
    return status;
}

static cx_status collect_entry(cx_recorder *recorder, cx_destination destination, uint64_t seq,
                               cx_arena *arena, uint64_t *count, cx_err *err)
{
    cx_db *db = recorder->deliveries->db;
    alert_entry entry;
    cx_str body;
    bool there;
    CX_TRY(read_alert_entry(recorder, seq, arena, &entry, &there, err));
    if (!there)
        return CX_SUCCESS;
    if (entry.event.mark != NULL)
        CX_TRY(find_raised(db, entry.event.alert_id, arena, &entry, err));
    if (entry.has_raised)
        entry.event.alert = &entry.raised;
    CX_TRY(cx_delivery_body(&entry.event, destination, arena, &body, err));
    if (body.data == NULL)
        return CX_SUCCESS;
    ++*count;
    return insert_delivery(db, &entry, destination, body, err);
}

/* V4: the oldest finished messages go. */
#define DROP_FINISHED                                                                        \
    "DELETE FROM deliveries WHERE destination = ?1 AND state <> 'waiting' AND number <= "    \
    "(SELECT number FROM deliveries WHERE destination = ?1 AND state <> 'waiting' ORDER BY " \
    "number DESC LIMIT 1 OFFSET ?2)"

static cx_status collect_entries(cx_recorder *recorder, cx_destination destination, uint64_t size,
                                 cx_arena *arena, uint64_t *count, cx_err *err)
{
    cx_db *db = recorder->deliveries->db;
    cx_str name = name_of(destination);
    int64_t next = 0, waiting = 0;
    bool known, counted;
    CX_TRY(read_integer(db, SELECT_NEXT_SEQ, name, 0, &next, &known, err));
    CX_TRY(read_integer(
        db, "SELECT count(*) FROM deliveries WHERE destination = ?1 AND state = 'waiting'", name, 0,
        &waiting, &counted, err));
    CX_ASSERT(known && next >= 0); /* cx_deliveries_begin */
    uint64_t seq = (uint64_t)next;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    for (; seq < size && seq < (uint64_t)next + COLLECTED_AT_ONCE &&
           waiting + (int64_t)*count < CX_DELIVERY_WAITING_MAX;
         seq++) {
        CX_TRY(collect_entry(recorder, destination, seq, arena, count, err));
        cx_arena_reset(arena, mark);
    }
    if (seq == (uint64_t)next)
        return CX_SUCCESS;
    CX_TRY(change_row(db, SET_NEXT_SEQ, name, (int64_t)seq, err));
    return change_row(db, DROP_FINISHED, name, CX_DELIVERY_KEPT_MAX, err);
}

/* Whether the journal has more than was collected; without a transaction. */
static cx_status has_more(cx_deliveries *deliveries, cx_destination destination, uint64_t size,
                          bool *out, cx_err *err)
{
    int64_t next = 0;
    bool known = false;
    cx_lock_enter(&deliveries->lock);
    cx_status status = open_to_write(deliveries, err);
    if (!cx_failed(status))
        status = read_integer(deliveries->db, SELECT_NEXT_SEQ, name_of(destination), 0, &next,
                              &known, err);
    cx_lock_leave(&deliveries->lock);
    *out = known && next >= 0 && (uint64_t)next < size;
    return status;
}

cx_status cx_deliveries_collect(cx_recorder *recorder, cx_destination destination,
                                uint64_t *out_count, cx_err *err)
{
    uint64_t size, count = 0;
    bool more;
    cx_arena arena;
    *out_count = 0;
    CX_TRY(journal_size(recorder->home, &size, err));
    CX_TRY(has_more(recorder->deliveries, destination, size, &more, err));
    if (!more)
        return CX_SUCCESS;
    CX_TRY(cx_home_sync(recorder->home, err)); /* V1 */
    cx_arena_init(&arena, recorder->alloc, 0);
    const cx_status begun = begin_change(recorder->deliveries, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = collect_entries(recorder, destination, size, &arena, &count, err);
    status = end_change(recorder->deliveries, begun, status, err);
    cx_arena_done(&arena);
    if (!cx_failed(status))
        *out_count = count;
    return status;
}

/* --- sending ---------------------------------------------------------------------------------- */

static cx_status copy_delivery(const cx_db_statement *row, cx_destination destination,
                               cx_arena *arena, cx_delivery *out, cx_err *err)
{
    *out = (cx_delivery){
        .number = cx_db_int(row, 0),
        .destination = destination,
        .id = cx_arena_copy_str(arena, cx_db_text(row, 1)),
        .event = cx_arena_copy_str(arena, cx_db_text(row, 2)),
        .alert_id = cx_arena_copy_str(arena, cx_db_text(row, 3)),
        .body = cx_arena_copy_str(arena, cx_db_text(row, 4)),
        .at_ns = cx_db_int(row, 5),
        .attempts = (uint64_t)cx_db_int(row, 6),
    };
    return out->id.data == NULL || out->event.data == NULL || out->alert_id.data == NULL ||
                   out->body.data == NULL
               ? cx_fail_nomem(err)
               : CX_SUCCESS;
}

static cx_status read_next(cx_db *db, cx_destination destination, cx_arena *arena, cx_delivery *out,
                           int64_t *out_due_ns, cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    CX_TRY(cx_db_prepare(db,
                         "SELECT number, id, event, alert_id, body, at_ns, attempts, next_ns"
                         " FROM deliveries WHERE destination = ?1 AND state = 'waiting'"
                         " ORDER BY number LIMIT 1",
                         &statement, err));
    cx_db_bind_text(statement, 1, name_of(destination));
    cx_status status = cx_db_step(statement, &there, err);
    if (!cx_failed(status) && there) {
        *out_due_ns = cx_db_int(statement, 7);
        status = copy_delivery(statement, destination, arena, out, err);
    }
    cx_db_finish(statement);
    return status;
}

cx_status cx_deliveries_next(cx_recorder *recorder, cx_destination destination, cx_arena *arena,
                             cx_delivery *out, int64_t *out_due_ns, cx_err *err)
{
    bool there;
    *out_due_ns = CX_TIME_NONE;
    cx_status status = begin_reading(recorder->deliveries, &there, err);
    if (!cx_failed(status) && there)
        status = read_next(recorder->deliveries->db, destination, arena, out, out_due_ns, err);
    end_reading(recorder->deliveries);
    return status;
}

static int64_t pause_ns(uint64_t attempts, uint32_t retry_after_s)
{
    int64_t ms = CX_DELIVERY_PAUSE_FIRST_MS;
    for (uint64_t i = 1; i < attempts && ms < CX_DELIVERY_PAUSE_LAST_MS; i++)
        ms *= 2;
    if (ms > CX_DELIVERY_PAUSE_LAST_MS)
        ms = CX_DELIVERY_PAUSE_LAST_MS;
    return ms * MS > retry_after_s * 1000 * MS ? ms * MS : retry_after_s * 1000 * MS;
}

/* V3 */
static cx_delivery_state state_after(const cx_delivery *delivery,
                                     const cx_delivery_attempt *attempt, int64_t now_ns)
{
    if (attempt->result == CX_ATTEMPT_DELIVERED)
        return CX_DELIVERY_DELIVERED;
    if (attempt->result == CX_ATTEMPT_REFUSED && delivery->attempts + 1 >= CX_DELIVERY_REFUSALS_MAX)
        return CX_DELIVERY_FAILED;
    return now_ns - delivery->at_ns > CX_DELIVERY_DAYS * DAY_NS ? CX_DELIVERY_EXPIRED
                                                                : CX_DELIVERY_WAITING;
}

static cx_status update_delivery(cx_db *db, const cx_delivery *delivery,
                                 const cx_delivery_attempt *attempt, cx_delivery_state state,
                                 int64_t now_ns, cx_err *err)
{
    cx_db_statement *statement;
    cx_str error = attempt->error;
    CX_TRY(cx_db_prepare(db,
                         "UPDATE deliveries SET state = ?2, attempts = ?3, next_ns = ?4,"
                         " tried_ns = ?5, error = ?6 WHERE number = ?1",
                         &statement, err));
    if (error.size > ERROR_MAX)
        error.size = ERROR_MAX;
    cx_db_bind_int(statement, 1, delivery->number);
    cx_db_bind_text(statement, 2, cx_str_z(cx_delivery_state_name(state)));
    cx_db_bind_int(statement, 3, (int64_t)delivery->attempts + 1);
    cx_db_bind_int(statement, 4, now_ns + pause_ns(delivery->attempts + 1, attempt->retry_after_s));
    cx_db_bind_int(statement, 5, now_ns);
    if (error.size == 0)
        cx_db_bind_null(statement, 6);
    else
        cx_db_bind_text(statement, 6, error);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

cx_status cx_deliveries_record(cx_recorder *recorder, const cx_delivery *delivery,
                               const cx_delivery_attempt *attempt, cx_delivery_state *out_state,
                               cx_err *err)
{
    int64_t now_ns = cx_recorder_now(recorder);
    cx_delivery_state state = state_after(delivery, attempt, now_ns);
    const cx_status begun = begin_change(recorder->deliveries, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = update_delivery(recorder->deliveries->db, delivery, attempt, state, now_ns, err);
    status = end_change(recorder->deliveries, begun, status, err);
    if (!cx_failed(status))
        *out_state = state;
    return status;
}

/* --- what is shown ---------------------------------------------------------------------------- */

static cx_status read_waiting(cx_db *db, cx_destination destination, cx_deliveries_waiting *out,
                              cx_err *err)
{
    int64_t count = 0, oldest = CX_TIME_NONE;
    bool found;
    CX_TRY(read_integer(
        db, "SELECT count(*) FROM deliveries WHERE destination = ?1 AND state = 'waiting'",
        name_of(destination), 0, &count, &found, err));
    CX_TRY(read_integer(
        db, "SELECT min(at_ns) FROM deliveries WHERE destination = ?1 AND state = 'waiting'",
        name_of(destination), 0, &oldest, &found, err));
    *out = (cx_deliveries_waiting){(uint64_t)count, found ? oldest : CX_TIME_NONE};
    return CX_SUCCESS;
}

cx_status cx_deliveries_waiting_now(cx_recorder *recorder,
                                    cx_deliveries_waiting out[CX_DESTINATIONS], cx_err *err)
{
    bool there;
    for (cx_destination d = 0; d < CX_DESTINATIONS; d++)
        out[d] = (cx_deliveries_waiting){0, CX_TIME_NONE};
    cx_status status = begin_reading(recorder->deliveries, &there, err);
    for (cx_destination d = 0; d < CX_DESTINATIONS && there && !cx_failed(status); d++)
        status = read_waiting(recorder->deliveries->db, d, &out[d], err);
    end_reading(recorder->deliveries);
    return status;
}

static cx_str time_or_none(const cx_db_statement *row, int column, bool there, cx_arena *arena)
{
    char text[CX_TRACE_TIME_SIZE];
    if (!there || cx_db_is_null(row, column) || cx_db_int(row, column) == 0)
        return (cx_str){NULL, 0};
    cx_trace_time_write(cx_db_int(row, column), text);
    return cx_arena_copy_str(arena, cx_str_z(text));
}

/* destination, event, state, attempts, next_ns, tried_ns, error, id */
static void add_delivery(cx_json_list *list, const cx_db_statement *row, cx_arena *arena)
{
    cx_json_list one = cx_json_list_begin(arena);
    bool waits = cx_str_is(cx_db_text(row, 2), "waiting");
    cx_json_put_uint(&one, "attempts", (uint64_t)cx_db_int(row, 3));
    cx_json_put_str(&one, "destination", cx_arena_copy_str(arena, cx_db_text(row, 0)));
    cx_json_put_maybe(&one, "error",
                      cx_db_is_null(row, 6)
                          ? CX_STR("")
                          : cx_json_shown(cx_arena_copy_str(arena, cx_db_text(row, 6)), arena));
    cx_json_put_str(&one, "event", cx_arena_copy_str(arena, cx_db_text(row, 1)));
    cx_json_put_str(&one, "id", cx_arena_copy_str(arena, cx_db_text(row, 7)));
    cx_json_put_maybe(&one, "next_at", time_or_none(row, 4, waits, arena));
    cx_json_put_str(&one, "state", cx_arena_copy_str(arena, cx_db_text(row, 2)));
    cx_json_put_maybe(&one, "tried_at", time_or_none(row, 5, true, arena));
    cx_json_add_object(list, &one);
}

static cx_status read_deliveries(cx_db *db, cx_str alert_id, cx_arena *arena, cx_json_list *list,
                                 cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    CX_TRY(cx_db_prepare(db,
                         "SELECT destination, event, state, attempts, next_ns, tried_ns, error, id"
                         " FROM deliveries WHERE alert_id = ?1 ORDER BY seq, destination",
                         &statement, err));
    cx_db_bind_text(statement, 1, alert_id);
    cx_status status;
    while (!cx_failed(status = cx_db_step(statement, &there, err)) && there)
        add_delivery(list, statement, arena);
    cx_db_finish(statement);
    return status;
}

cx_status cx_deliveries_json(cx_recorder *recorder, cx_str alert_id, cx_arena *arena, cx_json *out,
                             cx_err *err)
{
    bool there;
    cx_json_list list = cx_json_list_begin(arena);
    cx_status status = begin_reading(recorder->deliveries, &there, err);
    if (!cx_failed(status) && there)
        status = read_deliveries(recorder->deliveries->db, alert_id, arena, &list, err);
    end_reading(recorder->deliveries);
    CX_TRY(status);
    return cx_json_list_end_array(&list, out, err);
}

/* --- for the schedule of the detectors -------------------------------------------------------- */

static cx_status read_checked(cx_db *db, cx_position *out, bool *out_found, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, "SELECT log_commit, log_frames FROM detection", &statement, err));
    cx_status status = cx_db_step(statement, out_found, err);
    if (!cx_failed(status) && *out_found)
        *out = (cx_position){(uint64_t)cx_db_int(statement, 0), (uint64_t)cx_db_int(statement, 1)};
    cx_db_finish(statement);
    return status;
}

cx_status cx_deliveries_checked(cx_recorder *recorder, cx_position *out, bool *out_found,
                                cx_err *err)
{
    bool there;
    *out_found = false;
    cx_status status = begin_reading(recorder->deliveries, &there, err);
    if (!cx_failed(status) && there)
        status = read_checked(recorder->deliveries->db, out, out_found, err);
    end_reading(recorder->deliveries);
    return status;
}

static cx_status write_checked(cx_db *db, cx_position position, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(
        cx_db_prepare(db, "INSERT OR REPLACE INTO detection VALUES(1, ?1, ?2)", &statement, err));
    cx_db_bind_int(statement, 1, (int64_t)position.commit);
    cx_db_bind_int(statement, 2, (int64_t)position.frames);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

cx_status cx_deliveries_set_checked(cx_recorder *recorder, cx_position position, cx_err *err)
{
    const cx_status begun = begin_change(recorder->deliveries, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = write_checked(recorder->deliveries->db, position, err);
    return end_change(recorder->deliveries, begun, status, err);
}
