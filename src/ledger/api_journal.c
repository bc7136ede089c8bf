/*
 * api_journal.c - the installed calls on an open data directory: actors, appending, reading, roots
 * (cortex/journal.h).
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/handle.h"
#include "proof/api.h"

_Static_assert(CX_DIGEST_TEXT_SIZE == 2 * sizeof(cx_digest) + 1, "two digits a byte");

/* --- what all share --------------------------------------------------------------------------- */

cx_status cx_api_refuse(cx_err *err, const char *format, ...)
{
    char message[CX_ERR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "%s", message);
}

cx_status cx_api_text(const char *text, const char *what, cx_str *out, cx_err *err)
{
    if (text == NULL)
        return cx_api_refuse(err, "%smust be set, found NULL", what);
    if (!cx_utf8_valid(cx_str_z(text)))
        return cx_api_refuse(err, "%s is not UTF-8", what);
    *out = cx_str_z(text);
    return CX_SUCCESS;
}

cx_status cx_api_text_or(const char *text, const char *what, cx_str otherwise, cx_str *out,
                         cx_err *err)
{
    if (text != NULL)
        return cx_api_text(text, what, out, err);
    *out = otherwise;
    return CX_SUCCESS;
}

cx_status cx_api_scheme(const char *name, cx_scheme *out, cx_err *err)
{
    if (name == NULL)
        *out = CX_SCHEME_CORTEX_1;
    else if (!cx_scheme_parse(cx_str_z(name), out))
        return cx_api_refuse(err, "found scheme '%.40s', expected cortex-1 or matrix-1", name);
    return CX_SUCCESS;
}

int64_t cx_api_now(const cx_ledger *ledger)
{
    const cx_io *io = cx_home_io(ledger->home);
    return (int64_t)io->wall_ns(io);
}

void cx_api_state(const cx_roots *roots, cx_ledger_state *out)
{
    *out = (cx_ledger_state){
        .journal_size = roots->journal_size,
        .journal_root = roots->journal,
        .edges_root = roots->edges,
        .memories_root = roots->memories,
        .overall_root = roots->overall,
    };
}

void cx_api_actor(const cx_actor_info *info, cx_ledger_actor_info *out)
{
    *out = (cx_ledger_actor_info){
        .name = info->name,
        .scheme = cx_scheme_name(info->scheme).data,
        .entry_count = info->entry_count,
        .snapshot_count = info->snapshot_count,
        .live_memories = info->live_memories,
        .tombstoned = info->tombstoned,
        .edge_count = info->edge_count,
    };
}

void cx_digest_to_text(const cx_digest *digest, char out[CX_DIGEST_TEXT_SIZE])
{
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), out);
    out[CX_DIGEST_TEXT_SIZE - 1] = 0;
}

bool cx_digest_from_text(const char *text, cx_digest *out)
{
    cx_digest digest;
    if (text == NULL || !cx_hex_decode_any(cx_str_z(text), digest.bytes, sizeof digest.bytes))
        return false;
    *out = digest;
    return true;
}

/* --- the home --------------------------------------------------------------------------------- */

cx_status cx_ledger_close(cx_ledger *ledger, cx_err *err)
{
    if (ledger == NULL)
        return CX_SUCCESS;
    cx_status status = cx_home_close(ledger->home, err);
    cx_alloc_free(ledger->alloc, ledger, sizeof *ledger);
    return status;
}

const char *cx_ledger_scheme(const cx_ledger *ledger)
{
    return cx_scheme_name(cx_home_scheme(ledger->home)).data;
}

uint64_t cx_ledger_torn_bytes(const cx_ledger *ledger)
{
    return cx_home_torn_bytes(ledger->home);
}

cx_status cx_ledger_backup(cx_ledger *ledger, const char *to_path, cx_err *err)
{
    if (to_path == NULL)
        return cx_api_refuse(err, "a path to copy tomust be set, found NULL");
    return cx_home_backup(ledger->home, to_path, err);
}

cx_status cx_ledger_actor(cx_ledger *ledger, const char *actor, cx_ledger_actor_info *out,
                          cx_err *err)
{
    cx_str name;
    cx_actor_info info;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    CX_TRY(cx_home_actor(ledger->home, name, &info, err));
    cx_api_actor(&info, out);
    return CX_SUCCESS;
}

