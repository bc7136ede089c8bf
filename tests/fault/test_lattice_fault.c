/*
 * test_lattice_fault.c - lattices without memory and on failing disks: the n-th allocation or call
 * fails, once and from then on, for every n until nothing fires.  Each time the answer is "out of
 * memory" (or U_IO), or the very answer of an undisturbed run; nothing leaks, nothing crashes.
 */
#include "lattice/lattice.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/fault.h"
#include "tests/support/lattice_text.h"
#include "tests/test.h"

typedef struct job {
    const cx_io *io;
    const cx_alloc *alloc;
    const char *path; /* NULL: over text */
    cx_str text;
    unsigned threads;
} job;

static cx_status ask_states(const cx_lattice *lattice, cx_buf *out, cx_err *err)
{
    static const cx_answer_options json = {.json = true, .allow_absent = true};
    cx_state_options options = CX_STATE_OPTIONS_INIT;
    cx_states *states = NULL;
    cx_status status = cx_states_open(lattice, &options, &states, err);
    if (status.code == CX_E_FORMAT) { /* a cycle: that is an answer */
        cx_buf_add_z(out, "cyclic\n");
        return CX_SUCCESS;
    }
    CX_TRY(status);
    cx_str first = cx_lattice_agent_name(lattice, 0);
    cx_str last = cx_lattice_agent_name(lattice, cx_lattice_agent_count(lattice) - 1);
    for (cx_node n = 0; n < cx_lattice_count(lattice); n++) {
        cx_lattice_node_info info;
        cx_lattice_node(lattice, n, &info);
        if (!info.in_graph)
            continue;
        CX_TRY_GOTO(status, cx_lattice_answer_state(out, states, n, false, &json, err));
        CX_TRY_GOTO(status, cx_lattice_answer_why(out, states, n, CX_STR("k"), (cx_str){"", 0},
                                                  &json, err));
        CX_TRY_GOTO(status, cx_lattice_answer_show(out, lattice, n, &json, err));
        if (n > 12)
            break;
    }
    status = cx_lattice_answer_compare(out, states, first, last, &json, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
done:
    cx_states_close(states);
    return status;
}

static cx_status ask_pictures(const cx_lattice *lattice, const cx_lattice_report *report,
                              cx_buf *out, cx_err *err)
{
    static const cx_answer_options json = {.json = true};
    CX_TRY(cx_lattice_answer_heatmap(out, lattice, &json, err));
    CX_TRY(cx_lattice_answer_heads(out, lattice, &json, err));
    for (int form = CX_RENDER_TERMINAL; form <= CX_RENDER_JSON; form++) {
        cx_render_options options = {
            .form = (cx_render_form)form, .max_nodes = 20, .report = report};
        CX_TRY(cx_lattice_render(out, lattice, &options, err));
    }
    return CX_SUCCESS;
}

/* Everything one can ask of a lattice, into out. */
static cx_status ask_all(const job *j, cx_buf *out, cx_err *err)
{
    cx_lattice *lattice = NULL;
    cx_lattice_report *report = NULL;
    cx_arena arena;
    cx_lattice_anchor anchor = {0};
    cx_lattice_checks checks = {true, true, true, true, &anchor};
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.alloc = j->alloc;
    options.threads = j->threads;
    options.keep_deltas = options.keep_seals = true;
    cx_arena_init(&arena, j->alloc, 0);
    cx_status status;
    if (j->path != NULL)
        CX_TRY_GOTO(status, cx_lattice_open_io(j->io, j->path, &options, &lattice, err));
    else
        CX_TRY_GOTO(status, cx_lattice_open_bytes(cx_str_bytes(j->text), &options, &lattice, err));
    size_t start = out->size;
    CX_TRY_GOTO(status, cx_lattice_anchor_json(out, lattice, err));
    cx_str kept = {(const char *)out->data + start, out->size - start};
    kept = cx_arena_copy_str(&arena, kept);
    if (kept.data == NULL)
        CX_TRY_GOTO(status, cx_fail_nomem(err));
    CX_TRY_GOTO(status, cx_lattice_anchor_parse(kept, &arena, &anchor, err));
    CX_TRY_GOTO(status, cx_lattice_verify(lattice, &checks, &report, err));
    CX_TRY_GOTO(status, cx_lattice_report_json(out, lattice, report, err));
    cx_lattice_text_options text = {.details = true};
    CX_TRY_GOTO(status, cx_lattice_report_text(out, lattice, report, &text, err));
    CX_TRY_GOTO(status, ask_pictures(lattice, report, out, err));
    status = ask_states(lattice, out, err);
done:
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    cx_arena_done(&arena);
    return status;
}

typedef struct answer {
    cx_status status;
    cx_err err;
    cx_buf text;
} answer;

static answer ask(const job *j, const cx_alloc *for_text)
{
    answer a = {.err = {.tag = NULL}};
    cx_buf_init(&a.text, for_text);
    a.status = ask_all(j, &a.text, &a.err);
    return a;
}

static bool same_answer(const answer *a, const answer *b)
{
    if (a->status.code != b->status.code)
        return false;
    if (cx_failed(a->status))
        return (a->err.tag == NULL) == (b->err.tag == NULL) &&
               (a->err.tag == NULL || strcmp(a->err.tag, b->err.tag) == 0) &&
               a->err.offset == b->err.offset && a->err.line == b->err.line;
    return cx_str_eq(cx_buf_str(&a->text), cx_buf_str(&b->text));
}

static void starve(const char *what, const job *plain, bool onwards, uint64_t step)
{
    job undisturbed = *plain;
    undisturbed.alloc = cx_alloc_default();
    answer expected = ask(&undisturbed, cx_alloc_default());
    for (uint64_t at = 1;; at += step) {
        fault_alloc memory;
        fault_alloc_init(&memory, at, onwards);
        job j = *plain;
        j.alloc = &memory.alloc;
        answer got = ask(&j, &memory.alloc);
        bool same = same_answer(&got, &expected);
        bool good = got.status.code == CX_E_NOMEM || same;
        if (!good)
            cx_test_fail(__FILE__, __LINE__, "%s, allocation %llu%s: code %d (%s)", what,
                         (unsigned long long)at, onwards ? "+" : "", got.status.code,
                         got.err.message);
        if (got.status.code == CX_E_NOMEM && got.err.code != CX_E_NOMEM)
            cx_test_fail(__FILE__, __LINE__, "%s, allocation %llu: err does not say so", what,
                         (unsigned long long)at);
        cx_buf_done(&got.text);
        if (memory.live_bytes != 0 || memory.wrong_size)
            cx_test_fail(__FILE__, __LINE__, "%s, allocation %llu%s: %lld bytes leaked%s", what,
                         (unsigned long long)at, onwards ? "+" : "", (long long)memory.live_bytes,
                         memory.wrong_size ? ", a wrong size" : "");
        if (memory.fired == 0) {
            if (!same)
                cx_test_fail(__FILE__, __LINE__, "%s: the answer depends on the allocator", what);
            break;
        }
        if (!good)
            break;
    }
    cx_buf_done(&expected.text);
}

static const char odd[] =
    "{\"schema_version\":\"v2.0\"}\n"
    "{\"node_id\":\"a\",\"agent_id\":\"x\",\"seq\":0,\"timestamp\":1e200,\"event\":{\"__seal\":1},"
    "\"state_delta\":{\"memory\":{\"k\":{\"x\":1}}},\"prev_hash\":\"odd\",\"hash\":\"odd\","
    "\"parents\":[\"c\"]}\n"
    "{\"node_id\":\"b\",\"agent_id\":\"x\",\"seq\":1,"
    "\"timestamp\":123456789012345678901234567890,\"event\":{\"merge_strategy\":\"manual\"},"
    "\"state_delta\":{},\"prev_hash\":\"odd\",\"hash\":\"odd2\",\"parents\":[\"a\",\"odd\",\"?\"],"
    "\"fork_type\":\"odd\"}\n"
    "{\"node_id\":\"c\",\"agent_id\":\"y,\",\"seq\":-1,\"timestamp\":5,\"event\":{\"t\":"
    "\"\\ud800\"},"
    "\"state_delta\":{},\"prev_hash\":\"GENESIS\",\"hash\":\"odd\",\"parents\":[\"b\",\"\"]}\n"
    "{\"node_id\":\"c\",\"agent_id\":\"y,\",\"seq\":0,\"timestamp\":5,\"event\":{},"
    "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"odd\"}\n"
    "{\"node_id\":\"d\",\"agent_id\":\"y,\",\"seq\":0,\"timestamp\":1.5,\"event\":{},"
    "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"odd\",\"schema_version\":\"1.1\"}\n"
    "{\"node_id\":7}\n{\"seq\":1}\n";

static void legacy(cx_buf *out)
{
    char hash[65] = ZEROS;
    for (int i = 0; i < 3; i++) {
        char id[8], prev[65];
        memcpy(prev, hash, sizeof prev);
        (void)snprintf(id, sizeof id, "s%d", i);
        lattice_text_node(out,
                          &(node_spec){.id = id,
                                       .seq = i,
                                       .prev = prev,
                                       .version = "1.1",
                                       .delta = "{\"memory\":{\"k\":[1,{\"deep\":{\"er\":[]}}]}}",
                                       .no_parents = true},
                          hash);
        cx_buf_add_byte(out, '\n');
    }
}

typedef struct sample {
    const char *name;
    cx_buf text;
} sample;

enum { SAMPLES = 7 };

static void make_samples(sample samples[SAMPLES])
{
    static const char *const names[SAMPLES] = {"sealed",  "array",  "wrapped", "version behind",
                                               "strange", "legacy", "no json"};
    cx_buf lines;
    cx_buf_init(&lines, cx_alloc_default());
    lattice_text_sealed(&lines, 6);
    for (int i = 0; i < SAMPLES; i++) {
        samples[i].name = names[i];
        cx_buf_init(&samples[i].text, cx_alloc_default());
    }
    cx_buf_add_str(&samples[0].text, cx_buf_str(&lines));
    lattice_text_array(&samples[1].text, cx_buf_str(&lines));
    lattice_text_wrapped(&samples[2].text, cx_buf_str(&lines), NULL, false);
    lattice_text_wrapped(&samples[3].text, cx_str_z(strchr(odd, '\n') + 1), "1.1", false);
    cx_buf_add_z(&samples[4].text, odd);
    legacy(&samples[5].text);
    cx_buf_add_str(&samples[6].text, cx_buf_str(&lines));
    cx_buf_add_z(&samples[6].text, "{\"a\":[1,2\n");
    cx_buf_done(&lines);
}

CX_TEST(fault_every_allocation_of_small_lattices)
{
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        job j = {.io = cx_io_system(), .text = cx_buf_str(&samples[i].text), .threads = 1};
        starve(samples[i].name, &j, false, 1);
        starve(samples[i].name, &j, true, 1);
        cx_buf_done(&samples[i].text);
    }
}

