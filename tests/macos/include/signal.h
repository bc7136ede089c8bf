/* Written for tests/macos: without sigtimedwait, sigwaitinfo and sigqueue. */
#ifndef CX_MACOS_SIGNAL_H
#define CX_MACOS_SIGNAL_H
#include <sys/types.h>
typedef int sig_atomic_t;
typedef unsigned sigset_t;
union sigval {
    int sival_int;
    void *sival_ptr;
};
typedef struct siginfo {
    int si_signo;
    int si_errno;
    int si_code;
    pid_t si_pid;
    uid_t si_uid;
    int si_status;
    void *si_addr;
    union sigval si_value;
    long si_band;
    unsigned long pad[7];
} siginfo_t;
struct sigaction {
    union {
        void (*sa_handler_)(int);
        void (*sa_sigaction_)(int, siginfo_t *, void *);
    } sigaction_u_;
    sigset_t sa_mask;
    int sa_flags;
};
#define sa_handler sigaction_u_.sa_handler_
#define sa_sigaction sigaction_u_.sa_sigaction_
typedef struct cx_macos_stack {
    void *ss_sp;
    size_t ss_size;
    int ss_flags;
} stack_t;
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_ERR ((void (*)(int)) - 1)
#define SIG_BLOCK 1
#define SIG_UNBLOCK 2
#define SIG_SETMASK 3
#define SA_ONSTACK 1
#define SA_RESTART 2
#define SA_RESETHAND 4
#define SA_NOCLDSTOP 8
#define SA_NODEFER 16
#define SA_SIGINFO 64
#define MINSIGSTKSZ 32768
#define SIGSTKSZ 131072
#define NSIG 32
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGFPE 8
#define SIGKILL 9
#define SIGBUS 10
#define SIGSEGV 11
#define SIGSYS 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGURG 16
#define SIGSTOP 17
#define SIGTSTP 18
#define SIGCONT 19
#define SIGCHLD 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGXCPU 24
#define SIGXFSZ 25
#define SIGVTALRM 26
#define SIGPROF 27
#define SIGWINCH 28
#define SIGUSR1 30
#define SIGUSR2 31
int kill(pid_t process, int number);
int raise(int number);
int sigaction(int number, const struct sigaction *action, struct sigaction *before);
int sigaddset(sigset_t *set, int number);
int sigaltstack(const stack_t *stack, stack_t *before);
int sigdelset(sigset_t *set, int number);
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int sigismember(const sigset_t *set, int number);
void (*signal(int number, void (*handler)(int)))(int);
int sigpending(sigset_t *out);
int sigprocmask(int how, const sigset_t *set, sigset_t *before);
int sigsuspend(const sigset_t *set);
int sigwait(const sigset_t *set, int *out);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int pthread_kill(pthread_t thread, int number);
#endif
