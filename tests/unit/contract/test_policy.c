/*
 * Policies: from a baseline or built in, and what is wrong with each file; the policy gate.
 */
#include "contract/contract_command.h"
#include "contract/gates.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "tests/test.h"
#include "tests/support/repo_table.h"

typedef struct loaded {
    cx_arena arena;
    cx_run_findings findings;
    cx_run_policy policy;
    cx_status status;
    cx_err err;
} loaded;

static void load(loaded *out, repo_table *table)
{
    cx_run_repo repo;
    memset(out, 0, sizeof *out);
    cx_arena_init(&out->arena, cx_alloc_default(), 0);
    cx_run_findings_init(&out->findings, &out->arena);
    if (table != NULL)
        repo = repo_table_open(table);
    out->status = cx_run_policy_load(table == NULL ? NULL : &repo, CX_STR(TABLE_COMMIT),
                                     &out->arena, &out->findings, &out->policy, &out->err);
}

static void unload(loaded *it)
{
    cx_run_findings_done(&it->findings);
    cx_arena_done(&it->arena);
}

CX_TEST(policy_built_in)
{
    loaded it;
    load(&it, NULL);
    CHECK(!cx_failed(it.status) && it.findings.refusing == 0);
    CHECK(it.policy.built_in);
    CHECK(cx_run_policy_agent(&it.policy, CX_STR("WORKER"), CX_STR("agent-1")) != NULL);
    CHECK(cx_run_policy_agent(&it.policy, CX_STR("worker"), CX_STR("agent-1")) == NULL);
    CHECK(cx_run_policy_agent(&it.policy, CX_STR("OPS"), CX_STR("agent-1")) == NULL);
    for (int i = 0; i < CX_ROLE_COUNT; i++)
        CHECK(it.policy.roles[i].present);
    CHECK_INT(it.policy.approver_count, 0);
    CHECK_INT(it.policy.approvers_fault.size, 0);
    CHECK_INT(it.policy.packs[CX_PACK_LOW].allow_count, 9);
    CHECK_INT(it.policy.packs[CX_PACK_MEDIUM].allow_count, 15);
    CHECK_INT(it.policy.packs[CX_PACK_NONE].allow_count, 13);
    CHECK(cx_str_list_has(it.policy.packs[CX_PACK_HIGH].forbidden_actions, CX_STR("npm install")));
    CHECK(
        !cx_str_list_has(it.policy.packs[CX_PACK_MEDIUM].forbidden_actions, CX_STR("npm install")));
    unload(&it);
}

/* policy.h P1, P2 */
CX_TEST(policy_of_a_baseline_without_any_is_built_in)
{
    loaded it;
    repo_table table = {0};
    repo_table_put(&table, "policies/README.md", "what a company calls policies\n");
    load(&it, &table);
    CHECK(it.findings.refusing == 0 && it.policy.built_in);
    unload(&it);
}

/* policy.h P1 */
CX_TEST(policy_of_a_baseline_must_be_whole)
{
    static const char *const names[] = {
        "policies/agent_registry.json",    "policies/command_allowlist.json",
        "policies/forbidden_actions.json", "policies/mcp_allowlist.json",
        "policies/packs/low.json",         "policies/packs/medium.json",
        "policies/packs/high.json"};
    loaded it;
    repo_table whole = {0};
    repo_table_put_policies(&whole);
    load(&it, &whole);
    CHECK(it.findings.refusing == 0 && !it.policy.built_in);
    unload(&it);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        for (int how = 0; how < 4; how++) {
            repo_table table = whole;
            static const char *const broken[] = {NULL, "{", "{\"version\":\"v1\",\"odd\":1}",
                                                 "{\"version\":\"v2\",\"allow\":[]}"};
            if (how == 0)
                table.files[i] = (repo_file){"other", "", 0};
            else
                repo_table_put(&table, names[i], broken[how]);
            load(&it, &table);
            CHECK(!cx_failed(it.status));
            REQUIRE(it.findings.refusing != 0);
            CHECK_STR(it.findings.list.items[0].where, names[i]);
            unload(&it);
        }
    /* A link in place of a file. */
    repo_table_put(&whole, names[3], NULL);
    load(&it, &whole);
    CHECK(it.findings.refusing == 1);
    unload(&it);
}

