/*
 * test_remote_same.c - through the process that holds a home every call says what it says at home,
 * errors included, and what is written comes out the same.
 */
#include "tests/support/remote_kit.h"

/* --- the same answers ------------------------------------------------------------------------- */

static bool kit_begin(kit *k, const char *name, cx_home *(*open)(const char *path, cx_err *err))
{
    const cx_home_options options = options_of(false);
    const cx_memory_options memory = kit_memory_options(&k->source);
    memset(k, 0, sizeof *k);
    cx_arena_init(&k->arena, cx_alloc_default(), 0);
    kit_source_init(&k->source, 1);
    folder_fresh(k->path, name);
    CHECK_STATUS(cx_home_create(k->path, CX_SCHEME_CORTEX_1, &options, &k->err), &k->err);
    k->home = open(k->path, &k->err);
    if (k->home == NULL) {
        cx_test_fail(__FILE__, __LINE__, "opening %s: %s", name, k->err.message);
        return false;
    }
    CHECK_STATUS(cx_memory_open(k->home, KIT_ACTOR, &memory, &k->memory, &k->err), &k->err);
    return k->memory != NULL;
}

static cx_home *open_here(const char *path, cx_err *err)
{
    const cx_home_options options = options_of(false);
    cx_home *home = NULL;
    return cx_failed(cx_home_open(path, &options, &home, err)) ? NULL : home;
}

/* What holds the home for the kit that works through it. */
static cx_home *served;
static cx_remote *server;

static cx_home *open_there(const char *path, cx_err *err)
{
    const cx_home_options options = options_of(true);
    cx_home *home = NULL;
    served = open_here(path, err);
    if (served == NULL || cx_failed(cx_home_serve_begin(served, NULL, &server, err)) ||
        cx_failed(cx_home_open(path, &options, &home, err)))
        return NULL;
    CHECK(cx_home_is_remote(home));
    return home;
}

typedef struct both {
    kit here, there;
    cx_buf left, right;
} both;

static bool both_begin(both *b, const char *name)
{
    char other[64];
    (void)snprintf(other, sizeof other, "%s-far", name);
    cx_buf_init(&b->left, cx_alloc_default());
    cx_buf_init(&b->right, cx_alloc_default());
    return kit_begin(&b->here, name, open_here) && kit_begin(&b->there, other, open_there);
}

static void both_end(both *b)
{
    cx_err err = {0};
    kit_close(&b->there);
    cx_home_serve_end(server);
    CHECK_STATUS(cx_home_close(served, &err), &err);
    kit_close(&b->here);
    CHECK_HOLDS(b->here.path, true, NULL);
    CHECK_HOLDS(b->there.path, true, NULL);
    kit_done(&b->here);
    kit_done(&b->there);
    cx_buf_done(&b->left);
    cx_buf_done(&b->right);
}

/* Checks that both said the same. */
static void compare(both *b, const char *what)
{
    CHECK(!b->left.failed && !b->right.failed && b->left.size != 0);
    if (!cx_str_eq(cx_buf_str(&b->left), cx_buf_str(&b->right)))
        cx_test_fail(__FILE__, __LINE__, "%s differs:\n%.*s\n---\n%.*s", what,
                     (int)(b->left.size < 600 ? b->left.size : 600), (const char *)b->left.data,
                     (int)(b->right.size < 600 ? b->right.size : 600), (const char *)b->right.data);
    cx_buf_clear(&b->left);
    cx_buf_clear(&b->right);
}

static void add_hex(cx_buf *out, cx_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        cx_buf_printf(out, "%02x", bytes.data[i]);
    cx_buf_add_byte(out, ' ');
}

static void add_status(cx_buf *out, cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        cx_buf_add_z(out, "ok ");
    else
        cx_buf_printf(out, "%s %s %d %llu %s\n", cx_code_name(status.code),
                      err->tag == NULL ? "-" : err->tag, err->os_errno,
                      (unsigned long long)err->offset, err->message);
}

static void add_info(cx_buf *out, const cx_actor_info *info)
{
    cx_buf_printf(out, "%.*s %d %llu %llu %llu %llu %llu\n", (int)info->name.size, info->name.data,
                  (int)info->scheme, (unsigned long long)info->entry_count,
                  (unsigned long long)info->snapshot_count, (unsigned long long)info->live_memories,
                  (unsigned long long)info->tombstoned, (unsigned long long)info->edge_count);
}

