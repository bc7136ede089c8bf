/*
 * pins.c - what a server's tools said of themselves when they were first seen.
 */
#include "gateway/pins.h"

#include <string.h>

#include "crypto/api.h"
#include "live/api.h"
#include "rules/api.h"

#define ACTOR_PREFIX "gateway:"
#define PIN_PREFIX "pin/"
#define TEXT_KEPT_MAX ((size_t)4 << 10)    /* of one description in an entry */
#define TEXTS_KEPT_MAX ((size_t)512 << 10) /* of all of them */

cx_status cx_gateway_actor(cx_str name, cx_arena *arena, cx_str *out, cx_err *err)
{
    CX_TRY(cx_gateway_check_name(name, err));
    *out = cx_arena_printf(arena, ACTOR_PREFIX "%.*s", (int)name.size, name.data);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

const char *cx_gateway_pin_name(cx_gateway_pin_state state)
{
    static const char *const names[] = {"new", "same", "changed", "hidden_characters", "repeated"};
    CX_ASSERT(state < CX_COUNT_OF(names));
    return names[state];
}

/* --- records ---------------------------------------------------------------------------------- */

typedef struct pin_key {
    uint8_t bytes[sizeof PIN_PREFIX - 1 + 32];
} pin_key;

static cx_status key_of(const cx_digest *target, cx_str tool, pin_key *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add(&text, target->bytes, sizeof target->bytes);
    cx_buf_add_str(&text, tool);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        cx_digest digest = cx_digest_of(cx_buf_bytes(&text));
        memcpy(out->bytes, PIN_PREFIX, sizeof PIN_PREFIX - 1);
        memcpy(out->bytes + sizeof PIN_PREFIX - 1, digest.bytes, sizeof digest.bytes);
    }
    cx_buf_done(&text);
    return status;
}

static cx_bytes key_bytes(const pin_key *key)
{
    return cx_bytes_from(key->bytes, sizeof key->bytes);
}

static void put_digests(cx_json_list *object, const char *name,
                        const cx_gateway_tool_digests *digests)
{
    cx_json_list inner = cx_json_list_begin(object->arena);
    cx_json_put_digest(&inner, "sha256", &digests->all);
    cx_json_put_digest(&inner, "description_sha256", &digests->description);
    cx_json_put_digest(&inner, "schema_sha256", &digests->schema);
    if (digests->has_rest)
        cx_json_put_digest(&inner, "rest_sha256", &digests->rest);
    cx_json_put_object(object, name, &inner);
}

static cx_status put_pin(cx_txn *txn, const cx_gateway_pin *pin, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(cx_txn_arena(txn));
    cx_json value;
    cx_buf text;
    pin_key key;
    CX_TRY(key_of(&pin->target, pin->tool, &key, err));
    cx_json_put_str(&object, "tool", pin->tool);
    cx_json_put_digest(&object, "target_sha256", &pin->target);
    cx_json_put_bool(&object, "accepted", pin->accepted);
    cx_json_put_uint(&object, "tricks", pin->tricks);
    put_digests(&object, "pinned", &pin->pinned);
    put_digests(&object, "seen", &pin->seen);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, key_bytes(&key), cx_buf_bytes(&text), true, err);
    cx_buf_done(&text);
    return status;
}

static bool read_digest(const cx_json *object, const char *name, cx_digest *out)
{
    cx_str text = cx_json_get_str(object, cx_str_z(name));
    return text.size == 64 && cx_hex_decode(text, out->bytes, sizeof out->bytes);
}

static bool read_digests(const cx_json *object, cx_gateway_tool_digests *out)
{
    out->has_rest = object != NULL && read_digest(object, "rest_sha256", &out->rest);
    return object != NULL && read_digest(object, "sha256", &out->all) &&
           read_digest(object, "description_sha256", &out->description) &&
           read_digest(object, "schema_sha256", &out->schema);
}

