/*
 * api_read.c - the installed calls that read an actor's memories, and answer in JSON
 * (cortex/memory.h).
 */
#include "memory/handle.h"
#include "memory/internal.h"
#include "memory/view.h"

_Static_assert(CX_MEMORIES_LIMIT <= CX_FIND_LIMIT_MAX, "the default is allowed");

/* --- the frame of a call ---------------------------------------------------------------------- */

typedef cx_status reader(cx_memories *memories, const void *question, cx_json_list *answer,
                         cx_err *err);

/* Runs a reader with an arena, and returns the JSON object that it filled. */
static cx_status answer_as_json(cx_memories *memories, reader *read, const void *question,
                                cx_owned *out, cx_err *err)
{
    cx_arena arena;
    cx_buf text;
    cx_json value;
    cx_arena_init(&arena, memories->alloc, 0);
    cx_buf_init(&text, memories->alloc);
    cx_json_list answer = cx_json_list_begin(&arena);
    cx_status status = read(memories, question, &answer, err);
    if (!cx_failed(status))
        status = cx_json_list_end_object(&answer, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_owned_from_buf(&text, out, err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

static cx_status resolve_memory(cx_memories *memories, const char *text, cx_arena *arena,
                                cx_memory_view *out, cx_err *err)
{
    cx_str name;
    cx_id id;
    cx_uri uri;
    CX_TRY(cx_api_text(text, "a memory's name", &name, err));
    if (cx_ulid_parse(name, &id))
        return cx_memory_resolve_latest(memories->memory, &id, arena, out, err);
    CX_TRY(cx_memory_uri_parse(name, &uri, err));
    return cx_memory_resolve(memories->memory, &uri, arena, out, err);
}

static cx_status put_hits(cx_memories *memories, const cx_memory_hit *hits, size_t count, bool near,
                          cx_json_list *answer, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(answer->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list item = cx_json_list_begin(answer->arena);
        CX_TRY(cx_view_hit(&hits[i], near, &item, err));
        cx_json_add_object(&list, &item);
    }
    cx_json_put_str(answer, "actor", cx_api_actor_of(memories));
    cx_json_put_uint(answer, "count", count);
    cx_json_put_array(answer, "memories", &list);
    return CX_SUCCESS;
}

/* --- one memory ------------------------------------------------------------------------------- */

static cx_status read_one(cx_memories *memories, const void *question, cx_json_list *answer,
                          cx_err *err)
{
    cx_memory_view view;
    CX_TRY(resolve_memory(memories, question, answer->arena, &view, err));
    return cx_view_memory(&view, answer, err);
}

cx_status cx_memories_get(cx_memories *memories, const char *memory, cx_owned *out, cx_err *err)
{
    return answer_as_json(memories, read_one, memory, out, err);
}

cx_status cx_memories_get_data(cx_memories *memories, const char *memory, cx_owned *out,
                               cx_err *err)
{
    cx_arena arena;
    cx_buf bytes;
    cx_memory_view view;
    cx_arena_init(&arena, memories->alloc, 0);
    cx_buf_init(&bytes, memories->alloc);
    cx_status status = resolve_memory(memories, memory, &arena, &view, err);
    if (!cx_failed(status)) {
        cx_buf_add(&bytes, view.version.data.bytes.data, view.version.data.bytes.size);
        status = cx_buf_check(&bytes, err);
    }
    if (!cx_failed(status))
        status = cx_owned_from_buf(&bytes, out, err);
    cx_buf_done(&bytes);
    cx_arena_done(&arena);
    return status;
}

static cx_status read_history(cx_memories *memories, const void *question, cx_json_list *answer,
                              cx_err *err)
{
    cx_id id;
    cx_memory_view view;
    const uint64_t *seqs;
    size_t count;
    CX_TRY(cx_api_memory_id(question, &id, err));
    CX_TRY(cx_memory_resolve_latest(memories->memory, &id, answer->arena, &view, err));
    CX_TRY(cx_home_entries_about(memories->ledger->home, cx_api_actor_of(memories), &id,
                                 answer->arena, &seqs, &count, err));
    cx_json_list list = cx_json_list_begin(answer->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, cx_json_make_uint(answer->arena, seqs[i]));
    cx_json_put_str(answer, "actor", cx_api_actor_of(memories));
    cx_json_put_uint(answer, "count", count);
    cx_json_put_array(answer, "entries", &list);
    return CX_SUCCESS;
}

cx_status cx_memories_history(cx_memories *memories, const char *memory, cx_owned *out, cx_err *err)
{
    return answer_as_json(memories, read_history, memory, out, err);
}

/* --- many ------------------------------------------------------------------------------------- */

static cx_status read_list(cx_memories *memories, const void *question, cx_json_list *answer,
                           cx_err *err)
{
    const cx_memories_listing *listing = question;
    const cx_memory_view *views;
    size_t count, limit = listing->limit != 0 ? listing->limit : CX_MEMORIES_LIMIT;
    uint8_t type;
    cx_id after;
    CX_TRY(cx_api_word(listing->type, "type of memories", "InvalidType", cx_uri_type_code, false,
                       &type, err));
    if (listing->after != NULL && !cx_ulid_parse(cx_str_z(listing->after), &after))
        return cx_api_refuse(err, "found after '%.40s', expected a ULID", listing->after);
    CX_TRY(cx_memory_list(memories->memory, type, listing->with_tombstoned,
                          listing->after != NULL ? &after : NULL, limit, answer->arena, &views,
                          &count, err));
    cx_json_list list = cx_json_list_begin(answer->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list item = cx_json_list_begin(answer->arena);
        CX_TRY(cx_view_memory(&views[i], &item, err));
        cx_json_add_object(&list, &item);
    }
    cx_json_put_str(answer, "actor", cx_api_actor_of(memories));
    cx_json_put_uint(answer, "count", count);
    if (count == limit)
        cx_json_put_id(answer, "next_after", &views[count - 1].uri.id);
    else
        cx_json_put_null(answer, "next_after");
    cx_json_put_array(answer, "memories", &list);
    return CX_SUCCESS;
}

cx_status cx_memories_list(cx_memories *memories, const cx_memories_listing *listing, cx_owned *out,
                           cx_err *err)
{
    static const cx_memories_listing all = CX_MEMORIES_LISTING_INIT;
    return answer_as_json(memories, read_list, listing != NULL ? listing : &all, out, err);
}

static cx_status parse_types(const cx_memories_query *query, cx_arena *arena, cx_bytes *out,
                             cx_err *err)
{
    uint8_t *types = CX_ARENA_ARRAY(arena, uint8_t, query->type_count);
    if (types == NULL && query->type_count != 0)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < query->type_count; i++)
        CX_TRY(cx_api_word(query->types[i], "type of memories", "InvalidType", cx_uri_type_code,
                           true, &types[i], err));
    *out = cx_bytes_from(types, query->type_count);
    return CX_SUCCESS;
}

static cx_status parse_query(const cx_memories_query *query, cx_arena *arena, cx_id *from,
                             cx_memory_find *out, cx_err *err)
{
    *out = (cx_memory_find){
        .tag_count = query->tag_count,
        .near = query->near,
        .near_dim = query->near_dim,
        .limit = query->limit,
        .budget_tokens = query->budget_tokens,
        .with_tombstoned = query->with_tombstoned,
        .with_expired = query->with_expired,
        .late_binding = query->journal_as != NULL,
    };
    if (query->limit == 0 && query->budget_tokens == 0)
        out->limit = CX_MEMORIES_LIMIT;
    if ((query->frame_verb == NULL) != (query->frame_ref == NULL))
        return cx_api_refuse(err, "a frame's verb and its reference belong together");
    CX_TRY(parse_types(query, arena, &out->types, err));
    CX_TRY(cx_api_texts(query->tags, query->tag_count, "a tag", arena, &out->tags, err));
    CX_TRY(cx_api_word(query->frame_verb, "verb of a frame", "InvalidArgument", cx_verb_code, false,
                       &out->frame_verb, err));
    CX_TRY(cx_api_text_or(query->frame_ref, "frame_ref", CX_STR(""), &out->frame_ref, err));
    CX_TRY(cx_api_word(query->follow, "type of edges", "InvalidEdgeType", cx_uri_edge_type_code,
                       false, &out->follow, err));
    if (query->from != NULL) {
        CX_TRY(cx_api_memory_id(query->from, from, err));
        out->from = from;
    }
    CX_TRY(cx_api_text_or(query->field, "the field", CX_STR(""), &out->field, err));
    CX_TRY(cx_api_text_or(query->field_op, "the comparison", CX_STR(""), &out->field_op, err));
    CX_TRY(cx_api_text_or(query->field_value, "the value", CX_STR(""), &out->field_value, err));
    return cx_api_text_or(query->journal_as, "journal_as", CX_STR(""), &out->predicate, err);
}

static cx_status read_found(cx_memories *memories, const void *question, cx_json_list *answer,
                            cx_err *err)
{
    cx_id from;
    cx_memory_find find;
    const cx_memory_hit *hits;
    size_t count;
    CX_TRY(parse_query(question, answer->arena, &from, &find, err));
    CX_TRY(cx_memory_find_all(memories->memory, &find, answer->arena, &hits, &count, err));
    return put_hits(memories, hits, count, find.near != NULL, answer, err);
}

cx_status cx_memories_find(cx_memories *memories, const cx_memories_query *query, cx_owned *out,
                           cx_err *err)
{
    return answer_as_json(memories, read_found, query, out, err);
}

static cx_status read_context(cx_memories *memories, const void *question, cx_json_list *answer,
                              cx_err *err)
{
    const uint64_t *budget_tokens = question;
    const cx_memory_hit *hits;
    size_t count;
    CX_TRY(cx_memory_context(memories->memory, *budget_tokens, NULL, answer->arena, &hits, &count,
                             err));
    return put_hits(memories, hits, count, false, answer, err);
}

cx_status cx_memories_context(cx_memories *memories, uint64_t budget_tokens, cx_owned *out,
                              cx_err *err)
{
    return answer_as_json(memories, read_context, &budget_tokens, out, err);
}

/* --- edges ------------------------------------------------------------------------------------ */

typedef struct edge_question {
    const char *memory;
    const cx_memories_edge_query *query;
} edge_question;

static cx_status read_edges(cx_memories *memories, const void *question, cx_json_list *answer,
                            cx_err *err)
{
    const edge_question *asked = question;
    const cx_edge_view *edges;
    size_t count, limit = asked->query->limit != 0 ? asked->query->limit : CX_MEMORIES_LIMIT;
    uint8_t type;
    cx_id id;
    CX_TRY(cx_api_word(asked->query->type, "type of edges", "InvalidEdgeType",
                       cx_uri_edge_type_code, false, &type, err));
    CX_TRY(cx_api_memory_id(asked->memory, &id, err));
    CX_TRY(cx_memory_edges(memories->memory, &id, asked->query->to, type,
                           asked->query->with_removed, limit, answer->arena, &edges, &count, err));
    cx_json_list list = cx_json_list_begin(answer->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list item = cx_json_list_begin(answer->arena);
        cx_view_edge(&edges[i].edge, &item);
        cx_json_add_object(&list, &item);
    }
    cx_json_put_str(answer, "actor", cx_api_actor_of(memories));
    cx_json_put_uint(answer, "count", count);
    cx_json_put_array(answer, "edges", &list);
    return CX_SUCCESS;
}

cx_status cx_memories_edges(cx_memories *memories, const char *memory,
                            const cx_memories_edge_query *query, cx_owned *out, cx_err *err)
{
    static const cx_memories_edge_query all = CX_MEMORIES_EDGE_QUERY_INIT;
    const edge_question question = {memory, query != NULL ? query : &all};
    return answer_as_json(memories, read_edges, &question, out, err);
}

typedef struct walk_question {
    const char *memory;
    unsigned depth_max;
    bool backwards;
} walk_question;

static cx_status put_step(cx_memories *memories, const cx_memory_step *step, cx_json_list *steps,
                          cx_err *err)
{
    cx_memory_view view;
    CX_TRY(cx_memory_resolve_latest(memories->memory, &step->id, steps->arena, &view, err));
    cx_json_list item = cx_json_list_begin(steps->arena);
    cx_json_put_uint(&item, "depth", step->depth);
    if (step->by_type == 0) {
        cx_json_put_null(&item, "by");
        cx_json_put_null(&item, "from");
    } else {
        cx_json_put_str(&item, "by", cx_uri_edge_type_name(step->by_type));
        cx_json_put_id(&item, "from", &step->reached_from);
    }
    cx_json_put_id(&item, "id", &step->id);
    cx_json_put_str(&item, "short", view.head.forms.brief);
    cx_json_put_uri(&item, "uri", &view.uri);
    cx_json_add_object(steps, &item);
    return CX_SUCCESS;
}

static cx_status read_walk(cx_memories *memories, const void *question, cx_json_list *answer,
                           cx_err *err)
{
    const walk_question *asked = question;
    const cx_memory_step *steps;
    size_t count;
    bool cut;
    cx_id id;
    CX_TRY(cx_api_memory_id(asked->memory, &id, err));
    CX_TRY(cx_memory_walk(memories->memory, &id, asked->depth_max, asked->backwards, answer->arena,
                          &steps, &count, &cut, err));
    cx_json_list list = cx_json_list_begin(answer->arena);
    for (size_t i = 0; i < count; i++)
        CX_TRY(put_step(memories, &steps[i], &list, err));
    cx_json_put_str(answer, "actor", cx_api_actor_of(memories));
    cx_json_put_bool(answer, "cut", cut);
    cx_json_put_array(answer, "steps", &list);
    return CX_SUCCESS;
}

cx_status cx_memories_walk(cx_memories *memories, const char *memory, unsigned depth_max,
                           bool backwards, cx_owned *out, cx_err *err)
{
    const walk_question question = {memory, depth_max, backwards};
    return answer_as_json(memories, read_walk, &question, out, err);
}

/* --- compaction: it writes, but what it is about is the answer -------------------------------- */

static cx_status parse_uris(cx_memories *memories, const char *const *texts, size_t count,
                            cx_arena *arena, const cx_uri **out, cx_err *err)
{
    cx_uri *uris = CX_ARENA_ARRAY(arena, cx_uri, count);
    if (uris == NULL && count != 0)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(cx_api_memory(memories, texts[i], arena, &uris[i], err));
    *out = uris;
    return CX_SUCCESS;
}

static cx_status put_compacted(cx_memories *memories, const cx_checkpoint_record *record,
                               cx_json_list *answer, cx_err *err)
{
    cx_buf uri;
    cx_json_list list = cx_json_list_begin(answer->arena);
    for (size_t i = 0; i < record->compacted_count; i++) {
        cx_json_list item = cx_json_list_begin(answer->arena);
        cx_json_put_float(&item, "salience", record->compacted[i].salience);
        cx_json_put_str(&item, "short", record->compacted[i].brief);
        cx_json_put_str(&item, "uri", record->compacted[i].uri);
        cx_json_add_object(&list, &item);
    }
    cx_buf_init(&uri, answer->arena->alloc);
    cx_compact_uri_add(record->intent, record->step, &uri);
    cx_str kept = cx_arena_copy_str(answer->arena, cx_buf_str(&uri));
    bool failed = uri.failed || kept.data == NULL;
    cx_buf_done(&uri);
    if (failed)
        return cx_fail_nomem(err);
    cx_json_put_str(answer, "actor", cx_api_actor_of(memories));
    cx_json_put_uint(answer, "budget", record->budget);
    cx_json_put_strs(answer, "kept", record->kept, record->kept_count);
    cx_json_put_str(answer, "uri", kept);
    cx_json_put_array(answer, "compacted", &list);
    return CX_SUCCESS;
}

static cx_status compact_context(cx_memories *memories, const void *question, cx_json_list *answer,
                                 cx_err *err)
{
    const cx_memories_compaction *asked = question;
    cx_checkpoint_record record;
    cx_memory_compact inner = {
        .in_context_count = asked->in_context_count,
        .load_bearing_count = asked->load_bearing_count,
        .budget = asked->budget_tokens,
    };
    CX_TRY(cx_api_text(asked->intent, "the intent", &inner.intent, err));
    CX_TRY(cx_api_text(asked->step, "the step", &inner.step, err));
    CX_TRY(parse_uris(memories, asked->in_context, asked->in_context_count, answer->arena,
                      &inner.in_context, err));
    CX_TRY(parse_uris(memories, asked->load_bearing, asked->load_bearing_count, answer->arena,
                      &inner.load_bearing, err));
    CX_TRY(cx_memory_compact_context(memories->memory, &inner, answer->arena, &record, err));
    return put_compacted(memories, &record, answer, err);
}

cx_status cx_memories_compact(cx_memories *memories, const cx_memories_compaction *compaction,
                              cx_owned *out, cx_err *err)
{
    return answer_as_json(memories, compact_context, compaction, out, err);
}
