/*
 * decode.h - decodes members of the JSON files by which a repository configures runs.
 *
 *     cx_decoder decoder = {arena, "policies/cortex.json", err, false};
 *     cx_decode_object(&decoder, &root, "", names, CX_COUNT_OF(names));
 *     cx_decode_bool(&decoder, &root, "runner.mcp_only", &config->mcp_only);
 *     return cx_decode_end(&decoder);
 *
 * The first fault is recorded in the error with file and member; later calls do nothing.  An absent
 * member leaves its output unchanged.  `where` is the member's name in messages; its part after the
 * last dot is its key.
 */
#ifndef CX_CONTRACT_DECODE_H
#define CX_CONTRACT_DECODE_H

#include "contract/config.h"

typedef struct cx_decoder {
    cx_arena *arena;
    const char *file;
    cx_err *err; /* not NULL */
    bool failed;
} cx_decoder;

/* Records a fault. */
void cx_decode_fault(cx_decoder *decoder, const char *where, const char *expected);

/* Checks that `value` is an object without members other than these. */
void cx_decode_object(cx_decoder *decoder, const cx_json *value, const char *where,
                      const char *const *names, size_t name_count);
/* A required member; NULL after a fault. */
const cx_json *cx_decode_need(cx_decoder *decoder, const cx_json *object, const char *where);

void cx_decode_str(cx_decoder *decoder, const cx_json *object, const char *where, cx_str *out);
void cx_decode_bool(cx_decoder *decoder, const cx_json *object, const char *where, bool *out);
void cx_decode_u64(cx_decoder *decoder, const cx_json *object, const char *where, uint64_t min,
                   uint64_t max, uint64_t *out);
void cx_decode_u32(cx_decoder *decoder, const cx_json *object, const char *where, uint32_t min,
                   uint32_t max, uint32_t *out);
/* An array of texts, none of them empty. */
void cx_decode_words(cx_decoder *decoder, const cx_json *object, const char *where,
                     cx_str_list *out);
/* The same for the array itself. */
void cx_decode_word_items(cx_decoder *decoder, const cx_json *array, const char *where,
                          cx_str_list *out);
/* "version" must be "v1". */
void cx_decode_version(cx_decoder *decoder, const cx_json *object);

CX_RESULT cx_decode_end(const cx_decoder *decoder);

#endif
