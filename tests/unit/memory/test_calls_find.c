/*
 * test_calls_find.c - Find, Context, List, Resolve (ledger.md §10; §14: 26).
 */
#include "tests/unit/memory/calls.h"

#define WITH_HOME(kit, name)                                   \
    calls kit;                                                 \
    if (!calls_init(&kit, name, "andrew", CX_SCHEME_CORTEX_1)) \
        return;

static cx_status find(calls *kit, const cx_memory_find *what, const cx_memory_hit **out,
                      size_t *out_count)
{
    return cx_memory_find_all(kit->memory, what, &kit->arena, out, out_count, &kit->err);
}

/* The hits as text: the last byte of each id in hex. */
static const char *found(calls *kit, const cx_memory_find *what)
{
    static char text[4096];
    const cx_memory_hit *hits;
    size_t count = 0;
    text[0] = 0;
    CHECK_STATUS(find(kit, what, &hits, &count), &kit->err);
    for (size_t i = 0; i < count && i < 1000; i++)
        (void)snprintf(text + 3 * i, 4, "%02x ", hits[i].view.head.id.bytes[15]);
    return text;
}

#define CHECK_FOUND(kit, what, expected) CHECK_STR(cx_str_z(found(kit, what)), expected)

static cx_uri write_fact(calls *kit, const char *statement, const char *tag, uint8_t importance)
{
    const cx_str tags[] = {cx_str_z(tag)};
    const cx_memory_write write = {.type = CX_TYPE_FACT,
                                   .data = calls_fact(kit, statement),
                                   .tags = tags,
                                   .tag_count = tag[0] != 0 ? 1 : 0,
                                   .importance = importance};
    return calls_write(kit, &write);
}

static const uint8_t fact_type = CX_TYPE_FACT;

CX_TEST(find_must_be_bounded)
{
    WITH_HOME(kit, "bounds");
    const cx_memory_hit *hits;
    size_t count;
    cx_memory_find what = {.limit = 10};
    CHECK_REFUSED(&kit, find(&kit, &what, &hits, &count), "InvalidArgument");
    what.frame_verb = 1;
    CHECK_REFUSED(&kit, find(&kit, &what, &hits, &count), "InvalidArgument");
    what = (cx_memory_find){.types = {&fact_type, 1}};
    CHECK_REFUSED(&kit, find(&kit, &what, &hits, &count), "InvalidArgument");
    what.limit = 1001;
    CHECK_REFUSED(&kit, find(&kit, &what, &hits, &count), "InvalidArgument");
    what.limit = 1000;
    what.field = CX_STR("statement");
    what.field_op = CX_STR("~");
    CHECK_REFUSED(&kit, find(&kit, &what, &hits, &count), "InvalidArgument");
    what.field = CX_STR("");
    /* Of an actor that does not exist yet: nothing. */
    CHECK_FOUND(&kit, &what, "");
    const uint8_t wrong = 10;
    what.types.data = &wrong;
    CHECK_REFUSED(&kit, find(&kit, &what, &hits, &count), "InvalidType");
    calls_done(&kit);
}

