//! What a caller may hand in as a capture.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

/// One input of a capture.
pub enum Input {
    /// A file; `-` is standard input.
    Path(PathBuf),
    /// The content of a capture file.
    Bytes(Arc<[u8]>),
    /// The same, with a name for messages.
    NamedBytes(Arc<[u8]>, String),
    /// Anything that can be read from start to end, with a name for messages.
    Reader(Box<dyn Read + Send>, String),
}

impl Input {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Bytes(_) => "<bytes>".to_owned(),
            Self::NamedBytes(_, name) | Self::Reader(_, name) => name.clone(),
        }
    }

    /// Whether reading it waits for nobody: neither for another program nor for the caller's own code.
    pub(crate) fn is_at_hand(&self) -> bool {
        match self {
            // "-" is standard input, also where a file has that name.
            Self::Path(path) => path.as_os_str() != "-" && path.metadata().is_ok_and(|facts| facts.is_file()),
            Self::Bytes(_) | Self::NamedBytes(..) => true,
            Self::Reader(..) => false,
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({})", self.name())
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

impl From<&str> for Input {
    fn from(path: &str) -> Self {
        Self::Path(PathBuf::from(path))
    }
}

impl From<&std::path::Path> for Input {
    fn from(path: &std::path::Path) -> Self {
        Self::Path(path.to_path_buf())
    }
}

impl From<Vec<u8>> for Input {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}
