/*
 * test_address.c - classes of addresses (address.h A1, A2).
 */
#include "egress/address.h"

#include "tests/test.h"

CX_TEST(addresses_have_classes)
{
    static const struct {
        const char *text, *class;
    } rows[] = {
        {"1.1.1.1", "public"},
        {"9.255.255.255", "public"},
        {"10.0.0.0", "private"},
        {"10.255.255.255", "private"},
        {"11.0.0.0", "public"},
        {"100.63.255.255", "public"},
        {"100.64.0.1", "shared"},
        {"100.100.100.200", "shared"},
        {"100.128.0.0", "public"},
        {"127.0.0.1", "loopback"},
        {"127.255.255.254", "loopback"},
        {"0.0.0.0", "unspecified"},
        {"0.1.2.3", "unspecified"},
        {"169.254.169.254", "link_local"},
        {"169.253.255.255", "public"},
        {"172.15.255.255", "public"},
        {"172.16.0.0", "private"},
        {"172.31.255.255", "private"},
        {"172.32.0.0", "public"},
        {"192.0.0.170", "reserved"},
        {"192.0.2.1", "reserved"},
        {"192.88.99.1", "transition"},
        {"192.167.1.1", "public"},
        {"192.168.1.1", "private"},
        {"198.17.0.1", "public"},
        {"198.19.0.1", "reserved"},
        {"203.0.113.9", "reserved"},
        {"223.255.255.255", "public"},
        {"224.0.0.1", "multicast"},
        {"239.255.255.255", "multicast"},
        {"255.255.255.255", "reserved"},
        {"2606:4700::1111", "public"},
        {"2001:4860:4860::8888", "public"},
        {"::", "unspecified"},
        {"::1", "loopback"},
        {"::127.0.0.1", "loopback"},
        {"::ffff:127.0.0.1", "loopback"},
        {"::ffff:169.254.169.254", "link_local"},
        {"::ffff:8.8.8.8", "public"},
        {"::ffff:0:10.0.0.1", "private"},
        {"64:ff9b::10.0.0.1", "private"},
        {"64:ff9b::a9fe:a9fe", "link_local"},
        {"64:ff9b::8.8.8.8", "public"},
        {"64:ff9b:1::8.8.8.8", "reserved"},
        {"2002:7f00:1::1", "transition"},
        {"2001::1", "transition"},
        {"2001:1ff::1", "transition"},
        {"2001:200::1", "public"},
        {"2001:db8::1", "reserved"},
        {"3fff:fff::1", "reserved"},
        {"3fff:1000::1", "public"},
        {"4000::1", "reserved"},
        {"5f00::1", "reserved"},
        {"100::1", "reserved"},
        {"fd00:ec2::254", "private"},
        {"fc00::1", "private"},
        {"fe80::1", "link_local"},
        {"febf::1", "link_local"},
        {"fec0::1", "transition"},
        {"ff02::1", "multicast"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_ip ip;
        bool good = cx_ip_parse(cx_str_z(rows[i].text), &ip);
        const char *got = good ? cx_egress_class_name(cx_egress_address_class(&ip)) : "no address";
        if (strcmp(got, rows[i].class) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s is %s, expected %s", rows[i].text, got,
                         rows[i].class);
    }
}

CX_TEST(some_classes_no_policy_can_allow)
{
    CHECK(cx_egress_class_can_be_allowed(CX_EGRESS_LOOPBACK));
    CHECK(cx_egress_class_can_be_allowed(CX_EGRESS_OWN));
    CHECK(!cx_egress_class_can_be_allowed(CX_EGRESS_LINK_LOCAL));
    CHECK(!cx_egress_class_can_be_allowed(CX_EGRESS_MULTICAST));
    CHECK(!cx_egress_class_can_be_allowed(CX_EGRESS_RESERVED));
}
