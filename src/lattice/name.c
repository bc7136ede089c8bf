/*
 * name.c - the node that a name means: all that reports, pictures and people write (lattice.md §8).
 *
 *   @AGENT, @agent/AGENT   the agent's newest node
 *   node_id, hash          of one node, whole
 *   AGENT#SEQ              the agent's node of that number
 *   #K                     the K-th node of the file, as nodes without an id are called
 *   the beginning          of an id or hash, four characters or more
 *   src:ID                 the first imported record with that id in its source
 *   at:FILE:PLACE          the imported record at that line or index of a file, counted from 0
 *   entry:SEQ.INDEX        the component of the recorded trace in that entry, counted from 0
 *
 * And what role:ROLE means among priorities (lattice.md §7): every agent that has the role.
 */
#include "lattice/internal.h"

#define PREFIX_MIN 4

typedef struct name_search {
    const cx_lattice *lattice;
    cx_str name;
    cx_node first;
    cx_node second; /* another one: the name is ambiguous */
} name_search;

static void add_match(name_search *s, cx_node n)
{
    if (s->first == CX_NODE_NONE || s->first == n)
        s->first = n;
    else
        s->second = n;
}

static cx_node head_of_recorded(const cx_lattice *lattice, cx_str name)
{
    if (!cx_str_starts(name, CX_STR("@agent/")))
        return CX_NODE_NONE;
    uint32_t found = cx_lattice_find_agent(lattice, cx_str_from(name.data + 7, name.size - 7));
    return found == NO_AGENT ? CX_NODE_NONE : cx_lattice_head_of(lattice, found);
}

/* As many digits as a place in the file (#K) and a seq (AGENT#SEQ) can have. */
#define PLACE_DIGITS_MAX 10
#define SEQ_DIGITS_MAX 19

/* Digits after the last '#'; false when there are none. */
static bool number_of(cx_str name, size_t *out_at, uint64_t *out)
{
    size_t at = name.size;
    uint64_t number = 0;
    while (at > 0 && name.data[at - 1] != '#')
        at--;
    if (at == 0 || at == name.size ||
        name.size - at > (at == 1 ? PLACE_DIGITS_MAX : SEQ_DIGITS_MAX))
        return false;
    for (size_t i = at; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return false;
        number = 10 * number + (uint64_t)(name.data[i] - '0');
    }
    *out_at = at - 1;
    *out = number;
    return true;
}

static void find_number(name_search *s)
{
    const cx_lattice *lattice = s->lattice;
    size_t at;
    uint64_t number;
    if (!number_of(s->name, &at, &number))
        return;
    if (at == 0) {
        if (number < lattice->nodes.count)
            add_match(s, (cx_node)number);
        return;
    }
    cx_str name = cx_str_from(s->name.data, at);
    if (name.data[0] == '@')
        name = cx_str_from(name.data + 1, name.size - 1);
    uint32_t index = cx_lattice_find_agent(lattice, name);
    if (index == NO_AGENT && cx_str_starts(name, CX_STR("agent/")))
        index = cx_lattice_find_agent(lattice, cx_str_from(name.data + 6, name.size - 6));
    if (index == NO_AGENT)
        return;
    const agent *of = &lattice->agents.items[index];
    for (uint32_t i = 0; i < of->count; i++)
        if (node_at(lattice, lattice->branch_nodes[of->first + i])->seq == (int64_t)number)
            add_match(s, lattice->branch_nodes[of->first + i]);
}

static void find_beginning(name_search *s)
{
    const cx_lattice *lattice = s->lattice;
    char scratch[64];
    if (s->name.size < PREFIX_MIN || s->name.data[0] == '@')
        return;
    for (cx_node n = 0; n < lattice->nodes.count && s->second == CX_NODE_NONE; n++) {
        const node *at = node_at(lattice, n);
        if (in_graph(at) && (cx_str_starts(node_id(at), s->name) ||
                             cx_str_starts(cx_lattice_hash_text(lattice, n, scratch), s->name)))
            add_match(s, n);
    }
}

/* --- where an imported node was (imports.md §1.3) --------------------------------------------- */

