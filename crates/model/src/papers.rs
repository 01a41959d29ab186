//! The two signed papers of a job: the **order** says what may be done, the **grant** who may do it now.
//!
//! A signature covers `tag ‖ length ‖ the exact bytes sent`; papers are never re-serialized. Keys are trusted by
//! fingerprint, from the stack or the join command, or because a trusted key has endorsed them; never by the server's word.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::health::Watch;
use crate::{Digest, ExecutionId, InstallId, JobId, JobType, OrgId, RunnerId, Timestamp, constants};

const ORDER_TAG: &str = "ferry-order-v1";
const GRANT_TAG: &str = "ferry-grant-v1";
const ENDORSE_TAG: &str = "ferry-key-v1";
const REQUEST_TAG: &str = "ferry-request-v1";
const WATCH_TAG: &str = "ferry-watch-v1";

/// What may be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub org_id: OrgId,
    /// The runner whose job it is; of one install, or of the org itself.
    pub runner_id: RunnerId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<InstallId>,
    pub job_id: JobId,
    pub job_type: JobType,
    pub operation: String,
    /// The identity to work under, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub spec_digest: Digest,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_digests: Vec<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<Digest>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// Who may do it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    pub order_digest: Digest,
    pub runner_id: RunnerId,
    pub generation: u64,
    pub execution_id: ExecutionId,
    pub epoch: u64,
    pub lease_s: u64,
    pub offline_s: u64,
    /// The nonce of the poll that this answers.
    pub nonce: String,
}

/// A paper as it travels: the exact bytes, who signed them, and the signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Signed {
    /// JSON text, kept byte for byte.
    pub payload: String,
    /// Fingerprint of the key.
    pub key: String,
    /// Ed25519, base64url.
    pub signature: String,
}

impl Signed {
    pub fn digest(&self) -> Digest {
        Digest::of(self.payload.as_bytes())
    }
}

/// A public key with the signature of the key before it (empty for the first).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndorsedKey {
    /// 32 bytes, base64url.
    pub public: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endorsed_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaperError {
    #[error("the {0} is signed by a key that this runner does not trust ({1})")]
    UntrustedKey(&'static str, String),
    #[error("the signature of the {0} is wrong")]
    BadSignature(&'static str),
    #[error("the {0} can't be read: {1}")]
    Unreadable(&'static str, String),
    #[error("the {0} is for another {1}")]
    Mismatch(&'static str, &'static str),
    #[error("the order is good from {from} to {until}, and it is {now} here; is the clock right?")]
    OutOfTime { from: Timestamp, until: Timestamp, now: Timestamp },
    #[error("`{0}` is not a public key")]
    BadKey(String),
}

/// Signs papers. Holds the private half.
#[derive(Clone)]
pub struct Signatory {
    key: SigningKey,
    fingerprint: String,
}

impl std::fmt::Debug for Signatory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signatory({})", self.fingerprint)
    }
}

fn message(tag: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(tag.len() + 8 + payload.len());
    bytes.extend_from_slice(tag.as_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Names a public key in short: what a join command carries as `--trust-key`.
pub fn fingerprint(public: &[u8; 32]) -> String {
    format!("fk_{}", &Digest::of(public).hex()[..40])
}

fn decode_public(text: &str) -> Result<VerifyingKey, PaperError> {
    let bad = || PaperError::BadKey(text.chars().take(64).collect());
    let bytes: [u8; 32] = B64.decode(text).map_err(|_| bad())?.try_into().map_err(|_| bad())?;
    VerifyingKey::from_bytes(&bytes).map_err(|_| bad())
}

/// The public half of a session's key.
#[derive(Debug, Clone)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn parse(text: &str) -> Result<Self, PaperError> {
        decode_public(text).map(Self)
    }
}

fn decode_signature(text: &str) -> Option<Signature> {
    let bytes: [u8; 64] = B64.decode(text).ok()?.try_into().ok()?;
    Some(Signature::from_bytes(&bytes))
}

impl Signatory {
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let fingerprint = fingerprint(key.verifying_key().as_bytes());
        Self { key, fingerprint }
    }

    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The public half, base64url.
    pub fn public(&self) -> String {
        B64.encode(self.key.verifying_key().as_bytes())
    }

    fn sign(&self, tag: &str, payload: &[u8]) -> String {
        B64.encode(self.key.sign(&message(tag, payload)).to_bytes())
    }

    fn paper(&self, tag: &str, payload: String) -> Signed {
        let signature = self.sign(tag, payload.as_bytes());
        Signed { payload, key: self.fingerprint.clone(), signature }
    }

    pub fn order(&self, order: &Order) -> Signed {
        self.paper(ORDER_TAG, serde_json::to_string(order).expect("an order is plain data"))
    }

    pub fn grant(&self, grant: &Grant) -> Signed {
        self.paper(GRANT_TAG, serde_json::to_string(grant).expect("a grant is plain data"))
    }

    pub fn watch(&self, watch: &Watch) -> Signed {
        self.paper(WATCH_TAG, serde_json::to_string(watch).expect("a watch is plain data"))
    }

    /// Vouches for the key that comes after this one.
    pub fn endorse(&self, next_public: &str) -> EndorsedKey {
        EndorsedKey {
            public: next_public.to_owned(),
            endorsed_by: Some(self.fingerprint.clone()),
            signature: Some(self.sign(ENDORSE_TAG, next_public.as_bytes())),
        }
    }

    /// Signs a request of a runner's session; see `request_text`.
    pub fn request(&self, text: &str) -> String {
        self.sign(REQUEST_TAG, text.as_bytes())
    }
}