static void say_actors(kit *k, cx_buf *out)
{
    const cx_actor_info *all;
    cx_actor_info one;
    size_t count = 0;
    cx_err err = {0};
    add_status(out, cx_home_actors(k->home, &k->arena, &all, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        add_info(out, &all[i]);
        CHECK_STATUS(cx_home_actor(k->home, all[i].name, &one, &err), &err);
        add_info(out, &one);
    }
    add_status(out, cx_home_actor(k->home, CX_STR("nobody"), &one, &err), &err);
    add_status(out, cx_home_actor(k->home, CX_STR(""), &one, &err), &err);
    add_status(out, cx_home_actor(k->home, CX_STR("\xff"), &one, &err), &err);
}

static void add_roots(cx_buf *out, const cx_roots *roots)
{
    cx_buf_printf(out, "%llu ", (unsigned long long)roots->journal_size);
    add_hex(out, cx_bytes_from(roots->journal.bytes, 32));
    add_hex(out, cx_bytes_from(roots->edges.bytes, 32));
    add_hex(out, cx_bytes_from(roots->memories.bytes, 32));
    add_hex(out, cx_bytes_from(roots->overall.bytes, 32));
}

static void say_roots(kit *k, cx_buf *out)
{
    cx_roots roots = {0};
    cx_err err = {0};
    cx_txn *txn = NULL;
    cx_tables_status tables = {0};
    add_status(out, cx_home_roots(k->home, KIT_ACTOR, &roots, &err), &err);
    add_roots(out, &roots);
    add_status(out, cx_home_roots(k->home, CX_STR("nobody"), &roots, &err), &err);
    CHECK_STATUS(cx_txn_begin(k->home, CX_STR("newcomer"), &txn, &err), &err);
    add_status(out, cx_txn_roots(txn, &roots, &err), &err);
    add_roots(out, &roots);
    cx_txn_abort(txn);
    CHECK_STATUS(cx_txn_begin(k->home, KIT_ACTOR, &txn, &err), &err);
    add_status(out, cx_txn_roots(txn, &roots, &err), &err);
    add_roots(out, &roots);
    cx_txn_abort(txn);
    add_status(out, cx_home_flush(k->home, &err), &err);
    add_status(out, cx_home_sync(k->home, &err), &err);
    add_status(out, cx_home_tables_status(k->home, &tables, &err), &err);
    cx_buf_printf(out, "%llu %llu %llu %llu %llu", (unsigned long long)tables.log_commits,
                  (unsigned long long)tables.table_commits, (unsigned long long)tables.entry_rows,
                  (unsigned long long)tables.record_rows,
                  (unsigned long long)cx_home_durable(k->home));
}

typedef struct row_list {
    cx_buf *out;
    size_t left;
    uint8_t middle[CX_KEY_SIZE_MAX];
    size_t middle_size;
} row_list;

static cx_status say_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    row_list *list = arg;
    (void)err;
    add_hex(list->out, key);
    add_hex(list->out, value);
    if (list->left-- == 1) {
        *stop = true;
        memcpy(list->middle, key.data, key.size);
        list->middle_size = key.size;
    }
    return CX_SUCCESS;
}

static void say_scan(kit *k, cx_str prefix, cx_buf *out)
{
    cx_err err = {0};
    for (int way = 0; way < 2; way++) {
        row_list list = {.out = out, .left = 3};
        cx_scan scan = {.actor = KIT_ACTOR,
                        .prefix = cx_str_bytes(prefix),
                        .backwards = way == 1,
                        .row = say_row,
                        .arg = &list};
        add_status(out, cx_home_scan(k->home, &scan, &err), &err);
        scan.from = cx_bytes_from(list.middle, list.middle_size);
        list.left = SIZE_MAX;
        add_status(out, cx_home_scan(k->home, &scan, &err), &err);
        scan.from = (cx_bytes){NULL, 0};
        add_status(out, cx_home_scan(k->home, &scan, &err), &err);
    }
}

static cx_status refuse_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    (void)arg;
    (void)key;
    (void)value;
    (void)stop;
    return cx_fail(err, CX_E_CONFLICT, "enough");
}

