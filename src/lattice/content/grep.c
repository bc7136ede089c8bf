/*
 * grep.c - the nodes of a history that have all of some words, without an index.
 *
 *   {"hits":[{"agent","kind"?,"node","seq","text"}],"total":N,"verified":B}
 *   NODE AGENT#SEQ KIND: ..what is around the first word..
 *
 * A word is any text, also inside of others, in any case of ASCII letters, with every stretch of
 * white space as one space.  A node is a hit when each word is in one of its texts.
 */
#include "lattice/answer.h"
#include "lattice/content/content.h"

#define SNIPPET_BYTES 160u
#define WORDS_MAX 64u

typedef struct grep_search {
    const cx_lattice *lattice;
    const cx_str *words; /* folded */
    size_t word_count;
    content_reader reader;
    cx_buf normal, folded;
    uint64_t found; /* words, of the node that is read */
    cx_buf snippet;
    bool has_snippet;
    cx_buf *out;
    const cx_answer_options *options;
    uint32_t most, total;
} grep_search;

static void fold_text(cx_buf *out, cx_str text)
{
    uint8_t *space = cx_buf_reserve(out, text.size);
    if (space == NULL)
        return;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        space[i] = (uint8_t)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    cx_buf_advance(out, text.size);
}

static cx_status search_text(void *arg, const content_text *text, cx_err *err)
{
    grep_search *s = arg;
    cx_buf_clear(&s->normal);
    cx_buf_clear(&s->folded);
    cx_content_normal(&s->normal, text->text);
    fold_text(&s->folded, cx_buf_str(&s->normal));
    CX_TRY(cx_buf_check(&s->folded, err));
    for (size_t i = 0; i < s->word_count; i++) {
        const uint8_t *hit =
            s->words[i].size > s->folded.size
                ? NULL
                : memmem(s->folded.data, s->folded.size, s->words[i].data, s->words[i].size);
        if (hit == NULL)
            continue;
        s->found |= UINT64_C(1) << i;
        if (s->has_snippet)
            continue;
        s->has_snippet = true;
        cx_content_snippet(&s->snippet, cx_buf_str(&s->normal), (size_t)(hit - s->folded.data),
                           s->words[i].size, SNIPPET_BYTES);
    }
    return cx_buf_check(&s->snippet, err);
}

static void put_hit(grep_search *s, cx_node which)
{
    const cx_lattice *lattice = s->lattice;
    cx_buf *out = s->out;
    cx_str kind = CX_JSON_GET_STR(s->reader.event, "kind");
    if (!s->options->json) {
        cx_answer_node_name(out, lattice, which);
        cx_buf_add_byte(out, ' ');
        cx_answer_name(out, cx_lattice_agent_label(lattice, which));
        cx_buf_printf(out, "#%lld", (long long)node_at(lattice, which)->seq);
        if (kind.size != 0) {
            cx_buf_add_byte(out, ' ');
            cx_answer_name(out, kind);
        }
        cx_buf_add_z(out, ": ");
        cx_answer_name(out, cx_buf_str(&s->snippet));
        cx_buf_add_byte(out, '\n');
        return;
    }
    cx_buf_add_z(out, s->total == 1 ? "{\"agent\":" : ",{\"agent\":");
    cx_answer_str(out, cx_lattice_agent_label(lattice, which));
    if (kind.size != 0) {
        cx_buf_add_z(out, ",\"kind\":");
        cx_answer_str(out, kind);
    }
    cx_buf_add_z(out, ",\"node\":");
    cx_answer_node_str(out, lattice, which);
    cx_buf_printf(out, ",\"seq\":%lld,\"text\":", (long long)node_at(lattice, which)->seq);
    cx_answer_str(out, cx_buf_str(&s->snippet));
    cx_buf_add_byte(out, '}');
}

static cx_status search_node(grep_search *s, cx_node which, cx_err *err)
{
    uint64_t all = s->word_count == 64 ? UINT64_MAX : (UINT64_C(1) << s->word_count) - 1;
    s->found = 0;
    s->has_snippet = false;
    cx_buf_clear(&s->snippet);
    CX_TRY(cx_content_read(&s->reader, which, err));
    CX_TRY(cx_content_visit(&s->reader, search_text, s, err));
    if (s->found != all)
        return CX_SUCCESS;
    s->total++;
    if (s->total <= s->most)
        put_hit(s, which);
    return CX_SUCCESS;
}

static cx_status search_nodes(grep_search *s, cx_err *err)
{
    if (s->options->json)
        cx_buf_add_z(s->out, "{\"hits\":[");
    for (uint32_t at = 0; at < s->lattice->order_count; at++)
        CX_TRY(search_node(s, s->lattice->order[at], err));
    if (s->options->json) {
        cx_buf_printf(s->out, "],\"total\":%lu,", (unsigned long)s->total);
        cx_answer_end(s->out, s->options);
    } else if (s->total > s->most) {
        cx_buf_printf(s->out, "%lu more hits are not listed.\n",
                      (unsigned long)(s->total - s->most));
    }
    return cx_buf_check(s->out, err);
}

static cx_status fold_words(const cx_str *words, size_t count, cx_arena *arena, cx_str *out,
                            cx_err *err)
{
    cx_buf normal, folded;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&normal, arena->alloc);
    cx_buf_init(&folded, arena->alloc);
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        cx_buf_clear(&normal);
        cx_buf_clear(&folded);
        cx_content_normal(&normal, words[i]);
        fold_text(&folded, cx_buf_str(&normal));
        status = cx_buf_check(&folded, err);
        if (!cx_failed(status) && folded.size == 0)
            status = cx_fail(err, CX_E_USAGE, "a word to look for is empty");
        if (!cx_failed(status)) {
            out[i] = cx_arena_copy_str(arena, cx_buf_str(&folded));
            if (out[i].data == NULL)
                status = cx_fail_nomem(err);
        }
    }
    cx_buf_done(&folded);
    cx_buf_done(&normal);
    return status;
}

cx_status cx_lattice_answer_grep(cx_buf *out, const cx_lattice *lattice, const cx_str *words,
                                 size_t word_count, uint32_t most, const cx_answer_options *options,
                                 uint32_t *out_count, cx_err *err)
{
    cx_arena arena;
    cx_str folded[WORDS_MAX];
    if (word_count == 0 || word_count > WORDS_MAX)
        return cx_fail(err, CX_E_USAGE, "expected 1 to %u words", WORDS_MAX);
    grep_search s = {.lattice = lattice,
                     .words = folded,
                     .word_count = word_count,
                     .out = out,
                     .options = options,
                     .most = most};
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_content_init(&s.reader, lattice);
    cx_buf_init(&s.normal, lattice->alloc);
    cx_buf_init(&s.folded, lattice->alloc);
    cx_buf_init(&s.snippet, lattice->alloc);
    cx_status status = fold_words(words, word_count, &arena, folded, err);
    if (!cx_failed(status))
        status = search_nodes(&s, err);
    *out_count = s.total;
    cx_buf_done(&s.snippet);
    cx_buf_done(&s.folded);
    cx_buf_done(&s.normal);
    cx_content_done(&s.reader);
    cx_arena_done(&arena);
    return status;
}