/* `~` and what follows names one of several rows of a record, or records of one source id: all are
 * its node. */
static cx_str before_more(cx_str name)
{
    const char *end = name.size == 0 ? NULL : memchr(name.data, '~', name.size);
    return end == NULL ? name : cx_str_from(name.data, (size_t)(end - name.data));
}

static bool source_id_is(const cx_json *event, cx_str id)
{
    cx_str found = cx_json_get_str(event, CX_STR("src_id"));
    id = before_more(id);
    if (found.size != id.size || id.size == 0)
        return false;
    for (size_t i = 0; i < id.size; i++) {
        char c = found.data[i]; /* ids of spans are hex in either case */
        if (c != id.data[i] && !(c >= 'A' && c <= 'F' && (c | 0x20) == id.data[i]))
            return false;
    }
    return true;
}

static bool place_is(const cx_json *event, uint64_t file, uint64_t place)
{
    const cx_json *at = cx_json_get(event, CX_STR("at"));
    uint64_t in_file = 0, in_place = 0;
    if (at == NULL || !cx_json_uint64(CX_JSON_GET(at, "file"), &in_file))
        return false;
    const cx_json *line = CX_JSON_GET(at, "line");
    if (line == NULL)
        line = CX_JSON_GET(at, "index");
    return line != NULL && cx_json_uint64(line, &in_place) && in_file == file && in_place == place;
}

static bool component_is(const cx_json *event, uint64_t entry, uint64_t component)
{
    const cx_json *where = cx_json_get_typed(event, CX_STR("entry"), CX_JSON_OBJECT);
    const cx_json *index = CX_JSON_GET(event, "component_index");
    const cx_json *seq = where == NULL ? NULL : CX_JSON_GET(where, "seq");
    uint64_t in_entry = 0, number = 0;
    return seq != NULL && index != NULL && cx_json_uint64(seq, &in_entry) &&
           cx_json_uint64(index, &number) && in_entry == entry && number == component;
}

/* FILE:PLACE or SEQ.INDEX, both decimal. */
static bool read_place(cx_str text, char between, uint64_t *out_file, uint64_t *out_place)
{
    uint64_t numbers[2] = {0, 0};
    size_t which = 0, digits = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == between && which == 0 && digits != 0) {
            which = 1;
            digits = 0;
        } else if (c >= '0' && c <= '9' && digits < PLACE_DIGITS_MAX) {
            numbers[which] = 10 * numbers[which] + (uint64_t)(c - '0');
            digits++;
        } else {
            return false;
        }
    }
    *out_file = numbers[0];
    *out_place = numbers[1];
    return which == 1 && digits != 0;
}

