/*
 * erasure.c - writing and reading the receipt of an erasure (erasure.h).
 *
 *     cortex-erasure-1
 *     home HEX            request N          from COMMIT FRAMES   (each on a line of its own)
 *     selected TEXT       by TEXT            reason TEXT
 *     requested TIME      completed TIME
 *     entries N           memories N         held N               left N
 *     list HEX
 *     entry SEQ KIND TIME COMMITMENT RECORD ACTOR     the list, in the order of the log
 *     memory ID VERSIONS HEAD_HASH RECORD ACTOR
 *
 * An actor's name is last, since it may have spaces.  Numbers are decimal, without leading zeros.
 */
#include "proof/erasure.h"

#include <inttypes.h>

#include "base/api.h"
#include "crypto/api.h"
#include "proof/export_internal.h"

/* --- writing ---------------------------------------------------------------------------------- */

static void add_text(cx_buf *out, const char *label, cx_str text)
{
    cx_buf_printf(out, "%s ", label);
    cx_shown_add(out, text);
    cx_buf_add_byte(out, '\n');
}

static void add_number(cx_buf *out, const char *label, uint64_t number)
{
    cx_buf_printf(out, "%s %" PRIu64 "\n", label, number);
}

void cx_erasure_head_write(const cx_erasure_head *head, cx_buf *out)
{
    cx_buf_add_z(out, CX_ERASURE_MAGIC "\n");
    add_text(out, "home", head->home);
    add_number(out, "request", head->request);
    cx_buf_printf(out, "from %" PRIu64 " %" PRIu64 "\n", head->from_commit, head->from_frames);
    add_text(out, "selected", head->selected);
    add_text(out, "by", head->by);
    add_text(out, "reason", head->reason);
    add_text(out, "requested", head->requested);
    add_text(out, "completed", head->completed);
    add_number(out, "entries", head->entries);
    add_number(out, "memories", head->memories);
    add_number(out, "held", head->held);
    add_number(out, "left", head->left);
    cx_buf_add_z(out, "list ");
    cx_hex_add(out, cx_bytes_from(head->list.bytes, sizeof head->list.bytes));
    cx_buf_add_byte(out, '\n');
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status fail_form(const char *expected, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadErasure", CX_NO_OFFSET,
                      "receipt of an erasure: expected the line '%s'", expected);
}

/* The rest of a line that begins with the label and a space. */
static bool read_line(cx_str *rest, const char *label, cx_str *out)
{
    cx_str line;
    size_t size = strlen(label);
    if (!cx_line_next(rest, &line) || line.size < size + 1 || memcmp(line.data, label, size) != 0 ||
        line.data[size] != ' ')
        return false;
    *out = cx_str_from(line.data + size + 1, line.size - size - 1);
    return true;
}

static bool next_word(cx_str *line, cx_str *out)
{
    const char *space = line->size == 0 ? NULL : memchr(line->data, ' ', line->size);
    if (space == NULL)
        return false;
    size_t size = (size_t)(space - line->data);
    *out = cx_str_from(line->data, size);
    *line = cx_str_from(space + 1, line->size - size - 1);
    return size != 0;
}

static bool read_position(cx_str *rest, cx_erasure_head *out)
{
    cx_str line, commit;
    return read_line(rest, "from", &line) && next_word(&line, &commit) &&
           cx_line_number(commit, &out->from_commit) && cx_line_number(line, &out->from_frames);
}

