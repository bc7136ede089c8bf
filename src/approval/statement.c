/*
 * statement.c - signed statements about files.  Invariants T1 and T2: statement.h.
 */
#include "approval/statement.h"

#include "approval/attest_internal.h"

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define TYPE_MAX 1024

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status check_name(cx_str name, cx_err *err)
{
    if (name.size == 0 || name.size > CX_APPROVAL_NAME_MAX || !cx_utf8_valid(name))
        return cx_fail(err, CX_E_USAGE,
                       "found a file whose name is not 1 to %d bytes of UTF-8; a statement cannot "
                       "name it",
                       CX_APPROVAL_NAME_MAX);
    return CX_SUCCESS;
}

/* "scheme:rest", printable ASCII without spaces. */
static bool is_uri(cx_str text)
{
    const char *colon = text.size == 0 ? NULL : memchr(text.data, ':', text.size);
    if (colon == NULL || colon == text.data || text.size > TYPE_MAX ||
        colon == text.data + text.size - 1)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return true;
}

static cx_status put_subjects(cx_json_list *statement, const cx_approval_subject *subjects,
                              size_t count, cx_err *err)
{
    cx_json_list array = cx_json_list_begin(statement->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list subject = cx_json_list_begin(statement->arena);
        cx_json_list digest = cx_json_list_begin(statement->arena);
        CX_TRY(check_name(subjects[i].name, err));
        for (size_t j = 0; j < i; j++)
            if (cx_str_eq(subjects[i].name, subjects[j].name))
                return cx_fail(err, CX_E_USAGE,
                               "found two files named %.*s, expected names that differ",
                               (int)subjects[i].name.size, subjects[i].name.data);
        cx_json_put_digest(&digest, "sha256", &subjects[i].sha256);
        cx_json_put_object(&subject, "digest", &digest);
        cx_json_put_str(&subject, "name", subjects[i].name);
        cx_json_add_object(&array, &subject);
    }
    cx_json_put_array(statement, "subject", &array);
    return CX_SUCCESS;
}

cx_status cx_approval_statement_write(const cx_approval_subject *subjects, size_t count,
                                      cx_str predicate_type, const cx_json *predicate,
                                      cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json_list statement = cx_json_list_begin(arena);
    cx_json value;
    if (count == 0 || count > CX_APPROVAL_SUBJECTS_MAX)
        return cx_fail(err, CX_E_USAGE, "found %zu files, expected 1 to %d", count,
                       CX_APPROVAL_SUBJECTS_MAX);
    if (!is_uri(predicate_type))
        return cx_fail(err, CX_E_USAGE,
                       "expected a predicate type that is a URI of at most %d characters, such as "
                       "https://slsa.dev/provenance/v1",
                       TYPE_MAX);
    if (predicate->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_USAGE, "expected a predicate that is a JSON object");
    cx_json_put_z(&statement, "_type", STATEMENT_TYPE);
    CX_TRY(put_subjects(&statement, subjects, count, err));
    cx_json_put_str(&statement, "predicateType", predicate_type);
    cx_json_put(&statement, "predicate", *predicate);
    CX_TRY(cx_json_list_end_object(&statement, &value, err));
    return cx_json_write(out, &value, CX_JSON_JCS, err);
}

/* --- checking --------------------------------------------------------------------------------- */

/* Sets a verdict unless it is a statement of that type about files. */
static cx_status check_form(const cx_json *statement, cx_str predicate_type, cx_arena *arena,
                            cx_run_attest_verdict *out, cx_err *err)
{
    bool is_object = statement->type == CX_JSON_OBJECT;
    const cx_json *subjects =
        is_object ? cx_json_get_typed(statement, CX_STR("subject"), CX_JSON_ARRAY) : NULL;
    cx_str type = is_object ? CX_JSON_GET_STR(statement, "predicateType") : CX_STR("");
    if (subjects == NULL || !cx_str_is(CX_JSON_GET_STR(statement, "_type"), STATEMENT_TYPE) ||
        subjects->count == 0 || subjects->count > CX_APPROVAL_SUBJECTS_MAX || !is_uri(type))
        return cx_run_attest_set_verdict(
            out, "statement_invalid", arena,
            CX_STR("expected an in-toto Statement v1 with 1 to 4096 subjects and a predicateType"),
            err);
    if (predicate_type.size == 0 || cx_str_eq(type, predicate_type))
        return CX_SUCCESS;
    out->where = CX_STR("/predicateType");
    return cx_run_attest_set_verdict(out, "predicate_type", arena,
                                     cx_arena_printf(arena, "found %.*s, expected %.*s",
                                                     (int)type.size, type.data,
                                                     (int)predicate_type.size, predicate_type.data),
                                     err);
}

/* T1. */
static cx_status check_file(const cx_json *subjects, const cx_approval_subject *file,
                            cx_arena *arena, cx_run_attest_verdict *out, cx_err *err)
{
    size_t named = 0;
    bool same = false;
    for (uint32_t i = 0; i < subjects->count; i++) {
        const cx_json *item = &subjects->items[i];
        if (item->type != CX_JSON_OBJECT || !cx_str_eq(CX_JSON_GET_STR(item, "name"), file->name))
            continue;
        const cx_json *digest = cx_json_get_typed(item, CX_STR("digest"), CX_JSON_OBJECT);
        cx_digest found;
        named++;
        same = digest != NULL && cx_digest_parse(CX_JSON_GET_STR(digest, "sha256"), &found) &&
               cx_digest_eq(&found, &file->sha256);
    }
    if (named == 1 && same)
        return CX_SUCCESS;
    out->where = file->name;
    if (named == 1)
        return cx_run_attest_set_verdict(
            out, "subject_differs", arena,
            CX_STR("the file is not the one that was signed: its SHA-256 differs"), err);
    return cx_run_attest_set_verdict(out, "subject_missing", arena,
                                     named == 0
                                         ? CX_STR("the statement does not name this file")
                                         : CX_STR("the statement names this file more than once"),
                                     err);
}

static cx_status check_statement(const cx_run_dsse *envelope, const cx_approval_subject *files,
                                 size_t count, cx_str predicate_type, cx_arena *arena,
                                 cx_run_attest_verdict *out, cx_err *err)
{
    cx_json statement;
    CX_TRY(cx_run_attest_read_payload(envelope, false, arena, &statement, out, err));
    if (out->reason == NULL)
        CX_TRY(check_form(&statement, predicate_type, arena, out, err));
    for (size_t i = 0; out->reason == NULL && i < count; i++)
        CX_TRY(check_file(CX_JSON_GET(&statement, "subject"), &files[i], arena, out, err));
    return CX_SUCCESS;
}

cx_status cx_approval_statement_check(cx_str text, const cx_approval_subject *files, size_t count,
                                      cx_str predicate_type, const cx_pubkey *keys,
                                      size_t key_count, cx_arena *arena, cx_run_attest_verdict *out,
                                      cx_err *err)
{
    CX_ASSERT(key_count == 0 || keys != NULL);
    cx_run_dsse envelope;
    cx_run_attest_verdict verdict = {0}, form = {0};
    bool read;
    CX_TRY(cx_run_attest_open(text, keys, key_count, arena, &envelope, &read, &verdict, err));
    if (verdict.reason == NULL || (read && key_count == 0)) {
        CX_TRY(check_statement(&envelope, files, count, predicate_type, arena, &form, err));
        if (form.reason != NULL) {
            verdict.reason = form.reason;
            verdict.where = form.where;
            verdict.message = form.message;
        }
    }
    verdict.holds = verdict.reason == NULL;
    *out = verdict;
    return CX_SUCCESS;
}
