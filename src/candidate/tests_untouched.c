/*
 * tests_untouched.c - whether the commands of a contract find the candidate's own files.
 *
 * Only what was there before is read again, and a file only when its times do not prove that it is
 * as it was: what commands build may be large.
 */
#include "candidate/tests_untouched.h"

#include "candidate/diff.h"
#include "crypto/api.h"
#include "os/api.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define POINTER_BYTES_MAX ((size_t)64 << 10)

static bool has_same_facts(const cx_facts *a, const cx_facts *b)
{
    return a->kind == b->kind && a->mode == b->mode && a->size_bytes == b->size_bytes &&
           a->device == b->device && a->inode == b->inode && a->modified_ns == b->modified_ns &&
           a->changed_ns == b->changed_ns;
}

static cx_status hash_file(cx_file root, const cx_snap_file *file, cx_digest *out, cx_err *err)
{
    cx_file opened;
    cx_sha256 hash;
    uint8_t block[BLOCK_BYTES];
    CX_TRY(cx_folder_open_in(root, file->path.data, CX_IO_READ, &opened, err));
    cx_sha256_init(&hash);
    cx_status status = CX_SUCCESS;
    for (size_t count = sizeof block; count == sizeof block && !cx_failed(status);) {
        status = cx_io_read_some(cx_io_system(), opened, file->path.data, block, sizeof block,
                                 &count, err);
        if (!cx_failed(status))
            cx_sha256_add(&hash, block, count);
    }
    cx_folder_close(opened);
    *out = cx_sha256_end(&hash);
    return status;
}

static cx_status hash_link(cx_file root, const cx_snap_file *file, cx_digest *out, cx_err *err)
{
    cx_buf target;
    cx_buf_init(&target, cx_alloc_default());
    cx_status status = cx_folder_read_link(root, file->path.data, &target, err);
    *out = cx_digest_of(cx_buf_bytes(&target));
    cx_buf_done(&target);
    return status;
}

/* An error is a change: the file was readable before. */
static bool is_as_before(cx_file root, const cx_snap_file *file, cx_err *err)
{
    cx_facts now;
    cx_digest digest;
    if (cx_failed(cx_folder_facts(root, file->path.data, &now, err)) ||
        now.kind != file->facts.kind)
        return false;
    if (now.kind == CX_FILE_FOLDER || now.kind == CX_FILE_SPECIAL)
        return true;
    if (file->stamped && has_same_facts(&file->facts, &now))
        return true;
    if (now.kind == CX_FILE_LINK)
        return !cx_failed(hash_link(root, file, &digest, err)) &&
               cx_digest_eq(&digest, &file->sha256);
    return now.mode == file->facts.mode && now.size_bytes == file->facts.size_bytes &&
           !cx_failed(hash_file(root, file, &digest, err)) && cx_digest_eq(&digest, &file->sha256);
}

/* `.git` decides which repository git sees there. */
static bool is_same_pointer(cx_file root, const cx_snapshot *before, cx_err *err)
{
    cx_buf text;
    bool same = false;
    cx_buf_init(&text, cx_alloc_default());
    bool read = !cx_failed(cx_folder_read_file(root, ".git", POINTER_BYTES_MAX, &text, err));
    for (size_t i = 0; i < before->meta_count && read; i++)
        if (cx_str_is(before->metas[i].name, ".git")) {
            cx_digest digest = cx_digest_of(cx_buf_bytes(&text));
            same = cx_digest_eq(&digest, &before->metas[i].sha256);
        }
    cx_buf_done(&text);
    return same;
}

cx_status cx_tests_find_touched(const char *checkout, const cx_snapshot *before, cx_arena *arena,
                                cx_str *out, cx_err *err)
{
    cx_file root;
    cx_err why = {0};
    cx_str found = CX_STR("");
    CX_TRY(cx_folder_open(checkout, &root, err));
    if (!is_same_pointer(root, before, &why))
        found = CX_STR(".git");
    for (size_t i = 0; i < before->file_count && found.size == 0; i++)
        if (!is_as_before(root, &before->files[i], &why))
            found = before->files[i].path;
    cx_folder_close(root);
    if (why.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    cx_buf quoted; /* it becomes part of a report */
    cx_buf_init(&quoted, arena->alloc);
    cx_run_path_quote(&quoted, found);
    *out = quoted.failed ? (cx_str){NULL, 0} : cx_arena_copy_str(arena, cx_buf_str(&quoted));
    cx_buf_done(&quoted);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}
