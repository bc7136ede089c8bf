/*
 * wrap.c - one server's command line with the gateway in front, and without it.
 *
 *     "command": C, "args": [A]      "command": P, "args": ["mcp-gateway", .., "--", C, A]
 *     "command": C                   "command": P, "args": ["mcp-gateway", .., "--name=N", "--", C]
 *     "url": U                       "command": P, "args": ["mcp-gateway", .., "--url", U]
 *
 * C, A and U move as they are spelled, which makes the way back exact (R2).  The name is written in
 * one word where there were no args.
 */
#include "gateway/wrap.h"

#include <string.h>

#include "base/api.h"
#include "gateway/message.h"
#include "gateway/span.h"

#define GATEWAY_WORD "mcp-gateway"

/* One change: bytes of the text, and what takes their place. */
typedef struct edit {
    size_t begin, end;
    cx_buf text;
} edit;

typedef struct wrapping {
    const cx_gateway_wrap_syntax *syntax;
    cx_str text;
    const cx_gateway_wrap_entry *entry;
    const cx_gateway_wrap_how *how;
    cx_arena *arena;
    edit edits[3]; /* in the order of the text */
    size_t count;
    cx_buf *before, *after;
    const char *why;
    cx_err *err;
} wrapping;

/* --- parts ------------------------------------------------------------------------------------ */

static size_t offset_of(const wrapping *w, cx_str part)
{
    return (size_t)(part.data - w->text.data);
}

static size_t end_of(const wrapping *w, cx_str part)
{
    return offset_of(w, part) + part.size;
}

static cx_buf *begin_edit(wrapping *w, size_t begin, size_t end)
{
    CX_ASSERT(w->count < CX_COUNT_OF(w->edits));
    size_t at = w->count++;
    for (; at != 0 && w->edits[at - 1].begin > begin; at--)
        w->edits[at] = w->edits[at - 1];
    edit *e = &w->edits[at];
    e->begin = begin;
    e->end = end;
    cx_buf_init(&e->text, cx_alloc_default());
    return &e->text;
}

static void add_quoted(cx_buf *out, cx_str text)
{
    cx_buf_add_z(out, "\"");
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\')
            cx_buf_add_z(out, "\\");
        cx_buf_add(out, text.data + i, 1);
    }
    cx_buf_add_z(out, "\"");
}

static void add_word(cx_buf *shown, cx_str word)
{
    if (shown->size != 0)
        cx_buf_add_z(shown, " ");
    cx_shown_add(shown, word);
}

/* Words of the gateway, spelled and shown; `whole` writes the name in one word. */
static void add_gateway(wrapping *w, cx_buf *out, bool whole)
{
    add_word(w->after, w->how->program);
    add_word(w->after, CX_STR(GATEWAY_WORD));
    cx_buf_add_z(out, "\"" GATEWAY_WORD "\"");
    for (size_t i = 0; i < w->how->option_count; i++) {
        cx_buf_add_z(out, ", ");
        add_quoted(out, w->how->options[i]);
        add_word(w->after, w->how->options[i]);
    }
    cx_buf_add_z(out, whole ? ", \"--name=" : ", \"--name\", \"");
    cx_buf_add_str(out, w->entry->name);
    cx_buf_add_z(out, "\"");
    add_word(w->after, CX_STR("--name"));
    add_word(w->after, w->entry->name);
}

static cx_status show_items(wrapping *w, cx_str array, cx_buf *shown)
{
    size_t offset = 0;
    cx_str item;
    if (array.data == NULL)
        return CX_SUCCESS;
    while (w->syntax->next_item(array, &offset, &item)) {
        cx_str word = w->syntax->decode(item, w->arena);
        if (word.data == NULL)
            return cx_fail(w->err, CX_E_FORMAT, "an argument is no text");
        add_word(shown, word);
    }
    return CX_SUCCESS;
}

/* What stands between a member's name and its value. */
static cx_str separator_before(const wrapping *w, cx_str name, cx_str value)
{
    return cx_str_from(name.data + name.size, offset_of(w, value) - end_of(w, name));
}

/* --- with the gateway ------------------------------------------------------------------------- */

static cx_status wrap_command(wrapping *w)
{
    const cx_gateway_wrap_entry *e = w->entry;
    cx_str first = w->syntax->decode(e->command, w->arena);
    if (first.data == NULL) {
        w->why = "its command is no text";
        return CX_SUCCESS;
    }
    add_word(w->before, first);
    CX_TRY(show_items(w, e->args, w->before));
    cx_buf *command = begin_edit(w, offset_of(w, e->command), end_of(w, e->command));
    add_quoted(command, w->how->program);
    cx_buf *args = command;
    bool has_args = e->args.data != NULL;
    size_t offset = 0;
    cx_str item;
    bool is_empty = !has_args || !w->syntax->next_item(e->args, &offset, &item);
    if (has_args) {
        args = begin_edit(w, offset_of(w, e->args) + 1, offset_of(w, e->args) + 1);
    } else {
        cx_buf_add_z(args, w->syntax->joiner);
        cx_buf_add_z(args, w->syntax->args_name);
        cx_buf_add_z(args, w->syntax == &cx_gateway_wrap_json ? ": [" : " = [");
    }
    add_gateway(w, args, !has_args);
    cx_buf_add_z(args, ", \"--\", ");
    cx_buf_add_str(args, e->command);
    add_word(w->after, CX_STR("--"));
    add_word(w->after, first);
    cx_buf_add_z(args, !has_args ? "]" : is_empty ? "" : ", ");
    return show_items(w, e->args, w->after);
}

