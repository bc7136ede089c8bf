/*
 * aider_lines.c - the lines of an Aider history, and places in it.
 *
 * Invariant: what a line does to a reading is in aider_step alone, so that a place is where the
 * reader would be.
 */
#include "import/chats/aider_lines.h"

#include "import/import.h"

_Static_assert(LINE_SAID + 1 == CX_IMPORT_BLOCK_KINDS, "place.h counts them");

/* --- a line ----------------------------------------------------------------------------------- */

cx_str aider_line_at(cx_str text, size_t *at)
{
    const char *from = text.data + *at;
    const char *end = memchr(from, '\n', text.size - *at);
    size_t size = end == NULL ? text.size - *at : (size_t)(end - from);
    *at += size + (end != NULL);
    if (size != 0 && from[size - 1] == '\r')
        size--;
    return cx_str_from(from, size);
}

cx_str aider_after(cx_str line, const char *mark)
{
    size_t size = strlen(mark);
    return cx_str_from(line.data + size, line.size - size);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

cx_str aider_trimmed(cx_str line)
{
    while (line.size != 0 && is_blank((uint8_t)line.data[line.size - 1]))
        line.size--;
    return line;
}

/* What the first bytes say; of a longer line they are as many as the longest mark has. */
static line_facts facts_of_head(cx_str head, bool is_whole)
{
    return (line_facts){
        .started = cx_str_starts(head, CX_STR(AIDER_STARTED)),
        .prompt = cx_str_starts(head, CX_STR("#### ")) || (is_whole && cx_str_is(head, "####")),
        .printed = cx_str_starts(head, CX_STR("> ")) || (is_whole && cx_str_is(head, ">")),
        .fence = cx_str_starts(head, CX_STR("```"))};
}

line_facts aider_facts(cx_str line)
{
    line_facts facts = facts_of_head(line, true);
    facts.own = line.size > 1 && line.data[line.size - 1] == ' ' && line.data[line.size - 2] == ' ';
    facts.blank = aider_trimmed(line).size == 0;
    return facts;
}

cx_str aider_said(cx_str line, line_kind kind)
{
    switch (kind) {
    case LINE_START: return aider_trimmed(aider_after(line, AIDER_STARTED));
    case LINE_USER: return aider_trimmed(aider_after(line, line.size > 4 ? "#### " : "####"));
    case LINE_PRINTED: return aider_trimmed(aider_after(line, line.size > 1 ? "> " : ">"));
    case LINE_BLANK:
    case LINE_SAID: break;
    }
    return line;
}

/* --- one after the other ---------------------------------------------------------------------- */

static line_kind kind_of(const line_facts *facts, bool fenced, bool ended)
{
    const bool own = ended && facts->own;
    if (fenced && !(own && facts->prompt) && !(ended && facts->started))
        return LINE_SAID;
    if (facts->started)
        return LINE_START;
    if (facts->prompt && own == ended)
        return LINE_USER;
    if (facts->printed && own == ended)
        return LINE_PRINTED;
    return facts->blank ? LINE_BLANK : LINE_SAID;
}

/* The time of a start counts for what follows its block. */
static void end_start(cx_import_reading *r)
{
    if (!r->has_own)
        return;
    if (!r->has_first)
        r->first_ns = r->own_ns;
    r->t_ns = r->own_ns;
    r->has_first = r->has_time = true;
    r->has_own = false;
    r->own_ns = 0;
}

/* A block of several starts has no time but that of a first one that nothing follows. */
static void read_start(cx_import_reading *r, cx_str said, bool begins)
{
    int64_t time = 0;
    if (!begins && said.size == 0)
        return;
    r->has_own = begins && cx_import_time_iso(said, &time);
    r->own_ns = r->has_own ? time : 0;
}

bool aider_step(cx_import_reading *r, const line_facts *facts, cx_str line, bool ended)
{
    line_kind kind = kind_of(facts, r->fenced, ended);
    if (kind == LINE_SAID && facts->fence)
        r->fenced = !r->fenced;
    else if (kind == LINE_USER || kind == LINE_START)
        r->fenced = false;
    if (kind == LINE_BLANK && r->kind == LINE_SAID)
        kind = LINE_SAID; /* a paragraph ends, not the answer */
    const bool begins = kind != (line_kind)r->kind;
    if (begins) {
        end_start(r);
        r->kind = (uint8_t)kind;
        r->records += kind != LINE_BLANK;
        if (kind == LINE_START || (kind != LINE_BLANK && r->conversations == 0))
            r->conversations++;
    }
    if (kind == LINE_START)
        read_start(r, aider_said(line, LINE_START), begins);
    return begins;
}

/* --- places ----------------------------------------------------------------------------------- */

/* As the reader tells a file of prompts: `# TIME`, and `+` in the next line. */
static void read_first_lines(cx_import_place *p, cx_str line)
{
    int64_t time;
    if (p->text == CX_IMPORT_TEXT_TIMED)
        p->text =
            cx_str_starts(line, CX_STR("+")) ? CX_IMPORT_TEXT_PROMPTS : CX_IMPORT_TEXT_HISTORY;
    else if (p->text == CX_IMPORT_TEXT_UNKNOWN && line.size != 0)
        p->text = cx_str_starts(line, CX_STR("# ")) &&
                          cx_import_time_iso(aider_trimmed(aider_after(line, "# ")), &time)
                      ? CX_IMPORT_TEXT_TIMED
                      : CX_IMPORT_TEXT_HISTORY;
}

/* `line` may be the first bytes of a longer one only. */
static void read_line(cx_import_place *p, const line_facts *facts, cx_str line)
{
    if (p->text < CX_IMPORT_TEXT_HISTORY)
        read_first_lines(p, line);
    p->own_ends = p->own_ends || (facts->prompt && facts->own);
    aider_step(&p->reading[0], facts, line, false);
    aider_step(&p->reading[1], facts, line, true);
    p->lines++;
}

/* A part of a line is added to what is known of it. */
static void add_cut(cx_import_place *p, cx_str part)
{
    for (size_t i = 0; i < part.size; i++) {
        const uint8_t c = (uint8_t)part.data[i];
        p->cut_filled =
            p->cut_filled || (p->cut != 0 && !is_blank(p->tail[CX_IMPORT_LINE_TAIL - 1]));
        if (p->cut < CX_IMPORT_LINE_HEAD)
            p->head[p->cut] = c;
        memmove(p->tail, p->tail + 1, CX_IMPORT_LINE_TAIL - 1);
        p->tail[CX_IMPORT_LINE_TAIL - 1] = c;
        p->cut++;
    }
}

static void read_cut_line(cx_import_place *p)
{
    const uint8_t *end = p->tail + CX_IMPORT_LINE_TAIL;
    const bool is_whole = p->cut <= CX_IMPORT_LINE_HEAD;
    cx_str head =
        cx_str_from((const char *)p->head, is_whole ? (size_t)p->cut : CX_IMPORT_LINE_HEAD);
    line_facts facts;
    if (is_whole) {
        if (head.size != 0 && head.data[head.size - 1] == '\r')
            head.size--;
        facts = aider_facts(head);
    } else {
        const bool returns = end[-1] == '\r';
        facts = facts_of_head(head, false);
        facts.own = returns ? end[-2] == ' ' && end[-3] == ' ' : end[-1] == ' ' && end[-2] == ' ';
        facts.blank = !p->cut_filled && (returns || is_blank(end[-1]));
        p->lost = p->lost || facts.started ||
                  (p->text == CX_IMPORT_TEXT_UNKNOWN && cx_str_starts(head, CX_STR("# ")));
    }
    read_line(p, &facts, head);
    p->cut = 0;
    p->cut_filled = false;
    memset(p->head, 0, sizeof p->head);
    memset(p->tail, 0, sizeof p->tail);
}

void cx_import_place_read(cx_import_place *p, cx_bytes bytes)
{
    const cx_str text =
        cx_bytes_str(p->lines == 0 && p->cut == 0 ? cx_import_after_mark(bytes) : bytes);
    for (size_t at = 0; at < text.size;) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        if (end == NULL || p->cut != 0) {
            const size_t size = end == NULL ? text.size - at : (size_t)(end - (text.data + at));
            add_cut(p, cx_str_from(text.data + at, size));
            at += size + (end != NULL);
            if (end != NULL)
                read_cut_line(p);
            continue;
        }
        const cx_str line = aider_line_at(text, &at);
        const line_facts facts = aider_facts(line);
        read_line(p, &facts, line);
    }
}

void cx_import_place_end(cx_import_place *p)
{
    if (p->cut != 0) {
        read_cut_line(p);
        p->lines--;
    }
    for (size_t i = 0; i < CX_COUNT_OF(p->reading); i++)
        end_start(&p->reading[i]);
}

bool cx_import_place_is_usable(const cx_import_place *end)
{
    return !end->lost && end->text != CX_IMPORT_TEXT_PROMPTS;
}
