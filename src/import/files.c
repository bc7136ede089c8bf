/*
 * files.c - which files a tool call reads or writes (files.h).
 *
 * Names of tools are compared in lower case and without `_`, so that Read, read_file and readFile
 * meet; what a tool does with a path is in one table.  A patch names its files itself.
 */
#include "import/files.h"

#include <string.h>

#include "base/api.h"

#define NAME_MAX_BYTES 48

const char *cx_import_file_verb(cx_import_file_use what)
{
    static const char *const verbs[] = {"read", "write", "edit", "delete"};
    return verbs[what];
}

/* Lower case, without `_` and `-`; a server's prefix (mcp__fs__read_file) is cut.  0: too long. */
static size_t plain_name(cx_str tool, char out[NAME_MAX_BYTES])
{
    size_t size = 0;
    for (size_t i = tool.size; i-- > 1;) {
        if (tool.data[i] == '_' && tool.data[i - 1] == '_') {
            tool = cx_str_from(tool.data + i + 1, tool.size - i - 1);
            break;
        }
    }
    for (size_t i = 0; i < tool.size; i++) {
        char c = tool.data[i];
        if (c == '_' || c == '-')
            continue;
        if (size == NAME_MAX_BYTES)
            return 0;
        out[size++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    return size;
}

static bool use_of(cx_str name, cx_import_file_use *out)
{
    static const struct {
        const char *name;
        cx_import_file_use what;
    } tools[] = {
        {"read", CX_IMPORT_FILE_READ},
        {"readfile", CX_IMPORT_FILE_READ},
        {"readtextfile", CX_IMPORT_FILE_READ},
        {"readmediafile", CX_IMPORT_FILE_READ},
        {"view", CX_IMPORT_FILE_READ},
        {"viewfile", CX_IMPORT_FILE_READ},
        {"viewimage", CX_IMPORT_FILE_READ},
        {"openfile", CX_IMPORT_FILE_READ},
        {"notebookread", CX_IMPORT_FILE_READ},
        {"readmanyfiles", CX_IMPORT_FILE_READ},
        {"readmultiplefiles", CX_IMPORT_FILE_READ},
        {"write", CX_IMPORT_FILE_WRITE},
        {"writefile", CX_IMPORT_FILE_WRITE},
        {"create", CX_IMPORT_FILE_WRITE},
        {"createfile", CX_IMPORT_FILE_WRITE},
        {"writetofile", CX_IMPORT_FILE_WRITE},
        {"newfile", CX_IMPORT_FILE_WRITE},
        {"edit", CX_IMPORT_FILE_EDIT},
        {"editfile", CX_IMPORT_FILE_EDIT},
        {"multiedit", CX_IMPORT_FILE_EDIT},
        {"replace", CX_IMPORT_FILE_EDIT},
        {"strreplace", CX_IMPORT_FILE_EDIT},
        {"replaceinfile", CX_IMPORT_FILE_EDIT},
        {"insert", CX_IMPORT_FILE_EDIT},
        {"notebookedit", CX_IMPORT_FILE_EDIT},
        {"searchreplace", CX_IMPORT_FILE_EDIT},
        {"applydiff", CX_IMPORT_FILE_EDIT},
        {"deletefile", CX_IMPORT_FILE_DELETE},
        {"delete", CX_IMPORT_FILE_DELETE},
    };
    for (size_t i = 0; i < CX_COUNT_OF(tools); i++) {
        if (cx_str_is(name, tools[i].name)) {
            *out = tools[i].what;
            return true;
        }
    }
    return false;
}

/* One tool with several verbs: str_replace_editor and its kin. */
static bool editor_use(cx_str name, const cx_json *arguments, cx_import_file_use *out)
{
    static const char *const editors[] = {"strreplaceeditor", "strreplacebasededittool",
                                          "fileeditor", "texteditor"};
    cx_str command = cx_json_get_str(arguments, CX_STR("command"));
    bool known = false;
    for (size_t i = 0; i < CX_COUNT_OF(editors); i++)
        known = known || cx_str_is(name, editors[i]);
    if (!known)
        return false;
    *out = cx_str_is(command, "view")     ? CX_IMPORT_FILE_READ
           : cx_str_is(command, "create") ? CX_IMPORT_FILE_WRITE
                                          : CX_IMPORT_FILE_EDIT;
    return true;
}

static size_t add_file(cx_import_file *out, size_t count, cx_import_file file)
{
    if (count == CX_IMPORT_FILES_MAX || file.path.size == 0)
        return count;
    out[count] = file;
    return count + 1;
}

static cx_str line_at(const char **at, const char *end)
{
    const char *from = *at, *stop = memchr(from, '\n', (size_t)(end - from));
    *at = stop == NULL ? end : stop + 1;
    stop = stop == NULL ? end : stop;
    if (stop > from && stop[-1] == '\r')
        stop--;
    return cx_str_from(from, (size_t)(stop - from));
}

/* The form of a patch that begins with `*** Begin Patch`. */
static size_t patch_files(cx_str patch, cx_import_file *out)
{
    static const struct {
        const char *mark;
        cx_import_file_use what;
    } marks[] = {
        {"*** Add File: ", CX_IMPORT_FILE_WRITE},
        {"*** Update File: ", CX_IMPORT_FILE_EDIT},
        {"*** Delete File: ", CX_IMPORT_FILE_DELETE},
        {"*** Move to: ", CX_IMPORT_FILE_WRITE},
    };
    const char *at = patch.data, *end = patch.data + patch.size;
    size_t count = 0;
    while (at < end) {
        cx_str line = line_at(&at, end);
        for (size_t i = 0; i < CX_COUNT_OF(marks); i++) {
            size_t size = strlen(marks[i].mark);
            if (line.size > size && memcmp(line.data, marks[i].mark, size) == 0)
                count = add_file(
                    out, count,
                    (cx_import_file){.path = cx_str_from(line.data + size, line.size - size),
                                     .what = marks[i].what});
        }
    }
    return count;
}

/* The patch is the arguments, a member of them, or an item of a shell's command. */
static cx_str patch_in(cx_str name, const cx_json *arguments)
{
    static const char mark[] = "*** Begin Patch";
    static const char *const names[] = {"input", "patch", "command", "cmd"};
    const cx_json *command = cx_json_get_typed(arguments, CX_STR("command"), CX_JSON_ARRAY);
    cx_str texts[CX_COUNT_OF(names) + 2] = {0};
    size_t count = 0;
    if (arguments->type == CX_JSON_STRING)
        texts[count++] = cx_json_text(arguments);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        texts[count++] = cx_json_get_str(arguments, cx_str_z(names[i]));
    if (command != NULL && command->count != 0 &&
        command->items[command->count - 1].type == CX_JSON_STRING)
        texts[count++] = cx_json_text(&command->items[command->count - 1]);
    for (size_t i = 0; i < count; i++) {
        if (texts[i].size != 0 &&
            memmem(texts[i].data, texts[i].size, mark, sizeof mark - 1) != NULL &&
            (cx_str_is(name, "applypatch") || cx_str_is(name, "shell") ||
             cx_str_is(name, "localshell") || cx_str_is(name, "execcommand")))
            return texts[i];
    }
    return (cx_str){NULL, 0};
}

static const cx_json *string_member(const cx_json *object, const char *const *names)
{
    for (; *names != NULL; names++) {
        const cx_json *found = cx_json_get_typed(object, cx_str_z(*names), CX_JSON_STRING);
        if (found != NULL)
            return found;
    }
    return NULL;
}

size_t cx_import_files_of(cx_str tool, const cx_json *arguments, cx_import_file *out)
{
    static const char *const paths[] = {
        "file_path", "filePath",      "path", "notebook_path", "target_file",
        "filename",  "absolute_path", "file", "AbsolutePath",  NULL};
    static const char *const contents[] = {"content", "file_text", "contents", "text", NULL};
    char text[NAME_MAX_BYTES];
    cx_str name = cx_str_from(text, plain_name(tool, text));
    cx_import_file file = {0};
    cx_str patch = patch_in(name, arguments);
    if (patch.size != 0)
        return patch_files(patch, out);
    if (arguments->type != CX_JSON_OBJECT ||
        (!use_of(name, &file.what) && !editor_use(name, arguments, &file.what)))
        return 0;
    const cx_json *list = cx_json_get_typed(arguments, CX_STR("paths"), CX_JSON_ARRAY);
    size_t count = 0;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        if (list->items[i].type == CX_JSON_STRING)
            count = add_file(
                out, count,
                (cx_import_file){.path = cx_json_text(&list->items[i]), .what = file.what});
    }
    const cx_json *path = string_member(arguments, paths);
    if (path == NULL)
        return count;
    file.path = cx_json_text(path);
    if (file.what == CX_IMPORT_FILE_WRITE)
        file.content = string_member(arguments, contents);
    return add_file(out, count, file);
}
