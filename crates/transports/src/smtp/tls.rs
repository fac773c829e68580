//! Encryption: rustls, with the usual roots and those that the config adds.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio_rustls::TlsConnector;

use super::config::{SmtpConfig, Tls};
use super::line::Stream;
use crate::encryption::roots;

/// What makes connections to one server secret.
pub(super) struct Encryption {
    connector: TlsConnector,
    server: ServerName<'static>,
}

impl Encryption {
    /// For this server; an error says what is wrong with the config.
    pub(super) fn new(config: &SmtpConfig, host: &str) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?;
        let has_login = config.server.as_ref().is_some_and(|server| server.login.is_some());
        let client = match config.tls() {
            Tls::Opportunistic if !has_login && config.ca_file.is_none() => {
                let anybody = Arc::new(Anybody(provider));
                builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
            }
            Tls::None | Tls::Opportunistic | Tls::Required | Tls::Implicit => {
                builder.with_root_certificates(roots(config.ca_file.as_deref())?).with_no_client_auth()
            }
        };
        let server =
            ServerName::try_from(host.to_owned()).map_err(|_| "the host is no name of one".to_owned())?;
        Ok(Self { connector: TlsConnector::from(Arc::new(client)), server })
    }

    pub(super) async fn wrap(&self, stream: Box<dyn Stream>) -> std::io::Result<Box<dyn Stream>> {
        let stream = self.connector.connect(self.server.clone(), stream).await?;
        Ok(Box::new(stream))
    }
}

/// Takes any certificate. Only for connections that would otherwise be open to everybody.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
