/*
 * remote_answer.c - the answers of the writer process to its clients as bytes (see remote_wire.c).
 */
#include "base/api.h"
#include "socket/remote_wire_internal.h"

/* --- members ---------------------------------------------------------------------------------- */

enum {
    NUMBER = 0,
    ERROR = 1,
    VALUE = 2,
    VALUE_HASH = 3,
    ROOTS = 4,
    ACTORS = 5,
    ROWS = 6,
    SEQS = 7,
    MORE = 8,
    ENTRY = 9,
    PAYLOAD = 10,
    SALT = 11,
    ABOUT = 12,
    ERASED = 13,
    COUNTS = 14,
    COMMIT = 15,
    HOME_SCHEME = 16,
    HOME_ID = 17,
    IS_NEW = 18
};

static const members of_answer[CX_REMOTE_OP_END] = {
    [CX_REMOTE_HELLO] = {BIT(HOME_SCHEME) | BIT(HOME_ID), 0},
    [CX_REMOTE_ACTOR] = {BIT(ACTORS), 0},
    [CX_REMOTE_ACTORS] = {BIT(ACTORS), BIT(MORE)},
    [CX_REMOTE_GET] = {0, BIT(VALUE)},
    [CX_REMOTE_GET_AT] = {0, BIT(VALUE) | BIT(VALUE_HASH)},
    [CX_REMOTE_SCAN] = {BIT(ROWS), BIT(MORE)},
    [CX_REMOTE_ENTRY] = {BIT(ENTRY), BIT(PAYLOAD) | BIT(SALT) | BIT(ABOUT) | BIT(ERASED)},
    [CX_REMOTE_ABOUT] = {BIT(SEQS), BIT(MORE)},
    [CX_REMOTE_ROOTS] = {BIT(ROOTS), 0},
    [CX_REMOTE_TABLES] = {BIT(COUNTS), 0},
    [CX_REMOTE_TXN_BEGIN] = {BIT(ACTORS), BIT(IS_NEW)},
    [CX_REMOTE_TXN_GET] = {0, BIT(VALUE)},
    [CX_REMOTE_TXN_ROOTS] = {BIT(ROOTS), 0},
    [CX_REMOTE_TXN_COMMIT] = {BIT(COMMIT), 0},
    [CX_REMOTE_ARCHIVE] = {BIT(SEQS), BIT(MORE)},
    [CX_REMOTE_RESTORE] = {BIT(SEQS), BIT(MORE)},
};

/* --- errors ----------------------------------------------------------------------------------- */

enum {
    ERR_CODE = 0,
    ERR_TAG = 1,
    ERR_ERRNO = 2,
    ERR_OFFSET = 3,
    ERR_LINE = 4,
    ERR_COLUMN = 5,
    ERR_MESSAGE = 6
};

/* An error's tag is static storage, so that one from outside is looked up. */
static const char *const known_tags[] = {
    "AnswerTooLarge", "BadFrame",        "BadMessage",   "DatabaseDamaged",   "HolderEnds",
    "InTurn",         "InvalidArgument", "LogCut",       "LogDamaged",        "NoActor",
    "NoEntry",        "NoTurn",          "NonCanonical", "OtherDerivers",     "OtherVersion",
    "OutOfRange",     "Poisoned",        "RootMismatch", "SchemeUnsupported", "SnapshotNotFound",
    "TooManyClients", "TurnTimedOut",    "OtherUser",    "ArchivesItself",
};

const char *cx_remote_tag(cx_str text)
{
    for (size_t i = 0; i < CX_COUNT_OF(known_tags); i++)
        if (cx_str_is(text, known_tags[i]))
            return known_tags[i];
    return NULL;
}

