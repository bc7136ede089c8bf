/*
 * Contracts: each lint reached by a change to one that holds; resolving; artifacts (run.md §3, §6).
 */
#include "contract/contract.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "rules/assets.h"
#include "tests/test.h"
#include "tests/support/repo_table.h"

/* sha256 of "notes\n" and of "failed\n". */
#define NOTES_SHA "444e0fffbd825e9610ff5b199485707a0c895339ae80c15cc8a8aee41b106fda"
#define FAILED_SHA "6da5b18878e110928643ebcc38dbb7552cf3a296eea56493e23edc2b93eecff8"

/* Holds as it is; @SHA@ becomes the digest of the schema that it binds. */
static const char base[] =
    "{\"task_id\":\"task_one\",\"task_type\":\"IMPLEMENT\","
    "\"owner_agent\":{\"role\":\"TECH_LEAD\",\"agent_id\":\"agent-1\"},"
    "\"assigned_agent\":{\"role\":\"WORKER\",\"agent_id\":\"agent-1\"},"
    "\"inputs\":{\"spec\":\"do it\",\"artifacts\":[{\"name\":\"output_schema.worker\","
    "\"uri\":\"schemas/agent_task_result.v1.json\",\"sha256\":\"@SHA@\"}]},"
    "\"required_outputs\":[{\"name\":\"src/app/"
    "a.c\",\"type\":\"file\",\"acceptance\":\"compiles\"}],"
    "\"allowed_paths\":[\"src/app/\"],\"forbidden_actions\":[\"git push\"],"
    "\"acceptance_tests\":[{\"name\":\"unit\",\"cmd\":\"scripts/test.sh\",\"must_pass\":true}],"
    "\"tool_permissions\":{\"filesystem\":\"workspace-write\",\"shell\":\"never\","
    "\"network\":\"deny\",\"mcp_tools\":[\"codex\"]},\"mcp_tool_set\":[\"codex\",\"01-filesystem\"]"
    ","
    "\"policy_pack\":\"low\","
    "\"timeout_retry\":{\"timeout_sec\":60,\"max_retries\":2,\"retry_backoff_sec\":0},"
    "\"rollback\":{\"strategy\":\"worktree_drop\",\"baseline_ref\":\"HEAD\"},"
    "\"evidence_links\":[],\"log_refs\":{\"run_id\":\"\",\"paths\":{}}}";

static const char role_contract[] =
    ",\"role_contract\":{\"identity\":{\"role\":\"WORKER\",\"agent_id\":\"agent-1\"},"
    "\"purpose\":\"p\",\"system_prompt_ref\":null,\"skills_bundle_ref\":null,"
    "\"mcp_bundle_ref\":null,\"runtime_binding\":{\"runner\":null,\"provider\":null,"
    "\"model\":\"any\"},\"tool_permissions\":{\"filesystem\":\"workspace-write\","
    "\"shell\":\"never\",\"network\":\"deny\"},\"resolved_mcp_tool_set\":[\"codex\","
    "\"01-filesystem\"],\"handoff\":{\"eligible\":true,\"required_downstream_roles\":[],"
    "\"chain_roles\":[],\"max_handoffs\":null},\"fail_closed_conditions\":[\"c\"]}}";

typedef struct change {
    const char *from, *to;
} change;

typedef struct judged {
    cx_arena arena;
    cx_run_findings findings;
    cx_contract contract;
    cx_run_policy policy;
    repo_table table;
    cx_status status;
    cx_err err;
    char *text; /* of the arena */
} judged;

/* Stands for the command gate: "refuse" is refused, "trivial" is. */
static cx_status judge_command(const cx_run_policy *policy, const cx_contract *contract,
                               cx_str command, cx_arena *arena, const char **out_row,
                               cx_str *out_reason, cx_err *err)
{
    (void)policy;
    (void)contract;
    (void)arena;
    (void)err;
    *out_row = cx_str_is(command, "refuse") ? "C13" : NULL;
    *out_reason = CX_STR("it is not on the list");
    return CX_SUCCESS;
}

static cx_status judge_trivial(cx_str command, cx_arena *arena, bool *out, cx_err *err)
{
    (void)arena;
    (void)err;
    *out = cx_str_is(command, "trivial");
    return CX_SUCCESS;
}

static const cx_contract_checks judges = {judge_command, judge_trivial};

/* `text` with its first `from` replaced; NULL when it is not there. */
static char *replaced(cx_arena *arena, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL)
        return NULL;
    cx_str made = cx_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return (char *)(uintptr_t)made.data;
}

