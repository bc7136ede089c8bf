/*
 * bench_ledger_trees.c - the trees of the ledger: rows G3, G4, the hashing part of G5, G7, and the
 * journal tree.  The reference is always hashing alone, in the same run: the kernel
 * of row C1 (64-byte nodes in lanes), or a chain of single hashes where one needs the other.
 *
 * G7 and G7s are the MultiProof that the format prescribes, which holds each sibling once and a
 * number for each sibling of each key; its size follows from that.  G7c and G7b are our compact one
 * of the same keys, without the siblings that the keys lead to themselves.
 *
 * Ours hashes wide trees with up to four threads, the reference always with one.
 *
 * Ratios are of rates: a target of "at most 2 times as long" reads as 0.5.
 */
#include <string.h>

#include "bench/bench.h"
#include "base/diag.h"
#include "tree/mmr.h"
#include "proof/proof.h"
#include "tree/smt.h"

enum { MILLION = 1000000, BATCH = 4096, BATCH_COUNT = 40, SMALL_KEYS = 100000, PROOF_KEYS = 1000 };

#define MUST(expression) CX_ASSERT(!cx_failed(expression))

static void *memory(size_t size)
{
    void *block = malloc(size);
    CX_ASSERT(block != NULL);
    memset(block, 0, size);
    return block;
}

static cx_digest numbered(uint64_t number)
{
    return cx_digest_of(cx_bytes_from(&number, sizeof number));
}

/* --- the reference: bare hashing ------------------------------------------------------------- */

enum { KERNEL_NODES = 1 << 14 };

typedef struct kernel {
    uint8_t pairs[KERNEL_NODES * 64];
    cx_digest out[KERNEL_NODES];
} kernel;

static void hash_kernel(void *arg)
{
    kernel *k = arg;
    cx_digest_pairs(k->pairs, k->out, KERNEL_NODES);
}

/* --- G3 -------------------------------------------------------------------------------------- */

typedef struct state {
    cx_smt *smt;
    cx_smt_pair *pairs;   /* what it holds */
    cx_smt_pair *batches; /* BATCH_COUNT of them */
} state;

static void open_state(state *s)
{
    s->pairs = memory(MILLION * sizeof *s->pairs);
    s->batches = memory((size_t)BATCH_COUNT * BATCH * sizeof *s->batches);
    for (uint64_t i = 0; i < MILLION; i++)
        s->pairs[i] = (cx_smt_pair){numbered(i), numbered(~i)};
    MUST(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &s->smt, NULL));
    MUST(cx_smt_put_many(s->smt, s->pairs, MILLION, NULL));
}

/* Batches of keys that are there, with other values, or of keys that are not. */
static void fill_batches(state *s, bool present)
{
    for (size_t i = 0; i < (size_t)BATCH_COUNT * BATCH; i++) {
        const cx_digest *key = &s->pairs[(i * 7919 + 13) % MILLION].key;
        s->batches[i] = (cx_smt_pair){present ? *key : numbered(MILLION + i), numbered(i)};
    }
}

static void remove_batch(state *s, const cx_smt_pair *batch)
{
    bool was;
    cx_digest root;
    for (size_t i = 0; i < BATCH; i++)
        MUST(cx_smt_remove(s->smt, &batch[i].key, &was, NULL));
    MUST(cx_smt_root(s->smt, &root, NULL));
}

typedef struct insertion {
    cx_smt *smt;
    const cx_smt_pair *batch;
} insertion;

static void insert_batch(void *arg)
{
    const insertion *one = arg;
    cx_digest root;
    MUST(cx_smt_put_many(one->smt, one->batch, BATCH, NULL));
    MUST(cx_smt_root(one->smt, &root, NULL));
}

/* A batch's turn and the reference's take about as long: a busy machine interrupts both alike. */
enum { KERNEL_TIMES = 6 };

