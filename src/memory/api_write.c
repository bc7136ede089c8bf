/*
 * api_write.c - the installed calls that open and change an actor's memories (cortex/memory.h).
 */
#include "base/api.h"
#include "memory/handle.h"

_Static_assert(CX_URI_TEXT_SIZE > 16 + 5 + 2 * CX_ULID_SIZE + 2 + 32, "the longest URI fits");

/* --- names and words -------------------------------------------------------------------------- */

cx_status cx_api_memory_id(const char *text, cx_id *out, cx_err *err)
{
    cx_str name;
    cx_uri uri;
    CX_TRY(cx_api_text(text, "a memory's name", &name, err));
    if (cx_ulid_parse(name, out))
        return CX_SUCCESS;
    CX_TRY(cx_memory_uri_parse(name, &uri, err));
    *out = uri.id;
    return CX_SUCCESS;
}

cx_status cx_api_memory(cx_memories *memories, const char *text, cx_arena *arena, cx_uri *out,
                        cx_err *err)
{
    cx_str name;
    cx_id id;
    cx_memory_view view;
    CX_TRY(cx_api_text(text, "a memory's name", &name, err));
    if (!cx_ulid_parse(name, &id))
        return cx_memory_uri_parse(name, out, err);
    CX_TRY(cx_memory_resolve_latest(memories->memory, &id, arena, &view, err));
    *out = view.uri;
    return CX_SUCCESS;
}

cx_status cx_api_word(const char *text, const char *what, const char *tag,
                      uint8_t (*code)(cx_str name), bool needed, uint8_t *out, cx_err *err)
{
    *out = 0;
    if (text == NULL && !needed)
        return CX_SUCCESS;
    if (text == NULL)
        return cx_fail_at(err, CX_E_USAGE, tag, CX_NO_OFFSET, "%smust be set, found NULL", what);
    *out = code(cx_str_z(text));
    if (*out == 0)
        return cx_fail_at(err, CX_E_USAGE, tag, CX_NO_OFFSET, "unknown %s '%.40s'", what, text);
    return CX_SUCCESS;
}

cx_status cx_api_texts(const char *const *texts, size_t count, const char *what, cx_arena *arena,
                       const cx_str **out, cx_err *err)
{
    cx_str *taken = CX_ARENA_ARRAY(arena, cx_str, count);
    if (taken == NULL && count != 0)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(cx_api_text(texts[i], what, &taken[i], err));
    *out = taken;
    return CX_SUCCESS;
}

