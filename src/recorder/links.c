/*
 * links.c - reads a log for links between traces, memories, runs and commits.
 *
 *   I1  One pass in log order: a batch's entry comes after its traces, so that a trace waits in
 *       `pending` until its batch is read.
 *   I2  An entry that does not decode has no links; it is not an error of the data directory.
 *   I3  Erased content has no links.
 */
#include "recorder/links.h"

#include "base/api.h"
#include "crypto/api.h"
#include "proof/api.h"
#include "recorder/internal.h"
#include "rules/api.h"
#include "bundle/api.h"

#define PENDING_MAX 65536 /* traces whose batch was not read yet; the oldest are dropped */

typedef struct pending {
    cx_str trace_id; /* in the arena of the links */
    cx_str actor;
    uint64_t seq;
    uint8_t batch[CX_TRACE_BATCH_ID_SIZE];
} pending;

/* Links form two chains, one by where they begin and one by where they end; 0 = none. */
typedef struct slot {
    cx_link link;
    uint32_t next_from, next_to;
} slot;

struct cx_links {
    cx_home *home;
    const cx_alloc *alloc;
    cx_arena arena;
    cx_position at;
    CX_VEC(slot) slots;       /* the first is never used */
    cx_map first[2], last[2]; /* of the chains: from, to */
    CX_VEC(pending) waiting;
};

#define URI_PREFIX(text)         \
    {                            \
        (text), sizeof(text) - 1 \
    }

static const cx_prov_kind_info kinds[CX_PROV_KIND_COUNT] = {
    [CX_PROV_NONE] = {.name = "none"},
    [CX_PROV_MEMORY] = {.name = "memory",
                        .screen = "evidence",
                        .has_why = true,
                        .has_evidence = true},
    [CX_PROV_EDGE] = {.name = "edge"},
    [CX_PROV_TRACE] = {.name = "trace",
                       .uri_prefix = URI_PREFIX("cortex://trace/"),
                       .screen = "trace",
                       .has_why = true,
                       .has_evidence = true},
    [CX_PROV_RUN] = {.name = "run",
                     .uri_prefix = URI_PREFIX("cortex://run/"),
                     .screen = "run",
                     .has_why = true,
                     .has_evidence = true},
    [CX_PROV_EVENT] = {.name = "event", .screen = "run", .has_why = true},
    [CX_PROV_COMMIT] = {.name = "commit", .has_why = true, .has_evidence = true},
    [CX_PROV_ENTRY] = {.name = "entry", .screen = "evidence", .has_why = true},
    [CX_PROV_SNAPSHOT] = {.name = "snapshot", .screen = "evidence"},
    [CX_PROV_JOURNAL] = {.name = "journal", .screen = "evidence"},
    [CX_PROV_NODE] = {.name = "node", .screen = "debugger", .has_why = true},
    [CX_PROV_KEY] = {.name = "key"},
    [CX_PROV_ACTOR] = {.name = "actor"},
    [CX_PROV_LINE] = {.name = "line"},
};

const cx_prov_kind_info *cx_prov_kind_info_of(cx_prov_kind kind)
{
    CX_ASSERT(kind < CX_PROV_KIND_COUNT);
    return &kinds[kind];
}

const char *cx_prov_kind_name(cx_prov_kind kind)
{
    return cx_prov_kind_info_of(kind)->name;
}

bool cx_prov_of_uri(cx_str uri, cx_prov_kind *out_kind, cx_str *out_id)
{
    cx_uri parsed;
    for (unsigned kind = 0; kind < CX_PROV_KIND_COUNT; kind++) {
        cx_str prefix = kinds[kind].uri_prefix;
        if (prefix.data == NULL || !cx_str_starts(uri, prefix))
            continue;
        *out_kind = (cx_prov_kind)kind;
        *out_id = cx_str_from(uri.data + prefix.size, uri.size - prefix.size);
        return kind == CX_PROV_RUN ? cx_run_id_valid(*out_id)
                                   : out_id->size != 0 && out_id->size <= CX_TRACE_ID_BYTES_MAX;
    }
    if (cx_failed(cx_uri_parse(uri, &parsed, NULL)))
        return false;
    *out_kind = parsed.is_edge ? CX_PROV_EDGE : CX_PROV_MEMORY;
    *out_id = uri;
    return true;
}