static void say_scans(kit *k, cx_buf *out)
{
    static const char *const prefixes[] = {"m/",   "mv/",       "e/",  "idx/",      "snap/",
                                           "vec/", "salience/", "no/", "idx/root/", "hist/"};
    cx_err err = {0};
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++)
        say_scan(k, cx_str_z(prefixes[i]), out);
    uint8_t longest[CX_KEY_SIZE_MAX + 1];
    memset(longest, 'x', sizeof longest);
    cx_scan scan = {
        .actor = CX_STR("nobody"), .prefix = cx_str_bytes(CX_STR("m/")), .row = refuse_row};
    add_status(out, cx_home_scan(k->home, &scan, &err), &err);
    scan.actor = KIT_ACTOR;
    add_status(out, cx_home_scan(k->home, &scan, &err), &err);
    scan.prefix = (cx_bytes){NULL, 0};
    add_status(out, cx_home_scan(k->home, &scan, &err), &err);
    scan.prefix = cx_bytes_from(longest, sizeof longest);
    add_status(out, cx_home_scan(k->home, &scan, &err), &err);
}

/* Every record, now and at each snapshot, dropped ones too. */
typedef struct key_list {
    cx_arena *arena;
    cx_bytes keys[64];
    size_t count;
} key_list;

static cx_status take_key(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    key_list *list = arg;
    (void)value;
    (void)err;
    list->keys[list->count++] = cx_str_bytes(cx_arena_copy_str(list->arena, cx_bytes_str(key)));
    *stop = list->count == CX_COUNT_OF(list->keys);
    return CX_SUCCESS;
}

static void say_record(kit *k, cx_bytes key, cx_buf *out)
{
    cx_bytes value = {NULL, 0};
    bool found = false, erased = false;
    cx_digest hash = {{0}};
    cx_err err = {0};
    add_status(out, cx_home_get(k->home, KIT_ACTOR, key, &k->arena, &value, &found, &err), &err);
    cx_buf_printf(out, "%d ", found);
    add_hex(out, value);
    for (uint64_t snapshot = 0; snapshot < 4; snapshot++) {
        value = (cx_bytes){NULL, 0};
        add_status(out,
                   cx_home_get_at(k->home, KIT_ACTOR, snapshot, key, &k->arena, &value, &found,
                                  &erased, &hash, &err),
                   &err);
        cx_buf_printf(out, "%d %d ", found, erased);
        add_hex(out, value);
        add_hex(out, cx_bytes_from(hash.bytes, 32));
    }
}

static void say_records(kit *k, cx_buf *out)
{
    key_list list = {.arena = &k->arena};
    cx_bytes value;
    bool found = true, erased = true;
    cx_digest hash;
    cx_err err = {0};
    const cx_scan scan = {
        .actor = KIT_ACTOR, .prefix = cx_str_bytes(CX_STR("m")), .row = take_key, .arg = &list};
    CHECK_STATUS(cx_home_scan(k->home, &scan, &err), &err);
    CHECK(list.count > 10);
    for (size_t i = 0; i < list.count; i++)
        say_record(k, list.keys[i], out);
    say_record(k, cx_str_bytes(CX_STR("m/absent")), out);
    uint8_t longest[CX_KEY_SIZE_MAX] = {'x'};
    const cx_bytes key = cx_bytes_from(longest, sizeof longest);
    add_status(out, cx_home_get(k->home, KIT_ACTOR, key, &k->arena, &value, &found, &err), &err);
    cx_buf_printf(out, "%d ", found);
    add_status(
        out,
        cx_home_get_at(k->home, KIT_ACTOR, 1, key, &k->arena, &value, &found, &erased, &hash, &err),
        &err);
    add_status(out, cx_home_get(k->home, CX_STR("nobody"), key, &k->arena, &value, &found, &err),
               &err);
}

/* Some of the payload is what all of it has there. */
static void say_ranges(kit *k, uint64_t seq, const cx_entry_view *view, cx_buf *out)
{
    const size_t size = view->payload.size;
    const size_t ranges[][2] = {
        {0, size}, {size / 2, size - size / 2}, {size, 0}, {1, 2}, {0, size + 1}, {size + 1, 0}};
    for (size_t i = 0; i < CX_COUNT_OF(ranges); i++) {
        cx_buf some;
        cx_err err = {0};
        bool erased = true;
        cx_buf_init(&some, cx_alloc_default());
        cx_buf_add_z(&some, "before");
        cx_status status = cx_home_entry_range(k->home, KIT_ACTOR, seq, ranges[i][0], ranges[i][1],
                                               &some, &erased, &err);
        add_status(out, status, &err);
        if (!cx_failed(status) && !erased)
            CHECK(cx_str_eq(
                cx_str_from((char *)some.data + 6, some.size - 6),
                cx_str_from((const char *)view->payload.data + ranges[i][0], ranges[i][1])));
        else
            CHECK_INT(some.size, 6);
        cx_buf_printf(out, "%d ", !cx_failed(status) && erased);
        cx_buf_done(&some);
    }
}

