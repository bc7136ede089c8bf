/*
 * action_set.c - names, roots and proofs of the sets of what runs and sessions did.
 *
 * list     {0: 1, 1: [{0: name, 1: count, 2: [place...] (o)}...]}
 * set      {0: 1, 1: subject, 2: actor, 3: upto, 4: names, 5: root, 6: calls (o), 7: opaque (o),
 *           8: relative (o), 9: unread (o)}
 * proof    {0: 1, 1: "cortex.never-proof", 2: name, 3: [sibling...], 4: other key (o),
 *           5: inclusion, 6: checkpoint (o)}
 *
 *   N1  Names that mean the same file, tool or host have one normal form, on the side that records
 *       and on the side that asks.  Where a form cannot tell two files apart, both are in the set:
 *       then nothing is proven, but nothing false either.
 */
#include "proof/action_set.h"

#include "base/api.h"
#include "proof/codec.h"
#include "proof/entry.h"
#include "proof/proof_internal.h"

enum { ACTOR_MAX = 256 };

/* --- names (N1) ------------------------------------------------------------------------------- */

static const char *const kinds[] = {"tool:", "host:", "file:", "read:", "write:"};
enum { KIND_TOOL, KIND_HOST, KIND_FILE, KIND_READ, KIND_WRITE, KIND_COUNT };

/* KIND_COUNT when it is none; *out_value is what follows. */
static unsigned kind_of(cx_str name, cx_str *out_value)
{
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        size_t size = strlen(kinds[i]);
        if (name.size >= size && memcmp(name.data, kinds[i], size) == 0) {
            *out_value = cx_str_from(name.data + size, name.size - size);
            return i;
        }
    }
    *out_value = name;
    return KIND_COUNT;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static cx_status fail_name(cx_err *err, cx_str name, const char *expected)
{
    int shown = (int)(name.size > 80 ? 80 : name.size);
    return cx_fail(err, CX_E_USAGE, "'%.*s' names no action: expected %s", shown, name.data,
                   expected);
}

static bool has_control(cx_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return true;
    return false;
}

/* Components of a path, one after another. */
typedef struct parts {
    cx_str items[CX_ACTION_PARTS_MAX];
    size_t count;
    bool absolute, too_many;
} parts;

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static void split_path(cx_str path, parts *out)
{
    *out = (parts){.absolute = path.size != 0 && is_separator(path.data[0])};
    for (size_t i = 0; i < path.size;) {
        size_t end = i;
        while (end < path.size && !is_separator(path.data[end]))
            end++;
        cx_str part = cx_str_from(path.data + i, end - i);
        i = end + 1;
        if (part.size == 0 || cx_str_is(part, "."))
            continue;
        if (cx_str_is(part, "..")) {
            out->count -= out->count != 0;
            continue;
        }
        out->too_many = out->too_many || out->count == CX_ACTION_PARTS_MAX;
        if (!out->too_many)
            out->items[out->count++] = part;
    }
}

static cx_status add_path(cx_str name, cx_str value, cx_buf *out, cx_err *err)
{
    parts path;
    if (cx_str_starts(value, CX_STR("file://")))
        value = cx_str_from(value.data + 7, value.size - 7);
    split_path(value, &path);
    if (path.count == 0)
        return fail_name(err, name, "the path of a file");
    if (path.too_many)
        return fail_name(err, name, "a path of at most 64 components");
    for (size_t i = 0; i < path.count; i++) {
        if (i != 0 || path.absolute)
            cx_buf_add_byte(out, '/');
        for (size_t j = 0; j < path.items[i].size; j++)
            cx_buf_add_byte(out, (uint8_t)lower(path.items[i].data[j]));
    }
    return CX_SUCCESS;
}

static bool is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == ':' || (uint8_t)c >= 0x80;
}