static void put_error(const cx_err *err, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_str message = cx_str_z(err->message);
    cx_cbor_fields_begin(&fields, out);
    put_uint(&fields, ERR_CODE, (uint64_t)err->code);
    if (err->tag != NULL) {
        cx_cbor_field(&fields, ERR_TAG);
        cx_cbor_text(out, cx_str_z(err->tag));
    }
    if (err->os_errno > 0)
        put_uint(&fields, ERR_ERRNO, (uint64_t)err->os_errno);
    if (err->offset != CX_NO_OFFSET)
        put_uint(&fields, ERR_OFFSET, err->offset);
    if (err->line != 0)
        put_uint(&fields, ERR_LINE, err->line);
    if (err->column != 0)
        put_uint(&fields, ERR_COLUMN, err->column);
    cx_cbor_field(&fields, ERR_MESSAGE);
    cx_cbor_text(out, cx_utf8_valid(message) ? message : CX_STR("(not text)"));
    cx_cbor_fields_end(&fields);
}

typedef struct answer_error {
    uint64_t code, os_errno, offset, line, column;
    cx_str tag, message;
} answer_error;

static uint64_t read_not_zero(cx_cbor_reader *reader, const cx_cbor_members *at, uint64_t max)
{
    uint64_t value = cx_cbor_read_uint_max(reader, max);
    if (cx_cbor_ok(reader) && value == 0)
        cx_cbor_reject_empty(reader, at);
    return value;
}

static void read_error_member(cx_cbor_reader *reader, const cx_cbor_members *at, answer_error *told)
{
    switch (at->key) {
    case ERR_CODE: told->code = read_not_zero(reader, at, CX_E_UNSUPPORTED); break;
    case ERR_TAG: told->tag = cx_cbor_read_text(reader); break;
    case ERR_ERRNO: told->os_errno = read_not_zero(reader, at, INT32_MAX); break;
    case ERR_OFFSET: told->offset = cx_cbor_read_uint_max(reader, CX_NO_OFFSET - 1); break;
    case ERR_LINE: told->line = read_not_zero(reader, at, UINT64_MAX); break;
    case ERR_COLUMN: told->column = read_not_zero(reader, at, UINT64_MAX); break;
    case ERR_MESSAGE: told->message = cx_cbor_read_text(reader); break;
    default: cx_cbor_reject_member(reader, at);
    }
}

static int int_of(size_t size)
{
    return size > CX_ERR_MESSAGE_SIZE ? CX_ERR_MESSAGE_SIZE : (int)size;
}

