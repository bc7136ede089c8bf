/*
 * The installed API of memories, <cortex/memory.h>: each call, its answer, its errors, wrong use.
 */
#include <cortex/memory.h>

#include <string.h>

#include "base/arena.h"
#include "json/json.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define FACT(statement)                                                             \
    "{\"statement\":\"" statement "\",\"subject\":\"office\",\"predicate\":\"is\"," \
    "\"source\":\"Anna\"}"
#define NO_MEMORY "matrix://cortex/Fact/00000000000000000000000009#1"

#define CHECK_FAILS(expression, expected_code, expected_tag)                     \
    do {                                                                         \
        memset(&f->err, 0, sizeof f->err);                                       \
        CHECK_INT((expression).code, expected_code);                             \
        CHECK_STR(cx_str_z(f->err.tag == NULL ? "" : f->err.tag), expected_tag); \
    } while (0)

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_ledger *ledger;
    cx_memories *memories;
    cx_owned json;
    cx_arena arena;
    cx_err err;
    int64_t clock;
    uint8_t ids;
} fixture;

static int64_t tick(void *arg)
{
    fixture *f = arg;
    return f->clock += 2000000000;
}

static bool next_id(void *arg, uint8_t out_id[16])
{
    fixture *f = arg;
    memset(out_id, 0, 16);
    out_id[15] = ++f->ids;
    return f->ids < 200;
}

