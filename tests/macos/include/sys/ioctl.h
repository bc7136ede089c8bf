/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_IOCTL_H
#define CX_MACOS_SYS_IOCTL_H
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ 0x40087468ul
int ioctl(int file, unsigned long request, ...);
#endif
