//! Table tests: each rule once by a bundle that breaks it.
