/*
 * bench_lattice.c - L1 to L4: reading, judging and asking a lattice of a million nodes.
 *
 * bench_lattice [NODES [MODEL_NODES]]    default 1000000 and as many
 *
 *   L1  load + verify, one core, against bench/lattice_model.py on the same file: of fewer nodes,
 *       which lie better in caches, both make more a second
 *   L2  the same, against what cannot be left out: one scan of the bytes, and the hashes in lanes
 *   L3  two threads against one
 *   L4  answering the state of a random node, against writing that same state once more
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/proc.h"
#include "bench/bench.h"
#include "bench/lattice_gen.h"
#include "crypto/digest.h"
#include "lattice/record.h"

#define ASKED 4096 /* random nodes */
#define AGAIN 16   /* times a state is written once more */

typedef struct job {
    const char *path;
    unsigned threads;
} job;

static _Noreturn void give_up(const cx_err *err)
{
    fprintf(stderr, "bench_lattice: %s\n", err->message);
    exit(1);
}

static void load_and_verify(void *arg)
{
    const job *what = arg;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    options.threads = what->threads;
    if (cx_failed(cx_lattice_open(what->path, &options, &lattice, &err)) ||
        cx_failed(cx_lattice_verify(lattice, NULL, &report, &err)))
        give_up(&err);
    if (cx_lattice_report_verdict(report) != CX_HOLDS) {
        fprintf(stderr, "bench_lattice: the generated lattice does not hold\n");
        exit(1);
    }
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
}

/* --- the file --------------------------------------------------------------------------------- */

static cx_status emit_to_file(void *arg, cx_bytes chunk, cx_err *err)
{
    return fwrite(chunk.data, 1, chunk.size, arg) == chunk.size
               ? CX_SUCCESS
               : cx_fail(err, CX_E_IO, "cannot write the benchmark's file");
}

static void generate(const char *path, uint32_t nodes)
{
    lattice_shape shape = LATTICE_SHAPE_BENCH;
    cx_err err;
    FILE *file = fopen(path, "wb");
    shape.nodes = nodes;
    if (file == NULL || cx_failed(lattice_generate(&shape, emit_to_file, file, &err)) ||
        fclose(file) != 0) {
        fprintf(stderr, "bench_lattice: cannot write %s\n", path);
        exit(1);
    }
}

/* --- L1: the model in Python ------------------------------------------------------------------ */

/* Nodes a second of the model; 0 when there is no python3. */
static double model_rate(const char *path)
{
    const char *argv[] = {"python3", CX_BENCH_ROOT "/lattice_model.py", path, NULL};
    cx_proc_options options = {.argv = argv, .inherit_env = true, .timeout_ms = 600000};
    cx_proc_result result;
    cx_buf out;
    double rate = 0;
    cx_buf_init(&out, cx_alloc_default());
    if (!cx_failed(cx_proc_run(&options, &out, NULL, &result, NULL)) && result.exit_code == 0) {
        const char *text = cx_buf_z(&out), *comma = text == NULL ? NULL : strrchr(text, ',');
        if (comma != NULL && strstr(text, " 0 errors") != NULL)
            rate = (double)strtoul(comma + 1, NULL, 10);
    }
    cx_buf_done(&out);
    return rate;
}

/* They take turns: both slow down together.  A turn of the model takes half a minute, and what it
 * gives back may be the host's: a turn of ours that is not counted touches memory first. */
static bool measure_l1(const char *path, uint32_t nodes, const char *models)
{
    enum { L1_TURNS = 3 };
    const char *what = "load + verify, one core / a model in Python";
    double ours[L1_TURNS], model[L1_TURNS], wall = 0, cpu = 0;
    job one = {path, 1};
    bench_side side = {.work = load_and_verify, .arg = &one};
    (void)bench_turn(&side, 1, &wall, &cpu);
    for (size_t i = 0; i < L1_TURNS; i++) {
        double rate = model_rate(models);
        if (rate == 0) {
            bench_print_skipped("L1", what, 50, "no python3");
            return true;
        }
        model[i] = 1 / rate;
        (void)bench_turn(&side, 1, &wall, &cpu);
        ours[i] = bench_turn(&side, 1, &wall, &cpu) / nodes;
    }
    bench_rate reference = bench_rate_of(model, L1_TURNS, 1, 1);
    bench_rate rate = bench_rate_of(ours, L1_TURNS, 1, cpu / wall);
    bench_print_side("the model in Python", &reference, 1e3, "k nodes/s");
    return bench_print_row("L1", what, &rate, &reference, 1e3, 50);
}

/* --- L2: the floor ---------------------------------------------------------------------------- */

typedef struct floor_work {
    cx_buf bytes;
    batch b; /* holds all pre-images */
} floor_work;

static void prepare_floor(floor_work *work, const char *path)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_err err;
    cx_buf_init(&work->bytes, cx_alloc_default());
    if (cx_failed(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &work->bytes, &err)))
        give_up(&err);
    cx_lattice_batch_init(&work->b, cx_alloc_default(), 1, &limits);
    work->b.input = cx_buf_str(&work->bytes);
    for (size_t at = 0; at < work->bytes.size;) {
        cx_json value;
        size_t used;
        cx_str rest = {(const char *)work->bytes.data + at, work->bytes.size - at - 1};
        cx_arena_reset(&work->b.values, (cx_arena_mark){0});
        if (cx_failed(cx_json_parse_prefix(&work->b.parser, rest, true, &work->b.values, &value,
                                           &used, &err)) ||
            cx_failed(cx_lattice_batch_add(&work->b, &value, CX_STR("2.0.0"), at, 1, &err)))
            give_up(&err);
        at += used + 1;
    }
    if (cx_failed(cx_lattice_batch_digest(&work->b, &err))) /* makes the list of messages */
        give_up(&err);
}