static cx_status read_pin(cx_bytes record, cx_arena *arena, cx_gateway_pin *out, cx_err *err)
{
    cx_json root;
    uint64_t tricks = 0;
    memset(out, 0, sizeof *out);
    cx_str kept = cx_arena_copy_str(arena, cx_bytes_str(record));
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(kept, 0, arena, &root, err));
    const cx_json *accepted = CX_JSON_GET(&root, "accepted"), *bits = CX_JSON_GET(&root, "tricks");
    out->tool = CX_JSON_GET_STR(&root, "tool");
    out->accepted = accepted != NULL && accepted->type == CX_JSON_TRUE;
    if (out->tool.data == NULL || bits == NULL || !cx_json_uint64(bits, &tricks) ||
        !read_digest(&root, "target_sha256", &out->target) ||
        !read_digests(CX_JSON_GET(&root, "pinned"), &out->pinned) ||
        !read_digests(CX_JSON_GET(&root, "seen"), &out->seen))
        return cx_fail(err, CX_E_FORMAT, "the record of a pinned tool is not one");
    out->tricks = (unsigned)tricks;
    return CX_SUCCESS;
}

/* --- entries ---------------------------------------------------------------------------------- */

static void put_tricks(cx_json_list *object, unsigned tricks)
{
    static const char *const names[] = {"tag", "bidi", "zero_width", "control"};
    cx_str texts[CX_COUNT_OF(names)];
    size_t count = 0;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if ((tricks & 1u << i) != 0)
            texts[count++] = cx_str_z(names[i]);
    cx_json_put_strs(object, "characters", texts, count);
}

static void put_listed(cx_json_list *array, const cx_gateway_listed *tool, bool hides,
                       size_t *text_room)
{
    cx_json_list item = cx_json_list_begin(array->arena);
    cx_str description = CX_JSON_GET_STR(tool->tool, "description");
    bool kept = description.size <= TEXT_KEPT_MAX && description.size <= *text_room;
    cx_json_put_str(&item, "name", tool->name);
    cx_json_put_z(&item, "state", cx_gateway_pin_name(tool->state));
    if (kept && description.data != NULL)
        cx_json_put_str(&item, "description", description);
    else
        cx_json_put_null(&item, "description");
    *text_room -= kept ? description.size : 0;
    cx_json_put_digest(&item, "sha256", &tool->digests.all);
    cx_json_put_digest(&item, "description_sha256", &tool->digests.description);
    cx_json_put_digest(&item, "schema_sha256", &tool->digests.schema);
    cx_json_put_digest(&item, "rest_sha256", &tool->digests.rest);
    if (tool->state == CX_GATEWAY_PIN_CHANGED)
        put_digests(&item, "pinned", &tool->pinned);
    else
        cx_json_put_null(&item, "pinned");
    put_tricks(&item, tool->tricks);
    cx_json_put_bool(&item, "hidden",
                     hides && tool->state != CX_GATEWAY_PIN_NEW &&
                         tool->state != CX_GATEWAY_PIN_SAME);
    cx_json_add_object(array, &item);
}

static cx_status add_entry(cx_txn *txn, const cx_gateway_origin *origin,
                           const cx_gateway_listed *tools, size_t count, bool hides, int64_t now_ns,
                           cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(cx_txn_arena(txn));
    cx_json_list array = cx_json_list_begin(cx_txn_arena(txn));
    size_t text_room = TEXTS_KEPT_MAX;
    uint64_t seq;
    cx_json_put_uint(&payload, "v", 1);
    cx_json_put_str(&payload, "server", origin->name);
    cx_json_put_digest(&payload, "target_sha256", &origin->target);
    cx_json_put_str(&payload, "session", origin->session);
    for (size_t i = 0; i < count; i++)
        if (tools[i].is_news)
            put_listed(&array, &tools[i], hides, &text_room);
    cx_json_put_array(&payload, "tools", &array);
    return cx_live_add_entry(txn, CX_KIND_GATEWAY_TOOLS, now_ns, "gateway", &payload, &seq, err);
}

/* --- checking a list -------------------------------------------------------------------------- */

