/*
 * test_memory_fault.c - the pure parts of memory with the n-th allocation failing, once and from
 * then on, until nothing fires: the right code, no leak, and no answer that is not one.
 */
#include "memory/forms.h"
#include "memory/words.h"
#include "proof/scope.h"
#include "tests/support/fault.h"
#include "tests/unit/memory/fixture.h"

/* Does its work with this memory; CX_OK or CX_E_NOMEM. */
typedef cx_status worker(const cx_alloc *alloc, void *arg, cx_err *err);

static void with_failing_memory(worker *work, void *arg)
{
    for (unsigned onwards = 0; onwards < 2; onwards++) {
        bool finished = false;
        uint64_t fail_at;
        for (fail_at = 1; !finished && fail_at < 10000; fail_at++) {
            fault_alloc memory;
            cx_err err = {0};
            fault_alloc_init(&memory, fail_at, onwards != 0);
            cx_status status = work(&memory.alloc, arg, &err);
            finished = atomic_load(&memory.fired) == 0;
            if (finished)
                CHECK_STATUS(status, &err);
            else if (status.code != CX_E_NOMEM && status.code != CX_OK)
                cx_test_fail(__FILE__, __LINE__, "allocation %llu: %s", (unsigned long long)fail_at,
                             err.message);
            else if (status.code == CX_E_NOMEM)
                CHECK_INT(err.code, CX_E_NOMEM);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
            CHECK(!atomic_load(&memory.wrong_size));
        }
        CHECK(finished && fail_at > 2);
    }
}

static cx_status decode_and_show(const cx_alloc *alloc, void *arg, cx_err *err)
{
    const cx_bytes *bytes = arg;
    cx_arena arena;
    cx_data data, again;
    cx_forms forms;
    cx_json json;
    cx_status status;
    cx_arena_init(&arena, alloc, 0);
    CX_TRY_GOTO(status, cx_data_accept(CX_TYPE_GOAL, *bytes, &arena, &data, err));
    CX_TRY_GOTO(status, cx_forms_render(&data, &arena, &forms, err));
    CX_TRY_GOTO(status, cx_data_to_json(&data, &arena, &json, err));
    CX_TRY_GOTO(status, cx_data_from_json(CX_TYPE_GOAL, &json, &arena, &again, err));
    CHECK_STR(forms.brief, "[paused] ship");
    CHECK_STR(again.as.goal.created_by, "w");
done:
    cx_arena_done(&arena);
    return status;
}

CX_TEST(memory_data_without_memory)
{
    fixture kit;
    fixture_init(&kit);
    cx_bytes goal = fixture_hex(
        &kit, CX_STR("ac0001016473686970021a6553f1000381616304667061757365640581616706656275696c640"
                     "781a30167736572766963650261720341010881a4016662756467657402f50361730441020"
                     "9a201613103030af50b6177"));
    with_failing_memory(decode_and_show, &goal);
    fixture_done(&kit);
}

static cx_status split_text(const cx_alloc *alloc, void *arg, cx_err *err)
{
    const cx_str *text = arg;
    cx_arena arena;
    cx_status status;
    cx_words_query query;
    cx_arena_init(&arena, alloc, 0);
    cx_words words = {.arena = &arena};
    CX_TRY_GOTO(status, cx_words_add(&words, *text, err));
    CX_TRY_GOTO(status, cx_words_query_parse(CX_STR("w7 w30*"), &arena, &query, err));
    cx_words_unite(&words);
    CHECK_INT(words.count, 4000);
    CHECK(cx_words_match(&query, &words));
done:
    cx_arena_done(&arena);
    return status;
}

CX_TEST(memory_words_without_memory)
{
    static char space[4000 * 6];
    size_t used = 0;
    for (unsigned i = 0; i < 4000; i++)
        used += (size_t)snprintf(space + used, sizeof space - used, "w%u ", i);
    cx_str text = cx_str_from(space, used);
    with_failing_memory(split_text, &text);
}

typedef struct scope_case {
    cx_bytes scope, manifest;
    cx_pubkey key;
} scope_case;

static cx_status find_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    (void)agent, (void)err;
    *out = ((const scope_case *)arg)->key;
    *out_found = true;
    return CX_SUCCESS;
}

static cx_status find_snapshot(void *arg, const cx_digest *root, cx_bytes *out, bool *out_found,
                               cx_err *err)
{
    (void)root, (void)err;
    *out = ((const scope_case *)arg)->manifest;
    *out_found = true;
    return CX_SUCCESS;
}

static cx_status verify_scope(const cx_alloc *alloc, void *arg, cx_err *err)
{
    const scope_case *c = arg;
    const cx_scope_check check = {.actor = CX_STR("andrew"),
                                  .now_ns = INT64_C(1700000100000000000),
                                  .key = find_key,
                                  .key_arg = arg,
                                  .snapshot = find_snapshot,
                                  .snapshot_arg = arg};
    cx_arena arena;
    cx_scope_use granted;
    cx_finding finding;
    cx_arena_init(&arena, alloc, 0);
    cx_status status = cx_scope_verify(c->scope, &check, &arena, &granted, &finding, err);
    if (!cx_failed(status)) {
        CHECK_INT(finding.verdict, CX_HOLDS);
        CHECK_INT(granted.proof.count, 1);
    }
    cx_arena_done(&arena);
    return status;
}

/* Too little memory is never a verdict. */
CX_TEST(memory_scope_without_memory)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/cortex-1/scope.json", &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "cases");
        scope_case c = {.scope = fixture_hex_of(&kit, &cases->items[0], "cbor"),
                        .manifest = fixture_hex_of(&kit, &file, "manifest_cbor")};
        memcpy(c.key.bytes, fixture_hex_of(&kit, &file, "pub").data, sizeof c.key.bytes);
        with_failing_memory(verify_scope, &c);
    }
    fixture_done(&kit);
}
