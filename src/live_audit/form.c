/*
 * form.c - calls in a form in which a hook's word and a transcript's can be compared, and what a
 * result says about whether its call ran.
 *
 * Hooks of Codex name commands otherwise than its transcripts do; hooks of Claude Code get absolute
 * paths where the model wrote relative ones.  Nothing else is smoothed over: a member more or less
 * is another input.
 */
#include <string.h>

#include "live_audit/parts.h"

#define TEXT_DEPTH_MAX 6

/* --- inputs ----------------------------------------------------------------------------------- */

typedef struct former {
    cx_live_agent agent;
    cx_arena *arena;
    const cx_live_tool *tool;
    cx_str name, cwd;
    cx_json input; /* an object */
    cx_live_audit_form *out;
} former;

/* {"command": text} */
static cx_status set_command(former *f, cx_str command, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(f->arena);
    cx_json_list_put(&object, CX_STR("command"), cx_json_make_str(command));
    return cx_json_list_end_object(&object, &f->input, err);
}

/* A list of words is shown by hooks as one text: that of `sh -c`, else the words. */
static cx_status set_words(former *f, const cx_json *words, cx_err *err)
{
    cx_buf text;
    f->out->in_words = true;
    if (words->count == 3 && words->items[1].type == CX_JSON_STRING &&
        words->items[2].type == CX_JSON_STRING) {
        cx_str option = cx_json_text(&words->items[1]);
        if (cx_str_is(option, "-c") || cx_str_is(option, "-lc"))
            return set_command(f, cx_json_text(&words->items[2]), err);
    }
    cx_buf_init(&text, cx_alloc_default());
    for (uint32_t i = 0; i < words->count; i++) {
        if (i != 0)
            cx_buf_add_byte(&text, ' ');
        if (words->items[i].type == CX_JSON_STRING)
            cx_buf_add_str(&text, cx_json_text(&words->items[i]));
    }
    cx_status status = cx_buf_check(&text, err);
    cx_str kept = cx_arena_copy_str(f->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    return kept.data == NULL ? cx_fail_nomem(err) : set_command(f, kept, err);
}

static bool is_command(const former *f)
{
    return f->tool != NULL && f->tool->form == CX_LIVE_FORM_COMMAND;
}

static bool is_patch(const former *f)
{
    return f->tool != NULL && f->tool->form == CX_LIVE_FORM_PATCH;
}

/* The first member of the tool's table that is a text. */
static const char *subject_member(const former *f)
{
    for (size_t i = 0; f->tool != NULL && i < CX_COUNT_OF(f->tool->members); i++) {
        const char *name = f->tool->members[i];
        if (name != NULL && cx_json_get_typed(&f->input, cx_str_z(name), CX_JSON_STRING) != NULL)
            return name;
    }
    return NULL;
}

/* What a transcript of Codex has becomes what its hooks send. */
static cx_status convert_codex(former *f, cx_err *err)
{
    const cx_json *words = cx_json_get_typed(&f->input, CX_STR("command"), CX_JSON_ARRAY);
    const char *member = subject_member(f);
    if (!is_command(f) && !is_patch(f))
        return CX_SUCCESS;
    if (words != NULL)
        return set_words(f, words, err);
    return member == NULL ? CX_SUCCESS
                          : set_command(f, cx_json_get_str(&f->input, cx_str_z(member)), err);
}

/* An object; a text is JSON or, for a patch, the patch itself. */
static cx_status read_input(former *f, const cx_json *input, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(f->arena);
    cx_err ignored;
    if (input != NULL && input->type == CX_JSON_OBJECT) {
        f->input = *input;
        return CX_SUCCESS;
    }
    if (input != NULL && input->type == CX_JSON_STRING) {
        cx_status status = cx_json_parse_text(cx_json_text(input), f->arena, &f->input, &ignored);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        if (!cx_failed(status) && f->input.type == CX_JSON_OBJECT)
            return CX_SUCCESS;
        return set_command(f, cx_json_text(input), err);
    }
    if (input != NULL && input->type != CX_JSON_NULL)
        cx_json_list_put(&object, CX_STR("value"), *input);
    return cx_json_list_end_object(&object, &f->input, err);
}

static cx_str join_path(const former *f, cx_str path)
{
    while (cx_str_starts(path, CX_STR("./")))
        path = cx_str_from(path.data + 2, path.size - 2);
    return cx_arena_printf(f->arena, "%.*s/%.*s", (int)f->cwd.size, f->cwd.data, (int)path.size,
                           path.data);
}

/* The input with its path made absolute, as hooks of Claude Code have it. */
static cx_status digest_absolute(former *f, cx_err *err)
{
    const char *member = subject_member(f);
    cx_json_list object = cx_json_list_begin(f->arena);
    cx_json value;
    f->out->absolute = f->out->input;
    bool is_file = f->tool != NULL &&
                   (f->tool->form == CX_LIVE_FORM_READ || f->tool->form == CX_LIVE_FORM_WRITE ||
                    f->tool->form == CX_LIVE_FORM_SEARCH);
    if (!is_file || member == NULL || f->cwd.size == 0)
        return CX_SUCCESS;
    cx_str path = cx_json_get_str(&f->input, cx_str_z(member));
    if (path.size == 0 || path.data[0] == '/' || path.size > 4096 || f->cwd.size > 4096)
        return CX_SUCCESS;
    cx_str whole = join_path(f, path);
    if (whole.data == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < f->input.count; i++) {
        cx_str name = cx_json_text(&f->input.members[i].name);
        cx_json_list_put(&object, name,
                         cx_str_is(name, member) ? cx_json_make_str(whole)
                                                 : f->input.members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_live_input_digest(&value, &f->out->absolute, NULL, err);
}

/* What calls without an id are told apart by: the kind of the tool .. */
static void add_class(cx_sha256 *hash, cx_live_agent agent, const cx_live_tool *tool, cx_str name)
{
    if (tool != NULL && tool->form == CX_LIVE_FORM_COMMAND) {
        cx_sha256_add(hash, "command", 8);
    } else if (agent == CX_LIVE_CURSOR && tool != NULL) {
        uint8_t form = (uint8_t)tool->form;
        cx_sha256_add(hash, "form", 5);
        cx_sha256_add(hash, &form, 1);
    } else {
        cx_sha256_add(hash, "tool", 5);
        for (size_t i = 0; i < name.size; i++) { /* Copilot writes "bash" and "Bash" */
            char c = name.data[i];
            c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
            cx_sha256_add(hash, &c, 1);
        }
        cx_sha256_add(hash, "", 1);
    }
}

void cx_live_audit_pair_of_digest(cx_live_agent agent, cx_str tool, cx_live_audit_form *form)
{
    cx_sha256 hash;
    cx_sha256_init(&hash);
    add_class(&hash, agent, cx_live_tool_find(tool), tool);
    cx_sha256_add(&hash, "#", 1);
    cx_sha256_add(&hash, form->input.bytes, sizeof form->input.bytes);
    form->pair = cx_sha256_end(&hash);
}

/* .. and its subject or, without one, its whole input. */
static cx_status digest_pair(former *f, uint64_t input_bytes, cx_err *err)
{
    cx_sha256 hash;
    const char *member = subject_member(f);
    if ((!is_command(f) && f->agent != CX_LIVE_CURSOR) || member == NULL ||
        input_bytes > CX_LIVE_KEPT_MAX) {
        cx_live_audit_pair_of_digest(f->agent, f->name, f->out);
        return CX_SUCCESS;
    }
    cx_str subject = cx_json_get_str(&f->input, cx_str_z(member));
    bool relative = !is_command(f) && subject.size != 0 && subject.data[0] != '/' &&
                    f->cwd.size != 0 && f->cwd.size <= 4096 && subject.size <= 4096;
    if (relative)
        subject = join_path(f, subject);
    if (subject.data == NULL && subject.size != 0)
        return cx_fail_nomem(err);
    cx_sha256_init(&hash);
    add_class(&hash, f->agent, f->tool, f->name);
    cx_sha256_add(&hash, "=", 1);
    cx_sha256_add(&hash, subject.data, subject.size);
    f->out->pair = cx_sha256_end(&hash);
    return CX_SUCCESS;
}

cx_status cx_live_audit_form_of(cx_live_agent agent, cx_str tool, cx_str mcp_server,
                                const cx_json *input, cx_str cwd, cx_arena *arena,
                                cx_live_audit_form *out, cx_err *err)
{
    former f = {.agent = agent,
                .arena = arena,
                .tool = cx_live_tool_find(tool),
                .name = tool,
                .cwd = cwd,
                .out = out};
    const cx_live_call call = {.agent = agent, .tool = tool, .mcp_server = mcp_server};
    cx_str server, name;
    uint64_t input_bytes = 0;
    memset(out, 0, sizeof *out);
    out->is_known_tool = f.tool != NULL;
    out->tool_form = f.tool == NULL ? CX_LIVE_FORM_NOTHING : f.tool->form;
    out->is_mcp = cx_live_tool_is_mcp(&call, &server, &name);
    CX_TRY(read_input(&f, input, err));
    if (agent == CX_LIVE_CODEX)
        CX_TRY(convert_codex(&f, err));
    CX_TRY(cx_live_input_digest(&f.input, &out->input, &input_bytes, err));
    CX_TRY(digest_absolute(&f, err));
    return digest_pair(&f, input_bytes, err);
}

/* --- results ---------------------------------------------------------------------------------- */

/* The first text in a result: itself, or in a member or item that usually has it. */
static cx_str first_text(const cx_json *value, unsigned depth)
{
    static const char *const members[] = {"text",       "content",  "output",
                                          "error",      "message",  "resultDisplay",
                                          "llmContent", "response", "functionResponse"};
    cx_str text = {NULL, 0};
    if (value == NULL || depth == TEXT_DEPTH_MAX)
        return text;
    if (value->type == CX_JSON_STRING)
        return cx_json_text(value);
    if (value->type == CX_JSON_ARRAY && value->count != 0)
        return first_text(&value->items[0], depth + 1);
    for (size_t i = 0; i < CX_COUNT_OF(members) && text.size == 0; i++)
        text = first_text(cx_json_get(value, cx_str_z(members[i])), depth + 1);
    return text;
}

static bool has_part(cx_str text, const char *part)
{
    return text.size != 0 && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

typedef struct phrase {
    const char *text;
    cx_live_audit_outcome outcome;
} phrase;

/* How a result begins that is no result of the tool. */
static const phrase claude_phrases[] = {
    {"<tool_use_error>", CX_LIVE_AUDIT_NEVER},
    {"PreToolUse:", CX_LIVE_AUDIT_REFUSED},
    {"PermissionRequest", CX_LIVE_AUDIT_REFUSED},
    {"Hook PreToolUse", CX_LIVE_AUDIT_REFUSED},
    {"Hook PermissionRequest", CX_LIVE_AUDIT_REFUSED},
    {"Permission to use ", CX_LIVE_AUDIT_REFUSED},
    {"The user doesn't want to ", CX_LIVE_AUDIT_REFUSED},
    {"cortex: ", CX_LIVE_AUDIT_REFUSED},
    {"Exit code ", CX_LIVE_AUDIT_RAN},
};
static const phrase codex_phrases[] = {
    {"Command blocked by ", CX_LIVE_AUDIT_REFUSED},
    {"Tool call blocked by ", CX_LIVE_AUDIT_REFUSED},
    {"exec command rejected by user", CX_LIVE_AUDIT_REFUSED},
    {"unsupported call", CX_LIVE_AUDIT_NEVER},
    {"failed to parse function arguments", CX_LIVE_AUDIT_NEVER},
};

static cx_live_audit_outcome outcome_by_phrase(cx_str text, const phrase *phrases, size_t count,
                                               cx_live_audit_outcome otherwise)
{
    if (cx_str_starts(text, CX_STR("Error: ")))
        text = cx_str_from(text.data + 7, text.size - 7);
    for (size_t i = 0; i < count; i++)
        if (cx_str_starts(text, cx_str_z(phrases[i].text)))
            return phrases[i].outcome;
    return otherwise;
}

cx_live_audit_outcome cx_live_audit_outcome_of(cx_live_agent agent, const cx_json *result, bool ok,
                                               const cx_json *raw)
{
    cx_str text = first_text(result, 0);
    if (agent == CX_LIVE_CODEX)
        return outcome_by_phrase(text, codex_phrases, CX_COUNT_OF(codex_phrases),
                                 CX_LIVE_AUDIT_RAN);
    if (ok)
        return CX_LIVE_AUDIT_RAN;
    if (agent == CX_LIVE_CLAUDE) {
        cx_str own = CX_JSON_GET_STR(raw, "toolUseResult");
        return outcome_by_phrase(own.size != 0 ? own : text, claude_phrases,
                                 CX_COUNT_OF(claude_phrases), CX_LIVE_AUDIT_UNCLEAR);
    }
    if (agent == CX_LIVE_COPILOT) {
        const cx_json *data = CX_JSON_GET(raw, "data");
        const cx_json *error = CX_JSON_GET(data, "error");
        if (cx_str_is(CX_JSON_GET_STR(error, "code"), "denied"))
            return CX_LIVE_AUDIT_REFUSED;
    }
    if (agent == CX_LIVE_CURSOR && CX_JSON_GET(result, "rejected") != NULL)
        return CX_LIVE_AUDIT_REFUSED;
    return has_part(text, "cortex: ") ? CX_LIVE_AUDIT_REFUSED : CX_LIVE_AUDIT_UNCLEAR;
}
