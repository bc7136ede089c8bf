/*
 * view_images.c - the images in what a node's event holds, as bytes (docs/formats/view.md).
 *
 *   I1  An image is where a message of an agent has one: {"type":"image","source":{"data"}} of
 *       Anthropic, {"type":"image","data"} of MCP, image_url and input_image of OpenAI with a
 *       data: URL, inlineData of Gemini, url of OpenCode.  Addresses elsewhere are never fetched.
 *   I2  What it is, its first bytes say, and never the record: PNG, JPEG, GIF and WebP are
 *       pictures, all else (SVG, for one, which could hold a script) is a file.
 *   I3  The event is walked in its own order, at most IMAGES_MAX of IMAGE_TEXT_MAX each are listed;
 *       data that was listed before (records repeat it) is left out.
 */
#include "lattice/answer.h"
#include "view/view_internal.h"

#define IMAGES_MAX CX_LATTICE_VIEW_IMAGES_MAX
#define IMAGE_TEXT_MAX ((size_t)24 << 20)
#define HEAD_BYTES 16u

typedef struct images {
    cx_str data[IMAGES_MAX]; /* base64 */
    uint32_t count;
    const cx_alloc *alloc;
    CX_VEC(const cx_json *) waiting; /* values that were not looked at yet, the next one last */
} images;

static void note_data(images *found, cx_str data)
{
    if (data.size < HEAD_BYTES || data.size > IMAGE_TEXT_MAX || found->count == IMAGES_MAX)
        return;
    for (uint32_t i = 0; i < found->count; i++)
        if (cx_str_eq(found->data[i], data))
            return;
    found->data[found->count++] = data;
}

/* data:image/png;base64,.. */
static void note_url(images *found, cx_str url)
{
    static const char marker[] = ";base64,";
    if (!cx_str_starts(url, CX_STR("data:")))
        return;
    size_t head = url.size < 256 ? url.size : 256;
    const char *at = memmem(url.data, head, marker, sizeof marker - 1);
    if (at == NULL)
        return;
    size_t from = (size_t)(at - url.data) + sizeof marker - 1;
    note_data(found, cx_str_from(url.data + from, url.size - from));
}

