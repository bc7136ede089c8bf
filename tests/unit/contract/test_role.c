/*
 * Roles, rights, packs, the shell mapping and chains (run.md §4, §5, K12).
 */
#include "contract/role.h"
#include "tests/test.h"

/* role.h I2 */
CX_TEST(role_names_are_exact)
{
    cx_run_role role;
    for (cx_run_role i = CX_ROLE_PM; i < CX_ROLE_COUNT; i++) {
        CHECK(cx_run_role_parse(cx_str_z(cx_run_role_name(i)), &role));
        CHECK(role == i);
    }
    CHECK(!cx_run_role_parse(CX_STR("worker"), &role));
    CHECK(!cx_run_role_parse(CX_STR(""), &role));
    CHECK(!cx_run_role_parse(CX_STR("ORCHESTRATOR"), &role));
}

CX_TEST(role_packs)
{
    cx_run_pack pack;
    CHECK(cx_run_pack_parse(CX_STR("low"), &pack) && pack == CX_PACK_LOW);
    CHECK(cx_run_pack_parse(CX_STR("high"), &pack) && pack == CX_PACK_HIGH);
    CHECK(!cx_run_pack_parse(CX_STR(""), &pack));
    CHECK(!cx_run_pack_parse(CX_STR("Low"), &pack));
    CHECK(!cx_run_pack_parse(CX_STR("low "), &pack));
    CHECK(cx_run_role_pack(CX_ROLE_TECH_LEAD) == CX_PACK_HIGH);
    CHECK(cx_run_role_pack(CX_ROLE_OPS) == CX_PACK_MEDIUM);
}

/* role.h I1, contract.h I2 */
CX_TEST(rights_absent_are_least_and_unknown_are_unknown)
{
    const cx_str absent = {NULL, 0};
    CHECK(cx_run_filesystem_parse(absent) == CX_FS_READ_ONLY);
    CHECK(cx_run_shell_parse(absent) == CX_SHELL_DENY);
    CHECK(cx_run_network_parse(absent) == CX_NETWORK_DENY);
    CHECK(cx_run_filesystem_parse(CX_STR("")) == CX_FS_UNKNOWN);
    CHECK(cx_run_shell_parse(CX_STR("NEVER")) == CX_SHELL_UNKNOWN);
    CHECK(cx_run_network_parse(CX_STR("allow ")) == CX_NETWORK_UNKNOWN);
    CHECK(cx_run_filesystem_parse(CX_STR("danger-full-access")) == CX_FS_DANGER);
    CHECK(strcmp(cx_run_shell_name(CX_SHELL_UNTRUSTED), "untrusted") == 0);
    CHECK(strcmp(cx_run_network_name(CX_NETWORK_UNKNOWN), "?") == 0);
}

CX_TEST(shell_mapping_unknown_is_an_error)
{
    cx_run_shell_map map = cx_run_shell_mapping(CX_STR("sometimes"), CX_STR("deny"));
    CHECK(map.error != NULL && strcmp(map.error, "invalid_shell") == 0);
    CHECK(!map.shell_tool && map.approval_policy == NULL);
    map = cx_run_shell_mapping(CX_STR("never"), CX_STR("maybe"));
    CHECK(map.error != NULL && strcmp(map.error, "invalid_network") == 0);
    CHECK(map.network == CX_NETWORK_DENY);
    map = cx_run_shell_mapping(CX_STR("deny"), CX_STR("allow"));
    CHECK(map.error == NULL && map.approval_policy == NULL && !map.shell_tool);
    CHECK(map.network == CX_NETWORK_ALLOW);
}

static bool chain_holds(bool enabled, const char *roles, const char *owner, const char *assigned)
{
    cx_str items[16];
    size_t count = 0;
    for (const char *at = roles; *at != 0;) {
        size_t size = strcspn(at, " ");
        items[count++] = cx_str_from(at, size);
        at += size + (at[size] == ' ');
    }
    return cx_run_handoff_fault(enabled, items, count, cx_str_z(owner), cx_str_z(assigned)) == NULL;
}

/* role.h I1 */
CX_TEST(handoff_rules)
{
    CHECK(chain_holds(true, "PM TECH_LEAD WORKER", "PM", "WORKER"));
    CHECK(chain_holds(true, "SEARCHER", "SEARCHER", "SEARCHER")); /* none of the five */
    CHECK(chain_holds(true, "PM TECH_LEAD SEARCHER BACKEND WORKER REVIEWER TEST TEST_RUNNER", "PM",
                      "TEST_RUNNER"));
    CHECK(!chain_holds(true, "", "PM", "PM"));
    CHECK(chain_holds(false, "", "PM", "WORKER"));
    CHECK(!chain_holds(true, "PM PM", "PM", "PM"));
    CHECK(!chain_holds(true, "TECH_LEAD PM", "TECH_LEAD", "PM"));
    CHECK(!chain_holds(true, "WORKER", "WORKER", "WORKER"));
    CHECK(!chain_holds(true, "PM TECH_LEAD WORKER TEST_RUNNER", "PM", "TEST_RUNNER"));
    CHECK(!chain_holds(true, "PM TECH_LEAD", "TECH_LEAD", "TECH_LEAD"));
    CHECK(!chain_holds(true, "PM TECH_LEAD", "PM", "PM"));
    CHECK(!chain_holds(false, "BOSS", "PM", "WORKER"));
    CHECK(!chain_holds(false, "PM", "PM", "WORKER"));
}