static void copy_uri_text(const cx_uri *uri, cx_uri_text *out)
{
    uint8_t storage[CX_URI_TEXT_SIZE];
    cx_alloc none = {0};
    cx_buf text = {.alloc = &none, .data = storage, .capacity = sizeof storage};
    cx_uri_add(uri, &text);
    memcpy(out->text, storage, text.size);
    out->text[text.size] = 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status ask_caller_for_id(void *arg, cx_id *out, cx_err *err)
{
    cx_memories *memories = arg;
    if (!memories->new_id(memories->new_id_arg, out->bytes))
        return cx_fail(err, CX_E_IO, "the caller's id function returned no id");
    return CX_SUCCESS;
}

static cx_status open_memory(cx_memories *memories, const cx_memories_options *options, cx_err *err)
{
    cx_memory_options inner = {
        .alloc = memories->alloc, .now_ns = options->now_ns, .now_arg = options->now_arg};
    inner.has_scheme = options->scheme != NULL;
    CX_TRY(cx_api_scheme(options->scheme, &inner.scheme, err));
    if (options->new_id != NULL) {
        inner.new_id = ask_caller_for_id;
        inner.new_id_arg = memories;
    }
    return cx_memory_open(memories->ledger->home, cx_api_actor_of(memories), &inner,
                          &memories->memory, err);
}

cx_status cx_memories_open(cx_ledger *ledger, const char *actor, const cx_memories_options *options,
                           cx_memories **out, cx_err *err)
{
    static const cx_memories_options no_options = CX_MEMORIES_OPTIONS_INIT;
    cx_str name;
    if (options == NULL)
        options = &no_options;
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : ledger->alloc;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    if (!cx_actor_ok(name))
        return cx_api_refuse(err, "an actor's name is 1 to %d bytes without '/' and controls",
                             CX_ACTOR_NAME_MAX);
    cx_memories *memories = cx_alloc_zeroed(alloc, 1, sizeof *memories);
    if (memories == NULL)
        return cx_fail_nomem(err);
    memories->alloc = alloc;
    memories->ledger = ledger;
    memories->new_id = options->new_id;
    memories->new_id_arg = options->new_id_arg;
    memories->actor_size = name.size;
    memcpy(memories->actor, name.data, name.size);
    cx_status status = open_memory(memories, options, err);
    if (cx_failed(status)) {
        cx_memories_close(memories);
        return status;
    }
    *out = memories;
    return CX_SUCCESS;
}

void cx_memories_close(cx_memories *memories)
{
    if (memories == NULL)
        return;
    cx_memory_close(memories->memory);
    cx_alloc_free(memories->alloc, memories, sizeof *memories);
}

/* --- what writes take ------------------------------------------------------------------------- */

/* The CBOR of a type's data, from either form. */
static cx_status encode_content_data(const cx_memories_content *content, uint8_t type,
                                     cx_arena *arena, cx_bytes *out, cx_err *err)
{
    cx_json json;
    cx_data data;
    cx_buf bytes;
    if (content->data.size != 0 && content->data_cbor.size != 0)
        return cx_api_refuse(err, "the data is given twice, as JSON and as CBOR");
    if (content->data.size == 0) {
        *out = content->data_cbor;
        return CX_SUCCESS;
    }
    CX_TRY(cx_json_parse_text(content->data, arena, &json, err));
    CX_TRY(cx_data_from_json(type, &json, arena, &data, err));
    CX_TRY(cx_data_check(&data, err));
    cx_buf_init(&bytes, arena->alloc);
    cx_data_encode(&data, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    cx_str kept = cx_arena_copy_str(arena, cx_buf_str(&bytes));
    if (!cx_failed(status) && kept.data == NULL)
        status = cx_fail_nomem(err);
    cx_buf_done(&bytes);
    *out = cx_str_bytes(kept);
    return status;
}

typedef struct parsed_content {
    cx_bytes data;
    cx_provenance provenance;
    cx_forms forms;
    const cx_forms *given_forms; /* NULL, or &forms */
    cx_str by;
} parsed_content;

static cx_status parse_content(const cx_memories_content *from, uint8_t type, cx_arena *arena,
                               parsed_content *out, cx_err *err)
{
    *out = (parsed_content){.data = {NULL, 0}};
    CX_TRY(encode_content_data(from, type, arena, &out->data, err));
    CX_TRY(cx_api_text_or(from->source, "the source", CX_STR(""), &out->provenance.source, err));
    out->provenance.derived_count = from->derived_from_count;
    out->provenance.attestation_count = from->attestation_count;
    CX_TRY(cx_api_texts(from->derived_from, from->derived_from_count, "derived_from", arena,
                        &out->provenance.derived_from, err));
    CX_TRY(cx_api_texts(from->attestations, from->attestation_count, "an attestation", arena,
                        &out->provenance.attestations, err));
    CX_TRY(cx_api_text_or(from->by, "by", CX_STR(""), &out->by, err));
    if ((from->brief == NULL) != (from->medium == NULL))
        return cx_api_refuse(err, "brief and medium forms belong together");
    if (from->brief == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_api_text(from->brief, "the brief form", &out->forms.brief, err));
    CX_TRY(cx_api_text(from->medium, "the medium form", &out->forms.medium, err));
    out->given_forms = &out->forms;
    return CX_SUCCESS;
}

typedef struct parsed_labels {
    const cx_str *tags;
    const cx_frame *frames;
    uint8_t importance;
    uint8_t visibility;
} parsed_labels;

static cx_status parse_frames(const cx_memories_labels *from, cx_arena *arena, const cx_frame **out,
                              cx_err *err)
{
    cx_frame *frames = CX_ARENA_ARRAY(arena, cx_frame, from->frame_count);
    if (frames == NULL && from->frame_count != 0)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < from->frame_count; i++) {
        const cx_memories_frame *frame = &from->frames[i];
        CX_TRY(cx_api_word(frame->verb, "verb of a frame", "InvalidArgument", cx_verb_code, true,
                           &frames[i].verb, err));
        CX_TRY(cx_api_word(frame->kind, "kind of a frame", "InvalidArgument", cx_kind_code, true,
                           &frames[i].kind, err));
        CX_TRY(cx_api_text(frame->ref, "what a frame refers to", &frames[i].ref, err));
    }
    *out = frames;
    return CX_SUCCESS;
}

static cx_status parse_labels(const cx_memories_labels *from, cx_arena *arena, parsed_labels *out,
                              cx_err *err)
{
    if (from->importance > CX_IMPORTANCE_MAX)
        return cx_api_refuse(err, "importance %u, expected 0 to %d", from->importance,
                             CX_IMPORTANCE_MAX);
    out->importance = (uint8_t)from->importance;
    CX_TRY(cx_api_word(from->visibility, "visibility", "InvalidArgument", cx_visibility_code, false,
                       &out->visibility, err));
    CX_TRY(cx_api_texts(from->tags, from->tag_count, "a tag", arena, &out->tags, err));
    return parse_frames(from, arena, &out->frames, err);
}

/* --- versions --------------------------------------------------------------------------------- */

static cx_status write_in(cx_memories *memories, const cx_memories_draft *draft, cx_arena *arena,
                          cx_uri *out, cx_err *err)
{
    parsed_content body;
    parsed_labels head;
    cx_id id;
    uint8_t type;
    cx_str actor_scope;
    CX_TRY(cx_api_word(draft->type, "type of memories", "InvalidType", cx_uri_type_code, true,
                       &type, err));
    CX_TRY(parse_content(&draft->content, type, arena, &body, err));
    CX_TRY(parse_labels(&draft->labels, arena, &head, err));
    CX_TRY(cx_api_text_or(draft->actor_scope, "actor_scope", CX_STR(""), &actor_scope, err));
    if (draft->id != NULL && !cx_ulid_parse(cx_str_z(draft->id), &id))
        return cx_api_refuse(err, "found id '%.40s', expected a ULID", draft->id);
    const cx_memory_write write = {
        .type = type,
        .data = body.data,
        .id = draft->id != NULL ? &id : NULL,
        .actor_scope = actor_scope,
        .visibility = head.visibility,
        .importance = head.importance,
        .tags = head.tags,
        .tag_count = draft->labels.tag_count,
        .frames = head.frames,
        .frame_count = draft->labels.frame_count,
        .provenance = body.provenance,
        .created_by = body.by,
        .confidence = draft->content.confidence,
        .expires = draft->content.expires,
        .expires_at = draft->content.expires_at_s,
        .forms = body.given_forms,
        .blind = draft->content.blind,
        .pinned = draft->pinned,
    };
    return cx_memory_write_new(memories->memory, &write, out, err);
}

cx_status cx_memories_write(cx_memories *memories, const cx_memories_draft *draft,
                            cx_uri_text *out_uri, cx_err *err)
{
    cx_arena arena;
    cx_uri uri;
    cx_arena_init(&arena, memories->alloc, 0);
    cx_status status = write_in(memories, draft, &arena, &uri, err);
    cx_arena_done(&arena);
    if (!cx_failed(status) && out_uri != NULL)
        copy_uri_text(&uri, out_uri);
    return status;
}

static cx_status update_in(cx_memories *memories, const char *text, const cx_memories_content *from,
                           cx_arena *arena, cx_uri *out, cx_err *err)
{
    parsed_content body;
    cx_str name;
    cx_uri uri;
    CX_TRY(cx_api_text(text, "a memory's URI", &name, err));
    CX_TRY(cx_memory_uri_parse(name, &uri, err));
    CX_TRY(parse_content(from, uri.type, arena, &body, err));
    const cx_memory_update update = {
        .data = body.data,
        .provenance = body.provenance,
        .created_by = body.by,
        .confidence = from->confidence,
        .expires = from->expires,
        .expires_at = from->expires_at_s,
        .forms = body.given_forms,
        .blind = from->blind,
    };
    return cx_memory_update_at(memories->memory, &uri, &update, out, err);
}

cx_status cx_memories_update(cx_memories *memories, const char *uri,
                             const cx_memories_content *content, cx_uri_text *out_uri, cx_err *err)
{
    cx_arena arena;
    cx_uri made;
    cx_arena_init(&arena, memories->alloc, 0);
    cx_status status = update_in(memories, uri, content, &arena, &made, err);
    cx_arena_done(&arena);
    if (!cx_failed(status) && out_uri != NULL)
        copy_uri_text(&made, out_uri);
    return status;
}

static cx_status relabel_in(cx_memories *memories, const char *text,
                            const cx_memories_relabel *relabel, cx_arena *arena, cx_err *err)
{
    parsed_labels head;
    cx_uri uri;
    cx_str by;
    CX_TRY(cx_api_memory(memories, text, arena, &uri, err));
    CX_TRY(parse_labels(&relabel->labels, arena, &head, err));
    CX_TRY(cx_api_text_or(relabel->by, "by", CX_STR(""), &by, err));
    const cx_head_patch patch = {
        .set_tags = relabel->set_tags,
        .set_frames = relabel->set_frames,
        .set_importance = relabel->set_importance,
        .set_visibility = relabel->set_visibility,
        .tags = head.tags,
        .tag_count = relabel->labels.tag_count,
        .frames = head.frames,
        .frame_count = relabel->labels.frame_count,
        .importance = head.importance,
        .visibility = head.visibility != 0 ? head.visibility : CX_VISIBILITY_PRIVATE,
        .if_head = relabel->if_head,
        .by = by,
    };
    return cx_memory_update_head(memories->memory, &uri, &patch, err);
}

cx_status cx_memories_update_labels(cx_memories *memories, const char *memory,
                                    const cx_memories_relabel *relabel, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, memories->alloc, 0);
    cx_status status = relabel_in(memories, memory, relabel, &arena, err);
    cx_arena_done(&arena);
    return status;
}

