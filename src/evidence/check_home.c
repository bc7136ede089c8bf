/*
 * check_home.c - journals of an evidence file in a home root, the root over all actors of the data
 * directory (ledger.md §15), and its signed checkpoint.
 *
 *   H1  A home root stands for a journal only when it covers every entry that the file shows of it.
 */
#include "base/api.h"
#include "evidence/internal.h"
#include "proof/api.h"

/* One journal in a home root. */
typedef struct home_check {
    cx_evidence_checker *c;
    size_t number; /* in the list of homes */
    const cx_evidence_home *home;
    const cx_evidence_journal *journal;
    cx_home_proof proof;
    cx_home_leaf leaf;
    cx_journal_point point; /* of the journal of home roots */
    bool good;
} home_check;

static void refuse_home(home_check *h, const char *reason, const char *message)
{
    cx_evidence_find(h->c, "home", h->number, CX_BROKEN, reason, "%s", message);
    h->good = false;
}

static void take_finding(home_check *h, const cx_finding *finding)
{
    cx_finding found = *finding;
    found.offset = CX_NO_OFFSET; /* it counts from a part of the proof */
    cx_evidence_add_finding(h->c, "home", h->number, &found);
    h->good = h->good && finding->verdict == CX_HOLDS;
}

/* The leaf is of this journal, and leads to the home root that is recorded. */
static cx_status check_leaf(home_check *h, cx_err *err)
{
    cx_finding finding;
    cx_home_root root;
    cx_err found;
    cx_finding_init(&finding);
    cx_status status = cx_home_proof_decode(h->home->proof, h->c->arena, &h->proof, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", &finding, err));
    if (finding.verdict == CX_HOLDS)
        CX_TRY(cx_home_proof_verify(&h->proof, NULL, h->c->arena, &h->leaf, &root, &h->point,
                                    &finding, err));
    take_finding(h, &finding);
    if (!h->good)
        return CX_SUCCESS;
    cx_digest overall = cx_scheme_overall(h->journal->scheme, &h->home->journal_root,
                                          &h->home->edges_root, &h->home->memories_root);
    if (!cx_str_eq(h->leaf.actor, h->journal->actor) || h->leaf.scheme != h->journal->scheme ||
        !cx_digest_eq(&overall, &h->leaf.overall))
        refuse_home(h, "HomeMismatch", "the leaf in the home root is not one of this journal");
    return CX_SUCCESS;
}

/* The journal of the file is the one in the home root, or continues it. */
static cx_status check_growth(home_check *h, cx_err *err)
{
    const cx_journal_point older = {h->leaf.size, h->home->journal_root};
    cx_finding finding;
    bool same = older.size == h->journal->point.size;
    if (same && !cx_digest_eq(&older.root, &h->journal->point.root))
        refuse_home(h, "HomeMismatch", "the journal in the home root has another root");
    else if (same == (h->home->consistency.size != 0) || older.size > h->journal->point.size)
        refuse_home(h, "HomeMismatch", "the journal does not continue the one in the home root");
    if (!h->good || same)
        return CX_SUCCESS;
    CX_TRY(cx_consistency_verify(h->home->consistency, &older, &h->journal->point, h->c->arena,
                                 &finding, err));
    take_finding(h, &finding);
    return CX_SUCCESS;
}

/* *out_signed: by enough of the given keys; *out_given: it is the checkpoint or root given. */
static cx_status check_home_note(home_check *h, bool *out_signed, bool *out_given, cx_err *err)
{
    const cx_check_options *options = h->c->options;
    cx_note_check check = {.key_count = options->key_count,
                           .cosigners_required = options->cosigners_required};
    cx_note_result note;
    cx_finding finding;
    cx_checkpoint stored;
    cx_err found;
    cx_finding_init(&finding);
    memset(&note, 0, sizeof note);
    cx_status status = cx_checkpoint_parse(h->proof.checkpoint, &note.checkpoint, NULL, &found);
    CX_TRY(cx_finding_from(status, &found, "BadNote", &finding, err));
    take_finding(h, &finding);
    if (h->good && (note.checkpoint.size != h->point.size ||
                    !cx_digest_eq(&note.checkpoint.root, &h->point.root)))
        refuse_home(h, "CheckpointMismatch", "the checkpoint is not of this home root's journal");
    if (!h->good)
        return CX_SUCCESS;
    if (options->checkpoint.size != 0 &&
        !cx_failed(cx_checkpoint_parse(options->checkpoint, &stored, NULL, NULL)))
        *out_given = stored.size == h->point.size && cx_digest_eq(&stored.root, &h->point.root);
    else if (options->journal != NULL)
        *out_given = (options->journal->size == CX_JOURNAL_SIZE_UNKNOWN ||
                      options->journal->size == h->point.size) &&
                     cx_digest_eq(&options->journal->root, &h->point.root);
    h->c->home_given = h->c->home_given || *out_given;
    if (check.key_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_evidence_keys_for(h->c, note.checkpoint.origin, &check.keys, err));
    CX_TRY(cx_note_verify(h->proof.checkpoint, &check, h->c->arena->alloc, &note, &finding, err));
    *out_signed = finding.verdict == CX_HOLDS;
    if (finding.verdict != CX_HOLDS && strcmp(finding.reason, "NotSigned") != 0)
        take_finding(h, &finding);
    return CX_SUCCESS;
}

/* H1 */
static bool covers_entries(const home_check *h)
{
    const cx_evidence *e = h->c->e;
    for (size_t i = 0; i < e->entry_count; i++)
        if (e->entries[i].journal == h->home->journal &&
            (!h->c->good[i] || h->c->entries[i].seq >= h->leaf.size))
            return false;
    return true;
}

cx_status cx_evidence_check_home(cx_evidence_checker *c, size_t number, cx_err *err)
{
    const cx_evidence_home *home = &c->e->homes[number];
    home_check h = {.c = c,
                    .number = number,
                    .home = home,
                    .journal = &c->e->journals[home->journal],
                    .good = true};
    bool is_signed = false, given = false;
    CX_TRY(check_leaf(&h, err));
    if (h.good)
        CX_TRY(check_growth(&h, err));
    if (h.good)
        CX_TRY(check_home_note(&h, &is_signed, &given, err));
    if (!h.good)
        return CX_SUCCESS;
    if (!covers_entries(&h)) {
        cx_evidence_limit(c, "entries shown that are newer than the home root are not covered by "
                             "it");
        return CX_SUCCESS;
    }
    c->named[home->journal] = true;
    c->is_signed[home->journal] = c->is_signed[home->journal] || is_signed;
    c->anchored[home->journal] = c->anchored[home->journal] || is_signed || given;
    c->out->homes_signed += is_signed;
    return CX_SUCCESS;
}