static void start(judged *it)
{
    cx_bytes schema;
    char hex[65] = "";
    memset(it, 0, sizeof *it);
    cx_arena_init(&it->arena, cx_alloc_default(), 0);
    cx_run_findings_init(&it->findings, &it->arena);
    if (cx_run_asset("schemas/agent_task_result.v1.json", &schema)) {
        cx_digest digest = cx_digest_of(schema);
        cx_hex_encode((cx_bytes){digest.bytes, sizeof digest.bytes}, hex);
    }
    it->text = replaced(&it->arena, base, "@SHA@", hex);
}

static void judge(judged *it)
{
    cx_run_repo repo = repo_table_open(&it->table);
    it->status = cx_run_contract_check(cx_str_z(it->text), &repo, NULL, &judges, &it->arena,
                                       &it->findings, &it->contract, &it->policy, &it->err);
}

static void end(judged *it)
{
    cx_run_findings_done(&it->findings);
    cx_arena_done(&it->arena);
}

static void print(const judged *it)
{
    for (size_t i = 0; i < it->findings.list.count; i++)
        printf("  %s %.*s: %.*s\n", it->findings.list.items[i].rule,
               (int)it->findings.list.items[i].where.size, it->findings.list.items[i].where.data,
               (int)it->findings.list.items[i].message.size,
               it->findings.list.items[i].message.data);
}

/* After the changes exactly one finding refuses: this rule, there.  A NULL rule: none. */
static void expect(const char *rule, const char *where, const change *changes, size_t count)
{
    judged it;
    start(&it);
    for (size_t i = 0; i < count; i++) {
        char *text = replaced(&it.arena, it.text, changes[i].from, changes[i].to);
        if (text == NULL)
            printf("  no %s\n", changes[i].from);
        REQUIRE(text != NULL);
        it.text = text;
    }
    it.table.bundle = true;
    repo_table_put(&it.table, "docs/notes.md", "notes\n");
    repo_table_put(&it.table, "roles/worker.md", "be good\n");
    repo_table_put(&it.table, "link.md", NULL);
    judge(&it);
    CHECK_STATUS(it.status, &it.err);
    size_t wanted = rule == NULL ? 0 : 1, first = 0;
    while (first < it.findings.list.count && it.findings.list.items[first].informs)
        first++;
    bool good = it.findings.refusing == wanted &&
                (wanted == 0 || (strcmp(it.findings.list.items[first].rule, rule) == 0 &&
                                 cx_str_is(it.findings.list.items[first].where, where)));
    if (!good) {
        printf("  expected %s %s after %s\n", rule == NULL ? "nothing" : rule, where,
               count == 0 ? "no change" : changes[count - 1].to);
        print(&it);
    }
    CHECK(good);
    end(&it);
}

#define EXPECT(rule, where, ...)                       \
    expect(rule, where, (const change[]){__VA_ARGS__}, \
           sizeof((const change[]){__VA_ARGS__}) / sizeof(change))

CX_TEST(contract_that_holds)
{
    judged it;
    start(&it);
    judge(&it);
    print(&it);
    CHECK_STATUS(it.status, &it.err);
    CHECK_INT(it.findings.refusing, 0);
    CHECK_STR(it.contract.task_id, "task_one");
    CHECK(it.contract.task_type == CX_TASK_IMPLEMENT);
    CHECK(it.contract.owner.role == CX_ROLE_TECH_LEAD);
    CHECK(it.contract.filesystem == CX_FS_WORKSPACE_WRITE);
    CHECK(it.contract.pack == CX_PACK_LOW);
    CHECK_INT(it.contract.timeout_sec, 60);
    CHECK_INT(it.contract.max_retries, 2);
    CHECK(it.contract.rollback == CX_ROLLBACK_WORKTREE_DROP);
    CHECK_STR(it.contract.baseline_commit, TABLE_COMMIT);
    CHECK(it.contract.target_ref.data == NULL);
    REQUIRE(it.contract.output_schema != NULL);
    CHECK_STR(it.contract.output_schema_file, "agent_task_result.v1.json");
    CHECK(it.contract.output_schema_bytes.size != 0);
    CHECK(it.contract.tests[0].must_pass);
    end(&it);
}

