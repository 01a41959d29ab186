//! Owns what only the customer can open: the install's key, sealed files, states that wait for the control plane, and the room kept for them.
//! Executors, the session and `ferry-runner key | state` call it.
//! No plain state, plan or output leaves it towards the control plane.
//!
//! Seals files with the key of the install, which never leaves the customer's side: what the control plane keeps it can't read.
//!
//! A file is compressed, cut into pieces, and each piece is sealed for itself, bound to its install, its file and its place: so
//! a file of any size goes through little memory, and no piece can be taken for another.

pub mod custody;
pub mod rescue;
pub mod reserve;
pub(crate) mod told;
pub mod vault;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use fs_err as fs;
use model::deploy::{PIECE_BYTES, PIECE_OVERHEAD_BYTES, PIECES_MAX, SealedFile};
use model::digest::Hasher;
use model::{Digest, InstallId, UploadId};
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;
const HEAD: &str = "ferry-install-key-v1";
/// Level of zstd: states are text, and there are many of them.
const LEVEL: i32 = 1;

/// The key that an install seals with.
#[derive(Clone)]
pub struct InstallKey {
    bytes: Zeroizing<[u8; 32]>,
}

impl std::fmt::Debug for InstallKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InstallKey({})", self.fingerprint())
    }
}

impl InstallKey {
    pub fn new() -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).expect("the system has randomness");
        Self { bytes }
    }

    /// Reads the one line that a key is kept as.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("that is no install key: it is one line, `{HEAD} …`");
        let rest = text.trim().strip_prefix(HEAD).ok_or_else(bad)?;
        let bytes = Zeroizing::new(B64.decode(rest.trim()).map_err(|_| bad())?);
        let bytes: [u8; 32] = bytes.as_slice().try_into().map_err(|_| bad())?;
        Ok(Self { bytes: Zeroizing::new(bytes) })
    }

    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{HEAD} {}\n", B64.encode(*self.bytes)))
    }

    /// Names the key without giving it away.
    pub fn fingerprint(&self) -> String {
        let named = Zeroizing::new([b"ferry-install-key-fingerprint".as_slice(), &*self.bytes].concat());
        format!("ik_{}", &Digest::of(&named).hex()[..40])
    }

    /// A secret for another purpose, always the same.
    pub fn derive(&self, purpose: &str) -> String {
        let named = Zeroizing::new([b"ferry-install-key-derive".as_slice(), &*self.bytes, purpose.as_bytes()].concat());
        Digest::of(&named).hex().to_owned()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.bytes))
    }
}

impl Default for InstallKey {
    fn default() -> Self {
        Self::new()
    }
}

/// What a piece is bound to.
fn bound(install: &InstallId, upload: &UploadId, piece: u32, last: bool) -> String {
    format!("ferry-sealed-v1|{install}|{upload}|{piece}|{last}")
}

/// Seals `plain`, and hands each piece to `take` as soon as it is sealed: no disk is needed.
pub fn seal(
    key: &InstallKey,
    install: &InstallId,
    upload: UploadId,
    plain: impl Read,
    take: impl FnMut(Vec<u8>) -> io::Result<()>,
) -> io::Result<SealedFile> {
    let pieces = Pieces {
        cipher: key.cipher(),
        install,
        upload: &upload,
        take,
        buffer: Vec::new(),
        count: 0,
        hash: Hasher::default(),
    };
    let mut encoder = zstd::Encoder::new(pieces, LEVEL)?;
    let mut plain = BufReader::with_capacity(256 << 10, plain);
    let bytes = io::copy(&mut plain, &mut encoder)?;
    let mut pieces = encoder.finish()?;
    pieces.put(true)?;
    let (count, digest) = (pieces.count, pieces.hash.finish());
    Ok(SealedFile { upload_id: upload, pieces: count, bytes, digest })
}

/// Takes compressed bytes in, and gives sealed pieces out.
struct Pieces<'a, T> {
    cipher: XChaCha20Poly1305,
    install: &'a InstallId,
    upload: &'a UploadId,
    take: T,
    buffer: Vec<u8>,
    count: u32,
    hash: Hasher,
}

impl<T: FnMut(Vec<u8>) -> io::Result<()>> Pieces<'_, T> {
    fn put(&mut self, last: bool) -> io::Result<()> {
        if self.count == PIECES_MAX {
            return Err(io::Error::other("the file is too large to be sealed"));
        }
        let length = self.buffer.len().min(PIECE_BYTES);
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).expect("the system has randomness");
        let aad = bound(self.install, self.upload, self.count, last);
        let payload = Payload { msg: &self.buffer[..length], aad: aad.as_bytes() };
        let sealed =
            self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| io::Error::other("can't be sealed"))?;
        let piece = [&nonce[..], &sealed].concat();
        self.hash.update(&piece);
        (self.take)(piece)?;
        self.buffer.drain(..length);
        self.count += 1;
        Ok(())
    }
}