static const cx_json *object_in(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

/* I1 */
static void note_object(images *found, const cx_json *value)
{
    cx_str type = CX_JSON_GET_STR(value, "type");
    const cx_json *source = object_in(value, "source"), *url = object_in(value, "image_url");
    const cx_json *inline_data = object_in(value, "inlineData");
    if (inline_data == NULL)
        inline_data = object_in(value, "inline_data");
    if (cx_str_is(type, "image") && source != NULL)
        note_data(found, CX_JSON_GET_STR(source, "data"));
    if (cx_str_is(type, "image"))
        note_data(found, CX_JSON_GET_STR(value, "data"));
    note_url(found, CX_JSON_GET_STR(value, "image_url"));
    if (url != NULL)
        note_url(found, CX_JSON_GET_STR(url, "url"));
    if (cx_str_is(type, "image") || cx_str_is(type, "file"))
        note_url(found, CX_JSON_GET_STR(value, "url"));
    if (inline_data != NULL)
        note_data(found, CX_JSON_GET_STR(inline_data, "data"));
}

static cx_status put_children(images *found, const cx_json *value, cx_err *err)
{
    bool is_array = value->type == CX_JSON_ARRAY;
    for (uint32_t i = value->count; i-- > 0;) {
        const cx_json *child = is_array ? &value->items[i] : &value->members[i].value;
        if (child->type != CX_JSON_ARRAY && child->type != CX_JSON_OBJECT)
            continue;
        const cx_json **slot = cx_vec_push(&found->waiting, found->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = child;
    }
    return CX_SUCCESS;
}

/* I3.  No recursion: the depth is the sender's. */
static cx_status find_images(images *found, const cx_json *event, cx_err *err)
{
    const cx_json *at = event;
    while (found->count < IMAGES_MAX) {
        if (at->type == CX_JSON_OBJECT)
            note_object(found, at);
        CX_TRY(put_children(found, at, err));
        if (found->waiting.count == 0)
            break;
        at = found->waiting.items[--found->waiting.count];
    }
    return CX_SUCCESS;
}

/* I2 */
static cx_view_picture picture_of(cx_bytes head)
{
    static const struct {
        cx_view_picture picture;
        uint8_t at, size;
        const char *bytes;
    } known[] = {{CX_VIEW_PNG, 0, 8, "\x89PNG\r\n\x1a\n"},
                 {CX_VIEW_JPEG, 0, 3, "\xff\xd8\xff"},
                 {CX_VIEW_GIF, 0, 6, "GIF87a"},
                 {CX_VIEW_GIF, 0, 6, "GIF89a"},
                 {CX_VIEW_WEBP, 8, 4, "WEBP"}};
    for (size_t i = 0; i < CX_COUNT_OF(known); i++)
        if (head.size >= (size_t)known[i].at + known[i].size &&
            memcmp(head.data + known[i].at, known[i].bytes, known[i].size) == 0 &&
            (known[i].picture != CX_VIEW_WEBP || memcmp(head.data, "RIFF", 4) == 0))
            return known[i].picture;
    return CX_VIEW_NO_PICTURE;
}

/* Of the first bytes alone; text that is no base64 is no picture. */
static cx_view_picture picture_in(cx_str data, cx_buf *scratch)
{
    cx_buf_clear(scratch);
    if (!cx_base64_decode_either(cx_str_from(data.data, HEAD_BYTES), scratch))
        return CX_VIEW_NO_PICTURE;
    return picture_of(cx_buf_bytes(scratch));
}

cx_status cx_lattice_view_put_images(cx_buf *out, const cx_lattice_view *view, const cx_json *event,
                                     cx_err *err)
{
    static const char *const types[] = {"other", "png", "jpeg", "gif", "webp"};
    images found = {.alloc = view->lattice->alloc};
    cx_buf scratch;
    cx_buf_init(&scratch, found.alloc);
    cx_status status = find_images(&found, event, err);
    for (uint32_t i = 0; !cx_failed(status) && i < found.count; i++)
        cx_buf_printf(out, "%s{\"size\":%zu,\"type\":\"%s\"}", i == 0 ? ",\"pictures\":[" : ",",
                      found.data[i].size / 4 * 3, types[picture_in(found.data[i], &scratch)]);
    if (!cx_failed(status) && found.count != 0)
        cx_buf_add_byte(out, ']');
    cx_vec_done(&found.waiting, found.alloc);
    cx_buf_done(&scratch);
    return status;
}

static cx_status decode_image(cx_buf *out, const cx_json *event, const cx_lattice_view *view,
                              uint32_t index, cx_view_picture *out_picture, cx_err *err)
{
    images found = {.alloc = view->lattice->alloc};
    cx_status status = find_images(&found, event, err);
    if (!cx_failed(status) && index >= found.count)
        status =
            cx_fail_at(err, CX_E_NOT_FOUND, "NoImage", CX_NO_OFFSET,
                       "the event has %lu images, numbered from 0", (unsigned long)found.count);
    else if (!cx_failed(status) && !cx_base64_decode_either(found.data[index], out))
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoImage", CX_NO_OFFSET,
                            "the data of this image is no base64, so there is nothing to show");
    if (!cx_failed(status)) {
        *out_picture = picture_of(cx_buf_bytes(out));
        status = cx_buf_check(out, err);
    }
    cx_vec_done(&found.waiting, found.alloc);
    return status;
}

cx_status cx_lattice_view_image(cx_buf *out, const cx_lattice_view *view, cx_node which,
                                uint32_t index, cx_view_picture *out_picture, cx_err *err)
{
    cx_arena arena;
    cx_json source;
    cx_arena_init(&arena, view->lattice->alloc, 0);
    cx_status status = cx_lattice_source(view->lattice, which, &arena, &source, err);
    const cx_json *event =
        cx_failed(status) ? NULL : cx_json_get_typed(&source, CX_STR("event"), CX_JSON_OBJECT);
    if (event != NULL)
        status = decode_image(out, event, view, index, out_picture, err);
    else if (!cx_failed(status))
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoImage", CX_NO_OFFSET, "this node has no event");
    cx_arena_done(&arena);
    return status;
}
