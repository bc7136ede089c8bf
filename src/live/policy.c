/*
 * policy.c - reading, storing and narrowing what a session may do.
 */
#include "live/policy.h"

#include <string.h>

#include "crypto/api.h"
#include "rules/api.h"

#define LIST_MAX 1024
#define LISTS_MAX 16 /* of paths, each from one limit */

static const char *const unlisted_words[] = {"ask", "sandbox", "deny"};
static const char *const network_words[] = {"deny", "on-request", "allow"};

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct policy_reader {
    const char *name;
    cx_arena *arena;
    cx_live_policy *policy;
    bool stored; /* with what a session adds */
    bool has_read_deny;
    cx_err *err;
} policy_reader;

static cx_status reject_member(const policy_reader *r, const char *member, const cx_json *found,
                               const char *expected)
{
    return cx_fail(r->err, CX_E_FORMAT, "%s: /%s: found %s, expected %s", r->name, member,
                   cx_json_type_name(found), expected);
}

static cx_status read_texts(const policy_reader *r, const char *member, const cx_json *value,
                            cx_str_list *out)
{
    const cx_json *wrong;
    CX_TRY(cx_json_texts(value, LIST_MAX, r->arena, &out->items, &wrong, r->err));
    if (wrong != NULL)
        return reject_member(r, member, wrong,
                             wrong == value ? "an array of at most 1024 texts"
                                            : "texts that are not empty");
    out->count = value->count;
    return CX_SUCCESS;
}

static cx_status read_word(const policy_reader *r, const char *member, const cx_json *value,
                           const char *const *words, size_t count, size_t *out)
{
    for (size_t i = 0; i < count && value->type == CX_JSON_STRING; i++)
        if (cx_str_is(cx_json_text(value), words[i])) {
            *out = i;
            return CX_SUCCESS;
        }
    return cx_fail(r->err, CX_E_FORMAT, "%s: /%s: expected one of \"%s\", \"%s\", \"%s\"", r->name,
                   member, words[0], words[1], words[2]);
}

static cx_status read_prefixes(const policy_reader *r, const cx_json *value)
{
    if (value->type != CX_JSON_ARRAY || value->count > LIST_MAX)
        return reject_member(r, "allow", value, "an array of at most 1024 prefixes");
    cx_str_list *list = CX_ARENA_ARRAY(r->arena, cx_str_list, value->count + 1);
    if (list == NULL)
        return cx_fail_nomem(r->err);
    for (uint32_t i = 0; i < value->count; i++) {
        CX_TRY(read_texts(r, "allow", &value->items[i], &list[i]));
        if (list[i].count == 0)
            return reject_member(r, "allow", &value->items[i], "at least a program's name in each");
    }
    r->policy->allow = list;
    r->policy->allow_count = value->count;
    return CX_SUCCESS;
}

static cx_status read_rewrites(const policy_reader *r, const cx_json *value)
{
    if (value->type != CX_JSON_ARRAY || value->count > LIST_MAX)
        return reject_member(r, "rewrite", value, "an array of {\"from\":[..],\"to\":[..]}");
    cx_live_rewrite *list = CX_ARENA_ARRAY(r->arena, cx_live_rewrite, value->count + 1);
    if (list == NULL)
        return cx_fail_nomem(r->err);
    for (uint32_t i = 0; i < value->count; i++) {
        const cx_json *item = &value->items[i];
        const cx_json *from = cx_json_get(item, CX_STR("from")),
                      *to = cx_json_get(item, CX_STR("to"));
        if (from == NULL || to == NULL || item->count != 2)
            return reject_member(r, "rewrite", item, "{\"from\":[..],\"to\":[..]}");
        CX_TRY(read_texts(r, "rewrite/from", from, &list[i].from));
        CX_TRY(read_texts(r, "rewrite/to", to, &list[i].to));
        if (list[i].from.count == 0 || list[i].to.count == 0)
            return reject_member(r, "rewrite", item, "at least one word in from and in to");
    }
    r->policy->rewrites = list;
    r->policy->rewrite_count = value->count;
    return CX_SUCCESS;
}

