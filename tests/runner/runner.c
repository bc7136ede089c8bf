/*
 * runner.c - what all modules share, see runner.h: going through lists, comparing, printing.
 */
#include "tests/runner/runner.h"

#include <stdio.h>

#include "base/io.h"
#include "crypto/digest.h"
#include "base/hex.h"

#define FILE_LIMIT_BYTES ((size_t)1 << 30)
#define SHOWN_BYTES 400

void runner_init(runner *r, const char *folder, bool got_only)
{
    *r = (runner){.folder = folder, .got_only = got_only};
    cx_arena_init(&r->arena, cx_alloc_default(), 0);
}

int runner_end(runner *r)
{
    (void)fprintf(r->got_only ? stderr : stdout, "%u passed, %u failed, %u skipped\n", r->passed,
                  r->failed, r->skipped);
    cx_arena_done(&r->arena);
    /* Lines that did not arrive are answers that were not given. */
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        return 3;
    return r->failed == 0 && r->passed != 0 ? 0 : 1;
}

/* --- reading the folder -------------------------------------------------------------------- */

cx_str runner_path(runner *r, cx_str relative)
{
    return cx_arena_printf(&r->arena, "%s/%.*s", r->folder, (int)relative.size, relative.data);
}

cx_status runner_read(runner *r, cx_str relative, cx_str *out, cx_err *err)
{
    cx_str path = runner_path(r, relative);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), path.data, FILE_LIMIT_BYTES, &text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&r->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

cx_status runner_read_json(runner *r, cx_str relative, cx_json *out, cx_err *err)
{
    cx_str text;
    CX_TRY(runner_read(r, relative, &text, err));
    return cx_json_parse_text(text, &r->arena, out, err);
}

/* --- values -------------------------------------------------------------------------------- */

cx_status runner_member(const cx_json *object, const char *name, cx_json_type type,
                        const cx_json **out, cx_err *err)
{
    cx_json wanted = {.type = (uint8_t)type};
    *out = cx_json_get_typed(object, cx_str_z(name), type);
    if (*out == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no '%s' of type %s", name,
                       cx_json_type_name(&wanted));
    return CX_SUCCESS;
}

cx_status runner_text(const cx_json *object, const char *name, cx_str *out, cx_err *err)
{
    const cx_json *value;
    CX_TRY(runner_member(object, name, CX_JSON_STRING, &value, err));
    *out = cx_json_text(value);
    return CX_SUCCESS;
}

cx_status runner_texts(runner *r, const cx_json *array, cx_str **out, cx_err *err)
{
    cx_str *texts = CX_ARENA_ARRAY(&r->arena, cx_str, (size_t)array->count + 1);
    if (texts == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < array->count; i++) {
        if (array->items[i].type != CX_JSON_STRING)
            return cx_fail(err, CX_E_FORMAT, "a list of the case holds a value that is no string");
        texts[i] = cx_json_text(&array->items[i]);
    }
    *out = texts;
    return CX_SUCCESS;
}

cx_status runner_parse(runner *r, const cx_buf *text, cx_json *out, cx_err *err)
{
    CX_TRY(cx_buf_check(text, err));
    cx_str copy = cx_arena_copy_str(&r->arena, cx_buf_str(text));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    return cx_json_parse_text(copy, &r->arena, out, err);
}

cx_status runner_string(runner *r, cx_str text, cx_json *out, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(&r->arena, text);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    *out = cx_json_make_str(copy);
    return CX_SUCCESS;
}

cx_status runner_sha256(runner *r, cx_bytes bytes, cx_json *out, cx_err *err)
{
    cx_digest digest = cx_digest_of(bytes);
    char hex[2 * sizeof digest.bytes];
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    return runner_string(r, cx_str_from(hex, sizeof hex), out, err);
}

cx_status runner_pick(runner *r, const cx_json *object, const char *const *names, size_t count,
                      cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < count; i++) {
        const cx_json *value = cx_json_get(object, cx_str_z(names[i]));
        if (value != NULL)
            cx_json_list_put(&list, cx_str_z(names[i]), *value);
    }
    return cx_json_list_end_object(&list, out, err);
}

/* --- printing ------------------------------------------------------------------------------ */

