/*
 * cmd_log.c - `cortex log`: the journal as it was written; `cortex append`: an entry of one's own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ledger/entry_view.h"

enum { LAST_DEFAULT = 20, FOLLOW_PAUSE_US = 500000, KEPT_LEAST = 256 };

typedef struct state {
    uint64_t next; /* the entry to show next */
    const char *kind;
    bool names_actors; /* entries of several are shown */
} state;

/* --kind write, or --kind trace for all kinds that begin with "trace." */
static bool is_wanted(const state *s, cx_str kind)
{
    if (s->kind == NULL)
        return true;
    size_t size = strlen(s->kind);
    return kind.size >= size && memcmp(kind.data, s->kind, size) == 0 &&
           (kind.size == size || kind.data[size] == '.');
}

/* One line on standard output, at once: a follower waits for it. */
static cx_status print_entry(cx_cli_ledger *l, const state *s, const cx_entry_view *view,
                             cx_err *err)
{
    cx_buf_clear(&l->out);
    if (l->json) {
        cx_json_list json = cx_json_list_begin(l->arena);
        cx_json_put_str(&json, "actor", l->actor);
        CX_TRY(cx_cli_entry_json(view, &json, err));
        CX_TRY(cx_cli_end_json(&json, &l->out, err));
    } else {
        if (s->names_actors) {
            cx_shown_add(&l->out, l->actor);
            cx_buf_add_z(&l->out, "  ");
        }
        CX_TRY(cx_cli_entry_line(view, l->arena, &l->out, err));
    }
    CX_TRY(cx_buf_check(&l->out, err));
    cx_cli_out_write(&l->cli->out, cx_buf_str(&l->out));
    cx_buf_clear(&l->out);
    return CX_SUCCESS;
}

static cx_status print_entries_until(cx_cli_ledger *l, state *s, uint64_t end, cx_err *err)
{
    for (; s->next < end && !l->cli->out.failed; s->next++) {
        cx_arena_mark mark = cx_arena_mark_now(l->arena);
        cx_entry_view view;
        CX_TRY(cx_home_entry(l->home, l->actor, s->next, l->arena, &view, err));
        if (is_wanted(s, view.entry.kind))
            CX_TRY(print_entry(l, s, &view, err));
        cx_arena_reset(l->arena, mark);
    }
    return CX_SUCCESS;
}

/* A data directory opened for reading is a snapshot, so following opens it repeatedly. */
static cx_status follow_log(cx_cli_ledger *l, state *s, cx_err *err)
{
    const cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_READ, NULL);
    while (!l->cli->out.failed) {
        cx_actor_info actor;
        (void)usleep(FOLLOW_PAUSE_US);
        cx_home *home = l->home;
        l->home = NULL;
        CX_TRY(cx_home_close(home, err));
        CX_TRY(cx_home_open(l->path, &options, &l->home, err));
        CX_TRY(cx_home_actor(l->home, l->actor, &actor, err));
        CX_TRY(print_entries_until(l, s, actor.entry_count, err));
    }
    return CX_SUCCESS;
}

/* --- all actors ------------------------------------------------------------------------------- */

typedef struct newest {
    char actor[CX_ACTOR_SIZE_MAX];
    uint16_t actor_size;
    uint64_t seq;
    int64_t at_ns;
} newest;

/* At most twice as many as are wanted, however many actors there are. */
typedef struct collection {
    CX_VEC(newest) items;
    size_t wanted;
    size_t actors;
    bool is_full; /* `least` is the oldest of those that would be kept */
    newest least;
} collection;

static cx_str newest_actor(const newest *one)
{
    return cx_str_from(one->actor, one->actor_size);
}

