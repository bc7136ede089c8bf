/*
 * hex.c - hex, base64 and base64url (RFC 4648), by tables.
 *
 * Decoders accept exactly what an encoder writes, so that two texts never mean the same bytes: no
 * white space, no other characters, no bits after the last byte (RFC 4648 §3.5).  They look at
 * the whole text before they write the first byte.
 */
#include "base/hex.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#define HEX_BLOCKS 1
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define HEX_BLOCKS 1
#endif

/* In a decoding table, a character's value has one of these bits for each alphabet that knows it.
 */
enum { FIRST_ALPHABET = 0x40, SECOND_ALPHABET = 0x80 };

static bool all_known(const uint8_t table[256], cx_str text, unsigned alphabet)
{
    unsigned known = alphabet;
    for (size_t i = 0; i < text.size; i++)
        known &= table[(uint8_t)text.data[i]];
    return known != 0;
}

/* --- hex ----------------------------------------------------------------------------------- */

/* clang-format off */
#define SIXTEEN(high)                                                       \
    high "0" high "1" high "2" high "3" high "4" high "5" high "6" high "7" \
    high "8" high "9" high "a" high "b" high "c" high "d" high "e" high "f"

/* Two digits for each byte value. */
static const char hex_pairs[512 + 1] =
    SIXTEEN("0") SIXTEEN("1") SIXTEEN("2") SIXTEEN("3")
    SIXTEEN("4") SIXTEEN("5") SIXTEEN("6") SIXTEEN("7")
    SIXTEEN("8") SIXTEEN("9") SIXTEEN("a") SIXTEEN("b")
    SIXTEEN("c") SIXTEEN("d") SIXTEEN("e") SIXTEEN("f");
/* clang-format on */

void cx_hex_encode(cx_bytes bytes, char *out)
{
    for (size_t i = 0; i < bytes.size; i++)
        memcpy(out + 2 * i, hex_pairs + 2 * (size_t)bytes.data[i], 2);
}

void cx_hex_add(cx_buf *out, cx_bytes bytes)
{
    size_t size;
    if (!cx_size_mul(bytes.size, 2, &size)) {
        out->failed = true;
        return;
    }
    uint8_t *room = cx_buf_reserve(out, size);
    if (room == NULL)
        return;
    cx_hex_encode(bytes, (char *)room);
    cx_buf_advance(out, size);
}

enum { HEX_ANY = FIRST_ALPHABET, HEX_LOWER = SECOND_ALPHABET };

/* clang-format off */
static const uint8_t hex_values[256] = {
    ['0'] = 0xc0, ['1'] = 0xc1, ['2'] = 0xc2, ['3'] = 0xc3, ['4'] = 0xc4, ['5'] = 0xc5,
    ['6'] = 0xc6, ['7'] = 0xc7, ['8'] = 0xc8, ['9'] = 0xc9, ['a'] = 0xca, ['b'] = 0xcb,
    ['c'] = 0xcc, ['d'] = 0xcd, ['e'] = 0xce, ['f'] = 0xcf, ['A'] = 0x4a, ['B'] = 0x4b,
    ['C'] = 0x4c, ['D'] = 0x4d, ['E'] = 0x4e, ['F'] = 0x4f,
};
/* clang-format on */

static bool hex_decode(cx_str text, unsigned alphabet, uint8_t *out, size_t size)
{
    /* Odd sizes fail here: integer division would let one digit too many through. */
    if (text.size / 2 != size || text.size % 2 != 0 || !all_known(hex_values, text, alphabet))
        return false;
    for (size_t i = 0; i < size; i++) {
        unsigned high = hex_values[(uint8_t)text.data[2 * i]];
        unsigned low = hex_values[(uint8_t)text.data[2 * i + 1]];
        out[i] = (uint8_t)((high & 15) << 4 | (low & 15));
    }
    return true;
}

#if defined(__SSE2__)
/* Sixteen digits as eight bytes in the low half; *bad collects lanes that are no lower-case digit.
 */
static __m128i hex_pack(const char *digits, __m128i *bad)
{
    const __m128i nine = _mm_set1_epi8(9), five = _mm_set1_epi8(5);
    __m128i text = _mm_loadu_si128((const __m128i *)(const void *)digits);
    __m128i number = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    __m128i letter = _mm_sub_epi8(text, _mm_set1_epi8('a'));
    __m128i is_number = _mm_cmpeq_epi8(_mm_min_epu8(number, nine), number);
    __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, five), letter);
    *bad =
        _mm_or_si128(*bad, _mm_cmpeq_epi8(_mm_or_si128(is_number, is_letter), _mm_setzero_si128()));
    __m128i value = _mm_or_si128(_mm_and_si128(number, is_number),
                                 _mm_and_si128(_mm_add_epi8(letter, _mm_set1_epi8(10)), is_letter));
    /* Each 16-bit lane: first digit below, second above. */
    __m128i high = _mm_slli_epi16(_mm_and_si128(value, _mm_set1_epi16(0xff)), 4);
    return _mm_or_si128(high, _mm_srli_epi16(value, 8));
}

