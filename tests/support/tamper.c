/*
 * tamper.c - the operations of tamper.json, done to a folder.
 */
#include "tests/support/tamper.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/folder.h"
#include "base/io.h"
#include "base/vec.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "rules/run.h"

#define FILE_MAX ((size_t)64 << 20)

typedef struct work {
    tampered *t;
    cx_arena arena;
    cx_err *err;
    const cx_json *op;
} work;

static const char *path_in(work *w, cx_str name)
{
    cx_str path = cx_arena_printf(&w->arena, "%s/%.*s", w->t->folder, (int)name.size, name.data);
    CX_ASSERT(path.data != NULL);
    return path.data;
}

static cx_status read_file(work *w, cx_str name, cx_str *out)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), path_in(w, name), FILE_MAX, &text, w->err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&w->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(w->err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status write_file(work *w, cx_str name, cx_str text)
{
    const char *path = path_in(w, name);
    char above[FOLDER_PATH_SIZE * 2];
    (void)snprintf(above, sizeof above, "%s", path);
    *strrchr(above, '/') = '\0';
    CX_TRY(cx_path_make_folders(above, w->err));
    (void)unlink(path);
    FILE *file = fopen(path, "wb");
    bool fine = file != NULL && fwrite(text.data, 1, text.size, file) == text.size;
    if (file != NULL)
        fine &= fclose(file) == 0;
    return fine ? CX_SUCCESS : cx_fail(w->err, CX_E_IO, "%s cannot be written", path);
}

static cx_status write_buf(work *w, cx_str name, cx_buf *text)
{
    cx_status status = cx_buf_check(text, w->err);
    if (!cx_failed(status))
        status = write_file(w, name, cx_buf_str(text));
    cx_buf_done(text);
    return status;
}

/* Argument i of the operation, after its name. */
static cx_str word(const work *w, uint32_t i)
{
    if (w->op->count <= i + 1 || w->op->items[i + 1].type != CX_JSON_STRING)
        return CX_STR("");
    return cx_json_text(&w->op->items[i + 1]);
}

static uint64_t number(const work *w, uint32_t i)
{
    uint64_t value = 0;
    if (w->op->count > i + 1)
        (void)cx_json_uint64(&w->op->items[i + 1], &value);
    return value;
}

/* --- text ------------------------------------------------------------------------------------- */

static cx_status replace_in(work *w, cx_str text, cx_str old, cx_str with, cx_buf *out)
{
    for (size_t i = 0; i + old.size <= text.size; i++) {
        if (memcmp(text.data + i, old.data, old.size) != 0)
            continue;
        cx_buf_add(out, text.data, i);
        cx_buf_add_str(out, with);
        cx_buf_add(out, text.data + i + old.size, text.size - i - old.size);
        return CX_SUCCESS;
    }
    return cx_fail(w->err, CX_E_FORMAT, "the text to be replaced is not there");
}

typedef CX_VEC(cx_str) line_list;

/* Lines with their ends. */
static void split(cx_str text, line_list *out)
{
    for (size_t start = 0; start < text.size;) {
        size_t end = start;
        while (end < text.size && text.data[end] != '\n')
            end++;
        end += end < text.size;
        cx_str *slot = cx_vec_push(out, cx_alloc_default());
        CX_ASSERT(slot != NULL);
        *slot = cx_str_from(text.data + start, end - start);
        start = end;
    }
}

/* replace_line delete_line insert_line swap_lines drop_last_lines */
static cx_status edit_lines(work *w, cx_str op, cx_str name)
{
    line_list lines = {0};
    cx_str text;
    cx_buf out;
    cx_status status = CX_SUCCESS;
    uint64_t a = number(w, 1), b = number(w, 2);
    CX_TRY(read_file(w, name, &text));
    split(text, &lines);
    cx_buf_init(&out, cx_alloc_default());
    if (cx_str_is(op, "swap_lines") && a - 1 < lines.count && b - 1 < lines.count) {
        cx_str kept = lines.items[a - 1];
        lines.items[a - 1] = lines.items[b - 1];
        lines.items[b - 1] = kept;
    }
    size_t count = lines.count;
    if (cx_str_is(op, "drop_last_lines"))
        count = a < count ? count - (size_t)a : 0;
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        bool here = i + 1 == a;
        if (here && cx_str_is(op, "insert_line"))
            cx_buf_printf(&out, "%.*s\n", (int)word(w, 2).size, word(w, 2).data);
        if (here && cx_str_is(op, "replace_line"))
            status = replace_in(w, lines.items[i], word(w, 2), word(w, 3), &out);
        else if (!(here && cx_str_is(op, "delete_line")))
            cx_buf_add_str(&out, lines.items[i]);
    }
    if (cx_str_is(op, "insert_line") && a > lines.count)
        cx_buf_printf(&out, "%.*s\n", (int)word(w, 2).size, word(w, 2).data);
    cx_vec_done(&lines, cx_alloc_default());
    if (cx_failed(status)) {
        cx_buf_done(&out);
        return status;
    }
    return write_buf(w, name, &out);
}

