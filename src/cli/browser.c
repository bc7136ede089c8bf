/*
 * browser.c - starts xdg-open (or open, on macOS) in a session of its own: it may become the
 * browser itself, and must then outlive us, and an interrupt of ours.
 */
#include "cli/browser.h"

#include <stdlib.h>

#include "os/api.h"

#define START_MS 5000

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0;
}

static bool has_desktop(void)
{
    return cx_machine_has_desktop || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") ||
           is_set("BROWSER");
}

static cx_status start_program(const char *const *argv, cx_err *err)
{
    cx_proc_result result;
    const cx_proc_options how = {.argv = argv, .inherit_env = true, .timeout_ms = START_MS};
    CX_TRY(cx_proc_run(&how, NULL, NULL, &result, err));
    return result.exit_code == 0 ? CX_SUCCESS : cx_fail(err, CX_E_IO, "%s failed", argv[0]);
}

bool cx_cli_open_browser(const char *url)
{
    const char *opener = cx_machine_opener;
    const char *const probe[] = {opener, "--version", NULL};
    const char *const apart[] = {"setsid", "-f", opener, url, NULL};
    const char *const direct[] = {opener, url, NULL};
    cx_err err;
    if (!has_desktop() || start_program(probe, &err).code == CX_E_NOT_FOUND)
        return false;
    cx_status status = start_program(apart, &err);
    if (status.code == CX_E_NOT_FOUND)
        status = start_program(direct, &err);
    return !cx_failed(status);
}
