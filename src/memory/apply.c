/*
 * apply.c - the calls as JSON (apply.h).
 *
 * Members are read one by one.  A member that was not read is unknown, and the step is rejected
 * before any call is made: a step that asks for more than its call supports, such as a write that
 * presets a tombstone, never has half its effect.
 */
#include "memory/apply.h"

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/api.h"
#include "memory/embedder.h"
#include "memory/internal.h"

struct cx_apply {
    const cx_alloc *alloc;
    cx_home *home;
    cx_memory *memory;
    cx_memory_options options;
    bool has_now;
    int64_t now;
};

static int64_t read_step_clock(void *arg)
{
    const cx_apply *apply = arg;
    if (apply->has_now)
        return apply->now;
    if (apply->options.now_ns != NULL)
        return apply->options.now_ns(apply->options.now_arg);
    const cx_io *io = cx_home_io(apply->home);
    return (int64_t)io->wall_ns(io);
}

cx_status cx_apply_open(cx_home *home, cx_str actor, const cx_memory_options *options,
                        cx_apply **out, cx_err *err)
{
    const cx_alloc *alloc =
        options != NULL && options->alloc != NULL ? options->alloc : cx_alloc_default();
    cx_apply *apply = cx_alloc_zeroed(alloc, 1, sizeof *apply);
    if (apply == NULL)
        return cx_fail_nomem(err);
    apply->alloc = alloc;
    apply->home = home;
    if (options != NULL)
        apply->options = *options;
    cx_memory_options own = apply->options;
    own.now_ns = read_step_clock;
    own.now_arg = apply;
    cx_status status = cx_memory_open(home, actor, &own, &apply->memory, err);
    if (cx_failed(status)) {
        cx_apply_close(apply);
        return status;
    }
    *out = apply;
    return CX_SUCCESS;
}

void cx_apply_close(cx_apply *apply)
{
    if (apply == NULL)
        return;
    cx_memory_close(apply->memory);
    cx_alloc_free(apply->alloc, apply, sizeof *apply);
}

/* --- taking members -------------------------------------------------------------------------- */

/* Reads the members of one object; after a failure all further reads return nothing. */
typedef struct step_reader {
    const cx_json *object;
    const char *what; /* the operation, or the member that is this object */
    cx_arena *arena;
    size_t read_count;
    cx_status status;
    cx_err *err;
} step_reader;

static void reject_member(step_reader *r, const char *name, const char *expected)
{
    if (!cx_failed(r->status))
        r->status = cx_fail_at(r->err, CX_E_USAGE, "BadStep", CX_NO_OFFSET, "%s: %s: expected %s",
                               r->what, name, expected);
}

static bool out_of_memory(step_reader *r)
{
    if (!cx_failed(r->status))
        r->status = cx_fail_nomem(r->err);
    return false;
}

/* NULL when it is absent or null. */
static const cx_json *read_member(step_reader *r, const char *name)
{
    if (cx_failed(r->status))
        return NULL;
    const cx_json *value = cx_json_get(r->object, cx_str_z(name));
    if (value == NULL)
        return NULL;
    r->read_count++;
    return value->type == CX_JSON_NULL ? NULL : value;
}

static void require_member(step_reader *r, bool there, const char *name)
{
    if (!there)
        reject_member(r, name, "a value; the member is required");
}

static cx_str read_text(step_reader *r, const char *name)
{
    const cx_json *value = read_member(r, name);
    if (value == NULL)
        return (cx_str){NULL, 0};
    if (value->type != CX_JSON_STRING || (value->flags & CX_JSON_SURROGATE) != 0) {
        reject_member(r, name, "text");
        return (cx_str){NULL, 0};
    }
    return cx_json_text(value);
}

static uint64_t read_uint(step_reader *r, const char *name, uint64_t max, bool *out_there)
{
    const cx_json *value = read_member(r, name);
    uint64_t number = 0;
    if (value != NULL && (!cx_json_uint64(value, &number) || number > max))
        reject_member(r, name, "a whole number within the member's range");
    if (out_there != NULL)
        *out_there = value != NULL;
    return number;
}

static bool read_bool(step_reader *r, const char *name)
{
    const cx_json *value = read_member(r, name);
    if (value != NULL && value->type != CX_JSON_TRUE && value->type != CX_JSON_FALSE)
        reject_member(r, name, "true or false");
    return value != NULL && value->type == CX_JSON_TRUE;
}

