/*
 * verify.c - checks who signed a trace, in which form, and whether it keeps its level (§4.3).
 *
 * Checks run in the order of the reasons, and the first failure is the result.  Forms are tried in
 * the order that the stamp suggests, which is only a hint: any of them may verify.  Each form is
 * written once in the received spelling of numbers, and again only when Python's would differ.
 *
 * Several traces are verified together, because signatures and digests are checked in lanes: the
 * likeliest form of each is written, all are verified at once, and only on failure are the other
 * forms tried, one by one.
 *
 *   I1  all texts of a team are contiguous in `scratch`, which moves while it grows: they are
 *       referred to by offset until the last is written.
 */
#include "trace/internal.h"

#include "crypto/api.h"

/* Traces that are verified together: two rounds of eight lanes, and two of sixteen for digests. */
enum { TEAM = 16 };
/* A team of longer traces is smaller, so that its texts stay in the CPU cache. */
#define TEAM_BYTES ((size_t)1 << 20)

/* A text in scratch (I1). */
typedef struct span {
    size_t start, size;
} span;

typedef struct checking {
    const cx_trace *trace;
    const cx_trace_check *check;
    cx_buf *scratch;
    cx_arena *arena;
    cx_trace_verdict *out;
    cx_signature signature;
    bool may_sign;      /* the signature is well-formed, and the key may sign for the agent */
    bool guessed;       /* `guess` was written to `signed_text` and is checked in the lanes */
    bool guess_differs; /* Python would spell a number in it differently */
    cx_trace_bytes guess;
    span signed_text; /* the text that verified, when out->form is set */
    cx_err *err;
} checking;

static bool fail_with_reason(checking *c, cx_trace_reason reason, const char *path,
                             const char *detail)
{
    c->out->verdict = reason == CX_REASON_KEY_UNKNOWN ? CX_INDETERMINATE : CX_BROKEN;
    c->out->problem = (cx_trace_problem){reason, cx_str_z(path), cx_str_z(detail)};
    return false;
}

/* --- signature text and key ------------------------------------------------------------------- */

static bool read_signature(checking *c, cx_status *out_status)
{
    size_t start = c->scratch->size;
    bool decoded = cx_base64_decode_either(c->trace->signature, c->scratch);
    size_t size = c->scratch->size - start;
    *out_status = decoded ? cx_buf_check(c->scratch, c->err) : CX_SUCCESS;
    if (cx_failed(*out_status))
        return false;
    c->scratch->size = start;
    if (!decoded)
        return fail_with_reason(c, CX_REASON_SIGNATURE_ENCODING, "/signature",
                                "expected base64 or base64url, padded fully or not at all");
    if (size != sizeof c->signature.bytes)
        return fail_with_reason(c, CX_REASON_SIGNATURE_LENGTH, "/signature",
                                "an Ed25519 signature has 64 bytes");
    memcpy(c->signature.bytes, c->scratch->data + start, size);
    return true;
}

/* A key's validity is judged by signing time, its revocation by time of receipt. */
static bool check_key(checking *c)
{
    static const char path[] = "/signature_key_id";
    const cx_trust_key *key = cx_trust_find(c->check->trust, c->trace->key_id);
    int64_t signed_ns = c->trace->signed_ns;
    c->out->key = key;
    if (key == NULL)
        return fail_with_reason(c, CX_REASON_KEY_UNKNOWN, path, "the trust store has no such key");
    if (!cx_trust_key_may_sign_for(key, c->trace->agent_id_hash))
        return fail_with_reason(c, CX_REASON_KEY_AGENT_MISMATCH, "/agent_id_hash",
                                "the key may not sign for this agent");
    if (key->not_before != CX_TIME_NONE && signed_ns < key->not_before)
        return fail_with_reason(c, CX_REASON_KEY_NOT_YET_VALID, path,
                                "signed before the key was valid");
    if (key->not_after != CX_TIME_NONE && signed_ns >= key->not_after)
        return fail_with_reason(c, CX_REASON_KEY_EXPIRED, path, "signed after the key expired");
    if (key->revoked_at != CX_TIME_NONE && c->check->received_ns >= key->revoked_at)
        return fail_with_reason(c, CX_REASON_KEY_REVOKED, path,
                                "received after the key was revoked");
    if (key->compromised_since != CX_TIME_NONE && signed_ns >= key->compromised_since)
        return fail_with_reason(c, CX_REASON_KEY_REVOKED, path,
                                "signed after the key was compromised");
    return true;
}

