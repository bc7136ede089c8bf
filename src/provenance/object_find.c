/*
 * object_find.c - from a text to the objects it names.
 *
 *   F1  A complete name is looked up; only other texts are searched for in the log.
 *   F2  All objects that match a hash are listed: that a short prefix is unique today is no reason
 *       to guess.
 *   F3  A hash is looked up in the tables (ledger/find/find.h), and what they lead to is read and
 *       compared.  What no row can name is searched for, with an end: so many roots of journals and
 *       states, so many runs, and the nodes of traces; only when the tables know nothing.
 */
#include "crypto/api.h"
#include "ledger/api.h"
#include "live/api.h"
#include "proof/api.h"
#include "memory/api.h"
#include "provenance/run_lattice.h"
#include "provenance/object_parts.h"
#include "audit/api.h"

#define ROOTS_LOOKED_AT 20000 /* of journals, at their newest sizes, and of states as they are */
#define PLACES_LOOKED_AT 4096 /* that the tables know for the beginning of a hash */
#define RUNS_LOOKED_AT 200    /* newest runs whose lattice is made */

typedef struct finder {
    const cx_sources *sources;
    cx_arena *arena;
    cx_str text;
    bool hex; /* 8 to 64 hex digits, lower-case in `text` */
    cx_prov_object *found;
    size_t count;
    bool roots_left_out; /* some were not compared */
} finder;

static cx_status add_found(finder *f, cx_prov_object object, cx_err *err)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->found[i].kind == object.kind && cx_str_eq(f->found[i].id, object.id))
            return CX_SUCCESS;
    if (f->count == CX_PROV_OBJECTS_MAX)
        return CX_SUCCESS;
    object.id = cx_arena_copy_str(f->arena, object.id);
    object.actor = cx_arena_copy_str(f->arena, object.actor);
    if (object.id.data == NULL || object.actor.data == NULL)
        return cx_fail_nomem(err);
    object.known = true;
    f->found[f->count++] = object;
    return CX_SUCCESS;
}

static cx_status add_numbered(finder *f, cx_prov_kind kind, cx_str actor, uint64_t seq,
                              const char *matched, cx_err *err)
{
    const char *between = kind == CX_PROV_ENTRY ? "/" : kind == CX_PROV_SNAPSHOT ? "@" : ":";
    cx_str id = CX_TEXTF(f->arena, "%.*s%s%llu", CX_S(actor), between, (unsigned long long)seq);
    return id.data == NULL
               ? cx_fail_nomem(err)
               : add_found(
                     f,
                     (cx_prov_object){
                         .kind = kind, .id = id, .actor = actor, .seq = seq, .matched = matched},
                     err);
}

/* --- names in full ---------------------------------------------------------------------------- */

/* ACTOR<between>NUMBER */
static bool split_number(cx_str text, char between, cx_str *out_actor, uint64_t *out_number)
{
    const char *at = cx_bytes_last(text.data, between, text.size);
    if (at == NULL || at + 1 == text.data + text.size || text.data + text.size - at > 20)
        return false;
    *out_actor = cx_str_from(text.data, (size_t)(at - text.data));
    *out_number = 0;
    for (at++; at != text.data + text.size; at++) {
        if (*at < '0' || *at > '9')
            return false;
        *out_number = *out_number * 10 + (uint64_t)(*at - '0');
    }
    return true;
}

static cx_status find_numbered(finder *f, cx_prov_kind kind, char between, cx_err *err)
{
    cx_str actor;
    uint64_t number;
    cx_actor_info info;
    if (!split_number(f->text, between, &actor, &number) || !cx_actor_ok(actor) ||
        cx_failed(cx_home_actor(f->sources->home, actor, &info, NULL)))
        return CX_SUCCESS;
    if (number >= (kind == CX_PROV_ENTRY ? info.entry_count : info.snapshot_count))
        return CX_SUCCESS;
    return add_numbered(f, kind, actor, number, "id", err);
}

