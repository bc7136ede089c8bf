/*
 * suggest.c - which command was meant: suggest.h.
 */
#include "cli/suggest.h"

#include <string.h>

static unsigned smaller_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned cx_cli_edit_distance(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > CX_CLI_SUGGEST_MAX || b_size > CX_CLI_SUGGEST_MAX)
        return UINT32_MAX;
    unsigned rows[3][CX_CLI_SUGGEST_MAX + 1] = {0};
    for (unsigned j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b_size; j++) {
            unsigned replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smaller_of(replaced, smaller_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller_of(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}

bool cx_cli_is_close(unsigned edits, const char *typed)
{
    return edits <= 1 + strlen(typed) / 4;
}

/* --- other words ------------------------------------------------------------------------------ */

typedef struct other_word {
    const char *typed, *meant;
} other_word;

/* What people call commands that have other names. */
static const other_word commands_meant[] = {
    {"find", "search"},
    {"grep", "search"},
    {"history", "histories"},
    {"list", "histories"},
    {"ls", "histories"},
    {"delete", "erase"},
    {"remove", "erase"},
    {"rm", "erase"},
    {"forget", "erase"},
    {"open", "view"},
    {"start", "up"},
    {"ui", "up"},
    {"web", "up"},
    {"info", "show"},
    {"inspect", "show"},
    {"limit", "session limit"},
    {"limits", "session limit"},
};
static const other_word groups_meant[] = {
    {"live", "session"}, {"memories", "memory"}, {"policies", "gate"}, {"policy", "gate"}};
/* Second words: the first that the group has. */
static const other_word verbs_meant[] = {
    {"new", "add"},     {"new", "make"},         {"new", "write"},     {"create", "add"},
    {"create", "new"},  {"create", "make"},      {"create", "write"},  {"make", "add"},
    {"add", "new"},     {"add", "make"},         {"add", "write"},     {"ls", "list"},
    {"list", "query"},  {"search", "find"},      {"search", "query"},  {"delete", "revoke"},
    {"delete", "drop"}, {"delete", "tombstone"}, {"remove", "revoke"}, {"remove", "drop"},
    {"rm", "revoke"},   {"rm", "drop"},          {"status", "show"},   {"get", "show"},
};

static const cx_cli_command *command_of(cx_cli_commands commands, const char *group,
                                        const char *name)
{
    const size_t size = group == NULL ? 0 : strlen(group);
    for (size_t i = 0; i < commands.count; i++) {
        const char *own = commands.items[i]->name;
        bool found = group == NULL ? strcmp(own, name) == 0
                                   : strncmp(own, group, size) == 0 && own[size] == ' ' &&
                                         strcmp(own + size + 1, name) == 0;
        if (found)
            return commands.items[i];
    }
    return NULL;
}

static const cx_cli_command *by_other_word(cx_cli_commands commands, const char *word)
{
    for (size_t i = 0; i < CX_COUNT_OF(commands_meant); i++)
        if (strcmp(word, commands_meant[i].typed) == 0)
            return command_of(commands, NULL, commands_meant[i].meant);
    return NULL;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The group that a word is, in the plural too, or means; false when it is none. */
static bool find_group(cx_cli_commands commands, const char *word, char *out, size_t room)
{
    const size_t size = strlen(word);
    for (size_t i = 0; i < CX_COUNT_OF(groups_meant); i++)
        if (strcmp(word, groups_meant[i].typed) == 0)
            word = groups_meant[i].meant;
    if (strlen(word) >= room)
        return false;
    memcpy(out, word, strlen(word) + 1);
    if (!cx_cli_is_group(commands, out) && size > 2 && out[size - 1] == 's')
        out[size - 1] = 0;
    return cx_cli_is_group(commands, out);
}

/* Without a second word, or one that means nothing there: how the group begins to be used. */
static const cx_cli_command *first_of(cx_cli_commands commands, const char *group)
{
    const size_t size = strlen(group);
    const cx_cli_command *list = command_of(commands, group, "list");
    for (size_t i = 0; i < commands.count && list == NULL; i++)
        if (strncmp(commands.items[i]->name, group, size) == 0 &&
            commands.items[i]->name[size] == ' ')
            list = commands.items[i];
    return list;
}

static const cx_cli_command *in_group(cx_cli_commands commands, const char *group, const char *verb)
{
    const cx_cli_command *best = NULL;
    unsigned best_edits = UINT32_MAX;
    const size_t size = strlen(group);
    for (size_t i = 0; i < CX_COUNT_OF(verbs_meant) && best == NULL; i++)
        if (strcmp(verb, verbs_meant[i].typed) == 0)
            best = command_of(commands, group, verbs_meant[i].meant);
    if (best != NULL)
        return best;
    for (size_t i = 0; i < commands.count; i++) {
        const char *name = commands.items[i]->name;
        unsigned edits = strncmp(name, group, size) == 0 && name[size] == ' '
                             ? cx_cli_edit_distance(verb, name + size + 1)
                             : UINT32_MAX;
        if (edits < best_edits) {
            best_edits = edits;
            best = commands.items[i];
        }
    }
    return cx_cli_is_close(best_edits, verb) ? best : NULL;
}

/* --- slips ------------------------------------------------------------------------------------ */

/* A command that is one word is meant before a group's; of a group's second word one slip. */
static const cx_cli_command *by_slip(cx_cli_commands commands, const char *word)
{
    const cx_cli_command *best = NULL, *second = NULL;
    unsigned best_edits = UINT32_MAX, second_edits = UINT32_MAX;
    for (size_t i = 0; i < commands.count; i++) {
        const char *name = commands.items[i]->name, *space = strchr(name, ' ');
        unsigned edits = cx_cli_edit_distance(word, space == NULL ? name : space + 1);
        if (space == NULL && edits < best_edits) {
            best_edits = edits;
            best = commands.items[i];
        } else if (space != NULL && edits < second_edits) {
            second_edits = edits;
            second = commands.items[i];
        }
    }
    if (second_edits < best_edits && second_edits <= 1 && strlen(word) > 3)
        return second;
    return strlen(word) > 2 && cx_cli_is_close(best_edits, word) ? best : NULL;
}

const cx_cli_command *cx_cli_suggest_command(cx_cli_commands commands, const char *text)
{
    char word[CX_CLI_SUGGEST_MAX + 1], group[CX_CLI_SUGGEST_MAX + 1];
    const size_t size = strcspn(text, " ");
    const char *verb = text[size] == 0 ? "" : text + size + 1;
    if (size >= sizeof word)
        return NULL;
    memcpy(word, text, size);
    word[size] = 0;
    const cx_cli_command *found = by_other_word(commands, word);
    if (found != NULL)
        return found;
    if (!find_group(commands, word, group, sizeof group))
        return by_slip(commands, word);
    if (verb[0] != 0)
        found = in_group(commands, group, verb);
    return found != NULL || strcmp(word, group) == 0 ? found : first_of(commands, group);
}
