//! The reconcile steps, one a file; each decides and none does.