static bool begin(fixture *f)
{
    memset(f, 0, sizeof *f);
    folder_fresh(f->path, "api-memory");
    cx_arena_init(&f->arena, cx_alloc_default(), 0);
    f->clock = 1700000000000000000;
    cx_memories_options options = CX_MEMORIES_OPTIONS_INIT;
    options.now_ns = tick;
    options.now_arg = f;
    options.new_id = next_id;
    options.new_id_arg = f;
    CHECK_STATUS(cx_ledger_make(f->path, NULL, NULL, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_open(f->path, NULL, &f->ledger, &f->err), &f->err);
    if (f->ledger != NULL)
        CHECK_STATUS(cx_memories_open(f->ledger, "andrew", &options, &f->memories, &f->err),
                     &f->err);
    return f->memories != NULL;
}

static void end(fixture *f)
{
    cx_owned_done(&f->json);
    cx_memories_close(f->memories);
    CHECK_STATUS(cx_ledger_close(f->ledger, &f->err), &f->err);
    cx_arena_done(&f->arena);
    folder_remove(f->path);
}

static cx_memories_draft fact(const char *data)
{
    cx_memories_draft draft = CX_MEMORIES_DRAFT_INIT;
    draft.type = "Fact";
    draft.content.data = cx_str_z(data);
    return draft;
}

static cx_uri_text write_text(fixture *f, const char *type, const char *data)
{
    cx_memories_draft draft = fact(data);
    cx_uri_text uri = {""};
    draft.type = type;
    CHECK_STATUS(cx_memories_write(f->memories, &draft, &uri, &f->err), &f->err);
    return uri;
}

/* The answer just given, which lives until the next one. */
static cx_json answer(fixture *f)
{
    cx_json json = {0};
    cx_str text = cx_str_from(cx_owned_text(&f->json), f->json.size);
    CHECK_STATUS(cx_json_parse_text(text, &f->arena, &json, &f->err), &f->err);
    return json;
}

/* Member by pointer, as text; numbers and words as they are spelled. */
static cx_str at(const cx_json *json, const char *pointer)
{
    const cx_json *found = cx_json_pointer(json, cx_str_z(pointer));
    if (found == NULL)
        return CX_STR("(none)");
    switch (found->type) {
    case CX_JSON_NULL: return CX_STR("null");
    case CX_JSON_TRUE: return CX_STR("true");
    case CX_JSON_FALSE: return CX_STR("false");
    case CX_JSON_ARRAY: return found->count == 0 ? CX_STR("[]") : CX_STR("[..]");
    case CX_JSON_OBJECT: return CX_STR("{..}");
    default: return cx_json_text(found);
    }
}

#define ANSWER(call)                 \
    do {                             \
        cx_owned_done(&f->json);     \
        CHECK_STATUS(call, &f->err); \
        got = answer(f);             \
    } while (0)
#define HAS(pointer, expected) CHECK_STR(at(&got, pointer), expected)

CX_TEST(api_memory_opens)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_memories *other = NULL;
    cx_memories_options options = CX_MEMORIES_OPTIONS_INIT;
    cx_ledger_actor_info actor;
    cx_memories_draft draft = fact(FACT("a"));
    CHECK_FAILS(cx_memories_open(f->ledger, "a/b", NULL, &other, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_INT(cx_memories_open(f->ledger, NULL, NULL, &other, NULL).code, CX_E_USAGE);
    options.scheme = "md5";
    CHECK_FAILS(cx_memories_open(f->ledger, "bo", &options, &other, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK(other == NULL);
    options.scheme = "matrix-1";
    CHECK_STATUS(cx_memories_open(f->ledger, "bo", &options, &other, &f->err), &f->err);
    CHECK_STATUS(cx_memories_write(other, &draft, NULL, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_actor(f->ledger, "bo", &actor, &f->err), &f->err);
    CHECK_STR(cx_str_z(actor.scheme), "matrix-1");
    cx_memories_close(other);
    cx_memories_close(NULL);
    end(f);
}

CX_TEST(api_memory_is_written_and_read_back)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    static const char *const tags[] = {"one", "two"};
    static const char *const attested[] = {"Bo"};
    const cx_memories_frame frame = {"acquire", "service", "gpu"};
    cx_memories_draft draft = fact(FACT("open"));
    cx_uri_text uri;
    cx_json got;
    draft.labels.tags = tags;
    draft.labels.tag_count = 2;
    draft.labels.frames = &frame;
    draft.labels.frame_count = 1;
    draft.labels.importance = 7;
    draft.labels.visibility = "scoped";
    draft.content.source = "observed";
    draft.content.attestations = attested;
    draft.content.attestation_count = 1;
    draft.content.confidence = 0.5f;
    draft.content.expires = true;
    draft.content.expires_at_s = 1800000000;
    draft.content.brief = "b";
    draft.content.medium = "m";
    draft.content.by = "writer";
    draft.id = "0000000000000000000000000A";
    CHECK_STATUS(cx_memories_write(f->memories, &draft, &uri, &f->err), &f->err);
    CHECK_STR(cx_str_z(uri.text), "matrix://cortex/Fact/0000000000000000000000000A#1");
    ANSWER(cx_memories_get(f->memories, uri.text, &f->json, &f->err));
    HAS("/uri", uri.text);
    HAS("/data/statement", "open");
    HAS("/tags/1", "two");
    HAS("/frames/0/verb", "acquire");
    HAS("/frames/0/ref", "gpu");
    HAS("/importance", "7");
    HAS("/visibility", "scoped");
    HAS("/provenance/source", "observed");
    HAS("/provenance/attestations/0", "Bo");
    HAS("/confidence", "0.5");
    HAS("/expires_at", "2027-01-15T08:00:00Z");
    HAS("/expired", "false");
    HAS("/forms/short", "b");
    HAS("/created_by", "writer");
    HAS("/tombstone", "null");
    HAS("/embedding", "null");
    ANSWER(cx_memories_get(f->memories, draft.id, &f->json, &f->err));
    HAS("/version", "1");
    CHECK_FAILS(cx_memories_write(f->memories, &draft, &uri, &f->err), CX_E_EXISTS,
                "AlreadyExists");
    end(f);
}

CX_TEST(api_memory_data_as_cbor)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text uri = write_text(f, "Fact", FACT("x")), same;
    cx_owned data = CX_OWNED_INIT, again = CX_OWNED_INIT;
    cx_memories_draft draft = CX_MEMORIES_DRAFT_INIT;
    CHECK_STATUS(cx_memories_get_data(f->memories, uri.text, &data, &f->err), &f->err);
    CHECK(data.size > 10);
    draft.type = "Fact";
    draft.content.data_cbor = cx_owned_bytes(&data);
    CHECK_STATUS(cx_memories_write(f->memories, &draft, &same, &f->err), &f->err);
    CHECK_STATUS(cx_memories_get_data(f->memories, same.text, &again, &f->err), &f->err);
    CHECK(data.size == again.size && memcmp(data.data, again.data, data.size) == 0);
    draft.content.data_cbor.size--;
    CHECK_FAILS(cx_memories_write(f->memories, &draft, &same, &f->err), CX_E_FORMAT,
                "NonCanonical");
    draft.content.data = cx_str_z(FACT("x"));
    CHECK_FAILS(cx_memories_write(f->memories, &draft, &same, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_FAILS(cx_memories_get_data(f->memories, NO_MEMORY, &again, &f->err), CX_E_NOT_FOUND,
                "NotFound");
    CHECK_STATUS(cx_memories_erase(f->memories, uri.text, "asked", NULL, &f->err), &f->err);
    cx_owned_done(&again);
    CHECK_STATUS(cx_memories_get_data(f->memories, uri.text, &again, &f->err), &f->err);
    CHECK_INT(again.size, 0);
    cx_owned_done(&data);
    cx_owned_done(&again);
    end(f);
}

CX_TEST(api_memory_refuses_wrong_drafts)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_ledger_actor_info actor;
    const char *bad_text = "\xff";
    const char *no_text = NULL;
    const char *missing = NO_MEMORY;
    cx_memories_frame frame = {"fly", "service", "x"};
#define REFUSES(change, code, tag)                                                     \
    do {                                                                               \
        cx_memories_draft draft = fact(FACT("x"));                                     \
        change;                                                                        \
        CHECK_FAILS(cx_memories_write(f->memories, &draft, NULL, &f->err), code, tag); \
    } while (0)
    REFUSES(draft.type = NULL, CX_E_USAGE, "InvalidType");
    REFUSES(draft.type = "fact", CX_E_USAGE, "InvalidType");
    REFUSES(draft.content.data.size = 0, CX_E_USAGE, "EmptyData");
    REFUSES(draft.content.data = cx_str_z("{}"), CX_E_USAGE, "EmptyData");
    REFUSES(draft.content.data = cx_str_z("{"), CX_E_MORE, "U_SYNTAX");
    REFUSES(draft.content.data = cx_str_z("{\"a\":1,\"a\":1}"), CX_E_FORMAT, "U_DUPKEY");
    REFUSES(draft.content.data = cx_str_z("{\"colour\":1}"), CX_E_USAGE, "TypeDataMismatch");
    REFUSES(draft.content.data = cx_str_z("{\"statement\":\"x\"}"), CX_E_USAGE, "FieldMissing");
    REFUSES(draft.content.source = "heard", CX_E_USAGE, "InvalidSource");
    REFUSES(draft.content.brief = "only", CX_E_USAGE, "InvalidArgument");
    REFUSES((draft.content.attestations = &bad_text, draft.content.attestation_count = 1),
            CX_E_USAGE, "InvalidArgument");
    REFUSES((draft.content.derived_from = &missing, draft.content.derived_from_count = 1),
            CX_E_NOT_FOUND, "DanglingReference");
    REFUSES(draft.content.by = bad_text, CX_E_USAGE, "InvalidArgument");
    REFUSES(draft.labels.importance = 11, CX_E_USAGE, "InvalidArgument");
    REFUSES(draft.labels.importance = 258, CX_E_USAGE, "InvalidArgument");
    REFUSES(draft.labels.visibility = "public", CX_E_USAGE, "InvalidArgument");
    REFUSES((draft.labels.tags = &no_text, draft.labels.tag_count = 1), CX_E_USAGE,
            "InvalidArgument");
    REFUSES((draft.labels.frames = &frame, draft.labels.frame_count = 1), CX_E_USAGE,
            "InvalidArgument");
    REFUSES(draft.id = "x", CX_E_USAGE, "InvalidArgument");
    CHECK_FAILS(cx_ledger_actor(f->ledger, "andrew", &actor, &f->err), CX_E_NOT_FOUND, "NoActor");
    cx_memories_draft draft = fact("{");
    CHECK_INT(cx_memories_write(f->memories, &draft, NULL, NULL).code, CX_E_MORE);
    end(f);
}

CX_TEST(api_memory_update_is_compare_and_set)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text uri = write_text(f, "Fact", FACT("one")), newer = {""};
    cx_memories_content content = CX_MEMORIES_CONTENT_INIT;
    cx_json got;
    content.data = cx_str_z(FACT("two"));
    CHECK_STATUS(cx_memories_update(f->memories, uri.text, &content, &newer, &f->err), &f->err);
    CHECK_STR(cx_str_z(newer.text), "matrix://cortex/Fact/00000000000000000000000001#2");
    CHECK_FAILS(cx_memories_update(f->memories, uri.text, &content, &newer, &f->err), CX_E_CONFLICT,
                "VersionConflict");
    ANSWER(cx_memories_get(f->memories, uri.text, &f->json, &f->err));
    HAS("/data/statement", "one");
    HAS("/current_version", "2");
    CHECK_FAILS(
        cx_memories_update(f->memories, "00000000000000000000000001", &content, NULL, &f->err),
        CX_E_FORMAT, "BadURI");
    CHECK_INT(cx_memories_update(f->memories, NULL, &content, NULL, NULL).code, CX_E_USAGE);
    CHECK_FAILS(cx_memories_update(f->memories, NO_MEMORY, &content, NULL, &f->err), CX_E_NOT_FOUND,
                "NotFound");
    ANSWER(cx_memories_history(f->memories, uri.text, &f->json, &f->err));
    HAS("/count", "2");
    HAS("/entries/1", "1");
    CHECK_FAILS(cx_memories_history(f->memories, NO_MEMORY, &f->json, &f->err), CX_E_NOT_FOUND,
                "NotFound");
    end(f);
}

CX_TEST(api_memory_labels)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text uri = write_text(f, "Fact", FACT("one"));
    static const char *const tags[] = {"new"};
    cx_memories_relabel relabel = CX_MEMORIES_RELABEL_INIT;
    cx_digest head;
    cx_json got;
    relabel.labels.tags = tags;
    relabel.labels.tag_count = 1;
    relabel.labels.importance = 9;
    relabel.set_tags = true;
    ANSWER(cx_memories_get(f->memories, uri.text, &f->json, &f->err));
    char hex[65] = {0};
    memcpy(hex, at(&got, "/head_hash").data, 64);
    REQUIRE(cx_digest_from_text(hex, &head));
    relabel.if_head = &head;
    CHECK_STATUS(cx_memories_update_labels(f->memories, uri.text, &relabel, &f->err), &f->err);
    CHECK_FAILS(cx_memories_update_labels(f->memories, uri.text, &relabel, &f->err), CX_E_CONFLICT,
                "HeadConflict");
    ANSWER(cx_memories_get(f->memories, uri.text, &f->json, &f->err));
    HAS("/tags/0", "new");
    HAS("/importance", "0");
    relabel.if_head = NULL;
    relabel.labels.visibility = "nobody";
    CHECK_FAILS(cx_memories_update_labels(f->memories, uri.text, &relabel, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_INT(cx_memories_update_labels(f->memories, NULL, &relabel, NULL).code, CX_E_USAGE);
    end(f);
}

CX_TEST(api_memory_ends)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text uri = write_text(f, "Fact", FACT("one"));
    cx_ledger_actor_info actor;
    cx_json got;
    CHECK_STATUS(cx_memories_tombstone(f->memories, uri.text, "old", "bo", &f->err), &f->err);
    CHECK_STATUS(cx_memories_tombstone(f->memories, uri.text, "old", "bo", &f->err), &f->err);
    CHECK_STATUS(cx_ledger_actor(f->ledger, "andrew", &actor, &f->err), &f->err);
    CHECK_INT(actor.entry_count, 2);
    ANSWER(cx_memories_get(f->memories, uri.text, &f->json, &f->err));
    HAS("/tombstone/reason", "old");
    HAS("/tombstone/by", "bo");
    CHECK_STATUS(cx_memories_erase(f->memories, "00000000000000000000000001", NULL, NULL, &f->err),
                 &f->err);
    ANSWER(cx_memories_get(f->memories, uri.text, &f->json, &f->err));
    HAS("/erased", "true");
    HAS("/data", "null");
    CHECK(strstr(cx_owned_text(&f->json), "office") == NULL);
    CHECK_FAILS(cx_memories_tombstone(f->memories, NO_MEMORY, NULL, NULL, &f->err), CX_E_NOT_FOUND,
                "NotFound");
    CHECK_FAILS(cx_memories_erase(f->memories, "x", NULL, NULL, &f->err), CX_E_FORMAT, "BadURI");
    CHECK_INT(cx_memories_tombstone(f->memories, NULL, NULL, NULL, NULL).code, CX_E_USAGE);
    CHECK_INT(cx_memories_erase(f->memories, uri.text, "\xff", NULL, NULL).code, CX_E_USAGE);
    end(f);
}

CX_TEST(api_memory_edges)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text a = write_text(f, "Fact", FACT("a")), b = write_text(f, "Fact", FACT("b")), uri;
    cx_memories_edge edge = CX_MEMORIES_EDGE_INIT;
    cx_memories_edge_query query = CX_MEMORIES_EDGE_QUERY_INIT;
    bool written = false;
    cx_json got;
    edge.from = a.text;
    edge.to = "00000000000000000000000002";
    edge.type = "part_of";
    edge.weight = 0.5f;
    edge.data = cx_bytes_from("\xff\x01", 2);
    CHECK_STATUS(cx_memories_link(f->memories, &edge, &uri, &written, &f->err), &f->err);
    CHECK(written);
    CHECK_STR(cx_str_z(uri.text), "matrix://cortex/edge/00000000000000000000000001/part_of/"
                                  "00000000000000000000000002");
    CHECK_STATUS(cx_memories_link(f->memories, &edge, NULL, &written, &f->err), &f->err);
    CHECK(!written);
    ANSWER(cx_memories_edges(f->memories, a.text, NULL, &f->json, &f->err));
    HAS("/count", "1");
    HAS("/edges/0/uri", uri.text);
    HAS("/edges/0/weight", "0.5");
    HAS("/edges/0/data/hex", "ff01");
    HAS("/edges/0/removed", "null");
    query.to = true;
    ANSWER(cx_memories_edges(f->memories, b.text, &query, &f->json, &f->err));
    HAS("/edges/0/src", "00000000000000000000000001");
    query.type = "caused_by";
    ANSWER(cx_memories_edges(f->memories, b.text, &query, &f->json, &f->err));
    HAS("/edges", "[]");
    ANSWER(cx_memories_walk(f->memories, a.text, 3, false, &f->json, &f->err));
    HAS("/steps/1/by", "part_of");
    HAS("/steps/1/uri", b.text);
    HAS("/cut", "false");
    ANSWER(cx_memories_walk(f->memories, a.text, 3, true, &f->json, &f->err));
    HAS("/steps/1", "(none)");
    CHECK_STATUS(cx_memories_unlink(f->memories, uri.text, "done", "bo", &written, &f->err),
                 &f->err);
    CHECK(written);
    CHECK_STATUS(cx_memories_unlink(f->memories, uri.text, "done", "bo", NULL, &f->err), &f->err);
    query = (cx_memories_edge_query){.with_removed = true};
    ANSWER(cx_memories_edges(f->memories, a.text, &query, &f->json, &f->err));
    HAS("/edges/0/removed/reason", "done");

    query.type = "likes";
    CHECK_FAILS(cx_memories_edges(f->memories, a.text, &query, &f->json, &f->err), CX_E_USAGE,
                "InvalidEdgeType");
    CHECK_FAILS(cx_memories_unlink(f->memories, a.text, NULL, NULL, NULL, &f->err), CX_E_FORMAT,
                "BadURI");
    CHECK_INT(cx_memories_unlink(f->memories, NULL, NULL, NULL, NULL, NULL).code, CX_E_USAGE);
    edge.to = a.text;
    CHECK_FAILS(cx_memories_link(f->memories, &edge, NULL, NULL, &f->err), CX_E_USAGE, "SelfEdge");
    edge.to = NO_MEMORY;
    CHECK_FAILS(cx_memories_link(f->memories, &edge, NULL, NULL, &f->err), CX_E_NOT_FOUND,
                "DanglingEdge");
    edge.type = NULL;
    CHECK_FAILS(cx_memories_link(f->memories, &edge, NULL, NULL, &f->err), CX_E_USAGE,
                "InvalidEdgeType");
    edge.type = "part_of";
    edge.from = NULL;
    CHECK_INT(cx_memories_link(f->memories, &edge, NULL, NULL, NULL).code, CX_E_USAGE);
    CHECK_INT(cx_memories_walk(f->memories, a.text, 9, true, &f->json, NULL).code, CX_E_LIMIT);
    end(f);
}

CX_TEST(api_memory_list_pages)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_memories_listing listing = CX_MEMORIES_LISTING_INIT;
    cx_json got;
    write_text(f, "Fact", FACT("a"));
    write_text(f, "Goal", "{\"statement\":\"g\",\"status\":\"active\"}");
    cx_uri_text last = write_text(f, "Fact", FACT("c"));
    listing.limit = 2;
    ANSWER(cx_memories_list(f->memories, &listing, &f->json, &f->err));
    HAS("/count", "2");
    HAS("/next_after", "00000000000000000000000002");
    listing.after = "00000000000000000000000002";
    ANSWER(cx_memories_list(f->memories, &listing, &f->json, &f->err));
    HAS("/count", "1");
    HAS("/memories/0/uri", last.text);
    HAS("/next_after", "null");
    CHECK_STATUS(cx_memories_tombstone(f->memories, last.text, "x", NULL, &f->err), &f->err);
    ANSWER(cx_memories_list(f->memories, NULL, &f->json, &f->err));
    HAS("/count", "2");
    listing = (cx_memories_listing){.type = "Fact", .with_tombstoned = true};
    ANSWER(cx_memories_list(f->memories, &listing, &f->json, &f->err));
    HAS("/count", "2");
    HAS("/actor", "andrew");
    listing.after = "x";
    CHECK_FAILS(cx_memories_list(f->memories, &listing, &f->json, &f->err), CX_E_USAGE,
                "InvalidArgument");
    listing = (cx_memories_listing){.type = "Dream"};
    CHECK_FAILS(cx_memories_list(f->memories, &listing, &f->json, &f->err), CX_E_USAGE,
                "InvalidType");
    end(f);
}

CX_TEST(api_memory_find)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    static const char *const types[] = {"Fact", "Belief"};
    const float near[] = {1.0f, 0.0f}, a_vector[] = {1.0f, 0.1f}, b_vector[] = {0.0f, 1.0f};
    cx_uri_text a = write_text(f, "Fact", FACT("a")), b = write_text(f, "Fact", FACT("b"));
    cx_memories_query query = CX_MEMORIES_QUERY_INIT;
    cx_ledger_entry entry;
    cx_json got;
    CHECK_FAILS(cx_memories_find(f->memories, &query, &f->json, &f->err), CX_E_USAGE,
                "InvalidArgument");
    query.types = types;
    query.type_count = 2;
    ANSWER(cx_memories_find(f->memories, &query, &f->json, &f->err));
    HAS("/count", "2");
    HAS("/memories/0/similarity", "null");
    query.field = "statement";
    query.field_op = "=";
    query.field_value = "b";
    ANSWER(cx_memories_find(f->memories, &query, &f->json, &f->err));
    HAS("/count", "1");
    HAS("/memories/0/uri", b.text);
    CHECK_STATUS(cx_memories_embed(f->memories, a.text, "tiny", a_vector, 2, &f->err), &f->err);
    CHECK_STATUS(cx_memories_embed(f->memories, b.text, "tiny", b_vector, 2, &f->err), &f->err);
    CHECK_INT(cx_memories_embed(f->memories, a.text, NULL, a_vector, 2, NULL).code, CX_E_USAGE);
    CHECK_FAILS(cx_memories_embed(f->memories, NO_MEMORY, "tiny", a_vector, 2, &f->err),
                CX_E_NOT_FOUND, "NotFound");
    query = (cx_memories_query){.near = near, .near_dim = 2, .limit = 1, .journal_as = "who"};
    ANSWER(cx_memories_find(f->memories, &query, &f->json, &f->err));
    HAS("/memories/0/uri", a.text);
    CHECK(at(&got, "/memories/0/similarity").data[0] == '0');
    CHECK_STATUS(cx_ledger_read(f->ledger, "andrew", 4, &entry, &f->err), &f->err);
    CHECK_STR(entry.kind, "find_late");
    cx_ledger_entry_done(&entry);
    ANSWER(cx_memories_context(f->memories, 1000, &f->json, &f->err));
    HAS("/count", "2");
    query = (cx_memories_query){.from = "x", .limit = 1};
    CHECK_FAILS(cx_memories_find(f->memories, &query, &f->json, &f->err), CX_E_FORMAT, "BadURI");
    query = (cx_memories_query){.types = types, .type_count = 1, .frame_verb = "acquire"};
    CHECK_FAILS(cx_memories_find(f->memories, &query, &f->json, &f->err), CX_E_USAGE,
                "InvalidArgument");
    query = (cx_memories_query){.types = types, .type_count = 1, .follow = "x"};
    CHECK_INT(cx_memories_find(f->memories, &query, &f->json, NULL).code, CX_E_USAGE);
    query = (cx_memories_query){.types = types, .type_count = 1, .limit = 1001};
    CHECK_INT(cx_memories_find(f->memories, &query, &f->json, NULL).code, CX_E_LIMIT);
    end(f);
}

