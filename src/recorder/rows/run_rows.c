/*
 * run_rows.c - derives where the entries about a run are.
 *
 * The first row, integers big-endian:
 *
 *     offset  size
 *     0       4     events that have a row
 *     4       4     the highest number of these
 *     8       2     size of the journal's name, then the name
 *             8     the seal's sequence number         (when there is a seal)
 *                   its journal, when it is another one
 *
 * The row of an event is its entry's sequence number (8), and the journal if it is another one.
 *
 *   I1  The first entry about an event, and the first seal, count: a row stays as it was written.
 *   I2  An entry that cannot be read as ours has no row; it is no error of the log.
 */
#include "recorder/rows/run_rows.h"

#include "base/api.h"
#include "rules/api.h"

#define RUN_PREFIX "run/"

/* --- entries ---------------------------------------------------------------------------------- */

/* The hashes that an entry names, besides the event's own. */
static void read_named(const cx_json *payload, bool seal, cx_run_entry_about *out)
{
    static const char *const of_event[] = {"event_sha256", NULL};
    static const char *const of_seal[] = {"manifest_sha256", "chain_head", "contract_sha256", NULL};
    for (const char *const *name = seal ? of_seal : of_event; *name != NULL; name++)
        if (cx_digest_parse(cx_json_get_str(payload, cx_str_z(*name)),
                            &out->named[out->named_count]))
            out->named_count++;
}

static bool read_event(const cx_json *payload, cx_run_entry_about *out)
{
    const cx_json *number = CX_JSON_GET(payload, "index");
    uint64_t index;
    if (number == NULL || !cx_json_uint64(number, &index) || index == 0 ||
        index > CX_RUN_EVENTS_MAX || !cx_digest_parse(CX_JSON_GET_STR(payload, "hash"), &out->link))
        return false;
    out->index = (uint32_t)index;
    return true;
}

cx_status cx_run_entry_about_read(const cx_entry *entry, cx_arena *arena, cx_run_entry_about *out,
                                  bool *out_ours, cx_err *err)
{
    cx_json payload;
    const bool event = cx_kinds_is(entry->kind, CX_KIND_RUN_EVENT);
    *out_ours = false;
    if ((!event && !cx_kinds_is(entry->kind, CX_KIND_RUN_SEAL)) || entry->committed)
        return CX_SUCCESS;
    cx_status status = cx_run_json_read(cx_bytes_str(entry->payload), 0, arena, &payload, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return CX_SUCCESS;
    *out = (cx_run_entry_about){.seal = !event, .run_id = CX_JSON_GET_STR(&payload, "run_id")};
    read_named(&payload, !event, out);
    *out_ours = cx_run_id_valid(out->run_id) &&
                cx_str_is(CX_JSON_GET_STR(&payload, "type"),
                          event ? "cortex.run.event.v1" : "cortex.run.seal.v1") &&
                (!event || read_event(&payload, out));
    return CX_SUCCESS;
}

/* --- rows as bytes ---------------------------------------------------------------------------- */

cx_bytes cx_run_row_name(cx_run_row_key *key, cx_str run_id)
{
    const size_t prefix = sizeof RUN_PREFIX - 1;
    CX_ASSERT(run_id.size <= CX_RUN_ID_BYTES_MAX);
    memcpy(key->bytes, RUN_PREFIX, prefix);
    memcpy(key->bytes + prefix, run_id.data, run_id.size);
    key->bytes[prefix + run_id.size] = '/';
    return cx_bytes_from(key->bytes, prefix + run_id.size + 1);
}

cx_bytes cx_run_event_row_name(cx_run_row_key *key, cx_str run_id, uint32_t index)
{
    cx_bytes first = cx_run_row_name(key, run_id);
    cx_writer writer = cx_writer_over(key->bytes + first.size, 4);
    cx_writer_uint(&writer, index, 4);
    return cx_bytes_from(key->bytes, first.size + 4);
}

uint32_t cx_run_event_row_index(cx_bytes key, cx_bytes first_key)
{
    if (key.size != first_key.size + 4)
        return 0;
    cx_reader reader = cx_reader_over(cx_bytes_from(key.data + first_key.size, 4));
    return cx_reader_u32(&reader);
}

bool cx_run_row_decode(cx_bytes value, cx_run_row *out)
{
    cx_reader reader = cx_reader_over(value);
    cx_run_row row = {.events = cx_reader_u32(&reader), .last = cx_reader_u32(&reader)};
    row.journal = cx_bytes_str(cx_reader_bytes(&reader, cx_reader_u16(&reader)));
    row.sealed = cx_reader_left(&reader) != 0;
    if (row.sealed) {
        row.seal.seq = cx_reader_u64(&reader);
        row.seal.journal = cx_bytes_str(cx_reader_bytes(&reader, cx_reader_left(&reader)));
        if (row.seal.journal.size == 0)
            row.seal.journal = row.journal;
    }
    if (!cx_reader_ok(&reader) || row.journal.size == 0 || row.last < row.events)
        return false;
    *out = row;
    return true;
}

bool cx_run_event_row_decode(cx_bytes value, cx_str journal, cx_run_place *out)
{
    cx_reader reader = cx_reader_over(value);
    cx_run_place place = {.seq = cx_reader_u64(&reader)};
    place.journal = cx_bytes_str(cx_reader_bytes(&reader, cx_reader_left(&reader)));
    if (place.journal.size == 0)
        place.journal = journal;
    if (!cx_reader_ok(&reader))
        return false;
    *out = place;
    return true;
}

/* A sequence number, and the journal unless it is `usual`. */
static void write_place(cx_writer *writer, cx_run_place place, cx_str usual)
{
    cx_writer_uint(writer, place.seq, 8);
    if (!cx_str_eq(place.journal, usual))
        cx_writer_put(writer, place.journal.data, place.journal.size);
}

/* --- deriving --------------------------------------------------------------------------------- */

typedef struct derivation {
    cx_derive *at;
    cx_run_place place;
    cx_run_entry_about about;
    cx_run_row row;
} derivation;

static cx_status get_first_row(derivation *d, cx_err *err)
{
    cx_run_row_key key;
    cx_bytes value;
    bool found = false;
    d->row = (cx_run_row){.journal = d->place.journal};
    CX_TRY(
        cx_derive_get_common(d->at, cx_run_row_name(&key, d->about.run_id), &value, &found, err));
    if (found && !cx_run_row_decode(value, &d->row))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the tables' row of run %.*s is damaged; run 'cortex tables rebuild'",
                          (int)d->about.run_id.size, d->about.run_id.data);
    return CX_SUCCESS;
}

