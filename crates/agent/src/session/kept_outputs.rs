//! The outputs of tools that a session keeps whole, where the model was shown a part: up to a bound.

use mainstay_journal::entry::{Body, Entry};
use mainstay_store::{BLOB_LIMIT, BlobHash, PackedBlob};

use crate::Result;
use crate::agent::Agent;

/// So many bytes of outputs, as they are stored, a session keeps at most. What comes after is kept as
/// far as the model was shown it.
const MOST: u64 = 64 << 20;

/// What a session keeps of outputs already.
#[derive(Debug, Default)]
pub(crate) struct KeptOutputs {
    /// Those whose size was not asked for yet: most sessions never need to know.
    unmeasured: Vec<BlobHash>,
    bytes: u64,
}

impl KeptOutputs {
    /// What the entries of a session refer to.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let whole = |entry: &Entry| match &entry.body {
            Body::Result { whole, .. } => whole.as_deref().and_then(|hash| hash.parse().ok()),
            Body::User { .. }
            | Body::Assistant { .. }
            | Body::Notice { .. }
            | Body::End { .. }
            | Body::Compaction(_)
            | Body::Restored { .. } => None,
        };
        Self { unmeasured: entries.iter().filter_map(whole).collect(), bytes: 0 }
    }

    /// Packs an output to be kept. Returns `None` if the session keeps enough.
    pub(crate) fn packed(&mut self, agent: &Agent, whole: Vec<u8>) -> Result<Option<PackedBlob>> {
        if !self.unmeasured.is_empty() {
            let stored = agent.read(|tx| tx.stored_bytes(&self.unmeasured))?;
            self.bytes += u64::try_from(stored).unwrap_or(0);
            self.unmeasured.clear();
        }
        if self.bytes >= MOST {
            return Ok(None);
        }
        let packed = PackedBlob::of(&storable(whole))?;
        self.bytes += packed.stored() as u64;
        Ok(Some(packed).filter(|_| self.bytes <= MOST))
    }
}

/// All of an output, as much of it as the store takes.
fn storable(mut whole: Vec<u8>) -> Vec<u8> {
    const CUT: &[u8] = b"\n[Mainstay: cut here.]";
    if whole.len() > BLOB_LIMIT {
        whole.truncate(BLOB_LIMIT - CUT.len());
        whole.extend_from_slice(CUT);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::test_session::TestSession;

    #[test]
    fn a_session_keeps_outputs_up_to_its_bound() {
        let test = TestSession::new(Settings::default());
        let agent = &test.session.agent;
        let mut outputs = KeptOutputs { unmeasured: Vec::new(), bytes: MOST - 20_000 };
        let log: Vec<u8> = (0..40_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        assert!(outputs.packed(agent, vec![b'a'; 1 << 20]).unwrap().is_some(), "it packs well");
        assert!(outputs.packed(agent, log).unwrap().is_none(), "it does not fit");
        assert!(
            outputs.packed(agent, b"short".to_vec()).unwrap().is_none(),
            "nothing more is kept"
        );
    }
}