static cx_status add_host(cx_str name, cx_str host, cx_buf *out, cx_err *err)
{
    if (host.size > 1 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        host = cx_str_from(host.data + 1, host.size - 2);
    while (host.size != 0 && host.data[host.size - 1] == '.')
        host.size--;
    bool good = host.size != 0;
    size_t colons = 0;
    for (size_t i = 0; i < host.size && good; i++) {
        good = is_host_byte(host.data[i]);
        colons += host.data[i] == ':';
    }
    if (!good || colons == 1) /* two and more: an IPv6 address */
        return fail_name(err, name, "the name or address of a host, without scheme, port and path");
    for (size_t i = 0; i < host.size; i++)
        cx_buf_add_byte(out, (uint8_t)lower(host.data[i]));
    return CX_SUCCESS;
}

cx_status cx_action_name_normal(cx_str name, cx_buf *out, cx_err *err)
{
    cx_str value;
    size_t before = out->size;
    unsigned kind = kind_of(name, &value);
    if (kind == KIND_COUNT)
        return fail_name(err, name, "tool:NAME, file:PATH, read:PATH, write:PATH or host:NAME");
    if (name.size > CX_ACTION_NAME_MAX)
        return fail_name(err, name, "at most 4096 bytes");
    if (value.size == 0 || has_control(value) || !cx_utf8_valid(value))
        return fail_name(err, name, "a name in UTF-8 without control characters");
    cx_buf_add_z(out, kinds[kind]);
    cx_status status = CX_SUCCESS;
    if (kind == KIND_TOOL)
        for (size_t i = 0; i < value.size; i++)
            cx_buf_add_byte(out, (uint8_t)lower(value.data[i]));
    else if (kind == KIND_HOST)
        status = add_host(name, value, out, err);
    else
        status = add_path(name, value, out, err);
    if (!cx_failed(status))
        status = cx_buf_check(out, err);
    if (cx_failed(status))
        out->size = before;
    return status;
}

cx_status cx_action_subject_normal(cx_str text, cx_buf *out, cx_err *err)
{
    static const char *const words[] = {"run", "session"};
    cx_str rest = text;
    if (rest.size != 0 && rest.data[0] == '@')
        rest = cx_str_from(rest.data + 1, rest.size - 1);
    for (size_t i = 0; i < CX_COUNT_OF(words); i++) {
        size_t size = strlen(words[i]);
        if (rest.size < size + 2 || memcmp(rest.data, words[i], size) != 0 ||
            (rest.data[size] != ':' && rest.data[size] != '/'))
            continue;
        if (rest.size > CX_ACTION_SUBJECT_MAX || has_control(rest) || !cx_utf8_valid(rest))
            break;
        cx_buf_add_z(out, words[i]);
        cx_buf_add_byte(out, '/');
        cx_buf_add_str(out, cx_str_from(rest.data + size + 1, rest.size - size - 1));
        return cx_buf_check(out, err);
    }
    int shown = (int)(text.size > 80 ? 80 : text.size);
    return cx_fail(err, CX_E_USAGE,
                   "'%.*s' names no run or session: expected run:ID or @session/ID", shown,
                   text.data);
}

bool cx_action_name_is_absolute(cx_str name)
{
    cx_str value;
    return kind_of(name, &value) >= KIND_FILE && value.size != 0 && value.data[0] == '/';
}

cx_digest cx_action_key(cx_str name)
{
    static const char domain[] = "cortex.action.v1";
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, name.data, name.size);
    return cx_sha256_end(&hash);
}

/* --- the list --------------------------------------------------------------------------------- */

void cx_action_list_encode(const cx_action_item *items, size_t count, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_array(out, count);
    for (size_t i = 0; i < count; i++) {
        cx_cbor_fields item;
        cx_cbor_fields_begin(&item, out);
        cx_codec_text(&item, 0, items[i].name);
        cx_codec_uint(&item, 1, items[i].count);
        cx_codec_texts_o(&item, 2, items[i].places, items[i].place_count);
        cx_cbor_fields_end(&item);
    }
    cx_cbor_fields_end(&fields);
}

static void read_item(cx_decoder *decoder, cx_action_item *out)
{
    cx_cbor_members outer = decoder->members;
    *out = (cx_action_item){.count = 0};
    decoder->members = cx_cbor_read_members(&decoder->reader);
    while (cx_decoder_next(decoder)) {
        switch (decoder->members.key) {
        case 0: out->name = cx_decode_text_max(decoder, CX_ACTION_NAME_MAX); break;
        case 1: out->count = cx_cbor_read_uint(&decoder->reader); break;
        case 2:
            out->places = cx_decode_texts(decoder, CX_ACTION_PLACES_MAX, CX_ACTION_PLACE_MAX, true,
                                          &out->place_count);
            break;
        default: cx_cbor_reject_member(&decoder->reader, &decoder->members);
        }
    }
    cx_decoder_end_inner(decoder, &outer, 3);
}

