/*
 * test_group.c - commits apart from segments: the bytes of a segment, and nothing that was changed
 * passes.
 */
#include "log/log.h"

#include "log/internal.h"
#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct stored {
    cx_buf guarded, erasable, whole;
    cx_arena arena;
    uint64_t sizes[3];
    size_t erased; /* the frame whose erasable part is gone; SIZE_MAX = none */
    cx_log_group_id id;
} stored;

static const cx_log_frame three[3] = {
    {{(const uint8_t *)"first", 5}, {NULL, 0}},
    {{(const uint8_t *)"second one", 10}, {(const uint8_t *)"erasable", 8}},
    {{(const uint8_t *)"third", 5}, {(const uint8_t *)"also this", 9}}};

static void setup(stored *s, uint64_t number)
{
    *s = (stored){.erased = SIZE_MAX, .id = {.home_id = "0123456789abcdef", .number = number}};
    cx_buf_init(&s->guarded, cx_alloc_default());
    cx_buf_init(&s->erasable, cx_alloc_default());
    cx_buf_init(&s->whole, cx_alloc_default());
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
}

static void teardown(stored *s)
{
    cx_buf_done(&s->guarded);
    cx_buf_done(&s->erasable);
    cx_buf_done(&s->whole);
    cx_arena_done(&s->arena);
}

static cx_status give_part(void *arg, size_t frame, cx_bytes *out, cx_err *err)
{
    const stored *s = arg;
    size_t at = 0;
    (void)err;
    for (size_t i = 0; i < frame; i++)
        at += (size_t)s->sizes[i];
    *out = frame == s->erased ? (cx_bytes){NULL, 0}
                              : cx_bytes_from(s->erasable.data + at, (size_t)s->sizes[frame]);
    return CX_SUCCESS;
}

static cx_status decode(stored *s, const cx_log_item **items, size_t *count, cx_err *err)
{
    return cx_log_group_decode(&s->id, cx_buf_bytes(&s->guarded), give_part, s, &s->whole,
                               &s->arena, items, count, err);
}

CX_TEST(group_has_the_bytes_of_a_segment)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    const cx_log_item *items;
    cx_log *log = NULL;
    cx_buf file;
    stored s;
    size_t count;
    uint64_t commit;
    cx_err err;
    setup(&s, 0);
    const cx_log_options options = {.segment_bytes = CX_LOG_SEGMENT_MIN, .home_id = s.id.home_id};
    folder_fresh(folder, "group");
    CHECK_STATUS(cx_log_create(folder, &options, &err), &err);
    CHECK_STATUS(cx_log_open(folder, &options, &log, NULL, &err), &err);
    CHECK_STATUS(cx_log_submit(log, three, 3, NULL, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    cx_log_close(log);
    CHECK_STATUS(cx_log_group_encode(&s.id, three, 3, &s.guarded, &s.erasable, s.sizes, &err),
                 &err);
    CHECK_STATUS(decode(&s, &items, &count, &err), &err);
    cx_buf_init(&file, cx_alloc_default());
    (void)snprintf(path, sizeof path, "%s/000000.seg", folder);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &file, &err), &err);
    CHECK(file.size > CX_LOG_HEADER_SIZE + s.whole.size &&
          memcmp(file.data + CX_LOG_HEADER_SIZE, s.whole.data, s.whole.size) == 0);
    cx_buf_done(&file);
    teardown(&s);
    folder_remove(folder);
}

CX_TEST(group_gives_back_its_frames)
{
    const cx_log_item *items;
    stored s;
    size_t count;
    cx_err err;
    setup(&s, UINT64_C(5000000000)); /* past what a segment's number holds */
    CHECK_STATUS(cx_log_group_encode(&s.id, three, 3, &s.guarded, &s.erasable, s.sizes, &err),
                 &err);
    CHECK(s.sizes[0] == 0 && s.sizes[1] == 16 && s.sizes[2] == 24);
    CHECK_STATUS(decode(&s, &items, &count, &err), &err);
    CHECK(count == 3 && !items[1].erased && items[1].erasable_size == 8);
    CHECK(cx_str_is(cx_bytes_str(items[2].frame.erasable), "also this"));
    s.erased = 2;
    CHECK_STATUS(decode(&s, &items, &count, &err), &err);
    CHECK(items[2].erased && items[2].frame.erasable.size == 0 && items[2].erasable_size == 9);
    CHECK(cx_str_is(cx_bytes_str(items[2].frame.guarded), "third") && !items[1].erased);
    teardown(&s);
}

/* One that is erased when it is written has the same guarded bytes, and no erasable ones. */
CX_TEST(group_takes_frames_that_were_erased)
{
    cx_log_frame erased[3];
    const cx_log_item *items;
    stored s, t;
    size_t count;
    cx_err err;
    memcpy(erased, three, sizeof erased);
    erased[2].erasable.data = NULL;
    setup(&s, 7);
    setup(&t, 7);
    CHECK_STATUS(cx_log_group_encode(&s.id, three, 3, &s.guarded, &s.erasable, s.sizes, &err),
                 &err);
    CHECK_STATUS(cx_log_group_encode(&t.id, erased, 3, &t.guarded, &t.erasable, t.sizes, &err),
                 &err);
    CHECK(cx_str_eq(cx_buf_str(&s.guarded), cx_buf_str(&t.guarded)) && t.sizes[2] == 0);
    t.erased = 2;
    CHECK_STATUS(decode(&t, &items, &count, &err), &err);
    CHECK(items[2].erased && items[2].erasable_size == 9);
    teardown(&s);
    teardown(&t);
}

static bool decodes(stored *s)
{
    const cx_log_item *items;
    size_t count;
    cx_status status = decode(s, &items, &count, NULL);
    bool damaged = false;
    for (size_t i = 0; !cx_failed(status) && i < count; i++)
        damaged = damaged || items[i].erasable_damaged;
    return !cx_failed(status) && !damaged;
}

CX_TEST(group_that_was_changed_does_not_pass)
{
    stored s;
    cx_err err;
    setup(&s, 7);
    CHECK_STATUS(cx_log_group_encode(&s.id, three, 3, &s.guarded, &s.erasable, s.sizes, &err),
                 &err);
    REQUIRE(decodes(&s));
    cx_buf *const parts[] = {&s.guarded, &s.erasable};
    for (size_t p = 0; p < 2; p++)
        for (size_t bit = 0; bit < 8 * parts[p]->size; bit++) {
            parts[p]->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(!decodes(&s));
            parts[p]->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    for (size_t size = s.guarded.size; s.guarded.size > 0;) {
        s.guarded.size--;
        CHECK(!decodes(&s));
        if (s.guarded.size == 0) {
            s.guarded.size = size;
            break;
        }
    }
    s.id.number = 8; /* another place */
    CHECK(!decodes(&s));
    s.id.number = 7;
    s.id.home_id[3] ^= 1; /* another part */
    CHECK(!decodes(&s));
    teardown(&s);
}

CX_TEST(group_has_limits)
{
    stored s;
    cx_err err;
    setup(&s, 1);
    const cx_log_frame empty = {{(const uint8_t *)"", 0}, {NULL, 0}};
    CHECK(cx_log_group_encode(&s.id, &empty, 1, &s.guarded, &s.erasable, s.sizes, &err).code ==
          CX_E_LIMIT);
    CHECK(cx_log_group_encode(&s.id, &empty, 0, &s.guarded, &s.erasable, s.sizes, &err).code ==
          CX_E_USAGE);
    teardown(&s);
}