/* contract.h I2 */
CX_TEST(contract_decodes_what_is_optional)
{
    judged it;
    start(&it);
    it.text = replaced(&it.arena, it.text, "\"policy_pack\":\"low\",",
                       "\"audit_only\":true,\"parent_task_id\":\"task_zero\",\"handoff_chain\":"
                       "{\"enabled\":false,\"max_handoffs\":3},\"runtime_options\":{\"runner\":"
                       "\"app-server\",\"provider\":\"p.1\",\"execution\":{\"mcp_first\":true},"
                       "\"strict_acceptance\":true},");
    it.text = replaced(&it.arena, it.text, "\"timeout_sec\":60", "\"timeout_sec\":6e1");
    it.text = replaced(&it.arena, it.text, "\"retry_backoff_sec\":0",
                       "\"retry_backoff_sec\":99999999999999999999");
    judge(&it);
    print(&it);
    CHECK_INT(it.findings.refusing, 0);
    CHECK(it.contract.pack == CX_PACK_LOW); /* the role's */
    CHECK(it.contract.audit_only && it.contract.filesystem == CX_FS_READ_ONLY);
    CHECK_STR(it.contract.parent_task_id, "task_zero");
    CHECK(it.contract.has_handoff && !it.contract.handoff_enabled);
    CHECK_INT(it.contract.max_handoffs, 3);
    CHECK_STR(it.contract.runner, "app-server");
    CHECK_STR(it.contract.provider, "p.1");
    CHECK(it.contract.mcp_first && it.contract.strict_acceptance);
    CHECK_INT(it.contract.timeout_sec, 60);
    CHECK_INT(it.contract.retry_backoff_sec, UINT32_MAX);
    end(&it);
}

/* contract.h I1 */
CX_TEST(k01_what_is_no_contract)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "null",
                                        "{\"task_id\":\"task_one\"}",
                                        "\xEF\xBB\xBF{}",
                                        "{\"a\":1,\"a\":2}",
                                        "{} {}"};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        judged it;
        start(&it);
        it.text = (char *)(uintptr_t)texts[i];
        judge(&it);
        CHECK_STATUS(it.status, &it.err);
        CHECK(it.findings.refusing != 0 && cx_run_findings_have(&it.findings, "K01"));
        CHECK_STR(it.contract.task_id, i == 4 ? "task_one" : "");
        end(&it);
    }
}

CX_TEST(k01_too_long)
{
    judged it;
    start(&it);
    char *text = cx_arena_push(&it.arena, CX_RUN_CONTRACT_BYTES_MAX + 2, 1);
    REQUIRE(text != NULL);
    memset(text, ' ', CX_RUN_CONTRACT_BYTES_MAX + 1);
    text[CX_RUN_CONTRACT_BYTES_MAX + 1] = 0;
    memcpy(text, "{}", 2);
    it.text = text;
    judge(&it);
    CHECK(cx_run_findings_have(&it.findings, "K01"));
    end(&it);
}

CX_TEST(k01_nothing_is_normalised)
{
    EXPECT("K01", "/policy_pack", {"\"policy_pack\":\"low\"", "\"policy_pack\":\"Low\""});
    EXPECT("K01", "/timeout_retry/max_retries", {"\"max_retries\":2", "\"max_retries\":11"});
    EXPECT("K01", "/mcp_tool_set", {"[\"codex\",\"01-filesystem\"]", "[]"});
}

CX_TEST(k02_paths)
{
    EXPECT("K02", "/allowed_paths/1", {"[\"src/app/\"]", "[\"src/app/\",\"src/*\"]"});
    EXPECT("K02", "/allowed_paths/0", {"[\"src/app/\"]", "[\"a/.Git/x\",\"src/app/\"]"});
    EXPECT("K02", "/locks/1",
           {"[\"src/app/\"],", "[\"src/app/\"],\"locks\":[\"src/app/\",\"*\"],"});
    EXPECT("K02", "/locks/0", {"[\"src/app/\"],", "[\"src/app/\"],\"locks\":[\"src/\"],"});
    EXPECT("K01", "/locks/0", {"[\"src/app/\"],", "[\"src/app/\"],\"locks\":[\"\"],"});
}

CX_TEST(entries_that_cover_entries)
{
    const cx_str entries[] = {CX_STR("src/app/"), CX_STR("docs/a.md")};
    const cx_str_list list = {entries, CX_COUNT_OF(entries)};
    CHECK(cx_run_contract_covers(&list, CX_STR("src/app/")));
    CHECK(cx_run_contract_covers(&list, CX_STR("src/app/x/y.c")));
    CHECK(cx_run_contract_covers(&list, CX_STR("docs/a.md")));
    CHECK(!cx_run_contract_covers(&list, CX_STR("src/")));
    CHECK(!cx_run_contract_covers(&list, CX_STR("docs/")));
    CHECK(!cx_run_contract_covers(&list, CX_STR("src/application/")));
    CHECK(!cx_run_contract_covers(&list, CX_STR("")));
}

CX_TEST(k03_agents)
{
    EXPECT("K03", "/owner_agent",
           {"\"TECH_LEAD\",\"agent_id\":\"agent-1\"", "\"TECH_LEAD\",\"agent_id\":\"agent-2\""});
    EXPECT("K03", "/assigned_agent",
           {"\"WORKER\",\"agent_id\":\"agent-1\"", "\"WORKER\",\"agent_id\":\"agent-1 \""});
}

