/*
 * serve_node.c - a node in the database: it says that it is there, and learns where the part is
 * served and what an operator wants (N3).
 */
#include "cli/fleet/serve_fleet.h"

#include <stdio.h>
#include <string.h>

#define TELL_MS 1000
#define ASK_MS 1000
#define HURRY_MS 200   /* while connections wait */
#define ANSWER_MS 3000 /* of the database */
#define SILENT_MS 5000 /* nodes that said nothing for longer are not counted */
#define MS UINT64_C(1000000)

static uint64_t now_ns(void)
{
    const cx_io *io = cx_io_system();
    return io->monotonic_ns(io);
}

static cx_status connect_node(cx_serve_node *node, cx_err *err)
{
    const cx_fleet_options options = {.node = node->name, .answer_ms = ANSWER_MS};
    cx_fleet_part part;
    if (node->fleet != NULL)
        return CX_SUCCESS;
    CX_TRY(cx_fleet_open(node->url, &options, &node->fleet, err));
    cx_status status = cx_fleet_find(node->fleet, node->part, &part, err);
    if (cx_failed(status)) {
        cx_fleet_close(node->fleet);
        node->fleet = NULL;
        return status;
    }
    node->number = part.number;
    return CX_SUCCESS;
}

static cx_status tell(cx_serve_node *node, cx_err *err)
{
    bool drains = false;
    cx_lock_enter(&node->lock);
    cx_fleet_counts counts = node->counts;
    cx_lock_leave(&node->lock);
    CX_TRY(connect_node(node, err));
    CX_TRY(cx_fleet_node_tell(node->fleet, node->number, node->clients, node->balances, &counts,
                              &drains, err));
    cx_lock_enter(&node->lock);
    node->drains = drains;
    cx_lock_leave(&node->lock);
    return CX_SUCCESS;
}

typedef struct others {
    const cx_serve_node *node;
    bool found;
} others;

static cx_status note_other(void *arg, const cx_fleet_node_row *row, cx_err *err)
{
    others *o = arg;
    (void)err;
    if (cx_str_eq(row->part, o->node->part) && row->silent_ms < SILENT_MS && !row->draining &&
        !cx_str_eq(row->owner, cx_str_z(cx_fleet_owner(o->node->fleet))))
        o->found = true;
    return CX_SUCCESS;
}

static cx_status ask(cx_serve_node *node, cx_err *err)
{
    char address[CX_FLEET_ADDRESS_MAX + 1];
    others o = {.node = node};
    bool own = false;
    CX_TRY(connect_node(node, err));
    CX_TRY(cx_fleet_address_of(node->fleet, node->number, address, &own, err));
    CX_TRY(cx_fleet_list_nodes(node->fleet, note_other, &o, err));
    cx_lock_enter(&node->lock);
    /* An own worker that is there is known without the database. */
    (void)memcpy(node->owner, strcmp(address, node->address) == 0 ? "" : address,
                 strcmp(address, node->address) == 0 ? 1 : strlen(address) + 1);
    node->has_others = o.found;
    cx_lock_leave(&node->lock);
    return CX_SUCCESS;
}

/* --- parts spread over nodes ------------------------------------------------------------------ */

/* As which owner to ask; false: this node neither serves the part nor hands it over. */
static bool is_asked(cx_serve_node *node)
{
    cx_lock_enter(&node->lock);
    if (node->serving[0] != 0)
        memcpy(node->asked, node->serving, sizeof node->asked);
    bool asks = node->serving[0] != 0 || node->hands;
    cx_lock_leave(&node->lock);
    return node->balances && asks;
}

/* N5 */
static cx_status balance(cx_serve_node *node, cx_err *err)
{
    char to[CX_FLEET_NODE_MAX + 1];
    bool hands = false;
    if (!is_asked(node))
        return CX_SUCCESS;
    CX_TRY(connect_node(node, err));
    CX_TRY(cx_fleet_balance_step(node->fleet, node->number, node->asked, to, &hands, err));
    cx_lock_enter(&node->lock);
    bool begins = hands && !node->hands && strcmp(node->serving, node->asked) == 0;
    if (begins)
        memcpy(node->to, to, sizeof node->to);
    node->hands = begins || (hands && node->hands);
    cx_lock_leave(&node->lock);
    return CX_SUCCESS;
}