/* The 64 digits of a digest: what the lattice does twice a node. */
static bool hex_decode_64(const char *digits, uint8_t out[32])
{
    __m128i bad = _mm_setzero_si128();
    __m128i first = _mm_packus_epi16(hex_pack(digits, &bad), hex_pack(digits + 16, &bad));
    __m128i second = _mm_packus_epi16(hex_pack(digits + 32, &bad), hex_pack(digits + 48, &bad));
    if (_mm_movemask_epi8(bad) != 0)
        return false;
    _mm_storeu_si128((__m128i *)(void *)out, first);
    _mm_storeu_si128((__m128i *)(void *)(out + 16), second);
    return true;
}
#elif defined(HEX_BLOCKS)
/* The values of sixteen digits; *bad collects bytes that are no lower-case digit. */
static uint8x16_t hex_block_values(uint8x16_t digits, uint8x16_t *bad)
{
    uint8x16_t number = vsubq_u8(digits, vdupq_n_u8('0'));
    uint8x16_t letter = vsubq_u8(digits, vdupq_n_u8('a'));
    uint8x16_t is_number = vcleq_u8(number, vdupq_n_u8(9));
    uint8x16_t is_letter = vcleq_u8(letter, vdupq_n_u8(5));
    *bad = vorrq_u8(*bad, vmvnq_u8(vorrq_u8(is_number, is_letter)));
    return vbslq_u8(is_number, number, vaddq_u8(letter, vdupq_n_u8(10)));
}

/* Thirty-two digits as sixteen bytes: the loads take the first digits and the second ones apart. */
static uint8x16_t hex_pack(const char *digits, uint8x16_t *bad)
{
    uint8x16x2_t text = vld2q_u8((const uint8_t *)digits);
    uint8x16_t high = hex_block_values(text.val[0], bad);
    return vsliq_n_u8(hex_block_values(text.val[1], bad), high, 4);
}

/* The 64 digits of a digest: what the lattice does twice a node. */
static bool hex_decode_64(const char *digits, uint8_t out[32])
{
    uint8x16_t bad = vdupq_n_u8(0);
    uint8x16_t first = hex_pack(digits, &bad), second = hex_pack(digits + 32, &bad);
    if (vmaxvq_u8(bad) != 0)
        return false;
    vst1q_u8(out, first);
    vst1q_u8(out + 16, second);
    return true;
}
#endif

bool cx_hex_decode(cx_str text, uint8_t *out, size_t size)
{
#ifdef HEX_BLOCKS
    if (size == 32 && text.size == 64)
        return hex_decode_64(text.data, out);
#endif
    return hex_decode(text, HEX_LOWER, out, size);
}

bool cx_hex_decode_any(cx_str text, uint8_t *out, size_t size)
{
    return hex_decode(text, HEX_ANY, out, size);
}

/* --- base64 -------------------------------------------------------------------------------- */