CX_TEST(policy_reading_that_fails_is_an_error)
{
    loaded it;
    repo_table table = {0};
    table.fails = "policies/mcp_allowlist.json";
    load(&it, &table);
    CHECK(it.status.code == CX_E_IO);
    unload(&it);
}

CX_TEST(policy_registry_faults)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"version\":\"v1\",\"agents\":[]}", "agents"},
        {"{\"version\":\"v1\",\"agents\":[{\"agent_id\":\"a\",\"role\":\"BOSS\",\"codex_home\":"
         "\"h\","
         "\"defaults\":{\"sandbox\":\"read-only\",\"approval_policy\":\"never\",\"network\":"
         "\"deny\"}}]}",
         "role"},
        {"{\"version\":\"v1\",\"agents\":[{\"agent_id\":\"a\",\"role\":\"PM\",\"codex_home\":\"h\","
         "\"defaults\":{\"sandbox\":\"all\",\"approval_policy\":\"never\",\"network\":\"deny\"}}]}",
         "sandbox"},
        {"{\"version\":\"v1\",\"agents\":[{\"agent_id\":\"a\",\"role\":\"PM\",\"codex_home\":\"h\","
         "\"defaults\":{\"sandbox\":\"read-only\",\"approval_policy\":\"always\",\"network\":"
         "\"deny\"}}]}",
         "approval_policy"},
        {"{\"version\":\"v1\",\"agents\":[{\"agent_id\":\"a\",\"role\":\"PM\",\"codex_home\":\"h\"}"
         "]}",
         "defaults"},
        {"{\"version\":\"v1\",\"agents\":[{\"agent_id\":\"a\",\"role\":\"PM\",\"codex_home\":\"h\","
         "\"defaults\":{\"sandbox\":\"read-only\",\"approval_policy\":\"never\",\"network\":"
         "\"deny\"}},{\"agent_id\":\"a\",\"role\":\"PM\",\"codex_home\":\"h\",\"defaults\":"
         "{\"sandbox\":\"workspace-write\",\"approval_policy\":\"never\",\"network\":\"deny\"}}]}",
         "once"},
        {"{\"version\":\"v1\",\"role_contracts\":{\"PM\":{\"purpose\":\"p\"}},\"agents\":[]}",
         "missing"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        loaded it;
        repo_table table = {0};
        repo_table_put_policies(&table);
        repo_table_put(&table, "policies/agent_registry.json", cases[i].text);
        load(&it, &table);
        REQUIRE(it.findings.refusing == 1);
        cx_str message = it.findings.list.items[0].message;
        bool says = message.data != NULL && strstr(message.data, cases[i].says) != NULL;
        if (!says)
            printf("  %.*s\n", (int)message.size, message.data);
        CHECK(says);
        unload(&it);
    }
}

/* Packs may group their prefixes and name denied text, as older files do. */
CX_TEST(policy_packs_of_the_older_shape)
{
    loaded it;
    repo_table table = {0};
    repo_table_put_policies(&table);
    repo_table_put(
        &table, "policies/packs/low.json",
        "{\"version\":\"v1\",\"allow\":[{\"exec\":\"git\",\"argv_prefixes\":[[\"git\"]]},"
        "[\"make\",\"check\"]],\"deny_substrings\":[\"curl \"],"
        "\"forbidden_actions\":[\"git push\"]}");
    load(&it, &table);
    REQUIRE(it.findings.refusing == 0);
    const cx_run_pack_rules *low = &it.policy.packs[CX_PACK_LOW];
    CHECK_INT(low->allow_count, 2);
    CHECK_STR(low->allow[1].items[1], "check");
    CHECK_INT(low->forbidden_actions.count, 2);
    cx_run_command_rules rules;
    cx_err err;
    const cx_str own[] = {CX_STR("mkfs")};
    CHECK_STATUS(cx_run_policy_rules(&it.policy, CX_PACK_LOW, (cx_str_list){own, 1}, &it.arena,
                                     &rules, &err),
                 &err);
    CHECK(rules.pack_known);
    CHECK_INT(rules.forbidden_count, it.policy.forbidden_actions.count + 3);
    CHECK_STR(rules.forbidden[rules.forbidden_count - 1], "mkfs");
    CHECK_STATUS(cx_run_policy_rules(&it.policy, CX_PACK_COUNT, (cx_str_list){NULL, 0}, &it.arena,
                                     &rules, &err),
                 &err);
    CHECK(!rules.pack_known && rules.allow_count == 0);
    unload(&it);
}