/* What is known goes on to hold; a person is told once. */
static void note_result(cx_serve_node *node, cx_status status, const cx_err *err)
{
    if (cx_failed(status) && !node->silent)
        cx_cli_complain("serve: the database cannot be asked who has the part: %s; it is tried "
                        "again every second",
                        err->message);
    else if (!cx_failed(status) && node->silent)
        cx_cli_complain("serve: the database answers again");
    node->silent = cx_failed(status);
}

/* --- leases of the dead ----------------------------------------------------------------------- */

void cx_serve_node_release(cx_serve_node *node, const char *owner)
{
    cx_lock_enter(&node->lock);
    memmove(node->dead[1], node->dead[0], sizeof node->dead - sizeof node->dead[0]);
    (void)snprintf(node->dead[0], sizeof node->dead[0], "%s", owner);
    cx_lock_wake(&node->lock);
    cx_lock_leave(&node->lock);
}

/* The oldest; false: there is none. */
static bool next_dead(cx_serve_node *node, char owner[CX_FLEET_OWNER_SIZE])
{
    size_t i = CX_SERVE_DEAD_MAX;
    cx_lock_enter(&node->lock);
    while (i != 0 && node->dead[i - 1][0] == 0)
        i--;
    memcpy(owner, i == 0 ? "" : node->dead[i - 1], i == 0 ? 1 : CX_FLEET_OWNER_SIZE);
    cx_lock_leave(&node->lock);
    return i != 0;
}

static void forget_dead(cx_serve_node *node, const char *owner)
{
    cx_lock_enter(&node->lock);
    for (size_t i = 0; i < CX_SERVE_DEAD_MAX; i++)
        if (strcmp(node->dead[i], owner) == 0)
            node->dead[i][0] = 0;
    cx_lock_leave(&node->lock);
}

static cx_status release(cx_serve_node *node, cx_err *err)
{
    char owner[CX_FLEET_OWNER_SIZE];
    bool released = false;
    while (next_dead(node, owner)) {
        CX_TRY(connect_node(node, err));
        CX_TRY(cx_fleet_release(node->fleet, node->number, owner, &released, err));
        forget_dead(node, owner);
        if (released)
            cx_cli_complain("serve: the lease of the worker that is gone was ended");
    }
    return CX_SUCCESS;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void run_node(void *arg)
{
    cx_serve_node *node = arg;
    uint64_t tell_ns = 0, ask_ns = 0;
    cx_lock_enter(&node->lock);
    while (!node->ends) {
        bool hurries = node->hurries;
        uint64_t now = now_ns();
        cx_err err = {0};
        cx_lock_leave(&node->lock);
        cx_status status = release(node, &err);
        bool asked = cx_failed(status);
        if (!cx_failed(status) && now >= tell_ns) {
            status = tell(node, &err);
            tell_ns = now_ns() + TELL_MS * MS;
            asked = true;
        }
        if (!cx_failed(status) && now >= ask_ns) {
            status = ask(node, &err);
            if (!cx_failed(status))
                status = balance(node, &err);
            asked = true;
        }
        if (cx_failed(status) || now >= ask_ns)
            ask_ns = now_ns() + (hurries ? HURRY_MS : ASK_MS) * MS;
        if (asked)
            note_result(node, status, &err);
        cx_lock_enter(&node->lock);
        if (node->hurries && ask_ns > now_ns() + HURRY_MS * MS)
            ask_ns = now_ns();
        if (!node->ends)
            cx_lock_wait_for(&node->lock, HURRY_MS / 2);
    }
    cx_lock_leave(&node->lock);
}

cx_status cx_serve_node_open(cx_serve_node *node, cx_err *err)
{
    cx_lock_init(&node->lock);
    cx_status status = tell(node, err);
    if (!cx_failed(status))
        status = ask(node, err);
    if (!cx_failed(status) && !cx_thread_start(&node->thread, run_node, node))
        status = cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    return status;
}

void cx_serve_node_close(cx_serve_node *node)
{
    cx_err ignored;
    if (node->url == NULL)
        return;
    if (node->thread.started) {
        cx_lock_enter(&node->lock);
        node->ends = true;
        cx_lock_wake(&node->lock);
        cx_lock_leave(&node->lock);
        cx_thread_join(&node->thread);
    }
    if (node->fleet != NULL && !node->silent)
        (void)cx_failed(cx_fleet_node_leave(node->fleet, &ignored));
    cx_fleet_close(node->fleet);
    cx_lock_done(&node->lock);
    node->url = NULL;
}
