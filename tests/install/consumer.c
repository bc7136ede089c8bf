/*
 * consumer.c - a stranger's program: finds the installed library, calls it, and says what it found.
 */
#include <cortex/base.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    if (strcmp(cx_version(), EXPECTED_VERSION) != 0) {
        printf("version is %s, expected %s\n", cx_version(), EXPECTED_VERSION);
        return 1;
    }
    if (strcmp(cx_verdict_name(CX_BROKEN), "broken") != 0)
        return 1;
    const cx_alloc *alloc = cx_alloc_default();
    void *block = alloc->resize(alloc->ctx, NULL, 0, 16);
    if (block == NULL)
        return 1;
    (void)alloc->resize(alloc->ctx, block, 16, 0);
    return 0;
}