/* --- forms ------------------------------------------------------------------------------------ */

/* The stamp's major version, capped. */
static unsigned major_of(cx_str version)
{
    unsigned major = 0;
    for (size_t i = 0; i < version.size && version.data[i] != '.' && major < 1000; i++)
        major = major * 10 + (unsigned)(version.data[i] - '0');
    return major;
}

/* The order of §3: the forms that the stamp suggests, then the rest of B A C D E F G H. */
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

/* Writes one spelling; *out_written is false when the trace has no such form. */
static cx_status write_bytes(checking *c, const cx_trace_bytes *which, bool *out_differs,
                             bool *out_written)
{
    size_t start = c->scratch->size;
    *out_differs = false;
    cx_status status = cx_trace_canonical_noting(c->trace, which, c->scratch, out_differs, c->err);
    *out_written = !cx_failed(status);
    if (status.code == CX_E_FORMAT) {
        c->scratch->size = start;
        return CX_SUCCESS;
    }
    c->signed_text = (span){start, c->scratch->size - start};
    return status;
}

static bool was_guessed(const checking *c, const cx_trace_bytes *which)
{
    return c->guessed && which->form == c->guess.form && !which->python_numbers &&
           !which->strip_data_only;
}

/* Writes one spelling and checks whether it was signed; if not, removes it again. */
static cx_status try_bytes(checking *c, const cx_trace_bytes *which, bool *out_differs,
                           bool *out_good)
{
    bool written;
    *out_good = false;
    if (was_guessed(c, which)) {
        *out_differs = c->guess_differs; /* this text was not signed: the guess failed before */
        return CX_SUCCESS;
    }
    CX_TRY(write_bytes(c, which, out_differs, &written));
    if (!written)
        return CX_SUCCESS;
    cx_bytes text = {c->scratch->data + c->signed_text.start, c->signed_text.size};
    *out_good = cx_ed25519_verify(&c->out->key->key, text, &c->signature);
    if (!*out_good)
        c->scratch->size = c->signed_text.start;
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
    c->out->canonical_size_bytes = c->signed_text.size;
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
        (void)fail_with_reason(c, CX_REASON_LEVEL_VIOLATION, "",
                               "fields that this level does not allow");
        c->out->problem.path = c->out->paths[0];
    }
    return CX_SUCCESS;
}

static bool has_naive_timestamp(const cx_trace *trace)
{
    for (uint32_t i = 0; i < trace->component_count; i++)
        if (trace->components[i].naive_timestamp)
            return true;
    return false;
}

/* The checks before the signature, and the likeliest signed text. */
static cx_status prepare_guess(checking *c)
{
    cx_status status = CX_SUCCESS;
    const cx_json *pqc = CX_JSON_GET(c->trace->json, "signature_ml_dsa_65");
    if (pqc != NULL && pqc->type != CX_JSON_NULL)
        c->out->pqc = CX_PQC_NOT_CHECKED;
    c->out->naive_timestamp = has_naive_timestamp(c->trace);
    c->may_sign = read_signature(c, &status) && check_key(c);
    if (!c->may_sign)
        return status;
    cx_trace_form forms[CX_FORM_NONE];
    order_forms(c->trace, forms);
    for (unsigned i = 0; i < CX_FORM_NONE; i++) {
        if ((c->check->forms & CX_FORM_BIT(forms[i])) == 0)
            continue;
        c->guess = (cx_trace_bytes){.form = forms[i], .batch_level = c->check->batch_level};
        return write_bytes(c, &c->guess, &c->guess_differs, &c->guessed);
    }
    return CX_SUCCESS;
}