CX_TEST(find_orders_by_salience_and_filters)
{
    WITH_HOME(kit, "find");
    kit.tick = 0; /* then importance alone decides */
    (void)write_fact(&kit, "one", "a", 1);
    (void)write_fact(&kit, "two", "a", 9);
    (void)write_fact(&kit, "three", "b", 5);
    (void)write_fact(&kit, "four", "a", 5);
    cx_uri dead = write_fact(&kit, "five", "a", 10);
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &dead, CX_STR(""), CX_STR(""), &kit.err),
                 &kit.err);
    const cx_memory_write goal = {
        .type = CX_TYPE_GOAL,
        .data = calls_data(&kit, CX_TYPE_GOAL, "{\"statement\":\"g\",\"status\":\"active\"}")};
    (void)calls_write(&kit, &goal);
    cx_memory_find what = {.types = {&fact_type, 1}, .limit = 10};
    CHECK_FOUND(&kit, &what, "02 03 04 01 ");
    what.limit = 2;
    CHECK_FOUND(&kit, &what, "02 03 ");
    what.limit = 10;
    what.with_tombstoned = true;
    CHECK_FOUND(&kit, &what, "02 03 04 01 05 ");
    what.with_tombstoned = false;
    const cx_str tag = CX_STR("a"), both[] = {CX_STR("a"), CX_STR("b")};
    what = (cx_memory_find){.tags = &tag, .tag_count = 1, .limit = 10};
    CHECK_FOUND(&kit, &what, "02 04 01 ");
    what.tags = both;
    what.tag_count = 2;
    CHECK_FOUND(&kit, &what, "");
    const uint8_t types[] = {CX_TYPE_GOAL, CX_TYPE_FACT, CX_TYPE_GOAL};
    what = (cx_memory_find){.types = {types, 3}, .limit = 10};
    CHECK_FOUND(&kit, &what, "02 03 04 01 06 ");
    /* Forms are p(s)=one (8 bytes, 2 tokens), three (10, 3), four (9, 3). */
    what = (cx_memory_find){.types = {&fact_type, 1}, .budget_tokens = 7};
    CHECK_FOUND(&kit, &what, "02 03 01 ");
    calls_done(&kit);
}

CX_TEST(find_compares_members)
{
    WITH_HOME(kit, "members");
    static const char *const datas[] = {
        "{\"statement\":\"a\",\"strength\":0.5,\"coverage\":9}",
        "{\"statement\":\"ab\",\"strength\":0.25,\"coverage\":10}",
        "{\"statement\":\"b\",\"strength\":1,\"coverage\":200}",
    };
    static const struct {
        const char *field, *op, *value, *expected;
    } cases[] = {
        {"statement", "=", "a", "01 "},
        {"statement", "!=", "a", "02 03 "},
        {"statement", "contains", "b", "02 03 "},
        {"statement", "contains", "", "01 02 03 "},
        {"statement", ">", "a", "02 03 "},
        {"coverage", ">", "9", "02 03 "}, /* as numbers: as text "10" would be less */
        {"coverage", "<=", "10", "01 02 "},
        {"coverage", "=", "2e2", "03 "},
        {"strength", "<", "0.5", "02 "},
        {"strength", ">=", "0.5", "01 03 "},
        {"nothing", "!=", "x", ""},
    };
    kit.tick = 0;
    for (size_t i = 0; i < CX_COUNT_OF(datas); i++) {
        const cx_memory_write write = {.type = CX_TYPE_PATTERN,
                                       .data = calls_data(&kit, CX_TYPE_PATTERN, datas[i])};
        (void)calls_write(&kit, &write);
    }
    const uint8_t type = CX_TYPE_PATTERN;
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const cx_memory_find what = {.types = {&type, 1},
                                     .limit = 10,
                                     .field = cx_str_z(cases[i].field),
                                     .field_op = cx_str_z(cases[i].op),
                                     .field_value = cx_str_z(cases[i].value)};
        CHECK_FOUND(&kit, &what, cases[i].expected);
    }
    calls_done(&kit);
}

