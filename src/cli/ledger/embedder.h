/*
 * embedder.h - vectors from a model outside of this program: --embedder-url URL, or --embedder
 * COMMAND.
 *
 *     asked     {"input":TEXT,"model":NAME}, without model when none is given: the body of a POST,
 *               or the program's standard input
 *     answers   [numbers], or an object with embedding, embeddings[0] or data[0].embedding, and
 *               model: what Ollama and OpenAI-compatible servers answer; or on standard output
 *
 * Nothing of the text is passed in the command's words, and no shell reads them.
 */
#ifndef CX_CLI_EMBEDDER_H
#define CX_CLI_EMBEDDER_H

#include "cli/ledger/ledger.h"

#define CX_CLI_OPTIONS_EMBEDDER                                                                 \
    CX_CLI_OPT("embedder-url", 0, CX_CLI_TEXT, "URL",                                           \
               "Let the model server there compute the vector, over HTTP without TLS, such as " \
               "http://127.0.0.1:11434/api/embed."),                                            \
        CX_CLI_OPT(                                                                             \
            "embedder", 0, CX_CLI_TEXT, "COMMAND",                                              \
            "Let this program compute the vector: words separated by spaces, no shell, such "   \
            "as curl -sSf --json @- http://127.0.0.1:11434/api/embed."),                        \
        CX_CLI_OPT("embedder-model", 0, CX_CLI_TEXT, "NAME", "The model to ask it for."),       \
        CX_CLI_OPT("embedder-timeout", 0, CX_CLI_COUNT, "SECONDS",                              \
                   "How long it may take; default 60.")

typedef struct cx_cli_embedding {
    const float *values;
    size_t dim;
    cx_str model; /* as the answer says, else as it was asked for; size 0 = unknown */
} cx_cli_embedding;

bool cx_cli_embedder_given(const cx_cli_args *args);
/* Memory from the command's arena.  "EmbedderFailed": CX_E_IO, or CX_E_TIMEOUT. */
CX_RESULT cx_cli_embedder_run(cx_cli *cli, const cx_cli_args *args, cx_str text,
                              cx_cli_embedding *out, cx_err *err);

#endif