static int by_time(const void *left, const void *right)
{
    const newest *a = left, *b = right;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    const int order = cx_str_cmp(newest_actor(a), newest_actor(b));
    if (order != 0)
        return order;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static void keep_newest(collection *all)
{
    if (all->items.count == 0)
        return;
    qsort(all->items.items, all->items.count, sizeof(newest), by_time);
    if (all->items.count < all->wanted)
        return;
    const size_t left_out = all->items.count - all->wanted;
    memmove(all->items.items, all->items.items + left_out, all->wanted * sizeof(newest));
    all->items.count = all->wanted;
    all->is_full = all->wanted != 0;
    if (all->is_full)
        all->least = all->items.items[0];
}

static cx_status keep(cx_cli_ledger *l, collection *all, const newest *one, cx_err *err)
{
    if (all->is_full && by_time(one, &all->least) < 0)
        return CX_SUCCESS;
    newest *slot = cx_vec_push(&all->items, l->cli->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *one;
    if (all->items.count / 2 >= all->wanted && all->items.count >= KEPT_LEAST)
        keep_newest(all);
    return CX_SUCCESS;
}

/* The last `wanted` entries of the kind in one actor's journal. */
static cx_status collect_newest(cx_cli_ledger *l, const state *s, const cx_actor_info *info,
                                collection *all, cx_err *err)
{
    size_t count = 0;
    newest one;
    CX_ASSERT(info->name.size <= sizeof one.actor);
    memcpy(one.actor, info->name.data, info->name.size);
    one.actor_size = (uint16_t)info->name.size;
    for (uint64_t seq = info->entry_count; seq > 0 && count < all->wanted; seq--) {
        cx_arena_mark mark = cx_arena_mark_now(l->arena);
        cx_entry_view view;
        CX_TRY(cx_home_entry(l->home, info->name, seq - 1, l->arena, &view, err));
        one.seq = seq - 1;
        one.at_ns = view.entry.created_at_ns;
        bool wanted = is_wanted(s, view.entry.kind);
        cx_arena_reset(l->arena, mark);
        count += wanted;
        if (wanted)
            CX_TRY(keep(l, all, &one, err));
    }
    return CX_SUCCESS;
}

static cx_status collect_all(cx_cli_ledger *l, const state *s, collection *all, cx_err *err)
{
    const cx_actor_info *info = NULL;
    cx_actor_walk walk;
    cx_actor_walk_begin(&walk, l->home);
    cx_status status = cx_actor_walk_next(&walk, &info, err);
    while (!cx_failed(status) && info != NULL) {
        all->actors++;
        status = collect_newest(l, s, info, all, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &info, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* The newest entries of the data directory, of all journals, in order of time. */
static cx_status print_newest(cx_cli_ledger *l, state *s, size_t last, cx_err *err)
{
    collection all = {.wanted = last};
    cx_status status = collect_all(l, s, &all, err);
    if (!cx_failed(status)) {
        keep_newest(&all);
        s->names_actors = all.actors > 1;
    }
    for (size_t i = 0; i < all.items.count && !cx_failed(status) && !l->cli->out.failed; i++) {
        cx_arena_mark mark = cx_arena_mark_now(l->arena);
        cx_entry_view view;
        l->actor = newest_actor(&all.items.items[i]);
        status = cx_home_entry(l->home, l->actor, all.items.items[i].seq, l->arena, &view, err);
        if (!cx_failed(status))
            status = print_entry(l, s, &view, err);
        cx_arena_reset(l->arena, mark);
    }
    cx_vec_done(&all.items, l->cli->alloc);
    return status;
}

/* No actor was named, and the question is not about places in one journal. */
static bool is_about_all(cx_cli_ledger *l)
{
    const char *named = getenv("CORTEX_ACTOR");
    return !cx_cli_has(l->args, "actor") && (named == NULL || named[0] == 0) &&
           l->cli->configured_actor == NULL && !cx_cli_has(l->args, "from") &&
           !cx_cli_has(l->args, "all") && !cx_cli_has(l->args, "follow");
}

static cx_status log_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    cx_actor_info actor;
    uint64_t last = cx_cli_number(l->args, "last", LAST_DEFAULT);
    if (s->kind != NULL && !cx_entry_kind_ok(cx_str_z(s->kind)))
        return cx_fail(err, CX_E_USAGE,
                       "option --kind: found '%s', expected a kind such as write or "
                       "trace.received, or the part before its dot",
                       s->kind);
    if (is_about_all(l))
        return print_newest(l, s, last > SIZE_MAX ? SIZE_MAX : (size_t)last, err);
    CX_TRY(cx_home_actor(l->home, l->actor, &actor, err));
    if (cx_cli_has(l->args, "from"))
        s->next = cx_cli_number(l->args, "from", 0);
    else if (!cx_cli_has(l->args, "all") && actor.entry_count > last)
        s->next = actor.entry_count - last;
    CX_TRY(print_entries_until(l, s, actor.entry_count, err));
    return cx_cli_has(l->args, "follow") ? follow_log(l, s, err) : CX_SUCCESS;
}

static int run_log(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, log_job};
    state s = {.kind = cx_cli_value(args, "kind")};
    if (cx_cli_has(args, "from") + cx_cli_has(args, "all") + cx_cli_has(args, "last") > 1)
        return cx_cli_misuse(args, "expected at most one of --last, --from, --all");
    return cx_cli_run_job(cli, args, &job, &s);
}

static const cx_cli_option log_options[] = {
    CX_CLI_OPT("last", 'n', CX_CLI_COUNT, "N", "The newest N entries; default 20."),
    CX_CLI_OPT("from", 0, CX_CLI_COUNT, "SEQ", "From this entry on."),
    CX_CLI_OPT_FLAG("all", 0, "From the first entry on."),
    CX_CLI_OPT("kind", 0, CX_CLI_TEXT, "KIND",
               "Only entries of this kind, or of the kinds below it ('trace' shows trace.received "
               "and the others)."),
    CX_CLI_OPT_FLAG("follow", 'f', "Then show new entries as they are written, until interrupted."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_ACTOR,
    CX_CLI_OPT_FLAG("json", 0, "One JSON object a line, one line an entry."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_log = {
    .name = "log",
    .purpose = "show the journal, entry by entry",
    .about = "Shows the actor's entries in order: number, time, kind, author and subject. Without "
             "an actor, the newest entries of the data directory, whichever actor's, in order of "
             "time. Entries are never changed or removed; erased content is marked as erased.",
    .options = log_options,
    .option_count = CX_COUNT_OF(log_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex log --follow --kind write",
    .run = run_log,
};

/* --- append ----------------------------------------------------------------------------------- */

static cx_status prepare_append(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const char *kind = l->args->operands[0];
    if (!cx_entry_kind_ok(cx_str_z(kind)) ||
        (strcmp(kind, "raw") != 0 && strchr(kind, '.') == NULL))
        return cx_fail(err, CX_E_USAGE,
                       "KIND: found '%s', expected raw, or words of a-z, 0-9 and _ separated by "
                       "dots, such as note.deploy",
                       kind);
    return cx_cli_read_text(l->cli, l->args->operands[1], arg, err);
}

static cx_status log_append_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const cx_bytes *payload = arg;
    const char *by = cx_cli_value(l->args, "by");
    uint64_t seq;
    CX_TRY(cx_memory_raw(l->memory, cx_str_z(l->args->operands[0]), *payload,
                         cx_cli_has(l->args, "committed"), by == NULL ? l->actor : cx_str_z(by),
                         &seq, err));
    if (!l->json) {
        cx_buf_printf(&l->out, "%llu\n", (unsigned long long)seq);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_str(&json, "kind", cx_str_z(l->args->operands[0]));
    cx_json_put_uint(&json, "seq", seq);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_append(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_append, log_append_job};
    cx_bytes payload;
    return cx_cli_run_job(cli, args, &job, &payload);
}

static const cx_cli_operand append_operands[] = {{"KIND", CX_CLI_TEXT, NULL, false, false},
                                                 {"PAYLOAD", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option append_options[] = {
    CX_CLI_OPT_FLAG("committed", 0,
                    "The journal contains only a salted hash of the payload. The payload is stored "
                    "separately and can be destroyed with 'cortex erase SEQ'."),
    CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "The author; default the actor."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_append = {
    .name = "append",
    .purpose = "append your own entry to the journal",
    .about = "Writes an entry of KIND, raw or a name with dots, with any bytes as PAYLOAD: text, "
             "@FILE, or - for standard input. Prints its number.",
    .operands = append_operands,
    .operand_count = CX_COUNT_OF(append_operands),
    .options = append_options,
    .option_count = CX_COUNT_OF(append_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex append note.deploy @deploy.json --committed",
    .run = run_append,
};
