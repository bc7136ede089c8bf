/*
 * cmd_scope.c - `cortex scope make` and `scope check`: letting another agent read some memories as
 * they are in one snapshot.
 */
#include <string.h>

#include "cli/ledger/read_scope.h"
#include "cli/ledger/memory_view.h"
#include "cli/signer.h"
#include "ledger/api.h"

/* --- make ------------------------------------------------------------------------------------- */

typedef struct make_state {
    cx_cli_signer signer;
    cx_scope scope;
    bool at;
    uint64_t snapshot;
    uint8_t include_types[16], exclude_types[16];
    cx_id object;
} make_state;

static void read_types(const cx_cli_args *args, const char *option, uint8_t *types, cx_bytes *out)
{
    size_t count = 0;
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, option, given)) != NULL) {
        uint8_t type = cx_uri_type_code(cx_str_z(given->values[0]));
        if (memchr(types, type, count) == NULL)
            types[count++] = type;
    }
    *out = cx_bytes_from(types, count);
}

static cx_status read_ids(cx_cli_ledger *l, const char *option, cx_selector *out, cx_err *err)
{
    cx_id *ids = CX_ARENA_ARRAY(l->arena, cx_id, l->args->given_count + 1);
    if (ids == NULL)
        return cx_fail_nomem(err);
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(l->args, option, given)) != NULL) {
        cx_cli_name name;
        CX_TRY(cx_cli_parse_name(given->values[0], &name, err));
        ids[out->id_count++] = name.uri.id;
    }
    out->ids = ids;
    return CX_SUCCESS;
}

static cx_status read_tags(cx_cli_ledger *l, const char *option, cx_selector *out, cx_err *err)
{
    return cx_cli_all_values(l->cli, l->args, option, &out->tags.items, &out->tags.count, err);
}

static cx_status read_frame(cx_cli_ledger *l, make_state *s, cx_err *err)
{
    const char *text = cx_cli_value(l->args, "frame");
    if (text == NULL)
        return CX_SUCCESS;
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon[1] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --frame: found '%s', expected VERB:REF such as acquire:gpu", text);
    cx_str verb = cx_arena_copy_str(l->arena, cx_str_from(text, (size_t)(colon - text)));
    if (verb.data == NULL)
        return cx_fail_nomem(err);
    cx_selector *include = &s->scope.include;
    CX_TRY(cx_cli_parse_word("option --frame, verb", verb.data, cx_verb_name, CX_VERB_MAX,
                             &include->verb, err));
    s->object = cx_obj_hash(cx_str_z(colon + 1));
    include->has_frame = true;
    include->objects = &s->object;
    include->object_count = 1;
    return CX_SUCCESS;
}

static cx_status prepare_make(cx_cli_ledger *l, void *arg, cx_err *err)
{
    make_state *s = arg;
    cx_scope *scope = &s->scope;
    const char *to = cx_cli_value(l->args, "to"), *by = cx_cli_value(l->args, "granted-by");
    const char *expires = cx_cli_value(l->args, "expires");
    if (to == NULL || to[0] == 0)
        return cx_fail(err, CX_E_USAGE, "expected --to AGENT: the agent that may read");
    *scope = (cx_scope){.schema = CX_SCOPE_SCHEMA,
                        .actor = l->actor,
                        .granted_by = by == NULL ? l->actor : cx_str_z(by),
                        .granted_to = cx_str_z(to),
                        .writable = cx_cli_has(l->args, "writable"),
                        .budget_tokens = cx_cli_number(l->args, "budget", 0),
                        .expires = expires != NULL,
                        .signature = {.null = true}};
    s->at = cx_cli_has(l->args, "at");
    s->snapshot = cx_cli_number(l->args, "at", 0);
    if (expires != NULL)
        CX_TRY(cx_cli_parse_time("option --expires", expires, &scope->expires_at, err));
    read_types(l->args, "type", s->include_types, &scope->include.types);
    read_types(l->args, "not-type", s->exclude_types, &scope->exclude.types);
    CX_TRY(read_tags(l, "tag", &scope->include, err));
    CX_TRY(read_tags(l, "not-tag", &scope->exclude, err));
    CX_TRY(read_ids(l, "id", &scope->include, err));
    CX_TRY(read_ids(l, "not-id", &scope->exclude, err));
    CX_TRY(read_frame(l, s, err));
    if (cx_selector_is_empty(&scope->include))
        return cx_fail_at(err, CX_E_USAGE, "EmptyInclude", CX_NO_OFFSET,
                          "expected at least one of --type, --tag, --id, --frame: what may be "
                          "read");
    return cx_cli_signer_open(l->cli, l->args, &s->signer, err);
}

