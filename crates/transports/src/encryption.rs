//! What makes connections to a server secret: rustls, with the usual roots and those that the config adds.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// For servers whose certificates are signed by one of the usual roots, or by one in this file (PEM).
pub(crate) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots(ca_file)?)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(client)))
}

/// The usual roots, and those in this file, which has one at least.
pub(crate) fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let Some(path) = ca_file else { return Ok(roots) };
    let unreadable = |why: String| format!("cannot read certificates from ca_file {}: {why}", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
    let mut count = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        count += 1;
    }
    if count == 0 { Err(unreadable("there are none in it".to_owned())) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_said_to_have_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wrong = roots(Some(file.path())).unwrap_err();
        assert!(wrong.ends_with("there are none in it"), "{wrong}");
        let missing = roots(Some(&file.path().join("none"))).unwrap_err();
        assert!(missing.contains("cannot read certificates from ca_file"), "{missing}");
    }
}
