/*
 * machine.h - what the operating system tells of this machine, of this process and of others.
 */
#ifndef CX_OS_MACHINE_H
#define CX_OS_MACHINE_H

#include <signal.h>

#include "base/api.h"

/* Called first by main: the words of its command line.  Some systems know the file of a
 * program by no other way. */
void cx_machine_begin(int argc, char *const *argv);
/* A path that leads to the file of this program, as long as the process lives; "" when that is not
 * known, which no file is called. */
const char *cx_machine_program(void);
/* The environment of this process; ends with NULL. */
const char *const *cx_machine_environment(void);

/* The program that opens a URL for the user; whether it can without variables that say so. */
extern const char *const cx_machine_opener;
extern const bool cx_machine_has_desktop;

/* Waits for one of these signals, which all threads block; 0 after so long. */
int cx_machine_await_signal(const sigset_t *signals, uint64_t timeout_ns);

/* Memory of this process that is resident; false when the system does not tell. */
bool cx_machine_resident(uint64_t *out_bytes);
/* The soft limit of a stack; 0 = unlimited. */
bool cx_machine_stack_limit(uint64_t *out_bytes);

/* Appends the name of this machine, and what is different after each start of it ("" when the
 * system has none). */
CX_RESULT cx_machine_host(cx_buf *out, cx_err *err);
CX_RESULT cx_machine_boot_id(cx_buf *out, cx_err *err);
/* When a process started, in a unit of the system's: with its number and the two texts above it
 * tells a process apart from all others.  CX_E_NOT_FOUND when there is none, or a zombie. */
CX_RESULT cx_machine_process_start(uint64_t pid, uint64_t *out, cx_err *err);
/* Appends the first words of its command line, at most `words`; nothing when that is not known. */
void cx_machine_command(uint64_t pid, size_t words, cx_buf *out);

#endif
