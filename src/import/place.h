/*
 * place.h - how far the reader of a text is whose records depend on all that comes before them, so
 * that reading can go on from there (docs/formats/imports.md §1.16).
 *
 *     cx_import_place place = {0};                       before the first byte
 *     cx_import_place_read(&place, piece);               pieces may be cut anywhere,
 *                                                        but for a byte order mark
 *     cx_import_place end = place;
 *     cx_import_place_end(&end);                         what it comes to if the text ends here
 *
 * Whether Aider's own lines end in two blanks is known at the end of a text: a place has both ways
 * of reading what came before it.
 */
#ifndef CX_IMPORT_PLACE_H
#define CX_IMPORT_PLACE_H

#include "base/api.h"

/* Of a line that a piece cuts, this much is kept: what a line is shows in its first and last bytes,
 * and a line with a time is not longer. */
#define CX_IMPORT_LINE_HEAD 64
#define CX_IMPORT_LINE_TAIL 3
/* Kinds of blocks, with none. */
#define CX_IMPORT_BLOCK_KINDS 5

typedef struct cx_import_reading {
    bool fenced;
    uint8_t kind;             /* of the block that is open */
    uint64_t records;         /* begun; the last of them is the open block, if one is */
    uint64_t conversations;   /* begun */
    bool has_time, has_first; /* the last time, and the first one */
    int64_t t_ns, first_ns;
    bool has_own; /* the open block has a time, which counts from its end on */
    int64_t own_ns;
} cx_import_reading;

typedef enum cx_import_text_is {
    CX_IMPORT_TEXT_UNKNOWN,
    CX_IMPORT_TEXT_TIMED, /* its first line is that of a prompt, if `+` follows */
    CX_IMPORT_TEXT_HISTORY,
    CX_IMPORT_TEXT_PROMPTS
} cx_import_text_is;

typedef struct cx_import_place {
    uint64_t lines;               /* that ended */
    bool own_ends;                /* a prompt was seen that ends as Aider ends its lines */
    bool lost;                    /* a line was cut that must be known whole */
    uint8_t text;                 /* cx_import_text_is */
    cx_import_reading reading[2]; /* [1]: own lines end in two blanks */
    /* The line that has begun: its size, whether a byte of it but the last is no blank, its first
     * bytes, and its last. */
    uint64_t cut;
    bool cut_filled;
    uint8_t head[CX_IMPORT_LINE_HEAD], tail[CX_IMPORT_LINE_TAIL];
} cx_import_place;

/* A text of the format is read by places. */
bool cx_import_has_places(const char *format);

void cx_import_place_read(cx_import_place *place, cx_bytes bytes);
void cx_import_place_end(cx_import_place *place);
/* Records can be told from places: the text is a history, and no line is unknown. */
bool cx_import_place_is_usable(const cx_import_place *end);
/* The way to read a text that ends there. */
static inline const cx_import_reading *cx_import_place_reading(const cx_import_place *place,
                                                               const cx_import_place *end)
{
    return &place->reading[end->own_ends];
}

/* Nothing of the text is in it.  False: it cannot be said without, and nothing is appended. */
bool cx_import_place_encode(const cx_import_place *place, cx_buf *out);
/* The same of any place, to compare it with another. */
void cx_import_place_write(const cx_import_place *place, cx_buf *out);
/* CX_E_FORMAT when it is no place. */
CX_RESULT cx_import_place_decode(cx_bytes bytes, cx_import_place *out, cx_err *err);

/* Bytes of a text from a place on. */
typedef struct cx_import_segment {
    size_t at;
    cx_import_place place;
} cx_import_segment;

#endif
