/*
 * api_provenance.c - any object by its name, and its origins, with the answers of `cortex show` and
 * `cortex why` --json (docs/formats/provenance.md), and its evidence file, unsigned.
 *
 *   S1  Runs and repository are read only for tokens that may read runs.
 *   S2  An evidence file is an HTML page: it is sent as a download, never to be shown under this
 *       server's origin.
 *   S3  A line is of a regular file of the work tree, reached without following a link.
 */
#include "os/api.h"
#include "provenance/api.h"
#include "server/route.h"
#include "server/feed/runs.h"

typedef struct provenance_call {
    cx_sources sources;
    cx_run_store store;
    cx_git *git;
    const char *repo; /* NULL = no repository that may be read */
} provenance_call;

/* S1 */
static cx_status open_runs(cx_call *call, provenance_call *s, cx_err *err)
{
    cx_runs *runs = call->service->runs;
    if (runs == NULL || (call->token.scopes & CX_SCOPE_RUN_READ) == 0)
        return CX_SUCCESS;
    s->repo = cx_runs_repo(runs);
    CX_TRY(cx_git_open(s->repo, NULL, call->service->alloc, &s->git, err));
    s->sources.git = s->git;
    /* Nothing ever ran here. */
    cx_status status = cx_runs_store(runs, &s->store, err);
    if (!cx_failed(status))
        s->sources.store = &s->store;
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status open_sources(cx_call *call, provenance_call *s, cx_err *err)
{
    CX_TRY(cx_sources_open(cx_recorder_home(call->service->recorder), call->service->io,
                           call->service->alloc, &s->sources, err));
    return open_runs(call, s, err);
}

static void close_sources(provenance_call *s)
{
    cx_sources_done(&s->sources);
    cx_git_close(s->git);
}

/* S3: "src/refund.py:2" */
static bool is_source_line(cx_call *call, const provenance_call *s, cx_str text)
{
    size_t colon = text.size;
    cx_file folder;
    cx_facts facts;
    while (colon > 0 && text.data[colon - 1] >= '0' && text.data[colon - 1] <= '9')
        colon--;
    if (s->repo == NULL || colon < 2 || colon == text.size || text.data[colon - 1] != ':' ||
        text.data[0] == '-' || text.data[0] == '/')
        return false;
    cx_str file = cx_arena_copy_str(call->arena, cx_str_from(text.data, colon - 1));
    if (file.data == NULL || cx_failed(cx_folder_open(s->repo, &folder, NULL)))
        return false;
    bool is = !cx_failed(cx_folder_facts(folder, file.data, &facts, NULL)) &&
              facts.kind == CX_FILE_REGULAR;
    cx_folder_close(folder);
    return is;
}

/* Answers with the candidates when there are several: then *out_count is not 1. */
static cx_status find_object(cx_call *call, provenance_call *s, cx_prov_object *out,
                             size_t *out_count, cx_err *err)
{
    cx_str text = cx_call_text(call, "id");
    const cx_prov_object *objects;
    cx_json list;
    *out_count = 1;
    if (is_source_line(call, s, text)) {
        *out = (cx_prov_object){.kind = CX_PROV_LINE, .id = text, .matched = "line", .known = true};
        return CX_SUCCESS;
    }
    CX_TRY(cx_prov_objects_find(&s->sources, text, call->arena, &objects, out_count, err));
    *out = objects[0];
    if (*out_count == 1)
        return CX_SUCCESS;
    CX_TRY(cx_prov_objects_list(&s->sources, objects, *out_count, call->arena, &list, err));
    return cx_call_answer_json(call, 200, &list, err);
}

typedef cx_status teller(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                         cx_json *out, cx_err *err);

static cx_status answer_with_object(cx_call *call, teller *told, cx_err *err)
{
    provenance_call s = {.repo = NULL};
    cx_prov_object object;
    cx_json answer;
    size_t count = 0;
    cx_status status = open_sources(call, &s, err);
    if (!cx_failed(status))
        status = find_object(call, &s, &object, &count, err);
    if (!cx_failed(status) && count == 1)
        status = told(&s.sources, &object, call->arena, &answer, err);
    if (!cx_failed(status) && count == 1)
        status = cx_call_answer_json(call, 200, &answer, err);
    close_sources(&s);
    return status;
}

cx_status cx_api_object(cx_call *call, cx_err *err)
{
    return answer_with_object(call, cx_prov_show, err);
}

cx_status cx_api_why(cx_call *call, cx_err *err)
{
    return answer_with_object(call, cx_why_of, err);
}

/* --- evidence --------------------------------------------------------------------------------- */

static cx_status make_evidence(cx_call *call, const provenance_call *s,
                               const cx_prov_object *object, cx_err *err)
{
    const cx_io *io = call->service->io;
    const cx_evidence_options options = {.now_ns = (int64_t)io->wall_ns(io)};
    cx_evidence_result result;
    CX_TRY(cx_evidence_make(&s->sources, object, &options, call->arena, &call->response.body,
                            &result, err));
    cx_call_answer(call, 200, "application/vnd.cortex.evidence"); /* S2 */
    cx_call_header(call, "Content-Disposition", "attachment; filename=\"evidence.cxe\"");
    return CX_SUCCESS;
}

cx_status cx_api_evidence(cx_call *call, cx_err *err)
{
    provenance_call s = {.repo = NULL};
    cx_prov_object object;
    size_t count = 0;
    cx_status status = open_sources(call, &s, err);
    if (!cx_failed(status))
        status = find_object(call, &s, &object, &count, err);
    if (!cx_failed(status) && count == 1)
        status = make_evidence(call, &s, &object, err);
    close_sources(&s);
    return status;
}