static cx_status find_located(finder *f, cx_prov_kind kind, cx_str id, const char *matched,
                              cx_err *err)
{
    cx_prov_object object = {.kind = kind, .id = id, .matched = matched};
    bool found = false;
    if (kind == CX_PROV_TRACE && id.size > CX_TRACE_ID_BYTES_MAX)
        return CX_SUCCESS;
    CX_TRY(cx_prov_locate(f->sources, &object, f->arena, &found, err));
    return found ? add_found(f, object, err) : CX_SUCCESS;
}

/* As a run, or as an event of the run; many texts could be the id of one. */
static cx_status find_run_or_event(finder *f, cx_prov_kind kind, cx_str run, cx_str id,
                                   const char *matched, cx_err *err)
{
    cx_run_inspection seen;
    CX_TRY(cx_run_inspect(f->sources, run, f->arena, &seen, err));
    bool found = seen.bundle != NULL || seen.known.sealed || seen.known.witness.has_events;
    cx_run_inspect_done(&seen);
    return found ? add_found(f, (cx_prov_object){.kind = kind, .id = id, .matched = matched}, err)
                 : CX_SUCCESS;
}

static cx_status find_run(finder *f, cx_str id, const char *matched, cx_err *err)
{
    return find_run_or_event(f, CX_PROV_RUN, id, id, matched, err);
}

static cx_status find_uri(finder *f, cx_err *err)
{
    cx_prov_kind kind;
    cx_str id;
    if (!cx_prov_of_uri(f->text, &kind, &id))
        return CX_SUCCESS;
    if (kind == CX_PROV_RUN)
        return find_run(f, id, "uri", err);
    return kind == CX_PROV_EDGE
               ? add_found(f, (cx_prov_object){.kind = kind, .id = id, .matched = "uri"}, err)
               : find_located(f, kind, id, "uri", err);
}

/* The id of a session of a coding agent, in full. */
static cx_status find_session(finder *f, cx_err *err)
{
    cx_live_session session;
    cx_err ignored;
    if (f->count != 0 || f->sources->home == NULL || f->text.size > CX_LIVE_SESSION_BYTES_MAX)
        return CX_SUCCESS;
    cx_status status =
        cx_live_session_find(f->sources->home, f->text, f->arena, &session, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || !cx_str_eq(session.session, f->text))
        return CX_SUCCESS;
    return add_found(
        f, (cx_prov_object){.kind = CX_PROV_ACTOR, .id = session.actor, .matched = "session"}, err);
}

static cx_status find_named(finder *f, cx_err *err)
{
    cx_actor_info info;
    cx_trust trust;
    cx_id ulid;
    if (cx_ulid_parse(f->text, &ulid))
        CX_TRY(find_located(f, CX_PROV_MEMORY, f->text, "id", err));
    CX_TRY(find_located(f, CX_PROV_TRACE, f->text, "id", err));
    CX_TRY(find_numbered(f, CX_PROV_ENTRY, '/', err));
    CX_TRY(find_numbered(f, CX_PROV_SNAPSHOT, '@', err));
    if (cx_actor_ok(f->text) && !cx_failed(cx_home_actor(f->sources->home, f->text, &info, NULL)))
        CX_TRY(add_found(f, (cx_prov_object){.kind = CX_PROV_ACTOR, .id = f->text, .matched = "id"},
                         err));
    CX_TRY(cx_recorder_trust(f->sources->recorder, f->arena, &trust, err));
    if (cx_trust_find(&trust, f->text) != NULL)
        CX_TRY(add_found(f, (cx_prov_object){.kind = CX_PROV_KEY, .id = f->text, .matched = "id"},
                         err));
    return find_session(f, err);
}

/* --- hashes ----------------------------------------------------------------------------------- */

static bool prefix_matches(const finder *f, const uint8_t *bytes, size_t size)
{
    char hex[128];
    if (!f->hex || size > 64 || f->text.size > 2 * size)
        return false;
    cx_hex_encode(cx_bytes_from(bytes, size), hex);
    return memcmp(hex, f->text.data, f->text.size) == 0;
}

static bool digest_matches(const finder *f, const cx_digest *digest)
{
    return prefix_matches(f, digest->bytes, sizeof digest->bytes);
}

/* Each member of a payload in JSON that is a hash. */
static const char *matching_member(const finder *f, const cx_json *object, const char *const *names)
{
    for (; f->hex && *names != NULL; names++)
        if (cx_str_starts(cx_json_get_str(object, cx_str_z(*names)), f->text))
            return *names;
    return NULL;
}

