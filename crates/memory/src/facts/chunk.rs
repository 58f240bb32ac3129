//! Numbers of facts, ascending, as bytes: the distances from one to the next, seven bits a byte.
//!
//! A chunk's first number is not among its bytes; it is the key of its row.

/// A chunk with more numbers is split.
pub(super) const FULL: usize = 256;

/// The bytes of all numbers but the first.
pub(super) fn encoded(numbers: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() * 2);
    for pair in numbers.windows(2) {
        push(&mut bytes, pair[1].abs_diff(pair[0]));
    }
    bytes
}

/// Appends the numbers of a chunk to `numbers`; answers whether the bytes were a chunk's.
pub(super) fn decode(first: i64, bytes: &[u8], numbers: &mut Vec<i64>) -> bool {
    numbers.push(first);
    let mut last = first;
    let mut distance = 0_u64;
    let mut shift = 0_u32;
    for byte in bytes {
        if shift > 56 {
            return false;
        }
        distance |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 != 0 {
            shift += 7;
            continue;
        }
        let Some(next) = last.checked_add_unsigned(distance).filter(|next| *next > last) else {
            return false;
        };
        numbers.push(next);
        (last, distance, shift) = (next, 0, 0);
    }
    shift == 0
}

fn push(bytes: &mut Vec<u8>, mut distance: u64) {
    while distance >= 0x80 {
        bytes.push(distance as u8 | 0x80);
        distance >>= 7;
    }
    bytes.push(distance as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(set in prop::collection::btree_set(1_i64..(1 << 40), 1..400)) {
            let numbers: Vec<i64> = set.into_iter().collect();
            let mut back = Vec::new();
            prop_assert!(decode(numbers[0], &encoded(&numbers), &mut back));
            prop_assert_eq!(back, numbers);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut back = Vec::new();
            if decode(1, &bytes, &mut back) {
                prop_assert!(back.is_sorted_by(|one, other| one < other));
            }
        }
    }
}
