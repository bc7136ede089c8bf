/*
 * uri.c - URIs of memories and edges, strict both ways (ledger.md §4.3).
 */
#include "proof/uri.h"

#include "base/api.h"

#define BASE "matrix://cortex/"

static const cx_str types[] = {CX_STR("Identity"),   CX_STR("Fact"),       CX_STR("Preference"),
                               CX_STR("Belief"),     CX_STR("Event"),      CX_STR("Goal"),
                               CX_STR("Constraint"), CX_STR("Capability"), CX_STR("Pattern")};

static const cx_str edge_types[] = {
    CX_STR("derived_from"), CX_STR("supersedes"),  CX_STR("references"),    CX_STR("contradicts"),
    CX_STR("corroborates"), CX_STR("consents_to"), CX_STR("dispatched_to"), CX_STR("attested_by"),
    CX_STR("cited_in"),     CX_STR("tombstones"),  CX_STR("part_of"),       CX_STR("instance_of"),
    CX_STR("caused_by"),    CX_STR("observed_by")};

_Static_assert(CX_COUNT_OF(types) == CX_TYPE_MAX, "a name a memory type");
_Static_assert(CX_COUNT_OF(edge_types) == CX_EDGE_TYPE_MAX, "a name an edge type");

cx_str cx_uri_type_name(uint8_t type)
{
    return type >= 1 && type <= CX_COUNT_OF(types) ? types[type - 1] : CX_STR("");
}

cx_str cx_uri_edge_type_name(uint8_t type)
{
    return type >= 1 && type <= CX_COUNT_OF(edge_types) ? edge_types[type - 1] : CX_STR("");
}

static uint8_t code_of(const cx_str *names, size_t count, cx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_eq(names[i], name))
            return (uint8_t)(i + 1);
    return 0;
}

uint8_t cx_uri_type_code(cx_str name)
{
    return code_of(types, CX_COUNT_OF(types), name);
}

uint8_t cx_uri_edge_type_code(cx_str name)
{
    return code_of(edge_types, CX_COUNT_OF(edge_types), name);
}

/* --- ULIDs ----------------------------------------------------------------------------------- */

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* 26 characters of 5 bits are 130: the two bits on top must be zero. */
bool cx_ulid_parse(cx_str text, cx_id *out)
{
    cx_id id = {{0}};
    if (text.size != CX_ULID_SIZE || text.data[0] > '7')
        return false;
    for (size_t i = 0; i < CX_ULID_SIZE; i++) {
        const char *at = text.data[i] == 0 ? NULL : strchr(crockford, text.data[i]);
        if (at == NULL)
            return false;
        unsigned value = (unsigned)(at - crockford);
        for (size_t bit = 0; bit < 5; bit++) {
            size_t position = 5 * i + bit; /* of 130; the id begins at 2 */
            if (position >= 2 && (value >> (4 - bit) & 1) != 0)
                id.bytes[(position - 2) / 8] |= (uint8_t)(0x80u >> ((position - 2) % 8));
        }
    }
    *out = id;
    return true;
}

void cx_ulid_format(const cx_id *id, char out[CX_ULID_SIZE])
{
    for (size_t i = 0; i < CX_ULID_SIZE; i++) {
        unsigned value = 0;
        for (size_t bit = 0; bit < 5; bit++) {
            size_t position = 5 * i + bit;
            unsigned set =
                position < 2
                    ? 0
                    : (unsigned)id->bytes[(position - 2) / 8] >> (7 - (position - 2) % 8) & 1u;
            value = value << 1 | set;
        }
        out[i] = crockford[value];
    }
}

/* --- URIs ------------------------------------------------------------------------------------ */

