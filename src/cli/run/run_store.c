/*
 * run_store.c - storing the bundle of a run for other machines, and fetching it.  Invariants T1 and
 * T2: run_store.h.
 */
#include "cli/run/run_store.h"

#include "cli/run/run_where.h"
#include "crypto/api.h"

typedef struct storing {
    cx_cli_run_ledger *ledger;
    cx_run_bundle *bundle;
    cx_buf archive;
    cx_run_part *parts;
    cx_run_part *part; /* the one that is looked for, or sent */
    cx_bytes bytes;    /* of it, or the payload of the last entry */
    bool found;
    cx_digest key; /* of a sealed archive */
    cx_cli_run_storing out;
} storing;

static int64_t wall_ns(const storing *s)
{
    const cx_io *io = s->ledger->cli->io;
    return (int64_t)io->wall_ns(io);
}

/* --- what is there ---------------------------------------------------------------------------- */

/* T1 */
static cx_status check_seal(storing *s, cx_home *home, cx_err *err)
{
    cx_run_index *index;
    cx_run_known known;
    cx_digest sealed;
    cx_arena *arena = &s->ledger->cli->arena;
    cx_run_stored *stored = &s->out.stored;
    CX_TRY(cx_run_bundle_digest(s->bundle, CX_STR("manifest.json"), &stored->manifest_sha256, err));
    CX_TRY(cx_run_index_open(home, s->ledger->cli->alloc, &index, err));
    cx_status status = cx_run_index_find(index, stored->run_id, arena, &known, err);
    cx_run_index_close(index);
    CX_TRY(status);
    if (!known.sealed)
        return cx_fail(err, CX_E_CONFLICT,
                       "run %.*s has no seal in the ledger: only a sealed bundle is stored",
                       (int)stored->run_id.size, stored->run_id.data);
    if (!cx_digest_parse(CX_JSON_GET_STR(&known.seal, "manifest_sha256"), &sealed) ||
        !cx_digest_eq(&sealed, &stored->manifest_sha256))
        return cx_fail(err, CX_E_CONFLICT,
                       "the manifest of %.*s is not the sealed one: 'cortex run verify' shows what "
                       "is wrong with the bundle",
                       (int)stored->run_id.size, stored->run_id.data);
    return CX_SUCCESS;
}

static cx_status look_at_run(void *arg, cx_home *home, cx_err *err)
{
    storing *s = arg;
    cx_run_stored there;
    CX_TRY(check_seal(s, home, err));
    CX_TRY(cx_run_stored_find(home, s->ledger->actor, s->out.stored.run_id, &s->ledger->cli->arena,
                              &there, &s->out.was_there, err));
    if (!s->out.was_there)
        return CX_SUCCESS;
    if (!cx_digest_eq(&there.manifest_sha256, &s->out.stored.manifest_sha256))
        return cx_fail(err, CX_E_CONFLICT, "entry %llu of %.*s stored another bundle of this run",
                       (unsigned long long)there.seq, (int)there.actor.size, there.actor.data);
    s->out.stored = there;
    return CX_SUCCESS;
}

static cx_status look_for_part(void *arg, cx_home *home, cx_err *err)
{
    storing *s = arg;
    return cx_run_part_find(home, s->ledger->actor, s->out.stored.run_id, s->part, &s->part->seq,
                            &s->found, err);
}

/* --- what is sent ----------------------------------------------------------------------------- */

static cx_status add_part(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    storing *s = arg;
    const cx_id subject = cx_run_part_subject(s->out.stored.run_id, &s->part->sha256);
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_RUN_BUNDLE_PART),
                                  .created_at_ns = wall_ns(s),
                                  .created_by = cx_str_bytes(CX_STR("cortex")),
                                  .payload = s->bytes,
                                  .committed = true,
                                  .subject = &subject};
    *write = true;
    return cx_txn_entry(txn, &draft, &s->part->seq, err);
}

/* T2 */
static cx_status send_part(storing *s, cx_run_part *part, cx_bytes bytes, cx_err *err)
{
    const cx_cli_run_look look = {look_for_part, s};
    const cx_cli_run_work work = {add_part, s};
    *part = (cx_run_part){.sha256 = cx_digest_of(bytes), .size_bytes = bytes.size};
    s->part = part;
    s->bytes = bytes;
    CX_TRY(cx_cli_run_ledger_look(s->ledger, &look, err));
    if (s->found)
        return CX_SUCCESS;
    s->out.sent_parts++;
    return cx_cli_run_ledger_transact(s->ledger, &work, err);
}

