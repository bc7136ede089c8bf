/*
 * page.c - the page of an evidence file: a function of its data, byte for byte
 * (docs/formats/evidence.md).
 *
 *   P1  No clock, locale, address or hash seed reaches the page: the same data gives the same bytes
 *       on every machine.  A change here is a change of the format.
 *   P2  Every text from the data goes through cx_html_text or cx_html_block.
 *   P3  The page runs and fetches nothing: no script, no link, no picture, and a policy that
 *       forbids them.
 *   P4  The page is bounded; it says what was left out, which is in the data.
 */
#include "cbor/api.h"
#include "crypto/api.h"
#include "evidence/evidence.h"
#include "evidence/html.h"
#include "json/api.h"

typedef struct page {
    const cx_evidence *e;
    cx_buf *out;
    cx_arena arena;
    size_t shown; /* bytes of texts so far */
    cx_status status;
} page;

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1f;background:#fff}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #bbb}"
    "pre,code,td{font-family:ui-monospace,monospace;font-size:.85rem}"
    "pre{background:#f3f3f6;padding:.7rem;overflow-x:auto;white-space:pre-wrap;"
    "overflow-wrap:anywhere}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;"
    "padding:.2rem .6rem .2rem 0;border-bottom:1px solid #ddd;overflow-wrap:anywhere}"
    ".note{border:2px solid #8a5a00;background:#fff7e6;padding:.7rem 1rem}"
    "b{color:#a00000}dt{font-weight:600}dd{margin:0 0 .4rem 1.2rem;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6ea;background:#16161a}"
    "pre{background:#22222a}.note{background:#2a2213;border-color:#c98a1b}b{color:#ff8a80}"
    "td,th{border-color:#3a3a44}h2{border-color:#55555f}}";

/* --- pieces ----------------------------------------------------------------------------------- */

static void add_raw(page *p, const char *markup)
{
    cx_buf_add_z(p->out, markup);
}

static void add_heading(page *p, const char *title, const char *explanation)
{
    cx_buf_printf(p->out, "<h2>%s</h2>\n<p>%s</p>\n", title, explanation);
}

/* P4: what has been shown counts, rows of tables too. */
static void spend_budget(page *p, size_t size)
{
    size_t left = CX_EVIDENCE_SHOWN_ALL_MAX - p->shown;
    p->shown += size < left ? size : left;
}

/* A text on one line; a longer one than LINE_MAX is cut between characters. */
#define LINE_MAX 4096
static void add_words(page *p, cx_str text)
{
    size_t size = text.size < LINE_MAX ? text.size : LINE_MAX;
    while (size < text.size && size != 0 && ((uint8_t)text.data[size] & 0xc0) == 0x80)
        size--;
    spend_budget(p, size);
    cx_html_text(p->out, cx_str_from(text.data, size));
    if (size < text.size)
        add_raw(p, " <b>..</b>");
}

static void add_term(page *p, const char *name, cx_str value)
{
    cx_buf_printf(p->out, "<dt>%s</dt><dd>", name);
    add_words(p, value);
    add_raw(p, "</dd>\n");
}

static void add_term_hex(page *p, const char *name, const void *bytes, size_t size)
{
    cx_buf_printf(p->out, "<dt>%s</dt><dd><code>", name);
    cx_html_hex(p->out, bytes, size);
    add_raw(p, "</code></dd>\n");
}

/* P4 */
static void add_block(page *p, cx_str text)
{
    size_t space = CX_EVIDENCE_SHOWN_ALL_MAX - p->shown;
    size_t size = text.size < CX_EVIDENCE_SHOWN_MAX ? text.size : CX_EVIDENCE_SHOWN_MAX;
    size = size < space ? size : space;
    spend_budget(p, size);
    add_raw(p, "<pre>");
    cx_html_block(p->out, cx_str_from(text.data, size));
    add_raw(p, "</pre>\n");
    if (size < text.size)
        cx_buf_printf(p->out,
                      "<p><b>%zu more bytes are in the data at the end of this file.</b></p>\n",
                      text.size - size);
}

static bool is_text(cx_bytes bytes)
{
    for (size_t i = 0; i < bytes.size && i < 4096; i++)
        if (bytes.data[i] < 9 || (bytes.data[i] > 13 && bytes.data[i] < 32))
            return false;
    return true;
}

