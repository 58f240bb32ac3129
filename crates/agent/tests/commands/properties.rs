//! Properties of the classification.
