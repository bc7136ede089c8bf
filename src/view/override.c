/*
 * override.c - counts the decisions of an agent that were overridden.
 *
 * It searches the bytes of a node's changes, without parsing them: a picture of a million nodes
 * needs the count of each.
 *
 *   O1  changes are canonical JSON (lattice.md §3.2), so a member is spelled in one way, begins
 *       after '{' or ',', and no text can look like one, because quotes in texts are escaped.
 */
#include "view/layout.h"

/* O1 */
cx_str cx_lattice_next_member(cx_str text, cx_str name, size_t *at)
{
    for (size_t i = *at; i + name.size + 3 < text.size; i++) {
        const char *found = memmem(text.data + i, text.size - i, name.data, name.size);
        if (found == NULL)
            break;
        i = (size_t)(found - text.data);
        size_t end = i + name.size;
        if (i < 2 || end + 2 >= text.size || text.data[i - 1] != '"' ||
            (text.data[i - 2] != '{' && text.data[i - 2] != ',') || text.data[end] != '"' ||
            text.data[end + 1] != ':')
            continue;
        *at = end + 2;
        return cx_str_from(text.data + *at, text.size - *at);
    }
    *at = text.size;
    return (cx_str){NULL, 0};
}

static uint32_t count_of(cx_str delta, cx_str name, cx_str beginning)
{
    uint32_t count = 0;
    size_t at = 0;
    for (cx_str rest; (rest = cx_lattice_next_member(delta, name, &at)).data != NULL;)
        count += cx_str_starts(rest, beginning);
    return count;
}

uint32_t cx_lattice_overrides(const cx_lattice *lattice, cx_node n)
{
    if (lattice->deltas.count <= n)
        return 0;
    cx_str delta = lattice->deltas.items[n];
    uint32_t count = count_of(delta, CX_STR("action_was_overridden"), CX_STR("true"));
    if (cx_str_starts(cx_lattice_agent_label(lattice, n), CX_STR("run/")))
        count += count_of(delta, CX_STR("last.HUMAN_APPROVAL_COMPLETED"), CX_STR("{"));
    return count;
}
