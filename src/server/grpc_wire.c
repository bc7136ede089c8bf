/*
 * grpc_wire.c - gRPC over HTTP/2 as bytes.
 *
 *     message                length-prefixed: flag (0, 1 = compressed), length u32be, bytes
 *     google.rpc.Status      1 code (varint), 2 message (text), 3 details (google.protobuf.Any)
 *     google.protobuf.Any    1 type_url (text), 2 value (bytes)
 *     google.rpc.RetryInfo   1 retry_delay (Duration: 1 seconds)
 */
#include "server/grpc_wire.h"

#define TEXT_BYTES_MAX 1000

const char *cx_grpc_code_name(unsigned code)
{
    switch (code) {
    case CX_GRPC_OK: return "OK";
    case CX_GRPC_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case CX_GRPC_DEADLINE_EXCEEDED: return "DEADLINE_EXCEEDED";
    case CX_GRPC_PERMISSION_DENIED: return "PERMISSION_DENIED";
    case CX_GRPC_RESOURCE_EXHAUSTED: return "RESOURCE_EXHAUSTED";
    case CX_GRPC_UNIMPLEMENTED: return "UNIMPLEMENTED";
    case CX_GRPC_INTERNAL: return "INTERNAL";
    case CX_GRPC_UNAVAILABLE: return "UNAVAILABLE";
    case CX_GRPC_UNAUTHENTICATED: return "UNAUTHENTICATED";
    default: return NULL;
    }
}

bool cx_grpc_is_content_type(cx_str text)
{
    static const char grpc[] = "application/grpc", proto[] = "+proto";
    if (!cx_str_starts(text, CX_STR(grpc)))
        return false;
    text = cx_str_from(text.data + sizeof grpc - 1, text.size - (sizeof grpc - 1));
    if (cx_str_starts(text, CX_STR(proto)))
        text = cx_str_from(text.data + sizeof proto - 1, text.size - (sizeof proto - 1));
    return text.size == 0 || text.data[0] == ';' || text.data[0] == ' ';
}

static uint64_t unit_ns(char unit)
{
    switch (unit) {
    case 'H': return UINT64_C(3600000000000);
    case 'M': return UINT64_C(60000000000);
    case 'S': return UINT64_C(1000000000);
    case 'm': return UINT64_C(1000000);
    case 'u': return UINT64_C(1000);
    case 'n': return 1;
    default: return 0;
    }
}

bool cx_grpc_timeout_parse(cx_str text, uint64_t *out_ns)
{
    uint64_t value = 0;
    if (text.size < 2 || text.size > 9)
        return false;
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    uint64_t unit = unit_ns(text.data[text.size - 1]);
    if (unit == 0)
        return false;
    *out_ns = value > UINT64_MAX / unit ? UINT64_MAX : value * unit;
    return true;
}

/* --- messages --------------------------------------------------------------------------------- */

size_t cx_grpc_prefix_take(cx_grpc_prefix *prefix, cx_bytes bytes)
{
    size_t taken = CX_GRPC_PREFIX_SIZE - prefix->size;
    if (taken > bytes.size)
        taken = bytes.size;
    if (taken != 0)
        memcpy(prefix->bytes + prefix->size, bytes.data, taken);
    prefix->size += taken;
    return taken;
}

uint8_t cx_grpc_prefix_flag(const cx_grpc_prefix *prefix)
{
    CX_ASSERT(cx_grpc_prefix_is_whole(prefix));
    return prefix->bytes[0];
}

uint32_t cx_grpc_prefix_length(const cx_grpc_prefix *prefix)
{
    const uint8_t *b = prefix->bytes;
    CX_ASSERT(cx_grpc_prefix_is_whole(prefix));
    return (uint32_t)b[1] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 8 | b[4];
}

void cx_grpc_message_add(cx_buf *out, cx_bytes message)
{
    uint32_t size = (uint32_t)message.size;
    CX_ASSERT(message.size <= UINT32_MAX);
    const uint8_t prefix[CX_GRPC_PREFIX_SIZE] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                                                 (uint8_t)(size >> 8), (uint8_t)size};
    cx_buf_add(out, prefix, sizeof prefix);
    cx_buf_add(out, message.data, message.size);
}

/* --- statuses --------------------------------------------------------------------------------- */

/* Cut between characters. */
static cx_str shorten_text(cx_str text)
{
    if (text.size > TEXT_BYTES_MAX) {
        text.size = TEXT_BYTES_MAX;
        while (text.size > 0 && ((unsigned char)text.data[text.size] & 0xC0) == 0x80)
            text.size--;
    }
    return text;
}

void cx_grpc_text_add(cx_buf *out, cx_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    text = shorten_text(text);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if (byte >= 0x20 && byte <= 0x7E && byte != '%') {
            cx_buf_add_byte(out, byte);
            continue;
        }
        cx_buf_add_byte(out, '%');
        cx_buf_add_byte(out, (uint8_t)digits[byte >> 4]);
        cx_buf_add_byte(out, (uint8_t)digits[byte & 15]);
    }
}

static bool read_varint(cx_bytes *rest, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (rest->size == 0)
            return false;
        uint8_t byte = *rest->data;
        *rest = cx_bytes_from(rest->data + 1, rest->size - 1);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

bool cx_grpc_status_read(cx_bytes status, unsigned *out_code, cx_str *out_message)
{
    uint64_t tag, value;
    *out_code = 0;
    *out_message = CX_STR("");
    while (status.size != 0) {
        if (!read_varint(&status, &tag) || !read_varint(&status, &value))
            return false;
        if (tag == 0x08 && value < CX_GRPC_CODES) {
            *out_code = (unsigned)value;
        } else if (tag == 0x12 && value <= status.size) {
            *out_message = cx_str_from((const char *)status.data, (size_t)value);
            status = cx_bytes_from(status.data + value, status.size - (size_t)value);
        } else {
            return false;
        }
    }
    return *out_code != 0;
}

static void put_varint(cx_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        cx_buf_add_byte(out, (uint8_t)(value | 0x80));
    cx_buf_add_byte(out, (uint8_t)value);
}

static void put_text(cx_buf *out, uint8_t tag, cx_str text)
{
    cx_buf_add_byte(out, tag);
    put_varint(out, text.size);
    cx_buf_add_str(out, text);
}

void cx_grpc_retry_add(cx_buf *out, unsigned code, cx_str message, unsigned seconds)
{
    cx_buf status, detail;
    cx_buf_init(&status, out->alloc);
    cx_buf_init(&detail, out->alloc);
    CX_ASSERT(seconds != 0 && seconds < 0x80);
    const char retry[] = {0x0A, 2, 0x08, (char)seconds};
    put_text(&detail, 0x0A, CX_STR("type.googleapis.com/google.rpc.RetryInfo"));
    put_text(&detail, 0x12, cx_str_from(retry, sizeof retry));
    cx_buf_add_byte(&status, 0x08);
    put_varint(&status, code);
    put_text(&status, 0x12, shorten_text(message));
    put_text(&status, 0x1A, cx_buf_str(&detail));
    if (status.failed || detail.failed)
        out->failed = true;
    else
        cx_base64_add(out, cx_buf_bytes(&status), CX_BASE64);
    cx_buf_done(&status);
    cx_buf_done(&detail);
}
