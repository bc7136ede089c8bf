/*
 * lattice_text.c - small lattices for tests, built by the functions writers use.
 */
#include "tests/support/lattice_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/diag.h"
#include "crypto/digest.h"
#include "base/hex.h"

static void digest_hex(const cx_buf *preimage, char out[65])
{
    cx_digest digest = cx_digest_of(cx_buf_bytes(preimage));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), out);
    out[64] = 0;
}

static cx_json parse(cx_arena *arena, const char *text)
{
    cx_json value;
    cx_err err;
    cx_status status = cx_json_parse_text(cx_str_z(text), arena, &value, &err);
    CX_ASSERT(!cx_failed(status));
    return value;
}

/* The event, with its seal in front when wanted. */
static void write_event(cx_buf *out, const node_spec *spec, const char *delta, const char *time,
                        cx_arena *arena)
{
    const char *event = spec->event != NULL ? spec->event : "{}";
    if (!spec->sealed) {
        cx_buf_add_z(out, event);
        return;
    }
    cx_buf preimage;
    cx_err err;
    char seal[65];
    cx_json delta_value = parse(arena, delta), time_value = parse(arena, time);
    cx_str fork = spec->fork == NULL ? (cx_str){NULL, 0} : cx_str_z(spec->fork);
    cx_buf_init(&preimage, cx_alloc_default());
    cx_status status = cx_lattice_seal_preimage(&preimage, fork, &delta_value, &time_value, &err);
    CX_ASSERT(!cx_failed(status));
    digest_hex(&preimage, seal);
    cx_buf_done(&preimage);
    cx_buf_printf(out, "{\"__seal\":\"%s\"%s%s", seal, event[1] == '}' ? "" : ",", event + 1);
}

static void hash_node(const node_spec *spec, const cx_json *event, const char *prev, char out[65])
{
    cx_str parents[CX_COUNT_OF(spec->parents)];
    for (size_t i = 0; i < spec->parent_count; i++)
        parents[i] = cx_str_z(spec->parents[i]);
    cx_lattice_fields fields = {.prev_hash = cx_str_z(prev),
                                .event = event,
                                .seq = spec->seq,
                                .agent_id = cx_str_z(spec->agent != NULL ? spec->agent : "a"),
                                .schema_version =
                                    cx_str_z(spec->version != NULL ? spec->version : "2.0.0"),
                                .parents = parents,
                                .parent_count = spec->parent_count};
    cx_buf preimage;
    cx_err err;
    cx_buf_init(&preimage, cx_alloc_default());
    cx_status status = cx_lattice_preimage(&preimage, &fields, &err);
    CX_ASSERT(!cx_failed(status));
    digest_hex(&preimage, out);
    cx_buf_done(&preimage);
}

static void write_string(cx_buf *out, const char *text)
{
    cx_json_write_str(out, cx_str_z(text), CX_JSON_PY_COMPACT);
}

void lattice_text_node(cx_buf *out, const node_spec *spec, char *out_hash)
{
    cx_arena arena;
    cx_buf event_text;
    char seq[24], hash[65];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&event_text, cx_alloc_default());
    (void)snprintf(seq, sizeof seq, "%" PRId64, spec->seq);
    const char *time = spec->timestamp != NULL ? spec->timestamp : seq;
    const char *delta = spec->delta != NULL ? spec->delta : "{}";
    const char *prev = spec->prev != NULL ? spec->prev : ZEROS;
    write_event(&event_text, spec, delta, time, &arena);
    cx_json event = parse(&arena, cx_buf_z(&event_text));
    hash_node(spec, &event, prev, hash);
    if (out_hash != NULL)
        memcpy(out_hash, hash, sizeof hash);

    cx_buf_add_z(out, "{\"node_id\":");
    write_string(out, spec->id != NULL ? spec->id : hash);
    cx_buf_add_z(out, ",\"agent_id\":");
    write_string(out, spec->agent != NULL ? spec->agent : "a");
    cx_buf_printf(out, ",\"seq\":%s,\"timestamp\":%s,\"event\":%s,\"state_delta\":%s",
                  spec->seq_text != NULL ? spec->seq_text : seq, time, cx_buf_z(&event_text),
                  delta);
    cx_buf_add_z(out, ",\"prev_hash\":");
    write_string(out, prev);
    cx_buf_add_z(out, ",\"hash\":");
    write_string(out, spec->hash != NULL ? spec->hash : hash);
    for (size_t i = 0; i < spec->parent_count; i++) {
        cx_buf_add_z(out, i == 0 ? ",\"parents\":[" : ",");
        write_string(out, spec->parents[i]);
    }
    cx_buf_add_z(out, spec->parent_count != 0 ? "]" : spec->no_parents ? "" : ",\"parents\":[]");
    if (spec->fork != NULL) {
        cx_buf_add_z(out, ",\"fork_type\":");
        write_string(out, spec->fork);
    }
    if (spec->version != NULL) {
        cx_buf_add_z(out, ",\"schema_version\":");
        write_string(out, spec->version);
    }
    cx_buf_add_z(out, spec->extra != NULL ? spec->extra : "");
    cx_buf_add_byte(out, '}');
    cx_buf_done(&event_text);
    cx_arena_done(&arena);
}

