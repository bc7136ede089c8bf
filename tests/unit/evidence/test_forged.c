/*
 * test_forged.c - evidence files that were made by the program, and everything that can be told
 * differently with the same means: data that was changed and whose page was made again.
 *
 * The vectors of tests/vectors/evidence/ pin the format: they must read, and be written again to
 * the byte.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/hex.h"
#include "evidence/evidence.h"
#include "tests/test.h"

typedef struct sample {
    cx_arena arena;
    cx_buf file;
    cx_evidence evidence;
    cx_vkey key;
    cx_check_options options;
} sample;

static bool sample_open(sample *s, const char *name)
{
    cx_err err;
    cx_finding finding;
    char path[1024], text[65] = {0};
    cx_buf key;
    memset(s, 0, sizeof *s);
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    cx_buf_init(&s->file, cx_alloc_default());
    cx_buf_init(&key, cx_alloc_default());
    (void)snprintf(path, sizeof path, CX_TEST_ROOT "/vectors/evidence/%s", name);
    bool good =
        !cx_failed(cx_io_read_file(cx_io_system(), path, CX_EVIDENCE_FILE_MAX, &s->file, &err));
    (void)snprintf(path, sizeof path, CX_TEST_ROOT "/vectors/evidence/%s",
                   strcmp(name, "home.cxe") == 0 ? "home_key.txt" : "key.txt");
    good = good && !cx_failed(cx_io_read_file(cx_io_system(), path, 128, &key, &err)) &&
           key.size >= 64;
    if (good)
        memcpy(text, key.data, 64);
    good = good && cx_hex_decode(cx_str_z(text), s->key.key.bytes, 32) &&
           !cx_failed(
               cx_evidence_read(cx_buf_bytes(&s->file), &s->arena, &s->evidence, &finding, &err)) &&
           finding.verdict == CX_HOLDS;
    s->options = (cx_check_options){.keys = &s->key, .key_count = 1, .require = CX_REQUIRE_SIGNED};
    cx_buf_done(&key);
    CHECK(good);
    return good;
}

static void sample_close(sample *s)
{
    cx_buf_done(&s->file);
    cx_arena_done(&s->arena);
}

static cx_verdict verdict_of(const sample *s, cx_bytes file, const char **out_reason)
{
    cx_arena arena;
    cx_err err;
    cx_evidence_result *result = malloc(sizeof *result);
    cx_verdict verdict = CX_INDETERMINATE;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = result == NULL ? cx_fail_nomem(&err)
                                      : cx_evidence_check(file, &s->options, &arena, result, &err);
    CHECK(!cx_failed(status));
    if (!cx_failed(status)) {
        verdict = result->finding.verdict;
        *out_reason = result->finding.reason;
    }
    cx_arena_done(&arena);
    free(result);
    return verdict;
}

/* Written with its page, as a forger would. */
static cx_verdict verdict_of_forged(const sample *s, const cx_evidence *forged)
{
    cx_buf file;
    cx_err err;
    const char *reason = NULL;
    cx_buf_init(&file, cx_alloc_default());
    cx_verdict verdict = CX_BROKEN;
    if (!cx_failed(cx_evidence_write(forged, &file, &err)))
        verdict = verdict_of(s, cx_buf_bytes(&file), &reason);
    cx_buf_done(&file);
    return verdict;
}

static const char *const names[] = {"commit.cxe", "memory.cxe", "trace.cxe", "erased.cxe",
                                    "home.cxe"};

CX_TEST(vectors_are_read_and_written_to_the_byte)
{
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        sample s;
        cx_buf again;
        cx_err err;
        const char *reason = NULL;
        cx_buf_init(&again, cx_alloc_default());
        if (sample_open(&s, names[i])) {
            CHECK(!cx_failed(cx_evidence_write(&s.evidence, &again, &err)));
            CHECK(again.size == s.file.size && memcmp(again.data, s.file.data, again.size) == 0);
            cx_verdict verdict = verdict_of(&s, cx_buf_bytes(&s.file), &reason);
            CHECK(verdict == (i == 3 ? CX_INDETERMINATE : CX_HOLDS));
        }
        cx_buf_done(&again);
        sample_close(&s);
    }
}

