//! Log chunks and their frames: the same bytes lie in the spool, travel to the server and rest there.
//!
//! A frame is a fixed header, the payload, and a checksum over both. The executor numbers chunks as it writes them, so any
//! runner process sends the same bytes under the same number.

use crate::{ExecutionId, LogStreamId, RunnerId, id};

/// Where a chunk comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pipe {
    /// What the executor itself says.
    System,
    Stdout,
    Stderr,
    /// Records of OpenTelemetry exporters: each chunk is one, as JSON, and no piece of a stream of bytes.
    Logs,
    Traces,
    Metrics,
}

impl Pipe {
    const ALL: [Self; 6] = [Self::System, Self::Stdout, Self::Stderr, Self::Logs, Self::Traces, Self::Metrics];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == text)
    }

    /// The level of what it says, by the name and the number that OpenTelemetry has for it.
    pub const fn severity(self) -> (&'static str, i64) {
        match self {
            Self::Stderr => ("ERROR", 17),
            Self::System | Self::Stdout | Self::Logs | Self::Traces | Self::Metrics => ("INFO", 9),
        }
    }

    /// Whether its chunks are records, not bytes in a row.
    pub const fn holds_records(self) -> bool {
        matches!(self, Self::Logs | Self::Traces | Self::Metrics)
    }

    const fn code(self) -> u8 {
        match self {
            Self::System => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Logs => 3,
            Self::Traces => 4,
            Self::Metrics => 5,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.code() == code)
    }
}

/// The marker that stands for bytes that were lost.
const GAP_BIT: u8 = 0x80;
const MAGIC: u8 = 0xF7;
const HEADER: usize = 1 + 1 + 4 + 8 + 8 + 8 + 4;
const TRAILER: usize = 4;
/// Largest payload that a reader accepts.
pub const PAYLOAD_MAX: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Data(Vec<u8>),
    /// So many bytes of this pipe are missing here, or `UNKNOWN`.
    Gap(u64),
}

/// The length of the gap at the end of a log whose executor died: nobody knows what it had taken and not written down.
pub const UNKNOWN: u64 = 0;

/// What stands in a log in place of what is missing, which came out of `pipe` where that is not plain.
pub fn describe_gap(missing: u64, pipe: Option<&str>) -> String {
    let of = pipe.map(|pipe| format!(" of {pipe}")).unwrap_or_default();
    match missing {
        UNKNOWN => format!("the executor died: an unknown number of bytes{of} may be missing here"),
        _ => format!("{missing} bytes{of} are missing here"),
    }
}

/// The names of a runner's telemetry among log streams and logs: other views of the same runner.
pub fn telemetry_stream(runner: &RunnerId) -> LogStreamId {
    twin(LogStreamId::PREFIX, runner.as_str(), LogStreamId::parse)
}

pub fn telemetry_log(runner: &RunnerId) -> ExecutionId {
    twin(ExecutionId::PREFIX, runner.as_str(), ExecutionId::parse)
}

/// The runner whose telemetry a log stream is, if it is one.
pub fn telemetry_runner(stream: &LogStreamId) -> RunnerId {
    twin(RunnerId::PREFIX, stream.as_str(), RunnerId::parse)
}

fn twin<T>(prefix: &'static str, of: &str, parse: fn(&str) -> Result<T, id::InvalidId>) -> T {
    parse(&id::twin(prefix, of)).expect("a twin of an id is one")
}

impl Body {
    /// How many bytes of the pipe it stands for.
    #[expect(clippy::len_without_is_empty, reason = "an empty one has a meaning: it ends a line")]
    pub fn len(&self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Gap(missing) => *missing,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// From 0, without holes, over all pipes of an execution: one order for all of them.
    pub seq: u64,
    /// Nanoseconds since 1970; grows by more than the number of lines of the chunk before, so that every line has its own.
    pub time_ns: u64,
    pub pipe: Pipe,
    /// Index of the step, or `NO_STEP`.
    pub step: u32,
    /// Offset of the first byte in its pipe.
    pub offset: u64,
    pub body: Body,
}

/// Step index of what belongs to no step.
pub const NO_STEP: u32 = u32::MAX;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a log frame does not start with its mark")]
    Mark,
    #[error("a log frame names an unknown pipe")]
    Pipe,
    #[error("a log frame is larger than {PAYLOAD_MAX} bytes")]
    Size,
    #[error("a log frame does not match its checksum")]
    Checksum,
    #[error("a log frame is cut off")]
    Torn,
}