CX_TEST(k04_the_output_schema)
{
    EXPECT("K04", "/inputs/artifacts", {"output_schema.worker", "my_schema"});
    EXPECT("K04", "/inputs/artifacts/0/uri",
           {"schemas/agent_task_result.v1.json", "schemas/review_report.v1.json"});
    EXPECT("K04", "/inputs/artifacts/0/uri",
           {"schemas/agent_task_result.v1.json", "docs/agent_task_result.v1.json"});
    EXPECT("K04", "/inputs/artifacts/0/uri",
           {"schemas/agent_task_result.v1.json", "schemas/../schemas/agent_task_result.v1.json"});
    EXPECT("K04", "/inputs/artifacts/0/uri", {"schemas/agent_task_result.v1.json", "schemas/"});
    EXPECT(
        "K04", "/inputs/artifacts/1/name",
        {"\"artifacts\":[{\"name\":\"output_schema.worker\"",
         "\"artifacts\":[{\"name\":\"output_schema\",\"uri\":\"schemas/agent_task_result.v1.json\","
         "\"sha256\":\"48579fe57c2178dd2112d1517cf057ccbd04e530c254999d40588a322f8cc576\"},"
         "{\"name\":\"output_schema.worker\""});
    EXPECT(NULL, "", {"output_schema.worker", "output_schema"});
}

/* Another role's binding does not count: it is neither missing nor double. */
CX_TEST(k04_of_another_role)
{
    EXPECT(NULL, "",
           {"\"artifacts\":[", "\"artifacts\":[{\"name\":\"output_schema.reviewer\",\"uri\":"
                               "\"docs/notes.md\",\"sha256\":"
                               "\"" NOTES_SHA "\"},"});
}

/* The baseline's file is what counts where it has one. */
/* contract.h I3 */
CX_TEST(k04_the_baselines_file)
{
    judged it;
    start(&it);
    repo_table_put(&it.table, "schemas/agent_task_result.v1.json", "{}");
    judge(&it);
    CHECK_INT(it.findings.refusing, 1);
    CHECK(cx_run_findings_have(&it.findings, "K04"));
    CHECK(it.contract.output_schema == NULL);
    end(&it);
    start(&it);
    repo_table_put(&it.table, "schemas/agent_task_result.v1.json", NULL); /* a link */
    judge(&it);
    CHECK(cx_run_findings_have(&it.findings, "K04"));
    end(&it);
    start(&it);
    repo_table_put(&it.table, "schemas/agent_task_result.v1.json", "{}");
    /* printf '{}' | sha256sum, in capitals */
    it.text = replaced(&it.arena, base, "@SHA@",
                       "44136FA355B3678A1146AD16F7E8649E94FB4FC21FE77E8310C060F61CAAFF8A");
    judge(&it);
    CHECK_INT(it.findings.refusing, 0);
    CHECK_INT(it.contract.output_schema_bytes.size, 2);
    end(&it);
}

/* Where the baseline has no such file, an edition that others have published is served by ours. */
CX_TEST(k04_editions)
{
    const change as_reviewer[] = {
        {"\"assigned_agent\":{\"role\":\"WORKER\"", "\"assigned_agent\":{\"role\":\"REVIEWER\""},
        {"output_schema.worker", "output_schema.reviewer"},
        {"schemas/agent_task_result.v1.json", "schemas/review_report.v1.json"},
        {"\"sha256\":\"",
         "\"sha256\":\"26944733cd476dfa113f0746d4e240e2999800f8ef7296421f30e5974bf1dfc7\"}],"
         "\"cut\":[{\"x\":\""}};
    judged it;
    for (int has_file = 0; has_file < 2; has_file++) {
        start(&it);
        for (size_t i = 0; i < CX_COUNT_OF(as_reviewer); i++) {
            it.text = replaced(&it.arena, it.text, as_reviewer[i].from, as_reviewer[i].to);
            REQUIRE(it.text != NULL);
        }
        /* What followed the digest goes. */
        char *cut = strstr(it.text, ",\"cut\":"), *rest = strstr(it.text, "},\"required_outputs\"");
        REQUIRE(cut != NULL && rest != NULL && cut < rest);
        memmove(cut, rest, strlen(rest) + 1);
        if (has_file == 1)
            repo_table_put(&it.table, "schemas/review_report.v1.json", "{}");
        judge(&it);
        if (it.findings.refusing != (size_t)has_file)
            print(&it);
        CHECK_INT(it.findings.refusing, has_file);
        CHECK(cx_run_findings_have(&it.findings, "K04") == (has_file == 1));
        end(&it);
    }
}

