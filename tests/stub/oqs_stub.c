/*
 * oqs_stub.c - a liboqs for tests: the functions that are loaded, with a toy in place of ML-DSA-65.
 *
 * A signature is right when its byte i is byte i % 8 of FNV-1a 64 over the message and then the
 * key. So the test sees which bytes arrive.  OQS_STUB_VERSION is the version that it says it has,
 * and with OQS_STUB_EMPTY it has no algorithm.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static int the_algorithm;

EXPORT void OQS_init(void);
EXPORT void OQS_init(void) {}

EXPORT const char *OQS_version(void);
EXPORT const char *OQS_version(void)
{
    const char *version = getenv("OQS_STUB_VERSION");
    return version != NULL ? version : "0.14.0";
}

EXPORT void *OQS_SIG_new(const char *name);
EXPORT void *OQS_SIG_new(const char *name)
{
    return name[0] == 'M' && getenv("OQS_STUB_EMPTY") == NULL ? &the_algorithm : NULL;
}

EXPORT void OQS_SIG_free(void *sig);
EXPORT void OQS_SIG_free(void *sig)
{
    (void)sig;
}

static uint64_t add_bytes(uint64_t hash, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

EXPORT int OQS_SIG_verify(const void *sig, const uint8_t *message, size_t message_size,
                          const uint8_t *signature, size_t signature_size,
                          const uint8_t *public_key);
EXPORT int OQS_SIG_verify(const void *sig, const uint8_t *message, size_t message_size,
                          const uint8_t *signature, size_t signature_size,
                          const uint8_t *public_key)
{
    uint64_t hash = add_bytes(UINT64_C(0xcbf29ce484222325), message, message_size);
    hash = add_bytes(hash, public_key, 1952);
    if (sig != &the_algorithm || signature_size != 3309)
        return -1;
    for (size_t i = 0; i < signature_size; i++)
        if (signature[i] != (uint8_t)(hash >> 8 * (i % 8)))
            return -1;
    return 0;
}