/* What a maker only claims may differ: when the file was made, and what other keys there are. */
static bool only_claims_differ(const sample *s, const cx_evidence *other)
{
    cx_evidence mine = s->evidence;
    cx_buf a, b;
    cx_err err;
    mine.made_at_ns = other->made_at_ns;
    mine.keys = other->keys;
    mine.key_count = other->key_count;
    cx_buf_init(&a, cx_alloc_default());
    cx_buf_init(&b, cx_alloc_default());
    bool same = !cx_failed(cx_evidence_encode(&mine, &a, &err)) &&
                !cx_failed(cx_evidence_encode(other, &b, &err)) && a.size == b.size &&
                memcmp(a.data, b.data, a.size) == 0;
    cx_buf_done(&a);
    cx_buf_done(&b);
    return same;
}

/* One bit of the data, and the page made again: never "holds". */
static void flip(const sample *s, uint8_t *data, size_t size, size_t at, unsigned bit)
{
    cx_arena arena;
    cx_evidence forged;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    data[at] ^= (uint8_t)(1u << bit);
    if (!cx_failed(cx_evidence_decode(cx_bytes_from(data, size), &arena, &forged, &err)) &&
        verdict_of_forged(s, &forged) == CX_HOLDS && !only_claims_differ(s, &forged)) {
        (void)printf("bit %u of byte %zu of %zu\n", bit, at, size);
        CHECK(false);
    }
    data[at] ^= (uint8_t)(1u << bit);
    cx_arena_done(&arena);
}

static void flip_many(const char *name, size_t stride)
{
    sample s;
    cx_buf data;
    cx_err err;
    cx_buf_init(&data, cx_alloc_default());
    if (sample_open(&s, name) && !cx_failed(cx_evidence_encode(&s.evidence, &data, &err)))
        for (size_t at = 0; at < data.size; at += stride)
            flip(&s, data.data, data.size, at, (unsigned)((at / stride) % 8));
    cx_buf_done(&data);
    sample_close(&s);
}

CX_TEST(no_bit_of_the_data_can_be_another_one)
{
    flip_many("memory.cxe", 1);
    flip_many("trace.cxe", 7);
    flip_many("commit.cxe", 997);
    flip_many("home.cxe", 1);
}

CX_TEST(parts_cannot_be_exchanged_or_left_out)
{
    sample s;
    if (sample_open(&s, "commit.cxe")) {
        cx_evidence forged = s.evidence;
        forged.kind = CX_STR("run");
        CHECK(verdict_of_forged(&s, &forged) == CX_BROKEN); /* the seal is of another id */
        forged = s.evidence;
        forged.commit.size = 0;
        CHECK(verdict_of_forged(&s, &forged) == CX_BROKEN);
        forged = s.evidence;
        forged.entry_count = 0;
        forged.trace_count = forged.memory_count = 0;
        CHECK(verdict_of_forged(&s, &forged) != CX_HOLDS);
        forged = s.evidence;
        forged.file_count = 0;
        CHECK(verdict_of_forged(&s, &forged) == CX_BROKEN); /* no event made the commit */
        cx_evidence_file *files =
            CX_ARENA_ARRAY(&s.arena, cx_evidence_file, forged.file_count + 64);
        forged = s.evidence;
        memcpy(files, forged.files, forged.file_count * sizeof *files);
        files[0].bytes = files[1].bytes;
        forged.files = files;
        CHECK(verdict_of_forged(&s, &forged) == CX_BROKEN);
        forged = s.evidence;
        cx_evidence_journal *journals =
            CX_ARENA_ARRAY(&s.arena, cx_evidence_journal, forged.journal_count);
        memcpy(journals, forged.journals, forged.journal_count * sizeof *journals);
        journals[0].checkpoint = journals[1].checkpoint;
        forged.journals = journals;
        CHECK(verdict_of_forged(&s, &forged) == CX_BROKEN);
        journals[0].checkpoint.size = 0;
        CHECK(verdict_of_forged(&s, &forged) == CX_INDETERMINATE);
    }
    sample_close(&s);
}

