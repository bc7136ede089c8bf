/*
 * replay_compare.c - the first place where one run went another way than another (run.md §18).
 *
 * Events are compared one by one, then what they lead to: patch, names, verdicts in the reports.
 *
 *   I1  What differs by nature is passed over by the name of its member (`passing` below), and the
 *       run's own id inside any text counts as equal.  Everything else counts.
 */
#include "audit/replay.h"

#include <stdio.h>

#include "crypto/api.h"
#include "bundle/api.h"

typedef struct side {
    cx_run_bundle *bundle;
    const cx_run_projection *projection;
} side;

typedef struct comparison {
    side expected, actual;
    cx_arena *arena;  /* of the result */
    cx_arena scratch; /* of one pair of events */
    cx_buf left, right;
    cx_run_divergence *out;
} comparison;

/* I1: members of payloads that no two runs share. */
static bool is_run_specific(cx_str name)
{
    static const char *const names[] = {
        "commit",   "contract_sha256", "manifest_sha256", "thread_id", "pid",
        "duration", "nonce",           "approval_id",     "boot_id",   "host",
        "realpath", "runtime_root",    "tmpdir",          "seal",      "layers",
        "versions", "git_version",     "executable",      "pids",      "expires_at",
    };
    static const char *const ends[] = {"_at", "_ms", "_ns", "_sec", "_bytes", "_sha256"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(name, names[i]))
            return true;
    for (size_t i = 0; i < CX_COUNT_OF(ends); i++)
        if (cx_str_ends(name, cx_str_z(ends[i])))
            /* Two of them are decisions of the contract or the content of the change. */
            return !cx_str_is(name, "timeout_sec") && !cx_str_is(name, "patch_sha256");
    return false;
}

static void set_divergence(comparison *c, uint64_t index, cx_str field, cx_json expected,
                           cx_json actual)
{
    cx_run_divergence *out = c->out;
    if (out->found)
        return;
    out->found = true;
    out->index = index;
    out->field = cx_arena_copy_str(c->arena, field);
    if (cx_failed(cx_json_copy(&expected, c->arena, &out->expected, NULL)))
        out->expected = cx_json_make_null();
    if (cx_failed(cx_json_copy(&actual, c->arena, &out->actual, NULL)))
        out->actual = cx_json_make_null();
}

/* The text without the run's own id. */
static cx_str without_id(cx_buf *room, cx_str text, cx_str run_id)
{
    cx_buf_clear(room);
    while (run_id.size != 0 && text.size >= run_id.size) {
        const char *at = memmem(text.data, text.size, run_id.data, run_id.size);
        if (at == NULL)
            break;
        cx_buf_add(room, text.data, (size_t)(at - text.data));
        cx_buf_add_z(room, "<run>");
        text = cx_str_from(at + run_id.size, text.size - (size_t)(at - text.data) - run_id.size);
    }
    cx_buf_add_str(room, text);
    return cx_buf_str(room);
}

static bool same_text(comparison *c, cx_str a, cx_str b)
{
    if (cx_str_eq(a, b))
        return true;
    a = without_id(&c->left, a, c->expected.projection->run_id);
    b = without_id(&c->right, b, c->actual.projection->run_id);
    return cx_str_eq(a, b);
}

/* Whether two values are the same in what counts; `*out_member` the first member that is not. */
static bool same_value(comparison *c, const cx_json *a, const cx_json *b, unsigned depth);

static bool same_object(comparison *c, const cx_json *a, const cx_json *b, unsigned depth)
{
    for (uint32_t i = 0; i < a->count; i++) {
        cx_str name = cx_json_text(&a->members[i].name);
        const cx_json *other = cx_json_get(b, name);
        if (!is_run_specific(name) &&
            (other == NULL || !same_value(c, &a->members[i].value, other, depth + 1)))
            return false;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        cx_str name = cx_json_text(&b->members[i].name);
        if (!is_run_specific(name) && cx_json_get(a, name) == NULL)
            return false;
    }
    return true;
}