/* The size of the URI at `at`. */
static size_t uri_size(const char *at, const char *end)
{
    const char *stop = at;
    while (stop != end && *stop > ' ' && *stop < 127 && strchr("\"\\<>{}|^`'(),;", *stop) == NULL)
        stop++;
    while (stop != at && strchr(".:?", stop[-1]) != NULL)
        stop--;
    return (size_t)(stop - at);
}

bool cx_prov_next_uri(cx_str *text, cx_prov_kind *out_kind, cx_str *out_id)
{
    const char *start = text->data, *at = start, *end = start + text->size;
    while (text->size != 0 && (at = memmem(at, (size_t)(end - at), "://", 3)) != NULL) {
        const char *scheme = at - 6;
        bool ours = at - start >= 6 &&
                    (memcmp(scheme, "cortex", 6) == 0 || memcmp(scheme, "matrix", 6) == 0);
        at += 3;
        if (!ours)
            continue;
        size_t size = uri_size(scheme, end);
        if (!cx_prov_of_uri(cx_str_from(scheme, size), out_kind, out_id))
            continue;
        *text = cx_str_from(at, (size_t)(end - at));
        return true;
    }
    return false;
}

/* --- the chains ------------------------------------------------------------------------------- */

/* The key of an object in the maps: a memory's is without its version. */
static cx_str name_of(cx_prov_kind kind, cx_str id, char storage[2 + CX_ACTOR_SIZE_MAX + 64])
{
    cx_uri uri;
    size_t size = 0;
    storage[size++] = (char)('A' + kind);
    if (kind == CX_PROV_MEMORY && !cx_failed(cx_uri_parse(id, &uri, NULL))) {
        cx_ulid_format(&uri.id, storage + size);
        return cx_str_from(storage, size + CX_ULID_SIZE);
    }
    size_t space = 2 + CX_ACTOR_SIZE_MAX + 64 - size;
    size_t used =
        id.size < space ? id.size : space; /* ids are shorter: what is cut matches nothing */
    memcpy(storage + size, id.data, used);
    return cx_str_from(storage, size + used);
}

static cx_status append_to_chain(cx_links *links, unsigned side, cx_str name, uint32_t place,
                                 cx_err *err)
{
    uint64_t *last = cx_map_find(&links->last[side], name);
    bool is_new;
    if (last != NULL) {
        slot *before = &links->slots.items[*last];
        *(side == 0 ? &before->next_from : &before->next_to) = place;
        *last = place;
        return CX_SUCCESS;
    }
    cx_str stored = cx_arena_copy_str(&links->arena, name);
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_map_put(&links->first[side], stored, &last, &is_new, err));
    *last = place;
    CX_TRY(cx_map_put(&links->last[side], stored, &last, &is_new, err));
    *last = place;
    return CX_SUCCESS;
}

