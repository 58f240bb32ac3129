//! Pictures live in blobs; entries hold their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_message::{Content, Image};
use mainstay_store::{BlobHash, ReadTx, WriteTx};

use crate::entry::Body;
use crate::{Error, Result};

/// Stands before a hash in the place of the bytes. No base64 has a colon.
const KEPT: &str = "blob:";

/// The body as it is stored: its pictures become blobs.
pub(crate) fn keep<'a>(tx: &mut WriteTx<'_>, body: &'a Body) -> Result<std::borrow::Cow<'a, Body>> {
    if !content(body).iter().any(|part| matches!(part, Content::Image(_))) {
        return Ok(std::borrow::Cow::Borrowed(body));
    }
    let mut body = body.clone();
    for image in images(&mut body) {
        let bytes = STANDARD.decode(&image.base64).map_err(|error| Error::Damaged {
            what: "a picture".to_owned(),
            detail: error.to_string(),
        })?;
        image.base64 = format!("{KEPT}{}", tx.put_blob(&bytes)?);
    }
    Ok(std::borrow::Cow::Owned(body))
}

/// Whether pictures have to be fetched.
pub(crate) fn any_kept(body: &Body) -> bool {
    content(body)
        .iter()
        .any(|part| matches!(part, Content::Image(image) if image.base64.starts_with(KEPT)))
}

/// Puts the pictures' bytes back.
pub(crate) fn fetch(tx: &mut ReadTx<'_>, body: &mut Body) -> Result<()> {
    for image in images(body) {
        let Some(hash) = image.base64.strip_prefix(KEPT) else { continue };
        let missing = || Error::Damaged {
            what: format!("the picture {hash}"),
            detail: "the store does not hold it".to_owned(),
        };
        let hash: BlobHash = hash.parse().map_err(|_| missing())?;
        let bytes = tx.blob(&hash)?.ok_or_else(missing)?;
        image.base64 = STANDARD.encode(bytes);
    }
    Ok(())
}

/// The blobs that a body refers to, as it is stored.
pub(crate) fn blobs(body: &Body) -> impl Iterator<Item = BlobHash> {
    let images = content(body).iter().filter_map(|part| match part {
        Content::Image(image) => image.base64.strip_prefix(KEPT),
        Content::Text(_) => None,
    });
    let whole = match body {
        Body::Result { whole, .. } => whole.as_deref(),
        _ => None,
    };
    images.chain(whole).filter_map(|hash| hash.parse().ok())
}

fn content(body: &Body) -> &[Content] {
    match body {
        Body::User { content } => content,
        Body::Result { result, .. } => &result.content,
        Body::Assistant { .. }
        | Body::Notice { .. }
        | Body::End { .. }
        | Body::Compaction(_)
        | Body::Restored { .. } => &[],
    }
}

fn images(body: &mut Body) -> impl Iterator<Item = &mut Image> {
    let content = match body {
        Body::User { content } => content.as_mut_slice(),
        Body::Result { result, .. } => result.content.as_mut_slice(),
        Body::Assistant { .. }
        | Body::Notice { .. }
        | Body::End { .. }
        | Body::Compaction(_)
        | Body::Restored { .. } => &mut [],
    };
    content.iter_mut().filter_map(|part| match part {
        Content::Image(image) => Some(image),
        Content::Text(_) => None,
    })
}
