//! The log of one execution on disk: numbered chunks in files named by the first number in them.
//!
//! The executor writes, the session reads and deletes what the server has acknowledged. The writer never blocks a
//! child: what does not fit (the spool's bound, a full disk) is counted, and a gap says so as soon as there is room. An empty chunk
//! ends a line that has no end of its own (`model::lines`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fs_err as fs;
use model::constants::{BATCH_BYTES, CHUNK_BYTES};
use model::lines::{FRAME_BYTES, LINE_SPAN};
use model::log::{Body, Chunk, FrameError, NO_STEP, Pipe, UNKNOWN};

const FILE_BYTES: u64 = 8 << 20;
const ENDS: &str = "ends";
/// How often a full spool looks whether the session has deleted something.
const RECOUNT: Duration = Duration::from_millis(20);
/// How much is read at a time; more than the largest frame that a writer makes.
const READ_BYTES: u64 = 4 * CHUNK_BYTES as u64;

fn file_path(spool: &Path, first_seq: u64) -> PathBuf {
    spool.join(format!("{first_seq:012}.log"))
}

/// First numbers of the files that are there, in order.
fn files(spool: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(spool)? {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(|n| n.strip_suffix(".log")).and_then(|n| n.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

/// The executor's end.
#[derive(Debug)]
pub struct SpoolWriter {
    spool: PathBuf,
    bound_bytes: u64,
    file_bytes: u64,
    current: Option<(u64, File)>,
    /// First number and size of every file that is not known to be deleted.
    sizes: BTreeMap<u64, u64>,
    /// Until there is room for a whole file: were a small piece taken now and then, one loss would become many gaps.
    full: bool,
    counted_at: Instant,
    seq: u64,
    time_ns: u64,
    /// Bytes of all pipes.
    written: u64,
    pipes: BTreeMap<Pipe, PipeState>,
}

#[derive(Debug, Default)]
struct PipeState {
    offset: u64,
    missing: u64,
    missing_step: u32,
    /// Of a line that has not ended: what was written before it, and its step.
    open: Option<(u64, u32)>,
}

impl SpoolWriter {
    pub fn new(spool: &Path, bound_bytes: u64) -> Self {
        Self {
            spool: spool.to_owned(),
            bound_bytes,
            // Only whole files are deleted, so a small spool needs small files.
            file_bytes: FILE_BYTES.min(bound_bytes / 4),
            current: None,
            sizes: BTreeMap::new(),
            full: false,
            counted_at: Instant::now(),
            seq: 0,
            time_ns: 0,
            written: 0,
            pipes: BTreeMap::new(),
        }
    }

    /// Number of chunks written so far.
    pub fn chunks(&self) -> u64 {
        self.seq
    }

    /// Appends bytes of a pipe; what can't be written becomes a gap.
    pub fn write(&mut self, pipe: Pipe, step: u32, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece;
            (piece, rest) = match whole_characters(rest, CHUNK_BYTES) {
                // Nothing more comes of it.
                0 => (rest, &[][..]),
                length => rest.split_at(length),
            };
            self.write_chunk(pipe, step, piece);
        }
    }

    /// Appends one chunk; false where there is no room, and a gap will say so.
    pub fn write_chunk(&mut self, pipe: Pipe, step: u32, chunk: &[u8]) -> bool {
        let size = chunk.len() as u64;
        let written =
            self.has_room(size) && self.write_gap(pipe) && self.append(pipe, step, Body::Data(chunk.to_vec()));
        if !written {
            let state = self.pipes.entry(pipe).or_default();
            state.missing += size;
            state.missing_step = step;
        }
        self.end_lines(LINE_SPAN);
        written
    }

    /// Ends the line of a pipe that nothing more will come of.
    pub fn end_line(&mut self, pipe: Pipe) {
        if let Some((_, step)) = self.pipes.get(&pipe).and_then(|state| state.open) {
            self.append(pipe, step, Body::Data(Vec::new()));
        }
    }

    /// Ends the lines over which more than this was written.
    fn end_lines(&mut self, span: u64) {
        let long = |state: &PipeState| state.open.is_some_and(|(begun, _)| self.written - begun > span);
        let pipes: Vec<Pipe> = self.pipes.iter().filter(|(_, state)| long(state)).map(|(pipe, _)| *pipe).collect();
        for pipe in pipes {
            self.end_line(pipe);
        }
    }

    /// A line of the executor itself.
    pub fn system(&mut self, step: Option<usize>, line: &str) {
        self.write(Pipe::System, step.map_or(NO_STEP, |s| s as u32), format!("{line}\n").as_bytes());
    }

    /// Writes the gaps that are still owed, over the bound if need be: a loss that nobody can see is worse. False when
    /// the disk has no room even for them.
    pub fn finish(&mut self) -> bool {
        let pipes: Vec<Pipe> = self.pipes.keys().copied().collect();
        pipes.into_iter().all(|pipe| {
            let written = self.write_gap(pipe);
            self.end_line(pipe);
            written
        })
    }

    fn write_gap(&mut self, pipe: Pipe) -> bool {
        match self.pipes.get(&pipe) {
            Some(state) if state.missing > 0 => {
                let (missing, step) = (state.missing, state.missing_step);
                let written = self.append(pipe, step, Body::Gap(missing));
                if written {
                    self.pipes.entry(pipe).or_default().missing = 0;
                }
                written
            }
            Some(_) | None => true,
        }
    }

    fn append(&mut self, pipe: Pipe, step: u32, body: Body) -> bool {
        let length = body.len();
        let PipeState { offset, open, .. } = self.pipes.entry(pipe).or_default();
        let (offset, open) = (*offset, open.map_or(self.written, |(begun, _)| begun));
        let open = match &body {
            Body::Data(_) if pipe.holds_records() => None,
            Body::Data(data) => match data.iter().rposition(|b| *b == b'\n') {
                Some(end) => (end + 1 < data.len()).then_some((self.written, step)),
                None => (!data.is_empty()).then_some((open, step)),
            },
            Body::Gap(_) => None,
        };
        let chunk = Chunk { seq: self.seq, time_ns: wall_ns().max(self.time_ns), pipe, step, offset, body };
        let mut frame = Vec::with_capacity(64 + length.min(CHUNK_BYTES as u64) as usize);
        chunk.encode(&mut frame);
        if let Err(error) = self.put(&frame) {
            tracing::warn!(%error, "the spool can't be written; a gap will say how much is missing");
            return false;
        }
        self.seq += 1;
        self.time_ns = chunk.time_ns + chunk.lines() + 1;
        self.written += length + FRAME_BYTES;
        let state = self.pipes.entry(pipe).or_default();
        (state.offset, state.open) = (offset + length, open);
        true
    }

    /// Notes where the pipes stand before a file is begun: those before it are deleted when they are sent.
    fn note_ends(&self) -> io::Result<()> {
        let ends = self.pipes.iter().map(|(pipe, state)| format!("{} {}\n", pipe.as_str(), state.offset));
        let unfinished = self.spool.join("ends.new");
        fs::write(&unfinished, ends.collect::<String>())?;
        fs::rename(unfinished, self.spool.join(ENDS))
    }

    fn has_room(&mut self, length: u64) -> bool {
        if !self.full && self.sizes.values().sum::<u64>() + length <= self.bound_bytes {
            return true;
        }
        if self.counted_at.elapsed() < RECOUNT {
            self.full = true;
            return false;
        }
        self.counted_at = Instant::now();
        let spool = &self.spool;
        self.sizes.retain(|first, _| file_path(spool, *first).exists());
        self.full = self.sizes.values().sum::<u64>() + length.max(self.file_bytes) > self.bound_bytes;
        !self.full
    }

    fn put(&mut self, frame: &[u8]) -> io::Result<()> {
        let full = |sizes: &BTreeMap<u64, u64>, first: &u64| {
            sizes.get(first).is_some_and(|size| size + frame.len() as u64 > self.file_bytes)
        };
        if self.current.as_ref().is_some_and(|(first, _)| full(&self.sizes, first)) {
            self.current = None;
        }
        if self.current.is_none() {
            // A file of this name can only be one whose first frame was torn by a full disk.
            let path = file_path(&self.spool, self.seq);
            if self.seq > 0 {
                self.note_ends()?;
            }
            let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
            self.sizes.insert(self.seq, 0);
            self.current = Some((self.seq, file));
        }
        let (first, file) = self.current.as_mut().expect("it was opened above");
        let size = self.sizes.entry(*first).or_default();
        // Written at its place, so that the next frame overwrites one that was torn.
        match file.write_all_at(frame, *size) {
            Ok(()) => {
                *size += frame.len() as u64;
                Ok(())
            }
            Err(e) => {
                let _ = file.set_len(*size).and_then(|()| file.flush());
                Err(e)
            }
        }
    }
}

/// How many of the first bytes, up to some, end with a whole character: readers show a chunk as text.
pub(crate) fn whole_characters(bytes: &[u8], length: usize) -> usize {
    let length = length.min(bytes.len());
    let Some(begins) = bytes[..length].iter().rev().take(4).position(|byte| byte & 0xC0 != 0x80) else { return length };
    let first = length - 1 - begins;
    let wants = match bytes[first] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if begins + 1 < wants { first } else { length }
}

/// Where the pipes stood when the last file was begun; `None` of one that an older executor wrote.
fn noted_ends(spool: &Path, last_file: u64) -> Option<BTreeMap<Pipe, u64>> {
    let text = match fs::read_to_string(spool.join(ENDS)) {
        Ok(text) => text,
        Err(_) if last_file == 0 => String::new(),
        Err(_) => return None,
    };
    let end = |line: &str| {
        let (pipe, end) = line.split_once(' ')?;
        Some((Pipe::parse(pipe)?, end.parse().ok()?))
    };
    let nothing = [(Pipe::Stdout, 0), (Pipe::Stderr, 0)];
    Some(nothing.into_iter().chain(text.lines().filter_map(end)).collect())
}

/// Ends the log of an executor that is dead and has left no result: gaps of unknown length stand for what it had taken from its
/// child and not written down. Done again, it changes nothing.
pub fn mark_death(spool: &Path) -> io::Result<()> {
    let all = files(spool)?;
    let (mut next, mut marked) = (None, Vec::new());
    let file_seq = all.last().copied().unwrap_or(0);
    // What was sent is deleted but for the last file.
    let mut ends = noted_ends(spool, file_seq).unwrap_or_default();
    let mut place = 0;
    for first in &all {
        let bytes = match fs::read(file_path(spool, *first)) {
            // It was sent meanwhile, and deleted: there is one less to look at.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return mark_death(spool),
            read => read?,
        };
        place = 0;
        while let Ok(Some((chunk, length))) = Chunk::decode(&bytes[place..]) {
            place += length;
            ends.insert(chunk.pipe, chunk.offset + chunk.body.len());
            marked.extend((chunk.body == Body::Gap(UNKNOWN)).then_some(chunk.pipe));
            next = Some((chunk.seq + 1, chunk.time_ns + chunk.lines() + 1, chunk.step));
        }
    }
    let (mut seq, earliest_ns, step) = next.unwrap_or((file_seq, 0, NO_STEP));
    let mut time_ns = earliest_ns.max(wall_ns());
    let mut frames = Vec::new();
    for (pipe, offset) in ends {
        if matches!(pipe, Pipe::Stdout | Pipe::Stderr) && !marked.contains(&pipe) {
            Chunk { seq, time_ns, pipe, step, offset, body: Body::Gap(UNKNOWN) }.encode(&mut frames);
            (seq, time_ns) = (seq + 1, time_ns + 2);
        }
    }
    // After the last whole frame, over one that was torn.
    let path = file_path(spool, file_seq);
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_len(place as u64)?;
    file.write_all_at(&frames, place as u64)
}

fn wall_ns() -> u64 {
    crash::wall_clock().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("the spool can't be read")]
    Io(#[from] io::Error),
    #[error("chunk {seq} in the spool is damaged")]
    Damaged {
        seq: u64,
        #[source]
        source: FrameError,
    },
    #[error("the spool has no chunk {wanted}; it goes on with {found}")]
    Hole { wanted: u64, found: u64 },
}

/// Raw frames, as they travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub first_seq: u64,
    pub next_seq: u64,
    pub bytes: Vec<u8>,
}

/// The session's end. Any process can read on from any number that is still there.
#[derive(Debug)]
pub struct SpoolReader {
    spool: PathBuf,
    next_seq: u64,
    /// The file that is read, by its first number, and the place in it.
    current: Option<(u64, File, u64)>,
}

impl SpoolReader {
    pub fn new(spool: &Path, next_seq: u64) -> Self {
        Self { spool: spool.to_owned(), next_seq, current: None }
    }

    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Goes to another number: the server says which chunk it wants next.
    pub fn seek(&mut self, next_seq: u64) {
        if self.next_seq != next_seq {
            self.next_seq = next_seq;
            self.current = None;
        }
    }

    /// The next frames, at most `BATCH_BYTES`; `None` when there are none. A frame that is not whole is waited for:
    /// when the executor is dead, `None` is the end.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, SpoolError> {
        let mut batch = Batch { first_seq: self.next_seq, next_seq: self.next_seq, bytes: Vec::new() };
        // Each round takes frames, or moves on to a later file, or ends.
        loop {
            self.take_frames(&mut batch)?;
            if batch.bytes.len() + CHUNK_BYTES > BATCH_BYTES || !self.open_next()? {
                break;
            }
        }
        Ok((!batch.bytes.is_empty()).then_some(batch))
    }

    /// Deletes the files that lie wholly before `next_seq`. The last file stays: the executor may be writing to it.
    pub fn ack(&mut self, next_seq: u64) -> io::Result<()> {
        for pair in files(&self.spool)?.windows(2) {
            if pair[1] <= next_seq {
                fs::remove_file(file_path(&self.spool, pair[0]))?;
            }
        }
        Ok(())
    }

    fn take_frames(&mut self, batch: &mut Batch) -> Result<(), SpoolError> {
        let Some((_, file, place)) = &mut self.current else { return Ok(()) };
        loop {
            let available = file.metadata()?.len().saturating_sub(*place);
            let mut buffer = vec![0; available.min(READ_BYTES) as usize];
            let mut filled = 0;
            while filled < buffer.len() {
                match file.read_at(&mut buffer[filled..], *place + filled as u64)? {
                    0 => break,
                    n => filled += n,
                }
            }
            let mut used = 0;
            loop {
                let frame = Chunk::decode(&buffer[used..filled])
                    .map_err(|source| SpoolError::Damaged { seq: self.next_seq, source })?;
                let Some((chunk, length)) = frame else { break };
                if chunk.seq > self.next_seq {
                    return Err(SpoolError::Hole { wanted: self.next_seq, found: chunk.seq });
                }
                if chunk.seq == self.next_seq {
                    if !batch.bytes.is_empty() && batch.bytes.len() + length > BATCH_BYTES {
                        *place += used as u64;
                        return Ok(());
                    }
                    batch.bytes.extend_from_slice(&buffer[used..used + length]);
                    self.next_seq += 1;
                    batch.next_seq = self.next_seq;
                }
                used += length;
            }
            *place += used as u64;
            if used == 0 {
                return Ok(());
            }
        }
    }

    /// Opens the file that holds the next chunk, if it is not the one that is open.
    fn open_next(&mut self) -> Result<bool, SpoolError> {
        let all = files(&self.spool)?;
        let Some(first) = all.iter().rev().find(|first| **first <= self.next_seq).copied() else {
            return match all.first() {
                Some(found) => Err(SpoolError::Hole { wanted: self.next_seq, found: *found }),
                None => Ok(false),
            };
        };
        if self.current.as_ref().is_some_and(|(open, ..)| *open == first) {
            return Ok(false);
        }
        self.current = Some((first, File::open(file_path(&self.spool, first))?, 0));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(spool: &Path, from: u64) -> Vec<Chunk> {
        let mut reader = SpoolReader::new(spool, from);
        let mut chunks = Vec::new();
        while let Some(batch) = reader.next_batch().expect("batch") {
            assert!(batch.bytes.len() <= BATCH_BYTES);
            let decoded = Chunk::decode_all(&batch.bytes).expect("frames");
            assert_eq!(decoded.first().map(|c| c.seq), Some(batch.first_seq));
            assert_eq!(decoded.last().map(|c| c.seq + 1), Some(batch.next_seq));
            chunks.extend(decoded);
        }
        chunks
    }

    #[test]
    fn chunks_are_numbered_without_holes_and_times_leave_room_for_every_line() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 30);
        let data: Vec<u8> = (0..3_000_000u32).map(|i| if i % 7 == 0 { b'\n' } else { i as u8 }).collect();
        writer.write(Pipe::Stdout, 0, &data);
        writer.system(None, "hello");
        writer.write(Pipe::Stdout, 1, b"tail");
        let chunks = read_all(dir.path(), 0);
        assert_eq!(chunks.len() as u64, writer.chunks());
        let mut stdout = Vec::new();
        for (i, chunk) in chunks.iter().enumerate() {
            assert_eq!(chunk.seq, i as u64);
            if i > 0 {
                let before = &chunks[i - 1];
                assert!(chunk.time_ns > before.time_ns + before.lines());
            }
            if let (Pipe::Stdout, Body::Data(bytes)) = (chunk.pipe, &chunk.body) {
                assert_eq!(chunk.offset, stdout.len() as u64);
                stdout.extend_from_slice(bytes);
            }
        }
        assert_eq!(stdout, [&data[..], b"tail"].concat());
        // Any number can be the first.
        assert_eq!(read_all(dir.path(), 17), chunks[17..]);
        assert_eq!(read_all(dir.path(), chunks.len() as u64), []);
    }

    #[test]
    fn a_full_spool_counts_what_is_missing_and_acknowledged_files_make_room() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 20);
        for _ in 0..40 {
            writer.write(Pipe::Stdout, 0, &[b'x'; CHUNK_BYTES]);
        }
        let before = read_all(dir.path(), 0);
        let stored: u64 = before.iter().map(|c| if let Body::Data(d) = &c.body { d.len() as u64 } else { 0 }).sum();
        assert!(stored <= 1 << 20, "{stored}");
        let next = before.len() as u64;
        SpoolReader::new(dir.path(), next).ack(next).expect("ack");
        assert_eq!(files(dir.path()).expect("files").len(), 1, "only the last file stays");
        std::thread::sleep(RECOUNT * 2);
        writer.write(Pipe::Stdout, 0, b"after\n");
        assert!(writer.finish());
        let after = read_all(dir.path(), next);
        let gap: u64 = before.iter().chain(&after).map(|c| if let Body::Gap(n) = c.body { n } else { 0 }).sum();
        assert_eq!(stored + gap, 40 * CHUNK_BYTES as u64);
        assert_eq!(after.last().map(|c| &c.body), Some(&Body::Data(b"after\n".to_vec())));
        assert_eq!(after.last().map(|c| c.offset), Some(stored + gap));
    }

    #[test]
    fn text_is_cut_between_characters() {
        for (text, length, whole) in [
            ("abc", 3, 3),
            ("abé", 3, 2),
            ("abé", 4, 4),
            ("a漢", 3, 1),
            ("a漢", 4, 4),
            ("a🚢", 4, 1),
            ("🚢", 3, 0),
            ("é", 9, 2),
        ] {
            assert_eq!(whole_characters(text.as_bytes(), length), whole, "{text} {length}");
        }
        for no_text in [&b"a\xff\xfe"[..], b"\x80\x80\x80\x80\x80", b"a\xc3", b""] {
            let expected = if no_text == b"a\xc3" { 1 } else { no_text.len() };
            assert_eq!(whole_characters(no_text, 9), expected, "{no_text:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_gets_one() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 30);
        writer.write(Pipe::Stderr, 0, b"working...");
        writer.write(Pipe::Stdout, 0, &[b'x'; LINE_SPAN as usize - 170]);
        writer.write(Pipe::Stdout, 0, b"\nshort");
        writer.end_line(Pipe::Stdout);
        writer.end_line(Pipe::Stdout);
        writer.write(Pipe::Stderr, 1, b" done");
        assert!(writer.finish() && writer.finish());
        let chunks = read_all(dir.path(), 0);
        let sizes: Vec<_> = chunks.iter().map(|c| (c.pipe, c.step, c.body.len() as usize)).collect();
        let (stdout, stderr) = (Pipe::Stdout, Pipe::Stderr);
        let piece = (stdout, 0, CHUNK_BYTES);
        let expected = [
            (stderr, 0, 10),
            piece,
            piece,
            piece,
            (stdout, 0, CHUNK_BYTES - 170),
            // More than the span was written since it began.
            (stderr, 0, 0),
            (stdout, 0, 6),
            (stdout, 0, 0),
            (stderr, 1, 5),
            (stderr, 1, 0),
        ];
        assert_eq!(sizes, expected);
        assert_eq!(chunks.last().map(|c| c.offset), Some(15));
    }

    #[test]
    fn one_loss_is_one_gap_however_small_the_pieces_are() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 20);
        for _ in 0..40 {
            writer.write(Pipe::Stdout, 0, &[b'x'; CHUNK_BYTES - 100]);
            writer.write(Pipe::Stderr, 0, b"small");
            std::thread::sleep(RECOUNT / 10);
        }
        assert!(writer.finish());
        let gaps = read_all(dir.path(), 0).into_iter().filter(|c| matches!(c.body, Body::Gap(_)));
        assert_eq!(gaps.map(|c| c.pipe).collect::<Vec<_>>(), [Pipe::Stdout, Pipe::Stderr]);
    }

    #[test]
    fn a_death_is_marked_once_in_each_pipe_after_the_last_whole_frame() {
        let gap = |seq, pipe, step, offset| (seq, pipe, step, offset, Body::Gap(UNKNOWN));
        let shown = |spool: &Path, from: u64| -> Vec<_> {
            let chunks = read_all(spool, from);
            assert!(chunks.windows(2).all(|c| c[1].time_ns > c[0].time_ns + c[0].lines() - 1));
            chunks.into_iter().map(|c| (c.seq, c.pipe, c.step, c.offset, c.body)).collect()
        };
        let empty = tempfile::tempdir().expect("dir");
        mark_death(empty.path()).expect("marked");
        assert_eq!(shown(empty.path(), 0), [gap(0, Pipe::Stdout, NO_STEP, 0), gap(1, Pipe::Stderr, NO_STEP, 0)]);

        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 20);
        writer.write(Pipe::Stdout, 0, b"one");
        writer.write(Pipe::Stdout, 1, b"torn");
        let path = file_path(dir.path(), 0);
        let whole = fs::read(&path).expect("read");
        fs::write(&path, &whole[..whole.len() - 2]).expect("write");
        for _ in 0..2 {
            mark_death(dir.path()).expect("marked");
            let marks = [gap(1, Pipe::Stdout, 0, 3), gap(2, Pipe::Stderr, 0, 0)];
            assert_eq!(shown(dir.path(), 1), marks);
            // The second mark may be torn by the death of the session.
            let whole = fs::read(&path).expect("read");
            fs::write(&path, &whole[..whole.len() - 2]).expect("write");
            mark_death(dir.path()).expect("marked");
            assert_eq!(shown(dir.path(), 1), marks);
        }

        // The end of a pipe that is not in what is left.
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 20);
        writer.write(Pipe::Stderr, 0, b"early");
        writer.write(Pipe::Stdout, 0, &[b'x'; 8 * CHUNK_BYTES]);
        let chunks = writer.chunks();
        SpoolReader::new(dir.path(), chunks).ack(chunks).expect("ack");
        mark_death(dir.path()).expect("marked");
        let marks = [gap(chunks, Pipe::Stdout, 0, 8 * CHUNK_BYTES as u64), gap(chunks + 1, Pipe::Stderr, 0, 5)];
        assert_eq!(shown(dir.path(), chunks), marks);
    }

    #[test]
    fn a_torn_frame_is_waited_for_and_a_damaged_one_is_named() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = SpoolWriter::new(dir.path(), 1 << 20);
        writer.write(Pipe::Stdout, 0, b"one");
        writer.write(Pipe::Stdout, 0, b"two");
        let path = file_path(dir.path(), 0);
        let whole = fs::read(&path).expect("read");
        fs::write(&path, &whole[..whole.len() - 2]).expect("write");
        let mut reader = SpoolReader::new(dir.path(), 0);
        assert_eq!(reader.next_batch().expect("batch").map(|b| b.next_seq), Some(1));
        assert_eq!(reader.next_batch().expect("batch"), None);
        fs::write(&path, &whole).expect("write");
        assert_eq!(reader.next_batch().expect("batch").map(|b| b.next_seq), Some(2));
        let mut damaged = whole;
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        fs::write(&path, &damaged).expect("write");
        let mut reader = SpoolReader::new(dir.path(), 1);
        assert!(matches!(reader.next_batch(), Err(SpoolError::Damaged { seq: 1, .. })));
    }
}
