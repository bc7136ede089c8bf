/*
 * page.c - finds a file of the web page, and chooses the coding it is sent in.
 */
#include "server/page/page.h"

#include <string.h>

bool cx_page_is_built(void)
{
    return cx_page_count != 0;
}

const cx_page_file *cx_page_find(cx_str name)
{
    for (size_t i = 0; i < cx_page_count; i++)
        if (cx_str_is(name, cx_page_table[i].name))
            return &cx_page_table[i];
    return NULL;
}

/* --- codings ---------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static cx_str trimmed(cx_str text)
{
    while (text.size != 0 && is_blank(text.data[0]))
        text = cx_str_from(text.data + 1, text.size - 1);
    while (text.size != 0 && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

static cx_str next_item(cx_str *list)
{
    const char *comma = list->size == 0 ? NULL : memchr(list->data, ',', list->size);
    size_t size = comma == NULL ? list->size : (size_t)(comma - list->data);
    cx_str item = trimmed(cx_str_from(list->data, size));
    *list = comma == NULL ? cx_str_from(list->data + size, 0)
                          : cx_str_from(comma + 1, list->size - size - 1);
    return item;
}

/* ";q=0", ";q=0.0": not acceptable. */
static bool is_refused(cx_str params)
{
    for (size_t i = 0; i + 2 < params.size; i++) {
        if ((params.data[i] | 0x20) != 'q' || params.data[i + 1] != '=')
            continue;
        for (size_t at = i + 2; at < params.size; at++)
            if (params.data[at] >= '1' && params.data[at] <= '9')
                return false;
        return true;
    }
    return false;
}

cx_page_coding cx_page_choose(cx_str accept)
{
    cx_page_coding best = CX_PAGE_PLAIN;
    while (accept.size != 0) {
        cx_str item = next_item(&accept);
        const char *params = item.size == 0 ? NULL : memchr(item.data, ';', item.size);
        cx_str name = item;
        if (params != NULL) {
            size_t size = (size_t)(params - item.data);
            if (is_refused(cx_str_from(params, item.size - size)))
                continue;
            name = trimmed(cx_str_from(item.data, size));
        }
        if (cx_str_is(name, "br"))
            best = CX_PAGE_BROTLI;
        else if (cx_str_is(name, "gzip") && best == CX_PAGE_PLAIN)
            best = CX_PAGE_GZIP;
    }
    return best;
}

bool cx_page_is_known(const cx_page_file *file, cx_str if_none_match)
{
    while (if_none_match.size != 0) {
        cx_str item = next_item(&if_none_match);
        if (cx_str_is(item, "*"))
            return true;
        if (cx_str_starts(item, CX_STR("W/")))
            item = cx_str_from(item.data + 2, item.size - 2);
        size_t size = strlen(file->etag);
        if (item.size == size + 2 && item.data[0] == '"' && item.data[size + 1] == '"' &&
            memcmp(item.data + 1, file->etag, size) == 0)
            return true;
    }
    return false;
}
