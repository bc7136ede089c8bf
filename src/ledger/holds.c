/*
 * holds.c - legal holds: recording, releasing and matching them (holds.h).
 *
 * hold.add      committed payload, canonical JSON: agent, by, from, reason, run, subject, to; a
 *               condition that is not given is null, times are nanoseconds since 1970
 * hold.release  canonical JSON: by, hold (number), reason
 */
#include "ledger/holds.h"

#include <inttypes.h>

#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct hold_list {
    cx_home *home;
    cx_arena *arena;
    CX_VEC(cx_hold) items;
} hold_list;

static int64_t time_or(const cx_json *object, cx_str name, int64_t otherwise)
{
    const cx_json *value = cx_json_get(object, name);
    int64_t time;
    return value != NULL && cx_json_int64(value, &time) ? time : otherwise;
}

static cx_status read_hold(hold_list *list, const cx_entry_view *view, cx_err *err)
{
    cx_json json;
    cx_hold hold = {.seq = view->entry.seq,
                    .created_ns = view->entry.created_at_ns,
                    .from_ns = INT64_MIN,
                    .to_ns = INT64_MAX,
                    .unreadable = true};
    cx_hold *slot = cx_vec_push(&list->items, list->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    if (!view->payload_erased) {
        cx_status status =
            cx_json_parse_text(cx_bytes_str(view->payload), list->arena, &json, NULL);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        hold.unreadable = cx_failed(status) || json.type != CX_JSON_OBJECT;
    }
    if (!hold.unreadable) {
        hold.agent = CX_JSON_GET_STR(&json, "agent");
        hold.subject = CX_JSON_GET_STR(&json, "subject");
        hold.run = CX_JSON_GET_STR(&json, "run");
        hold.reason = CX_JSON_GET_STR(&json, "reason");
        hold.by = CX_JSON_GET_STR(&json, "by");
        hold.from_ns = time_or(&json, CX_STR("from"), INT64_MIN);
        hold.to_ns = time_or(&json, CX_STR("to"), INT64_MAX);
    }
    *slot = hold;
    return CX_SUCCESS;
}

/* A release that names no active hold changes nothing. */
static cx_status read_release(hold_list *list, const cx_entry_view *view, cx_err *err)
{
    cx_json json;
    uint64_t seq;
    cx_status status = cx_json_parse_text(cx_bytes_str(view->payload), list->arena, &json, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *number = cx_failed(status) ? NULL : CX_JSON_GET(&json, "hold");
    if (number == NULL || !cx_json_uint64(number, &seq))
        return CX_SUCCESS;
    for (size_t i = 0; i < list->items.count; i++) {
        cx_hold *hold = &list->items.items[i];
        if (hold->seq != seq || hold->released)
            continue;
        hold->released = true;
        hold->released_ns = view->entry.created_at_ns;
        hold->release_reason = CX_JSON_GET_STR(&json, "reason");
        hold->released_by = CX_JSON_GET_STR(&json, "by");
    }
    return CX_SUCCESS;
}

static cx_status read_journal(hold_list *list, uint64_t count, cx_err *err)
{
    for (uint64_t seq = 0; seq < count; seq++) {
        cx_entry_view view;
        CX_TRY(cx_home_entry(list->home, CX_STR(CX_HOLDS_ACTOR), seq, list->arena, &view, err));
        if (cx_kinds_is(view.entry.kind, CX_KIND_HOLD_ADD))
            CX_TRY(read_hold(list, &view, err));
        else if (cx_kinds_is(view.entry.kind, CX_KIND_HOLD_RELEASE))
            CX_TRY(read_release(list, &view, err));
    }
    return CX_SUCCESS;
}

cx_status cx_holds_load(cx_home *home, bool all, cx_arena *arena, cx_holds *out, cx_err *err)
{
    cx_actor_info info;
    cx_err reason = {0};
    hold_list list = {.home = home, .arena = arena};
    *out = (cx_holds){.count = 0};
    cx_status status = cx_home_actor(home, CX_STR(CX_HOLDS_ACTOR), &info, &reason);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        if (err != NULL)
            *err = reason;
        return status;
    }
    status = read_journal(&list, info.entry_count, err);
    cx_hold *items = NULL;
    size_t count = 0;
    if (!cx_failed(status) &&
        (items = CX_ARENA_ARRAY(arena, cx_hold, list.items.count + 1)) == NULL)
        status = cx_fail_nomem(err);
    for (size_t i = 0; i < list.items.count && !cx_failed(status); i++)
        if (all || !list.items.items[i].released)
            items[count++] = list.items.items[i];
    cx_vec_done(&list.items, home->alloc);
    if (!cx_failed(status))
        *out = (cx_holds){items, count};
    return status;
}

/* --- recording -------------------------------------------------------------------------------- */

static cx_status check_text(const char *what, cx_str text, size_t min, size_t max, cx_err *err)
{
    if (text.size < min || text.size > max)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "%s has %zu bytes, expected %zu to %zu", what, text.size, min, max);
    if (!cx_utf8_valid(text))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "%s is not UTF-8",
                          what);
    return CX_SUCCESS;
}

