/*
 * contract_refs.c - names of commits (K05), and references of a role_contract (K07):
 *
 *     policies/roles/worker.md                             a file
 *     policies/agent_registry.json#/agents/0/capabilities  a JSON pointer into one of two files
 *     policies/skills_bundle_registry.json#bundles.core    members separated by dots
 *     policies/agent_registry.json#agents(role=WORKER).capabilities.mcp_tools
 */
#include "contract/contract_parts.h"

enum { REF_BYTES_MAX = 256 << 10, REF_PARTS_MAX = 64, GENERATIONS_MAX = 9999 };

/* --- K05 -------------------------------------------------------------------------------------- */

/* What is wrong with the text of a ref, or NULL. Only a text that passes is given to git. */
static const char *ref_fault(cx_str ref)
{
    bool blank = true;
    for (size_t i = 0; i < ref.size; i++) {
        unsigned char byte = (unsigned char)ref.data[i];
        if (byte < 0x20 || byte == 0x7F)
            return "has a control character";
        blank = blank && byte == ' ';
        if (i + 1 < ref.size && byte == '.' && ref.data[i + 1] == '.')
            return "names a range ('..')";
        if (i + 1 < ref.size && byte == '@' && ref.data[i + 1] == '{')
            return "is looked up in a log that others can write ('@{')";
        if (byte == '~' || byte == '^') {
            uint32_t number = 0;
            for (size_t k = i + 1; k < ref.size && ref.data[k] >= '0' && ref.data[k] <= '9'; k++)
                if (number <= GENERATIONS_MAX)
                    number = number * 10 + (uint32_t)(ref.data[k] - '0');
            if (number > GENERATIONS_MAX)
                return "goes back more than 9999 commits";
        }
    }
    if (blank)
        return "is empty or blank";
    if (ref.data[0] == '-')
        return "starts with '-', as an option does";
    return NULL;
}

cx_status cx_run_contract_baseline(cx_contract *contract, const cx_run_repo *repo,
                                   cx_run_findings *findings, cx_err *err)
{
    CX_ASSERT(repo == NULL || repo->resolve != NULL);
    const cx_str where = CX_STR("/rollback/baseline_ref");
    const char *fault = ref_fault(contract->baseline_ref);
    cx_str commit = {NULL, 0};
    if (fault != NULL) {
        cx_run_findings_reject(findings, "K05", where, CX_STR(""),
                               "the baseline '%.*s' %s; name a branch, a tag or a commit",
                               CX_CONTRACT_SHOW(contract->baseline_ref, 100), fault);
        return cx_run_findings_check(findings, err);
    }
    if (repo == NULL)
        return CX_SUCCESS;
    CX_TRY(repo->resolve(repo->arg, contract->baseline_ref, findings->arena, &commit, err));
    if (commit.size == 0)
        cx_run_findings_reject(findings, "K05", where, CX_STR(""),
                               "the baseline '%.*s' does not name one commit of this repository",
                               CX_CONTRACT_SHOW(contract->baseline_ref, 100));
    else
        contract->baseline_commit = commit;
    return cx_run_findings_check(findings, err);
}

cx_status cx_contract_lint_target(contract_lint *lint)
{
    const cx_str where = CX_STR("/rollback/target_ref");
    cx_str ref = lint->contract->target_ref, commit = {NULL, 0};
    bool in_head = false;
    if (ref.data == NULL)
        return CX_SUCCESS;
    const char *fault = ref_fault(ref);
    if (fault != NULL) {
        cx_run_findings_reject(lint->findings, "K05", where, CX_STR(""), "the target '%.*s' %s",
                               CX_CONTRACT_SHOW(ref, 100), fault);
        return CX_SUCCESS;
    }
    if (lint->repo == NULL)
        return CX_SUCCESS;
    CX_TRY(lint->repo->resolve(lint->repo->arg, ref, lint->arena, &commit, lint->err));
    if (commit.size != 0)
        CX_TRY(lint->repo->in_head(lint->repo->arg, commit, &in_head, lint->err));
    if (!in_head)
        cx_run_findings_reject(lint->findings, "K05", where, CX_STR(""),
                               "the target '%.*s' is not an ancestor of HEAD",
                               CX_CONTRACT_SHOW(ref, 100));
    return CX_SUCCESS;
}

/* --- selectors -------------------------------------------------------------------------------- */

/* One part of a dotted selector: a name, and perhaps (key=value). */
typedef struct selector_part {
    cx_str name, key, value; /* key without data: none */
} selector_part;

