/*
 * test_home_crash.c - a program with several writers over several actors is killed at a random
 * moment, again and again.  What it was told to be committed is there with its bytes, calls of two
 * entries are there whole or not at all, the home holds, and its roots are those that the log alone
 * gives.  CORTEX_CRASH_ROUNDS says how often; 20 without it.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { ACTORS = 3, WRITERS = 6, STATEMENT_SIZE = 64 };

typedef enum act {
    ACT_READY,
    ACT_WRITE,    /* memory `id` says `number` */
    ACT_RAW,      /* entry `seq` has the payload of `number` */
    ACT_REDACT,   /* entry `seq` has none any more */
    ACT_ATTEST,   /* `seq` and the one after it */
    ACT_SNAPSHOT, /* number `seq`, with overall root `root` */
    ACT_DROP,
    ACT_EDGE
} act;

/* What a writer says over the pipe once it was told that it is so; whole, since it is short. */
typedef struct ack {
    uint32_t act;
    uint32_t actor;
    uint64_t number, seq;
    uint64_t version;
    cx_id id, other;
    cx_digest root;
} ack;

static const char *const actors[ACTORS] = {"andrew", "b", "carol of the third"};

static void make_text(uint64_t number, char out[STATEMENT_SIZE])
{
    (void)snprintf(out, STATEMENT_SIZE, "what was said as number %llu %08llx",
                   (unsigned long long)number,
                   (unsigned long long)(number * 2654435761u % 0xffffffffu));
}

/* --- the one that is killed ------------------------------------------------------------------- */

typedef struct child {
    cx_home *home;
    cx_memory *memories[ACTORS];
    kit_source source;
    atomic_ullong numbers;
    uint64_t seed;
    int pipe;
} child;

typedef struct writer {
    child *c;
    unsigned actor;
    cx_memory *memory;
    cx_arena arena;
    cx_uri last, before;
    uint64_t random;
    uint64_t raw_seq, snapshot_seq;
    bool has_last, has_before, has_raw, has_snapshot;
    cx_err err;
} writer;

static void must(const writer *w, cx_status status)
{
    if (cx_failed(status)) {
        (void)fprintf(stderr, "child: %s\n", w->err.message);
        _exit(9);
    }
}

static void say(const writer *w, ack a)
{
    a.actor = w->actor;
    if (write(w->c->pipe, &a, sizeof a) != (ssize_t)sizeof a)
        _exit(8);
}

static void write_new(writer *w)
{
    char text[STATEMENT_SIZE];
    ack a = {.act = ACT_WRITE, .number = atomic_fetch_add(&w->c->numbers, 1), .version = 1};
    make_text(a.number, text);
    w->before = w->last;
    w->has_before = w->has_last;
    must(w, kit_write(w->memory, text, &w->last, &w->err));
    w->has_last = true;
    a.id = w->last.id;
    say(w, a);
}

static void update(writer *w)
{
    char text[STATEMENT_SIZE];
    ack a = {.act = ACT_WRITE, .number = atomic_fetch_add(&w->c->numbers, 1)};
    make_text(a.number, text);
    must(w, kit_update(w->memory, &w->last, text, &w->last, &w->err));
    a.id = w->last.id;
    a.version = w->last.version;
    say(w, a);
}

static void change_head(writer *w)
{
    const cx_head_patch patch = {.set_importance = true,
                                 .importance = (uint8_t)(cx_test_random(&w->random) % 11)};
    must(w, cx_memory_update_head(w->memory, &w->last, &patch, &w->err));
}

static void join(writer *w)
{
    ack a = {.act = ACT_EDGE, .id = w->last.id, .other = w->before.id};
    const cx_edge_name name = {w->last.id, 2, w->before.id};
    const cx_bytes none = {NULL, 0};
    bool written;
    must(w,
         cx_memory_add_edge(w->memory, &name, CX_STR("me"), 0.25f, none, false, &written, &w->err));
    say(w, a);
}

