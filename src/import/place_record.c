/*
 * place_record.c - places as they are recorded (docs/formats/sessions.md §3).
 */
#include "import/place.h"

#include "cbor/api.h"

/* What the beginning of a cut line comes to: nothing else of it is kept, as the bytes of the line
 * may be erased. */
static const char *const beginnings[] = {"",  "# aider chat started at ", "#### ", "> ", "```",
                                         "# "};
static const uint8_t tails[] = {'x', ' ', '\t', '\r'};

static uint64_t begin_of(const cx_import_place *p)
{
    const cx_str head = cx_str_from((const char *)p->head, sizeof p->head);
    for (size_t i = 1; i < CX_COUNT_OF(beginnings); i++)
        if (cx_str_starts(head, cx_str_z(beginnings[i])))
            return i;
    return 0;
}

static uint64_t tail_of(const cx_import_place *p)
{
    uint64_t tail = 0;
    for (size_t i = 0; i < CX_IMPORT_LINE_TAIL; i++) {
        uint64_t is = CX_COUNT_OF(tails) - 1;
        while (is != 0 && tails[is] != p->tail[i])
            is--;
        tail = CX_COUNT_OF(tails) * tail + is;
    }
    return tail;
}

static void set_cut(cx_import_place *p, uint64_t begin, uint64_t tail)
{
    memset(p->head, 'x', sizeof p->head);
    memcpy(p->head, beginnings[begin], strlen(beginnings[begin]));
    for (size_t i = CX_IMPORT_LINE_TAIL; i-- > 0; tail /= CX_COUNT_OF(tails))
        p->tail[i] = tails[tail % CX_COUNT_OF(tails)];
}

static void put_uint(cx_cbor_fields *fields, uint8_t key, uint64_t value)
{
    if (value == 0)
        return;
    cx_cbor_field(fields, key);
    cx_cbor_uint(fields->out, value);
}

static void put_true(cx_cbor_fields *fields, uint8_t key, bool value)
{
    if (!value)
        return;
    cx_cbor_field(fields, key);
    cx_cbor_bool(fields->out, true);
}

static void put_time(cx_cbor_fields *fields, uint8_t key, int64_t value)
{
    cx_cbor_field(fields, key);
    cx_cbor_int(fields->out, value);
}

static void encode_reading(const cx_import_reading *r, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    put_uint(&fields, 1, r->kind);
    put_true(&fields, 2, r->fenced);
    put_uint(&fields, 3, r->records);
    put_uint(&fields, 4, r->conversations);
    if (r->has_time)
        put_time(&fields, 5, r->t_ns);
    if (r->has_first)
        put_time(&fields, 6, r->first_ns);
    if (r->has_own)
        put_time(&fields, 7, r->own_ns);
    cx_cbor_fields_end(&fields);
}

void cx_import_place_write(const cx_import_place *place, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    put_uint(&fields, 1, place->lines);
    put_true(&fields, 2, place->own_ends);
    put_true(&fields, 3, place->lost);
    put_uint(&fields, 4, place->text);
    for (uint8_t i = 0; i < CX_COUNT_OF(place->reading); i++) {
        cx_cbor_field(&fields, (uint8_t)(5 + i));
        encode_reading(&place->reading[i], out);
    }
    if (place->cut != 0) {
        put_uint(&fields, 7, place->cut);
        put_true(&fields, 8, place->cut_filled);
        put_uint(&fields, 9, begin_of(place));
        put_uint(&fields, 10, tail_of(place));
    }
    cx_cbor_fields_end(&fields);
}

bool cx_import_place_encode(const cx_import_place *place, cx_buf *out)
{
    if (place->cut != 0 && place->cut <= CX_IMPORT_LINE_HEAD)
        return false;
    cx_import_place_write(place, out);
    return true;
}

/* A number that is left out when it is 0. */
static uint64_t take_uint(cx_cbor_reader *r, const cx_cbor_members *members, uint64_t max)
{
    const uint64_t value = cx_cbor_read_uint_max(r, max);
    if (value == 0)
        cx_cbor_reject_empty(r, members);
    return value;
}

static bool take_true(cx_cbor_reader *r, const cx_cbor_members *members)
{
    const bool value = cx_cbor_read_bool(r);
    if (!value)
        cx_cbor_reject_empty(r, members);
    return value;
}

static void decode_reading(cx_cbor_reader *r, cx_import_reading *out)
{
    cx_cbor_members m = cx_cbor_read_members(r);
    while (cx_cbor_next_member(r, &m))
        switch (m.key) {
        case 1: out->kind = (uint8_t)take_uint(r, &m, CX_IMPORT_BLOCK_KINDS - 1); break;
        case 2: out->fenced = take_true(r, &m); break;
        case 3: out->records = take_uint(r, &m, UINT32_MAX); break;
        case 4: out->conversations = take_uint(r, &m, UINT32_MAX); break;
        case 5:
            out->has_time = true;
            out->t_ns = cx_cbor_read_int(r);
            break;
        case 6:
            out->has_first = true;
            out->first_ns = cx_cbor_read_int(r);
            break;
        case 7:
            out->has_own = true;
            out->own_ns = cx_cbor_read_int(r);
            break;
        default: cx_cbor_reject_member(r, &m);
        }
}

cx_status cx_import_place_decode(cx_bytes bytes, cx_import_place *out, cx_err *err)
{
    uint64_t begin = 0, tail = 0;
    cx_cbor_reader r;
    cx_cbor_begin(&r, bytes, "place in a session");
    *out = (cx_import_place){.lines = 0};
    cx_cbor_members m = cx_cbor_read_members(&r);
    while (cx_cbor_next_member(&r, &m))
        switch (m.key) {
        case 1: out->lines = take_uint(&r, &m, UINT64_MAX); break;
        case 2: out->own_ends = take_true(&r, &m); break;
        case 3: out->lost = take_true(&r, &m); break;
        case 4: out->text = (uint8_t)take_uint(&r, &m, CX_IMPORT_TEXT_PROMPTS); break;
        case 5: decode_reading(&r, &out->reading[0]); break;
        case 6: decode_reading(&r, &out->reading[1]); break;
        case 7: out->cut = take_uint(&r, &m, UINT64_MAX); break;
        case 8: out->cut_filled = take_true(&r, &m); break;
        case 9: begin = take_uint(&r, &m, CX_COUNT_OF(beginnings) - 1); break;
        case 10: tail = take_uint(&r, &m, 63); break;
        default: cx_cbor_reject_member(&r, &m);
        }
    cx_cbor_require(&r, &m, 1u << 5 | 1u << 6);
    CX_TRY(cx_cbor_end(&r, err));
    if (out->cut != 0)
        set_cut(out, begin, tail);
    for (size_t i = 0; i < CX_COUNT_OF(out->reading); i++) {
        const cx_import_reading *reading = &out->reading[i];
        if (reading->conversations > reading->records || reading->records > out->lines)
            return cx_fail_at(err, CX_E_FORMAT, "BadPlace", CX_NO_OFFSET,
                              "found %llu records in %llu lines in a place of a session, expected "
                              "no more than lines",
                              (unsigned long long)reading->records, (unsigned long long)out->lines);
    }
    return CX_SUCCESS;
}
