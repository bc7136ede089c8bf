/*
 * policies/cortex.json: what is read, and that nothing doubtful is.
 */
#include "contract/config.h"
#include "tests/test.h"

/* NULL when it is read; else the message. */
static const char *fault(const char *text, cx_run_config *out)
{
    static char message[CX_ERR_MESSAGE_SIZE];
    static cx_arena arena;
    static bool started;
    cx_run_config config;
    cx_err err = {0};
    if (started)
        cx_arena_done(&arena);
    started = true;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status =
        cx_run_config_read(cx_str_z(text), &arena, out == NULL ? &config : out, &err);
    snprintf(message, sizeof message, "%s", err.message);
    if (out == NULL) {
        cx_arena_done(&arena);
        started = false;
    }
    return cx_failed(status) ? message : NULL;
}

CX_TEST(config_without_a_file)
{
    cx_run_config config;
    cx_run_config_default(&config);
    CHECK(config.mcp_only);
    CHECK_STR(config.main_branch, "main");
    CHECK_INT(config.trusted_dirs.count, 3);
    CHECK_INT(config.limits.changed_paths, 10000);
    const cx_run_runner_config *runner = cx_run_config_runner(&config, config.default_runner);
    REQUIRE(runner != NULL);
    CHECK(runner->kind == CX_RUNNER_MCP);
    CHECK_STR(runner->argv.items[0], "codex");
    CHECK(cx_run_config_integration(&config, CX_STR("mcp")) == NULL);
}

CX_TEST(config_every_member)
{
    cx_run_config config;
    const char *wrong =
        fault("{\"version\":\"v1\",\"runner\":{\"mcp_only\":false,\"default\":\"app-server\"},"
              "\"runners\":{\"app_server\":{\"kind\":\"exec\",\"argv\":[\"agent\",\"{cwd}\"],"
              "\"env\":[\"API_KEY\"],\"model\":\"m\",\"network\":true,\"provides\":[\"codex\"],"
              "\"config\":{\"a\":1},\"connect_sec\":5,\"close_sec\":2}},"
              "\"roles\":{\"PM\":\"app_server\"},"
              "\"integrations\":{\"app_server\":{\"argv\":[\"agent\"],\"version\":\"1.0\"}},"
              "\"trusted_dirs\":[\"/opt/bin\"],\"trusted_uid\":1000,\"env\":[\"LC_TIME\"],"
              "\"read_only\":[\"/opt/"
              "tool\"],\"main_branch\":\"trunk\",\"mcp\":{\"concurrency\":\"multi\"},"
              "\"approvers\":{\"path\":\"ops/approvers.json\",\"sha256\":"
              "\"0000000000000000000000000000000000000000000000000000000000000000\"},"
              "\"limits\":{\"changed_paths\":5,\"command_sec\":10,\"lock_ttl_sec\":0}}",
              &config);
    CHECK_STR(cx_str_z(wrong == NULL ? "" : wrong), "");
    REQUIRE(wrong == NULL);
    const cx_run_runner_config *runner = cx_run_config_runner(&config, CX_STR("app_server"));
    REQUIRE(runner != NULL && runner == cx_run_config_runner(&config, CX_STR("app-server")));
    CHECK(runner->kind == CX_RUNNER_EXEC && runner->needs_network && runner->sent != NULL);
    CHECK_INT(runner->connect_sec, 5);
    CHECK_STR(runner->env.items[0], "API_KEY");
    CHECK(!config.mcp_only);
    CHECK_STR(config.role_runners[CX_ROLE_PM], "app_server");
    CHECK_INT(config.role_runners[CX_ROLE_WORKER].size, 0);
    CHECK_STR(cx_run_config_integration(&config, CX_STR("app_server"))->version, "1.0");
    CHECK(config.has_trusted_uid && config.trusted_uid == 1000);
    CHECK_STR(config.main_branch, "trunk");
    CHECK_STR(config.mcp_concurrency, "multi");
    CHECK_STR(config.approvers_path, "ops/approvers.json");
    CHECK_INT(config.limits.changed_paths, 5);
    CHECK_INT(config.limits.lock_ttl_sec, 0);
    CHECK_INT(config.limits.open_files, 1024);
}