void lattice_text_array(cx_buf *out, cx_str lines)
{
    size_t size = lines.size;
    cx_buf_add_byte(out, '[');
    while (size != 0 && lines.data[size - 1] == '\n')
        size--;
    for (size_t i = 0; i < size; i++) {
        if (lines.data[i] == '\n')
            cx_buf_add_byte(out, ',');
        cx_buf_add_byte(out, (uint8_t)lines.data[i]);
    }
    cx_buf_add_z(out, "]\n");
}

void lattice_text_wrapped(cx_buf *out, cx_str lines, const char *version, bool version_first)
{
    cx_buf_add_byte(out, '{');
    if (version != NULL && version_first)
        cx_buf_printf(out, "\"schema_version\":\"%s\",", version);
    cx_buf_add_z(out, "\"nodes\":");
    lattice_text_array(out, lines);
    if (version != NULL && !version_first)
        cx_buf_printf(out, ",\"schema_version\":\"%s\"", version);
    cx_buf_add_z(out, "}\n");
}

void lattice_text_sealed(cx_buf *out, unsigned steps)
{
    char head[2][65] = {ZEROS, ZEROS}, event[64], delta[96], hash[65];
    for (unsigned i = 0; i < steps; i++) {
        unsigned who = i % 2;
        node_spec spec = {.agent = who == 0 ? "left" : "right",
                          .seq = i / 2,
                          .event = event,
                          .delta = delta,
                          .prev = head[who],
                          .sealed = true};
        char time[24];
        (void)snprintf(time, sizeof time, "%u.25", 100 + i);
        (void)snprintf(event, sizeof event, "{\"i\":%u,\"t\":\"\\u00e9\"}", i);
        (void)snprintf(delta, sizeof delta, "{\"memory\":{\"k%u\":[%u,1.5],\"last\":%u}}", i % 3, i,
                       i);
        spec.timestamp = time;
        if (i == 1) {
            spec.prev = head[0]; /* the second agent begins as a fork of the first */
            spec.fork = "natural";
            spec.parents[spec.parent_count++] = head[0];
        } else if (i > 1) {
            spec.parents[spec.parent_count++] = head[who];
            if (i % 3 == 2)
                spec.parents[spec.parent_count++] = head[1 - who];
        }
        lattice_text_node(out, &spec, hash);
        cx_buf_add_byte(out, '\n');
        memcpy(head[who], hash, sizeof hash);
    }
}

static void add_findings(cx_buf *out, const cx_lattice_finding *findings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (out->size != 0)
            cx_buf_add_byte(out, ' ');
        cx_buf_add_z(out, cx_lattice_code_name(findings[i].code));
        cx_buf_add_byte(out, ':');
        cx_buf_add_str(out, findings[i].id);
        cx_buf_add_byte(out, '@');
        cx_buf_add_str(out, findings[i].agent);
    }
}

const char *lattice_text_verdict(cx_buf *out, cx_str text, const cx_lattice_checks *checks)
{
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    size_t count;
    cx_buf_clear(out);
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.keep_seals = true;
    options.threads = 1;
    if (cx_failed(cx_lattice_open_bytes(cx_str_bytes(text), &options, &lattice, &err))) {
        cx_buf_add_z(out, err.tag != NULL ? err.tag : cx_code_name(err.code));
        return cx_buf_z(out);
    }
    if (cx_failed(cx_lattice_verify(lattice, checks, &report, &err))) {
        cx_buf_add_z(out, cx_code_name(err.code));
    } else {
        const cx_lattice_finding *findings = cx_lattice_report_errors(report, &count);
        add_findings(out, findings, count);
        if (count == 0)
            cx_buf_add_z(out, "ok");
        findings = cx_lattice_report_warnings(report, &count);
        add_findings(out, findings, count);
        cx_lattice_report_close(report);
    }
    cx_lattice_close(lattice);
    return cx_buf_z(out);
}

void lattice_text_report(cx_buf *out, const cx_lattice *lattice, const cx_lattice_report *report)
{
    size_t count, branch_count;
    const cx_lattice_finding *findings = cx_lattice_report_errors(report, &count);
    add_findings(out, findings, count);
    findings = cx_lattice_report_warnings(report, &count);
    add_findings(out, findings, count);
    const cx_lattice_branch *branches = cx_lattice_report_branches(report, &branch_count);
    for (size_t i = 0; i < branch_count; i++) {
        cx_buf_add_z(out, " / ");
        cx_buf_add_str(out, branches[i].agent);
        cx_buf_printf(out, " %d%d %zu+%zu", branches[i].valid, branches[i].tainted,
                      branches[i].error_count, branches[i].warning_count);
    }
    const cx_lattice_evidence *e = cx_lattice_report_evidence(report);
    cx_buf_printf(out, " | %d%d%d%d%d %d %d%d %d | %u", e->hash, e->monotonic, e->lineage,
                  e->containment, e->structure, e->seals, e->content_ids, e->time_ordered,
                  e->anchor, cx_lattice_count(lattice));
}

const char *lattice_text_file(const char *name, cx_str contents)
{
    static char path[512];
    const char *folder = getenv("TMPDIR");
    cx_err err;
    (void)snprintf(path, sizeof path, "%s/cortex-test-%ld-%s", folder != NULL ? folder : "/tmp",
                   (long)getpid(), name);
    cx_status status = cx_io_replace_file(cx_io_system(), path, cx_str_bytes(contents), &err);
    CX_ASSERT(!cx_failed(status));
    return path;
}