CX_TEST(find_by_frame_edge_and_likeness)
{
    WITH_HOME(kit, "ways");
    const cx_frame frame = {2, 1, CX_STR("gpu")};
    kit.tick = 0;
    cx_memory_write write = {.type = CX_TYPE_FACT, .data = calls_fact(&kit, "framed")};
    write.frames = &frame;
    write.frame_count = 1;
    (void)calls_write(&kit, &write);
    for (int i = 0; i < 4; i++)
        (void)write_fact(&kit, "x", "", 0);
    cx_memory_find what = {.types = {&fact_type, 1}, .limit = 10, .frame_verb = 2};
    CHECK_FOUND(&kit, &what, "01 ");
    what.frame_ref = CX_STR("cpu");
    CHECK_FOUND(&kit, &what, "");
    what.frame_verb = 0;
    what.frame_ref = CX_STR("gpu");
    CHECK_FOUND(&kit, &what, "01 ");
    for (uint64_t i = 2; i < 5; i++) {
        const cx_edge_name name = {fixture_id(1), (uint8_t)(i == 4 ? 7 : 3), fixture_id(i)};
        bool written;
        CHECK_STATUS(cx_memory_add_edge(kit.memory, &name, CX_STR(""), 0, (cx_bytes){NULL, 0},
                                        false, &written, &kit.err),
                     &kit.err);
        if (i == 2)
            CHECK_STATUS(cx_memory_remove_edge(kit.memory, &name, CX_STR(""), CX_STR(""), &written,
                                               &kit.err),
                         &kit.err);
    }
    const cx_id from = fixture_id(1);
    what = (cx_memory_find){.from = &from, .limit = 10};
    CHECK_FOUND(&kit, &what, "03 04 ");
    what.follow = 7;
    CHECK_FOUND(&kit, &what, "04 ");
    static const float vectors[3][2] = {{1, 0}, {0.6f, 0.8f}, {0, 1}}, near_to[2] = {0.1f, 2.0f};
    for (uint64_t i = 0; i < 3; i++) {
        const cx_id id = fixture_id(3 + i);
        CHECK_STATUS(cx_memory_embed(kit.memory, &id, 1, CX_STR("m"), vectors[i], 2, &kit.err),
                     &kit.err);
    }
    what = (cx_memory_find){.near = near_to, .near_dim = 2, .limit = 10};
    CHECK_FOUND(&kit, &what, "05 04 03 ");
    what.limit = 1;
    CHECK_FOUND(&kit, &what, "05 ");
    what.limit = 10;
    what.from = &from;
    CHECK_FOUND(&kit, &what, "04 03 ");
    what.from = NULL;
    what.near_dim = 1;
    CHECK_FOUND(&kit, &what, "");
    calls_done(&kit);
}

/* --- searches whose candidates do not fit into memory ----------------------------------------- */

enum { CROWD = 70 };

/* Memories of all kinds: dead, expired, with one of two tags, of different length and importance.
 */
static void write_crowd(calls *kit, uint64_t *state)
{
    static const char *const words[] = {"grey", "grey heron", "grey owl", "white heron"};
    static const char *const tags[] = {"a", "b"};
    for (uint64_t i = 1; i <= CROWD; i++) {
        char statement[64];
        const cx_str tag = cx_str_z(tags[cx_test_random(state) % 2]);
        (void)snprintf(statement, sizeof statement, "%s %.*s", words[cx_test_random(state) % 4],
                       (int)(cx_test_random(state) % 30), "abcdefghijklmnopqrstuvwxyzabcd");
        const cx_memory_write write = {.type = CX_TYPE_FACT,
                                       .data = calls_fact(kit, statement),
                                       .tags = &tag,
                                       .tag_count = 1,
                                       .importance = (uint8_t)(cx_test_random(state) % 4),
                                       .expires = cx_test_random(state) % 5 == 0,
                                       .expires_at = 1};
        cx_uri uri = calls_write(kit, &write);
        const float vector[2] = {(float)(cx_test_random(state) % 5), 1.0f};
        if (cx_test_random(state) % 2 == 0)
            CHECK_STATUS(
                cx_memory_embed(kit->memory, &uri.id, 1, CX_STR("m"), vector, 2, &kit->err),
                &kit->err);
        if (cx_test_random(state) % 7 == 0)
            CHECK_STATUS(cx_memory_tombstone(kit->memory, &uri, CX_STR(""), CX_STR(""), &kit->err),
                         &kit->err);
        const cx_edge_name edge = {fixture_id(1), (uint8_t)(3 + i % 2), uri.id};
        bool written;
        if (i != 1)
            CHECK_STATUS(cx_memory_add_edge(kit->memory, &edge, CX_STR(""), 0, (cx_bytes){NULL, 0},
                                            false, &written, &kit->err),
                         &kit->err);
    }
}

