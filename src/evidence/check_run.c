/*
 * check_run.c - verifies the files of a run against the entry that sealed it (run.md §17):
 * manifest, files, chain of events, contract; and the commit that the run made.
 */
#include <inttypes.h>
#include <stdio.h>

#include "crypto/api.h"
#include "evidence/internal.h"

typedef struct sealed {
    size_t entry;
    cx_json payload;
} sealed;

static void find_broken(cx_evidence_checker *c, const char *reason, const char *message)
{
    cx_evidence_find(c, "run", 0, CX_BROKEN, reason, "%s", message);
}

/* The entry's payload as an object of that type; false when it is not. */
static bool read_payload(cx_evidence_checker *c, size_t number, const char *kind, cx_json *out)
{
    return c->good[number] && cx_str_is(c->entries[number].kind, kind) &&
           cx_evidence_ok(
               c, cx_json_parse_text(cx_bytes_str(c->payloads[number]), c->arena, out, NULL)) &&
           out->type == CX_JSON_OBJECT;
}

static bool find_seal(cx_evidence_checker *c, sealed *out)
{
    for (size_t i = 0; i < c->e->entry_count; i++) {
        out->entry = i;
        if (read_payload(c, i, "run.seal", &out->payload))
            return true;
    }
    return false;
}

static bool hash_is(const cx_evidence_file *file, cx_str hex)
{
    cx_digest wanted, found;
    if (file == NULL || !cx_digest_parse(hex, &wanted))
        return false;
    found = cx_digest_of(file->bytes);
    return cx_digest_eq(&found, &wanted);
}

/* --- the manifest and the files --------------------------------------------------------------- */

static const cx_json *is_listed_file(const cx_json *artifacts, cx_str path)
{
    for (uint32_t i = 0; artifacts != NULL && i < artifacts->count; i++)
        if (cx_str_eq(CX_JSON_GET_STR(&artifacts->items[i], "path"), path))
            return &artifacts->items[i];
    return NULL;
}

static void check_files(cx_evidence_checker *c, const cx_json *artifacts)
{
    for (size_t i = 0; i < c->e->file_count; i++) {
        const cx_evidence_file *file = &c->e->files[i];
        const cx_json *item = is_listed_file(artifacts, file->path);
        if (cx_str_is(file->path, "manifest.json"))
            continue;
        if (item == NULL)
            cx_evidence_find(c, "run", i, CX_BROKEN, "FileUnlisted",
                             "file %zu is not in the manifest of the run", i);
        else if (!hash_is(file, CX_JSON_GET_STR(item, "sha256")))
            cx_evidence_find(c, "run", i, CX_BROKEN, "FileMismatch",
                             "file %zu does not match its hash in the manifest", i);
    }
}

/* --- the chain -------------------------------------------------------------------------------- */

static cx_digest next_link(uint64_t index, const cx_digest *before, const cx_digest *event)
{
    char text[20 + 1 + 64 + 1 + 64 + 1] = {0};
    size_t size = (size_t)snprintf(text, sizeof text, "%" PRIu64 ":", index);
    if (before != NULL) {
        cx_hex_encode(cx_bytes_from(before->bytes, 32), text + size);
        size += 64;
    }
    text[size++] = ':';
    cx_hex_encode(cx_bytes_from(event->bytes, 32), text + size);
    return cx_digest_of(cx_bytes_from(text, size + 64));
}

typedef struct links {
    cx_digest *items; /* by index - 1 */
    size_t count;
} links;