static cx_status append(work *w, cx_str name, cx_str more)
{
    cx_str text = CX_STR("");
    if (access(path_in(w, name), F_OK) == 0)
        CX_TRY(read_file(w, name, &text));
    cx_str whole = cx_arena_printf(&w->arena, "%.*s%.*s", (int)text.size, text.data, (int)more.size,
                                   more.data);
    return whole.data == NULL ? cx_fail_nomem(w->err) : write_file(w, name, whole);
}

static cx_status to_crlf(work *w, cx_str name)
{
    cx_str text;
    cx_buf out;
    CX_TRY(read_file(w, name, &text));
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\n')
            cx_buf_add_byte(&out, '\r');
        cx_buf_add_byte(&out, (uint8_t)text.data[i]);
    }
    return write_buf(w, name, &out);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static cx_str next_token(work *w, cx_str *pointer)
{
    cx_buf token;
    size_t i = 1;
    cx_buf_init(&token, w->arena.alloc);
    for (; i < pointer->size && pointer->data[i] != '/'; i++) {
        char c = pointer->data[i];
        if (c == '~' && i + 1 < pointer->size)
            c = pointer->data[++i] == '1' ? '/' : '~';
        cx_buf_add_byte(&token, (uint8_t)c);
    }
    cx_str kept = cx_arena_copy_str(&w->arena, cx_buf_str(&token));
    cx_buf_done(&token);
    *pointer = cx_str_from(pointer->data + i, pointer->size - i);
    return kept;
}

/* The value with the place of `pointer` set, or removed when `with` is NULL. */
static cx_status edit(work *w, const cx_json *value, cx_str pointer, const cx_json *with,
                      cx_json *out)
{
    if (pointer.size == 0) {
        *out = *with;
        return CX_SUCCESS;
    }
    cx_str token = next_token(w, &pointer);
    cx_json_list list = cx_json_list_begin(&w->arena);
    bool last = pointer.size == 0, found = false;
    for (uint32_t i = 0; i < value->count; i++) {
        cx_str name = value->type == CX_JSON_OBJECT ? cx_json_text(&value->members[i].name)
                                                    : cx_arena_printf(&w->arena, "%u", i);
        const cx_json *old =
            value->type == CX_JSON_OBJECT ? &value->members[i].value : &value->items[i];
        cx_json item = *old;
        if (cx_str_eq(name, token)) {
            found = true;
            if (last && with == NULL)
                continue;
            CX_TRY(edit(w, old, pointer, with, &item));
        }
        if (value->type == CX_JSON_OBJECT)
            cx_json_list_put(&list, name, item);
        else
            cx_json_list_add(&list, item);
    }
    if (!found && last && with != NULL && value->type == CX_JSON_OBJECT)
        cx_json_list_put(&list, token, *with);
    else if (!found && last && with != NULL && value->type == CX_JSON_ARRAY)
        cx_json_list_add(&list, *with);
    else if (!found)
        return cx_fail(w->err, CX_E_FORMAT, "the pointer leads nowhere");
    return value->type == CX_JSON_OBJECT ? cx_json_list_end_object(&list, out, w->err)
                                         : cx_json_list_end_array(&list, out, w->err);
}

static cx_status read_json(work *w, cx_str name, cx_json *out)
{
    cx_str text;
    CX_TRY(read_file(w, name, &text));
    return cx_run_json_read(text, 0, &w->arena, out, w->err);
}

