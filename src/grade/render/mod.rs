//! The report for people: text for a terminal, and a page of HTML that needs nothing else.

mod html;
mod text;
#[cfg(test)]
mod tests;
mod view;
mod wrap;

pub use html::{page, part};
pub use text::{TextOptions, text};
