/*
 * hello.c - reads a ClientHello as far as its server name.
 */
#include "egress/hello.h"

#include <string.h>

enum {
    RECORD_HANDSHAKE = 22,
    RECORD_MAX = 1 << 14,
    CLIENT_HELLO = 1,
    EXTENSION_NAME = 0,
    EXTENSION_ECH = 0xfe0d,
    EXTENSIONS_MAX = 128
};

static cx_egress_hello_state bad(cx_egress_hello *out, const char *why)
{
    out->why = why;
    return CX_EGRESS_HELLO_BAD;
}

static const char *read_names(cx_bytes body, cx_egress_hello *out)
{
    cx_reader r = cx_reader_over(body);
    cx_reader list = cx_reader_over(cx_reader_bytes(&r, cx_reader_u16(&r)));
    if (!cx_reader_ok(&r) || cx_reader_left(&r) != 0)
        return "the list of server names is not well formed";
    uint8_t type = cx_reader_u8(&list);
    cx_bytes name = cx_reader_bytes(&list, cx_reader_u16(&list));
    if (!cx_reader_ok(&list) || cx_reader_left(&list) != 0 || type != 0)
        return "there is not exactly one server name";
    if (cx_egress_host_parse(cx_bytes_str(name), &out->name) != NULL || out->name.is_address ||
        out->name.port != 0)
        return "the server name is no name";
    out->has_name = true;
    return NULL;
}

static const char *read_extensions(cx_bytes body, cx_egress_hello *out)
{
    cx_reader r = cx_reader_over(body);
    bool has_names = false;
    for (size_t count = 0; cx_reader_left(&r) != 0; count++) {
        uint16_t type = cx_reader_u16(&r);
        cx_bytes data = cx_reader_bytes(&r, cx_reader_u16(&r));
        if (!cx_reader_ok(&r) || count == EXTENSIONS_MAX)
            return "the extensions are not well formed";
        if (type == EXTENSION_ECH)
            out->has_ech = true;
        if (type != EXTENSION_NAME)
            continue;
        if (has_names)
            return "there are two lists of server names";
        has_names = true;
        const char *why = read_names(data, out);
        if (why != NULL)
            return why;
    }
    return NULL;
}

static const char *read_client_hello(cx_bytes body, cx_egress_hello *out)
{
    cx_reader r = cx_reader_over(body);
    (void)cx_reader_bytes(&r, 2 + 32); /* version, random */
    (void)cx_reader_bytes(&r, cx_reader_u8(&r));
    (void)cx_reader_bytes(&r, cx_reader_u16(&r)); /* cipher suites */
    (void)cx_reader_bytes(&r, cx_reader_u8(&r));
    if (!cx_reader_ok(&r))
        return "the ClientHello is not well formed";
    if (cx_reader_left(&r) == 0)
        return NULL;
    cx_bytes extensions = cx_reader_bytes(&r, cx_reader_u16(&r));
    if (!cx_reader_ok(&r) || cx_reader_left(&r) != 0)
        return "the ClientHello is not well formed";
    return read_extensions(extensions, out);
}

/* Joins the fragments of the handshake message, which has a header of four bytes. */
cx_egress_hello_state cx_egress_hello_read(cx_bytes bytes, cx_egress_hello *out)
{
    uint8_t message[CX_EGRESS_HELLO_MAX];
    size_t size = 0;
    cx_reader r = cx_reader_over(bytes);
    *out = (cx_egress_hello){.has_name = false};
    if (bytes.size > CX_EGRESS_HELLO_MAX)
        return bad(out, "the ClientHello has more than 32768 bytes");
    while (cx_reader_left(&r) != 0) {
        if (r.data[r.offset] != RECORD_HANDSHAKE)
            return bad(out, "this is not TLS");
        if (cx_reader_left(&r) < 5)
            break;
        (void)cx_reader_u8(&r);
        uint16_t version = cx_reader_u16(&r), length = cx_reader_u16(&r);
        if (version >> 8 != 3 || length == 0 || length > RECORD_MAX)
            return bad(out, "this is not TLS");
        cx_bytes fragment =
            cx_reader_bytes(&r, length < cx_reader_left(&r) ? length : cx_reader_left(&r));
        if (fragment.size != 0)
            memcpy(message + size, fragment.data, fragment.size);
        size += fragment.size;
        if (size != 0 && message[0] != CLIENT_HELLO)
            return bad(out, "the first message of the handshake is no ClientHello");
        size_t wanted = size < 4 ? CX_EGRESS_HELLO_MAX
                                 : (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
        if (size >= 4 && wanted > CX_EGRESS_HELLO_MAX - 4)
            return bad(out, "the ClientHello has more than 32768 bytes");
        if (size >= 4 && size - 4 > wanted)
            return bad(out, "there are bytes after the ClientHello");
        if (size >= 4 && size - 4 == wanted) {
            out->why = read_client_hello(cx_bytes_from(message + 4, wanted), out);
            return out->why == NULL ? CX_EGRESS_HELLO_READ : CX_EGRESS_HELLO_BAD;
        }
    }
    return CX_EGRESS_HELLO_MORE;
}
