/*
 * role.c - names and order of roles, permissions and packs: the only tables of them (role.h I2).
 */
#include "contract/role.h"

static const char *const role_names[CX_ROLE_COUNT] = {
    "PM",       "TECH_LEAD", "SEARCHER", "RESEARCHER", "UI_UX",    "FRONTEND", "BACKEND",    "AI",
    "SECURITY", "INFRA",     "OPS",      "WORKER",     "REVIEWER", "TEST",     "TEST_RUNNER"};
static const char *const pack_names[CX_PACK_COUNT] = {"", "low", "medium", "high"};
static const char *const filesystem_names[] = {"read-only", "workspace-write",
                                               "danger-full-access"};
static const char *const shell_names[] = {"deny", "never", "untrusted", "on-request"};
static const char *const network_names[] = {"deny", "on-request", "allow"};

/* I2: no enumerator without a name. */
_Static_assert(CX_COUNT_OF(filesystem_names) == CX_FS_UNKNOWN, "one name for each permission");
_Static_assert(CX_COUNT_OF(shell_names) == CX_SHELL_UNKNOWN, "one name for each permission");
_Static_assert(CX_COUNT_OF(network_names) == CX_NETWORK_UNKNOWN, "one name for each permission");

/* The index of `text`, or `count`. */
static size_t find_name(const char *const *names, size_t count, cx_str text)
{
    size_t i = 0;
    while (i < count && !cx_str_is(text, names[i]))
        i++;
    return i;
}

bool cx_run_role_parse(cx_str text, cx_run_role *out)
{
    size_t i = find_name(role_names, CX_ROLE_COUNT, text);
    if (i == CX_ROLE_COUNT)
        return false;
    *out = (cx_run_role)i;
    return true;
}

const char *cx_run_role_name(cx_run_role role)
{
    return role < CX_ROLE_COUNT ? role_names[role] : "?";
}

bool cx_run_pack_parse(cx_str text, cx_run_pack *out)
{
    size_t i = find_name(pack_names + 1, CX_PACK_COUNT - 1, text);
    if (i == CX_PACK_COUNT - 1)
        return false;
    *out = (cx_run_pack)(i + 1);
    return true;
}

const char *cx_run_pack_name(cx_run_pack pack)
{
    return pack < CX_PACK_COUNT ? pack_names[pack] : "?";
}

cx_run_pack cx_run_role_pack(cx_run_role role)
{
    CX_ASSERT((size_t)role < CX_ROLE_COUNT);
    if (role == CX_ROLE_PM || role == CX_ROLE_TECH_LEAD)
        return CX_PACK_HIGH;
    return role == CX_ROLE_WORKER ? CX_PACK_LOW : CX_PACK_MEDIUM;
}

cx_run_filesystem cx_run_filesystem_parse(cx_str text)
{
    return text.data == NULL ? CX_FS_READ_ONLY
                             : (cx_run_filesystem)find_name(filesystem_names,
                                                            CX_COUNT_OF(filesystem_names), text);
}

cx_run_shell cx_run_shell_parse(cx_str text)
{
    return text.data == NULL ? CX_SHELL_DENY
                             : (cx_run_shell)find_name(shell_names, CX_COUNT_OF(shell_names), text);
}

cx_run_network cx_run_network_parse(cx_str text)
{
    return text.data == NULL
               ? CX_NETWORK_DENY
               : (cx_run_network)find_name(network_names, CX_COUNT_OF(network_names), text);
}

const char *cx_run_filesystem_name(cx_run_filesystem value)
{
    return value < CX_FS_UNKNOWN ? filesystem_names[value] : "?";
}

const char *cx_run_shell_name(cx_run_shell value)
{
    return value < CX_SHELL_UNKNOWN ? shell_names[value] : "?";
}

const char *cx_run_network_name(cx_run_network value)
{
    return value < CX_NETWORK_UNKNOWN ? network_names[value] : "?";
}

cx_run_shell_map cx_run_shell_mapping(cx_str shell, cx_str network)
{
    cx_run_shell_map map = {NULL, NULL, false, cx_run_network_parse(network)};
    cx_run_shell asked = cx_run_shell_parse(shell);
    if (asked == CX_SHELL_UNKNOWN)
        map.error = "invalid_shell";
    else if (map.network == CX_NETWORK_UNKNOWN)
        map.error = "invalid_network";
    if (map.error != NULL) {
        map.network = CX_NETWORK_DENY;
        return map;
    }
    map.shell_tool = asked != CX_SHELL_DENY;
    map.approval_policy = map.shell_tool ? cx_run_shell_name(asked) : NULL;
    return map;
}

/* Whether an earlier role of the five that hand over is missing from the chain (K12). */
static bool lacks_earlier_role(unsigned present, cx_run_role role)
{
    static const cx_run_role five[] = {CX_ROLE_PM, CX_ROLE_TECH_LEAD, CX_ROLE_WORKER,
                                       CX_ROLE_REVIEWER, CX_ROLE_TEST_RUNNER};
    size_t at = 0;
    while (at < CX_COUNT_OF(five) && five[at] != role)
        at++;
    for (size_t i = 0; at < CX_COUNT_OF(five) && i < at; i++)
        if ((present & (1U << five[i])) == 0)
            return true;
    return false;
}

const char *cx_run_handoff_fault(bool enabled, const cx_str *roles, size_t role_count, cx_str owner,
                                 cx_str assigned)
{
    CX_ASSERT(role_count == 0 || roles != NULL);
    unsigned present = 0;
    cx_run_role previous = CX_ROLE_PM, role = CX_ROLE_PM;
    if (role_count == 0)
        return enabled ? "is enabled, but names no roles" : NULL;
    for (size_t i = 0; i < role_count; i++) {
        if (!cx_run_role_parse(roles[i], &role))
            return "names an unknown role";
        if (i != 0 && role <= previous)
            return "does not name its roles in the order in which they hand over";
        if (lacks_earlier_role(present, role))
            return "leaves out a role that must hand over before one that it names";
        present |= 1U << role;
        previous = role;
    }
    if (!cx_str_eq(roles[0], owner))
        return "does not start with the role of owner_agent";
    if (!cx_str_eq(roles[role_count - 1], assigned))
        return "does not end with the role of assigned_agent";
    return NULL;
}
