/*
 * test_render.c - the forms of a picture: what a line looks like, that each form is well formed,
 * and that nothing hostile in a lattice reaches a terminal, a browser or Graphviz.
 */
#include "view/render.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/test.h"

static void add_node(cx_buf *out, const char *id, const char *who, int seq, int at,
                     const char *parents, const char *fork, const char *event)
{
    cx_buf_printf(out,
                  "{\"node_id\":\"%s\",\"agent_id\":\"%s\",\"seq\":%d,\"timestamp\":%d,"
                  "\"event\":{%s},\"state_delta\":{},\"prev_hash\":\"\","
                  "\"hash\":\"%064d\",\"parents\":[%s],\"fork_type\":%s}\n",
                  id, who, seq, at, event, seq, parents, fork);
}

static cx_lattice *open_text(const cx_buf *text)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(text), &options, &lattice, &err), &err);
    return lattice;
}

/* Two agents: a fork, a merge from the newest node, a merge from an older one. */
static cx_lattice *open_small(cx_buf *text)
{
    const char *act = "\"type\":\"act\",\"tool\":\"sh\"";
    add_node(text, "n0", "a", 0, 0, "", "null", "\"type\":\"genesis\"");
    add_node(text, "n1", "b", 0, 1, "\"n0\"", "\"natural\"", act);
    add_node(text, "n2", "b", 1, 2, "\"n1\"", "null", act);
    add_node(text, "n3", "a", 1, 3, "\"n0\",\"n2\"", "null", "\"type\":\"sync\"");
    add_node(text, "n4", "b", 2, 4, "\"n2\"", "null", "\"x\":1");
    add_node(text, "n5", "a", 2, 5, "\"n3\",\"n2\"", "null", "\"type\":\"sync\"");
    return open_text(text);
}

/* What must never get through, wherever text of the file is shown. */
static cx_lattice *open_hostile(cx_buf *text)
{
    static const char id[] = "\\u001b]0;owned\\u0007<b>&\\\"'\\\\N\\u202e\\u009b31m";
    char parents[128];
    snprintf(parents, sizeof parents, "\"%s\"", id);
    add_node(text, id, "<script>alert(1)</script>\\u001b[2J\\n\\r\\t\\u0000", 0, 0, "", "null",
             "\"type\":\"\\u001b[31m\\ud800 --> ]]> \\u200b\\u2066\",\"tool\":\"\\\"];x->y;\\\\\"");
    add_node(text, "k", "\\\\\\\"}\\u007f\\ufeff\\ufffe", 0, 1, parents, "\"injection\"",
             "\"text\":\"\\u2028\\udb40\\udc41\"");
    cx_buf_add_z(text, "{\"node_id\":\"\\udfff\",\"agent_id\":\"q\"}\n");
    return open_text(text);
}

static cx_lattice *open_crowd(cx_buf *text)
{
    add_node(text, "root", "boss", 0, 0, "", "null", "");
    for (int i = 0; i < 60; i++) {
        char id[24], who[24];
        snprintf(id, sizeof id, "w%d", i);
        snprintf(who, sizeof who, "worker-%d", i);
        add_node(text, id, who, 0, 1 + i, "\"root\"", "\"observation\"", "");
    }
    for (int i = 0; i < 60; i++) {
        char id[24], who[24], parent[32];
        snprintf(id, sizeof id, "x%d", i);
        snprintf(who, sizeof who, "worker-%d", i);
        snprintf(parent, sizeof parent, "\"w%d\",\"w%d\"", i, (i * 7 + 3) % 60);
        add_node(text, id, who, 1, 100 + i, i == (i * 7 + 3) % 60 ? "" : parent, "null", "");
    }
    return open_text(text);
}

static void draw(cx_buf *out, const cx_lattice *lattice, const cx_render_options *options)
{
    cx_err err;
    cx_buf_clear(out);
    CHECK_STATUS(cx_lattice_render(out, lattice, options, &err), &err);
}