static void raw(writer *w)
{
    char text[STATEMENT_SIZE] = {0};
    ack a = {.act = ACT_RAW, .number = atomic_fetch_add(&w->c->numbers, 1)};
    make_text(a.number, text);
    must(w, cx_memory_raw(w->memory, CX_STR("trace.received"), cx_bytes_from(text, sizeof text),
                          true, CX_STR("me"), &a.seq, &w->err));
    w->raw_seq = a.seq;
    w->has_raw = true;
    say(w, a);
}

static void redact(writer *w)
{
    ack a = {.act = ACT_REDACT, .seq = w->raw_seq};
    must(w, cx_memory_redact(w->memory, w->raw_seq, CX_STR("asked"), CX_STR("me"), &w->err));
    w->has_raw = false;
    say(w, a);
}

static void attest(writer *w)
{
    char intent[32];
    ack a = {.act = ACT_ATTEST, .number = atomic_fetch_add(&w->c->numbers, 1)};
    cx_memory_attested done;
    cx_buf uri;
    (void)snprintf(intent, sizeof intent, "i%llu", (unsigned long long)a.number);
    cx_buf_init(&uri, cx_alloc_default());
    cx_uri_add(&w->last, &uri);
    const cx_str cited = cx_buf_str(&uri);
    const cx_memory_attest what = {.intent = cx_str_z(intent), .cited = &cited, .cited_count = 1};
    must(w, cx_memory_attest_outcome(w->memory, &what, &done, &w->err));
    cx_buf_done(&uri);
    a.seq = done.seq;
    say(w, a);
}

static void snapshot(writer *w)
{
    cx_manifest manifest;
    cx_arena_mark mark = cx_arena_mark_now(&w->arena);
    const cx_memory_options options = kit_memory_options(&w->c->source);
    must(w, cx_snapshot_make(w->c->home, cx_str_z(actors[w->actor]), CX_STR("periodic"),
                             options.now_ns(options.now_arg), &w->arena, &manifest, &w->err));
    w->snapshot_seq = manifest.snapshot_seq;
    w->has_snapshot = true;
    say(w, (ack){.act = ACT_SNAPSHOT, .seq = manifest.snapshot_seq, .root = manifest.overall_root});
    cx_arena_reset(&w->arena, mark);
}

static void drop(writer *w)
{
    const cx_memory_options options = kit_memory_options(&w->c->source);
    must(w, cx_snapshot_drop(w->c->home, cx_str_z(actors[w->actor]), w->snapshot_seq, CX_STR("me"),
                             options.now_ns(options.now_arg), &w->err));
    w->has_snapshot = false;
    say(w, (ack){.act = ACT_DROP, .seq = w->snapshot_seq});
}

static void write_on(void *arg, unsigned index)
{
    child *c = arg;
    writer w = {.c = c, .actor = index % ACTORS, .memory = c->memories[index % ACTORS]};
    w.random = c->seed + index * 977;
    cx_arena_init(&w.arena, cx_alloc_default(), 0);
    for (;;) {
        uint64_t dice = cx_test_random(&w.random) % 100;
        if (!w.has_last || dice < 25)
            write_new(&w);
        else if (dice < 45)
            update(&w);
        else if (dice < 55)
            change_head(&w);
        else if (dice < 65 && w.has_before)
            join(&w);
        else if (dice < 75)
            raw(&w);
        else if (dice < 79 && w.has_raw)
            redact(&w);
        else if (dice < 89)
            attest(&w);
        else if (dice < 95)
            snapshot(&w);
        else if (w.has_snapshot)
            drop(&w);
    }
}

static void run_child(const char *path, uint64_t seed, uint64_t round, int pipe_end)
{
    child *c = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *c);
    const cx_home_options options = kit_options();
    cx_err err;
    if (c == NULL)
        _exit(2);
    c->pipe = pipe_end;
    c->seed = seed;
    kit_source_init(&c->source, round + 1);
    atomic_init(&c->numbers, round << 32);
    const cx_memory_options own = kit_memory_options(&c->source);
    if (cx_failed(cx_home_open(path, &options, &c->home, &err))) {
        (void)fprintf(stderr, "child: %s\n", err.message);
        _exit(3);
    }
    for (unsigned i = 0; i < ACTORS; i++)
        if (cx_failed(cx_memory_open(c->home, cx_str_z(actors[i]), &own, &c->memories[i], &err)))
            _exit(4);
    const ack ready = {.act = ACT_READY};
    if (write(pipe_end, &ready, sizeof ready) != (ssize_t)sizeof ready)
        _exit(5);
    cx_thread_team(WRITERS, write_on, c);
    _exit(6);
}