static bool bench_batches(state *s, kernel *k, bool present)
{
    double ours[BATCH_COUNT], theirs[BATCH_COUNT], wall = 0, cpu = 0, bare_wall = 0, bare_cpu = 0;
    cx_digest root;
    uint64_t hashes = 0;
    MUST(cx_smt_root(s->smt, &root, NULL));
    fill_batches(s, present);
    for (size_t i = 0; i < BATCH_COUNT; i++) {
        const cx_smt_pair *batch = s->batches + i * BATCH;
        bench_side reference = {.work = hash_kernel, .arg = k};
        theirs[i] = bench_turn(&reference, KERNEL_TIMES, &bare_wall, &bare_cpu);
        uint64_t before = cx_smt_hashes(s->smt);
        insertion one = {s->smt, batch};
        const bench_side side = {.work = insert_batch, .arg = &one};
        ours[i] = bench_turn(&side, 1, &wall, &cpu);
        hashes += cx_smt_hashes(s->smt) - before;
        if (!present)
            remove_batch(s, batch);
    }
    double per_batch = (double)hashes / BATCH_COUNT;
    bench_rate rate = bench_rate_of(ours, BATCH_COUNT, per_batch, cpu / wall);
    bench_rate bare = bench_rate_of(theirs, BATCH_COUNT, KERNEL_NODES, bare_cpu / bare_wall);
    bench_print_side("put_many + root", &rate, 1e6, "M hashes/s");
    bench_print_side("64-byte nodes in lanes", &bare, 1e6, "M hashes/s");
    printf("     %.3g M keys/s, %.1f hashes a key\n", rate.median / per_batch * BATCH / 1e6,
           per_batch / BATCH);
    return bench_print_row(present ? "G3" : "G3n",
                           present ? "batch of 4,096 new values into 1 M keys / kernel on one core"
                                   : "batch of 4,096 new keys into 1 M keys / kernel on one core",
                           &rate, &bare, 1e6, 0.3);
}

/* --- G5 -------------------------------------------------------------------------------------- */

static void load_million(void *arg)
{
    state *s = arg;
    cx_smt *smt;
    cx_digest root;
    MUST(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &smt, NULL));
    MUST(cx_smt_put_many(smt, s->pairs, MILLION, NULL));
    MUST(cx_smt_root(smt, &root, NULL));
    cx_smt_close(smt);
}

/* As a table's rows come: some thousands at a time. */
static void load_in_pieces(void *arg)
{
    state *s = arg;
    cx_smt *smt;
    cx_digest root;
    MUST(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &smt, NULL));
    MUST(cx_smt_reserve(smt, MILLION, NULL));
    for (size_t at = 0; at < MILLION; at += 8000)
        MUST(cx_smt_put_many(smt, s->pairs + at, 8000, NULL));
    MUST(cx_smt_root(smt, &root, NULL));
    cx_smt_close(smt);
}

static bool bench_load(state *s, kernel *k)
{
    bench_side sides[] = {
        {.name = "load at once + root", .work = load_million, .arg = s, .units = MILLION},
        {.name = "load in pieces + root", .work = load_in_pieces, .arg = s, .units = MILLION},
        {.name = "64-byte nodes in lanes",
         .work = hash_kernel,
         .arg = k,
         .units = KERNEL_NODES / 2.0}};
    bench_measure(sides, CX_COUNT_OF(sides));
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e6, "M keys/s");
    printf("     1 M keys in %.0f ms, %.1f bytes a key\n", MILLION / sides[0].rate.median * 1e3,
           (double)cx_smt_memory(s->smt) / (double)cx_smt_count(s->smt));
    printf("     (as grown by half when the batches came; 140 when loaded at once)\n");
    return bench_print_row("G5h", "1 M keys loaded, root / kernel on 2 M nodes, one core",
                           &sides[0].rate, &sides[2].rate, 1e6, 1 / 3.0);
}

/* --- G7 -------------------------------------------------------------------------------------- */

typedef struct proofs {
    state *s;
    cx_digest keys[PROOF_KEYS], roots[PROOF_KEYS];
    cx_arena arena, scratch;
    cx_arena_mark mark;
    const cx_smt_path *paths;
    cx_buf bytes;   /* of a MultiProof of all keys */
    cx_buf compact; /* the same, compact */
} proofs;