static cx_status write_json(work *w, cx_str name, const cx_json *value)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_run_json_write(&text, value, w->err);
    if (cx_failed(status)) {
        cx_buf_done(&text);
        return status;
    }
    return write_buf(w, name, &text);
}

static cx_status edit_json(work *w, cx_str name, bool remove)
{
    cx_json value, edited;
    CX_TRY(read_json(w, name, &value));
    CX_TRY(edit(w, &value, word(w, 1), remove ? NULL : &w->op->items[3], &edited));
    return write_json(w, name, &edited);
}

static cx_status reformat(work *w, cx_str name)
{
    cx_json value;
    cx_buf text;
    CX_TRY(read_json(w, name, &value));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, w->err);
    if (cx_failed(status)) {
        cx_buf_done(&text);
        return status;
    }
    return write_buf(w, name, &text);
}

/* --- events and hashes ------------------------------------------------------------------------ */

static cx_str hex_of(work *w, cx_str bytes)
{
    cx_digest digest = cx_digest_of(cx_str_bytes(bytes));
    char hex[65] = {0};
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    return cx_arena_copy_str(&w->arena, cx_str_from(hex, 64));
}

static cx_status rechain(work *w)
{
    cx_str text, prev = CX_STR("");
    line_list lines = {0};
    cx_buf out;
    CX_TRY(read_file(w, CX_STR("events.jsonl"), &text));
    split(text, &lines);
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < lines.count; i++) {
        cx_str line = lines.items[i];
        line.size -= line.size != 0 && line.data[line.size - 1] == '\n';
        cx_str event = hex_of(w, line);
        cx_str hash = hex_of(w, cx_arena_printf(&w->arena, "%zu:%.*s:%.*s", i + 1, (int)prev.size,
                                                prev.data, (int)event.size, event.data));
        cx_buf_printf(&out,
                      "{\"index\":%zu,\"event_sha256\":\"%.*s\",\"prev_hash\":\"%.*s\",\"hash\":\""
                      "%.*s\"}\n",
                      i + 1, (int)event.size, event.data, (int)prev.size, prev.data, (int)hash.size,
                      hash.data);
        prev = hash;
    }
    cx_vec_done(&lines, cx_alloc_default());
    return write_buf(w, CX_STR("events.hashchain.jsonl"), &out);
}

typedef struct file_list {
    work *w;
    line_list names;
} file_list;

static cx_walk_step take_file(void *arg, const cx_walk_entry *entry)
{
    file_list *list = arg;
    if (entry->facts.kind == CX_FILE_REGULAR && strcmp(entry->path, "manifest.json") != 0) {
        cx_str *slot = cx_vec_push(&list->names, cx_alloc_default());
        CX_ASSERT(slot != NULL);
        *slot = cx_arena_copy_str(&list->w->arena, cx_str_from(entry->path, entry->path_size));
    }
    return CX_WALK_ON;
}

static cx_status ref_of(work *w, cx_str label, cx_str media_type, cx_str name, cx_json *out)
{
    cx_str text;
    cx_json_list list = cx_json_list_begin(&w->arena);
    CX_TRY(read_file(w, name, &text));
    cx_json_list_put(&list, CX_STR("name"), cx_json_make_str(label));
    cx_json_list_put(&list, CX_STR("path"), cx_json_make_str(name));
    cx_json_list_put(&list, CX_STR("sha256"), cx_json_make_str(hex_of(w, text)));
    if (media_type.size != 0)
        cx_json_list_put(&list, CX_STR("media_type"), cx_json_make_str(media_type));
    cx_json_list_put(&list, CX_STR("size_bytes"), cx_json_make_uint(&w->arena, text.size));
    return cx_json_list_end_object(&list, out, w->err);
}