static bool same_value(comparison *c, const cx_json *a, const cx_json *b, unsigned depth)
{
    if (a->type != b->type || depth > CX_RUN_JSON_DEPTH_MAX)
        return false;
    switch ((cx_json_type)a->type) {
    case CX_JSON_STRING: return same_text(c, cx_json_text(a), cx_json_text(b));
    case CX_JSON_OBJECT: return same_object(c, a, b, depth);
    case CX_JSON_ARRAY:
        if (a->count != b->count)
            return false;
        for (uint32_t i = 0; i < a->count; i++)
            if (!same_value(c, &a->items[i], &b->items[i], depth + 1))
                return false;
        return true;
    default: return cx_json_equal(a, b);
    }
}

/* --- one event ------------------------------------------------------------------------------- */

static void compare_payload(comparison *c, uint64_t index, const cx_json *a, const cx_json *b)
{
    char field[160];
    const cx_json none = cx_json_make_null();
    /* Members in the order of their names, those of both sides. */
    for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
        int order = i == a->count   ? 1
                    : k == b->count ? -1
                                    : cx_str_cmp(cx_json_text(&a->members[i].name),
                                                 cx_json_text(&b->members[k].name));
        cx_str name = cx_json_text(order <= 0 ? &a->members[i].name : &b->members[k].name);
        const cx_json *left = order <= 0 ? &a->members[i++].value : &none;
        const cx_json *right = order >= 0 ? &b->members[k++].value : &none;
        if (is_run_specific(name) || (order == 0 && same_value(c, left, right, 1)))
            continue;
        (void)snprintf(field, sizeof field, "payload/%.*s",
                       (int)(name.size > 120 ? 120 : name.size), name.data);
        set_divergence(c, index, cx_str_z(field), *left, *right);
        return;
    }
}

static cx_json text_or_null(cx_str text)
{
    return text.data == NULL ? cx_json_make_null() : cx_json_make_str(text);
}

static cx_status compare_event(comparison *c, const cx_run_moment *a, const cx_run_moment *b,
                               cx_err *err)
{
    cx_run_event_read left, right;
    if (!cx_str_eq(a->type, b->type)) {
        set_divergence(c, a->index, CX_STR("event_type"), cx_json_make_str(a->type),
                       cx_json_make_str(b->type));
        return CX_SUCCESS;
    }
    if ((a->task_id.data == NULL) != (b->task_id.data == NULL) ||
        !cx_str_eq(a->task_id, b->task_id)) {
        set_divergence(c, a->index, CX_STR("task_id"), text_or_null(a->task_id),
                       text_or_null(b->task_id));
        return CX_SUCCESS;
    }
    if (a->attempt != b->attempt) {
        set_divergence(c, a->index, CX_STR("attempt"), cx_json_make_int(&c->scratch, a->attempt),
                       cx_json_make_int(&c->scratch, b->attempt));
        return CX_SUCCESS;
    }
    if (!cx_str_eq(a->level, b->level)) {
        set_divergence(c, a->index, CX_STR("level"), cx_json_make_str(a->level),
                       cx_json_make_str(b->level));
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_event_parse(a->line, a->index, &c->scratch, &left, err));
    CX_TRY(cx_run_event_parse(b->line, b->index, &c->scratch, &right, err));
    if (left.payload.type == CX_JSON_OBJECT && right.payload.type == CX_JSON_OBJECT)
        compare_payload(c, a->index, &left.payload, &right.payload);
    return CX_SUCCESS;
}

static cx_status compare_events(comparison *c, cx_err *err)
{
    size_t left = c->expected.projection->moments.count,
           right = c->actual.projection->moments.count;
    cx_arena_mark mark = cx_arena_mark_now(&c->scratch);
    for (size_t i = 0; i < left && i < right && !c->out->found; i++) {
        CX_TRY(compare_event(c, &c->expected.projection->moments.items[i],
                             &c->actual.projection->moments.items[i], err));
        cx_arena_reset(&c->scratch, mark);
    }
    if (left != right)
        set_divergence(
            c, (left < right ? left : right) + 1, CX_STR("event_type"),
            left > right ? cx_json_make_str(c->expected.projection->moments.items[right].type)
                         : cx_json_make_null(),
            right > left ? cx_json_make_str(c->actual.projection->moments.items[left].type)
                         : cx_json_make_null());
    return CX_SUCCESS;
}