static void read_error(cx_cbor_reader *reader, cx_err *out)
{
    answer_error told = {.offset = CX_NO_OFFSET};
    cx_cbor_members at = cx_cbor_read_members(reader);
    while (cx_cbor_next_member(reader, &at))
        read_error_member(reader, &at, &told);
    cx_cbor_require(reader, &at, BIT(ERR_CODE) | BIT(ERR_MESSAGE));
    if (!cx_cbor_ok(reader))
        return;
    const char *tag = told.tag.size == 0 ? NULL : cx_remote_tag(told.tag);
    bool strange = told.tag.size != 0 && tag == NULL;
    (void)cx_fail_at(out, (cx_code)told.code, tag, told.offset, "%.*s%s%.*s",
                     strange ? int_of(told.tag.size) : 0, strange ? told.tag.data : "",
                     strange ? ": " : "", int_of(told.message.size), told.message.data);
    out->os_errno = (int)told.os_errno;
    out->line = told.line;
    out->column = told.column;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void put_actors(const cx_remote_answer *answer, cx_buf *out)
{
    cx_cbor_array(out, answer->actor_count);
    for (size_t i = 0; i < answer->actor_count; i++) {
        const cx_actor_info *actor = &answer->actors[i];
        cx_cbor_array(out, 7);
        cx_cbor_text(out, actor->name);
        cx_cbor_text(out, cx_scheme_name(actor->scheme));
        cx_cbor_uint(out, actor->entry_count);
        cx_cbor_uint(out, actor->snapshot_count);
        cx_cbor_uint(out, actor->live_memories);
        cx_cbor_uint(out, actor->tombstoned);
        cx_cbor_uint(out, actor->edge_count);
    }
}

static void expect_members(cx_cbor_reader *reader, size_t count)
{
    size_t at = reader->offset;
    size_t found = cx_cbor_read_array(reader, count);
    if (cx_cbor_ok(reader) && found != count)
        cx_cbor_reject(reader, at, "%zu items where there are %zu", found, count);
}

static cx_actor_info read_actor(cx_cbor_reader *reader)
{
    cx_actor_info actor = {.entry_count = 0};
    expect_members(reader, 7);
    size_t at = reader->offset;
    actor.name = cx_cbor_read_text(reader);
    if (cx_cbor_ok(reader) && (actor.name.size == 0 || actor.name.size > CX_ACTOR_SIZE_MAX))
        cx_cbor_reject(reader, at, "no name of an actor");
    actor.scheme = read_scheme(reader);
    actor.entry_count = cx_cbor_read_uint(reader);
    actor.snapshot_count = cx_cbor_read_uint(reader);
    actor.live_memories = cx_cbor_read_uint(reader);
    actor.tombstoned = cx_cbor_read_uint(reader);
    actor.edge_count = cx_cbor_read_uint(reader);
    return actor;
}

static void read_actors(cx_cbor_reader *reader, cx_remote_op op, cx_arena *arena,
                        cx_remote_answer *out)
{
    size_t at = reader->offset;
    size_t count = cx_cbor_read_array(reader, CX_REMOTE_ROWS_MAX);
    if (cx_cbor_ok(reader) && op != CX_REMOTE_ACTORS && count != 1)
        cx_cbor_reject(reader, at, "%zu actors where one was asked for", count);
    cx_actor_info *actors = READ_ARRAY(reader, arena, cx_actor_info, count);
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++)
        actors[i] = read_actor(reader);
    out->actors = actors;
    out->actor_count = count;
}

static void put_rows(const cx_remote_answer *answer, cx_buf *out)
{
    cx_cbor_array(out, answer->row_count);
    for (size_t i = 0; i < answer->row_count; i++) {
        cx_cbor_array(out, 2);
        cx_cbor_bytes(out, answer->rows[i].key);
        cx_cbor_bytes(out, answer->rows[i].value);
    }
}

static void read_rows(cx_cbor_reader *reader, cx_arena *arena, cx_remote_answer *out)
{
    size_t count = cx_cbor_read_array(reader, CX_REMOTE_ROWS_MAX);
    cx_remote_row *rows = READ_ARRAY(reader, arena, cx_remote_row, count);
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++) {
        expect_members(reader, 2);
        rows[i].key = read_bytes_max(reader, CX_KEY_SIZE_MAX);
        rows[i].value = cx_cbor_read_bytes(reader);
    }
    out->rows = rows;
    out->row_count = count;
}

static void put_seqs(const cx_remote_answer *answer, cx_buf *out)
{
    cx_cbor_array(out, answer->seq_count);
    for (size_t i = 0; i < answer->seq_count; i++)
        cx_cbor_uint(out, answer->seqs[i]);
}

static void read_seqs(cx_cbor_reader *reader, cx_arena *arena, cx_remote_answer *out)
{
    size_t count = cx_cbor_read_array(reader, CX_REMOTE_ROWS_MAX);
    uint64_t *seqs = READ_ARRAY(reader, arena, uint64_t, count);
    for (size_t i = 0; i < count && cx_cbor_ok(reader); i++)
        seqs[i] = cx_cbor_read_uint(reader);
    out->seqs = seqs;
    out->seq_count = count;
}

static void put_roots(const cx_roots *roots, cx_buf *out)
{
    cx_cbor_array(out, 5);
    cx_cbor_uint(out, roots->journal_size);
    cx_cbor_digest(out, &roots->journal);
    cx_cbor_digest(out, &roots->edges);
    cx_cbor_digest(out, &roots->memories);
    cx_cbor_digest(out, &roots->overall);
}