/* policy.h P3 */
CX_TEST(policy_approvers_are_pinned)
{
    static const char approvers[] =
        "{\"version\":\"v1\",\"approvers\":[{\"name\":\"ann\",\"public_key\":"
        "\"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8\"}]}";
    char config[256], hex[65];
    cx_digest digest = cx_digest_of(cx_str_bytes(CX_STR(approvers)));
    cx_hex_encode((cx_bytes){digest.bytes, sizeof digest.bytes}, hex);
    hex[64] = 0;
    for (int how = 0; how < 4; how++) {
        loaded it;
        repo_table table = {0};
        repo_table_put(&table, "policies/approvers.json", approvers);
        if (how == 1)
            hex[0] = hex[0] == '0' ? '1' : '0';
        snprintf(config, sizeof config,
                 how == 2 ? "{\"version\":\"v1\",\"approvers\":{}}"
                          : "{\"version\":\"v1\",\"approvers\":{\"sha256\":\"%s\"}}",
                 hex);
        if (how == 3)
            repo_table_put(&table, "policies/approvers.json", "{\"version\":\"v1\"}");
        repo_table_put(&table, "policies/cortex.json", config);
        load(&it, &table);
        CHECK_INT(it.findings.refusing, how == 3 ? 1 : 0);
        CHECK_INT(it.policy.approver_count, how == 0 ? 1 : 0);
        CHECK((it.policy.approvers_fault.size == 0) == (how == 0));
        if (how == 0) {
            CHECK_STR(it.policy.approvers[0].name, "ann");
            CHECK_STR(it.policy.approvers[0].keyid,
                      "56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c");
        }
        unload(&it);
    }
}

CX_TEST(policy_cortex_json_that_cannot_be_read_rejects)
{
    loaded it;
    repo_table table = {0};
    repo_table_put(&table, "policies/cortex.json", "{\"version\":\"v1\",\"limit\":{}}");
    load(&it, &table);
    REQUIRE(it.findings.refusing == 1);
    CHECK_STR(it.findings.list.items[0].where, "policies/cortex.json");
    unload(&it);
}

/* --- judging ---------------------------------------------------------------------------------- */

static cx_str text_or_absent(const char *text)
{
    return text == NULL ? (cx_str){NULL, 0} : cx_str_z(text);
}

CX_TEST(policy_judges_each_field)
{
    loaded it;
    unsigned exceeds;
    const cx_str none = {NULL, 0}, tools[] = {CX_STR("codex"), CX_STR("search")};
    load(&it, NULL);
    cx_run_permissions asked = {
        CX_STR("workspace-write"), CX_STR("never"), CX_STR("deny"), {tools, 1}};
    CHECK(cx_run_policy_compare(&it.policy, CX_STR("WORKER"), CX_STR("agent-1"), &asked,
                                &exceeds) == NULL);
    asked.mcp_tools.count = 2;
    CHECK(cx_run_policy_compare(&it.policy, CX_STR("WORKER"), CX_STR("agent-1"), &asked,
                                &exceeds) != NULL);
    CHECK_INT(exceeds, CX_EXCEEDS_MCP_TOOLS);
    asked = (cx_run_permissions){CX_STR("rw"), CX_STR("ask"), CX_STR("maybe"), {NULL, 0}};
    CHECK(cx_run_policy_compare(&it.policy, CX_STR("SEARCHER"), CX_STR("agent-1"), &asked,
                                &exceeds) != NULL);
    CHECK_INT(exceeds, CX_EXCEEDS_FILESYSTEM | CX_EXCEEDS_SHELL | CX_EXCEEDS_NETWORK);
    asked = (cx_run_permissions){none, none, none, {NULL, 0}};
    CHECK(cx_run_policy_compare(&it.policy, CX_STR("PM"), CX_STR("agent-1"), &asked, &exceeds) ==
          NULL);
    unload(&it);
}

