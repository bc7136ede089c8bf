/*
 * tree - Merkle trees as arithmetic: mountain ranges, sparse trees, the schemes of hashing.
 *
 * Knows hashes, and nothing of what the leaves say.
 */
#ifndef CX_TREE_API_H
#define CX_TREE_API_H

#include "tree/mmr.h"
#include "tree/scheme.h"
#include "tree/smt.h"

#endif
