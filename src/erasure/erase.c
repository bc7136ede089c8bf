/*
 * erase.c - carries out a request, or completes one that was interrupted (erasure.h).
 *
 * erasure.request  committed payload, canonical JSON: agent, before, by, from [commit, frames],
 * now,
 *                  reason, rules, salt, subject; what is not given is null
 * erasure.receipt  the head of the receipt (proof/erasure.h)
 *
 * The order on the disk is: request, the entries that erase, the destruction itself, receipt, and
 * of a request that names a person at last the destruction of its payload.
 */
#include <stdlib.h>

#include "crypto/api.h"
#include "erasure/internal.h"
#include "json/api.h"

enum { BATCH_ITEMS = 256, SALT_HEX = 32 };
#define BATCH_BYTES ((uint64_t)8 << 20) /* of payloads that are read for one commit */

typedef struct erasing {
    cx_home *home;
    const cx_erasure_reader *reader;
    cx_arena *arena;
    uint64_t request;
    cx_position from;
    cx_erasure_filter filter;
    cx_retention_rule rules[CX_RETENTION_RULES_MAX];
    cx_str salt; /* hex, of a request that names a person */
    int64_t requested_ns;
} erasing;

static cx_status begin_reading(const erasing *e, cx_home **out, cx_err *err)
{
    *out = e->home;
    return e->reader == NULL ? CX_SUCCESS : e->reader->begin(e->reader->arg, out, err);
}

static void end_reading(const erasing *e, cx_home *reader)
{
    if (e->reader != NULL)
        e->reader->end(e->reader->arg, reader);
}

cx_str cx_erasure_tag(uint64_t request, char out[CX_ERASURE_TAG_MAX])
{
    int size = snprintf(out, CX_ERASURE_TAG_MAX, "erasure %llu: ", (unsigned long long)request);
    return cx_str_from(out, (size_t)size);
}

/* --- the journal of requests ------------------------------------------------------------------ */

static cx_status count_requests(cx_home *home, uint64_t *out, cx_err *err)
{
    cx_actor_info info;
    cx_err own = {0};
    *out = 0;
    cx_status status = cx_home_actor(home, CX_STR(CX_ERASURES_ACTOR), &info, &own);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        if (err != NULL)
            *err = own;
        return status;
    }
    *out = info.entry_count;
    return CX_SUCCESS;
}

static cx_status fail_request(uint64_t seq, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "RequestDamaged", CX_NO_OFFSET,
                      "entry %llu of the journal " CX_ERASURES_ACTOR " is no request of an erasure "
                      "that can be read; check the data directory with 'cortex verify --home'",
                      (unsigned long long)seq);
}

static bool read_time(const cx_json *json, cx_str name, int64_t *out)
{
    const cx_json *value = cx_json_get(json, name);
    *out = CX_TIME_NONE;
    return value != NULL && (value->type == CX_JSON_NULL || cx_json_int64(value, out));
}

static bool read_position(const cx_json *json, cx_position *out)
{
    const cx_json *from = CX_JSON_GET(json, "from");
    return from != NULL && from->type == CX_JSON_ARRAY && from->count == 2 &&
           cx_json_uint64(&from->items[0], &out->commit) &&
           cx_json_uint64(&from->items[1], &out->frames);
}

static bool read_rules(erasing *e, const cx_json *json)
{
    const cx_json *rules = CX_JSON_GET(json, "rules");
    if (rules == NULL || rules->type != CX_JSON_ARRAY || rules->count > CX_RETENTION_RULES_MAX)
        return false;
    for (uint32_t i = 0; i < rules->count; i++) {
        cx_str text = CX_STR("");
        if (rules->items[i].type == CX_JSON_STRING)
            text = cx_json_text(&rules->items[i]);
        if (cx_failed(cx_retention_rule_parse(text, &e->rules[i], NULL)))
            return false;
    }
    e->filter.rules = e->rules;
    e->filter.rule_count = rules->count;
    return true;
}

