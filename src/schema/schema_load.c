/*
 * schema_load.c - documents, the schemas in them, and what they are called.
 *
 *   L1  A node exists for each value that stands where a keyword puts a schema, and for nothing
 *       else until a reference names it.
 *   L2  "places" maps base URIs to resources, and URI#name to anchors; the first claim of a name
 *       wins, and strict loading refuses the second.
 */
#include <stdarg.h>
#include <stdio.h>

#include "schema/schema_internal.h"

#define DEPTH_MAX 1024   /* of brackets in a document */
#define META_CHAIN_MAX 8 /* "$schema" of the "$schema" of .. */

/* --- keeping nodes ---------------------------------------------------------------------------- */

void schema_loader_init(schema_loader *loader, cx_schema *schema, const cx_schema_options *options,
                        cx_err *err)
{
    *loader = (schema_loader){.schema = schema, .arena = &schema->arena, .options = options};
    loader->err = err;
    cx_map_init(&loader->nodes, &schema->alloc, 0x736368656d61);
    cx_map_init(&loader->places, &schema->alloc, (uint64_t)(uintptr_t)schema);
}

void schema_loader_done(schema_loader *loader)
{
    cx_map_done(&loader->nodes);
    cx_map_done(&loader->places);
    cx_vec_done(&loader->order, &loader->schema->alloc);
}

schema_node *schema_node_of(const schema_loader *loader, const cx_json *value)
{
    uint64_t *found = cx_map_find(&loader->nodes, cx_str_from((const char *)&value, sizeof value));
    return found == NULL ? NULL : (schema_node *)(uintptr_t)*found;
}

static void add_token(cx_buf *out, cx_str token)
{
    cx_json_pointer_add(out, token);
}

void schema_node_location(const schema_node *node, cx_buf *out)
{
    /* From the root down: the chain is turned around step by step, it is as long as a schema is
     * deep. */
    const schema_node *chain[DEPTH_MAX + 1];
    size_t count = 0;
    for (; node != NULL && count <= DEPTH_MAX; node = node->parent)
        chain[count++] = node;
    while (count-- > 0) {
        node = chain[count];
        if (node->parent == NULL) {
            cx_buf_add_str(out, node->location);
            continue;
        }
        add_token(out, cx_str_z(node->keyword));
        if (node->token.data != NULL)
            add_token(out, node->token);
    }
}

