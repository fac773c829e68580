//! A mail server that fails on purpose, for tests and for trying things out.