cx_status cx_ledger_each_actor(cx_ledger *ledger,
                               bool (*visit)(void *arg, const cx_ledger_actor_info *actor),
                               void *arg, cx_err *err)
{
    cx_actor_walk walk;
    const cx_actor_info *actor = NULL;
    cx_status status;
    cx_actor_walk_begin(&walk, ledger->home);
    while (!cx_failed(status = cx_actor_walk_next(&walk, &actor, err)) && actor != NULL) {
        cx_ledger_actor_info info;
        cx_api_actor(actor, &info);
        if (!visit(arg, &info))
            break;
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* --- appending -------------------------------------------------------------------------------- */

/* The kinds of ledger.md have structured payloads and dedicated calls, so they are refused here. */
static cx_status parse_entry_kind(const char *text, cx_str *out, cx_err *err)
{
    CX_TRY(cx_api_text(text, "the kind", out, err));
    if (cx_entry_kind_of(*out) == CX_ENTRY_RAW ||
        (cx_entry_kind_ok(*out) && strchr(text, '.') != NULL))
        return CX_SUCCESS;
    return cx_api_refuse(
        err, "found kind '%.64s', expected raw or a dotted kind such as tool.called", text);
}

static cx_status append_one(cx_txn *txn, const cx_ledger_draft *draft, int64_t now_ns, cx_err *err)
{
    cx_str kind, by;
    CX_TRY(parse_entry_kind(draft->kind, &kind, err));
    CX_TRY(cx_api_text_or(draft->by, "by", (cx_str){NULL, 0}, &by, err));
    const cx_entry_draft entry = {
        .kind = kind,
        .created_at_ns = draft->created_at_ns != 0 ? draft->created_at_ns : now_ns,
        .created_by = cx_str_bytes(by),
        .payload = draft->payload,
        .committed = draft->committed,
    };
    return cx_txn_entry(txn, &entry, NULL, err);
}

cx_status cx_ledger_append_later(cx_ledger *ledger, const char *actor,
                                 const cx_ledger_draft *drafts, size_t count,
                                 uint64_t *out_first_seq, uint64_t *out_ticket, cx_err *err)
{
    cx_str name;
    cx_txn *txn;
    uint64_t ticket = 0;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    if (count == 0)
        return cx_api_refuse(err, "nothing to append: the list of entries is empty");
    CX_TRY(cx_txn_begin(ledger->home, name, &txn, err));
    uint64_t first = cx_txn_next_seq(txn);
    int64_t now_ns = cx_api_now(ledger);
    for (size_t i = 0; i < count; i++) {
        cx_status status = append_one(txn, &drafts[i], now_ns, err);
        if (cx_failed(status)) {
            cx_txn_abort(txn);
            return status;
        }
    }
    CX_TRY(cx_txn_commit_later(txn, &ticket, err));
    if (out_first_seq != NULL)
        *out_first_seq = first;
    *out_ticket = ticket;
    return CX_SUCCESS;
}

cx_status cx_ledger_append(cx_ledger *ledger, const char *actor, const cx_ledger_draft *drafts,
                           size_t count, uint64_t *out_first_seq, cx_err *err)
{
    uint64_t first, ticket;
    CX_TRY(cx_ledger_append_later(ledger, actor, drafts, count, &first, &ticket, err));
    CX_TRY(cx_home_wait(ledger->home, ticket, err));
    if (out_first_seq != NULL)
        *out_first_seq = first;
    return CX_SUCCESS;
}

cx_status cx_ledger_wait(cx_ledger *ledger, uint64_t ticket, cx_err *err)
{
    return cx_home_wait(ledger->home, ticket, err);
}

cx_status cx_ledger_sync(cx_ledger *ledger, cx_err *err)
{
    return cx_home_sync(ledger->home, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* `memory` holds the entry's bytes followed by its payload; all fields borrow from it. */
static cx_status fill_public_entry(const cx_entry_view *view, cx_owned memory, cx_ledger_entry *out,
                                   cx_err *err)
{
    cx_entry entry;
    cx_bytes bytes = cx_bytes_from(memory.data, view->bytes.size);
    CX_TRY(cx_entry_decode(bytes, &entry, err));
    *out = (cx_ledger_entry){
        .seq = entry.seq,
        .kind = entry.kind,
        .created_at_ns = entry.created_at_ns,
        .created_by = entry.created_by,
        .payload = cx_bytes_from(memory.data + view->bytes.size, view->payload.size),
        .committed = entry.committed,
        .erased = view->payload_erased,
        .commitment = entry.commitment,
        .payload_size = entry.payload_size,
        .has_subject = view->has_subject,
        .bytes = bytes,
        .leaf_hash = view->leaf_hash,
        .memory = memory,
    };
    _Static_assert(sizeof out->subject == CX_ULID_SIZE + 1, "a ULID and a zero byte");
    if (view->has_subject)
        cx_ulid_format(&view->subject, out->subject);
    memcpy(out->salt, view->salt, sizeof out->salt);
    return CX_SUCCESS;
}

cx_status cx_ledger_read(cx_ledger *ledger, const char *actor, uint64_t seq, cx_ledger_entry *out,
                         cx_err *err)
{
    cx_str name;
    cx_arena arena;
    cx_buf bytes;
    cx_entry_view view;
    cx_owned memory = CX_OWNED_INIT;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_buf_init(&bytes, ledger->alloc);
    cx_status status = cx_home_entry(ledger->home, name, seq, &arena, &view, err);
    if (!cx_failed(status)) {
        cx_buf_add(&bytes, view.bytes.data, view.bytes.size);
        cx_buf_add(&bytes, view.payload.data, view.payload.size);
        status = cx_owned_from_buf(&bytes, &memory, err);
    }
    if (!cx_failed(status))
        status = fill_public_entry(&view, memory, out, err);
    if (cx_failed(status))
        cx_owned_done(&memory);
    cx_arena_done(&arena);
    return status;
}

void cx_ledger_entry_done(cx_ledger_entry *entry)
{
    cx_owned_done(&entry->memory);
    *entry = (cx_ledger_entry){.memory = CX_OWNED_INIT};
}

cx_status cx_ledger_roots(cx_ledger *ledger, const char *actor, cx_ledger_state *out, cx_err *err)
{
    cx_str name;
    cx_roots roots;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    CX_TRY(cx_home_roots(ledger->home, name, &roots, err));
    cx_api_state(&roots, out);
    return CX_SUCCESS;
}