static float read_float(step_reader *r, const char *name)
{
    const cx_json *value = read_member(r, name);
    double number = 0;
    if (value != NULL && !cx_json_double(value, &number))
        reject_member(r, name, "a number");
    return (float)number;
}

static int64_t read_time(step_reader *r, const char *name, bool *out_there)
{
    const cx_json *value = read_member(r, name);
    int64_t seconds = 0;
    *out_there = value != NULL;
    if (value == NULL)
        return 0;
    if (value->type == CX_JSON_STRING ? !cx_form_parse_time(cx_json_text(value), &seconds)
                                      : !cx_json_int64(value, &seconds))
        reject_member(r, name, "seconds or a time such as 2023-11-14T22:13:20Z");
    return seconds;
}

static cx_bytes read_hex(step_reader *r, const char *name, bool *out_there)
{
    cx_str text = read_text(r, name);
    if (out_there != NULL)
        *out_there = text.data != NULL;
    uint8_t *bytes = cx_arena_push(r->arena, text.size / 2 + 1, 1);
    if (bytes == NULL) {
        (void)out_of_memory(r);
        return (cx_bytes){NULL, 0};
    }
    if (!cx_hex_decode(text, bytes, text.size / 2))
        reject_member(r, name, "bytes as lower-case hex");
    return cx_bytes_from(bytes, text.size / 2);
}

static bool read_id(step_reader *r, const char *name, cx_id *out)
{
    cx_str text = read_text(r, name);
    if (text.data == NULL)
        return false;
    if (!cx_hex_decode(text, out->bytes, sizeof out->bytes) && !cx_ulid_parse(text, out))
        reject_member(r, name, "an id: 32 hex digits or a ULID");
    return true;
}

/* A code, given as a number or by its name. */
static uint8_t code_of(step_reader *r, const cx_json *value, const char *name,
                       uint8_t (*code)(cx_str name))
{
    uint64_t number = 0;
    if (value == NULL)
        return 0;
    if (value->type == CX_JSON_STRING)
        number = code(cx_json_text(value));
    else if (!cx_json_uint64(value, &number) || number > UINT8_MAX)
        number = 0;
    if (number == 0)
        reject_member(r, name, "a known name or its number");
    return (uint8_t)number;
}

static uint8_t read_code(step_reader *r, const char *name, uint8_t (*code)(cx_str name))
{
    return code_of(r, read_member(r, name), name, code);
}

static const cx_json *read_array(step_reader *r, const char *name, size_t *out_count)
{
    const cx_json *value = read_member(r, name);
    *out_count = 0;
    if (value == NULL)
        return NULL;
    if (value->type != CX_JSON_ARRAY) {
        reject_member(r, name, "a list");
        return NULL;
    }
    *out_count = value->count;
    return value->items;
}

/* NULL when the member is absent; *out_there says so for an empty list. */
static const cx_str *read_texts(step_reader *r, const char *name, size_t *out_count,
                                bool *out_there)
{
    const cx_json *items = read_array(r, name, out_count);
    if (out_there != NULL)
        *out_there = items != NULL || cx_json_get(r->object, cx_str_z(name)) != NULL;
    cx_str *texts = CX_ARENA_ARRAY(r->arena, cx_str, *out_count + 1);
    if (texts == NULL) {
        (void)out_of_memory(r);
        *out_count = 0;
        return NULL;
    }
    for (size_t i = 0; i < *out_count; i++) {
        if (items[i].type != CX_JSON_STRING || (items[i].flags & CX_JSON_SURROGATE) != 0) {
            reject_member(r, name, "a list of texts");
            *out_count = 0;
            return NULL;
        }
        texts[i] = cx_json_text(&items[i]);
    }
    return texts;
}

static void read_uri(step_reader *r, const char *name, cx_uri *out)
{
    cx_str text = read_text(r, name);
    cx_err why;
    require_member(r, text.data != NULL, name);
    if (!cx_failed(r->status) && cx_failed(cx_memory_uri_parse(text, out, &why)))
        reject_member(r, name, why.message);
}

/* Rejects members that were not read. */
static cx_status reject_unread_members(step_reader *r)
{
    if (cx_failed(r->status) || r->read_count == r->object->count)
        return r->status;
    return cx_fail_at(r->err, CX_E_USAGE, "BadStep", CX_NO_OFFSET, "%s has unknown members",
                      r->what);
}