cx_status schema_refuse(const schema_loader *loader, const schema_node *node, cx_code code,
                        const char *format, ...)
{
    char text[CX_ERR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cx_buf place;
    cx_buf_init(&place, &loader->schema->alloc);
    schema_node_location(node, &place);
    cx_status status = cx_buf_check(&place, loader->err);
    if (!cx_failed(status))
        status =
            cx_fail_at(loader->err, code, "SchemaRefused", CX_NO_OFFSET, "the schema at %.*s %s",
                       (int)(place.size > 160 ? 160 : place.size), (const char *)place.data, text);
    cx_buf_done(&place);
    return status;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Enters `node` as URI or URI#anchor; L2. */
static cx_status register_uri(schema_loader *loader, schema_node *node, cx_str uri, cx_str anchor)
{
    cx_str key = uri;
    if (anchor.data != NULL)
        key = cx_arena_printf(loader->arena, "%.*s#%.*s", (int)uri.size, uri.data, (int)anchor.size,
                              anchor.data);
    if (key.data == NULL)
        key = cx_arena_copy_str(loader->arena, key);
    if (key.data == NULL)
        return cx_fail_nomem(loader->err);
    uint64_t *value;
    bool is_new;
    CX_TRY(cx_map_put(&loader->places, key, &value, &is_new, loader->err));
    if (is_new)
        *value = (uint64_t)(uintptr_t)node;
    else if (*value != (uint64_t)(uintptr_t)node && loader->options->strict)
        return schema_refuse(loader, node, CX_E_FORMAT,
                             "has a name that another one has too: \"%.*s\"", (int)key.size,
                             key.data);
    return CX_SUCCESS;
}

static schema_node *find_place(const schema_loader *loader, cx_str key)
{
    uint64_t *found = cx_map_find(&loader->places, key);
    return found == NULL ? NULL : (schema_node *)(uintptr_t)*found;
}

/* --- dialects --------------------------------------------------------------------------------- */

static cx_status load_text(schema_loader *loader, cx_str text, cx_json *out)
{
    char *copy = cx_arena_push(loader->arena, text.size, 1);
    if (copy == NULL)
        return cx_fail_nomem(loader->err);
    for (size_t i = 0; i < text.size; i++)
        copy[i] = text.data[i] == '\'' ? '"' : text.data[i];
    cx_json_parser parser;
    cx_json_parser_init(&parser, &loader->schema->alloc, NULL);
    cx_status status =
        cx_json_parse(&parser, cx_str_from(copy, text.size), loader->arena, out, loader->err);
    cx_json_parser_done(&parser);
    return status;
}

/* A document that is not the one being compiled. */
static cx_status load_document(schema_loader *loader, const schema_node *from, cx_str uri,
                               const cx_json **out)
{
    cx_json *root = CX_ARENA_NEW(loader->arena, cx_json);
    cx_str text = schema_meta_text(uri);
    const cx_schema_options *options = loader->options;
    if (root == NULL)
        return cx_fail_nomem(loader->err);
    if (++loader->documents > options->documents_max)
        return schema_refuse(loader, from, CX_E_LIMIT, "needs more than %u other documents",
                             (unsigned)options->documents_max);
    if (text.data != NULL) {
        CX_TRY(load_text(loader, text, root));
    } else {
        cx_status status = {CX_E_NOT_FOUND};
        if (options->find != NULL)
            status = options->find(options->find_arg, uri, loader->arena, root, loader->err);
        if (status.code == CX_E_NOT_FOUND)
            return schema_refuse(loader, from, CX_E_NOT_FOUND,
                                 "refers to \"%.*s\", which was not given", (int)uri.size,
                                 uri.data);
        CX_TRY(status);
    }
    *out = root;
    return CX_SUCCESS;
}

static cx_str without_empty_fragment(cx_str uri)
{
    if (uri.size != 0 && uri.data[uri.size - 1] == '#')
        uri.size--;
    return uri;
}

static cx_status read_vocabularies(schema_loader *loader, const schema_node *from,
                                   const cx_json *list, unsigned *out)
{
    static const struct {
        const char *name;
        unsigned vocabulary;
    } KNOWN[] = {
        {"core", VOCABULARY_CORE},
        {"applicator", VOCABULARY_APPLICATOR},
        {"unevaluated", VOCABULARY_UNEVALUATED},
        {"validation", VOCABULARY_VALIDATION},
        {"meta-data", VOCABULARY_META_DATA},
        {"format-annotation", VOCABULARY_FORMAT},
        {"format", VOCABULARY_FORMAT}, /* 2019-09 */
        {"format-assertion", VOCABULARY_FORMAT | VOCABULARY_FORMAT_ASSERTION},
        {"content", VOCABULARY_CONTENT},
    };
    static const char *const PREFIXES[] = {"https://json-schema.org/draft/2020-12/vocab/",
                                           "https://json-schema.org/draft/2019-09/vocab/"};
    unsigned sum = VOCABULARY_CORE;
    for (uint32_t i = 0; i < list->count; i++) {
        cx_str uri = cx_json_text(&list->members[i].name);
        cx_str name = {NULL, 0};
        unsigned vocabulary = 0;
        for (size_t k = 0; k < sizeof PREFIXES / sizeof *PREFIXES; k++)
            if (cx_str_starts(uri, cx_str_z(PREFIXES[k])))
                name = cx_str_from(uri.data + strlen(PREFIXES[k]), uri.size - strlen(PREFIXES[k]));
        for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++)
            if (cx_str_is(name, KNOWN[k].name))
                vocabulary = KNOWN[k].vocabulary;
        if (vocabulary == 0 && list->members[i].value.type == CX_JSON_TRUE)
            return schema_refuse(loader, from, CX_E_UNSUPPORTED,
                                 "requires the vocabulary \"%.*s\", which is not known",
                                 (int)uri.size, uri.data);
        sum |= vocabulary;
    }
    /* 2019-09 has the unevaluated keywords among the applicators. */
    if ((sum & VOCABULARY_APPLICATOR) != 0 && from->resource->dialect == DIALECT_2019_09)
        sum |= VOCABULARY_UNEVALUATED;
    *out = sum;
    return CX_SUCCESS;
}

/* What "$schema" at a resource's root says. */
static cx_status read_dialect(schema_loader *loader, const schema_node *node, cx_str uri)
{
    static const struct {
        const char *uri;
        schema_dialect dialect;
    } KNOWN[] = {
        {"https://json-schema.org/draft/2020-12/schema", DIALECT_2020_12},
        {"https://json-schema.org/draft/2019-09/schema", DIALECT_2019_09},
        {"http://json-schema.org/draft-07/schema", DIALECT_07},
        {"https://json-schema.org/draft-07/schema", DIALECT_07},
    };
    schema_resource *resource = node->resource;
    const cx_json *vocabularies = NULL;
    for (unsigned i = 0; i < META_CHAIN_MAX; i++) {
        uri = without_empty_fragment(uri);
        for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++)
            if (cx_str_is(uri, KNOWN[k].uri)) {
                resource->dialect = KNOWN[k].dialect;
                resource->vocabularies = VOCABULARY_ALL;
                return vocabularies == NULL
                           ? CX_SUCCESS
                           : read_vocabularies(loader, node, vocabularies, &resource->vocabularies);
            }
        if (loader->options->strict || loader->options->find == NULL)
            break;
        const cx_json *meta;
        CX_TRY(load_document(loader, node, uri, &meta));
        if (vocabularies == NULL)
            vocabularies = cx_json_get_typed(meta, CX_STR("$vocabulary"), CX_JSON_OBJECT);
        cx_str next = CX_JSON_GET_STR(meta, "$schema");
        if (next.data == NULL)
            break;
        uri = next;
    }
    return schema_refuse(loader, node, CX_E_UNSUPPORTED,
                         "is of a kind that is not read here: \"$schema\" is \"%.*s\"",
                         (int)uri.size, uri.data);
}

