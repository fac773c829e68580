//! The sink's own certificate, made when it starts and good for this machine only.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// A certificate for `localhost`, signed by itself.
pub(crate) struct Certificate {
    /// What a client has to trust.
    pub pem: String,
    pub acceptor: TlsAcceptor,
}

pub(crate) fn make_certificate() -> io::Result<Certificate> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(io::Error::other)?;
    Ok(Certificate { pem: made.cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) })
}