/* The references of manifest.tasks, made new; those to files that are gone are left out. */
static cx_status rehash_tasks(work *w, const cx_json *tasks, cx_json *out)
{
    cx_json_list list = cx_json_list_begin(&w->arena);
    for (uint32_t i = 0; tasks != NULL && i < tasks->count; i++) {
        cx_json_list task = cx_json_list_begin(&w->arena);
        cx_json made;
        for (uint32_t m = 0; m < tasks->items[i].count; m++) {
            const cx_json_member *member = &tasks->items[i].members[m];
            cx_str path = CX_JSON_GET_STR(&member->value, "path");
            cx_json value = member->value;
            if (path.data != NULL && access(path_in(w, path), F_OK) != 0)
                continue;
            if (path.data != NULL)
                CX_TRY(ref_of(w, CX_JSON_GET_STR(&value, "name"),
                              CX_JSON_GET_STR(&value, "media_type"), path, &value));
            cx_json_list_put(&task, cx_json_text(&member->name), value);
        }
        CX_TRY(cx_json_list_end_object(&task, &made, w->err));
        cx_json_list_add(&list, made);
    }
    return cx_json_list_end_array(&list, out, w->err);
}

static cx_status rehash_files(work *w, const cx_json *old, cx_json *hashes, cx_json *artifacts)
{
    file_list files = {.w = w};
    cx_file folder;
    CX_TRY(cx_folder_open(w->t->folder, &folder, w->err));
    cx_status status = cx_folder_walk(folder, NULL, take_file, &files, w->err);
    cx_folder_close(folder);
    cx_json_list table = cx_json_list_begin(&w->arena), list = cx_json_list_begin(&w->arena);
    for (size_t i = 0; i < files.names.count && !cx_failed(status); i++) {
        cx_json ref;
        cx_str media = CX_STR("text/plain");
        for (uint32_t a = 0; old != NULL && a < old->count; a++)
            if (cx_str_eq(CX_JSON_GET_STR(&old->items[a], "path"), files.names.items[i]))
                media = CX_JSON_GET_STR(&old->items[a], "media_type");
        status = ref_of(w, files.names.items[i], media, files.names.items[i], &ref);
        if (cx_failed(status))
            break;
        cx_json_list_put(&table, files.names.items[i],
                         cx_json_make_str(CX_JSON_GET_STR(&ref, "sha256")));
        cx_json_list_add(&list, ref);
    }
    cx_vec_done(&files.names, cx_alloc_default());
    CX_TRY(status);
    CX_TRY(cx_json_list_end_object(&table, hashes, w->err));
    return cx_json_list_end_array(&list, artifacts, w->err);
}

static cx_status rehash(work *w)
{
    static const char name[] = "manifest.json";
    cx_json manifest, tasks, hashes, artifacts;
    cx_str contract;
    CX_TRY(read_json(w, CX_STR(name), &manifest));
    CX_TRY(rehash_tasks(w, CX_JSON_GET(&manifest, "tasks"), &tasks));
    CX_TRY(rehash_files(w, CX_JSON_GET(&manifest, "artifacts"), &hashes, &artifacts));
    CX_TRY(edit(w, &manifest, CX_STR("/tasks"), &tasks, &manifest));
    CX_TRY(edit(w, &manifest, CX_STR("/evidence_hashes"), &hashes, &manifest));
    CX_TRY(edit(w, &manifest, CX_STR("/artifacts"), &artifacts, &manifest));
    if (access(path_in(w, CX_STR("contract.json")), F_OK) == 0) {
        CX_TRY(read_file(w, CX_STR("contract.json"), &contract));
        cx_json sha256 = cx_json_make_str(hex_of(w, contract));
        CX_TRY(edit(w, &manifest, CX_STR("/integrity/contract_sha256"), &sha256, &manifest));
    }
    return write_json(w, CX_STR(name), &manifest);
}

static cx_status append_event(work *w)
{
    line_list lines = {0};
    cx_str text;
    cx_json event, type = cx_json_make_str(word(w, 0)), empty;
    cx_buf line;
    cx_json_list none = cx_json_list_begin(&w->arena);
    CX_TRY(read_file(w, CX_STR("events.jsonl"), &text));
    split(text, &lines);
    cx_status status = lines.count == 0 ? cx_fail(w->err, CX_E_FORMAT, "there is no event to copy")
                                        : cx_run_json_read(lines.items[lines.count - 1], 0,
                                                           &w->arena, &event, w->err);
    cx_vec_done(&lines, cx_alloc_default());
    CX_TRY(status);
    CX_TRY(cx_json_list_end_object(&none, &empty, w->err));
    CX_TRY(edit(w, &event, CX_STR("/event_type"), &type, &event));
    CX_TRY(edit(w, &event, CX_STR("/payload"), &empty, &event));
    cx_buf_init(&line, cx_alloc_default());
    cx_buf_add_str(&line, text);
    status = cx_json_write(&line, &event, CX_JSON_PY_COMPACT, w->err);
    cx_buf_add_byte(&line, '\n');
    if (cx_failed(status)) {
        cx_buf_done(&line);
        return status;
    }
    return write_buf(w, CX_STR("events.jsonl"), &line);
}