static cx_status check_hold(const cx_hold *hold, cx_err *err)
{
    if (hold->agent.data == NULL && hold->subject.data == NULL && hold->run.data == NULL &&
        hold->from_ns == INT64_MIN && hold->to_ns == INT64_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "a hold needs an agent, a subject, a run or a time");
    if (hold->from_ns >= hold->to_ns)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the hold ends before it begins");
    if (hold->agent.data != NULL)
        CX_TRY(check_text("the agent of a hold", hold->agent, 1, CX_ACTOR_SIZE_MAX, err));
    if (hold->subject.data != NULL)
        CX_TRY(check_text("the subject of a hold", hold->subject, CX_HOLD_SUBJECT_MIN,
                          CX_HOLD_TEXT_MAX, err));
    if (hold->run.data != NULL)
        CX_TRY(
            check_text("the run of a hold", hold->run, CX_HOLD_SUBJECT_MIN, CX_HOLD_TEXT_MAX, err));
    CX_TRY(check_text("the reason of a hold", hold->reason, 1, CX_HOLD_REASON_MAX, err));
    return check_text("by", hold->by, 1, CX_ACTOR_SIZE_MAX, err);
}

static void put_time(cx_json_list *list, const char *name, int64_t time, int64_t open)
{
    if (time == open)
        cx_json_put_null(list, name);
    else
        cx_json_put_int(list, name, time);
}

