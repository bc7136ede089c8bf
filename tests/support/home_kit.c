/*
 * home_kit.c - homes for fault tests: making, filling, looking from outside.
 */
#include "tests/support/home_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/hex.h"
#include "db/db.h"
#include "tests/test.h"

/* --- clocks and ids --------------------------------------------------------------------------- */

enum { TICK_NS = 1500000000 };

static int64_t source_now(void *arg)
{
    kit_source *source = arg;
    return atomic_fetch_add(&source->clock, TICK_NS) + TICK_NS;
}

static cx_status source_id(void *arg, cx_id *out, cx_err *err)
{
    kit_source *source = arg;
    uint64_t number = atomic_fetch_add(&source->ids, 1) + 1;
    uint64_t spread = number * UINT64_C(0x9e3779b97f4a7c15);
    (void)err;
    for (unsigned i = 0; i < 8; i++) {
        out->bytes[i] = (uint8_t)(spread >> (8 * i));
        out->bytes[8 + i] = (uint8_t)(number >> (8 * (7 - i)));
    }
    out->bytes[0] &= 0x7f;
    return CX_SUCCESS;
}

void kit_source_init(kit_source *source, uint64_t number)
{
    atomic_init(&source->clock, INT64_C(1700000000000000000));
    atomic_init(&source->ids, number << 32);
}

cx_memory_options kit_memory_options(kit_source *source)
{
    return (cx_memory_options){
        .now_ns = source_now, .now_arg = source, .new_id = source_id, .new_id_arg = source};
}

/* --- making and opening ----------------------------------------------------------------------- */

cx_home_options kit_options(void)
{
    return (cx_home_options){
        .segment_bytes = UINT64_C(65536), .derivers = &cx_memory_deriver, .deriver_count = 1};
}

bool kit_open(kit *k)
{
    const cx_home_options options = kit_options();
    const cx_memory_options memory = kit_memory_options(&k->source);
    cx_status status = cx_home_open(k->path, &options, &k->home, &k->err);
    if (!cx_failed(status))
        status = cx_memory_open(k->home, KIT_ACTOR, &memory, &k->memory, &k->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "opening the home: %s", k->err.message);
    return !cx_failed(status);
}

void kit_close(kit *k)
{
    cx_memory_close(k->memory);
    k->memory = NULL;
    CHECK_STATUS(cx_home_close(k->home, &k->err), &k->err);
    k->home = NULL;
}

bool kit_init(kit *k, const char *name, cx_scheme scheme)
{
    const cx_home_options options = kit_options();
    memset(k, 0, sizeof *k);
    cx_arena_init(&k->arena, cx_alloc_default(), 0);
    kit_source_init(&k->source, 1);
    folder_fresh(k->path, name);
    cx_status status = cx_home_create(k->path, scheme, &options, &k->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "making a home: %s", k->err.message);
    return !cx_failed(status) && kit_open(k);
}

void kit_done(kit *k)
{
    cx_memory_close(k->memory);
    cx_status ignored = cx_home_close(k->home, NULL);
    (void)ignored;
    folder_remove(k->path);
    cx_arena_done(&k->arena);
}

/* --- short calls ------------------------------------------------------------------------------ */

void kit_fact_data(const char *statement, cx_buf *out)
{
    cx_data data = {.type = CX_TYPE_FACT, .schema = 1};
    data.as.fact.statement = cx_str_z(statement);
    data.as.fact.subject = CX_STR("matrix://subject");
    data.as.fact.predicate = CX_STR("is");
    cx_data_encode(&data, out);
}

cx_status kit_write(cx_memory *memory, const char *statement, cx_uri *out, cx_err *err)
{
    cx_buf data;
    cx_buf_init(&data, cx_alloc_default());
    kit_fact_data(statement, &data);
    const cx_str tag = CX_STR("kit");
    const cx_memory_write write = {
        .type = CX_TYPE_FACT, .data = cx_buf_bytes(&data), .tags = &tag, .tag_count = 1};
    cx_status status = cx_memory_write_new(memory, &write, out, err);
    cx_buf_done(&data);
    return status;
}