impl Chunk {
    pub fn lines(&self) -> u64 {
        match &self.body {
            Body::Data(data) => data.iter().filter(|&&b| b == b'\n').count() as u64 + 1,
            // The line that it ends, and itself.
            Body::Gap(_) => 2,
        }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let gap;
        let (mark, payload): (u8, &[u8]) = match &self.body {
            Body::Data(data) => (0, data),
            Body::Gap(missing) => {
                gap = missing.to_be_bytes();
                (GAP_BIT, &gap)
            }
        };
        out.push(MAGIC);
        out.push(self.pipe.code() | mark);
        out.extend_from_slice(&self.step.to_be_bytes());
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.time_ns.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        out.extend_from_slice(payload);
        let sum = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&sum.to_be_bytes());
    }

    /// Reads the frame at the start of `bytes`; `None` when it is not complete yet.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes[0] != MAGIC {
            return Err(FrameError::Mark);
        }
        if bytes.len() < HEADER {
            return Ok(None);
        }
        let u32_at = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let length = u32_at(30) as usize;
        if length > PAYLOAD_MAX {
            return Err(FrameError::Size);
        }
        let end = HEADER + length;
        if bytes.len() < end + TRAILER {
            return Ok(None);
        }
        if u32_at(end) != crc32fast::hash(&bytes[..end]) {
            return Err(FrameError::Checksum);
        }
        let pipe = Pipe::from_code(bytes[1] & !GAP_BIT).ok_or(FrameError::Pipe)?;
        let payload = &bytes[HEADER..end];
        let body = if bytes[1] & GAP_BIT == 0 {
            Body::Data(payload.to_vec())
        } else {
            Body::Gap(u64::from_be_bytes(payload.try_into().map_err(|_| FrameError::Size)?))
        };
        let chunk = Self { seq: u64_at(6), time_ns: u64_at(14), pipe, step: u32_at(2), offset: u64_at(22), body };
        Ok(Some((chunk, end + TRAILER)))
    }

    /// Reads all frames of a complete buffer.
    pub fn decode_all(mut bytes: &[u8]) -> Result<Vec<Self>, FrameError> {
        let mut chunks = Vec::new();
        while !bytes.is_empty() {
            let (chunk, used) = Self::decode(bytes)?.ok_or(FrameError::Torn)?;
            chunks.push(chunk);
            bytes = &bytes[used..];
        }
        Ok(chunks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk() -> impl Strategy<Value = Chunk> {
        let body = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Body::Data),
            any::<u64>().prop_map(Body::Gap)
        ];
        let pipe = prop_oneof![Just(Pipe::System), Just(Pipe::Stdout), Just(Pipe::Stderr)];
        (any::<u64>(), any::<u64>(), pipe, any::<u32>(), any::<u64>(), body)
            .prop_map(|(seq, time_ns, pipe, step, offset, body)| Chunk { seq, time_ns, pipe, step, offset, body })
    }

    proptest! {
        #[test]
        fn frames_read_back_and_a_torn_one_is_not_read(chunks in proptest::collection::vec(chunk(), 1..5), cut in 1usize..40) {
            let (mut bytes, mut last) = (Vec::new(), 0);
            for c in &chunks {
                last = bytes.len();
                c.encode(&mut bytes);
            }
            prop_assert_eq!(Chunk::decode_all(&bytes), Ok(chunks));
            // Inside the last frame: a cut between two frames tears none.
            let short = &bytes[..bytes.len() - cut.min(bytes.len() - last - 1)];
            prop_assert!(Chunk::decode_all(short).is_err());
        }

        #[test]
        fn a_flipped_bit_is_found(c in chunk(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = Vec::new();
            c.encode(&mut bytes);
            let i = at.index(bytes.len());
            bytes[i] ^= 1 << bit;
            prop_assert_ne!(Chunk::decode_all(&bytes).ok(), Some(vec![c]));
        }
    }
}