static cx_roots read_roots(cx_cbor_reader *reader)
{
    cx_roots roots = {.journal_size = 0};
    expect_members(reader, 5);
    roots.journal_size = cx_cbor_read_uint(reader);
    roots.journal = cx_cbor_read_digest(reader);
    roots.edges = cx_cbor_read_digest(reader);
    roots.memories = cx_cbor_read_digest(reader);
    roots.overall = cx_cbor_read_digest(reader);
    return roots;
}

static void put_tables(const cx_tables_status *tables, cx_buf *out)
{
    cx_cbor_array(out, 4);
    cx_cbor_uint(out, tables->log_commits);
    cx_cbor_uint(out, tables->table_commits);
    cx_cbor_uint(out, tables->entry_rows);
    cx_cbor_uint(out, tables->record_rows);
}

static cx_tables_status read_tables(cx_cbor_reader *reader)
{
    cx_tables_status tables = {.log_commits = 0};
    expect_members(reader, 4);
    tables.log_commits = cx_cbor_read_uint(reader);
    tables.table_commits = cx_cbor_read_uint(reader);
    tables.entry_rows = cx_cbor_read_uint(reader);
    tables.record_rows = cx_cbor_read_uint(reader);
    return tables;
}

static void put_lists(const cx_remote_answer *answer, const members *known, cx_cbor_fields *fields)
{
    if (takes(known, ROOTS)) {
        cx_cbor_field(fields, ROOTS);
        put_roots(&answer->roots, fields->out);
    }
    if (takes(known, ACTORS)) {
        cx_cbor_field(fields, ACTORS);
        put_actors(answer, fields->out);
    }
    if (takes(known, ROWS)) {
        cx_cbor_field(fields, ROWS);
        put_rows(answer, fields->out);
    }
    if (takes(known, SEQS)) {
        cx_cbor_field(fields, SEQS);
        put_seqs(answer, fields->out);
    }
    if (takes(known, MORE) && answer->more)
        put_true(fields, MORE);
}

static void put_entry(const cx_remote_answer *answer, cx_cbor_fields *fields)
{
    put_bytes(fields, ENTRY, answer->entry);
    if (answer->committed) {
        put_bytes(fields, PAYLOAD, answer->payload);
        put_bytes(fields, SALT, cx_bytes_from(answer->salt, sizeof answer->salt));
    }
    if (answer->has_subject)
        put_bytes(fields, ABOUT, cx_bytes_from(answer->subject.bytes, 16));
    if (answer->erased)
        put_true(fields, ERASED);
}

static void put_data_directory(const cx_remote_answer *answer, cx_cbor_fields *fields)
{
    cx_cbor_field(fields, HOME_SCHEME);
    cx_cbor_text(fields->out, cx_scheme_name(answer->scheme));
    put_bytes(fields, HOME_ID, cx_bytes_from(answer->home_id, sizeof answer->home_id));
}

void cx_remote_answer_encode(const cx_remote_answer *answer, cx_remote_op op, cx_buf *out)
{
    const members *known = &of_answer[op];
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    put_uint(&fields, NUMBER, answer->number);
    if (answer->failed) {
        cx_cbor_field(&fields, ERROR);
        put_error(&answer->err, out);
        cx_cbor_fields_end(&fields);
        return;
    }
    if (takes(known, VALUE) && answer->has_value)
        put_bytes(&fields, VALUE, answer->value);
    if (takes(known, VALUE_HASH) && answer->erased)
        put_bytes(&fields, VALUE_HASH, cx_bytes_from(answer->value_hash.bytes, 32));
    put_lists(answer, known, &fields);
    if (takes(known, ENTRY))
        put_entry(answer, &fields);
    if (takes(known, COUNTS)) {
        cx_cbor_field(&fields, COUNTS);
        put_tables(&answer->tables, out);
    }
    if (takes(known, COMMIT))
        put_uint(&fields, COMMIT, answer->commit);
    if (takes(known, HOME_SCHEME))
        put_data_directory(answer, &fields);
    if (takes(known, IS_NEW) && answer->is_new)
        put_true(&fields, IS_NEW);
    cx_cbor_fields_end(&fields);
}

