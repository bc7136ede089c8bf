/*
 * schema.c - compiling a document, and closing what was compiled.
 */
#include "schema/schema.h"

#include "schema/schema_quick.h"

/* --- circles ---------------------------------------------------------------------------------- */

typedef struct circle_step {
    schema_node *node;
    uint32_t test, edge;
} circle_step;

/* The next schema that is applied to the same value as the node itself; NULL after the last. */
static const schema_node *next_in_place(circle_step *step)
{
    while (step->test < step->node->test_count) {
        const schema_test *test = &step->node->tests[step->test];
        uint32_t edge = step->edge++;
        const schema_node *found = NULL;
        bool more = false;
        switch ((schema_kind)test->kind) {
        case TEST_REF:
        case TEST_DYNAMIC_REF: found = edge == 0 ? test->target : NULL; break;
        case TEST_NOT: found = edge == 0 ? test->node : NULL; break;
        case TEST_ALL_OF:
        case TEST_ANY_OF:
        case TEST_ONE_OF: found = edge < test->count ? test->nodes[edge] : NULL; break;
        case TEST_DEPENDENT_SCHEMA:
            found = edge < test->count ? test->dependencies[edge].node : NULL;
            more = edge < test->count;
            break;
        case TEST_IF:
            found = edge == 0 ? test->condition : edge == 1 ? test->then_node : NULL;
            found = edge == 2 ? test->else_node : found;
            more = edge < 3;
            break;
        default: break;
        }
        if (found != NULL)
            return found;
        if (!more) {
            step->test++;
            step->edge = 0;
        }
    }
    return NULL;
}

/* Depth first: white, on the way (1), done (2). */
static cx_status reject_circles(schema_loader *loader)
{
    CX_VEC(circle_step) way = {0};
    const cx_alloc *alloc = &loader->schema->alloc;
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < loader->order.count; i++) {
        if (loader->order.items[i]->mark != 0)
            continue;
        schema_node *enter = loader->order.items[i];
        for (;;) {
            if (enter != NULL) {
                circle_step *step = cx_vec_push(&way, alloc);
                if (step == NULL) {
                    status = cx_fail_nomem(loader->err);
                    goto done;
                }
                *step = (circle_step){enter, 0, 0};
                enter->mark = 1;
            }
            if (way.count == 0)
                break;
            circle_step *last = &way.items[way.count - 1];
            const schema_node *next = next_in_place(last);
            enter = NULL;
            if (next == NULL) {
                last->node->mark = 2;
                way.count--;
            } else if (next->mark == 1) {
                status = schema_refuse(loader, next, CX_E_FORMAT,
                                       "refers to itself without moving on in what it checks");
                goto done;
            } else if (next->mark == 0) {
                enter = schema_node_of(loader, next->source);
            }
        }
    }
done:
    cx_vec_done(&way, alloc);
    return status;
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status compile_document(cx_schema *schema, const cx_schema_options *options,
                                  const cx_json *document, cx_err *err)
{
    schema_loader loader;
    cx_str uri, fragment;
    schema_loader_init(&loader, schema, options, err);
    cx_status status = CX_SUCCESS;
    cx_json *root = CX_ARENA_NEW(&schema->arena, cx_json);
    if (root == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    CX_TRY_GOTO(status, cx_json_copy(document, &schema->arena, root, err));
    CX_TRY_GOTO(status, schema_uri_resolve(cx_str_from(NULL, 0), options->base_uri, &schema->arena,
                                           &uri, err));
    uri = schema_uri_split(uri, &fragment);
    schema_node *node;
    CX_TRY_GOTO(status, schema_scan(&loader, root, uri, true, &node));
    schema->root = node;
    /* References found on the way bring more. */
    for (size_t i = 0; i < loader.order.count; i++)
        CX_TRY_GOTO(status, schema_compile_node(&loader, loader.order.items[i]));
    if (options->strict)
        CX_TRY_GOTO(status, reject_circles(&loader));
    CX_TRY_GOTO(status, schema_quick_compile(&loader, node));
done:
    schema_loader_done(&loader);
    return status;
}

cx_status cx_schema_compile(const cx_schema_options *options, const cx_json *document,
                            cx_schema **out, cx_err *err)
{
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    cx_schema *schema = cx_alloc_zeroed(alloc, 1, sizeof *schema);
    if (schema == NULL)
        return cx_fail_nomem(err);
    schema->alloc = *alloc;
    cx_arena_init(&schema->arena, &schema->alloc, 0);
    cx_status status = compile_document(schema, options, document, err);
    if (cx_failed(status)) {
        cx_schema_close(schema);
        return status;
    }
    *out = schema;
    return status;
}

void cx_schema_close(cx_schema *schema)
{
    if (schema == NULL)
        return;
    for (schema_owned *owned = schema->patterns; owned != NULL; owned = owned->next)
        cx_pattern_close(owned->pattern);
    cx_arena_done(&schema->arena);
    cx_alloc alloc = schema->alloc;
    cx_alloc_free(&alloc, schema, sizeof *schema);
}