static cx_status read_request(erasing *e, uint64_t seq, bool *out_there, cx_err *err)
{
    cx_entry_view view;
    cx_json json;
    cx_erasure_filter *filter = &e->filter;
    CX_TRY(cx_home_entry(e->home, CX_STR(CX_ERASURES_ACTOR), seq, e->arena, &view, err));
    *out_there = !view.payload_erased;
    if (view.payload_erased) /* another process has completed it just now */
        return CX_SUCCESS;
    cx_status status = cx_json_parse_text(cx_bytes_str(view.payload), e->arena, &json, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || json.type != CX_JSON_OBJECT || !read_position(&json, &e->from) ||
        !read_time(&json, CX_STR("before"), &filter->before_ns) ||
        !read_time(&json, CX_STR("now"), &filter->now_ns) || !read_rules(e, &json))
        return fail_request(seq, err);
    filter->agent = CX_JSON_GET_STR(&json, "agent");
    filter->subject = CX_JSON_GET_STR(&json, "subject");
    filter->reason = CX_JSON_GET_STR(&json, "reason");
    filter->by = CX_JSON_GET_STR(&json, "by");
    e->salt = CX_JSON_GET_STR(&json, "salt");
    if (filter->reason.data == NULL || filter->by.data == NULL ||
        (filter->subject.data != NULL && e->salt.data == NULL))
        return fail_request(seq, err);
    e->request = seq;
    e->requested_ns = view.entry.created_at_ns;
    return CX_SUCCESS;
}

/* The last request, when it has no receipt.  `*out_unnamed`: it has one, and only its payload,
 * which names a person, is left. */
static cx_status find_open(erasing *e, uint64_t *out_seq, bool *out_open, bool *out_unnamed,
                           cx_err *err)
{
    uint64_t count;
    cx_entry_view view;
    *out_open = *out_unnamed = false;
    CX_TRY(count_requests(e->home, &count, err));
    for (uint64_t seq = count; seq-- > 0;) {
        CX_TRY(cx_home_entry(e->home, CX_STR(CX_ERASURES_ACTOR), seq, e->arena, &view, err));
        if (cx_kinds_is(view.entry.kind, CX_KIND_ERASURE_RECEIPT))
            *out_unnamed = true;
        if (!cx_kinds_is(view.entry.kind, CX_KIND_ERASURE_REQUEST))
            continue;
        *out_seq = seq;
        *out_open = !*out_unnamed;
        *out_unnamed = *out_unnamed && !view.payload_erased;
        return CX_SUCCESS;
    }
    *out_unnamed = false;
    return CX_SUCCESS;
}

static void put_time(cx_json_list *json, const char *name, int64_t ns)
{
    if (ns == CX_TIME_NONE)
        cx_json_put_null(json, name);
    else
        cx_json_put_int(json, name, ns);
}