/* config.h I1, I2 */
CX_TEST(config_refuses_what_is_doubtful)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{}", "version"},
        {"[]", "object"},
        {"{\"version\":\"v2\"}", "version"},
        {"{\"version\":\"v1\",\"version\":\"v1\"}", "version"},
        {"{\"version\":\"v1\",\"trusted_dir\":[]}", "trusted_dir"},
        {"{\"version\":\"v1\",\"runner\":{\"mcponly\":true}}", "mcponly"},
        {"{\"version\":\"v1\",\"runner\":{\"mcp_only\":\"yes\"}}", "mcp_only"},
        {"{\"version\":\"v1\",\"runner\":{\"default\":\"other\"}}", "runner.default"},
        {"{\"version\":\"v1\",\"runners\":{}}", "runner.default"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"mcp\"}}}", "argv"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"sh\",\"argv\":[\"a\"]}}}", "kind"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"mcp\",\"argv\":[]}}}", "argv"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"mcp\",\"argv\":[\"a\",1]}}}",
         "argv"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"mcp\",\"argv\":[\"a\\u0000b\"]}}}",
         "argv"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"mcp\",\"argv\":[\"a\"],"
         "\"env\":[\"A=B\"]}}}",
         "env"},
        {"{\"version\":\"v1\",\"runners\":{\"mcp\":{\"kind\":\"mcp\",\"argv\":[\"a\"],"
         "\"config\":[]}}}",
         "config"},
        {"{\"version\":\"v1\",\"roles\":{\"BOSS\":\"mcp\"}}", "roles"},
        {"{\"version\":\"v1\",\"roles\":{\"PM\":\"other\"}}", "roles"},
        {"{\"version\":\"v1\",\"integrations\":{\"x\":{\"argv\":[\"x\"]}}}", "pinned"},
        {"{\"version\":\"v1\",\"integrations\":{\"x\":{\"argv\":[\"x\"],\"sha256\":\"00\"}}}",
         "sha256"},
        {"{\"version\":\"v1\",\"trusted_dirs\":[\"bin\"]}", "trusted_dirs"},
        {"{\"version\":\"v1\",\"trusted_dirs\":[\"/usr/../bin\"]}", "trusted_dirs"},
        {"{\"version\":\"v1\",\"trusted_dirs\":[\"/usr/bin/\"]}", "trusted_dirs"},
        {"{\"version\":\"v1\",\"trusted_dirs\":[\"/\"]}", "trusted_dirs"},
        {"{\"version\":\"v1\",\"trusted_uid\":-1}", "trusted_uid"},
        {"{\"version\":\"v1\",\"env\":[\"1A\"]}", "env"},
        {"{\"version\":\"v1\",\"read_only\":[\"relative\"]}", "read_only"},
        {"{\"version\":\"v1\",\"approvers\":{\"path\":\"/etc/a.json\"}}", "approvers.path"},
        {"{\"version\":\"v1\",\"approvers\":{\"path\":\"../a.json\"}}", "approvers.path"},
        {"{\"version\":\"v1\",\"approvers\":{\"sha256\":\"AA\"}}", "approvers.sha256"},
        {"{\"version\":\"v1\",\"main_branch\":\"-x\"}", "main_branch"},
        {"{\"version\":\"v1\",\"main_branch\":\"a b\"}", "main_branch"},
        {"{\"version\":\"v1\",\"main_branch\":\"refs/heads/main\"}", "main_branch"},
        {"{\"version\":\"v1\",\"main_branch\":\"\"}", "main_branch"},
        {"{\"version\":\"v1\",\"mcp\":{\"concurrency\":1}}", "concurrency"},
        {"{\"version\":\"v1\",\"limits\":{\"changed_paths\":0}}", "changed_paths"},
        {"{\"version\":\"v1\",\"limits\":{\"changed_paths\":1.5}}", "changed_paths"},
        {"{\"version\":\"v1\",\"limits\":{\"command_sec\":3601}}", "command_sec"},
        {"{\"version\":\"v1\",\"limits\":{\"open_files\":99999999999999999999}}", "open_files"},
        {"{\"version\":\"v1\",\"limits\":{\"files\":1}}", "files"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const char *message = fault(cases[i].text, NULL);
        bool good = message != NULL && strstr(message, cases[i].says) != NULL;
        if (!good)
            printf("  %s: %s\n", cases[i].text, message == NULL ? "(read)" : message);
        CHECK(good);
    }
}

CX_TEST(config_memory_without_a_limit)
{
    cx_run_config config;
    CHECK(fault("{\"version\":\"v1\",\"limits\":{\"memory_bytes\":null}}", &config) == NULL);
    CHECK(config.limits.memory_bytes == UINT64_MAX);
    CHECK(fault("{\"version\":\"v1\",\"limits\":{\"memory_bytes\":1}}", &config) != NULL);
    CHECK(fault("{\"version\":\"v1\",\"limits\":{\"file_bytes\":null}}", &config) != NULL);
    CHECK(fault("{\"version\":\"v1\",\"limits\":7}", &config) != NULL);
}