static void prove(void *arg)
{
    proofs *p = arg;
    cx_arena_reset(&p->arena, p->mark);
    MUST(cx_smt_prove(p->s->smt, p->keys, PROOF_KEYS, &p->arena, &p->paths, NULL));
}

/* As a verifier gets it: of each key the hash of its record. */
static void encode(proofs *p, bool compact, const cx_smt_path *paths, size_t count, cx_buf *out)
{
    cx_proof_item *items = memory(count * sizeof *items);
    cx_multiproof proof = {.scheme = CX_SCHEME_CORTEX_1,
                           .compact = compact,
                           .name_space = cx_namespace_name(CX_NAMESPACE_MEMORIES),
                           .count = count,
                           .items = items};
    for (size_t i = 0; i < count; i++)
        items[i] = (cx_proof_item){.path = paths[i], .kind = CX_MEMBER_ERASED};
    MUST(cx_smt_root(p->s->smt, &proof.root, NULL));
    MUST(cx_multiproof_encode(&proof, out, NULL));
    free(items);
}

static void verify_bytes(proofs *p, const cx_buf *bytes)
{
    cx_digest root;
    cx_finding finding;
    cx_arena_mark mark = cx_arena_mark_now(&p->scratch);
    MUST(cx_smt_root(p->s->smt, &root, NULL));
    const cx_multiproof_check check = {.name_space = CX_NAMESPACE_MEMORIES, .state_root = &root};
    MUST(cx_multiproof_verify(cx_buf_bytes(bytes), (cx_bytes){NULL, 0}, &check, &p->scratch, NULL,
                              &finding, NULL));
    CX_ASSERT(finding.verdict == CX_HOLDS);
    cx_arena_reset(&p->scratch, mark);
}

static void verify(void *arg)
{
    proofs *p = arg;
    verify_bytes(p, &p->bytes);
}

static void verify_compact(void *arg)
{
    proofs *p = arg;
    verify_bytes(p, &p->compact);
}

static bool print_size(const char *id, const char *what, size_t size, size_t reference)
{
    double ratio = (double)reference / (double)size;
    printf("%s bytes of 1,000 proofs / of one %sproof of 1,000 keys among 1 M: ours %zu,"
           " reference %zu, ratio %.2f (target 1.67): %s\n",
           id, what, size, reference, ratio, ratio >= 1 / 0.6 ? "ok" : "below");
    return ratio >= 1 / 0.6;
}

/* One MultiProof of all keys against a proof of each. */
static bool measure_size(proofs *p)
{
    cx_buf single;
    size_t all = 0;
    cx_buf_init(&single, cx_alloc_default());
    for (size_t i = 0; i < PROOF_KEYS; i++) {
        cx_buf_clear(&single);
        encode(p, false, &p->paths[i], 1, &single);
        all += single.size;
    }
    cx_buf_done(&single);
    bool good = print_size("G7s", "", p->bytes.size, all);
    return print_size("G7b", "compact ", p->compact.size, all) && good;
}

static void fold_one_by_one(void *arg)
{
    proofs *p = arg;
    for (size_t i = 0; i < PROOF_KEYS; i++)
        p->roots[i] = cx_smt_fold(CX_SCHEME_CORTEX_1, &p->paths[i]);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(cx_digest));
}

/* Leaves, and branches by their beginnings, of all paths together. */
static double distinct_nodes(proofs *p)
{
    double count = PROOF_KEYS;
    qsort(p->keys, PROOF_KEYS, sizeof *p->keys, by_bytes);
    prove(p);
    for (size_t i = 0; i < PROOF_KEYS; i++) {
        size_t shared = 0;
        while (
            i > 0 && shared < 256 &&
            ((p->keys[i].bytes[shared / 8] ^ p->keys[i - 1].bytes[shared / 8]) >> (7 - shared % 8) &
             1) == 0)
            shared++;
        /* Branches at depths 0..shared are the neighbour's too. */
        size_t own = p->paths[i].sibling_count;
        count += i == 0 ? (double)own : own > shared + 1 ? (double)(own - shared - 1) : 0;
    }
    return count;
}