/// What the signature of a request covers.
#[derive(Debug, Clone, Copy)]
pub struct RequestText<'a> {
    pub method: &'a str,
    pub path_and_query: &'a str,
    pub runner: &'a str,
    pub generation: u64,
    pub time: &'a str,
    pub nonce: &'a str,
    pub body: &'a [u8],
}

impl RequestText<'_> {
    pub fn text(&self) -> String {
        format!(
            "{}\n{}\n{}\n{}\n{}\n{}\n{}",
            self.method,
            self.path_and_query,
            self.runner,
            self.generation,
            self.time,
            self.nonce,
            Digest::of(self.body)
        )
    }

    /// Checks the signature with the session's public key.
    pub fn verify(&self, public: &str, signature: &str) -> bool {
        PublicKey::parse(public).is_ok_and(|key| self.verify_with(&key, signature))
    }

    /// The same, with a key that was parsed before.
    pub fn verify_with(&self, PublicKey(key): &PublicKey, signature: &str) -> bool {
        let Some(signature) = decode_signature(signature) else { return false };
        key.verify_strict(&message(REQUEST_TAG, self.text().as_bytes()), &signature).is_ok()
    }
}

/// The keys that a runner trusts.
#[derive(Debug, Clone, Default)]
pub struct TrustedKeys {
    fingerprints: Vec<String>,
    keys: BTreeMap<String, VerifyingKey>,
}

/// What the runner knows of itself when it checks papers.
#[derive(Debug, Clone)]
pub struct Expected<'a> {
    pub runner_id: &'a RunnerId,
    pub generation: u64,
    pub nonce: &'a str,
    pub now: Timestamp,
}

impl TrustedKeys {
    pub fn new(fingerprints: Vec<String>) -> Self {
        Self { fingerprints, keys: BTreeMap::new() }
    }

    pub fn fingerprints(&self) -> impl Iterator<Item = &str> {
        self.fingerprints.iter().map(String::as_str)
    }

