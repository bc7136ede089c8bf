/*
 * bench_serve.c - rows T2 and T5: traces that come over HTTP, against the same intake in process.
 *
 *   T2  durable ingest of signed 10 KB traces in batches of 16, by several senders at once: a
 *       server in a process of its own, asked over loopback / cx_recorder_receive by as many
 *       threads as the server has workers.  Both on all cores, both with a feed that fills a SQLite
 *       index; new homes each turn.  The senders' cost is part of the HTTP side.
 *   T5  resident memory of that server before the first request, and after the load of each turn.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "recorder/recorder.h"
#include "tests/support/trace_maker.h"

enum { BATCHES = 160, BATCH_TRACES = 16, SENDERS = 8, AGENTS = 8, TURNS = 5 };

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        fprintf(stderr, "%s\n", err->message);
        abort();
    }
}

static void require(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_serve: %s\n", what);
        abort();
    }
}

/* --- traces ----------------------------------------------------------------------------------- */

static cx_buf batches[BATCHES];
static maker makers[AGENTS];

static void make_batches(void)
{
    for (size_t i = 0; i < AGENTS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "bench %zu", i);
        maker_init(&makers[i], name);
    }
    for (size_t i = 0; i < BATCHES; i++) {
        maker_options trace_options = MAKER_OPTIONS_INIT;
        cx_buf trace;
        trace_options.level = "full_traces";
        trace_options.rationale = "the request was checked against policy";
        trace_options.padding_bytes = 6800;
        cx_buf_init(&trace, cx_alloc_default());
        cx_buf_init(&batches[i], cx_alloc_default());
        maker_batch_begin(&batches[i]);
        for (size_t j = 0; j < BATCH_TRACES; j++) {
            cx_buf_clear(&trace);
            maker_trace(&makers[i % AGENTS], &trace_options, &trace);
            maker_batch_add(&batches[i], cx_buf_str(&trace));
        }
        maker_batch_end(&batches[i], "full_traces");
        if (i == 0)
            printf("     %d batches of %d traces of %zu bytes\n", BATCHES, BATCH_TRACES,
                   trace.size);
        cx_buf_done(&trace);
    }
}

/* --- homes ------------------------------------------------------------------------------------ */

typedef struct place {
    char path[256];
    cx_home *home;
    cx_recorder *recorder;
} place;

static void open_place(place *p)
{
    const cx_home_options options = {.derivers = &cx_recorder_deriver, .deriver_count = 1};
    static const cx_recorder_options plain;
    cx_err err;
    must(cx_home_open(p->path, &options, &p->home, &err), &err);
    must(cx_recorder_open(p->home, &plain, &p->recorder, &err), &err);
}

static void close_place(place *p)
{
    cx_err err;
    cx_recorder_close(p->recorder);
    must(cx_home_close(p->home, &err), &err);
}

/* A new home that trusts the agents; open. */
static void make_place(place *p, const char *folder, const char *name, unsigned turn)
{
    static const cx_home_options plain;
    cx_err err;
    bool added;
    (void)snprintf(p->path, sizeof p->path, "%s/%s-%u", folder, name, turn);
    must(cx_home_create(p->path, CX_SCHEME_CORTEX_1, &plain, &err), &err);
    open_place(p);
    for (size_t i = 0; i < AGENTS; i++) {
        const cx_trust_key key = maker_key(&makers[i]);
        must(cx_recorder_key_add(p->recorder, &key, &added, &err), &err);
    }
}

/* --- in process ------------------------------------------------------------------------------- */

typedef struct taking {
    cx_recorder *recorder;
    atomic_size_t next;
} taking;

static void take_some(void *arg, unsigned index)
{
    taking *t = arg;
    cx_arena arena;
    cx_err err;
    cx_buf answer;
    (void)index;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&answer, cx_alloc_default());
    cx_arena_mark empty = cx_arena_mark_now(&arena);
    for (size_t at; (at = atomic_fetch_add(&t->next, 1)) < BATCHES;) {
        cx_intake intake;
        must(cx_recorder_receive(t->recorder, cx_buf_bytes(&batches[at]), CX_CAPTURE_AUTHENTICATED,
                                 &arena, &intake, &err),
             &err);
        require(intake.accepted == BATCH_TRACES, "a batch was not taken in process");
        cx_buf_clear(&answer);
        must(cx_intake_json(&answer, &intake, &err), &err);
        cx_arena_reset(&arena, empty);
    }
    cx_buf_done(&answer);
    cx_arena_done(&arena);
}

static double in_process(const char *folder, unsigned turn)
{
    place p;
    cx_arena arena;
    cx_err err;
    make_place(&p, folder, "take", turn);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_recorder_feed_begin(p.recorder, cx_recorder_index_path(p.path, &arena), NULL, NULL,
                                &err),
         &err);
    taking t = {.recorder = p.recorder};
    double before = bench_seconds(CLOCK_MONOTONIC);
    cx_thread_team(SENDERS, take_some, &t);
    double took = bench_seconds(CLOCK_MONOTONIC) - before;
    cx_recorder_feed_end(p.recorder);
    close_place(&p);
    cx_arena_done(&arena);
    return took;
}

/* --- over HTTP -------------------------------------------------------------------------------- */

typedef struct server {
    pid_t process;
    unsigned port;
    char token[128];
} server;