CX_TEST(k05_baselines)
{
    static const char *const refs[] = {"",
                                       " ",
                                       "-x",
                                       "--output=x",
                                       "a..b",
                                       "HEAD@{1}",
                                       "HEAD~10000",
                                       "x^99999",
                                       "nothing",
                                       "a\\nb",
                                       "HEAD~00000000000010000"};
    for (size_t i = 0; i < CX_COUNT_OF(refs); i++) {
        char to[64];
        snprintf(to, sizeof to, "\"baseline_ref\":\"%s\"", refs[i]);
        EXPECT("K05", "/rollback/baseline_ref", {"\"baseline_ref\":\"HEAD\"", to});
    }
    EXPECT(NULL, "", {"\"baseline_ref\":\"HEAD\"", "\"baseline_ref\":\"v1\""});
}

CX_TEST(k05_targets)
{
    static const char *const refs[] = {"", " ", "-x", "nothing", "side", "v1..main"};
    for (size_t i = 0; i < CX_COUNT_OF(refs); i++) {
        char to[96];
        snprintf(to, sizeof to, "\"baseline_ref\":\"HEAD\",\"target_ref\":\"%s\"", refs[i]);
        EXPECT("K05", "/rollback/target_ref", {"\"baseline_ref\":\"HEAD\"", to});
    }
    EXPECT(NULL, "",
           {"\"baseline_ref\":\"HEAD\"", "\"baseline_ref\":\"HEAD\",\"target_ref\":\"main\""});
}

CX_TEST(k06_tools)
{
    EXPECT("K06", "/mcp_tool_set/1", {"\"01-filesystem\"", "\" \""});
    EXPECT("K06", "/mcp_tool_set/1", {"\"01-filesystem\"", "\"codex \""});
    EXPECT("K06", "/mcp_tool_set/1", {"\"01-filesystem\"", "\"\\u00a0codex\""});
    EXPECT("K06", "/mcp_tool_set/1", {"\"01-filesystem\"", "\"Codex\""});
    EXPECT("K06", "/tool_permissions/mcp_tools/0",
           {"\"mcp_tools\":[\"codex\"]", "\"mcp_tools\":[\"\"]"});
    EXPECT("K06", "/tool_permissions/mcp_tools/1",
           {"\"mcp_tools\":[\"codex\"]", "\"mcp_tools\":[\"codex\",\"unheard\"]"});
}

CX_TEST(k06_denied_tools)
{
    judged it;
    start(&it);
    repo_table_put_policies(&it.table);
    repo_table_put(&it.table, "policies/mcp_allowlist.json",
                   "{\"version\":\"v1\",\"allow\":[\"codex\",\"01-filesystem\"],"
                   "\"deny\":[\"01-filesystem\"]}");
    judge(&it);
    CHECK_INT(it.findings.refusing, 1);
    CHECK(cx_run_findings_have(&it.findings, "K06"));
    end(&it);
}

/* A reference in the role_contract; `fault` NULL: it holds. */
static void expect_ref(const char *member, const char *ref, bool holds)
{
    char from[64], to[512], where[64];
    snprintf(from, sizeof from, "\"%s\":null", member);
    snprintf(to, sizeof to, "\"%s\":\"%s\"", member, ref);
    snprintf(where, sizeof where, "/role_contract/%s", member);
    expect(holds ? NULL : "K07", where,
           (const change[]){{",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}}",
                             ",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}@"},
                            {"@", role_contract},
                            {from, to}},
           3);
}

CX_TEST(k07_prompts)
{
    expect_ref("system_prompt_ref", "roles/worker.md", true);
    expect_ref("system_prompt_ref", "", false);
    expect_ref("system_prompt_ref", "/etc/passwd", false);
    expect_ref("system_prompt_ref", "../worker.md", false);
    expect_ref("system_prompt_ref", "roles/./worker.md", false);
    expect_ref("system_prompt_ref", "roles\\\\worker.md", false);
    expect_ref("system_prompt_ref", "c:worker.md", false);
    expect_ref("system_prompt_ref", "roles/none.md", false);
    expect_ref("system_prompt_ref", "link.md", false);
    expect_ref("system_prompt_ref", "roles/worker.md#a", false);
    expect_ref("system_prompt_ref", "policies/agent_registry.json#/agents", false);
}

