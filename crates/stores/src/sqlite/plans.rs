//! Every question is answered through an index.
