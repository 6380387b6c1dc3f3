//! The report for people: text for a terminal, and a page of HTML that needs nothing else.

mod html;
#[cfg(test)]
mod tests;
mod text;
mod view;
mod wrap;

pub use html::{page, part};
pub use text::{TextOptions, text};
