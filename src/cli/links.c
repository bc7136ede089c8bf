/*
 * links.c - which paths become links, and their URIs.
 */
#include "cli/links.h"

#include <string.h>
#include <unistd.h>

#include "base/api.h"

#define PATH_MAX_BYTES 1024

/* The host lets a terminal see that a file is on another machine. */
static void find_host(char *out, size_t size)
{
    if (gethostname(out, size) != 0)
        out[0] = '\0';
    out[size - 1] = '\0';
    for (const char *c = out; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", *c) == NULL)
            out[0] = '\0';
}

void cx_cli_links_begin(cx_cli_links *out, const cx_cli_args *args, const char *root)
{
    const char *to = cx_cli_value(args, "link-to");
    *out = (cx_cli_links){.to = to == NULL ? "file" : to};
    if (!cx_cli_link_text(&args->cli->out, cx_cli_value(args, "links")) || root == NULL ||
        root[0] != '/')
        return;
    out->root = root;
    find_host(out->host, sizeof out->host);
}

/* Neither what acts, nor what some editor takes for the end of a path. */
static bool is_plain(cx_str path)
{
    for (size_t at = 0; at < path.size;) {
        char shown[CX_SHOWN_SIZE_MAX];
        size_t size;
        at += cx_shown_step((const uint8_t *)path.data + at, path.size - at, shown, &size);
        if (size != 0)
            return false;
    }
    for (size_t i = 0; i < path.size; i++)
        if (strchr("\\:?#", path.data[i]) != NULL)
            return false;
    return path.size != 0 && path.size <= PATH_MAX_BYTES;
}

/* Relative, and below the folder that it is relative to. */
static bool is_below(cx_str path)
{
    for (size_t at = 0; at <= path.size;) {
        size_t end = at;
        while (end < path.size && path.data[end] != '/')
            end++;
        cx_str part = cx_str_from(path.data + at, end - at);
        if (part.size == 0 || cx_str_is(part, ".") || cx_str_is(part, ".."))
            return false;
        at = end + 1;
    }
    return true;
}

static void add_escaped(cx_buf *out, cx_str path)
{
    for (size_t i = 0; i < path.size; i++) {
        char c = path.data[i];
        bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    strchr("-._~/", c) != NULL;
        if (kept)
            cx_buf_add_byte(out, (uint8_t)c);
        else
            cx_buf_printf(out, "%%%02X", (unsigned)(uint8_t)c);
    }
}

static void add_uri(cx_buf *out, const cx_cli_links *links, cx_str path, uint64_t line)
{
    bool idea = strcmp(links->to, "idea") == 0, file = strcmp(links->to, "file") == 0;
    if (file)
        cx_buf_printf(out, "file://%s", links->host);
    else
        cx_buf_printf(out, "%s://%s", links->to, idea ? "open?file=" : "file");
    add_escaped(out, cx_str_z(links->root));
    cx_buf_add_byte(out, '/');
    add_escaped(out, path);
    if (line != 0)
        cx_buf_printf(out, "%s%llu", idea ? "&line=" : file ? "#" : ":", (unsigned long long)line);
}

/* An absolute path below the folder as one that is relative to it; others as they are. */
static cx_str relative_to(const char *root, cx_str path)
{
    size_t size = strlen(root);
    if (path.size > size + 1 && memcmp(path.data, root, size) == 0 && path.data[size] == '/')
        return cx_str_from(path.data + size + 1, path.size - size - 1);
    return path;
}

void cx_cli_links_add(cx_buf *out, const cx_cli_links *links, cx_str path, uint64_t line,
                      cx_str text)
{
    cx_buf uri;
    if (links != NULL && links->root != NULL)
        path = relative_to(links->root, path);
    if (links == NULL || links->root == NULL || !is_plain(path) || !is_below(path) ||
        !is_plain(cx_str_z(links->root))) {
        cx_shown_add(out, text);
        return;
    }
    cx_buf_init(&uri, out->alloc);
    add_uri(&uri, links, path, line);
    out->failed = out->failed || uri.failed;
    cx_shown_add_link(out, cx_buf_str(&uri), text);
    cx_buf_done(&uri);
}
