/*
 * cmd_roots.c - `cortex roots`: what everything comes to, in 32 bytes.
 */
#include "cli/ledger/ledger.h"

static void add_roots(cx_cli_ledger *l, const cx_actor_info *actor, const cx_roots *roots,
                      cx_json_list *list)
{
    const struct {
        const char *name;
        const cx_digest *root;
    } rows[] = {{"journal", &roots->journal},
                {"memories", &roots->memories},
                {"edges", &roots->edges},
                {"overall", &roots->overall}};
    cx_json_list item = cx_json_list_begin(l->arena);
    if (!l->json) {
        cx_shown_add(&l->out, actor->name);
        cx_buf_printf(&l->out, " (%s, %llu entries)\n", cx_scheme_name(actor->scheme).data,
                      (unsigned long long)roots->journal_size);
        for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
            cx_buf_printf(&l->out, "  %-9s ", rows[i].name);
            cx_cli_add_digest(&l->out, rows[i].root);
            cx_buf_add_byte(&l->out, '\n');
        }
        return;
    }
    cx_json_put_str(&item, "actor", actor->name);
    cx_json_put_digest(&item, "edges_root", &roots->edges);
    cx_json_put_digest(&item, "journal_root", &roots->journal);
    cx_json_put_uint(&item, "journal_size", roots->journal_size);
    cx_json_put_digest(&item, "memories_root", &roots->memories);
    cx_json_put_digest(&item, "overall_root", &roots->overall);
    cx_json_put_str(&item, "scheme", cx_scheme_name(actor->scheme));
    cx_json_add_object(list, &item);
}

/* Of all actors together: now, and as it was recorded last. */
static cx_status add_home_root(cx_cli_ledger *l, cx_json_list *json, cx_err *err)
{
    cx_home_root now;
    cx_home_root_entry last;
    bool found = false;
    cx_json_list recorded = cx_json_list_begin(l->arena), root = cx_json_list_begin(l->arena);
    CX_TRY(cx_home_root_now(l->home, &now, err));
    CX_TRY(cx_home_root_last(l->home, &last, &found, err));
    if (!l->json) {
        cx_buf_printf(&l->out, "home root (%llu actors, %llu entries)\n  now       ",
                      (unsigned long long)now.actors, (unsigned long long)now.entries);
        cx_cli_add_digest(&l->out, &now.root);
        cx_buf_add_z(&l->out, found ? "\n  recorded  "
                                    : "\n  not recorded yet; see 'cortex "
                                      "checkpoint --all'\n");
        if (found) {
            cx_cli_add_digest(&l->out, &last.root.root);
            cx_buf_printf(&l->out, " (%llu actors, %llu entries)\n",
                          (unsigned long long)last.root.actors,
                          (unsigned long long)last.root.entries);
        }
        return CX_SUCCESS;
    }
    cx_json_put_uint(&root, "actors", now.actors);
    cx_json_put_uint(&root, "entries", now.entries);
    if (found) {
        cx_json_put_uint(&recorded, "actors", last.root.actors);
        cx_json_put_uint(&recorded, "entries", last.root.entries);
        cx_json_put_digest(&recorded, "root", &last.root.root);
        cx_json_put_uint(&recorded, "seq", last.seq);
        cx_json_put_object(&root, "recorded", &recorded);
    } else {
        cx_json_put_null(&root, "recorded");
    }
    cx_json_put_digest(&root, "root", &now.root);
    cx_json_put_object(json, "home_root", &root);
    return CX_SUCCESS;
}

static cx_status roots_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_actor_info *actors;
    cx_actor_info one;
    size_t count = 1;
    cx_roots roots;
    (void)state;
    if (cx_cli_has(l->args, "actor")) {
        CX_TRY(cx_home_actor(l->home, l->actor, &one, err));
        actors = &one;
    } else {
        CX_TRY(cx_home_actors(l->home, l->arena, &actors, &count, err));
    }
    cx_json_list list = cx_json_list_begin(l->arena), json = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++) {
        CX_TRY(cx_home_roots(l->home, actors[i].name, &roots, err));
        add_roots(l, &actors[i], &roots, &list);
    }
    if (!cx_cli_has(l->args, "actor") && count != 0)
        CX_TRY(add_home_root(l, &json, err));
    else
        cx_json_put_null(&json, "home_root");
    if (!l->json) {
        if (count == 0)
            cx_buf_add_z(&l->out, "nothing is recorded yet\n");
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "scheme", cx_scheme_name(cx_home_scheme(l->home)));
    cx_json_put_array(&json, "actors", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_roots(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, roots_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT("actor", 0, CX_CLI_TEXT, "NAME", "Only this actor's; default: of all actors."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_roots = {
    .name = "roots",
    .purpose = "show the root hashes",
    .about =
        "Shows, for each actor, the root of the journal, of the memories and of the edges, "
        "and the overall root that commits to all three. A stored overall root later shows "
        "whether any earlier entry was changed. Without --actor also the home root, one root over "
        "all actors, now and as 'cortex checkpoint --all' recorded it last.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex roots --json",
    .run = run_roots,
};
