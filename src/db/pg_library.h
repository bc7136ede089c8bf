/*
 * pg_library.h - the functions of libpq that are used, found at run time.
 */
#ifndef CX_DB_PG_LIBRARY_H
#define CX_DB_PG_LIBRARY_H

#include <postgresql/libpq-fe.h>

#include "base/api.h"

#define CX_PG_FUNCTIONS(X)  \
    X(PQclear)              \
    X(PQcmdTuples)          \
    X(PQconnectdbParams)    \
    X(PQconsumeInput)       \
    X(PQenterPipelineMode)  \
    X(PQerrorMessage)       \
    X(PQexec)               \
    X(PQexitPipelineMode)   \
    X(PQfinish)             \
    X(PQfnumber)            \
    X(PQgetisnull)          \
    X(PQgetlength)          \
    X(PQgetResult)          \
    X(PQgetvalue)           \
    X(PQisBusy)             \
    X(PQnfields)            \
    X(PQntuples)            \
    X(PQpipelineStatus)     \
    X(PQpipelineSync)       \
    X(PQputCopyData)        \
    X(PQputCopyEnd)         \
    X(PQresultErrorField)   \
    X(PQresultStatus)       \
    X(PQsendPrepare)        \
    X(PQsendQuery)          \
    X(PQsendQueryPrepared)  \
    X(PQsetNoticeProcessor) \
    X(PQsetNoticeReceiver)  \
    X(PQsetSingleRowMode)   \
    X(PQsocket)             \
    X(PQstatus)             \
    X(PQtransactionStatus)

typedef struct cx_pg_library {
#define CX_PG_POINTER(name) __typeof__(name) *name;
    CX_PG_FUNCTIONS(CX_PG_POINTER)
#undef CX_PG_POINTER
} cx_pg_library;

CX_RESULT cx_pg_library_load(cx_pg_library *out, cx_err *err);

#endif