/* As text: the ids of a find, or with none of a context. */
static void list_ids(calls *kit, const cx_memory_find *what, uint64_t budget, char text[4096])
{
    const cx_memory_hit *hits = NULL;
    size_t count = 0;
    cx_status status = what != NULL ? find(kit, what, &hits, &count)
                                    : cx_memory_context(kit->memory, budget, NULL, &kit->arena,
                                                        &hits, &count, &kit->err);
    text[0] = 0;
    if (cx_failed(status))
        (void)snprintf(text, 4096, "%s", kit->err.message);
    for (size_t i = 0; i < count && i < 1000; i++)
        (void)snprintf(text + 3 * i, 4, "%02x ", hits[i].view.head.id.bytes[15]);
}

static void check_same(calls *kit, const cx_memory_find *what, uint64_t budget)
{
    char all[4096], few[4096];
    const int64_t now = atomic_load(&kit->clock);
    list_ids(kit, what, budget, all);
    for (size_t max = 1; max < CROWD; max += max / 2 + 1) {
        kit->memory->options.ranked_max = max;
        atomic_store(&kit->clock, now);
        list_ids(kit, what, budget, few);
        CHECK_STR(cx_str_z(few), all);
    }
    kit->memory->options.ranked_max = 0;
}

CX_TEST(find_in_bounded_memory_finds_the_same)
{
    WITH_HOME(kit, "crowd");
    uint64_t state = cx_test_seed();
    static const float near_to[2] = {1.0f, 2.0f};
    static const char *const texts[] = {"grey", "heron", "grey heron", "h* grey", "g*", "nothing"};
    const cx_str tag = CX_STR("a");
    const cx_id from = fixture_id(1);
    write_crowd(&kit, &state);
    kit.tick = 0;
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        cx_memory_find what = {.text = cx_str_z(texts[i])};
        for (what.limit = 1; what.limit < CROWD; what.limit *= 5)
            check_same(&kit, &what, 0);
        what.budget_tokens = 60;
        check_same(&kit, &what, 0);
        what.with_expired = what.with_tombstoned = true;
        check_same(&kit, &what, 0);
    }
    cx_memory_find what = {.tags = &tag, .tag_count = 1, .limit = 30};
    check_same(&kit, &what, 0);
    what.field = CX_STR("statement");
    what.field_op = CX_STR("contains");
    what.field_value = CX_STR("owl");
    check_same(&kit, &what, 0);
    what = (cx_memory_find){.near = near_to, .near_dim = 2, .limit = 30};
    check_same(&kit, &what, 0);
    what.from = &from;
    check_same(&kit, &what, 0);
    what.near = NULL;
    what.follow = 3;
    check_same(&kit, &what, 0);
    for (uint64_t budget = 1; budget < 1000; budget *= 3)
        check_same(&kit, NULL, budget);
    calls_done(&kit);
}

/* An allocator that counts. */
typedef struct counting {
    size_t now, most;
} counting;

static void *count_bytes(void *context, void *old, size_t old_size, size_t new_size)
{
    counting *c = context;
    c->now += new_size - old_size;
    c->most = c->now > c->most ? c->now : c->most;
    return cx_alloc_default()->resize(cx_alloc_default()->ctx, old, old_size, new_size);
}

static void count_looks(void *arg, uint64_t count)
{
    (void)count;
    ++*(unsigned *)arg;
}

CX_TEST(find_has_memory_for_the_best_alone)
{
    WITH_HOME(kit, "bounded");
    enum { MANY = 1000, BYTES_MAX = 12000 };
    counting counted = {0, 0};
    const cx_alloc alloc = {count_bytes, &counted};
    unsigned looks = 0;
    for (unsigned i = 0; i < MANY; i++)
        (void)calls_write_fact(&kit, "heron");
    cx_memory_options options = calls_options(&kit);
    options.alloc = &alloc;
    options.ranked_max = 16;
    options.looked = count_looks;
    options.looked_arg = &looks;
    cx_memory_close(kit.memory);
    CHECK_STATUS(cx_memory_open(kit.home, CX_STR("andrew"), &options, &kit.memory, &kit.err),
                 &kit.err);
    const cx_memory_find what = {.text = CX_STR("heron"), .limit = 5};
    const cx_memory_hit *hits;
    size_t count = 0;
    CHECK_STATUS(find(&kit, &what, &hits, &count), &kit.err);
    CHECK_INT(count, 5);
    CHECK_INT(looks, (MANY + 15) / 16);
    CHECK(counted.most < BYTES_MAX);
    calls_done(&kit);
}