/* The bytes of a text member in base64; data NULL when it is absent, malformed, or no text. */
static cx_status decode_member(checking *c, const char *name, bool *out_there, cx_bytes *out)
{
    const cx_json *value = cx_json_get(c->trace->json, cx_str_z(name));
    cx_buf bytes;
    *out = (cx_bytes){NULL, 0};
    *out_there = value != NULL && value->type == CX_JSON_STRING;
    if (!*out_there)
        return CX_SUCCESS;
    cx_buf_init(&bytes, c->arena->alloc);
    bool good = cx_base64_decode_either(cx_json_text(value), &bytes);
    cx_status status = good ? cx_buf_check(&bytes, c->err) : CX_SUCCESS;
    if (good && !cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(c->arena, cx_buf_str(&bytes));
        *out = cx_str_bytes(copy);
        status = copy.data == NULL ? cx_fail_nomem(c->err) : CX_SUCCESS;
    }
    cx_buf_done(&bytes);
    return status;
}

/* §4.4: over the canonical bytes and the 64 bytes of the Ed25519 signature. */
static cx_status check_pqc(checking *c)
{
    cx_bytes key, signature;
    bool has_key, has_signature;
    if (c->out->pqc == CX_PQC_ABSENT || c->out->form != CX_FORM_H || cx_ml_dsa_library() == NULL)
        return CX_SUCCESS;
    CX_TRY(decode_member(c, "pubkey_ml_dsa_65", &has_key, &key));
    CX_TRY(decode_member(c, "signature_ml_dsa_65", &has_signature, &signature));
    if (!has_key)
        return CX_SUCCESS;
    size_t size = c->signed_text.size;
    uint8_t *message = CX_ARENA_ARRAY(c->arena, uint8_t, size + sizeof c->signature.bytes);
    if (message == NULL)
        return cx_fail_nomem(c->err);
    memcpy(message, c->scratch->data + c->signed_text.start, size);
    memcpy(message + size, c->signature.bytes, sizeof c->signature.bytes);
    switch (cx_ml_dsa_65_verify(key, cx_bytes_from(message, size + sizeof c->signature.bytes),
                                signature)) {
    case CX_ML_DSA_NOT_CHECKED: break;
    case CX_ML_DSA_HOLDS: c->out->pqc = CX_PQC_HOLDS; break;
    case CX_ML_DSA_BROKEN:
        c->out->pqc = CX_PQC_BROKEN;
        (void)fail_with_reason(c, CX_REASON_SIGNATURE_INVALID, "/signature_ml_dsa_65",
                               "the ML-DSA-65 signature is not of this trace by its key");
        break;
    }
    return CX_SUCCESS;
}

/* Verifies all guesses at once. */
static void verify_guesses(checking *team, size_t count, bool good[TEAM])
{
    cx_ed25519_item items[TEAM];
    bool answers[TEAM];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const checking *c = &team[i];
        if (c->guessed)
            items[used++] =
                (cx_ed25519_item){c->out->key->key,
                                  c->signature,
                                  {c->scratch->data + c->signed_text.start, c->signed_text.size}};
    }
    if (used != 0)
        cx_ed25519_verify_many(items, answers, used);
    used = 0;
    for (size_t i = 0; i < count; i++)
        good[i] = team[i].guessed && answers[used++];
}

static cx_status finish_guess(checking *c, bool good)
{
    if (!c->may_sign)
        return CX_SUCCESS;
    if (good)
        note_form(c, c->guess.form, c->guess_differs ? CX_NUMBERS_LEXEME : CX_NUMBERS_SAME);
    else
        CX_TRY(find_form(c, &good));
    if (good) {
        CX_TRY(check_pqc(c));
        return c->out->pqc == CX_PQC_BROKEN ? CX_SUCCESS : check_level(c);
    }
    (void)fail_with_reason(c, CX_REASON_SIGNATURE_INVALID, "/signature",
                           "no canonical form verifies with this key");
    return CX_SUCCESS;
}