static cx_status match_run_entry(finder *f, const cx_tail_item *item, cx_err *err)
{
    static const char *const of_event[] = {"hash", "event_sha256", NULL};
    static const char *const of_seal[] = {"manifest_sha256", "chain_head", "contract_sha256", NULL};
    cx_json payload;
    bool seal = cx_str_is(item->entry.kind, "run.seal");
    if (item->erased ||
        cx_failed(cx_run_json_read(cx_bytes_str(item->payload), 0, f->arena, &payload, NULL)))
        return CX_SUCCESS;
    cx_str run = CX_JSON_GET_STR(&payload, "run_id");
    const char *matched = matching_member(f, &payload, seal ? of_seal : of_event);
    if (!cx_run_id_valid(run))
        return CX_SUCCESS;
    /* A run is also found by the beginning of its id, or of the digits at its end. */
    bool begins = cx_str_starts(run, f->text) ||
                  (f->hex && run.size == CX_RUN_ID_SIZE - 1 && f->text.size <= 32 &&
                   memcmp(run.data + 20, f->text.data, f->text.size) == 0);
    if (seal && (matched != NULL || begins))
        return add_found(f,
                         (cx_prov_object){.kind = CX_PROV_RUN,
                                          .id = run,
                                          .matched = matched == NULL ? "id" : matched},
                         err);
    const cx_json *index = CX_JSON_GET(&payload, "index");
    uint64_t number;
    if (matched == NULL || index == NULL || !cx_json_uint64(index, &number))
        return CX_SUCCESS;
    cx_str id = CX_TEXTF(f->arena, "%.*s/%llu", CX_S(run), (unsigned long long)number);
    return id.data == NULL
               ? cx_fail_nomem(err)
               : add_found(f, (cx_prov_object){.kind = CX_PROV_EVENT, .id = id, .matched = matched},
                           err);
}

static cx_status match_trace(finder *f, const cx_tail_item *item, cx_err *err)
{
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        cx_trace_record record;
        if (change->key.size <= 8 || !cx_str_starts(cx_bytes_str(change->key), CX_STR("trace/")) ||
            change->removed || cx_failed(cx_trace_record_decode(change->value, &record, NULL)))
            continue;
        cx_str id = {(const char *)change->key.data + 8, change->key.size - 8};
        const char *matched = cx_str_starts(id, f->text)             ? "id"
                              : digest_matches(f, &record.content)   ? "content_sha256"
                              : digest_matches(f, &record.signature) ? "signature_sha256"
                              : record.form != CX_FORM_NONE && digest_matches(f, &record.canonical)
                                  ? "canonical_sha256"
                                  : NULL;
        if (matched != NULL)
            return add_found(f,
                             (cx_prov_object){.kind = CX_PROV_TRACE,
                                              .id = id,
                                              .actor = item->actor,
                                              .seq = item->entry.seq,
                                              .matched = matched},
                             err);
    }
    return CX_SUCCESS;
}

static cx_status match_write(finder *f, const cx_tail_item *item, cx_err *err)
{
    cx_payload payload;
    cx_buf uri;
    cx_entry_kind kind = cx_entry_kind_of(item->entry.kind);
    if (cx_failed(cx_payload_decode(kind, item->payload, f->arena, &payload, NULL)))
        return CX_SUCCESS;
    const cx_payload_write *write = &payload.as.write;
    char ulid[CX_ULID_SIZE];
    cx_ulid_format(&write->id, ulid);
    bool by_id = cx_str_starts(cx_str_from(ulid, sizeof ulid), f->text);
    if (!by_id && !digest_matches(f, &write->version_hash))
        return CX_SUCCESS;
    const cx_uri name = {.type = write->type, .id = write->id, .version = write->version};
    cx_buf_init(&uri, f->sources->alloc);
    cx_uri_add(&name, &uri);
    cx_status status = cx_buf_check(&uri, err);
    if (!cx_failed(status))
        status = add_found(f,
                           (cx_prov_object){.kind = CX_PROV_MEMORY,
                                            .id = cx_buf_str(&uri),
                                            .actor = item->actor,
                                            .matched = by_id ? "id" : "version_hash"},
                           err);
    cx_buf_done(&uri);
    return status;
}