/* The part at *at; false when the text is malformed. */
static bool next_selector_part(cx_str text, size_t *at, selector_part *out)
{
    size_t i = *at, start = i;
    *out = (selector_part){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    while (i < text.size && text.data[i] != '.' && text.data[i] != '(')
        i++;
    out->name = cx_str_from(text.data + start, i - start);
    if (out->name.size == 0)
        return false;
    if (i < text.size && text.data[i] == '(') {
        const char *equal = memchr(text.data + i, '=', text.size - i);
        const char *close = memchr(text.data + i, ')', text.size - i);
        if (equal == NULL || close == NULL || equal > close)
            return false;
        out->key = cx_str_from(text.data + i + 1, (size_t)(equal - text.data) - i - 1);
        out->value = cx_str_from(equal + 1, (size_t)(close - equal) - 1);
        if (out->key.size == 0 || out->value.size == 0)
            return false;
        i = (size_t)(close - text.data) + 1;
    }
    if (i < text.size && (text.data[i] != '.' || i + 1 == text.size))
        return false;
    *at = i + 1;
    return true;
}

static const cx_json *select_from(const cx_json *value, const selector_part *parts, size_t count);

/* Selects in the first item whose member has that text and in which the rest of the selector
 * matches. */
static const cx_json *select_item(const cx_json *list, const selector_part *parts, size_t count)
{
    if (list->type != CX_JSON_ARRAY)
        return NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *key = cx_json_get(&list->items[i], parts[0].key);
        if (key == NULL || key->type != CX_JSON_STRING ||
            !cx_str_eq(cx_json_text(key), parts[0].value))
            continue;
        const cx_json *found = select_from(&list->items[i], parts + 1, count - 1);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* At most REF_PARTS_MAX levels deep. */
static const cx_json *select_from(const cx_json *value, const selector_part *parts, size_t count)
{
    if (count == 0)
        return value->type == CX_JSON_NULL ? NULL : value;
    const cx_json *member = cx_json_get(value, parts[0].name);
    if (member == NULL)
        return NULL;
    return parts[0].key.data != NULL ? select_item(member, parts, count)
                                     : select_from(member, parts + 1, count - 1);
}

static bool selects_member(const cx_json *root, cx_str fragment)
{
    selector_part parts[REF_PARTS_MAX];
    size_t count = 0;
    if (fragment.size == 0)
        return false;
    if (fragment.data[0] == '/') {
        const cx_json *found = cx_json_pointer(root, fragment);
        return found != NULL && found->type != CX_JSON_NULL;
    }
    for (size_t at = 0; at < fragment.size; count++)
        if (count == REF_PARTS_MAX || !next_selector_part(fragment, &at, &parts[count]))
            return false;
    return select_from(root, parts, count) != NULL;
}

/* --- K07 -------------------------------------------------------------------------------------- */

static bool is_repository_path(cx_str path)
{
    size_t start = 0;
    if (path.size == 0 || path.size > CX_RUN_PATH_BYTES_MAX || path.data[0] == '/')
        return false;
    for (size_t i = 0; i <= path.size; i++) {
        if (i != path.size && path.data[i] != '/') {
            unsigned char byte = (unsigned char)path.data[i];
            if (byte < 0x20 || byte == 0x7F || byte == '\\' || byte == ':')
                return false;
            continue;
        }
        cx_str part = cx_str_from(path.data + start, i - start);
        if (part.size == 0 || cx_str_eq(part, CX_STR(".")) || cx_str_eq(part, CX_STR("..")))
            return false;
        start = i + 1;
    }
    return true;
}

/* The bytes of a referenced file: the baseline's, or the built-in one for a baseline without
 * policies. */
static cx_status read_ref_file(contract_lint *lint, cx_str path, cx_run_blob *out_kind,
                               cx_bytes *out)
{
    *out_kind = CX_BLOB_NONE;
    *out = (cx_bytes){NULL, 0};
    for (size_t i = 0; i < lint->policy->file_count; i++)
        if (cx_str_eq(lint->policy->files[i].path, path)) {
            *out = cx_str_bytes(lint->policy->files[i].bytes);
            *out_kind = out->size > REF_BYTES_MAX ? CX_BLOB_TOO_BIG : CX_BLOB_FILE;
            return CX_SUCCESS;
        }
    if (lint->repo == NULL || lint->contract->baseline_commit.size == 0)
        return CX_SUCCESS;
    return lint->repo->read(lint->repo->arg, lint->contract->baseline_commit, path, REF_BYTES_MAX,
                            lint->arena, out_kind, out, lint->err);
}

/* *out_fault is NULL when the reference holds. */
static cx_status check_ref(contract_lint *lint, cx_str ref, bool fragment_allowed,
                           const char **out_fault)
{
    static const char registry[] = "policies/agent_registry.json";
    static const char skills[] = "policies/skills_bundle_registry.json";
    const char *hash = ref.size == 0 ? NULL : memchr(ref.data, '#', ref.size);
    cx_str path = hash == NULL ? ref : cx_str_from(ref.data, (size_t)(hash - ref.data));
    cx_run_blob kind;
    cx_bytes bytes;
    *out_fault = NULL;
    if (!is_repository_path(path))
        *out_fault = "is not a path inside the repository";
    else if (hash != NULL && !fragment_allowed)
        *out_fault = "has a fragment, but a prompt is a whole file";
    else if (hash != NULL && !cx_str_is(path, registry) && !cx_str_is(path, skills))
        *out_fault = "has a fragment, which only the two registries of policies/ may have";
    if (*out_fault != NULL)
        return CX_SUCCESS;
    CX_TRY(read_ref_file(lint, path, &kind, &bytes));
    if (kind != CX_BLOB_FILE)
        *out_fault = kind == CX_BLOB_NONE      ? "names a file that the baseline does not have"
                     : kind == CX_BLOB_TOO_BIG ? "names a file of more than 256 KiB"
                                               : "names something other than a regular file";
    else if (hash != NULL) {
        cx_str fragment = cx_str_from(hash + 1, ref.size - (size_t)(hash + 1 - ref.data));
        const cx_json *root =
            cx_str_is(path, registry) ? &lint->policy->registry : &lint->policy->skills;
        if (!selects_member(root, fragment))
            *out_fault = "selects nothing in that file";
    }
    return CX_SUCCESS;
}

static cx_status check_ref_member(contract_lint *lint, const char *name, bool fragment_allowed)
{
    const cx_json *value = cx_json_get(lint->contract->role_contract, cx_str_z(name));
    const char *fault;
    if (value == NULL || value->type != CX_JSON_STRING)
        return CX_SUCCESS;
    CX_TRY(check_ref(lint, cx_json_text(value), fragment_allowed, &fault));
    if (fault != NULL) {
        cx_str where = cx_arena_printf(lint->arena, "/role_contract/%s", name);
        cx_run_findings_reject(lint->findings, "K07", where, CX_STR(""), "the reference '%.*s' %s",
                               CX_CONTRACT_SHOW(cx_json_text(value), 120), fault);
    }
    return CX_SUCCESS;
}

/* A reference of the registry that does not hold becomes null in the resolved contract; a finding
 * informs of it. */
static cx_status check_registry_ref(contract_lint *lint, const char *name, cx_str ref,
                                    bool fragment_allowed, bool *out_holds)
{
    const char *fault;
    *out_holds = false;
    if (ref.data == NULL)
        return CX_SUCCESS;
    CX_TRY(check_ref(lint, ref, fragment_allowed, &fault));
    *out_holds = fault == NULL;
    if (fault != NULL)
        cx_run_findings_inform(lint->findings, "K07", CX_STR("/role_contract"), CX_STR(""),
                               "%s of the registry '%.*s' %s, so it is null in this run", name,
                               CX_CONTRACT_SHOW(ref, 120), fault);
    return CX_SUCCESS;
}

cx_status cx_contract_lint_refs(contract_lint *lint)
{
    cx_contract *contract = lint->contract;
    const cx_run_role_row *row = &lint->policy->roles[contract->assigned.role];
    if (contract->role_contract != NULL) {
        CX_TRY(check_ref_member(lint, "system_prompt_ref", false));
        CX_TRY(check_ref_member(lint, "skills_bundle_ref", true));
        return check_ref_member(lint, "mcp_bundle_ref", true);
    }
    CX_TRY(check_registry_ref(lint, "system_prompt_ref", row->system_prompt_ref, false,
                              &contract->prompt_ref_holds));
    CX_TRY(check_registry_ref(lint, "skills_bundle_ref", row->skills_bundle_ref, true,
                              &contract->skills_ref_holds));
    return check_registry_ref(lint, "mcp_bundle_ref", row->mcp_bundle_ref, true,
                              &contract->mcp_ref_holds);
}
