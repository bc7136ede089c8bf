/*
 * sensitive - finds secrets and personal data in text, JSON and JSON Lines, and masks them in
 * place.
 *
 * Knows nothing of records, the ledger or where bytes come from.
 */
#ifndef CX_SENSITIVE_API_H
#define CX_SENSITIVE_API_H

#include "sensitive/sensitive.h"

#endif
