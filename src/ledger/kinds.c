/*
 * kinds.c - the dotted entry kinds of this program (kinds.h).
 */
#include "ledger/kinds.h"

#include "crypto/api.h"

static const char *const names[CX_KIND_COUNT] = {
#define CX_KIND_NAME(id, name, writer, readers) [id] = name,
    CX_KINDS(CX_KIND_NAME)
#undef CX_KIND_NAME
};

cx_str cx_kinds_name(cx_dotted_kind kind)
{
    CX_ASSERT(kind < CX_KIND_COUNT);
    return cx_str_z(names[kind]);
}

cx_dotted_kind cx_kinds_of(cx_str name)
{
    for (cx_dotted_kind kind = 0; kind < CX_KIND_COUNT; kind++)
        if (cx_str_is(name, names[kind]))
            return kind;
    return CX_KIND_COUNT;
}

bool cx_kinds_is(cx_str name, cx_dotted_kind kind)
{
    CX_ASSERT(kind < CX_KIND_COUNT);
    return cx_str_is(name, names[kind]);
}

bool cx_kinds_journal_is_own(cx_str actor)
{
    static const char *const journals[] = {"trust",    "batches", "alerts",   "otel",
                                           "sessions", "holds",   "erasures", "consents"};
    static const char *const prefixes[] = {
        "run:", "key:", "home:", "session:", "exec:", "gateway:", "fleet:"};
    for (size_t i = 0; i < CX_COUNT_OF(journals); i++)
        if (cx_str_is(actor, journals[i]))
            return true;
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++)
        if (cx_str_starts(actor, cx_str_z(prefixes[i])))
            return true;
    return false;
}

cx_id cx_run_entry_subject(const char *type, cx_str run_id, const cx_digest *sha256)
{
    cx_id id;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, type, strlen(type) + 1);
    cx_sha256_add(&hash, run_id.data, run_id.size);
    if (sha256 != NULL)
        cx_sha256_add(&hash, sha256->bytes, sizeof sha256->bytes);
    const cx_digest digest = cx_sha256_end(&hash);
    memcpy(id.bytes, digest.bytes, sizeof id.bytes);
    return id;
}
