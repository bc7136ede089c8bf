/*
 * test_tamper.c - every bit of a small sealed lattice is flipped, every byte deleted, every line
 * doubled and exchanged: with the anchor nothing that means something else may hold, and without it
 * only what lattice.md §5 and §10 say is open.
 *
 * Whether a changed file means the same is decided here without the verifier: the nodes are parsed
 * and compared as canonical JSON over the fields of §2; all else is outside every check.
 */
#include "lattice/lattice.h"

#include "tests/support/lattice_text.h"
#include "tests/test.h"

static const cx_lattice_checks strict = {true, true, true, true, NULL};

static const char *const covered[] = {"node_id",     "agent_id",  "seq",  "timestamp", "event",
                                      "state_delta", "prev_hash", "hash", "parents",   "fork_type"};

static cx_json array_of(const cx_json *items, uint32_t count)
{
    return (cx_json){.type = CX_JSON_ARRAY, .count = count, .items = items};
}

/* The canonical text of what one node says.  Its version counts by its effect: absent is 2.0.0. */
static void add_meaning(cx_buf *out, const cx_json *node, cx_str version)
{
    for (size_t i = 0; i < CX_COUNT_OF(covered); i++) {
        const cx_json *value = cx_json_get(node, cx_str_z(covered[i]));
        cx_buf_printf(out, "%s=", covered[i]);
        if (strcmp(covered[i], "parents") == 0) { /* their order means nothing */
            cx_str ids[8];
            size_t count = 0;
            for (uint32_t k = 0;
                 value != NULL && value->type == CX_JSON_ARRAY && k < value->count && count < 8;
                 k++) {
                size_t at = count++;
                cx_str id = value->items[k].type == CX_JSON_STRING ? cx_json_text(&value->items[k])
                                                                   : CX_STR("?");
                for (; at > 0 && cx_str_cmp(ids[at - 1], id) > 0; at--)
                    ids[at] = ids[at - 1];
                ids[at] = id;
            }
            for (size_t k = 0; k < count; k++) {
                cx_buf_add_str(out, ids[k]);
                cx_buf_add_byte(out, ',');
            }
        } else if (value != NULL && value->type != CX_JSON_NULL &&
                   cx_failed(cx_json_write(out, value, CX_JSON_PY_COMPACT, NULL))) {
            cx_buf_add_z(out, "none");
        }
        cx_buf_add_byte(out, ';');
    }
    const cx_json *own = CX_JSON_GET(node, "schema_version");
    cx_buf_add_str(out, own != NULL && own->type == CX_JSON_STRING ? cx_json_text(own) : version);
}

