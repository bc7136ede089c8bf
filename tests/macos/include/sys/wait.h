/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_WAIT_H
#define CX_MACOS_SYS_WAIT_H
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
typedef enum { P_ALL, P_PID, P_PGID } idtype_t;
#define WNOHANG 1
#define WUNTRACED 2
#define WEXITED 4
#define WSTOPPED 8
#define WCONTINUED 16
#define WNOWAIT 32
#define WIFEXITED(s) (((s)&0177) == 0)
#define WEXITSTATUS(s) (((s) >> 8) & 0377)
#define WIFSIGNALED(s) (((s)&0177) != 0177 && ((s)&0177) != 0)
#define WTERMSIG(s) ((s)&0177)
pid_t wait4(pid_t process, int *state, int options, struct rusage *used);
int waitid(idtype_t type, id_t id, siginfo_t *out, int options);
pid_t waitpid(pid_t process, int *state, int options);
#endif
