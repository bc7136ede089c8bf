/*
 * verify.c - who signed a trace, in which form, and whether it may say what it says (§4.3).
 *
 * Checks come in the order of the reasons and the first failure is the answer.  Forms are tried in
 * the order the stamp suggests, which is a hint and no more: any of them may verify.  Each form is
 * written once in the received spelling of numbers, and again only when Python's would differ.
 */
#include "trace/internal.h"

#include "crypto/digest.h"
#include "crypto/key.h"
#include "crypto/text.h"

typedef struct checking {
    const cx_trace *trace;
    const cx_trace_check *check;
    cx_buf *scratch;
    cx_arena *arena;
    cx_trace_verdict *out;
    cx_signature signature;
    cx_err *err;
} checking;

static bool fail(checking *c, cx_trace_reason reason, const char *path, const char *detail)
{
    c->out->verdict = reason == CX_REASON_KEY_UNKNOWN ? CX_INDETERMINATE : CX_BROKEN;
    c->out->problem = (cx_trace_problem){reason, cx_str_z(path), cx_str_z(detail)};
    return false;
}

/* --- signature text and key ------------------------------------------------------------------- */

static bool read_signature(checking *c, cx_status *out_status)
{
    cx_buf_clear(c->scratch);
    if (!cx_base64_decode_either(c->trace->signature, c->scratch))
        return fail(c, CX_REASON_SIGNATURE_ENCODING, "/signature",
                    "expected base64 or base64url, padded fully or not at all");
    *out_status = cx_buf_check(c->scratch, c->err);
    if (cx_failed(*out_status))
        return false;
    if (c->scratch->size != sizeof c->signature.bytes)
        return fail(c, CX_REASON_SIGNATURE_LENGTH, "/signature",
                    "an Ed25519 signature has 64 bytes");
    memcpy(c->signature.bytes, c->scratch->data, sizeof c->signature.bytes);
    return true;
}

/* A key says for when it may sign, by signing time, and until when it is trusted, by receipt. */
static bool check_key(checking *c)
{
    static const char path[] = "/signature_key_id";
    const cx_trust_key *key = cx_trust_find(c->check->trust, c->trace->key_id);
    int64_t signed_ns = c->trace->signed_ns;
    c->out->key = key;
    if (key == NULL)
        return fail(c, CX_REASON_KEY_UNKNOWN, path, "the trust store has no such key");
    if (!cx_trust_key_may_sign_for(key, c->trace->agent_id_hash))
        return fail(c, CX_REASON_KEY_AGENT_MISMATCH, "/agent_id_hash",
                    "the key may not sign for this agent");
    if (key->not_before != CX_TIME_NONE && signed_ns < key->not_before)
        return fail(c, CX_REASON_KEY_NOT_YET_VALID, path, "signed before the key was valid");
    if (key->not_after != CX_TIME_NONE && signed_ns >= key->not_after)
        return fail(c, CX_REASON_KEY_EXPIRED, path, "signed when the key was valid no more");
    if (key->revoked_at != CX_TIME_NONE && c->check->received_ns >= key->revoked_at)
        return fail(c, CX_REASON_KEY_REVOKED, path, "received after the key was revoked");
    if (key->compromised_since != CX_TIME_NONE && signed_ns >= key->compromised_since)
        return fail(c, CX_REASON_KEY_REVOKED, path, "signed when the key was compromised");
    return true;
}

/* --- forms ------------------------------------------------------------------------------------ */

/* The stamp's first number; larger ones than matter are cut. */
static unsigned major_of(cx_str version)
{
    unsigned major = 0;
    for (size_t i = 0; i < version.size && version.data[i] != '.' && major < 1000; i++)
        major = major * 10 + (unsigned)(version.data[i] - '0');
    return major;
}