static const char *const vectors[] = {"graph/crisscross.jsonl",
                                      "graph/lww_head_vs_write.jsonl",
                                      "graph/spec_merge.jsonl",
                                      "traces/behind_cycle.jsonl",
                                      "traces/cycle.jsonl",
                                      "traces/duplicate_node_other_id.jsonl",
                                      "traces/parent_by_hash.jsonl",
                                      "traces/schema_duplicate_parent.jsonl",
                                      "traces/self_fork_typed.jsonl",
                                      "traces/surrogate_in_event.jsonl",
                                      "traces/time_ns_int_regressed.jsonl",
                                      "traces/valid_object.json",
                                      "unreadable/int_4301.jsonl",
                                      "unreadable/dup_key.jsonl"};

CX_TEST(fault_every_allocation_of_the_vectors)
{
    unsigned tried = 0;
    for (size_t i = 0; i < CX_COUNT_OF(vectors); i++) {
        char name[128];
        cx_buf text;
        cx_err err;
        (void)snprintf(name, sizeof name, "vectors/lattice/%s", vectors[i]);
        cx_buf_init(&text, cx_alloc_default());
        if (!cx_failed(
                cx_io_read_file(cx_io_system(), cx_test_path(name), SIZE_MAX, &text, &err))) {
            job j = {.io = cx_io_system(), .text = cx_buf_str(&text), .threads = 1};
            starve(vectors[i], &j, false, 1);
            starve(vectors[i], &j, true, 3);
            tried++;
        }
        cx_buf_done(&text);
    }
    if (tried == 0)
        cx_test_skip("tests/vectors/lattice is not there");
}