CX_TEST(find_by_words_looks_at_those_with_the_rarest)
{
    WITH_HOME(kit, "rarest");
    enum { MANY = 100 };
    unsigned looks = 0;
    for (unsigned i = 0; i < MANY; i++)
        (void)write_fact(&kit, i == 40 ? "everywhere owl" : "everywhere heron", "", 0);
    kit.memory->options.looked = count_looks;
    kit.memory->options.looked_arg = &looks;
    kit.memory->options.ranked_max = 1;
    cx_memory_find what = {.text = CX_STR("everywhere owl"), .limit = 5};
    CHECK_FOUND(&kit, &what, "29 ");
    CHECK_INT(looks, 1);
    what.text = CX_STR("everywhere ow*");
    CHECK_FOUND(&kit, &what, "29 ");
    what.text = CX_STR("everywhere heron owl");
    CHECK_FOUND(&kit, &what, "");
    what.text = CX_STR("everywhere nothing owl");
    CHECK_FOUND(&kit, &what, "");
    CHECK_INT(looks, 3);
    what.text = CX_STR("everywhere heron");
    what.limit = 2;
    CHECK_FOUND(&kit, &what, "64 63 ");
    calls_done(&kit);
}

static void check_list(calls *kit, uint8_t type, const cx_id *after, size_t limit)
{
    const cx_memory_view *all, *few;
    size_t all_count = 0, few_count = 0;
    for (int with_dead = 0; with_dead < 2; with_dead++) {
        kit->memory->options.ranked_max = 0;
        CHECK_STATUS(cx_memory_list(kit->memory, type, with_dead, after, limit, &kit->arena, &all,
                                    &all_count, &kit->err),
                     &kit->err);
        kit->memory->options.ranked_max = 48; /* three heads */
        CHECK_STATUS(cx_memory_list(kit->memory, type, with_dead, after, limit, &kit->arena, &few,
                                    &few_count, &kit->err),
                     &kit->err);
        REQUIRE(few_count == all_count);
        for (size_t i = 0; i < all_count; i++)
            CHECK(calls_same(&all[i].head.id, &few[i].head.id));
    }
}

CX_TEST(list_of_a_rare_type_is_read_from_its_index)
{
    WITH_HOME(kit, "rare");
    uint64_t state = cx_test_seed();
    enum { MANY = 40 };
    unsigned looks = 0;
    for (unsigned i = 0; i < MANY; i++) {
        cx_memory_write goal = {
            .type = CX_TYPE_GOAL,
            .data = calls_data(&kit, CX_TYPE_GOAL, "{\"statement\":\"g\",\"status\":\"active\"}")};
        const bool rare = cx_test_random(&state) % 4 == 0;
        cx_uri uri = rare ? calls_write(&kit, &goal) : write_fact(&kit, "x", "", 0);
        if (cx_test_random(&state) % 5 == 0)
            CHECK_STATUS(
                cx_memory_redact_memory(kit.memory, &uri, CX_STR(""), CX_STR(""), &kit.err),
                &kit.err);
    }
    for (uint64_t after = 0; after < MANY; after += 3) {
        const cx_id id = fixture_id(after);
        for (size_t limit = 1; limit < MANY; limit *= 3) {
            check_list(&kit, CX_TYPE_GOAL, after == 0 ? NULL : &id, limit);
            check_list(&kit, CX_TYPE_FACT, after == 0 ? NULL : &id, limit);
            check_list(&kit, 0, after == 0 ? NULL : &id, limit);
        }
    }
    kit.memory->options.looked = count_looks;
    kit.memory->options.looked_arg = &looks;
    check_list(&kit, CX_TYPE_GOAL, NULL, 10);
    CHECK_INT(looks, 1); /* of the list with few heads */
    calls_done(&kit);
}

