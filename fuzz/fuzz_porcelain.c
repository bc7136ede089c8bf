/*
 * fuzz_porcelain.c - any bytes as what git prints: raw differences, the index, references, and
 * quoted paths.  Nothing is read beyond the bytes, and what is read is what is there.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "candidate/candidate.h"
#include "git/snapshot.h"

static void check_raw(cx_str text, bool commits, cx_arena *arena)
{
    cx_raw_diff diff;
    cx_err err;
    if (cx_failed(cx_raw_parse(text, 20, commits, arena, &diff, &err)))
        return;
    for (size_t i = 0; i < diff.count; i++) {
        const cx_raw_change *change = &diff.changes[i];
        FUZZ_CHECK(change->path.size != 0 && change->score <= 100);
        FUZZ_CHECK(memchr(change->path.data, 0, change->path.size) == NULL);
        FUZZ_CHECK((change->status == 'R' || change->status == 'C') == (change->from.size != 0));
        FUZZ_CHECK(!commits || change->commit < diff.commit_count);
    }
}

static void check_index(cx_str text, cx_arena *arena)
{
    cx_index_entry *entries;
    size_t count;
    cx_err err;
    if (cx_failed(cx_index_parse(text, 20, arena, &entries, &count, &err)))
        return;
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(entries[i].path.size != 0 && entries[i].stage <= 3 && entries[i].oid.size == 20);
}

static void check_refs(cx_str text, cx_arena *arena)
{
    cx_snap_ref *refs;
    size_t count;
    cx_err err;
    if (cx_failed(cx_refs_parse(text, 20, arena, &refs, &count, &err)))
        return;
    for (size_t i = 1; i < count; i++)
        FUZZ_CHECK(cx_str_cmp(refs[i - 1].name, refs[i].name) <= 0);
}

static void check_quotes(cx_str text, cx_arena *arena)
{
    cx_buf quoted;
    cx_str back, *paths;
    size_t count;
    cx_err err;
    cx_buf_init(&quoted, cx_alloc_default());
    if (text.size != 0 && memchr(text.data, 0, text.size) == NULL) {
        cx_run_path_quote(&quoted, text);
        FUZZ_CHECK(memchr(quoted.data, '\n', quoted.size) == NULL);
        FUZZ_CHECK(!cx_failed(cx_run_path_unquote(cx_buf_str(&quoted), arena, &back, &err)));
        FUZZ_CHECK(cx_str_eq(back, text));
    }
    cx_buf_clear(&quoted);
    if (!cx_failed(cx_run_names_read(text, arena, &paths, &count, &err))) {
        cx_run_names_write(&quoted, paths, count);
        FUZZ_CHECK(cx_str_eq(cx_buf_str(&quoted), text));
    }
    cx_buf_done(&quoted);
}

/* The first byte says what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    if (size == 0)
        return 0;
    cx_str text = {(const char *)data + 1, size - 1};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    switch (data[0] % 5) {
    case 0: check_raw(text, false, &arena); break;
    case 1: check_raw(text, true, &arena); break;
    case 2: check_index(text, &arena); break;
    case 3: check_refs(text, &arena); break;
    default: check_quotes(text, &arena); break;
    }
    cx_arena_done(&arena);
    return 0;
}