/* --- scanning --------------------------------------------------------------------------------- */

typedef struct scan_place {
    const schema_node *parent;
    const char *keyword;
    cx_str token;
    cx_str location;
    unsigned depth;
    bool is_root; /* of a document */
} scan_place;

static cx_status scan_value(schema_loader *loader, const cx_json *value, schema_resource *resource,
                            const scan_place *place, schema_node **out);

static cx_status scan_child(schema_loader *loader, const cx_json *value, const schema_node *node,
                            const char *keyword, cx_str token, unsigned depth)
{
    scan_place place = {node, keyword, token, {NULL, 0}, depth + 1, false};
    schema_node *ignored;
    return scan_value(loader, value, node->resource, &place, &ignored);
}

static cx_status scan_list(schema_loader *loader, const cx_json *list, const schema_node *node,
                           const char *keyword, unsigned depth)
{
    for (uint32_t i = 0; i < list->count; i++) {
        cx_str token = cx_arena_printf(loader->arena, "%u", (unsigned)i);
        if (token.data == NULL)
            return cx_fail_nomem(loader->err);
        CX_TRY(scan_child(loader, &list->items[i], node, keyword, token, depth));
    }
    return CX_SUCCESS;
}

static cx_status scan_map(schema_loader *loader, const cx_json *map, const schema_node *node,
                          const schema_keyword *keyword, unsigned depth)
{
    for (uint32_t i = 0; i < map->count; i++) {
        const cx_json *value = &map->members[i].value;
        if (keyword->children == CHILDREN_MAP_OR_STRINGS && value->type == CX_JSON_ARRAY)
            continue;
        CX_TRY(scan_child(loader, value, node, keyword->name, cx_json_text(&map->members[i].name),
                          depth));
    }
    return CX_SUCCESS;
}

static cx_status scan_children(schema_loader *loader, const schema_node *node, unsigned depth)
{
    const cx_json *object = node->source;
    for (uint32_t i = 0; i < object->count; i++) {
        cx_str name = cx_json_text(&object->members[i].name);
        const cx_json *value = &object->members[i].value;
        const schema_keyword *keyword = schema_keyword_find(node->resource, name);
        if (keyword == NULL) {
            if (loader->options->strict)
                return schema_refuse(loader, node, CX_E_FORMAT, "has an unknown keyword: \"%.*s\"",
                                     (int)(name.size > 64 ? 64 : name.size), name.data);
            continue;
        }
        unsigned children = keyword->children;
        if (children == CHILDREN_ONE_OR_LIST)
            children = value->type == CX_JSON_ARRAY ? CHILDREN_LIST : CHILDREN_ONE;
        if (children == CHILDREN_ONE)
            CX_TRY(scan_child(loader, value, node, keyword->name, cx_str_from(NULL, 0), depth));
        else if (children == CHILDREN_LIST && value->type == CX_JSON_ARRAY)
            CX_TRY(scan_list(loader, value, node, keyword->name, depth));
        else if ((children == CHILDREN_MAP || children == CHILDREN_MAP_OR_STRINGS) &&
                 value->type == CX_JSON_OBJECT)
            CX_TRY(scan_map(loader, value, node, keyword, depth));
        else if (children != CHILDREN_NONE)
            return schema_refuse(loader, node, CX_E_FORMAT, "has a \"%s\" that is %s %s",
                                 keyword->name,
                                 value->type == CX_JSON_INT || value->type == CX_JSON_ARRAY ||
                                         value->type == CX_JSON_OBJECT
                                     ? "an"
                                     : "a",
                                 cx_json_type_name(value));
    }
    return CX_SUCCESS;
}

