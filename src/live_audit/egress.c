/*
 * egress.c - connections that the egress proxy recorded while a session ran, and the calls that
 * explain them (live.md §10.6).
 *
 * Entries `egress.connection` are in the journals exec:REPOSITORY, each with the id of a command
 * whose entry `exec.start` has its folder.  What is not below the session's work tree is of others.
 */
#include <string.h>

#include "live_audit/parts.h"
#include "rules/api.h"

#define EGRESS_ENTRIES_MAX 200000 /* of a journal, in the time of a session */

typedef struct egress_reader {
    cx_live_audit *audit;
    cx_str actor, root;
    cx_map commands; /* id of a command in the session's work tree -> 1 */
    cx_arena scratch, keep;
} egress_reader;

static cx_status time_of(egress_reader *r, uint64_t seq, int64_t *out, cx_err *err)
{
    cx_entry_view entry;
    cx_arena_mark mark = cx_arena_mark_now(&r->scratch);
    CX_TRY(cx_home_entry(r->audit->home, r->actor, seq, &r->scratch, &entry, err));
    *out = entry.entry.created_at_ns;
    cx_arena_reset(&r->scratch, mark);
    return CX_SUCCESS;
}

/* The first entry that is not older; times of a journal ascend but for changes of the clock. */
static cx_status find_first(egress_reader *r, uint64_t count, int64_t from_ns, uint64_t *out,
                            cx_err *err)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int64_t at;
        CX_TRY(time_of(r, middle, &at, err));
        if (at < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return CX_SUCCESS;
}

static bool is_below(cx_str path, cx_str root)
{
    if (root.size != 0 && root.data[root.size - 1] == '/')
        root.size--;
    return cx_str_starts(path, root) && (path.size == root.size || path.data[root.size] == '/');
}

static cx_status add_command(egress_reader *r, const cx_json *payload, cx_err *err)
{
    uint64_t *value;
    bool is_new;
    cx_str id = CX_JSON_GET_STR(payload, "exec");
    if (id.size == 0 || !is_below(CX_JSON_GET_STR(payload, "cwd"), r->root))
        return CX_SUCCESS;
    cx_str kept = cx_arena_copy_str(&r->keep, id);
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    return cx_map_put(&r->commands, kept, &value, &is_new, err);
}

static void add_connection(egress_reader *r, uint64_t seq, int64_t at_ns, const cx_json *payload)
{
    cx_live_audit *audit = r->audit;
    cx_str host = CX_JSON_GET_STR(payload, "host"), rule = CX_JSON_GET_STR(payload, "rule");
    const cx_json *started = CX_JSON_GET(payload, "started_ns");
    int64_t start_ns = at_ns;
    if (cx_map_find(&r->commands, CX_JSON_GET_STR(payload, "exec")) == NULL)
        return;
    if (started != NULL)
        (void)cx_json_int64(started, &start_ns);
    int host_size = (int)(host.size > 200 ? 200 : host.size);
    if (!cx_str_is(CX_JSON_GET_STR(payload, "verdict"), "allow"))
        cx_live_audit_add(audit, CX_LIVE_AUDIT_EGRESS_DENIED, NULL, NULL, host,
                          "%.*s was refused (%.*s): entry %llu of %.*s", host_size, host.data,
                          (int)(rule.size > 20 ? 20 : rule.size), rule.data,
                          (unsigned long long)seq, (int)r->actor.size, r->actor.data);
    else if (!cx_live_audit_is_explained(&audit->journal, start_ns, (cx_str){NULL, 0}))
        cx_live_audit_add(audit, CX_LIVE_AUDIT_EGRESS_WITHOUT_CALL, NULL, NULL, host,
                          "%.*s was connected to from the session's work tree while none of its "
                          "commands ran: entry %llu of %.*s",
                          host_size, host.data, (unsigned long long)seq, (int)r->actor.size,
                          r->actor.data);
}

static cx_status read_entry(egress_reader *r, uint64_t seq, bool *out_is_later, cx_err *err)
{
    cx_entry_view entry;
    cx_json payload;
    CX_TRY(cx_home_entry(r->audit->home, r->actor, seq, &r->scratch, &entry, err));
    *out_is_later = entry.entry.created_at_ns > r->audit->journal.last_ns;
    bool is_start = cx_str_is(entry.entry.kind, "exec.start");
    if (*out_is_later || entry.payload_erased ||
        (!is_start && !cx_str_is(entry.entry.kind, "egress.connection")) ||
        cx_failed(cx_run_json_read(cx_bytes_str(entry.payload), 0, &r->scratch, &payload, NULL)))
        return CX_SUCCESS;
    if (is_start)
        return add_command(r, &payload, err);
    add_connection(r, seq, entry.entry.created_at_ns, &payload);
    return CX_SUCCESS;
}

static cx_status read_journal(egress_reader *r, uint64_t count, cx_err *err)
{
    uint64_t seq, read = 0;
    bool is_later = false;
    CX_TRY(find_first(r, count, r->audit->journal.first_ns, &seq, err));
    for (; seq < count && !is_later; seq++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->scratch);
        if (read++ == EGRESS_ENTRIES_MAX) {
            cx_live_audit_add(r->audit, CX_LIVE_AUDIT_WORK_TREE_UNREAD, NULL, NULL, r->actor,
                              "more than %d entries while the session ran: later connections are "
                              "not compared",
                              EGRESS_ENTRIES_MAX);
            break;
        }
        CX_TRY(read_entry(r, seq, &is_later, err));
        cx_arena_reset(&r->scratch, mark);
    }
    return CX_SUCCESS;
}

cx_status cx_live_audit_egress(cx_live_audit *audit, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    egress_reader r = {.audit = audit, .root = audit->journal.root};
    if (r.root.size == 0)
        r.root = audit->journal.cwd;
    if (r.root.size == 0)
        return CX_SUCCESS;
    cx_arena_init(&r.scratch, audit->alloc, 0);
    cx_arena_init(&r.keep, audit->alloc, 0);
    cx_map_init(&r.commands, audit->alloc, audit->seed);
    cx_actor_walk_begin_named(&walk, audit->home, CX_STR("exec:"));
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL) {
        r.actor = cx_arena_copy_str(&r.keep, actor->name);
        status =
            r.actor.data == NULL ? cx_fail_nomem(err) : read_journal(&r, actor->entry_count, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    cx_map_done(&r.commands);
    cx_arena_done(&r.scratch);
    cx_arena_done(&r.keep);
    return status;
}