static cx_status write_payload(cx_json_list *list, cx_buf *out, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(list, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static cx_status add_entry(cx_txn *txn, cx_dotted_kind kind, cx_json_list *list, bool committed,
                           cx_str by, int64_t now_ns, uint64_t *out_seq, cx_err *err)
{
    cx_buf payload;
    cx_buf_init(&payload, cx_alloc_default());
    cx_status status = write_payload(list, &payload, err);
    const cx_entry_draft draft = {.kind = cx_kinds_name(kind),
                                  .created_at_ns = now_ns,
                                  .created_by = cx_str_bytes(by),
                                  .payload = cx_buf_bytes(&payload),
                                  .committed = committed};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, out_seq, err);
    cx_buf_done(&payload);
    return status;
}

static cx_status add_hold(cx_home *home, cx_txn *txn, const cx_hold *hold, int64_t now_ns,
                          uint64_t *out_seq, cx_err *err)
{
    cx_arena *arena = cx_txn_arena(txn);
    cx_holds active;
    cx_json_list list = cx_json_list_begin(arena);
    CX_TRY(cx_holds_load(home, false, arena, &active, err));
    if (active.count >= CX_HOLDS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooManyHolds", CX_NO_OFFSET,
                          "%d holds are active, and there may be no more; release some",
                          CX_HOLDS_MAX);
    cx_json_put_maybe(&list, "agent", hold->agent);
    cx_json_put_str(&list, "by", hold->by);
    put_time(&list, "from", hold->from_ns, INT64_MIN);
    cx_json_put_str(&list, "reason", hold->reason);
    cx_json_put_maybe(&list, "run", hold->run);
    cx_json_put_maybe(&list, "subject", hold->subject);
    put_time(&list, "to", hold->to_ns, INT64_MAX);
    return add_entry(txn, CX_KIND_HOLD_ADD, &list, true, hold->by, now_ns, out_seq, err);
}

cx_status cx_hold_add(cx_home *home, const cx_hold *hold, int64_t now_ns, uint64_t *out_seq,
                      cx_err *err)
{
    cx_txn *txn;
    CX_TRY(check_hold(hold, err));
    CX_TRY(cx_txn_begin(home, CX_STR(CX_HOLDS_ACTOR), &txn, err));
    cx_status status = add_hold(home, txn, hold, now_ns, out_seq, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

static cx_status release_hold(cx_home *home, cx_txn *txn, uint64_t seq, cx_str reason, cx_str by,
                              int64_t now_ns, cx_err *err)
{
    cx_holds holds;
    uint64_t entry;
    const cx_hold *found = NULL;
    CX_TRY(cx_holds_load(home, true, cx_txn_arena(txn), &holds, err));
    for (size_t i = 0; i < holds.count; i++)
        if (holds.items[i].seq == seq)
            found = &holds.items[i];
    if (found == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoHold", CX_NO_OFFSET,
                          "there is no hold %" PRIu64 "; 'cortex hold list --all' lists them", seq);
    if (found->released)
        return cx_fail_at(err, CX_E_CONFLICT, "HoldReleased", CX_NO_OFFSET,
                          "hold %" PRIu64 " was released before", seq);
    cx_json_list list = cx_json_list_begin(cx_txn_arena(txn));
    cx_json_put_str(&list, "by", by);
    cx_json_put_uint(&list, "hold", seq);
    cx_json_put_str(&list, "reason", reason);
    return add_entry(txn, CX_KIND_HOLD_RELEASE, &list, false, by, now_ns, &entry, err);
}

cx_status cx_hold_release(cx_home *home, uint64_t seq, cx_str reason, cx_str by, int64_t now_ns,
                          cx_err *err)
{
    cx_txn *txn;
    CX_TRY(check_text("the reason of a release", reason, 1, CX_HOLD_REASON_MAX, err));
    CX_TRY(check_text("by", by, 1, CX_ACTOR_SIZE_MAX, err));
    CX_TRY(cx_txn_begin(home, CX_STR(CX_HOLDS_ACTOR), &txn, err));
    cx_status status = release_hold(home, txn, seq, reason, by, now_ns, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

/* --- matching --------------------------------------------------------------------------------- */

static bool is_named(const cx_hold_target *target, cx_str text)
{
    for (size_t i = 0; i < target->content_count; i++)
        if (cx_content_names(target->contents[i], text))
            return true;
    return false;
}

cx_id cx_run_part_subject(cx_str run_id, const cx_digest *sha256)
{
    return cx_run_entry_subject("cortex.run.bundle_part.v1", run_id, sha256);
}

static bool is_of_run(const cx_hold_target *target, cx_str run_id)
{
    if (is_named(target, run_id))
        return true;
    if (target->subject == NULL || !cx_kinds_is(target->kind, CX_KIND_RUN_BUNDLE_PART))
        return false;
    const cx_digest digest = cx_digest_of(target->contents[0]);
    const cx_id subject = cx_run_part_subject(run_id, &digest);
    return memcmp(&subject, target->subject, sizeof subject) == 0;
}

static bool keeps(const cx_hold *hold, const cx_hold_target *target)
{
    if (hold->released)
        return false;
    if (hold->unreadable) /* H2 */
        return true;
    if (target->last_ns < hold->from_ns || target->first_ns >= hold->to_ns)
        return false;
    if (hold->agent.data != NULL && !cx_str_eq(hold->agent, target->actor))
        return false;
    if (hold->subject.data != NULL && !is_named(target, hold->subject))
        return false;
    return hold->run.data == NULL || is_of_run(target, hold->run);
}

const cx_hold *cx_holds_find(const cx_holds *holds, const cx_hold_target *target)
{
    for (size_t i = 0; i < holds->count; i++)
        if (keeps(&holds->items[i], target))
            return &holds->items[i];
    return NULL;
}

cx_status cx_hold_fail(const cx_hold *hold, cx_err *err)
{
    return cx_fail_at(err, CX_E_DENIED, "OnHold", CX_NO_OFFSET,
                      "legal hold %" PRIu64 " keeps it (%.*s); it can be erased after "
                      "'cortex hold release %" PRIu64 "'",
                      hold->seq, hold->reason.size > 160 ? 160 : (int)hold->reason.size,
                      hold->reason.data == NULL ? "" : hold->reason.data, hold->seq);
}
