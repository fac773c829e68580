//! Every question is answered through an index, whatever the planner would like.