static cx_status sign_scope(make_state *s, cx_signature *signature, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, s->signer.cli->alloc);
    cx_scope_to_sign(&s->scope, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_cli_signer_sign(&s->signer, cx_buf_bytes(&text), signature, err);
    cx_buf_done(&text);
    s->scope.signature =
        (cx_maybe_bytes){.bytes = cx_bytes_from(signature->bytes, sizeof signature->bytes)};
    return status;
}

static cx_status scope_json(cx_cli_ledger *l, const cx_scope *scope, cx_json_list *json,
                            cx_err *err)
{
    (void)err;
    cx_json_put_str(json, "actor", scope->actor);
    cx_json_put_uint(json, "budget", scope->budget_tokens);
    cx_json_put_time(json, "expires_at", scope->expires, scope->expires_at);
    cx_json_put_str(json, "granted_by", scope->granted_by);
    cx_json_put_str(json, "granted_to", scope->granted_to);
    cx_json_put_uint(json, "ids", scope->include.id_count);
    cx_json_put_digest(json, "overall_root", &scope->snapshot_hash);
    cx_json_put_bool(json, "writable", scope->writable);
    (void)l;
    return CX_SUCCESS;
}

static cx_status scope_make_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    make_state *s = arg;
    cx_signature signature;
    cx_buf bytes;
    const uint64_t at = s->snapshot;
    CX_TRY(cx_scope_pin(l->home, &s->scope, s->at ? &at : NULL, l->arena, &s->snapshot, err));
    CX_TRY(sign_scope(s, &signature, err));
    cx_buf_init(&bytes, l->cli->alloc);
    cx_scope_encode(&s->scope, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = cx_cli_deliver(l->cli, l->args, cx_buf_bytes(&bytes), err);
    if (!cx_failed(status) && l->json) {
        cx_json_list json = cx_json_list_begin(l->arena);
        status = scope_json(l, &s->scope, &json, err);
        cx_json_put_uint(&json, "snapshot", s->snapshot);
        if (!cx_failed(status))
            status = cx_cli_end_json(&json, &l->out, err);
    }
    cx_buf_done(&bytes);
    return status;
}

static int run_scope_make(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, prepare_make, scope_make_job};
    make_state state = {.at = false};
    if (cx_cli_has(args, "json") && !cx_cli_has(args, "output"))
        return cx_cli_misuse(args, "--json needs --output FILE for the scope itself");
    int code = cx_cli_run_job(cli, args, &job, &state);
    cx_cli_signer_done(&state.signer);
    return code;
}

#define TYPE_NAMES "Identity|Fact|Preference|Belief|Event|Goal|Constraint|Capability|Pattern"

