//! What makes connections to a server secret: rustls, with the usual roots and those that the config adds.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// For servers whose certificates are signed by one of the usual roots, or by one in this file (PEM).
pub(crate) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = ca_file {
        let wrong = |error: &dyn std::fmt::Display| format!("ca_file {}: {error}", path.display());
        let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
        for certificate in read {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
    }
    let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(client)))
}