static cx_status send_parts(storing *s, cx_err *err)
{
    cx_run_stored *stored = &s->out.stored;
    const cx_bytes whole = cx_buf_bytes(&s->archive);
    stored->part_count = (whole.size + CX_RUN_PART_BYTES - 1) / CX_RUN_PART_BYTES;
    s->parts = CX_ARENA_ARRAY(&s->ledger->cli->arena, cx_run_part, stored->part_count);
    if (s->parts == NULL)
        return cx_fail_nomem(err);
    stored->parts = s->parts;
    for (size_t i = 0; i < stored->part_count; i++) {
        size_t at = i * CX_RUN_PART_BYTES, size = whole.size - at;
        size = size > CX_RUN_PART_BYTES ? CX_RUN_PART_BYTES : size;
        CX_TRY(send_part(s, &s->parts[i], cx_bytes_from(whole.data + at, size), err));
    }
    return CX_SUCCESS;
}

static cx_status add_stored(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    storing *s = arg;
    const cx_id subject = cx_run_stored_subject(s->out.stored.run_id);
    const cx_entry_draft draft = {.kind = cx_run_stored_kind(&s->out.stored),
                                  .created_at_ns = wall_ns(s),
                                  .created_by = cx_str_bytes(CX_STR("cortex")),
                                  .payload = s->bytes,
                                  .subject = &subject};
    *write = true;
    return cx_txn_entry(txn, &draft, &s->out.stored.seq, err);
}

static cx_status send_stored(storing *s, cx_err *err)
{
    cx_buf text;
    const cx_cli_run_work work = {add_stored, s};
    cx_buf_init(&text, s->ledger->cli->alloc);
    cx_status status = cx_run_stored_write(&s->out.stored, &s->ledger->cli->arena, &text, err);
    s->bytes = cx_buf_bytes(&text);
    if (!cx_failed(status))
        status = cx_cli_run_ledger_transact(s->ledger, &work, err);
    cx_buf_done(&text);
    return status;
}

static cx_status pack_bundle(storing *s, cx_err *err)
{
    CX_TRY(cx_run_archive_write(s->bundle, &s->archive, err));
    if (s->archive.size > CX_RUN_STORED_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the archive has %zu bytes, expected at most %llu",
                       s->archive.size, (unsigned long long)CX_RUN_STORED_BYTES_MAX);
    s->out.stored.size_bytes = s->archive.size;
    s->out.stored.sha256 = cx_digest_of(cx_buf_bytes(&s->archive));
    return CX_SUCCESS;
}

/* --- an object -------------------------------------------------------------------------------- */

static cx_status look_for_key(void *arg, cx_home *home, cx_err *err)
{
    storing *s = arg;
    cx_run_stored *stored = &s->out.stored;
    return cx_run_key_find(home, s->ledger->actor, stored->run_id, &stored->sha256, &s->key,
                           &stored->object.key_seq, &s->found, err);
}

static cx_status add_key(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    storing *s = arg;
    const cx_id subject = cx_run_key_subject(s->out.stored.run_id);
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_RUN_BUNDLE_PART),
                                  .created_at_ns = wall_ns(s),
                                  .created_by = cx_str_bytes(CX_STR("cortex")),
                                  .payload = s->bytes,
                                  .committed = true,
                                  .subject = &subject};
    *write = true;
    return cx_txn_entry(txn, &draft, &s->out.stored.object.key_seq, err);
}

/* T2: of an earlier try, or a new one, which is in the journal before anything is sealed with
 * it. */
static cx_status need_key(storing *s, cx_err *err)
{
    cx_cli *cli = s->ledger->cli;
    const cx_cli_run_look look = {look_for_key, s};
    const cx_cli_run_work work = {add_key, s};
    cx_buf text;
    CX_TRY(cx_cli_run_ledger_look(s->ledger, &look, err));
    if (s->found)
        return CX_SUCCESS;
    const int failed = cli->io->random(cli->io, s->key.bytes, sizeof s->key.bytes);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_run_key_write(s->out.stored.run_id, &s->out.stored.sha256, &s->key,
                                        &cli->arena, &text, err);
    s->bytes = cx_buf_bytes(&text);
    if (!cx_failed(status))
        status = cx_cli_run_ledger_transact(s->ledger, &work, err);
    cx_buf_done(&text);
    return status;
}

