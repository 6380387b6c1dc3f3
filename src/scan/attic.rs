//! Where packed states lie: one behind the other in blocks, the newest blocks in memory, the others in a temporary file. So the
//! memory of a run does not grow with the connections that are quiet, however many a capture holds.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Error;
use crate::spill::Temporary;

const BLOCK_BYTES: usize = 1 << 16;
/// Full blocks of one attic that stay in memory in any case: what was put to rest last is the likeliest to be asked for again.
const BLOCKS_IN_MEMORY: usize = 2;
/// Blocks of all attics of a run that may stay in memory: 48 MiB. A file costs more time than memory, but that is bounded.
const ALL_IN_MEMORY: usize = (48 << 20) / BLOCK_BYTES;
/// Bytes that nobody needs any more and that are put up with, beside as many as are needed.
const WASTE_BYTES: u64 = 16 * BLOCK_BYTES as u64;

/// Where a packed state is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    block: u32,
    at: u32,
    bytes: u32,
}

enum Block {
    Memory(Vec<u8>),
    File {
        offset: u64,
    },
    /// Nobody needs anything of it any more.
    Gone,
}

struct Entry {
    block: Block,
    /// Its size, and how much of that is needed still.
    bytes: u32,
    needed: u32,
}

/// Packed states of one kind and shard.
pub(super) struct Attic {
    blocks: Vec<Entry>,
    /// Blocks before this one are not in memory.
    first_in_memory: usize,
    in_memory: usize,
    blocks_in_memory: usize,
    bytes: u64,
    needed: u64,
    file: Arc<AtticFile>,
}

impl Default for Attic {
    fn default() -> Self {
        Self::new(&Arc::default())
    }
}

impl Attic {
    pub fn new(file: &Arc<AtticFile>) -> Self {
        Self {
            blocks: Vec::new(),
            first_in_memory: 0,
            in_memory: 0,
            blocks_in_memory: BLOCKS_IN_MEMORY,
            bytes: 0,
            needed: 0,
            file: Arc::clone(file),
        }
    }

    /// Another attic with the same file.
    pub fn another(&self) -> Self {
        let mut another = Self::new(&self.file);
        another.blocks_in_memory = self.blocks_in_memory;
        another
    }

    /// Puts all but so many full blocks into the file.
    #[cfg(test)]
    pub fn keep_in_memory(&mut self, most: usize) {
        self.blocks_in_memory = most;
        self.file.lacks_memory.store(true, Ordering::Relaxed);
    }

    /// Takes in what was packed; `None` if it is larger than anything that is packed may be.
    pub fn keep(&mut self, packed: &[u8]) -> Option<Place> {
        let bytes = u32::try_from(packed.len()).ok()?;
        let has_room = self.blocks.last().is_some_and(|entry| match &entry.block {
            Block::Memory(block) => block.capacity() - block.len() >= packed.len(),
            _ => false,
        });
        if !has_room {
            self.start_block(packed.len())?;
        }
        let index = self.blocks.len().checked_sub(1)?;
        let entry = self.blocks.last_mut()?;
        let Block::Memory(block) = &mut entry.block else { return None };
        let at = block.len() as u32;
        block.extend_from_slice(packed);
        (entry.bytes, entry.needed) = (entry.bytes + bytes, entry.needed + bytes);
        (self.bytes, self.needed) = (self.bytes + u64::from(bytes), self.needed + u64::from(bytes));
        Some(Place { block: index as u32, at, bytes })
    }

    fn start_block(&mut self, bytes: usize) -> Option<()> {
        u32::try_from(self.blocks.len()).ok()?;
        self.end_block();
        while self.in_memory > self.blocks_in_memory && self.file.is_memory_full() {
            if !self.move_out() {
                break;
            }
        }
        let block = Block::Memory(Vec::with_capacity(bytes.max(BLOCK_BYTES)));
        self.blocks.push(Entry { block, bytes: 0, needed: 0 });
        self.in_memory += 1;
        self.file.in_memory.fetch_add(1, Ordering::Relaxed);
        Some(())
    }

    fn has_left_memory(&mut self) {
        self.in_memory -= 1;
        self.file.in_memory.fetch_sub(1, Ordering::Relaxed);
    }

    /// The last block takes in no more: it can go where nobody needs it.
    fn end_block(&mut self) {
        if let Some(last) = self.blocks.len().checked_sub(1) {
            self.drop_if_needless(last);
        }
    }

    /// Moves the oldest block that is in memory into the file. Where that has no room, it stays.
    fn move_out(&mut self) -> bool {
        while let Some(entry) = self.blocks.get_mut(self.first_in_memory) {
            self.first_in_memory += 1;
            if let Block::Memory(bytes) = &entry.block {
                let Some(offset) = self.file.write(bytes) else {
                    self.first_in_memory -= 1;
                    return false;
                };
                entry.block = Block::File { offset };
                self.has_left_memory();
                return true;
            }
        }
        false
    }

