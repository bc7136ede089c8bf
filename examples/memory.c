/*
 * memory.c - an agent's memories: written, linked, found again, changed without a lost update.
 *
 *     cc memory.c $(pkg-config --cflags --libs cortex) -o memory && ./memory new-folder
 */
#include <cortex/memory.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cx_err err;

static void must(cx_status status)
{
    if (status.code == CX_OK)
        return;
    fprintf(stderr, "%s: %s\n", err.tag != NULL ? err.tag : cx_code_name(err.code), err.message);
    exit(1);
}

static cx_uri_text remember(cx_memories *memories, const char *type, const char *data,
                            const char *tag)
{
    cx_memories_draft draft = CX_MEMORIES_DRAFT_INIT;
    cx_uri_text uri;
    draft.type = type;
    draft.content.data = cx_str_z(data);
    draft.labels.tags = &tag;
    draft.labels.tag_count = 1;
    must(cx_memories_write(memories, &draft, &uri, &err));
    printf("wrote %s\n", uri.text);
    return uri;
}

static void show(const char *what, cx_owned *json)
{
    printf("%s: %s\n", what, cx_owned_text(json));
    cx_owned_done(json);
}

/* Two writers start from version 1; the second is told, and nothing is lost. */
static void change(cx_memories *memories, const char *uri)
{
    cx_memories_content content = CX_MEMORIES_CONTENT_INIT;
    cx_uri_text newer;
    content.data = cx_str_z("{\"statement\":\"The office opens at 9\",\"subject\":\"office\","
                            "\"predicate\":\"opens_at\",\"source\":\"door sign\"}");
    must(cx_memories_update(memories, uri, &content, &newer, &err));
    printf("updated to %s\n", newer.text);
    if (cx_memories_update(memories, uri, &content, &newer, &err).code != CX_E_CONFLICT)
        exit(1);
    printf("a late writer hears: %s\n", err.tag);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s NEW-FOLDER\n", argv[0]);
        return 2;
    }
    cx_ledger *ledger;
    cx_memories *memories;
    cx_owned json;
    must(cx_ledger_make(argv[1], NULL, NULL, &err));
    must(cx_ledger_open(argv[1], NULL, &ledger, &err));
    must(cx_memories_open(ledger, "andrew", NULL, &memories, &err));

    cx_uri_text fact = remember(memories, "Fact",
                                "{\"statement\":\"The office opens at 8\",\"subject\":\"office\","
                                "\"predicate\":\"opens_at\",\"source\":\"Anna\"}",
                                "office");
    cx_uri_text goal = remember(memories, "Goal",
                                "{\"statement\":\"Be there before the others\","
                                "\"status\":\"active\"}",
                                "office");

    cx_memories_edge edge = CX_MEMORIES_EDGE_INIT;
    cx_uri_text edge_uri;
    edge.from = goal.text;
    edge.type = "derived_from";
    edge.to = fact.text;
    must(cx_memories_link(memories, &edge, &edge_uri, NULL, &err));
    printf("linked %s\n", edge_uri.text);

    change(memories, fact.text);

    const char *tag = "office";
    cx_memories_query query = CX_MEMORIES_QUERY_INIT;
    query.tags = &tag;
    query.tag_count = 1;
    must(cx_memories_find(memories, &query, &json, &err));
    bool both = strstr(cx_owned_text(&json), "\"count\":2") != NULL;
    show("found", &json);
    must(cx_memories_walk(memories, goal.text, 2, false, &json, &err));
    show("from the goal", &json);

    must(cx_memories_tombstone(memories, goal.text, "reached", NULL, &err));
    must(cx_memories_context(memories, 1000, &json, &err));
    bool gone = strstr(cx_owned_text(&json), "before the others") == NULL;
    show("what the agent should have before it", &json);

    cx_memories_close(memories);
    must(cx_ledger_close(ledger, &err));
    return both && gone ? 0 : 1;
}
