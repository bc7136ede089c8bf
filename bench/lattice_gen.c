/*
 * lattice_gen.c - see lattice_gen.h.  Nodes are about 420 bytes, like the recorder's of real
 * agents: a hashed event with a sentence in it, a small delta, two 64-digit hashes.
 */
#include "bench/lattice_gen.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "lattice/lattice.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define ID_SIZE 12

typedef struct tip {
    char hash[65];
    char id[ID_SIZE + 1];
    int64_t seq;
} tip;

static uint64_t scramble(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void write_event(cx_buf *out, uint32_t k, uint64_t dice)
{
    static const char *const verbs[] = {"search", "read", "write", "call", "plan", "check"};
    cx_buf_printf(out,
                  "{\"action\":\"%s\",\"step\":%u,\"reason\":\"looked at result %u of the "
                  "earlier query and took it\",\"score\":0.%03u}",
                  verbs[dice % 6], k, (unsigned)(dice >> 8 & 0xFFFF),
                  (unsigned)(dice >> 32) % 900 + 1);
}

static cx_status hash_node(cx_buf *scratch, const cx_lattice_fields *fields, char hash[65],
                           cx_err *err)
{
    cx_buf_clear(scratch);
    CX_TRY(cx_lattice_preimage(scratch, fields, err));
    cx_digest digest = cx_digest_of(cx_buf_bytes(scratch));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hash);
    hash[64] = 0;
    return CX_SUCCESS;
}

typedef struct generator {
    cx_buf out, event, scratch;
    cx_arena arena;
    cx_json_parser parser;
    cx_status (*emit)(void *arg, cx_bytes chunk, cx_err *err);
    void *arg;
} generator;

static void generator_init(generator *g)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_buf_init(&g->out, cx_alloc_default());
    cx_buf_init(&g->event, cx_alloc_default());
    cx_buf_init(&g->scratch, cx_alloc_default());
    cx_arena_init(&g->arena, cx_alloc_default(), 0);
    cx_json_parser_init(&g->parser, cx_alloc_default(), &limits);
}

static void generator_done(generator *g)
{
    cx_buf_done(&g->out);
    cx_buf_done(&g->event);
    cx_buf_done(&g->scratch);
    cx_arena_done(&g->arena);
    cx_json_parser_done(&g->parser);
}

static cx_status flush(generator *g, size_t at_least, cx_err *err)
{
    if (g->out.size < at_least || g->out.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_buf_check(&g->out, err));
    CX_TRY(g->emit(g->arg, cx_buf_bytes(&g->out), err));
    cx_buf_clear(&g->out);
    return CX_SUCCESS;
}

/* Writes one node whose event is in g->event; updates the hash in `to`. */
static cx_status write_node(generator *g, const char *id, const char *agent, int64_t seq,
                            uint32_t time, const char *delta, const char *prev,
                            const cx_str *parents, size_t parent_count, const char *fork_type,
                            char hash[65], cx_err *err)
{
    cx_json event;
    cx_arena_reset(&g->arena, (cx_arena_mark){0});
    CX_TRY(cx_json_parse(&g->parser, cx_buf_str(&g->event), &g->arena, &event, err));
    cx_lattice_fields fields = {.prev_hash = cx_str_z(prev),
                                .event = &event,
                                .seq = seq,
                                .agent_id = cx_str_z(agent),
                                .schema_version = CX_STR("2.0.0"),
                                .parents = parents,
                                .parent_count = parent_count};
    cx_buf_printf(&g->out,
                  "{\"node_id\":\"%s\",\"agent_id\":\"%s\",\"seq\":%lld,\"timestamp\":%u.25,"
                  "\"event\":",
                  id, agent, (long long)seq, time);
    cx_buf_add_str(&g->out, cx_buf_str(&g->event));
    cx_buf_printf(&g->out, ",\"state_delta\":%s,\"prev_hash\":\"%s\",\"hash\":\"", delta, prev);
    CX_TRY(hash_node(&g->scratch, &fields, hash, err));
    cx_buf_printf(&g->out, "%s\",\"parents\":[", hash);
    for (size_t i = 0; i < parent_count; i++)
        cx_buf_printf(&g->out, "%s\"%.*s\"", i == 0 ? "" : ",", (int)parents[i].size,
                      parents[i].data);
    cx_buf_add_z(&g->out, "],\"fork_type\":");
    cx_buf_printf(&g->out, fork_type == NULL ? "null}\n" : "\"%s\"}\n", fork_type);
    return flush(g, CHUNK_BYTES, err);
}