/* Events are not kept: each record is read again until it is found. */
static cx_status find_record(name_search *s, cx_err *err)
{
    cx_str id = {NULL, 0};
    bool component = false;
    uint64_t file = 0, place = 0;
    cx_arena arena;
    cx_status status = CX_SUCCESS;
    if (cx_str_starts(s->name, CX_STR("src:")))
        id = cx_str_from(s->name.data + 4, s->name.size - 4);
    else if (cx_str_starts(s->name, CX_STR("entry:")) &&
             read_place(cx_str_from(s->name.data + 6, s->name.size - 6), '.', &file, &place))
        component = true;
    else if (!cx_str_starts(s->name, CX_STR("at:")) ||
             !read_place(before_more(cx_str_from(s->name.data + 3, s->name.size - 3)), ':', &file,
                         &place))
        return CX_SUCCESS;
    cx_arena_init(&arena, s->lattice->alloc, 0);
    cx_arena_mark mark = cx_arena_mark_now(&arena);
    for (cx_node n = 0; n < s->lattice->nodes.count && s->first == CX_NODE_NONE; n++) {
        cx_json source;
        cx_arena_reset(&arena, mark);
        status = cx_lattice_source(s->lattice, n, &arena, &source, err);
        const cx_json *event = cx_failed(status) ? NULL : CX_JSON_GET(&source, "event");
        if (status.code == CX_E_NOMEM || status.code == CX_E_IO)
            break;
        status = CX_SUCCESS;
        if (event != NULL && event->type == CX_JSON_OBJECT &&
            (id.data != NULL ? source_id_is(event, id)
             : component     ? component_is(event, file, place)
                             : place_is(event, file, place)))
            add_match(s, n);
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_lattice_resolve(const cx_lattice *lattice, cx_str name, cx_node *out, cx_err *err)
{
    name_search s = {lattice, name, cx_lattice_find(lattice, name), CX_NODE_NONE};
    int shown = (int)shortened(name, 120).size;
    char one[16], other[16];
    if (s.first == CX_NODE_NONE)
        s.first = head_of_recorded(lattice, name);
    if (s.first == CX_NODE_NONE)
        find_number(&s);
    if (s.first == CX_NODE_NONE)
        find_beginning(&s);
    if (s.first == CX_NODE_NONE)
        CX_TRY(find_record(&s, err));
    if (s.first == CX_NODE_NONE)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoNode", CX_NO_OFFSET,
                          "found no node '%.*s', expected a node_id, a hash, the first digits of "
                          "one, AGENT#SEQ, or @AGENT for that agent's newest node",
                          shown, name.data);
    if (s.second != CX_NODE_NONE) {
        cx_str a = cx_lattice_label(lattice, s.first, one);
        cx_str b = cx_lattice_label(lattice, s.second, other);
        return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                          "'%.*s' is more than one node: %.*s and %.*s, for example", shown,
                          name.data, (int)shortened(a, 64).size, a.data, (int)shortened(b, 64).size,
                          b.data);
    }
    *out = s.first;
    return CX_SUCCESS;
}

/* --- roles ------------------------------------------------------------------------------------ */

#define ROLE "role:"

static cx_str role_of(const cx_lattice *lattice, uint32_t which, const cx_agent_role *roles,
                      size_t role_count, cx_arena *arena)
{
    cx_json source;
    cx_str none = {NULL, 0}, name = lattice->agents.items[which].name;
    for (size_t i = 0; i < role_count; i++)
        if (cx_str_eq(roles[i].agent, name))
            return roles[i].role;
    cx_node head = cx_lattice_head_of(lattice, which);
    if (head == CX_NODE_NONE || cx_failed(cx_lattice_source(lattice, head, arena, &source, NULL)))
        return none;
    const cx_json *event = CX_JSON_GET(&source, "event");
    return event == NULL ? none : CX_JSON_GET_STR(event, "agent_role");
}

static const cx_agent_priority *find_priority(const cx_state_options *options, cx_str name)
{
    for (size_t i = options->priority_count; i-- > 0;)
        if (cx_str_eq(options->priorities[i].agent, name))
            return &options->priorities[i];
    return NULL;
}

cx_status cx_lattice_resolve_roles(const cx_lattice *lattice, const cx_agent_role *roles,
                                   size_t role_count, cx_arena *arena, cx_state_options *options,
                                   cx_err *err)
{
    size_t count = 0, of_roles = 0;
    for (size_t i = 0; i < options->priority_count; i++)
        of_roles += cx_str_starts(options->priorities[i].agent, CX_STR(ROLE));
    if (of_roles == 0)
        return CX_SUCCESS;
    cx_agent_priority *list = CX_ARENA_ARRAY(arena, cx_agent_priority,
                                             options->priority_count + lattice->agents.count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < options->priority_count; i++)
        list[count++] = options->priorities[i];
    for (uint32_t i = 0; i < lattice->agents.count; i++) {
        cx_str name = lattice->agents.items[i].name;
        if (find_priority(options, name) != NULL)
            continue;
        cx_str role = role_of(lattice, i, roles, role_count, arena);
        cx_str key =
            cx_arena_printf(arena, ROLE "%.*s", (int)role.size, role.data == NULL ? "" : role.data);
        if (key.data == NULL)
            return cx_fail_nomem(err);
        const cx_agent_priority *found = role.data == NULL ? NULL : find_priority(options, key);
        if (found != NULL)
            list[count++] = (cx_agent_priority){name, found->priority};
    }
    options->priorities = list;
    options->priority_count = count;
    return CX_SUCCESS;
}
