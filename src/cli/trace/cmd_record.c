/*
 * cmd_record.c - `cortex record`: signed traces from files into the ledger (trace.md §9, §11).
 *
 * A file is a batch as POST /events accepts it, one trace, or JSON Lines of either; its first
 * line decides. Lines are recorded as they arrive, without waiting for the end of a pipe, and a
 * bad line does not affect others.
 */
#include <string.h>

#include "base/api.h"
#include "cli/erasure/sensitive_args.h"
#include "cli/trace/trace.h"
#include "json/api.h"

/* A batch and a trace are at most that long; one byte more shows that it is too much. */
#define TEXT_BYTES_MAX ((size_t)CX_BATCH_BYTES_MAX + 1)
#define CHUNK_BYTES ((size_t)256 << 10)
/* Lines that share one write. */
#define GROUP_TRACES 256
#define GROUP_BYTES ((size_t)8 << 20)

typedef struct record_state {
    cx_trace_level level;
    uint64_t received, counts[CX_INTAKE_REJECTED + 1];
    bool unreadable; /* a file, or a part of one */
} record_state;

/* One file on its way in. */
typedef struct reading {
    cx_cli_traces *t;
    record_state *state;
    const char *path;
    cx_file file;
    bool owned; /* the file is to be closed */
    bool ended;
    bool failed_reading;
    cx_buf text; /* what was read; used up to `at` */
    size_t at;
    cx_arena arena;         /* of one group */
    CX_VEC(cx_bytes) group; /* traces of lines that wait to be recorded */
    size_t group_size;
    CX_VEC(cx_intake_event) outcome; /* with --json: all of the file, in the command's arena */
    bool printed_kind;
} reading;

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status fill_buffer(reading *r, cx_err *err)
{
    const cx_io *io = r->t->l->cli->io;
    if (r->at != 0) {
        memmove(r->text.data, r->text.data + r->at, r->text.size - r->at);
        r->text.size -= r->at;
        r->at = 0;
    }
    uint8_t *room = cx_buf_reserve(&r->text, CHUNK_BYTES);
    if (room == NULL)
        return cx_fail_nomem(err);
    /* One call: whatever a pipe has now is read now. */
    int64_t got = io->read(io, r->file, room, CHUNK_BYTES);
    r->failed_reading = got < 0;
    if (got < 0)
        return cx_fail_os(err, (int)-got, "cannot read %s", r->path);
    cx_buf_advance(&r->text, (size_t)got);
    r->ended = got == 0;
    return CX_SUCCESS;
}

