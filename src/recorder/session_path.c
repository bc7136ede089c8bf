/*
 * session_path.c - sessions by the paths of their files (session_path.h).
 */
#include "recorder/session_path.h"

#include "crypto/api.h"

#define STORAGE "/opencode/storage"
#define AIDER ".aider.chat.history.md"

/* The last part of a path, which becomes the rest. */
static cx_str cut_name(cx_str *path)
{
    size_t start = path->size;
    while (start > 0 && path->data[start - 1] != '/')
        start--;
    cx_str name = cx_str_from(path->data + start, path->size - start);
    path->size = start > 0 ? start - 1 : 0;
    return name;
}

static bool cut_ending(cx_str *name, const char *ending)
{
    size_t size = strlen(ending);
    if (name->size <= size || !cx_str_ends(*name, cx_str_z(ending)))
        return false;
    name->size -= size;
    return true;
}

static bool has_folder(cx_str path, const char *folder)
{
    return path.size != 0 && memmem(path.data, path.size, folder, strlen(folder)) != NULL;
}

/* Files that are named alike in every session are called by their folder. */
static cx_str name_of(cx_str stem, cx_str folder)
{
    return cx_str_is(stem, "events") || cx_str_is(stem, "ui_messages") ? cut_name(&folder) : stem;
}

static void read_document(cx_str stem, cx_str folders, cx_session_path *out)
{
    cx_str above = folders, folder = cut_name(&above), further = above, parent = cut_name(&further);
    out->stem = name_of(stem, folders);
    out->file = stem;
    if (cx_str_is(folder, "chats") || cx_str_is(stem, "ui_messages")) {
        out->shape = CX_SESSION_DOCUMENT;
    } else if (cx_str_is(folder, "events")) {
        out->shape = CX_SESSION_EVENT;
        out->group = above;
        out->stem = parent;
    } else if (cx_str_is(parent, "message") && cx_str_ends(further, CX_STR(STORAGE))) {
        out->shape = CX_SESSION_MESSAGE;
        out->group = folders;
        out->stem = folder;
    } else if (cx_str_is(parent, "part") && cx_str_ends(further, CX_STR(STORAGE))) {
        out->shape = CX_SESSION_PART;
        out->group = further;
        out->message = folder;
        out->stem = stem;
    }
}

void cx_session_path_read(cx_str path, cx_session_path *out)
{
    cx_str folders = path, name = cut_name(&folders), stem = name;
    *out = (cx_session_path){.stem = name, .file = name};
    if (cut_ending(&stem, ".jsonl")) {
        /* Cursor keeps other lines below its projects. */
        bool other =
            has_folder(path, "/.cursor/projects/") && !has_folder(path, "/agent-transcripts/");
        out->shape = other ? CX_SESSION_NO_FILE : CX_SESSION_LINES;
        out->stem = name_of(stem, folders);
    } else if (cx_str_is(name, AIDER)) {
        out->shape = CX_SESSION_LINES;
        out->stem = folders.size == 0 ? name : cut_name(&folders);
    } else if (cut_ending(&stem, ".json") && stem.data[0] != '.') {
        read_document(stem, folders, out);
    }
}

void cx_session_id(cx_str path, uint64_t generation, uint8_t out[CX_SESSION_ID_SIZE])
{
    cx_sha256 sha;
    uint8_t number[8];
    for (unsigned i = 0; i < 8; i++)
        number[i] = (uint8_t)(generation >> (56 - 8 * i));
    cx_sha256_init(&sha);
    cx_sha256_add(&sha, path.data, path.size);
    cx_sha256_add(&sha, "", 1);
    cx_sha256_add(&sha, number, sizeof number);
    cx_digest digest = cx_sha256_end(&sha);
    memcpy(out, digest.bytes, CX_SESSION_ID_SIZE);
}

void cx_session_add_line(cx_bytes json, cx_buf *out)
{
    bool quoted = false, escaped = false;
    for (size_t i = 0; i < json.size; i++) {
        uint8_t c = json.data[i];
        bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (quoted ? c == '\n' || c == '\r' : space)
            continue;
        cx_buf_add_byte(out, c);
        if (!quoted)
            quoted = c == '"';
        else if (escaped)
            escaped = false;
        else if (c == '\\')
            escaped = true;
        else
            quoted = c != '"';
    }
}
