/*
 * import.c - a data directory into parts (docs/decisions/0034).
 *
 * Each commit of the directory's log becomes at most one group in each part: the frames of that
 * part's actors, in their order.  The directory's own first frame, which names its scheme, begins
 * every part that was empty.  The first record of a group has the key
 *
 *     "import" ‖ home id (16) ‖ commit (8, big-endian)
 *
 * so that an import that was interrupted goes on, and one that is repeated changes nothing.
 *
 * The journal home:root is left out: it is about the directory as a whole, which the fleet is not.
 */
#include <stdio.h>

#include "crypto/api.h"
#include "fleet/internal.h"
#include "ledger/api.h"

enum { KEY_PREFIX = 6, KEY_SIZE = KEY_PREFIX + 16 + 8 };

typedef struct part_state {
    cx_fleet_part part;
    bool opened;
    uint64_t first_commit; /* those before it are there */
} part_state;

typedef struct importing {
    cx_fleet *fleet;
    cx_log *log;
    uint8_t home_id[16];
    bool used[CX_FLEET_PARTS];
    unsigned used_count;
    part_state parts[CX_FLEET_PARTS];
    cx_fleet_moved *moved;
    cx_arena arena; /* of a commit */
    /* the directory's own frame, for parts that are empty */
    cx_buf own;
} importing;

/* What one frame is. */
typedef struct frame_kind {
    bool own, left_out, is_birth;
    unsigned part;
    cx_str actor;
} frame_kind;

static cx_status classify(importing *m, const cx_log_item *item, frame_kind *out, cx_err *err)
{
    cx_ledger_frame frame;
    CX_TRY(cx_frame_decode(&item->frame, cx_frame_erased(item), &m->arena, &frame, err));
    *out = (frame_kind){.own = frame.actor.size == 0,
                        .left_out = cx_str_is(frame.actor, CX_HOME_ROOT_ACTOR),
                        .actor = frame.actor,
                        .part = cx_fleet_part_of(frame.actor)};
    for (size_t i = 0; i < frame.change_count; i++)
        if (cx_str_is(cx_bytes_str(frame.changes[i].key), "meta/scheme"))
            out->is_birth = true;
    if (item->erasable_damaged && !item->half_erased)
        return cx_fail_at(err, CX_E_FORMAT, "LogDamaged", CX_NO_OFFSET,
                          "the log has a damaged frame; 'cortex verify --home' names it");
    return CX_SUCCESS;
}

/* --- the first pass: which parts -------------------------------------------------------------- */

static cx_status look_at_commit(importing *m, const cx_log_commit *commit, cx_err *err)
{
    for (size_t i = 0; i < commit->count; i++) {
        frame_kind kind;
        CX_TRY(classify(m, &commit->items[i], &kind, err));
        if (kind.own && (commit->number != 0 || i != 0))
            return cx_fail_at(err, CX_E_FORMAT, "LogDamaged", CX_NO_OFFSET,
                              "commit %llu: a frame of the directory itself, after its first",
                              (unsigned long long)commit->number);
        if (kind.own)
            cx_buf_add(&m->own, commit->items[i].frame.guarded.data,
                       commit->items[i].frame.guarded.size);
        if (kind.own || kind.left_out)
            continue;
        m->used_count += !m->used[kind.part];
        m->used[kind.part] = true;
        m->moved->actors += kind.is_birth;
    }
    return cx_buf_check(&m->own, err);
}

/* --- the second pass: groups ------------------------------------------------------------------ */

static void make_key(const importing *m, uint64_t commit, uint8_t out[KEY_SIZE])
{
    memcpy(out, "import", KEY_PREFIX);
    memcpy(out + KEY_PREFIX, m->home_id, 16);
    for (unsigned i = 0; i < 8; i++)
        out[KEY_PREFIX + 16 + i] = (uint8_t)(commit >> (56 - 8 * i));
}

/* The identity of a part's log: the directory's own when it has all actors, so that its export has
 * the same bytes; else one that follows from it. */