cx_status cx_action_list_decode(cx_bytes bytes, cx_arena *arena, const cx_action_item **out,
                                size_t *out_count, cx_err *err)
{
    cx_decoder decoder;
    cx_action_item *items = NULL;
    size_t count = 0;
    cx_decoder_begin(&decoder, bytes, "action list", arena);
    while (cx_decoder_next(&decoder)) {
        switch (decoder.members.key) {
        case 0: cx_decode_schema(&decoder, 1); break;
        case 1:
            count = (size_t)cx_cbor_read_array(&decoder.reader, CX_ACTION_ITEMS_MAX);
            items = cx_decode_allocate(&decoder, count + 1, sizeof *items);
            for (size_t i = 0; i < count && items != NULL && cx_cbor_ok(&decoder.reader); i++)
                read_item(&decoder, &items[i]);
            break;
        default: cx_cbor_reject_member(&decoder.reader, &decoder.members);
        }
    }
    CX_TRY(cx_decoder_end(&decoder, 3, err));
    *out = items;
    *out_count = count;
    return CX_SUCCESS;
}

/* --- the tree --------------------------------------------------------------------------------- */

typedef struct cx_key_list {
    const cx_alloc *alloc;
    cx_buf name;
    CX_VEC(cx_smt_pair) pairs;
} cx_key_list;

static cx_status add_key(cx_key_list *list, unsigned kind, cx_str value, cx_err *err)
{
    cx_smt_pair *pair = cx_vec_push(&list->pairs, list->alloc);
    cx_buf_clear(&list->name);
    cx_buf_add_z(&list->name, kinds[kind]);
    cx_buf_add_str(&list->name, value);
    if (pair == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_buf_check(&list->name, err));
    pair->key = pair->value = cx_action_key(cx_buf_str(&list->name));
    return CX_SUCCESS;
}

/* Whether an end of a path begins at this byte: the path itself, or one of its components. */
static bool begins_end(cx_str path, size_t at)
{
    return at == 0 || path.data[at - 1] == '/';
}

static cx_status add_item_keys(cx_key_list *list, const cx_action_item *item, cx_err *err)
{
    cx_str value;
    unsigned kind = kind_of(item->name, &value);
    if (kind != KIND_READ && kind != KIND_WRITE)
        return kind >= KIND_FILE
                   ? cx_fail_at(err, CX_E_FORMAT, "NonCanonical", CX_NO_OFFSET,
                                "an action list has an item that is no tool, host, read or write")
                   : add_key(list, kind, value, err);
    for (size_t i = 0; i < value.size; i++) {
        cx_str end = cx_str_from(value.data + i, value.size - i);
        if (!begins_end(value, i))
            continue;
        CX_TRY(add_key(list, KIND_FILE, end, err));
        CX_TRY(add_key(list, kind, end, err));
    }
    return CX_SUCCESS;
}

