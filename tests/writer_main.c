/*
 * writer_main.c - cortex-writer HOME [TURN_MS]: holds a home and serves it until standard input
 * ends, for tests that run the program against it.
 *
 * Says "ready" when it serves.  A line on standard input is done and answered by "done":
 *
 *     append TEXT   an entry of its actor
 *     turn          begins a turn of that actor ..
 *     give          .. and gives it up
 *     stop          stops serving, and goes on holding
 *     serve         serves again
 */
#include <stdio.h>
#include <stdlib.h>

#include "socket/remote.h"
#include "recorder/recorder.h"

typedef struct writer {
    cx_home *home;
    cx_remote *remote;
    cx_remote_options options;
    cx_txn *txn;
    cx_err err;
} writer;

static cx_status append(writer *h, const char *text)
{
    const cx_entry_draft draft = {
        .kind = CX_STR("test.said"), .created_at_ns = 1, .payload = cx_str_bytes(cx_str_z(text))};
    cx_txn *txn;
    CX_TRY(cx_txn_begin(h->home, CX_STR("holder"), &txn, &h->err));
    cx_status status = cx_txn_entry(txn, &draft, NULL, &h->err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit(txn, &h->err);
}

static cx_status obey(writer *h, const char *line)
{
    if (strncmp(line, "append ", 7) == 0)
        return append(h, line + 7);
    if (strcmp(line, "turn") == 0)
        return cx_txn_begin(h->home, CX_STR("holder"), &h->txn, &h->err);
    if (strcmp(line, "serve") == 0)
        return cx_home_serve_begin(h->home, &h->options, &h->remote, &h->err);
    if (strcmp(line, "give") == 0) {
        cx_txn_abort(h->txn);
        h->txn = NULL;
        return CX_SUCCESS;
    }
    if (strcmp(line, "stop") == 0) {
        cx_home_serve_end(h->remote);
        h->remote = NULL;
        return CX_SUCCESS;
    }
    return cx_fail(&h->err, CX_E_USAGE, "no such order: %s", line);
}

static cx_status work(writer *h, const char *path)
{
    const cx_home_options options = {.derivers = &cx_recorder_deriver, .deriver_count = 1};
    char line[4096];
    CX_TRY(cx_home_open(path, &options, &h->home, &h->err));
    CX_TRY(obey(h, "serve"));
    (void)printf("ready\n");
    while (fflush(stdout) == 0 && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        CX_TRY(obey(h, line));
        (void)printf("done\n");
    }
    return CX_SUCCESS;
}

int main(int argc, char **argv)
{
    writer h = {.home = NULL};
    if (argc < 2 || argc > 3) {
        (void)fprintf(stderr, "cortex-writer HOME [TURN_MS]\n");
        return 2;
    }
    if (argc == 3)
        h.options.txn_timeout_ms = (uint32_t)strtoul(argv[2], NULL, 10);
    cx_status status = work(&h, argv[1]);
    cx_txn_abort(h.txn);
    cx_home_serve_end(h.remote);
    if (!cx_failed(status))
        status = cx_home_close(h.home, &h.err);
    if (cx_failed(status))
        (void)fprintf(stderr, "cortex-writer: %s\n", h.err.message);
    return cx_failed(status) ? 3 : 0;
}
