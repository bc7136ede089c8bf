/*
 * failure.c - whether an event says that something failed.
 *
 * An event fails (steps.md §1, imports.md §1.15) when its `error` is there and not empty, its
 * `status` is "error", "failed" or "ERROR" (Langfuse), its `kind` is "error" or, of a record that
 * could not be read, "bad", or one of its `tool_calls` has `failed`.
 * Of most records only the text is known, so both forms are read here, by the same rules.
 */
#include "lattice/record.h"

static bool is_any(cx_str value, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_eq(value, cx_str_z(words[i])))
            return true;
    return false;
}

/* Past the string that begins at `at`; the end of a text that is cut. */
static size_t skip_string(cx_str text, size_t at)
{
    for (at++; at < text.size && text.data[at] != '"'; at++)
        at += text.data[at] == '\\';
    return at + 1;
}

/* "failed":true of an item of the list, and not of what the item contains. */
static bool has_failed_call(cx_str list)
{
    static const char member[] = "\"failed\":true";
    unsigned depth = 0;
    for (size_t at = 0; at < list.size;) {
        char c = list.data[at];
        if (c != '"') {
            depth += c == '[' || c == '{';
            depth -= c == ']' || c == '}';
            at++;
            continue;
        }
        if (depth == 2 && cx_str_starts(cx_str_from(list.data + at, list.size - at),
                                        cx_str_from(member, sizeof member - 1)))
            return true;
        at = skip_string(list, at);
    }
    return false;
}

bool cx_lattice_failed_member(cx_str name, cx_str value)
{
    static const char *const nothing[] = {"null", "false", "\"\"", "{}", "[]"};
    static const char *const failures[] = {"\"error\"", "\"failed\"", "\"ERROR\""};
    static const char *const kinds[] = {"\"error\"", "\"bad\""};
    switch (name.size) {
    case 4: return cx_str_is(name, "kind") && is_any(value, kinds, CX_COUNT_OF(kinds));
    case 5: return cx_str_is(name, "error") && !is_any(value, nothing, CX_COUNT_OF(nothing));
    case 6: return cx_str_is(name, "status") && is_any(value, failures, CX_COUNT_OF(failures));
    case 10: return cx_str_is(name, "tool_calls") && value.data[0] == '[' && has_failed_call(value);
    default: return false;
    }
}

static bool is_something(const cx_json *value)
{
    switch (value->type) {
    case CX_JSON_NULL:
    case CX_JSON_FALSE: return false;
    case CX_JSON_STRING: return cx_json_text(value).size != 0;
    case CX_JSON_ARRAY:
    case CX_JSON_OBJECT: return value->count != 0;
    default: return true;
    }
}

bool cx_lattice_failed_event(const cx_json *event)
{
    static const char *const failures[] = {"error", "failed", "ERROR"};
    static const char *const kinds[] = {"error", "bad"};
    const cx_json *error = CX_JSON_GET(event, "error"), *calls = CX_JSON_GET(event, "tool_calls");
    if ((error != NULL && is_something(error)) ||
        is_any(CX_JSON_GET_STR(event, "status"), failures, CX_COUNT_OF(failures)) ||
        is_any(CX_JSON_GET_STR(event, "kind"), kinds, CX_COUNT_OF(kinds)))
        return true;
    for (uint32_t i = 0; calls != NULL && calls->type == CX_JSON_ARRAY && i < calls->count; i++) {
        const cx_json *failed = CX_JSON_GET(&calls->items[i], "failed");
        if (failed != NULL && failed->type == CX_JSON_TRUE)
            return true;
    }
    return false;
}
