//! One client for every call to a model.