/* --- the one that looks afterwards ------------------------------------------------------------ */

typedef struct watcher {
    char path[FOLDER_PATH_SIZE];
    CX_VEC(ack) acks; /* of all rounds on this home */
    uint64_t seed;
    cx_home *home;
    cx_arena arena;
    cx_err err;
    uint64_t total;
} watcher;

static bool take_acks(watcher *w, int pipe_end)
{
    ack a;
    bool ready = false;
    while (read(pipe_end, &a, sizeof a) == (ssize_t)sizeof a) {
        if (a.act == ACT_READY) {
            ready = true;
            continue;
        }
        ack *slot = cx_vec_push(&w->acks, cx_alloc_default());
        CX_ASSERT(slot != NULL);
        *slot = a;
        w->total++;
    }
    (void)close(pipe_end);
    return ready;
}

static bool bad(const ack *a, const char *what)
{
    cx_test_fail(__FILE__, __LINE__, "actor %u, act %u, seq %llu, number %llu: %s", a->actor,
                 a->act, (unsigned long long)a->seq, (unsigned long long)a->number, what);
    return false;
}

static bool check_version(watcher *w, cx_memory *memory, const ack *a)
{
    char text[STATEMENT_SIZE];
    cx_memory_view view;
    cx_uri uri = {.type = CX_TYPE_FACT, .id = a->id, .version = a->version};
    cx_data data;
    make_text(a->number, text);
    if (cx_failed(cx_memory_resolve(memory, &uri, &w->arena, &view, &w->err)))
        return bad(a, w->err.message);
    if (cx_failed(cx_data_decode(CX_TYPE_FACT, view.version.data.bytes, &w->arena, &data, &w->err)))
        return bad(a, w->err.message);
    return cx_str_is(data.as.fact.statement, text) ? true : bad(a, "it says something else");
}

static bool redacted_later(const watcher *w, const ack *a)
{
    for (size_t i = 0; i < w->acks.count; i++)
        if (w->acks.items[i].act == ACT_REDACT && w->acks.items[i].actor == a->actor &&
            w->acks.items[i].seq == a->seq)
            return true;
    return false;
}

/* A redaction that was not acknowledged may have come to the journal all the same. */
static bool check_raw(watcher *w, const ack *a)
{
    char text[STATEMENT_SIZE] = {0};
    cx_entry_view view;
    make_text(a->number, text);
    if (cx_failed(
            cx_home_entry(w->home, cx_str_z(actors[a->actor]), a->seq, &w->arena, &view, &w->err)))
        return bad(a, w->err.message);
    if (!cx_str_is(view.entry.kind, "trace.received") || !view.entry.committed)
        return bad(a, "it is another entry");
    cx_digest commitment;
    if (view.payload_erased) {
        if (a->act == ACT_RAW && kit_contains(w->path, text, strlen(text)))
            return bad(a, "its payload was destroyed and is there all the same");
        return true;
    }
    if (a->act == ACT_REDACT || redacted_later(w, a))
        return bad(a, "its payload was redacted and is there");
    commitment = cx_scheme_payload_commitment(view.salt, view.payload);
    return view.payload.size == sizeof text && memcmp(view.payload.data, text, sizeof text) == 0 &&
                   cx_digest_eq(&commitment, &view.entry.commitment)
               ? true
               : bad(a, "its payload is another one");
}

static bool check_kind(watcher *w, const ack *a, uint64_t seq, const char *kind)
{
    cx_entry_view view;
    if (cx_failed(
            cx_home_entry(w->home, cx_str_z(actors[a->actor]), seq, &w->arena, &view, &w->err)))
        return bad(a, w->err.message);
    return cx_str_is(view.entry.kind, kind) ? true : bad(a, "it is another entry");
}