static cx_status write_request(const erasing *e, cx_buf *out, cx_err *err)
{
    const cx_erasure_filter *filter = &e->filter;
    cx_json value;
    cx_str texts[CX_RETENTION_RULES_MAX];
    cx_json_list json = cx_json_list_begin(e->arena), from = cx_json_list_begin(e->arena);
    for (size_t i = 0; i < filter->rule_count; i++)
        texts[i] = filter->rules[i].text;
    cx_json_list_add(&from, cx_json_make_uint(e->arena, e->from.commit));
    cx_json_list_add(&from, cx_json_make_uint(e->arena, e->from.frames));
    cx_json_put_maybe(&json, "agent", filter->agent);
    put_time(&json, "before", filter->before_ns);
    cx_json_put_str(&json, "by", filter->by);
    cx_json_put_array(&json, "from", &from);
    put_time(&json, "now", filter->now_ns);
    cx_json_put_str(&json, "reason", filter->reason);
    cx_json_put_strs(&json, "rules", texts, filter->rule_count);
    cx_json_put_maybe(&json, "salt", e->salt);
    cx_json_put_maybe(&json, "subject", filter->subject);
    CX_TRY(cx_json_list_end_object(&json, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static cx_status check_filter(const cx_erasure_filter *filter, cx_err *err)
{
    if (filter->agent.data == NULL && filter->subject.data == NULL &&
        filter->before_ns == CX_TIME_NONE && filter->rule_count == 0)
        return cx_fail(err, CX_E_USAGE, "nothing is selected for erasure");
    if (filter->rule_count > CX_RETENTION_RULES_MAX)
        return cx_fail(err, CX_E_LIMIT, "found %zu rules of retention, expected at most %d",
                       filter->rule_count, CX_RETENTION_RULES_MAX);
    if (filter->reason.size == 0 || filter->reason.size > CX_ERASURE_REASON_MAX ||
        !cx_utf8_valid(filter->reason))
        return cx_fail(err, CX_E_USAGE, "the reason has %zu bytes, expected 1 to %d of UTF-8",
                       filter->reason.size, CX_ERASURE_REASON_MAX);
    if (filter->by.size == 0 || filter->by.size > CX_ACTOR_SIZE_MAX || !cx_utf8_valid(filter->by))
        return cx_fail(err, CX_E_USAGE, "by has %zu bytes, expected 1 to %d of UTF-8",
                       filter->by.size, CX_ACTOR_SIZE_MAX);
    if (filter->subject.data != NULL &&
        (filter->subject.size < CX_HOLD_SUBJECT_MIN || filter->subject.size > CX_HOLD_TEXT_MAX ||
         !cx_utf8_valid(filter->subject)))
        return cx_fail(err, CX_E_USAGE, "the subject has %zu bytes, expected %d to %d of UTF-8",
                       filter->subject.size, CX_HOLD_SUBJECT_MIN, CX_HOLD_TEXT_MAX);
    return CX_SUCCESS;
}

/* R1: inside the transaction it is seen whether another request is open. */
static cx_status append_request(erasing *e, cx_txn *txn, cx_bytes payload, bool *out_open,
                                cx_err *err)
{
    uint64_t seq;
    bool unnamed;
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_ERASURE_REQUEST),
                                  .created_at_ns = e->requested_ns,
                                  .created_by = cx_str_bytes(e->filter.by),
                                  .payload = payload,
                                  .committed = true};
    CX_TRY(find_open(e, &seq, out_open, &unnamed, err));
    return *out_open ? CX_SUCCESS : cx_txn_entry(txn, &draft, &e->request, err);
}

static cx_status record_request(erasing *e, bool *out_open, cx_err *err)
{
    cx_buf payload;
    cx_txn *txn = NULL;
    cx_buf_init(&payload, cx_alloc_default());
    cx_status status = write_request(e, &payload, err);
    if (!cx_failed(status))
        status = cx_txn_begin(e->home, CX_STR(CX_ERASURES_ACTOR), &txn, err);
    if (!cx_failed(status))
        status = append_request(e, txn, cx_buf_bytes(&payload), out_open, err);
    if (cx_failed(status) || *out_open)
        cx_txn_abort(txn);
    else
        status = cx_txn_commit(txn, err);
    cx_buf_done(&payload);
    return status;
}

static int64_t wall_ns(const erasing *e)
{
    const cx_io *io = cx_home_io(e->home);
    return (int64_t)io->wall_ns(io);
}

static cx_status make_salt(erasing *e, cx_err *err)
{
    const cx_io *io = cx_home_io(e->home);
    uint8_t salt[SALT_HEX / 2];
    char hex[SALT_HEX];
    int failed = io->random(io, salt, sizeof salt);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    cx_hex_encode(cx_bytes_from(salt, sizeof salt), hex);
    e->salt = cx_arena_copy_str(e->arena, cx_str_from(hex, sizeof hex));
    return e->salt.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- destroying ------------------------------------------------------------------------------- */

static int compare_items(const void *a, const void *b)
{
    const cx_erasure_item *x = a, *y = b;
    if (x->actor != y->actor)
        return (x->actor > y->actor) - (x->actor < y->actor);
    if (x->is_memory != y->is_memory)
        return x->is_memory ? 1 : -1;
    return x->is_memory ? memcmp(x->id.bytes, y->id.bytes, sizeof x->id.bytes)
                        : (x->seq > y->seq) - (x->seq < y->seq);
}

/* Items from `at` that are erased in one commit: of one actor, and not too many bytes. */
static size_t batch_size(const cx_erasure_plan *plan, size_t at)
{
    uint64_t bytes = 0;
    size_t count = 0;
    const cx_erasure_item *items = plan->items.items;
    while (at + count < plan->items.count && count < BATCH_ITEMS && bytes < BATCH_BYTES &&
           items[at + count].actor == items[at].actor)
        bytes += items[at + count++].bytes;
    return count;
}

static cx_status erase_batch(erasing *e, cx_memory *memories, const cx_erasure_item *items,
                             size_t count, cx_str reason, size_t *out_held, cx_err *err)
{
    cx_memory_target targets[BATCH_ITEMS];
    for (size_t i = 0; i < count; i++)
        targets[i] = (cx_memory_target){
            .is_memory = items[i].is_memory, .seq = items[i].seq, .id = items[i].id};
    return cx_memory_redact_many(memories, targets, count, reason, e->filter.by, out_held, err);
}

/* All items of one actor; *at is moved past them. */
static cx_status erase_actor(erasing *e, cx_erasure_plan *plan, size_t *at, cx_str reason,
                             cx_err *err)
{
    const cx_erasure_item *items = plan->items.items;
    uint32_t actor = items[*at].actor;
    cx_memory *memories;
    CX_TRY(cx_memory_open(e->home, plan->names.items[actor], NULL, &memories, err));
    cx_status status = CX_SUCCESS;
    while (*at < plan->items.count && items[*at].actor == actor && !cx_failed(status)) {
        size_t count = batch_size(plan, *at), held = 0;
        status = erase_batch(e, memories, &items[*at], count, reason, &held, err);
        plan->sums.held += held;
        *at += count;
    }
    cx_memory_close(memories);
    return cx_failed(status) ? status : cx_home_erase(e->home, plan->names.items[actor], err);
}

static cx_status erase_plan(erasing *e, cx_erasure_plan *plan, cx_err *err)
{
    char tag[CX_ERASURE_TAG_MAX];
    cx_str prefix = cx_erasure_tag(e->request, tag);
    cx_str reason = cx_arena_printf(e->arena, "%.*s%.*s", (int)prefix.size, prefix.data,
                                    (int)e->filter.reason.size, e->filter.reason.data);
    if (reason.data == NULL)
        return cx_fail_nomem(err);
    if (plan->items.count != 0)
        qsort(plan->items.items, plan->items.count, sizeof *plan->items.items, compare_items);
    for (size_t at = 0; at < plan->items.count;)
        CX_TRY(erase_actor(e, plan, &at, reason, err));
    return CX_SUCCESS;
}

/* --- the receipt ------------------------------------------------------------------------------ */

static cx_status add_time(cx_arena *arena, int64_t ns, cx_str *out, cx_err *err)
{
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(ns, text);
    *out = cx_arena_copy_str(arena, cx_str_z(text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* R4 */
static void add_subject(const erasing *e, cx_buf *out)
{
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, e->salt.data, e->salt.size);
    cx_sha256_add(&hash, ":", 1);
    cx_sha256_add(&hash, e->filter.subject.data, e->filter.subject.size);
    cx_digest digest = cx_sha256_end(&hash);
    cx_buf_printf(out, "subject sha256(%.*s:..) ", (int)e->salt.size, e->salt.data);
    cx_hex_add(out, cx_bytes_from(digest.bytes, sizeof digest.bytes));
}

static cx_status describe_filter(const erasing *e, cx_str *out, cx_err *err)
{
    const cx_erasure_filter *filter = &e->filter;
    cx_buf text;
    cx_str before = CX_STR("");
    const char *separator = "";
    if (filter->before_ns != CX_TIME_NONE)
        CX_TRY(add_time(e->arena, filter->before_ns, &before, err));
    cx_buf_init(&text, cx_alloc_default());
    if (filter->agent.data != NULL) {
        cx_buf_add_z(&text, "agent ");
        cx_buf_add_str(&text, filter->agent);
        separator = "; ";
    }
    if (filter->subject.data != NULL) {
        cx_buf_add_z(&text, separator);
        add_subject(e, &text);
        separator = "; ";
    }
    if (before.size != 0) {
        cx_buf_printf(&text, "%sbefore %.*s", separator, (int)before.size, before.data);
        separator = "; ";
    }
    for (size_t i = 0; i < filter->rule_count; i++) {
        cx_buf_printf(&text, "%s%s", separator, i == 0 ? "retention " : "");
        cx_buf_add_str(&text, filter->rules[i].text);
        separator = ", ";
    }
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(e->arena, cx_buf_str(&text));
        status = out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

static cx_status make_head(erasing *e, const cx_erasure_sums *sums, cx_erasure_head *out,
                           cx_err *err)
{
    uint8_t id[16];
    char hex[32];
    cx_buf list;
    cx_home *reader;
    cx_home_id(e->home, id);
    cx_hex_encode(cx_bytes_from(id, sizeof id), hex);
    cx_erasure_head head = {.home = cx_arena_copy_str(e->arena, cx_str_from(hex, sizeof hex)),
                            .request = e->request,
                            .from_commit = e->from.commit,
                            .from_frames = e->from.frames,
                            .by = e->filter.by,
                            .reason = e->filter.reason,
                            .held = sums->held,
                            .left = sums->left};
    if (head.home.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(describe_filter(e, &head.selected, err));
    CX_TRY(add_time(e->arena, e->requested_ns, &head.requested, err));
    CX_TRY(add_time(e->arena, wall_ns(e), &head.completed, err));
    CX_TRY(begin_reading(e, &reader, err));
    cx_buf_init(&list, cx_alloc_default());
    cx_status status =
        cx_erasure_list(reader, e->request, e->from, &list, &head.entries, &head.memories, err);
    end_reading(e, reader);
    if (!cx_failed(status))
        head.list = cx_digest_of(cx_buf_bytes(&list));
    cx_buf_done(&list);
    *out = head;
    return status;
}

static cx_status append_receipt(erasing *e, cx_txn *txn, const cx_erasure_head *head,
                                uint64_t *out_seq, bool *out_open, cx_err *err)
{
    uint64_t seq;
    bool unnamed;
    cx_buf text;
    CX_TRY(find_open(e, &seq, out_open, &unnamed, err));
    if (!*out_open || seq != e->request) { /* another process completed it meanwhile */
        *out_open = false;
        return CX_SUCCESS;
    }
    cx_buf_init(&text, cx_alloc_default());
    cx_erasure_head_write(head, &text);
    cx_status status = cx_buf_check(&text, err);
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_ERASURE_RECEIPT),
                                  .created_at_ns = wall_ns(e),
                                  .created_by = cx_str_bytes(e->filter.by),
                                  .payload = cx_buf_bytes(&text)};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, out_seq, err);
    cx_buf_done(&text);
    return status;
}

/* The receipt that another process recorded for the same request. */
static cx_status find_receipt(const erasing *e, cx_erasure_head *out, uint64_t *out_seq,
                              cx_err *err)
{
    uint64_t count;
    CX_TRY(count_requests(e->home, &count, err));
    for (uint64_t seq = e->request + 1; seq < count; seq++) {
        cx_entry_view view;
        cx_str rest;
        CX_TRY(cx_home_entry(e->home, CX_STR(CX_ERASURES_ACTOR), seq, e->arena, &view, err));
        if (!cx_kinds_is(view.entry.kind, CX_KIND_ERASURE_RECEIPT))
            continue;
        *out_seq = seq;
        return cx_erasure_head_read(cx_bytes_str(view.payload), out, &rest, err);
    }
    return fail_request(e->request, err);
}

static cx_status record_receipt(erasing *e, cx_erasure_head *head, uint64_t *out_seq, cx_err *err)
{
    cx_txn *txn;
    bool open = false;
    CX_TRY(cx_txn_begin(e->home, CX_STR(CX_ERASURES_ACTOR), &txn, err));
    cx_status status = append_receipt(e, txn, head, out_seq, &open, err);
    if (!cx_failed(status) && open)
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return cx_failed(status) ? status : find_receipt(e, head, out_seq, err);
}

/* R4: the payload of the request goes last. */
static cx_status forget_subject(erasing *e, uint64_t request, cx_err *err)
{
    char tag[CX_ERASURE_TAG_MAX];
    cx_memory *memories;
    cx_str reason = cx_erasure_tag(request, tag);
    const cx_memory_target target = {.seq = request};
    size_t held = 0;
    CX_TRY(cx_memory_open(e->home, CX_STR(CX_ERASURES_ACTOR), NULL, &memories, err));
    cx_status status =
        cx_memory_redact_many(memories, &target, 1, reason, e->filter.by, &held, err);
    cx_memory_close(memories);
    return cx_failed(status) ? status : cx_home_erase(e->home, CX_STR(CX_ERASURES_ACTOR), err);
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status complete_request(erasing *e, cx_erasure_result *out, cx_err *err)
{
    cx_erasure_plan plan;
    cx_home *reader;
    CX_TRY(begin_reading(e, &reader, err));
    cx_status status = cx_erasure_plan_begin(&plan, reader, &e->filter, e->request, e->arena, err);
    end_reading(e, reader);
    if (!cx_failed(status))
        status = erase_plan(e, &plan, err);
    out->sums = plan.sums;
    cx_erasure_plan_end(&plan);
    CX_TRY(status);
    out->request = e->request;
    CX_TRY(make_head(e, &out->sums, &out->head, err));
    CX_TRY(record_receipt(e, &out->head, &out->receipt, err));
    return e->filter.subject.data == NULL ? CX_SUCCESS : forget_subject(e, e->request, err);
}

static cx_status resume_request(erasing *e, cx_erasure_result *out, cx_err *err)
{
    uint64_t seq = 0;
    bool open = false, unnamed = false, there = false;
    out->nothing = true;
    CX_TRY(find_open(e, &seq, &open, &unnamed, err));
    if (unnamed || open)
        CX_TRY(read_request(e, seq, &there, err));
    if (there && unnamed && e->filter.subject.data != NULL)
        return forget_subject(e, seq, err);
    if (!there || !open)
        return CX_SUCCESS;
    out->nothing = false;
    out->resumed = true;
    return complete_request(e, out, err);
}

cx_status cx_erasure_resume(cx_home *home, const cx_erasure_reader *reader, cx_arena *arena,
                            cx_erasure_result *out, cx_err *err)
{
    erasing *e = CX_ARENA_NEW(arena, erasing);
    *out = (cx_erasure_result){.nothing = true};
    if (e == NULL)
        return cx_fail_nomem(err);
    *e = (erasing){.home = home, .reader = reader, .arena = arena};
    return resume_request(e, out, err);
}

static cx_status find_sums(const erasing *e, cx_erasure_sums *out, cx_err *err)
{
    cx_home *reader;
    CX_TRY(begin_reading(e, &reader, err));
    cx_status status = cx_erasure_plan_make(reader, &e->filter, e->arena, out, err);
    end_reading(e, reader);
    return status;
}

cx_status cx_erasure_run(cx_home *home, const cx_erasure_reader *reader,
                         const cx_erasure_filter *filter, cx_arena *arena, cx_erasure_result *out,
                         cx_err *err)
{
    bool open = false;
    CX_TRY(check_filter(filter, err));
    CX_TRY(cx_erasure_resume(home, reader, arena, out, err));
    if (out->resumed)
        return CX_SUCCESS;
    erasing *e = CX_ARENA_NEW(arena, erasing);
    if (e == NULL)
        return cx_fail_nomem(err);
    *e = (erasing){.home = home, .reader = reader, .arena = arena, .filter = *filter};
    CX_TRY(find_sums(e, &out->sums, err));
    out->nothing = out->sums.entries + out->sums.memories == 0;
    if (out->nothing)
        return CX_SUCCESS;
    if (filter->subject.data != NULL)
        CX_TRY(make_salt(e, err));
    e->from = (cx_position){cx_home_durable(home), 0};
    e->requested_ns = wall_ns(e);
    CX_TRY(record_request(e, &open, err));
    if (open)
        return cx_fail_at(err, CX_E_BUSY, "ErasureOpen", CX_NO_OFFSET,
                          "another erasure has begun meanwhile; try again");
    return complete_request(e, out, err);
}