cx_status cx_action_tree_open(const cx_action_item *items, size_t count, const cx_alloc *alloc,
                              cx_smt **out, cx_err *err)
{
    cx_key_list list = {.alloc = alloc};
    cx_smt *tree = NULL;
    cx_buf_init(&list.name, alloc);
    cx_status status = cx_smt_open(CX_SCHEME_CORTEX_1, alloc, &tree, err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = add_item_keys(&list, &items[i], err);
    if (!cx_failed(status) && list.pairs.count != 0)
        status = cx_smt_put_many(tree, list.pairs.items, list.pairs.count, err);
    cx_vec_done(&list.pairs, alloc);
    cx_buf_done(&list.name);
    if (cx_failed(status))
        cx_smt_close(tree);
    else
        *out = tree;
    return status;
}

bool cx_action_item_covers(const cx_action_item *item, cx_str name)
{
    cx_str have, asked;
    unsigned kind = kind_of(item->name, &have), wanted = kind_of(name, &asked);
    bool is_path = kind == KIND_READ || kind == KIND_WRITE;
    if (kind != wanted && !(is_path && wanted == KIND_FILE))
        return false;
    return is_path ? cx_str_ends(have, asked) && begins_end(have, have.size - asked.size)
                   : cx_str_eq(have, asked);
}

/* --- the set ---------------------------------------------------------------------------------- */

void cx_action_set_encode(const cx_action_set *set, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    cx_codec_text(&fields, 1, set->subject);
    cx_codec_text(&fields, 2, set->actor);
    cx_codec_uint(&fields, 3, set->upto);
    cx_codec_uint(&fields, 4, set->names);
    cx_codec_digest(&fields, 5, &set->root);
    cx_codec_uint_o(&fields, 6, set->calls);
    cx_codec_uint_o(&fields, 7, set->opaque);
    cx_codec_uint_o(&fields, 8, set->relative);
    cx_codec_uint_o(&fields, 9, set->unread);
    cx_cbor_fields_end(&fields);
}

cx_status cx_action_set_decode(cx_bytes payload, cx_action_set *out, cx_err *err)
{
    cx_decoder decoder;
    cx_action_set set = {.upto = 0};
    cx_decoder_begin(&decoder, payload, "action set", NULL);
    while (cx_decoder_next(&decoder)) {
        switch (decoder.members.key) {
        case 0: cx_decode_schema(&decoder, 1); break;
        case 1: set.subject = cx_decode_text_max(&decoder, CX_ACTION_SUBJECT_MAX); break;
        case 2: set.actor = cx_decode_text_max(&decoder, ACTOR_MAX); break;
        case 3: set.upto = cx_cbor_read_uint(&decoder.reader); break;
        case 4: set.names = cx_cbor_read_uint(&decoder.reader); break;
        case 5: set.root = cx_cbor_read_digest(&decoder.reader); break;
        case 6: set.calls = cx_decode_uint_o(&decoder); break;
        case 7: set.opaque = cx_decode_uint_o(&decoder); break;
        case 8: set.relative = cx_decode_uint_o(&decoder); break;
        case 9: set.unread = cx_decode_uint_o(&decoder); break;
        default: cx_cbor_reject_member(&decoder.reader, &decoder.members);
        }
    }
    CX_TRY(cx_decoder_end(&decoder, 0x3f, err));
    *out = set;
    return CX_SUCCESS;
}

/* --- proofs ----------------------------------------------------------------------------------- */

void cx_never_proof_encode(const cx_never_proof *proof, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 0, 1);
    cx_codec_text(&fields, 1, CX_STR(CX_NEVER_PROOF_MAGIC));
    cx_codec_text(&fields, 2, proof->name);
    cx_cbor_field(&fields, 3);
    cx_cbor_array(out, proof->sibling_count);
    for (size_t i = 0; i < proof->sibling_count; i++)
        cx_cbor_digest(out, &proof->siblings[i]);
    if (proof->has_other)
        cx_codec_digest(&fields, 4, &proof->other);
    cx_cbor_field(&fields, 5);
    cx_cbor_bytes(out, proof->inclusion);
    cx_codec_bytes_o(&fields, 6, proof->checkpoint);
    cx_cbor_fields_end(&fields);
}

static void read_never_member(cx_decoder *decoder, cx_digest *siblings, cx_never_proof *out)
{
    cx_cbor_reader *reader = &decoder->reader;
    switch (decoder->members.key) {
    case 0: cx_decode_schema(decoder, 1); break;
    case 1:
        if (!cx_str_is(cx_cbor_read_text(reader), CX_NEVER_PROOF_MAGIC) && cx_cbor_ok(reader))
            cx_cbor_reject(reader, decoder->members.key_offset,
                           "expected \"" CX_NEVER_PROOF_MAGIC "\"");
        break;
    case 2: out->name = cx_decode_text_max(decoder, CX_ACTION_NAME_MAX); break;
    case 3:
        out->sibling_count = (size_t)cx_cbor_read_array(reader, CX_PROOF_SIBLINGS_MAX);
        for (size_t i = 0; i < out->sibling_count && cx_cbor_ok(reader); i++)
            siblings[i] = cx_cbor_read_digest(reader);
        break;
    case 4:
        out->has_other = true;
        out->other = cx_cbor_read_digest(reader);
        break;
    case 5: out->inclusion = cx_cbor_read_bytes(reader); break;
    case 6: out->checkpoint = cx_decode_bytes_o(decoder); break;
    default: cx_cbor_reject_member(reader, &decoder->members);
    }
}

cx_status cx_never_proof_decode(cx_bytes bytes, cx_arena *arena, cx_never_proof *out, cx_err *err)
{
    cx_decoder decoder;
    cx_digest *siblings = CX_ARENA_ARRAY(arena, cx_digest, CX_PROOF_SIBLINGS_MAX);
    if (siblings == NULL)
        return cx_fail_nomem(err);
    cx_never_proof proof = {.siblings = siblings};
    cx_decoder_begin(&decoder, bytes, "proof of absence", arena);
    while (cx_decoder_next(&decoder))
        read_never_member(&decoder, siblings, &proof);
    CX_TRY(cx_decoder_end(&decoder, 0x2f, err));
    *out = proof;
    return CX_SUCCESS;
}

/* --- verifying -------------------------------------------------------------------------------- */