static cx_gateway_pin_state state_of(const cx_gateway_pin *pin, const cx_gateway_listed *tool)
{
    if (tool->repeated)
        return CX_GATEWAY_PIN_REPEATED;
    if (cx_gateway_tool_same(&pin->pinned, &tool->digests))
        return pin->accepted ? CX_GATEWAY_PIN_SAME : CX_GATEWAY_PIN_TRICK;
    return pin->accepted || tool->tricks == 0 ? CX_GATEWAY_PIN_CHANGED : CX_GATEWAY_PIN_TRICK;
}

/* A pin as it is to be stored. */
typedef struct pin_change {
    bool write;
    cx_gateway_pin pin;
} pin_change;

static void pin_first(const cx_gateway_origin *origin, cx_gateway_listed *tool, cx_gateway_pin *pin)
{
    memset(pin, 0, sizeof *pin);
    pin->tool = tool->name;
    pin->target = origin->target;
    pin->pinned = tool->digests;
    pin->accepted = tool->tricks == 0;
    tool->state = pin->accepted ? CX_GATEWAY_PIN_NEW : CX_GATEWAY_PIN_TRICK;
}

/* A pin of a version that did not look at all members takes over what is seen of the others now. */
static bool complete_pin(cx_gateway_pin *pin, const cx_gateway_tool_digests *now)
{
    bool lacks = !pin->pinned.has_rest && cx_digest_eq(&pin->pinned.all, &now->all);
    if (lacks)
        pin->pinned = *now;
    return lacks;
}

/* N1, N2 */
static cx_status check_tool(cx_txn *txn, const cx_gateway_origin *origin, cx_gateway_listed *tool,
                            pin_change *out, cx_err *err)
{
    cx_bytes record;
    pin_key key;
    bool found;
    CX_TRY(key_of(&origin->target, tool->name, &key, err));
    CX_TRY(cx_txn_get(txn, key_bytes(&key), &record, &found, err));
    out->write = false;
    if (found) {
        CX_TRY(read_pin(record, cx_txn_arena(txn), &out->pin, err));
        tool->state = state_of(&out->pin, tool);
        tool->pinned = out->pin.pinned;
    } else if (tool->repeated) {
        tool->state = CX_GATEWAY_PIN_REPEATED;
    } else {
        pin_first(origin, tool, &out->pin);
    }
    if (tool->repeated) { /* the first of that name is the one that is pinned */
        tool->is_news = true;
        return CX_SUCCESS;
    }
    bool seen = found && cx_gateway_tool_same(&out->pin.seen, &tool->digests);
    bool completed = found && complete_pin(&out->pin, &tool->digests);
    if (seen && out->pin.seen.has_rest && !completed)
        return CX_SUCCESS;
    tool->is_news = !seen && tool->state != CX_GATEWAY_PIN_SAME;
    out->write = true;
    out->pin.seen = tool->digests;
    out->pin.tricks = tool->tricks;
    return CX_SUCCESS;
}

static cx_status check_in_turn(cx_txn *txn, const cx_gateway_origin *origin,
                               cx_gateway_listed *tools, size_t count, bool hides, int64_t now_ns,
                               bool *out_changed, cx_err *err)
{
    bool news = false;
    pin_change *changes = CX_ARENA_ARRAY(cx_txn_arena(txn), pin_change, count);
    *out_changed = false;
    if (changes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        CX_TRY(check_tool(txn, origin, &tools[i], &changes[i], err));
        news |= tools[i].is_news;
        *out_changed |= tools[i].is_news || changes[i].write;
    }
    if (!*out_changed)
        return CX_SUCCESS;
    CX_TRY(news ? add_entry(txn, origin, tools, count, hides, now_ns, err) : cx_txn_bare(txn, err));
    for (size_t i = 0; i < count; i++)
        if (changes[i].write)
            CX_TRY(put_pin(txn, &changes[i].pin, err));
    return CX_SUCCESS;
}