/* A member that is an object; false when it is absent. */
static bool read_object(step_reader *r, const char *name, step_reader *out)
{
    const cx_json *value = read_member(r, name);
    if (value == NULL)
        return false;
    if (value->type != CX_JSON_OBJECT) {
        reject_member(r, name, "an object");
        return false;
    }
    *out = (step_reader){.object = value, .what = name, .arena = r->arena, .err = r->err};
    return true;
}

static void close_object(step_reader *r, step_reader *inner)
{
    cx_status status = reject_unread_members(inner);
    if (cx_failed(status) && !cx_failed(r->status))
        r->status = status;
}

/* --- parts that several calls share ---------------------------------------------------------- */

typedef struct step {
    cx_apply *apply;
    cx_memory *memory;
    step_reader r;
    cx_applied_step *out;
    cx_err *err;
} step;

static const cx_frame *read_frames(step_reader *r, size_t *out_count, bool *out_there)
{
    const cx_json *items = read_array(r, "frames", out_count);
    *out_there = items != NULL || CX_JSON_GET(r->object, "frames") != NULL;
    cx_frame *frames = CX_ARENA_ARRAY(r->arena, cx_frame, *out_count + 1);
    if (frames == NULL) {
        (void)out_of_memory(r);
        *out_count = 0;
        return NULL;
    }
    for (size_t i = 0; i < *out_count && !cx_failed(r->status); i++) {
        step_reader inner = {
            .object = &items[i], .what = "frame", .arena = r->arena, .err = r->err};
        if (items[i].type != CX_JSON_OBJECT) {
            reject_member(r, "frames", "a list of objects");
            break;
        }
        frames[i].verb = read_code(&inner, "verb", cx_verb_code);
        frames[i].kind = read_code(&inner, "kind", cx_kind_code);
        frames[i].ref = read_text(&inner, "ref");
        close_object(r, &inner);
    }
    return frames;
}

static void read_provenance(step_reader *r, cx_provenance *out)
{
    step_reader inner;
    bool there = false;
    if (!read_object(r, "provenance", &inner))
        return;
    out->source = read_text(&inner, "source");
    out->derived_from = read_texts(&inner, "derived_from", &out->derived_count, NULL);
    out->attestations = read_texts(&inner, "attestations", &out->attestation_count, NULL);
    out->signed_by = read_hex(&inner, "signed_by", &there);
    out->signed_at = read_time(&inner, "signed_at", &out->has_signed_at);
    out->signature = read_hex(&inner, "signature", &there);
    close_object(r, &inner);
}

static const cx_forms *read_forms(step_reader *r)
{
    step_reader inner;
    if (!read_object(r, "forms", &inner))
        return NULL;
    cx_forms *forms = CX_ARENA_NEW(r->arena, cx_forms);
    if (forms == NULL) {
        (void)out_of_memory(r);
        return NULL;
    }
    forms->brief = read_text(&inner, "short");
    forms->medium = read_text(&inner, "medium");
    close_object(r, &inner);
    return forms;
}

/* An error about the JSON data is a refusal of the call, not a malformed step. */
static cx_status data_bytes(step *s, uint8_t type, const cx_json *json, cx_bytes *out, cx_err *err)
{
    cx_data data;
    CX_TRY(cx_data_from_json(type, json, s->r.arena, &data, err));
    cx_buf bytes;
    cx_buf_init(&bytes, s->apply->alloc);
    cx_data_encode(&data, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(s->r.arena, cx_buf_str(&bytes));
        status = copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
        *out = cx_str_bytes(copy);
    }
    cx_buf_done(&bytes);
    return status;
}

typedef struct step_data {
    const cx_json *json;
    cx_bytes cbor;
} step_data;

static step_data read_data(step_reader *r)
{
    step_data data = {.json = read_member(r, "data")};
    bool there = false;
    data.cbor = read_hex(r, "data_cbor", &there);
    if (there == (data.json != NULL))
        reject_member(r, "data", "either data or data_cbor");
    return data;
}