static cx_status check_path_entry(const policy_reader *r, cx_str entry)
{
    bool absolute = entry.data[0] == '/';
    const char *rule = absolute || cx_str_is(entry, ".") ? NULL : cx_run_path_lint(entry, NULL);
    if (rule == NULL || strcmp(rule, "P08") == 0)
        return CX_SUCCESS;
    return cx_fail(r->err, CX_E_FORMAT, "%s: /write: \"%.*s\" %s", r->name, (int)entry.size,
                   entry.data, cx_run_path_rule_text(rule));
}

/* "write": null, a list, or (stored) lists. */
static cx_status read_write_lists(const policy_reader *r, const cx_json *value)
{
    bool nested = r->stored;
    uint32_t count = nested ? value->count : 1;
    if (value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_ARRAY || count > LISTS_MAX)
        return reject_member(r, "write", value, "null or an array of paths");
    cx_live_paths *lists = CX_ARENA_ARRAY(r->arena, cx_live_paths, LISTS_MAX);
    if (lists == NULL)
        return cx_fail_nomem(r->err);
    for (uint32_t i = 0; i < count; i++) {
        CX_TRY(read_texts(r, "write", nested ? &value->items[i] : value, &lists[i].items));
        for (size_t k = 0; k < lists[i].items.count; k++)
            CX_TRY(check_path_entry(r, lists[i].items.items[k]));
    }
    r->policy->write = lists;
    r->policy->write_count = count;
    return CX_SUCCESS;
}

static cx_status read_rates(const policy_reader *r, const cx_json *value)
{
    static const char expected[] = "{\"SERVER/TOOL\":N,..}, each N from 0 to 6000";
    if (value->type != CX_JSON_OBJECT || value->count > LIST_MAX)
        return reject_member(r, "tools/per_minute", value, expected);
    cx_live_rate *list = CX_ARENA_ARRAY(r->arena, cx_live_rate, value->count + 1);
    if (list == NULL)
        return cx_fail_nomem(r->err);
    for (uint32_t i = 0; i < value->count; i++) {
        uint64_t number;
        const cx_json *rate = &value->members[i].value;
        if (!cx_json_uint64(rate, &number) || number > CX_LIVE_RATE_MAX)
            return reject_member(r, "tools/per_minute", rate, expected);
        list[i].name = cx_arena_copy_str(r->arena, cx_json_text(&value->members[i].name));
        list[i].per_minute = (uint32_t)number;
        if (list[i].name.data == NULL)
            return cx_fail_nomem(r->err);
    }
    r->policy->rates = list;
    r->policy->rate_count = value->count;
    return CX_SUCCESS;
}

static cx_status read_tools(const policy_reader *r, const cx_json *value)
{
    if (value->type != CX_JSON_OBJECT)
        return reject_member(r, "tools", value,
                             "{\"allow\":[..],\"deny\":[..],\"hide\":[..],\"per_minute\":{..}}");
    for (uint32_t i = 0; i < value->count; i++) {
        const cx_json_member *member = &value->members[i];
        cx_str name = cx_json_text(&member->name);
        if (cx_str_is(name, "allow"))
            CX_TRY(read_texts(r, "tools/allow", &member->value, &r->policy->tools_allow));
        else if (cx_str_is(name, "deny"))
            CX_TRY(read_texts(r, "tools/deny", &member->value, &r->policy->tools_deny));
        else if (cx_str_is(name, "hide"))
            CX_TRY(read_texts(r, "tools/hide", &member->value, &r->policy->tools_hide));
        else if (cx_str_is(name, "per_minute"))
            CX_TRY(read_rates(r, &member->value));
        else
            return reject_member(r, "tools", value, "only allow, deny, hide and per_minute in it");
    }
    return CX_SUCCESS;
}

static cx_status copy_text(const policy_reader *r, const char *member, const cx_json *value,
                           cx_str *out)
{
    if (value->type != CX_JSON_STRING)
        return reject_member(r, member, value, "a text");
    *out = cx_arena_copy_str(r->arena, cx_json_text(value));
    return out->data == NULL ? cx_fail_nomem(r->err) : CX_SUCCESS;
}

static cx_status read_hex(const policy_reader *r, const char *member, const cx_json *value,
                          cx_digest *out)
{
    if (value->type != CX_JSON_STRING || value->count != 64 ||
        !cx_hex_decode(cx_json_text(value), out->bytes, sizeof out->bytes))
        return reject_member(r, member, value, "64 hex digits");
    return CX_SUCCESS;
}