/* False for text that is not JSON, or nested deeper than any of ours; running out of memory must
 * not look like that (P1).  Indenting deep nesting would take unbounded memory. */
#define DEPTH_MAX 128
static bool parse_json(page *p, cx_str text, cx_json *out)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser parser;
    limits.depth = DEPTH_MAX;
    cx_json_parser_init(&parser, p->out->alloc, &limits);
    cx_status status = cx_json_parse(&parser, text, &p->arena, out, NULL);
    cx_json_parser_done(&parser);
    if (status.code == CX_E_NOMEM)
        p->status = status;
    return !cx_failed(status);
}

static bool add_pretty(page *p, const cx_json *value, cx_buf *out)
{
    cx_status status = cx_json_write_pretty(out, value, 0, NULL);
    if (status.code == CX_E_NOMEM || out->failed)
        p->status = (cx_status){CX_E_NOMEM};
    return !cx_failed(status);
}

/* JSON indented, other text as it is, bytes in hex. */
static void add_content(page *p, cx_bytes bytes)
{
    cx_json value;
    cx_buf text;
    cx_str add_words = cx_bytes_str(bytes);
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    cx_buf_init(&text, p->out->alloc);
    bool json = bytes.size != 0 && bytes.size <= 4 * CX_EVIDENCE_SHOWN_MAX &&
                (bytes.data[0] == '{' || bytes.data[0] == '[') &&
                parse_json(p, add_words, &value) && add_pretty(p, &value, &text);
    if (json) {
        add_block(p, cx_buf_str(&text));
    } else if (is_text(bytes)) {
        add_block(p, add_words);
    } else {
        cx_buf_clear(&text);
        cx_hex_add(&text, cx_bytes_from(bytes.data, bytes.size < 4096 ? bytes.size : 4096));
        add_block(p, cx_buf_str(&text));
        if (bytes.size > 4096)
            add_raw(p, "<p><b>The rest is in the data at the end of this file.</b></p>\n");
    }
    if (text.failed)
        p->status = (cx_status){CX_E_NOMEM};
    cx_buf_done(&text);
    cx_arena_reset(&p->arena, mark);
}

static const cx_evidence_file *file_named(const cx_evidence *e, const char *path)
{
    for (size_t i = 0; i < e->file_count; i++)
        if (cx_str_is(e->files[i].path, path))
            return &e->files[i];
    return NULL;
}

/* The entry in an inclusion proof; false when it cannot be read. */
static bool entry_of(page *p, const cx_evidence_entry *entry, cx_inclusion *proof, cx_entry *out)
{
    cx_status status = cx_inclusion_decode(entry->inclusion, &p->arena, proof, NULL);
    if (status.code == CX_E_NOMEM)
        p->status = status;
    return !cx_failed(status) && proof->entry.size != 0 &&
           !cx_failed(cx_entry_decode(proof->entry, out, NULL));
}

/* --- sections --------------------------------------------------------------------------------- */