CX_TEST(api_memory_attest_and_compact)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text a = write_text(f, "Fact", FACT("a"));
    cx_uri_text i = write_text(f, "Identity", "{\"name\":\"Andrew\",\"did\":\"did:x:1\"}");
    const char *cited[] = {a.text, "nonsense"};
    const char *in_context[] = {i.text, a.text};
    cx_memories_outcome outcome = {"trip", false, "arrived", cited, 2, NULL};
    cx_memories_attested attested;
    cx_memories_compaction compaction = {in_context, 2, NULL, 0, 0, "trip", "home"};
    cx_json got;
    CHECK_STATUS(cx_memories_attest(f->memories, &outcome, &attested, &f->err), &f->err);
    CHECK_INT(attested.seq, 2);
    CHECK_INT(attested.used, 1);
    outcome.intent = NULL;
    CHECK_INT(cx_memories_attest(f->memories, &outcome, &attested, NULL).code, CX_E_USAGE);
    outcome.intent = "";
    CHECK_FAILS(cx_memories_attest(f->memories, &outcome, NULL, &f->err), CX_E_USAGE,
                "EmptyIntent");
    ANSWER(cx_memories_compact(f->memories, &compaction, &f->json, &f->err));
    HAS("/kept/0", i.text);
    HAS("/kept/1", "(none)");
    HAS("/compacted/0/uri", a.text);
    HAS("/uri", "matrix://journal/logs/trip/home");
    HAS("/budget", "4000");
    compaction.step = NULL;
    CHECK_INT(cx_memories_compact(f->memories, &compaction, &f->json, NULL).code, CX_E_USAGE);
    compaction.step = "home";
    in_context[1] = "nonsense";
    CHECK_FAILS(cx_memories_compact(f->memories, &compaction, &f->json, &f->err), CX_E_FORMAT,
                "BadURI");
    end(f);
}

