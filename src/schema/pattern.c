/*
 * pattern.c - patterns over PCRE2, but for those that need no search.
 */
#include "schema/pattern.h"

#include <stdatomic.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/api.h"
#include "os/api.h"
#include "schema/pattern_plain.h"

/* What one search may cost, as PCRE2 counts it. */
#define MATCH_LIMIT 1000000
#define HEAP_LIMIT_KIB 20000

/* --- the library ------------------------------------------------------------------------------ */

#define FUNCTIONS(X)                  \
    X(pcre2_compile_8)                \
    X(pcre2_code_free_8)              \
    X(pcre2_jit_compile_8)            \
    X(pcre2_match_8)                  \
    X(pcre2_match_data_create_8)      \
    X(pcre2_match_data_free_8)        \
    X(pcre2_match_context_create_8)   \
    X(pcre2_match_context_free_8)     \
    X(pcre2_set_match_limit_8)        \
    X(pcre2_set_heap_limit_8)         \
    X(pcre2_general_context_create_8) \
    X(pcre2_general_context_free_8)   \
    X(pcre2_compile_context_create_8) \
    X(pcre2_compile_context_free_8)   \
    X(pcre2_get_error_message_8)      \
    X(pcre2_config_8)

#define DECLARE(name) __typeof__(&name) name;
typedef struct pcre2_library {
    FUNCTIONS(DECLARE)
    bool older; /* than 10.40, which knows `\p{sc:..}` and `\p{scx:..}` */
} pcre2_library;

/* "10.39 2021-10-29" */
static bool is_older(const pcre2_library *pcre2)
{
    char text[64] = "";
    unsigned major = 0, minor = 0;
    int size = pcre2->pcre2_config_8(PCRE2_CONFIG_VERSION, NULL);
    if (size <= 0 || (size_t)size > sizeof text ||
        pcre2->pcre2_config_8(PCRE2_CONFIG_VERSION, text) <= 0)
        return false;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        major = major * 10 + (unsigned)(*at - '0');
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            minor = minor * 10 + (unsigned)(*at - '0');
    return major < 10 || (major == 10 && minor < 40);
}

static cx_status load_library(pcre2_library *out, cx_err *err)
{
    cx_library *library;
    if (cx_failed(cx_library_load("libpcre2-8.so.0", &library, NULL)))
        return cx_fail_at(err, CX_E_UNSUPPORTED, "LibraryMissing", CX_NO_OFFSET,
                          "patterns need PCRE2: install the package libpcre2-8-0");
#define LOAD(name) CX_TRY(cx_library_symbol(library, #name, &out->name, err));
    FUNCTIONS(LOAD)
    out->older = is_older(out);
    return CX_SUCCESS;
}

/* Loaded once and kept; when two threads come first at the same time, both fill in the same. */
static cx_status get_library(const pcre2_library **out, cx_err *err)
{
    static pcre2_library library;
    static _Atomic int state; /* 0 = not loaded, 1 = a thread loads, 2 = loaded */
    if (atomic_load_explicit(&state, memory_order_acquire) != 2) {
        pcre2_library mine;
        CX_TRY(load_library(&mine, err));
        int expected = 0;
        if (atomic_compare_exchange_strong(&state, &expected, 1)) {
            library = mine;
            atomic_store_explicit(&state, 2, memory_order_release);
        }
        while (atomic_load_explicit(&state, memory_order_acquire) != 2)
            ; /* the other one is copying a few pointers */
    }
    *out = &library;
    return CX_SUCCESS;
}

/* --- memory: PCRE2 frees without a size, so the size comes first ------------------------------ */

#define PREFIX 16

static void *allocate_block(size_t size, void *arg)
{
    const cx_alloc *alloc = arg;
    if (size > SIZE_MAX - PREFIX)
        return NULL;
    uint8_t *block = cx_alloc_new(alloc, size + PREFIX);
    if (block == NULL)
        return NULL;
    memcpy(block, &size, sizeof size);
    return block + PREFIX;
}

static void free_block(void *block, void *arg)
{
    const cx_alloc *alloc = arg;
    if (block == NULL)
        return;
    uint8_t *start = (uint8_t *)block - PREFIX;
    size_t size;
    memcpy(&size, start, sizeof size);
    cx_alloc_free(alloc, start, size + PREFIX);
}

/* --- patterns --------------------------------------------------------------------------------- */

struct cx_pattern {
    cx_alloc alloc;             /* a copy: PCRE2 wants a pointer that is not const */
    const pcre2_library *pcre2; /* NULL: it is plain */
    cx_pattern_plain plain;
    pcre2_general_context *general;
    pcre2_match_context *limits;
    pcre2_code *code;
};