static void add_head(page *p)
{
    cx_digest digest = cx_digest_of(cx_bytes_from(style, sizeof style - 1));
    add_raw(p, "<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
               "content=\"default-src 'none'; style-src 'sha256-");
    cx_base64_add(p->out, cx_bytes_from(digest.bytes, sizeof digest.bytes), CX_BASE64);
    add_raw(p, "'; base-uri 'none'; form-action 'none'\">\n"
               "<meta name=\"referrer\" content=\"no-referrer\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    add_raw(p, "Evidence: ");
    cx_html_text(p->out, p->e->kind);
    add_raw(p, " ");
    cx_html_text(p->out, p->e->id);
    add_raw(p, "</title>\n<style>");
    add_raw(p, style);
    add_raw(p, "</style>\n</head>\n<body>\n");
}

static void add_beginning(page *p)
{
    add_raw(p, "<h1>Evidence: ");
    cx_html_text(p->out, p->e->kind);
    add_raw(p, "</h1>\n<dl>\n");
    add_term(p, "about", p->e->id);
    add_raw(p, "<dt>made</dt><dd>");
    cx_html_time(p->out, p->e->made_at_ns);
    add_raw(
        p,
        ", as its maker says</dd>\n</dl>\n"
        "<div class=\"note\"><p>A browser checks nothing. This page is made from the data at the "
        "end of the file, and</p>\n<pre>cortex-verify --key KEY FILE</pre>\n<p>makes it again, "
        "compares every byte, and says whether the entries below stand in journals that somebody "
        "signed whose key you have from elsewhere. Until then, take it for what a stranger told "
        "you.</p></div>\n");
}

static void add_commit(page *p)
{
    if (p->e->commit.size == 0)
        return;
    add_heading(p, "The commit",
                "The object that git keeps under this name: the name is the hash of these bytes.");
    add_block(p, cx_bytes_str(p->e->commit));
}

/* One component of a decision: its name, and the agent's data. */
static void add_component(page *p, const cx_json *one)
{
    cx_buf text;
    const cx_json *data = CX_JSON_GET(one, "data");
    add_raw(p, "<tr><td>");
    add_words(p, CX_JSON_GET_STR(one, "component_type"));
    add_raw(p, "<br>");
    add_words(p, CX_JSON_GET_STR(one, "event_type"));
    add_raw(p, "</td><td>");
    add_words(p, CX_JSON_GET_STR(one, "timestamp"));
    add_raw(p, "</td><td>");
    cx_buf_init(&text, p->out->alloc);
    if (data != NULL && add_pretty(p, data, &text))
        add_block(p, cx_buf_str(&text));
    cx_buf_done(&text);
    add_raw(p, "</td></tr>\n");
}

/* The canonical forms hold the components as an array, or inside an object. */
static void add_decision(page *p, const cx_evidence_trace *trace)
{
    cx_json value;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    add_raw(p, "<dl>\n");
    add_term(p, "signed with the key called", trace->key_id);
    add_term_hex(p, "signature", trace->signature.bytes, sizeof trace->signature.bytes);
    add_raw(p, "</dl>\n");
    bool read = parse_json(p, cx_bytes_str(trace->canonical), &value);
    const cx_json *components = !read                         ? NULL
                                : value.type == CX_JSON_ARRAY ? &value
                                                              : CX_JSON_GET(&value, "components");
    if (components != NULL && components->type == CX_JSON_ARRAY && components->count <= 256) {
        add_raw(p, "<table>\n");
        for (uint32_t i = 0; i < components->count; i++)
            add_component(p, &components->items[i]);
        add_raw(p, "</table>\n");
    }
    add_raw(p, "<details><summary>The bytes that were signed</summary>\n");
    add_block(p, cx_bytes_str(trace->canonical));
    add_raw(p, "</details>\n");
    cx_arena_reset(&p->arena, mark);
}

static void add_decisions(page *p)
{
    if (p->e->trace_count == 0)
        return;
    add_heading(
        p, "Decisions",
        "What agents said about themselves and signed. A signature shows who said it, not that "
        "it is so.");
    for (size_t i = 0; i < p->e->trace_count; i++)
        add_decision(p, &p->e->traces[i]);
}

static void memory(page *p, const cx_evidence_memory *memory)
{
    cx_version_record version;
    cx_status status;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    add_raw(p, "<dl>\n");
    add_term(p, "memory", memory->uri);
    if (memory->version.size == 0) {
        add_raw(p, "<dt>content</dt><dd><b>erased, or not shown</b></dd>\n");
    } else if (cx_failed(status = cx_version_decode(memory->version, &p->arena, &version, NULL))) {
        if (status.code == CX_E_NOMEM)
            p->status = status;
        add_raw(p, "<dt>content</dt><dd><b>cannot be read</b></dd>\n");
    } else {
        add_term(p, "says", version.forms.medium);
        add_term(p, "written by", version.created_by);
        add_raw(p, "<dt>at</dt><dd>");
        cx_html_time(p->out, version.created_at > INT64_MAX / 1000000000 ||
                                     version.created_at < INT64_MIN / 1000000000
                                 ? 0
                                 : version.created_at * 1000000000);
        add_raw(p, "</dd>\n");
        add_term(p, "source", version.provenance.source);
        for (size_t i = 0; i < version.provenance.derived_count; i++)
            add_term(p, "derived from", version.provenance.derived_from[i]);
        add_term_hex(p, "version hash", version.hash.bytes, sizeof version.hash.bytes);
    }
    add_raw(p, "</dl>\n");
    cx_arena_reset(&p->arena, mark);
}

static void memories(page *p)
{
    if (p->e->memory_count == 0)
        return;
    add_heading(p, "Memories", "What was recorded, and where its writer said that it came from.");
    for (size_t i = 0; i < p->e->memory_count; i++)
        memory(p, &p->e->memories[i]);
}

/* events.jsonl, a line a row. */
static void events(page *p, cx_str text)
{
    size_t number = 0;
    add_raw(p, "<h3>What happened</h3>\n<table>\n<tr><th>n</th><th>time</th><th>event</th>"
               "<th>payload</th></tr>\n");
    while (text.size != 0 && p->shown < CX_EVIDENCE_SHOWN_ALL_MAX) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        cx_str line = cx_str_from(text.data, size);
        size_t used = end == NULL ? size : size + 1;
        cx_arena_mark mark = cx_arena_mark_now(&p->arena);
        cx_json event;
        cx_buf payload;
        text = cx_str_from(text.data + used, text.size - used);
        cx_buf_init(&payload, p->out->alloc);
        cx_buf_printf(p->out, "<tr><td>%zu</td>", ++number);
        spend_budget(p, 64);
        bool read = parse_json(p, line, &event);
        const cx_json *value = read ? CX_JSON_GET(&event, "payload") : NULL;
        add_raw(p, "<td>");
        add_words(p, read ? CX_JSON_GET_STR(&event, "ts") : CX_STR(""));
        add_raw(p, "</td><td>");
        add_words(p, read ? CX_JSON_GET_STR(&event, "event_type") : CX_STR("?"));
        add_raw(p, "</td><td>");
        if (value != NULL && !cx_failed(cx_json_write(&payload, value, CX_JSON_PY_COMPACT, NULL))) {
            size_t most = payload.size < 2048 ? payload.size : 2048;
            spend_budget(p, most);
            cx_html_text(p->out, cx_str_from((const char *)payload.data, most));
            if (most < payload.size)
                add_raw(p, " <b>..</b>");
        }
        add_raw(p, "</td></tr>\n");
        if (payload.failed)
            p->status = (cx_status){CX_E_NOMEM};
        cx_buf_done(&payload);
        cx_arena_reset(&p->arena, mark);
    }
    add_raw(p, "</table>\n");
    if (text.size != 0)
        add_raw(p, "<p><b>More events are in the data at the end of this file.</b></p>\n");
}