static cx_status put_first_row(derivation *d, cx_err *err)
{
    uint8_t value[4 + 4 + 2 + CX_ACTOR_SIZE_MAX + 8 + CX_ACTOR_SIZE_MAX];
    cx_run_row_key key;
    cx_writer writer = cx_writer_over(value, sizeof value);
    cx_writer_uint(&writer, d->row.events, 4);
    cx_writer_uint(&writer, d->row.last, 4);
    cx_writer_uint(&writer, d->row.journal.size, 2);
    cx_writer_put(&writer, d->row.journal.data, d->row.journal.size);
    if (d->row.sealed)
        write_place(&writer, d->row.seal, d->row.journal);
    CX_ASSERT(cx_writer_ok(&writer));
    return cx_derive_put_common(d->at, cx_run_row_name(&key, d->about.run_id),
                                cx_bytes_from(value, writer.offset), err);
}

static cx_status derive_event(derivation *d, cx_err *err)
{
    uint8_t value[8 + CX_ACTOR_SIZE_MAX];
    cx_run_row_key key;
    cx_bytes name = cx_run_event_row_name(&key, d->about.run_id, d->about.index), there;
    bool found = false;
    if (d->about.index <= d->row.last)
        CX_TRY(cx_derive_get_common(d->at, name, &there, &found, err));
    if (found) /* I1 */
        return CX_SUCCESS;
    cx_writer writer = cx_writer_over(value, sizeof value);
    write_place(&writer, d->place, d->row.journal);
    CX_TRY(cx_derive_put_common(d->at, name, cx_bytes_from(value, writer.offset), err));
    d->row.events++;
    d->row.last = d->about.index > d->row.last ? d->about.index : d->row.last;
    return put_first_row(d, err);
}

/* What an event, or a run by its seal, can be found by; of a run also the digits at the end of its
 * id. */
static cx_status derive_names(const derivation *d, cx_err *err)
{
    for (size_t i = 0; i < d->about.named_count; i++)
        CX_TRY(cx_derive_hash(d->at, &d->about.named[i], err));
    if (!d->about.seal)
        return cx_derive_hash(d->at, &d->about.link, err);
    return d->about.run_id.size <= 20
               ? CX_SUCCESS
               : cx_derive_name(
                     d->at, cx_str_from(d->about.run_id.data + 20, d->about.run_id.size - 20), err);
}

static cx_status derive_run(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                            size_t count, cx_err *err)
{
    derivation d = {.at = at};
    bool ours = false;
    (void)changes;
    (void)count;
    if (entry == NULL || !cx_str_starts(entry->kind, CX_STR("run.")) ||
        !cx_str_starts(cx_derive_actor(at), CX_STR(CX_RUN_ACTOR_PREFIX)))
        return CX_SUCCESS;
    CX_TRY(cx_run_entry_about_read(entry, cx_derive_arena(at), &d.about, &ours, err));
    if (!ours) /* I2 */
        return CX_SUCCESS;
    CX_TRY(derive_names(&d, err));
    d.place = (cx_run_place){.journal = cx_derive_actor(at), .seq = entry->seq};
    CX_TRY(get_first_row(&d, err));
    if (!d.about.seal)
        return derive_event(&d, err);
    if (d.row.sealed) /* I1 */
        return CX_SUCCESS;
    d.row.sealed = true;
    d.row.seal = d.place;
    return put_first_row(&d, err);
}

const cx_deriver cx_run_deriver = {.name = "run/2", .derive = derive_run};
