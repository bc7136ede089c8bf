/*
 * register.c - see register.h: adding, removing and reading our entries.
 */
#include "live/register.h"

#include <string.h>

#include "live/register_parts.h"

/* The parts of a configuration that matter here. */
typedef struct hook_file {
    cx_live_agent agent;
    cx_arena *arena;
    cx_str text;
    cx_slices root, hooks; /* hooks: empty without has_hooks */
    bool has_hooks;
} hook_file;

/* --- reading ---------------------------------------------------------------------------------- */

/* R1: says what to do about comments, which agents read and strict JSON has not. */
static cx_status read_strict(cx_str text, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_err own = {0};
    uint64_t line, column;
    if (text.size > CX_LIVE_CONFIG_MAX)
        return cx_fail(err, CX_E_LIMIT, "longer than 1 MiB: no agent's configuration is");
    cx_status status = cx_json_parse_text(text, arena, out, &own);
    if (!cx_failed(status))
        return status;
    bool comment = own.offset < text.size && text.data[own.offset] == '/';
    if (comment) {
        cx_json_locate(text, own.offset, &line, &column);
        return cx_fail_at(err, status.code, own.tag, own.offset,
                          "line %llu, column %llu: found a comment, expected strict JSON: files "
                          "with comments are not edited; take it out first",
                          (unsigned long long)line, (unsigned long long)column);
    }
    if (status.code == CX_E_NOMEM || own.offset > text.size ||
        strncmp(own.message, "line ", 5) == 0) {
        if (err != NULL)
            *err = own;
        return status;
    }
    cx_json_locate(text, own.offset, &line, &column);
    return cx_fail_at(err, status.code, own.tag, own.offset, "line %llu, column %llu: %s",
                      (unsigned long long)line, (unsigned long long)column, own.message);
}

static cx_status expect_type(const cx_json *value, cx_json_type type, const char *what, cx_str text,
                             cx_str slice, cx_err *err)
{
    uint64_t line = 1, column = 1;
    if (value == NULL || value->type == type)
        return CX_SUCCESS;
    if (slice.data != NULL)
        cx_json_locate(text, (size_t)(slice.data - text.data), &line, &column);
    return cx_fail(err, CX_E_FORMAT, "line %llu, column %llu: %s: found %s, expected %s",
                   (unsigned long long)line, (unsigned long long)column, what,
                   cx_json_type_name(value), type == CX_JSON_OBJECT ? "object" : "array");
}

/* Empty text is an empty object. */
static cx_status read_hook_file(cx_str text, cx_live_agent agent, cx_arena *arena, cx_json *root,
                                hook_file *out, cx_err *err)
{
    size_t blank = 0;
    while (blank < text.size && memchr(" \t\r\n", text.data[blank], 4) != NULL)
        blank++;
    if (blank == text.size)
        text = CX_STR("{\n}\n");
    *out = (hook_file){.agent = agent, .arena = arena, .text = text};
    CX_TRY(read_strict(text, arena, root, err));
    CX_TRY(expect_type(root, CX_JSON_OBJECT, "the configuration", text, (cx_str){NULL, 0}, err));
    CX_TRY(cx_slices_of(text, arena, &out->root, err));
    /* The container without the white space around it. */
    size_t end = text.size;
    while (memchr(" \t\r\n", text.data[end - 1], 4) != NULL)
        end--;
    while (memchr(" \t\r\n", out->root.container.data[0], 4) != NULL)
        out->root.container.data++;
    out->root.container.size = (size_t)(text.data + end - out->root.container.data);
    const cx_slice *hooks = cx_slices_find(&out->root, "hooks");
    out->has_hooks = hooks != NULL;
    if (hooks == NULL)
        return CX_SUCCESS;
    CX_TRY(expect_type(CX_JSON_GET(root, "hooks"), CX_JSON_OBJECT, "\"hooks\"", text, hooks->value,
                       err));
    CX_TRY(cx_slices_of(hooks->value, arena, &out->hooks, err));
    for (size_t i = 0; i < out->hooks.count; i++) {
        const cx_json *list = cx_json_get(CX_JSON_GET(root, "hooks"), out->hooks.items[i].name);
        CX_TRY(expect_type(list, CX_JSON_ARRAY, "a list of hooks", text, out->hooks.items[i].value,
                           err));
    }
    return CX_SUCCESS;
}