static bool check_snapshot(watcher *w, const ack *a)
{
    cx_manifest manifest;
    cx_status status = cx_snapshot_get(w->home, cx_str_z(actors[a->actor]), a->seq, &w->arena,
                                       &manifest, NULL, &w->err);
    if (a->act == ACT_DROP)
        return status.code == CX_E_NOT_FOUND ? true : bad(a, "a dropped snapshot is there");
    if (status.code == CX_E_NOT_FOUND) /* dropped, acknowledged or not */
        return true;
    if (cx_failed(status))
        return bad(a, w->err.message);
    return cx_digest_eq(&manifest.overall_root, &a->root) ? true : bad(a, "it has another root");
}

static bool check_edge(watcher *w, cx_memory *memory, const ack *a)
{
    const cx_edge_view *edges;
    size_t count;
    if (cx_failed(cx_memory_edges(memory, &a->id, false, 2, false, 100, &w->arena, &edges, &count,
                                  &w->err)))
        return bad(a, w->err.message);
    for (size_t i = 0; i < count; i++)
        if (memcmp(edges[i].edge.dst.bytes, a->other.bytes, 16) == 0)
            return true;
    return bad(a, "the edge is not there");
}

static bool check_ack(watcher *w, cx_memory *const *memories, const ack *a)
{
    switch ((act)a->act) {
    case ACT_READY: return true;
    case ACT_WRITE: return check_version(w, memories[a->actor], a);
    case ACT_RAW:
    case ACT_REDACT: return check_raw(w, a);
    case ACT_ATTEST:
        return check_kind(w, a, a->seq, "attest") && check_kind(w, a, a->seq + 1, "learn_weights");
    case ACT_SNAPSHOT:
    case ACT_DROP: return check_snapshot(w, a);
    case ACT_EDGE: return check_edge(w, memories[a->actor], a);
    }
    return false;
}

/* An attest is followed by its learn_weights, also where no call had returned. */
static bool check_pairs(watcher *w, cx_str actor)
{
    cx_actor_info info;
    cx_status status = cx_home_actor(w->home, actor, &info, &w->err);
    if (status.code == CX_E_NOT_FOUND)
        return true;
    bool waiting = false;
    for (uint64_t seq = 0; seq < info.entry_count; seq++) {
        cx_entry_view view;
        cx_arena_mark mark = cx_arena_mark_now(&w->arena);
        CHECK_STATUS(cx_home_entry(w->home, actor, seq, &w->arena, &view, &w->err), &w->err);
        bool learns = cx_str_is(view.entry.kind, "learn_weights");
        if (waiting != learns) {
            cx_test_fail(__FILE__, __LINE__, "seq %llu: half of a call", (unsigned long long)seq);
            return false;
        }
        waiting = cx_str_is(view.entry.kind, "attest");
        cx_arena_reset(&w->arena, mark);
    }
    CHECK(!waiting);
    return !waiting;
}

static bool look_inside(watcher *w, cx_digest out_roots[ACTORS])
{
    const cx_home_options options = kit_options();
    cx_memory *memories[ACTORS] = {NULL};
    bool good = true;
    cx_arena_init(&w->arena, cx_alloc_default(), 0);
    if (cx_failed(cx_home_open(w->path, &options, &w->home, &w->err))) {
        cx_test_fail(__FILE__, __LINE__, "opening again: %s", w->err.message);
        cx_arena_done(&w->arena);
        return false;
    }
    for (unsigned i = 0; i < ACTORS; i++) {
        cx_roots roots = {0};
        cx_status status = cx_home_roots(w->home, cx_str_z(actors[i]), &roots, &w->err);
        CHECK(!cx_failed(status) || status.code == CX_E_NOT_FOUND);
        out_roots[i] = roots.overall;
        CHECK_STATUS(cx_memory_open(w->home, cx_str_z(actors[i]), NULL, &memories[i], &w->err),
                     &w->err);
        good = good && check_pairs(w, cx_str_z(actors[i]));
    }
    for (size_t i = 0; good && i < w->acks.count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&w->arena);
        good = check_ack(w, memories, &w->acks.items[i]);
        cx_arena_reset(&w->arena, mark);
    }
    for (unsigned i = 0; i < ACTORS; i++)
        cx_memory_close(memories[i]);
    CHECK_STATUS(cx_home_close(w->home, &w->err), &w->err);
    w->home = NULL;
    cx_arena_done(&w->arena);
    return good;
}