/* What only a stored policy has; *out_known false for another member. */
static cx_status read_stored_member(const policy_reader *r, cx_str name, const cx_json *value,
                                    bool *out_known)
{
    static const struct {
        const char *name;
        size_t offset;
    } texts[] = {{"from", offsetof(cx_live_policy, from)},
                 {"commit", offsetof(cx_live_policy, commit)},
                 {"root", offsetof(cx_live_policy, root)},
                 {"contract_task", offsetof(cx_live_policy, contract_task)}};
    *out_known = true;
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        if (cx_str_is(name, texts[i].name))
            return copy_text(r, texts[i].name, value,
                             (cx_str *)(void *)((char *)r->policy + texts[i].offset));
    if (cx_str_is(name, "sha256"))
        return read_hex(r, "sha256", value, &r->policy->sha256);
    if (cx_str_is(name, "contract_sha256"))
        return read_hex(r, "contract_sha256", value, &r->policy->contract_sha256);
    if (cx_str_is(name, "trusted_dirs"))
        return read_texts(r, "trusted_dirs", value, &r->policy->trusted_dirs);
    *out_known = false;
    return CX_SUCCESS;
}

/* A policy that does not speak of reading does not give away what the built-in one keeps. */
static cx_status keep_read_deny(policy_reader *r)
{
    cx_bytes bytes;
    cx_json root;
    if (!cx_run_asset("policies/live.json", &bytes))
        return cx_fail(r->err, CX_E_NOT_FOUND, "the program has no built-in policy of sessions");
    CX_TRY(
        cx_run_json_read(cx_bytes_str(bytes), CX_LIVE_POLICY_BYTES_MAX, r->arena, &root, r->err));
    const cx_json *kept = CX_JSON_GET(&root, "read_deny");
    return kept == NULL ? CX_SUCCESS : read_texts(r, "read_deny", kept, &r->policy->read_deny);
}

static cx_status read_member(policy_reader *r, cx_str name, const cx_json *value)
{
    static const char *const mode_words[] = {"observe", "ask", "enforce"};
    cx_live_policy *policy = r->policy;
    size_t word = 0;
    bool known = false;
    if (cx_str_is(name, "version"))
        return value->type == CX_JSON_STRING && cx_str_is(cx_json_text(value), "v1")
                   ? CX_SUCCESS
                   : reject_member(r, "version", value, "\"v1\"");
    if (cx_str_is(name, "mode")) {
        CX_TRY(read_word(r, "mode", value, mode_words, CX_COUNT_OF(mode_words), &word));
        policy->mode = (cx_live_mode)word;
        return CX_SUCCESS;
    }
    if (cx_str_is(name, "unlisted")) {
        CX_TRY(read_word(r, "unlisted", value, unlisted_words, CX_COUNT_OF(unlisted_words), &word));
        policy->unlisted = (cx_live_unlisted)word;
        return CX_SUCCESS;
    }
    if (cx_str_is(name, "network")) {
        CX_TRY(read_word(r, "network", value, network_words, CX_COUNT_OF(network_words), &word));
        policy->network = cx_str_z(network_words[word]);
        return CX_SUCCESS;
    }
    if (cx_str_is(name, "network_hosts"))
        return read_texts(r, "network_hosts", value, &policy->hosts);
    if (cx_str_is(name, "read_deny")) {
        r->has_read_deny = true;
        return read_texts(r, "read_deny", value, &policy->read_deny);
    }
    if (cx_str_is(name, "forbidden_actions"))
        return read_texts(r, "forbidden_actions", value, &policy->forbidden);
    if (cx_str_is(name, "write"))
        return read_write_lists(r, value);
    if (cx_str_is(name, "tools"))
        return read_tools(r, value);
    if (cx_str_is(name, "allow"))
        return read_prefixes(r, value);
    if (cx_str_is(name, "rewrite"))
        return read_rewrites(r, value);
    if (r->stored)
        CX_TRY(read_stored_member(r, name, value, &known));
    return known ? CX_SUCCESS
                 : cx_fail(r->err, CX_E_FORMAT,
                           "%s: found /%.*s, expected version, mode, unlisted, network, "
                           "network_hosts, write, read_deny, tools, allow, forbidden_actions or "
                           "rewrite",
                           r->name, (int)name.size, name.data);
}