static cx_status generate_all(generator *g, const lattice_shape *shape, tip *tips, cx_err *err)
{
    static const char *const forks[] = {"natural", "observation", "injection"};
    char zeros[65] = {0};
    memset(zeros, '0', 64);
    for (uint32_t k = 0; k < shape->nodes; k++) {
        uint32_t a = k % shape->agents;
        uint64_t dice = scramble(k + 1);
        tip *own = &tips[a];
        tip before = *own;
        bool first = before.id[0] == 0;
        bool twig = !first && shape->fork_every != 0 && dice % shape->fork_every == 0;
        uint32_t other = (uint32_t)(dice >> 40) % shape->agents;
        bool merge = shape->merge_every != 0 && (dice >> 16) % shape->merge_every == 0 &&
                     other != a && tips[other].id[0] != 0;
        char id[ID_SIZE + 1], agent[24], delta[96];
        (void)snprintf(id, sizeof id, "n%07u", k);
        (void)snprintf(agent, sizeof agent, "agent_%u", a);
        (void)snprintf(delta, sizeof delta, "{\"memory\":{\"key_%u\":%u},\"beliefs\":{\"ok\":%s}}",
                       (unsigned)(dice >> 24) % shape->keys, k, dice & 64 ? "true" : "false");
        cx_str parents[2];
        size_t parent_count = 0;
        if (!first)
            parents[parent_count++] = cx_str_z(before.id);
        else if (k > 0)
            parents[parent_count++] = cx_str_z(tips[0].id);
        if (merge && parent_count == 1 && !first)
            parents[parent_count++] = cx_str_z(tips[other].id);
        const char *prev = first ? (k == 0 ? zeros : tips[0].hash) : before.hash;
        cx_buf_clear(&g->event);
        write_event(&g->event, k, dice);
        tip after = {.seq = first ? 0 : before.seq + 1};
        memcpy(after.id, id, sizeof id);
        CX_TRY(write_node(g, id, agent, after.seq, 1700000000u + k, delta, prev, parents,
                          parent_count,
                          first && k != 0 ? "natural"
                          : twig          ? forks[dice >> 3 & 1]
                                          : NULL,
                          after.hash, err));
        *own = after;
        if (!twig || k + 1 >= shape->nodes)
            continue;
        /* A second node of the same seq: a typed twig that goes nowhere. */
        k++;
        (void)snprintf(id, sizeof id, "n%07u", k);
        cx_buf_clear(&g->event);
        write_event(&g->event, k, scramble(dice));
        cx_str stem = cx_str_z(before.id);
        char hash[65];
        CX_TRY(write_node(g, id, agent, after.seq, 1700000000u + k, "{\"memory\":{\"twig\":1}}",
                          before.hash, &stem, 1, forks[dice >> 5 & 1], hash, err));
    }
    return flush(g, 0, err);
}

cx_status lattice_generate(const lattice_shape *shape,
                           cx_status (*emit)(void *arg, cx_bytes chunk, cx_err *err), void *arg,
                           cx_err *err)
{
    generator g = {.emit = emit, .arg = arg};
    tip *tips = cx_alloc_zeroed(cx_alloc_default(), shape->agents, sizeof *tips);
    if (tips == NULL)
        return cx_fail_nomem(err);
    generator_init(&g);
    cx_status status = generate_all(&g, shape, tips, err);
    generator_done(&g);
    cx_alloc_free(cx_alloc_default(), tips, shape->agents * sizeof *tips);
    return status;
}

cx_status lattice_generate_chain(uint32_t nodes,
                                 cx_status (*emit)(void *arg, cx_bytes chunk, cx_err *err),
                                 void *arg, cx_err *err)
{
    generator g = {.emit = emit, .arg = arg};
    char prev[65] = {0}, hash[65];
    memset(prev, '0', 64);
    generator_init(&g);
    cx_status status = CX_SUCCESS;
    for (uint32_t k = 0; k < nodes && !cx_failed(status); k++) {
        char id[16], parent[16];
        (void)snprintf(id, sizeof id, "c%u", k);
        (void)snprintf(parent, sizeof parent, "c%u", k - 1);
        cx_str parents[1] = {cx_str_z(parent)};
        cx_json event;
        cx_buf_clear(&g.event);
        cx_buf_printf(&g.event, "{\"i\":%u}", k);
        cx_arena_reset(&g.arena, (cx_arena_mark){0});
        status = cx_json_parse(&g.parser, cx_buf_str(&g.event), &g.arena, &event, err);
        cx_lattice_fields fields = {.prev_hash = cx_str_from(prev, 64),
                                    .event = &event,
                                    .seq = k,
                                    .agent_id = CX_STR("w"),
                                    .schema_version = CX_STR("2.0.0"),
                                    .parents = parents,
                                    .parent_count = k != 0};
        if (!cx_failed(status))
            status = hash_node(&g.scratch, &fields, hash, err);
        cx_buf_printf(&g.out,
                      "{\"node_id\":\"c%u\",\"agent_id\":\"w\",\"seq\":%u,\"timestamp\":%u,"
                      "\"event\":{\"i\":%u},\"state_delta\":{\"memory\":{\"k\":%u}},"
                      "\"prev_hash\":\"%.64s\",\"hash\":\"%.64s\",\"parents\":[",
                      k, k, k, k, k, prev, hash);
        cx_buf_printf(&g.out, k == 0 ? "]}\n" : "\"c%u\"]}\n", k - 1);
        memcpy(prev, hash, 64);
        if (!cx_failed(status))
            status = flush(&g, CHUNK_BYTES, err);
    }
    if (!cx_failed(status))
        status = flush(&g, 0, err);
    generator_done(&g);
    return status;
}