static cx_status chain_of(cx_evidence_checker *c, cx_bytes events, links *out, cx_err *err)
{
    size_t lines = 0;
    for (size_t i = 0; i < events.size; i++)
        lines += events.data[i] == '\n';
    out->items = CX_ARENA_ARRAY(c->arena, cx_digest, lines + 1);
    if (out->items == NULL)
        return cx_fail_nomem(err);
    for (size_t at = 0; at < events.size;) {
        const uint8_t *end = memchr(events.data + at, '\n', events.size - at);
        if (end == NULL)
            break;
        size_t size = (size_t)(end - (events.data + at));
        cx_digest event = cx_digest_of(cx_bytes_from(events.data + at, size));
        const cx_digest *before = out->count == 0 ? NULL : &out->items[out->count - 1];
        out->items[out->count] = next_link(out->count + 1, before, &event);
        out->count++;
        at += size + 1;
    }
    return CX_SUCCESS;
}

static void check_seal_of_chain(cx_evidence_checker *c, const links *chain, const cx_json *seal)
{
    cx_digest head;
    uint64_t count = 0;
    const cx_json *number = CX_JSON_GET(seal, "events_count");
    if (chain->count == 0 || number == NULL || !cx_json_uint64(number, &count) ||
        count != chain->count || !cx_digest_parse(CX_JSON_GET_STR(seal, "chain_head"), &head) ||
        !cx_digest_eq(&head, &chain->items[chain->count - 1]))
        find_broken(c, "ChainMismatch", "the events are not those whose chain the seal ends");
}

/* Entries of single events, as they were written while the run went on. */
static void check_event_entries(cx_evidence_checker *c, const links *chain, cx_str run_id)
{
    for (size_t i = 0; i < c->e->entry_count; i++) {
        cx_json payload;
        cx_digest hash;
        uint64_t index = 0;
        if (!read_payload(c, i, "run.event", &payload))
            continue;
        const cx_json *number = CX_JSON_GET(&payload, "index");
        bool fits = number != NULL && cx_json_uint64(number, &index) && index != 0 &&
                    index <= chain->count &&
                    cx_str_eq(CX_JSON_GET_STR(&payload, "run_id"), run_id) &&
                    cx_digest_parse(CX_JSON_GET_STR(&payload, "hash"), &hash) &&
                    cx_digest_eq(&hash, &chain->items[index - 1]);
        if (!fits)
            cx_evidence_find(c, "entry", i, CX_BROKEN, "ChainMismatch",
                             "the recorded event is not the one shown");
    }
}

/* --- all of a run ----------------------------------------------------------------------------- */

static cx_status check_sealed(cx_evidence_checker *c, const sealed *seal, cx_err *err)
{
    const cx_evidence_file *manifest = cx_evidence_file_named(c->e, "manifest.json");
    const cx_evidence_file *events = cx_evidence_file_named(c->e, "events.jsonl");
    const cx_evidence_file *contract = cx_evidence_file_named(c->e, "contract.json");
    cx_str run_id = CX_JSON_GET_STR(&seal->payload, "run_id");
    cx_json value;
    links chain = {0};
    if (cx_str_is(c->e->kind, "run") && !cx_str_eq(run_id, c->e->id))
        find_broken(c, "SealMismatch", "the seal is of another run");
    if (!hash_is(manifest, CX_JSON_GET_STR(&seal->payload, "manifest_sha256"))) {
        find_broken(c, "SealMismatch", "the manifest is not the one that was sealed");
        return CX_SUCCESS;
    }
    if (!cx_evidence_ok(
            c, cx_json_parse_text(cx_bytes_str(manifest->bytes), c->arena, &value, NULL))) {
        find_broken(c, "SealMismatch", "the manifest cannot be read");
        return CX_SUCCESS;
    }
    const cx_json *artifacts = cx_json_get_typed(&value, CX_STR("artifacts"), CX_JSON_ARRAY);
    c->out->bundle_files_listed = artifacts == NULL ? 0 : artifacts->count;
    check_files(c, artifacts);
    if (contract != NULL && !hash_is(contract, CX_JSON_GET_STR(&seal->payload, "contract_sha256")))
        find_broken(c, "SealMismatch", "the contract is not the one that was sealed");
    if (c->out->bundle_files_listed + 1 > c->e->file_count)
        cx_evidence_limit(
            c, "the evidence file does not contain all files of the run: the manifest lists them");
    cx_evidence_limit(c, "passed gates do not prove that the change is good");
    if (events == NULL)
        return CX_SUCCESS;
    CX_TRY(chain_of(c, events->bytes, &chain, err));
    check_seal_of_chain(c, &chain, &seal->payload);
    check_event_entries(c, &chain, run_id);
    return CX_SUCCESS;
}

