/*
 * schema.h - JSON Schema: documents that say which JSON is acceptable, compiled once, checked
 * often.
 *
 * Draft 2020-12 with the vocabularies core, applicator, unevaluated, validation, meta-data, format
 * and content; and draft-07.  docs/formats/schema.md says what is supported and what is not.
 *
 *     cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
 *     CX_TRY_GOTO(status, cx_schema_compile(&options, &document, &schema, err));
 *     cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
 *     CX_TRY_GOTO(status, cx_schema_check(schema, &instance, &how, arena, &report, err));
 *     if (!report.valid) ... report.errors ...
 *     cx_schema_close(schema);
 *
 * That an instance does not match is a report, never an error.  Errors say that there is no answer:
 * the schema is none (CX_E_FORMAT), needs what is not here (CX_E_NOT_FOUND, CX_E_UNSUPPORTED), or a
 * limit was passed (CX_E_LIMIT).  A caller that guards something refuses on both.
 */
#ifndef CX_SCHEMA_SCHEMA_H
#define CX_SCHEMA_SCHEMA_H

#include "json/api.h"

typedef struct cx_schema cx_schema;

typedef enum cx_schema_draft { CX_SCHEMA_2020_12, CX_SCHEMA_DRAFT_07 } cx_schema_draft;

/*
 * Finds another document by its absolute URI (no fragment).  The value is pushed into `arena`,
 * which lives as long as the schema; CX_E_NOT_FOUND when there is none.  The meta-schemas of both
 * drafts are always found without asking.
 */
typedef cx_status (*cx_schema_find)(void *arg, cx_str uri, cx_arena *arena, cx_json *out,
                                    cx_err *err);

typedef struct cx_schema_options {
    cx_schema_draft draft; /* of a document without "$schema" */
    /* Strict: a keyword that no vocabulary knows, a reference out of the document, a pattern or
     * reference that does not resolve, and a schema that refers to itself without moving on in the
     * instance refuse the schema.  Otherwise unknown keywords are ignored, as the drafts say. */
    bool strict;
    cx_schema_find find; /* NULL: no other documents; never asked when strict */
    void *find_arg;
    cx_str base_uri;        /* of the document, where it has no "$id"; may be empty */
    uint32_t nodes_max;     /* subschemas, of all documents together */
    uint32_t documents_max; /* that are found */
    const cx_alloc *alloc;
} cx_schema_options;

#define CX_SCHEMA_OPTIONS_INIT                                           \
    {                                                                    \
        CX_SCHEMA_2020_12, true, NULL, NULL, {NULL, 0}, 100000, 64, NULL \
    }

/*
 * Compiles a document.  `document` is copied; nothing of it needs to live on.  The result is
 * immutable: any number of threads may check with it at once.
 */
CX_RESULT cx_schema_compile(const cx_schema_options *options, const cx_json *document,
                            cx_schema **out, cx_err *err);
void cx_schema_close(cx_schema *schema);

/* What "format" does: nothing; assert date-time, as every gate does (run.md §2); or assert each
 * format that is known. */
typedef enum cx_schema_format {
    CX_SCHEMA_FORMAT_NONE,
    CX_SCHEMA_FORMAT_DATE_TIME,
    CX_SCHEMA_FORMAT_ALL
} cx_schema_format;

typedef struct cx_schema_check_options {
    cx_schema_format format;
    uint32_t errors_max; /* 0: only whether it is valid, which is faster */
    uint32_t depth_max;  /* of subschemas within each other, references counted */
    uint64_t steps_max;  /* keywords applied and values compared */
} cx_schema_check_options;

/* As a gate checks. */
#define CX_SCHEMA_CHECK_INIT                           \
    {                                                  \
        CX_SCHEMA_FORMAT_DATE_TIME, 32, 1024, 20000000 \
    }

typedef struct cx_schema_error {
    cx_str instance;     /* JSON pointer of the value that does not match; "" is the whole */
    cx_str schema;       /* where the keyword stands: "#/properties/a/type", or with its document's
                            URI in front when that is another one */
    const char *keyword; /* "type", "required", ..; "false" for a schema that is false */
    cx_str message;      /* one sentence: what was found, what was expected */
} cx_schema_error;

typedef struct cx_schema_report {
    bool valid;
    bool cut; /* there were more than errors_max */
    const cx_schema_error *errors;
    size_t error_count;
} cx_schema_report;

/* The report lives in the arena. */
CX_RESULT cx_schema_check(const cx_schema *schema, const cx_json *instance,
                          const cx_schema_check_options *options, cx_arena *arena,
                          cx_schema_report *out, cx_err *err);

#endif
