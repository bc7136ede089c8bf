/*
 * manual.c - manual pages, written from the tables: the COMMANDS section of cortex(1), and a page
 * for each first word that a command has: cortex-run(1), cortex-doctor(1).
 */
#include <string.h>

#include "cli/opt.h"

/* What the commands of a group have in common. */
typedef struct group {
    const char *word;
    const char *purpose;
    const char *about;
} group;

static const group groups[] = {
    {"alert", "what detectors found in recorded traces",
     "An alert is a finding of 'cortex detect'. It is open until it is acknowledged and then "
     "resolved; both are entries of the ledger."},
    {"approvals", "approvals of governed runs",
     "An approval is a signed statement that one run of one contract may do what its policies "
     "would refuse. "
     "'cortex approve' makes one; it counts once."},
    {"consent", "consent to traces of agents",
     "A batch of traces says when consent to it was given. That consent was revoked is recorded "
     "here, and told to those who send traces without a newer one."},
    {"contract", "task contracts",
     "A contract defines a governed run: which paths may change, which commands may run, which "
     "tests decide. These commands write one, check it and show what it would allow; nothing is "
     "run."},
    {"export", "entries and proofs in standard formats",
     "These commands write entries and proofs of a data directory as files that programs without "
     "Cortex can read."},
    {"gate", "single gates of a governed run",
     "Each gate of a run can be called by itself: in scripts, hooks and CI."},
    {"hold", "legal holds",
     "While a legal hold lasts, nothing that it covers is erased. Holds and releases are entries "
     "of the ledger."},
    {"hook", "hooks of coding agents and of git",
     "'cortex hook install' registers the hooks with a coding agent, 'cortex hook status' shows "
     "whether they hold. The commands named after an agent are called by it, and pre-commit and "
     "pre-push by git; they are not meant to be called by hand."},
    {"hooks", "git hooks that call the gates",
     "With these hooks, git calls the gates before it commits and pushes. Existing hooks are kept "
     "and still run, and the hooks can be removed again."},
    {"key", "keys of agents, and keys to sign with",
     "Signatures of an agent are trusted once its key is registered. Keys that sign checkpoints "
     "stay in files of their own, never in a data directory."},
    {"lattice", "questions about the histories of agents",
     "A lattice is a history of steps linked by hash, of one agent or of many that branch off and "
     "merge. FILE is a lattice, or @BRANCH for traces and runs recorded in the data directory."},
    {"locks", "locks of runs on paths",
     "Two runs never change the same paths at once: each holds locks on the paths that its "
     "contract allows."},
    {"memory", "what agents know",
     "Memories are typed, versioned and linked by edges; every write is an entry of the ledger, so "
     "that each one can be proven and explained. These commands write memories, find them, and "
     "record how useful they were."},
    {"retention", "how long content stays",
     "Rules of retention say how long content of a kind stays. What is older is destroyed, and one "
     "receipt lists it; entries, hashes and proofs stay."},
    {"fleet", "data directories in PostgreSQL, served by many nodes",
     "A fleet keeps data directories in a PostgreSQL database, each as a part. 'fleet init' makes "
     "the tables; data directories are imported into parts, and parts exported as data "
     "directories, with the same bytes. docs/fleet.md says what works and what does not yet."},
    {"log", "the log of a data directory",
     "Everything that is recorded stands in the log, a folder of segment files. 'cortex log' shows "
     "its entries. Segments that are full can be compressed, or moved to another disk, and are "
     "read "
     "from there."},
    {"run", "governed runs of agents",
     "A run lets an agent change a git repository under a contract: in a work tree and a sandbox "
     "of its own, judged by gates, merged when it passes all of them. The result is a sealed "
     "bundle that can be verified, explained and re-executed. 'cortex run CONTRACT' starts a run; "
     "the other commands inspect finished runs."},
    {"runner", "programs that are agents of a repository",
     "A runner defines how an agent is started and how Cortex communicates with it. Runners are "
     "part of the repository's configuration, and runs read them from the baseline commit."},
    {"scope", "access of other agents to memories",
     "A scope is signed and says which agent may read which memories until when."},
    {"snapshot", "states that can be proven later",
     "A snapshot holds the state of all actors at one moment, under one root of 32 bytes."},
    {"tables", "the databases derived from the log",
     "Tables are derived from the log and answer queries. They can be deleted and rebuilt at any "
     "time."},
    {"token", "API tokens of the server",
     "A token lets a program call 'cortex serve' over HTTP. It is shown once; the data directory "
     "stores only its hash."},
    {"trace", "decisions that agents signed",
     "A trace is one decision of an agent with its observation, rationale and action, signed by "
     "the agent's key. These commands check single traces and search recorded ones."},
    {"worktrees", "work trees of governed runs",
     "Each run works in a git work tree of its own, apart from yours."},
};

/* Text for man(7): backslashes and hyphens stay what they are, lines never begin with a macro. */
static void add_roff(cx_buf *out, const char *text, size_t size)
{
    bool line_start = true;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (line_start && (c == '.' || c == '\''))
            cx_buf_add_z(out, "\\&");
        if (c == '\\')
            cx_buf_add_z(out, "\\e");
        else if (c == '-')
            cx_buf_add_z(out, "\\-");
        else if (c == '\'')
            cx_buf_add_z(out, "\\(aq");
        else if (c == '~')
            cx_buf_add_z(out, "\\(ti");
        else
            cx_buf_add_byte(out, (uint8_t)c);
        line_start = c == '\n';
    }
}

