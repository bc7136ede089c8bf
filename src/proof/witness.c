/*
 * witness.c - requests to a witness, and what it answers.
 */
#include "proof/witness.h"

#include "base/api.h"
#include "proof/proof_internal.h"

/* --- requests --------------------------------------------------------------------------------- */

void cx_witness_request_write(const cx_witness_request *request, cx_buf *out)
{
    cx_buf_printf(out, "old %llu\n", (unsigned long long)request->old_size);
    for (size_t i = 0; i < request->path_count; i++) {
        cx_base64_add(out, cx_bytes_from(request->path[i].bytes, 32), CX_BASE64);
        cx_buf_add_byte(out, '\n');
    }
    cx_buf_add_byte(out, '\n');
    cx_buf_add(out, request->note.data, request->note.size);
}

static cx_status bad_request(cx_err *err, const char *expected)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadRequest", CX_NO_OFFSET, "expected %s", expected);
}

/* The next line without its end; false when no line end follows. */
static bool next_line(cx_str *text, cx_str *out)
{
    const char *end = text->size == 0 ? NULL : memchr(text->data, '\n', text->size);
    if (end == NULL)
        return false;
    *out = cx_str_from(text->data, (size_t)(end - text->data));
    *text = cx_str_from(end + 1, text->size - out->size - 1);
    return true;
}

/* Decimal without leading zeros. */
static bool read_size(cx_str text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.size == 0 || (text.size > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(uint8_t)text.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *out = value;
    return true;
}

static bool read_hash(cx_str line, cx_digest *out)
{
    cx_buf bytes, again;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    bool good = cx_base64_decode(line, CX_BASE64, &bytes) && !bytes.failed && bytes.size == 32;
    if (good) {
        memcpy(out->bytes, bytes.data, 32);
        cx_base64_add(&again, cx_buf_bytes(&bytes), CX_BASE64);
        good = cx_str_eq(cx_buf_str(&again), line);
    }
    cx_buf_done(&again);
    cx_buf_done(&bytes);
    return good;
}

cx_status cx_witness_request_read(cx_bytes body, cx_witness_request *out, cx_err *err)
{
    cx_str text = cx_bytes_str(body), line;
    out->path_count = 0;
    if (body.size > CX_WITNESS_BODY_MAX)
        return bad_request(err, "a body of at most 64 KiB");
    if (!next_line(&text, &line) || !cx_str_starts(line, CX_STR("old ")) ||
        !read_size(cx_str_from(line.data + 4, line.size - 4), &out->old_size))
        return bad_request(err, "\"old\", a space and a size in decimal on the first line");
    for (;;) {
        if (!next_line(&text, &line))
            return bad_request(err, "an empty line between proof and checkpoint");
        if (line.size == 0)
            break;
        if (out->path_count == CX_WITNESS_PATH_MAX || !read_hash(line, &out->path[out->path_count]))
            return bad_request(err, "at most 63 lines with a hash in base64");
        out->path_count++;
    }
    out->note = cx_str_bytes(text);
    return CX_SUCCESS;
}

cx_status cx_witness_origin(cx_bytes body, cx_str *out, cx_err *err)
{
    cx_witness_request request;
    cx_checkpoint checkpoint;
    CX_TRY(cx_witness_request_read(body, &request, err));
    CX_TRY(cx_checkpoint_parse(request.note, &checkpoint, NULL, err));
    *out = checkpoint.origin;
    return CX_SUCCESS;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void refuse_request(cx_witness_answer *out, unsigned status, const char *why)
{
    out->status = status;
    out->why = why;
    out->tell_size = status == 409;
}

/* Whether the tree grew from the stored one; with size 0 and nothing stored the empty tree. */
static void judge_growth(const cx_witness_request *request, const cx_checkpoint *stored,
                         cx_witness_answer *out)
{
    const cx_checkpoint *now = &out->checkpoint;
    cx_digest empty = cx_scheme_journal_root(CX_SCHEME_CORTEX_1, 0, NULL);
    const cx_digest *before = stored == NULL ? &empty : &stored->root;
    if (request->old_size > now->size)
        refuse_request(out, 400, "the old size is larger than the checkpoint's");
    else if (request->old_size != out->size)
        refuse_request(out, 409, "the old size is not that of the newest checkpoint cosigned here");
    else if (request->old_size == now->size && !cx_digest_eq(before, &now->root))
        refuse_request(out, 409, "another checkpoint of this size was cosigned here");
    else if ((request->old_size == 0 || request->old_size == now->size) && request->path_count != 0)
        refuse_request(out, 422, "expected no consistency proof");
    else if (request->old_size != 0 && request->old_size != now->size &&
             !cx_mmr_consistency_holds(CX_SCHEME_CORTEX_1, request->old_size, before, now->size,
                                       &now->root, request->path, request->path_count))
        refuse_request(out, 422, "the consistency proof does not hold");
}

cx_status cx_witness_judge(cx_bytes body, const cx_vkey *keys, size_t key_count,
                           const cx_checkpoint *stored, cx_arena *arena, cx_witness_answer *out,
                           cx_err *err)
{
    cx_witness_request request;
    cx_note_result note;
    cx_finding finding;
    cx_err unused = {0};
    *out = (cx_witness_answer){.status = 200, .why = "", .size = stored == NULL ? 0 : stored->size};
    if (cx_failed(cx_witness_request_read(body, &request, &unused)) ||
        cx_failed(cx_checkpoint_parse(request.note, &out->checkpoint, NULL, &unused))) {
        refuse_request(out, 400, "the body is not a request of c2sp.org/tlog-witness");
        return CX_SUCCESS;
    }
    cx_vkey *known = CX_ARENA_ARRAY(arena, cx_vkey, key_count + 1);
    cx_note_check check = {.keys = known};
    if (known == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < key_count; i++)
        if (keys[i].algorithm == CX_VKEY_NOTE && cx_str_eq(keys[i].name, out->checkpoint.origin))
            known[check.key_count++] = keys[i];
    if (check.key_count == 0) {
        refuse_request(out, 404, "no log of this origin is known here");
        return CX_SUCCESS;
    }
    CX_TRY(cx_note_verify(request.note, &check, arena->alloc, &note, &finding, err));
    if (finding.verdict != CX_HOLDS)
        refuse_request(out, 403, "no known key of the origin signed the checkpoint");
    else
        judge_growth(&request, stored, out);
    return CX_SUCCESS;
}

void cx_cosignature_line(const cx_vkey *witness, uint64_t time_s, const cx_signature *signature,
                         cx_buf *out)
{
    uint8_t bytes[4 + 8 + 64];
    memcpy(bytes, witness->key_id, 4);
    for (unsigned i = 0; i < 8; i++)
        bytes[4 + i] = (uint8_t)(time_s >> (56 - 8 * i));
    memcpy(bytes + 12, signature->bytes, 64);
    cx_buf_add_z(out, "\xe2\x80\x94 ");
    cx_buf_add_str(out, witness->name);
    cx_buf_add_byte(out, ' ');
    cx_base64_add(out, cx_bytes_from(bytes, sizeof bytes), CX_BASE64);
    cx_buf_add_byte(out, '\n');
}
