//! The steps of a workflow as it keeps them.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::workflow::Step;

/// Every attempt, in the order they were made. A copy shares them until they are changed: one step of a long workflow moves at the
/// cost of that step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps(Vec<Arc<Step>>);

type Iter<'s> = std::iter::Map<std::slice::Iter<'s, Arc<Step>>, fn(&'s Arc<Step>) -> &'s Step>;

impl Steps {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, step: Step) {
        self.0.push(Arc::new(step));
    }

    pub fn iter(&self) -> Iter<'_> {
        self.0.iter().map(Arc::as_ref)
    }

    /// Steps that are new or other than they were `before`, each with what it was.
    pub fn changed<'s>(&'s self, before: &'s Self) -> impl Iterator<Item = (Option<&'s Step>, &'s Step)> {
        self.0.iter().enumerate().filter_map(|(at, step)| match before.0.get(at) {
            // Shared steps are equal without a look at them.
            Some(old) if Arc::ptr_eq(old, step) || old == step => None,
            old => Some((old.map(|old| &**old), &**step)),
        })
    }
}

impl Index<usize> for Steps {
    type Output = Step;

    fn index(&self, at: usize) -> &Step {
        &self.0[at]
    }
}

/// Copies the step if it is shared: take it only to change it.
impl IndexMut<usize> for Steps {
    fn index_mut(&mut self, at: usize) -> &mut Step {
        Arc::make_mut(&mut self.0[at])
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().map(Arc::new).collect())
    }
}

impl<'s> IntoIterator for &'s Steps {
    type Item = &'s Step;
    type IntoIter = Iter<'s>;

    fn into_iter(self) -> Iter<'s> {
        self.iter()
    }
}