/* Meanings of all nodes, sorted, one a line; false when the text is not a lattice at all. */
static bool meaning_of_nodes(cx_buf *out, const cx_json *nodes, cx_str version)
{
    cx_buf one[32];
    if (nodes->count > 32)
        return false;
    uint32_t order[32];
    for (uint32_t i = 0; i < nodes->count; i++) {
        cx_buf_init(&one[i], cx_alloc_default());
        add_meaning(&one[i], &nodes->items[i], version);
        uint32_t at = i;
        for (; at > 0 && cx_str_cmp(cx_buf_str(&one[order[at - 1]]), cx_buf_str(&one[i])) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (uint32_t i = 0; i < nodes->count; i++) {
        cx_buf_add_str(out, cx_buf_str(&one[order[i]]));
        cx_buf_add_byte(out, '\n');
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        cx_buf_done(&one[i]);
    return true;
}

static bool is_header(const cx_json *value)
{
    return CX_JSON_GET(value, "node_id") == NULL && CX_JSON_GET(value, "agent_id") == NULL &&
           CX_JSON_GET(value, "seq") == NULL && CX_JSON_GET(value, "event") == NULL &&
           CX_JSON_GET(value, "hash") == NULL;
}

static bool meaning(cx_buf *out, cx_str text, cx_arena *arena)
{
    cx_json whole, list[40];
    cx_str version = CX_STR("2.0.0");
    cx_buf_clear(out);
    if (!cx_failed(cx_json_parse_text(text, arena, &whole, NULL)) &&
        (whole.type == CX_JSON_ARRAY || CX_JSON_GET(&whole, "nodes") != NULL)) {
        if (CX_JSON_GET_STR(&whole, "schema_version").data != NULL)
            version = CX_JSON_GET_STR(&whole, "schema_version");
        return meaning_of_nodes(
            out, whole.type == CX_JSON_ARRAY ? &whole : CX_JSON_GET(&whole, "nodes"), version);
    }
    uint32_t count = 0;
    bool first = true;
    for (size_t at = 0; at < text.size && count < 40; first = false) {
        size_t end = at;
        while (end < text.size && text.data[end] != '\n')
            end++;
        cx_str line = {text.data + at, end - at};
        at = end + 1;
        if (cx_failed(cx_json_parse_text(line, arena, &list[count], NULL)))
            continue; /* blank, as the lattice was read */
        if (first && is_header(&list[count])) {
            if (CX_JSON_GET_STR(&list[count], "schema_version").data != NULL)
                version = CX_JSON_GET_STR(&list[count], "schema_version");
        } else {
            count++;
        }
    }
    cx_json all = array_of(list, count);
    return meaning_of_nodes(out, &all, version);
}

typedef struct trial {
    cx_buf text;    /* as built */
    cx_buf meant;   /* by it */
    cx_buf changed; /* being tried */
    cx_buf now;     /* meaning of changed */
    cx_buf verdict;
    cx_arena arena;
    cx_lattice_anchor anchor;
    cx_arena anchor_arena;
    unsigned tried, held, held_open;
} trial;

static void trial_init(trial *t, const cx_buf *text)
{
    cx_lattice *lattice;
    cx_err err;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    *t = (trial){.tried = 0};
    cx_buf_init(&t->text, cx_alloc_default());
    cx_buf_init(&t->meant, cx_alloc_default());
    cx_buf_init(&t->changed, cx_alloc_default());
    cx_buf_init(&t->now, cx_alloc_default());
    cx_buf_init(&t->verdict, cx_alloc_default());
    cx_arena_init(&t->arena, cx_alloc_default(), 0);
    cx_arena_init(&t->anchor_arena, cx_alloc_default(), 0);
    cx_buf_add_str(&t->text, cx_buf_str(text));
    CHECK(meaning(&t->meant, cx_buf_str(text), &t->arena));
    options.keep_seals = true;
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(text), &options, &lattice, &err), &err);
    cx_buf kept;
    cx_buf_init(&kept, cx_alloc_default());
    CHECK_STATUS(cx_lattice_anchor_json(&kept, lattice, &err), &err);
    CHECK_STATUS(cx_lattice_anchor_parse(cx_arena_copy_str(&t->anchor_arena, cx_buf_str(&kept)),
                                         &t->anchor_arena, &t->anchor, &err),
                 &err);
    cx_lattice_close(lattice);
    cx_buf_done(&kept);
    CHECK_STR(cx_str_z(lattice_text_verdict(&t->verdict, cx_buf_str(text), &strict)), "ok");
}

static void trial_done(trial *t)
{
    cx_buf_done(&t->text);
    cx_buf_done(&t->meant);
    cx_buf_done(&t->changed);
    cx_buf_done(&t->now);
    cx_buf_done(&t->verdict);
    cx_arena_done(&t->arena);
    cx_arena_done(&t->anchor_arena);
}

static bool holds(trial *t, const cx_lattice_checks *checks)
{
    return strcmp(lattice_text_verdict(&t->verdict, cx_buf_str(&t->changed), checks), "ok") == 0;
}

/* Judges t->changed.  `may_cut`: strict without an anchor may hold over fewer nodes (§5). */
static void judge(trial *t, const char *what, size_t at, bool may_cut)
{
    cx_lattice_checks anchored = strict;
    anchored.anchor = &t->anchor;
    cx_arena_reset(&t->arena, (cx_arena_mark){0});
    t->tried++;
    if (!holds(t, &strict)) {
        if (holds(t, &anchored))
            cx_test_fail(__FILE__, __LINE__, "%s %zu holds with the anchor only", what, at);
        return;
    }
    bool same = meaning(&t->now, cx_buf_str(&t->changed), &t->arena) &&
                cx_str_eq(cx_buf_str(&t->now), cx_buf_str(&t->meant));
    if (same)
        t->held++;
    else if (may_cut)
        t->held_open++;
    else
        cx_test_fail(__FILE__, __LINE__, "%s %zu holds under strict and means something else", what,
                     at);
    if (holds(t, &anchored) != same)
        cx_test_fail(__FILE__, __LINE__, "%s %zu: the anchor %s", what, at,
                     same ? "refuses what means the same" : "lets it pass");
}

enum { BITS_STEP = 5 };

static void flip_every_bit(trial *t)
{
    for (size_t bit = 0; bit < t->text.size * 8; bit += cx_test_step(BITS_STEP)) {
        size_t at = bit / 8;
        cx_buf_clear(&t->changed);
        cx_buf_add_str(&t->changed, cx_buf_str(&t->text));
        t->changed.data[at] ^= (uint8_t)(1u << bit % 8);
        judge(t, "bit flip at", at, false);
    }
}

static void delete_every_byte(trial *t)
{
    for (size_t at = 0; at < t->text.size; at++) {
        cx_buf_clear(&t->changed);
        cx_buf_add(&t->changed, t->text.data, at);
        cx_buf_add(&t->changed, t->text.data + at + 1, t->text.size - at - 1);
        judge(t, "deletion at", at, false);
    }
}

/* Formats that carry the same nodes; `extra` has an unknown field and odd spellings. */
typedef enum shape { LINES, ARRAY, WRAPPED, SPELLED, SHAPES } shape;

static void build(cx_buf *out, shape kind)
{
    cx_buf lines;
    cx_buf_init(&lines, cx_alloc_default());
    lattice_text_sealed(&lines, 4);
    if (kind == LINES)
        cx_buf_add_str(out, cx_buf_str(&lines));
    if (kind == ARRAY)
        lattice_text_array(out, cx_buf_str(&lines));
    if (kind == WRAPPED)
        lattice_text_wrapped(out, cx_buf_str(&lines), "2.0.0", false);
    if (kind == SPELLED) {
        cx_buf_add_z(out, "{\"schema_version\":\"2.0.0\"}\n");
        node_spec spec = {.timestamp = "1.50",
                          .event = "{\"a\":1E+2,\"b\":\"\\u0041\\/\",\"c\":-0}",
                          .delta = "{ \"goals\" : [ 1.0 ] }",
                          .extra = ",\"note\":{\"nothing\":\"covers this\"},\"parents2\":[1e400]",
                          .sealed = true};
        lattice_text_node(out, &spec, NULL);
        cx_buf_add_z(out, "\r\n \n");
    }
    cx_buf_done(&lines);
}

CX_TEST(tamper_every_bit)
{
    for (int kind = LINES; kind < SHAPES; kind++) {
        cx_buf text;
        trial t;
        cx_buf_init(&text, cx_alloc_default());
        build(&text, (shape)kind);
        trial_init(&t, &text);
        flip_every_bit(&t);
        unsigned step = cx_test_step(BITS_STEP);
        CHECK_INT(t.tried, (text.size * 8 + step - 1) / step);
        CHECK_INT(t.held_open, 0);
        if (kind == SPELLED)
            CHECK(t.held * step > 100); /* the unknown field, blanks, 1.50 as 1.5p, ... */
        else
            CHECK(t.held * 50 < t.tried); /* ends of lines, and E against e in \u00e9 */
        trial_done(&t);
        cx_buf_done(&text);
    }
}

CX_TEST(tamper_every_byte_deleted)
{
    for (int kind = LINES; kind < SHAPES; kind++) {
        cx_buf text;
        trial t;
        cx_buf_init(&text, cx_alloc_default());
        build(&text, (shape)kind);
        trial_init(&t, &text);
        delete_every_byte(&t);
        CHECK_INT(t.held_open, 0);
        trial_done(&t);
        cx_buf_done(&text);
    }
}

/* --- whole lines ----------------------------------------------------------------------------- */

enum { LINES_MAX = 8 };

static size_t split(const cx_buf *text, cx_str lines[LINES_MAX])
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] == '\n') {
            lines[count++] = (cx_str){(const char *)text->data + at, i + 1 - at};
            at = i + 1;
        }
    return count;
}