static void print_str(FILE *to, cx_str text)
{
    if (text.size != 0)
        (void)fwrite(text.data, 1, text.size, to);
}

/* Names may repeat, so where the case lies is told too. */
static void print_case(const runner *r, FILE *to, const char *word, cx_str id)
{
    (void)fprintf(to, "%s ", word);
    print_str(to, id);
    if (r->place.size != 0 && !cx_str_eq(r->place, id)) {
        (void)fputs(" (", to);
        print_str(to, r->place);
        (void)fputc(')', to);
    }
}

void runner_skip(runner *r, cx_str id, const char *why)
{
    FILE *to = r->got_only ? stderr : stdout;
    r->skipped++;
    print_case(r, to, "SKIP", id);
    (void)fprintf(to, ": %s\n", why);
}

/* One line for the comparing program. */
static cx_status print_got(runner *r, cx_str id, const cx_json *got, cx_err *err)
{
    cx_json line;
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("got"), *got);
    cx_json_list_put(&list, CX_STR("id"), cx_json_make_str(id));
    CX_TRY(cx_json_list_end_object(&list, &line, err));
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_status status = cx_json_write(&out, &line, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status)) {
        print_str(stdout, cx_buf_str(&out));
        (void)fputc('\n', stdout);
    }
    cx_buf_done(&out);
    return status;
}

/* With --got a case that could not be answered has its line too, and the program fails. */
static void print_got_nothing(runner *r, cx_str id, const char *why)
{
    cx_json got;
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("failed"), cx_json_make_str(cx_str_z(why)));
    if (!cx_failed(cx_json_list_end_object(&list, &got, NULL)))
        (void)!cx_failed(print_got(r, id, &got, NULL));
}

void runner_fail(runner *r, cx_str id, const char *why)
{
    FILE *to = r->got_only ? stderr : stdout;
    r->failed++;
    print_case(r, to, "FAIL", id);
    (void)fprintf(to, ": %s\n", why);
    if (r->got_only)
        print_got_nothing(r, id, why);
}

static void print_value(const char *label, const cx_json *value)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (value == NULL)
        cx_buf_add_z(&out, "nothing");
    else if (cx_failed(cx_json_write(&out, value, CX_JSON_PY_COMPACT, NULL)))
        cx_buf_add_z(&out, "a value that cannot be written");
    cx_str text = cx_buf_str(&out);
    (void)printf("  %s ", label);
    print_str(stdout, cx_str_from(text.data, text.size > SHOWN_BYTES ? SHOWN_BYTES : text.size));
    if (text.size > SHOWN_BYTES)
        (void)printf("... (%zu bytes)", text.size);
    (void)fputc('\n', stdout);
    cx_buf_done(&out);
}

/* --- comparing ----------------------------------------------------------------------------- */

/* The first member in which two objects differ; either side may lack it. */
static cx_str differing_member(const cx_json **expected, const cx_json **got)
{
    uint32_t e = 0, g = 0;
    const cx_json *a = *expected, *b = *got;
    for (;;) {
        const cx_json_member *x = e < a->count ? &a->members[e] : NULL;
        const cx_json_member *y = g < b->count ? &b->members[g] : NULL;
        CX_ASSERT(x != NULL || y != NULL);
        int order = x == NULL   ? 1
                    : y == NULL ? -1
                                : cx_str_cmp(cx_json_text(&x->name), cx_json_text(&y->name));
        e += order <= 0;
        g += order >= 0;
        if (order == 0 && cx_json_equal(&x->value, &y->value))
            continue;
        *expected = order <= 0 ? &x->value : NULL;
        *got = order >= 0 ? &y->value : NULL;
        return cx_json_text(order <= 0 ? &x->name : &y->name);
    }
}

static uint32_t differing_item(const cx_json **expected, const cx_json **got)
{
    uint32_t i = 0;
    const cx_json *a = *expected, *b = *got;
    while (i < a->count && i < b->count && cx_json_equal(&a->items[i], &b->items[i]))
        i++;
    *expected = i < a->count ? &a->items[i] : NULL;
    *got = i < b->count ? &b->items[i] : NULL;
    return i;
}

