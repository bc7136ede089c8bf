/*
 * policy.c - policies of egress, read strictly.  P1 to P3: policy.h.
 */
#include "egress/policy.h"

#include <stdio.h>
#include <string.h>

#include "json/api.h"

static const char *const network_words[] = {"deny", "allowlist", "allow"};

void cx_egress_policy_init(cx_egress_policy *policy)
{
    *policy = (cx_egress_policy){.network = CX_EGRESS_DENY,
                                 .limits = {.connections = 64,
                                            .connections_total = 10000,
                                            .bytes_connection = UINT64_C(1) << 30,
                                            .bytes_total = UINT64_C(8) << 30,
                                            .seconds_head = 10,
                                            .seconds_connect = 10,
                                            .seconds_idle = 120,
                                            .seconds_connection = 3600}};
}

/* --- lists ------------------------------------------------------------------------------------ */

cx_status cx_egress_list_make(const cx_str *texts, size_t count, const char *what, cx_arena *arena,
                              cx_egress_list *out, cx_err *err)
{
    if (count > CX_EGRESS_LIST_MAX)
        return cx_fail(err, CX_E_USAGE, "%s: found %zu hosts, expected at most %d", what, count,
                       CX_EGRESS_LIST_MAX);
    cx_egress_pattern *items = CX_ARENA_ARRAY(arena, cx_egress_pattern, count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const char *why = cx_egress_pattern_parse(texts[i], &items[i]);
        if (why != NULL)
            return cx_fail(err, CX_E_USAGE,
                           "%s: found '%.*s', expected HOST, *.HOST, each with :PORT or without: "
                           "%s",
                           what, texts[i].size > 200 ? 200 : (int)texts[i].size, texts[i].data,
                           why);
    }
    *out = (cx_egress_list){items, count};
    return CX_SUCCESS;
}

cx_status cx_egress_list_join(const cx_egress_list *a, const cx_egress_list *b, cx_arena *arena,
                              cx_egress_list *out, cx_err *err)
{
    cx_egress_pattern *items = CX_ARENA_ARRAY(arena, cx_egress_pattern, a->count + b->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    if (a->count != 0)
        memcpy(items, a->items, a->count * sizeof *items);
    if (b->count != 0)
        memcpy(items + a->count, b->items, b->count * sizeof *items);
    *out = (cx_egress_list){items, a->count + b->count};
    return CX_SUCCESS;
}

bool cx_egress_list_covers(const cx_egress_list *list, const cx_egress_host *host)
{
    for (size_t i = 0; i < list->count; i++)
        if (cx_egress_pattern_covers(&list->items[i], host))
            return true;
    return false;
}

cx_status cx_egress_policy_narrow(cx_egress_policy *policy, const cx_egress_list *list, cx_err *err)
{
    if (policy->list_count == CX_EGRESS_LISTS_MAX)
        return cx_fail(err, CX_E_LIMIT, "there are more than %d lists of hosts",
                       CX_EGRESS_LISTS_MAX);
    policy->lists[policy->list_count++] = *list;
    return CX_SUCCESS;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct policy_reader {
    const char *name;
    cx_arena *arena;
    cx_egress_policy *policy;
    cx_err *err;
} policy_reader;

static cx_status reject_member(const policy_reader *r, cx_str member, const cx_json *found,
                               const char *expected)
{
    return cx_fail(r->err, CX_E_FORMAT, "%s: /%.*s: found %s, expected %s", r->name,
                   (int)member.size, member.data, cx_json_type_name(found), expected);
}

static cx_status read_texts(const policy_reader *r, cx_str member, const cx_json *value,
                            const cx_str **out, size_t *out_count)
{
    const cx_json *wrong;
    CX_TRY(cx_json_texts(value, CX_EGRESS_LIST_MAX, r->arena, out, &wrong, r->err));
    if (wrong != NULL)
        return reject_member(r, member, wrong,
                             wrong == value ? "an array of at most 1024 texts"
                                            : "texts that are not empty");
    *out_count = value->count;
    return CX_SUCCESS;
}

static cx_status read_list(const policy_reader *r, cx_str member, const cx_json *value,
                           cx_egress_list *out)
{
    const cx_str *texts;
    size_t count;
    char what[256];
    CX_TRY(read_texts(r, member, value, &texts, &count));
    (void)snprintf(what, sizeof what, "%.150s: /%.*s", r->name, (int)member.size, member.data);
    cx_status status = cx_egress_list_make(texts, count, what, r->arena, out, r->err);
    if (status.code == CX_E_USAGE && r->err != NULL)
        r->err->code = CX_E_FORMAT;
    return status.code == CX_E_USAGE ? (cx_status){CX_E_FORMAT} : status;
}

/* An entry names one host and one port: what it opens is not of the internet. */
static cx_status read_private(const policy_reader *r, cx_str member, const cx_json *value)
{
    cx_egress_list *list = &r->policy->private_hosts;
    CX_TRY(read_list(r, member, value, list));
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].wildcard || list->items[i].host.port == 0)
            return cx_fail(r->err, CX_E_FORMAT,
                           "%s: /private_hosts: found '%s', expected HOST:PORT without a wildcard",
                           r->name, list->items[i].host.name);
    return CX_SUCCESS;
}