static cx_status answer_uri(step *s, const cx_uri *uri)
{
    cx_buf text;
    cx_buf_init(&text, s->apply->alloc);
    cx_uri_add(uri, &text);
    cx_status status = cx_buf_check(&text, s->err);
    if (!cx_failed(status)) {
        s->out->uri = cx_arena_copy_str(s->r.arena, cx_buf_str(&text));
        s->out->has_uri = true;
        status = s->out->uri.data == NULL ? cx_fail_nomem(s->err) : CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

/* --- the calls -------------------------------------------------------------------------------- */

/*
 * Each function reads its members, rejects a malformed step, and makes the call; `reason` gets the
 * call's error.
 */

/* Members that only the ledger sets (ledger.md §14, 5). */
static cx_status reject_presets(const step_reader *r, cx_err *reason)
{
    static const char *const names[] = {"tombstone", "embedding_ref", "version", "current_version",
                                        "last_updated_at"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_json_get(r->object, cx_str_z(names[i])) != NULL)
            return cx_fail_at(reason, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "%s cannot be set by a write", names[i]);
    return CX_SUCCESS;
}

static const cx_scope_use *scope_of(const step *s)
{
    const cx_memory_request *request = s->apply->options.request;
    return request == NULL ? NULL : request->scope;
}

/* Members that are the owner's: a grantee neither chooses ids nor what is pinned. */
static cx_status reject_owners(const step *s, cx_err *reason)
{
    static const char *const names[] = {"id", "actor_scope", "pinned"};
    for (size_t i = 0; scope_of(s) != NULL && i < CX_COUNT_OF(names); i++)
        if (cx_json_get(s->r.object, cx_str_z(names[i])) != NULL)
            return cx_fail_at(reason, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "%s cannot be set under a scope; leave it out", names[i]);
    return CX_SUCCESS;
}

static cx_status apply_write(step *s, cx_err *reason)
{
    step_reader *r = &s->r;
    cx_memory_write write = {.type = read_code(r, "type", cx_uri_type_code), .scope = scope_of(s)};
    cx_id id;
    bool there = false;
    CX_TRY(reject_presets(r, reason));
    CX_TRY(reject_owners(s, reason));
    require_member(r, write.type != 0, "type");
    step_data data = read_data(r);
    if (read_id(r, "id", &id))
        write.id = &id;
    write.actor_scope = read_text(r, "actor_scope");
    write.visibility = read_code(r, "visibility", cx_visibility_code);
    write.importance = (uint8_t)read_uint(r, "importance", UINT8_MAX, NULL);
    write.tags = read_texts(r, "tags", &write.tag_count, NULL);
    write.frames = read_frames(r, &write.frame_count, &there);
    read_provenance(r, &write.provenance);
    write.created_by = read_text(r, "created_by");
    write.confidence = read_float(r, "confidence");
    write.expires_at = read_time(r, "expires_at", &write.expires);
    write.forms = read_forms(r);
    write.blind = read_bool(r, "blind");
    write.pinned = read_bool(r, "pinned");
    CX_TRY(reject_unread_members(r));
    write.data = data.cbor;
    if (data.json != NULL)
        CX_TRY(data_bytes(s, write.type, data.json, &write.data, reason));
    cx_uri uri;
    CX_TRY(cx_memory_write_new(s->memory, &write, &uri, reason));
    return answer_uri(s, &uri);
}

static cx_status apply_update(step *s, cx_err *reason)
{
    step_reader *r = &s->r;
    cx_memory_update update = {.scope = scope_of(s)};
    cx_uri uri = {0}, next;
    read_uri(r, "uri", &uri);
    step_data data = read_data(r);
    read_provenance(r, &update.provenance);
    update.created_by = read_text(r, "created_by");
    update.confidence = read_float(r, "confidence");
    update.expires_at = read_time(r, "expires_at", &update.expires);
    update.forms = read_forms(r);
    update.blind = read_bool(r, "blind");
    CX_TRY(reject_unread_members(r));
    update.data = data.cbor;
    if (data.json != NULL)
        CX_TRY(data_bytes(s, uri.type, data.json, &update.data, reason));
    CX_TRY(cx_memory_update_at(s->memory, &uri, &update, &next, reason));
    return answer_uri(s, &next);
}

static cx_status apply_update_head(step *s, cx_err *reason)
{
    step_reader *r = &s->r;
    cx_head_patch patch = {0};
    cx_uri uri = {0};
    cx_digest if_head;
    read_uri(r, "uri", &uri);
    patch.tags = read_texts(r, "tags", &patch.tag_count, &patch.set_tags);
    patch.frames = read_frames(r, &patch.frame_count, &patch.set_frames);
    patch.importance = (uint8_t)read_uint(r, "importance", UINT8_MAX, &patch.set_importance);
    patch.visibility = read_code(r, "visibility", cx_visibility_code);
    patch.set_visibility = patch.visibility != 0;
    cx_str hash = read_text(r, "if_head");
    if (hash.data != NULL && !cx_digest_parse(hash, &if_head))
        reject_member(r, "if_head", "a hash as 64 hex digits");
    patch.if_head = hash.data != NULL ? &if_head : NULL;
    patch.by = read_text(r, "by");
    patch.scope = scope_of(s);
    CX_TRY(reject_unread_members(r));
    return cx_memory_update_head(s->memory, &uri, &patch, reason);
}

static cx_status apply_tombstone(step *s, cx_err *reason)
{
    cx_uri uri = {0};
    read_uri(&s->r, "uri", &uri);
    cx_str why = read_text(&s->r, "reason");
    cx_str by = read_text(&s->r, "by");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_tombstone(s->memory, &uri, why, by, reason);
}

static void read_edge(step_reader *r, cx_edge_name *out)
{
    require_member(r, read_id(r, "src", &out->src), "src");
    out->type = read_code(r, "type", cx_uri_edge_type_code);
    require_member(r, out->type != 0, "type");
    require_member(r, read_id(r, "dst", &out->dst), "dst");
}

static cx_status apply_add_edge(step *s, cx_err *reason)
{
    cx_edge_name name = {0};
    bool written;
    read_edge(&s->r, &name);
    cx_str by = read_text(&s->r, "by");
    float weight = read_float(&s->r, "weight");
    cx_bytes data = read_hex(&s->r, "data", NULL);
    bool blind = read_bool(&s->r, "blind");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_add_edge(s->memory, &name, by, weight, data, blind, &written, reason);
}

static cx_status apply_remove_edge(step *s, cx_err *reason)
{
    cx_edge_name name = {0};
    bool written;
    read_edge(&s->r, &name);
    cx_str why = read_text(&s->r, "reason");
    cx_str by = read_text(&s->r, "by");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_remove_edge(s->memory, &name, why, by, &written, reason);
}

/* The vector of the current version's full form. */
static cx_status embed_for_test(step *s, const cx_id *id, size_t dim, cx_str salt, cx_err *reason)
{
    cx_memory_view view;
    cx_data data;
    char model[CX_EMBEDDER_MODEL_SIZE];
    CX_TRY(cx_memory_resolve_latest(s->memory, id, s->r.arena, &view, reason));
    if (view.version.erased)
        return cx_fail_at(reason, CX_E_CONFLICT, "Tombstoned", CX_NO_OFFSET,
                          "the memory was redacted");
    CX_TRY(cx_data_decode(view.head.type, view.version.data.bytes, s->r.arena, &data, reason));
    float *values = CX_ARENA_ARRAY(s->r.arena, float, dim);
    if (values == NULL)
        return cx_fail_nomem(reason);
    cx_buf text;
    cx_buf_init(&text, s->apply->alloc);
    cx_forms_full(&data, &text);
    cx_status status = cx_buf_check(&text, reason);
    if (!cx_failed(status)) {
        cx_embedder_vector(cx_buf_str(&text), salt, values, dim);
        cx_embedder_model(dim, salt, model);
        status = cx_memory_embed(s->memory, id, view.head.current_version,
                                 cx_str_from(model, sizeof model), values, dim, reason);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status apply_embed(step *s, cx_err *reason)
{
    step_reader *r = &s->r;
    cx_id id = {{0}};
    bool has_dim = false;
    size_t count = 0;
    require_member(r, read_id(r, "id", &id), "id");
    size_t dim = (size_t)read_uint(r, "dim", CX_NEAR_DIM_MAX, &has_dim);
    cx_str salt = read_text(r, "salt");
    uint64_t source_version = read_uint(r, "source_version", UINT64_MAX, NULL);
    cx_str model = read_text(r, "model");
    const cx_json *items = read_array(r, "vector", &count);
    float *values = CX_ARENA_ARRAY(r->arena, float, count + 1);
    if (values == NULL)
        (void)out_of_memory(r);
    for (size_t i = 0; i < count && values != NULL; i++) {
        double number = 0;
        if (!cx_json_double(&items[i], &number))
            reject_member(r, "vector", "a list of numbers");
        values[i] = (float)number;
    }
    if (has_dim ? dim == 0 || items != NULL : items == NULL)
        reject_member(r, "vector", "either vector or dim");
    CX_TRY(reject_unread_members(r));
    if (has_dim)
        return embed_for_test(s, &id, dim, salt, reason);
    return cx_memory_embed(s->memory, &id, source_version, model, values, count, reason);
}

static const cx_uri *read_uris(step_reader *r, const char *name, size_t *out_count)
{
    const cx_str *texts = read_texts(r, name, out_count, NULL);
    cx_uri *uris = CX_ARENA_ARRAY(r->arena, cx_uri, *out_count + 1);
    if (uris == NULL) {
        (void)out_of_memory(r);
        return NULL;
    }
    for (size_t i = 0; i < *out_count; i++)
        if (cx_failed(cx_memory_uri_parse(texts[i], &uris[i], NULL)))
            reject_member(r, name, "URIs of memories");
    return uris;
}

static cx_status apply_compact(step *s, cx_err *reason)
{
    cx_memory_compact compact = {0};
    cx_checkpoint_record record;
    compact.in_context = read_uris(&s->r, "in_context", &compact.in_context_count);
    compact.load_bearing = read_uris(&s->r, "load_bearing", &compact.load_bearing_count);
    compact.budget = read_uint(&s->r, "budget", UINT64_MAX, NULL);
    compact.intent = read_text(&s->r, "intent");
    compact.step = read_text(&s->r, "step");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_compact_context(s->memory, &compact, s->r.arena, &record, reason);
}

static cx_status apply_attest(step *s, cx_err *reason)
{
    cx_memory_attest attest = {.intent = read_text(&s->r, "intent")};
    cx_str outcome = read_text(&s->r, "outcome");
    attest.outcome = cx_str_is(outcome, "success") ? 0 : cx_str_is(outcome, "failure") ? 1 : 2;
    if (attest.outcome > 1)
        reject_member(&s->r, "outcome", "success or failure");
    attest.reason = read_text(&s->r, "reason");
    attest.cited = read_texts(&s->r, "cited", &attest.cited_count, NULL);
    attest.by = read_text(&s->r, "by");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_attest_outcome(s->memory, &attest, NULL, reason);
}

static cx_status apply_raw(step *s, cx_err *reason)
{
    uint64_t seq;
    cx_str kind = cx_memory_or(read_text(&s->r, "kind"), cx_entry_kind_name(CX_ENTRY_RAW));
    cx_bytes payload = read_hex(&s->r, "payload", NULL);
    bool committed = read_bool(&s->r, "committed");
    cx_str by = read_text(&s->r, "by");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_raw(s->memory, kind, payload, committed, by, &seq, reason);
}

static cx_status apply_redact(step *s, cx_err *reason)
{
    bool there = false;
    uint64_t seq = read_uint(&s->r, "seq", UINT64_MAX, &there);
    require_member(&s->r, there, "seq");
    cx_str why = read_text(&s->r, "reason");
    cx_str by = read_text(&s->r, "by");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_redact(s->memory, seq, why, by, reason);
}

static cx_status apply_redact_memory(step *s, cx_err *reason)
{
    cx_uri uri = {0};
    read_uri(&s->r, "uri", &uri);
    cx_str why = read_text(&s->r, "reason");
    cx_str by = read_text(&s->r, "by");
    CX_TRY(reject_unread_members(&s->r));
    return cx_memory_redact_memory(s->memory, &uri, why, by, reason);
}

static cx_status apply_snapshot(step *s, cx_err *reason)
{
    cx_manifest manifest;
    cx_str trigger = read_text(&s->r, "trigger");
    CX_TRY(reject_unread_members(&s->r));
    CX_TRY(cx_snapshot_make(s->apply->home, cx_memory_actor(s->memory), trigger,
                            read_step_clock(s->apply), s->r.arena, &manifest, reason));
    s->out->has_number = true;
    s->out->number = manifest.snapshot_seq;
    return CX_SUCCESS;
}

static cx_status apply_drop_snapshot(step *s, cx_err *reason)
{
    bool there = false;
    uint64_t seq = read_uint(&s->r, "seq", UINT64_MAX, &there);
    require_member(&s->r, there, "seq");
    cx_str by = cx_memory_or(read_text(&s->r, "by"), cx_memory_actor(s->memory));
    CX_TRY(reject_unread_members(&s->r));
    return cx_snapshot_drop(s->apply->home, cx_memory_actor(s->memory), seq, by,
                            read_step_clock(s->apply), reason);
}

static const struct operation {
    const char *name;
    cx_status (*run)(step *s, cx_err *reason);
} operations[] = {
    {"write", apply_write},
    {"update", apply_update},
    {"update_head", apply_update_head},
    {"tombstone", apply_tombstone},
    {"add_edge", apply_add_edge},
    {"remove_edge", apply_remove_edge},
    {"embed", apply_embed},
    {"compact", apply_compact},
    {"attest", apply_attest},
    {"raw", apply_raw},
    {"redact", apply_redact},
    {"redact_memory", apply_redact_memory},
    {"snapshot", apply_snapshot},
    {"drop_snapshot", apply_drop_snapshot},
};

/* --- one step -------------------------------------------------------------------------------- */

static uint64_t entries_now(cx_apply *apply)
{
    cx_actor_info info;
    return cx_failed(cx_home_actor(apply->home, cx_memory_actor(apply->memory), &info, NULL))
               ? 0
               : info.entry_count;
}

/* True for a call that was refused; false for a ledger that cannot be read or written. */
static bool is_refusal(cx_code code)
{
    return code != CX_E_NOMEM && code != CX_E_IO && code != CX_E_TIMEOUT && code != CX_E_BUSY;
}

static cx_status apply_step(step *s, const struct operation *operation)
{
    cx_apply *apply = s->apply;
    const uint64_t before = entries_now(apply);
    cx_err reason = {0};
    cx_status status = operation->run(s, &reason);
    if (cx_failed(s->r.status))
        return s->r.status;
    if (cx_failed(status) && reason.code == CX_OK)
        return status; /* unknown members or out of memory: explained in err */
    if (cx_failed(status) && !is_refusal(status.code)) {
        if (s->err != NULL)
            *s->err = reason;
        return status;
    }
    const uint64_t after = entries_now(apply);
    s->out->refused = cx_failed(status);
    s->out->reason = reason;
    s->out->wrote = after != before;
    s->out->seq = after != 0 ? after - 1 : 0;
    return CX_SUCCESS;
}

static cx_status set_clock(cx_apply *apply, step_reader *r)
{
    const cx_json *now = read_member(r, "now_ns");
    apply->has_now = now != NULL;
    if (now != NULL && !cx_json_int64(now, &apply->now))
        reject_member(r, "now_ns", "nanoseconds as a whole number");
    return r->status;
}

cx_status cx_apply_step(cx_apply *apply, const cx_json *json, cx_arena *arena, cx_applied_step *out,
                        cx_err *err)
{
    cx_applied_step result = {0};
    step s = {.apply = apply, .memory = apply->memory, .out = &result, .err = err};
    s.r = (step_reader){.object = json, .what = "step", .arena = arena, .err = err};
    if (json->type != CX_JSON_OBJECT)
        return cx_fail_at(err, CX_E_USAGE, "BadStep", CX_NO_OFFSET, "a step is an object");
    const struct operation *operation = NULL;
    cx_str op = read_text(&s.r, "op");
    for (size_t i = 0; i < CX_COUNT_OF(operations); i++)
        if (cx_str_is(op, operations[i].name))
            operation = &operations[i];
    if (operation == NULL)
        reject_member(&s.r, "op", "the name of a call, such as write");
    CX_TRY(set_clock(apply, &s.r));
    const cx_json *args = CX_JSON_GET(json, "args");
    if (args != NULL) {
        s.r.read_count++;
        CX_TRY(reject_unread_members(&s.r));
        if (args->type != CX_JSON_OBJECT)
            return cx_fail_at(err, CX_E_USAGE, "BadStep", CX_NO_OFFSET, "args is an object");
        s.r = (step_reader){.object = args, .arena = arena, .err = err};
    }
    s.r.what = operation->name;
    CX_TRY(apply_step(&s, operation));
    *out = result;
    return CX_SUCCESS;
}
