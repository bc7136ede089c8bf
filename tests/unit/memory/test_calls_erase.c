/*
 * test_calls_erase.c - Redact and RedactMemory: what is destroyed is in no file any more, and what
 * was proven stays proven (ledger.md §10; §14: 20, 24, 25).
 */
#include <dirent.h>
#include <stdlib.h>

#include "ledger/snapshot.h"
#include "ledger/verify.h"
#include "tests/unit/memory/calls.h"

#define SECRET "correct horse battery staple"

/* Whether any file of the home, in whatever folder, holds these bytes. */
static bool file_holds(const char *path, const void *bytes, size_t size)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, NULL);
    bool holds = false;
    for (int i = 0; i < count; i++) {
        char inside[1024];
        cx_buf text;
        (void)snprintf(inside, sizeof inside, "%s/%s", path, names[i]->d_name);
        cx_buf_init(&text, cx_alloc_default());
        if (names[i]->d_name[0] != '.') {
            if (names[i]->d_type == DT_DIR)
                holds = holds || file_holds(inside, bytes, size);
            else if (!cx_failed(cx_io_read_file(cx_io_system(), inside, SIZE_MAX, &text, NULL)))
                holds =
                    holds || (text.size != 0 && memmem(text.data, text.size, bytes, size) != NULL);
        }
        cx_buf_done(&text);
        free(names[i]);
    }
    free(names);
    return holds;
}

static void check_verifies(calls *kit)
{
    const cx_home_verify_options options = {.home = calls_home_options()};
    cx_home_report *report = NULL;
    CHECK_STATUS(cx_home_verify(kit->path, &options, &report, &kit->err), &kit->err);
    if (report == NULL)
        return;
    for (size_t i = 0; i < cx_home_report_count(report); i++) {
        const cx_home_finding *finding = cx_home_report_finding(report, i);
        cx_test_fail(__FILE__, __LINE__, "verify: %s %s: %.*s: %.*s", finding->check,
                     finding->reason, (int)finding->where.size, finding->where.data,
                     (int)finding->message.size, finding->message.data);
    }
    CHECK_INT(cx_home_report_verdict(report), CX_HOLDS);
    cx_home_report_close(report);
}

static cx_status redact(calls *kit, uint64_t seq)
{
    return cx_memory_redact(kit->memory, seq, CX_STR("asked to"), CX_STR("bob"), &kit->err);
}

CX_TEST(redact_destroys_the_payload)
{
    for (int scheme = CX_SCHEME_CORTEX_1; scheme <= CX_SCHEME_MATRIX_1; scheme++) {
        calls kit;
        cx_entry_view entry;
        cx_inclusion before, after;
        cx_digest root_before, root_after;
        uint64_t seq = 0, plain = 0;
        if (!calls_init(&kit, "redact", "andrew", (cx_scheme)scheme))
            return;
        (void)calls_write_fact(&kit, "x");
        CHECK_STATUS(cx_memory_raw(kit.memory, CX_STR("trace.received"),
                                   cx_str_bytes(CX_STR(SECRET)), true, CX_STR(""), &seq, &kit.err),
                     &kit.err);
        CHECK_STATUS(cx_memory_raw(kit.memory, CX_STR("raw"), cx_str_bytes(CX_STR("plain")), false,
                                   CX_STR(""), &plain, &kit.err),
                     &kit.err);
        CHECK_STATUS(cx_home_entry(kit.home, CX_STR("andrew"), seq, &kit.arena, &entry, &kit.err),
                     &kit.err);
        uint8_t salt[32];
        memcpy(salt, entry.salt, sizeof salt);
        CHECK_STATUS(cx_home_flush(kit.home, &kit.err), &kit.err);
        CHECK(file_holds(kit.path, SECRET, strlen(SECRET)));
        CHECK(file_holds(kit.path, salt, sizeof salt));
        CHECK_STATUS(cx_proof_journal(kit.home, CX_STR("andrew"), seq, 3, true, &kit.arena, &before,
                                      &root_before, &kit.err),
                     &kit.err);
        CHECK_REFUSED(&kit, redact(&kit, 99), "NotFound");
        CHECK_REFUSED(&kit, redact(&kit, plain), "NotCommitted");
        CHECK_STATUS(redact(&kit, seq), &kit.err);
        CHECK_REFUSED(&kit, redact(&kit, seq), "AlreadyRedacted");
        CHECK(!file_holds(kit.path, SECRET, strlen(SECRET)));
        CHECK(!file_holds(kit.path, salt, sizeof salt));
        CHECK_STATUS(cx_home_entry(kit.home, CX_STR("andrew"), seq, &kit.arena, &entry, &kit.err),
                     &kit.err);
        CHECK(entry.payload_erased && entry.payload.size == 0);
        CHECK_STATUS(cx_proof_journal(kit.home, CX_STR("andrew"), seq, 3, true, &kit.arena, &after,
                                      &root_after, &kit.err),
                     &kit.err);
        CHECK(cx_digest_eq(&root_before, &root_after));
        CHECK(fixture_same(before.entry, after.entry));
        calls_shut(&kit);
        CHECK(!file_holds(kit.path, SECRET, strlen(SECRET)));
        check_verifies(&kit);
        if (calls_open(&kit, "andrew"))
            CHECK_REFUSED(&kit, redact(&kit, seq), "AlreadyRedacted");
        calls_done(&kit);
    }
}

