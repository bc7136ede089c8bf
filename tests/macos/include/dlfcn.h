/* Written for tests/macos. */
#ifndef CX_MACOS_DLFCN_H
#define CX_MACOS_DLFCN_H
#define RTLD_LAZY 1
#define RTLD_NOW 2
#define RTLD_LOCAL 4
#define RTLD_GLOBAL 8
int dlclose(void *handle);
char *dlerror(void);
void *dlopen(const char *path, int mode);
void *dlsym(void *handle, const char *name);
#endif