/* --- files ------------------------------------------------------------------------------------ */

static void break_files(const char *what, const char *path, bool as_pipe, unsigned threads)
{
    static const unsigned kinds[] = {FAULT_OPEN, FAULT_SIZE,   FAULT_PREAD,
                                     FAULT_READ, FAULT_RANDOM, FAULT_ANY};
    job plain = {
        .io = cx_io_system(), .alloc = cx_alloc_default(), .path = path, .threads = threads};
    answer expected = ask(&plain, cx_alloc_default());
    for (size_t k = 0; k < CX_COUNT_OF(kinds); k++) {
        for (int onwards = 0; onwards < 2; onwards++) {
            for (uint64_t at = 1;; at += cx_test_step(3)) {
                fault_io files;
                fault_alloc memory;
                fault_alloc_init(&memory, FAULT_NEVER, false);
                fault_io_init(&files, cx_io_system(), kinds[k], at, onwards != 0);
                files.no_size = as_pipe;
                job j = plain;
                j.io = &files.io;
                j.alloc = &memory.alloc;
                answer got = ask(&j, &memory.alloc);
                bool io_error = got.status.code == CX_E_IO && got.err.os_errno == EIO &&
                                got.err.tag != NULL && strcmp(got.err.tag, "U_IO") == 0;
                if (!io_error && !same_answer(&got, &expected))
                    cx_test_fail(__FILE__, __LINE__, "%s, call kind %u number %llu: code %d (%s)",
                                 what, kinds[k], (unsigned long long)at, got.status.code,
                                 got.err.message);
                cx_buf_done(&got.text);
                CHECK_INT(files.open_files, 0);
                CHECK_INT(memory.live_bytes, 0);
                if (files.fired == 0 || at > 400)
                    break;
            }
        }
    }
    cx_buf_done(&expected.text);
}

