//! The error type of the whole core: a kind, a message, notes, and possibly a foreign exception that passes through unchanged. Also the
//! conversion of panics to errors.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error; each kind is one Python exception class (`python::errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Shapes that do not fit together (RuntimeError in Python, as in PyTorch).
    Shape,
    /// A dtype that an operation does not take (RuntimeError).
    DType,
    /// A graph that cannot be walked: freed, missing, modified (RuntimeError).
    Graph,
    /// A matrix without the factorisation or the inverse that was asked for (PyTorch's LinAlgError, a RuntimeError).
    LinearAlgebra,
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
    /// A bug of the engine, to be reported (RuntimeError).
    Internal,
    /// An exception of the embedding language; `foreign` holds it, and the same exception is raised again.
    Foreign,
}

impl ErrorKind {
    /// Every kind, for tests that compare hand-kept lists with this enum.
    pub const ALL: [ErrorKind; 12] = [
        ErrorKind::Shape,
        ErrorKind::DType,
        ErrorKind::Graph,
        ErrorKind::LinearAlgebra,
        ErrorKind::Runtime,
        ErrorKind::Index,
        ErrorKind::Value,
        ErrorKind::Type,
        ErrorKind::NotImplemented,
        ErrorKind::Memory,
        ErrorKind::Internal,
        ErrorKind::Foreign,
    ];
}

struct ErrorData {
    kind: ErrorKind,
    message: String,
    notes: Vec<String>,
    foreign: Option<Box<dyn Any + Send + Sync>>,
}

/// An error of the core. One pointer wide, so that `Result` stays cheap on the hot path.
pub struct Error(Box<ErrorData>);

impl Error {
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(ErrorData { kind, message: message.into(), notes: Vec::new(), foreign: None }))
    }

    #[cold]
    pub fn shape(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Shape, message)
    }

    #[cold]
    pub fn dtype(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DType, message)
    }

    #[cold]
    pub fn graph(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Graph, message)
    }

    #[cold]
    pub fn runtime(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Runtime, message)
    }

    #[cold]
    pub fn index(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Index, message)
    }

    #[cold]
    pub fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Value, message)
    }

    #[cold]
    pub fn type_(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Type, message)
    }

    #[cold]
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotImplemented, message)
    }

    #[cold]
    pub fn memory(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Memory, message)
    }

    /// A bug in the engine, found in an operation.
    #[cold]
    pub fn internal(operation: &str, what: &str) -> Self {
        Self::new(ErrorKind::Internal, format!("internal error in {operation}: {what}. This is a bug in rgrad; please report it"))
    }

    /// Wraps an exception of the embedding language, which is raised again unchanged.
    #[cold]
    pub fn foreign(exception: Box<dyn Any + Send + Sync>, message: impl Into<String>) -> Self {
        let mut e = Self::new(ErrorKind::Foreign, message);
        e.0.foreign = Some(exception);
        e
    }

    pub fn kind(&self) -> ErrorKind {
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

thread_local! {
    static PANIC: RefCell<Panic> = const { RefCell::new(Panic { operation: None, line: None, error: None }) };
}

/// Data about the last panic of this thread.
#[derive(Default)]
struct Panic {
    /// The innermost operation that it unwound.
    operation: Option<String>,
    /// The line of the source where it began.
    line: Option<String>,
    /// The error that it stands for, if it is not a bug.
    error: Option<Error>,
}

fn with_panic<R>(f: impl FnOnce(&mut Panic) -> R) -> Option<R> {
    PANIC.try_with(|p| p.try_borrow_mut().ok().map(|mut p| f(&mut p))).ok().flatten()
}

/// Installs a panic hook that records where a panic began; the previous hook still runs.
pub fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let line = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
            with_panic(|p| *p = Panic { line, ..Panic::default() });
            before(info);
        }));
    });
}

/// Runs `f`. If it panics, the error of the panic contains the name of the operation.
#[inline(always)]
pub fn within<R, N: Fn() -> String>(name: N, f: impl FnOnce() -> R) -> R {
    struct NameOnPanic<N: Fn() -> String>(N);
    impl<N: Fn() -> String> Drop for NameOnPanic<N> {
        #[cold]
        fn drop(&mut self) {
            with_panic(|p| _ = p.operation.get_or_insert_with(|| (self.0)()));
        }
    }
    let name = NameOnPanic(name);
    let result = f();
    // It is dropped only if `f` unwinds.
    std::mem::forget(name);
    result
}

/// Panics with an error, in a function that cannot return one; the code that catches the panic gets this error.
#[cold]
pub fn throw(e: Error) -> ! {
    let text = e.to_string();
    with_panic(|p| *p = Panic { error: Some(e), ..Panic::default() });
    std::panic::resume_unwind(Box::new(text))
}

/// The error with which `throw` has just made this thread panic; None for another panic.
#[cold]
pub(crate) fn taken_error() -> Option<Error> {
    with_panic(|p| p.error.take()).flatten()
}

/// The error for a panic of this thread.
#[cold]
pub fn of_panic(what: &str) -> Error {
    let panic = with_panic(std::mem::take).unwrap_or_default();
    if let Some(error) = panic.error {
        return error;
    }
    let at = match (panic.operation, panic.line) {
        (Some(operation), Some(line)) => format!("{operation} (at {line})"),
        (Some(at), None) | (None, Some(at)) => at,
        (None, None) => "an operation".into(),
    };
    Error::internal(&at, what)
}

/// The message of a panic.
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<String>(), payload.downcast_ref::<&str>()) {
        (Some(s), _) => s,
        (None, Some(s)) => s,
        (None, None) => "a panic without words",
    }
}

/// Runs `f`; a panic in it becomes an error.
pub fn caught<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| Err(of_panic(panic_message(&*payload))))
}

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
        assert_eq!(e.kind(), ErrorKind::Index);
    }

    #[test]
    fn a_panic_becomes_an_error_that_names_the_innermost_operation() {
        watch_panics();
        let e = caught(|| within(|| "outer".into(), || within(|| "inner".into(), || -> Result<()> { panic!("three {}", 3) }))).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Internal);
        assert!(e.message().starts_with("internal error in inner (at src/kernels/error.rs:"), "{e}");
        assert!(e.message().ends_with(": three 3. This is a bug in rgrad; please report it"), "{e}");
        // The next panic has no data of this one.
        let e = caught(|| -> Result<()> { panic!("other") }).unwrap_err();
        assert!(e.message().starts_with("internal error in src/kernels/error.rs:") && e.message().contains(": other."), "{e}");
        assert_eq!(caught(|| within(|| "fine".into(), || Ok(4))).unwrap(), 4);
        let e = caught(|| within(|| "add".into(), || -> Result<()> { throw(Error::memory("none left").note("here")) })).unwrap_err();
        assert_eq!((e.kind(), e.to_string()), (ErrorKind::Memory, "none left\nhere".into()));
    }
}