/* --- RedactMemory ----------------------------------------------------------------------------- */

static cx_status redact_memory(calls *kit, const cx_uri *uri)
{
    return cx_memory_redact_memory(kit->memory, uri, CX_STR("asked to"), CX_STR("bob"), &kit->err);
}

/* A memory with everything that can hold content: two versions, tags, frames, a vector, a pin. */
static cx_uri write_full(calls *kit)
{
    static const float values[] = {0.123456f, 0.654321f, 0.777777f, 0.333333f};
    const cx_str tag = CX_STR("tag of " SECRET);
    const cx_frame frame = {2, 1, CX_STR("frame of " SECRET)};
    const cx_memory_write write = {.type = CX_TYPE_FACT,
                                   .data = calls_fact(kit, SECRET),
                                   .tags = &tag,
                                   .tag_count = 1,
                                   .frames = &frame,
                                   .frame_count = 1,
                                   .pinned = true};
    cx_uri uri = calls_write(kit, &write), next = uri;
    const cx_memory_update update = {.data = calls_fact(kit, "second " SECRET)};
    CHECK_STATUS(cx_memory_update_at(kit->memory, &uri, &update, &next, &kit->err), &kit->err);
    CHECK_STATUS(cx_memory_embed(kit->memory, &uri.id, 2, CX_STR("m"), values, 4, &kit->err),
                 &kit->err);
    return next;
}

/* Records of that id that should be gone. */
static void check_gone(calls *kit, const cx_id *id)
{
    static const char *const prefixes[] = {"salience/", "vec/meta/", "idx/at/"};
    static const char *const indexes[] = {"idx/type/", "idx/tag/", "idx/frame/"};
    char hex[32];
    cx_hex_encode(cx_bytes_from(id->bytes, 16), hex);
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++) {
        cx_memory_key key = cx_memory_key_of(prefixes[i], id);
        CHECK_INT(calls_record(kit, &key).size, 0);
    }
    cx_buf rows;
    cx_buf_init(&rows, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(indexes); i++)
        calls_dump(kit, indexes[i], &rows);
    CHECK(rows.size == 0 || memmem(rows.data, rows.size, hex, sizeof hex) == NULL);
    cx_buf_done(&rows);
}

static void check_stub(calls *kit, const cx_uri *uri)
{
    cx_memory_view view = {0};
    CHECK_STATUS(cx_memory_resolve(kit->memory, uri, &kit->arena, &view, &kit->err), &kit->err);
    CHECK(view.version.erased);
    CHECK(view.head.tombstoned);
    CHECK(view.head.tag_count == 0 && view.head.frame_count == 0 && !view.head.embedded);
    CHECK(view.head.forms.brief.size == 0 && view.head.forms.medium.size == 0);
}