static void add_bundle(page *p)
{
    static const char *const first[] = {"contract.json", "patch.diff"};
    static const char *const titles[] = {"What the agent was allowed to do", "What it changed"};
    const cx_evidence_file *file;
    if (p->e->file_count == 0)
        return;
    add_heading(
        p, "The run",
        "The files of the run's bundle. Their hashes are in its manifest, whose hash is in the "
        "entry that sealed the run.");
    for (size_t i = 0; i < CX_COUNT_OF(first); i++) {
        file = file_named(p->e, first[i]);
        if (file == NULL)
            continue;
        cx_buf_printf(p->out, "<h3>%s</h3>\n", titles[i]);
        add_content(p, file->bytes);
    }
    file = file_named(p->e, "events.jsonl");
    if (file != NULL)
        events(p, cx_bytes_str(file->bytes));
    add_raw(p, "<h3>All files</h3>\n");
    for (size_t i = 0; i < p->e->file_count; i++) {
        file = &p->e->files[i];
        add_raw(p, "<details><summary>");
        cx_html_text(p->out, file->path);
        cx_buf_printf(p->out, ", %zu bytes</summary>\n", file->bytes.size);
        add_content(p, file->bytes);
        add_raw(p, "</details>\n");
    }
}

/* --- a session of a coding agent -------------------------------------------------------------- */

/* The effects of a call, each on a line. */
static void add_effects(page *p, const cx_json *payload)
{
    const cx_json *effects = cx_json_get_typed(payload, CX_STR("effects"), CX_JSON_ARRAY);
    for (uint32_t i = 0; effects != NULL && i < effects->count; i++) {
        add_raw(p, "<br>");
        add_words(p, CX_JSON_GET_STR(&effects->items[i], "text"));
    }
}

