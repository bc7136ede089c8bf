/*
 * internal.h - shared by the calls of this module: record keys, reading records, one write
 * transaction.
 */
#ifndef CX_MEMORY_INTERNAL_H
#define CX_MEMORY_INTERNAL_H

#include "base/api.h"
#include "memory/forms.h"
#include "memory/memory.h"
#include "memory/words.h"

struct cx_memory {
    const cx_alloc *alloc;
    cx_home *home;
    cx_memory_options options;
    size_t actor_size;
    char actor[CX_ACTOR_SIZE_MAX];
};

cx_str cx_memory_actor(const cx_memory *memory);
static inline size_t cx_memory_ranked_max(const cx_memory *memory)
{
    return memory->options.ranked_max != 0 ? memory->options.ranked_max : 65536;
}
int64_t cx_memory_now(const cx_memory *memory);
/* Seconds, towards the past (§2). */
int64_t cx_memory_seconds(int64_t ns);

/* --- keys (§5) ------------------------------------------------------------------------------- */

/* Fits the longest key: chk/ with two names and their separator. */
#define CX_MEMORY_KEY_SIZE_MAX (4 + 1 + CX_COMPACT_NAME_MAX + 2 + CX_COMPACT_NAME_MAX)

typedef struct cx_memory_key {
    size_t size;
    uint8_t data[CX_MEMORY_KEY_SIZE_MAX];
} cx_memory_key;

static inline cx_bytes cx_memory_key_bytes(const cx_memory_key *key)
{
    return (cx_bytes){key->data, key->size};
}

void cx_memory_key_begin(cx_memory_key *key, const char *prefix);
void cx_memory_key_add(cx_memory_key *key, const void *data, size_t size);
void cx_memory_key_u64(cx_memory_key *key, uint64_t value);
/* `prefix` and the id: m/, tomb/, salience/, vec/meta/, idx/at/. */
cx_memory_key cx_memory_key_of(const char *prefix, const cx_id *id);
cx_memory_key cx_memory_key_version(const cx_id *id, uint64_t version);
/* e/from/<src><type><dst>, or e/to/<dst><type><src>. */
cx_memory_key cx_memory_key_edge(const cx_edge_name *name, bool to);
cx_memory_key cx_memory_key_checkpoint(cx_str intent, cx_str step);
/* The bucket of a rate limit: letter 'a' for attestations of an intent ("", intent), 'v' for
 * violations (granted_to, granted_by). */
#define CX_MEMORY_RATE_KEY "idx/rate/"
cx_memory_key cx_memory_key_rate(char letter, cx_str first, cx_str second);
uint64_t cx_memory_get_u64(const uint8_t *data);
void cx_memory_put_u64(uint8_t *out, uint64_t value);

#define CX_MEMORY_WEIGHTS_KEY "meta/salience_weights"
#define CX_MEMORY_VERTEX_KEY "meta/embed_vertex_next"
/* .. and the model's name: the dimension of its vectors. */
#define CX_MEMORY_DIM_KEY "meta/embed_dim/"
#define CX_MODEL_SIZE_MAX 255

/* --- reading: in a transaction, now, or at a retained snapshot -------------------------------- */

typedef struct cx_memory_source {
    cx_memory *memory;
    cx_arena *arena;            /* results live here */
    cx_txn *txn;                /* NULL = outside a transaction */
    const cx_scope_use *pinned; /* reads the records of its snapshot; NULL = current ones */
} cx_memory_source;

/* An actor that does not exist has no records.  Erased records are not found. */
CX_RESULT cx_memory_fetch(const cx_memory_source *from, cx_bytes key, cx_bytes *out,
                          bool *out_found, cx_err *err);
/* Scans current records; finds nothing for an actor that does not exist. */
typedef cx_status cx_memory_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err);
CX_RESULT cx_memory_scan(cx_memory *memory, cx_bytes prefix, cx_bytes from, cx_memory_row *row,
                         void *arg, cx_err *err);
/* .. descending, from `from` down where it is not empty. */
CX_RESULT cx_memory_scan_back(cx_memory *memory, cx_bytes prefix, cx_bytes from, cx_memory_row *row,
                              void *arg, cx_err *err);

