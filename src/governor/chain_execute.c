/*
 * chain_execute.c - running a chain: workers take steps that are ready until none is left.
 *
 * I1  A step's state goes WAITING -> RUNNING -> SUCCESS or FAILED, or WAITING -> SKIPPED; under the
 *     lock.
 * I2  A step runs only when all that it depends on are SUCCESS.
 * I3  The manifest on the disk is what is known after each change; the last one is what is sealed.
 */
#include "governor/chain.h"

#include <stdio.h>

#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"

typedef struct step_state {
    cx_run_chain_state state;
    int exit_code; /* -1 = not run */
    cx_str run_id, reason, final_commit;
} step_state;

typedef struct work {
    const cx_run_chain *chain;
    const cx_run_chain_options *options;
    const cx_io *io;
    cx_lock lock;
    cx_arena *arena; /* of the outcome; under the lock */
    step_state *steps;
    cx_str run_id, path, created_at, finished_at;
    cx_status status; /* the first that could not be written */
    cx_err why;
} work;

const char *cx_run_chain_state_name(cx_run_chain_state state)
{
    static const char *const names[] = {"WAITING", "RUNNING", "SUCCESS", "FAILED", "SKIPPED"};
    return names[state];
}

static bool cancelled(const work *w)
{
    const atomic_bool *cancel = w->options->run.cancel;
    return cancel != NULL && atomic_load(cancel);
}

static cx_str time_text(work *w)
{
    char text[28];
    cx_run_time_text((int64_t)w->io->wall_ns(w->io), text);
    return cx_arena_copy_str(w->arena, cx_str_z(text));
}

static cx_str hex_of(work *w, cx_bytes bytes)
{
    char hex[65] = {0};
    cx_digest digest = cx_digest_of(bytes);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    return cx_arena_copy_str(w->arena, cx_str_from(hex, 64));
}

/* --- the manifest ----------------------------------------------------------------------------- */

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name),
                     text.size == 0 ? cx_json_make_null() : cx_json_make_str(text));
}

static cx_status step_json(work *w, size_t index, cx_json *out, cx_err *err)
{
    const cx_run_chain_step *step = &w->chain->steps[index];
    const step_state *state = &w->steps[index];
    cx_json_list after = cx_json_list_begin(w->arena), object;
    cx_json names;
    for (size_t i = 0; i < step->after_count; i++)
        cx_json_list_add(&after, cx_json_make_str(w->chain->steps[step->after[i]].name));
    CX_TRY(cx_json_list_end_array(&after, &names, err));
    object = cx_json_list_begin(w->arena);
    put_text(&object, "name", step->name);
    cx_json_list_put(&object, CX_STR("depends_on"), names);
    put_text(&object, "status", cx_str_z(cx_run_chain_state_name(state->state)));
    put_text(&object, "run_id", state->run_id);
    put_text(&object, "reason", state->reason);
    put_text(&object, "final_commit", state->final_commit);
    put_text(&object, "contract_sha256", hex_of(w, step->contract));
    cx_json_list_put(&object, CX_STR("exit_code"),
                     state->exit_code < 0 ? cx_json_make_null()
                                          : cx_json_make_int(w->arena, state->exit_code));
    return cx_json_list_end_object(&object, out, err);
}

static const char *chain_status(const work *w)
{
    bool all = true;
    for (size_t i = 0; i < w->chain->step_count; i++)
        all &= w->steps[i].state == CX_CHAIN_SUCCESS;
    return w->finished_at.size == 0 ? "RUNNING" : all ? "SUCCESS" : "FAILURE";
}

static cx_status manifest_json(work *w, cx_json *out, cx_err *err)
{
    cx_json_list steps = cx_json_list_begin(w->arena), object;
    cx_json value;
    for (size_t i = 0; i < w->chain->step_count; i++) {
        CX_TRY(step_json(w, i, &value, err));
        cx_json_list_add(&steps, value);
    }
    CX_TRY(cx_json_list_end_array(&steps, &value, err));
    object = cx_json_list_begin(w->arena);
    put_text(&object, "version", CX_STR("v1"));
    put_text(&object, "chain_id", w->chain->chain_id);
    put_text(&object, "chain_run_id", w->run_id);
    put_text(&object, "chain_sha256", hex_of(w, cx_str_bytes(w->chain->bytes)));
    put_text(&object, "created_at", w->created_at);
    put_text(&object, "finished_at", w->finished_at);
    put_text(&object, "status", cx_str_z(chain_status(w)));
    cx_json_list_put(&object, CX_STR("steps"), value);
    return cx_json_list_end_object(&object, out, err);
}