static cx_status match_home_root(finder *f, const cx_tail_item *item, cx_err *err)
{
    cx_home_root recorded;
    if (cx_failed(cx_home_root_decode(item->payload, &recorded, NULL)) ||
        !digest_matches(f, &recorded.root))
        return CX_SUCCESS;
    return add_numbered(f, CX_PROV_ENTRY, item->actor, item->entry.seq, "home_root", err);
}

static cx_status match_entry(finder *f, const cx_tail_item *item, cx_err *err)
{
    cx_buf bytes;
    bool leaf = false;
    if (!item->has_entry)
        return CX_SUCCESS;
    cx_str kind = item->entry.kind;
    if (f->hex) {
        cx_buf_init(&bytes, f->sources->alloc);
        cx_entry_encode(&item->entry, &bytes);
        cx_digest digest = cx_scheme_entry(cx_buf_bytes(&bytes));
        cx_status status = cx_buf_check(&bytes, err);
        cx_buf_done(&bytes);
        CX_TRY(status);
        leaf = digest_matches(f, &digest);
    }
    if (leaf)
        CX_TRY(add_numbered(f, CX_PROV_ENTRY, item->actor, item->entry.seq, "leaf_hash", err));
    if (item->entry.committed && digest_matches(f, &item->entry.commitment))
        CX_TRY(add_numbered(f, CX_PROV_ENTRY, item->actor, item->entry.seq, "payload_commitment",
                            err));
    if (cx_kinds_is(kind, CX_KIND_HOME_ROOT))
        return match_home_root(f, item, err);
    if (cx_str_is(kind, "trace.received"))
        return match_trace(f, item, err);
    if (cx_str_is(kind, "write") || cx_str_is(kind, "update"))
        return match_write(f, item, err);
    return cx_str_is(kind, "run.event") || cx_str_is(kind, "run.seal")
               ? match_run_entry(f, item, err)
               : CX_SUCCESS;
}

static cx_status search_log(finder *f, cx_err *err)
{
    static const cx_position start = {0, 0};
    cx_tail *tail = NULL;
    cx_tail_item item;
    cx_status status;
    bool end = false;
    CX_TRY_GOTO(status, cx_tail_begin(f->sources->home, start, &tail, err));
    for (;;) {
        CX_TRY_GOTO(status, cx_tail_next(tail, &item, &end, err));
        if (end)
            break;
        size_t before = f->count;
        cx_arena_mark mark = cx_arena_mark_now(f->arena);
        CX_TRY_GOTO(status, match_entry(f, &item, err));
        if (f->count == before)
            cx_arena_reset(f->arena, mark);
    }
done:
    cx_tail_end(tail);
    return status;
}

/* --- roots ------------------------------------------------------------------------------------ */

static cx_status match_manifest(finder *f, cx_str actor, const cx_manifest *manifest, cx_err *err)
{
    cx_digest digest;
    CX_TRY(cx_manifest_digest(manifest, f->sources->alloc, &digest, err));
    const char *matched = digest_matches(f, &manifest->overall_root)    ? "overall_root"
                          : digest_matches(f, &manifest->memories_root) ? "memories_root"
                          : digest_matches(f, &manifest->edges_root)    ? "edges_root"
                          : digest_matches(f, &manifest->journal_root)  ? "journal_root"
                          : digest_matches(f, &digest)                  ? "manifest_digest"
                                                                        : NULL;
    return matched == NULL
               ? CX_SUCCESS
               : add_numbered(f, CX_PROV_SNAPSHOT, actor, manifest->snapshot_seq, matched, err);
}

/* A state as it is now has a name of its own only while no snapshot has it. */
static cx_status match_roots(finder *f, cx_str actor, cx_err *err)
{
    cx_roots roots;
    CX_TRY(cx_home_roots(f->sources->home, actor, &roots, err));
    const char *matched = digest_matches(f, &roots.overall)    ? "overall_root"
                          : digest_matches(f, &roots.memories) ? "memories_root"
                                                               : NULL;
    return matched == NULL
               ? CX_SUCCESS
               : add_found(f,
                           (cx_prov_object){.kind = CX_PROV_ACTOR, .id = actor, .matched = matched},
                           err);
}

