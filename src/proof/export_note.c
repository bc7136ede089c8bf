/*
 * export_note.c - checkpoints as C2SP signed notes, the keys that check them, and cosignatures
 * (ledger.md §12).
 *
 *     <origin>\n <size, decimal>\n <base64 root>\n      the text, which is what is signed
 *     \n
 *     — <name> <base64(key id, 4 bytes ‖ signature)>\n  one line a signature, U+2014 first
 *
 * Key id = first 4 bytes of H(name ‖ 0a ‖ algorithm ‖ key).  A cosignature's bytes are the time as
 * u64be and then the signature.  Extension lines are refused: we never write them.
 */
#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "proof/export_internal.h"
#include "proof/proof_internal.h"

#define DASH "\xe2\x80\x94 "

/* --- small readers --------------------------------------------------------------------------- */

bool cx_line_next(cx_str *rest, cx_str *out_line)
{
    const char *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    if (end == NULL)
        return false;
    size_t size = (size_t)(end - rest->data);
    *out_line = cx_str_from(rest->data, size);
    *rest = cx_str_from(end + 1, rest->size - size - 1);
    return true;
}

bool cx_line_number(cx_str text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.size == 0 || (text.size > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool cx_line_base64(cx_str text, uint8_t *out, size_t capacity, size_t *out_size)
{
    size_t padding = 0, size = 0;
    uint32_t bits = 0;
    if (text.size == 0 || text.size % 4 != 0)
        return false;
    while (padding < 2 && text.data[text.size - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.size - padding; i++) {
        int value = base64_value(text.data[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 == 0)
            continue;
        uint8_t byte = (uint8_t)(bits >> (6 - 2 * (i % 4)));
        if (size < capacity)
            out[size] = byte;
        size++;
    }
    *out_size = size;
    /* What is left over after the last byte must be zero, or one value had several spellings. */
    return padding == 0 || (bits & (padding == 1 ? 0x3u : 0xfu)) == 0;
}

bool cx_line_digest(cx_str text, cx_digest *out)
{
    cx_digest digest;
    size_t size;
    if (!cx_line_base64(text, digest.bytes, sizeof digest.bytes, &size) ||
        size != sizeof digest.bytes)
        return false;
    *out = digest;
    return true;
}

static bool is_space_or_control(uint32_t code)
{
    return code <= 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
           code == 0x202f || code == 0x205f || code == 0x3000;
}

bool cx_checkpoint_origin_ok(cx_str origin)
{
    if (origin.size == 0 || !cx_utf8_valid(origin))
        return false;
    for (size_t at = 0, size; at < origin.size; at += size) {
        uint32_t code = cx_utf8_decode((const uint8_t *)origin.data + at, &size);
        if (code == '+' || is_space_or_control(code))
            return false;
    }
    return true;
}

void cx_origin_hashed(cx_str actor, char out[CX_ORIGIN_HASHED_SIZE])
{
    cx_digest hash = cx_digest_of(cx_str_bytes(actor));
    memcpy(out, CX_ORIGIN_HASHED, sizeof CX_ORIGIN_HASHED - 1);
    cx_hex_encode(cx_bytes_from(hash.bytes, sizeof hash.bytes), out + sizeof CX_ORIGIN_HASHED - 1);
    out[CX_ORIGIN_HASHED_SIZE - 1] = 0;
}

bool cx_origin_reserved(cx_str origin)
{
    return cx_str_starts(origin, CX_STR(CX_ORIGIN_HASHED));
}

/* "HOME/ACTOR", or the whole hash of a name that no origin can hold.  No actor's name has a '/'. */
bool cx_origin_names_actor(cx_str origin, cx_str actor)
{
    char hashed[CX_ORIGIN_HASHED_SIZE];
    cx_origin_hashed(actor, hashed);
    if (cx_origin_reserved(origin))
        return cx_str_is(origin, hashed);
    return origin.size > actor.size + 1 && cx_str_ends(origin, actor) &&
           origin.data[origin.size - actor.size - 1] == '/' &&
           memchr(actor.data, '/', actor.size) == NULL;
}

/* --- keys ------------------------------------------------------------------------------------ */

void cx_vkey_make(cx_str name, uint8_t algorithm, const cx_pubkey *key, cx_vkey *out)
{
    cx_sha256 hash;
    uint8_t separator[2] = {'\n', algorithm};
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, name.data, name.size);
    cx_sha256_add(&hash, separator, sizeof separator);
    cx_sha256_add(&hash, key->bytes, sizeof key->bytes);
    cx_digest digest = cx_sha256_end(&hash);
    *out = (cx_vkey){.name = name, .algorithm = algorithm, .key = *key};
    memcpy(out->key_id, digest.bytes, sizeof out->key_id);
}

void cx_vkey_add(const cx_vkey *vkey, cx_buf *out)
{
    uint8_t bytes[1 + sizeof vkey->key.bytes];
    bytes[0] = vkey->algorithm;
    memcpy(bytes + 1, vkey->key.bytes, sizeof vkey->key.bytes);
    cx_buf_add_str(out, vkey->name);
    cx_buf_add_byte(out, '+');
    cx_hex_add(out, cx_bytes_from(vkey->key_id, sizeof vkey->key_id));
    cx_buf_add_byte(out, '+');
    cx_base64_add(out, cx_bytes_from(bytes, sizeof bytes), CX_BASE64);
}

static cx_status bad_key(cx_err *err, const char *why)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadKey", CX_NO_OFFSET,
                      "verifier key: %s; expected NAME+KEYID+BASE64", why);
}

cx_status cx_vkey_parse(cx_str text, cx_vkey *out, cx_err *err)
{
    uint8_t id[4], bytes[33];
    size_t size = 0;
    cx_vkey made;
    cx_pubkey key;
    const char *plus = text.size == 0 ? NULL : memchr(text.data, '+', text.size);
    size_t name_size = plus == NULL ? 0 : (size_t)(plus - text.data);
    if (plus == NULL || text.size < name_size + 10 || plus[9] != '+')
        return bad_key(err, "its parts are not there");
    cx_str name = cx_str_from(text.data, name_size);
    cx_str rest = cx_str_from(plus + 10, text.size - name_size - 10);
    if (!cx_checkpoint_origin_ok(name))
        return bad_key(err, "its name is empty or has spaces");
    if (!cx_hex_decode(cx_str_from(plus + 1, 8), id, sizeof id))
        return bad_key(err, "its key id is not 8 digits of lower-case hex");
    if (!cx_line_base64(rest, bytes, sizeof bytes, &size) || size != sizeof bytes)
        return bad_key(err, "its key is not base64 of 33 bytes");
    if (bytes[0] != CX_VKEY_NOTE && bytes[0] != CX_VKEY_COSIGNATURE)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "BadKey", CX_NO_OFFSET,
                          "verifier key: found algorithm %u, expected 1 (Ed25519) or 4 "
                          "(cosignature)",
                          bytes[0]);
    memcpy(key.bytes, bytes + 1, sizeof key.bytes);
    cx_vkey_make(name, bytes[0], &key, &made);
    if (memcmp(made.key_id, id, sizeof id) != 0)
        return bad_key(err, "its key id, a checksum, does not fit: a character of it was changed");
    *out = made;
    return CX_SUCCESS;
}

