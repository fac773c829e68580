//! Answers: the HTTP API and the console.