cx_status cx_gateway_pins_check(cx_home *home, const cx_gateway_origin *origin,
                                cx_gateway_listed *tools, size_t count, bool hides, cx_err *err)
{
    cx_txn *txn;
    cx_str actor;
    cx_arena arena;
    bool changed = false;
    const cx_io *io = cx_home_io(home);
    if (count == 0)
        return CX_SUCCESS;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_gateway_actor(origin->name, &arena, &actor, err);
    if (!cx_failed(status))
        status = cx_txn_begin(home, actor, &txn, err);
    if (!cx_failed(status)) {
        status = check_in_turn(txn, origin, tools, count, hides, (int64_t)io->wall_ns(io), &changed,
                               err);
        if (cx_failed(status) || !changed)
            cx_txn_abort(txn);
        else
            status = cx_txn_commit(txn, err);
    }
    cx_arena_done(&arena);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

cx_status cx_gateway_pins_is_accepted(cx_home *home, const cx_gateway_origin *origin, cx_str tool,
                                      const cx_gateway_tool_digests *now, cx_arena *arena,
                                      bool *out, cx_err *err)
{
    cx_str actor;
    cx_bytes record;
    pin_key key;
    bool found;
    cx_gateway_pin pin;
    *out = false;
    CX_TRY(cx_gateway_actor(origin->name, arena, &actor, err));
    CX_TRY(key_of(&origin->target, tool, &key, err));
    CX_TRY(cx_home_get(home, actor, key_bytes(&key), arena, &record, &found, err));
    if (!found)
        return CX_SUCCESS;
    CX_TRY(read_pin(record, arena, &pin, err));
    *out = pin.accepted && cx_gateway_tool_same(&pin.pinned, now);
    return CX_SUCCESS;
}

typedef struct pin_list {
    cx_arena *arena;
    cx_gateway_pin *items;
    size_t count, room;
} pin_list;

static cx_status add_pin(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    pin_list *list = arg;
    (void)key;
    (void)stop;
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 16 : 2 * list->room;
        cx_gateway_pin *grown = CX_ARENA_ARRAY(list->arena, cx_gateway_pin, room);
        if (grown == NULL)
            return cx_fail_nomem(err);
        if (list->count != 0)
            memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->room = room;
    }
    CX_TRY(read_pin(value, list->arena, &list->items[list->count], err));
    list->count++;
    return CX_SUCCESS;
}

cx_status cx_gateway_pins_list(cx_home *home, cx_str name, cx_arena *arena,
                               const cx_gateway_pin **out, size_t *out_count, cx_err *err)
{
    cx_str actor;
    cx_actor_info info;
    cx_err missing;
    CX_TRY(cx_gateway_actor(name, arena, &actor, err));
    pin_list list = {.arena = arena};
    const cx_scan what = {
        .actor = actor, .prefix = cx_str_bytes(CX_STR(PIN_PREFIX)), .row = add_pin, .arg = &list};
    if (cx_failed(cx_home_actor(home, actor, &info, &missing)))
        return cx_fail(err, CX_E_NOT_FOUND,
                       "no tools were seen of a server \"%.*s\": 'cortex mcp-gateway --name %.*s' "
                       "records them",
                       (int)name.size, name.data, (int)name.size, name.data);
    CX_TRY(cx_home_scan(home, &what, err));
    for (size_t i = 1; i < list.count; i++) {
        cx_gateway_pin moved = list.items[i];
        size_t at = i;
        for (; at != 0 && cx_str_cmp(list.items[at - 1].tool, moved.tool) > 0; at--)
            list.items[at] = list.items[at - 1];
        list.items[at] = moved;
    }
    *out = list.items;
    *out_count = list.count;
    return CX_SUCCESS;
}

/* --- accepting -------------------------------------------------------------------------------- */

static bool is_named(const cx_str *tools, size_t count, cx_str tool)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_eq(tools[i], tool))
            return true;
    return count == 0;
}

bool cx_gateway_pin_is_open(const cx_gateway_pin *pin)
{
    return !pin->accepted || !cx_gateway_tool_same(&pin->pinned, &pin->seen);
}

