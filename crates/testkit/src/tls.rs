//! A certificate of an authority of its own.

use std::path::{Path, PathBuf};

use model::env::setting;

use crate::system::Options;

/// Files in PEM form.
#[derive(Debug)]
pub struct Certificate {
    pub cert: PathBuf,
    pub key: PathBuf,
    pub ca: PathBuf,
}

impl Certificate {
    /// Makes one for these names, in this directory.
    pub fn make(dir: &Path, names: &[&str]) -> Self {
        let mut authority = rcgen::CertificateParams::new(vec![]).expect("parameters");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_key = rcgen::KeyPair::generate().expect("a key");
        let authority_cert = authority.self_signed(&authority_key).expect("a certificate");
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let key = rcgen::KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let cert =
            rcgen::CertificateParams::new(names).expect("names").signed_by(&key, &issuer).expect("a certificate");
        let file = |name: &str, text: String| {
            let path = dir.join(name);
            fs_err::write(&path, text).expect("a file");
            path
        };
        Self {
            cert: file("cert.pem", cert.pem()),
            key: file("key.pem", key.serialize_pem()),
            ca: file("ca.pem", authority_cert.pem()),
        }
    }

    /// A server that has it, and clients that know its authority.
    pub fn serve(&self, options: Options) -> Options {
        let options = options
            .with(&setting("tls.cert_file"), self.cert.display())
            .with(&setting("tls.key_file"), self.key.display());
        Options { ca_file: Some(self.ca.clone()), ..options }
    }
}
