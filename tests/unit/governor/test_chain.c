/*
 * test_chain.c - chains as they are read: each finding, and the order that names make.
 */
#include "governor/chain.h"

#include <stdio.h>

#include "os/folder.h"
#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct reading {
    cx_arena arena;
    cx_run_findings findings;
    cx_run_chain chain;
    cx_status status;
    cx_err err;
} reading;

static void read_chain(reading *r, const char *folder, const char *text)
{
    memset(r, 0, sizeof *r);
    cx_arena_init(&r->arena, cx_alloc_default(), 0);
    cx_run_findings_init(&r->findings, &r->arena);
    r->status =
        cx_run_chain_read(cx_str_z(text), folder, &r->arena, &r->findings, &r->chain, &r->err);
    CHECK(!cx_failed(r->status));
}

static void read_done(reading *r)
{
    cx_run_findings_done(&r->findings);
    cx_arena_done(&r->arena);
}

/* The chain is refused for this reason and no other. */
static void refused(const char *text, const char *rule)
{
    reading r;
    read_chain(&r, "/", text);
    CHECK(r.findings.refusing != 0);
    for (size_t i = 0; i < r.findings.list.count; i++)
        if (strcmp(r.findings.list.items[i].rule, rule) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s: found %s: %.*s", rule,
                         r.findings.list.items[i].rule, (int)r.findings.list.items[i].message.size,
                         r.findings.list.items[i].message.data);
    read_done(&r);
}

CX_TEST(chain_refusals)
{
    refused("{", "CH01");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[]}", "CH01");
    refused("{\"version\":\"v2\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":{}}]}",
            "CH01");
    refused(
        "{\"version\":\"v1\",\"chain_id\":\"../c\",\"steps\":[{\"name\":\"a\",\"contract\":{}}]}",
        "CH01");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":{}},"
            "{\"name\":\"a\",\"contract\":{}}]}",
            "CH02");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":{},"
            "\"depends_on\":[\"b\"]}]}",
            "CH03");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":{},"
            "\"depends_on\":[\"a\"]}]}",
            "CH04");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":{},"
            "\"depends_on\":[\"b\"]},{\"name\":\"b\",\"contract\":{},\"depends_on\":[\"a\"]},"
            "{\"name\":\"free\",\"contract\":{}}]}",
            "CH04");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":"
            "\"/no-such-contract\"}]}",
            "CH05");
    refused("{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[{\"name\":\"a\",\"contract\":"
            "\"../etc/passwd\"}]}",
            "CH05");
}

CX_TEST(chain_too_long)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":[");
    for (int i = 0; i <= CX_RUN_CHAIN_STEPS_MAX; i++)
        cx_buf_printf(&text, "%s{\"name\":\"s%d\",\"contract\":{}}", i == 0 ? "" : ",", i);
    cx_buf_add_z(&text, "]}");
    refused(cx_buf_z(&text), "CH06");
    cx_buf_done(&text);
}

CX_TEST(chain_names_become_places)
{
    reading r;
    read_chain(&r, "/",
               "{\"version\":\"v1\",\"chain_id\":\"release-7\",\"steps\":["
               "{\"name\":\"last\",\"contract\":{\"task_id\":\"z\"},\"depends_on\":[\"a\",\"b\"]},"
               "{\"name\":\"a\",\"contract\":{}},{\"name\":\"b\",\"contract\":{}}]}");
    REQUIRE(r.findings.refusing == 0 && r.chain.step_count == 3);
    CHECK(cx_str_is(r.chain.chain_id, "release-7"));
    REQUIRE(r.chain.steps[0].after_count == 2);
    CHECK(r.chain.steps[0].after[0] == 1 && r.chain.steps[0].after[1] == 2);
    CHECK(cx_str_is(cx_bytes_str(r.chain.steps[0].contract), "{\n  \"task_id\": \"z\"\n}\n"));
    read_done(&r);
}

CX_TEST(chain_takes_contracts_from_files_next_to_it)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 16];
    reading r;
    cx_err err;
    folder_fresh(folder, "chain");
    CHECK_STATUS(cx_path_make_folders(folder, &err), &err);
    (void)snprintf(path, sizeof path, "%s/one.json", folder);
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_bytes_from("{\"x\": 1}", 8), &err),
                 &err);
    read_chain(&r, folder,
               "{\"version\":\"v1\",\"chain_id\":\"c\",\"steps\":["
               "{\"name\":\"a\",\"contract\":\"one.json\"}]}");
    REQUIRE(r.findings.refusing == 0 && r.chain.step_count == 1);
    /* As they are: their hash is the contract's. */
    CHECK(cx_str_is(cx_bytes_str(r.chain.steps[0].contract), "{\"x\": 1}"));
    read_done(&r);
    folder_remove(folder);
}