cx_status cx_erasure_head_read(cx_str text, cx_erasure_head *out, cx_str *out_rest, cx_err *err)
{
    cx_str magic, value;
    cx_erasure_head head;
    const struct {
        const char *label;
        cx_str *text;
        uint64_t *number;
    } lines[] = {{"home", &head.home, NULL},
                 {"request", NULL, &head.request},
                 {"from", NULL, NULL},
                 {"selected", &head.selected, NULL},
                 {"by", &head.by, NULL},
                 {"reason", &head.reason, NULL},
                 {"requested", &head.requested, NULL},
                 {"completed", &head.completed, NULL},
                 {"entries", NULL, &head.entries},
                 {"memories", NULL, &head.memories},
                 {"held", NULL, &head.held},
                 {"left", NULL, &head.left}};
    if (!cx_line_next(&text, &magic) || !cx_str_is(magic, CX_ERASURE_MAGIC))
        return fail_form(CX_ERASURE_MAGIC, err);
    for (size_t i = 0; i < CX_COUNT_OF(lines); i++) {
        bool plain = lines[i].text != NULL || lines[i].number != NULL;
        bool good = plain ? read_line(&text, lines[i].label, &value) : read_position(&text, &head);
        if (good && lines[i].text != NULL)
            *lines[i].text = value;
        if (good && lines[i].number != NULL)
            good = cx_line_number(value, lines[i].number);
        if (!good)
            return fail_form(lines[i].label, err);
    }
    if (!read_line(&text, "list", &value) || !cx_digest_parse(value, &head.list))
        return fail_form("list", err);
    *out = head;
    *out_rest = text;
    return CX_SUCCESS;
}

/* The words of a line of the list, all but the actor's name. */
static bool list_line_ok(cx_str line, bool *out_memory)
{
    cx_str word;
    uint64_t number;
    cx_digest digest;
    if (!next_word(&line, &word))
        return false;
    *out_memory = cx_str_is(word, "memory");
    if (!*out_memory && !cx_str_is(word, "entry"))
        return false;
    if (!next_word(&line, &word) || (!*out_memory && !cx_line_number(word, &number)))
        return false;
    if (*out_memory ? !next_word(&line, &word) || !cx_line_number(word, &number)
                    : !next_word(&line, &word) || !next_word(&line, &word))
        return false;
    return next_word(&line, &word) && cx_digest_parse(word, &digest) && next_word(&line, &word) &&
           cx_line_number(word, &number) && line.size != 0;
}

/* Counts the lines up to the end, or to the empty line before the signatures. */
static cx_status read_list(cx_str rest, cx_erasure_receipt *out, cx_err *err)
{
    cx_str line;
    const char *begin = rest.data;
    uint64_t entries = 0, memories = 0;
    size_t size = 0;
    out->signatures = cx_str_from(begin, 0);
    while (rest.size != 0) {
        bool memory;
        if (!cx_line_next(&rest, &line))
            return fail_form("entry or memory", err);
        if (line.size == 0) {
            out->signatures = rest;
            break;
        }
        if (!list_line_ok(line, &memory))
            return fail_form("entry or memory", err);
        entries += memory ? 0 : 1;
        memories += memory ? 1 : 0;
        size += line.size + 1;
    }
    out->list = cx_str_from(begin, size);
    cx_digest digest = cx_digest_of(cx_str_bytes(out->list));
    if (entries != out->head.entries || memories != out->head.memories ||
        !cx_digest_eq(&digest, &out->head.list))
        return cx_fail_at(err, CX_E_FORMAT, "ListMismatch", CX_NO_OFFSET,
                          "receipt of an erasure: its list has %" PRIu64 " entries and %" PRIu64
                          " memories, and is not the one that its head commits to (%" PRIu64
                          " and %" PRIu64 ")",
                          entries, memories, out->head.entries, out->head.memories);
    return CX_SUCCESS;
}

cx_status cx_erasure_read(cx_bytes file, cx_erasure_receipt *out, cx_err *err)
{
    cx_erasure_receipt receipt;
    cx_str rest;
    if (!cx_utf8_valid(cx_bytes_str(file)))
        return cx_fail_at(err, CX_E_FORMAT, "BadErasure", CX_NO_OFFSET,
                          "receipt of an erasure: it is not UTF-8");
    CX_TRY(cx_erasure_head_read(cx_bytes_str(file), &receipt.head, &rest, err));
    CX_TRY(read_list(rest, &receipt, err));
    size_t head_size = file.size - rest.size;
    receipt.text = cx_bytes_from(file.data, head_size + receipt.list.size);
    if (receipt.signatures.size == 0 && receipt.text.size != file.size)
        return fail_form("signature", err);
    *out = receipt;
    return CX_SUCCESS;
}