/* --- writing --------------------------------------------------------------------------------- */

void cx_checkpoint_text(const cx_checkpoint *checkpoint, cx_buf *out)
{
    cx_buf_add_str(out, checkpoint->origin);
    cx_buf_add_byte(out, '\n');
    cx_buf_add_u64(out, checkpoint->size);
    cx_buf_add_byte(out, '\n');
    cx_base64_add(out, cx_bytes_from(checkpoint->root.bytes, sizeof checkpoint->root.bytes),
                  CX_BASE64);
    cx_buf_add_byte(out, '\n');
}

void cx_checkpoint_note(const cx_checkpoint *checkpoint, const cx_vkey *signer,
                        const cx_signature *signature, cx_buf *out)
{
    cx_checkpoint_text(checkpoint, out);
    cx_buf_add_byte(out, '\n');
    cx_note_add_signature(signer, signature, out);
}

void cx_note_add_signature(const cx_vkey *signer, const cx_signature *signature, cx_buf *out)
{
    uint8_t bytes[4 + sizeof signature->bytes];
    memcpy(bytes, signer->key_id, 4);
    memcpy(bytes + 4, signature->bytes, sizeof signature->bytes);
    cx_buf_add_z(out, DASH);
    cx_buf_add_str(out, signer->name);
    cx_buf_add_byte(out, ' ');
    cx_base64_add(out, cx_bytes_from(bytes, sizeof bytes), CX_BASE64);
    cx_buf_add_byte(out, '\n');
}