static bool bench_proofs(state *s, kernel *k)
{
    proofs *p = memory(sizeof *p);
    p->s = s;
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    cx_arena_init(&p->scratch, cx_alloc_default(), 0);
    p->mark = cx_arena_mark_now(&p->arena);
    for (size_t i = 0; i < PROOF_KEYS; i++)
        p->keys[i] = s->pairs[(i * 7919 + 13) % MILLION].key;
    cx_buf_init(&p->bytes, cx_alloc_default());
    cx_buf_init(&p->compact, cx_alloc_default());
    double nodes = distinct_nodes(p);
    encode(p, false, p->paths, PROOF_KEYS, &p->bytes);
    encode(p, true, p->paths, PROOF_KEYS, &p->compact);
    bool good = measure_size(p);
    bench_side sides[] = {
        {.name = "verify, from its bytes", .work = verify, .arg = p, .units = nodes},
        {.name = "verify a compact one", .work = verify_compact, .arg = p, .units = nodes},
        {.name = "fold, one by one", .work = fold_one_by_one, .arg = p, .units = nodes},
        {.name = "prove", .work = prove, .arg = p, .units = nodes},
        {.name = "64-byte nodes in lanes", .work = hash_kernel, .arg = k, .units = KERNEL_NODES}};
    bench_measure(sides, CX_COUNT_OF(sides));
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e6, "M nodes/s");
    good &= bench_print_row("G7", "verify a proof of 1,000 keys among 1 M / kernel on its nodes",
                            &sides[0].rate, &sides[4].rate, 1e6, 0.4);
    good &= bench_print_row("G7c", "verify a compact proof of 1,000 keys among 1 M / kernel",
                            &sides[1].rate, &sides[4].rate, 1e6, 0.4);
    cx_buf_done(&p->bytes);
    cx_buf_done(&p->compact);
    cx_arena_done(&p->arena);
    cx_arena_done(&p->scratch);
    free(p);
    return good;
}

/* --- G4 -------------------------------------------------------------------------------------- */

typedef struct single {
    cx_smt *smt;
    uint64_t next;
    cx_digest acc;
} single;

static void update_one(void *arg)
{
    single *s = arg;
    cx_digest key = numbered(s->next * 7919 % SMALL_KEYS), value = numbered(s->next + 77), root;
    s->next++;
    MUST(cx_smt_put(s->smt, &key, &value, NULL));
    MUST(cx_smt_root(s->smt, &root, NULL));
}

static void hash_chain(void *arg)
{
    single *s = arg;
    for (size_t i = 0; i < 256; i++)
        s->acc = cx_scheme_smt_node(CX_SCHEME_MATRIX_1, &s->acc, &s->acc);
}

static bool bench_single(void)
{
    single s = {.next = 1};
    MUST(cx_smt_open(CX_SCHEME_MATRIX_1, cx_alloc_default(), &s.smt, NULL));
    double start = bench_seconds(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < SMALL_KEYS; i++) {
        cx_digest key = numbered(i);
        MUST(cx_smt_put(s.smt, &key, &key, NULL));
    }
    MUST(cx_smt_root(s.smt, &s.acc, NULL));
    double took = bench_seconds(CLOCK_MONOTONIC) - start;
    bench_side sides[] = {
        {.name = "put + root", .work = update_one, .arg = &s, .units = 1},
        {.name = "256 dependent node hashes", .work = hash_chain, .arg = &s, .units = 1}};
    bench_measure(sides, CX_COUNT_OF(sides));
    printf("     matrix-1, 100 k keys loaded one by one in %.0f ms, %.3g M hashes/s\n", took * 1e3,
           (double)SMALL_KEYS * 240 / took / 1e6);
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e3, "k/s");
    bool good = bench_print_row("G4", "matrix-1, one key among 100 k / 256 dependent hashes",
                                &sides[0].rate, &sides[1].rate, 1e3, 0.5);
    cx_smt_close(s.smt);
    return good;
}