/* --- the end of memories ---------------------------------------------------------------------- */

typedef cx_status ender(cx_memory *memory, const cx_uri *uri, cx_str reason, cx_str by,
                        cx_err *err);

static cx_status end_record(cx_memories *memories, ender *end, const char *text, const char *reason,
                            const char *by, cx_err *err)
{
    cx_arena arena;
    cx_uri uri;
    cx_str why, who;
    CX_TRY(cx_api_text_or(reason, "the reason", CX_STR(""), &why, err));
    CX_TRY(cx_api_text_or(by, "by", CX_STR(""), &who, err));
    cx_arena_init(&arena, memories->alloc, 0);
    cx_status status = cx_api_memory(memories, text, &arena, &uri, err);
    cx_arena_done(&arena);
    return cx_failed(status) ? status : end(memories->memory, &uri, why, who, err);
}

cx_status cx_memories_tombstone(cx_memories *memories, const char *memory, const char *reason,
                                const char *by, cx_err *err)
{
    return end_record(memories, cx_memory_tombstone, memory, reason, by, err);
}

cx_status cx_memories_erase(cx_memories *memories, const char *memory, const char *reason,
                            const char *by, cx_err *err)
{
    return end_record(memories, cx_memory_redact_memory, memory, reason, by, err);
}