static void cosigned_text(cx_bytes text, uint64_t time_s, cx_buf *out)
{
    cx_buf_add_z(out, "cosignature/v1\ntime ");
    cx_buf_add_u64(out, time_s);
    cx_buf_add_byte(out, '\n');
    cx_buf_add(out, text.data, text.size);
}

void cx_cosignature_text(const cx_checkpoint *checkpoint, uint64_t time_s, cx_buf *out)
{
    cosigned_text((cx_bytes){NULL, 0}, time_s, out);
    cx_checkpoint_text(checkpoint, out);
}

/* --- reading --------------------------------------------------------------------------------- */

static cx_status bad_note(cx_err *err, cx_bytes note, const char *at, const char *why)
{
    uint64_t offset = at == NULL ? 0 : (uint64_t)((const uint8_t *)at - note.data);
    return cx_fail_at(err, CX_E_FORMAT, "BadNote", offset, "checkpoint: %s", why);
}

static cx_status read_text(cx_bytes note, cx_checkpoint *out, cx_bytes *out_text, cx_str *out_rest,
                           cx_err *err)
{
    cx_str rest = cx_bytes_str(note), origin, size, root, empty;
    if (note.size > CX_NOTE_SIZE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "BadNote", 0,
                          "checkpoint: found %zu bytes, expected at most %u", note.size,
                          CX_NOTE_SIZE_MAX);
    if (!cx_line_next(&rest, &origin) || !cx_line_next(&rest, &size) || !cx_line_next(&rest, &root))
        return bad_note(err, note, NULL, "expected the lines origin, size, root");
    cx_bytes text = {note.data, note.size - rest.size};
    if (!cx_checkpoint_origin_ok(origin))
        return bad_note(err, note, origin.data,
                        "expected an origin without spaces, controls and '+'");
    if (!cx_line_number(size, &out->size))
        return bad_note(err, note, size.data, "expected the size as a decimal number");
    if (!cx_line_digest(root, &out->root))
        return bad_note(err, note, root.data, "expected the root as base64 of 32 bytes");
    if (!cx_line_next(&rest, &empty) || empty.size != 0)
        return bad_note(err, note, rest.data, "expected an empty line after the root");
    out->origin = origin;
    *out_text = text;
    *out_rest = rest;
    return CX_SUCCESS;
}

/* One signature line; `size` may be larger than what was kept. */
typedef struct signature_line {
    cx_str name;
    uint8_t bytes[4 + 8 + 64];
    size_t size;
} signature_line;

static cx_status read_signature(cx_bytes note, cx_str line, signature_line *out, cx_err *err)
{
    cx_str dash = CX_STR(DASH);
    if (!cx_str_starts(line, dash))
        return bad_note(err, note, line.data,
                        "expected a signature line, which begins with a dash");
    cx_str rest = cx_str_from(line.data + dash.size, line.size - dash.size);
    const char *space = rest.size == 0 ? NULL : memchr(rest.data, ' ', rest.size);
    if (space == NULL)
        return bad_note(err, note, rest.data, "expected a name, a space and the signature");
    out->name = cx_str_from(rest.data, (size_t)(space - rest.data));
    cx_str base64 = cx_str_from(space + 1, rest.size - out->name.size - 1);
    if (!cx_checkpoint_origin_ok(out->name))
        return bad_note(err, note, rest.data, "expected the name of a key");
    if (!cx_line_base64(base64, out->bytes, sizeof out->bytes, &out->size) || out->size < 5)
        return bad_note(err, note, base64.data, "expected a signature in base64");
    return CX_SUCCESS;
}

