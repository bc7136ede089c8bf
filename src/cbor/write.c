/*
 * write.c - deterministic CBOR writer (RFC 8949 §4.2.1).
 */
#include "base/api.h"
#include "cbor/cbor.h"

/* The head of an item: major type and argument, in the shortest of five forms. */
static void add_head(cx_buf *out, unsigned major, uint64_t argument)
{
    uint8_t bytes[9];
    unsigned width = argument < 24            ? 0
                     : argument <= UINT8_MAX  ? 1
                     : argument <= UINT16_MAX ? 2
                     : argument <= UINT32_MAX ? 4
                                              : 8;
    unsigned info = width == 0   ? (unsigned)argument
                    : width == 1 ? 24u
                    : width == 2 ? 25u
                    : width == 4 ? 26u
                                 : 27u;
    bytes[0] = (uint8_t)(major << 5 | info);
    for (unsigned i = 0; i < width; i++)
        bytes[1 + i] = (uint8_t)(argument >> (8 * (width - 1 - i)));
    cx_buf_add(out, bytes, 1 + width);
}

void cx_cbor_uint(cx_buf *out, uint64_t value)
{
    add_head(out, CX_CBOR_UINT, value);
}

void cx_cbor_int(cx_buf *out, int64_t value)
{
    if (value >= 0)
        add_head(out, CX_CBOR_UINT, (uint64_t)value);
    else
        add_head(out, CX_CBOR_NEGATIVE, (uint64_t)(-1 - value));
}

void cx_cbor_bytes(cx_buf *out, cx_bytes bytes)
{
    add_head(out, CX_CBOR_BYTES, bytes.size);
    cx_buf_add(out, bytes.data, bytes.size);
}

void cx_cbor_digest(cx_buf *out, const cx_digest *digest)
{
    cx_cbor_bytes(out, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

void cx_cbor_text(cx_buf *out, cx_str text)
{
    CX_DEBUG_ASSERT(cx_utf8_valid(text));
    add_head(out, CX_CBOR_TEXT, text.size);
    cx_buf_add_str(out, text);
}

void cx_cbor_array(cx_buf *out, uint64_t count)
{
    add_head(out, CX_CBOR_ARRAY, count);
}

void cx_cbor_map(cx_buf *out, uint64_t count)
{
    add_head(out, CX_CBOR_MAP, count);
}

void cx_cbor_tag(cx_buf *out, uint64_t tag)
{
    add_head(out, CX_CBOR_TAG, tag);
}

void cx_cbor_bool(cx_buf *out, bool value)
{
    cx_buf_add_byte(out, value ? 0xf5 : 0xf4);
}

void cx_cbor_null(cx_buf *out)
{
    cx_buf_add_byte(out, 0xf6);
}

/* --- floats ---------------------------------------------------------------------------------- */

static void add_float(cx_buf *out, uint8_t first, uint64_t bits, unsigned width)
{
    uint8_t bytes[9] = {first};
    for (unsigned i = 0; i < width; i++)
        bytes[1 + i] = (uint8_t)(bits >> (8 * (width - 1 - i)));
    cx_buf_add(out, bytes, 1 + width);
}

/*
 * The half float equal to the float of these bits, if there is one.  Exponents -14..15 are normal
 * halves with 10 bits after the point; -24..-15 are subnormal halves, whose last bit is 2^-24.
 */
static bool half_of(uint32_t bits, uint16_t *out)
{
    uint32_t sign = bits >> 16 & 0x8000u, mantissa = bits & 0x7fffffu;
    int exponent = (int)(bits >> 23 & 0xff) - 127;
    if (exponent == 128) { /* infinity; NaN is handled before */
        *out = (uint16_t)(sign | 0x7c00u);
        return mantissa == 0;
    }
    if ((bits & 0x7fffffffu) == 0) {
        *out = (uint16_t)sign;
        return true;
    }
    if (exponent > 15 || exponent < -24)
        return false;
    if (exponent >= -14) {
        if ((mantissa & 0x1fffu) != 0)
            return false;
        *out = (uint16_t)(sign | (uint32_t)(exponent + 15) << 10 | mantissa >> 13);
        return true;
    }
    uint32_t whole = mantissa | 0x800000u; /* value = whole * 2^(exponent - 23) */
    unsigned shift = (unsigned)(-exponent - 1);
    if ((whole & ((UINT32_C(1) << shift) - 1)) != 0)
        return false;
    *out = (uint16_t)(sign | whole >> shift);
    return true;
}

void cx_cbor_f32(cx_buf *out, float value)
{
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        add_float(out, 0xf9, 0x7e00, 2);
    else if (half_of(bits, &half))
        add_float(out, 0xf9, half, 2);
    else
        add_float(out, 0xfa, bits, 4);
}

void cx_cbor_f64(cx_buf *out, double value)
{
    uint64_t bits;
    if (value != value || (double)(float)value == value) {
        cx_cbor_f32(out, (float)value);
        return;
    }
    memcpy(&bits, &value, sizeof bits);
    add_float(out, 0xfb, bits, 8);
}

/* --- maps with small keys -------------------------------------------------------------------- */

void cx_cbor_fields_begin(cx_cbor_fields *fields, cx_buf *out)
{
    *fields = (cx_cbor_fields){.out = out, .header_offset = out->size};
    cx_buf_add_byte(out, 0xa0);
}

void cx_cbor_field(cx_cbor_fields *fields, uint8_t key)
{
    CX_ASSERT(key >= fields->next_key && key < 24 && fields->count < 23);
    fields->next_key = (uint8_t)(key + 1);
    fields->count++;
    cx_cbor_uint(fields->out, key);
}

void cx_cbor_fields_end(cx_cbor_fields *fields)
{
    if (!fields->out->failed)
        fields->out->data[fields->header_offset] = (uint8_t)(0xa0 | fields->count);
}
