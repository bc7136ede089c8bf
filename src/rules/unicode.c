/*
 * unicode.c - libutf8proc, loaded at run time.  It stays loaded until the program ends.
 *
 * The types come from utf8proc's own header, so the compiler checks each call; nothing here
 * allocates.
 */
#include "rules/unicode.h"

#include <stdatomic.h>
#include <utf8proc.h>

#include "base/api.h"
#include "os/api.h"

typedef struct unicode_library {
    __typeof__(utf8proc_decompose_char) *decompose_char;
    __typeof__(utf8proc_normalize_utf32) *normalize_utf32;
    __typeof__(utf8proc_get_property) *get_property;
    __typeof__(utf8proc_encode_char) *encode_char;
} unicode_library;

enum { WORK_MAX = 4 * CX_UNICODE_CODES_MAX };
enum { UNTRIED, LOADING, LOADED, ABSENT };

static atomic_int state = UNTRIED;
static unicode_library library;

static bool load_utf8proc(unicode_library *out)
{
    static const char *const names[] = {"libutf8proc.so.2", "libutf8proc.so.3"};
    cx_library *handle = NULL;
    for (size_t i = 0; handle == NULL && i < CX_COUNT_OF(names); i++)
        if (cx_failed(cx_library_load(names[i], &handle, NULL)))
            handle = NULL;
    if (handle == NULL)
        return false;
#define FIND(name)                                                                 \
    if (cx_failed(cx_library_symbol(handle, "utf8proc_" #name, &out->name, NULL))) \
        return false;
    FIND(decompose_char)
    FIND(normalize_utf32)
    FIND(get_property)
    FIND(encode_char)
#undef FIND
    return true;
}

bool cx_unicode_ready(void)
{
    int seen = atomic_load_explicit(&state, memory_order_acquire);
    if (CX_LIKELY(seen == LOADED || seen == ABSENT))
        return seen == LOADED;
    int expected = UNTRIED;
    if (atomic_compare_exchange_strong(&state, &expected, LOADING)) {
        bool found = load_utf8proc(&library);
        atomic_store_explicit(&state, found ? LOADED : ABSENT, memory_order_release);
        return found;
    }
    /* Another thread is loading it, which takes well under a millisecond. */
    do
        seen = atomic_load_explicit(&state, memory_order_acquire);
    while (seen == LOADING);
    return seen == LOADED;
}

/* Canonical order: marks of a run sorted by combining class, stable (UAX 15 D109). */
static void order_marks(int32_t *codes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        int32_t code = codes[i];
        int class_of = library.get_property(code)->combining_class;
        size_t at = i;
        if (class_of == 0)
            continue;
        while (at > 0 && library.get_property(codes[at - 1])->combining_class > class_of) {
            codes[at] = codes[at - 1];
            at--;
        }
        codes[at] = code;
    }
}

bool cx_unicode_compose(const int32_t *codes, size_t count, bool fold_case, char *out,
                        size_t capacity, size_t *out_size)
{
    CX_ASSERT(count == 0 || codes != NULL);
    int32_t work[WORK_MAX];
    utf8proc_option_t options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE;
    size_t used = 0, size = 0;
    if (!cx_unicode_ready())
        return false;
    if (fold_case)
        options |= UTF8PROC_CASEFOLD;
    for (size_t i = 0; i < count; i++) {
        int last_boundclass = 0;
        utf8proc_ssize_t capacity_left = (utf8proc_ssize_t)(WORK_MAX - used);
        utf8proc_ssize_t got =
            library.decompose_char(codes[i], work + used, capacity_left, options, &last_boundclass);
        if (got < 0 || got > capacity_left)
            return false;
        used += (size_t)got;
    }
    order_marks(work, used);
    utf8proc_ssize_t composed =
        library.normalize_utf32(work, (utf8proc_ssize_t)used, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    if (composed < 0)
        return false;
    for (utf8proc_ssize_t i = 0; i < composed; i++) {
        uint8_t bytes[4];
        utf8proc_ssize_t length = library.encode_char(work[i], bytes);
        if (length <= 0 || (size_t)length > capacity - size)
            return false;
        memcpy(out + size, bytes, (size_t)length);
        size += (size_t)length;
    }
    *out_size = size;
    return true;
}