cx_status kit_update(cx_memory *memory, const cx_uri *uri, const char *statement, cx_uri *out,
                     cx_err *err)
{
    cx_buf data;
    cx_buf_init(&data, cx_alloc_default());
    kit_fact_data(statement, &data);
    const cx_memory_update update = {.data = cx_buf_bytes(&data)};
    cx_status status = cx_memory_update_at(memory, uri, &update, out, err);
    cx_buf_done(&data);
    return status;
}

/* --- every kind of call ----------------------------------------------------------------------- */

static uint64_t snapshot(kit *k, const char *trigger)
{
    cx_manifest manifest = {0};
    CHECK_STATUS(cx_snapshot_make(k->home, KIT_ACTOR, cx_str_z(trigger), source_now(&k->source),
                                  &k->arena, &manifest, &k->err),
                 &k->err);
    return manifest.snapshot_seq;
}

static void fill_edges(kit *k, const cx_uri *uris)
{
    const cx_bytes none = {NULL, 0};
    bool written;
    for (size_t i = 0; i < 4; i++) {
        const cx_edge_name name = {uris[i].id, (uint8_t)(i % 3 + 1), uris[i + 1].id};
        CHECK_STATUS(cx_memory_add_edge(k->memory, &name, CX_STR("me"), 0.5f, none, false, &written,
                                        &k->err),
                     &k->err);
        if (i == 2)
            CHECK_STATUS(cx_memory_remove_edge(k->memory, &name, CX_STR("old"), CX_STR("me"),
                                               &written, &k->err),
                         &k->err);
    }
}

static void fill_work(kit *k, const cx_uri *uris)
{
    const float vector[] = {0.5f, -0.25f, 0.125f, 0.75f};
    CHECK_STATUS(cx_memory_embed(k->memory, &uris[0].id, uris[0].version, CX_STR("model"), vector,
                                 4, &k->err),
                 &k->err);
    const cx_memory_compact compact = {.in_context = uris,
                                       .in_context_count = 4,
                                       .load_bearing = uris,
                                       .load_bearing_count = 1,
                                       .intent = CX_STR("intent"),
                                       .step = CX_STR("step")};
    cx_checkpoint_record record;
    CHECK_STATUS(cx_memory_compact_context(k->memory, &compact, &k->arena, &record, &k->err),
                 &k->err);
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_uri_add(&uris[1], &text);
    const cx_str cited = cx_buf_str(&text);
    const cx_memory_attest attest = {.intent = CX_STR("intent"), .cited = &cited, .cited_count = 1};
    CHECK_STATUS(cx_memory_attest_outcome(k->memory, &attest, NULL, &k->err), &k->err);
    cx_buf_done(&text);
    const cx_head_patch patch = {.set_importance = true, .importance = 7};
    CHECK_STATUS(cx_memory_update_head(k->memory, &uris[2], &patch, &k->err), &k->err);
}

static void fill_raw(kit *k)
{
    static const char secret[] = "a payload that will be destroyed";
    uint64_t seq = 0;
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(cx_memory_raw(k->memory, CX_STR("trace.received"),
                                   cx_bytes_from(secret, sizeof secret), i != 0, CX_STR("me"), &seq,
                                   &k->err),
                     &k->err);
    CHECK_STATUS(cx_memory_redact(k->memory, seq, CX_STR("asked for"), CX_STR("me"), &k->err),
                 &k->err);
}

void kit_fill(kit *k)
{
    cx_uri uris[8];
    char text[64];
    for (size_t i = 0; i < CX_COUNT_OF(uris); i++) {
        (void)snprintf(text, sizeof text, "statement number %zu", i);
        CHECK_STATUS(kit_write(k->memory, text, &uris[i], &k->err), &k->err);
    }
    uint64_t first = snapshot(k, "explicit");
    for (size_t i = 0; i < 3; i++)
        CHECK_STATUS(kit_update(k->memory, &uris[i], "another statement", &uris[i], &k->err),
                     &k->err);
    (void)snapshot(k, "periodic");
    fill_edges(k, uris);
    fill_work(k, uris);
    fill_raw(k);
    CHECK_STATUS(cx_memory_tombstone(k->memory, &uris[5], CX_STR("done"), CX_STR("me"), &k->err),
                 &k->err);
    CHECK_STATUS(
        cx_memory_redact_memory(k->memory, &uris[6], CX_STR("asked for"), CX_STR("me"), &k->err),
        &k->err);
    CHECK_STATUS(
        cx_snapshot_drop(k->home, KIT_ACTOR, first, CX_STR("me"), source_now(&k->source), &k->err),
        &k->err);
    (void)snapshot(k, "explicit");
    CHECK_STATUS(kit_update(k->memory, &uris[3], "the last statement", &uris[3], &k->err), &k->err);
}

