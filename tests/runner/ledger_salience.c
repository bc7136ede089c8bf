/*
 * ledger_salience.c - what codec.json says in words: salience by the calls that bump it, vectors of
 * the test embedder, overall roots over any namespaces, forms that are cut, single CBOR values.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cbor/cbor.h"
#include "memory/embedder.h"
#include "memory/forms.h"
#include "memory/salience.h"
#include "tests/runner/ledger.h"

/* The time of the vectors: "+2h" of an operation counts from here. */
#define START_NS INT64_C(1700000000123456789)
#define HOUR_NS INT64_C(3600000000000)
#define TEXT_SIZE 128

/* A text of a case, terminated; empty when there is none or it is longer. */
static void text_of(const cx_json *item, const char *name, char out[TEXT_SIZE])
{
    cx_str text = cx_json_get_str(item, cx_str_z(name));
    size_t size = text.data == NULL || text.size >= TEXT_SIZE ? 0 : text.size;
    if (size != 0)
        memcpy(out, text.data, size);
    out[size] = 0;
}

/* --- salience: [{"op": "BumpForUpdate(9) +4h", "cbor", "cached_f32"}], one after the other ---- */

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* The number after a mark of the operation's name. */
static int64_t number_after(const char *op, char mark)
{
    const char *at = strchr(op, mark);
    return at == NULL ? 0 : strtoll(at + 1, NULL, 10);
}

static bool bump(const char *op, cx_salience *salience)
{
    const cx_weights weights = cx_weights_start();
    int64_t now = START_NS + number_after(op, '+') * HOUR_NS;
    uint8_t importance = (uint8_t)number_after(op, '(');
    if (begins(op, "NewForWrite"))
        *salience = cx_salience_on_write(importance, false, &weights, now);
    else if (begins(op, "BumpForAccess"))
        cx_salience_on_access(salience, &weights, now);
    else if (begins(op, "BumpForCitation"))
        cx_salience_on_citation(salience, 1, &weights, now);
    else if (begins(op, "DecrementCitation"))
        cx_salience_on_citation(salience, -1, &weights, now);
    else if (begins(op, "BumpForUpdate"))
        cx_salience_on_update(salience, importance, &weights, now);
    else if (begins(op, "ZeroForTombstone"))
        cx_salience_on_tombstone(salience, now);
    else
        return false;
    return true;
}

static CX_RESULT put_encoded(runner *r, cx_json_list *object, cx_buf *bytes, cx_err *err)
{
    CX_TRY(cx_buf_check(bytes, err));
    return runner_put_hex(r, object, "cbor", cx_buf_bytes(bytes), err);
}

static cx_status score_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *list = runner_array(r->root, "/salience/scores");
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_salience salience = {0};
    char op[TEXT_SIZE], cached[16];
    uint32_t bits;
    cx_buf bytes;
    for (uint32_t i = 0; i < list->count && &list->items[i] <= item; i++) {
        text_of(&list->items[i], "op", op);
        if (!bump(op, &salience))
            return cx_fail(err, CX_E_UNSUPPORTED, "no operation '%s' is known", op);
    }
    memcpy(&bits, &salience.cached, sizeof bits);
    (void)snprintf(cached, sizeof cached, "%08x", bits);
    cx_json value;
    CX_TRY(runner_string(r, cx_str_z(cached), &value, err));
    cx_json_list_put(&object, CX_STR("cached_f32"), value);
    cx_buf_init(&bytes, cx_alloc_default());
    cx_salience_encode(&salience, &bytes);
    cx_status status = put_encoded(r, &object, &bytes, err);
    cx_buf_done(&bytes);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(score_expect, "cbor", "cached_f32")

/* "default" are the weights of the beginning; the others are read and written again elsewhere. */
static void run_default_weights(runner *r)
{
    const cx_json *list = runner_array(runner_file.root, "/salience/weights");
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        cx_buf bytes;
        const cx_weights_record start = {.weights = cx_weights_start()};
        if (!cx_str_is(CX_JSON_GET_STR(&list->items[i], "op"), "default"))
            continue;
        cx_buf_init(&bytes, cx_alloc_default());
        cx_weights_encode(&start, &bytes);
        runner_value_hex(r, runner_pointer(r, "/salience/weights", i, "cbor"),
                         cx_buf_bytes(&bytes));
        cx_buf_done(&bytes);
    }
}

/* --- overall_root: the original's hash over any namespaces ------------------------------------ */

static int by_namespace(const void *a, const void *b)
{
    const cx_json *const *x = a, *const *y = b;
    return cx_str_cmp(CX_JSON_GET_STR(*x, "ns"), CX_JSON_GET_STR(*y, "ns"));
}

