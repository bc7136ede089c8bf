#!/bin/sh
# in_memory.sh COMMAND [ARGUMENT...] - runs COMMAND with its temporary files in the folder $CORTEX_TEST_MEMORY, which
# scripts/test.sh puts into memory where there is enough; where it is not set, COMMAND runs as it is.
if [ -n "${CORTEX_TEST_MEMORY:-}" ]; then
    TMPDIR=$CORTEX_TEST_MEMORY
    export TMPDIR
fi
exec "$@"