static void say_entry(kit *k, uint64_t seq, cx_buf *out)
{
    cx_entry_view view = {.payload_erased = false};
    cx_err err = {0};
    add_status(out, cx_home_entry(k->home, KIT_ACTOR, seq, &k->arena, &view, &err), &err);
    cx_buf_printf(out, "%llu %d %d %.*s ", (unsigned long long)view.entry.seq, view.payload_erased,
                  view.has_subject, (int)view.entry.kind.size, view.entry.kind.data);
    add_hex(out, view.bytes);
    add_hex(out, view.payload);
    add_hex(out, cx_bytes_from(view.leaf_hash.bytes, 32));
    add_hex(out, cx_bytes_from(view.salt, 32));
    add_hex(out, cx_bytes_from(view.subject.bytes, 16));
    if (view.bytes.size != 0)
        say_ranges(k, seq, &view, out);
    if (!view.has_subject)
        return;
    const uint64_t *seqs = NULL;
    size_t count = 0;
    add_status(
        out,
        cx_home_entries_about(k->home, KIT_ACTOR, &view.subject, &k->arena, &seqs, &count, &err),
        &err);
    for (size_t i = 0; i < count; i++)
        cx_buf_printf(out, "%llu,", (unsigned long long)seqs[i]);
}

static void say_entries(kit *k, cx_buf *out)
{
    cx_actor_info info = {0};
    const uint64_t *seqs = NULL;
    size_t count = 7;
    cx_err err = {0};
    const cx_id unknown_id = {{1, 2, 3}};
    CHECK_STATUS(cx_home_actor(k->home, KIT_ACTOR, &info, &err), &err);
    CHECK(info.entry_count > 20);
    for (uint64_t seq = 0; seq <= info.entry_count; seq++)
        say_entry(k, seq, out);
    add_status(
        out, cx_home_entries_about(k->home, KIT_ACTOR, &unknown_id, &k->arena, &seqs, &count, &err),
        &err);
    cx_buf_printf(out, "%zu", count);
}

static void say_snapshots(kit *k, cx_buf *out)
{
    const cx_manifest *manifests = NULL;
    cx_manifest one;
    cx_bytes bytes = {NULL, 0};
    size_t count = 0;
    cx_err err = {0};
    add_status(out, cx_snapshot_list(k->home, KIT_ACTOR, &k->arena, &manifests, &count, &err),
               &err);
    for (size_t i = 0; i < count; i++) {
        add_status(out,
                   cx_snapshot_by_root(k->home, KIT_ACTOR, &manifests[i].overall_root, &k->arena,
                                       &one, &bytes, &err),
                   &err);
        add_hex(out, bytes);
    }
    for (uint64_t seq = 0; seq < 4; seq++)
        add_status(out, cx_snapshot_to_sign(k->home, KIT_ACTOR, seq, out, &err), &err);
    const cx_signature signature = {{1}};
    const cx_pubkey key = {{2}};
    add_status(out,
               cx_snapshot_seal(k->home, KIT_ACTOR, 1, CX_STR("me"), &signature, &key, CX_STR("me"),
                                5, &err),
               &err);
    add_status(out, cx_snapshot_drop(k->home, KIT_ACTOR, 77, CX_STR("me"), 5, &err), &err);
}