/* The order of §3: what the stamp suggests, then the rest of B A C D E F G H. */
static void order_forms(const cx_trace *trace, cx_trace_form out[CX_FORM_NONE])
{
    static const char rest[] = "BACDEFGH";
    const char *first = "B";
    if (trace->stamped && major_of(trace->schema_version) >= 3)
        first = "HGFE";
    else if (trace->stamped && cx_str_eq(trace->schema_version, CX_STR("2.7.9")))
        first = "GFE";
    else if (trace->stamped && cx_str_eq(trace->schema_version, CX_STR("2.7.0")))
        first = "FE";
    else if (trace->stamped)
        first = "E";
    unsigned count = 0;
    for (const char *at = first; *at != 0; at++)
        out[count++] = (cx_trace_form)(*at - 'A');
    for (const char *at = rest; *at != 0; at++)
        if (strchr(first, *at) == NULL)
            out[count++] = (cx_trace_form)(*at - 'A');
    CX_ASSERT(count == CX_FORM_NONE);
}

/* Writes one spelling and looks whether it was signed. */
static cx_status try_bytes(checking *c, const cx_trace_bytes *which, bool *out_differs,
                           bool *out_good)
{
    cx_buf_clear(c->scratch);
    *out_good = *out_differs = false;
    cx_status status = cx_trace_canonical_noting(c->trace, which, c->scratch, out_differs, c->err);
    if (status.code == CX_E_FORMAT) /* the trace has no such form */
        return CX_SUCCESS;
    CX_TRY(status);
    *out_good = cx_ed25519_verify(&c->out->key->key, cx_buf_bytes(c->scratch), &c->signature);
    return CX_SUCCESS;
}

static void note_form(checking *c, cx_trace_form form, cx_trace_numbers numbers)
{
    static const cx_trace_signed covers[] = {CX_SIGNED_ENVELOPE,         CX_SIGNED_COMPONENTS,
                                             CX_SIGNED_COMPONENTS,       CX_SIGNED_COMPONENTS,
                                             CX_SIGNED_COMPONENTS_LEVEL, CX_SIGNED_ENVELOPE,
                                             CX_SIGNED_ENVELOPE,         CX_SIGNED_ENVELOPE};
    c->out->form = form;
    c->out->numbers = form == CX_FORM_H ? CX_NUMBERS_JCS : numbers;
    c->out->canonical_size_bytes = c->scratch->size;
    c->out->covers = covers[form];
}

/* One way of writing a form, in both spellings of numbers where they differ. */
static cx_status try_spellings(checking *c, cx_trace_bytes which, bool *out_good)
{
    bool differs, ignored;
    CX_TRY(try_bytes(c, &which, &differs, out_good));
    if (*out_good) {
        note_form(c, which.form, differs ? CX_NUMBERS_LEXEME : CX_NUMBERS_SAME);
        return CX_SUCCESS;
    }
    if (!differs || which.form == CX_FORM_H)
        return CX_SUCCESS;
    which.python_numbers = true;
    CX_TRY(try_bytes(c, &which, &ignored, out_good));
    if (*out_good)
        note_form(c, which.form, CX_NUMBERS_PYTHON);
    return CX_SUCCESS;
}

static cx_status try_form(checking *c, cx_trace_form form, bool *out_good)
{
    cx_trace_bytes which = {.form = form, .batch_level = c->check->batch_level};
    CX_TRY(try_spellings(c, which, out_good));
    if (*out_good || form != CX_FORM_E)
        return CX_SUCCESS;
    which.strip_data_only = true;
    return try_spellings(c, which, out_good);
}

static cx_status find_form(checking *c, bool *out_good)
{
    cx_trace_form forms[CX_FORM_NONE];
    order_forms(c->trace, forms);
    *out_good = false;
    for (unsigned i = 0; i < CX_FORM_NONE && !*out_good; i++)
        if ((c->check->forms & CX_FORM_BIT(forms[i])) != 0)
            CX_TRY(try_form(c, forms[i], out_good));
    return CX_SUCCESS;
}

/* --- all checks ------------------------------------------------------------------------------- */

