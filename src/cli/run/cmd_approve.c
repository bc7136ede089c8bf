/*
 * cmd_approve.c - `cortex approve` and `cortex approvals list`: what humans sign so that one run
 * may do more than its role's row (run.md §13).
 */
#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "cli/signer.h"
#include "crypto/api.h"
#include "approval/api.h"
#include "rules/api.h"

static int run_approve(cx_cli *cli, const cx_cli_args *args);
static int run_approvals_list(cx_cli *cli, const cx_cli_args *args);

#define DAY_NS (INT64_C(86400) * 1000000000)

static const cx_cli_option approve_options[] = {
    CX_CLI_OPT("contract", 0, CX_CLI_FILE, "FILE", "The contract it is for: exactly these bytes."),
    CX_CLI_OPT_MANY("scope", 0, CX_CLI_TEXT, "SCOPE",
                    "What it allows: wide_path:PATH, permission:FIELD=VALUE, network, sampling, "
                    "script:PATH, unlock:PATH, override_file:PATH, sandbox_degraded."),
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; it is part of the evidence."),
    CX_CLI_OPTIONS_SIGNER_KEY,
    CX_CLI_OPT("expires", 0, CX_CLI_TEXT, "WHEN",
               "When it ends: a span such as 90m, 24h or 7d, or a time such as "
               "2026-01-31T12:00:00Z; default 24h."),
    CX_CLI_OPT("run", 0, CX_CLI_TEXT, "RUN", "Only for the run with this id."),
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE",
               "Write it to FILE instead of the runtime root; hand it over with 'cortex run "
               "--approval FILE'."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_approve = {
    .name = "approve",
    .purpose = "sign an approval for one run of a contract",
    .about = "Signs that one run of this contract may do what its scopes name, once, until it "
             "expires. The key must be one of policies/approvers.json, whose digest the "
             "repository's configuration pins; both are read from the commit HEAD. The key never "
             "leaves this command.\n\nAn approval is valid for exactly these bytes of the "
             "contract; the first run that needs it uses it up.",
    .options = approve_options,
    .option_count = CX_COUNT_OF(approve_options),
    .exits = "0 signed and written\n2 usage error\n3 it could not be signed or written\n"
             "4 the key is none of the policy's approvers",
    .example =
        "cortex approve --contract task.json --scope wide_path:src/ --reason 'renames' --key "
        "alice.key\n"
        "cortex approve --contract task.json --scope network --reason fetches --key alice.key "
        "--expires 2h",
    .run = run_approve,
};

static const cx_cli_option list_options[] = {CX_CLI_OPTION_REPO, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_approvals_list = {
    .name = "approvals list",
    .purpose = "list approvals and whether they can still be used",
    .about = "Shows each approval in the runtime root: usable, used, or why it would be refused. "
             "Whether it matches a contract is decided by the run.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = "0 listed\n2 usage error\n3 could not be read",
    .example = "cortex approvals list --json",
    .run = run_approvals_list,
};

/* --- approve ---------------------------------------------------------------------------------- */

/* "90m", "24h", "7d", or a time; after `now`. */
static cx_status parse_expiry(const char *text, int64_t now_ns, int64_t *out_ns, cx_err *err)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    int64_t number = 0;
    size_t digits = 0;
    if (cx_run_time_parse(cx_str_z(text), out_ns)) {
        return *out_ns > now_ns
                   ? CX_SUCCESS
                   : cx_fail(err, CX_E_USAGE, "option --expires: %s is in the past", text);
    }
    while (text[digits] >= '0' && text[digits] <= '9' && digits < 7)
        number = number * 10 + (text[digits++] - '0');
    for (size_t i = 0; i < CX_COUNT_OF(units) && digits != 0 && number != 0; i++) {
        if (text[digits] == units[i].unit && text[digits + 1] == 0 &&
            number <= 400 * 86400 / units[i].seconds) {
            *out_ns = now_ns + number * units[i].seconds * 1000000000;
            return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_USAGE,
                   "option --expires: found '%s', expected a span of at most 400 days such as 24h, "
                   "or a time such as 2026-01-31T12:00:00Z",
                   text);
}

static cx_status random_hex(cx_cli *cli, size_t size, const char *prefix, cx_str *out, cx_err *err)
{
    uint8_t bytes[16];
    char hex[2 * sizeof bytes];
    int failed = cli->io->random(cli->io, bytes, size);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    cx_hex_encode(cx_bytes_from(bytes, size), hex);
    *out = cx_arena_printf(&cli->arena, "%s%.*s", prefix, (int)(2 * size), hex);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status time_text(cx_cli *cli, int64_t ns, cx_str *out, cx_err *err)
{
    char text[28];
    cx_run_time_text(ns, text);
    *out = cx_arena_copy_str(&cli->arena, cx_str_z(text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Everything but who approves. */
static cx_status read_approval_options(cx_cli *cli, const cx_cli_args *args, cx_run_approval *out,
                                       cx_err *err)
{
    const char *contract = cx_cli_value(args, "contract"), *reason = cx_cli_value(args, "reason");
    const char *expires = cx_cli_value(args, "expires"), *run = cx_cli_value(args, "run");
    const cx_str *scopes;
    cx_bytes bytes;
    cx_json json;
    memset(out, 0, sizeof *out);
    if (contract == NULL || reason == NULL || !cx_cli_has(args, "scope"))
        return cx_fail(err, CX_E_USAGE,
                       "expected --contract FILE, --scope SCOPE and --reason TEXT");
    CX_TRY(cx_cli_read_file(cli, contract, &bytes, err));
    CX_TRY(
        cx_run_json_read(cx_bytes_str(bytes), CX_RUN_CONTRACT_BYTES_MAX, &cli->arena, &json, err));
    if (CX_JSON_GET_STR(&json, "task_id").size == 0)
        return cx_fail(err, CX_E_USAGE, "%s is not a task contract: it has no task_id", contract);
    out->contract_sha256 = cx_digest_of(bytes);
    CX_TRY(cx_cli_all_values(cli, args, "scope", &scopes, &out->scopes.count, err));
    out->scopes.items = scopes;
    for (size_t i = 0; i < out->scopes.count; i++) {
        if (!cx_run_scope_valid(scopes[i]))
            return cx_fail(err, CX_E_USAGE,
                           "option --scope: found '%.*s', expected wide_path:PATH, "
                           "permission:FIELD=VALUE, network, sampling, script:PATH, unlock:PATH, "
                           "override_file:PATH or sandbox_degraded",
                           (int)scopes[i].size, scopes[i].data);
    }
    out->reason = cx_str_z(reason);
    if (run != NULL)
        out->run_id = cx_str_z(run);
    out->issued_ns = (int64_t)cli->io->wall_ns(cli->io) / 1000 * 1000;
    out->expires_ns = out->issued_ns + DAY_NS;
    if (expires != NULL)
        CX_TRY(parse_expiry(expires, out->issued_ns, &out->expires_ns, err));
    CX_TRY(time_text(cli, out->issued_ns, &out->issued_at, err));
    CX_TRY(time_text(cli, out->expires_ns, &out->expires_at, err));
    CX_TRY(random_hex(cli, 8, "appr_", &out->approval_id, err));
    return random_hex(cli, 16, "", &out->nonce, err);
}

/* What the policy calls the owner of the key. */
static cx_status set_approver(cx_cli *cli, const cx_cli_place *place, const cx_pubkey *key,
                              cx_run_approval *approval, cx_err *err)
{
    cx_run_findings findings;
    cx_run_policy policy;
    cx_str commit;
    cx_run_findings_init(&findings, &cli->arena);
    cx_status status =
        place->repo.resolve(place->repo.arg, CX_STR("HEAD"), &cli->arena, &commit, err);
    if (!cx_failed(status) && commit.size == 0)
        status = cx_fail(err, CX_E_NOT_FOUND,
                         "the repository has no commit yet that could name approvers");
    if (!cx_failed(status))
        status = cx_run_policy_load(&place->repo, commit, &cli->arena, &findings, &policy, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status =
            cx_fail(err, CX_E_FORMAT, "%.*s: %.*s", (int)findings.list.items[0].where.size,
                    findings.list.items[0].where.data, (int)findings.list.items[0].message.size,
                    findings.list.items[0].message.data);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    for (size_t i = 0; i < policy.approver_count; i++) {
        if (memcmp(policy.approvers[i].key, key->bytes, sizeof key->bytes) == 0) {
            approval->approver = policy.approvers[i].name;
            return CX_SUCCESS;
        }
    }
    return cx_fail_at(
        err, CX_E_DENIED, "NotAnApprover", CX_NO_OFFSET,
        "the key is not one of the approvers%s%.*s; put it into policies/approvers.json, its "
        "digest into policies/cortex.json, and commit both",
        policy.approvers_fault.size != 0 ? ": " : "", (int)policy.approvers_fault.size,
        policy.approvers_fault.data);
}

static cx_status sign_message(void *arg, cx_bytes message, cx_signature *out, cx_err *err)
{
    return cx_cli_signer_sign(arg, message, out, err);
}

static cx_status where_to(cx_cli *cli, const cx_cli_args *args, const cx_cli_place *place,
                          const cx_run_approval *approval, cx_str *out, cx_err *err)
{
    const char *given = cx_cli_value(args, "output");
    if (given != NULL) {
        *out = cx_str_z(given);
        return CX_SUCCESS;
    }
    cx_str folder = cx_arena_printf(&cli->arena, "%s/%s", place->root, CX_RUN_APPROVALS_FOLDER);
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_make_folders(folder.data, err));
    *out = cx_arena_printf(&cli->arena, "%s/%.*s.json", folder.data,
                           (int)approval->approval_id.size, approval->approval_id.data);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status write_approval(cx_cli *cli, const cx_run_approval *approval, cx_cli_signer *signer,
                                cx_str path, cx_err *err)
{
    cx_run_approval again;
    cx_buf payload, file;
    cx_buf_init(&payload, cli->alloc);
    cx_buf_init(&file, cli->alloc);
    cx_status status = cx_run_approval_encode(approval, &cli->arena, &payload, err);
    /* What a run would not read is not signed. */
    if (!cx_failed(status)) {
        status = cx_run_approval_decode(cx_buf_bytes(&payload), &cli->arena, &again, err);
        if (status.code == CX_E_FORMAT)
            err->code = CX_E_USAGE;
    }
    if (!cx_failed(status))
        status = cx_run_dsse_write(CX_STR(CX_RUN_DSSE_APPROVAL), cx_buf_bytes(&payload),
                                   &signer->key, sign_message, signer, &file, err);
    if (!cx_failed(status))
        status = cx_run_write_file(cli->io, path.data, cx_buf_bytes(&file), err);
    cx_buf_done(&payload);
    cx_buf_done(&file);
    return status;
}

static cx_status answer_approval(cx_cli *cli, const cx_cli_args *args,
                                 const cx_run_approval *approval, cx_str path, cx_buf *out,
                                 cx_err *err)
{
    if (!cx_cli_has(args, "json")) {
        cx_shown_add(out, path);
        cx_buf_add_byte(out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_json_put_str(&object, "approval_id", approval->approval_id);
    cx_json_put_str(&object, "path", path);
    cx_json_put_str(&object, "approver", approval->approver);
    cx_json_put_digest(&object, "contract_sha256", &approval->contract_sha256);
    cx_json_put_str(&object, "expires_at", approval->expires_at);
    cx_json_put_strs(&object, "scopes", approval->scopes.items, approval->scopes.count);
    return cx_cli_end_json(&object, out, err);
}

static cx_status make_approval(cx_cli *cli, const cx_cli_args *args, cx_cli_place *place,
                               cx_buf *out, cx_err *err)
{
    cx_run_approval approval;
    cx_cli_signer signer;
    cx_str path = {NULL, 0};
    CX_TRY(read_approval_options(cli, args, &approval, err));
    CX_TRY(cx_cli_place_open(cli, args, place, err));
    CX_TRY(cx_cli_signer_open_key(cli, args, &signer, err));
    cx_status status = set_approver(cli, place, &signer.key, &approval, err);
    if (!cx_failed(status))
        status = where_to(cli, args, place, &approval, &path, err);
    if (!cx_failed(status))
        status = write_approval(cli, &approval, &signer, path, err);
    if (!cx_failed(status))
        status = answer_approval(cli, args, &approval, path, out, err);
    cx_cli_signer_done(&signer);
    return status;
}

static int run_approval_job(cx_cli *cli, const cx_cli_args *args,
                            cx_status (*work)(cx_cli *cli, const cx_cli_args *args,
                                              cx_cli_place *place, cx_buf *out, cx_err *err))
{
    cx_cli_place *place = CX_ARENA_NEW(&cli->arena, cx_cli_place);
    cx_err err = {0};
    cx_buf out;
    if (place == NULL)
        return cx_cli_misuse(args, "out of memory");
    memset(place, 0, sizeof *place);
    cx_buf_init(&out, cli->alloc);
    cx_status status = work(cli, args, place, &out, &err);
    int code;
    if (!cx_failed(status))
        code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    else
        code = cx_cli_fail(cli, args->command->name, &err, cx_cli_has(args, "json"));
    if (cx_failed(status) && err.tag != NULL && strcmp(err.tag, "NotAnApprover") == 0)
        code = CX_RUN_EXIT_REJECTED;
    cx_buf_done(&out);
    cx_cli_place_close(place);
    return code;
}

static int run_approve(cx_cli *cli, const cx_cli_args *args)
{
    return run_approval_job(cli, args, make_approval);
}

/* --- approvals list --------------------------------------------------------------------------- */

typedef struct listing {
    cx_cli *cli;
    const cx_cli_place *place;
    const cx_run_policy *policy;
    CX_VEC(cx_str) names;
    bool failed;
} listing;

static bool add_file_name(void *arg, const char *name)
{
    listing *l = arg;
    if (name[0] == '.' || !cx_str_ends(cx_str_z(name), CX_STR(".json")))
        return true;
    cx_str *slot =
        l->names.count == CX_RUN_APPROVAL_FILES_MAX ? NULL : cx_vec_push(&l->names, l->cli->alloc);
    if (slot == NULL || (*slot = cx_arena_copy_str(&l->cli->arena, cx_str_z(name))).data == NULL)
        l->failed = true;
    return !l->failed;
}

static int by_name(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* One file: what it is, and why it would be refused. */
static cx_status read_approval(listing *l, cx_file folder, cx_str name, cx_run_approval *out,
                               const char **out_why, cx_err *err)
{
    cx_buf bytes;
    bool used = false;
    cx_buf_init(&bytes, l->cli->alloc);
    memset(out, 0, sizeof *out);
    *out_why = "it cannot be read";
    cx_status status = cx_folder_read_file(folder, name.data, CX_RUN_DSSE_BYTES_MAX, &bytes, err);
    if (status.code == CX_E_DENIED || status.code == CX_E_LIMIT) {
        status = CX_SUCCESS;
    } else if (!cx_failed(status)) {
        status = cx_run_approval_open(l->policy, cx_buf_bytes(&bytes),
                                      (int64_t)l->cli->io->wall_ns(l->cli->io), &l->cli->arena, out,
                                      out_why, err);
    }
    cx_buf_done(&bytes);
    if (!cx_failed(status) && out->approval_id.size != 0)
        status = cx_run_approval_was_used(l->cli->io, l->place->root, out, &used, err);
    if (used)
        *out_why = "used";
    return status;
}

static cx_status add_row(listing *l, cx_str name, const cx_run_approval *approval, const char *why,
                         cx_json_list *items, cx_buf *out, cx_err *err)
{
    bool used = why != NULL && strcmp(why, "used") == 0;
    const char *state = why == NULL ? "usable" : used ? "used" : "refused";
    cx_arena *arena = &l->cli->arena;
    if (items == NULL) {
        cx_buf_printf(out, "%-8s ", state);
        cx_shown_add(out, name);
        for (size_t i = 0; i < approval->scopes.count; i++) {
            cx_buf_add_z(out, i == 0 ? "  " : ",");
            cx_shown_add(out, approval->scopes.items[i]);
        }
        if (approval->approval_id.size != 0) {
            cx_buf_add_z(out, "  ");
            cx_shown_add(out, approval->approver);
            cx_buf_add_z(out, " until ");
            cx_shown_add(out, approval->expires_at);
        }
        cx_buf_printf(out, "%s%s\n", why == NULL || used ? "" : "  ",
                      why == NULL || used ? "" : why);
        return CX_SUCCESS;
    }
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_str(&object, "file", name);
    cx_json_put_str(&object, "state", cx_str_z(state));
    cx_json_put_maybe(&object, "reason", why == NULL ? (cx_str){NULL, 0} : cx_str_z(why));
    if (approval->approval_id.size != 0) {
        cx_json value;
        CX_TRY(cx_run_approval_json(approval, true, arena, &value, err));
        cx_json_list_put(&object, CX_STR("approval"), value);
    } else {
        cx_json_put_null(&object, "approval");
    }
    cx_json_add_object(items, &object);
    return CX_SUCCESS;
}

static cx_status add_rows(listing *l, cx_json_list *items, cx_buf *out, cx_err *err)
{
    cx_file folder;
    cx_str path = cx_arena_printf(&l->cli->arena, "%s/%s", l->place->root, CX_RUN_APPROVALS_FOLDER);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_folder_open(path.data, &folder, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    status = cx_folder_list(folder, ".", add_file_name, l, err);
    if (!cx_failed(status) && l->failed)
        status = cx_fail(err, CX_E_LIMIT, "%s has more than %d approvals; move old ones away",
                         path.data, CX_RUN_APPROVAL_FILES_MAX);
    if (l->names.count != 0)
        qsort(l->names.items, l->names.count, sizeof *l->names.items, by_name);
    for (size_t i = 0; i < l->names.count && !cx_failed(status); i++) {
        cx_run_approval approval;
        const char *why;
        status = read_approval(l, folder, l->names.items[i], &approval, &why, err);
        if (!cx_failed(status))
            status = add_row(l, l->names.items[i], &approval, why, items, out, err);
    }
    cx_folder_close(folder);
    return status;
}

static cx_status list_approvals(cx_cli *cli, const cx_cli_args *args, cx_cli_place *place,
                                cx_buf *out, cx_err *err)
{
    bool json = cx_cli_has(args, "json");
    cx_json_list items = cx_json_list_begin(&cli->arena);
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_run_findings findings;
    cx_run_policy policy;
    cx_str commit;
    CX_TRY(cx_cli_place_open(cli, args, place, err));
    CX_TRY(place->repo.resolve(place->repo.arg, CX_STR("HEAD"), &cli->arena, &commit, err));
    cx_run_findings_init(&findings, &cli->arena);
    cx_status status = CX_SUCCESS;
    if (commit.size != 0)
        status = cx_run_policy_load(&place->repo, commit, &cli->arena, &findings, &policy, err);
    /* Without policies no approval is valid, which is then the reason for each file. */
    bool there = commit.size != 0 && findings.refusing == 0;
    listing l = {.cli = cli, .place = place, .policy = there ? &policy : NULL};
    if (!cx_failed(status))
        status = add_rows(&l, json ? &items : NULL, out, err);
    cx_vec_done(&l.names, cli->alloc);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    if (!json)
        return CX_SUCCESS;
    cx_json_put_array(&object, "items", &items);
    return cx_cli_end_json(&object, out, err);
}

static int run_approvals_list(cx_cli *cli, const cx_cli_args *args)
{
    return run_approval_job(cli, args, list_approvals);
}
