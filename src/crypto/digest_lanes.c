/*
 * digest_lanes.c - filling the lanes of a SHA-256 kernel with messages of any length.
 *
 * A lane goes through up to three segments of its message: the first block, where that has to be
 * put together from two pieces; whole blocks as they lie; the padded tail.
 */
#include "crypto/internal.h"

enum { BLOCK = CX_DIGEST_BLOCK_SIZE };

typedef struct lane {
    const uint8_t *data;
    size_t block_count; /* left in the segment at `data` */
    const uint8_t *body;
    size_t body_count; /* blocks of `body` still to come after this segment */
    size_t tail_count; /* .. and then of `tail` */
    size_t message;    /* whose digest this will be */
    bool running;
    uint8_t first[BLOCK];
    uint8_t tail[CX_DIGEST_TAIL_SIZE_MAX];
} lane;

typedef struct lane_feed {
    const cx_digest_lanes *kernel;
    const cx_digest_messages *messages;
    cx_digest *out;
    size_t next; /* message */
    size_t running_count;
    lane lanes[CX_DIGEST_LANES_MAX];
    uint32_t states[8 * CX_DIGEST_LANES_MAX];
} lane_feed;

static uint32_t *lane_state(lane_feed *f, size_t index)
{
    return f->states + index * f->kernel->lane_stride;
}

/* False when the message has no more. */
static bool next_segment(lane *l)
{
    bool body = l->body_count != 0;
    l->data = body ? l->body : l->tail;
    l->block_count = body ? l->body_count : l->tail_count;
    if (body)
        l->body_count = 0;
    else
        l->tail_count = 0;
    return l->block_count != 0;
}

/* The piece before the body makes the first block with some of it.  Returns how much that takes. */
static size_t join_first_block(lane *l, cx_bytes head, cx_bytes body)
{
    size_t left = BLOCK - head.size, taken = body.size < left ? body.size : left;
    memcpy(l->first, head.data, head.size);
    if (taken != 0)
        memcpy(l->first + head.size, body.data, taken);
    return taken;
}

static void cut_message(lane *l, const cx_digest_pieces *message)
{
    cx_bytes head = message->head, body = message->body;
    size_t size = head.size + body.size;
    CX_DEBUG_ASSERT(head.size < BLOCK);
    l->block_count = 0;
    if (head.size != 0) {
        size_t taken = join_first_block(l, head, body);
        if (size >= BLOCK) {
            l->data = l->first;
            l->block_count = 1;
            body = cx_bytes_from(body.data + taken, body.size - taken);
        } else {
            body = cx_bytes_from(l->first, size);
        }
    }
    l->body = body.data;
    l->body_count = body.size / BLOCK;
    const uint8_t *rest = body.size % BLOCK == 0 ? NULL : body.data + l->body_count * BLOCK;
    l->tail_count = cx_digest_make_tail(rest, size, l->tail);
    if (l->block_count == 0)
        (void)next_segment(l);
}

/* Gives a lane the next message, or stops it when there is none. */
static void refill_lane(lane_feed *f, size_t index)
{
    lane *l = &f->lanes[index];
    l->running = f->next < f->messages->count;
    if (!l->running)
        return;
    const cx_digest_pieces message = cx_digest_message_at(f->messages, f->next);
    l->message = f->next++;
    cut_message(l, &message);
    for (size_t i = 0; i < 8; i++)
        lane_state(f, index)[i * f->kernel->word_stride] = cx_digest_first_state[i];
    f->running_count++;
}

static void finish_lane(lane_feed *f, size_t index)
{
    f->out[f->lanes[index].message] =
        cx_digest_of_state(lane_state(f, index), f->kernel->word_stride);
    f->running_count--;
}

/* All lanes over as many blocks as the one with the fewest has left. */
static void advance_lanes(lane_feed *f)
{
    const uint8_t *data[CX_DIGEST_LANES_MAX];
    size_t step = SIZE_MAX, some = 0;
    for (size_t i = 0; i < f->kernel->lane_count; i++) {
        if (f->lanes[i].running && f->lanes[i].block_count < step) {
            step = f->lanes[i].block_count;
            some = i;
        }
    }
    /* A lane without work repeats the work of another; its state is not read. */
    for (size_t i = 0; i < f->kernel->lane_count; i++)
        data[i] = f->lanes[f->lanes[i].running ? i : some].data;
    f->kernel->compress(f->states, data, step);
    for (size_t i = 0; i < f->kernel->lane_count; i++) {
        lane *l = &f->lanes[i];
        if (!l->running)
            continue;
        l->data += step * BLOCK;
        l->block_count -= step;
        if (l->block_count == 0 && !next_segment(l)) {
            finish_lane(f, i);
            refill_lane(f, i);
        }
    }
}

/* The last messages, too few to be worth a wide kernel. */
static void finish_alone(lane_feed *f, size_t index)
{
    lane *l = &f->lanes[index];
    uint32_t state[8];
    for (size_t i = 0; i < 8; i++)
        state[i] = lane_state(f, index)[i * f->kernel->word_stride];
    do
        f->kernel->compress_one(state, l->data, l->block_count);
    while (next_segment(l));
    f->out[l->message] = cx_digest_of_state(state, 1);
}

void cx_digest_lanes_many(const cx_digest_lanes *lanes, const cx_digest_messages *messages,
                          cx_digest *out)
{
    CX_ASSERT(lanes->lane_count <= CX_DIGEST_LANES_MAX && lanes->worth_count >= 1);
    lane_feed f;
    f.kernel = lanes;
    f.messages = messages;
    f.out = out;
    f.next = f.running_count = 0;
    memset(f.states, 0, sizeof f.states);
    for (size_t i = 0; i < lanes->lane_count; i++)
        refill_lane(&f, i);
    while (f.running_count >= lanes->worth_count)
        advance_lanes(&f);
    for (size_t i = 0; i < lanes->lane_count; i++) {
        if (f.lanes[i].running)
            finish_alone(&f, i);
    }
}
