/*
 * A stranger's program: a home is made, written to and verified.  Compiles as C11 and as C++.
 */
#include <cortex/journal.h>
#include <cortex/memory.h>
#include <cortex/proof.h>
#include <cortex/lattice.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    cx_err err;
    cx_ledger *ledger = NULL;
    cx_ledger_draft draft = CX_LEDGER_DRAFT_INIT;
    uint64_t seq = 99;
    if (argc != 2)
        return 2;
    draft.kind = "tool.called";
    draft.payload = cx_bytes_from("hello", 5);
    if (cx_ledger_make(argv[1], NULL, NULL, &err).code != CX_OK ||
        cx_ledger_open(argv[1], NULL, &ledger, &err).code != CX_OK ||
        cx_ledger_append(ledger, "andrew", &draft, 1, &seq, &err).code != CX_OK ||
        cx_ledger_close(ledger, &err).code != CX_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("cortex %s wrote entry %llu\n", cx_version(), (unsigned long long)seq);
    return seq == 0 ? 0 : 1;
}