typedef cx_lattice *(*opener)(cx_buf *text);
static const opener samples[] = {open_small, open_hostile, open_crowd};

/* Calls `check` with each sample, with a report and without. */
static void with_samples(const cx_render_options *options, void (*check)(cx_str made))
{
    cx_buf text, out;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(samples) * 2; i++) {
        cx_buf_clear(&text);
        cx_lattice *lattice = samples[i / 2](&text);
        cx_lattice_report *report = NULL;
        cx_err err;
        if (i % 2 == 1)
            CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
        cx_render_options with = *options;
        with.report = report;
        draw(&out, lattice, &with);
        check(cx_buf_str(&out));
        cx_lattice_report_close(report);
        cx_lattice_close(lattice);
    }
    cx_buf_done(&out);
    cx_buf_done(&text);
}

/* --- terminal --------------------------------------------------------------------------------- */

CX_TEST(render_terminal_shows_lanes_forks_and_merges)
{
    cx_buf text, out;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    cx_lattice *lattice = open_small(&text);
    cx_render_options options = {.form = CX_RENDER_TERMINAL, .columns = 70};
    draw(&out, lattice, &options);
    CHECK_STR(cx_buf_str(&out), "○    n0  a#0  genesis\n"
                                "├─◇  n1  b#0  ◇ natural  act sh  ⇐ n0\n"
                                "│ ●  n2  b#1  act sh\n"
                                "◆─┤  n3  a#1  sync  ⇐ n2\n"
                                "│ ▲  n4  b#2  ▲ head\n"
                                "◆┄╯  n5  a#2  ▲ head  sync  ⇐ n2\n"
                                "\n"
                                "agents  ● a  ● b\n"
                                "marks   ○ root  ● node  ◆ merge  ▲ head  ◇ natural\n"
                                "        ┄ not from the newest\n"
                                "total   6 nodes, 2 agents\n");
    options.ascii = true;
    options.first = 1;
    options.max_nodes = 3;
    draw(&out, lattice, &options);
    CHECK_STR(cx_buf_str(&out), "! 1 rows above\n"
                                "+-N  n1  b#0  N natural  act sh  <- n0\n"
                                "| *  n2  b#1  act sh\n"
                                "M-+  n3  a#1  sync  <- n2\n"
                                "! 2 rows below\n"
                                "\n"
                                "agents  * a  * b\n"
                                "marks   o root  * node  M merge  ^ head  N natural\n"
                                "        . not from the newest\n"
                                "total   6 nodes, 2 agents\n");
    cx_lattice_close(lattice);
    cx_buf_done(&out);
    cx_buf_done(&text);
}

static bool is_marked_up(const uint8_t *at, size_t left)
{
    size_t i = 2;
    if (left < 3 || at[1] != '[')
        return false;
    while (i < left && ((at[i] >= '0' && at[i] <= '9') || at[i] == ';'))
        i++;
    return i < left && at[i] == 'm';
}

/* True for a directional mark, a zero-width or tag character, a line separator, C1, a surrogate. */
static bool is_hidden(const uint8_t *at, size_t left)
{
    if (left >= 2 && at[0] == 0xC2 && at[1] >= 0x80 && at[1] <= 0x9F)
        return true;
    if (left < 3)
        return false;
    return (at[0] == 0xE2 && at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE) ||
           (at[0] == 0xE2 && at[1] == 0x80 && at[2] >= 0x8B && at[2] <= 0x8F) ||
           (at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA0 && at[2] <= 0xAF) ||
           (at[0] == 0xED && at[1] >= 0xA0) || (at[0] == 0xEF && at[1] == 0xBB && at[2] == 0xBF) ||
           (at[0] == 0xEF && at[1] == 0xBF && at[2] >= 0xBE) || (at[0] == 0xF3 && at[1] == 0xA0);
}

