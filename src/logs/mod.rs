//! The text and JSON that lab tools print, as tables beside the capture's: tolerant, since real logs are often broken.