CX_TEST(k07_selectors)
{
    static const struct {
        const char *ref;
        bool holds;
    } cases[] = {
        {"policies/agent_registry.json", true},
        {"policies/agent_registry.json#/agents/0/agent_id", true},
        {"policies/agent_registry.json#/agents/99", false},
        {"policies/agent_registry.json#/role_contracts/PM/system_prompt_ref", false}, /* null */
        {"policies/agent_registry.json#", false},
        {"policies/agent_registry.json#agents", true},
        {"policies/agent_registry.json#agents.", false},
        {"policies/agent_registry.json#.agents", false},
        {"policies/agent_registry.json#agents.agent_id", false}, /* an array has no members */
        {"policies/agent_registry.json#agents(role=WORKER)", true},
        {"policies/agent_registry.json#agents(role=WORKER).capabilities.mcp_tools", true},
        {"policies/agent_registry.json#agents(role=PM).capabilities", false},
        {"policies/agent_registry.json#agents(role=NOBODY)", false},
        {"policies/agent_registry.json#agents(role=)", false},
        {"policies/agent_registry.json#agents(=WORKER)", false},
        {"policies/agent_registry.json#agents(role=WORKER", false},
        {"policies/agent_registry.json#agents(role=WORKER)x", false},
        {"policies/agent_registry.json#role_contracts(role=PM)", false},
        {"policies/skills_bundle_registry.json#bundles.delivery_v1", true},
        {"policies/skills_bundle_registry.json#bundles.none", false},
        {"policies/mcp_allowlist.json#/allow", false},
        {"policies/mcp_allowlist.json", true},
        {"roles/worker.md", true},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        expect_ref("mcp_bundle_ref", cases[i].ref, cases[i].holds);
        expect_ref("skills_bundle_ref", cases[i].ref, cases[i].holds);
    }
}

CX_TEST(k07_too_long_a_file)
{
    static char text[(256 << 10) + 2];
    judged it;
    memset(text, 'x', sizeof text - 1);
    for (int over = 0; over < 2; over++) {
        start(&it);
        text[(256 << 10) + over] = 0;
        repo_table_put(&it.table, "roles/worker.md", text);
        it.text = replaced(&it.arena, it.text, ",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}}",
                           ",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}@");
        it.text = replaced(&it.arena, it.text, "@", role_contract);
        it.text = replaced(&it.arena, it.text, "\"system_prompt_ref\":null",
                           "\"system_prompt_ref\":\"roles/worker.md\"");
        judge(&it);
        CHECK(cx_run_findings_have(&it.findings, "K07") == (over == 1));
        text[(256 << 10)] = 'x';
        end(&it);
    }
}

/* What the registry refers to and the baseline lacks is null in the run, and said. */
CX_TEST(k07_of_the_registry_informs)
{
    judged it;
    cx_buf out;
    start(&it);
    repo_table_put_policies(&it.table); /* without the registry of skills */
    judge(&it);
    CHECK_INT(it.findings.refusing, 0);
    CHECK_INT(it.findings.list.count, 1);
    CHECK(!it.contract.skills_ref_holds && it.contract.mcp_ref_holds);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_run_contract_resolve(&it.contract, &it.policy, &it.arena, &out, &it.err),
                 &it.err);
    CHECK(strstr(cx_buf_z(&out), "\"skills_bundle_ref\": null") != NULL);
    cx_buf_done(&out);
    end(&it);
}