/* Control characters but LF, and what hides; ESC only in colour codes. */
static void check_harmless(cx_str made)
{
    const uint8_t *data = (const uint8_t *)made.data;
    size_t bad = 0;
    for (size_t i = 0; i < made.size; i++) {
        if (data[i] == 0x1B)
            bad += !is_marked_up(data + i, made.size - i);
        else
            bad += (data[i] < 0x20 && data[i] != '\n') || data[i] == 0x7F;
        bad += is_hidden(data + i, made.size - i);
    }
    CHECK_INT(bad, 0);
    CHECK(made.size > 0);
}

static void check_no_escape(cx_str made)
{
    check_harmless(made);
    CHECK(memchr(made.data, 0x1B, made.size) == NULL);
}

static void check_ascii(cx_str made)
{
    check_no_escape(made);
    for (size_t i = 0; i < made.size; i++) {
        if ((uint8_t)made.data[i] > 0x7E) {
            cx_test_fail(__FILE__, __LINE__, "byte %u at %zu", (uint8_t)made.data[i], i);
            return;
        }
    }
}

CX_TEST(render_lets_nothing_hostile_through)
{
    with_samples(&(cx_render_options){.form = CX_RENDER_TERMINAL, .colour = true}, check_harmless);
    with_samples(&(cx_render_options){.form = CX_RENDER_TERMINAL}, check_no_escape);
    with_samples(&(cx_render_options){.form = CX_RENDER_TERMINAL, .ascii = true}, check_ascii);
    with_samples(&(cx_render_options){.form = CX_RENDER_SVG}, check_no_escape);
    with_samples(&(cx_render_options){.form = CX_RENDER_DOT}, check_no_escape);
    with_samples(&(cx_render_options){.form = CX_RENDER_JSON}, check_ascii);
}

static unsigned columns_asked;

static void check_width(cx_str made)
{
    size_t start = 0;
    for (size_t i = 0; i < made.size; i++) {
        if (made.data[i] != '\n')
            continue;
        cx_str line = {made.data + start, i - start};
        CHECK(cx_lattice_render_width(line, RENDER_PLAIN) <= columns_asked);
        CHECK(line.size == 0 || line.data[line.size - 1] != ' ');
        start = i + 1;
    }
    CHECK_INT(start, made.size); /* ends in LF */
}

CX_TEST(render_terminal_keeps_to_its_columns)
{
    for (columns_asked = 40; columns_asked <= 140; columns_asked += 7) {
        cx_render_options options = {.form = CX_RENDER_TERMINAL, .columns = columns_asked};
        with_samples(&options, check_width);
        options.ascii = true;
        with_samples(&options, check_width);
    }
}

CX_TEST(render_terminal_is_bounded_by_default)
{
    cx_buf text, out;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (int i = 0; i < 3000; i++) {
        char id[24], parent[32] = "";
        snprintf(id, sizeof id, "c%d", i);
        if (i > 0)
            snprintf(parent, sizeof parent, "\"c%d\"", i - 1);
        add_node(&text, id, "w", i, i, parent, "null", "");
    }
    cx_lattice *lattice = open_text(&text);
    cx_render_options options = {.form = CX_RENDER_TERMINAL};
    draw(&out, lattice, &options);
    unsigned lines = 0;
    for (size_t i = 0; i < out.size; i++)
        lines += out.data[i] == '\n';
    CHECK_INT(lines, 200 + 1 + 1 + 3); /* rows, "below", blank, legend */
    options.fold = true;
    draw(&out, lattice, &options);
    CHECK(strstr(cx_buf_z(&out), "⋯  ⋯ 2998 nodes  c1 .. c2998\n") != NULL);
    cx_lattice_close(lattice);
    cx_buf_done(&out);
    cx_buf_done(&text);
}