cx_status cx_evidence_check_run(cx_evidence_checker *c, cx_err *err)
{
    sealed seal;
    if (c->e->file_count == 0)
        return CX_SUCCESS;
    if (!find_seal(c, &seal)) {
        cx_evidence_find(c, "run", 0, CX_INDETERMINATE, "NotSealed",
                         "it contains files of a run, but no entry that sealed them");
        return CX_SUCCESS;
    }
    return check_sealed(c, &seal, err);
}

/* --- the commit ------------------------------------------------------------------------------- */

bool cx_evidence_run_made(cx_evidence_checker *c, cx_str commit)
{
    const cx_evidence_file *events = cx_evidence_file_named(c->e, "events.jsonl");
    cx_str text = events == NULL ? CX_STR("") : cx_bytes_str(events->bytes);
    while (text.size != 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        cx_arena_mark mark = cx_arena_mark_now(c->arena);
        cx_json event;
        bool found = false;
        if (cx_evidence_ok(
                c, cx_json_parse_text(cx_str_from(text.data, size), c->arena, &event, NULL))) {
            cx_str type = CX_JSON_GET_STR(&event, "event_type");
            const cx_json *payload = CX_JSON_GET(&event, "payload");
            found = (cx_str_is(type, "MERGE_APPLIED") || cx_str_is(type, "CANDIDATE_COMMITTED")) &&
                    payload != NULL && cx_str_eq(CX_JSON_GET_STR(payload, "commit"), commit);
        }
        cx_arena_reset(c->arena, mark);
        if (found)
            return true;
        size_t used = end == NULL ? size : size + 1;
        text = cx_str_from(text.data + used, text.size - used);
    }
    return false;
}

bool cx_evidence_is_commit(cx_bytes raw, cx_str id)
{
    char head[40];
    uint8_t wanted[32];
    size_t size = (size_t)snprintf(head, sizeof head, "commit %zu", raw.size) + 1;
    if (id.size == 40 && cx_hex_decode(id, wanted, CX_SHA1_SIZE)) {
        uint8_t found[CX_SHA1_SIZE];
        cx_sha1 hash;
        cx_sha1_init(&hash);
        cx_sha1_add(&hash, head, size);
        cx_sha1_add(&hash, raw.data, raw.size);
        cx_sha1_end(&hash, found);
        return memcmp(found, wanted, sizeof found) == 0;
    }
    if (id.size != 64 || !cx_hex_decode(id, wanted, 32))
        return false;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, head, size);
    cx_sha256_add(&hash, raw.data, raw.size);
    cx_digest found = cx_sha256_end(&hash);
    return memcmp(found.bytes, wanted, sizeof found.bytes) == 0;
}

void cx_evidence_check_commit(cx_evidence_checker *c)
{
    if (c->e->commit.size == 0)
        return;
    if (!cx_str_is(c->e->kind, "commit")) {
        cx_evidence_find(c, "commit", 0, CX_BROKEN, "CommitMismatch",
                         "a commit is shown in evidence about something else");
        return;
    }
    if (!cx_evidence_is_commit(c->e->commit, c->e->id))
        cx_evidence_find(c, "commit", 0, CX_BROKEN, "CommitMismatch",
                         "the commit shown does not have the hash that is its name");
    else if (!cx_evidence_run_made(c, c->e->id))
        cx_evidence_find(c, "commit", 0, CX_BROKEN, "CommitMismatch",
                         "no event of the run shown made this commit");
    if (c->e->id.size == 40)
        cx_evidence_limit(c, "the commit is named by SHA-1, as git does");
}
