/*
 * rules - what the gates of a run have in common: paths, words of a shell, text, clocks, findings.
 *
 * Knows nothing of git, sandboxes and contracts.
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
