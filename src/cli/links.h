/*
 * links.h - names of files in text for a terminal, as links to a line of them (OSC 8).
 *
 *     cx_cli_links_begin(&links, args, worktree);
 *     cx_cli_links_add(&out, &links, path, line, path);
 *
 * Paths come from agents and from commits. Only a path without "..", of plain characters, becomes a
 * link, to a file below the folder; anything else is text (cx_shown_add).
 */
#ifndef CX_CLI_LINKS_H
#define CX_CLI_LINKS_H

#include "cli/cli.h"

#define CX_CLI_OPTIONS_LINKS                                                                     \
    CX_CLI_OPT("links", 0, CX_CLI_CHOICE, "auto|always|never",                                   \
               "Links to files in text; default auto: on a terminal that may know them, unless " \
               "NO_COLOR is set or TERM is dumb."),                                              \
        CX_CLI_OPT("link-to", 0, CX_CLI_CHOICE, "file|vscode|vscodium|cursor|idea",              \
                   "What a link opens; default file: what the desktop opens it with.")

typedef struct cx_cli_links {
    const char *root; /* absolute, borrowed; NULL = no links */
    const char *to;   /* a choice of --link-to */
    char host[64];    /* of file://; "" when it has no plain name */
} cx_cli_links;

/* `root` may be NULL: no links. */
void cx_cli_links_begin(cx_cli_links *out, const cx_cli_args *args, const char *root);
/* Appends `text`, escaped, as a link to line `line` (0: none) of `path`. NULL links: as text. */
void cx_cli_links_add(cx_buf *out, const cx_cli_links *links, cx_str path, uint64_t line,
                      cx_str text);

#endif