CX_TEST(render_text_is_cut_and_escaped)
{
    static const struct {
        const char *in;
        render_escape escape;
        uint32_t columns;
        const char *out;
        uint32_t used;
    } cases[] = {
        {"plain", RENDER_PLAIN, 5, "plain", 5},
        {"plain", RENDER_PLAIN, 4, "pla…", 4},
        {"plain", RENDER_ASCII, 4, "pla~", 4},
        {"plain", RENDER_PLAIN, 0, "", 0},
        {"\x1b[1m", RENDER_PLAIN, 99, "\\u001b[1m", 9},
        {"\x1b[1m", RENDER_PLAIN, 6, "…", 1}, /* an escape is shown whole or not at all */
        {"\xff\xc3", RENDER_PLAIN, 99, "\\xff\\xc3", 8},
        {"\xed\xa0\x80", RENDER_PLAIN, 99, "\\ud800", 6},
        {"漢字", RENDER_PLAIN, 3, "漢…", 3},
        {"漢字", RENDER_ASCII, 99, "\\u6f22\\u5b57", 12},
        {"e\xcc\x81", RENDER_PLAIN, 1, "e\xcc\x81", 1},
        {"\xf0\x9f\x98\x80", RENDER_ASCII, 99, "\\U0001f600", 10},
        {"<a b='\"'>&", RENDER_XML, 99, "&lt;a b=&#39;&quot;&#39;&gt;&amp;", 10},
        {"\"\\N\x07&", RENDER_DOT, 99, "\\\"\\\\N\\\\u0007&amp;", 10},
    };
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf_clear(&out);
        uint32_t used =
            cx_lattice_render_text(&out, cx_str_z(cases[i].in), cases[i].escape, cases[i].columns);
        CHECK_STR(cx_buf_str(&out), cases[i].out);
        CHECK_INT(used, cases[i].used);
    }
    cx_buf_done(&out);
}

/* --- SVG: a checker of well-formedness of its own, for the subset of XML we write ------------- */

typedef struct xml {
    cx_str text;
    size_t at;
    cx_str open[32];
    unsigned depth;
} xml;

static bool is_entity(cx_str rest)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < CX_COUNT_OF(known); i++) {
        if (cx_str_starts(rest, cx_str_z(known[i])))
            return true;
    }
    return false;
}

static cx_str rest_of(const xml *x)
{
    return (cx_str){x->text.data + x->at, x->text.size - x->at};
}

static cx_str take_name(xml *x)
{
    size_t start = x->at;
    while (x->at < x->text.size &&
           (strchr("-:", x->text.data[x->at]) != NULL || (x->text.data[x->at] | 32) >= 'a' ||
            (x->text.data[x->at] >= '0' && x->text.data[x->at] <= '9')))
        x->at++;
    return (cx_str){x->text.data + start, x->at - start};
}

/* After '<': a closing tag, or an opening one with its attributes. */
static bool take_tag(xml *x)
{
    bool closing = x->text.data[x->at] == '/';
    x->at += closing;
    cx_str name = take_name(x);
    if (name.size == 0)
        return false;
    if (closing) {
        bool matches = x->depth > 0 && cx_str_eq(x->open[x->depth - 1], name);
        x->depth -= matches;
        return matches && x->text.data[x->at++] == '>';
    }
    while (x->text.data[x->at] == ' ') {
        x->at++;
        if (take_name(x).size == 0 || !cx_str_starts(rest_of(x), CX_STR("=\"")))
            return false;
        x->at += 2;
        while (x->at < x->text.size && x->text.data[x->at] != '"') {
            if (x->text.data[x->at] == '<' ||
                (x->text.data[x->at] == '&' && !is_entity(rest_of(x))))
                return false;
            x->at++;
        }
        x->at++;
    }
    if (cx_str_starts(rest_of(x), CX_STR("/>"))) {
        x->at += 2;
        return true;
    }
    if (x->depth == CX_COUNT_OF(x->open) || x->text.data[x->at] != '>')
        return false;
    x->open[x->depth++] = name;
    x->at++;
    return true;
}