static cx_status read_policy(policy_reader *r, cx_str text)
{
    cx_json root;
    cx_live_policy *policy = r->policy;
    memset(policy, 0, sizeof *policy);
    policy->network = CX_STR("on-request");
    policy->from = CX_STR("built_in");
    policy->commit = policy->root = policy->contract_task = CX_STR("");
    policy->data_directory = policy->user_home = policy->program = CX_STR("");
    cx_err inner;
    cx_status status = cx_run_json_read(text, CX_LIVE_POLICY_BYTES_MAX, r->arena, &root, &inner);
    if (cx_failed(status))
        return cx_fail(r->err, CX_E_FORMAT, "%s: %s", r->name, inner.message);
    if (root.type != CX_JSON_OBJECT)
        return cx_fail(r->err, CX_E_FORMAT, "%s: found %s, expected an object", r->name,
                       cx_json_type_name(&root));
    if (CX_JSON_GET(&root, "version") == NULL)
        return cx_fail(r->err, CX_E_FORMAT, "%s: found no /version, expected \"v1\"", r->name);
    for (uint32_t i = 0; i < root.count; i++)
        CX_TRY(read_member(r, cx_json_text(&root.members[i].name), &root.members[i].value));
    return CX_SUCCESS;
}

cx_status cx_live_policy_read(cx_str text, const char *name, cx_arena *arena, cx_live_policy *out,
                              cx_err *err)
{
    policy_reader r = {.name = name, .arena = arena, .policy = out, .err = err};
    CX_TRY(read_policy(&r, text));
    if (!r.has_read_deny)
        CX_TRY(keep_read_deny(&r));
    out->sha256 = cx_digest_of(cx_str_bytes(text));
    return CX_SUCCESS;
}

cx_status cx_live_policy_stored(cx_str text, cx_arena *arena, cx_live_policy *out, cx_err *err)
{
    policy_reader r = {.name = "the stored policy of the session",
                       .arena = arena,
                       .policy = out,
                       .stored = true,
                       .err = err};
    return read_policy(&r, text);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_prefixes(cx_json_list *object, const char *name, const cx_str_list *lists,
                         size_t count)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list words = cx_json_list_begin(object->arena);
        cx_json value;
        cx_err ignored;
        for (size_t k = 0; k < lists[i].count; k++)
            cx_json_list_add(&words, cx_json_make_str(lists[i].items[k]));
        if (cx_failed(cx_json_list_end_array(&words, &value, &ignored)))
            array.failed = true;
        else
            cx_json_list_add(&array, value);
    }
    cx_json_put_array(object, name, &array);
}

static void put_rewrites(cx_json_list *object, const cx_live_policy *policy)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < policy->rewrite_count; i++) {
        cx_json_list item = cx_json_list_begin(object->arena);
        const cx_live_rewrite *rewrite = &policy->rewrites[i];
        cx_json_put_strs(&item, "from", rewrite->from.items, rewrite->from.count);
        cx_json_put_strs(&item, "to", rewrite->to.items, rewrite->to.count);
        cx_json_add_object(&array, &item);
    }
    cx_json_put_array(object, "rewrite", &array);
}

static void put_rates(cx_json_list *tools, const cx_live_policy *policy)
{
    cx_json_list rates = cx_json_list_begin(tools->arena);
    for (size_t i = 0; i < policy->rate_count; i++)
        cx_json_list_put(&rates, policy->rates[i].name,
                         cx_json_make_uint(tools->arena, policy->rates[i].per_minute));
    cx_json_put_object(tools, "per_minute", &rates);
}