static void start_server(server *s, const place *p)
{
    int ends[2];
    char line[1024], workers[16];
    size_t size = 0;
    (void)snprintf(workers, sizeof workers, "%d", SENDERS);
    require(pipe(ends) == 0, "no pipe");
    s->process = fork();
    require(s->process >= 0, "no process");
    if (s->process == 0) {
        (void)dup2(ends[1], 1);
        (void)close(ends[0]);
        (void)execl(CX_BENCH_CORTEX, CX_BENCH_CORTEX, "serve", "--home", p->path, "--listen",
                    "127.0.0.1:0", "--otlp", "off", "--workers", workers, "--json", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    for (ssize_t got; size < sizeof line - 1 && memchr(line, '\n', size) == NULL;
         size += (size_t)got)
        require((got = read(ends[0], line + size, sizeof line - 1 - size)) > 0, "it did not start");
    line[size] = 0;
    (void)close(ends[0]);
    const char *url = strstr(line, "http://127.0.0.1:");
    require(url != NULL, "it does not say where it listens");
    s->port = (unsigned)strtoul(url + 17, NULL, 10);
    (void)snprintf(line, sizeof line, "%s/token", p->path);
    FILE *file = fopen(line, "r");
    require(file != NULL && fgets(s->token, sizeof s->token, file) != NULL, "no token");
    (void)fclose(file);
    s->token[strcspn(s->token, "\n")] = 0;
}

static double memory_mb(const server *s)
{
    char path[64];
    unsigned long pages = 0, resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)s->process);
    FILE *file = fopen(path, "r");
    require(file != NULL && fscanf(file, "%lu %lu", &pages, &resident) == 2, "no statm");
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

typedef struct sending {
    const server *server;
    atomic_size_t next;
} sending;

static void write_all(int socket, const void *data, size_t size)
{
    for (const char *from = data; size > 0;) {
        ssize_t sent = send(socket, from, size, MSG_NOSIGNAL);
        require(sent > 0, "the connection was closed");
        from += sent;
        size -= (size_t)sent;
    }
}

/* The whole answer; its end is known from Content-Length. */
static void read_answer(int socket, char *text, size_t room)
{
    size_t size = 0, whole = 0;
    while (whole == 0 || size < whole) {
        ssize_t got = recv(socket, text + size, room - 1 - size, 0);
        require(got > 0, "the connection was closed");
        size += (size_t)got;
        text[size] = 0;
        const char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (end != NULL && length != NULL)
            whole = (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10);
    }
}

static void send_some(void *arg, unsigned index)
{
    sending *s = arg;
    static const size_t room = (size_t)1 << 20;
    char head[512], *text = malloc(room);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->server->port)};
    int socket_ = socket(AF_INET, SOCK_STREAM, 0);
    (void)index;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(text != NULL && connect(socket_, (struct sockaddr *)&to, sizeof to) == 0, "no way in");
    for (size_t at; (at = atomic_fetch_add(&s->next, 1)) < BATCHES;) {
        int size = snprintf(head, sizeof head,
                            "POST /api/v1/covenant/events HTTP/1.1\r\nHost: localhost\r\n"
                            "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n",
                            s->server->token, batches[at].size);
        write_all(socket_, head, (size_t)size);
        write_all(socket_, batches[at].data, batches[at].size);
        read_answer(socket_, text, room);
        if (strstr(text, "\"accepted\":16,") == NULL) {
            (void)fprintf(stderr, "%.3000s\n", text);
            require(false, "a batch was not taken");
        }
    }
    (void)close(socket_);
    free(text);
}

typedef struct memory {
    double before, after;
} memory;

static double over_http(const char *folder, unsigned turn, memory *out)
{
    place p;
    server s;
    int status;
    make_place(&p, folder, "serve", turn);
    close_place(&p);
    start_server(&s, &p);
    out->before = memory_mb(&s);
    sending all = {.server = &s};
    double before = bench_seconds(CLOCK_MONOTONIC);
    cx_thread_team(SENDERS, send_some, &all);
    double took = bench_seconds(CLOCK_MONOTONIC) - before;
    out->after = memory_mb(&s);
    (void)kill(s.process, SIGTERM);
    require(waitpid(s.process, &status, 0) == s.process && status == 0, "it did not end well");
    return took;
}

static void remove_folder(const char *folder)
{
    pid_t process = fork();
    if (process == 0) {
        (void)execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(process, NULL, 0);
}

/* --- the rows --------------------------------------------------------------------------------- */

int main(void)
{
    char folder[] = "bench-serve-XXXXXX"; /* not in /tmp, which may be no disk */
    double take[TURNS], serve[TURNS], most = 0, idle = 0;
    const double units = (double)BATCHES * BATCH_TRACES;
    require(mkdtemp(folder) != NULL, "no folder");
    make_batches();
    for (unsigned turn = 0; turn < TURNS; turn++) {
        memory used;
        take[turn] = in_process(folder, turn);
        serve[turn] = over_http(folder, turn, &used);
        idle = used.before > idle ? used.before : idle;
        most = used.after > most ? used.after : most;
    }
    const bench_rate in = bench_rate_of(take, TURNS, units, 0);
    const bench_rate http = bench_rate_of(serve, TURNS, units, 0);
    bench_print_side("in process", &in, 1, "traces/s");
    bench_print_side("over HTTP", &http, 1, "traces/s");
    bool good = bench_print_row("T2", "durable HTTP ingest / in process", &http, &in, 1, 0.6);
    printf("     memory of the server       idle %.1f MB, after the load %.1f MB\n", idle, most);
    printf("T5 memory of an idle server, 64 MB / used: ours %.1f, reference 64, ratio %.2f (target "
           "1): "
           "%s\n",
           idle, 64 / idle, idle < 64 ? "ok" : "below");
    remove_folder(folder);
    return good && idle < 64 ? 0 : 1;
}