static cx_status add_link(cx_links *links, const cx_link *link, cx_err *err)
{
    char name[2 + CX_ACTOR_SIZE_MAX + 64];
    if (links->slots.count > CX_LINKS_MAX)
        return cx_fail(err, CX_E_LIMIT, "the data directory has more than %d links", CX_LINKS_MAX);
    uint32_t place = (uint32_t)links->slots.count;
    slot *made = cx_vec_push(&links->slots, links->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (slot){.link = *link};
    made->link.from = cx_arena_copy_str(&links->arena, link->from);
    made->link.to = cx_arena_copy_str(&links->arena, link->to);
    made->link.actor = cx_arena_copy_str(&links->arena, link->actor);
    if (made->link.from.data == NULL || made->link.to.data == NULL || made->link.actor.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(append_to_chain(links, 0, name_of(link->from_kind, link->from, name), place, err));
    return append_to_chain(links, 1, name_of(link->to_kind, link->to, name), place, err);
}

static cx_status collect_links(const cx_links *links, unsigned side, cx_prov_kind kind, cx_str id,
                               cx_arena *arena, const cx_link ***out, size_t *out_count,
                               cx_err *err)
{
    char name[2 + CX_ACTOR_SIZE_MAX + 64];
    const uint64_t *first = cx_map_find(&links->first[side], name_of(kind, id, name));
    size_t count = 0, at = 0;
    for (uint32_t i = first == NULL ? 0 : (uint32_t)*first; i != 0; count++)
        i = side == 0 ? links->slots.items[i].next_from : links->slots.items[i].next_to;
    const cx_link **list = CX_ARENA_ARRAY(arena, const cx_link *, count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = first == NULL ? 0 : (uint32_t)*first; i != 0;) {
        list[at++] = &links->slots.items[i].link;
        i = side == 0 ? links->slots.items[i].next_from : links->slots.items[i].next_to;
    }
    *out = list;
    *out_count = count;
    return CX_SUCCESS;
}

cx_status cx_links_from(const cx_links *links, cx_prov_kind kind, cx_str id, cx_arena *arena,
                        const cx_link ***out, size_t *out_count, cx_err *err)
{
    return collect_links(links, 0, kind, id, arena, out, out_count, err);
}

cx_status cx_links_to(const cx_links *links, cx_prov_kind kind, cx_str id, cx_arena *arena,
                      const cx_link ***out, size_t *out_count, cx_err *err)
{
    return collect_links(links, 1, kind, id, arena, out, out_count, err);
}

/* --- traces ----------------------------------------------------------------------------------- */

/* "run_YYYYMMDD_HHMMSS_" and 32 hex digits: what this program calls runs.  Others are found by
 * their URI alone. */
static bool is_made_id(cx_str id)
{
    uint8_t random[16];
    for (size_t i = 4; i < 19; i++)
        if (i == 12 ? id.data[i] != '_' : id.data[i] < '0' || id.data[i] > '9')
            return false;
    return id.data[19] == '_' && cx_hex_decode(cx_str_from(id.data + 20, 32), random, 16);
}

/* A link to `to` unless the same one is there already. */
static cx_status add_mention(cx_links *links, cx_link *link, size_t *left, size_t from, cx_err *err)
{
    for (size_t i = from; i < links->slots.count; i++) {
        const cx_link *before = &links->slots.items[i].link;
        if (before->to_kind == link->to_kind && cx_str_eq(before->to, link->to))
            return CX_SUCCESS;
    }
    if (*left == 0)
        return CX_SUCCESS;
    --*left;
    return add_link(links, link, err);
}

static cx_status read_mentions(cx_links *links, cx_link *link, cx_str text, cx_err *err)
{
    static const char run_word[] = "run_";
    const char *end = text.data + text.size, *at;
    cx_str rest = text;
    size_t left = CX_LINKS_PER_ENTRY_MAX, from = links->slots.count;
    link->relation = "mentions";
    link->ground = CX_LINK_INSIDE;
    while (cx_prov_next_uri(&rest, &link->to_kind, &link->to))
        CX_TRY(add_mention(links, link, &left, from, err));
    at = text.data;
    while ((at = memmem(at, (size_t)(end - at), run_word, 4)) != NULL) {
        cx_str id = cx_str_from(at, CX_RUN_ID_SIZE - 1);
        at += 4;
        if ((size_t)(end - id.data) < id.size || !is_made_id(id))
            continue;
        link->to_kind = CX_PROV_RUN;
        link->to = id;
        CX_TRY(add_mention(links, link, &left, from, err));
    }
    return CX_SUCCESS;
}

static const cx_change *change_under(const cx_tail_item *item, cx_str prefix)
{
    for (size_t i = 0; i < item->change_count; i++)
        if (cx_str_starts(cx_bytes_str(item->changes[i].key), prefix) &&
            !item->changes[i].removed && !item->changes[i].erased)
            return &item->changes[i];
    return NULL;
}

static cx_status wait_for_batch(cx_links *links, const cx_tail_item *item, cx_str trace_id,
                                const cx_trace_record *record, cx_err *err)
{
    static const uint8_t none[CX_TRACE_BATCH_ID_SIZE];
    if (memcmp(record->batch, none, sizeof none) == 0)
        return CX_SUCCESS;
    if (links->waiting.count == PENDING_MAX)
        links->waiting.count = 0;
    pending *made = cx_vec_push(&links->waiting, links->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (pending){.trace_id = cx_arena_copy_str(&links->arena, trace_id),
                      .actor = cx_arena_copy_str(&links->arena, item->actor),
                      .seq = item->entry.seq};
    memcpy(made->batch, record->batch, sizeof made->batch);
    return made->trace_id.data == NULL || made->actor.data == NULL ? cx_fail_nomem(err)
                                                                   : CX_SUCCESS;
}

/* The record's key, trace/<level>/<trace_id>, contains the id. */
static cx_status link_trace(cx_links *links, const cx_tail_item *item, cx_err *err)
{
    const cx_change *change = change_under(item, CX_STR("trace/"));
    cx_trace_record record;
    if (change == NULL || change->key.size <= 8 ||
        cx_failed(cx_trace_record_decode(change->value, &record, NULL)))
        return CX_SUCCESS; /* I2 */
    cx_str trace_id = {(const char *)change->key.data + 8, change->key.size - 8};
    cx_link link = {
        .from_kind = CX_PROV_TRACE, .from = trace_id, .actor = item->actor, .seq = item->entry.seq};
    CX_TRY(wait_for_batch(links, item, trace_id, &record, err));
    return item->erased ? CX_SUCCESS /* I3 */
                        : read_mentions(links, &link, cx_bytes_str(item->payload), err);
}

static cx_status link_batch(cx_links *links, const cx_tail_item *item, cx_arena *arena, cx_err *err)
{
    cx_json batch;
    uint8_t id[CX_TRACE_BATCH_ID_SIZE];
    size_t stored = 0;
    if (item->erased ||
        cx_failed(cx_json_parse_text(cx_bytes_str(item->payload), arena, &batch, NULL)))
        return CX_SUCCESS;
    cx_str text = CX_JSON_GET_STR(&batch, "batch_id");
    const cx_json *metadata = CX_JSON_GET(&batch, "correlation_metadata");
    cx_str run = metadata == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(metadata, "run_id");
    if (!cx_hex_decode(text, id, sizeof id))
        return CX_SUCCESS;
    for (size_t i = 0; i < links->waiting.count; i++) {
        const pending *trace = &links->waiting.items[i];
        if (memcmp(trace->batch, id, sizeof id) != 0) {
            links->waiting.items[stored++] = *trace;
            continue;
        }
        const cx_link link = {.from_kind = CX_PROV_TRACE,
                              .to_kind = CX_PROV_RUN,
                              .from = trace->trace_id,
                              .to = run,
                              .relation = "performed_in",
                              .ground = CX_LINK_STATED,
                              .actor = item->actor,
                              .seq = item->entry.seq};
        if (cx_run_id_valid(run))
            CX_TRY(add_link(links, &link, err));
    }
    links->waiting.count = stored;
    return CX_SUCCESS;
}

/* --- memories and runs ------------------------------------------------------------------------ */

static cx_status link_memory(cx_links *links, const cx_tail_item *item, cx_arena *arena,
                             cx_err *err)
{
    const cx_change *change = change_under(item, CX_STR("mv/"));
    cx_version_record version;
    cx_buf uri;
    if (change == NULL || cx_failed(cx_version_decode(change->value, arena, &version, NULL)) ||
        version.erased)
        return CX_SUCCESS;
    const cx_uri name = {.type = version.type, .id = version.id, .version = version.version};
    cx_buf_init(&uri, links->alloc);
    cx_uri_add(&name, &uri);
    cx_link link = {.from_kind = CX_PROV_MEMORY,
                    .from = cx_buf_str(&uri),
                    .relation = "derived_from",
                    .ground = CX_LINK_INSIDE,
                    .actor = item->actor,
                    .seq = item->entry.seq};
    cx_status status = cx_buf_check(&uri, err);
    for (size_t i = 0; !cx_failed(status) && i < version.provenance.derived_count; i++)
        if (cx_prov_of_uri(version.provenance.derived_from[i], &link.to_kind, &link.to))
            status = add_link(links, &link, err);
    cx_buf_done(&uri);
    return status;
}

static cx_status link_seal(cx_links *links, const cx_tail_item *item, cx_arena *arena, cx_err *err)
{
    cx_json seal;
    if (item->erased ||
        cx_failed(cx_run_json_read(cx_bytes_str(item->payload), 0, arena, &seal, NULL)))
        return CX_SUCCESS;
    cx_link link = {.from_kind = CX_PROV_RUN,
                    .to_kind = CX_PROV_COMMIT,
                    .from = CX_JSON_GET_STR(&seal, "run_id"),
                    .to = CX_JSON_GET_STR(&seal, "final_commit"),
                    .relation = "ended_at",
                    .ground = CX_LINK_INSIDE,
                    .actor = item->actor,
                    .seq = item->entry.seq};
    return cx_run_id_valid(link.from) && link.to.size >= 40 ? add_link(links, &link, err)
                                                            : CX_SUCCESS;
}

static cx_status link_frame(cx_links *links, const cx_tail_item *item, cx_arena *arena, cx_err *err)
{
    if (!item->has_entry)
        return CX_SUCCESS;
    cx_str kind = item->entry.kind;
    if (cx_str_is(kind, "trace.received"))
        return link_trace(links, item, err);
    if (cx_str_is(kind, "trace.batch"))
        return link_batch(links, item, arena, err);
    if (cx_str_is(kind, "write") || cx_str_is(kind, "update"))
        return link_memory(links, item, arena, err);
    return cx_str_is(kind, "run.seal") ? link_seal(links, item, arena, err) : CX_SUCCESS;
}

/* --- public interface ------------------------------------------------------------------------- */

cx_status cx_links_refresh(cx_links *links, cx_err *err)
{
    cx_tail *tail = NULL;
    cx_tail_item item;
    cx_arena arena;
    cx_status status;
    bool end = false;
    cx_arena_init(&arena, links->alloc, 0);
    CX_TRY_GOTO(status, cx_tail_begin(links->home, links->at, &tail, err));
    for (;;) {
        CX_TRY_GOTO(status, cx_tail_next(tail, &item, &end, err));
        if (end)
            break;
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        CX_TRY_GOTO(status, link_frame(links, &item, &arena, err));
        links->at = item.position_after;
        cx_arena_reset(&arena, mark);
    }
done:
    cx_tail_end(tail);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_links_open(cx_home *home, const cx_alloc *alloc, cx_links **out, cx_err *err)
{
    alloc = alloc == NULL ? cx_alloc_default() : alloc;
    cx_links *links = cx_alloc_zeroed(alloc, 1, sizeof *links);
    if (links == NULL)
        return cx_fail_nomem(err);
    links->home = home;
    links->alloc = alloc;
    cx_arena_init(&links->arena, alloc, 0);
    for (unsigned side = 0; side < 2; side++) {
        cx_map_init(&links->first[side], alloc, cx_io_seed(cx_home_io(home)));
        cx_map_init(&links->last[side], alloc, cx_io_seed(cx_home_io(home)));
    }
    slot *unused = cx_vec_push(&links->slots, alloc);
    if (unused != NULL)
        memset(unused, 0, sizeof *unused);
    cx_status status = unused == NULL ? cx_fail_nomem(err) : cx_links_refresh(links, err);
    if (cx_failed(status)) {
        cx_links_close(links);
        return status;
    }
    *out = links;
    return CX_SUCCESS;
}

void cx_links_close(cx_links *links)
{
    if (links == NULL)
        return;
    for (unsigned side = 0; side < 2; side++) {
        cx_map_done(&links->first[side]);
        cx_map_done(&links->last[side]);
    }
    cx_vec_done(&links->slots, links->alloc);
    cx_vec_done(&links->waiting, links->alloc);
    cx_arena_done(&links->arena);
    cx_alloc_free(links->alloc, links, sizeof *links);
}
