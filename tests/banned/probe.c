/*
 * probe.c - must not compile: one use of a banned function of each kind.  See base/banned.h.
 *
 * The order of the calls is the one tests/extra.cmake looks for.
 */
void cx_banned_probe(char *out, const char *in, const time_t *when);

void cx_banned_probe(char *out, const char *in, const time_t *when)
{
    strcpy(out, in);
    sprintf(out, "%d", 1);
    strtok(out, in);
    localtime(when);
    system(in);
}