/* What a turn sees of itself, what it may not do, and what an actor's first turn makes. */
static void say_turn(kit *k, cx_buf *out)
{
    cx_txn *txn = NULL;
    cx_err err = {0};
    cx_bytes value = {NULL, 0};
    bool found = false;
    uint64_t seq = 99;
    const cx_bytes key = cx_str_bytes(CX_STR("test/key"));
    const cx_id about = {{9, 9}};
    cx_entry_draft draft = {.kind = CX_STR("Wrong Kind"), .payload = key, .committed = true};
    add_status(out, cx_txn_begin(k->home, CX_STR("a/b"), &txn, &err), &err);
    add_status(out, cx_txn_begin_as(k->home, CX_STR("beth"), CX_SCHEME_MATRIX_1, &txn, &err), &err);
    REQUIRE(txn != NULL);
    add_info(out, cx_txn_actor(txn));
    cx_buf_printf(out, "%d ", (int)cx_txn_scheme(txn));
    add_status(out, cx_txn_entry(txn, &draft, &seq, &err), &err);
    draft.kind = CX_STR("test.said");
    draft.subject = &about;
    add_status(out, cx_txn_entry(txn, &draft, &seq, &err), &err);
    cx_buf_printf(out, "%llu ", (unsigned long long)seq);
    static const char *const looked[] = {"test/key", "meta/scheme", "meta/actor", "other"};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < CX_COUNT_OF(looked); i++) {
            value = (cx_bytes){NULL, 0};
            add_status(out,
                       cx_txn_get(txn, cx_str_bytes(cx_str_z(looked[i])), &value, &found, &err),
                       &err);
            cx_buf_printf(out, "%d ", found);
            add_hex(out, value);
        }
        add_status(out, cx_txn_get_common(txn, key, &value, &found, &err), &err);
        cx_buf_printf(out, "%d ", found);
        add_status(
            out, round == 0 ? cx_txn_put(txn, key, key, true, &err) : cx_txn_remove(txn, key, &err),
            &err);
    }
    static const uint8_t salt[32] = {4, 5, 6};
    draft.salt = salt;
    add_status(out, cx_txn_entry(txn, &draft, &seq, &err), &err);
    add_status(out, cx_txn_put(txn, key, key, true, &err), &err);
    cx_buf_printf(out, "%llu ", (unsigned long long)cx_txn_next_seq(txn));
    add_status(out, cx_txn_commit(txn, &err), &err);
    add_status(out, cx_home_get(k->home, CX_STR("beth"), key, &k->arena, &value, &found, &err),
               &err);
    add_hex(out, value);
    /* A change that no frame holds. */
    uint8_t longest[CX_KEY_SIZE_MAX + 1] = {'x'};
    CHECK_STATUS(cx_txn_begin(k->home, CX_STR("beth"), &txn, &err), &err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, &seq, &err), &err);
    CHECK_STATUS(cx_txn_put(txn, cx_bytes_from(longest, sizeof longest), key, false, &err), &err);
    add_status(out, cx_txn_commit(txn, &err), &err);
    add_status(out, cx_home_erase(k->home, CX_STR("beth"), &err), &err);
    add_status(out, cx_home_erase(k->home, CX_STR("nobody"), &err), &err);
    cx_buf_printf(out, "%llu", (unsigned long long)entries(k->home, "beth"));
}

static void both_say(both *b, void (*say)(kit *k, cx_buf *out), const char *what)
{
    say(&b->here, &b->left);
    say(&b->there, &b->right);
    compare(b, what);
}

CX_TEST(remote_every_call_answers_as_at_home)
{
    both pair, *b = &pair;
    REQUIRE(both_begin(b, "remote-same"));
    kit_fill(&b->here);
    kit_fill(&b->there);
    both_say(b, say_actors, "actors");
    both_say(b, say_roots, "roots");
    both_say(b, say_scans, "scans");
    both_say(b, say_records, "records");
    both_say(b, say_entries, "entries");
    both_say(b, say_snapshots, "snapshots");
    both_say(b, say_turn, "turns");
    both_say(b, say_actors, "actors at the end");
    both_say(b, say_roots, "roots at the end");
    /* Names are the home's, not the answer's. */
    cx_actor_info first, second;
    CHECK_STATUS(cx_home_actor(b->there.home, KIT_ACTOR, &first, &b->there.err), &b->there.err);
    CHECK_STATUS(cx_home_actor(b->there.home, CX_STR("beth"), &second, &b->there.err),
                 &b->there.err);
    CHECK_STR(first.name, "andrew");
    both_end(b);
}

CX_TEST(remote_the_tables_come_out_the_same)
{
    both pair, *b = &pair;
    cx_err err = {0};
    REQUIRE(both_begin(b, "remote-rows"));
    kit_fill(&b->here);
    kit_fill(&b->there);
    kit_close(&b->there);
    cx_home_serve_end(server);
    server = NULL;
    CHECK_STATUS(cx_home_close(served, &err), &err);
    served = NULL;
    kit_close(&b->here);
    CHECK(kit_rows(b->here.path, &b->left));
    CHECK(kit_rows(b->there.path, &b->right));
    compare(b, "the tables");
    kit_bytes(b->here.path, &b->left);
    kit_bytes(b->there.path, &b->right);
    CHECK(b->left.size != 0);
    both_end(b);
}

