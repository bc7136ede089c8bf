/*
 * view - pictures of a lattice: layout, the view's model, terminal, SVG, DOT.
 *
 * Reads a lattice and never changes it.
 */
#ifndef CX_VIEW_API_H
#define CX_VIEW_API_H

#include "view/view.h"

#endif