/* Goes down to the smallest part that differs: large answers mostly differ in one place. */
static void print_difference(const runner *r, cx_str id, const cx_json *expected,
                             const cx_json *got)
{
    cx_buf pointer;
    cx_buf_init(&pointer, cx_alloc_default());
    while (r->agrees == NULL && expected != NULL && got != NULL && expected->type == got->type &&
           (got->type == CX_JSON_OBJECT || got->type == CX_JSON_ARRAY)) {
        if (got->type == CX_JSON_OBJECT)
            cx_json_pointer_add(&pointer, differing_member(&expected, &got));
        else
            cx_buf_printf(&pointer, "/%u", differing_item(&expected, &got));
    }
    print_case(r, stdout, "FAIL", id);
    if (pointer.size != 0) {
        (void)fputs(" at ", stdout);
        print_str(stdout, cx_buf_str(&pointer));
    }
    (void)fputc('\n', stdout);
    print_value("expected", expected);
    print_value("got     ", got);
    cx_buf_done(&pointer);
}

/* --- cases --------------------------------------------------------------------------------- */

/* `id` or `name`; else the file it is about; else where it lies. */
static cx_str case_id(const runner *r, const cx_json *item)
{
    static const char *const names[] = {"id", "name", "file"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_str text = cx_json_get_str(item, cx_str_z(names[i]));
        if (text.data != NULL)
            return text;
    }
    return r->place;
}

/* Only the members of an answer that something is expected of. */
static CX_RESULT narrowed(runner *r, const cx_json *expected, cx_json *got, cx_err *err)
{
    if (expected->type != CX_JSON_OBJECT || got->type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < expected->count; i++) {
        cx_str name = cx_json_text(&expected->members[i].name);
        const cx_json *value = cx_json_get(got, name);
        if (value != NULL)
            cx_json_list_put(&list, name, *value);
    }
    return cx_json_list_end_object(&list, got, err);
}

static void run_case(runner *r, const runner_kind *kind, cx_str id, const cx_json *item)
{
    cx_json got, expected;
    cx_err err = {0};
    cx_status answered = kind->got(r, item, &got, &err);
    if (answered.code == CX_E_UNSUPPORTED) {
        runner_skip(r, id, err.message);
        return;
    }
    if (cx_failed(answered)) {
        runner_fail(r, id, err.message);
        return;
    }
    if (r->got_only) {
        cx_status printed = print_got(r, id, &got, &err);
        if (!cx_failed(printed) && r->by_place && !cx_str_eq(id, r->place))
            printed = print_got(r, r->place, &got, &err);
        if (cx_failed(printed))
            runner_fail(r, id, err.message);
        else
            r->passed++;
        return;
    }
    if (cx_failed(kind->expect(r, item, &expected, &err)) ||
        (r->narrow && cx_failed(narrowed(r, &expected, &got, &err)))) {
        runner_fail(r, id, err.message);
    } else if (r->agrees != NULL ? r->agrees(&expected, &got) : cx_json_equal(&expected, &got)) {
        r->passed++;
    } else {
        r->failed++;
        print_difference(r, id, &expected, &got);
    }
}

void runner_run_item(runner *r, const runner_kind *kind, const char *file, const char *pointer,
                     const cx_json *root, const cx_json *item)
{
    cx_arena_mark mark = cx_arena_mark_now(&r->arena);
    r->root = root;
    r->place = cx_arena_printf(&r->arena, "%s%s%s", file, *pointer == 0 ? "" : "#", pointer);
    run_case(r, kind, case_id(r, item), item);
    r->place = (cx_str){NULL, 0};
    r->root = NULL;
    cx_arena_reset(&r->arena, mark);
}

void runner_run_list(runner *r, const runner_kind *kind, const char *file, const cx_json *root)
{
    const cx_json *list = cx_json_pointer(root, cx_str_z(kind->list));
    if (list == NULL)
        return;
    if (list->type != CX_JSON_ARRAY) {
        runner_fail(r, cx_str_z(file), "found something else where a list of cases is expected");
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        cx_str pointer = cx_arena_printf(&r->arena, "%s/%u", kind->list, i);
        runner_run_item(r, kind, file, pointer.data == NULL ? kind->list : pointer.data, root,
                        &list->items[i]);
        cx_arena_reset(&r->arena, mark);
    }
}