/* The lines after the text, each handed to `visit` if that is not NULL. */
static cx_status read_signatures(cx_bytes note, cx_str rest,
                                 cx_status (*visit)(void *arg, const signature_line *line,
                                                    cx_err *err),
                                 void *arg, cx_err *err)
{
    cx_str line;
    size_t count = 0;
    if (rest.size == 0)
        return bad_note(err, note, rest.data, "expected at least one signature line");
    while (rest.size != 0) {
        signature_line signature;
        const char *at = rest.data;
        if (!cx_line_next(&rest, &line))
            return bad_note(err, note, at, "the last line does not end");
        if (++count > CX_NOTE_SIGNATURES_MAX)
            return bad_note(err, note, at, "more than 100 signatures");
        CX_TRY(read_signature(note, line, &signature, err));
        if (visit != NULL)
            CX_TRY(visit(arg, &signature, err));
    }
    return CX_SUCCESS;
}

cx_status cx_checkpoint_parse(cx_bytes note, cx_checkpoint *out, cx_bytes *out_text, cx_err *err)
{
    cx_checkpoint checkpoint;
    cx_bytes text;
    cx_str rest;
    CX_TRY(read_text(note, &checkpoint, &text, &rest, err));
    CX_TRY(read_signatures(note, rest, NULL, NULL, err));
    *out = checkpoint;
    if (out_text != NULL)
        *out_text = text;
    return CX_SUCCESS;
}

/* --- checking -------------------------------------------------------------------------------- */

typedef struct note_checker {
    const cx_note_check *check;
    const cx_alloc *alloc;
    cx_bytes text;
    uint64_t good; /* bit i: keys[i] signed */
    size_t unknown;
    cx_finding *out;
} note_checker;

static cx_status signature_holds(note_checker *c, const cx_vkey *key, const signature_line *line,
                                 bool *out_good, cx_err *err)
{
    cx_signature signature;
    bool cosigned = key->algorithm == CX_VKEY_COSIGNATURE;
    size_t skip = cosigned ? 12 : 4;
    *out_good = false;
    if (line->size != skip + sizeof signature.bytes)
        return CX_SUCCESS;
    memcpy(signature.bytes, line->bytes + skip, sizeof signature.bytes);
    if (!cosigned) {
        *out_good = cx_ed25519_verify(&key->key, c->text, &signature);
        return CX_SUCCESS;
    }
    cx_buf message;
    uint64_t time_s = 0;
    for (size_t i = 4; i < 12; i++)
        time_s = time_s << 8 | line->bytes[i];
    cx_buf_init(&message, c->alloc);
    cosigned_text(c->text, time_s, &message);
    cx_status status = cx_buf_check(&message, err);
    if (!cx_failed(status))
        *out_good = cx_ed25519_verify(&key->key, cx_buf_bytes(&message), &signature);
    cx_buf_done(&message);
    return status;
}

static cx_status check_line(void *arg, const signature_line *line, cx_err *err)
{
    note_checker *c = arg;
    for (size_t i = 0; i < c->check->key_count; i++) {
        const cx_vkey *key = &c->check->keys[i];
        bool good;
        if (!cx_str_eq(key->name, line->name) || memcmp(key->key_id, line->bytes, 4) != 0)
            continue;
        CX_TRY(signature_holds(c, key, line, &good, err));
        if (good)
            c->good |= UINT64_C(1) << i;
        else if (c->out->verdict == CX_HOLDS)
            cx_finding_set(c->out, CX_BROKEN, "SignatureInvalid", CX_FINDING_WHOLE,
                           "the signature of %.*s does not hold", (int)line->name.size,
                           line->name.data);
        return CX_SUCCESS;
    }
    c->unknown++;
    return CX_SUCCESS;
}

