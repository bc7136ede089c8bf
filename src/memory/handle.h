/*
 * handle.h - helpers shared by the files that implement <cortex/memory.h>.
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

/* Resolves a memory's URI, or a ULID, which means the current version. */
CX_RESULT cx_api_memory(cx_memories *memories, const char *text, cx_arena *arena, cx_uri *out,
                        cx_err *err);
/* The same when only the id matters: reads nothing, and the memory need not exist. */
CX_RESULT cx_api_memory_id(const char *text, cx_id *out, cx_err *err);
/* Looks a word up in a vocabulary; `tag` is the error's tag.  NULL is 0 unless the word is
 * required. */
CX_RESULT cx_api_word(const char *text, const char *what, const char *tag,
                      uint8_t (*code)(cx_str name), bool needed, uint8_t *out, cx_err *err);
/* Copies texts to the arena. */
CX_RESULT cx_api_texts(const char *const *texts, size_t count, const char *what, cx_arena *arena,
                       const cx_str **out, cx_err *err);

#endif
