/*
 * hosts.c - which hosts a call may reach.
 */
#include <string.h>

#include "live/decide_parts.h"

/* "example.org", "*.example.org" (not example.org itself), each with ":PORT" or without. */
static bool pattern_covers(cx_str pattern, cx_str host, cx_str port)
{
    const char *colon = pattern.size == 0 ? NULL : memchr(pattern.data, ':', pattern.size);
    if (colon != NULL) {
        cx_str wanted = cx_str_from(colon + 1, pattern.size - (size_t)(colon - pattern.data) - 1);
        if (!cx_str_eq(wanted, port))
            return false;
        pattern.size = (size_t)(colon - pattern.data);
    }
    if (cx_str_starts(pattern, CX_STR("*.")))
        return cx_str_ends(host, cx_str_from(pattern.data + 1, pattern.size - 1)) &&
               host.size > pattern.size - 1;
    return cx_str_eq(pattern, host);
}

static void decide_host(cx_deciding *d, cx_str host, cx_str port, cx_str shown)
{
    const cx_live_policy *policy = d->policy;
    bool listed = false;
    for (size_t i = 0; i < policy->hosts.count && !listed; i++)
        listed = pattern_covers(policy->hosts.items[i], host, port);
    if (cx_str_is(policy->network, "deny"))
        cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_FORBIDDEN, "L09", shown,
                        "this session has no network");
    else if (listed || (cx_str_is(policy->network, "allow") && policy->hosts.count == 0))
        cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_ALLOW, "L00", shown, "%s", "");
    else
        cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_UNLISTED, "L09", shown,
                        "the policy does not list this host");
}

bool cx_deciding_device(cx_deciding *d, cx_str path)
{
    if (!cx_str_starts(path, CX_STR("/dev/tcp/")) && !cx_str_starts(path, CX_STR("/dev/udp/")))
        return false;
    cx_str rest = cx_str_from(path.data + 9, path.size - 9);
    const char *slash = rest.size == 0 ? NULL : memchr(rest.data, '/', rest.size);
    size_t size = slash == NULL ? rest.size : (size_t)(slash - rest.data);
    cx_str port = slash == NULL ? CX_STR("") : cx_str_from(slash + 1, rest.size - size - 1);
    decide_host(d, cx_str_from(rest.data, size), port, path);
    return true;
}

void cx_deciding_url(cx_deciding *d, cx_str url)
{
    static const char *const schemes[] = {"https://", "http://", "wss://", "ws://"};
    for (size_t i = 0; i < CX_COUNT_OF(schemes); i++) {
        cx_str scheme = cx_str_z(schemes[i]);
        char host[256];
        size_t size = 0;
        if (url.size <= scheme.size || strncasecmp(url.data, scheme.data, scheme.size) != 0)
            continue;
        cx_str rest = cx_str_from(url.data + scheme.size, url.size - scheme.size);
        size_t end = 0;
        while (end < rest.size && strchr("/?#\\ \t\r\n", rest.data[end]) == NULL)
            end++;
        cx_str authority = cx_str_from(rest.data, end);
        if (authority.size == 0 || memchr(authority.data, '@', authority.size) != NULL)
            break;
        bool literal = authority.data[0] == '[';
        const char *colon = literal ? memchr(authority.data, ']', authority.size)
                                    : memchr(authority.data, ':', authority.size);
        size_t name =
            colon == NULL ? authority.size : (size_t)(colon - authority.data) + (literal ? 1 : 0);
        cx_str port = i % 2 == 0 ? CX_STR("443") : CX_STR("80");
        if (name < authority.size && authority.data[name] == ':')
            port = cx_str_from(authority.data + name + 1, authority.size - name - 1);
        if (name != 0 && authority.data[name - 1] == '.')
            name--;
        if (name == 0 || name >= sizeof host)
            break;
        for (; size < name; size++) {
            char c = authority.data[size];
            host[size] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
        }
        cx_str kept = cx_arena_copy_str(d->arena, cx_str_from(host, size));
        if (kept.data == NULL) {
            d->status = cx_fail_nomem(d->err);
            return;
        }
        decide_host(d, kept, port, kept);
        return;
    }
    cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_UNLISTED, "L08", url,
                    "no http address whose host can be told");
}

size_t cx_deciding_urls_in(cx_deciding *d, cx_str text)
{
    size_t found = 0;
    for (size_t at = 0; at + 8 < text.size; at++) {
        cx_str rest = cx_str_from(text.data + at, text.size - at);
        if (strncasecmp(rest.data, "http://", 7) != 0 && strncasecmp(rest.data, "https://", 8) != 0)
            continue;
        cx_deciding_url(d, rest);
        found++;
        at += 7;
    }
    return found;
}

void cx_deciding_web(cx_deciding *d, cx_str query)
{
    const cx_live_policy *policy = d->policy;
    if (cx_str_is(policy->network, "deny"))
        cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_FORBIDDEN, "L09", query,
                        "this session has no network");
    else if (cx_str_is(policy->network, "allow"))
        cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_ALLOW, "L00", query, "%s", "");
    else
        cx_deciding_add(d, CX_LIVE_HOST, CX_LIVE_UNLISTED, "L09", query,
                        "a search sends these words to the provider");
}
