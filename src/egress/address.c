/*
 * address.c - classes of addresses, after the special-purpose registries of IANA (RFC 6890).  A1,
 * A2: address.h.
 */
#include "egress/address.h"

#include <string.h>

typedef struct block {
    uint8_t bytes[16];
    uint8_t bits;
    cx_egress_class class;
} block;

/* The first that contains the address counts. */
static const block v4_blocks[] = {
    {{0}, 8, CX_EGRESS_UNSPECIFIED},
    {{10}, 8, CX_EGRESS_PRIVATE},
    {{100, 64}, 10, CX_EGRESS_SHARED},
    {{127}, 8, CX_EGRESS_LOOPBACK},
    {{169, 254}, 16, CX_EGRESS_LINK_LOCAL},
    {{172, 16}, 12, CX_EGRESS_PRIVATE},
    {{192, 0, 0}, 24, CX_EGRESS_RESERVED},
    {{192, 0, 2}, 24, CX_EGRESS_RESERVED},
    {{192, 88, 99}, 24, CX_EGRESS_TRANSITION},
    {{192, 168}, 16, CX_EGRESS_PRIVATE},
    {{198, 18}, 15, CX_EGRESS_RESERVED},
    {{198, 51, 100}, 24, CX_EGRESS_RESERVED},
    {{203, 0, 113}, 24, CX_EGRESS_RESERVED},
    {{224}, 4, CX_EGRESS_MULTICAST},
    {{240}, 4, CX_EGRESS_RESERVED},
};

static const block v6_blocks[] = {
    {{[15] = 1}, 128, CX_EGRESS_LOOPBACK},
    {{0}, 128, CX_EGRESS_UNSPECIFIED},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, CX_EGRESS_RESERVED},
    {{0x20, 0x01}, 23, CX_EGRESS_TRANSITION}, /* Teredo, ORCHID, benchmarks */
    {{0x20, 0x02}, 16, CX_EGRESS_TRANSITION}, /* 6to4 */
    {{0x3f, 0xff}, 20, CX_EGRESS_RESERVED},
    {{0x20}, 3, CX_EGRESS_PUBLIC},
    {{0xfc}, 7, CX_EGRESS_PRIVATE},
    {{0xfe, 0x80}, 10, CX_EGRESS_LINK_LOCAL},
    {{0xfe, 0xc0}, 10, CX_EGRESS_TRANSITION},
    {{0xff}, 8, CX_EGRESS_MULTICAST},
};

/* Prefixes of 96 bits before an IPv4 address: ::, ::ffff:0:0, ::ffff:0:0:0, 64:ff9b:: (A2). */
static const uint8_t v4_carriers[][12] = {
    {0},
    {[10] = 0xff, [11] = 0xff},
    {[8] = 0xff, [9] = 0xff},
    {0x00, 0x64, 0xff, 0x9b},
};

static bool is_in_block(const uint8_t *bytes, const block *b)
{
    size_t whole = b->bits / 8u, rest = b->bits % 8u;
    if (memcmp(bytes, b->bytes, whole) != 0)
        return false;
    unsigned mask = rest == 0 ? 0 : 0xffu << (8 - rest) & 0xffu;
    return rest == 0 || ((unsigned)(bytes[whole] ^ b->bytes[whole]) & mask) == 0;
}

static cx_egress_class class_of(const uint8_t *bytes, const block *blocks, size_t count,
                                cx_egress_class otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (is_in_block(bytes, &blocks[i]))
            return blocks[i].class;
    return otherwise;
}

static cx_egress_class class_of_v4(const uint8_t *bytes)
{
    return class_of(bytes, v4_blocks, CX_COUNT_OF(v4_blocks), CX_EGRESS_PUBLIC);
}

cx_egress_class cx_egress_address_class(const cx_ip *ip)
{
    if (!ip->is_v6)
        return class_of_v4(ip->bytes);
    cx_egress_class class =
        class_of(ip->bytes, v6_blocks, CX_COUNT_OF(v6_blocks), CX_EGRESS_RESERVED);
    if (class != CX_EGRESS_RESERVED)
        return class;
    for (size_t i = 0; i < CX_COUNT_OF(v4_carriers); i++)
        if (memcmp(ip->bytes, v4_carriers[i], sizeof v4_carriers[i]) == 0)
            return class_of_v4(ip->bytes + 12);
    return CX_EGRESS_RESERVED; /* A1 */
}

const char *cx_egress_class_name(cx_egress_class class)
{
    switch (class) {
    case CX_EGRESS_PUBLIC: return "public";
    case CX_EGRESS_LOOPBACK: return "loopback";
    case CX_EGRESS_PRIVATE: return "private";
    case CX_EGRESS_SHARED: return "shared";
    case CX_EGRESS_OWN: return "own";
    case CX_EGRESS_UNSPECIFIED: return "unspecified";
    case CX_EGRESS_LINK_LOCAL: return "link_local";
    case CX_EGRESS_MULTICAST: return "multicast";
    case CX_EGRESS_TRANSITION: return "transition";
    case CX_EGRESS_RESERVED: break;
    }
    return "reserved";
}
