/*
 * proof.c - shows somebody without the home that a memory was in it.
 *
 *     cc proof.c $(pkg-config --cflags --libs cortex) -o proof
 *     ./proof make new-folder answer.proof        prints the overall root: publish it
 *     ./proof check answer.proof ROOT             anywhere; new-folder is not needed
 */
#include <cortex/memory.h>
#include <cortex/proof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cx_err err;

static void must(cx_status status)
{
    if (status.code == CX_OK)
        return;
    fprintf(stderr, "%s: %s\n", err.tag != NULL ? err.tag : cx_code_name(err.code), err.message);
    exit(3);
}

/* --- with the home --------------------------------------------------------------------------- */

static cx_uri_text remember(cx_ledger *ledger, const char *statement_json)
{
    cx_memories *memories;
    cx_memories_draft draft = CX_MEMORIES_DRAFT_INIT;
    cx_uri_text uri;
    draft.type = "Fact";
    draft.content.data = cx_str_z(statement_json);
    must(cx_memories_open(ledger, "andrew", NULL, &memories, &err));
    must(cx_memories_write(memories, &draft, &uri, &err));
    cx_memories_close(memories);
    return uri;
}

static void write_file(const char *path, const cx_owned *bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes->data, 1, bytes->size, file) != bytes->size ||
        fclose(file) != 0) {
        perror(path);
        exit(3);
    }
}

static int make(const char *home, const char *proof_path)
{
    cx_ledger *ledger;
    must(cx_ledger_make(home, NULL, NULL, &err));
    must(cx_ledger_open(home, NULL, &ledger, &err));
    cx_uri_text uri = remember(ledger, "{\"statement\":\"The valve was closed at 14:02\","
                                       "\"subject\":\"valve\",\"predicate\":\"closed_at\","
                                       "\"source\":\"sensor 7\"}");

    cx_proof_make_options options = CX_PROOF_MAKE_OPTIONS_INIT;
    const char *uris[] = {uri.text};
    cx_owned proof;
    options.uris = uris;
    options.uri_count = 1;
    options.fresh = true; /* of the state as it is now */
    must(cx_proof_make(ledger, "andrew", &options, &proof, &err));
    write_file(proof_path, &proof);
    cx_owned_done(&proof);

    cx_ledger_state state;
    char root[CX_DIGEST_TEXT_SIZE];
    must(cx_ledger_roots(ledger, "andrew", &state, &err));
    cx_digest_to_text(&state.overall_root, root);
    printf("%s\n", root);
    must(cx_ledger_close(ledger, &err));
    return 0;
}

/* --- without it ------------------------------------------------------------------------------- */

static const char *claim_text(cx_proof_claim_kind kind)
{
    return kind == CX_PROOF_MEMBER          ? "is there"
           : kind == CX_PROOF_MEMBER_ERASED ? "is there, its content was erased"
                                            : "is not there";
}

static int check(const char *proof_path, const char *root_text)
{
    static uint8_t bytes[1 << 20];
    cx_digest root;
    FILE *file = fopen(proof_path, "rb");
    if (file == NULL || !cx_digest_from_text(root_text, &root)) {
        fprintf(stderr, "expected a proof and 64 hex digits\n");
        return 2;
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);

    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    cx_proof_report *report;
    trust.overall_root = &root;
    trust.require = CX_PROOF_REQUIRE_ANCHORED; /* a proof that only agrees with itself is none */
    must(cx_proof_check(cx_bytes_from(bytes, size), &trust, &report, &err));
    const cx_proof_summary *summary = cx_proof_report_summary(report);
    printf("%s%s%s\n", cx_verdict_name(summary->verdict), summary->reason != NULL ? ": " : "",
           summary->reason != NULL ? summary->reason : "");
    /* Claims are worth reading only when the proof holds. */
    for (size_t i = 0; summary->verdict == CX_HOLDS && i < summary->claim_count; i++) {
        cx_proof_claim claim;
        cx_proof_report_claim(report, i, &claim);
        printf("%.*s %s\n", (int)claim.uri.size, claim.uri.data, claim_text(claim.kind));
    }
    for (size_t i = 0; i < summary->limit_count; i++)
        printf("not proven: %s\n", cx_proof_report_limit(report, i));
    int code = (int)summary->verdict;
    cx_proof_report_close(report);
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        return make(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return check(argv[2], argv[3]);
    fprintf(stderr, "usage: %s make NEW-FOLDER FILE | check FILE ROOT\n", argv[0]);
    return 2;
}
