/*
 * url.c - addresses of HTTP servers.
 */
#include "os/http/url.h"

#include <stdio.h>
#include <string.h>

static cx_status fail_url(const char *text, const char *why, cx_err *err)
{
    return cx_fail_at(err, CX_E_USAGE, "BadUrl", CX_NO_OFFSET,
                      "found '%.200s', expected http://HOST[:PORT]/PATH%s", text, why);
}

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

/* The host and what follows it; NULL when there is none. */
static const char *read_host(const char *text, cx_url *out)
{
    size_t size = 0;
    out->is_v6 = text[0] == '[';
    text += out->is_v6;
    while (out->is_v6 ? text[size] != 0 && strchr("0123456789abcdefABCDEF:.", text[size]) != NULL
                      : is_host_char(text[size]))
        size++;
    if (size == 0 || size > CX_URL_HOST_MAX)
        return NULL;
    memcpy(out->host, text, size);
    out->host[size] = 0;
    if (out->is_v6 && text[size] != ']')
        return NULL;
    return text + size + out->is_v6;
}

static const char *read_port(const char *text, cx_url *out)
{
    size_t size = 0;
    unsigned long number = 0;
    (void)snprintf(out->port, sizeof out->port, "%s", out->is_tls ? "443" : "80");
    if (text[0] != ':')
        return text;
    while (size < 5 && text[1 + size] >= '0' && text[1 + size] <= '9')
        number = number * 10 + (unsigned long)(text[1 + size++] - '0');
    if (number == 0 || number > UINT16_MAX)
        return NULL;
    (void)snprintf(out->port, sizeof out->port, "%lu", number);
    return text + 1 + size;
}

cx_status cx_url_parse(const char *text, bool allow_tls, cx_url *out, cx_err *err)
{
    *out = (cx_url){.path = "", .is_tls = strncmp(text, "https://", 8) == 0};
    if (out->is_tls && !allow_tls)
        return fail_url(text, ": this command speaks no TLS; let curl make such requests", err);
    if (!out->is_tls && strncmp(text, "http://", 7) != 0)
        return fail_url(text, allow_tls ? " or https://HOST[:PORT]/PATH" : "", err);
    if (strlen(text) > CX_URL_MAX)
        return fail_url(text, " of at most 2048 bytes", err);
    const char *rest = read_host(text + (out->is_tls ? 8 : 7), out);
    if (rest != NULL)
        rest = read_port(rest, out);
    if (rest == NULL || (rest[0] != 0 && rest[0] != '/'))
        return fail_url(text, " with a name or an address, and no user", err);
    for (const char *c = rest; *c != 0; c++)
        if (*c <= ' ' || *c >= 127 || *c == '#')
            return fail_url(text, " without spaces and '#'; others as %XX", err);
    out->path = rest;
    return CX_SUCCESS;
}
