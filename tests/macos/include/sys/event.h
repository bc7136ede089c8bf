/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_EVENT_H
#define CX_MACOS_SYS_EVENT_H
#include <sys/types.h>
struct kevent {
    uintptr_t ident;
    int16_t filter;
    uint16_t flags;
    uint32_t fflags;
    intptr_t data;
    void *udata;
};
#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_VNODE (-4)
#define EVFILT_PROC (-5)
#define EVFILT_SIGNAL (-6)
#define EVFILT_TIMER (-7)
#define EVFILT_USER (-10)
#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_ENABLE 0x0004
#define EV_DISABLE 0x0008
#define EV_ONESHOT 0x0010
#define EV_CLEAR 0x0020
#define EV_ERROR 0x4000
#define EV_EOF 0x8000
#define NOTE_TRIGGER 0x01000000
#define NOTE_FFNOP 0x00000000
#define NOTE_EXIT 0x80000000u
#define EV_SET(kev, a, b, c, d, e, f) \
    do {                              \
        struct kevent *kev_ = (kev);  \
        kev_->ident = (a);            \
        kev_->filter = (b);           \
        kev_->flags = (c);            \
        kev_->fflags = (d);           \
        kev_->data = (e);             \
        kev_->udata = (f);            \
    } while (0)
int kqueue(void);
int kevent(int queue, const struct kevent *changes, int change_count, struct kevent *events,
           int event_count, const struct timespec *timeout);
#endif