CX_TEST(k08_drift)
{
    static const struct {
        const char *from, *to, *where;
    } cases[] = {
        {"{\"identity\":{\"role\":\"WORKER\"", "{\"identity\":{\"role\":\"OPS\"", "identity/role"},
        {"\"agent_id\":\"agent-1\"},\"purpose\"", "\"agent_id\":\"agent-2\"},\"purpose\"",
         "identity/agent_id"},
        {"\"model\":\"any\"},\"tool_permissions\":{\"filesystem\":\"workspace-write\"",
         "\"model\":\"any\"},\"tool_permissions\":{\"filesystem\":\"read-only\"",
         "tool_permissions/filesystem"},
        {"\"shell\":\"never\",\"network\":\"deny\"},\"resolved",
         "\"shell\":\"deny\",\"network\":\"deny\"},\"resolved", "tool_permissions/shell"},
        {"\"network\":\"deny\"},\"resolved", "\"network\":\"allow\"},\"resolved",
         "tool_permissions/network"},
        {"set\":[\"codex\",\"01-filesystem\"],\"handoff",
         "set\":[\"01-filesystem\",\"codex\"],"
         "\"handoff",
         "resolved_mcp_tool_set"},
        {"\"runner\":null", "\"runner\":\"codex\"", "runtime_binding/runner"},
        {"\"provider\":null", "\"provider\":\"\"", "runtime_binding/provider"},
        {"\"chain_roles\":[]", "\"chain_roles\":[\"PM\"]", "handoff/chain_roles"},
        {"\"max_handoffs\":null", "\"max_handoffs\":1", "handoff/max_handoffs"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        char where[96];
        snprintf(where, sizeof where, "/role_contract/%s", cases[i].where);
        EXPECT("K08", where,
               {",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}}",
                ",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}@"},
               {"@", role_contract}, {cases[i].from, cases[i].to});
    }
    EXPECT(NULL, "",
           {",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}}",
            ",\"log_refs\":{\"run_id\":\"\",\"paths\":{}}@"},
           {"@", role_contract});
}

#define TESTS "[{\"name\":\"unit\",\"cmd\":\"scripts/test.sh\",\"must_pass\":true}]"

CX_TEST(k10_and_k11_tests)
{
    EXPECT("K10", "/acceptance_tests/0/cmd", {"scripts/test.sh", "refuse"});
    EXPECT("K11", "/acceptance_tests", {"\"must_pass\":true", "\"must_pass\":false"});
    EXPECT("K11", "/acceptance_tests/1/name",
           {TESTS, "[{\"name\":\"t\",\"cmd\":\"a\",\"must_pass\":true},"
                   "{\"name\":\"t\",\"cmd\":\"b\",\"must_pass\":false}]"});
    EXPECT("K11", "/acceptance_tests/0/cmd", {"scripts/test.sh", "trivial"},
           {"\"evidence_links\"", "\"runtime_options\":{\"strict_acceptance\":true},"
                                  "\"evidence_links\""});
    EXPECT(NULL, "", {"scripts/test.sh", "trivial"});
    EXPECT(NULL, "",
           {TESTS, "[{\"name\":\"t\",\"cmd\":\"a\",\"must_pass\":false},"
                   "{\"name\":\"T\",\"cmd\":\"b\",\"must_pass\":true}]"});
}

CX_TEST(k12_chains)
{
    EXPECT("K12", "/handoff_chain",
           {"\"evidence_links\"", "\"handoff_chain\":{\"enabled\":true},\"evidence_links\""});
    EXPECT("K12", "/handoff_chain",
           {"\"evidence_links\"", "\"handoff_chain\":{\"enabled\":true,\"roles\":[\"PM\","
                                  "\"TECH_LEAD\",\"WORKER\"]},\"evidence_links\""}); /* owner */
    EXPECT(NULL, "",
           {"\"evidence_links\"", "\"handoff_chain\":{\"enabled\":false},"
                                  "\"evidence_links\""});
}

CX_TEST(k13_outputs)
{
    EXPECT("K13", "/required_outputs/0/name", {"src/app/a.c", "src/lib/a.c"});
    EXPECT("K13", "/required_outputs/0/name", {"src/app/a.c", "src/app"});
    EXPECT("K13", "/required_outputs/0/name", {"src/app/a.c", "src/app/.env"});
    EXPECT(NULL, "",
           {"\"name\":\"src/app/a.c\",\"type\":\"file\"",
            "\"name\":\"anything *\",\"type\":\"report\""});
}

CX_TEST(k14_task_ids)
{
    char longest[131];
    memset(longest, 'a', sizeof longest);
    static const char *const refused[] = {
        "a/bcdefgh",        "a\\bcdefgh",       ".abcdefgh", "-abcdefgh", "abcd\nefgh",
        "abcd\xC2\x80zzzz", "abcdefge\xCC\x81", "..",        "",          "abc\xFF"};
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++)
        CHECK(!cx_run_task_id_ok(cx_str_z(refused[i])));
    CHECK(cx_run_task_id_ok(cx_str_from(longest, 128)));
    CHECK(!cx_run_task_id_ok(cx_str_from(longest, 129)));
    CHECK(cx_run_task_id_ok(CX_STR("task a.b-c\xC3\xA9")));
    EXPECT("K14", "/task_id", {"task_one", ".task_one"});
}

CX_TEST(k15_artifacts)
{
    static const char *const uris[] = {
        "docs/none.md",   "/docs/notes.md", "docs/../docs/notes.md", "docs",    "https://x.y/z",
        "docs/notes.md/", "docs//notes.md", "file:docs/notes.md",    "link.md", ""};
    for (size_t i = 0; i < CX_COUNT_OF(uris); i++) {
        char to[256];
        snprintf(to, sizeof to,
                 "\"artifacts\":[{\"name\":\"n\",\"uri\":\"%s\",\"sha256\":\"" NOTES_SHA "\"},",
                 uris[i]);
        EXPECT("K15", "/inputs/artifacts/0", {"\"artifacts\":[", to});
    }
    EXPECT("K15", "/inputs/artifacts/0",
           {"\"artifacts\":[",
            "\"artifacts\":[{\"name\":\"n\",\"uri\":\"roles/worker.md\",\"sha256\":"
            "\"" NOTES_SHA "\"},"});
    EXPECT(NULL, "",
           {"\"artifacts\":[",
            "\"artifacts\":[{\"name\":\"n\",\"uri\":\"docs/notes.md\",\"sha256\":"
            "\"" NOTES_SHA "\"},"});
    /* printf 'failed\n' | sha256sum: an artifact of the bundle */
    EXPECT(NULL, "",
           {"\"artifacts\":[", "\"artifacts\":[{\"name\":\"failed_evidence.attempt_0\",\"uri\":"
                               "\"artifacts/log.txt\",\"sha256\":\"" FAILED_SHA "\"},"});
}

