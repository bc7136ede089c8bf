/*
 * diff_blobs.c - size and kind of the contents that changed (D12, D13, D15).
 *
 * What is on disk, or was when the snapshot was taken, was looked into there.  The rest is asked of
 * git in two calls, sizes first, so that no amount of history can be made to fill the memory.
 */
#include "candidate/diff_parts.h"

#include "git/api.h"

#define CONTENTS_BYTES_MAX (UINT64_C(256) << 20)
#define HEADER_BYTES_MAX 160 /* of "<oid> blob <size>\n" */

static cx_str oid_key(const cx_oid *oid)
{
    return (cx_str){(const char *)oid->bytes, oid->size};
}

cx_status cx_diff_blob_add(cx_diff_job *job, const cx_oid *oid, const cx_diff_blob *blob,
                           cx_err *err)
{
    uint64_t *value;
    bool fresh;
    cx_str key = cx_arena_copy_str(job->arena, oid_key(oid));
    if (key.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_map_put(&job->blobs, key, &value, &fresh, err));
    if (!fresh)
        return CX_SUCCESS;
    cx_diff_blob *slot = cx_vec_push(&job->known, job->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *blob;
    *value = job->known.count - 1;
    return CX_SUCCESS;
}

const cx_diff_blob *cx_diff_blob_find(const cx_diff_job *job, const cx_oid *oid)
{
    const uint64_t *value = cx_map_find(&job->blobs, oid_key(oid));
    return value == NULL ? NULL : &job->known.items[*value];
}

/* --- which are not known yet ------------------------------------------------------------------ */

typedef struct wanted {
    CX_VEC(cx_oid) list;
    cx_map seen;
} wanted;

static cx_status request_blob(cx_diff_job *job, wanted *w, uint32_t mode, const cx_oid *oid,
                              cx_err *err)
{
    uint64_t *value;
    bool fresh;
    if (!cx_mode_is_file(mode) || oid->size == 0 || cx_oid_is_zero(oid) ||
        cx_diff_blob_find(job, oid) != NULL)
        return CX_SUCCESS;
    CX_TRY(cx_map_put(&w->seen, oid_key(oid), &value, &fresh, err));
    if (!fresh)
        return CX_SUCCESS;
    cx_oid *slot = cx_vec_push(&w->list, job->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *oid;
    return CX_SUCCESS;
}

static cx_status collect_blobs(cx_diff_job *job, wanted *w, cx_err *err)
{
    for (size_t v = 0; v < job->views.count; v++) {
        const cx_diff_view *view = &job->views.items[v];
        for (size_t i = 0; i < view->count; i++) {
            CX_TRY(request_blob(job, w, view->changes[i].old_mode, &view->changes[i].old_oid, err));
            CX_TRY(request_blob(job, w, view->changes[i].new_mode, &view->changes[i].new_oid, err));
        }
    }
    return CX_SUCCESS;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Reads "<oid> <type> <size>\n" or "<oid> missing\n" from the start of `rest`. */
static bool read_blob_header(cx_str *rest, const cx_oid *expected, bool *out_missing,
                             uint64_t *out_size)
{
    size_t look = rest->size < HEADER_BYTES_MAX ? rest->size : HEADER_BYTES_MAX;
    const char *end = look == 0 ? NULL : memchr(rest->data, '\n', look);
    size_t digits = 2 * (size_t)expected->size;
    cx_oid oid;
    if (end == NULL)
        return false;
    cx_str line = {rest->data, (size_t)(end - rest->data)};
    if (line.size <= digits + 1 || !cx_oid_parse((cx_str){line.data, digits}, &oid) ||
        !cx_oid_eq(&oid, expected))
        return false;
    cx_str tail = {line.data + digits, line.size - digits};
    *out_missing = cx_str_is(tail, " missing");
    *out_size = 0;
    rest->data = end + 1;
    rest->size -= line.size + 1;
    if (*out_missing)
        return true;
    if (!cx_str_starts(tail, CX_STR(" blob ")) || tail.size == 6 || tail.size > 6 + 18)
        return false;
    for (size_t i = 6; i < tail.size; i++) {
        if (tail.data[i] < '0' || tail.data[i] > '9')
            return false;
        *out_size = *out_size * 10 + (uint64_t)(tail.data[i] - '0');
    }
    return true;
}

/* The answers to one `cat-file` over all wanted ids; with contents, or with sizes alone. */
static cx_status query_git(cx_diff_job *job, const wanted *w, bool contents, uint64_t limit,
                           cx_buf *out, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    cx_buf input;
    cx_buf_init(&input, job->arena->alloc);
    for (size_t i = 0; i < w->list.count; i++) {
        cx_oid_text(&w->list.items[i], text);
        cx_buf_add_z(&input, text);
        cx_buf_add_byte(&input, '\n');
    }
    cx_git_call call = {
        .args = CX_GIT_ARGS("cat-file", contents ? "--batch" : "--batch-check", "--buffer"),
        .input = cx_buf_bytes(&input),
        .output_limit_bytes = limit,
        .bare = true};
    cx_status status = cx_buf_check(&input, err);
    if (!cx_failed(status))
        status = cx_git_call_run(job->git, &call, out, NULL, err);
    cx_buf_done(&input);
    return status;
}

static cx_status fail_form(cx_err *err)
{
    return cx_fail(err, CX_E_FORMAT, "git gives contents in a form that we do not know");
}

static cx_status total_size(cx_diff_job *job, const wanted *w, uint64_t *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, job->arena->alloc);
    cx_status status =
        query_git(job, w, false, w->list.count * (uint64_t)HEADER_BYTES_MAX + 1, &text, err);
    cx_str rest = cx_buf_str(&text);
    *out = 0;
    for (size_t i = 0; i < w->list.count && !cx_failed(status); i++) {
        uint64_t size;
        bool missing;
        if (!read_blob_header(&rest, &w->list.items[i], &missing, &size))
            status = fail_form(err);
        else
            *out += size > CONTENTS_BYTES_MAX ? CONTENTS_BYTES_MAX : size;
    }
    cx_buf_done(&text);
    return status;
}

static cx_status learn_blobs(cx_diff_job *job, const wanted *w, cx_str rest, cx_err *err)
{
    for (size_t i = 0; i < w->list.count; i++) {
        cx_diff_blob blob = {0, false, false};
        if (!read_blob_header(&rest, &w->list.items[i], &blob.missing, &blob.size_bytes))
            return fail_form(err);
        if (!blob.missing) {
            if (rest.size <= blob.size_bytes || rest.data[blob.size_bytes] != '\n')
                return fail_form(err);
            size_t size = (size_t)blob.size_bytes;
            size_t look = size < CX_BINARY_BYTES ? size : CX_BINARY_BYTES;
            blob.binary = look != 0 && memchr(rest.data, 0, look) != NULL;
            rest.data += size + 1;
            rest.size -= size + 1;
        }
        CX_TRY(cx_diff_blob_add(job, &w->list.items[i], &blob, err));
    }
    return CX_SUCCESS;
}

static cx_status load_blobs(cx_diff_job *job, const wanted *w, cx_err *err)
{
    uint64_t total;
    cx_buf text;
    CX_TRY(total_size(job, w, &total, err));
    if (total >= CONTENTS_BYTES_MAX) {
        cx_run_findings_reject(job->findings, "D15", CX_STR(""), CX_STR("head"),
                               "the contents that changed are more than %llu bytes",
                               (unsigned long long)CONTENTS_BYTES_MAX);
        return CX_SUCCESS;
    }
    cx_buf_init(&text, job->arena->alloc);
    cx_status status =
        query_git(job, w, true, total + w->list.count * (uint64_t)HEADER_BYTES_MAX + 1, &text, err);
    if (!cx_failed(status))
        status = learn_blobs(job, w, cx_buf_str(&text), err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_diff_blobs_load(cx_diff_job *job, cx_err *err)
{
    wanted w = {.list = {NULL, 0, 0}};
    cx_map_init(&w.seen, job->arena->alloc, cx_io_seed(cx_io_system()));
    cx_status status = collect_blobs(job, &w, err);
    if (!cx_failed(status) && w.list.count != 0)
        status = load_blobs(job, &w, err);
    cx_map_done(&w.seen);
    cx_vec_done(&w.list, job->arena->alloc);
    return status;
}