static cx_status append_patch(work *w)
{
    cx_json manifest;
    cx_str file = word(w, 0);
    CX_TRY(read_json(w, CX_STR("manifest.json"), &manifest));
    cx_str task = CX_JSON_GET_STR(&manifest, "task_id");
    cx_str more = cx_arena_printf(
        &w->arena,
        "diff --git a/%.*s b/%.*s\nindex 0000000000000000000000000000000000000001.."
        "0000000000000000000000000000000000000002 100644\n--- a/%.*s\n+++ b/%.*s\n@@ -1 +1 @@\n"
        "-old\n+new\n",
        (int)file.size, file.data, (int)file.size, file.data, (int)file.size, file.data,
        (int)file.size, file.data);
    CX_TRY(append(w, CX_STR("patch.diff"), more));
    CX_TRY(append(w, CX_STR("git/patch.diff"), more));
    CX_TRY(append(
        w, cx_arena_printf(&w->arena, "results/%.*s/patch.diff", (int)task.size, task.data), more));
    return append(w, cx_arena_printf(&w->arena, "patches/%.*s.diff", (int)task.size, task.data),
                  more);
}

/* --- files ------------------------------------------------------------------------------------ */

static cx_status os(work *w, int result, const char *what)
{
    return result == 0 ? CX_SUCCESS : cx_fail(w->err, CX_E_IO, "%s failed", what);
}

static cx_status move_and_link(work *w, cx_str name)
{
    char to[FOLDER_PATH_SIZE + 16];
    CX_TRY(cx_path_make_folders(w->t->outside, w->err));
    (void)snprintf(to, sizeof to, "%s/moved", w->t->outside);
    const char *path = path_in(w, name);
    CX_TRY(os(w, rename(path, to), "rename"));
    return os(w, symlink(to, path), "symlink");
}

static cx_status rename_folder(work *w, cx_str name)
{
    char to[FOLDER_PATH_SIZE];
    (void)snprintf(to, sizeof to, "%s", w->t->folder);
    char *last = strrchr(to, '/') + 1;
    (void)snprintf(last, sizeof to - (size_t)(last - to), "%.*s", (int)name.size, name.data);
    CX_TRY(os(w, rename(w->t->folder, to), "rename"));
    memcpy(w->t->folder, to, sizeof to);
    return CX_SUCCESS;
}

static cx_status write_b64(work *w, cx_str name, cx_str text)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    if (!cx_base64_decode(text, CX_BASE64, &bytes)) {
        cx_buf_done(&bytes);
        return cx_fail(w->err, CX_E_FORMAT, "no base64");
    }
    return write_buf(w, name, &bytes);
}

static cx_status copy_file(work *w, cx_str from, cx_str to)
{
    cx_str text;
    CX_TRY(read_file(w, from, &text));
    return write_file(w, to, text);
}

static cx_status change_mode(work *w, cx_str name, cx_str octal)
{
    unsigned mode = 0;
    for (size_t i = 0; i < octal.size; i++)
        mode = mode * 8 + (unsigned)(octal.data[i] - '0');
    return os(w, chmod(path_in(w, name), (mode_t)mode), "chmod");
}

