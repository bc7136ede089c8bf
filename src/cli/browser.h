/*
 * browser.h - opens an address in the person's browser.
 */
#ifndef CX_CLI_BROWSER_H
#define CX_CLI_BROWSER_H

#include <stdbool.h>

/* Returns at once; the browser lives on when this process ends.  False when there is no desktop, or
 * no program that opens addresses: then the person has the printed address. */
bool cx_cli_open_browser(const char *url);

#endif