static void scan_and_hash(void *arg)
{
    floor_work *work = arg;
    uint64_t lines = 0;
    const uint8_t *end = work->bytes.data + work->bytes.size;
    for (const uint8_t *at = work->bytes.data;
         at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        lines++;
    if (lines != work->b.drafts.count)
        abort();
    cx_digest_many(work->b.messages.items, work->b.digests.items, work->b.jobs.count);
}

/* --- L4: states ------------------------------------------------------------------------------- */

typedef struct asking {
    cx_states *states;
    cx_node nodes[ASKED];
    cx_buf out;
} asking;

static void answer_states(void *arg)
{
    asking *a = arg;
    for (size_t i = 0; i < ASKED; i++) {
        cx_buf_clear(&a->out);
        if (cx_failed(cx_states_write(a->states, a->nodes[i], false, &a->out, NULL)))
            abort();
    }
}

static void answer_again(void *arg)
{
    asking *a = arg;
    for (size_t i = 0; i < ASKED / AGAIN; i++) {
        for (size_t k = 0; k < AGAIN; k++) {
            cx_buf_clear(&a->out);
            if (cx_failed(cx_states_write(a->states, a->nodes[i], false, &a->out, NULL)))
                abort();
        }
    }
}

static void prepare_asking(asking *a, const cx_lattice *lattice)
{
    cx_err err;
    uint64_t dice = 1;
    double start = bench_seconds(CLOCK_MONOTONIC);
    if (cx_failed(cx_states_open(lattice, NULL, &a->states, &err)))
        give_up(&err);
    double took = bench_seconds(CLOCK_MONOTONIC) - start;
    uint32_t count = cx_lattice_count(lattice);
    printf("     states of all nodes: %.3g s, %.3g M nodes/s\n", took, count / took / 1e6);
    cx_buf_init(&a->out, cx_alloc_default());
    for (size_t i = 0; i < ASKED; i++) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        a->nodes[i] = (cx_node)((dice >> 33) % count);
    }
}

static bool measure_states(const char *path)
{
    static asking a;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_lattice *lattice;
    cx_err err;
    options.keep_deltas = true;
    if (cx_failed(cx_lattice_open(path, &options, &lattice, &err)))
        give_up(&err);
    prepare_asking(&a, lattice);
    bench_side sides[] = {
        {.name = "answer a state", .work = answer_states, .arg = &a, .units = ASKED},
        {.name = "write it once more", .work = answer_again, .arg = &a, .units = ASKED}};
    bench_measure(sides, 2);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e3, "k states/s");
    /* The target is on time, at most 3 times: on rates, at least a third. */
    bool good =
        bench_print_row("L4", "state of a random node / writing it once more (rate, 1/3 or more)",
                        &sides[0].rate, &sides[1].rate, 1e3, 1.0 / 3);
    cx_states_close(a.states);
    cx_lattice_close(lattice);
    cx_buf_done(&a.out);
    return good;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void print_peak(const char *path, uint32_t nodes)
{
    struct rusage usage;
    int state;
    (void)fflush(stdout);
    pid_t kid = fork();
    if (kid == 0) {
        job what = {path, 1};
        load_and_verify(&what);
        _exit(0);
    }
    if (kid < 0 || wait4(kid, &state, 0, &usage) != kid)
        return;
    printf("     peak memory of load + verify: %ld MB, %.0f bytes a node\n", usage.ru_maxrss / 1024,
           (double)usage.ru_maxrss * 1024 / nodes);
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    uint32_t model_nodes = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : nodes;
    char path[64], small[64];
    (void)snprintf(path, sizeof path, "/tmp/bench-lattice-%ld.jsonl", (long)getpid());
    (void)snprintf(small, sizeof small, "/tmp/bench-lattice-small-%ld.jsonl", (long)getpid());
    generate(path, nodes);
    if (model_nodes != nodes)
        generate(small, model_nodes);
    print_peak(path, nodes);

    static floor_work work;
    prepare_floor(&work, path);
    printf("     %u nodes, %.0f bytes each\n", nodes, (double)work.bytes.size / nodes);
    job one = {path, 1}, two = {path, 2};
    bench_side sides[] = {
        {.name = "load + verify, one thread", .work = load_and_verify, .arg = &one, .units = nodes},
        {.name = "load + verify, two threads",
         .work = load_and_verify,
         .arg = &two,
         .units = nodes},
        {.name = "scan + hash in lanes", .work = scan_and_hash, .arg = &work, .units = nodes}};
    bench_measure(sides, 3);
    for (size_t i = 0; i < 3; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e3, "k nodes/s");
    bool good = measure_l1(path, nodes, model_nodes != nodes ? small : path);
    good &= bench_print_row("L2", "load + verify / scan + hash in lanes", &sides[0].rate,
                            &sides[2].rate, 1e3, 0.15);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        bench_print_skipped("L3", "two threads / one", 1.5, "one core");
    else
        good &=
            bench_print_row("L3", "two threads / one", &sides[1].rate, &sides[0].rate, 1e3, 1.5);
    cx_lattice_batch_done(&work.b);
    cx_buf_done(&work.bytes);
    good &= measure_states(path);
    (void)unlink(path);
    if (model_nodes != nodes)
        (void)unlink(small);
    return good ? 0 : 1;
}
