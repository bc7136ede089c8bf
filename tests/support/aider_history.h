/*
 * aider_history.h - histories of Aider in tests: random ones, and long ones as Aider writes them;
 * and what a part of one must say.
 */
#ifndef CX_TESTS_AIDER_HISTORY_H
#define CX_TESTS_AIDER_HISTORY_H

#include "tests/unit/import/util.h"

static inline unsigned aider_pick(uint64_t *random, unsigned count)
{
    return (unsigned)(cx_test_random(random) % count);
}

static inline void aider_add_start(cx_buf *out, uint64_t *random)
{
    const unsigned month = 1 + aider_pick(random, 9), second = aider_pick(random, 10);
    cx_buf_printf(out, "# aider chat started at 2026-0%u-03 09:00:0%u", month, second);
}

/* A line of an Aider history, or nearly one. */
static inline void aider_add_random_line(cx_buf *out, uint64_t *random, bool ends)
{
    static const char *const words[] = {"word",
                                        "```",
                                        "```c",
                                        "  ```",
                                        "# A heading",
                                        "#### ",
                                        "####",
                                        "> quoted",
                                        ">",
                                        "#### ask",
                                        "",
                                        "",
                                        "   ",
                                        "\t",
                                        "#### ask  ",
                                        "> note  ",
                                        ">  ",
                                        "# 2026",
                                        "+x",
                                        "\r",
                                        "ends  ",
                                        "x\ry",
                                        "> Tokens: 1k sent, 2 received.",
                                        "> Applied edit to a.c",
                                        "> Model: m x"};
    const unsigned what = aider_pick(random, 40);
    if (what < 2)
        aider_add_start(out, random);
    else if (what == 2)
        cx_buf_add_z(out, "# aider chat started at then");
    else if (what == 3)
        cx_buf_add_z(out, "# aider chat started at ");
    else
        cx_buf_add_z(out, words[aider_pick(random, CX_COUNT_OF(words))]);
    if (ends && aider_pick(random, 3) == 0)
        cx_buf_add_z(out, "  ");
    cx_buf_add_z(out, aider_pick(random, 12) == 0 ? "\r\n" : "\n");
}

static inline void aider_write_random(cx_buf *out, uint64_t *random)
{
    const bool ends = aider_pick(random, 2) == 0;
    if (aider_pick(random, 8) == 0)
        cx_buf_add_z(out, "\xef\xbb\xbf");
    for (unsigned lines = aider_pick(random, 120); lines != 0; lines--)
        aider_add_random_line(out, random, ends);
    if (aider_pick(random, 3) == 0)
        cx_buf_add_z(out, "#### no end");
}

/* A turn as Aider writes it: what was asked, an answer with code, headings and quotations, and what
 * the program printed.  Some fences are never closed; each 500 turns are a conversation. */
static inline void aider_add_turn(cx_buf *out, unsigned turn)
{
    if (turn % 500 == 0)
        cx_buf_printf(out,
                      "\n# aider chat started at 2026-%02u-%02u 09:%02u:00\n\n> Aider v0.86.2  \n"
                      "> Main model: some/model with diff edit format  \n"
                      "> Git repo: .git with 120 files  \n\n",
                      1 + turn / 500 % 12, 1 + turn / 6000 % 28, turn / 500 % 60);
    cx_buf_printf(out, "#### please change %u  \n#### and its tests  \n\n", turn);
    cx_buf_printf(out, "## What I found in %u\n\n> a quotation of the docs\n\n#### A step\n\n",
                  turn);
    cx_buf_printf(out, "src/a%u.c\n```c\n<<<<<<< SEARCH\n", turn % 40);
    for (unsigned i = 0; i < 3 + turn % 29; i++)
        cx_buf_printf(out, "    call_%u(%u); // # a comment\n", i, turn);
    cx_buf_add_z(out, turn % 97 == 5 ? "> stopped\n" : ">>>>>>> REPLACE\n```\n\nDone.\n");
    cx_buf_printf(out,
                  "\n> Tokens: %u.%uk sent, %u received. Cost: $0.0%u message, $1.20 session.  \n"
                  "> Applied edit to src/a%u.c  \n\n",
                  turn % 30, turn % 10, 100 + turn % 900, turn % 10, turn % 40);
}

static inline cx_str aider_text_of(imported *in, const cx_json *value)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&out, value, CX_JSON_PY_COMPACT, &in->err), &in->err);
    cx_str text = cx_arena_copy_str(&in->arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return text;
}

static inline const cx_json *aider_with_index(const imported *in, uint64_t index)
{
    for (size_t i = 0; i < in->count; i++) {
        uint64_t found;
        const cx_json *at = CX_JSON_GET(CX_JSON_GET(&in->nodes[i], "event"), "at");
        const cx_json *number = CX_JSON_GET(at, "index");
        if (number != NULL && cx_json_uint64(number, &found) && found == index)
            return &in->nodes[i];
    }
    return NULL;
}

/* Whether a member is compared: not the seal, which is also over the type of a fork, and not
 * issues, of which a part does not tell that times go back at the first node of an agent. */
static inline bool aider_is_compared(const cx_json *name)
{
    return !cx_str_is(cx_json_text(name), "__seal") && !cx_str_is(cx_json_text(name), "issues");
}

static inline uint32_t aider_compared(const cx_json *event)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < event->count; i++)
        count += aider_is_compared(&event->members[i].name);
    return count;
}

static inline void aider_check_issues(const cx_json *whole, const cx_json *part)
{
    const cx_json *a = CX_JSON_GET(whole, "issues"), *b = CX_JSON_GET(part, "issues");
    uint32_t k = 0;
    for (uint32_t i = 0; a != NULL && i < a->count; i++) {
        const bool same = b != NULL && k < b->count &&
                          cx_str_eq(cx_json_text(&a->items[i]), cx_json_text(&b->items[k]));
        CHECK(same || cx_str_is(cx_json_text(&a->items[i]), "time_regressed"));
        k += same;
    }
    CHECK_INT(k, b == NULL ? 0 : b->count);
}

static inline void aider_check_record(imported *whole, imported *part, uint64_t index)
{
    static const char *const members[] = {"agent_id", "state_delta", "timestamp"};
    const cx_json *a = aider_with_index(whole, index), *b = aider_with_index(part, index);
    REQUIRE(a != NULL && b != NULL);
    for (size_t i = 0; i < CX_COUNT_OF(members); i++)
        CHECK(cx_str_eq(aider_text_of(whole, cx_json_get(a, cx_str_z(members[i]))),
                        aider_text_of(part, cx_json_get(b, cx_str_z(members[i])))));
    a = CX_JSON_GET(a, "event");
    b = CX_JSON_GET(b, "event");
    REQUIRE(aider_compared(a) == aider_compared(b));
    for (uint32_t i = 0; i < a->count; i++) {
        const cx_json *name = &a->members[i].name, *other = cx_json_get(b, cx_json_text(name));
        if (!aider_is_compared(name))
            continue;
        REQUIRE(other != NULL);
        CHECK(cx_str_eq(aider_text_of(whole, &a->members[i].value), aider_text_of(part, other)));
    }
    aider_check_issues(a, b);
}

#endif
