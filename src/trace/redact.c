/*
 * redact.c - makes a view at a lower level: without the fields that violate it and without the
 * signature (§2).
 *
 * A view of a view names the original's level and everything removed since, so that full ->
 * detailed -> generic gives the same bytes as full -> generic.  Therefore `removed` in the view is
 * sorted; the caller gets the pointers in the order in which members were received.
 */
#include "trace/internal.h"

#include "crypto/api.h"

#include <stdlib.h>

/* --- data without what violates --------------------------------------------------------------- */

/* An object being copied. */
typedef struct copying {
    const cx_json *object;
    uint32_t next; /* next member to copy or replace */
    cx_json *out;  /* becomes the copy */
    cx_json_member *kept;
    uint32_t kept_count;
    cx_level_place place;
} copying;

enum { INHERITED = CX_JSON_SURROGATE | CX_JSON_OVERFLOW | CX_JSON_NONFINITE };

static bool begin_copy(copying *c, const cx_json *object, cx_json *out, const cx_level_place *place,
                       cx_arena *arena)
{
    *c = (copying){.object = object, .out = out, .place = *place};
    c->kept = CX_ARENA_ARRAY(arena, cx_json_member, object->count);
    return c->kept != NULL;
}

static void end_copy(const copying *c)
{
    unsigned flags = 0;
    for (uint32_t i = 0; i < c->kept_count; i++)
        flags |= c->kept[i].name.flags | c->kept[i].value.flags;
    *c->out = (cx_json){.type = CX_JSON_OBJECT,
                        .flags = (uint8_t)(flags & INHERITED),
                        .count = c->kept_count,
                        .members = c->kept};
}

/* Copies without the violating fields; the rest is shared.  Members stay sorted, as none is added.
 */
static bool copy_data(const cx_json *data, const cx_level_place *place, cx_arena *arena,
                      cx_json *out)
{
    copying stack[CX_TRACE_DEPTH_MAX];
    size_t depth = 1;
    if (!begin_copy(&stack[0], data, out, place, arena))
        return false;
    while (depth != 0) {
        copying *top = &stack[depth - 1];
        cx_level_place below;
        if (top->next == top->object->count) {
            end_copy(top);
            depth--;
            continue;
        }
        const cx_json_member *member = &top->object->members[top->next++];
        cx_level_answer answer =
            cx_level_judge(&top->place, cx_json_text(&member->name), &member->value, &below);
        if (answer == CX_LEVEL_REMOVE)
            continue;
        cx_json_member *kept = &top->kept[top->kept_count++];
        *kept = *member;
        if (answer == CX_LEVEL_DESCEND) {
            CX_ASSERT(depth < CX_TRACE_DEPTH_MAX);
            if (!begin_copy(&stack[depth++], &member->value, &kept->value, &below, arena))
                return false;
        }
    }
    return true;
}

