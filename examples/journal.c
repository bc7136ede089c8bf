/*
 * journal.c - records what an agent did, seals it into 32 bytes, and checks the whole home.
 *
 *     cc journal.c $(pkg-config --cflags --libs cortex) -o journal && ./journal new-folder
 */
#include <cortex/journal.h>

#include <stdio.h>
#include <stdlib.h>

static cx_err err;

/* Examples stop at the first error; a program of yours would look at err.code and err.tag. */
static void must(cx_status status)
{
    if (status.code == CX_OK)
        return;
    fprintf(stderr, "%s: %s\n", err.tag != NULL ? err.tag : cx_code_name(err.code), err.message);
    exit(1);
}

/* Three entries in one call: all of them are on the disk when it returns, or none is there. */
static uint64_t record(cx_ledger *ledger)
{
    static const char *const payloads[] = {
        "{\"tool\":\"search\",\"query\":\"weather in Vienna\"}",
        "{\"tool\":\"search\",\"result\":\"rain until noon\"}",
        "{\"told\":\"Take an umbrella, Anna.\"}",
    };
    cx_ledger_draft drafts[3] = {CX_LEDGER_DRAFT_INIT, CX_LEDGER_DRAFT_INIT, CX_LEDGER_DRAFT_INIT};
    uint64_t first;
    for (int i = 0; i < 3; i++) {
        drafts[i].kind = i < 2 ? "tool.called" : "user.told";
        drafts[i].payload.data = (const uint8_t *)payloads[i];
        drafts[i].payload.size = cx_str_z(payloads[i]).size;
    }
    /* This one names a person: it stands beside its entry, so that it can be erased later. */
    drafts[2].committed = true;
    must(cx_ledger_append(ledger, "andrew", drafts, 3, &first, &err));
    return first;
}

/* Without waiting for each: many writes share one sync. */
static void record_many(cx_ledger *ledger)
{
    cx_ledger_draft draft = CX_LEDGER_DRAFT_INIT;
    uint64_t ticket = 0;
    draft.kind = "agent.step";
    for (uint64_t step = 0; step < 1000; step++) {
        draft.payload = cx_bytes_from(&step, sizeof step);
        must(cx_ledger_append_later(ledger, "andrew", &draft, 1, NULL, &ticket, &err));
    }
    must(cx_ledger_wait(ledger, ticket, &err)); /* this one, and all before it */
}

static void show_entry(cx_ledger *ledger, uint64_t seq)
{
    cx_ledger_entry entry;
    must(cx_ledger_read(ledger, "andrew", seq, &entry, &err));
    cx_str said = {(const char *)entry.payload.data, entry.payload.size};
    if (entry.erased)
        said = cx_str_z("(erased)");
    printf("entry %llu, %.*s: %.*s\n", (unsigned long long)entry.seq, (int)entry.kind.size,
           entry.kind.data, (int)said.size, said.data);
    cx_ledger_entry_done(&entry);
}

static cx_digest show_root(cx_ledger *ledger, const char *when)
{
    cx_ledger_state state;
    char root[CX_DIGEST_TEXT_SIZE];
    must(cx_ledger_roots(ledger, "andrew", &state, &err));
    cx_digest_to_text(&state.overall_root, root);
    printf("%s: %llu entries, root %s\n", when, (unsigned long long)state.journal_size, root);
    return state.journal_root;
}

/* What was true before is given as an anchor: nothing up to there was cut off or written anew. */
static int check_home(const char *path, uint64_t size, cx_digest journal_root)
{
    cx_ledger_verify_options options = CX_LEDGER_VERIFY_OPTIONS_INIT;
    cx_ledger_anchor anchor = {size, journal_root, {NULL, 0}};
    cx_ledger_report *report;
    cx_ledger_totals totals;
    options.actor = "andrew";
    options.anchors = &anchor;
    options.anchor_count = 1;
    must(cx_ledger_verify(path, &options, &report, &err));
    cx_verdict verdict = cx_ledger_report_verdict(report);
    cx_ledger_report_totals(report, &totals);
    printf("verified: %s; %llu entries, %s\n", cx_verdict_name(verdict),
           (unsigned long long)totals.entries, totals.anchored ? "anchored" : "not anchored");
    for (size_t i = 0; i < cx_ledger_report_count(report); i++) {
        cx_ledger_finding finding;
        cx_ledger_report_finding(report, i, &finding);
        printf("  %s %s at %.*s\n", finding.check, finding.reason, (int)finding.where.size,
               finding.where.data);
    }
    cx_ledger_report_close(report);
    return verdict == CX_HOLDS ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s NEW-FOLDER\n", argv[0]);
        return 2;
    }
    cx_ledger *ledger;
    cx_ledger_manifest manifest;
    must(cx_ledger_make(argv[1], NULL, NULL, &err));
    must(cx_ledger_open(argv[1], NULL, &ledger, &err));

    uint64_t first = record(ledger);
    record_many(ledger);
    show_entry(ledger, first);
    show_entry(ledger, first + 2);
    cx_digest journal_root = show_root(ledger, "recorded");
    must(cx_ledger_snapshot_make(ledger, "andrew", "end of the day", &manifest, &err));
    uint64_t size = manifest.state.journal_size;
    printf("snapshot %llu keeps this state for proofs\n", (unsigned long long)manifest.snapshot);
    cx_ledger_manifest_done(&manifest);

    must(cx_ledger_erase(ledger, "andrew", first + 2, "Anna asked for it", "andrew", &err));
    show_entry(ledger, first + 2);
    show_root(ledger, "erased");
    must(cx_ledger_close(ledger, &err));
    return check_home(argv[1], size, journal_root);
}