typedef struct cx_memory_head {
    cx_head head;
    cx_bytes bytes;
} cx_memory_head;

CX_RESULT cx_memory_find_head(const cx_memory_source *from, const cx_id *id, cx_memory_head *out,
                              bool *out_found, cx_err *err);
/* NotFound; TypeMismatch when type is not 0 and differs. */
CX_RESULT cx_memory_need_head(const cx_memory_source *from, const cx_id *id, uint8_t type,
                              cx_memory_head *out, cx_err *err);
/* The head that a URI names; the URI's version must exist. */
CX_RESULT cx_memory_need_uri(const cx_memory_source *from, const cx_uri *uri, cx_memory_head *out,
                             cx_err *err);
CX_RESULT cx_memory_need_version(const cx_memory_source *from, const cx_id *id, uint64_t version,
                                 cx_version_record *out, cx_err *err);
CX_RESULT cx_memory_find_salience(const cx_memory_source *from, const cx_id *id, cx_salience *out,
                                  bool *out_found, cx_err *err);
/* The record, or the default when it is absent. */
CX_RESULT cx_memory_salience_at(const cx_memory_source *from, const cx_head *head, cx_salience *out,
                                cx_err *err);
CX_RESULT cx_memory_weights_at(const cx_memory_source *from, cx_weights_record *out, cx_err *err);
/* A memory is valid through its last second. */
bool cx_memory_is_expired(const cx_version_record *version, int64_t now_ns);
/* The view of head and the version that it names. */
CX_RESULT cx_memory_make_view(const cx_memory_source *from, const cx_memory_head *head,
                              uint64_t version, cx_memory_view *out, cx_err *err);

/* --- one call that writes --------------------------------------------------------------------- */

/*
 * CX_TRY(cx_memory_begin(memory, &call, err));
 *     return cx_memory_end(&call, body(&call, .., err), err);
 */
typedef struct cx_memory_call {
    cx_memory_source from; /* reads inside the transaction */
    cx_memory *memory;
    cx_txn *txn;
    cx_arena *arena; /* the transaction's arena */
    bool wrote;      /* an entry was begun */
    bool requested;  /* .. or that of its request alone */
    uint64_t seq;    /* of the first one */
    bool keep;       /* .. that is committed even if the call is refused */
    bool has_now;
    int64_t now; /* nanoseconds; see cx_memory_call_now */
    cx_buf buf;  /* for encoding */
} cx_memory_call;

CX_RESULT cx_memory_begin(cx_memory *memory, cx_memory_call *out, cx_err *err);
/*
 * Commits when an entry was written and the call succeeded (or `keep` is set); otherwise aborts.
 * Returns `status`, or the commit's failure.
 */
CX_RESULT cx_memory_end(cx_memory_call *call, cx_status status, cx_err *err);
/* Reads the clock the first time. */
int64_t cx_memory_call_now(cx_memory_call *call);

/* CX_E_DENIED "RateLimited" when the bucket is empty. */
CX_RESULT cx_memory_rate_check(cx_memory_call *call, char letter, cx_rate rate, cx_str first,
                               cx_str second, cx_err *err);
/* For cx_memory_request (request.c): whether it was carried out before, and that it is now. */
CX_RESULT cx_memory_request_begin(cx_memory_call *call, cx_err *err);
CX_RESULT cx_memory_request_end(cx_memory_call *call, cx_err *err);
#define CX_MEMORY_REQUEST_KEY "idx/request/" /* .. and the hash of sender and key: the payload */

#define CX_MEMORY_SENT_KEY "idx/scope/" /* .. and the hash of a scope that was sent (sent.c) */

/* Begins the call's entry.  `subject` NULL: the entry is not about one memory. */
CX_RESULT cx_memory_put_entry(cx_memory_call *call, const cx_payload *payload, cx_str by,
                              const cx_id *subject, uint64_t *out_seq, cx_err *err);
/* `erasable` is false for what RedactMemory leaves. */
CX_RESULT cx_memory_put_head(cx_memory_call *call, const cx_head *head, bool erasable, cx_err *err);
CX_RESULT cx_memory_put_version(cx_memory_call *call, const cx_version_record *version,
                                bool erasable, cx_err *err);