static cx_status wrap_url(wrapping *w)
{
    const cx_gateway_wrap_entry *e = w->entry;
    cx_str url = w->syntax->decode(e->url, w->arena);
    if (e->has_secrets) {
        w->why = "it has headers or a token: start it by hand with --url and --header";
        return CX_SUCCESS;
    }
    if (url.data == NULL || e->args.data != NULL) {
        w->why = "its address is no text, or it has arguments, too";
        return CX_SUCCESS;
    }
    add_word(w->before, url);
    cx_str between = separator_before(w, e->url_name, e->url);
    if (e->type.data != NULL) {
        if (!cx_str_is(e->type, "\"http\"")) {
            w->why = "only servers of the type http can be reached at an address";
            return CX_SUCCESS;
        }
        cx_buf_add_z(begin_edit(w, offset_of(w, e->type), end_of(w, e->type)), "\"stdio\"");
    }
    cx_buf *out = begin_edit(w, offset_of(w, e->url_name), end_of(w, e->url));
    cx_buf_add_z(out, w->syntax->command_name);
    cx_buf_add_str(out, between);
    add_quoted(out, w->how->program);
    cx_buf_add_z(out, w->syntax->joiner);
    cx_buf_add_z(out, w->syntax->args_name);
    cx_buf_add_str(out, between);
    cx_buf_add_z(out, "[");
    add_gateway(w, out, false);
    cx_buf_add_z(out, ", \"--url\", ");
    cx_buf_add_str(out, e->url);
    cx_buf_add_z(out, "]");
    add_word(w->after, CX_STR("--url"));
    add_word(w->after, url);
    return CX_SUCCESS;
}

/* --- without it ------------------------------------------------------------------------------- */

typedef struct wrapped {
    bool is_wrapped, whole_name;
    cx_str inner; /* the spelled command, or address */
    bool is_url;
    bool has_more; /* items after it */
} wrapped;

/* Finds the gateway's words at the beginning of args. */
static wrapped find_wrapped(wrapping *w)
{
    wrapped out = {0};
    size_t offset = 0, index = 0;
    cx_str item, word;
    bool inner_next = false;
    if (w->entry->args.data == NULL || w->entry->command.data == NULL)
        return out;
    while (w->syntax->next_item(w->entry->args, &offset, &item)) {
        word = w->syntax->decode(item, w->arena);
        if (word.data == NULL || (index++ == 0 && !cx_str_is(word, GATEWAY_WORD)))
            return out;
        if (inner_next) {
            out.inner = item;
            out.is_wrapped = true;
            out.has_more = w->syntax->next_item(w->entry->args, &offset, &item);
            return out;
        }
        out.whole_name |= cx_str_starts(word, CX_STR("--name="));
        out.is_url |= cx_str_is(word, "--url");
        inner_next = cx_str_is(word, "--") || cx_str_is(word, "--url");
    }
    return out;
}

static cx_status unwrap_command(wrapping *w, const wrapped *found)
{
    const cx_gateway_wrap_entry *e = w->entry;
    size_t begin = offset_of(w, e->args) + 1, end = end_of(w, found->inner);
    cx_buf_add_str(begin_edit(w, offset_of(w, e->command), end_of(w, e->command)), found->inner);
    bool follows = offset_of(w, e->args) > offset_of(w, e->command);
    if (found->whole_name && follows && !found->has_more) { /* there were no args */
        (void)begin_edit(w, end_of(w, e->command), end_of(w, e->args));
    } else {
        if (found->has_more && w->text.data[end] == ',')
            end += w->text.data[end + 1] == ' ' ? 2 : 1;
        (void)begin_edit(w, begin, end);
    }
    add_word(w->after, w->syntax->decode(found->inner, w->arena));
    size_t offset = 0;
    cx_str item;
    bool past = false;
    while (w->syntax->next_item(e->args, &offset, &item)) {
        if (past)
            add_word(w->after, w->syntax->decode(item, w->arena));
        past |= item.data == found->inner.data;
    }
    return CX_SUCCESS;
}

