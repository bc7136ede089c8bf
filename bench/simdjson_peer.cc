// simdjson_peer.cc - simdjson's DOM parser behind a C function, for bench_json.c.
#include <simdjson.h>

extern "C" void *simdjson_peer_open(void);
extern "C" void simdjson_peer_close(void *peer);
extern "C" int simdjson_peer_parse(void *peer, const char *text, size_t size);
extern "C" size_t simdjson_peer_padding(void);

extern "C" void *simdjson_peer_open(void)
{
    return new simdjson::dom::parser;
}

extern "C" void simdjson_peer_close(void *peer)
{
    delete static_cast<simdjson::dom::parser *>(peer);
}

// `text` has simdjson_peer_padding() readable bytes behind it.
extern "C" int simdjson_peer_parse(void *peer, const char *text, size_t size)
{
    simdjson::dom::element element;
    return static_cast<simdjson::dom::parser *>(peer)->parse(text, size, false).get(element);
}

extern "C" size_t simdjson_peer_padding(void)
{
    return simdjson::SIMDJSON_PADDING;
}