/* N3 */
static cx_status check_is_as_shown(cx_txn *txn, const cx_gateway_pin *shown, cx_err *err)
{
    cx_bytes record;
    pin_key key;
    bool found;
    cx_gateway_pin now;
    CX_TRY(key_of(&shown->target, shown->tool, &key, err));
    CX_TRY(cx_txn_get(txn, key_bytes(&key), &record, &found, err));
    if (found) {
        CX_TRY(read_pin(record, cx_txn_arena(txn), &now, err));
        found = cx_digest_eq(&now.seen.all, &shown->seen.all) &&
                now.seen.has_rest == shown->seen.has_rest &&
                (!now.seen.has_rest || cx_digest_eq(&now.seen.rest, &shown->seen.rest));
    }
    return found ? CX_SUCCESS
                 : cx_fail(err, CX_E_CONFLICT,
                           "the tool \"%.*s\" has changed again since it was shown; nothing is "
                           "accepted, look at it again",
                           (int)shown->tool.size, shown->tool.data);
}

static cx_status accept_in_turn(cx_txn *txn, cx_str name, const cx_gateway_pin *pins,
                                size_t pin_count, const cx_str *tools, size_t count, cx_str by,
                                int64_t now_ns, size_t *out_count, uint64_t *out_seq, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(cx_txn_arena(txn));
    cx_json_list array = cx_json_list_begin(cx_txn_arena(txn));
    *out_count = 0;
    for (size_t i = 0; i < pin_count; i++) {
        const cx_gateway_pin *pin = &pins[i];
        cx_json_list item = cx_json_list_begin(cx_txn_arena(txn));
        if (!cx_gateway_pin_is_open(pin) || !is_named(tools, count, pin->tool))
            continue;
        CX_TRY(check_is_as_shown(txn, pin, err));
        cx_json_put_str(&item, "name", pin->tool);
        cx_json_put_digest(&item, "target_sha256", &pin->target);
        cx_json_put_digest(&item, "before_sha256", &pin->pinned.all);
        cx_json_put_digest(&item, "sha256", &pin->seen.all);
        cx_json_add_object(&array, &item);
        ++*out_count;
    }
    if (*out_count == 0)
        return CX_SUCCESS;
    cx_json_put_uint(&payload, "v", 1);
    cx_json_put_str(&payload, "server", name);
    cx_json_put_str(&payload, "by", by);
    cx_json_put_array(&payload, "tools", &array);
    CX_TRY(cx_live_add_entry(txn, CX_KIND_GATEWAY_PIN, now_ns, "gateway", &payload, out_seq, err));
    for (size_t i = 0; i < pin_count; i++) {
        cx_gateway_pin pin = pins[i];
        if (!cx_gateway_pin_is_open(&pin) || !is_named(tools, count, pin.tool))
            continue;
        pin.pinned = pin.seen;
        pin.accepted = true;
        CX_TRY(put_pin(txn, &pin, err));
    }
    return CX_SUCCESS;
}

cx_status cx_gateway_pins_accept(cx_home *home, cx_str name, const cx_gateway_pin *pins,
                                 size_t pin_count, const cx_str *tools, size_t count, cx_str by,
                                 cx_arena *arena, size_t *out_count, uint64_t *out_seq, cx_err *err)
{
    cx_txn *txn;
    cx_str actor;
    const cx_io *io = cx_home_io(home);
    *out_seq = 0;
    CX_TRY(cx_gateway_actor(name, arena, &actor, err));
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < pin_count; k++)
            known |= cx_str_eq(pins[k].tool, tools[i]);
        if (!known)
            return cx_fail(err, CX_E_NOT_FOUND, "the server \"%.*s\" has no tool \"%.*s\"",
                           (int)name.size, name.data, (int)tools[i].size, tools[i].data);
    }
    CX_TRY(cx_txn_begin(home, actor, &txn, err));
    cx_status status = accept_in_turn(txn, name, pins, pin_count, tools, count, by,
                                      (int64_t)io->wall_ns(io), out_count, out_seq, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    if (*out_count != 0)
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return CX_SUCCESS;
}