static bool is_anchor(cx_str name)
{
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.data[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
        bool other = (byte >= '0' && byte <= '9') || byte == '-' || byte == '.';
        if (!letter && (i == 0 || !other))
            return false;
    }
    return name.size != 0;
}

static cx_status scan_anchors(schema_loader *loader, schema_node *node)
{
    static const char *const NAMES[] = {"$anchor", "$dynamicAnchor"};
    for (unsigned i = 0; i < 2; i++) {
        const cx_json *value = cx_json_get(node->source, cx_str_z(NAMES[i]));
        if (value == NULL || schema_keyword_find(node->resource, cx_str_z(NAMES[i])) == NULL)
            continue;
        if (value->type != CX_JSON_STRING || !is_anchor(cx_json_text(value)))
            return schema_refuse(loader, node, CX_E_FORMAT, "has a \"%s\" that is no plain name",
                                 NAMES[i]);
        CX_TRY(register_uri(loader, node, node->resource->base, cx_json_text(value)));
        if (i == 1) {
            schema_dynamic *dynamic = CX_ARENA_NEW(loader->arena, schema_dynamic);
            if (dynamic == NULL)
                return cx_fail_nomem(loader->err);
            node->dynamic_anchor = cx_json_text(value);
            *dynamic = (schema_dynamic){node->dynamic_anchor, node, node->resource->dynamics};
            node->resource->dynamics = dynamic;
        }
    }
    return CX_SUCCESS;
}

/* A resource of its own for a node that has an "$id", or is the root of a document. */
static cx_status scan_resource(schema_loader *loader, schema_node *node, cx_str id, cx_str base)
{
    const schema_resource *outer = node->resource;
    schema_resource *resource = CX_ARENA_NEW(loader->arena, schema_resource);
    if (resource == NULL)
        return cx_fail_nomem(loader->err);
    *resource = *outer;
    resource->dynamics = NULL;
    node->resource = resource;
    if (id.data != NULL) {
        cx_str whole, fragment;
        CX_TRY(schema_uri_resolve(base, id, loader->arena, &whole, loader->err));
        resource->base = schema_uri_split(whole, &fragment);
    }
    cx_str dialect = CX_JSON_GET_STR(node->source, "$schema");
    if (dialect.data != NULL)
        CX_TRY(read_dialect(loader, node, dialect));
    return register_uri(loader, node, resource->base, cx_str_from(NULL, 0));
}

static cx_status scan_id(schema_loader *loader, schema_node *node, bool is_root)
{
    const cx_json *value = CX_JSON_GET(node->source, "$id");
    cx_str id = {NULL, 0}, fragment = {NULL, 0}, uri = {NULL, 0};
    bool is_07 = node->resource->dialect == DIALECT_07;
    cx_str says = CX_JSON_GET_STR(node->source, "$schema");
    if (says.data != NULL && (is_root || value != NULL))
        is_07 = cx_str_ends(without_empty_fragment(says), CX_STR("/draft-07/schema"));
    if (value != NULL && value->type != CX_JSON_STRING && loader->options->strict)
        return schema_refuse(loader, node, CX_E_FORMAT, "has an \"$id\" that is no string");
    /* draft-07 ignores the members next to a "$ref". */
    if (value != NULL && value->type == CX_JSON_STRING &&
        !(is_07 && CX_JSON_GET(node->source, "$ref") != NULL)) {
        id = cx_json_text(value);
        uri = schema_uri_split(id, &fragment);
    }
    if (fragment.size != 0 && !is_07 && loader->options->strict)
        return schema_refuse(loader, node, CX_E_FORMAT, "has an \"$id\" with a fragment");
    if (is_root || (id.data != NULL && uri.size != 0))
        CX_TRY(scan_resource(loader, node, uri.size != 0 ? uri : cx_str_from(NULL, 0),
                             node->resource->base));
    if (fragment.size != 0 && is_07)
        CX_TRY(register_uri(loader, node, node->resource->base, fragment));
    return CX_SUCCESS;
}

