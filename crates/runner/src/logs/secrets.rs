//! What an execution must not show, and how its steps add to it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use mask::Masks;
use rustix::fs::{Mode, OFlags};

/// Largest file of secrets that steps register.
const REGISTERED_BYTES_MAX: u64 = 1 << 20;

/// The secrets of one execution: those that its spec names, and those that its steps register as they run, in a file.
pub struct Secrets {
    file: PathBuf,
    known: RefCell<Known>,
}

struct Known {
    values: BTreeSet<String>,
    masks: Rc<Masks>,
    /// Size of the file when it was last read.
    read: u64,
}

/// Says nothing of what it holds.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    pub fn new(values: &[String], file: PathBuf) -> Self {
        let masks = Rc::new(Masks::new(values));
        Self { file, known: RefCell::new(Known { values: values.iter().cloned().collect(), masks, read: 0 }) }
    }

    /// Values that the execution has learned.
    pub fn add(&self, values: impl IntoIterator<Item = String>) {
        let known = &mut *self.known.borrow_mut();
        known.values.extend(values);
        known.masks = Rc::new(Masks::new(&known.values.iter().cloned().collect::<Vec<_>>()));
    }

    /// What is known now, for others to keep.
    pub fn shared(&self) -> Arc<Masks> {
        Arc::new(Masks::new(&self.known.borrow().values.iter().cloned().collect::<Vec<_>>()))
    }

    /// What is known now. Whoever wrote a secret to the file before he printed it finds it masked.
    pub fn masks(&self) -> Rc<Masks> {
        let known = &mut *self.known.borrow_mut();
        let Some(size) = std::fs::symlink_metadata(&self.file).ok().filter(std::fs::Metadata::is_file).map(|m| m.len())
        else {
            return Rc::clone(&known.masks);
        };
        if size != known.read {
            known.read = size;
            let before = known.values.len();
            known.values.extend(self.registered().lines().map(|line| line.trim_end_matches('\r').to_owned()));
            if known.values.len() != before {
                known.masks = Rc::new(Masks::new(&known.values.iter().cloned().collect::<Vec<_>>()));
            }
        }
        Rc::clone(&known.masks)
    }

    /// A script may have put anything there: a link leads nowhere, and a pipe is not waited for.
    fn registered(&self) -> String {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut bytes = Vec::new();
        if let Ok(file) = rustix::fs::open(&self.file, flags, Mode::empty()) {
            let _ = std::fs::File::from(file).take(REGISTERED_BYTES_MAX).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