/* Full access is above a row that has it, too: a contract never gets it without an approval. */
CX_TEST(policy_full_access_is_never_a_rows)
{
    loaded it;
    unsigned exceeds;
    cx_run_agent agents[1] = {{.agent_id = CX_STR("root"),
                               .role = CX_ROLE_WORKER,
                               .filesystem = CX_FS_DANGER,
                               .shell = CX_SHELL_ON_REQUEST,
                               .network = CX_NETWORK_ALLOW}};
    load(&it, NULL);
    it.policy.agents = agents;
    it.policy.agent_count = 1;
    cx_run_permissions asked = {
        CX_STR("danger-full-access"), CX_STR("never"), CX_STR("deny"), {NULL, 0}};
    CHECK(cx_run_policy_compare(&it.policy, CX_STR("WORKER"), CX_STR("root"), &asked, &exceeds) !=
          NULL);
    CHECK_INT(exceeds, CX_EXCEEDS_FILESYSTEM);
    unload(&it);
}

/* Every request against every row: a row covers what is not above it; what is unknown is above
 * every row, and an absent member asks for the least. */
CX_TEST(policy_every_request_against_every_row)
{
    static const char *const filesystems[] = {"read-only", "workspace-write", "danger-full-access",
                                              "rw", NULL};
    static const char *const shells[] = {"deny",       "never",  "untrusted",
                                         "on-request", "always", NULL};
    static const char *const networks[] = {"deny", "on-request", "allow", "Deny", NULL};
    loaded it;
    load(&it, NULL);
    for (int fs = 0; fs < CX_FS_UNKNOWN; fs++)
        for (int shell = 0; shell < CX_SHELL_UNKNOWN; shell++)
            for (int network = 0; network < CX_NETWORK_UNKNOWN; network++) {
                const cx_run_agent row[1] = {{.agent_id = CX_STR("a"),
                                              .role = CX_ROLE_WORKER,
                                              .filesystem = (cx_run_filesystem)fs,
                                              .shell = (cx_run_shell)shell,
                                              .network = (cx_run_network)network}};
                it.policy.agents = row;
                it.policy.agent_count = 1;
                for (size_t f = 0; f < CX_COUNT_OF(filesystems); f++)
                    for (size_t s = 0; s < CX_COUNT_OF(shells); s++)
                        for (size_t n = 0; n < CX_COUNT_OF(networks); n++) {
                            int least_fs = filesystems[f] == NULL ? 0 : (int)f;
                            int least_shell = shells[s] == NULL ? 0 : (int)s;
                            int least_network = networks[n] == NULL ? 0 : (int)n;
                            unsigned expected = 0, exceeds = 99;
                            if (least_fs > fs || least_fs == CX_FS_DANGER)
                                expected |= CX_EXCEEDS_FILESYSTEM;
                            if (least_shell > shell)
                                expected |= CX_EXCEEDS_SHELL;
                            if (least_network > network)
                                expected |= CX_EXCEEDS_NETWORK;
                            const cx_run_permissions asked = {text_or_absent(filesystems[f]),
                                                              text_or_absent(shells[s]),
                                                              text_or_absent(networks[n]),
                                                              {NULL, 0}};
                            const char *why = cx_run_policy_compare(&it.policy, CX_STR("WORKER"),
                                                                    CX_STR("a"), &asked, &exceeds);
                            if ((why == NULL) == (expected == 0) && exceeds == expected)
                                continue;
                            cx_test_fail(__FILE__, __LINE__,
                                         "row %d %d %d, asked %zu %zu %zu: exceeds %u, expected %u",
                                         fs, shell, network, f, s, n, exceeds, expected);
                            unload(&it);
                            return;
                        }
            }
    unload(&it);
}