/* Whether an entry is ours (R2). */
static bool entry_is_ours(const hook_file *f, const cx_json *entry, cx_live_hook *out)
{
    cx_str command = cx_json_get_str(entry, cx_str_z(cx_hook_form_of(f->agent)->command));
    return command.data != NULL && cx_live_hook_command_read(command, f->arena, out) &&
           out->agent == f->agent;
}

static const cx_live_hook_event *event_named(cx_live_agent agent, cx_str name)
{
    size_t count;
    const cx_live_hook_event *events = cx_live_hook_events(agent, &count);
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(name, events[i].name))
            return &events[i];
    return NULL;
}

/* The entries of an element of an event's list: itself, or those of its group. */
static const cx_json *entries_of(const hook_file *f, const cx_json *element, uint32_t *out_count)
{
    *out_count = 1;
    if (!cx_hook_form_of(f->agent)->grouped)
        return element;
    const cx_json *list = cx_json_get_typed(element, CX_STR("hooks"), CX_JSON_ARRAY);
    *out_count = list == NULL ? 0 : list->count;
    return list == NULL ? NULL : list->items;
}

/* Whether an element is what would be written for the hook that it has. */
static cx_status element_is_exact(const hook_file *f, const cx_json *element, cx_str event_name,
                                  const cx_live_hook *hook, bool *out, cx_err *err)
{
    const cx_live_hook_event *event = event_named(f->agent, event_name);
    cx_str expected;
    cx_json value;
    *out = false;
    if (event == NULL)
        return CX_SUCCESS;
    if (cx_failed(cx_hook_element(hook, event, f->arena, &expected, err)))
        return CX_SUCCESS; /* a path that is never written */
    CX_TRY(cx_json_parse_text(expected, f->arena, &value, err));
    *out = cx_json_equal(&value, element);
    return CX_SUCCESS;
}

static bool same_hook(const cx_live_hook *a, const cx_live_hook *b)
{
    return a->agent == b->agent && a->mode == b->mode && cx_str_eq(a->program, b->program) &&
           cx_str_eq(a->home, b->home);
}

static cx_status read_event(const hook_file *f, const cx_json *list, cx_str name,
                            cx_live_registered *out, cx_err *err)
{
    size_t ours = 0, exact = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t count;
        const cx_json *entries = entries_of(f, &list->items[i], &count);
        for (uint32_t k = 0; k < count; k++) {
            cx_live_hook hook;
            bool is_exact;
            if (!entry_is_ours(f, &entries[k], &hook)) {
                out->others++;
                continue;
            }
            CX_TRY(element_is_exact(f, &list->items[i], name, &hook, &is_exact, err));
            if (out->ours == 0)
                out->hook = hook;
            else if (!same_hook(&out->hook, &hook))
                out->mixed = true;
            out->ours++;
            ours++;
            exact += is_exact;
        }
    }
    if (ours == 1 && exact == 1)
        out->complete++;
    return CX_SUCCESS;
}

static bool member_is(const cx_json *object, const char *name, cx_json_type type)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == type;
}

static void read_switches(const cx_json *root, cx_live_registered *out)
{
    const cx_json *config = CX_JSON_GET(root, "hooksConfig");
    out->off = member_is(root, "disableAllHooks", CX_JSON_TRUE) ||
               (config != NULL && member_is(config, "enabled", CX_JSON_FALSE));
    out->on = config != NULL && member_is(config, "enabled", CX_JSON_TRUE);
    out->managed_only = member_is(root, "allowManagedHooksOnly", CX_JSON_TRUE);
    const cx_json *list = cx_json_get_typed(config, CX_STR("disabled"), CX_JSON_ARRAY);
    for (uint32_t i = 0; list != NULL && i < list->count; i++)
        if (list->items[i].type == CX_JSON_STRING &&
            cx_str_is(cx_json_text(&list->items[i]), "cortex"))
            out->off = true;
}