/* The component with redacted data. */
static cx_status redact_component(const cx_trace *trace, const cx_trace_component *component,
                                  cx_trace_level to, cx_arena *arena, cx_json *out, cx_err *err)
{
    const cx_level_place place = cx_level_place_of(trace, component, to);
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < component->json->count; i++) {
        const cx_json_member *member = &component->json->members[i];
        cx_json value = member->value;
        if (&member->value == component->data && !copy_data(component->data, &place, arena, &value))
            return cx_fail_nomem(err);
        cx_json_list_put(&list, cx_json_text(&member->name), value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status redact_components(const cx_trace *trace, cx_trace_level to, cx_arena *arena,
                                   cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < trace->component_count; i++) {
        cx_json component;
        CX_TRY(redact_component(trace, &trace->components[i], to, arena, &component, err));
        cx_json_list_add(&list, component);
    }
    return cx_json_list_end_array(&list, out, err);
}

/* --- where it came from ----------------------------------------------------------------------- */

/* The note of an earlier redaction; NULL when the trace is not a view. */
static const cx_json *earlier_redaction(const cx_trace *trace)
{
    return CX_JSON_GET(trace->json, "signature") != NULL
               ? NULL
               : cx_json_get_typed(trace->json, CX_STR("derived"), CX_JSON_OBJECT);
}

static int compare_bytes(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* Everything that was removed, now and earlier, sorted. */
static cx_status all_removed(const cx_json *before, const cx_str *removed, size_t count,
                             cx_arena *arena, cx_json *out, cx_err *err)
{
    const cx_json *old = cx_json_get_typed(before, CX_STR("removed"), CX_JSON_ARRAY);
    size_t old_count = old == NULL ? 0 : old->count, total = 0;
    cx_str *all = CX_ARENA_ARRAY(arena, cx_str, old_count + count);
    cx_json_list list = cx_json_list_begin(arena);
    if (all == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < old_count; i++)
        if (old->items[i].type == CX_JSON_STRING)
            all[total++] = cx_json_text(&old->items[i]);
    for (size_t i = 0; i < count; i++)
        all[total++] = removed[i];
    if (total != 0)
        qsort(all, total, sizeof *all, compare_bytes);
    for (size_t i = 0; i < total; i++)
        cx_json_list_add(&list, cx_json_make_str(all[i]));
    return cx_json_list_end_array(&list, out, err);
}

static void put_name(cx_json_list *list, const char *name, const char *value)
{
    cx_json_list_put(list, cx_str_z(name),
                     value[0] == 0 ? cx_json_make_null() : cx_json_make_str(cx_str_z(value)));
}

static void put_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_json value = cx_json_make_null();
    if (digest != NULL) {
        cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
        cx_str copy = cx_arena_copy_str(list->arena, cx_str_from(hex, sizeof hex));
        list->failed |= copy.data == NULL;
        if (copy.data != NULL)
            value = cx_json_make_str(copy);
    }
    cx_json_list_put(list, cx_str_z(name), value);
}

static cx_status make_derived_note(const cx_trace *trace, const cx_trace_redaction *how,
                                   const cx_json *removed, cx_arena *arena, cx_json *out,
                                   cx_err *err)
{
    static const char *const kept[] = {"canonical_form", "canonical_sha256", "content_sha256",
                                       "from_level", "signature_key_id"};
    const cx_json *before = earlier_redaction(trace), *value;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("removed"), *removed);
    for (size_t i = 0; before != NULL && i < CX_COUNT_OF(kept); i++)
        if ((value = cx_json_get(before, cx_str_z(kept[i]))) != NULL)
            cx_json_list_put(&list, cx_str_z(kept[i]), *value);
    if (before == NULL) {
        put_name(&list, "canonical_form", cx_trace_form_name(how->form));
        put_digest(&list, "canonical_sha256", how->has_canonical ? &how->canonical : NULL);
        put_digest(&list, "content_sha256", &how->content);
        put_name(&list, "from_level", cx_trace_level_name(how->from));
        cx_json_list_put(&list, CX_STR("signature_key_id"),
                         trace->key_id.data == NULL ? cx_json_make_null()
                                                    : cx_json_make_str(trace->key_id));
    }
    return cx_json_list_end_object(&list, out, err);
}

/* --- the view --------------------------------------------------------------------------------- */

static bool is_replaced(cx_str name)
{
    static const char *const names[] = {"signature",           "signature_key_id", "trace_level",
                                        "signature_ml_dsa_65", "pubkey_ml_dsa_65", "pqc_key_id",
                                        "components",          "derived"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(name, names[i]))
            return true;
    return false;
}

cx_status cx_trace_redact(const cx_trace *trace, const cx_trace_redaction *how, cx_arena *arena,
                          cx_json *out, const cx_str **out_removed, size_t *out_removed_count,
                          cx_err *err)
{
    CX_ASSERT(trace != NULL && how != NULL);
    const cx_str *removed;
    size_t count;
    cx_json components, all, derived;
    if (how->to >= CX_LEVEL_ABSENT || how->from >= CX_LEVEL_ABSENT || how->to > how->from)
        return cx_fail_at(err, CX_E_USAGE, "Raising", CX_NO_OFFSET,
                          "a trace stored at level %s has no view at the higher level %s",
                          cx_trace_level_name(how->from), cx_trace_level_name(how->to));
    CX_TRY(cx_trace_violations(trace, how->to, arena, &removed, &count, err));
    CX_TRY(redact_components(trace, how->to, arena, &components, err));
    CX_TRY(all_removed(earlier_redaction(trace), removed, count, arena, &all, err));
    CX_TRY(make_derived_note(trace, how, &all, arena, &derived, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < trace->json->count; i++) {
        const cx_json_member *member = &trace->json->members[i];
        if (!is_replaced(cx_json_text(&member->name)))
            cx_json_list_put(&list, cx_json_text(&member->name), member->value);
    }
    cx_json_list_put(&list, CX_STR("components"), components);
    cx_json_list_put(&list, CX_STR("derived"), derived);
    put_name(&list, "trace_level", cx_trace_level_name(how->to));
    CX_TRY(cx_json_list_end_object(&list, out, err));
    *out_removed = removed;
    *out_removed_count = count;
    return CX_SUCCESS;
}
