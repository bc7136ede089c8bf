/*
 * fuzz_git.c - any bytes as files of git that an agent can write: an index, a loose object,
 * a commit.
 * Nothing is read beyond the bytes, and what is read has the form that others rely on.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "git/git_history.h"
#include "git/git_index.h"
#include "git/git_pack.h"

static void check_index(cx_bytes file, size_t oid_size, cx_arena *arena)
{
    cx_index_entry *entries;
    size_t count;
    cx_err err;
    if (cx_failed(cx_index_read(file, oid_size, arena, &entries, &count, &err)))
        return;
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(entries[i].path.size != 0 && entries[i].stage <= 3);
        FUZZ_CHECK(entries[i].oid.size == oid_size);
        FUZZ_CHECK(memchr(entries[i].path.data, 0, entries[i].path.size) == NULL);
    }
}

static void check_loose(cx_bytes file)
{
    cx_object_type type;
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    if (!cx_failed(cx_git_loose_parse(file, (size_t)1 << 20, &type, &out, &err)))
        FUZZ_CHECK(out.size <= ((size_t)1 << 20) + 64 && cx_git_type_name(type) != NULL);
    cx_buf_done(&out);
}

static void check_commit(cx_bytes text)
{
    cx_git_commit_text commit;
    if (!cx_git_commit_parse(cx_bytes_str(text), 20, &commit))
        return;
    FUZZ_CHECK(commit.parent_count <= CX_COUNT_OF(commit.parents));
    FUZZ_CHECK(commit.author_s >= 0 && commit.committer_s >= 0);
    for (size_t i = 0; i < commit.parent_count; i++)
        FUZZ_CHECK(commit.parents[i].size == 20);
}

/* The first byte says what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    if (size == 0)
        return 0;
    cx_bytes rest = {data + 1, size - 1};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    switch (data[0] % 4) {
    case 0: check_index(rest, 20, &arena); break;
    case 1: check_index(rest, 32, &arena); break;
    case 2: check_loose(rest); break;
    default: check_commit(rest); break;
    }
    cx_arena_done(&arena);
    return 0;
}