static bool counted_already(const note_checker *c, size_t at)
{
    const cx_vkey *keys = c->check->keys;
    for (size_t i = 0; i < at; i++)
        if ((c->good >> i & 1) != 0 && keys[i].algorithm == keys[at].algorithm &&
            memcmp(keys[i].key.bytes, keys[at].key.bytes, sizeof keys[i].key.bytes) == 0)
            return true;
    return false;
}

static void count_signatures(const note_checker *c, cx_note_result *result)
{
    for (size_t i = 0; i < c->check->key_count; i++) {
        const cx_vkey *key = &c->check->keys[i];
        if ((c->good >> i & 1) == 0 || counted_already(c, i))
            continue;
        if (key->algorithm == CX_VKEY_COSIGNATURE)
            result->cosigned++;
        else if (cx_str_eq(key->name, result->checkpoint.origin))
            result->signed_by_origin++;
    }
}

cx_status cx_note_verify(cx_bytes note, const cx_note_check *check, const cx_alloc *alloc,
                         cx_note_result *out, cx_finding *out_finding, cx_err *err)
{
    note_checker c = {.check = check, .alloc = alloc, .out = out_finding};
    cx_note_result result = {0};
    cx_finding bad;
    cx_err found;
    cx_str rest;
    if (check->key_count > CX_NOTE_KEYS_MAX)
        return cx_fail(err, CX_E_LIMIT, "found %zu keys, expected at most %d", check->key_count,
                       CX_NOTE_KEYS_MAX);
    cx_finding_init(out_finding);
    cx_status status = read_text(note, &result.checkpoint, &c.text, &rest, &found);
    if (!cx_failed(status))
        status = read_signatures(note, rest, check_line, &c, &found);
    cx_finding_init(&bad);
    CX_TRY(cx_finding_from(status, &found, "BadNote", &bad, err));
    if (bad.verdict != CX_HOLDS) { /* what is no note has no signatures to speak of */
        *out_finding = bad;
        return CX_SUCCESS;
    }
    count_signatures(&c, &result);
    result.unknown = c.unknown;
    if (out_finding->verdict == CX_HOLDS &&
        (result.signed_by_origin == 0 || result.cosigned < check->cosigners_required))
        cx_finding_set(out_finding, CX_BROKEN, "NotSigned", CX_FINDING_WHOLE,
                       "found %zu good signatures of the origin and %zu cosignatures by keys that "
                       "were given, expected 1 and %zu",
                       result.signed_by_origin, result.cosigned, check->cosigners_required);
    *out = result;
    return CX_SUCCESS;
}

/* --- notes of any text ------------------------------------------------------------------------ */

cx_str cx_note_first_signer(cx_str signatures)
{
    cx_str line, rest = signatures;
    cx_err ignored;
    signature_line first;
    if (!cx_line_next(&rest, &line) ||
        cx_failed(read_signature(cx_str_bytes(signatures), line, &first, &ignored)))
        return cx_str_from(signatures.data, 0);
    return first.name;
}

cx_status cx_note_check_signatures(cx_bytes text, cx_str signatures, const cx_note_check *check,
                                   const cx_alloc *alloc, size_t *out_good, size_t *out_unknown,
                                   cx_finding *out_finding, cx_err *err)
{
    note_checker c = {.check = check, .alloc = alloc, .text = text, .out = out_finding};
    cx_finding bad;
    cx_err found;
    *out_good = 0;
    cx_finding_init(out_finding);
    cx_finding_init(&bad);
    cx_status status =
        read_signatures(cx_str_bytes(signatures), signatures, check_line, &c, &found);
    CX_TRY(cx_finding_from(status, &found, "BadNote", &bad, err));
    *out_unknown = c.unknown;
    if (bad.verdict != CX_HOLDS)
        *out_finding = bad;
    if (out_finding->verdict != CX_HOLDS)
        return CX_SUCCESS;
    for (size_t i = 0; i < check->key_count; i++)
        *out_good += (c.good >> i & 1) != 0 && !counted_already(&c, i);
    if (check->key_count != 0 && *out_good == 0)
        cx_finding_set(out_finding, CX_BROKEN, "NotSigned", CX_FINDING_WHOLE,
                       "none of the keys given has signed it");
    return CX_SUCCESS;
}
