//! Compaction in turns: when, what stays, what is done when it fails, and who may.

mod bounds;
mod by_hand;
mod crashing;
mod failing;
mod kept;
mod large_results;
mod long;
mod scene;
mod together;
