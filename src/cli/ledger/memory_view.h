/*
 * memory_view.h - memories, edges and their data as the commands show and read them; their JSON is
 * memory/view.h.
 */
#ifndef CX_CLI_MEMORY_VIEW_H
#define CX_CLI_MEMORY_VIEW_H

#include "cli/ledger/ledger.h"

/* One line: URI and the short form. */
void cx_cli_memory_line(const cx_memory_view *view, cx_buf *out);
/* All of it, as text. */
CX_RESULT cx_cli_memory_text(const cx_memory_view *view, cx_arena *arena, cx_buf *out, cx_err *err);

void cx_cli_edge_line(const cx_edge *edge, cx_buf *out);

/* Hits of find, near and context, each after its salience or similarity. */
CX_RESULT cx_cli_hits_answer(cx_cli_ledger *l, const cx_memory_hit *hits, size_t count,
                             bool similarity, cx_err *err);

/* --- what writes share ------------------------------------------------------------------------ */

#define CX_CLI_OPTION_DATA_CBOR                                                              \
    CX_CLI_OPT("data-cbor", 0, CX_CLI_TEXT, "HEX|@FILE|-",                                   \
               "The data as canonical CBOR in place of DATA: hex, or bytes in a file or on " \
               "standard input.")
/* What a version carries besides its data. */
#define CX_CLI_OPTIONS_VERSION                                                                \
    CX_CLI_OPT("source", 0, CX_CLI_CHOICE, "user_input|derived|observed|imported",            \
               "Where it comes from; default user_input."),                                   \
        CX_CLI_OPT_MANY("derived-from", 0, CX_CLI_TEXT, "URI",                                \
                        "The source; the URI of a memory must exist. May be repeated."),      \
        CX_CLI_OPT_MANY("attestation", 0, CX_CLI_TEXT, "TEXT",                                \
                        "Who attests it. May be repeated."),                                  \
        CX_CLI_OPT("confidence", 0, CX_CLI_TEXT, "X", "0 to 1; default 1."),                  \
        CX_CLI_OPT("expires", 0, CX_CLI_TEXT, "TIME",                                         \
                   "Left out of find and context from then on: RFC 3339, or seconds since "   \
                   "1970."),                                                                  \
        CX_CLI_OPT("short", 0, CX_CLI_TEXT, "TEXT",                                           \
                   "Your own short form, with --medium; default: made from the data."),       \
        CX_CLI_OPT("medium", 0, CX_CLI_TEXT, "TEXT", "Your own medium form, with --short."),  \
        CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "The author; default the actor."),           \
        CX_CLI_OPT_FLAG("blind", 0,                                                           \
                        "Add a random salt, so that a short text cannot be guessed from its " \
                        "hash after it was erased.")
/* What a Head carries. */
#define CX_CLI_OPTIONS_HEAD                                                                \
    CX_CLI_OPT_MANY("tag", 0, CX_CLI_TEXT, "TAG", "A tag; may be repeated, up to 16."),    \
        CX_CLI_OPT_MANY(                                                                   \
            "frame", 0, CX_CLI_TEXT, "VERB:KIND:REF",                                      \
            "The subject, such as acquire:service:gpu; may be repeated, up to 16 times."), \
        CX_CLI_OPT("importance", 0, CX_CLI_COUNT, "N", "0 to 10; default 0."),             \
        CX_CLI_OPT("visibility", 0, CX_CLI_CHOICE, "private|scoped|actor_public",          \
                   "Who may read it; default private.")

typedef struct cx_cli_version {
    cx_provenance provenance;
    float confidence;
    bool expires;
    int64_t expires_at;
    cx_forms forms_given;
    const cx_forms *forms; /* NULL, or &forms_given */
    cx_str by;
    bool blind;
} cx_cli_version;
CX_RESULT cx_cli_read_version(cx_cli *cli, const cx_cli_args *args, cx_cli_version *out,
                              cx_err *err);

typedef struct cx_cli_head {
    const cx_str *tags;
    size_t tag_count;
    const cx_frame *frames;
    size_t frame_count;
    uint8_t importance;
    uint8_t visibility; /* 0 = not given */
} cx_cli_head;
CX_RESULT cx_cli_read_head(cx_cli *cli, const cx_cli_args *args, cx_cli_head *out, cx_err *err);

/* The data as it was given, read while nothing is locked; what it means needs the type. */
typedef struct cx_cli_data {
    bool is_cbor;
    cx_bytes cbor;
    cx_json json;
} cx_cli_data;
/* From the operand (NULL = not given) or --data-cbor. */
CX_RESULT cx_cli_read_data(cx_cli *cli, const cx_cli_args *args, const char *operand,
                           cx_cli_data *out, cx_err *err);
/* As canonical CBOR in the arena, checked. */
CX_RESULT cx_cli_make_data(cx_cli *cli, const cx_cli_data *given, uint8_t type, cx_bytes *out,
                           cx_err *err);

#endif
