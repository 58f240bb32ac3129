//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says what an address is that is none of the public internet. Returns `None` if it is one.
pub(super) fn closed(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => closed_v4(address),
        IpAddr::V6(address) => closed_v6(address),
    }
}

fn closed_v4(address: Ipv4Addr) -> Option<&'static str> {
    let what = match address.octets() {
        [127, ..] => "this machine",
        [0, ..] => "not an address to connect to",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private network",
        [100, 64..=127, ..] => "a carrier's internal network",
        [169, 254, ..] => "a link-local network",
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => "reserved",
        [198, 18 | 19, ..] => "a test network",
        [224..=239, ..] => "a multicast address",
        [240..=255, ..] => "reserved",
        _ => return None,
    };
    Some(what)
}

fn closed_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let inner = || {
        let [.., high, low] = segments;
        Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
    };
    let what = match segments {
        // IPv4 in another dress: it leads where that leads.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => return closed_v4(inner()),
        [0, 0, 0, 0, 0, 0, 0, 1] => "this machine",
        [0xfc00..=0xfdff, ..] => "a private network",
        [0xfe80..=0xfebf, ..] => "a link-local network",
        [0xfec0..=0xfeff, ..] => "a private network",
        [0xff00..=0xffff, ..] => "a multicast address",
        // Documentation, tunnels that carry IPv4 addresses of anybody's choice, protocols.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => "reserved",
        [0x2000..=0x3fff, ..] => return None,
        _ => "reserved",
    };
    Some(what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks that are none of the public internet: first address and length of the prefix.
    const CLOSED_V4: &[(&str, u32)] = &[
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.2.0", 24),
        ("192.88.99.0", 24),
        ("192.168.0.0", 16),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
    ];
    const CLOSED_V6: &[(&str, u32)] = &[
        ("::", 96),
        ("64:ff9b:1::", 48),
        ("100::", 64),
        ("2001::", 23),
        ("2001:db8::", 32),
        ("2002::", 16),
        ("3fff::", 20),
        ("5f00::", 16),
        ("fc00::", 7),
        ("fe80::", 10),
        ("fec0::", 10),
        ("ff00::", 8),
    ];

    fn in_v4(address: Ipv4Addr, (first, length): &(&str, u32)) -> bool {
        let first: Ipv4Addr = first.parse().unwrap();
        (u32::from(address) ^ u32::from(first)) >> (32 - length) == 0
    }

    fn in_v6(address: Ipv6Addr, (first, length): &(&str, u32)) -> bool {
        let first: Ipv6Addr = first.parse().unwrap();
        (u128::from(address) ^ u128::from(first)) >> (128 - length) == 0
    }

    #[test]
    fn well_known_addresses_are_told_apart() {
        let closed_ones = [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "169.254.169.254",
            "100.100.100.200",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "fd00:ec2::254",
            "fe80::1",
            "2002:7f00:1::",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        ];
        for text in closed_ones {
            assert!(closed(text.parse().unwrap()).is_some(), "{text}");
        }
        for text in
            ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::1.1.1.1", "172.32.0.1"]
        {
            assert_eq!(closed(text.parse().unwrap()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn an_ipv4_address_is_closed_exactly_in_the_listed_blocks(bits: u32) {
            let address = Ipv4Addr::from(bits);
            let expected = CLOSED_V4.iter().any(|block| in_v4(address, block));
            prop_assert_eq!(closed(address.into()).is_some(), expected, "{}", address);
        }

        #[test]
        fn every_address_of_a_listed_block_is_closed(bits: u32, which in 0..CLOSED_V4.len()) {
            let (first, length) = CLOSED_V4[which];
            let first = u32::from(first.parse::<Ipv4Addr>().unwrap());
            let address = Ipv4Addr::from(first | (bits & (u32::MAX >> length)));
            prop_assert!(closed(address.into()).is_some(), "{}", address);
            let first = CLOSED_V6[which % CLOSED_V6.len()];
            let start = u128::from(first.0.parse::<Ipv6Addr>().unwrap());
            let inner = u128::from(bits) << 64 | u128::from(bits.rotate_left(9));
            let address = Ipv6Addr::from(start | (inner & (u128::MAX >> first.1)));
            prop_assert!(closed(address.into()).is_some(), "{}", address);
        }

        #[test]
        fn an_ipv4_address_in_another_dress_is_judged_alike(bits: u32) {
            let plain = Ipv4Addr::from(bits);
            let mapped = plain.to_ipv6_mapped();
            let translated = Ipv6Addr::from((0x0064_ff9b_u128 << 96) | u128::from(bits));
            prop_assert_eq!(closed(mapped.into()), closed(plain.into()));
            prop_assert_eq!(closed(translated.into()), closed(plain.into()));
        }

        #[test]
        fn an_open_ipv6_address_is_global_and_in_no_listed_block(bits: u128, global: bool) {
            let bits = if global { 0x2 << 124 | bits >> 4 } else { bits };
            let address = Ipv6Addr::from(bits);
            if closed(address.into()).is_none() {
                let dressed = address.to_ipv4_mapped().is_some()
                    || u128::from(address) >> 32 == 0x0064_ff9b_u128 << 64;
                prop_assert!(dressed || u128::from(address) >> 125 == 1, "{}", address);
                prop_assert!(!CLOSED_V6.iter().any(|block| in_v6(address, block)), "{}", address);
            }
        }
    }
}
