//! Which frames belong together, and how the work on them is shared out.

mod addresses;
mod fragments;
mod hold;
mod key;
mod opening;
mod table;

pub(crate) use addresses::AddressBook;
pub(crate) use fragments::{Arrival, Fragments};
pub(crate) use hold::HoldQueue;
pub(crate) use key::FlowHasher;
pub use key::{Endpoint, FlowKey};
pub(crate) use opening::Opening;
pub(crate) use table::{FlowRef, FlowState, FlowTable};
