//! Trace context as W3C writes it: which trace a thing belongs to, and what it is a part of.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// A place in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
    /// Whoever began the trace wants its spans kept.
    sampled: bool,
}

impl TraceContext {
    /// A new trace that begins with this span.
    pub fn new(random: u128, span: u64) -> Self {
        Self { trace: random.max(1).to_be_bytes(), span: span.max(1).to_be_bytes(), sampled: true }
    }

    /// Another span of the same trace.
    pub fn span(&self, span: u64) -> Self {
        Self { span: span.max(1).to_be_bytes(), ..self.clone() }
    }

    /// Reads a `traceparent`; None where it is not one that means something.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // A later version may say more; what is known of it stays where it is.
        let more = parts.next().is_some();
        let lengths = (version.len(), trace.len(), span.len(), flags.len()) == (2, 32, 16, 2);
        let lower = |t: &str| t.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !lengths || ![version, trace, span, flags].into_iter().all(lower) || version == "ff" {
            return None;
        }
        if version == "00" && more {
            return None;
        }
        let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        (trace != 0 && span != 0).then(|| Self { trace: trace.to_be_bytes(), span: span.to_be_bytes(), sampled })
    }

    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// The span that a thing with this name is, in any trace: whoever speaks of it says the same.
    pub fn span_of(&self, name: &str) -> Self {
        let digest = Digest::of(name.as_bytes());
        self.span(u64::from_str_radix(&digest.hex()[..16], 16).unwrap_or(1))
    }

    /// The span of a step of an execution of this job: the executor and the control plane say the same.
    pub fn step(&self, execution: &str, step: usize) -> Self {
        self.span_of(&format!("{execution}/{step}"))
    }

    pub fn trace_id(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace))
    }

    pub fn span_id(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.span))
    }
}

impl TryFrom<String> for TraceContext {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a trace context"))
    }
}

impl From<TraceContext> for String {
    fn from(context: TraceContext) -> Self {
        context.to_string()
    }
}

impl std::fmt::Display for TraceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id(), self.span_id(), u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_reads_back_and_nonsense_is_none() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(text).expect("good");
        assert_eq!(context.to_string(), text);
        assert_eq!(context.span(7).to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
        let quiet = TraceContext::parse(&text.replace("-01", "-02")).expect("good");
        assert_eq!((context.is_sampled(), quiet.is_sampled()), (true, false));
        assert!(quiet.span(7).to_string().ends_with("-00"), "and so it is passed on");
        assert!(TraceContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later").is_some());
        for bad in [
            "",
            "00-0-0-0",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }
}
