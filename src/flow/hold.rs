//! Rows that wait for later evidence without losing their place.

use std::collections::VecDeque;

/// A queue of rows in the order they must come out. Each has a running number by which later evidence finds it.
#[derive(Debug)]
pub(crate) struct HoldQueue<R> {
    /// Number of the first row still held.
    base: u64,
    rows: VecDeque<R>,
}

impl<R> Default for HoldQueue<R> {
    fn default() -> Self {
        Self { base: 0, rows: VecDeque::new() }
    }
}

impl<R> HoldQueue<R> {
    /// Appends a row; returns its number.
    pub fn push(&mut self, row: R) -> u64 {
        self.rows.push_back(row);
        self.base + self.rows.len() as u64 - 1
    }

    /// The row of that number, unless it came out already.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut R> {
        self.rows.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    pub fn front(&self) -> Option<&R> {
        self.rows.front()
    }

    pub fn front_number(&self) -> u64 {
        self.base
    }

    pub fn pop(&mut self) -> Option<R> {
        let row = self.rows.pop_front()?;
        self.base += 1;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_its_number_until_it_came_out() {
        let mut queue = HoldQueue::default();
        let numbers: Vec<u64> = ["a", "b", "c"].into_iter().map(|row| queue.push(row)).collect();
        *queue.get_mut(numbers[1]).unwrap() = "B";
        assert_eq!(queue.pop(), Some("a"));
        assert_eq!(queue.get_mut(numbers[0]), None);
        assert_eq!((queue.front_number(), queue.pop(), queue.front()), (1, Some("B"), Some(&"c")));
        assert_eq!(queue.push("d"), 3);
        assert_eq!(queue.get_mut(9), None);
    }
}