static cx_status overall_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char domain[] = "matrix.cortex.snapshot.overall.v1\x01";
    const cx_json *roots;
    cx_digest digest;
    cx_sha256 hash;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_member(item, "state_roots", CX_JSON_ARRAY, &roots, err));
    const cx_json **sorted = CX_ARENA_ARRAY(&r->arena, const cx_json *, (size_t)roots->count + 1);
    if (sorted == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < roots->count; i++)
        sorted[i] = &roots->items[i];
    qsort(sorted, roots->count, sizeof *sorted, by_namespace);
    const uint8_t count[2] = {(uint8_t)(roots->count >> 8), (uint8_t)roots->count};
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    CX_TRY(runner_digest_of(r, item, "journal_root", &digest, err));
    cx_sha256_add(&hash, digest.bytes, sizeof digest.bytes);
    cx_sha256_add(&hash, count, sizeof count);
    for (uint32_t i = 0; i < roots->count; i++) {
        cx_str name;
        CX_TRY(runner_text(sorted[i], "ns", &name, err));
        CX_TRY(runner_digest_of(r, sorted[i], "root", &digest, err));
        const uint8_t size = (uint8_t)name.size;
        cx_sha256_add(&hash, &size, 1);
        cx_sha256_add(&hash, name.data, name.size);
        cx_sha256_add(&hash, digest.bytes, sizeof digest.bytes);
    }
    digest = cx_sha256_end(&hash);
    CX_TRY(runner_put_digest(r, &object, "overall", &digest, err));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(overall_expect, "overall")

/* --- forms_truncation: a preference whose forms are too long ---------------------------------- */

static CX_RESULT put_cut(runner *r, const cx_json *item, cx_json_list *object, const char *tokens,
                         const char *name, const cx_data *data, cx_err *err)
{
    size_t max;
    cx_buf full, cut;
    CX_TRY(runner_count(item, tokens, &max, err));
    cx_buf_init(&full, cx_alloc_default());
    cx_buf_init(&cut, cx_alloc_default());
    cx_forms_full(data, &full);
    cx_tokens_truncate(cx_buf_str(&full), max, &cut);
    cx_status status = cx_buf_check(&cut, err);
    if (!cx_failed(status))
        status = runner_put_hex(r, object, name, cx_buf_bytes(&cut), err);
    cx_buf_done(&full);
    cx_buf_done(&cut);
    return status;
}

static cx_status truncation_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_data data = {.type = CX_TYPE_PREFERENCE, .schema = 1};
    cx_str rationale;
    double strength = 0;
    const cx_json *given = CX_JSON_GET(item, "strength");
    CX_TRY(runner_text(item, "topic", &data.as.preference.topic, err));
    CX_TRY(runner_text(item, "rationale", &rationale, err));
    if (given == NULL || !cx_json_double(given, &strength))
        return cx_fail(err, CX_E_FORMAT, "the case has no number 'strength'");
    data.as.preference.strength = (float)strength;
    data.as.preference.polarity = CX_STR("prefer");
    /* Short is what comes before the rationale. */
    CX_TRY(put_cut(r, item, &object, "short_tokens", "short_hex", &data, err));
    data.as.preference.rationale = rationale;
    CX_TRY(put_cut(r, item, &object, "medium_tokens", "medium_hex", &data, err));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(truncation_expect, "short_hex", "medium_hex")

/* --- vector: what the test embedder makes of a text ------------------------------------------- */

#define DIM_MAX 4096

typedef struct embedded {
    float values[DIM_MAX];
    size_t dim;
    char model[CX_EMBEDDER_MODEL_SIZE];
} embedded;

static CX_RESULT embed(cx_str text, uint64_t dim, embedded *out, cx_err *err)
{
    if (dim == 0 || dim > DIM_MAX)
        return cx_fail(err, CX_E_LIMIT, "a vector of no or more than %d numbers", DIM_MAX);
    out->dim = (size_t)dim;
    cx_embedder_model(out->dim, CX_STR(""), out->model);
    cx_embedder_vector(text, CX_STR(""), out->values, out->dim);
    return CX_SUCCESS;
}

static CX_RESULT big_endian(runner *r, const embedded *vector, cx_json *out, cx_err *err)
{
    uint8_t *bytes = cx_arena_push(&r->arena, 4 * vector->dim, 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < vector->dim; i++) {
        uint32_t bits;
        memcpy(&bits, &vector->values[i], sizeof bits);
        for (unsigned b = 0; b < 4; b++)
            bytes[4 * i + b] = (uint8_t)(bits >> (24 - 8 * b));
    }
    return runner_hex(r, cx_bytes_from(bytes, 4 * vector->dim), out, err);
}

/* Members vecN_hash, vecN_f32be and model_N for any dimension N. */
static CX_RESULT vector_member(runner *r, const char *name, const embedded *vector, cx_json *out,
                               cx_err *err)
{
    if (begins(name, "model_"))
        return runner_string(r, cx_str_from(vector->model, sizeof vector->model), out, err);
    if (strstr(name, "_f32be") != NULL)
        return big_endian(r, vector, out, err);
    cx_digest hash = cx_vector_hash(vector->values, vector->dim);
    return runner_digest(r, &hash, out, err);
}

