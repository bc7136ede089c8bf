/*
 * demo_data.h - the histories `cortex demo` shows; the same bytes lie in examples/.
 */
#ifndef CX_CLI_DEMO_DATA_H
#define CX_CLI_DEMO_DATA_H

/* The four nodes of lattice.md §7.1. */
extern const char cx_cli_demo_merge[];
/* An invented incident: a planted page raises the refund limit. */
extern const char cx_cli_demo_incident[];

#endif