/* The digests of the signed texts and, where requested, of the contents: in lanes. */
static cx_status make_digests(checking *team, const cx_trace_job *jobs, size_t count, cx_err *err)
{
    static const cx_canon_style compact = {.spaces = false};
    cx_buf *text = team[0].scratch;
    span contents[TEAM];
    cx_bytes messages[2 * TEAM];
    cx_digest digests[2 * TEAM], *outs[2 * TEAM];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].out_content == NULL)
            continue;
        contents[i].start = text->size;
        /* Most traces do not grow; a failure here is found below. */
        (void)cx_buf_reserve(text, jobs[i].trace->bytes.size + 64);
        CX_TRY(cx_trace_canon_value(jobs[i].trace->json, &compact, text, err));
        contents[i].size = text->size - contents[i].start;
    }
    for (size_t i = 0; i < count; i++) {
        const span *from = &team[i].signed_text;
        if (team[i].out->form != CX_FORM_NONE) {
            messages[used] = (cx_bytes){text->data + from->start, from->size};
            outs[used++] = &team[i].out->canonical;
        }
        if (jobs[i].out_content != NULL) {
            messages[used] = (cx_bytes){text->data + contents[i].start, contents[i].size};
            outs[used++] = jobs[i].out_content;
        }
    }
    if (used == 0)
        return CX_SUCCESS;
    cx_digest_many(messages, digests, used);
    for (size_t i = 0; i < used; i++)
        *outs[i] = digests[i];
    return CX_SUCCESS;
}

static cx_status verify_team(const cx_trace_job *jobs, size_t count, cx_buf *scratch,
                             cx_arena *arena, cx_err *err)
{
    checking team[TEAM];
    bool good[TEAM];
    cx_buf_clear(scratch);
    for (size_t i = 0; i < count; i++) {
        *jobs[i].out = (cx_trace_verdict){.verdict = CX_HOLDS, .form = CX_FORM_NONE};
        team[i] = (checking){.trace = jobs[i].trace,
                             .check = &jobs[i].check,
                             .scratch = scratch,
                             .arena = arena,
                             .out = jobs[i].out,
                             .err = err};
        CX_TRY(prepare_guess(&team[i]));
    }
    verify_guesses(team, count, good);
    for (size_t i = 0; i < count; i++)
        CX_TRY(finish_guess(&team[i], good[i]));
    return make_digests(team, jobs, count, err);
}

/* How many of the next traces form a team: at least one. */
static size_t team_size(const cx_trace_job *jobs, size_t count)
{
    size_t used = 0;
    for (size_t bytes = 0; used < count && used < TEAM && bytes < TEAM_BYTES; used++)
        bytes += jobs[used].trace->bytes.size;
    return used;
}

cx_status cx_trace_verify_many(const cx_trace_job *jobs, size_t count, cx_buf *scratch,
                               cx_arena *arena, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (size_t done = 0, used; done < count && !cx_failed(status); done += used) {
        used = team_size(jobs + done, count - done);
        status = verify_team(jobs + done, used, scratch, arena, err);
    }
    cx_buf_clear(scratch);
    return status;
}

cx_status cx_trace_verify_content(const cx_trace *trace, const cx_trace_check *check,
                                  cx_buf *scratch, cx_arena *arena, cx_trace_verdict *out,
                                  cx_digest *out_content, cx_err *err)
{
    cx_trace_verdict verdict;
    cx_digest content;
    const cx_trace_job job = {trace, *check, &verdict, out_content != NULL ? &content : NULL};
    CX_TRY(cx_trace_verify_many(&job, 1, scratch, arena, err));
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
