//! The core's error: that of the kernels, as a type of this crate, so that the bindings can say which exception it is.

use rgrad_kernels::error::Error as KernelError;
pub use rgrad_kernels::error::{ErrorKind, panic_message, watch_panics, within};
use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the core. One pointer wide, as the one inside; kind, message and notes are read through it.
pub struct Error(KernelError);

macro_rules! constructors {
    ($($name:ident),+) => {
        impl Error {
            $(
                #[doc = concat!("As `rgrad_kernels::error::Error::", stringify!($name), "`.")]
                #[cold]
                pub fn $name(message: impl Into<String>) -> Self {
                    Error(KernelError::$name(message))
                }
            )+
        }
    };
}

constructors!(shape, dtype, graph, runtime, index, value, type_, not_implemented, memory);

impl Error {
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(KernelError::new(kind, message))
    }

    /// A bug in the engine, found in an operation.
    #[cold]
    pub fn internal(operation: &str, what: &str) -> Self {
        Error(KernelError::internal(operation, what))
    }

    /// Wraps an exception of the embedding language so that it comes out unchanged on the other side.
    #[cold]
    pub fn foreign(exception: Box<dyn Any + Send + Sync>, message: impl Into<String>) -> Self {
        Error(KernelError::foreign(exception, message))
    }

    /// Adds a line that the embedding language shows below the message.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Error(self.0.note(note))
    }
}

impl Deref for Error {
    type Target = KernelError;

    fn deref(&self) -> &KernelError {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut KernelError {
        &mut self.0
    }
}

impl From<KernelError> for Error {
    fn from(e: KernelError) -> Self {
        Error(e)
    }
}

impl From<Error> for KernelError {
    fn from(e: Error) -> Self {
        e.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {}

/// Leaves a function that has no way to tell of an error: whoever catches the panic gets this very error.
#[cold]
pub(crate) fn throw(e: Error) -> ! {
    rgrad_kernels::error::throw(e.0)
}

/// The error that a panic of this thread becomes.
#[cold]
pub fn of_panic(what: &str) -> Error {
    Error(rgrad_kernels::error::of_panic(what))
}

/// Runs `f`; a panic in it becomes an error.
pub fn caught<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    rgrad_kernels::error::caught(|| Ok(f()?)).map_err(Error)
}