/* As it was left, as it opens again, and as the log alone gives it. */
static bool check_home(watcher *w)
{
    cx_digest before[ACTORS], after[ACTORS];
    kit_verdict left, now;
    if (!CHECK_HOLDS(w->path, false, &left) || !look_inside(w, before) ||
        !CHECK_HOLDS(w->path, true, &now))
        return false;
    CHECK(cx_digest_eq(&left.overall, &now.overall));
    CHECK_INT(left.entries, now.entries);
    cx_buf rows, again;
    cx_buf_init(&rows, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    CHECK(kit_rows(w->path, &rows));
    kit_remove_tables(w->path);
    bool good = look_inside(w, after) && memcmp(before, after, sizeof before) == 0;
    CHECK(kit_rows(w->path, &again));
    CHECK(cx_str_eq(cx_buf_str(&rows), cx_buf_str(&again)));
    cx_buf_done(&rows);
    cx_buf_done(&again);
    return good;
}

static void pause_us(uint64_t us)
{
    struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&time, NULL);
}

static bool kill_one(watcher *w, uint64_t round)
{
    int ends[2], status = 0;
    CX_ASSERT(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        run_child(w->path, w->seed, round, ends[1]);
    }
    (void)close(ends[1]);
    pause_us(5000 + cx_test_random(&w->seed) % 250000);
    CHECK_INT(kill(pid, SIGKILL), 0);
    (void)take_acks(w, ends[0]);
    bool killed = waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
    if (!killed)
        cx_test_fail(__FILE__, __LINE__, "the writer ended by itself with %d", WEXITSTATUS(status));
    return killed;
}

static void new_home(watcher *w)
{
    const cx_home_options options = kit_options();
    folder_remove(w->path);
    w->acks.count = 0;
    CHECK_STATUS(cx_home_create(w->path, CX_SCHEME_CORTEX_1, &options, &w->err), &w->err);
}

static uint64_t rounds_wanted(void)
{
    const char *given = getenv("CORTEX_CRASH_ROUNDS");
    return given != NULL ? strtoull(given, NULL, 10) : 20;
}