/* F3: the newest sizes of a journal; *left is how many may still be looked at. */
static cx_status match_sizes(finder *f, const cx_actor_info *actor, uint64_t *left, cx_err *err)
{
    cx_trees trees;
    cx_status status = CX_SUCCESS;
    uint64_t size = actor->entry_count, found = UINT64_MAX;
    CX_TRY(cx_home_trees_begin(f->sources->home, actor->name, &trees, err));
    for (; size > 0 && *left > 0 && found == UINT64_MAX; size--, --*left) {
        cx_digest root;
        status = cx_mmr_root(trees.journal, size, &root, err);
        if (cx_failed(status))
            break;
        if (digest_matches(f, &root))
            found = size;
    }
    cx_home_trees_end(f->sources->home);
    f->roots_left_out = f->roots_left_out || (size > 0 && found == UINT64_MAX);
    CX_TRY(status);
    return found == UINT64_MAX
               ? CX_SUCCESS
               : add_numbered(f, CX_PROV_JOURNAL, actor->name, found, "journal_root", err);
}

static cx_status match_actor(finder *f, const cx_actor_info *walked, uint64_t *left, cx_err *err)
{
    const size_t before = f->count;
    cx_actor_info actor = *walked;
    actor.name = cx_arena_copy_str(f->arena, walked->name);
    if (actor.name.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(match_roots(f, actor.name, err));
    return f->count != before ? CX_SUCCESS : match_sizes(f, &actor, left, err);
}

/* Roots that nothing records.  The first actors that fit into the number of roots; of the others it
 * is said that they were not looked at. */
static cx_status search_roots(finder *f, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    uint64_t left = ROOTS_LOOKED_AT;
    cx_actor_walk_begin(&walk, f->sources->home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && left > 0) {
        left -= 1;
        status = match_actor(f, actor, &left, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    f->roots_left_out = f->roots_left_out || (!cx_failed(status) && actor != NULL);
    cx_actor_walk_end(&walk);
    return status;
}

/* --- lattice nodes ---------------------------------------------------------------------------- */

/* The branch as a command takes it: nodes of traces have it, a recorded step is its agent's. */
static cx_str branch_of(finder *f, const cx_json *node)
{
    cx_str agent = CX_JSON_GET_STR(node, "agent_id");
    return cx_str_starts(agent, CX_STR("agent/")) ? agent
                                                  : CX_TEXTF(f->arena, "agent/%.*s", CX_S(agent));
}

/* The id of a node is its hash, the last member of a line is not fixed: looked for as text
 * first. */
static cx_status match_node(finder *f, cx_str line, cx_str run, cx_err *err)
{
    cx_json node;
    if (memmem(line.data, line.size, f->text.data, f->text.size) == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_json_parse_text(line, f->arena, &node, err));
    cx_str hash = CX_JSON_GET_STR(&node, "hash");
    if (!cx_str_starts(hash, f->text))
        return CX_SUCCESS;
    return add_found(f,
                     (cx_prov_object){.kind = CX_PROV_NODE,
                                      .id = hash,
                                      .actor = run.size != 0 ? run : branch_of(f, &node),
                                      .matched = "node_hash"},
                     err);
}

static cx_status match_nodes(finder *f, cx_str lines, cx_str run, cx_err *err)
{
    cx_str line;
    while (cx_run_next_line(&lines, &line))
        CX_TRY(match_node(f, line, run, err));
    return CX_SUCCESS;
}

static cx_status search_run_nodes(finder *f, cx_err *err)
{
    cx_str *ids;
    size_t count = 0;
    if (f->sources->store == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_run_store_list(f->sources->store, f->arena, &ids, &count, err));
    for (size_t i = 0; i < count && i < RUNS_LOOKED_AT; i++) {
        cx_run_bundle *bundle = NULL;
        cx_bytes events;
        cx_buf lines;
        cx_buf_init(&lines, f->sources->alloc);
        cx_status status = cx_run_view_open(f->sources->store, ids[i], &bundle, err);
        if (!cx_failed(status))
            status = cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX,
                                        &events, err);
        if (!cx_failed(status))
            status = cx_run_lattice_lines(cx_bytes_str(events), (cx_str){NULL, 0}, &lines, err);
        cx_str name = CX_TEXTF(f->arena, "run/%.*s", CX_S(ids[i]));
        if (!cx_failed(status))
            status = match_nodes(f, cx_buf_str(&lines), name, err);
        cx_buf_done(&lines);
        cx_run_bundle_close(bundle);
        if (status.code == CX_E_NOMEM) /* a run that cannot be read has no nodes */
            return status;
    }
    return CX_SUCCESS;
}

static cx_status match_branch(finder *f, cx_str journal, cx_err *err)
{
    cx_buf lines;
    cx_str branch = CX_TEXTF(f->arena, "agent/%.*s", CX_S(journal));
    if (branch.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&lines, f->sources->alloc);
    cx_status status = cx_recorder_lattice_lines(f->sources->home, branch, &lines, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
    if (!cx_failed(status))
        status = match_nodes(f, cx_buf_str(&lines), CX_STR(""), err);
    cx_buf_done(&lines);
    return status;
}

/* Nodes of traces have hashes that follow from all traces of an agent before them, and change when
 * one of these is erased: no row can name them.  Other journals are not read. */
static cx_status search_trace_nodes(finder *f, cx_err *err)
{
    const cx_str *names;
    size_t count = 0;
    CX_TRY(cx_prov_trace_journals(f->sources, f->arena, &names, &count, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(match_branch(f, names[i], err));
    return CX_SUCCESS;
}

static cx_status search_nodes(finder *f, cx_err *err)
{
    if (f->sources->home != NULL)
        CX_TRY(search_trace_nodes(f, err));
    return search_run_nodes(f, err);
}

/* --- what the tables know of a hash ----------------------------------------------------------- */

static cx_status match_place(finder *f, const cx_hash_place *place, cx_err *err)
{
    cx_tail_item item;
    cx_manifest manifest;
    if (place->snapshot) {
        cx_status status = cx_snapshot_get(f->sources->home, place->actor, place->number, f->arena,
                                           &manifest, NULL, err);
        if (status.code == CX_E_NOT_FOUND) /* it was dropped */
            return CX_SUCCESS;
        return cx_failed(status) ? status : match_manifest(f, place->actor, &manifest, err);
    }
    CX_TRY(cx_home_entry_item(f->sources->home, place->actor, place->number, f->arena, &item, err));
    if (cx_kinds_is(item.entry.kind, CX_KIND_LATTICE_NODE) && !item.erased)
        CX_TRY(match_node(f, cx_bytes_str(item.payload), CX_STR(""), err));
    return match_entry(f, &item, err);
}

/* F3: what a row leads to is read, and must match itself. */
static cx_status look_up(finder *f, cx_err *err)
{
    const cx_hash_place *places;
    size_t count = 0;
    CX_TRY(cx_home_find_hash(f->sources->home, f->text, PLACES_LOOKED_AT, f->arena, &places, &count,
                             err));
    for (size_t i = 0; i < count && f->count < CX_PROV_OBJECTS_MAX; i++) {
        const size_t before = f->count;
        cx_arena_mark mark = cx_arena_mark_now(f->arena);
        CX_TRY(match_place(f, &places[i], err));
        if (f->count == before)
            cx_arena_reset(f->arena, mark);
    }
    return CX_SUCCESS;
}

/* A recorded step by its whole hash: no history is read for it. */
static cx_status find_step(finder *f, cx_err *err)
{
    cx_str line;
    bool found = false;
    CX_TRY(cx_recorder_step_line(f->sources->home, f->text, f->arena, &line, &found, err));
    return found ? match_node(f, line, CX_STR(""), err) : CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status search_commits(finder *f, cx_err *err)
{
    cx_str *commits;
    size_t count;
    CX_TRY(cx_commits_like(f->sources, f->text, f->arena, &commits, &count, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_found(
            f, (cx_prov_object){.kind = CX_PROV_COMMIT, .id = commits[i], .matched = "id"}, err));
    return CX_SUCCESS;
}

static cx_status search_runs(finder *f, cx_err *err)
{
    cx_str *ids;
    size_t count = 0;
    if (f->sources->store == NULL || !cx_str_starts(f->text, CX_STR("run_")))
        return CX_SUCCESS;
    CX_TRY(cx_run_store_list(f->sources->store, f->arena, &ids, &count, err));
    for (size_t i = 0; i < count; i++)
        if (cx_str_starts(ids[i], f->text))
            CX_TRY(add_found(
                f, (cx_prov_object){.kind = CX_PROV_RUN, .id = ids[i], .matched = "id"}, err));
    return CX_SUCCESS;
}

/* F1 */
static cx_status find_exact(finder *f, cx_err *err)
{
    cx_str run;
    uint64_t index;
    CX_TRY(find_uri(f, err));
    if (cx_run_id_valid(f->text))
        CX_TRY(find_run(f, f->text, "id", err));
    if (cx_run_event_split(f->text, &run, &index))
        CX_TRY(find_run_or_event(f, CX_PROV_EVENT, run, f->text, "id", err));
    return f->sources->home == NULL ? CX_SUCCESS : find_named(f, err);
}

/* F2 */
static cx_status find_similar(finder *f, cx_err *err)
{
    CX_TRY(search_runs(f, err));
    if (f->hex)
        CX_TRY(search_commits(f, err));
    if (f->sources->home != NULL && !f->hex)
        CX_TRY(search_log(f, err));
    if (f->sources->home != NULL && f->hex) {
        CX_TRY(look_up(f, err));
        if (f->count == 0)
            CX_TRY(search_roots(f, err));
    }
    return f->hex && f->count == 0 ? search_nodes(f, err) : CX_SUCCESS;
}

static bool lower_hex(cx_str text, cx_arena *arena, cx_str *out)
{
    char *copy = cx_arena_push(arena, text.size + 1, 1);
    if (copy == NULL || text.size < CX_PROV_PREFIX_MIN || text.size > 64)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        copy[i] = c >= 'A' && c <= 'F' ? (char)(c + 32) : c;
        if (!((c >= '0' && c <= '9') || (copy[i] >= 'a' && copy[i] <= 'f')))
            return false;
    }
    copy[text.size] = 0;
    *out = cx_str_from(copy, text.size);
    return true;
}

static cx_status fail_not_found(const finder *f, cx_err *err)
{
    const cx_sources *s = f->sources;
    if (f->text.size < CX_PROV_PREFIX_MIN)
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "NoThing", CX_NO_OFFSET,
            "no object is called '%.*s'; a shortened id or hash needs at least %d characters",
            CX_S(f->text), CX_PROV_PREFIX_MIN);
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoThing", CX_NO_OFFSET,
                      "no object is called '%.*s'; searched in %s%s, %s, %s", CX_S(f->text),
                      s->home == NULL ? "no home" : "the home",
                      f->roots_left_out ? " (but for roots of older sizes of journals)" : "",
                      s->store == NULL ? "no runs" : "the runs",
                      s->git == NULL ? "no repository" : "the repository");
}

cx_status cx_prov_objects_find(const cx_sources *sources, cx_str text, cx_arena *arena,
                               const cx_prov_object **out, size_t *out_count, cx_err *err)
{
    finder f = {.sources = sources, .arena = arena, .text = text};
    if (text.size == 0 || text.size > 1024)
        return cx_fail(err, CX_E_USAGE, "expected an id, a hash or a URI of at most 1024 bytes");
    f.found = CX_ARENA_ARRAY(arena, cx_prov_object, CX_PROV_OBJECTS_MAX);
    if (f.found == NULL)
        return cx_fail_nomem(err);
    CX_TRY(find_exact(&f, err));
    f.hex = lower_hex(text, arena, &f.text);
    if (f.count == 0 && f.hex && sources->home != NULL)
        CX_TRY(find_step(&f, err));
    if (f.count == 0 && text.size >= CX_PROV_PREFIX_MIN)
        CX_TRY(find_similar(&f, err));
    if (f.count == 0)
        return fail_not_found(&f, err);
    *out = f.found;
    *out_count = f.count;
    return CX_SUCCESS;
}