cx_status cx_live_policy_write(const cx_live_policy *policy, cx_arena *arena, cx_buf *out,
                               cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena), tools = cx_json_list_begin(arena);
    cx_str_list lists[LISTS_MAX];
    cx_json value;
    cx_json_put_z(&object, "version", "v1");
    cx_json_put_z(&object, "mode", cx_live_mode_name(policy->mode));
    cx_json_put_z(&object, "unlisted", unlisted_words[policy->unlisted]);
    cx_json_put_str(&object, "network", policy->network);
    cx_json_put_strs(&object, "network_hosts", policy->hosts.items, policy->hosts.count);
    cx_json_put_strs(&object, "read_deny", policy->read_deny.items, policy->read_deny.count);
    cx_json_put_strs(&object, "forbidden_actions", policy->forbidden.items,
                     policy->forbidden.count);
    cx_json_put_strs(&object, "trusted_dirs", policy->trusted_dirs.items,
                     policy->trusted_dirs.count);
    cx_json_put_strs(&tools, "allow", policy->tools_allow.items, policy->tools_allow.count);
    cx_json_put_strs(&tools, "deny", policy->tools_deny.items, policy->tools_deny.count);
    cx_json_put_strs(&tools, "hide", policy->tools_hide.items, policy->tools_hide.count);
    put_rates(&tools, policy);
    cx_json_put_object(&object, "tools", &tools);
    put_prefixes(&object, "allow", policy->allow, policy->allow_count);
    put_rewrites(&object, policy);
    for (size_t i = 0; i < policy->write_count; i++)
        lists[i] = policy->write[i].items;
    put_prefixes(&object, "write", lists, policy->write_count);
    cx_json_put_str(&object, "from", policy->from);
    cx_json_put_str(&object, "commit", policy->commit);
    cx_json_put_str(&object, "root", policy->root);
    cx_json_put_digest(&object, "sha256", &policy->sha256);
    cx_json_put_str(&object, "contract_task", policy->contract_task);
    cx_json_put_digest(&object, "contract_sha256", &policy->contract_sha256);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
}

/* --- from a repository ------------------------------------------------------------------------ */

/* Appends texts that are not there yet. */
static cx_status join_lists(cx_str_list *list, cx_str_list more, cx_arena *arena, cx_err *err)
{
    if (more.count == 0)
        return CX_SUCCESS;
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, list->count + more.count);
    size_t count = list->count;
    if (items == NULL)
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(items, list->items, count * sizeof *items);
    for (size_t i = 0; i < more.count; i++)
        if (!cx_str_list_has((cx_str_list){items, count}, more.items[i])) {
            items[count] = cx_arena_copy_str(arena, more.items[i]);
            if (items[count++].data == NULL)
                return cx_fail_nomem(err);
        }
    *list = (cx_str_list){items, count};
    return CX_SUCCESS;
}

/* The lists of the batch policies hold for sessions, too. */
static cx_status add_batch_lists(cx_live_policy *policy, const cx_run_policy *batch,
                                 cx_arena *arena, cx_err *err)
{
    const cx_run_pack_rules *rules = &batch->packs[CX_PACK_NONE];
    cx_str_list *allow =
        CX_ARENA_ARRAY(arena, cx_str_list, policy->allow_count + rules->allow_count + 1);
    if (allow == NULL)
        return cx_fail_nomem(err);
    if (policy->allow_count != 0)
        memcpy(allow, policy->allow, policy->allow_count * sizeof *allow);
    if (rules->allow_count != 0)
        memcpy(allow + policy->allow_count, rules->allow, rules->allow_count * sizeof *allow);
    policy->allow = allow;
    policy->allow_count += rules->allow_count;
    CX_TRY(join_lists(&policy->forbidden, batch->forbidden_actions, arena, err));
    CX_TRY(join_lists(&policy->tools_allow, batch->mcp_allow, arena, err));
    CX_TRY(join_lists(&policy->tools_deny, batch->mcp_deny, arena, err));
    policy->trusted_dirs = batch->config.trusted_dirs;
    return CX_SUCCESS;
}

static cx_status fail_finding(const cx_run_findings *findings, cx_err *err)
{
    const cx_run_finding *first = &findings->list.items[0];
    return cx_fail(err, CX_E_FORMAT, "%.*s: %.*s", (int)first->where.size, first->where.data,
                   (int)first->message.size, first->message.data);
}

