//! What a yes takes: a person who approves many requests in a row stops reading them.

use mainstay_store::{OwnerId, ReadTx, params};

use crate::policy::ActionClass;
use crate::{Friction, Result};

/// After so many approvals of a kind within [`WINDOW`] a key is not enough.
const FREE: i64 = 3;
const WINDOW: i64 = 60_000;

/// What a yes to an action of this class takes now.
pub(super) fn required_friction(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    class: ActionClass,
) -> Result<Friction> {
    let because = match class {
        ActionClass::Destructive => Some("it may destroy data that cannot be restored".to_owned()),
        ActionClass::Privilege => Some("it runs as another user".to_owned()),
        _ => None,
    };
    if let Some(because) = because {
        return Ok(Friction::Word { because });
    }
    let since = tx.now() - WINDOW;
    let given: i64 = tx.query_one(
        "SELECT count(*) FROM approvals
         WHERE owner = ?1 AND decided_at > ?2 AND class = ?3 AND state IN ('once', 'always')",
        params![owner, since, class],
        |row| row.get(0),
    )?;
    if given < FREE {
        return Ok(Friction::Key);
    }
    let because = format!("{given} of this kind were approved within the last minute");
    Ok(Friction::Word { because })
}
