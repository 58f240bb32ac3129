//! Budgets: no call without a reservation in all of them, on both engines.
use mainstay_agent::budget::{self, Account, Amount, Limits, Spent};
use mainstay_store::Store;
use mainstay_testkit::model::Replies;

use crate::fixture::{Engine, TestAgent};

/// Runs a property on both engines, with a turn below its session.
fn on_both(limits: [Limits; 3], property: impl Fn(&Store, &Account)) {
    for engine in Engine::BOTH {
        let test = TestAgent::on(engine, Replies::new([]));
        let (store, owner) = (&test.store, test.owner);
        let [turn, session, day] = limits;
        let path = store
            .write(|tx| -> mainstay_agent::Result<_> {
                assert_eq!(budget::open(tx, "session/s", None, &session)?, 0);
                assert_eq!(budget::open(tx, "turn/t", Some("session/s"), &turn)?, 1);
                budget::ancestry(tx, "turn/t")
            })
            .unwrap();
        assert_eq!(path, ["turn/t", "session/s"]);
        property(store, &Account { owner, path, day });
    }
}

fn reserve(store: &Store, account: &Account, amount: Amount) -> Result<(), Spent> {
    let nothing = Amount::default();
    store
        .write(|tx| -> mainstay_agent::Result<_> {
            budget::reserve(tx, account, &amount, &nothing)
        })
        .unwrap()
}

fn money(money: i64) -> Amount {
    Amount { money, ..Amount::default() }
}

const NONE: Limits = Limits { money: None, tokens: None, calls: None };

#[test]
fn the_tightest_budget_on_the_way_up_decides_and_is_named() {
    let ten = Limits { money: Some(10_000_000), ..NONE };
    let cases = [
        ([ten, NONE, NONE], "this turn"),
        ([NONE, ten, NONE], "this session"),
        ([NONE, NONE, ten], "this day"),
    ];
    for (limits, whose) in cases {
        on_both(limits, |store, account| {
            reserve(store, account, money(6_000_000)).unwrap();
            let spent = reserve(store, account, money(5_000_000)).unwrap_err();
            let words = format!("the budget of {whose} is spent: $6.00 of $10.00 used");
            assert!(spent.text.starts_with(&words), "{spent:?}");
            // What was refused was charged nowhere.
            reserve(store, account, money(4_000_000)).unwrap();
        });
    }
}

#[test]
fn what_was_not_used_is_given_back_and_what_was_used_more_is_taken() {
    let limits = [Limits { tokens: Some(100), calls: Some(3), ..NONE }, NONE, NONE];
    on_both(limits, |store, account| {
        let all = Amount { tokens: 100, calls: 1, money: 0 };
        reserve(store, account, all).unwrap();
        reserve(store, account, all).unwrap_err();
        let correction = Amount { tokens: -90, ..Amount::default() };
        // The correction is charged together with the next reservation.
        let again = Amount { tokens: 90, calls: 1, money: 0 };
        let reserved = store.write(|tx| -> mainstay_agent::Result<_> {
            budget::reserve(tx, account, &again, &correction)
        });
        reserved.unwrap().unwrap();
        let more = Amount { tokens: 50, ..Amount::default() };
        store
            .write(|tx| -> mainstay_agent::Result<_> { budget::correct(tx, account, &more) })
            .unwrap();
        let spent = reserve(store, account, Amount { tokens: 1, calls: 1, money: 0 }).unwrap_err();
        assert!(spent.text.contains("150 of 100 tokens used"), "{spent:?}");
    });
}

#[test]
fn calls_are_counted_too() {
    let limits = [Limits { calls: Some(2), ..NONE }, NONE, NONE];
    on_both(limits, |store, account| {
        let one = Amount { calls: 1, ..Amount::default() };
        reserve(store, account, one).unwrap();
        reserve(store, account, one).unwrap();
        let spent = reserve(store, account, one).unwrap_err();
        assert!(spent.text.contains("2 of 2 calls of models made"), "{spent:?}");
    });
}