static void read_answer_member(cx_cbor_reader *reader, cx_remote_op op, cx_arena *arena,
                               const cx_cbor_members *at, cx_remote_answer *out)
{
    switch (at->key) {
    case NUMBER: out->number = cx_cbor_read_uint(reader); break;
    case ERROR:
        read_error(reader, &out->err);
        out->failed = true;
        break;
    case VALUE:
        out->value = cx_cbor_read_bytes(reader);
        out->has_value = true;
        break;
    case VALUE_HASH:
        out->value_hash = cx_cbor_read_digest(reader);
        out->erased = true;
        break;
    case ROOTS: out->roots = read_roots(reader); break;
    case ACTORS: read_actors(reader, op, arena, out); break;
    case ROWS: read_rows(reader, arena, out); break;
    case SEQS: read_seqs(reader, arena, out); break;
    case MORE: out->more = read_true(reader); break;
    case ENTRY: out->entry = cx_cbor_read_bytes(reader); break;
    case PAYLOAD: out->payload = cx_cbor_read_bytes(reader); break;
    case SALT: out->committed = cx_cbor_read_exactly(reader, out->salt, sizeof out->salt); break;
    case ABOUT:
        out->subject = read_id(reader);
        out->has_subject = true;
        break;
    case ERASED: out->erased = read_true(reader); break;
    case COUNTS: out->tables = read_tables(reader); break;
    case COMMIT: out->commit = cx_cbor_read_uint(reader); break;
    case HOME_SCHEME: out->scheme = read_scheme(reader); break;
    case HOME_ID: (void)cx_cbor_read_exactly(reader, out->home_id, sizeof out->home_id); break;
    case IS_NEW: out->is_new = read_true(reader); break;
    default: cx_cbor_reject_member(reader, at);
    }
}

/* What goes together is there together, or not at all. */
static bool is_whole(uint64_t seen, cx_remote_op op)
{
    bool both = op == CX_REMOTE_GET_AT && (seen & BIT(VALUE)) != 0 && (seen & BIT(VALUE_HASH)) != 0;
    bool half = ((seen & BIT(PAYLOAD)) != 0) != ((seen & BIT(SALT)) != 0);
    bool gone = (seen & BIT(PAYLOAD)) != 0 && (seen & BIT(ERASED)) != 0;
    return !both && !half && !gone;
}

cx_status cx_remote_answer_decode(cx_bytes bytes, cx_remote_op op, cx_arena *arena,
                                  cx_remote_answer *out, cx_err *err)
{
    const members none = {0, 0};
    cx_cbor_reader reader;
    cx_remote_answer answer = {.number = 0};
    cx_cbor_begin(&reader, bytes, "an answer");
    cx_cbor_members at = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &at))
        read_answer_member(&reader, op, arena, &at, &answer);
    cx_cbor_require(&reader, &at, BIT(NUMBER));
    const members *known = answer.failed ? &none : &of_answer[op];
    if (cx_cbor_ok(&reader) && (!is_in_range(known, at.seen) || !is_whole(at.seen, op)))
        cx_cbor_reject(&reader, at.offset, "not the members of an answer to call %d", (int)op);
    if (cx_cbor_ok(&reader) && !answer.failed && answer.number == 0)
        cx_cbor_reject(&reader, at.offset, "a notice of nothing");
    CX_TRY(cx_cbor_end(&reader, err));
    *out = answer;
    return CX_SUCCESS;
}