/* What a decision said, with its rule and reason; of other entries what they are. */
static void add_told(page *p, cx_str kind, const cx_json *payload)
{
    const cx_json *call = cx_json_get_typed(payload, CX_STR("call"), CX_JSON_OBJECT);
    add_words(p, call == NULL ? CX_JSON_GET_STR(payload, "event") : CX_JSON_GET_STR(call, "tool"));
    add_effects(p, payload);
    add_raw(p, "</td><td>");
    if (!cx_str_is(kind, "live.decision")) {
        cx_html_text(p->out, cx_str_from(kind.data + 5, kind.size - 5));
        add_raw(p, " ");
        add_words(p, CX_JSON_GET_STR(payload, "outcome"));
        add_words(p, CX_JSON_GET_STR(payload, "by"));
        return;
    }
    add_words(p, CX_JSON_GET_STR(payload, "verdict"));
    add_raw(p, " ");
    add_words(p, CX_JSON_GET_STR(payload, "rule"));
    add_raw(p, " ");
    add_words(p, CX_JSON_GET_STR(payload, "reason"));
}

static void add_session_row(page *p, size_t number)
{
    const cx_evidence_entry *e = &p->e->entries[number];
    cx_inclusion proof;
    cx_entry decoded;
    cx_json payload;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    bool read = entry_of(p, e, &proof, &decoded) && cx_str_starts(decoded.kind, CX_STR("live.")) &&
                e->salt != NULL && parse_json(p, cx_bytes_str(e->payload), &payload) &&
                payload.type == CX_JSON_OBJECT;
    if (read) {
        spend_budget(p, 64);
        cx_buf_printf(p->out, "<tr><td>%llu</td><td>", (unsigned long long)decoded.seq);
        cx_html_time(p->out, decoded.created_at_ns);
        add_raw(p, "</td><td>");
        add_told(p, decoded.kind, &payload);
        add_raw(p, "</td></tr>\n");
    }
    cx_arena_reset(&p->arena, mark);
}

static void add_session(page *p)
{
    if (!cx_str_is(p->e->kind, "session"))
        return;
    add_heading(p, "The session",
                "What the agent's hook reported before and after each call, and what was decided "
                "before the agent got its answer. A call without the hook has no entry.");
    add_raw(p, "<table>\n<tr><th>entry</th><th>time</th><th>call</th><th>decision</th></tr>\n");
    for (size_t i = 0; i < p->e->entry_count && p->shown < CX_EVIDENCE_SHOWN_ALL_MAX; i++)
        add_session_row(p, i);
    add_raw(p, "</table>\n");
}

/* --- entries and journals --------------------------------------------------------------------- */

static void entry(page *p, size_t number)
{
    const cx_evidence_entry *e = &p->e->entries[number];
    cx_inclusion proof;
    cx_entry decoded;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    add_raw(p, "<tr><td>");
    cx_html_text(p->out, p->e->journals[e->journal].actor);
    add_raw(p, "</td>");
    if (!entry_of(p, e, &proof, &decoded)) {
        add_raw(p, "<td><b>cannot be read</b></td><td></td><td></td></tr>\n");
        cx_arena_reset(&p->arena, mark);
        return;
    }
    cx_digest leaf = cx_scheme_entry(proof.entry);
    cx_buf_printf(p->out, "<td>%llu</td><td>", (unsigned long long)decoded.seq);
    cx_html_text(p->out, decoded.kind);
    add_raw(p, "<br>");
    cx_html_time(p->out, decoded.created_at_ns);
    add_raw(p, "</td><td><code>");
    cx_html_hex(p->out, leaf.bytes, sizeof leaf.bytes);
    add_raw(p, "</code>");
    if (decoded.committed && e->salt == NULL)
        add_raw(p, "<br><b>its content was erased, or is not shown</b>");
    cx_bytes body = decoded.committed ? e->payload : decoded.payload;
    if (body.size != 0) {
        add_raw(p, "<details><summary>content</summary>\n");
        add_content(p, body);
        add_raw(p, "</details>");
    }
    add_raw(p, "</td></tr>\n");
    cx_arena_reset(&p->arena, mark);
}