CX_TEST(find_late_is_journaled)
{
    WITH_HOME(kit, "late");
    (void)write_fact(&kit, "one", "a", 1);
    const cx_str tag = CX_STR("a");
    const cx_memory_find what = {.types = {&fact_type, 1},
                                 .tags = &tag,
                                 .tag_count = 1,
                                 .limit = 5,
                                 .late_binding = true,
                                 .predicate = CX_STR("who")};
    unsigned reads = atomic_load(&kit.reads);
    CHECK_FOUND(&kit, &what, "01 ");
    CHECK_INT(atomic_load(&kit.reads), reads + 1);
    cx_entry_view entry;
    cx_payload payload;
    REQUIRE(calls_entries(&kit) == 2);
    CHECK_STATUS(cx_home_entry(kit.home, CX_STR("andrew"), 1, &kit.arena, &entry, &kit.err),
                 &kit.err);
    CHECK_STR(entry.entry.kind, "find_late");
    CHECK_INT(entry.entry.created_by.size, 0);
    CHECK_STATUS(
        cx_payload_decode(CX_ENTRY_FIND_LATE, entry.payload, &kit.arena, &payload, &kit.err),
        &kit.err);
    CHECK_STR(payload.as.find_late.predicate, "who");
    CHECK_INT(payload.as.find_late.result_count, 1);
    CHECK_INT(payload.as.find_late.limit, 5);
    CHECK_INT(payload.as.find_late.id_count, 1);
    CHECK_INT(payload.as.find_late.tag_count, 1);
    calls_done(&kit);
}