static const char base64_digits[2][64 + 1] = {
    [CX_BASE64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [CX_BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

static const unsigned base64_alphabets[2] = {
    [CX_BASE64] = FIRST_ALPHABET,
    [CX_BASE64_URL] = SECOND_ALPHABET,
};

/* clang-format off */
static const uint8_t base64_values[256] = {
    ['A'] = 0xc0, ['B'] = 0xc1, ['C'] = 0xc2, ['D'] = 0xc3, ['E'] = 0xc4, ['F'] = 0xc5,
    ['G'] = 0xc6, ['H'] = 0xc7, ['I'] = 0xc8, ['J'] = 0xc9, ['K'] = 0xca, ['L'] = 0xcb,
    ['M'] = 0xcc, ['N'] = 0xcd, ['O'] = 0xce, ['P'] = 0xcf, ['Q'] = 0xd0, ['R'] = 0xd1,
    ['S'] = 0xd2, ['T'] = 0xd3, ['U'] = 0xd4, ['V'] = 0xd5, ['W'] = 0xd6, ['X'] = 0xd7,
    ['Y'] = 0xd8, ['Z'] = 0xd9, ['a'] = 0xda, ['b'] = 0xdb, ['c'] = 0xdc, ['d'] = 0xdd,
    ['e'] = 0xde, ['f'] = 0xdf, ['g'] = 0xe0, ['h'] = 0xe1, ['i'] = 0xe2, ['j'] = 0xe3,
    ['k'] = 0xe4, ['l'] = 0xe5, ['m'] = 0xe6, ['n'] = 0xe7, ['o'] = 0xe8, ['p'] = 0xe9,
    ['q'] = 0xea, ['r'] = 0xeb, ['s'] = 0xec, ['t'] = 0xed, ['u'] = 0xee, ['v'] = 0xef,
    ['w'] = 0xf0, ['x'] = 0xf1, ['y'] = 0xf2, ['z'] = 0xf3, ['0'] = 0xf4, ['1'] = 0xf5,
    ['2'] = 0xf6, ['3'] = 0xf7, ['4'] = 0xf8, ['5'] = 0xf9, ['6'] = 0xfa, ['7'] = 0xfb,
    ['8'] = 0xfc, ['9'] = 0xfd, ['+'] = 0x7e, ['/'] = 0x7f, ['-'] = 0xbe, ['_'] = 0xbf,
};
/* clang-format on */

/* Four characters for three bytes; `left` is 1..2 for the last, short group. */
static size_t encode_short(const uint8_t *data, size_t left, const char *digits, bool padded,
                           uint8_t *out)
{
    unsigned first = data[0], second = left == 2 ? data[1] : 0;
    out[0] = (uint8_t)digits[first >> 2];
    out[1] = (uint8_t)digits[(first & 3) << 4 | second >> 4];
    if (left == 2)
        out[2] = (uint8_t)digits[(second & 15) << 2];
    size_t size = left + 1;
    while (padded && size < 4)
        out[size++] = '=';
    return size;
}

void cx_base64_add(cx_buf *out, cx_bytes bytes, cx_base64_kind kind)
{
    const char *digits = base64_digits[kind];
    size_t groups = bytes.size / 3, left = bytes.size % 3, room_size;
    if (!cx_size_mul(groups + 1, 4, &room_size)) {
        out->failed = true;
        return;
    }
    uint8_t *room = cx_buf_reserve(out, room_size);
    if (room == NULL)
        return;
    const uint8_t *data = bytes.data;
    for (size_t i = 0; i < groups; i++, data += 3) {
        unsigned group = (unsigned)data[0] << 16 | (unsigned)data[1] << 8 | data[2];
        for (size_t j = 0; j < 4; j++)
            room[4 * i + j] = (uint8_t)digits[group >> (18 - 6 * j) & 63];
    }
    size_t size = 4 * groups;
    if (left != 0)
        size += encode_short(data, left, digits, kind == CX_BASE64, room + size);
    cx_buf_advance(out, size);
}

static unsigned base64_value(cx_str text, size_t at)
{
    return base64_values[(uint8_t)text.data[at]] & 63u;
}

/* `text` without padding: not 1 character after whole groups, and no bits set after the last
 * byte. */
static bool base64_well_formed(cx_str text, unsigned alphabet)
{
    size_t left = text.size % 4;
    if (left == 1 || !all_known(base64_values, text, alphabet))
        return false;
    unsigned unused_bits = left == 2 ? 15 : left == 3 ? 3 : 0;
    return left == 0 || (base64_value(text, text.size - 1) & unused_bits) == 0;
}

static bool base64_decode(cx_str text, unsigned alphabet, cx_buf *out)
{
    if (!base64_well_formed(text, alphabet))
        return false;
    size_t groups = text.size / 4, left = text.size % 4;
    size_t size = 3 * groups + (left == 0 ? 0 : left - 1);
    uint8_t *room = cx_buf_reserve(out, size);
    if (room == NULL)
        return true; /* the text was good; `out` says what happened */
    for (size_t i = 0; i < groups; i++) {
        unsigned group = base64_value(text, 4 * i) << 18 | base64_value(text, 4 * i + 1) << 12 |
                         base64_value(text, 4 * i + 2) << 6 | base64_value(text, 4 * i + 3);
        room[3 * i] = (uint8_t)(group >> 16);
        room[3 * i + 1] = (uint8_t)(group >> 8);
        room[3 * i + 2] = (uint8_t)group;
    }
    if (left >= 2) {
        unsigned second = base64_value(text, 4 * groups + 1);
        room[3 * groups] = (uint8_t)(base64_value(text, 4 * groups) << 2 | second >> 4);
        if (left == 3)
            room[3 * groups + 1] = (uint8_t)(second << 4 | base64_value(text, 4 * groups + 2) >> 2);
    }
    cx_buf_advance(out, size);
    return true;
}

/* Takes the padding off; false when it is not the one that fills the last group. */
static bool strip_padding(cx_str *text)
{
    size_t padding = 0;
    while (padding < 2 && padding < text->size && text->data[text->size - 1 - padding] == '=')
        padding++;
    if (text->size % 4 != 0)
        return false;
    text->size -= padding;
    return true;
}

bool cx_base64_decode(cx_str text, cx_base64_kind kind, cx_buf *out)
{
    if (kind == CX_BASE64 && !strip_padding(&text))
        return false;
    return base64_decode(text, base64_alphabets[kind], out);
}

/* Takes padding off where there is some. */
static bool strip_optional_padding(cx_str *text)
{
    bool padded = text->size != 0 && text->data[text->size - 1] == '=';
    return !padded || strip_padding(text);
}

bool cx_base64_decode_any(cx_str text, cx_buf *out)
{
    return strip_optional_padding(&text) &&
           base64_decode(text, base64_alphabets[CX_BASE64_URL], out);
}

bool cx_base64_decode_either(cx_str text, cx_buf *out)
{
    /* Text of the common characters alone means the same bytes in both. */
    return strip_optional_padding(&text) &&
           (base64_decode(text, base64_alphabets[CX_BASE64_URL], out) ||
            base64_decode(text, base64_alphabets[CX_BASE64], out));
}