static cx_status load_batch(const cx_run_repo *repo, cx_str commit, cx_arena *arena,
                            cx_live_policy *out, cx_err *err)
{
    cx_run_findings findings;
    cx_run_policy batch;
    cx_run_findings_init(&findings, arena);
    cx_status status = cx_run_policy_load(repo, commit, arena, &findings, &batch, err);
    if (!cx_failed(status))
        status = cx_run_findings_check(&findings, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = fail_finding(&findings, err);
    if (!cx_failed(status))
        status = add_batch_lists(out, &batch, arena, err);
    cx_run_findings_done(&findings);
    return status;
}

static cx_status read_built_in(cx_arena *arena, cx_live_policy *out, cx_err *err)
{
    cx_bytes bytes;
    bool found = cx_run_asset(CX_LIVE_POLICY_FILE, &bytes);
    CX_ASSERT(found);
    return cx_live_policy_read(cx_bytes_str(bytes), "the built-in " CX_LIVE_POLICY_FILE, arena, out,
                               err);
}

static cx_status load_from_git(cx_git *git, cx_arena *arena, cx_live_policy *out, cx_err *err)
{
    cx_run_git_repo git_repo;
    cx_run_repo repo = cx_run_git_repo_init(&git_repo, git, arena);
    cx_run_blob kind = CX_BLOB_NONE;
    cx_bytes bytes = {NULL, 0};
    cx_str commit;
    CX_TRY(repo.resolve(repo.arg, CX_STR("HEAD"), arena, &commit, err));
    if (commit.size != 0)
        CX_TRY(repo.read(repo.arg, commit, CX_STR(CX_LIVE_POLICY_FILE), CX_LIVE_POLICY_BYTES_MAX,
                         arena, &kind, &bytes, err));
    if (kind == CX_BLOB_FILE)
        CX_TRY(cx_live_policy_read(cx_bytes_str(bytes), CX_LIVE_POLICY_FILE, arena, out, err));
    else if (kind == CX_BLOB_NONE)
        CX_TRY(read_built_in(arena, out, err));
    else
        return cx_fail(err, CX_E_FORMAT, "%s of the commit is no regular file of at most 1 MiB",
                       CX_LIVE_POLICY_FILE);
    out->from = kind == CX_BLOB_FILE ? CX_STR("commit") : CX_STR("built_in");
    out->commit = commit;
    out->root = cx_arena_copy_str(arena, cx_str_z(cx_git_worktree(git)));
    if (out->root.data == NULL)
        return cx_fail_nomem(err);
    return load_batch(commit.size == 0 ? NULL : &repo, commit, arena, out, err);
}

cx_status cx_live_policy_load(cx_str folder, cx_arena *arena, cx_live_policy *out, cx_err *err)
{
    const cx_git_options options = CX_GIT_OPTIONS_INIT;
    cx_git *git = NULL;
    cx_str path = cx_arena_copy_str(arena, folder);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_err why;
    cx_status status = path.size == 0 || path.data[0] != '/'
                           ? cx_fail(&why, CX_E_NOT_FOUND, "no folder")
                           : cx_git_open(path.data, &options, cx_alloc_default(), &git, &why);
    if (!cx_failed(status)) {
        status = load_from_git(git, arena, out, err);
        cx_git_close(git);
        return status;
    }
    if (status.code != CX_E_NOT_FOUND) {
        *err = why;
        return status;
    }
    CX_TRY(read_built_in(arena, out, err));
    out->root = path;
    return load_batch(NULL, CX_STR(""), arena, out, err);
}

/* --- narrowing -------------------------------------------------------------------------------- */

static size_t network_width(cx_str word)
{
    for (size_t i = 0; i < CX_COUNT_OF(network_words); i++)
        if (cx_str_is(word, network_words[i]))
            return i;
    return CX_COUNT_OF(network_words);
}

static cx_status narrow_paths(cx_live_policy *policy, cx_str_list paths, cx_arena *arena,
                              cx_err *err)
{
    const policy_reader r = {.name = "limit", .arena = arena, .policy = policy, .err = err};
    for (size_t i = 0; i < paths.count; i++) {
        if (paths.items[i].size == 0)
            return cx_fail(err, CX_E_USAGE, "a path of a limit is empty");
        cx_status status = check_path_entry(&r, paths.items[i]);
        if (cx_failed(status)) {
            status.code = CX_E_USAGE;
            err->code = CX_E_USAGE;
            return status;
        }
    }
    if (policy->write_count == LISTS_MAX)
        return cx_fail(err, CX_E_LIMIT, "a session takes at most %d limits of paths", LISTS_MAX);
    cx_live_paths *lists = CX_ARENA_ARRAY(arena, cx_live_paths, LISTS_MAX);
    if (lists == NULL)
        return cx_fail_nomem(err);
    if (policy->write_count != 0)
        memcpy(lists, policy->write, policy->write_count * sizeof *lists);
    lists[policy->write_count].items = paths;
    policy->write = lists;
    policy->write_count++;
    return CX_SUCCESS;
}

static cx_status keep_common(cx_str_list *list, cx_str_list of, cx_arena *arena, cx_err *err)
{
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, list->count + 1);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < list->count; i++)
        if (cx_str_list_has(of, list->items[i]))
            items[count++] = list->items[i];
    *list = (cx_str_list){items, count};
    return CX_SUCCESS;
}