static void add_roff_z(cx_buf *out, const char *text)
{
    add_roff(out, text, strlen(text));
}

static void add_roff_paragraphs(cx_buf *out, const char *text)
{
    while (*text != 0) {
        const char *end = strstr(text, "\n\n");
        size_t size = end == NULL ? strlen(text) : (size_t)(end - text);
        add_roff(out, text, size);
        text += size + (end == NULL ? 0 : 2);
        cx_buf_add_z(out, *text == 0 ? "\n" : "\n.PP\n");
    }
}

static void add_roff_option(cx_buf *out, const cx_cli_option *option)
{
    cx_buf_add_z(out, ".TP\n.B ");
    if (option->letter != 0)
        cx_buf_printf(out, "\\-%c\\fR, \\fB", option->letter);
    cx_buf_add_z(out, "\\-\\-");
    add_roff_z(out, option->name);
    if (option->value != NULL) {
        cx_buf_add_z(out, " \\fI");
        add_roff_z(out, option->value);
        cx_buf_add_z(out, "\\fR");
    }
    cx_buf_add_byte(out, '\n');
    add_roff_z(out, option->help);
    cx_buf_add_byte(out, '\n');
}

static void add_roff_exits(cx_buf *out, const char *text)
{
    cx_buf_add_z(out, ".PP\nExit status:\n");
    while (*text != 0) {
        size_t size = strcspn(text, "\n");
        cx_buf_printf(out, ".TP\n.B %c\n", text[0]);
        add_roff(out, text + 2, size - 2);
        cx_buf_add_byte(out, '\n');
        text += size + (text[size] == '\n');
    }
}

static void add_synopsis(cx_buf *out, const cx_cli_command *command)
{
    cx_buf_add_z(out, ".B ");
    cx_cli_write_synopsis(out, command);
    cx_buf_add_byte(out, '\n');
}

/* Everything about one command but its name and synopsis. */
static void add_command(cx_buf *out, const cx_cli_command *command)
{
    add_roff_paragraphs(out, command->about);
    for (size_t i = 0; i < command->option_count; i++)
        add_roff_option(out, &command->options[i]);
    add_roff_exits(out, command->exits);
    cx_buf_add_z(out, ".PP\nExample:\n.PP\n.nf\n.RS\n");
    add_roff_z(out, command->example);
    cx_buf_add_z(out, "\n.RE\n.fi\n");
}

static void add_section(cx_buf *out, const cx_cli_command *command)
{
    cx_buf_printf(out, ".SS %s\n", command->name);
    add_synopsis(out, command);
    cx_buf_add_z(out, ".PP\n");
    add_command(out, command);
}

void cx_cli_write_man(cx_buf *out, cx_cli_commands commands)
{
    cx_buf_add_z(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < commands.count; i++)
        add_section(out, commands.items[i]);
}

/* --- pages of their own ----------------------------------------------------------------------- */

static bool begins_with_word(const cx_cli_command *command, const char *word)
{
    size_t size = strlen(word);
    return strncmp(command->name, word, size) == 0 &&
           (command->name[size] == 0 || command->name[size] == ' ');
}

static const group *find_group(const char *word)
{
    for (size_t i = 0; i < CX_COUNT_OF(groups); i++) {
        if (strcmp(groups[i].word, word) == 0)
            return &groups[i];
    }
    return NULL;
}

static void add_page_head(cx_buf *out, const char *word, const char *purpose)
{
    cx_buf_add_z(out, ".TH \"CORTEX\\-");
    for (const char *at = word; *at != 0; at++)
        cx_buf_add_byte(out, (uint8_t)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at));
    cx_buf_add_z(out, "\" 1 \"\" \"cortex " CX_VERSION "\" \"User Commands\"\n.SH NAME\ncortex\\-");
    add_roff_z(out, word);
    cx_buf_add_z(out, " \\- ");
    add_roff_z(out, purpose);
    cx_buf_add_z(out, "\n.SH SYNOPSIS\n");
}

bool cx_cli_write_page(cx_buf *out, cx_cli_commands commands, const char *word)
{
    const cx_cli_command *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < commands.count; i++) {
        if (begins_with_word(commands.items[i], word)) {
            only = commands.items[i];
            count++;
        }
    }
    const group *about = find_group(word);
    if (count == 0)
        return false;
    add_page_head(out, word, about != NULL ? about->purpose : only->purpose);
    for (size_t i = 0, shown = 0; i < commands.count; i++) {
        if (!begins_with_word(commands.items[i], word))
            continue;
        if (shown++ != 0)
            cx_buf_add_z(out, ".br\n");
        add_synopsis(out, commands.items[i]);
    }
    cx_buf_add_z(out, ".SH DESCRIPTION\n");
    if (about != NULL)
        add_roff_paragraphs(out, about->about);
    for (size_t i = 0; i < commands.count; i++) {
        const cx_cli_command *command = commands.items[i];
        if (!begins_with_word(command, word))
            continue;
        if (about != NULL)
            add_section(out, command);
        else
            add_command(out, command);
    }
    cx_buf_add_z(out, ".SH SEE ALSO\n.BR cortex (1),\n.BR cortex\\-verify (1)\n");
    return true;
}
