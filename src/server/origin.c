/*
 * origin.c - checks of the headers Host, Origin and Sec-Fetch-Site.
 */
#include "server/origin.h"

/* Without the port; an address of version 6 keeps its brackets. */
static cx_str host_name(cx_str host)
{
    if (host.size != 0 && host.data[0] == '[') {
        const char *end = memchr(host.data, ']', host.size);
        return end == NULL ? host : cx_str_from(host.data, (size_t)(end - host.data) + 1);
    }
    const char *colon = host.size == 0 ? NULL : memchr(host.data, ':', host.size);
    return colon == NULL ? host : cx_str_from(host.data, (size_t)(colon - host.data));
}

static bool is_number(cx_str name)
{
    if (name.size == 0)
        return false;
    if (name.data[0] == '[')
        return true;
    size_t dots = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '.')
            dots++;
        else if (name.data[i] < '0' || name.data[i] > '9')
            return false;
    }
    return dots == 3;
}

bool cx_origin_host(const cx_service *service, const cx_request *request)
{
    if (service->options.tls)
        return true;
    cx_str name = host_name(request->host);
    if (is_number(name) || cx_str_is(name, "localhost"))
        return true;
    for (size_t i = 0; i < service->options.name_count; i++)
        if (cx_str_is(name, service->options.names[i]))
            return true;
    return false;
}

/* "http://HOST" or "https://HOST", as the Host header has it. */
static bool is_same(cx_str origin, cx_str host)
{
    if (cx_str_starts(origin, CX_STR("http://")))
        return cx_str_eq(cx_str_from(origin.data + 7, origin.size - 7), host);
    if (cx_str_starts(origin, CX_STR("https://")))
        return cx_str_eq(cx_str_from(origin.data + 8, origin.size - 8), host);
    return false;
}

bool cx_origin_is_own_page(const cx_request *request)
{
    bool reading = cx_str_is(request->method, "GET") || cx_str_is(request->method, "HEAD");
    cx_str site = request->fetch_site;
    bool says_same = cx_str_is(site, "same-origin");
    /* "none": a person typed the address, or opened a bookmark. */
    if (site.data != NULL && !says_same && !(reading && cx_str_is(site, "none")))
        return false;
    if (request->origin.data != NULL && !is_same(request->origin, request->host))
        return false;
    if (reading)
        return true;
    return request->page_header.data != NULL && (says_same || request->origin.data != NULL);
}