/* What stands before `mark`, which is taken too; false when it is not there. */
static bool split_at(cx_str *rest, char mark, cx_str *out)
{
    const char *at = rest->size == 0 ? NULL : memchr(rest->data, mark, rest->size);
    if (at == NULL)
        return false;
    size_t size = (size_t)(at - rest->data);
    *out = cx_str_from(rest->data, size);
    *rest = cx_str_from(at + 1, rest->size - size - 1);
    return true;
}

static bool parse_version(cx_str text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.size == 0 || text.data[0] == '0')
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

/* Each: NULL, or why it is none. */
static const char *parse_edge(cx_str rest, cx_uri *out)
{
    cx_str src, type;
    if (!split_at(&rest, '/', &src) || !split_at(&rest, '/', &type))
        return "the edge's parts are not there";
    *out = (cx_uri){.is_edge = true, .type = cx_uri_edge_type_code(type)};
    if (out->type == 0)
        return "there is no such type of edge";
    if (!cx_ulid_parse(src, &out->id) || !cx_ulid_parse(rest, &out->dst))
        return "an end of the edge is not a ULID";
    return NULL;
}

static const char *parse_memory(cx_str type, cx_str rest, cx_uri *out)
{
    cx_str id;
    *out = (cx_uri){.type = cx_uri_type_code(type)};
    if (out->type == 0)
        return "there is no such type of memory";
    if (!split_at(&rest, '#', &id) || !cx_ulid_parse(id, &out->id))
        return "the id is not a ULID";
    if (!parse_version(rest, &out->version))
        return "the version is not a number from 1";
    return NULL;
}

static const char *parse_uri(cx_str text, cx_uri *out)
{
    cx_str type, base = CX_STR(BASE);
    if (!cx_str_starts(text, base))
        return "it must start with matrix://cortex/";
    cx_str rest = cx_str_from(text.data + base.size, text.size - base.size);
    if (!split_at(&rest, '/', &type))
        return "its parts are not there";
    return cx_str_is(type, "edge") ? parse_edge(rest, out) : parse_memory(type, rest, out);
}

#define SHOWN_BYTES 100

cx_status cx_uri_parse(cx_str text, cx_uri *out, cx_err *err)
{
    cx_uri uri;
    const char *why = parse_uri(text, &uri);
    if (why != NULL)
        return cx_fail_at(err, CX_E_FORMAT, "BadURI", CX_NO_OFFSET,
                          "URI: found '%.*s'%s, %s; expected " BASE
                          "<Type>/<ULID>#<version> or " BASE "edge/<ULID>/<type>/<ULID>",
                          (int)(text.size < SHOWN_BYTES ? text.size : SHOWN_BYTES),
                          text.size == 0 ? "" : text.data, text.size > SHOWN_BYTES ? ".." : "",
                          why);
    *out = uri;
    return CX_SUCCESS;
}

static void add_ulid(const cx_id *id, cx_buf *out)
{
    char text[CX_ULID_SIZE];
    cx_ulid_format(id, text);
    cx_buf_add(out, text, sizeof text);
}

void cx_uri_add(const cx_uri *uri, cx_buf *out)
{
    cx_buf_add_z(out, BASE);
    if (uri->is_edge) {
        cx_buf_add_z(out, "edge/");
        add_ulid(&uri->id, out);
        cx_buf_add_byte(out, '/');
        cx_buf_add_str(out, cx_uri_edge_type_name(uri->type));
        cx_buf_add_byte(out, '/');
        add_ulid(&uri->dst, out);
        return;
    }
    cx_buf_add_str(out, cx_uri_type_name(uri->type));
    cx_buf_add_byte(out, '/');
    add_ulid(&uri->id, out);
    cx_buf_add_byte(out, '#');
    cx_buf_add_u64(out, uri->version);
}

cx_digest cx_uri_key(const cx_uri *uri, cx_scheme scheme)
{
    return uri->is_edge ? cx_scheme_edge_key(scheme, uri->id.bytes, uri->type, uri->dst.bytes)
                        : cx_scheme_memory_key(scheme, uri->id.bytes);
}