static cx_status apply(work *w)
{
    cx_str op =
        w->op->type == CX_JSON_ARRAY && w->op->count != 0 && w->op->items[0].type == CX_JSON_STRING
            ? cx_json_text(&w->op->items[0])
            : CX_STR("");
    cx_str name = word(w, 0), text;
    if (cx_str_is(op, "append"))
        return append(w, name, word(w, 1));
    if (cx_str_is(op, "write"))
        return write_file(w, name, word(w, 1));
    if (cx_str_is(op, "write_b64"))
        return write_b64(w, name, word(w, 1));
    if (cx_str_is(op, "delete"))
        return os(w, unlink(path_in(w, name)), "unlink");
    if (cx_str_is(op, "mkdir"))
        return cx_path_make_folders(path_in(w, name), w->err);
    if (cx_str_is(op, "replace")) {
        cx_buf out;
        CX_TRY(read_file(w, name, &text));
        cx_buf_init(&out, cx_alloc_default());
        cx_status status = replace_in(w, text, word(w, 1), word(w, 2), &out);
        if (!cx_failed(status))
            return write_buf(w, name, &out);
        cx_buf_done(&out);
        return status;
    }
    if (cx_str_ends(op, CX_STR("_line")) || cx_str_ends(op, CX_STR("_lines")))
        return edit_lines(w, op, name);
    if (cx_str_is(op, "json_set") && w->op->count == 4)
        return edit_json(w, name, false);
    if (cx_str_is(op, "json_del"))
        return edit_json(w, name, true);
    if (cx_str_is(op, "copy_file"))
        return copy_file(w, name, word(w, 1));
    if (cx_str_is(op, "crlf"))
        return to_crlf(w, name);
    if (cx_str_is(op, "strip_last_newline")) {
        CX_TRY(read_file(w, name, &text));
        text.size -= text.size != 0 && text.data[text.size - 1] == '\n';
        return write_file(w, name, text);
    }
    if (cx_str_is(op, "reformat"))
        return reformat(w, name);
    if (cx_str_is(op, "chmod"))
        return change_mode(w, name, word(w, 1));
    if (cx_str_is(op, "rename_dir"))
        return rename_folder(w, name);
    if (cx_str_is(op, "symlink_to_copy"))
        return move_and_link(w, name);
    if (cx_str_is(op, "append_event"))
        return append_event(w);
    if (cx_str_is(op, "append_patch"))
        return append_patch(w);
    if (cx_str_is(op, "rechain"))
        return rechain(w);
    if (cx_str_is(op, "rehash"))
        return rehash(w);
    if (cx_str_is(op, "other_seal")) {
        w->t->other_seal = true;
        return CX_SUCCESS;
    }
    return cx_fail(w->err, CX_E_UNSUPPORTED, "unknown operation '%.*s'", (int)op.size, op.data);
}

cx_status tamper_apply(tampered *t, const cx_json *ops, cx_err *err)
{
    work w = {.t = t, .err = err};
    cx_status status = CX_SUCCESS;
    cx_arena_init(&w.arena, cx_alloc_default(), 0);
    for (uint32_t i = 0; i < ops->count && !cx_failed(status); i++) {
        w.op = &ops->items[i];
        status = apply(&w);
    }
    cx_arena_done(&w.arena);
    return status;
}

/* --- copying ---------------------------------------------------------------------------------- */

typedef struct copying {
    work *w;
    cx_file from;
    cx_status status;
} copying;

static cx_walk_step copy_one(void *arg, const cx_walk_entry *entry)
{
    copying *c = arg;
    cx_buf text;
    if (entry->facts.kind != CX_FILE_REGULAR)
        return CX_WALK_ON;
    cx_buf_init(&text, cx_alloc_default());
    c->status = cx_folder_read_file(entry->parent, entry->name, FILE_MAX, &text, c->w->err);
    if (!cx_failed(c->status))
        c->status = write_buf(c->w, cx_str_from(entry->path, entry->path_size), &text);
    else
        cx_buf_done(&text);
    return cx_failed(c->status) ? CX_WALK_STOP : CX_WALK_ON;
}

cx_status tamper_copy(const char *from, const char *above, const char *name, tampered *out,
                      cx_err *err)
{
    work w = {.t = out, .err = err};
    copying c = {.w = &w};
    *out = (tampered){.other_seal = false};
    (void)snprintf(out->folder, sizeof out->folder, "%s/%s", above, name);
    (void)snprintf(out->outside, sizeof out->outside, "%s/outside", above);
    CX_TRY(cx_folder_open(from, &c.from, err));
    cx_arena_init(&w.arena, cx_alloc_default(), 0);
    cx_status status = cx_folder_walk(c.from, NULL, copy_one, &c, err);
    if (!cx_failed(status))
        status = c.status;
    cx_folder_close(c.from);
    cx_arena_done(&w.arena);
    return status;
}