cx_status cx_live_register_read(cx_str text, cx_live_agent agent, cx_arena *arena,
                                cx_live_registered *out, cx_err *err)
{
    hook_file f;
    cx_json root;
    size_t expected;
    cx_live_registered found = {0};
    CX_TRY(read_hook_file(text, agent, arena, &root, &f, err));
    read_switches(&root, &found);
    const cx_json *hooks = CX_JSON_GET(&root, "hooks");
    const cx_live_hook_event *events = cx_live_hook_events(agent, &expected);
    for (size_t i = 0; i < f.hooks.count; i++)
        CX_TRY(read_event(&f, cx_json_get(hooks, f.hooks.items[i].name), f.hooks.items[i].name,
                          &found, err));
    found.expected = expected;
    for (size_t i = 0; i < expected && found.missing == NULL; i++) {
        cx_live_registered one = {0};
        const cx_json *list = cx_json_get(hooks, cx_str_z(events[i].name));
        if (list != NULL)
            CX_TRY(read_event(&f, list, cx_str_z(events[i].name), &one, err));
        if (one.complete == 0)
            found.missing = events[i].name;
    }
    *out = found;
    return CX_SUCCESS;
}

/* --- removing --------------------------------------------------------------------------------- */

/* Of one group: our entries; the whole of it when it has no others. */
static cx_status remove_of_group(const hook_file *f, cx_text_editor *editor, const cx_json *element,
                                 cx_str slice, bool *out_all, size_t *out_count, cx_err *err)
{
    cx_slices group, entries;
    uint32_t count;
    size_t ours = 0;
    cx_live_hook hook;
    const cx_json *items = entries_of(f, element, &count);
    bool *gone = CX_ARENA_ARRAY(f->arena, bool, (size_t)count + 1);
    if (gone == NULL)
        return cx_fail_nomem(err);
    for (uint32_t k = 0; k < count; k++)
        ours += gone[k] = entry_is_ours(f, &items[k], &hook);
    *out_count += ours;
    *out_all = ours != 0 && ours == count;
    if (ours == 0 || *out_all)
        return CX_SUCCESS;
    CX_TRY(cx_slices_of(slice, f->arena, &group, err));
    CX_TRY(cx_slices_of(cx_slices_find(&group, "hooks")->value, f->arena, &entries, err));
    cx_text_editor_remove(editor, &entries, gone);
    return CX_SUCCESS;
}

/* Of one event; *out_all: its list is empty then, by what was removed. */
static cx_status remove_of_event(const hook_file *f, cx_text_editor *editor, const cx_json *list,
                                 cx_str slice, bool *out_all, size_t *out_count, cx_err *err)
{
    cx_slices parts;
    size_t whole = 0;
    bool *gone = CX_ARENA_ARRAY(f->arena, bool, (size_t)list->count + 1);
    if (gone == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_slices_of(slice, f->arena, &parts, err));
    size_t edits = editor->count;
    for (uint32_t i = 0; i < list->count; i++) {
        CX_TRY(remove_of_group(f, editor, &list->items[i], parts.items[i].value, &gone[i],
                               out_count, err));
        whole += gone[i];
    }
    *out_all = whole != 0 && whole == list->count;
    CX_ASSERT(!*out_all || editor->count == edits);
    if (!*out_all)
        cx_text_editor_remove(editor, &parts, gone);
    return CX_SUCCESS;
}