static cx_status unwrap_url(wrapping *w, const wrapped *found)
{
    const cx_gateway_wrap_entry *e = w->entry;
    size_t name_end = offset_of(w, e->command);
    size_t name_size = strlen(w->syntax->command_name), begin = name_end;
    /* Back over the separator to the name. */
    while (begin >= name_size &&
           memcmp(w->text.data + begin - name_size, w->syntax->command_name, name_size) != 0)
        begin--;
    if (begin < name_size || offset_of(w, e->args) < name_end) {
        w->why = "its members are not in the order in which they were written";
        return CX_SUCCESS;
    }
    cx_str between = cx_str_from(w->text.data + begin, name_end - begin);
    if (cx_str_is(e->type, "\"stdio\""))
        cx_buf_add_z(begin_edit(w, offset_of(w, e->type), end_of(w, e->type)), "\"http\"");
    cx_buf *out = begin_edit(w, begin - name_size, end_of(w, e->args));
    cx_buf_add_z(out, w->syntax == &cx_gateway_wrap_json ? "\"url\"" : "url");
    cx_buf_add_str(out, between);
    cx_buf_add_str(out, found->inner);
    add_word(w->after, w->syntax->decode(found->inner, w->arena));
    return CX_SUCCESS;
}

static cx_status unwrap(wrapping *w, const wrapped *found)
{
    cx_str program = w->syntax->decode(w->entry->command, w->arena);
    if (program.data == NULL) {
        w->why = "its command is no text";
        return CX_SUCCESS;
    }
    add_word(w->before, program);
    CX_TRY(show_items(w, w->entry->args, w->before));
    return found->is_url ? unwrap_url(w, found) : unwrap_command(w, found);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void add_edited(const wrapping *w, cx_buf *out)
{
    size_t at = 0;
    for (size_t i = 0; i < w->count; i++) {
        CX_ASSERT(w->edits[i].begin >= at && w->edits[i].end <= w->text.size);
        cx_buf_add(out, w->text.data + at, w->edits[i].begin - at);
        cx_buf_add_str(out, cx_buf_str(&w->edits[i].text));
        at = w->edits[i].end;
    }
    cx_buf_add(out, w->text.data + at, w->text.size - at);
}

/* Whether nothing but a comma, white space and comments follows the last item. */
static bool ends_list(cx_str args, size_t offset)
{
    bool comma = offset == 0;
    for (size_t i = comma ? 1 : offset; i + 1 < args.size; i++) {
        char c = args.data[i];
        if (c == '#') {
            while (i + 1 < args.size && args.data[i] != '\n')
                i++;
        } else if (c == ',' && !comma) {
            comma = true;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
            return false;
        }
    }
    return true;
}

/* A list of texts from '[' to ']', or none. */
static bool has_list(const wrapping *w)
{
    cx_str args = w->entry->args, item;
    size_t offset = 0;
    if (args.data == NULL)
        return true;
    if (args.size < 2 || args.data[0] != '[' || args.data[args.size - 1] != ']')
        return false;
    while (w->syntax->next_item(args, &offset, &item))
        if (w->syntax->decode(item, w->arena).data == NULL)
            return false;
    return ends_list(args, offset);
}

static cx_status make_edits(wrapping *w, cx_gateway_wrap_result *out_result)
{
    cx_err ignored;
    *out_result = CX_GATEWAY_WRAP_SAME;
    if (w->entry->is_odd || !has_list(w)) {
        w->why = "a member is there twice, or its args are no list of texts";
        return CX_SUCCESS;
    }
    wrapped found = find_wrapped(w);
    if (found.is_wrapped != w->how->unwrap)
        return CX_SUCCESS;
    *out_result = CX_GATEWAY_WRAP_CHANGED;
    if (w->how->unwrap)
        return unwrap(w, &found);
    if (cx_failed(cx_gateway_check_name(w->entry->name, &ignored))) {
        w->why = "the gateway takes names of letters, digits, '.', '-' and '_' (no \"__\") only";
        return CX_SUCCESS;
    }
    if (w->entry->command.data != NULL)
        return wrap_command(w);
    if (w->entry->url.data != NULL)
        return wrap_url(w);
    w->why = "it has neither a command nor an address in a form that is known";
    return CX_SUCCESS;
}

cx_status cx_gateway_wrap_entry_change(const cx_gateway_wrap_syntax *syntax, cx_str text,
                                       const cx_gateway_wrap_entry *entry,
                                       const cx_gateway_wrap_how *how, cx_arena *arena, cx_buf *out,
                                       cx_buf *out_before, cx_buf *out_after,
                                       cx_gateway_wrap_result *out_result, const char **out_why,
                                       cx_err *err)
{
    wrapping w = {.syntax = syntax,
                  .text = text,
                  .entry = entry,
                  .how = how,
                  .arena = arena,
                  .before = out_before,
                  .after = out_after,
                  .err = err};
    cx_status status = make_edits(&w, out_result);
    *out_why = w.why;
    if (w.why != NULL)
        *out_result = CX_GATEWAY_WRAP_IMPOSSIBLE;
    for (size_t i = 0; i < w.count && !cx_failed(status); i++)
        status = cx_buf_check(&w.edits[i].text, err);
    if (!cx_failed(status) && *out_result == CX_GATEWAY_WRAP_CHANGED) {
        add_edited(&w, out);
        status = cx_buf_check(out, err);
    }
    for (size_t i = 0; i < w.count; i++)
        cx_buf_done(&w.edits[i].text);
    return status;
}
