/*
 * host.c - hosts and patterns of hosts.  H1 to H3: host.h.
 */
#include "egress/host.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* 1 to 65535 without leading zeros; 0 for everything else. */
static uint16_t read_port(cx_str text)
{
    uint32_t port = 0;
    if (text.size == 0 || text.size > 5 || text.data[0] == '0')
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (!is_digit(text.data[i]))
            return 0;
        port = port * 10 + (uint32_t)(text.data[i] - '0');
    }
    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* H2: the last label is a number in the sense of inet_aton: digits, or 0x and hex digits. */
static bool ends_in_number(cx_str name)
{
    size_t from = name.size;
    while (from != 0 && name.data[from - 1] != '.')
        from--;
    cx_str last = cx_str_from(name.data + from, name.size - from);
    bool hex = last.size >= 2 && last.data[0] == '0' && (last.data[1] | 32) == 'x';
    if (last.size == 0)
        return false;
    for (size_t i = hex ? 2 : 0; i < last.size; i++) {
        char c = (char)(last.data[i] | 32);
        if (!is_digit(last.data[i]) && !(hex && c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

static const char *check_labels(cx_str name)
{
    size_t label = 0;
    for (size_t i = 0; i <= name.size; i++) {
        if (i == name.size || name.data[i] == '.') {
            if (label == 0)
                return "the name has an empty label";
            if (name.data[i - 1] == '-' || name.data[i - label] == '-')
                return "a label of the name begins or ends with '-'";
            label = 0;
        } else if (!is_name_char(name.data[i])) {
            return "the name has a character other than letters, digits, '-' and '.'";
        } else if (++label > CX_EGRESS_LABEL_MAX) {
            return "a label of the name is longer than 63 bytes";
        }
    }
    return NULL;
}

static void set_address(cx_egress_host *out)
{
    char text[CX_IP_TEXT_SIZE];
    cx_ip_write(&out->address, text);
    out->is_address = true;
    out->size = strlen(text);
    memcpy(out->name, text, out->size + 1);
}

static const char *parse_bracketed(cx_str text, cx_egress_host *out, cx_str *out_rest)
{
    const char *end = memchr(text.data, ']', text.size);
    if (end == NULL)
        return "the IPv6 address has no ']'";
    size_t size = (size_t)(end - text.data) - 1;
    if (!cx_ip_parse(cx_str_from(text.data + 1, size), &out->address) || !out->address.is_v6)
        return "there is no IPv6 address between the brackets";
    set_address(out);
    *out_rest = cx_str_from(end + 1, text.size - size - 2);
    return NULL;
}

static const char *parse_name(cx_str name, cx_egress_host *out)
{
    if (name.size != 0 && name.data[name.size - 1] == '.')
        name.size--;
    if (name.size == 0)
        return "the name is empty";
    if (name.size > CX_EGRESS_NAME_MAX)
        return "the name is longer than 253 bytes";
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        out->name[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    out->name[name.size] = 0;
    out->size = name.size;
    if (cx_ip_parse(cx_egress_host_str(out), &out->address) && !out->address.is_v6) {
        set_address(out);
        return NULL;
    }
    if (ends_in_number(cx_egress_host_str(out)))
        return "it is a number, and no address in dotted decimal";
    return check_labels(cx_egress_host_str(out));
}

const char *cx_egress_host_parse(cx_str text, cx_egress_host *out)
{
    cx_egress_host host = {.size = 0};
    cx_str rest = {NULL, 0};
    const char *why;
    if (text.size == 0)
        return "the name is empty";
    if (text.data[0] == '[') {
        why = parse_bracketed(text, &host, &rest);
    } else {
        const char *colon = memchr(text.data, ':', text.size);
        size_t size = colon == NULL ? text.size : (size_t)(colon - text.data);
        why = parse_name(cx_str_from(text.data, size), &host);
        rest = cx_str_from(text.data + size, text.size - size);
    }
    if (why != NULL)
        return why;
    if (rest.size != 0) {
        host.port = rest.data[0] == ':' ? read_port(cx_str_from(rest.data + 1, rest.size - 1)) : 0;
        if (host.port == 0)
            return "the port is no number from 1 to 65535";
    }
    *out = host;
    return NULL;
}

bool cx_egress_host_is_number_form(cx_str text)
{
    cx_egress_host host;
    if (text.size == 0 || text.data[0] == '[')
        return false;
    const char *colon = memchr(text.data, ':', text.size);
    if (colon != NULL)
        text.size = (size_t)(colon - text.data);
    if (text.size != 0 && text.data[text.size - 1] == '.')
        text.size--;
    return ends_in_number(text) && cx_egress_host_parse(text, &host) != NULL;
}

const char *cx_egress_pattern_parse(cx_str text, cx_egress_pattern *out)
{
    cx_egress_pattern pattern = {.wildcard = cx_str_starts(text, CX_STR("*."))};
    cx_str host = pattern.wildcard ? cx_str_from(text.data + 2, text.size - 2) : text;
    const char *why = cx_egress_host_parse(host, &pattern.host);
    if (why != NULL)
        return why;
    if (pattern.wildcard && pattern.host.is_address)
        return "a wildcard stands before a name, not before an address";
    if (pattern.wildcard && memchr(pattern.host.name, '.', pattern.host.size) == NULL)
        return "a wildcard covers names below at least two labels, such as *.example.org";
    *out = pattern;
    return NULL;
}

bool cx_egress_pattern_covers(const cx_egress_pattern *pattern, const cx_egress_host *host)
{
    cx_str wanted = cx_egress_host_str(&pattern->host), name = cx_egress_host_str(host);
    if (pattern->host.port != 0 ? host->port != pattern->host.port
                                : host->port != 443 && host->port != 80)
        return false;
    if (pattern->host.is_address || host->is_address)
        return !pattern->wildcard && pattern->host.is_address && host->is_address &&
               cx_ip_eq(&pattern->host.address, &host->address);
    if (!pattern->wildcard)
        return cx_str_eq(wanted, name);
    return name.size > wanted.size + 1 && cx_str_ends(name, wanted) &&
           name.data[name.size - wanted.size - 1] == '.';
}
