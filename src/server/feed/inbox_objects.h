/*
 * inbox_objects.h - the objects of the inbox in addition to traces and alerts: histories, sessions
 * that hooks recorded, and governed runs.
 */
#ifndef CX_SERVER_INBOX_OBJECTS_H
#define CX_SERVER_INBOX_OBJECTS_H

#include "stores/api.h"
#include "server/service.h"

#define CX_VIEW_HISTORIES_MAX 1000 /* in a list of them, the first that were recorded */
#define CX_INBOX_RUNS_MAX 5000     /* in a list of them, the newest */

/* Whether an actor's journal is the history of an agent's traces (recorder.h) or steps (step.h). */
CX_RESULT cx_view_is_history(cx_home *home, cx_str actor, bool *out, cx_err *err);

/* What the token of the call may see; memory from the call's arena. */
CX_RESULT cx_inbox_objects(cx_call *call, const cx_inbox_object **out, size_t *out_count,
                           cx_err *err);

#endif