static void entries(page *p)
{
    add_heading(
        p, "Entries",
        "What the ledger recorded. Each stands, by its proof in the data, in a journal below.");
    add_raw(p, "<table>\n<tr><th>journal</th><th>entry</th><th>kind</th><th>leaf hash</th></tr>\n");
    for (size_t i = 0; i < p->e->entry_count; i++)
        entry(p, i);
    add_raw(p, "</table>\n");
}

static void journals(page *p)
{
    add_heading(
        p, "Journals",
        "Where each journal was when this file was made. A signature of a key that you know ends "
        "any doubt about what came before.");
    for (size_t i = 0; i < p->e->journal_count; i++) {
        const cx_evidence_journal *j = &p->e->journals[i];
        add_raw(p, "<dl>\n");
        add_term(p, "journal", j->actor);
        cx_buf_printf(p->out, "<dt>entries</dt><dd>%llu</dd>\n", (unsigned long long)j->point.size);
        add_term_hex(p, "root", j->point.root.bytes, sizeof j->point.root.bytes);
        add_raw(p, "</dl>\n");
        if (j->checkpoint.size != 0)
            add_block(p, cx_bytes_str(j->checkpoint));
        else
            add_raw(p, "<p><b>Nobody signed it.</b></p>\n");
    }
}

/* Absent in a file without one: its page is what it was. */
static void homes(page *p)
{
    if (p->e->home_count == 0)
        return;
    add_heading(
        p, "Home root",
        "One root over all journals of the data directory that this comes from. A signature "
        "of a key that you know ends any doubt about a journal up to there.");
    for (size_t i = 0; i < p->e->home_count; i++) {
        const cx_evidence_home *home = &p->e->homes[i];
        cx_home_proof proof;
        cx_home_leaf leaf;
        cx_arena_mark mark = cx_arena_mark_now(&p->arena);
        add_raw(p, "<dl>\n");
        add_term(p, "journal", p->e->journals[home->journal].actor);
        cx_status status = cx_home_proof_decode(home->proof, &p->arena, &proof, NULL);
        if (status.code == CX_E_NOMEM)
            p->status = status;
        bool read = !cx_failed(status) && !cx_failed(cx_home_leaf_decode(proof.leaf, &leaf, NULL));
        if (read)
            cx_buf_printf(p->out, "<dt>entries under it</dt><dd>%llu</dd>\n",
                          (unsigned long long)leaf.size);
        add_raw(p, "</dl>\n");
        if (read)
            add_block(p, cx_bytes_str(proof.checkpoint));
        else
            add_raw(p, "<p><b>It cannot be read.</b></p>\n");
        cx_arena_reset(&p->arena, mark);
    }
}

static void keys(page *p)
{
    if (p->e->key_count == 0)
        return;
    add_heading(
        p, "Keys",
        "As the maker of this file says. Compare them with what you have from elsewhere; a key "
        "that came with the evidence proves nothing.");
    add_raw(p, "<table>\n<tr><th>name</th><th>for</th><th>public key</th></tr>\n");
    for (size_t i = 0; i < p->e->key_count; i++) {
        add_raw(p, "<tr><td>");
        cx_html_text(p->out, p->e->keys[i].id);
        add_raw(p, "</td><td>");
        cx_html_text(p->out, p->e->keys[i].role);
        add_raw(p, "</td><td><code>");
        cx_html_hex(p->out, p->e->keys[i].key.bytes, sizeof p->e->keys[i].key.bytes);
        add_raw(p, "</code></td></tr>\n");
    }
    add_raw(p, "</table>\n");
}

cx_status cx_evidence_page(const cx_evidence *evidence, cx_buf *out, cx_err *err)
{
    page p = {.e = evidence, .out = out, .status = CX_SUCCESS};
    cx_arena_init(&p.arena, out->alloc, 0);
    add_head(&p);
    add_beginning(&p);
    add_commit(&p);
    add_decisions(&p);
    memories(&p);
    add_bundle(&p);
    add_session(&p);
    entries(&p);
    journals(&p);
    homes(&p);
    keys(&p);
    cx_arena_done(&p.arena);
    if (cx_failed(p.status))
        return cx_fail_nomem(err);
    return cx_buf_check(out, err);
}