/* --- edges ------------------------------------------------------------------------------------ */

cx_status cx_memories_link(cx_memories *memories, const cx_memories_edge *edge,
                           cx_uri_text *out_uri, bool *out_written, cx_err *err)
{
    cx_edge_name name;
    cx_str by;
    bool written;
    CX_TRY(cx_api_word(edge->type, "type of edges", "InvalidEdgeType", cx_uri_edge_type_code, true,
                       &name.type, err));
    CX_TRY(cx_api_memory_id(edge->from, &name.src, err));
    CX_TRY(cx_api_memory_id(edge->to, &name.dst, err));
    CX_TRY(cx_api_text_or(edge->by, "by", CX_STR(""), &by, err));
    CX_TRY(cx_memory_add_edge(memories->memory, &name, by, edge->weight, edge->data, edge->blind,
                              &written, err));
    const cx_uri uri = {.is_edge = true, .type = name.type, .id = name.src, .dst = name.dst};
    if (out_uri != NULL)
        copy_uri_text(&uri, out_uri);
    if (out_written != NULL)
        *out_written = written;
    return CX_SUCCESS;
}

cx_status cx_memories_unlink(cx_memories *memories, const char *edge_uri, const char *reason,
                             const char *by, bool *out_written, cx_err *err)
{
    cx_str text, why, who;
    cx_uri uri;
    bool written;
    CX_TRY(cx_api_text(edge_uri, "an edge's URI", &text, err));
    CX_TRY(cx_uri_parse(text, &uri, err));
    if (!uri.is_edge)
        return cx_fail_at(err, CX_E_FORMAT, "BadURI", CX_NO_OFFSET,
                          "%.120s is a memory, expected an edge", edge_uri);
    CX_TRY(cx_api_text_or(reason, "the reason", CX_STR(""), &why, err));
    CX_TRY(cx_api_text_or(by, "by", CX_STR(""), &who, err));
    const cx_edge_name name = {uri.id, uri.type, uri.dst};
    CX_TRY(cx_memory_remove_edge(memories->memory, &name, why, who, &written, err));
    if (out_written != NULL)
        *out_written = written;
    return CX_SUCCESS;
}