static bool is_well_formed(cx_str text)
{
    xml x = {.text = text};
    while (x.at < text.size) {
        char c = text.data[x.at];
        if (c == '<') {
            x.at++;
            if (x.at == text.size || !take_tag(&x))
                return false;
            continue;
        }
        if (c == '&' && !is_entity(rest_of(&x)))
            return false;
        x.at++;
    }
    return x.depth == 0;
}

static void check_svg(cx_str made)
{
    CHECK(is_well_formed(made));
    CHECK(cx_str_starts(made, CX_STR("<svg xmlns=\"http://www.w3.org/2000/svg\" ")));
    CHECK(cx_str_ends(made, CX_STR("</svg>\n")));
}

CX_TEST(render_svg_is_well_formed)
{
    CHECK(is_well_formed(CX_STR("<a b=\"c\"><d/>&amp;</a>")));
    CHECK(!is_well_formed(CX_STR("<a><b></a></b>")));
    CHECK(!is_well_formed(CX_STR("<a b=\"<\"/>")));
    CHECK(!is_well_formed(CX_STR("<a>&</a>")));
    with_samples(&(cx_render_options){.form = CX_RENDER_SVG}, check_svg);
    with_samples(&(cx_render_options){.form = CX_RENDER_SVG, .first = 1, .max_nodes = 1},
                 check_svg);
    with_samples(&(cx_render_options){.form = CX_RENDER_SVG, .first = 999}, check_svg);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

CX_TEST(render_svg_draws_each_node_and_edge_once)
{
    cx_buf text, out;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    cx_lattice *lattice = open_small(&text);
    draw(&out, lattice, &(cx_render_options){.form = CX_RENDER_SVG});
    const char *svg = cx_buf_z(&out);
    CHECK_INT(count_of(svg, "<path class=\"e n "), 3); /* n1-n2, n0-n3, n2-n4 */
    CHECK_INT(count_of(svg, "<path class=\"e k1\" d=\"M1"), 1);
    CHECK_INT(count_of(svg, "\nhash "), 6);
    CHECK_INT(count_of(svg, "\nfork natural"), 1);
    CHECK_INT(count_of(svg, "act sh</title>"), 2);
    CHECK(strstr(svg, "<script") == NULL && strstr(svg, "href") == NULL);
    cx_lattice_close(lattice);
    cx_buf_done(&out);
    cx_buf_done(&text);
}

/* --- DOT -------------------------------------------------------------------------------------- */

/* Tokens of a Graphviz file: braces and brackets balance, strings close, names are plain. */
static bool is_dot(cx_str text)
{
    int braces = 0, brackets = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '"') {
            for (i++; i < text.size && text.data[i] != '"'; i++)
                i += text.data[i] == '\\';
            if (i >= text.size)
                return false;
            continue;
        }
        braces += (c == '{') - (c == '}');
        brackets += (c == '[') - (c == ']');
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (braces < 0 || brackets < 0 || brackets > 1)
            return false;
        if (!plain && memchr("{}[]=,;->_. \n", c, 13) == NULL)
            return false;
    }
    return braces == 0 && brackets == 0;
}

static void check_dot(cx_str made)
{
    CHECK(is_dot(made));
    CHECK(cx_str_starts(made, CX_STR("digraph lattice {\n")));
    CHECK(cx_str_ends(made, CX_STR("\n}\n")));
}

CX_TEST(render_dot_is_graphviz)
{
    CHECK(is_dot(CX_STR("digraph x {\n a -> b [label=\"\\\"}\"];\n}\n")));
    CHECK(!is_dot(CX_STR("digraph x { a [label=\"b]; }")));
    CHECK(!is_dot(CX_STR("digraph x { a \\ }")));
    with_samples(&(cx_render_options){.form = CX_RENDER_DOT}, check_dot);
    with_samples(&(cx_render_options){.form = CX_RENDER_DOT, .first = 1, .max_nodes = 1},
                 check_dot);
}

/* --- JSON, and what holds for all ------------------------------------------------------------- */