/* --- files and reports ----------------------------------------------------------------------- */

static cx_status digest_text(const side *s, const char *path, cx_arena *arena, cx_json *out,
                             cx_err *err)
{
    cx_digest digest;
    char *hex = cx_arena_push(arena, 64, 1);
    cx_status status = cx_run_bundle_digest(s->bundle, cx_str_z(path), &digest, err);
    *out = cx_json_make_null();
    if (hex == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(status)) /* absent or damaged: verification's finding */
        return status.code == CX_E_NOMEM || status.code == CX_E_IO ? status : CX_SUCCESS;
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    *out = cx_json_make_str(cx_str_from(hex, 64));
    return CX_SUCCESS;
}

static cx_status compare_files(comparison *c, cx_err *err)
{
    static const char *const files[] = {"diff_name_only.txt", "patch.diff"};
    for (size_t i = 0; i < CX_COUNT_OF(files) && !c->out->found; i++) {
        cx_json left, right;
        CX_TRY(digest_text(&c->expected, files[i], &c->scratch, &left, err));
        CX_TRY(digest_text(&c->actual, files[i], &c->scratch, &right, err));
        if (!cx_json_equal(&left, &right))
            set_divergence(c, 0, cx_str_z(files[i]), left, right);
    }
    return CX_SUCCESS;
}

static const cx_json *find_divergence(const side *s, const char *path, const char *pointer)
{
    static const cx_json none = {.type = CX_JSON_NULL};
    cx_json value;
    if (cx_failed(cx_run_bundle_json(s->bundle, cx_str_z(path), &value, NULL)))
        return &none;
    const cx_json *found = cx_json_pointer(&value, cx_str_z(pointer));
    return found == NULL ? &none : found;
}

static void compare_reports(comparison *c)
{
    static const struct {
        const char *path, *pointer;
    } places[] = {
        {"manifest.json", "/status"},
        {"reports/task_result.json", "/status"},
        {"reports/task_result.json", "/gates"},
        {"reports/review_report.json", "/verdict"},
        {"reports/test_report.json", "/status"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(places) && !c->out->found; i++) {
        const cx_json *a = find_divergence(&c->expected, places[i].path, places[i].pointer);
        const cx_json *b = find_divergence(&c->actual, places[i].path, places[i].pointer);
        char field[96];
        if (same_value(c, a, b, 1))
            continue;
        (void)snprintf(field, sizeof field, "%s%s", places[i].path, places[i].pointer);
        set_divergence(c, 0, cx_str_z(field), *a, *b);
    }
}

cx_status cx_run_compare(cx_run_bundle *expected, const cx_run_projection *expected_projection,
                         cx_run_bundle *actual, const cx_run_projection *actual_projection,
                         cx_arena *arena, cx_run_divergence *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    comparison c = {.expected = {expected, expected_projection},
                    .actual = {actual, actual_projection},
                    .arena = arena,
                    .out = out};
    memset(out, 0, sizeof *out);
    cx_arena_init(&c.scratch, arena->alloc, 0);
    cx_buf_init(&c.left, arena->alloc);
    cx_buf_init(&c.right, arena->alloc);
    cx_status status = compare_events(&c, err);
    if (!cx_failed(status))
        status = compare_files(&c, err);
    if (!cx_failed(status))
        compare_reports(&c);
    if (!cx_failed(status) && (c.left.failed || c.right.failed))
        status = cx_fail_nomem(err);
    cx_buf_done(&c.right);
    cx_buf_done(&c.left);
    cx_arena_done(&c.scratch);
    return status;
}