CX_TEST(tamper_order_of_lines_means_nothing)
{
    cx_buf text;
    trial t;
    cx_str lines[LINES_MAX];
    cx_buf_init(&text, cx_alloc_default());
    lattice_text_sealed(&text, 6);
    trial_init(&t, &text);
    size_t count = split(&t.text, lines);
    CHECK_INT(count, 6);
    for (size_t a = 0; a < count; a++) {
        for (size_t b = a + 1; b < count; b++) {
            cx_buf_clear(&t.changed);
            for (size_t i = 0; i < count; i++)
                cx_buf_add_str(&t.changed, lines[i == a ? b : i == b ? a : i]);
            judge(&t, "swap of line", a, false);
        }
    }
    CHECK_INT(t.held, t.tried);
    trial_done(&t);
    cx_buf_done(&text);
}

CX_TEST(tamper_line_twice_is_found)
{
    cx_buf text;
    trial t;
    cx_str lines[LINES_MAX];
    cx_buf_init(&text, cx_alloc_default());
    lattice_text_sealed(&text, 6);
    trial_init(&t, &text);
    size_t count = split(&t.text, lines);
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b <= count; b++) {
            cx_buf_clear(&t.changed);
            for (size_t i = 0; i <= count; i++) {
                if (i == b)
                    cx_buf_add_str(&t.changed, lines[a]);
                if (i < count)
                    cx_buf_add_str(&t.changed, lines[i]);
            }
            judge(&t, "repetition of line", a, false);
        }
    }
    CHECK_INT(t.held, 0);
    trial_done(&t);
    cx_buf_done(&text);
}