CX_TEST(fault_every_call_to_the_system)
{
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        const char *path = lattice_text_file("fault", cx_buf_str(&samples[i].text));
        break_files(samples[i].name, path, false, 1);
        break_files(samples[i].name, path, true, 1);
        (void)unlink(path);
        cx_buf_done(&samples[i].text);
    }
}

CX_TEST(fault_short_and_interrupted_reads_change_nothing)
{
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        const char *path = lattice_text_file("short", cx_buf_str(&samples[i].text));
        job j = {.io = cx_io_system(), .alloc = cx_alloc_default(), .path = path, .threads = 1};
        answer expected = ask(&j, cx_alloc_default());
        for (int as_pipe = 0; as_pipe < 2; as_pipe++) {
            fault_io files;
            fault_io_init(&files, cx_io_system(), 0, FAULT_NEVER, false);
            files.no_size = as_pipe != 0;
            files.at_most = 7;
            files.eintr = 5;
            files.close_fails = true;
            j.io = &files.io;
            answer got = ask(&j, cx_alloc_default());
            CHECK(same_answer(&got, &expected));
            cx_buf_done(&got.text);
        }
        cx_buf_done(&expected.text);
        (void)unlink(path);
        cx_buf_done(&samples[i].text);
    }
}

/* Large enough for several readers: blocks of 1 MiB. */
static void large_lattice(cx_buf *out)
{
    char hash[65] = ZEROS, prev[65], event[2100], pad[2000];
    memset(pad, 'p', sizeof pad - 1);
    pad[sizeof pad - 1] = 0;
    (void)snprintf(event, sizeof event, "{\"pad\":\"%s\"}", pad);
    for (int i = 0; out->size < (size_t)7 << 19; i++) {
        memcpy(prev, hash, sizeof prev);
        node_spec spec = {.seq = i, .event = event, .prev = prev, .parents = {prev}};
        spec.parent_count = i > 0;
        lattice_text_node(out, &spec, hash);
        cx_buf_add_byte(out, '\n');
    }
}

CX_TEST(fault_several_readers_stop_together)
{
    cx_buf text;
    cx_err err;
    cx_buf_init(&text, cx_alloc_default());
    large_lattice(&text);
    char path[600];
    (void)snprintf(path, sizeof path, "%s", lattice_text_file("large", cx_buf_str(&text)));
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.threads = 4;
    for (int kind = 0; kind < 2; kind++) {
        for (uint64_t at = 1;; at += at < 40 ? 1 : 7) {
            fault_alloc memory;
            fault_io files;
            fault_alloc_init(&memory, kind == 0 ? at : FAULT_NEVER, at % 2 == 0);
            fault_io_init(&files, cx_io_system(), FAULT_PREAD, kind == 1 ? at : FAULT_NEVER,
                          at % 2 == 0);
            options.alloc = &memory.alloc;
            cx_lattice *lattice = NULL;
            cx_status status = cx_lattice_open_io(&files.io, path, &options, &lattice, &err);
            CHECK_INT(status.code, !cx_failed(status) ? CX_OK : kind == 0 ? CX_E_NOMEM : CX_E_IO);
            cx_lattice_close(lattice);
            CHECK_INT(memory.live_bytes, 0);
            CHECK_INT(files.open_files, 0);
            if (memory.fired + files.fired == 0)
                break;
            CHECK(kind == 0 || cx_failed(status)); /* a lost block is never passed over */
        }
    }
    (void)unlink(path);
    cx_buf_done(&text);
}