/* A home root of which one member was changed. */
static const char *forged_home(const sample *s, const cx_evidence_home *home, size_t count)
{
    cx_evidence forged = s->evidence;
    cx_buf file;
    cx_err err;
    const char *reason = NULL;
    forged.homes = home;
    forged.home_count = count;
    cx_buf_init(&file, cx_alloc_default());
    CHECK(!cx_failed(cx_evidence_write(&forged, &file, &err)));
    CHECK(verdict_of(s, cx_buf_bytes(&file), &reason) != CX_HOLDS);
    cx_buf_done(&file);
    return reason == NULL ? "" : reason;
}

CX_TEST(a_home_root_is_of_its_journal)
{
    sample s;
    if (!sample_open(&s, "home.cxe"))
        return;
    const cx_evidence_home good = s.evidence.homes[0];
    cx_evidence_home bad = good;
    CHECK(s.evidence.home_count == 1 && s.evidence.journals[0].point.size == 2);
    bad.journal_root.bytes[0] ^= 1;
    CHECK(strcmp(forged_home(&s, &bad, 1), "HomeMismatch") == 0);
    bad = good;
    bad.memories_root.bytes[31] ^= 1;
    CHECK(strcmp(forged_home(&s, &bad, 1), "HomeMismatch") == 0);
    bad = good;
    bad.edges_root.bytes[5] ^= 1;
    CHECK(strcmp(forged_home(&s, &bad, 1), "HomeMismatch") == 0);
    bad = good;
    bad.consistency = (cx_bytes){NULL, 0};
    CHECK(strcmp(forged_home(&s, &bad, 1), "HomeMismatch") == 0);
    bad = good;
    bad.proof.size--;
    CHECK(strcmp(forged_home(&s, &bad, 1), "NonCanonical") == 0);
    CHECK(strcmp(forged_home(&s, NULL, 0), "NotSigned") == 0); /* it was what signed the journal */
    /* The journal of another actor, or another continuation of this one. */
    cx_evidence_journal journal = s.evidence.journals[0];
    const cx_evidence_journal *journals = s.evidence.journals;
    journal.actor = CX_STR("bob");
    s.evidence.journals = &journal;
    CHECK(strcmp(forged_home(&s, &good, 1), "HomeMismatch") == 0);
    journal.actor = journals[0].actor;
    journal.point.root.bytes[0] ^= 1;
    CHECK(strcmp(forged_home(&s, &good, 1), "RootMismatch") == 0);
    s.evidence.journals = journals;
    sample_close(&s);
}

CX_TEST(what_is_too_much_is_refused)
{
    sample s;
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    if (sample_open(&s, "memory.cxe")) {
        cx_evidence forged = s.evidence;
        uint8_t *large = calloc(1, CX_EVIDENCE_DATA_MAX);
        cx_evidence_file file = {CX_STR("a"), {large, CX_EVIDENCE_DATA_MAX}};
        forged.files = &file;
        forged.file_count = 1;
        CHECK(cx_evidence_write(&forged, &out, &err).code == CX_E_LIMIT && out.size == 0);
        forged.file_count = CX_EVIDENCE_FILES_MAX + 1;
        CHECK(cx_evidence_write(&forged, &out, &err).code == CX_E_LIMIT && out.size == 0);
        free(large);
    }
    cx_buf_done(&out);
    sample_close(&s);
}

CX_TEST(a_long_text_is_cut_on_the_page_and_kept_in_the_data)
{
    sample s;
    cx_buf page;
    cx_err err;
    cx_buf_init(&page, cx_alloc_default());
    if (sample_open(&s, "memory.cxe")) {
        cx_evidence forged = s.evidence;
        size_t size = CX_EVIDENCE_SHOWN_MAX + 1000;
        char *text = malloc(size);
        memset(text, 'x', size);
        cx_evidence_file file = {CX_STR("patch.diff"), {(const uint8_t *)text, size}};
        forged.files = &file;
        forged.file_count = 1;
        CHECK(!cx_failed(cx_evidence_page(&forged, &page, &err)));
        cx_str shown = cx_buf_str(&page);
        CHECK(memmem(shown.data, shown.size, "1000 more bytes", 15) != NULL);
        free(text);
    }
    cx_buf_done(&page);
    sample_close(&s);
}