/* All lints are judged, none stops another. */
CX_TEST(contract_everything_wrong_at_once)
{
    static const change changes[] = {
        {"task_one", ".task_one"},
        {"\"TECH_LEAD\",\"agent_id\":\"agent-1\"", "\"OPS\",\"agent_id\":\"x\""},
        {"output_schema.worker", "other"},
        {"src/app/a.c", "x.c"},
        {"[\"src/app/\"]", "[\"**\"]"},
        {"scripts/test.sh", "refuse"},
        {"\"must_pass\":true", "\"must_pass\":false"},
        {"\"mcp_tools\":[\"codex\"]", "\"mcp_tools\":[\" \"]"},
        {"HEAD", "nothing"},
        {"\"evidence_links\"", "\"handoff_chain\":{\"enabled\":true},\"evidence_links\""}};
    static const char *const rules[] = {"K02", "K03", "K04", "K05", "K06",
                                        "K10", "K11", "K12", "K13", "K14"};
    judged it;
    start(&it);
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        it.text = replaced(&it.arena, it.text, changes[i].from, changes[i].to);
        REQUIRE(it.text != NULL);
    }
    judge(&it);
    for (size_t i = 0; i < CX_COUNT_OF(rules); i++)
        CHECK(cx_run_findings_have(&it.findings, rules[i]));
    end(&it);
}

CX_TEST(contract_with_policies_that_cannot_be_read)
{
    judged it;
    start(&it);
    repo_table_put(&it.table, "policies/packs/low.json", "{}");
    judge(&it);
    CHECK_STATUS(it.status, &it.err);
    CHECK(cx_run_findings_have(&it.findings, "POLICY"));
    end(&it);
}

CX_TEST(contract_resolved_holds_and_resolves_to_itself)
{
    judged it, again;
    cx_buf once, twice;
    start(&it);
    judge(&it);
    cx_buf_init(&once, cx_alloc_default());
    cx_buf_init(&twice, cx_alloc_default());
    CHECK_STATUS(cx_run_contract_resolve(&it.contract, &it.policy, &it.arena, &once, &it.err),
                 &it.err);
    start(&again);
    repo_table_put(&again.table, "x", "x");
    again.text = replaced(&again.arena, cx_buf_z(&once), TABLE_COMMIT, "main");
    REQUIRE(again.text != NULL);
    judge(&again);
    print(&again);
    CHECK_INT(again.findings.refusing, 0);
    CHECK(again.contract.role_contract != NULL);
    CHECK_STATUS(
        cx_run_contract_resolve(&again.contract, &again.policy, &again.arena, &twice, &again.err),
        &again.err);
    CHECK(cx_str_eq(cx_buf_str(&once), cx_buf_str(&twice)));
    CHECK(strncmp(cx_buf_z(&once), "{\n  \"task_id\"", 13) == 0);
    cx_buf_done(&once);
    cx_buf_done(&twice);
    end(&again);
    end(&it);
}

CX_TEST(contract_summary_is_a_view)
{
    judged it;
    cx_json summary;
    start(&it);
    judge(&it);
    CHECK_STATUS(cx_run_role_summary(&it.contract, &it.policy, &it.arena, &summary, &it.err),
                 &it.err);
    CHECK_STR(CX_JSON_GET_STR(&summary, "source"), "registry");
    CHECK_STR(CX_JSON_GET_STR(&summary, "execution_authority"), "task_contract");
    end(&it);
}

CX_TEST(contract_memory_that_runs_out)
{
    for (size_t limit = 2000; limit < 400000; limit += 9000) {
        judged it;
        start(&it);
        it.arena.limit_bytes = it.arena.total_bytes + limit;
        judge(&it);
        /* Never an answer that says the contract holds when part of it was not judged. */
        CHECK(cx_failed(it.status) ? it.status.code == CX_E_NOMEM : !it.findings.failed);
        end(&it);
    }
}