static cx_status check_level(checking *c)
{
    cx_trace_level level =
        cx_trace_level_of(c->trace, c->check->event_level, c->check->batch_level);
    if (c->check->any_level)
        return CX_SUCCESS;
    CX_TRY(cx_trace_violations(c->trace, level, c->arena, &c->out->paths, &c->out->path_count,
                               c->err));
    if (c->out->path_count != 0) {
        (void)fail(c, CX_REASON_LEVEL_VIOLATION, "", "fields that may not be there at this level");
        c->out->problem.path = c->out->paths[0];
    }
    return CX_SUCCESS;
}

static cx_status check_all(checking *c)
{
    bool good;
    cx_status status = CX_SUCCESS;
    if (!read_signature(c, &status) || !check_key(c))
        return status;
    CX_TRY(find_form(c, &good));
    if (!good) {
        (void)fail(c, CX_REASON_SIGNATURE_INVALID, "/signature",
                   "no canonical form verifies with this key");
        return CX_SUCCESS;
    }
    return check_level(c);
}

/*
 * The digest of the signed bytes, which still stand in `scratch` when a form was found, and that of
 * the content behind them.  Two at once take little longer than one: a lane waits for itself.
 */
static cx_status make_digests(checking *c, cx_digest *out_content)
{
    static const cx_canon_style compact = {.spaces = false};
    cx_buf *text = c->scratch;
    bool is_signed = c->out->form != CX_FORM_NONE;
    if (!is_signed)
        cx_buf_clear(text);
    size_t signed_size = text->size;
    if (out_content != NULL) {
        /* Most traces do not grow; a failure here is found below. */
        (void)cx_buf_reserve(text, c->trace->bytes.size + 64);
        CX_TRY(cx_trace_canon_value(c->trace->json, &compact, text, c->err));
    }
    cx_bytes messages[2] = {{text->data, signed_size}};
    if (out_content != NULL)
        messages[1] = (cx_bytes){text->data + signed_size, text->size - signed_size};
    cx_digest digests[2];
    size_t first = is_signed ? 0 : 1, end = out_content != NULL ? 2 : 1;
    if (first < end)
        cx_digest_many(messages + first, digests + first, end - first);
    if (is_signed)
        c->out->canonical = digests[0];
    if (out_content != NULL)
        *out_content = digests[1];
    return CX_SUCCESS;
}

static bool has_naive_timestamp(const cx_trace *trace)
{
    for (uint32_t i = 0; i < trace->component_count; i++)
        if (trace->components[i].naive_timestamp)
            return true;
    return false;
}

cx_status cx_trace_verify_content(const cx_trace *trace, const cx_trace_check *check,
                                  cx_buf *scratch, cx_arena *arena, cx_trace_verdict *out,
                                  cx_digest *out_content, cx_err *err)
{
    cx_trace_verdict verdict = {.verdict = CX_HOLDS, .form = CX_FORM_NONE};
    cx_digest content;
    checking c = {.trace = trace,
                  .check = check,
                  .scratch = scratch,
                  .arena = arena,
                  .out = &verdict,
                  .err = err};
    const cx_json *pqc = CX_JSON_GET(trace->json, "signature_ml_dsa_65");
    if (pqc != NULL && pqc->type != CX_JSON_NULL)
        verdict.pqc = CX_PQC_NOT_CHECKED;
    verdict.naive_timestamp = has_naive_timestamp(trace);
    cx_status status = check_all(&c);
    if (!cx_failed(status))
        status = make_digests(&c, out_content != NULL ? &content : NULL);
    cx_buf_clear(scratch);
    if (cx_failed(status))
        return status;
    *out = verdict;
    if (out_content != NULL)
        *out_content = content;
    return CX_SUCCESS;
}

cx_status cx_trace_verify(const cx_trace *trace, const cx_trace_check *check, cx_buf *scratch,
                          cx_arena *arena, cx_trace_verdict *out, cx_err *err)
{
    return cx_trace_verify_content(trace, check, scratch, arena, out, NULL, err);
}