/* --- a home from outside ---------------------------------------------------------------------- */

static void note_roots(const cx_home_report *report, kit_verdict *out)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = 0; i < cx_home_report_actor_count(report); i++) {
        cx_actor_info info;
        cx_roots roots;
        cx_home_report_actor(report, i, &info, &roots);
        cx_buf_add(&text, roots.overall.bytes, sizeof roots.overall.bytes);
    }
    CHECK(!text.failed);
    out->overall = cx_digest_of(cx_buf_bytes(&text));
    cx_buf_done(&text);
}

static void note_report(const cx_home_report *report, kit_verdict *out)
{
    const cx_home_totals *totals = cx_home_report_totals(report);
    out->verdict = cx_home_report_verdict(report);
    out->tables_checked = totals->tables_checked;
    out->entries = totals->entries;
    out->half_erased = totals->half_erased;
    note_roots(report, out);
    if (cx_home_report_count(report) != 0) {
        const cx_home_finding *f = cx_home_report_finding(report, 0);
        (void)snprintf(out->first, sizeof out->first, "%s %s at %.*s: %.*s", f->check, f->reason,
                       (int)f->where.size, f->where.data, (int)f->message.size, f->message.data);
    } else {
        (void)snprintf(out->first, sizeof out->first, "%.*s", (int)totals->tables_note.size,
                       totals->tables_note.data == NULL ? "" : totals->tables_note.data);
    }
}

kit_verdict kit_verify(const char *path, cx_str actor, const cx_anchor_point *anchor)
{
    const cx_home_verify_options options = {.home = kit_options(),
                                            .actor = actor,
                                            .anchors = anchor,
                                            .anchor_count = anchor == NULL ? 0 : 1};
    cx_home_report *report = NULL;
    cx_err err = {0};
    kit_verdict out = {.verdict = CX_INDETERMINATE};
    out.status = cx_home_verify(path, &options, &report, &err);
    if (cx_failed(out.status))
        (void)snprintf(out.first, sizeof out.first, "%s", err.message);
    else
        note_report(report, &out);
    cx_home_report_close(report);
    return out;
}

bool kit_holds(const char *path, bool tables, kit_verdict *out, const char *file, int line)
{
    kit_verdict found = kit_verify(path, (cx_str){NULL, 0}, NULL);
    bool good =
        !cx_failed(found.status) && found.verdict == CX_HOLDS && (!tables || found.tables_checked);
    if (!good)
        cx_test_fail(file, line, "the home does not hold: %s", found.first);
    if (out != NULL)
        *out = found;
    return good;
}

static bool rows_of(cx_db *db, const char *sql, int columns, cx_buf *out)
{
    cx_db_statement *statement;
    bool more = true;
    if (cx_failed(cx_db_prepare(db, sql, &statement, NULL)))
        return false;
    cx_status status = CX_SUCCESS;
    while (more) {
        status = cx_db_step(statement, &more, NULL);
        if (cx_failed(status))
            break;
        for (int i = 0; more && i < columns; i++) {
            cx_buf_add_byte(out, ' ');
            if (!cx_db_is_null(statement, i))
                cx_hex_add(out, cx_db_bytes(statement, i));
        }
        cx_buf_add_byte(out, '\n');
    }
    cx_db_finish(statement);
    return !cx_failed(status);
}

/* Rows of the past only where a retained snapshot needs them (ledger/past/history.h G2, G4): the
 * others are there or not. */