static cx_status name_object(storing *s, cx_err *err)
{
    cx_cli *cli = s->ledger->cli;
    char name[CX_OBJECT_NAME_SIZE];
    cx_run_object *object = &s->out.stored.object;
    cx_object_name(cli->objects, &object->sha256, name);
    object->name = cx_arena_copy_str(&cli->arena, cx_str_z(name));
    object->bucket = cx_str_z(cli->objects->bucket);
    object->endpoint = cx_str_z(cli->objects->endpoint);
    return object->name.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* T3 */
static cx_status send_object(storing *s, cx_err *err)
{
    cx_cli *cli = s->ledger->cli;
    cx_run_stored *stored = &s->out.stored;
    stored->in_object = true;
    CX_TRY(cx_object_store_ready(cli->objects, err));
    CX_TRY(need_key(s, err));
    CX_TRY(cx_run_object_seal(stored->run_id, &stored->sha256, &s->key, &s->archive,
                              &stored->object, err));
    CX_TRY(name_object(s, err));
    CX_TRY(cx_object_put(cli->objects, cli->io, &stored->object.sha256, cx_buf_bytes(&s->archive),
                         err));
    s->out.sent_parts++;
    return CX_SUCCESS;
}

static cx_status store_bundle(storing *s, cx_err *err)
{
    const cx_cli_run_look look = {look_at_run, s};
    CX_TRY(cx_cli_run_ledger_look(s->ledger, &look, err));
    if (s->out.was_there)
        return CX_SUCCESS;
    CX_TRY(pack_bundle(s, err));
    CX_TRY(s->ledger->cli->stores_objects ? send_object(s, err) : send_parts(s, err));
    return send_stored(s, err);
}

cx_status cx_cli_run_store_bundle(cx_cli_run_ledger *ledger, cx_str run_id, const char *folder,
                                  cx_cli_run_storing *out, cx_err *err)
{
    cx_cli *cli = ledger->cli;
    storing s = {.ledger = ledger, .out.stored = {.run_id = run_id, .actor = ledger->actor}};
    CX_TRY(cx_run_bundle_open(cli->io, cli->alloc, folder, &s.bundle, err));
    cx_buf_init(&s.archive, cli->alloc);
    cx_status status = store_bundle(&s, err);
    cx_buf_done(&s.archive);
    cx_run_bundle_close(s.bundle);
    *out = s.out;
    return status;
}

/* --- fetching --------------------------------------------------------------------------------- */

static cx_status read_stored(cx_cli *cli, cx_home *home, cx_str run_id, cx_buf *out,
                             bool *out_found, cx_err *err)
{
    cx_run_index *index;
    cx_run_known known;
    cx_run_stored stored;
    CX_TRY(cx_run_index_open(home, cli->alloc, &index, err));
    cx_status status = cx_run_index_find(index, run_id, &cli->arena, &known, err);
    cx_run_index_close(index);
    CX_TRY(status);
    cx_str actor = known.sealed ? known.actor : known.journal;
    if (actor.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_run_stored_find(home, actor, run_id, &cli->arena, &stored, out_found, err));
    if (*out_found)
        return cx_run_stored_read(home, &stored, cli->objects, out, err);
    bool ended = false;
    cx_run_ending ending;
    if (!known.sealed)
        CX_TRY(cx_run_end_find(home, actor, run_id, &cli->arena, &ending, &ended, err));
    if (ended)
        return cx_run_end_fail(&ending, err);
    return known.sealed
               ? cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_MISSING, CX_NO_OFFSET,
                            "run %.*s is sealed, and its bundle is on the machine of the run only: "
                            "'cortex run store' there stores it",
                            (int)run_id.size, run_id.data)
               : CX_SUCCESS;
}

cx_status cx_cli_run_fetch(cx_cli *cli, const cx_cli_args *args, cx_str run_id, cx_buf *out,
                           bool *out_found, cx_err *err)
{
    cx_home *home;
    *out_found = false;
    CX_TRY(cx_cli_run_home(cli, args, &home, err));
    if (home == NULL)
        return CX_SUCCESS;
    cx_status status = read_stored(cli, home, run_id, out, out_found, err);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
    return status;
}
