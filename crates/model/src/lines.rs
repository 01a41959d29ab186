//! Lines of a log, whole, though they were printed in pieces.
//!
//! A line belongs to the chunk that ends it: with a line end, with a gap, or, where its pipe was closed or others have written too
//! much meanwhile, with an empty chunk. So a line that was shown never changes, and who reads from the middle looks back a little
//! for the beginning of the first one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::log::{Body, Chunk, Pipe};

/// An executor ends a line over which so many bytes of the log, of all pipes, were written: nobody has to look back further.
pub const LINE_SPAN: u64 = 256 << 10;
/// What a reader holds of a line whose executor does not do so.
const OPEN_BYTES_MAX: usize = 2 * LINE_SPAN as usize;

/// What a frame takes beside its bytes, about: however small the pieces are, only so many of them are looked at.
pub const FRAME_BYTES: u64 = 40;

/// What was printed of lines that have begun and not ended, pipe by pipe, as far as it is known; nothing of one that has.
#[derive(Debug, Default)]
pub struct OpenLines(BTreeMap<Pipe, Vec<u8>>);

/// The lines that end in a chunk.
#[derive(Debug)]
pub struct Ended<'c> {
    /// What was printed of the first one earlier; `None` where that is not known.
    beginning: Option<Vec<u8>>,
    /// Up to the last line end of the chunk, without it.
    lines: Option<&'c [u8]>,
}

/// The end of a log that has no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// More may come.
    Open,
    /// Its executor ended its lines.
    Whole,
    /// Nobody did.
    Torn,
}

impl OpenLines {
    /// Takes chunks in the order of the log, and tells which lines end in them. After the last ones come chunks that nobody wrote: they
    /// end what was left open.
    pub fn block<'c>(&mut self, chunks: &'c [Chunk], end: End) -> Vec<(Cow<'c, Chunk>, Ended<'c>)> {
        let mut all: Vec<_> = chunks.iter().map(|chunk| (Cow::Borrowed(chunk), self.pass(chunk))).collect();
        if let Some(last) = chunks.last() {
            let rest = self.rest(last.seq + 1, last.time_ns + last.lines() + 1, last.step, end);
            all.extend(rest.into_iter().map(|(chunk, ended)| (Cow::Owned(chunk), ended)));
        }
        all
    }

    pub fn pass<'c>(&mut self, chunk: &'c Chunk) -> Ended<'c> {
        let none = Ended { beginning: Some(Vec::new()), lines: None };
        if chunk.pipe.holds_records() {
            return none;
        }
        let before = self.0.remove(&chunk.pipe).or_else(|| (chunk.offset == 0).then(Vec::new));
        let data = match &chunk.body {
            Body::Data(data) => data.as_slice(),
            Body::Gap(_) => &[],
        };
        let end = data.iter().rposition(|b| *b == b'\n');
        let (ended, left) = match (end, before) {
            (Some(end), beginning) => (Ended { beginning, lines: Some(&data[..end]) }, data[end + 1..].to_vec()),
            (None, beginning) if data.is_empty() => (Ended { beginning, lines: None }, Vec::new()),
            // The end of a line whose beginning is not known may come yet.
            (None, None) => return none,
            (None, Some(mut text)) => {
                text.extend_from_slice(data);
                let all = if text.len() > OPEN_BYTES_MAX { std::mem::take(&mut text) } else { Vec::new() };
                (Ended { beginning: Some(all), lines: None }, text)
            }
        };
        self.0.insert(chunk.pipe, left);
        ended
    }

    /// What has not ended, after the last chunk.
    pub fn rest(&mut self, seq: u64, time_ns: u64, step: u32, end: End) -> Vec<(Chunk, Ended<'static>)> {
        let mut rest = Vec::new();
        let pipes = if end == End::Open { &[][..] } else { &[Pipe::Stdout, Pipe::Stderr] };
        // Each has its place, whether the other has something left or not.
        for (at, pipe) in (0..).zip(pipes) {
            let beginning = match self.0.remove(pipe) {
                Some(text) if text.is_empty() => continue,
                None if end == End::Whole => continue,
                known => known,
            };
            let body = Body::Data(Vec::new());
            let chunk = Chunk { seq: seq + at, time_ns: time_ns + at, pipe: *pipe, step, offset: u64::MAX, body };
            rest.push((chunk, Ended { beginning, lines: None }));
        }
        rest
    }
}

impl Ended<'_> {
    /// Whether the first line may have begun before what was read; `begin` says how.
    pub fn is_beginning_unknown(&self) -> bool {
        self.beginning.is_none()
    }

    pub fn begin(&mut self, text: Vec<u8>) {
        self.beginning = Some(text);
    }

    /// The lines with their numbers, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = (usize, Cow<'_, [u8]>)> {
        let beginning = self.beginning.as_deref().unwrap_or_default();
        let alone = (self.lines.is_none() && !beginning.is_empty()).then_some((0, Cow::Borrowed(beginning)));
        let split = self.lines.into_iter().flat_map(|lines| lines.split(|b| *b == b'\n')).enumerate();
        let joined = split.map(move |(at, line)| match at {
            0 if !beginning.is_empty() => (at, Cow::Owned([beginning, line].concat())),
            _ => (at, Cow::Borrowed(line)),
        });
        alone.into_iter().chain(joined).map(|(at, line)| (at, without_return(line)))
    }
}

fn without_return(line: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.strip_suffix(b"\r").unwrap_or(line)),
        Cow::Owned(mut line) => {
            line.truncate(line.len() - usize::from(line.ends_with(b"\r")));
            Cow::Owned(line)
        }
    }
}