static void part_identity(const importing *m, unsigned part, uint8_t out[16])
{
    static const char domain[] = "cortex.fleet.import.v1";
    uint8_t number = (uint8_t)part;
    memcpy(out, m->home_id, 16);
    if (m->used_count == 1)
        return;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, m->home_id, 16);
    cx_sha256_add(&hash, &number, 1);
    cx_digest digest = cx_sha256_end(&hash);
    memcpy(out, digest.bytes, 16);
}

static cx_status read_last_key(void *arg, const cx_pg_value *columns, cx_err *err)
{
    uint64_t *commits = arg;
    (void)err;
    if (columns[0].text.size != KEY_SIZE)
        return CX_SUCCESS;
    *commits = 0;
    for (unsigned i = 0; i < 8; i++)
        *commits = *commits << 8 | (uint8_t)columns[0].text.data[KEY_PREFIX + 16 + i];
    ++*commits;
    return CX_SUCCESS;
}

static cx_status find_last_import(importing *m, part_state *state, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    uint8_t low[KEY_SIZE], high[KEY_SIZE];
    make_key(m, 0, low);
    make_key(m, UINT64_MAX, high);
    const cx_pg_value values[] = {cx_fleet_int(state->part.number), cx_fleet_bytes(low, KEY_SIZE),
                                  cx_fleet_bytes(high, KEY_SIZE)};
    return cx_pg_query(m->fleet->pg,
                       "SELECT key FROM " CX_T_SEEN
                       " WHERE part = $1 AND key BETWEEN $2 AND $3 ORDER BY key DESC LIMIT 1",
                       values, CX_COUNT_OF(values), types, 1, read_last_key, &state->first_commit,
                       NULL, err);
}

static cx_status append_group(importing *m, part_state *state, const cx_fleet_record *records,
                              size_t count, cx_err *err)
{
    cx_fleet_place *places = CX_ARENA_ARRAY(&m->arena, cx_fleet_place, count);
    if (places == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_fleet_append(m->fleet, &state->part, records, count, places, err));
    m->moved->groups++;
    m->moved->frames += count;
    for (size_t i = 0; i < count; i++)
        m->moved->bytes += records[i].frame.guarded.size + records[i].frame.erasable.size;
    if (state->part.owned)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET,
                      "part %u was taken by another node; the same import goes on where it was",
                      state->part.number);
}

static cx_status open_part(importing *m, unsigned number, part_state *state, cx_err *err)
{
    uint8_t home_id[16];
    bool taken = false;
    state->part = (cx_fleet_part){.number = number};
    CX_TRY(cx_fleet_take(m->fleet, &state->part, &taken, err));
    if (!taken)
        return cx_fail_at(err, CX_E_BUSY, "PartHeld", CX_NO_OFFSET,
                          "part %u is held by another node; stop it, or wait until its lease ends",
                          number);
    state->opened = true;
    m->moved->parts++;
    part_identity(m, number, home_id);
    if (state->part.next == 0) {
        if (memcmp(state->part.home_id, home_id, sizeof home_id) != 0)
            CX_TRY(cx_fleet_adopt(m->fleet, &state->part, home_id, err));
        const cx_fleet_record own = {.frame.guarded = cx_buf_bytes(&m->own)};
        CX_TRY(append_group(m, state, &own, 1, err));
    }
    return find_last_import(m, state, err);
}

/* The frames of one part in a commit. */
static cx_status import_part(importing *m, unsigned number, const cx_log_commit *commit,
                             const frame_kind *kinds, cx_err *err)
{
    part_state *state = &m->parts[number];
    uint8_t key[KEY_SIZE];
    size_t count = 0;
    if (!state->opened)
        CX_TRY(open_part(m, number, state, err));
    if (commit->number < state->first_commit) {
        m->moved->repeated++;
        return CX_SUCCESS;
    }
    cx_fleet_record *records = CX_ARENA_ARRAY(&m->arena, cx_fleet_record, commit->count);
    if (records == NULL)
        return cx_fail_nomem(err);
    make_key(m, commit->number, key);
    for (size_t i = 0; i < commit->count; i++) {
        const cx_log_item *item = &commit->items[i];
        if (kinds[i].own || kinds[i].left_out || kinds[i].part != number)
            continue;
        cx_fleet_record *record = &records[count++];
        *record = (cx_fleet_record){.frame = item->frame};
        if (cx_frame_erased(item))
            record->frame.erasable = (cx_bytes){NULL, item->erasable_size};
        if (count == 1)
            record->key = cx_bytes_from(key, sizeof key);
        if (kinds[i].is_birth)
            record->actor = kinds[i].actor;
    }
    return append_group(m, state, records, count, err);
}

