/*
 * test_step_vectors.c - tests/vectors/sdk/steps.json: what is signed of a step, its digest, and a
 * signature, the same in the library and in every SDK.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "cortex/lattice.h"
#include "json/api.h"
#include "recorder/step.h"
#include "tests/support/proof_util.h"

typedef struct vector_case {
    cx_str name, step, text; /* `text`: what is signed */
    cx_digest content;
    cx_json value; /* of `step` */
} vector_case;

static bool read_case(vectors *v, const cx_json *item, vector_case *out)
{
    cx_err err;
    *out = (vector_case){.name = CX_JSON_GET_STR(item, "name"),
                         .step = CX_JSON_GET_STR(item, "step"),
                         .text = CX_JSON_GET_STR(item, "signed"),
                         .content = member_digest(item, "content_sha256")};
    if (!cx_failed(cx_json_parse_text(out->step, &v->arena, &out->value, &err)))
        return true;
    cx_test_fail(__FILE__, __LINE__, "%.*s: %s", (int)out->name.size, out->name.data, err.message);
    return false;
}

static void check_reading(vectors *v, const vector_case *c)
{
    cx_step step;
    cx_err err;
    CHECK_STATUS(cx_step_read(&c->value, &v->arena, &step, &err), &err);
    CHECK_INT(step.problem.code, CX_OK);
    CHECK(cx_str_starts(c->text, CX_STR(CX_STEP_SIGNED_PREFIX)));
    size_t prefix = sizeof CX_STEP_SIGNED_PREFIX - 1;
    CHECK(cx_str_eq(step.signed_text, cx_str_from(c->text.data + prefix, c->text.size - prefix)));
    CHECK(cx_digest_eq(&step.content, &c->content));
}

/* A member's JSON as terminated text; NULL when there is none. */
static const char *member_text(vectors *v, const vector_case *c, const char *name)
{
    const cx_json *value = cx_json_get(&c->value, cx_str_z(name));
    cx_buf text;
    cx_err err;
    if (value == NULL)
        return NULL;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&text, value, CX_JSON_PY_COMPACT, &err), &err);
    cx_str copy = cx_arena_printf(&v->arena, "%.*s", (int)text.size, (const char *)text.data);
    cx_buf_done(&text);
    return copy.data;
}

static const char *plain_text(vectors *v, const vector_case *c, const char *name)
{
    cx_str text = cx_json_get_str(&c->value, cx_str_z(name));
    return text.data == NULL ? NULL
                             : cx_arena_printf(&v->arena, "%.*s", (int)text.size, text.data).data;
}

/* The installed call gives the same bytes, for steps that a draft can express. */
static void check_draft(vectors *v, const vector_case *c, size_t *drafts)
{
    cx_step_draft draft = CX_STEP_DRAFT_INIT;
    const cx_json *parents = CX_JSON_GET(&c->value, "parents");
    const cx_json *time = CX_JSON_GET(&c->value, "timestamp");
    const char *names[16];
    cx_owned made;
    cx_err err;
    draft.agent = plain_text(v, c, "agent");
    draft.event = member_text(v, c, "event");
    draft.state_delta = member_text(v, c, "state_delta");
    draft.key = plain_text(v, c, "key");
    CHECK(time == NULL || cx_json_double(time, &draft.timestamp));
    for (uint32_t i = 0; parents != NULL && i < parents->count; i++) {
        if (parents->items[i].type != CX_JSON_STRING || draft.parent_count == CX_COUNT_OF(names))
            return;
        cx_str name = cx_json_text(&parents->items[i]);
        names[draft.parent_count++] =
            cx_arena_printf(&v->arena, "%.*s", (int)name.size, name.data).data;
    }
    draft.parents = names;
    draft.fork = CX_JSON_GET(&c->value, "fork") != NULL;
    draft.fork_type = plain_text(v, c, "fork_type");
    draft.head = CX_JSON_GET(&c->value, "head") != NULL ? "" : NULL;
    CHECK_STATUS(cx_step_to_sign(&draft, &made, &err), &err);
    CHECK(cx_str_eq(cx_bytes_str(cx_owned_bytes(&made)), c->text));
    cx_owned_done(&made);
    ++*drafts;
}

CX_TEST(sdk_steps_have_these_bytes_digests_and_signatures)
{
    vectors v;
    size_t drafts = 0;
    REQUIRE(vectors_open(&v, "vectors/sdk/steps.json"));
    const cx_json *cases = CX_JSON_GET(&v.root, "cases");
    cx_bytes public_key = member_bytes(&v, &v.root, "public_key");
    cx_pubkey key;
    CHECK_INT(public_key.size, sizeof key.bytes);
    memcpy(key.bytes, public_key.data, sizeof key.bytes);
    CHECK(cases != NULL && cases->count >= 18);
    for (uint32_t i = 0; cases != NULL && i < cases->count; i++) {
        const cx_json *item = &cases->items[i];
        vector_case c;
        cx_buf bytes;
        cx_signature signature;
        if (!read_case(&v, item, &c))
            continue;
        check_reading(&v, &c);
        check_draft(&v, &c, &drafts);
        cx_buf_init(&bytes, cx_alloc_default());
        CHECK(cx_base64_decode_either(CX_JSON_GET_STR(item, "signature"), &bytes));
        CHECK_INT(bytes.size, sizeof signature.bytes);
        memcpy(signature.bytes, bytes.data, sizeof signature.bytes);
        cx_buf_done(&bytes);
        CHECK(cx_ed25519_verify(&key, cx_str_bytes(c.text), &signature));
        signature.bytes[i % sizeof signature.bytes] ^= 1;
        CHECK(!cx_ed25519_verify(&key, cx_str_bytes(c.text), &signature));
    }
    CHECK(drafts >= 15);
    vectors_close(&v);
}
