/*
 * sensitive_mark.h - what was found in a recorded entry, next to it (docs/sensitive.md).
 *
 *     sensitive/<seq u64be>   {1 findings, 2 of those masked, 3 signed, 4 the first of them as
 *     JSON}
 *
 * A mark is written in the transaction of its entry, and has no byte of what was found.
 */
#ifndef CX_RECORDER_SENSITIVE_MARK_H
#define CX_RECORDER_SENSITIVE_MARK_H

#include "ledger/api.h"
#include "sensitive/api.h"
#include "json/api.h"

#define CX_MARKS_MAX 1000 /* of one answer */

typedef struct cx_mark {
    const cx_sensitive_list *found; /* NULL, or nothing in it: nothing is written */
    bool is_signed;
    const char *const *levels; /* of each listed finding: the highest trace level without it; may be
                                  NULL, and NULL in it */
} cx_mark;
CX_RESULT cx_recorder_mark_put(cx_txn *txn, uint64_t seq, const cx_mark *mark, cx_err *err);

/*
 * JSON of which the texts below a pointer may have to be masked: scans `text`, and when something
 * was masked puts the value without it into *out_masked (*out_changed).  Memory from the arena of
 * the list.
 */
CX_RESULT cx_recorder_mask_json(const cx_sensitive_rules *rules, cx_str text,
                                const char *const below[2], bool may_mask, cx_sensitive_list *list,
                                cx_json *out_masked, bool *out_changed, cx_err *err);

typedef struct cx_marks_wanted {
    cx_sensitive_class class_of; /* CX_SENSITIVE_CLASS_COUNT = any */
    cx_str actor;                /* data NULL = all */
    uint32_t limit;              /* of records; 1 .. CX_MARKS_MAX */
} cx_marks_wanted;
/*
 * {"more":bool,"records":[{"actor","count","findings":[{"action","class","level"?,"line"?,"name"?,
 * "pattern","pointer"}],"masked","seq","signed"}]}: actors in the order of their first entry.
 * CX_E_NOT_FOUND "NoActor".
 */
CX_RESULT cx_recorder_answer_marks(cx_home *home, const cx_marks_wanted *wanted, cx_arena *arena,
                                   cx_json *out, cx_err *err);

#endif
