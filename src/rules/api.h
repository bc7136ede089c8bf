/*
 * rules - what the gates of a run share: findings, paths, command tokens, text, times, schemas,
 * test reports.
 *
 * Knows nothing of git, sandboxes and contracts.  Numbered invariants are in run.h, path.h and
 * tests_report.h; tests cite them as "path.h U2".
 */
#ifndef CX_RULES_API_H
#define CX_RULES_API_H

#include "rules/assets.h"
#include "rules/clock.h"
#include "rules/lex.h"
#include "rules/path.h"
#include "rules/run.h"
#include "rules/schemas.h"
#include "rules/tests_report.h"
#include "rules/tests_report_parts.h"
#include "rules/unicode.h"
#include "rules/token.h"

#endif
