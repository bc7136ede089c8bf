#include "tests/unit/import/util.h"

CX_TEST(jaeger_unusual_spans)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"traceID\":\"T\",\"spans\":[{\"spanID\":\"B\",\"operationName\":\"chat\",\"references\":"
        "[{\"refType\":"
        "\"FOLLOWS_FROM\",\"spanID\":\"x\"},{\"refType\":\"CHILD_OF\",\"spanID\":\"a\"}],"
        "\"startTime\":2000000,"
        "\"duration\":-5,\"tags\":[{\"key\":\"gen_ai.operation.name\",\"value\":\"chat\"},{\"key\":"
        "\"gen_ai.operation.name\",\"value\":\"execute_tool\"},{\"value\":1},3]},{\"spanID\":\"A\","
        "\"operationName\":\"root\",\"startTime\":\"soon\",\"duration\":1500,\"processID\":\"p\","
        "\"tags\":[{"
        "\"key\":\"otel.status_code\",\"value\":\"ERROR\"},{\"key\":\"otel.status_description\","
        "\"value\":"
        "\"down\"}]},{\"operationName\":\"no "
        "id\"},null],\"processes\":{\"p\":{\"serviceName\":\"shop\"}}}");
    CHECK_INT(in.summary.total.records, 4);
    CHECK_INT(in.summary.total.bad, 2);
    size_t root = node_with(&in, "src_id", "A"), chat = node_with(&in, "src_id", "B");
    CHECK(node_has_parent(&in, chat, root)); /* ids are compared in lower case */
    CHECK_STR(node_text(&in, root, "/agent_id"), "shop");
    CHECK_STR(node_text(&in, root, "/state_delta/beliefs/span_ok/value"), "false");
    CHECK_STR(node_text(&in, root, "/event/duration_ns"), "1500000");
    CHECK_STR(node_text(&in, chat, "/event/kind"), "reason"); /* the first of two tags */
    CHECK_STR(node_text(&in, chat, "/event/duration_ns"), "(absent)");
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    imported_done(&in);
    import_text(&in, "jaeger", "{\"data\":1}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}