static cx_status import_commit(importing *m, const cx_log_commit *commit, cx_err *err)
{
    bool done[CX_FLEET_PARTS] = {false};
    frame_kind *kinds = CX_ARENA_ARRAY(&m->arena, frame_kind, commit->count);
    if (kinds == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < commit->count; i++) {
        CX_TRY(classify(m, &commit->items[i], &kinds[i], err));
        m->moved->left_out += kinds[i].left_out;
    }
    for (size_t i = 0; i < commit->count; i++) {
        if (kinds[i].own || kinds[i].left_out || done[kinds[i].part])
            continue;
        done[kinds[i].part] = true;
        CX_TRY(import_part(m, kinds[i].part, commit, kinds, err));
    }
    return CX_SUCCESS;
}

static cx_status scan_log(importing *m,
                          cx_status (*each)(importing *m, const cx_log_commit *commit, cx_err *err),
                          cx_err *err)
{
    cx_log_scan *scan;
    CX_TRY(cx_log_scan_begin(m->log, 0, &scan, err));
    cx_status status = CX_SUCCESS;
    for (bool end = false; !end && !cx_failed(status);) {
        cx_log_commit commit;
        cx_arena_mark mark = cx_arena_mark_now(&m->arena);
        status = cx_log_scan_next(scan, &commit, &end, err);
        if (!cx_failed(status) && !end)
            status = each(m, &commit, err);
        cx_arena_reset(&m->arena, mark);
    }
    cx_log_scan_end(scan);
    return status;
}

static cx_status import_log(importing *m, cx_err *err)
{
    cx_log_home_id(m->log, m->home_id);
    CX_TRY(scan_log(m, look_at_commit, err));
    if (m->own.size == 0)
        return cx_fail_at(err, CX_E_FORMAT, "LogDamaged", CX_NO_OFFSET,
                          "the log does not begin with the frame of a data directory");
    CX_TRY(scan_log(m, import_commit, err));
    for (unsigned i = 0; i < CX_FLEET_PARTS; i++)
        if (m->parts[i].opened && m->parts[i].part.owned)
            CX_TRY(cx_fleet_give_back(m->fleet, &m->parts[i].part, err));
    return CX_SUCCESS;
}

cx_status cx_fleet_import(cx_fleet *fleet, const char *home_path, cx_fleet_moved *out, cx_err *err)
{
    const cx_alloc *alloc = cx_alloc_default();
    char path[CX_FLEET_URL_MAX];
    cx_log_opened opened;
    *out = (cx_fleet_moved){0};
    if (snprintf(path, sizeof path, "%s/log", home_path) >= (int)sizeof path)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", home_path);
    CX_TRY(cx_home_format_check(fleet->io, home_path, alloc, err));
    importing *m = cx_alloc_zeroed(alloc, 1, sizeof *m);
    if (m == NULL)
        return cx_fail_nomem(err);
    m->fleet = fleet;
    m->moved = out;
    cx_arena_init(&m->arena, alloc, 0);
    cx_buf_init(&m->own, alloc);
    /* For writing: that takes the lock, and no process can write what would be missed. */
    cx_status status = cx_log_open(path, NULL, &m->log, &opened, err);
    if (status.code == CX_E_NOT_FOUND)
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoHome", CX_NO_OFFSET,
                            "there is no data directory at %s", home_path);
    if (!cx_failed(status))
        status = import_log(m, err);
    cx_log_close(m->log);
    cx_arena_done(&m->arena);
    cx_buf_done(&m->own);
    cx_alloc_free(alloc, m, sizeof *m);
    return status;
}
