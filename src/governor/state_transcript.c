/*
 * state_transcript.c - transcript.md: the conversation with an agent, as its runner reads it.
 *
 * Text of an agent is masked (§1 R7), escaped (cx_shown_add), and every line of it has a prefix, so
 * that nothing in it looks like a heading of ours.
 */
#include "governor/state_internal.h"

#define TRANSCRIPT_BYTES_MAX ((size_t)8 << 20)
#define RESULT_BYTES_MAX ((size_t)4096) /* of a result; the session has all of it */

static void add_block(cx_buf *out, const char *prefix, cx_str text)
{
    while (text.size != 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        cx_buf_add_z(out, prefix);
        cx_shown_add(out, (cx_str){text.data, size});
        cx_buf_add_byte(out, '\n');
        size += end != NULL;
        text = (cx_str){text.data + size, text.size - size};
    }
}

static void add_heading(cx_buf *out, const cx_session_item *item)
{
    static const char *const kinds[] = {"", "call of ", "result of "};
    cx_buf_printf(out, "%s### %s", out->size == 0 ? "" : "\n", kinds[item->kind]);
    if (item->who.size == 0 && item->id.size != 0)
        cx_shown_add(out, item->id);
    else
        cx_shown_add(out, item->who.size == 0 ? CX_STR("a tool") : item->who);
    if (item->who.size != 0 && item->id.size != 0) {
        cx_buf_add_z(out, " (");
        cx_shown_add(out, item->id);
        cx_buf_add_byte(out, ')');
    }
    cx_buf_add_z(out, item->failed ? ", failed\n\n" : "\n\n");
}

static cx_str cut_result(cx_str text)
{
    if (text.size <= RESULT_BYTES_MAX)
        return text;
    size_t size = RESULT_BYTES_MAX;
    while (size > 0 && ((uint8_t)text.data[size] & 0xC0) == 0x80)
        size--;
    return (cx_str){text.data, size};
}

static cx_status mask_item(cx_governor_task *t, cx_str text, cx_arena *arena, cx_str *out,
                           cx_err *err)
{
    cx_governor_enter(t->governor);
    cx_status status = cx_run_mask_text(&t->governor->mask, text, arena, out, err);
    cx_governor_leave(t->governor);
    return status;
}

static cx_status add_item(cx_governor_task *t, const cx_session_item *item, cx_arena *arena,
                          cx_err *err)
{
    cx_buf *out = &t->agent.transcript;
    bool message = item->kind == CX_SESSION_MESSAGE;
    cx_str text;
    CX_TRY(mask_item(t, item->text, arena, &text, err));
    cx_str shown = message ? text : cut_result(text);
    size_t left = item->text_size - item->text.size + (text.size - shown.size);
    if (!item->continued || out->size == 0)
        add_heading(out, item);
    add_block(out, message ? "> " : "    ", shown);
    if (left != 0)
        cx_buf_printf(out, "\n%zu more bytes are in events.jsonl.\n", left);
    t->agent.transcript_listed = false;
    return cx_buf_check(out, err);
}

cx_status cx_task_add_transcript(void *task, const cx_session_item *item, cx_err *err)
{
    cx_governor_task *t = task;
    cx_arena arena;
    if (t->agent.transcript_cut)
        return CX_SUCCESS;
    if (t->agent.transcript.size > TRANSCRIPT_BYTES_MAX) {
        t->agent.transcript_cut = true;
        cx_buf_add_z(&t->agent.transcript,
                     "\nThe conversation is longer; events.jsonl has all of it.\n");
        return cx_buf_check(&t->agent.transcript, err);
    }
    cx_arena_init(&arena, t->governor->alloc, 0);
    cx_status status = add_item(t, item, &arena, err);
    cx_arena_done(&arena);
    return status;
}