    pub fn accepted(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// Takes keys that the server offers: those whose fingerprint is trusted, then those that an accepted key endorses.
    /// Returns how many of the offered keys are accepted.
    pub fn learn(&mut self, offered: &[EndorsedKey]) -> usize {
        let mut accepted = 0;
        // Each round accepts at least one more key, so this ends after as many rounds as there are keys.
        loop {
            let before = self.keys.len();
            for offer in offered {
                let Ok(key) = decode_public(&offer.public) else { continue };
                let name = fingerprint(key.as_bytes());
                if !self.keys.contains_key(&name) && (self.fingerprints.contains(&name) || self.is_endorsed(offer)) {
                    self.keys.insert(name, key);
                    accepted += 1;
                }
            }
            if self.keys.len() == before {
                return accepted;
            }
        }
    }

    fn is_endorsed(&self, offer: &EndorsedKey) -> bool {
        let (Some(by), Some(signature)) = (&offer.endorsed_by, &offer.signature) else { return false };
        let (Some(key), Some(signature)) = (self.keys.get(by), decode_signature(signature)) else { return false };
        key.verify_strict(&message(ENDORSE_TAG, offer.public.as_bytes()), &signature).is_ok()
    }

    fn open<T: serde::de::DeserializeOwned>(
        &self,
        what: &'static str,
        tag: &str,
        paper: &Signed,
    ) -> Result<T, PaperError> {
        let key = self
            .keys
            .get(&paper.key)
            .ok_or_else(|| PaperError::UntrustedKey(what, paper.key.chars().take(64).collect()))?;
        let signature = decode_signature(&paper.signature).ok_or(PaperError::BadSignature(what))?;
        key.verify_strict(&message(tag, paper.payload.as_bytes()), &signature)
            .map_err(|_| PaperError::BadSignature(what))?;
        serde_json::from_str(&paper.payload).map_err(|e| PaperError::Unreadable(what, e.to_string()))
    }

    /// Opens what a runner is to observe, where it is the answer to its own request.
    pub fn open_watch(
        &self,
        paper: &Signed,
        install: &InstallId,
        expected: &Expected<'_>,
    ) -> Result<Watch, PaperError> {
        let watch: Watch = self.open("watch", WATCH_TAG, paper)?;
        let mismatch = |of| Err(PaperError::Mismatch("watch", of));
        if watch.runner_id != *expected.runner_id {
            return mismatch("runner");
        }
        if watch.install_id != *install {
            return mismatch("install");
        }
        if watch.generation != expected.generation {
            return mismatch("session");
        }
        if watch.nonce != expected.nonce {
            return mismatch("request");
        }
        Ok(watch)
    }

    /// Checks both papers against each other, the runner, the poll they answer, the spec and the clock. Nothing is spawned
    /// before this returns `Ok`.
    pub fn verify(
        &self,
        order_paper: &Signed,
        grant_paper: &Signed,
        spec: &[u8],
        expected: &Expected<'_>,
    ) -> Result<(Order, Grant), PaperError> {
        let order: Order = self.open("order", ORDER_TAG, order_paper)?;
        let grant: Grant = self.open("grant", GRANT_TAG, grant_paper)?;
        let mismatch = |paper, of| Err(PaperError::Mismatch(paper, of));
        if grant.order_digest != order_paper.digest() {
            return mismatch("grant", "order");
        }
        if order.runner_id != *expected.runner_id {
            return mismatch("order", "runner");
        }
        if grant.runner_id != *expected.runner_id {
            return mismatch("grant", "runner");
        }
        if grant.generation != expected.generation {
            return mismatch("grant", "session");
        }
        if grant.nonce != expected.nonce {
            return mismatch("grant", "poll");
        }
        if order.spec_digest != Digest::of(spec) {
            return mismatch("order", "spec");
        }
        let skew = constants::SKEW_S as i64;
        if expected.now < order.not_before.plus_s(-skew) || expected.now > order.not_after.plus_s(skew) {
            return Err(PaperError::OutOfTime { from: order.not_before, until: order.not_after, now: expected.now });
        }
        Ok((order, grant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        signatory: Signatory,
        keys: TrustedKeys,
        order: Order,
        grant: Grant,
        now: Timestamp,
    }

    const SPEC: &[u8] = b"{}";

    fn world() -> World {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let signatory = Signatory::from_seed(&[7; 32]);
        let mut keys = TrustedKeys::new(vec![signatory.fingerprint().to_owned()]);
        keys.learn(&[EndorsedKey { public: signatory.public(), endorsed_by: None, signature: None }]);
        let order = Order {
            org_id: OrgId::new(now, 1),
            runner_id: RunnerId::new(now, 2),
            install_id: None,
            job_id: JobId::new(now, 3),
            job_type: JobType::Noop,
            operation: "exec".into(),
            role: None,
            spec_digest: Digest::of(SPEC),
            artifact_digests: vec![],
            plan_digest: None,
            not_before: now,
            not_after: now.plus_s(60),
        };
        let grant = Grant {
            order_digest: signatory.order(&order).digest(),
            runner_id: order.runner_id.clone(),
            generation: 4,
            execution_id: ExecutionId::new(now, 5),
            epoch: 1,
            lease_s: 30,
            offline_s: 900,
            nonce: "n".into(),
        };
        World { signatory, keys, order, grant, now }
    }

    fn check(w: &World, order: &Signed, grant: &Signed, spec: &[u8], now: Timestamp) -> Result<(), PaperError> {
        let expected = Expected { runner_id: &w.order.runner_id, generation: 4, nonce: "n", now };
        w.keys.verify(order, grant, spec, &expected).map(|_| ())
    }

    #[test]
    fn good_papers_pass_and_every_other_kind_is_refused() {
        let w = world();
        let order = w.signatory.order(&w.order);
        let grant = w.signatory.grant(&w.grant);
        assert_eq!(check(&w, &order, &grant, SPEC, w.now), Ok(()));
        assert_eq!(check(&w, &order, &grant, b"{ }", w.now), Err(PaperError::Mismatch("order", "spec")));
        assert!(matches!(check(&w, &order, &grant, SPEC, w.now.plus_s(3600)), Err(PaperError::OutOfTime { .. })));
        assert!(matches!(check(&w, &order, &grant, SPEC, w.now.plus_s(-3600)), Err(PaperError::OutOfTime { .. })));
        assert_eq!(check(&w, &order, &grant, SPEC, w.now.plus_s(60 + 17 * 60)), Ok(()), "within the skew");

        let other = Signatory::from_seed(&[8; 32]);
        assert!(matches!(
            check(&w, &other.order(&w.order), &grant, SPEC, w.now),
            Err(PaperError::UntrustedKey("order", _))
        ));
        let forged = Signed { key: w.signatory.fingerprint().into(), ..other.grant(&w.grant) };
        assert_eq!(check(&w, &order, &forged, SPEC, w.now), Err(PaperError::BadSignature("grant")));

        let swapped = Grant { order_digest: Digest::of(b"x"), ..w.grant.clone() };
        assert_eq!(
            check(&w, &order, &w.signatory.grant(&swapped), SPEC, w.now),
            Err(PaperError::Mismatch("grant", "order"))
        );
        let replayed = Grant { nonce: "old".into(), ..w.grant.clone() };
        assert_eq!(
            check(&w, &order, &w.signatory.grant(&replayed), SPEC, w.now),
            Err(PaperError::Mismatch("grant", "poll"))
        );
        let old_session = Grant { generation: 3, ..w.grant.clone() };
        assert_eq!(
            check(&w, &order, &w.signatory.grant(&old_session), SPEC, w.now),
            Err(PaperError::Mismatch("grant", "session"))
        );
        // A grant never passes as an order: the tags differ.
        let crossed = w.signatory.paper(GRANT_TAG, order.payload);
        assert_eq!(check(&w, &crossed, &grant, SPEC, w.now), Err(PaperError::BadSignature("order")));
    }

    /// Every byte that travels is changed, one at a time, in random places; none of it passes.
    #[test]
    fn twenty_thousand_forgeries_are_refused() {
        let w = world();
        let (order, grant) = (w.signatory.order(&w.order), w.signatory.grant(&w.grant));
        let rounds = option_env!("FERRY_FORGERIES").and_then(|n| n.parse().ok()).unwrap_or(20_000u64);
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut draw = |bound: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % bound as u64) as usize
        };
        for round in 0..rounds {
            let (mut o, mut g, mut spec) = (order.clone(), grant.clone(), SPEC.to_vec());
            let paper = if draw(2) == 0 { &mut o } else { &mut g };
            let part = match draw(4) {
                0 => &mut paper.payload,
                1 => &mut paper.signature,
                2 => &mut paper.key,
                _ => {
                    let at = draw(spec.len());
                    spec[at] ^= 1 << draw(7);
                    &mut paper.payload
                }
            };
            let mut bytes = part.clone().into_bytes();
            let at = draw(bytes.len());
            match draw(3) {
                0 => bytes[at] = b' ' + ((bytes[at] - b' ' + 1 + draw(94) as u8) % 95),
                1 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, b' ' + draw(95) as u8),
            }
            *part = String::from_utf8(bytes).expect("still ASCII");
            let changed = o != order || g != grant || spec != SPEC;
            assert!(!changed || check(&w, &o, &g, &spec, w.now).is_err(), "round {round}: {o:?} {g:?}");
        }
    }