static cx_str unread_text(const reading *r)
{
    return cx_str_from((const char *)r->text.data + r->at, r->text.size - r->at);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static cx_str trim_text(cx_str text)
{
    while (text.size != 0 && is_space(text.data[0]))
        text = cx_str_from(text.data + 1, text.size - 1);
    while (text.size != 0 && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/*
 * The next line that is not empty, without its end; *out_there is false after the last. Of a
 * line that is too long, its beginning, which is then rejected for its length; the rest is skipped.
 */
static cx_status next_line(reading *r, cx_str *out, bool *out_there, cx_err *err)
{
    size_t seen = 0;
    for (;;) {
        cx_str text = unread_text(r);
        const char *end =
            seen == text.size ? NULL : memchr(text.data + seen, '\n', text.size - seen);
        if (end == NULL && !r->ended && text.size < TEXT_BYTES_MAX) {
            seen = text.size;
            CX_TRY(fill_buffer(r, err));
            continue;
        }
        size_t size = end != NULL ? (size_t)(end - text.data) : text.size;
        *out = trim_text(cx_str_from(text.data, size));
        *out_there = out->size != 0;
        r->at += end != NULL ? size + 1 : size;
        if (*out_there || (end == NULL && r->ended))
            return CX_SUCCESS;
        seen = 0;
    }
}

/* After a line that was too long to be read to its end. */
static cx_status skip_line(reading *r, cx_err *err)
{
    for (;;) {
        cx_str text = unread_text(r);
        const char *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
        r->at += end != NULL ? (size_t)(end - text.data) + 1 : text.size;
        if (end != NULL || r->ended)
            return CX_SUCCESS;
        CX_TRY(fill_buffer(r, err));
    }
}

/* --- what it is ------------------------------------------------------------------------------- */

/* One value whose brackets balance. */
static bool is_closed(cx_str text)
{
    cx_json_span span;
    cx_str name, value;
    if (!cx_json_span_begin(&span, text))
        return false;
    while (cx_json_span_next(&span, &name, &value))
        continue;
    return span.done && !span.bad;
}

/* An object with a member "events"; a trace has none. */
static bool is_batch(cx_str text)
{
    cx_json_span span;
    cx_str name, value;
    bool found = false;
    if (text.size == 0 || text.data[0] != '{' || !cx_json_span_begin(&span, text))
        return false;
    while (!found && cx_json_span_next(&span, &name, &value))
        found = cx_str_is(name, "\"events\"");
    return found;
}

/* --- reporting the outcome ------------------------------------------------------------------- */

static void print_kind(reading *r, const char *kind)
{
    if (r->printed_kind || r->t->l->json)
        return;
    r->printed_kind = true;
    cx_shown_add(&r->t->l->out, cx_str_z(r->path));
    cx_buf_printf(&r->t->l->out, ": %s\n", kind);
}

static void add_external_text(cx_buf *out, cx_str text)
{
    cx_shown_add(out, text.data == NULL ? CX_STR("(no id)") : text);
}

static void print_reason(cx_buf *out, const cx_trace_verdict *verdict)
{
    const cx_trace_problem *problem = &verdict->problem;
    cx_buf_printf(out, "  %s", cx_trace_reason_name(problem->reason));
    if (problem->path.size != 0) {
        cx_buf_add_byte(out, ' ');
        cx_shown_add(out, problem->path);
    }
    if (verdict->path_count > 1)
        cx_buf_printf(out, " and %llu more", (unsigned long long)(verdict->path_count - 1));
    if (problem->detail.size != 0) {
        cx_buf_add_z(out, ": ");
        cx_shown_add(out, problem->detail);
    }
}

static void print_event(cx_buf *out, const cx_intake_event *outcome)
{
    cx_buf_printf(out, "  %-10s ", cx_intake_event_status_name(outcome->status));
    add_external_text(out, outcome->trace_id);
    if (outcome->status == CX_INTAKE_STORED)
        cx_buf_printf(out, "  form %s", cx_trace_form_name(outcome->verdict.form));
    else if (outcome->status != CX_INTAKE_DUPLICATE)
        print_reason(out, &outcome->verdict);
    if (outcome->stripped_count != 0)
        cx_buf_printf(out, "  %llu fields left out", (unsigned long long)outcome->stripped_count);
    cx_buf_add_byte(out, '\n');
}

/* Standard output now, so that who reads along sees what is on the disk. */
static cx_status flush_text(reading *r, cx_err *err)
{
    cx_cli_ledger *l = r->t->l;
    CX_TRY(cx_buf_check(&l->out, err));
    cx_cli_out_write(&l->cli->out, cx_buf_str(&l->out));
    cx_buf_clear(&l->out);
    return CX_SUCCESS;
}

static bool copy_text(cx_arena *arena, cx_str *text)
{
    if (text->data == NULL)
        return true;
    *text = cx_arena_copy_str(arena, *text);
    return text->data != NULL;
}

static bool copy_texts(cx_arena *arena, const cx_str **texts, size_t count)
{
    cx_str *copy = CX_ARENA_ARRAY(arena, cx_str, count + 1);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = (*texts)[i];
        if (!copy_text(arena, &copy[i]))
            return false;
    }
    *texts = copy;
    return copy != NULL;
}

/* For the answer about the whole file, which comes at its end. */
static cx_status add_event_json(reading *r, const cx_intake_event *outcome, cx_err *err)
{
    cx_cli_ledger *l = r->t->l;
    cx_intake_event *slot = cx_vec_push(&r->outcome, l->cli->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *outcome;
    cx_trace_verdict *verdict = &slot->verdict;
    bool good = copy_text(l->arena, &slot->trace_id) && copy_text(l->arena, &slot->signing_key) &&
                copy_text(l->arena, &slot->actor) && copy_text(l->arena, &verdict->problem.path) &&
                copy_text(l->arena, &verdict->problem.detail) &&
                copy_texts(l->arena, &verdict->paths, verdict->path_count) &&
                copy_texts(l->arena, &slot->stripped, slot->stripped_count);
    return good ? CX_SUCCESS : cx_fail_nomem(err);
}

static cx_status report_event(reading *r, const cx_intake_event *outcome, cx_err *err)
{
    r->state->received++;
    r->state->counts[outcome->status]++;
    if (r->t->l->json)
        return add_event_json(r, outcome, err);
    print_event(&r->t->l->out, outcome);
    return CX_SUCCESS;
}

static cx_status report_intake(reading *r, const cx_intake *intake, cx_err *err)
{
    for (size_t i = 0; i < intake->received; i++)
        CX_TRY(report_event(r, &intake->events[i], err));
    return CX_SUCCESS;
}

/* Input that is not JSON counts as one rejected trace. */
static cx_status report_problem(reading *r, const cx_batch_problem *problem, cx_err *err)
{
    static const struct {
        const char *type;
        cx_trace_reason reason;
    } reasons[] = {{"invalid-utf8", CX_REASON_INVALID_UTF8},
                   {"duplicate-key", CX_REASON_DUPLICATE_KEY},
                   {"too-large", CX_REASON_LIMIT_EXCEEDED},
                   {"invalid-batch", CX_REASON_FIELD_TYPE}};
    cx_intake_event outcome = {.status = CX_INTAKE_REJECTED,
                               .verdict = {.verdict = CX_BROKEN,
                                           .problem = {.reason = CX_REASON_MALFORMED_JSON,
                                                       .path = problem->pointer,
                                                       .detail = problem->detail},
                                           .form = CX_FORM_NONE}};
    for (size_t i = 0; i < CX_COUNT_OF(reasons); i++)
        if (strcmp(reasons[i].type, problem->type) == 0)
            outcome.verdict.problem.reason = reasons[i].reason;
    return report_event(r, &outcome, err);
}

/* --- taking ----------------------------------------------------------------------------------- */

static cx_status record_batch(reading *r, cx_str text, cx_err *err)
{
    cx_intake intake;
    CX_TRY(cx_recorder_receive(r->t->recorder, cx_str_bytes(text), CX_CAPTURE_IMPORTED, &r->arena,
                               &intake, err));
    return intake.problem.http != 0 ? report_problem(r, &intake.problem, err)
                                    : report_intake(r, &intake, err);
}

static cx_status record_traces(reading *r, const cx_bytes *traces, size_t count, cx_err *err)
{
    cx_intake intake;
    CX_TRY(cx_recorder_receive_traces(r->t->recorder, traces, count, r->state->level,
                                      CX_CAPTURE_IMPORTED, &r->arena, &intake, err));
    return report_intake(r, &intake, err);
}

static cx_status record_group(reading *r, cx_err *err)
{
    if (r->group.count != 0)
        CX_TRY(record_traces(r, r->group.items, r->group.count, err));
    r->group.count = 0;
    r->group_size = 0;
    cx_arena_done(&r->arena);
    cx_arena_init(&r->arena, r->t->l->cli->alloc, 0);
    return r->t->l->json ? CX_SUCCESS : flush_text(r, err);
}

static cx_status add_to_group(reading *r, cx_str line, cx_err *err)
{
    cx_bytes *slot = cx_vec_push(&r->group, r->t->l->cli->alloc);
    cx_str copy = cx_arena_copy_str(&r->arena, line);
    if (slot == NULL || copy.data == NULL)
        return cx_fail_nomem(err);
    *slot = cx_str_bytes(copy);
    r->group_size += line.size;
    return CX_SUCCESS;
}

/* Whether a line has arrived: a group does not wait for later data of a pipe. */
static bool has_line(const reading *r)
{
    cx_str text = unread_text(r);
    return r->ended || (text.size != 0 && memchr(text.data, '\n', text.size) != NULL);
}

static cx_status record_line(reading *r, cx_str line, cx_err *err)
{
    bool long_line = line.size >= TEXT_BYTES_MAX;
    if (is_batch(line)) {
        CX_TRY(record_group(r, err));
        CX_TRY(record_batch(r, line, err));
        CX_TRY(record_group(r, err));
    } else {
        CX_TRY(add_to_group(r, line, err));
    }
    if (long_line)
        CX_TRY(skip_line(r, err));
    bool full = r->group.count >= GROUP_TRACES || r->group_size >= GROUP_BYTES;
    return full || !has_line(r) ? record_group(r, err) : CX_SUCCESS;
}

static cx_status record_lines(reading *r, cx_str line, cx_err *err)
{
    bool there = true;
    print_kind(r, "JSON Lines");
    while (there) {
        CX_TRY(record_line(r, line, err));
        CX_TRY(next_line(r, &line, &there, err));
    }
    return record_group(r, err);
}

/* The whole text is one document. */
static cx_status record_document(reading *r, cx_err *err)
{
    while (!r->ended && unread_text(r).size < TEXT_BYTES_MAX)
        CX_TRY(fill_buffer(r, err));
    cx_str text = unread_text(r);
    if (text.size > TEXT_BYTES_MAX)
        text.size = TEXT_BYTES_MAX;
    if (is_batch(trim_text(text))) {
        print_kind(r, "a batch");
        CX_TRY(record_batch(r, text, err));
    } else {
        print_kind(r, "one trace");
        cx_str trace = trim_text(text);
        const cx_bytes bytes = cx_str_bytes(trace);
        CX_TRY(record_traces(r, &bytes, 1, err));
    }
    return record_group(r, err);
}

/* The first line in `text` that is not empty, and the text after it. */
static void split_line(cx_str text, cx_str *out_line, cx_str *out_lag)
{
    while (text.size != 0 && is_space(text.data[0]))
        text = cx_str_from(text.data + 1, text.size - 1);
    const char *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    size_t size = end == NULL ? text.size : (size_t)(end - text.data);
    *out_line = trim_text(cx_str_from(text.data, size));
    *out_lag = cx_str_from(text.data + size, text.size - size);
}

/* Reads until the first line is complete and, if that needs no waiting, the beginning of the
 * next. Nothing is consumed. */
static cx_status detect_form(reading *r, cx_err *err)
{
    const cx_io *io = r->t->l->cli->io;
    uint64_t size;
    bool regular = false;
    if (io->size(io, r->file, &size, &regular) != 0)
        regular = false;
    for (;;) {
        cx_str line, lag;
        split_line(unread_text(r), &line, &lag);
        bool enough = regular || !is_closed(line) ? trim_text(lag).size != 0 : lag.size != 0;
        if (enough || r->ended || unread_text(r).size >= TEXT_BYTES_MAX)
            return CX_SUCCESS;
        CX_TRY(fill_buffer(r, err));
    }
}

static cx_status record_complete_line(reading *r, cx_str line, cx_err *err)
{
    print_kind(r, is_batch(line) ? "a batch" : "one trace");
    return record_document(r, err);
}

/*
 * The first line decides. When it is a complete value and more follows, the file is JSON Lines.
 * In a document the line after an open brace begins with a name; another brace there means JSON
 * Lines with one damaged line.
 */
static cx_status record_input_file(reading *r, cx_err *err)
{
    cx_str line, lag, next, unused;
    bool there;
    CX_TRY(detect_form(r, err));
    split_line(unread_text(r), &line, &lag);
    split_line(lag, &next, &unused);
    bool is_open = line.size != 0 && (line.data[0] == '{' || line.data[0] == '[');
    if (line.size == 0) {
        print_kind(r, "nothing in it");
        return record_group(r, err);
    }
    if (is_closed(line) && next.size == 0 && r->ended)
        return record_complete_line(r, line, err);
    if (is_open && !is_closed(line) && (next.size == 0 || next.data[0] != '{'))
        return record_document(r, err);
    CX_TRY(next_line(r, &line, &there, err));
    return there ? record_lines(r, line, err) : CX_SUCCESS;
}

/* --- files ------------------------------------------------------------------------------------ */

static cx_status open_file(reading *r, cx_err *err)
{
    const cx_io *io = r->t->l->cli->io;
    if (strcmp(r->path, "-") == 0) {
        r->file = CX_FILE_STDIN;
        return CX_SUCCESS;
    }
    int failed = io->open(io, r->path, CX_IO_READ, &r->file);
    r->failed_reading = failed != 0;
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", r->path);
    r->owned = true;
    return CX_SUCCESS;
}

/* With --json: what POST /events would have answered to all of the file. */
static cx_status answer_record(reading *r, cx_err *err)
{
    cx_intake all = {.events = r->outcome.items, .received = r->outcome.count};
    if (!r->t->l->json)
        return CX_SUCCESS;
    for (size_t i = 0; i < all.received; i++)
        all.accepted += all.events[i].status <= CX_INTAKE_UNVERIFIED;
    all.rejected = all.received - all.accepted;
    CX_TRY(cx_intake_json(&r->t->l->out, &all, err));
    return flush_text(r, err);
}

/* Fails only with errors of the ledger: an unreadable file is reported, and the next one is
 * read. */
static cx_status record_file(cx_cli_traces *t, record_state *s, const char *path, cx_err *err)
{
    cx_cli *cli = t->l->cli;
    reading r = {.t = t, .state = s, .path = path, .file = CX_FILE_NONE};
    cx_buf_init(&r.text, cli->alloc);
    cx_arena_init(&r.arena, cli->alloc, 0);
    cx_status status = open_file(&r, err);
    if (!cx_failed(status))
        status = record_input_file(&r, err);
    bool unreadable = cx_failed(status) && r.failed_reading;
    if (unreadable) {
        (void)cx_cli_fail(cli, path, err, t->l->json);
        s->unreadable = true;
        status = CX_SUCCESS;
    }
    if (!cx_failed(status) && (!unreadable || r.outcome.count != 0))
        status = answer_record(&r, err);
    if (r.owned)
        (void)cli->io->close(cli->io, r.file);
    cx_vec_done(&r.group, cli->alloc);
    cx_vec_done(&r.outcome, cli->alloc);
    cx_arena_done(&r.arena);
    cx_buf_done(&r.text);
    return status;
}

static void sum_up(cx_cli_traces *t, const record_state *s)
{
    bool first = true;
    cx_buf *out = &t->l->out;
    if (t->l->json)
        return;
    cx_buf_printf(out, "%llu %s", (unsigned long long)s->received,
                  s->received == 1 ? "trace" : "traces");
    for (size_t i = 0; i < CX_COUNT_OF(s->counts); i++) {
        if (s->counts[i] == 0)
            continue;
        cx_buf_printf(out, "%s %llu %s", first ? ":" : ",", (unsigned long long)s->counts[i],
                      cx_intake_event_status_name((cx_intake_event_status)i));
        first = false;
    }
    cx_buf_add_byte(out, '\n');
}

static cx_status record_job(cx_cli_traces *t, void *arg, cx_err *err)
{
    record_state *s = arg;
    const cx_cli_args *args = t->l->args;
    for (size_t i = 0; i < args->operand_count; i++)
        CX_TRY(record_file(t, s, args->operands[i], err));
    sum_up(t, s);
    if (s->counts[CX_INTAKE_REJECTED] + s->counts[CX_INTAKE_CONFLICT] != 0)
        t->l->exit_code = CX_EXIT_BROKEN;
    if (s->unreadable)
        t->l->exit_code = CX_EXIT_UNCHECKED;
    return CX_SUCCESS;
}

/* --- the command ------------------------------------------------------------------------------ */

static bool option_is(const cx_cli_args *args, const char *option, const char *word)
{
    const char *value = cx_cli_value(args, option);
    return value != NULL && strcmp(value, word) == 0;
}

static int run_record(cx_cli *cli, const cx_cli_args *args)
{
    cx_recorder_options policy = {
        .keep_unknown = option_is(args, "unknown-key", "keep"),
        .strip_level = option_is(args, "level-policy", "strip"),
    };
    const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .feeds_index = true, .options = &policy, .work = record_job};
    record_state s = {.level = cx_cli_level_option(args, "level", CX_LEVEL_ABSENT)};
    cx_err err = {0};
    if (cx_failed(cx_cli_sensitive_rules(cli, args, &policy.sensitive, &err)))
        return cx_cli_ledger_fail(cli, args, &err);
    return cx_cli_run_traces(cli, args, &job, &s);
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "The level of traces that name none and are not in a batch; default generic."),
    CX_CLI_OPT("unknown-key", 0, CX_CLI_CHOICE, "reject|keep",
               "What to do with a trace whose key is not registered: reject it (the default), or "
               "store it unverified and outside all scores until its key is registered."),
    CX_CLI_OPT("level-policy", 0, CX_CLI_CHOICE, "reject|strip",
               "What to do with a trace that carries more than its level allows: reject it (the "
               "default), or check its signature and store it without the excess."),
    CX_CLI_OPTIONS_SENSITIVE,
    CX_CLI_OPTIONS_TRACES,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_record = {
    .name = "record",
    .purpose = "record signed traces from files",
    .about =
        "Each FILE (\"-\" is standard input) is a batch as 'POST /events' takes it, one trace, or "
        "JSON Lines of traces or batches; the kind is detected and printed. Every trace is checked "
        "like one received over HTTP: canonical bytes, signature, key, level. An accepted trace is "
        "durable when its line is printed, and is stored once however often it is recorded.\n\nA "
        "trace is stored, duplicate (recorded before), unverified (stored although its key is "
        "unknown), conflict (other bytes under an existing id: stored as evidence), or rejected "
        "with a reason and its place. Keys are registered with 'cortex key add'. With --json it "
        "prints one line for each file, as 'POST /events' answers.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 all were accepted: stored, duplicate or unverified\n1 something was rejected, or "
             "is in conflict with what is stored\n2 usage error\n3 something could not be read or "
             "written: no data directory, owned by another process, full disk",
    .example = "cortex record batch.json traces.jsonl\n"
               "tail -n +1 -F traces.jsonl | cortex record -",
    .run = run_record,
};
