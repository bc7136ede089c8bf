/*
 * api.h - what the files behind <cortex/memory.h> share.
 */
#ifndef CX_MEMORY_HANDLE_H
#define CX_MEMORY_HANDLE_H

#include <cortex/memory.h>

#include "ledger/api.h"
#include "memory/memory.h"

struct cx_memories {
    const cx_alloc *alloc;
    cx_ledger *ledger;
    cx_memory *memory;
    bool (*new_id)(void *arg, uint8_t out_id[16]);
    void *new_id_arg;
    size_t actor_size;
    char actor[CX_ACTOR_SIZE_MAX];
};

static inline cx_str cx_api_actor_of(const cx_memories *memories)
{
    return cx_str_from(memories->actor, memories->actor_size);
}

/* A memory's URI, or a ULID, which means the current version: then read now. */
CX_RESULT cx_api_memory(cx_memories *memories, const char *text, cx_arena *arena, cx_uri *out,
                        cx_err *err);
/* The same where only the id matters: nothing is read, and it need not be there. */
CX_RESULT cx_api_memory_id(const char *text, cx_id *out, cx_err *err);
/* A word of a vocabulary; `tag` is the error's.  NULL is 0 when it need not be given. */
CX_RESULT cx_api_word(const char *text, const char *what, const char *tag,
                      uint8_t (*code)(cx_str name), bool needed, uint8_t *out, cx_err *err);
/* Texts into the arena. */
CX_RESULT cx_api_texts(const char *const *texts, size_t count, const char *what, cx_arena *arena,
                       const cx_str **out, cx_err *err);

#endif