CX_TEST(home_killed_at_any_moment_keeps_what_it_promised)
{
    uint64_t rounds = rounds_wanted();
    watcher *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    REQUIRE(w != NULL);
    w->seed = cx_test_seed();
    folder_fresh(w->path, "home_kill");
    for (uint64_t round = 0; round < rounds; round++) {
        /* A home grows with the rounds, and is read through several times each. */
        if (round % 5 == 0)
            new_home(w);
        if (!kill_one(w, round) || !check_home(w)) {
            cx_test_fail(__FILE__, __LINE__, "round %llu of seed %llu", (unsigned long long)round,
                         (unsigned long long)cx_test_seed());
            break;
        }
    }
    (void)printf("%llu rounds, %llu acknowledged calls\n", (unsigned long long)rounds,
                 (unsigned long long)w->total);
    CHECK(w->total > rounds);
    folder_remove(w->path);
    cx_vec_done(&w->acks, cx_alloc_default());
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

/* --- killed while it rebuilds the tables ------------------------------------------------------ */

static void fill_much(kit *k, unsigned count)
{
    char text[STATEMENT_SIZE];
    cx_uri uri;
    kit_fill(k);
    for (unsigned i = 0; i < count; i++) {
        make_text(i, text);
        CHECK_STATUS(kit_write(k->memory, text, &uri, &k->err), &k->err);
    }
}

static void rebuild_in_child(const char *path, const cx_home_options *options)
{
    cx_rebuild_result result;
    cx_err err;
    _exit(cx_failed(cx_home_rebuild(path, options, CX_REBUILD, &result, &err)) ? 3 : 0);
}

/* Whatever was killed, the next one continues, and the rows are the same. */
static void kill_rebuilds(kit *k, const cx_home_options *options)
{
    uint64_t rounds = rounds_wanted(), seed = cx_test_seed(), killed = 0;
    cx_buf before, after;
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    CHECK(kit_rows(k->path, &before));
    for (uint64_t round = 0; round < rounds; round++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            rebuild_in_child(k->path, options);
        pause_us(cx_test_random(&seed) % 120000);
        (void)kill(pid, SIGKILL);
        CHECK(waitpid(pid, &status, 0) == pid);
        killed += WIFSIGNALED(status) ? 1 : 0;
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        cx_buf_clear(&after);
        CHECK(kit_rows(k->path, &after));
        if (!cx_str_eq(cx_buf_str(&before), cx_buf_str(&after))) {
            cx_test_fail(__FILE__, __LINE__, "other tables after round %llu of seed %llu",
                         (unsigned long long)round, (unsigned long long)cx_test_seed());
            break;
        }
    }
    CHECK(killed != 0);
    cx_rebuild_result result;
    CHECK_STATUS(cx_home_rebuild(k->path, options, CX_REBUILD, &result, &k->err), &k->err);
    CHECK(!result.changed);
    cx_buf_clear(&after);
    CHECK(kit_rows(k->path, &after) && cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
    (void)CHECK_HOLDS(k->path, true, NULL);
    cx_buf_done(&before);
    cx_buf_done(&after);
}

CX_TEST(home_rebuild_killed_leaves_the_old_tables)
{
    const cx_home_options options = kit_options();
    kit k;
    REQUIRE(kit_init(&k, "rebuild_kill", CX_SCHEME_CORTEX_1));
    fill_much(&k, 300);
    kit_close(&k);
    kill_rebuilds(&k, &options);
    kit_done(&k);
}

static void append_to(kit *k, const char *actor)
{
    cx_txn *txn;
    const cx_entry_draft draft = {
        .kind = CX_STR("raw"), .created_at_ns = 1, .payload = cx_str_bytes(CX_STR("a payload"))};
    CHECK_STATUS(cx_txn_begin(k->home, cx_str_z(actor), &txn, &k->err), &k->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &k->err), &k->err);
    CHECK_STATUS(cx_txn_commit(txn, &k->err), &k->err);
}

/* Snapshots between changes of the same memories; actors enough for many flushes. */
static void fill_with_snapshots(kit *k)
{
    enum { MEMORIES = 40, TURNS = 200 };
    static const char *const others[] = {"a", "b", "c", "d"};
    char text[STATEMENT_SIZE];
    cx_uri uris[MEMORIES];
    kit_fill(k);
    for (unsigned i = 0; i < TURNS; i++) {
        cx_uri *uri = &uris[i * 7 % MEMORIES];
        make_text(i, text);
        CHECK_STATUS(i < MEMORIES ? kit_write(k->memory, text, uri, &k->err)
                                  : kit_update(k->memory, uri, text, uri, &k->err),
                     &k->err);
        append_to(k, others[i % CX_COUNT_OF(others)]);
        if (i % 12 != 5)
            continue;
        cx_manifest made;
        CHECK_STATUS(cx_snapshot_make(k->home, KIT_ACTOR, CX_STR("periodic"), (int64_t)i, &k->arena,
                                      &made, &k->err),
                     &k->err);
        if (i % 36 == 17)
            CHECK_STATUS(cx_snapshot_drop(k->home, KIT_ACTOR, made.snapshot_seq - 1, CX_STR("me"),
                                          (int64_t)i, &k->err),
                         &k->err);
    }
}

CX_TEST(home_rebuild_with_snapshots_killed_continues)
{
    cx_home_options options = kit_options();
    kit k;
    options.actor_limit = 3; /* a flush for every three that changed */
    REQUIRE(kit_init(&k, "rebuild_snapshots", CX_SCHEME_CORTEX_1));
    fill_with_snapshots(&k);
    kit_close(&k);
    kill_rebuilds(&k, &options);
    kit_done(&k);
}

/* --- killed while it destroys ----------------------------------------------------------------- */

#define SECRET "ThePayloadThatMustBeGoneAfterwards"

/* Tells each erasure before it begins; returns never. */
static void erase_in_child(const char *path, const uint64_t *seqs, const cx_uri *uris,
                           unsigned count, int pipe_end)
{
    const cx_home_options options = kit_options();
    cx_home *home;
    cx_memory *memory;
    cx_err err;
    if (cx_failed(cx_home_open(path, &options, &home, &err)) ||
        cx_failed(cx_memory_open(home, KIT_ACTOR, NULL, &memory, &err)))
        _exit(3);
    for (uint32_t i = 0; i < count; i++) {
        if (cx_failed(cx_memory_redact(memory, seqs[i], CX_STR("asked"), CX_STR("me"), &err)) ||
            cx_failed(
                cx_memory_redact_memory(memory, &uris[i], CX_STR("asked"), CX_STR("me"), &err)))
            _exit(4);
        if (write(pipe_end, &i, sizeof i) != (ssize_t)sizeof i)
            _exit(5);
    }
    _exit(0);
}

enum { SECRETS = 12 };

static void make_secrets(kit *k, uint64_t *seqs, cx_uri *uris)
{
    char text[STATEMENT_SIZE];
    fill_much(k, 250);
    for (unsigned i = 0; i < SECRETS; i++) {
        (void)snprintf(text, sizeof text, SECRET "%02uraw", i);
        CHECK_STATUS(cx_memory_raw(k->memory, CX_STR("trace.received"),
                                   cx_str_bytes(cx_str_z(text)), true, CX_STR("me"), &seqs[i],
                                   &k->err),
                     &k->err);
        (void)snprintf(text, sizeof text, SECRET "%02umem", i);
        CHECK_STATUS(kit_write(k->memory, text, &uris[i], &k->err), &k->err);
        CHECK_STATUS(kit_update(k->memory, &uris[i], text, &uris[i], &k->err), &k->err);
        if (i % 4 == 0) {
            cx_manifest manifest;
            CHECK_STATUS(cx_snapshot_make(k->home, KIT_ACTOR, CX_STR("explicit"), 5, &k->arena,
                                          &manifest, &k->err),
                         &k->err);
        }
    }
}

/* Every secret whose redaction is in the journal is in no file. */
static void check_gone(kit *k, const uint64_t *seqs, const cx_uri *uris, uint32_t acked)
{
    REQUIRE(kit_open(k));
    for (uint32_t i = 0; i < SECRETS; i++) {
        char text[STATEMENT_SIZE];
        cx_entry_view entry;
        cx_memory_view view;
        CHECK_STATUS(cx_home_entry(k->home, KIT_ACTOR, seqs[i], &k->arena, &entry, &k->err),
                     &k->err);
        CHECK_STATUS(cx_memory_resolve_latest(k->memory, &uris[i].id, &k->arena, &view, &k->err),
                     &k->err);
        CHECK(i >= acked || (entry.payload_erased && view.version.erased));
        (void)snprintf(text, sizeof text, SECRET "%02uraw", i);
        CHECK(kit_contains(k->path, text, strlen(text)) == !entry.payload_erased);
        (void)snprintf(text, sizeof text, SECRET "%02umem", i);
        CHECK(kit_contains(k->path, text, strlen(text)) == !view.version.erased);
    }
    kit_close(k);
}

CX_TEST(home_erasure_killed_is_finished_afterwards)
{
    uint64_t rounds = rounds_wanted() / 2 + 1, seed = cx_test_seed();
    for (uint64_t round = 0; round < rounds; round++) {
        kit k;
        uint64_t seqs[SECRETS];
        cx_uri uris[SECRETS];
        int ends[2], status;
        uint32_t acked = 0, last;
        REQUIRE(kit_init(&k, "erase_kill", CX_SCHEME_CORTEX_1));
        make_secrets(&k, seqs, uris);
        kit_close(&k);
        REQUIRE(pipe(ends) == 0);
        pid_t pid = fork();
        if (pid == 0)
            erase_in_child(k.path, seqs, uris, SECRETS, ends[1]);
        (void)close(ends[1]);
        pause_us(5000 + cx_test_random(&seed) % 100000);
        (void)kill(pid, SIGKILL);
        while (read(ends[0], &last, sizeof last) == (ssize_t)sizeof last)
            acked = last + 1;
        (void)close(ends[0]);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        check_gone(&k, seqs, uris, acked);
        (void)CHECK_HOLDS(k.path, true, NULL);
        kit_done(&k);
    }
}