/* A row belongs to one role and one agent, both spelled exactly. */
CX_TEST(policy_a_row_is_of_its_role_and_agent_alone)
{
    const cx_run_agent rows[] = {{.agent_id = CX_STR("a"), .role = CX_ROLE_WORKER},
                                 {.agent_id = CX_STR("a"), .role = CX_ROLE_REVIEWER},
                                 {.agent_id = CX_STR("b"), .role = CX_ROLE_WORKER}};
    const cx_run_permissions nothing = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    unsigned exceeds;
    loaded it;
    load(&it, NULL);
    it.policy.agents = rows;
    it.policy.agent_count = CX_COUNT_OF(rows);
    CHECK(cx_run_policy_agent(&it.policy, CX_STR("WORKER"), CX_STR("a")) == &rows[0]);
    CHECK(cx_run_policy_agent(&it.policy, CX_STR("REVIEWER"), CX_STR("a")) == &rows[1]);
    CHECK(cx_run_policy_agent(&it.policy, CX_STR("WORKER"), CX_STR("b")) == &rows[2]);
    static const char *const strangers[][2] = {{"REVIEWER", "b"}, {"PM", "a"},     {"worker", "a"},
                                               {"WORKER ", "a"},  {"WORKER", "A"}, {"WORKER", ""},
                                               {"", "a"},         {"WORKER", "ab"}};
    for (size_t i = 0; i < CX_COUNT_OF(strangers); i++) {
        cx_str role = cx_str_z(strangers[i][0]), agent = cx_str_z(strangers[i][1]);
        CHECK(cx_run_policy_agent(&it.policy, role, agent) == NULL);
        const char *why = cx_run_policy_compare(&it.policy, role, agent, &nothing, &exceeds);
        CHECK(why != NULL && strcmp(why, "agent_not_registered") == 0 && exceeds == 0);
    }
    unload(&it);
}

/* --- the gate over a contract ----------------------------------------------------------------- */

static bool grant_two(void *arg, cx_str scope)
{
    (void)arg;
    return cx_str_is(scope, "wide_path:lib") || cx_str_is(scope, "permission:network=allow");
}

/* gates.h I1, I2 */
CX_TEST(policy_gate_names_scopes_and_takes_grants)
{
    loaded it;
    cx_err err;
    cx_json violations;
    const cx_str paths[] = {CX_STR("lib"), CX_STR("src/app/"), CX_STR("a/.git"), CX_STR("b*")};
    cx_contract contract = {
        .assigned = {CX_STR("WORKER"), CX_ROLE_WORKER, CX_STR("agent-1"), CX_STR("")},
        .pack = CX_PACK_LOW,
        .permissions = {CX_STR("danger-full-access"), CX_STR("never"), CX_STR("allow"), {NULL, 0}},
        .allowed_paths = {paths, CX_COUNT_OF(paths)}};
    const cx_run_grants grants = {grant_two, NULL};
    load(&it, NULL);
    CHECK_STATUS(cx_run_gate_policy(&it.policy, &contract, NULL, NULL, NULL, &it.findings, &err),
                 &err);
    REQUIRE(it.findings.refusing == 5);
    const cx_run_finding *found = it.findings.list.items;
    CHECK_STR(found[0].where, "filesystem");
    CHECK_STR(found[0].detail, "permission:filesystem=danger-full-access");
    CHECK_STR(found[1].detail, "permission:network=allow");
    CHECK_STR(found[2].detail, "wide_path:lib");
    CHECK(strcmp(found[3].rule, "protected_path") == 0 && found[3].detail.size == 0);
    CHECK(strcmp(found[4].rule, "invalid_path") == 0);
    CHECK_STATUS(cx_run_gate_violations(&it.findings, &it.arena, &violations, &err), &err);
    REQUIRE(violations.count == 5);
    CHECK_STR(cx_json_text(&violations.items[2]), "wide_path lib");
    cx_run_findings_done(&it.findings);
    cx_run_findings_init(&it.findings, &it.arena);
    CHECK_STATUS(cx_run_gate_policy(&it.policy, &contract, NULL, NULL, &grants, &it.findings, &err),
                 &err);
    CHECK_INT(it.findings.refusing, 3);
    contract.pack = CX_PACK_NONE;
    contract.assigned.agent_id = CX_STR("ghost");
    CHECK_STATUS(cx_run_gate_policy(&it.policy, &contract, NULL, NULL, &grants, &it.findings, &err),
                 &err);
    CHECK(cx_run_findings_have(&it.findings, "unknown_policy_pack"));
    CHECK(cx_run_findings_have(&it.findings, "agent_not_registered"));
    unload(&it);
}
