/*
 * test_remote_wire.c - the messages between a home's writer and its clients, as bytes.
 */
#include "socket/remote_wire.h"

#include "tests/test.h"

/* --- bytes ------------------------------------------------------------------------------------ */

typedef struct sample {
    cx_buf bytes;
    bool request;
    cx_remote_op op;
} sample;

static const uint8_t sample_salt[32] = {1, 2, 3};

static void make_request(cx_remote_op op, cx_buf *out)
{
    static const cx_change changes[] = {
        {.key = {(const uint8_t *)"k", 1}, .value = {(const uint8_t *)"v", 1}},
        {.key = {(const uint8_t *)"k", 1}, .removed = true},
        {.key = {(const uint8_t *)"k", 1}, .value = {(const uint8_t *)"", 0}, .erasable = true}};
    static const cx_id subject = {{7}};
    const cx_remote_frame frames[] = {{.has_entry = true,
                                       .draft = {.kind = CX_STR("test.said"),
                                                 .created_at_ns = -5,
                                                 .created_by = cx_str_bytes(CX_STR("me")),
                                                 .payload = cx_str_bytes(CX_STR("payload")),
                                                 .committed = true,
                                                 .salt = sample_salt,
                                                 .subject = &subject},
                                       .changes = changes,
                                       .change_count = 3},
                                      {.has_entry = false, .changes = changes, .change_count = 1},
                                      {.has_entry = true, .draft = {.kind = CX_STR("raw")}}};
    const cx_remote_request request = {.number = 300,
                                       .op = op,
                                       .actor = cx_str_bytes(CX_STR("al")),
                                       .key = cx_str_bytes(CX_STR("key")),
                                       .seq = 70000,
                                       .subject = subject,
                                       .prefix = cx_str_bytes(CX_STR("m/")),
                                       .from = cx_str_bytes(CX_STR("m/x")),
                                       .backwards = op == CX_REMOTE_SCAN,
                                       .after = op == CX_REMOTE_SCAN,
                                       .common = op == CX_REMOTE_TXN_GET || op == CX_REMOTE_SCAN,
                                       .age_ns = op == CX_REMOTE_ARCHIVE ? UINT64_MAX - 3 : 0,
                                       .limit = 16,
                                       .has_scheme = true,
                                       .scheme = CX_SCHEME_MATRIX_1,
                                       .frames = frames,
                                       .frame_count = 3,
                                       .derivers = cx_str_bytes(CX_STR("memory/1 trace/1"))};
    cx_remote_request_encode(&request, out);
}

static void make_answer(cx_remote_op op, cx_buf *out)
{
    static const uint64_t seqs[] = {0, 5, UINT64_MAX};
    const cx_actor_info actor = {.name = CX_STR("al"), .entry_count = 5};
    const cx_remote_row rows[] = {{cx_str_bytes(CX_STR("k")), cx_str_bytes(CX_STR("v"))},
                                  {cx_str_bytes(CX_STR("k2")), {NULL, 0}}};
    const cx_remote_answer answer = {.number = 5,
                                     .has_value = op != CX_REMOTE_GET_AT,
                                     .value = cx_str_bytes(CX_STR("value")),
                                     .erased = op == CX_REMOTE_GET_AT,
                                     .actors = &actor,
                                     .actor_count = 1,
                                     .rows = rows,
                                     .row_count = 2,
                                     .seqs = seqs,
                                     .seq_count = 3,
                                     .more = true,
                                     .entry = cx_str_bytes(CX_STR("entry")),
                                     .committed = true,
                                     .payload = cx_str_bytes(CX_STR("payload")),
                                     .has_subject = true,
                                     .tables = {1, 2, 3, 4},
                                     .commit = 12,
                                     .is_new = true};
    cx_remote_answer_encode(&answer, op, out);
}