static const char records[] =
    "SELECT actor, key, value FROM record AS r WHERE NOT (key >= CAST('erase/' AS BLOB) AND key <"
    " CAST('erase0' AS BLOB)) AND (NOT (key >= CAST('hist/' AS BLOB) AND key < CAST('hist0' AS"
    " BLOB)) OR EXISTS (SELECT 1 FROM past WHERE past.actor=r.actor AND"
    " printf('%016X', past.snapshot) <= hex(substr(r.key, -8)) AND"
    " printf('%016X', past.snapshot) > coalesce((SELECT max(hex(substr(q.key, -8))) FROM record"
    " AS q WHERE q.actor=r.actor AND q.key>=substr(r.key, 1, length(r.key)-8) AND q.key<r.key AND"
    " length(q.key)=length(r.key)), ''))) ORDER BY actor, key";

bool kit_rows(const char *path, cx_buf *out)
{
    char file[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    (void)snprintf(file, sizeof file, "%s/cortex.db", path);
    if (cx_failed(cx_db_open(file, CX_DB_IMMUTABLE, &db, NULL)))
        return false;
    bool good = rows_of(db, "SELECT name, value FROM meta ORDER BY name", 2, out) &&
                rows_of(db, "SELECT * FROM actors ORDER BY id", 11, out) &&
                rows_of(db, "SELECT * FROM entry ORDER BY actor, seq", 10, out) &&
                rows_of(db, records, 3, out);
    cx_db_close(db);
    return good && !out->failed;
}

void kit_bytes(const char *path, cx_buf *out)
{
    char inside[FOLDER_PATH_SIZE + 8];
    folder_contents(path, out);
    (void)snprintf(inside, sizeof inside, "%s/log", path);
    folder_contents(inside, out);
}

/* Calls `each` with the path of every file of a home. */
static void each_file(const char *path, void (*each)(void *arg, const char *path), void *arg)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char inside[FOLDER_PATH_SIZE];
        struct stat info;
        int size = snprintf(inside, sizeof inside, "%s/%s", path, names[i]->d_name);
        CX_ASSERT(size > 0 && size < (int)sizeof inside);
        if (names[i]->d_name[0] != '.' && stat(inside, &info) == 0) {
            if (S_ISDIR(info.st_mode))
                each_file(inside, each, arg);
            else
                each(arg, inside);
        }
        free(names[i]);
    }
    free(names);
}

typedef struct copying {
    const char *from, *to;
} copying;

static void copy_file(void *arg, const char *path)
{
    const copying *c = arg;
    char to[FOLDER_PATH_SIZE * 2];
    (void)snprintf(to, sizeof to, "%s%s", c->to, path + strlen(c->from));
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_err err;
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &bytes, &err), &err);
    FILE *file = fopen(to, "wb");
    CHECK(file != NULL);
    if (file != NULL) {
        CHECK(fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
        CHECK(fclose(file) == 0);
    }
    cx_buf_done(&bytes);
}

void kit_copy(const char *from, const char *to)
{
    static const char *const folders[] = {"", "/log", "/keys"};
    char path[FOLDER_PATH_SIZE + 8];
    copying c = {from, to};
    folder_remove(to);
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        (void)snprintf(path, sizeof path, "%s%s", to, folders[i]);
        CHECK(mkdir(path, 0700) == 0);
    }
    each_file(from, copy_file, &c);
}

void kit_remove_tables(const char *path)
{
    static const char *const names[] = {"/cortex.db", "/cortex.db-wal", "/cortex.db-shm"};
    char file[FOLDER_PATH_SIZE + 32];
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        (void)snprintf(file, sizeof file, "%s%s", path, names[i]);
        (void)unlink(file);
    }
}

typedef struct searching {
    cx_bytes wanted;
    bool found;
} searching;

static void search_file(void *arg, const char *path)
{
    searching *s = arg;
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    if (!cx_failed(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &bytes, NULL)) &&
        bytes.size != 0 && memmem(bytes.data, bytes.size, s->wanted.data, s->wanted.size) != NULL)
        s->found = true;
    cx_buf_done(&bytes);
}

bool kit_contains(const char *path, const void *bytes, size_t size)
{
    searching s = {.wanted = cx_bytes_from(bytes, size)};
    each_file(path, search_file, &s);
    return s.found;
}