static cx_status remove_ours(const hook_file *f, const cx_json *root, cx_text_editor *editor,
                             bool managed_only, size_t *out_count, cx_err *err)
{
    bool *of_root = CX_ARENA_ARRAY(f->arena, bool, f->root.count + 1);
    bool *of_hooks = CX_ARENA_ARRAY(f->arena, bool, f->hooks.count + 1);
    size_t empty = 0;
    if (of_root == NULL || of_hooks == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < f->hooks.count; i++) {
        const cx_slice *part = &f->hooks.items[i];
        const cx_json *list = cx_json_get(CX_JSON_GET(root, "hooks"), part->name);
        CX_TRY(remove_of_event(f, editor, list, part->value, &of_hooks[i], out_count, err));
        empty += of_hooks[i];
    }
    bool all = empty != 0 && empty == f->hooks.count;
    if (!all)
        cx_text_editor_remove(editor, &f->hooks, of_hooks);
    for (size_t i = 0; i < f->root.count; i++)
        of_root[i] = (all && cx_str_is(f->root.items[i].name, "hooks")) ||
                     (managed_only && *out_count != 0 &&
                      cx_str_is(f->root.items[i].name, "allowManagedHooksOnly"));
    cx_text_editor_remove(editor, &f->root, of_root);
    return CX_SUCCESS;
}

cx_status cx_live_register_remove(cx_str text, cx_live_agent agent,
                                  const cx_live_register_options *options, cx_arena *arena,
                                  cx_buf *out, size_t *out_removed, cx_err *err)
{
    hook_file f;
    cx_json root;
    cx_text_editor editor;
    size_t removed = 0;
    CX_TRY(read_hook_file(text, agent, arena, &root, &f, err));
    cx_text_editor_init(&editor, f.text, arena);
    if (f.has_hooks)
        CX_TRY(remove_ours(&f, &root, &editor, options->managed_only, &removed, err));
    *out_removed = removed;
    if (removed == 0) {
        cx_buf_add_str(out, text);
        return cx_buf_check(out, err);
    }
    return cx_text_editor_end(&editor, out, err);
}

/* --- adding ----------------------------------------------------------------------------------- */

/* The members of "hooks" for events that have no list; in *out as items to append. */
static cx_status missing_events(const hook_file *f, const cx_live_hook *hook, cx_str *out,
                                size_t *out_count, cx_err *err)
{
    size_t count;
    const cx_live_hook_event *events = cx_live_hook_events(f->agent, &count);
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        cx_str element;
        if (f->has_hooks && cx_slices_find(&f->hooks, events[i].name) != NULL)
            continue;
        CX_TRY(cx_hook_element(hook, &events[i], f->arena, &element, err));
        cx_str item = cx_arena_printf(f->arena, "\"%s\": [%s]", events[i].name, element.data);
        if (item.data == NULL)
            return cx_fail_nomem(err);
        out[(*out_count)++] = item;
    }
    return CX_SUCCESS;
}

static cx_status append_to_lists(const hook_file *f, cx_text_editor *editor,
                                 const cx_live_hook *hook, cx_err *err)
{
    for (size_t i = 0; i < f->hooks.count; i++) {
        const cx_live_hook_event *event = event_named(f->agent, f->hooks.items[i].name);
        cx_slices list;
        cx_str element;
        if (event == NULL)
            continue;
        CX_TRY(cx_hook_element(hook, event, f->arena, &element, err));
        CX_TRY(cx_slices_of(f->hooks.items[i].value, f->arena, &list, err));
        cx_text_editor_append(editor, &list, &element, 1);
    }
    return CX_SUCCESS;
}

#define EVENTS_MAX 16

/* "hooks": {..} with a line for each event. */
static cx_status new_hooks_member(const hook_file *f, const cx_str *events, size_t count,
                                  cx_str *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "\"hooks\": {");
    for (size_t i = 0; i < count; i++) {
        cx_buf_add_z(&text, i == 0 ? "\n\t" : ",\n\t");
        cx_buf_add_str(&text, events[i]);
    }
    cx_buf_add_z(&text, "\n}");
    *out = cx_arena_copy_str(f->arena, cx_buf_str(&text));
    bool failed = text.failed || out->data == NULL;
    cx_buf_done(&text);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Members of the root besides "hooks": appended, or their value replaced. */