CX_TEST(redact_memory_destroys_every_copy)
{
    for (int round = 0; round < 4; round++) {
        const cx_scheme scheme = round % 2 == 0 ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1;
        const bool dead = round >= 2; /* tombstoned before */
        calls kit;
        cx_buf before, after;
        if (!calls_init(&kit, "redact-memory", "andrew", scheme))
            return;
        cx_uri other = calls_write_fact(&kit, "stays"), uri = write_full(&kit), wrong = uri;
        cx_manifest manifest;
        cx_state_proof old, now;
        const cx_id ids[] = {other.id, uri.id};
        const cx_proof_request request = {
            .name_space = CX_NAMESPACE_MEMORIES, .ids = ids, .id_count = 2};
        CHECK_STATUS(cx_snapshot_make(kit.home, CX_STR("andrew"), CX_STR(""), 1, &kit.arena,
                                      &manifest, &kit.err),
                     &kit.err);
        CHECK_STATUS(
            cx_proof_at(kit.home, CX_STR("andrew"), &request, 0, &kit.arena, &old, &kit.err),
            &kit.err);
        if (dead)
            CHECK_STATUS(
                cx_memory_tombstone(kit.memory, &uri, CX_STR("earlier"), CX_STR(""), &kit.err),
                &kit.err);
        CHECK_STATUS(cx_home_flush(kit.home, &kit.err), &kit.err);
        CHECK(file_holds(kit.path, SECRET, strlen(SECRET)));
        wrong.version = 3;
        CHECK_REFUSED(&kit, redact_memory(&kit, &wrong), "NotFound");
        wrong.id = fixture_id(99);
        CHECK_REFUSED(&kit, redact_memory(&kit, &wrong), "NotFound");
        CHECK_STATUS(redact_memory(&kit, &uri), &kit.err);
        uint64_t entries = calls_entries(&kit);
        CHECK_STATUS(redact_memory(&kit, &uri), &kit.err);
        CHECK_INT(calls_entries(&kit), entries);
        CHECK(!file_holds(kit.path, SECRET, strlen(SECRET)));
        check_stub(&kit, &uri);
        check_gone(&kit, &uri.id);
        cx_memory_key tomb = cx_memory_key_of("tomb/", &uri.id);
        CHECK_STR(cx_bytes_str(calls_record(&kit, &tomb)), dead ? "earlier" : "asked to");
        /* Its siblings and root did not change; its value hash replaces the leaf. */
        CHECK_STATUS(
            cx_proof_at(kit.home, CX_STR("andrew"), &request, 0, &kit.arena, &now, &kit.err),
            &kit.err);
        CHECK(cx_digest_eq(&old.proof.root, &now.proof.root));
        CHECK(cx_digest_eq(&manifest.memories_root, &now.proof.root));
        CHECK_INT(now.leaves[1].size, 0);
        CHECK(fixture_same(old.leaves[0], now.leaves[0]));
        /* The same rows come from the log as it is now. */
        cx_buf_init(&before, cx_alloc_default());
        cx_buf_init(&after, cx_alloc_default());
        static const char *const prefixes[] = {"m/",   "mv/",       "tomb/", "hist/",
                                               "idx/", "salience/", "vec/",  "meta/"};
        cx_digest root = calls_root(&kit);
        for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++)
            calls_dump(&kit, prefixes[i], &before);
        calls_shut(&kit);
        CHECK(!file_holds(kit.path, SECRET, strlen(SECRET)));
        check_verifies(&kit);
        char database[FOLDER_PATH_SIZE + 16];
        (void)snprintf(database, sizeof database, "%s/cortex.db", kit.path);
        CHECK_INT(cx_io_system()->unlink(cx_io_system(), database), 0);
        if (calls_open(&kit, "andrew")) {
            for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++)
                calls_dump(&kit, prefixes[i], &after);
            cx_digest again = calls_root(&kit);
            CHECK(cx_digest_eq(&root, &again));
            CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
        }
        cx_buf_done(&before);
        cx_buf_done(&after);
        calls_done(&kit);
    }
}