static cx_status make_node(schema_loader *loader, const cx_json *value, schema_resource *resource,
                           const scan_place *place, schema_node **out)
{
    schema_node *node = CX_ARENA_NEW(loader->arena, schema_node);
    if (node == NULL)
        return cx_fail_nomem(loader->err);
    *node = (schema_node){.source = value,
                          .resource = resource,
                          .parent = place->parent,
                          .keyword = place->keyword,
                          .token = place->token,
                          .location = place->location};
    node->never = value->type == CX_JSON_FALSE;
    if (loader->order.count >= loader->options->nodes_max)
        return schema_refuse(loader, node, CX_E_LIMIT, "is one too many: there may be %u of them",
                             (unsigned)loader->options->nodes_max);
    schema_node **slot = cx_vec_push(&loader->order, &loader->schema->alloc);
    if (slot == NULL)
        return cx_fail_nomem(loader->err);
    *slot = node;
    uint64_t *entry;
    bool is_new;
    CX_TRY(cx_map_put(&loader->nodes, cx_str_from((const char *)&node->source, sizeof node->source),
                      &entry, &is_new, loader->err));
    *entry = (uint64_t)(uintptr_t)node;
    *out = node;
    return CX_SUCCESS;
}

static cx_status scan_value(schema_loader *loader, const cx_json *value, schema_resource *resource,
                            const scan_place *place, schema_node **out)
{
    schema_node *node = schema_node_of(loader, value);
    if (node != NULL) {
        *out = node;
        return CX_SUCCESS;
    }
    CX_TRY(make_node(loader, value, resource, place, &node));
    if (place->depth > DEPTH_MAX)
        return schema_refuse(loader, node, CX_E_LIMIT, "is nested more than %d deep", DEPTH_MAX);
    if (value->type == CX_JSON_OBJECT) {
        CX_TRY(scan_id(loader, node, place->is_root));
        CX_TRY(scan_anchors(loader, node));
        CX_TRY(scan_children(loader, node, place->depth));
    } else if (value->type != CX_JSON_TRUE && value->type != CX_JSON_FALSE) {
        return schema_refuse(loader, node, CX_E_FORMAT,
                             "is %s, where an object or a boolean is expected",
                             cx_json_type_name(value));
    }
    *out = node;
    return CX_SUCCESS;
}

cx_status schema_scan(schema_loader *loader, const cx_json *root, cx_str uri, bool is_main,
                      schema_node **out)
{
    schema_resource *resource = CX_ARENA_NEW(loader->arena, schema_resource);
    scan_place place = {.location = CX_STR("#"), .is_root = true};
    if (resource == NULL)
        return cx_fail_nomem(loader->err);
    *resource = (schema_resource){
        .base = uri,
        .dialect = loader->options->draft == CX_SCHEMA_DRAFT_07 ? DIALECT_07 : DIALECT_2020_12,
        .vocabularies = VOCABULARY_ALL};
    if (!is_main)
        place.location = cx_arena_printf(loader->arena, "%.*s#", (int)uri.size,
                                         uri.data == NULL ? "" : uri.data);
    if (place.location.data == NULL)
        return cx_fail_nomem(loader->err);
    schema_node *node;
    CX_TRY(scan_value(loader, root, resource, &place, &node));
    CX_TRY(register_uri(loader, node, uri, cx_str_from(NULL, 0)));
    *out = node;
    return CX_SUCCESS;
}

/* --- references ------------------------------------------------------------------------------- */

/* The next token of a JSON pointer, unescaped into the arena; *at is after it. */
static cx_status next_token(schema_loader *loader, cx_str pointer, size_t *at, cx_str *out)
{
    char *text = cx_arena_push(loader->arena, pointer.size + 1, 1);
    size_t size = 0;
    if (text == NULL)
        return cx_fail_nomem(loader->err);
    for (*at += 1; *at < pointer.size && pointer.data[*at] != '/'; *at += 1) {
        char byte = pointer.data[*at];
        if (byte == '~' && *at + 1 < pointer.size &&
            (pointer.data[*at + 1] == '0' || pointer.data[*at + 1] == '1'))
            byte = pointer.data[++*at] == '0' ? '~' : '/';
        text[size++] = byte;
    }
    *out = cx_str_from(text, size);
    return CX_SUCCESS;
}