/* --- the journal tree ------------------------------------------------------------------------ */

typedef struct journal {
    cx_mmr *mmr;
    cx_digest *leaves;
    cx_digest *nodes;
} journal;

static void whole_root(void *arg)
{
    journal *j = arg;
    cx_digest root;
    cx_mmr_truncate(j->mmr, 0);
    MUST(cx_mmr_append(j->mmr, j->leaves, MILLION, NULL));
    MUST(cx_mmr_root(j->mmr, MILLION, &root, NULL));
}

/* The levels of a tree as the kernel alone does them, with as many hashes. */
static void bare_levels(void *arg)
{
    journal *j = arg;
    cx_digest_pairs(j->leaves->bytes, j->nodes, MILLION / 2);
    cx_digest_pairs(j->leaves->bytes, j->nodes, MILLION / 2);
    for (size_t count = MILLION / 2; count > 1; count /= 2)
        cx_digest_pairs(j->nodes->bytes, j->nodes, count / 2);
}

/* A commit of `count` leaves on top of what is there; the size stays below two million. */
static void append(journal *j, size_t count)
{
    cx_digest root;
    if (cx_mmr_size(j->mmr) + count > 2 * MILLION)
        cx_mmr_truncate(j->mmr, MILLION);
    MUST(cx_mmr_append(j->mmr, j->leaves, count, NULL));
    MUST(cx_mmr_root(j->mmr, cx_mmr_size(j->mmr), &root, NULL));
}

static void append_1(void *arg)
{
    append(arg, 1);
}

static void append_16(void *arg)
{
    append(arg, 16);
}

static void append_256(void *arg)
{
    append(arg, 256);
}

static void bench_journal(void)
{
    journal j = {.leaves = memory(MILLION * sizeof(cx_digest)),
                 .nodes = memory(MILLION / 2 * sizeof(cx_digest))};
    MUST(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &j.mmr, NULL));
    for (uint64_t i = 0; i < MILLION; i++)
        j.leaves[i] = numbered(i);
    bench_side sides[] = {
        {.name = "root of 1 M leaves", .work = whole_root, .arg = &j, .units = MILLION},
        {.name = "bare levels", .work = bare_levels, .arg = &j, .units = MILLION}};
    bench_measure(sides, CX_COUNT_OF(sides));
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e6, "M leaves/s");
    printf("     1 M leaves in %.1f ms\n", MILLION / sides[0].rate.median * 1e3);
    (void)bench_print_row("M1", "Merkle root of 1 M leaves / kernel on 2 M nodes", &sides[0].rate,
                          &sides[1].rate, 1e6, 0);
    bench_side appends[] = {
        {.name = "append 1 + root", .work = append_1, .arg = &j, .units = 1},
        {.name = "append 16 + root", .work = append_16, .arg = &j, .units = 16},
        {.name = "append 256 + root", .work = append_256, .arg = &j, .units = 256}};
    bench_measure(appends, CX_COUNT_OF(appends));
    for (size_t i = 0; i < CX_COUNT_OF(appends); i++)
        bench_print_side(appends[i].name, &appends[i].rate, 1e3, "k leaves/s");
    cx_mmr_close(j.mmr);
    free(j.leaves);
    free(j.nodes);
}

int main(void)
{
    kernel *k = memory(sizeof *k);
    state s;
    bool good = true;
    printf("kernel %s\n", cx_digest_kernel_name(cx_digest_chosen()));
    open_state(&s);
    good &= bench_batches(&s, k, true);
    good &= bench_batches(&s, k, false);
    good &= bench_load(&s, k);
    good &= bench_proofs(&s, k);
    good &= bench_single();
    bench_journal();
    cx_smt_close(s.smt);
    free(s.pairs);
    free(s.batches);
    free(k);
    return good ? 0 : 1;
}