static CX_RESULT put_vectors(runner *r, const cx_json *item, cx_str text, cx_json_list *object,
                             cx_err *err)
{
    static embedded vector;
    for (uint32_t i = 0; i < item->count; i++) {
        cx_str member = cx_json_text(&item->members[i].name);
        char name[TEXT_SIZE] = "";
        unsigned dim = 0;
        cx_json value;
        memcpy(name, member.data, member.size < TEXT_SIZE ? member.size : 0);
        if (sscanf(name, "vec%u_", &dim) != 1 && sscanf(name, "model_%u", &dim) != 1)
            continue;
        CX_TRY(embed(text, dim, &vector, err));
        CX_TRY(vector_member(r, name, &vector, &value, err));
        cx_json_list_put(object, member, value);
    }
    return CX_SUCCESS;
}

/* The record next to it: vertex, version and time are its own, the rest follows from the text. */
static CX_RESULT put_record(runner *r, const cx_json *item, cx_str text, cx_json_list *object,
                            cx_err *err)
{
    static embedded vector;
    cx_bytes bytes;
    cx_vector record;
    cx_buf made;
    if (CX_JSON_GET(item, "meta_cbor") == NULL)
        return CX_SUCCESS;
    CX_TRY(runner_bytes(r, item, "meta_cbor", &bytes, err));
    CX_TRY(cx_vector_decode(bytes, &r->arena, &record, err));
    CX_TRY(embed(text, record.dim, &vector, err));
    record.model = cx_str_from(vector.model, sizeof vector.model);
    record.values = vector.values;
    record.dim = vector.dim;
    record.hash = cx_vector_hash(vector.values, vector.dim);
    cx_buf_init(&made, cx_alloc_default());
    cx_vector_encode(&record, &made);
    cx_status status = cx_buf_check(&made, err);
    if (!cx_failed(status))
        status = runner_put_hex(r, object, "meta_cbor", cx_buf_bytes(&made), err);
    cx_buf_done(&made);
    return status;
}

static cx_status vector_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_str text;
    CX_TRY(runner_text(item, "text", &text, err));
    CX_TRY(put_vectors(r, item, text, &object, err));
    CX_TRY(put_record(r, item, text, &object, err));
    return cx_json_list_end_object(&object, out, err);
}

/* All members that are none of the questions. */
static cx_status vector_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < item->count; i++) {
        cx_str name = cx_json_text(&item->members[i].name);
        if (!cx_str_is(name, "text") && !cx_str_is(name, "hash_rule"))
            cx_json_list_put(&object, name, item->members[i].value);
    }
    return cx_json_list_end_object(&object, out, err);
}

/* --- cbor_primitives: {"value": "f32 0.1", "cbor"} -------------------------------------------- */

/* "1e-8", "inf", "nan payload", "2^-25", "smallest f16 subnormal 2^-24". */
static double number_told(const char *text)
{
    const char *power = strstr(text, "2^");
    if (power != NULL)
        return ldexp(1, (int)strtol(power + 2, NULL, 10));
    return strtod(text, NULL);
}

/* False for values that the label does not tell. */
static bool write_told(const char *label, cx_buf *out)
{
    if (begins(label, "f32 "))
        cx_cbor_f32(out, (float)number_told(label + 4));
    else if (begins(label, "f64 "))
        cx_cbor_f64(out, number_told(label + 4));
    else if (begins(label, "int "))
        cx_cbor_int(out, strtoll(label + 4, NULL, 10));
    else if (strcmp(label, "uint64 max") == 0)
        cx_cbor_uint(out, UINT64_MAX);
    else if (strcmp(label, "[]byte{}") == 0)
        cx_cbor_bytes(out, cx_bytes_from("", 0));
    else if (strcmp(label, "[]string{}") == 0)
        cx_cbor_array(out, 0);
    else if (strcmp(label, "[]byte nil") == 0 || strcmp(label, "[]string nil") == 0 ||
             strcmp(label, "time zero") == 0)
        cx_cbor_null(out);
    else
        return false;
    return true;
}

static void run_primitives(runner *r)
{
    const cx_json *list = runner_array(runner_file.root, "/cbor_primitives");
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        char label[TEXT_SIZE];
        cx_buf bytes;
        text_of(&list->items[i], "value", label);
        cx_buf_init(&bytes, cx_alloc_default());
        if (write_told(label, &bytes))
            runner_value_hex(r, runner_pointer(r, "/cbor_primitives", i, "cbor"),
                             cx_buf_bytes(&bytes));
        cx_buf_done(&bytes);
    }
}

void runner_ledger_salience(runner *r, cx_str name)
{
    static const runner_kind lists[] = {{"/salience/scores", score_got, score_expect},
                                        {"/overall_root", overall_got, overall_expect}};
    static const runner_kind truncation = {"", truncation_got, truncation_expect};
    static const runner_kind vector = {"", vector_got, vector_expect};
    if (!cx_str_is(name, "codec.json"))
        return;
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        runner_run_list(r, &lists[i], runner_file.path, runner_file.root);
    runner_run_one(r, &truncation, "/forms_truncation");
    runner_run_one(r, &vector, "/vector");
    run_default_weights(r);
    run_primitives(r);
}