/* Without an anchor a prefix-closed copy is a lattice (§10): dropping nodes that no node names
 * holds, and dropping any other does not; with the anchor neither does. */
CX_TEST(tamper_newest_nodes_can_be_cut_off_only_without_an_anchor)
{
    cx_buf text;
    trial t;
    cx_str lines[LINES_MAX];
    cx_buf_init(&text, cx_alloc_default());
    lattice_text_sealed(&text, 6);
    trial_init(&t, &text);
    size_t count = split(&t.text, lines);
    for (unsigned kept = 1; kept < (1u << count) - 1; kept++) {
        bool closed = true; /* every line a kept line names is kept */
        cx_buf_clear(&t.changed);
        for (size_t i = 0; i < count; i++) {
            if ((kept >> i & 1) == 0)
                continue;
            cx_buf_add_str(&t.changed, lines[i]);
            for (size_t k = 0; k < i; k++) {
                char id[65] = {0};
                memcpy(id, lines[k].data + sizeof "{\"node_id\":\"" - 1, 64);
                char line[4096] = {0};
                memcpy(line, lines[i].data, lines[i].size);
                closed = closed && (strstr(line, id) == NULL || (kept >> k & 1) != 0);
            }
        }
        unsigned open_before = t.held_open;
        judge(&t, "keeping lines", kept, true);
        CHECK((t.held_open != open_before) == closed);
    }
    CHECK_INT(t.held, 0);
    CHECK(t.held_open > 5);
    trial_done(&t);
    cx_buf_done(&text);
}

/* What the bare format leaves open, and which option closes it (§5). */
CX_TEST(tamper_what_the_hash_does_not_cover)
{
    cx_buf text, verdict;
    cx_lattice_checks content = {.content_ids = true}, seals = {.require_seals = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&verdict, cx_alloc_default());
    lattice_text_node(&text, &(node_spec){.id = "n", .delta = "{\"memory\":{\"x\":1}}"}, NULL);
    static const struct {
        const char *from, *to;
    } changes[] = {{"\"timestamp\":0", "\"timestamp\":9"},
                   {"{\"x\":1}", "{\"x\":2}"},
                   {"\"node_id\":\"n\"", "\"node_id\":\"m\""}};
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        cx_buf changed;
        cx_buf_init(&changed, cx_alloc_default());
        cx_buf_add_str(&changed, cx_buf_str(&text));
        char *at = strstr((char *)(uintptr_t)cx_buf_z(&changed), changes[i].from);
        REQUIRE(at != NULL);
        memcpy(at, changes[i].to, strlen(changes[i].to));
        CHECK_STR(cx_str_z(lattice_text_verdict(&verdict, cx_buf_str(&changed), NULL)), "ok");
        CHECK(strcmp(lattice_text_verdict(&verdict, cx_buf_str(&changed), &content), "ok") != 0);
        CHECK(strcmp(lattice_text_verdict(&verdict, cx_buf_str(&changed), &seals), "ok") != 0);
        cx_buf_done(&changed);
    }
    /* Fields run together: seq 1 + agent "2bot" = seq 12 + agent "bot".  Only strict tells. */
    char one[65], two[65];
    cx_buf_clear(&text);
    lattice_text_node(
        &text, &(node_spec){.seq = 1, .agent = "2bot", .sealed = true, .timestamp = "5"}, one);
    cx_buf_clear(&text);
    lattice_text_node(
        &text, &(node_spec){.seq = 12, .agent = "bot", .sealed = true, .timestamp = "5"}, two);
    CHECK(strcmp(one, two) == 0);
    cx_buf_clear(&text);
    lattice_text_node(&text, &(node_spec){.seq = 1, .agent = "2bot", .sealed = true}, NULL);
    CHECK(cx_str_starts(cx_str_z(lattice_text_verdict(&verdict, cx_buf_str(&text), &strict)),
                        CX_STR("E_AMBIGUOUS:")));
    cx_buf_done(&text);
    cx_buf_done(&verdict);
}