static const cx_json *step_into(const cx_json *value, cx_str token)
{
    if (value->type == CX_JSON_OBJECT)
        return cx_json_get(value, token);
    if (value->type != CX_JSON_ARRAY || token.size == 0 || token.size > 9)
        return NULL;
    uint32_t index = 0;
    for (size_t i = 0; i < token.size; i++) {
        if (token.data[i] < '0' || token.data[i] > '9')
            return NULL;
        index = index * 10 + (uint32_t)(token.data[i] - '0');
    }
    bool plain = token.size == 1 || token.data[0] != '0';
    return plain && index < value->count ? &value->items[index] : NULL;
}

static cx_status unresolved_error(const schema_loader *loader, const schema_node *from,
                                  cx_str reference)
{
    return schema_refuse(loader, from, CX_E_NOT_FOUND, "refers to \"%.*s\", which is not there",
                         (int)(reference.size > 120 ? 120 : reference.size), reference.data);
}

/* From a resource's root along a JSON pointer; values of unknown keywords may be schemas too.
 */
static cx_status resolve_pointer(schema_loader *loader, const schema_node *from, schema_node *root,
                                 cx_str pointer, cx_str reference, schema_node **out)
{
    const cx_json *value = root->source;
    const schema_node *inside = root;
    size_t at = 0, inside_end = 0;
    while (at < pointer.size) {
        cx_str token = {NULL, 0};
        if (pointer.data[at] != '/')
            return unresolved_error(loader, from, reference);
        CX_TRY(next_token(loader, pointer, &at, &token));
        value = step_into(value, token);
        if (value == NULL)
            return unresolved_error(loader, from, reference);
        const schema_node *node = schema_node_of(loader, value);
        if (node != NULL) {
            inside = node;
            inside_end = at;
        }
    }
    *out = schema_node_of(loader, value);
    if (*out != NULL)
        return CX_SUCCESS;
    if (loader->options->strict)
        return schema_refuse(loader, from, CX_E_FORMAT, "refers to \"%.*s\", which is no schema",
                             (int)(reference.size > 120 ? 120 : reference.size), reference.data);
    cx_buf location;
    cx_buf_init(&location, &loader->schema->alloc);
    schema_node_location(inside, &location);
    cx_buf_add(&location, pointer.data + inside_end, pointer.size - inside_end);
    scan_place place = {0};
    cx_status status = cx_buf_check(&location, loader->err);
    if (!cx_failed(status)) {
        place.location = cx_arena_copy_str(loader->arena, cx_buf_str(&location));
        status = place.location.data == NULL
                     ? cx_fail_nomem(loader->err)
                     : scan_value(loader, value, inside->resource, &place, out);
    }
    cx_buf_done(&location);
    return status;
}

cx_status schema_resolve(schema_loader *loader, const schema_node *from, cx_str reference,
                         schema_node **out)
{
    cx_str whole, fragment;
    CX_TRY(schema_uri_resolve(from->resource->base, reference, loader->arena, &whole, loader->err));
    cx_str uri = schema_uri_split(whole, &fragment);
    schema_node *root = find_place(loader, uri);
    if (root == NULL) {
        const cx_json *document;
        if (loader->options->strict)
            return schema_refuse(loader, from, CX_E_FORMAT,
                                 "refers out of its document, to \"%.*s\"", (int)uri.size,
                                 uri.data);
        CX_TRY(load_document(loader, from, uri, &document));
        CX_TRY(schema_scan(loader, document, uri, false, &root));
    }
    if (fragment.size == 0) {
        *out = root;
        return CX_SUCCESS;
    }
    CX_TRY(schema_uri_decode(fragment, loader->arena, &fragment, loader->err));
    if (fragment.size != 0 && fragment.data[0] == '/')
        return resolve_pointer(loader, from, root, fragment, reference, out);
    /* An anchor belongs to its resource, whatever the document is called otherwise. */
    cx_str base = root->resource->base;
    cx_str key =
        cx_arena_printf(loader->arena, "%.*s#%.*s", (int)base.size,
                        base.data == NULL ? "" : base.data, (int)fragment.size, fragment.data);
    if (key.data == NULL)
        return cx_fail_nomem(loader->err);
    *out = find_place(loader, key);
    return *out != NULL ? CX_SUCCESS : unresolved_error(loader, from, reference);
}