    /// What lies at a place; `scratch` is room for it. `None` where the file cannot be read: see [`AtticFile::failure`].
    pub fn read<'a>(&'a self, place: Place, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let (at, bytes) = (place.at as usize, place.bytes as usize);
        match &self.blocks.get(place.block as usize)?.block {
            Block::Memory(block) => block.get(at..at + bytes),
            Block::File { offset } => {
                scratch.clear();
                scratch.resize(bytes, 0);
                self.file.read(offset + at as u64, scratch).then_some(scratch.as_slice())
            }
            Block::Gone => None,
        }
    }

    /// What lies at a place is needed no more.
    pub fn forget(&mut self, place: Place) {
        let index = place.block as usize;
        let Some(entry) = self.blocks.get_mut(index) else { return };
        entry.needed = entry.needed.saturating_sub(place.bytes);
        self.needed = self.needed.saturating_sub(u64::from(place.bytes));
        if index + 1 < self.blocks.len() {
            self.drop_if_needless(index);
        }
    }

    fn drop_if_needless(&mut self, index: usize) {
        let Some(entry) = self.blocks.get_mut(index).filter(|entry| entry.needed == 0) else { return };
        let bytes = std::mem::take(&mut entry.bytes);
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
        match std::mem::replace(&mut entry.block, Block::Gone) {
            Block::Memory(_) => self.has_left_memory(),
            Block::File { offset } => self.file.free(offset, bytes),
            Block::Gone => {}
        }
    }

    /// Whether most of it is needed no more, but lies between what is: time to move the latter to another attic.
    pub fn is_wasteful(&self) -> bool {
        self.bytes > 2 * self.needed + WASTE_BYTES
    }
}

impl Drop for Attic {
    fn drop(&mut self) {
        self.file.in_memory.fetch_sub(self.in_memory, Ordering::Relaxed);
        for entry in &self.blocks {
            if let Block::File { offset } = entry.block {
                self.file.free(offset, entry.bytes);
            }
        }
    }
}

/// What the attics of a run share: how much of them is in memory, and the temporary file, made when it is first needed.
#[derive(Default)]
pub(crate) struct AtticFile {
    in_memory: AtomicUsize,
    /// Nothing beyond what each attic keeps in any case may stay in memory.
    lacks_memory: AtomicBool,
    made: OnceLock<(File, Temporary)>,
    room: Mutex<Room>,
    /// It could not be made or written once: everything stays in memory from then on.
    has_no_room: AtomicBool,
    failure: Mutex<Option<Error>>,
}

/// Where in the file there is room.
#[derive(Default)]
struct Room {
    end: u64,
    /// Where blocks may be overwritten.
    free: Vec<u64>,
}