/* §14.26 */
CX_TEST(expired_versions_are_not_found)
{
    WITH_HOME(kit, "expired");
    kit.tick = 0;
    cx_memory_write write = {.type = CX_TYPE_FACT,
                             .data = calls_fact(&kit, "soon gone"),
                             .expires = true,
                             .expires_at = 1700000010};
    cx_uri uri = calls_write(&kit, &write);
    (void)write_fact(&kit, "stays", "", 0);
    cx_memory_find what = {.types = {&fact_type, 1}, .limit = 10};
    const cx_memory_hit *hits;
    size_t count;
    atomic_store(&kit.clock, INT64_C(1700000010999999999));
    CHECK_FOUND(&kit, &what, "01 02 ");
    CHECK_STATUS(cx_memory_context(kit.memory, 100, NULL, &kit.arena, &hits, &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 2);
    CHECK(!calls_latest(&kit, &uri.id).expired);
    atomic_store(&kit.clock, INT64_C(1700000011000000000));
    CHECK_FOUND(&kit, &what, "02 ");
    CHECK_STATUS(cx_memory_context(kit.memory, 100, NULL, &kit.arena, &hits, &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 1);
    CHECK(calls_latest(&kit, &uri.id).expired);
    what.with_expired = true;
    CHECK_FOUND(&kit, &what, "01 02 ");
    calls_done(&kit);
}

CX_TEST(context_has_what_must_be_there_first)
{
    WITH_HOME(kit, "context");
    static const struct {
        uint8_t type;
        const char *json;
    } all[] = {
        {CX_TYPE_FACT, "{\"statement\":\"f\",\"subject\":\"s\",\"predicate\":\"p\"}"},
        {CX_TYPE_GOAL, "{\"statement\":\"g\",\"status\":\"active\"}"},
        {CX_TYPE_GOAL, "{\"statement\":\"g\",\"status\":\"done\"}"},
        {CX_TYPE_CONSTRAINT, "{\"statement\":\"x\",\"polarity\":\"dont\",\"strength\":\"hard\","
                             "\"source\":\"learned\"}"},
        {CX_TYPE_CONSTRAINT, "{\"statement\":\"x\",\"polarity\":\"dont\",\"strength\":\"soft\","
                             "\"source\":\"learned\"}"},
        {CX_TYPE_IDENTITY, "{\"name\":\"n\"}"},
        {CX_TYPE_PREFERENCE, "{\"topic\":\"t\",\"polarity\":\"p\"}"},
    };
    static const uint8_t order[] = {6, 4, 2, 1};
    const cx_memory_hit *hits;
    size_t count;
    uint64_t tokens = 0;
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        const cx_memory_write write = {.type = all[i].type,
                                       .data = calls_data(&kit, all[i].type, all[i].json)};
        (void)calls_write(&kit, &write);
    }
    CHECK_STATUS(cx_memory_context(kit.memory, 1000, NULL, &kit.arena, &hits, &count, &kit.err),
                 &kit.err);
    REQUIRE(count == CX_COUNT_OF(order));
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(hits[i].view.head.id.bytes[15], order[i]);
        tokens += cx_tokens_of(hits[i].view.head.forms.medium);
    }
    uint64_t fact = cx_tokens_of(hits[3].view.head.forms.medium);
    CHECK_STATUS(cx_memory_context(kit.memory, tokens, NULL, &kit.arena, &hits, &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 4);
    CHECK_STATUS(
        cx_memory_context(kit.memory, tokens - 1, NULL, &kit.arena, &hits, &count, &kit.err),
        &kit.err);
    CHECK_INT(count, 3);
    CHECK_STATUS(
        cx_memory_context(kit.memory, tokens - fact, NULL, &kit.arena, &hits, &count, &kit.err),
        &kit.err);
    CHECK_INT(count, 3);
    CHECK(cx_failed(cx_memory_context(kit.memory, tokens - fact - 1, NULL, &kit.arena, &hits,
                                      &count, &kit.err)));
    CHECK_STR(fixture_tag(&kit.err), "BudgetUnreachable");
    CHECK_REFUSED(&kit, cx_memory_context(kit.memory, 0, NULL, &kit.arena, &hits, &count, &kit.err),
                  "InvalidArgument");
    calls_done(&kit);
}

CX_TEST(list_pages_by_id)
{
    WITH_HOME(kit, "list");
    const cx_memory_view *views;
    size_t count = 9;
    CHECK_STATUS(
        cx_memory_list(kit.memory, 0, true, NULL, 10, &kit.arena, &views, &count, &kit.err),
        &kit.err);
    CHECK_INT(count, 0);
    cx_uri uris[5];
    for (int i = 0; i < 5; i++)
        uris[i] = calls_write_fact(&kit, "x");
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &uris[1], CX_STR(""), CX_STR(""), &kit.err),
                 &kit.err);
    CHECK_STATUS(
        cx_memory_list(kit.memory, 0, false, NULL, 2, &kit.arena, &views, &count, &kit.err),
        &kit.err);
    CHECK_INT(count, 2);
    CHECK(calls_same(&views[1].head.id, &uris[2].id));
    CHECK_STATUS(cx_memory_list(kit.memory, CX_TYPE_FACT, true, &views[1].head.id, 10, &kit.arena,
                                &views, &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 2);
    CHECK(calls_same(&views[0].head.id, &uris[3].id));
    CHECK_STATUS(cx_memory_list(kit.memory, CX_TYPE_GOAL, true, NULL, 10, &kit.arena, &views,
                                &count, &kit.err),
                 &kit.err);
    CHECK_INT(count, 0);
    cx_memory_view view;
    cx_uri wrong = uris[0];
    wrong.type = CX_TYPE_GOAL;
    CHECK_REFUSED(&kit, cx_memory_resolve(kit.memory, &wrong, &kit.arena, &view, &kit.err),
                  "TypeMismatch");
    wrong.id = fixture_id(99);
    CHECK_REFUSED(&kit, cx_memory_resolve(kit.memory, &wrong, &kit.arena, &view, &kit.err),
                  "NotFound");
    CHECK_REFUSED(&kit,
                  cx_memory_resolve_latest(kit.memory, &wrong.id, &kit.arena, &view, &kit.err),
                  "NotFound");
    calls_done(&kit);
}