/// How the line begins that a chunk of a pipe goes on with: chunks before it are given from the last to the first, until it says that
/// the beginning is found.
#[derive(Debug)]
pub struct Backward {
    pipe: Pipe,
    pieces: Vec<Vec<u8>>,
    span: u64,
}

impl Backward {
    pub fn new(pipe: Pipe) -> Self {
        Self { pipe, pieces: Vec::new(), span: 0 }
    }

    /// Takes the chunk before. True when nothing of the line lies further back.
    pub fn pass(&mut self, chunk: &Chunk) -> bool {
        self.span += FRAME_BYTES;
        let Body::Data(data) = &chunk.body else { return chunk.pipe == self.pipe };
        self.span += data.len() as u64;
        if chunk.pipe == self.pipe {
            let end = data.iter().rposition(|b| *b == b'\n');
            self.pieces.push(data[end.map_or(0, |end| end + 1)..].to_vec());
            if end.is_some() || data.is_empty() || chunk.offset == 0 {
                return true;
            }
        }
        self.span > OPEN_BYTES_MAX as u64
    }

    pub fn text(mut self) -> Vec<u8> {
        self.pieces.reverse();
        self.pieces.concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(seq: u64, pipe: Pipe, offset: u64, body: Body) -> Chunk {
        Chunk { seq, time_ns: seq * 1000, pipe, step: 0, offset, body }
    }

    /// The lines that chunks from one on end, by chunk and number.
    fn read(chunks: &[Chunk], from: usize, end: End) -> Vec<(u64, usize, Pipe, Vec<u8>)> {
        let mut found = Vec::new();
        for (chunk, mut ended) in OpenLines::default().block(&chunks[from..], end) {
            if ended.is_beginning_unknown() {
                let mut backward = Backward::new(chunk.pipe);
                let _ = chunks[..chunks.len().min(chunk.seq as usize)].iter().rev().any(|before| backward.pass(before));
                ended.begin(backward.text());
            }
            found.extend(ended.lines().map(|(n, line)| (chunk.seq, n, chunk.pipe, line.into_owned())));
        }
        found
    }

    proptest! {
        #[test]
        fn lines_are_whole_wherever_they_were_cut_and_wherever_reading_begins(
            pieces in proptest::collection::vec((any::<bool>(), "[ab\n]{1,6}"), 1..30),
            torn in any::<bool>(),
        ) {
            let end = if torn { End::Torn } else { End::Whole };
            let (mut chunks, mut texts) = (Vec::new(), BTreeMap::from([(Pipe::Stdout, String::new()), (Pipe::Stderr, String::new())]));
            for (seq, (stdout, piece)) in pieces.iter().enumerate() {
                let pipe = if *stdout { Pipe::Stdout } else { Pipe::Stderr };
                let text = texts.get_mut(&pipe).unwrap();
                chunks.push(chunk(seq as u64, pipe, text.len() as u64, Body::Data(piece.clone().into_bytes())));
                text.push_str(piece);
            }
            // As an executor does at the end.
            for (pipe, text) in &texts {
                if !torn && !text.is_empty() && !text.ends_with('\n') {
                    chunks.push(chunk(chunks.len() as u64, *pipe, text.len() as u64, Body::Data(Vec::new())));
                }
            }
            let all = read(&chunks, 0, end);
            prop_assert!(all.is_sorted_by_key(|line| line.0));
            for (pipe, text) in &texts {
                let lines: Vec<_> = all.iter().filter(|l| l.2 == *pipe).map(|l| String::from_utf8_lossy(&l.3)).collect();
                prop_assert_eq!(lines, text.lines().collect::<Vec<_>>());
            }
            for from in 0..chunks.len() {
                let expected: Vec<_> = all.iter().filter(|l| l.0 >= from as u64).cloned().collect();
                prop_assert_eq!(read(&chunks, from, end), expected);
            }
        }
    }

    #[test]
    fn a_gap_ends_a_line_and_what_never_ends_is_told_at_last() {
        let data = |seq, offset, text: &[u8]| chunk(seq, Pipe::Stdout, offset, Body::Data(text.to_vec()));
        let chunks = [
            data(0, 0, b"one\r\ntw"),
            chunk(1, Pipe::Stdout, 7, Body::Gap(100)),
            data(2, 107, b"three"),
            data(3, 112, b" four\nfive"),
        ];
        let shown: Vec<_> =
            read(&chunks, 0, End::Whole).into_iter().map(|l| (l.0, l.1, String::from_utf8(l.3).unwrap())).collect();
        let expected = [(0, 0, "one"), (1, 0, "tw"), (3, 0, "three four"), (4, 0, "five")];
        assert_eq!(shown, expected.map(|(seq, at, text)| (seq, at, text.to_owned())));
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let mut open = OpenLines::default();
        let longest = (0..100u64)
            .map(|seq| {
                let chunk = chunk(seq, Pipe::Stdout, seq * 65_536, Body::Data(vec![b'x'; 65_536]));
                open.pass(&chunk).lines().map(|(_, line)| line.len()).sum::<usize>()
            })
            .collect::<Vec<_>>();
        assert!(longest.iter().all(|n| *n <= OPEN_BYTES_MAX + 65_536));
        let rest = open.rest(100, 0, 0, End::Whole);
        let rest: usize = rest.iter().flat_map(|(_, left)| left.lines()).map(|(_, line)| line.len()).sum();
        assert_eq!(longest.iter().sum::<usize>() + rest, 100 * 65_536, "nothing of it is lost");
    }
}
