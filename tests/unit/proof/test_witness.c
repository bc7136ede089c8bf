/*
 * test_witness.c - requests to a witness: their form, what is answered, cosignatures.
 */
#include "proof/witness.h"

#include "tests/support/proof_util.h"
#include "tree/api.h"

#define ORIGIN "log.example/a"

/* A log with its tree. */
typedef struct fixture {
    cx_arena arena;
    signer log;
    cx_vkey key;
    cx_mmr *mmr;
} fixture;

static cx_digest leaf_number(uint64_t number)
{
    return cx_digest_of(cx_bytes_from((const uint8_t *)&number, sizeof number));
}

static void fixture_open(fixture *f)
{
    cx_err err;
    cx_arena_init(&f->arena, cx_alloc_default(), 0);
    f->log = signer_number(4);
    cx_vkey_make(CX_STR(ORIGIN), CX_VKEY_NOTE, &f->log.key, &f->key);
    CHECK_STATUS(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &f->mmr, &err), &err);
    for (uint64_t i = 0; i < 20; i++) {
        cx_digest leaf = leaf_number(i);
        CHECK_STATUS(cx_mmr_append(f->mmr, &leaf, 1, &err), &err);
    }
}

static void fixture_close(fixture *f)
{
    cx_mmr_close(f->mmr);
    cx_arena_done(&f->arena);
}

static cx_checkpoint checkpoint_at(fixture *f, uint64_t size)
{
    cx_checkpoint made = {CX_STR(ORIGIN), size, {{0}}};
    cx_err err;
    CHECK_STATUS(cx_mmr_root(f->mmr, size, &made.root, &err), &err);
    return made;
}

/* The body that takes a witness from one size to another. */
static cx_bytes body_of(fixture *f, uint64_t from, const cx_checkpoint *now)
{
    cx_witness_request request = {.old_size = from};
    cx_buf text, note, body;
    cx_mmr_path path;
    cx_err err;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&note, cx_alloc_default());
    cx_buf_init(&body, cx_alloc_default());
    cx_checkpoint_text(now, &text);
    cx_signature signature = sign(&f->log, cx_buf_bytes(&text));
    cx_checkpoint_note(now, &f->key, &signature, &note);
    request.note = cx_buf_bytes(&note);
    if (from != 0 && from < now->size) {
        CHECK_STATUS(cx_mmr_consistency(f->mmr, from, now->size, &path, &err), &err);
        memcpy(request.path, path.hashes, path.count * sizeof *path.hashes);
        request.path_count = path.count;
    }
    cx_witness_request_write(&request, &body);
    cx_str kept = cx_arena_copy_str(&f->arena, cx_buf_str(&body));
    CHECK(!body.failed);
    cx_buf_done(&body);
    cx_buf_done(&note);
    cx_buf_done(&text);
    return cx_str_bytes(kept);
}

static unsigned answer_to(fixture *f, cx_bytes body, const cx_checkpoint *stored)
{
    cx_witness_answer answer;
    cx_err err;
    CHECK_STATUS(cx_witness_judge(body, &f->key, 1, stored, &f->arena, &answer, &err), &err);
    CHECK(answer.tell_size == (answer.status == 409));
    CHECK((answer.why[0] == 0) == (answer.status == 200));
    return answer.status;
}

CX_TEST(witness_cosigns_only_what_grows)
{
    fixture f;
    fixture_open(&f);
    for (uint64_t from = 0; from <= 20; from++)
        for (uint64_t to = 0; to <= 20; to++) {
            cx_checkpoint before = checkpoint_at(&f, from), now = checkpoint_at(&f, to);
            cx_bytes body = body_of(&f, from, &now);
            const cx_checkpoint *stored = from == 0 ? NULL : &before;
            CHECK_INT(answer_to(&f, body, stored), from > to ? 400 : 200);
            if (from > to)
                continue;
            /* Another size, and another journal of the same size. */
            cx_checkpoint other = checkpoint_at(&f, from + 1 <= 20 ? from + 1 : 1);
            CHECK_INT(answer_to(&f, body, &other), 409);
            before.root.bytes[7] ^= 1;
            if (from != 0)
                CHECK_INT(answer_to(&f, body, &before), from == to ? 409 : 422);
            now.root.bytes[0] ^= 1;
            body = body_of(&f, from, &now);
            before.root.bytes[7] ^= 1;
            if (from != 0)
                CHECK_INT(answer_to(&f, body, &before), from == to ? 409 : 422);
        }
    fixture_close(&f);
}

CX_TEST(witness_requests_have_one_form)
{
    fixture f;
    cx_witness_request read;
    cx_err err;
    cx_buf again;
    fixture_open(&f);
    cx_checkpoint now = checkpoint_at(&f, 20);
    cx_bytes body = body_of(&f, 7, &now);
    cx_buf_init(&again, cx_alloc_default());
    CHECK_STATUS(cx_witness_request_read(body, &read, &err), &err);
    cx_witness_request_write(&read, &again);
    CHECK(cx_str_eq(cx_buf_str(&again), cx_bytes_str(body)));
    /* No bit of proof or checkpoint may differ; the size names what is stored. */
    const cx_checkpoint before = checkpoint_at(&f, 7);
    for (size_t bit = 0; bit < body.size * 8; bit++) {
        cx_arena_mark mark = cx_arena_mark_now(&f.arena);
        ((uint8_t *)body.data)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (answer_to(&f, body, &before) == 200)
            cx_test_fail(__FILE__, __LINE__, "bit %zu changed nothing", bit);
        ((uint8_t *)body.data)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cx_arena_reset(&f.arena, mark);
    }
    for (size_t size = 0; size < body.size; size++)
        CHECK(answer_to(&f, cx_bytes_from(body.data, size), &before) != 200);
    cx_buf_done(&again);
    fixture_close(&f);
}

CX_TEST(cosignature_lines_verify)
{
    fixture f;
    cx_note_result result;
    cx_finding finding;
    cx_buf text, note;
    cx_err err;
    fixture_open(&f);
    signer witness = signer_number(5);
    cx_vkey keys[2] = {f.key};
    cx_checkpoint now = checkpoint_at(&f, 3);
    cx_vkey_make(CX_STR("w.example"), CX_VKEY_COSIGNATURE, &witness.key, &keys[1]);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&note, cx_alloc_default());
    cx_checkpoint_text(&now, &text);
    cx_signature signature = sign(&f.log, cx_buf_bytes(&text));
    cx_checkpoint_note(&now, &f.key, &signature, &note);
    cx_buf_clear(&text);
    cx_cosignature_text(&now, 1700000000, &text);
    signature = sign(&witness, cx_buf_bytes(&text));
    cx_cosignature_line(&keys[1], 1700000000, &signature, &note);
    const cx_note_check check = {.keys = keys, .key_count = 2, .cosigners_required = 1};
    CHECK_STATUS(
        cx_note_verify(cx_buf_bytes(&note), &check, cx_alloc_default(), &result, &finding, &err),
        &err);
    CHECK_HOLDS(&finding);
    CHECK_INT(result.cosigned, 1);
    cx_buf_done(&note);
    cx_buf_done(&text);
    fixture_close(&f);
}