static cx_status add_switches(const hook_file *f, const cx_json *root, cx_text_editor *editor,
                              const cx_live_register_options *options, cx_str *items, size_t *count,
                              cx_err *err)
{
    if (cx_hook_form_of(f->agent)->version && CX_JSON_GET(root, "version") == NULL)
        items[(*count)++] = CX_STR("\"version\": 1");
    if (options->managed_only && f->agent == CX_LIVE_CLAUDE) {
        const cx_slice *part = cx_slices_find(&f->root, "allowManagedHooksOnly");
        if (part == NULL)
            items[(*count)++] = CX_STR("\"allowManagedHooksOnly\": true");
        else if (!cx_str_is(part->value, "true"))
            cx_text_editor_replace(editor, part->value, CX_STR("true"));
    }
    if (!options->managed || f->agent != CX_LIVE_GEMINI)
        return CX_SUCCESS;
    const cx_slice *config = cx_slices_find(&f->root, "hooksConfig");
    if (config == NULL) {
        items[(*count)++] = CX_STR("\"hooksConfig\": {\n\t\"enabled\": true\n}");
        return CX_SUCCESS;
    }
    cx_slices parts;
    const cx_str enabled = CX_STR("\"enabled\": true");
    CX_TRY(expect_type(CX_JSON_GET(root, "hooksConfig"), CX_JSON_OBJECT, "\"hooksConfig\"", f->text,
                       config->value, err));
    CX_TRY(cx_slices_of(config->value, f->arena, &parts, err));
    const cx_slice *part = cx_slices_find(&parts, "enabled");
    if (part == NULL)
        cx_text_editor_append(editor, &parts, &enabled, 1);
    else if (!cx_str_is(part->value, "true"))
        cx_text_editor_replace(editor, part->value, CX_STR("true"));
    return CX_SUCCESS;
}

/* To a text that has none of ours. */
static cx_status add_all(cx_str text, const cx_live_hook *hook,
                         const cx_live_register_options *options, cx_arena *arena, cx_buf *out,
                         cx_err *err)
{
    hook_file f;
    cx_json root;
    cx_text_editor editor;
    cx_str events[EVENTS_MAX], items[EVENTS_MAX];
    size_t event_count, count = 0;
    CX_TRY(read_hook_file(text, hook->agent, arena, &root, &f, err));
    cx_text_editor_init(&editor, f.text, arena);
    CX_TRY(missing_events(&f, hook, events, &event_count, err));
    CX_TRY(add_switches(&f, &root, &editor, options, items, &count, err));
    if (f.has_hooks) {
        CX_TRY(append_to_lists(&f, &editor, hook, err));
        cx_text_editor_append(&editor, &f.hooks, events, event_count);
    } else {
        CX_TRY(new_hooks_member(&f, events, event_count, &items[count], err));
        count++;
    }
    cx_text_editor_append(&editor, &f.root, items, count);
    return cx_text_editor_end(&editor, out, err);
}

/* R3 */
static bool is_done(const cx_live_registered *now, const cx_live_hook *hook,
                    const cx_live_register_options *options)
{
    return now->complete == now->expected && now->ours == now->expected && !now->mixed &&
           same_hook(&now->hook, hook) && (!options->managed_only || now->managed_only) &&
           (!options->managed || hook->agent != CX_LIVE_GEMINI || now->on);
}

cx_status cx_live_register_add(cx_str text, const cx_live_hook *hook,
                               const cx_live_register_options *options, cx_arena *arena,
                               cx_buf *out, cx_err *err)
{
    cx_live_registered now;
    const cx_live_register_options keep = {0};
    size_t removed;
    cx_buf without;
    CX_TRY(cx_live_register_read(text, hook->agent, arena, &now, err));
    if (is_done(&now, hook, options)) {
        cx_buf_add_str(out, text);
        return cx_buf_check(out, err);
    }
    cx_buf_init(&without, cx_alloc_default());
    cx_status status =
        cx_live_register_remove(text, hook->agent, &keep, arena, &without, &removed, err);
    cx_str base = cx_arena_copy_str(arena, cx_buf_str(&without));
    if (!cx_failed(status) && base.data == NULL)
        status = cx_fail_nomem(err);
    cx_buf_done(&without);
    return cx_failed(status) ? status : add_all(base, hook, options, arena, out, err);
}