/* Decodes and encodes again: the same bytes, or not decoded at all. */
static bool again(const sample *s, cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_remote_request request;
    cx_remote_answer answer;
    cx_buf_clear(out);
    cx_arena_mark mark = cx_arena_mark_now(arena);
    bool decoded = s->request
                       ? !cx_failed(cx_remote_request_decode(bytes, arena, &request, NULL))
                       : !cx_failed(cx_remote_answer_decode(bytes, s->op, arena, &answer, NULL));
    if (decoded && s->request)
        cx_remote_request_encode(&request, out);
    else if (decoded)
        cx_remote_answer_encode(&answer, s->op, out);
    cx_arena_reset(arena, mark);
    if (decoded && !(!s->request && answer.failed))
        CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, bytes.size) == 0);
    return decoded;
}

static void try_sample(const sample *s, cx_arena *arena, cx_buf *out)
{
    uint8_t copy[2048];
    REQUIRE(s->bytes.size <= sizeof copy);
    if (!again(s, cx_buf_bytes(&s->bytes), arena, out))
        cx_test_fail(__FILE__, __LINE__, "%s %d is not decoded", s->request ? "request" : "answer",
                     (int)s->op);
    for (size_t size = 0; size < s->bytes.size; size++)
        CHECK(!again(s, cx_bytes_from(s->bytes.data, size), arena, out));
    for (size_t bit = 0; bit < s->bytes.size * 8; bit++) {
        memcpy(copy, s->bytes.data, s->bytes.size);
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        (void)again(s, cx_bytes_from(copy, s->bytes.size), arena, out);
    }
    memcpy(copy, s->bytes.data, s->bytes.size);
    copy[s->bytes.size] = 0;
    CHECK(!again(s, cx_bytes_from(copy, s->bytes.size + 1), arena, out));
}

CX_TEST(remote_messages_decode_to_what_was_encoded_or_not_at_all)
{
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    for (int op = 1; op < CX_REMOTE_OP_END; op++)
        for (int way = 0; way < 2; way++) {
            sample s = {.request = way == 0, .op = (cx_remote_op)op};
            cx_buf_init(&s.bytes, cx_alloc_default());
            if (s.request)
                make_request(s.op, &s.bytes);
            else
                make_answer(s.op, &s.bytes);
            CHECK(s.bytes.size >= 3);
            try_sample(&s, &arena, &out);
            cx_buf_done(&s.bytes);
        }
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(remote_errors_come_across)
{
    cx_remote_answer answer = {.number = 3, .failed = true}, got;
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    (void)cx_fail_at(&answer.err, CX_E_NOT_FOUND, "NoActor", 7, "nobody is called %s", "\"so\"");
    answer.err.os_errno = 2;
    answer.err.line = 3;
    answer.err.column = 4;
    cx_remote_answer_encode(&answer, CX_REMOTE_GET, &out);
    CHECK_STATUS(cx_remote_answer_decode(cx_buf_bytes(&out), CX_REMOTE_GET, &arena, &got, &err),
                 &err);
    CHECK(got.failed);
    CHECK_INT(got.err.code, CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(got.err.tag), "NoActor");
    CHECK_STR(cx_str_z(got.err.message), "nobody is called \"so\"");
    CHECK_INT(got.err.offset, 7);
    CHECK_INT(got.err.os_errno, 2);
    CHECK_INT(got.err.line, 3);
    CHECK_INT(got.err.column, 4);
    /* A tag of another build is kept in the message: tags are static storage. */
    (void)cx_fail_at(&answer.err, CX_E_CONFLICT, "FromTheFuture", CX_NO_OFFSET, "well");
    cx_buf_clear(&out);
    cx_remote_answer_encode(&answer, CX_REMOTE_GET, &out);
    CHECK_STATUS(cx_remote_answer_decode(cx_buf_bytes(&out), CX_REMOTE_GET, &arena, &got, &err),
                 &err);
    CHECK(got.err.tag == NULL);
    CHECK_STR(cx_str_z(got.err.message), "FromTheFuture: well");
    CHECK(got.err.offset == CX_NO_OFFSET);
    CHECK(cx_remote_tag(CX_STR("Poisoned")) != NULL);
    CHECK(cx_remote_tag(CX_STR("Poisone")) == NULL);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}