/* I3; returns the bytes in `text`. */
static cx_status write_manifest(work *w, cx_buf *text, cx_json *out, cx_err *err)
{
    CX_TRY(manifest_json(w, out, err));
    cx_buf_clear(text);
    CX_TRY(cx_run_json_write(text, out, err));
    return cx_run_write_file(w->io, w->path.data, cx_buf_bytes(text), err);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Under the lock: something changed, which the manifest and the caller are told. */
static void report_news(work *w, size_t index)
{
    const step_state *state = &w->steps[index];
    cx_run_chain_news news = {&w->chain->steps[index], state->state, state->run_id, state->reason};
    cx_buf text;
    cx_json ignored;
    cx_buf_init(&text, w->arena->alloc);
    if (!cx_failed(w->status))
        w->status = write_manifest(w, &text, &ignored, &w->why);
    cx_buf_done(&text);
    if (w->options->news != NULL)
        w->options->news(w->options->news_arg, &news);
    cx_lock_wake(&w->lock);
}

static void skip_step(work *w, size_t index, cx_str reason)
{
    w->steps[index].state = CX_CHAIN_SKIPPED;
    w->steps[index].reason = reason;
    report_news(w, index);
}

/* Whether a waiting step can start: which of its dependencies are not done. */
typedef enum readiness { READY, NOT_YET, NEVER } readiness;

static readiness find_ready_step(const work *w, size_t index)
{
    const cx_run_chain_step *step = &w->chain->steps[index];
    readiness found = READY;
    for (size_t i = 0; i < step->after_count; i++) {
        cx_run_chain_state before = w->steps[step->after[i]].state;
        if (before == CX_CHAIN_FAILED || before == CX_CHAIN_SKIPPED)
            return NEVER;
        if (before != CX_CHAIN_SUCCESS)
            found = NOT_YET;
    }
    return found;
}

/* Under the lock: the next step to run, or the count of steps when all have ended; waits. */
static size_t next_step(work *w)
{
    size_t count = w->chain->step_count;
    while (true) {
        bool waiting = false, changed = false;
        for (size_t i = 0; i < count; i++) {
            if (w->steps[i].state != CX_CHAIN_WAITING)
                continue;
            readiness found = find_ready_step(w, i);
            if (cancelled(w) || cx_failed(w->status)) {
                skip_step(w, i, CX_STR("the chain was interrupted"));
                changed = true;
            } else if (found == NEVER) {
                skip_step(w, i, CX_STR("a step that it depends on did not succeed"));
                changed = true;
            } else if (found == READY) {
                return i;
            } else {
                waiting = true;
            }
        }
        if (!waiting && !changed)
            return count;
        if (!changed)
            cx_lock_wait(&w->lock);
    }
}

static cx_str store_step_outcome(work *w, cx_str text)
{
    cx_str stored = cx_arena_copy_str(w->arena, text);
    if (stored.data == NULL) {
        w->status = cx_fail_nomem(&w->why);
        return CX_STR("");
    }
    return stored;
}

static void run_chain_step(work *w, size_t index)
{
    cx_run_options options = w->options->run;
    cx_run_outcome outcome = {0};
    cx_arena arena;
    cx_err err = {0};
    options.contract = w->chain->steps[index].contract;
    cx_arena_init(&arena, w->arena->alloc, 0);
    cx_status status = cx_run_execute(&options, &arena, &outcome, &err);
    cx_lock_enter(&w->lock);
    step_state *state = &w->steps[index];
    if (cx_failed(status)) {
        state->state = CX_CHAIN_FAILED;
        state->exit_code = 3;
        state->reason = store_step_outcome(w, cx_str_z(err.message));
    } else {
        state->state = outcome.exit_code == 0 ? CX_CHAIN_SUCCESS : CX_CHAIN_FAILED;
        state->exit_code = outcome.exit_code;
        state->run_id = store_step_outcome(w, outcome.run_id);
        state->reason = store_step_outcome(w, outcome.reason);
        state->final_commit = store_step_outcome(w, outcome.final_commit);
    }
    report_news(w, index);
    cx_lock_leave(&w->lock);
    cx_arena_done(&arena);
}

static void chain_worker(void *arg, unsigned index)
{
    work *w = arg;
    (void)index;
    while (true) {
        cx_lock_enter(&w->lock);
        size_t step = next_step(w);
        if (step < w->chain->step_count) {
            w->steps[step].state = CX_CHAIN_RUNNING;
            report_news(w, step);
        }
        cx_lock_leave(&w->lock);
        if (step == w->chain->step_count)
            return;
        run_chain_step(w, step);
    }
}

/* --- the chain -------------------------------------------------------------------------------- */

static cx_status make_chain_folder(work *w, cx_err *err)
{
    char id[CX_RUN_ID_SIZE];
    CX_TRY(cx_run_id_make(w->io, id, err));
    w->run_id = cx_arena_printf(w->arena, "chain_%s", id + strlen("run_"));
    if (w->run_id.data == NULL)
        return cx_fail_nomem(err);
    cx_str folder = cx_run_store_path(w->options->store, w->arena, "chains", w->run_id);
    w->path =
        folder.data == NULL ? folder : cx_arena_printf(w->arena, "%s/manifest.json", folder.data);
    if (w->path.data == NULL)
        return cx_fail_nomem(err);
    return cx_path_make_folders(folder.data, err);
}

/* {type:"cortex.run.chain.v1", chain_id, chain_run_id, status, manifest_sha256}, keys sorted. */
static cx_status append_chain_entry(work *w, cx_bytes manifest, bool *out_sealed, cx_err *err)
{
    const cx_run_ledger *ledger = w->options->run.ledger;
    cx_json_list object = cx_json_list_begin(w->arena);
    cx_json value;
    cx_buf text;
    *out_sealed = false;
    if (ledger == NULL)
        return CX_SUCCESS;
    put_text(&object, "type", CX_STR("cortex.run.chain.v1"));
    put_text(&object, "chain_id", w->chain->chain_id);
    put_text(&object, "chain_run_id", w->run_id);
    put_text(&object, "status", cx_str_z(chain_status(w)));
    put_text(&object, "manifest_sha256", hex_of(w, manifest));
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, w->arena->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status =
            ledger->append(ledger->ctx, "run.chain", w->run_id, cx_buf_bytes(&text), NULL, err);
    *out_sealed = !cx_failed(status);
    cx_buf_done(&text);
    return status;
}

static int exit_code_of(const work *w)
{
    int code = 0;
    for (size_t i = 0; i < w->chain->step_count; i++) {
        if (w->steps[i].exit_code == 3)
            return 3;
        if (w->steps[i].state != CX_CHAIN_SUCCESS)
            code = CX_RUN_EXIT_REJECTED;
    }
    return code;
}

static cx_status finish(work *w, cx_run_chain_outcome *out, cx_err *err)
{
    cx_buf text;
    w->finished_at = time_text(w);
    cx_buf_init(&text, w->arena->alloc);
    cx_status status = write_manifest(w, &text, &out->manifest, err);
    if (!cx_failed(status))
        status = append_chain_entry(w, cx_buf_bytes(&text), &out->sealed, err);
    cx_buf_done(&text);
    out->exit_code = exit_code_of(w);
    out->chain_run_id = w->run_id;
    out->manifest_path = w->path;
    return status;
}

cx_status cx_run_chain_execute(const cx_run_chain *chain, const cx_run_chain_options *options,
                               cx_arena *arena, cx_run_chain_outcome *out, cx_err *err)
{
    CX_ASSERT(chain != NULL && options != NULL && arena != NULL && out != NULL);
    work w = {.chain = chain, .options = options, .arena = arena, .status = CX_SUCCESS};
    w.io = options->run.io == NULL ? cx_io_system() : options->run.io;
    w.steps = CX_ARENA_ARRAY(arena, step_state, chain->step_count);
    w.created_at = time_text(&w);
    if (w.steps == NULL || w.created_at.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < chain->step_count; i++)
        w.steps[i] = (step_state){.state = CX_CHAIN_WAITING, .exit_code = -1};
    CX_TRY(make_chain_folder(&w, err));
    size_t team = options->parallel == 0 ? CX_RUN_CHAIN_PARALLEL_DEFAULT : options->parallel;
    if (team > chain->step_count)
        team = chain->step_count;
    cx_lock_init(&w.lock);
    cx_thread_team((unsigned)team, chain_worker, &w);
    cx_lock_done(&w.lock);
    if (cx_failed(w.status)) {
        if (err != NULL)
            *err = w.why;
        return w.status;
    }
    cx_run_chain_outcome made = {0};
    CX_TRY(finish(&w, &made, err));
    *out = made;
    return CX_SUCCESS;
}