/* A million empty lines, one line of a megabyte, brackets without end: the page stays small. */
CX_TEST(a_page_is_bounded_whatever_is_in_it)
{
    sample s;
    cx_err err;
    size_t size = (size_t)2 << 20;
    char *text = malloc(size);
    static const char *const starts[] = {"", "{\"ts\":\"", "[[[["};
    static const char fill[] = {'\n', '\x01', '['};
    for (unsigned i = 0; i < CX_COUNT_OF(starts) && sample_open(&s, "memory.cxe"); i++) {
        cx_buf page;
        cx_evidence forged = s.evidence;
        cx_evidence_file file = {CX_STR("events.jsonl"), {(const uint8_t *)text, size}};
        cx_buf_init(&page, cx_alloc_default());
        memset(text, fill[i], size);
        memcpy(text, starts[i], strlen(starts[i]));
        forged.files = &file;
        forged.file_count = 1;
        CHECK_STATUS(cx_evidence_page(&forged, &page, &err), &err);
        CHECK(page.size < ((size_t)24 << 20));
        cx_buf_done(&page);
        sample_close(&s);
    }
    free(text);
}

/* The first journal with a checkpoint of `origin` that has no signature: what its name is worth. */
static cx_verdict verdict_of_origin(sample *s, const char *origin, const char **out_reason)
{
    static const cx_signature unknown_signature = {{1}};
    cx_evidence forged = s->evidence;
    cx_evidence_journal journals[8];
    cx_buf note, file;
    cx_err err;
    cx_vkey vkey;
    cx_verdict verdict = CX_BROKEN;
    cx_buf_init(&note, cx_alloc_default());
    cx_buf_init(&file, cx_alloc_default());
    CHECK(forged.journal_count != 0 && forged.journal_count <= CX_COUNT_OF(journals));
    memcpy(journals, s->evidence.journals, forged.journal_count * sizeof *journals);
    const cx_checkpoint checkpoint = {
        .origin = cx_str_z(origin), .size = journals[0].point.size, .root = journals[0].point.root};
    cx_vkey_make(checkpoint.origin, CX_VKEY_NOTE, &s->key.key, &vkey);
    cx_checkpoint_note(&checkpoint, &vkey, &unknown_signature, &note);
    journals[0].checkpoint = cx_buf_bytes(&note);
    forged.journals = journals;
    s->options = (cx_check_options){.require = CX_REQUIRE_SELF_CONSISTENT};
    if (!cx_failed(cx_evidence_write(&forged, &file, &err)))
        verdict = verdict_of(s, cx_buf_bytes(&file), out_reason);
    cx_buf_done(&file);
    cx_buf_done(&note);
    return verdict;
}

/* Decision 0014: whose journal it is, is in the checkpoint's origin, whole. */
CX_TEST(an_origin_names_one_journal)
{
    sample s;
    char hashed[CX_ORIGIN_HASHED_SIZE], text[256];
    const char *reason = NULL;
    if (!sample_open(&s, "memory.cxe"))
        return;
    cx_str actor = s.evidence.journals[0].actor;
    (void)snprintf(text, sizeof text, "home/%.*s", (int)actor.size, actor.data);
    CHECK(verdict_of_origin(&s, text, &reason) == CX_HOLDS);
    cx_origin_hashed(actor, hashed);
    CHECK(verdict_of_origin(&s, hashed, &reason) == CX_HOLDS);
    /* The short form of 0.1: "cortex/" and the digest's first 16 digits. */
    (void)snprintf(text, sizeof text, "cortex/%.16s", hashed + sizeof CX_ORIGIN_HASHED - 1);
    CHECK(verdict_of_origin(&s, text, &reason) == CX_INDETERMINATE);
    CHECK_STR(cx_str_z(reason), "WeakOrigin");
    hashed[CX_ORIGIN_HASHED_SIZE - 2] ^= 1; /* one digit of 64 */
    CHECK(verdict_of_origin(&s, hashed, &reason) == CX_BROKEN);
    CHECK_STR(cx_str_z(reason), "CheckpointMismatch");
    (void)snprintf(text, sizeof text, CX_ORIGIN_HASHED "x/%.*s", (int)actor.size, actor.data);
    CHECK(verdict_of_origin(&s, text, &reason) == CX_BROKEN);
    (void)snprintf(text, sizeof text, "home/%.*s/other", (int)actor.size, actor.data);
    CHECK(verdict_of_origin(&s, text, &reason) == CX_BROKEN);
    sample_close(&s);
}
