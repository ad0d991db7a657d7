//! One error type for the whole core: a kind, a message, notes, and possibly a foreign exception that passes through untouched.

use std::any::Any;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error; each kind is one Python exception class (`python::errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Shapes that do not fit together (RuntimeError in Python, as in PyTorch).
    Shape,
    /// A dtype that an operation does not take (RuntimeError).
    DType,
    /// A graph that cannot be walked: freed, missing, modified (RuntimeError).
    Graph,
    /// Any other failure that PyTorch reports as RuntimeError.
    Runtime,
    /// A dimension or element index out of range (IndexError).
    Index,
    /// An argument whose value makes no sense (ValueError).
    Value,
    /// An argument of the wrong type (TypeError).
    Type,
    /// Something that exists in PyTorch but not here yet (NotImplementedError).
    NotImplemented,
    /// The machine, its cgroup or a set limit has too little memory (MemoryError).
    Memory,
    /// An exception of the embedding language; `foreign` holds it and it is raised again as itself.
    Foreign,
}

impl Kind {
    /// Every kind, for tests that compare hand-kept lists with this enum.
    pub const ALL: [Kind; 10] = [
        Kind::Shape,
        Kind::DType,
        Kind::Graph,
        Kind::Runtime,
        Kind::Index,
        Kind::Value,
        Kind::Type,
        Kind::NotImplemented,
        Kind::Memory,
        Kind::Foreign,
    ];
}

struct Inner {
    kind: Kind,
    message: String,
    notes: Vec<String>,
    foreign: Option<Box<dyn Any + Send + Sync>>,
}

/// An error of the core. One pointer wide, so that `Result` stays cheap on the hot path.
pub struct Error(Box<Inner>);

impl Error {
    #[cold]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), notes: Vec::new(), foreign: None }))
    }

    #[cold]
    pub fn shape(message: impl Into<String>) -> Self {
        Self::new(Kind::Shape, message)
    }

    #[cold]
    pub fn dtype(message: impl Into<String>) -> Self {
        Self::new(Kind::DType, message)
    }

    #[cold]
    pub fn graph(message: impl Into<String>) -> Self {
        Self::new(Kind::Graph, message)
    }

    #[cold]
    pub fn runtime(message: impl Into<String>) -> Self {
        Self::new(Kind::Runtime, message)
    }

    #[cold]
    pub fn index(message: impl Into<String>) -> Self {
        Self::new(Kind::Index, message)
    }

    #[cold]
    pub fn value(message: impl Into<String>) -> Self {
        Self::new(Kind::Value, message)
    }

    #[cold]
    pub fn type_(message: impl Into<String>) -> Self {
        Self::new(Kind::Type, message)
    }

    #[cold]
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(Kind::NotImplemented, message)
    }

    #[cold]
    pub fn memory(message: impl Into<String>) -> Self {
        Self::new(Kind::Memory, message)
    }

    /// Wraps an exception of the embedding language so that it comes out unchanged on the other side.
    #[cold]
    pub fn foreign(exception: Box<dyn Any + Send + Sync>, message: impl Into<String>) -> Self {
        let mut e = Self::new(Kind::Foreign, message);
        e.0.foreign = Some(exception);
        e
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// Adds a line that the embedding language shows below the message.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.0.notes.push(note.into());
        self
    }

    /// Takes the foreign exception out, leaving the message and the notes.
    pub fn take_foreign(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        self.0.foreign.take()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for n in &self.0.notes {
            write!(f, "\n{n}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_one_pointer_wide() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn notes_follow_the_message() {
        let e = Error::index("bad").note("forward call at a.py:3");
        assert_eq!(e.to_string(), "bad\nforward call at a.py:3");
        assert_eq!(e.kind(), Kind::Index);
    }
}