CX_TEST(api_memory_ids_may_run_out)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_memories_draft draft = fact(FACT("x"));
    f->ids = 199;
    CHECK_INT(cx_memories_write(f->memories, &draft, NULL, &f->err).code, CX_E_IO);
    end(f);
}

static cx_status use_all(const char *path, const cx_alloc *alloc, const char *uri)
{
    cx_ledger_options options = CX_LEDGER_OPTIONS_INIT;
    cx_ledger *ledger;
    cx_memories *memories = NULL;
    cx_owned json;
    options.alloc = alloc;
    options.read_only = true;
    CX_TRY(cx_ledger_open(path, &options, &ledger, NULL));
    cx_status status = cx_memories_open(ledger, "andrew", NULL, &memories, NULL);
    if (!cx_failed(status) && !cx_failed(status = cx_memories_get(memories, uri, &json, NULL)))
        cx_owned_done(&json);
    if (!cx_failed(status) && !cx_failed(status = cx_memories_list(memories, NULL, &json, NULL)))
        cx_owned_done(&json);
    cx_memories_close(memories);
    cx_status closed = cx_ledger_close(ledger, NULL);
    return cx_failed(status) ? status : closed;
}

CX_TEST(api_memory_without_memory_leaks_nothing)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f));
    cx_uri_text uri = write_text(f, "Fact", FACT("a"));
    bool done = false;
    unsigned failed = 0;
    for (uint64_t n = 1; !done && n < 2000; n++) {
        fault_alloc memory;
        fault_alloc_init(&memory, n, true);
        cx_status status = use_all(f->path, &memory.alloc, uri.text);
        done = atomic_load(&memory.fired) == 0;
        failed += cx_failed(status);
        if (done)
            CHECK_INT(status.code, CX_OK);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
    }
    CHECK(done && failed > 5);
    end(f);
}