impl<T: FnMut(Vec<u8>) -> io::Result<()>> Write for Pieces<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        // The last piece is told by its place, so one is held back until there is more.
        while self.buffer.len() > PIECE_BYTES {
            self.put(false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The size of a sealed piece; the last one may be smaller.
pub const fn sealed_piece_bytes() -> usize {
    PIECE_BYTES + PIECE_OVERHEAD_BYTES
}

/// Opens the sealed pieces in a file; what comes out is the plain file.
pub fn open(key: &InstallKey, install: &InstallId, file: &SealedFile, sealed: &Path) -> io::Result<impl Read + use<>> {
    let opened = Opened {
        cipher: key.cipher(),
        install: install.clone(),
        file: file.clone(),
        source: fs::File::open(sealed)?.into_parts().0,
        next: 0,
        plain: io::Cursor::new(Vec::new()),
    };
    zstd::Decoder::new(opened)
}

struct Opened {
    cipher: XChaCha20Poly1305,
    install: InstallId,
    file: SealedFile,
    source: File,
    next: u32,
    plain: io::Cursor<Vec<u8>>,
}

impl Read for Opened {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.plain.read(to)?;
            if read > 0 || self.next == self.file.pieces {
                return Ok(read);
            }
            let last = self.next + 1 == self.file.pieces;
            let mut sealed = Vec::with_capacity(sealed_piece_bytes());
            (&mut self.source).take(sealed_piece_bytes() as u64).read_to_end(&mut sealed)?;
            let other = || io::Error::other("it was sealed with another key, or was changed since");
            let (nonce, rest) = sealed.split_at_checked(NONCE_BYTES).ok_or_else(other)?;
            let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| other())?;
            let aad = bound(&self.install, &self.file.upload_id, self.next, last);
            let payload = Payload { msg: rest, aad: aad.as_bytes() };
            let plain = self.cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| other())?;
            self.plain = io::Cursor::new(plain);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::*;

    fn ids() -> (InstallId, UploadId) {
        let at = Timestamp::from_micros(1);
        (InstallId::new(at, 1), UploadId::new(at, 2))
    }

    fn opened(key: &InstallKey, install: &InstallId, file: &SealedFile, path: &Path) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        open(key, install, file, path)?.read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[test]
    fn what_was_sealed_opens_again_and_only_with_its_key() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("sealed");
        let (install, upload) = ids();
        let key = InstallKey::new();
        // Noise does not shrink: so the large one has three pieces.
        let mut noise = vec![0; 2 * PIECE_BYTES + 1000];
        getrandom::fill(&mut noise).expect("randomness");
        for (plain, pieces) in [(Vec::new(), 1), (b"secret state".to_vec(), 1), (noise, 3)] {
            let mut sealed = Vec::new();
            let take = |piece: Vec<u8>| {
                sealed.extend(piece);
                Ok(())
            };
            let file = seal(&key, &install, upload.clone(), plain.as_slice(), take).expect("sealed");
            fs::write(&path, &sealed).expect("write");
            assert_eq!((file.pieces, file.bytes), (pieces, plain.len() as u64));
            assert_eq!(Digest::of(&sealed), file.digest);
            assert!(!sealed.windows(6).any(|part| part == b"secret"));
            assert_eq!(opened(&key, &install, &file, &path).expect("opened"), plain);
            assert!(opened(&InstallKey::new(), &install, &file, &path).is_err(), "another key");
            let other = InstallId::new(Timestamp::from_micros(1), 9);
            assert!(opened(&key, &other, &file, &path).is_err(), "another install");
            if pieces > 1 {
                let fewer = SealedFile { pieces: pieces - 1, ..file.clone() };
                assert!(opened(&key, &install, &fewer, &path).is_err(), "a piece is missing");
                let mut swapped = sealed.clone();
                let size = sealed_piece_bytes();
                let (one, two) = swapped.split_at_mut(size);
                one.swap_with_slice(&mut two[..size]);
                fs::write(&path, swapped).expect("write");
                assert!(opened(&key, &install, &file, &path).is_err(), "pieces changed places");
            }
            let mut flipped = sealed;
            let at = flipped.len() - 1;
            flipped[at] ^= 1;
            fs::write(&path, flipped).expect("write");
            assert!(opened(&key, &install, &file, &path).is_err(), "a bit flipped");
        }
    }

    #[test]
    fn a_key_is_one_line() {
        let key = InstallKey::new();
        let again = InstallKey::parse(&key.text()).expect("a key");
        assert_eq!(again.fingerprint(), key.fingerprint());
        assert!(!key.text().contains(&key.fingerprint()[3..]));
        for bad in ["", "ferry-install-key-v1", "ferry-install-key-v1 AAAA", "other AAAA"] {
            assert!(InstallKey::parse(bad).is_err(), "{bad}");
        }
    }
}
