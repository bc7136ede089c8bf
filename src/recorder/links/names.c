/*
 * names.c - kinds of objects, and URIs that name objects.
 */
#include "recorder/links.h"

#include "base/api.h"
#include "bundle/api.h"
#include "proof/api.h"
#include "recorder/internal.h"
#include "rules/api.h"

#define URI_PREFIX(text)         \
    {                            \
        (text), sizeof(text) - 1 \
    }

static const cx_prov_kind_info kinds[CX_PROV_KIND_COUNT] = {
    [CX_PROV_NONE] = {.name = "none"},
    [CX_PROV_MEMORY] = {.name = "memory",
                        .screen = "evidence",
                        .has_why = true,
                        .has_evidence = true},
    [CX_PROV_EDGE] = {.name = "edge"},
    [CX_PROV_TRACE] = {.name = "trace",
                       .uri_prefix = URI_PREFIX("cortex://trace/"),
                       .screen = "trace",
                       .has_why = true,
                       .has_evidence = true},
    [CX_PROV_RUN] = {.name = "run",
                     .uri_prefix = URI_PREFIX("cortex://run/"),
                     .screen = "run",
                     .has_why = true,
                     .has_evidence = true},
    [CX_PROV_EVENT] = {.name = "event", .screen = "run", .has_why = true},
    [CX_PROV_COMMIT] = {.name = "commit", .has_why = true, .has_evidence = true},
    [CX_PROV_ENTRY] = {.name = "entry", .screen = "evidence", .has_why = true},
    [CX_PROV_SNAPSHOT] = {.name = "snapshot", .screen = "evidence"},
    [CX_PROV_JOURNAL] = {.name = "journal", .screen = "evidence"},
    [CX_PROV_NODE] = {.name = "node", .screen = "debugger", .has_why = true},
    [CX_PROV_KEY] = {.name = "key"},
    [CX_PROV_ACTOR] = {.name = "actor"},
    [CX_PROV_LINE] = {.name = "line"},
};

const cx_prov_kind_info *cx_prov_kind_info_of(cx_prov_kind kind)
{
    CX_ASSERT(kind < CX_PROV_KIND_COUNT);
    return &kinds[kind];
}

const char *cx_prov_kind_name(cx_prov_kind kind)
{
    return cx_prov_kind_info_of(kind)->name;
}

bool cx_prov_of_uri(cx_str uri, cx_prov_kind *out_kind, cx_str *out_id)
{
    cx_uri parsed;
    for (unsigned kind = 0; kind < CX_PROV_KIND_COUNT; kind++) {
        cx_str prefix = kinds[kind].uri_prefix;
        if (prefix.data == NULL || !cx_str_starts(uri, prefix))
            continue;
        *out_kind = (cx_prov_kind)kind;
        *out_id = cx_str_from(uri.data + prefix.size, uri.size - prefix.size);
        return kind == CX_PROV_RUN ? cx_run_id_valid(*out_id)
                                   : out_id->size != 0 && out_id->size <= CX_TRACE_ID_BYTES_MAX;
    }
    if (cx_failed(cx_uri_parse(uri, &parsed, NULL)))
        return false;
    *out_kind = parsed.is_edge ? CX_PROV_EDGE : CX_PROV_MEMORY;
    *out_id = uri;
    return true;
}

/* The size of the URI at `at`. */
static size_t uri_size(const char *at, const char *end)
{
    const char *stop = at;
    while (stop != end && *stop > ' ' && *stop < 127 && strchr("\"\\<>{}|^`'(),;", *stop) == NULL)
        stop++;
    while (stop != at && strchr(".:?", stop[-1]) != NULL)
        stop--;
    return (size_t)(stop - at);
}

bool cx_prov_next_uri(cx_str *text, cx_prov_kind *out_kind, cx_str *out_id)
{
    const char *start = text->data, *at = start, *end = start + text->size;
    while (text->size != 0 && (at = memmem(at, (size_t)(end - at), "://", 3)) != NULL) {
        const char *scheme = at - 6;
        bool ours = at - start >= 6 &&
                    (memcmp(scheme, "cortex", 6) == 0 || memcmp(scheme, "matrix", 6) == 0);
        at += 3;
        if (!ours)
            continue;
        size_t size = uri_size(scheme, end);
        if (!cx_prov_of_uri(cx_str_from(scheme, size), out_kind, out_id))
            continue;
        *text = cx_str_from(at, (size_t)(end - at));
        return true;
    }
    return false;
}