static cx_status compile_pattern(cx_pattern *pattern, cx_str translated, cx_err *err)
{
    const pcre2_library *pcre2 = pattern->pcre2;
    int code;
    PCRE2_SIZE offset;
    pattern->general =
        pcre2->pcre2_general_context_create_8(allocate_block, free_block, &pattern->alloc);
    if (pattern->general == NULL)
        return cx_fail_nomem(err);
    pattern->limits = pcre2->pcre2_match_context_create_8(pattern->general);
    if (pattern->limits == NULL)
        return cx_fail_nomem(err);
    pcre2->pcre2_set_match_limit_8(pattern->limits, MATCH_LIMIT);
    pcre2->pcre2_set_heap_limit_8(pattern->limits, HEAP_LIMIT_KIB);
    pcre2_compile_context *context = pcre2->pcre2_compile_context_create_8(pattern->general);
    if (context == NULL)
        return cx_fail_nomem(err);
    pattern->code = pcre2->pcre2_compile_8(
        (PCRE2_SPTR)(translated.size == 0 ? "" : translated.data), translated.size,
        PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF |
            PCRE2_NEVER_BACKSLASH_C,
        &code, &offset, context);
    pcre2->pcre2_compile_context_free_8(context);
    if (pattern->code == NULL) {
        PCRE2_UCHAR reason[160];
        if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
            return cx_fail_nomem(err);
        if (pcre2->pcre2_get_error_message_8(code, reason, sizeof reason) < 0)
            reason[0] = '\0';
        return cx_fail_at(err, CX_E_UNSUPPORTED, "PatternUnsupported", CX_NO_OFFSET,
                          "PCRE2 does not take the pattern: %s", (const char *)reason);
    }
    /* Without it, which some systems forbid, matching is only slower. */
    (void)pcre2->pcre2_jit_compile_8(pattern->code, PCRE2_JIT_COMPLETE);
    return CX_SUCCESS;
}

cx_status cx_pattern_compile(cx_str text, const cx_alloc *alloc, cx_pattern **out, cx_err *err)
{
    if (alloc == NULL)
        alloc = cx_alloc_default();
    cx_pattern *pattern = NULL;
    cx_buf translated;
    cx_buf older;
    cx_buf_init(&translated, alloc);
    cx_buf_init(&older, alloc);
    cx_status status = cx_pattern_translate(text, &translated, err);
    if (cx_failed(status))
        goto done;
    pattern = cx_alloc_zeroed(alloc, 1, sizeof *pattern);
    if (pattern == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    pattern->alloc = *alloc;
    if (!cx_pattern_plain_read(text, &pattern->plain)) {
        CX_TRY_GOTO(status, get_library(&pattern->pcre2, err));
        if (pattern->pcre2->older)
            CX_TRY_GOTO(status, cx_pattern_spell_older(cx_buf_str(&translated), &older, err));
        CX_TRY_GOTO(status,
                    compile_pattern(pattern,
                                    cx_buf_str(pattern->pcre2->older ? &older : &translated), err));
    }
    *out = pattern;
    pattern = NULL;
done:
    cx_pattern_close(pattern);
    cx_buf_done(&older);
    cx_buf_done(&translated);
    return status;
}

void cx_pattern_close(cx_pattern *pattern)
{
    if (pattern == NULL)
        return;
    const pcre2_library *pcre2 = pattern->pcre2;
    if (pattern->code != NULL)
        pcre2->pcre2_code_free_8(pattern->code);
    if (pattern->limits != NULL)
        pcre2->pcre2_match_context_free_8(pattern->limits);
    if (pattern->general != NULL)
        pcre2->pcre2_general_context_free_8(pattern->general);
    cx_alloc alloc = pattern->alloc;
    cx_alloc_free(&alloc, pattern, sizeof *pattern);
}

/* Lone surrogates stand as ED A0..BF xx; U+FFFD has three bytes too. */
static cx_status replace_surrogates(const cx_alloc *alloc, cx_str *text, char **out_owned,
                                    cx_err *err)
{
    *out_owned = NULL;
    const char *found = memchr(text->data, 0xED, text->size);
    if (found == NULL)
        return CX_SUCCESS;
    char *copy = cx_alloc_new(alloc, text->size);
    if (copy == NULL)
        return cx_fail_nomem(err);
    memcpy(copy, text->data, text->size);
    for (size_t i = 0; i + 2 < text->size; i++)
        if ((uint8_t)copy[i] == 0xED && (uint8_t)copy[i + 1] >= 0xA0)
            memcpy(copy + i, "\xEF\xBF\xBD", 3);
    text->data = copy;
    *out_owned = copy;
    return CX_SUCCESS;
}

cx_status cx_pattern_match(const cx_pattern *pattern, cx_str text, bool *out, cx_err *err)
{
    const pcre2_library *pcre2 = pattern->pcre2;
    char *owned = NULL;
    cx_status status = CX_SUCCESS;
    if (pcre2 == NULL) {
        *out = cx_pattern_plain_match(&pattern->plain, text);
        return status;
    }
    if (text.size == 0)
        text = CX_STR("");
    CX_TRY(replace_surrogates(&pattern->alloc, &text, &owned, err));
    pcre2_match_data *data = pcre2->pcre2_match_data_create_8(1, pattern->general);
    if (data == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    int code = pcre2->pcre2_match_8(pattern->code, (PCRE2_SPTR)text.data, text.size, 0,
                                    PCRE2_NO_UTF_CHECK, data, pattern->limits);
    pcre2->pcre2_match_data_free_8(data);
    if (code >= 0 || code == PCRE2_ERROR_NOMATCH)
        *out = code >= 0;
    else if (code == PCRE2_ERROR_NOMEMORY)
        status = cx_fail_nomem(err);
    else
        status = cx_fail_at(err, CX_E_LIMIT, "PatternLimit", CX_NO_OFFSET,
                            "searching for the pattern takes too long (PCRE2 says %d)", code);
done:
    cx_alloc_free(&pattern->alloc, owned, text.size);
    return status;
}