/* --- embedding, attesting --------------------------------------------------------------------- */

cx_status cx_memories_embed(cx_memories *memories, const char *memory, const char *model,
                            const float *values, size_t dim, cx_err *err)
{
    cx_arena arena;
    cx_uri uri;
    cx_str name;
    CX_TRY(cx_api_text(model, "the model", &name, err));
    cx_arena_init(&arena, memories->alloc, 0);
    cx_status status = cx_api_memory(memories, memory, &arena, &uri, err);
    cx_arena_done(&arena);
    CX_TRY(status);
    return cx_memory_embed(memories->memory, &uri.id, uri.version, name, values, dim, err);
}

cx_status cx_memories_attest(cx_memories *memories, const cx_memories_outcome *outcome,
                             cx_memories_attested *out, cx_err *err)
{
    cx_arena arena;
    cx_memory_attested attested;
    cx_memory_attest attest = {.outcome = outcome->failed, .cited_count = outcome->cited_count};
    CX_TRY(cx_api_text(outcome->intent, "the intent", &attest.intent, err));
    CX_TRY(cx_api_text_or(outcome->reason, "the reason", CX_STR(""), &attest.reason, err));
    CX_TRY(cx_api_text_or(outcome->by, "by", CX_STR(""), &attest.by, err));
    cx_arena_init(&arena, memories->alloc, 0);
    cx_status status = cx_api_texts(outcome->cited, outcome->cited_count, "what is cited", &arena,
                                    &attest.cited, err);
    if (!cx_failed(status))
        status = cx_memory_attest_outcome(memories->memory, &attest, &attested, err);
    cx_arena_done(&arena);
    if (!cx_failed(status) && out != NULL)
        *out = (cx_memories_attested){attested.seq, attested.used, attested.learned};
    return status;
}