static cx_status read_network(const policy_reader *r, cx_str member, const cx_json *value)
{
    for (size_t i = 0; i < CX_COUNT_OF(network_words) && value->type == CX_JSON_STRING; i++)
        if (cx_str_is(cx_json_text(value), network_words[i])) {
            r->policy->network = (cx_egress_network)i;
            return CX_SUCCESS;
        }
    return reject_member(r, member, value, "\"deny\", \"allowlist\" or \"allow\"");
}

static cx_status read_limits(const policy_reader *r, cx_str member, const cx_json *value)
{
    cx_egress_limits *l = &r->policy->limits;
    const struct {
        const char *name;
        uint64_t *out, max;
    } rows[] = {
        {"connections", &l->connections, 256},
        {"connections_total", &l->connections_total, 1000000},
        {"bytes_connection", &l->bytes_connection, UINT64_C(1) << 50},
        {"bytes_total", &l->bytes_total, UINT64_C(1) << 50},
        {"seconds_head", &l->seconds_head, 600},
        {"seconds_connect", &l->seconds_connect, 600},
        {"seconds_idle", &l->seconds_idle, 86400},
        {"seconds_connection", &l->seconds_connection, 86400},
    };
    if (value->type != CX_JSON_OBJECT)
        return reject_member(r, member, value, "an object");
    for (uint32_t i = 0; i < value->count; i++) {
        cx_str name = cx_json_text(&value->members[i].name);
        bool known = false;
        for (size_t k = 0; k < CX_COUNT_OF(rows) && !known; k++) {
            uint64_t number;
            known = cx_str_is(name, rows[k].name);
            if (!known)
                continue;
            if (!cx_json_uint64(&value->members[i].value, &number) || number == 0 ||
                number > rows[k].max)
                return cx_fail(r->err, CX_E_FORMAT, "%s: /limits/%s: expected 1 to %llu", r->name,
                               rows[k].name, (unsigned long long)rows[k].max);
            *rows[k].out = number;
        }
        if (!known)
            return cx_fail(r->err, CX_E_FORMAT, "%s: /limits/%.*s is not known", r->name,
                           name.size > 100 ? 100 : (int)name.size, name.data);
    }
    return CX_SUCCESS;
}

static cx_status read_member(const policy_reader *r, cx_str name, const cx_json *value)
{
    cx_egress_list list;
    if (cx_str_is(name, "network"))
        return read_network(r, name, value);
    if (cx_str_is(name, "hosts")) {
        CX_TRY(read_list(r, name, value, &list));
        return list.count == 0 ? CX_SUCCESS : cx_egress_policy_narrow(r->policy, &list, r->err);
    }
    if (cx_str_is(name, "private_hosts"))
        return read_private(r, name, value);
    if (cx_str_is(name, "credentials"))
        return read_texts(r, name, value, &r->policy->credentials, &r->policy->credential_count);
    if (cx_str_is(name, "limits"))
        return read_limits(r, name, value);
    if (cx_str_is(name, "version"))
        return value->type == CX_JSON_STRING && cx_str_is(cx_json_text(value), "v1")
                   ? CX_SUCCESS
                   : reject_member(r, name, value, "\"v1\"");
    return cx_fail(r->err, CX_E_FORMAT,
                   "%s: /%.*s is not known; expected version, network, hosts, private_hosts, "
                   "credentials, limits",
                   r->name, name.size > 100 ? 100 : (int)name.size, name.data);
}

cx_status cx_egress_policy_read(cx_str text, const char *name, cx_arena *arena,
                                cx_egress_policy *out, cx_err *err)
{
    cx_json root;
    cx_egress_policy policy;
    policy_reader r = {name, arena, &policy, err};
    cx_egress_policy_init(&policy);
    policy.network = CX_EGRESS_ALLOWLIST;
    if (text.size > CX_EGRESS_POLICY_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "%s: has %zu bytes, expected at most 1 MiB", name,
                       text.size);
    cx_status status = cx_json_parse_text(text, arena, &root, err);
    if (cx_failed(status))
        return status;
    if (root.type != CX_JSON_OBJECT || cx_json_get(&root, CX_STR("version")) == NULL)
        return cx_fail(err, CX_E_FORMAT, "%s: found %s, expected an object with \"version\":\"v1\"",
                       name, cx_json_type_name(&root));
    for (uint32_t i = 0; i < root.count; i++)
        CX_TRY(read_member(&r, cx_json_text(&root.members[i].name), &root.members[i].value));
    *out = policy;
    return CX_SUCCESS;
}

/* --- deciding --------------------------------------------------------------------------------- */

const char *cx_egress_policy_host(const cx_egress_policy *policy, const cx_egress_host *host,
                                  const char **out_why)
{
    *out_why = "there is no network";
    if (policy->network == CX_EGRESS_DENY)
        return "E11";
    *out_why = "no list names this host and port";
    if (policy->network == CX_EGRESS_ALLOWLIST && policy->list_count == 0)
        return "E01";
    for (size_t i = 0; i < policy->list_count; i++) /* P2 */
        if (!cx_egress_list_covers(&policy->lists[i], host))
            return "E01";
    return NULL;
}

const char *cx_egress_policy_address(const cx_egress_policy *policy, const cx_egress_host *host,
                                     cx_egress_class class, const char **out_why)
{
    if (class == CX_EGRESS_PUBLIC)
        return NULL;
    *out_why = cx_egress_class_name(class);
    if (cx_egress_class_can_be_allowed(class) &&
        cx_egress_list_covers(&policy->private_hosts, host)) /* P3 */
        return NULL;
    return "E04";
}