/// Who panicked while holding it has left it whole.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AtticFile {
    /// What made reading impossible: the states that were asked for are lost, and so is the run.
    pub fn failure(&self) -> Option<Error> {
        locked(&self.failure).take()
    }

    /// Whether [`Self::failure`] would say something.
    pub fn has_failed(&self) -> bool {
        locked(&self.failure).is_some()
    }

    fn is_memory_full(&self) -> bool {
        self.in_memory.load(Ordering::Relaxed) >= ALL_IN_MEMORY || self.lacks_memory.load(Ordering::Relaxed)
    }

    /// Writes a block; returns where it lies.
    fn write(&self, block: &[u8]) -> Option<u64> {
        if self.has_no_room.load(Ordering::Relaxed) {
            return None;
        }
        let mut room = locked(&self.room);
        let written = (|| {
            let (file, _) = match self.made.get() {
                Some(made) => made,
                None => {
                    let (temporary, file) = Temporary::new().ok()?;
                    self.made.get_or_init(|| (file, temporary))
                }
            };
            let offset = if block.len() <= BLOCK_BYTES { room.free.pop() } else { None }.unwrap_or(room.end);
            write_at(file, block, offset).ok()?;
            // Blocks take equal room, so that one may lie where another one was.
            room.end = room.end.max(offset + block.len().max(BLOCK_BYTES) as u64);
            Some(offset)
        })();
        self.has_no_room.store(written.is_none(), Ordering::Relaxed);
        written
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let Some((file, temporary)) = self.made.get() else { return false };
        match self.read_at(file, bytes, offset) {
            Ok(()) => true,
            Err(error) => {
                locked(&self.failure).get_or_insert(temporary.unreadable(error));
                false
            }
        }
    }

    #[cfg(unix)]
    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
    }

    /// The file has one position, which nobody else may move meanwhile.
    #[cfg(not(unix))]
    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read, Seek};
        let _room = locked(&self.room);
        let mut file = file;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    fn free(&self, offset: u64, bytes: u32) {
        if bytes as usize <= BLOCK_BYTES {
            locked(&self.room).free.push(offset);
        }
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use std::io::{Seek, Write};
    let mut file = file;
    file.seek(io::SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(number: u32) -> Vec<u8> {
        number.to_le_bytes().repeat(1 + number as usize * 37 % 900)
    }

    #[test]
    fn what_was_kept_is_found_in_memory_and_in_the_file() {
        let mut attic = Attic::default();
        attic.keep_in_memory(2);
        let places: Vec<_> = (0..1_000).map(|number| attic.keep(&packed(number)).unwrap()).collect();
        assert!(attic.blocks.len() > 20 && attic.in_memory <= 4, "{} {}", attic.blocks.len(), attic.in_memory);
        let mut scratch = Vec::new();
        for (number, place) in (0..).zip(&places) {
            assert_eq!(attic.read(*place, &mut scratch), Some(packed(number).as_slice()));
        }
        assert!(attic.file.failure().is_none());
    }

    #[test]
    fn what_is_larger_than_a_block_has_one_of_its_own() {
        let mut attic = Attic::default();
        attic.keep_in_memory(0);
        let large: Vec<u8> = (0..5 * BLOCK_BYTES).map(|at| (at % 251) as u8).collect();
        let places = [attic.keep(&large).unwrap(), attic.keep(&[7; 10]).unwrap(), attic.keep(&large).unwrap()];
        let mut scratch = Vec::new();
        assert_eq!(attic.read(places[0], &mut scratch), Some(large.as_slice()));
        assert_eq!(attic.read(places[1], &mut scratch), Some([7; 10].as_slice()));
        assert_eq!(attic.read(places[2], &mut scratch), Some(large.as_slice()));
    }

    #[test]
    fn the_room_of_what_nobody_needs_is_used_again() {
        let mut attic = Attic::default();
        attic.keep_in_memory(0);
        for round in 0..20_u32 {
            let places: Vec<_> = (0..400).map(|number| attic.keep(&packed(number + round)).unwrap()).collect();
            places.into_iter().for_each(|place| attic.forget(place));
        }
        let end = locked(&attic.file.room).end;
        assert!((1..=16 * BLOCK_BYTES as u64).contains(&end), "{end}");
        assert!(attic.needed == 0 && attic.bytes <= BLOCK_BYTES as u64 && !attic.is_wasteful());
    }

    #[test]
    fn one_state_in_each_block_makes_it_wasteful() {
        let mut attic = Attic::default();
        let file = Arc::clone(&attic.file);
        let places: Vec<_> = (0..6_000).map(|number| attic.keep(&packed(number)).unwrap()).collect();
        assert!(!attic.is_wasteful());
        for (number, place) in places.iter().enumerate() {
            if number % 50 != 0 {
                attic.forget(*place);
            }
        }
        assert!(attic.is_wasteful());
        assert_eq!(file.in_memory.load(Ordering::Relaxed), attic.in_memory);
        drop(attic);
        assert_eq!(file.in_memory.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn beyond_what_all_attics_may_take_each_keeps_its_newest_blocks() {
        let mut attic = Attic::default();
        // As if others had left room for eight more.
        attic.file.in_memory.store(ALL_IN_MEMORY - 8, Ordering::Relaxed);
        (0..2_000).for_each(|number| assert!(attic.keep(&packed(number)).is_some()));
        assert!(attic.blocks.len() > 20 && attic.in_memory == 8, "{} {}", attic.blocks.len(), attic.in_memory);
        // As if others had taken that too.
        attic.file.in_memory.store(10 * ALL_IN_MEMORY, Ordering::Relaxed);
        (0..200).for_each(|number| assert!(attic.keep(&packed(number)).is_some()));
        assert_eq!(attic.in_memory, BLOCKS_IN_MEMORY + 1);
    }

    #[test]
    fn without_room_for_the_file_everything_stays_in_memory() {
        let mut attic = Attic::default();
        attic.keep_in_memory(0);
        attic.file.has_no_room.store(true, Ordering::Relaxed);
        let places: Vec<_> = (0..1_000).map(|number| attic.keep(&packed(number)).unwrap()).collect();
        let mut scratch = Vec::new();
        for (number, place) in (0..).zip(&places) {
            assert_eq!(attic.read(*place, &mut scratch), Some(packed(number).as_slice()));
        }
        assert!(attic.file.made.get().is_none() && attic.in_memory == attic.blocks.len());
    }

    #[test]
    fn a_file_that_cannot_be_read_again_is_an_error() {
        let mut attic = Attic::default();
        attic.keep_in_memory(0);
        let places: Vec<_> = (0..1_000).map(|number| attic.keep(&packed(number)).unwrap()).collect();
        attic.file.made.get().unwrap().0.set_len(0).unwrap();
        assert_eq!(attic.read(places[0], &mut Vec::new()), None);
        assert!(matches!(attic.file.failure(), Some(Error::Io { .. })));
        assert!(attic.file.failure().is_none(), "it is told once");
    }
}