CX_RESULT cx_memory_put_record(cx_memory_call *call, const cx_memory_key *key, cx_bytes value,
                               bool erasable, cx_err *err);
/* H(Head CBOR), without a domain (§3). */
CX_RESULT cx_memory_hash_head(cx_memory_call *call, const cx_head *head, cx_digest *out,
                              cx_err *err);
/* Marks the head dead and writes tomb/; the caller puts the head. */
CX_RESULT cx_memory_bury(cx_memory_call *call, cx_head *head, cx_str reason, cx_str by,
                         bool erasable, cx_err *err);
CX_RESULT cx_memory_new_blind(cx_memory_call *call, cx_id *out, cx_err *err);

/* Journals a violation, within the rate limit, and fails with the error of its reason: "violation"
 * ScopeViolation, "not_writable" NotWritable. */
CX_RESULT cx_memory_violation(cx_memory_call *call, const cx_scope_use *scope, const cx_id *id,
                              const char *reason, const char *mode, cx_err *err);
CX_RESULT cx_memory_scope_alive(const cx_scope_use *scope, int64_t now_ns, cx_err *err);
/* Whether a grantee may write this memory: it is one that its scope allows, the scope is writable
 * and has not ended.  Else the violation is journaled. */
CX_RESULT cx_memory_scope_writes(cx_memory_call *call, const cx_scope_use *scope,
                                 const cx_head *head, cx_err *err);

/* --- searching ------------------------------------------------------------------------------- */

/*
 * Passes the matches of `find` to a callback in order, one by one; the caller applies `limit` and
 * budget.  A match that the callback does not take uses no arena memory.
 */
typedef struct cx_memory_search {
    cx_memory *memory;
    const cx_memory_find *find;
    int64_t now; /* nanoseconds */
    cx_arena *arena;
    cx_status (*hit)(void *arg, const cx_memory_hit *hit, bool *out_take, bool *out_stop,
                     cx_err *err);
    /* Whether `hit` could take a memory with this head now or later: what it cannot is not
     * ranked. */
    bool (*may)(void *arg, const cx_head *head);
    void *arg;
} cx_memory_search;
CX_RESULT cx_memory_search_run(const cx_memory_search *search, cx_err *err);

/* Hits as they come, and as an array in an arena. */
typedef struct cx_memory_hits {
    const cx_alloc *alloc;
    CX_VEC(cx_memory_hit) items;
} cx_memory_hits;
CX_RESULT cx_memory_hits_add(cx_memory_hits *hits, const cx_memory_hit *hit, cx_err *err);
CX_RESULT cx_memory_hits_copy(const cx_memory_hits *hits, cx_arena *arena,
                              const cx_memory_hit **out, size_t *out_count, cx_err *err);
void cx_memory_hits_done(cx_memory_hits *hits);

/* idx/word/<word>00<id>: empty; idx/words/<id>: the words of that memory (derive.c). */
#define CX_MEMORY_WORD_KEY "idx/word/"
#define CX_MEMORY_WORDS_KEY "idx/words/"
/* The words of a version's data and forms, united; of an erased one none. */
CX_RESULT cx_memory_version_words(const cx_version_record *version, cx_words *words, cx_err *err);

/* --- checking what callers hand in ----------------------------------------------------------- */

/* InvalidArgument: not UTF-8, or not min..max bytes. */
CX_RESULT cx_memory_check_text(cx_str text, const char *what, size_t min, size_t max, cx_err *err);
CX_RESULT cx_memory_check_tags(const cx_str *tags, size_t count, cx_err *err);
CX_RESULT cx_memory_check_frames(const cx_frame *frames, size_t count, cx_err *err);
CX_RESULT cx_memory_check_levels(uint8_t importance, uint8_t visibility, cx_err *err);
/* Must be called inside the transaction: references are looked up. */
CX_RESULT cx_memory_check_provenance(const cx_memory_source *from, const cx_provenance *provenance,
                                     cx_err *err);
static inline cx_str cx_memory_or(cx_str text, cx_str otherwise)
{
    return text.size != 0 ? text : otherwise;
}

#endif
