//! Numbers for the addresses of a capture.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::wire::Ip;

/// Numbers addresses in the order they come: with a number at hand, nobody who tells addresses apart needs to search.
#[derive(Default)]
pub(crate) struct AddressBook {
    addresses: Vec<Ip>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl AddressBook {
    /// The number of an address: the same whenever it is asked for, and no other address has it.
    pub fn number_of(&mut self, address: Ip) -> u32 {
        let Self { addresses, index, hasher } = self;
        let hash = hasher.hash_one(address);
        if let Some(known) = index.find(hash, |&at| addresses[at as usize] == address) {
            return *known;
        }
        let number = addresses.len() as u32;
        addresses.push(address);
        index.insert_unique(hash, number, |&at| hasher.hash_one(addresses[at as usize]));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_number_and_shares_it_with_none() {
        let mut book = AddressBook::default();
        let v4 = |last| Ip::v4([10, 0, 0, last]);
        let mut mapped = [0; 16];
        mapped[..4].copy_from_slice(&[10, 0, 0, 7]);
        let numbers: Vec<_> = (0..200).map(|last| book.number_of(v4(last))).collect();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
        assert_eq!(book.number_of(Ip::v6(mapped)), 200);
        assert_eq!((book.number_of(v4(7)), book.number_of(Ip::v6(mapped))), (7, 200));
    }
}
