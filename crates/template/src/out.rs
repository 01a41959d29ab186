//! Text under construction, with a bound, and the budget of steps.

use crate::{Bounds, value::Value};

/// What went wrong in a function: a sentence, and perhaps a hint. The place is added by the caller.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Wrong {
    pub(crate) fn hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Wrong { message: message.into(), hint: Some(hint.into()) }
    }
}

impl<T: Into<String>> From<T> for Wrong {
    fn from(message: T) -> Self {
        Wrong { message: message.into(), hint: None }
    }
}

/// What is left of the bounds.
pub(crate) struct Budget {
    pub(crate) bounds: Bounds,
    steps: u64,
}

impl Budget {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Budget { bounds, steps: 0 }
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Wrong> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.bounds.max_steps {
            return Err(format!("rendering takes more than {} steps", self.bounds.max_steps).into());
        }
        Ok(())
    }

    pub(crate) fn out(&self) -> Out {
        Out { text: String::new(), max_bytes: self.bounds.max_output_bytes }
    }

    /// A list with `items`; no deeper than allowed.
    pub(crate) fn list(&mut self, items: Vec<Value>) -> Result<Value, Wrong> {
        self.spend(items.len())?;
        self.check(Value::list(items))
    }

    pub(crate) fn check(&self, value: Value) -> Result<Value, Wrong> {
        if value.depth() > self.bounds.max_depth_levels {
            return Err(format!("lists and maps are nested deeper than {} levels", self.bounds.max_depth_levels).into());
        }
        Ok(value)
    }
}

pub(crate) struct Out {
    pub(crate) text: String,
    max_bytes: usize,
}

impl Out {
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Wrong> {
        if self.text.len() + text.len() > self.max_bytes {
            return Err(format!("the text is longer than {} bytes", self.max_bytes).into());
        }
        self.text.push_str(text);
        Ok(())
    }

    pub(crate) fn repeat(&mut self, text: &str, times: usize) -> Result<(), Wrong> {
        if text.len().saturating_mul(times) > self.max_bytes {
            return Err(format!("the text is longer than {} bytes", self.max_bytes).into());
        }
        self.push(&text.repeat(times))
    }
}
