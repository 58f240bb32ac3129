//! Blobs, owners, ids.

use mainstay_store::{BLOB_LIMIT, BlobHash, Error, Id, params};

use crate::place::Place;

pub(crate) fn blobs_are_kept_once_by_their_hash(place: &Place) {
    let store = place.open();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let one = store.write(|tx| tx.put_blob(&bytes)).unwrap();
    let two = store.write(|tx| tx.put_blob(&bytes)).unwrap();
    assert_eq!(one, two);
    assert_eq!(store.read(|tx| tx.blob(&one)).unwrap(), Some(bytes));
    let count = "SELECT count(*) FROM blobs";
    assert_eq!(
        store.read(|tx| tx.query_one(count, params![], |row| row.get::<i64>(0))).unwrap(),
        1
    );
    assert_eq!(store.read(|tx| tx.blob(&BlobHash::of(b"other"))).unwrap(), None);
    let large = vec![0; BLOB_LIMIT + 1];
    let refused = store.write(|tx| tx.put_blob(&large)).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
}

pub(crate) fn an_owner_is_made_once(place: &Place) {
    let store = place.open();
    assert_eq!(store.read(|tx| tx.find_owner("local")).unwrap(), None);
    let made = store.write(|tx| tx.owner("local")).unwrap();
    assert_eq!(store.write(|tx| tx.owner("local")).unwrap(), made);
    assert_eq!(store.read(|tx| tx.find_owner("local")).unwrap(), Some(made));
    assert_ne!(store.write(|tx| tx.owner("telegram:1")).unwrap(), made);
}

pub(crate) fn an_id_is_found_by_a_unique_prefix(place: &Place) {
    let store = place.open();
    let ids: Vec<Id> = ["00000000000000000001", "00000000000000000002", "10000000000000000000"]
        .map(|text| text.parse().unwrap())
        .into();
    store
        .write(|tx| {
            ids.iter().try_for_each(|id| {
                tx.execute("INSERT INTO things (id) VALUES (?1)", params![id]).map(drop)
            })
        })
        .unwrap();
    let find = |typed: &str| store.read(|tx| tx.find_id("things", "thing", typed));
    assert_eq!(find("1").unwrap(), ids[2]);
    assert_eq!(find("L0").unwrap(), ids[2]);
    assert_eq!(find("00000000000000000002").unwrap(), ids[1]);
    let ambiguous = find("0").unwrap_err();
    assert!(matches!(&ambiguous, Error::AmbiguousId { matches, .. } if matches.len() == 2));
    assert_eq!(find("2").unwrap_err().to_string(), "no thing has an id that starts with \"2\"");
    assert!(matches!(find("%").unwrap_err(), Error::UnknownId { .. }));
}
