/* Opened histories: kept, opened again when they have changed, lent to many at once. */
#include "server/feed/view_cache.h"

#include "base/thread.h"
#include "tests/unit/server/asking.h"

/* A call that names a history, without anybody asking over a network. */
static void name_it(cx_call *call, asking *a, const char *name)
{
    memset(call, 0, sizeof *call);
    call->service = a->service;
    call->token = a->token;
    call->captures[0] = cx_str_z(name);
    call->capture_count = 1;
}

CX_TEST(view_cache_reports_what_it_cannot_open)
{
    asking a;
    cx_call call;
    cx_cached_view *view_item = NULL;
    asking_init(&a, "shelf_none");
    name_it(&call, &a, "all");
    CHECK_INT(cx_view_cache_acquire(a.service->cache, &call, &view_item, &a.fixture.err).code,
              CX_E_NOT_FOUND);
    name_it(&call, &a, "agent/nobody");
    CHECK_INT(cx_view_cache_acquire(a.service->cache, &call, &view_item, &a.fixture.err).code,
              CX_E_NOT_FOUND);
    name_it(&call, &a, "run/nothing");
    CHECK_INT(cx_view_cache_acquire(a.service->cache, &call, &view_item, &a.fixture.err).code,
              CX_E_UNSUPPORTED);
    call.token.scopes = CX_SCOPE_READ;
    CHECK_INT(cx_view_cache_acquire(a.service->cache, &call, &view_item, &a.fixture.err).code,
              CX_E_DENIED);
    char longer[400];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    name_it(&call, &a, longer);
    CHECK_INT(cx_view_cache_acquire(a.service->cache, &call, &view_item, &a.fixture.err).code,
              CX_E_NOT_FOUND);
    CHECK(view_item == NULL);
    cx_view_cache_release(a.service->cache, NULL);
    asking_done(&a);
}

static const char lines[] =
    "{\"node_id\":\"a0\",\"agent_id\":\"a\",\"seq\":0,\"timestamp\":1,\"event\":{},\"state_delta\":"
    "{\"memory\":{\"k\":1}},\"prev_hash\":\"\",\"hash\":\"x\",\"parents\":[]}\n"
    "{\"node_id\":\"a1\",\"agent_id\":\"a\",\"seq\":1,\"timestamp\":2,\"event\":{},\"state_delta\":"
    "{\"memory\":{\"k\":2}},\"prev_hash\":\"x\",\"hash\":\"y\",\"parents\":[\"a0\"]}\n";

typedef struct borrower {
    cx_service *service;
    const cx_token *token;
    unsigned wrong;
} borrower;

/* Everything that is made when it is first asked for is asked for by all at once. */
static void borrow(void *arg)
{
    borrower *b = arg;
    for (int i = 0; i < 50; i++) {
        cx_call call;
        cx_err err;
        cx_cached_view *view_item = NULL;
        const cx_lattice_view *shown = NULL;
        const cx_states *states = NULL;
        cx_buf out;
        memset(&call, 0, sizeof call);
        call.service = b->service;
        call.token = *b->token;
        call.captures[0] = CX_STR("file");
        cx_buf_init(&out, cx_alloc_default());
        if (cx_failed(cx_view_cache_acquire(b->service->cache, &call, &view_item, &err)) ||
            cx_failed(cx_view_cache_view(view_item, i % 2 == 0, &shown, &err)) ||
            cx_failed(cx_view_cache_states(view_item, &states, &err)) ||
            cx_failed(cx_lattice_view_writes(&out, shown, states, 1, CX_STR("memory"), CX_STR("k"),
                                             &err)) ||
            memmem(out.data, out.size, "\"more\":0", 8) == NULL)
            b->wrong++;
        cx_buf_done(&out);
        cx_view_cache_release(b->service->cache, view_item);
    }
}

/* I1, I2 */
CX_TEST(view_cache_shares_items_between_threads)
{
    cx_err err;
    cx_lattice *lattice = NULL;
    cx_lattice_options reading = CX_LATTICE_OPTIONS_INIT;
    cx_service *service = NULL;
    cx_token token = {.scopes = CX_SCOPE_READ, .level = CX_LEVEL_FULL, .expires_ns = CX_TIME_NONE};
    cx_thread threads[4];
    borrower borrowers[4];
    reading.keep_deltas = true;
    CHECK_STATUS(cx_lattice_open_bytes(cx_str_bytes(cx_str_z(lines)), &reading, &lattice, &err),
                 &err);
    const cx_service_options options = {
        .file_path = "lines", .only_lattice = lattice, .only_token = &token};
    CHECK_STATUS(cx_service_open(&options, &service, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(threads); i++) {
        borrowers[i] = (borrower){.service = service, .token = &token};
        CHECK(cx_thread_start(&threads[i], borrow, &borrowers[i]));
    }
    for (size_t i = 0; i < CX_COUNT_OF(threads); i++) {
        cx_thread_join(&threads[i]);
        CHECK_INT(borrowers[i].wrong, 0);
    }
    cx_call call;
    cx_cached_view *view_item = NULL;
    memset(&call, 0, sizeof call);
    call.service = service;
    call.captures[0] = CX_STR("all");
    CHECK_INT(cx_view_cache_acquire(service->cache, &call, &view_item, &err).code, CX_E_NOT_FOUND);
    cx_service_close(service);
    cx_lattice_close(lattice);
}