/* An empty list of network "allow" is every host, so that a list which becomes empty needs another
 * word. */
static cx_status narrow_hosts(cx_live_policy *policy, cx_str_list hosts, cx_arena *arena,
                              cx_err *err)
{
    bool every = cx_str_is(policy->network, "allow") && policy->hosts.count == 0;
    if (hosts.count == 0)
        return CX_SUCCESS;
    if (every)
        policy->hosts = hosts;
    else
        CX_TRY(keep_common(&policy->hosts, hosts, arena, err));
    if (policy->hosts.count == 0 && cx_str_is(policy->network, "allow"))
        policy->network = CX_STR("on-request");
    return CX_SUCCESS;
}

cx_status cx_live_policy_narrow(cx_live_policy *policy, const cx_live_limit *limit, cx_arena *arena,
                                cx_err *err)
{
    if (limit->has_mode && limit->mode < policy->mode)
        return cx_fail(err, CX_E_USAGE,
                       "the session is in mode %s; a limit does not go back to %s: end the session "
                       "and begin another",
                       cx_live_mode_name(policy->mode), cx_live_mode_name(limit->mode));
    if (limit->network.size != 0) {
        size_t wanted = network_width(limit->network);
        if (wanted == CX_COUNT_OF(network_words))
            return cx_fail(err, CX_E_USAGE, "network: expected deny, on-request or allow");
        if (wanted > network_width(policy->network) && limit->contract_task.size == 0)
            return cx_fail(err, CX_E_USAGE,
                           "the session's network is \"%.*s\"; a limit only narrows",
                           (int)policy->network.size, policy->network.data);
        if (wanted < network_width(policy->network))
            policy->network = cx_str_z(network_words[wanted]);
    }
    if (limit->has_mode)
        policy->mode = limit->mode;
    if (limit->has_paths)
        CX_TRY(narrow_paths(policy, limit->paths, arena, err));
    CX_TRY(join_lists(&policy->tools_deny, limit->tools_deny, arena, err));
    CX_TRY(join_lists(&policy->forbidden, limit->forbidden, arena, err));
    if (limit->deny_unlisted)
        policy->unlisted = CX_LIVE_UNLISTED_DENY;
    if (limit->contract_task.size != 0) {
        CX_TRY(keep_common(&policy->tools_allow, limit->tools_only, arena, err));
        CX_TRY(narrow_hosts(policy, limit->hosts, arena, err));
        policy->contract_task = limit->contract_task;
        policy->contract_sha256 = limit->contract_sha256;
    }
    return CX_SUCCESS;
}

cx_status cx_live_limit_of_contract(cx_str text, cx_arena *arena, cx_live_limit *out, cx_err *err)
{
    cx_run_findings findings;
    cx_contract contract;
    memset(out, 0, sizeof *out);
    cx_run_findings_init(&findings, arena);
    cx_status status = cx_run_contract_read(text, arena, &findings, &contract, err);
    if (!cx_failed(status))
        status = cx_run_findings_check(&findings, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = fail_finding(&findings, err);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    out->has_paths = true;
    out->paths =
        contract.filesystem == CX_FS_READ_ONLY ? (cx_str_list){NULL, 0} : contract.allowed_paths;
    out->network = contract.network == CX_NETWORK_ALLOW        ? CX_STR("allow")
                   : contract.network == CX_NETWORK_ON_REQUEST ? CX_STR("on-request")
                                                               : CX_STR("deny");
    out->hosts = contract.network_hosts;
    out->forbidden = contract.forbidden_actions;
    out->tools_only = contract.mcp_tool_set;
    out->deny_unlisted = true;
    out->contract_task = contract.task_id;
    out->contract_sha256 = contract.sha256;
    return CX_SUCCESS;
}