static cx_status check_normal(cx_str name, cx_arena *arena, cx_finding *out, cx_err *err)
{
    cx_buf normal;
    cx_err reason = {0};
    cx_buf_init(&normal, arena->alloc);
    cx_status status = cx_action_name_normal(name, &normal, &reason);
    bool same = !cx_failed(status) && cx_str_eq(cx_buf_str(&normal), name);
    cx_buf_done(&normal);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!same)
        cx_finding_set(out, CX_BROKEN, "NonCanonical", CX_FINDING_WHOLE,
                       "the name asked about is not in its normal form");
    return CX_SUCCESS;
}

/* A session is in the journal of sessions, a run in one of runs: nothing else is written there. */
static bool belongs(const cx_action_set *set)
{
    if (cx_str_starts(set->subject, CX_STR("session/")))
        return cx_str_is(set->actor, "sessions");
    return cx_str_starts(set->subject, CX_STR("run/")) && cx_str_starts(set->actor, CX_STR("run:"));
}

static cx_status read_set(const cx_inclusion *inclusion, cx_action_set *out, cx_finding *found,
                          cx_err *err)
{
    cx_entry entry;
    cx_err reason = {0};
    cx_status status = cx_entry_decode(inclusion->entry, &entry, &reason);
    CX_TRY(cx_finding_from(status, &reason, "NonCanonical", found, err));
    if (found->verdict != CX_HOLDS)
        return CX_SUCCESS;
    if (!cx_str_is(entry.kind, CX_ACTION_SET_KIND) || entry.committed) {
        cx_finding_set(found, CX_BROKEN, "NotActionSet", CX_FINDING_WHOLE,
                       "the journal's entry records no action set");
        return CX_SUCCESS;
    }
    status = cx_action_set_decode(entry.payload, out, &reason);
    CX_TRY(cx_finding_from(status, &reason, "NonCanonical", found, err));
    if (found->verdict == CX_HOLDS && (!belongs(out) || out->upto > entry.seq))
        cx_finding_set(found, CX_BROKEN, "NotActionSet", CX_FINDING_WHOLE,
                       "the action set is of a subject or of entries that its journal cannot have");
    return CX_SUCCESS;
}

static bool bit_at(const cx_digest *key, size_t i)
{
    return (key->bytes[i / 8] >> (7 - i % 8) & 1) != 0;
}

static bool shares_prefix(const cx_digest *a, const cx_digest *b, size_t bits)
{
    for (size_t i = 0; i < bits; i++)
        if (bit_at(a, i) != bit_at(b, i))
            return false;
    return true;
}

static void check_absence(const cx_never_proof *proof, const cx_action_set *set, cx_finding *out)
{
    cx_smt_path path = {.key = cx_action_key(proof->name),
                        .has_other = proof->has_other,
                        .other_key = proof->other,
                        .other_value = proof->other,
                        .sibling_count = proof->sibling_count,
                        .siblings = proof->siblings};
    if (proof->has_other && (cx_digest_eq(&proof->other, &path.key) ||
                             !shares_prefix(&proof->other, &path.key, proof->sibling_count))) {
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "the other leaf is not one that can be where the name's would be");
        return;
    }
    cx_digest root = cx_smt_fold(CX_SCHEME_CORTEX_1, &path);
    if (!cx_digest_eq(&root, &set->root))
        cx_finding_set(out, CX_BROKEN, "ActionRootMismatch", CX_FINDING_WHOLE,
                       "the path does not lead to the root of the action set");
}

cx_status cx_never_proof_verify(const cx_never_proof *proof, const cx_journal_point *journal,
                                cx_arena *arena, cx_action_set *out_set,
                                cx_journal_point *out_journal, cx_finding *out, cx_err *err)
{
    cx_inclusion inclusion = {.tree_size = 0};
    cx_finding_init(out);
    CX_TRY(check_normal(proof->name, arena, out, err));
    if (out->verdict == CX_HOLDS)
        CX_TRY(cx_inclusion_leads_to(proof->inclusion, NULL, arena, &inclusion, out_journal, out,
                                     err));
    if (out->verdict == CX_HOLDS)
        CX_TRY(read_set(&inclusion, out_set, out, err));
    if (out->verdict == CX_HOLDS)
        check_absence(proof, out_set, out);
    if (out->verdict == CX_HOLDS && journal != NULL)
        CX_TRY(cx_inclusion_verify(proof->inclusion, NULL, journal, arena, out, err));
    return CX_SUCCESS;
}