static void check_json(cx_str made)
{
    cx_arena arena;
    cx_json value;
    cx_err err;
    cx_buf again;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&again, cx_alloc_default());
    CHECK_STATUS(cx_json_parse_text(made, &arena, &value, &err), &err);
    CHECK_STATUS(cx_json_write(&again, &value, CX_JSON_PY_COMPACT, &err), &err);
    cx_buf_add_byte(&again, '\n');
    CHECK(cx_str_eq(cx_buf_str(&again), made));
    const cx_json *rows = CX_JSON_GET(&value, "rows");
    CHECK(rows != NULL && rows->type == CX_JSON_ARRAY);
    cx_buf_done(&again);
    cx_arena_done(&arena);
}

CX_TEST(render_json_is_canonical)
{
    with_samples(&(cx_render_options){.form = CX_RENDER_JSON}, check_json);
    with_samples(&(cx_render_options){.form = CX_RENDER_JSON, .first = 2, .max_nodes = 2},
                 check_json);
    with_samples(&(cx_render_options){.form = CX_RENDER_JSON, .first = 999}, check_json);
}

/* Lines in reverse: the order of a file is no part of what it says (§1.1). */
static void reverse_lines(const cx_buf *text, cx_buf *out)
{
    size_t end = text->size;
    cx_buf_clear(out);
    while (end > 0) {
        size_t start = end - 1;
        while (start > 0 && text->data[start - 1] != '\n')
            start--;
        cx_buf_add(out, text->data + start, end - start);
        end = start;
    }
}

CX_TEST(render_says_the_same_for_the_same_lattice)
{
    cx_buf text, backwards, first, second;
    cx_buf *bufs[] = {&text, &backwards, &first, &second};
    for (size_t i = 0; i < CX_COUNT_OF(bufs); i++)
        cx_buf_init(bufs[i], cx_alloc_default());
    cx_lattice *lattice = open_small(&text);
    reverse_lines(&text, &backwards);
    cx_lattice *reversed = open_text(&backwards);
    for (int form = CX_RENDER_TERMINAL; form <= CX_RENDER_JSON; form++) {
        cx_render_options options = {.form = (cx_render_form)form, .colour = true};
        draw(&first, lattice, &options);
        draw(&second, reversed, &options);
        CHECK(cx_str_eq(cx_buf_str(&first), cx_buf_str(&second)));
    }
    cx_lattice_close(lattice);
    cx_lattice_close(reversed);
    for (size_t i = 0; i < CX_COUNT_OF(bufs); i++)
        cx_buf_done(bufs[i]);
}

/* An allocator that fails from the n-th call on. */
typedef struct failing {
    unsigned left;
} failing;

static void *resize_failing(void *ctx, void *block, size_t old_size, size_t new_size)
{
    failing *f = ctx;
    if (new_size != 0) {
        if (f->left == 0)
            return NULL;
        f->left--;
    }
    return cx_alloc_default()->resize(cx_alloc_default()->ctx, block, old_size, new_size);
}

CX_TEST(render_survives_running_out_of_memory)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_lattice *lattice = open_small(&text);
    const cx_alloc *usual = lattice->alloc;
    for (int form = CX_RENDER_TERMINAL; form <= CX_RENDER_JSON; form++) {
        bool done = false;
        unsigned failures = 0;
        for (unsigned n = 0; n < 500 && !done; n++) {
            failing f = {n};
            cx_alloc alloc = {resize_failing, &f};
            cx_buf out;
            cx_err err;
            cx_buf_init(&out, &alloc);
            lattice->alloc = &alloc;
            cx_render_options options = {.form = (cx_render_form)form, .fold = true};
            cx_status status = cx_lattice_render(&out, lattice, &options, &err);
            lattice->alloc = usual;
            CHECK(status.code == CX_OK || status.code == CX_E_NOMEM);
            failures += cx_failed(status);
            done = !cx_failed(status);
            cx_buf_done(&out);
        }
        CHECK(done);
        CHECK(failures > 3);
    }
    cx_lattice_close(lattice);
    cx_buf_done(&text);
}