    #[test]
    fn a_new_key_needs_the_old_keys_signature() {
        let (old, new, thief) =
            (Signatory::from_seed(&[1; 32]), Signatory::from_seed(&[2; 32]), Signatory::from_seed(&[3; 32]));
        let first = EndorsedKey { public: old.public(), endorsed_by: None, signature: None };
        let mut keys = TrustedKeys::new(vec![old.fingerprint().into()]);
        // Offered in any order.
        assert_eq!(keys.learn(&[old.endorse(&new.public()), first.clone()]), 2);
        let mut keys = TrustedKeys::new(vec![old.fingerprint().into()]);
        let lie = EndorsedKey { endorsed_by: Some(old.fingerprint().into()), ..thief.endorse(&thief.public()) };
        let bare = EndorsedKey { public: thief.public(), endorsed_by: None, signature: None };
        assert_eq!(keys.learn(&[first, lie, bare]), 1);
    }

    #[test]
    fn a_watch_is_for_one_request_of_one_session() {
        let w = world();
        let install = InstallId::new(w.now, 6);
        let watch = Watch {
            runner_id: w.order.runner_id.clone(),
            install_id: install.clone(),
            generation: 4,
            nonce: "n".into(),
            components: Vec::new(),
            sealed: Vec::new(),
            secrets: Vec::new(),
            store_secrets: Vec::new(),
        };
        let expected = Expected { runner_id: &w.order.runner_id, generation: 4, nonce: "n", now: w.now };
        let open = |paper: &Signed, install: &InstallId| w.keys.open_watch(paper, install, &expected).map(drop);
        assert_eq!(open(&w.signatory.watch(&watch), &install), Ok(()));
        let other = Signatory::from_seed(&[8; 32]);
        assert!(matches!(open(&other.watch(&watch), &install), Err(PaperError::UntrustedKey("watch", _))));
        let forged = Signed { key: w.signatory.fingerprint().into(), ..other.watch(&watch) };
        assert_eq!(open(&forged, &install), Err(PaperError::BadSignature("watch")));
        // A paper of another kind is none of this kind.
        let disguised = w.signatory.paper(ORDER_TAG, serde_json::to_string(&watch).expect("text"));
        assert_eq!(open(&disguised, &install), Err(PaperError::BadSignature("watch")));
        assert_eq!(
            open(&w.signatory.watch(&watch), &InstallId::new(w.now, 7)),
            Err(PaperError::Mismatch("watch", "install"))
        );
        for (other, of) in [
            (Watch { runner_id: RunnerId::new(w.now, 9), ..watch.clone() }, "runner"),
            (Watch { generation: 5, ..watch.clone() }, "session"),
            (Watch { nonce: "m".into(), ..watch }, "request"),
        ] {
            assert_eq!(open(&w.signatory.watch(&other), &install), Err(PaperError::Mismatch("watch", of)));
        }
    }

    #[test]
    fn a_request_is_signed_as_a_whole() {
        let key = Signatory::from_seed(&[9; 32]);
        let text = RequestText {
            method: "POST",
            path_and_query: "/v1/x?a=1",
            runner: "r",
            generation: 1,
            time: "t",
            nonce: "n",
            body: b"b",
        };
        let signature = key.request(&text.text());
        assert!(text.verify(&key.public(), &signature));
        assert!(!RequestText { body: b"c", ..text }.verify(&key.public(), &signature));
        assert!(!RequestText { path_and_query: "/v1/y", ..text }.verify(&key.public(), &signature));
        assert!(!RequestText { generation: 2, ..text }.verify(&key.public(), &signature));
        assert!(!text.verify(&Signatory::from_seed(&[1; 32]).public(), &signature));
    }
}