CX_TEST(remote_what_needs_the_files_says_who_has_them)
{
    held writer, *h = &writer;
    cx_trees trees;
    cx_tail *tail;
    char text[32];
    REQUIRE(hold(h, "remote-files"));
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    (void)snprintf(text, sizeof text, "process %ld", (long)getpid());
    CHECK_FAILS(cx_home_trees_begin(home, CX_STR("a"), &trees, &h->err), h->err, CX_E_BUSY,
                "Remote");
    CHECK(strstr(h->err.message, text) != NULL);
    CHECK_FAILS(cx_home_backup(home, "/nonexistent/backup", &h->err), h->err, CX_E_BUSY, "Remote");
    CHECK(strstr(h->err.message, text) != NULL);
    CHECK_FAILS(cx_tail_begin(home, (cx_position){0, 0}, &tail, &h->err), h->err, CX_E_BUSY,
                "Remote");
    leave(home);
    release(h);
}

/* Pages, and an answer of many megabytes. */
CX_TEST(remote_large_things_pass)
{
    held writer, *h = &writer;
    cx_txn *txn = NULL;
    cx_entry_view view;
    REQUIRE(hold_unserved(h, "remote-large") && serve(h, SLOW_TURN_MS, 0));
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    size_t size = (size_t)8 << 20;
    uint8_t *bytes = malloc(size);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    const cx_entry_draft draft = {
        .kind = CX_STR("test.large"), .payload = cx_bytes_from(bytes, size), .committed = true};
    CHECK_STATUS(cx_txn_begin(home, CX_STR("al"), &txn, &h->err), &h->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &h->err), &h->err);
    for (unsigned i = 0; i < 20000; i++) {
        char key[32];
        int key_size = snprintf(key, sizeof key, "test/%05u", i);
        CHECK_STATUS(cx_txn_put(txn, cx_bytes_from(key, (size_t)key_size),
                                cx_bytes_from(bytes, 200), false, &h->err),
                     &h->err);
    }
    CHECK_STATUS(cx_txn_commit(txn, &h->err), &h->err);
    CHECK_STATUS(cx_home_entry(home, CX_STR("al"), 0, &h->arena, &view, &h->err), &h->err);
    CHECK_INT(view.payload.size, size);
    CHECK(view.payload.size == size && memcmp(view.payload.data, bytes, size) == 0);
    row_list rows = {.left = SIZE_MAX};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    rows.out = &out;
    const cx_scan scan = {.actor = CX_STR("al"),
                          .prefix = cx_str_bytes(CX_STR("test/")),
                          .row = say_row,
                          .arg = &rows};
    CHECK_STATUS(cx_home_scan(home, &scan, &h->err), &h->err);
    CHECK_INT(SIZE_MAX - rows.left, 20000);
    cx_buf_done(&out);
    free(bytes);
    leave(home);
    release(h);
}

CX_TEST(remote_a_turn_that_is_too_large_is_refused_before_it_is_sent)
{
    held writer, *h = &writer;
    cx_txn *txn = NULL;
    REQUIRE(hold_unserved(h, "remote-too-large") && serve(h, SLOW_TURN_MS, 0));
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    uint8_t *bytes = calloc(1, CX_REMOTE_MESSAGE_MAX);
    REQUIRE(bytes != NULL);
    const cx_entry_draft draft = {.kind = CX_STR("test.large"),
                                  .payload = cx_bytes_from(bytes, CX_REMOTE_MESSAGE_MAX),
                                  .committed = true};
    CHECK_STATUS(cx_txn_begin(home, CX_STR("al"), &txn, &h->err), &h->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &h->err), &h->err);
    CHECK_FAILS(cx_txn_commit(txn, &h->err), h->err, CX_E_LIMIT, "TurnTooLarge");
    free(bytes);
    /* The turn was given back, and the connection is as good as before. */
    CHECK_STATUS(append(home, "al", "small", &h->err), &h->err);
    CHECK_STATUS(append(h->home, "al", "here", &h->err), &h->err);
    CHECK_INT(entries(home, "al"), 2);
    leave(home);
    release(h);
}