static const cx_cli_option make_options[] = {
    CX_CLI_OPT("to", 0, CX_CLI_TEXT, "AGENT", "The agent that may read; required."),
    CX_CLI_OPT("granted-by", 0, CX_CLI_TEXT, "AGENT",
               "The grantor, whose key signs; default the actor."),
    CX_CLI_OPT("at", 0, CX_CLI_COUNT, "SNAPSHOT", "The snapshot they see; default the newest."),
    CX_CLI_OPT_MANY("type", 0, CX_CLI_CHOICE, TYPE_NAMES, "All of this type; may be repeated."),
    CX_CLI_OPT_MANY("tag", 0, CX_CLI_TEXT, "TAG", "All with this tag; may be repeated."),
    CX_CLI_OPT_MANY("id", 0, CX_CLI_TEXT, "URI", "This memory; may be repeated."),
    CX_CLI_OPT("frame", 0, CX_CLI_TEXT, "VERB:REF", "All about this, such as acquire:gpu."),
    CX_CLI_OPT_MANY("not-type", 0, CX_CLI_CHOICE, TYPE_NAMES, "But none of this type."),
    CX_CLI_OPT_MANY("not-tag", 0, CX_CLI_TEXT, "TAG", "But none with this tag."),
    CX_CLI_OPT_MANY("not-id", 0, CX_CLI_TEXT, "URI", "But not this memory."),
    CX_CLI_OPT("expires", 0, CX_CLI_TEXT, "TIME", "Until then: RFC 3339, or seconds since 1970."),
    CX_CLI_OPT("budget", 0, CX_CLI_COUNT, "TOKENS", "How many tokens they may read at a time."),
    CX_CLI_OPT_FLAG("writable", 0,
                    "They may also write such memories, update them, and change their labels, "
                    "through a server."),
    CX_CLI_OPTIONS_SIGNER,
    CX_CLI_OPTION_OUTPUT("the scope"),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_scope_make = {
    .name = "scope make",
    .purpose = "grant another agent access to some memories",
    .about = "Writes a signed scope: which agent may read which of the actor's memories, as of one "
             "snapshot. 'memory get', 'find' and 'context' accept it as --scope.",
    .options = make_options,
    .option_count = CX_COUNT_OF(make_options),
    .exits = "0 written\n1 the signature was not made by the given key\n2 usage error, or "
             "something named does not exist\n3 could not be written: no data directory, "
             "unreadable, the signer failed",
    .example =
        "cortex scope make --to helper --tag public --sign ~/keys/cortex.key -o helper.scope",
    .run = run_scope_make,
};

/* --- check ------------------------------------------------------------------------------------ */

typedef struct check_state {
    cx_bytes bytes;
    cx_cli_keys keys;
    cx_str presenter;
} check_state;

static cx_status prepare_check(cx_cli_ledger *l, void *arg, cx_err *err)
{
    check_state *s = arg;
    const char *presenter = cx_cli_value(l->args, "presenter");
    s->presenter = presenter == NULL ? (cx_str){NULL, 0} : cx_str_z(presenter);
    CX_TRY(cx_cli_read_keys(l->cli, l->args, &s->keys, err));
    return cx_cli_read_file(l->cli, l->args->operands[0], &s->bytes, err);
}

static cx_status scope_check_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    check_state *s = arg;
    cx_scope_use granted;
    cx_finding finding;
    cx_scope scope;
    cx_json_list json = cx_json_list_begin(l->arena);
    CX_TRY(cx_cli_check_scope(l, s->bytes, &s->keys, s->presenter, &granted, &finding, err));
    bool readable = !cx_failed(cx_scope_decode(s->bytes, l->arena, &scope, NULL));
    const char *verdict = cx_verdict_name(finding.verdict);
    l->exit_code = finding.verdict == CX_HOLDS    ? CX_EXIT_HOLDS
                   : finding.verdict == CX_BROKEN ? CX_EXIT_BROKEN
                                                  : CX_EXIT_UNCHECKED;
    if (l->json) {
        if (readable)
            CX_TRY(scope_json(l, &scope, &json, err));
        cx_json_put_maybe(&json, "detail", cx_str_z(finding.message));
        cx_json_put_maybe(&json, "reason", cx_str_z(finding.reason == NULL ? "" : finding.reason));
        cx_json_put_str(&json, "verdict", cx_str_z(verdict));
        return cx_cli_end_json(&json, &l->out, err);
    }
    cx_shown_add(&l->out, cx_str_z(l->args->operands[0]));
    cx_buf_printf(&l->out, ": %s", verdict);
    if (finding.reason != NULL) {
        cx_buf_printf(&l->out, " %s: ", finding.reason);
        cx_shown_add(&l->out, cx_str_z(finding.message));
    }
    cx_buf_add_byte(&l->out, '\n');
    if (readable && finding.reason != NULL &&
        (strcmp(finding.reason, "UnknownAgent") == 0 ||
         strcmp(finding.reason, "NoKeyResolver") == 0)) {
        cx_buf_add_z(&l->out, "  give the key with --key ");
        cx_shown_add(&l->out, scope.granted_by);
        cx_buf_add_z(&l->out, "=KEY\n");
    }
    if (readable) {
        cx_buf_add_z(&l->out, "  ");
        cx_shown_add(&l->out, scope.granted_by);
        cx_buf_add_z(&l->out, " lets ");
        cx_shown_add(&l->out, scope.granted_to);
        cx_buf_add_z(&l->out,
                     scope.writable ? " read and change memories of " : " read memories of ");
        cx_shown_add(&l->out, scope.actor);
        if (scope.expires) {
            cx_buf_add_z(&l->out, " until ");
            cx_form_time(scope.expires_at, &l->out);
        }
        cx_buf_add_byte(&l->out, '\n');
    }
    return CX_SUCCESS;
}

static int run_scope_check(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, prepare_check, scope_check_job};
    check_state state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand check_operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option check_options[] = {
    CX_CLI_OPTION_SCOPE_KEY,
    CX_CLI_OPT("presenter", 0, CX_CLI_TEXT, "AGENT",
               "The agent that presents the scope: it must be the one that the scope names."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_scope_check = {
    .name = "scope check",
    .purpose = "verify a scope",
    .about = "Checks a scope's signature, time, snapshot and proof against the data directory. "
             "--key must give the key of its grantor.",
    .operands = check_operands,
    .operand_count = CX_COUNT_OF(check_operands),
    .options = check_options,
    .option_count = CX_COUNT_OF(check_options),
    .exits = "0 holds\n1 does not hold\n2 usage error\n3 could not be checked: no key, no data "
             "directory, unreadable",
    .example = "cortex scope check helper.scope --key andrew=andrew.pub",
    .run = run_scope_check,
};
