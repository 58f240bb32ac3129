//! Search, the same on both engines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test's error is a panic"
)]

use std::time::Duration;

use mainstay_journal::compaction::Compaction;
use mainstay_journal::entry::{self, Body};
use mainstay_journal::search::{
    self, Answer, Asked, Caught, Filter, Hit, Sort, Who, catch_up, catch_up_ahead, rebuild,
};
use mainstay_journal::turn::{self, Outcome};
use mainstay_journal::{JOURNAL, Result, SEARCH, SessionId, TurnId, fork, remove, session};
use mainstay_message::{AssistantPart, Call, CallResult, Content};
use mainstay_store::{Location, Options, OwnerId, Schema, Store, WriteTx, params};

fn options() -> Options {
    Options::new(Schema::new(&[JOURNAL, SEARCH]))
}

fn on_sqlite(property: impl Fn(&Store)) {
    let directory = tempfile::tempdir().unwrap();
    let file = Location::file(directory.path().join("store.db"));
    property(&Store::open(&file, options()).unwrap());
}

fn on_both(property: impl Fn(&Store)) {
    on_sqlite(&property);
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    property(&Store::open(&server, options()).unwrap());
}

fn write<T: Send>(store: &Store, closure: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send) -> T {
    store.write(closure).unwrap()
}

fn user(text: &str) -> Body {
    Body::User { content: vec![Content::Text(text.to_owned())] }
}

fn assistant(text: &str) -> Body {
    let parts = vec![AssistantPart::Text(text.to_owned())];
    Body::Assistant { parts, model: "m".to_owned() }
}

fn calls(tool: &str, arguments: &str) -> Body {
    let call = Call {
        id: "c".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_owned(),
        extra: None,
    };
    Body::Assistant { parts: vec![AssistantPart::Call(call)], model: "m".to_owned() }
}

fn result(text: &str) -> Body {
    let result = CallResult {
        call: "c".to_owned(),
        name: "shell".to_owned(),
        content: vec![Content::Text(text.to_owned())],
        failed: false,
    };
    Body::Result { result, facts: Vec::new(), fingerprint: String::new(), whole: None }
}

fn notice(text: &str) -> Body {
    Body::notice(text)
}

fn owner(store: &Store, name: &str) -> OwnerId {
    write(store, |tx| Ok(tx.owner(name)?))
}

/// Begins a session whose first turn has these entries.
fn session_in(store: &Store, owner: OwnerId, workspace: &str, bodies: &[Body]) -> SessionId {
    let id = SessionId::new();
    write(store, |tx| {
        let new = session::New { owner, workspace, prompt: "p", title: "about it", begun_by: None };
        session::create(tx, id, &new)?;
        turn_of(tx, id, bodies)
    });
    id
}

fn turn_of(tx: &mut WriteTx<'_>, id: SessionId, bodies: &[Body]) -> Result<()> {
    let turn = TurnId::new();
    turn::begin(tx, turn, id, turn.as_str())?;
    for body in bodies {
        entry::append(tx, id, turn, body)?;
    }
    turn::end(tx, turn, Outcome::Answered, None)
}

fn session_of(store: &Store, owner: OwnerId, bodies: &[Body]) -> SessionId {
    session_in(store, owner, "/projects/here", bodies)
}

fn ask(store: &Store, owner: OwnerId, asked: &Asked) -> Answer {
    search::search(store, owner, asked, None, &mut |_| {}).unwrap()
}

fn words(text: &str) -> Asked {
    Asked { words: text.to_owned(), limit: 50, ..Asked::default() }
}

fn found(store: &Store, owner: OwnerId, text: &str) -> Vec<i64> {
    let mut seqs: Vec<i64> =
        ask(store, owner, &words(text)).hits.iter().map(|hit| hit.seq).collect();
    seqs.sort_unstable();
    seqs
}

fn places(hits: &[Hit]) -> Vec<(SessionId, i64)> {
    hits.iter().map(|hit| (hit.session, hit.seq)).collect()
}

#[test]
fn words_phrases_names_and_scripts_without_spaces_are_found() {
    on_both(|store| {
        let me = owner(store, "me");
        session_of(
            store,
            me,
            &[
                user("Where is the retry budget of the Café in München kept?"),
                calls("grep", r#"{"pattern":"retry_budget","path":"src/llm/chain.rs"}"#),
                result("src/llm/chain.rs:41: pub fn takeBudget(foo_bar::baz: u32)"),
                assistant("The budget for retries is 3; see `foo_bar::baz` and 東京都庁の予算。"),
                notice("a background process ended: npm run build-all"),
                user("猫 and 日本語のテスト, 한국어 검색, ภาษาไทย"),
            ],
        );
        for (typed, expected) in [
            ("retry", &[1, 2][..]),
            ("BUDGET retry", &[1, 2]),
            ("cafe munchen", &[1]),
            ("MÜNCHEN", &[1]),
            ("retr*", &[1, 2, 4]),
            ("\"retry budget\"", &[1, 2]),
            ("\"budget retry\"", &[]),
            ("budget -retry", &[3, 4]),
            ("foo_bar::baz", &[3, 4]),
            ("src/llm/chain.rs", &[2, 3]),
            ("takeBudget", &[3]),
            ("akeBudg", &[3]),
            ("oo_bar::ba", &[3, 4]),
            ("uild-al", &[5]),
            ("build-all", &[5]),
            ("東京", &[4]),
            ("京都", &[4]),
            ("東京都庁の予算", &[4]),
            ("都東", &[]),
            ("猫", &[6]),
            ("日本語", &[6]),
            ("語", &[6]),
            ("검색", &[6]),
            ("ไทย", &[6]),
            ("retry OR 猫", &[1, 2, 6]),
            ("nowhere", &[]),
        ] {
            assert_eq!(found(store, me, typed), expected, "{typed}");
        }
    });
}

#[test]
fn nothing_that_is_typed_is_an_error() {
    on_both(|store| {
        let me = owner(store, "me");
        session_of(store, me, &[user("plain words, it's 100% 'quoted' \\ and NEAR (something)")]);
        for typed in [
            "",
            " ",
            "\"",
            "\"\"",
            "*",
            "-",
            "--",
            "- -",
            "-x",
            "AND",
            "OR",
            "NOT",
            "NEAR(a b)",
            "a:b",
            "words:plain",
            "owner:x",
            "{words}",
            "^plain",
            "+plain",
            "plain)",
            "((",
            "'",
            "''",
            "\\",
            "\\'",
            "%",
            "_",
            "%%%_",
            "🦀",
            "\u{0}",
            "a\u{0}b",
            "\u{200d}",
            "!plain",
            "plain & | !",
            ":*",
            "plain:*",
            "<->",
            "'plain'",
            "\"it's",
            "1",
            "é",
            "ß",
            "\u{301}",
            "ﬁ",
            "𝔸𝔹",
            "x\u{301}*",
            &"\u{fdfa}".repeat(64),
        ] {
            let answer = ask(store, me, &words(typed));
            assert!(answer.hits.len() <= 1, "{typed}");
        }
        assert!(ask(store, me, &words("🦀 -- *")).wordless);
        for typed in ["plain OR", "OR plain", "plain OR 🦀"] {
            assert_eq!(found(store, me, typed), [1], "{typed}");
        }
        assert_eq!(found(store, me, "plain) it's 100% \\"), [1]);
        assert_eq!(found(store, me, &"plain ".repeat(5_000)), [1]);
        assert_eq!(found(store, me, &format!("plain {}", "x".repeat(100_000))), [1], "in part");
    });
}

#[test]
fn where_no_entry_has_all_words_those_with_some_are_found() {
    on_both(|store| {
        let me = owner(store, "me");
        session_of(
            store,
            me,
            &[user("the token expires"), user("the auth flow"), user("the weather is fine")],
        );
        let answer =
            ask(store, me, &words("what did we say of the token expiry and the auth flow"));
        assert!(answer.partly);
        assert_eq!(answer.hits[0].seq, 2, "{:?}", places(&answer.hits));
        let answer = ask(store, me, &words("the token"));
        assert!(!answer.partly);
        assert_eq!(places(&answer.hits).len(), 1);
    });
}

#[test]
fn a_hit_shows_its_words_and_its_neighbours() {
    on_both(|store| {
        let me = owner(store, "me");
        let id = session_of(
            store,
            me,
            &[
                user(&format!("before {}", "x ".repeat(400))),
                assistant(&format!(
                    "{} the Needle lies\nhere {}",
                    "hay ".repeat(300),
                    "hay ".repeat(300)
                )),
                result("after"),
            ],
        );
        let answer = ask(store, me, &words("needle"));
        let [hit] = &answer.hits[..] else { panic!("{answer:?}") };
        assert_eq!((hit.session, hit.seq, hit.who), (id, 2, Who::Assistant));
        assert_eq!((hit.title.as_str(), hit.workspace.as_str()), ("about it", "/projects/here"));
        let marked = hit.snippet.marked("[", "]");
        assert!(marked.contains("the [Needle] lies here hay"), "{marked}");
        let before = hit.before.as_ref().unwrap();
        assert!(before.text.starts_with("before x") && before.text.chars().count() <= 201);
        assert_eq!((before.seq, before.who), (1, Who::User));
        assert_eq!(hit.after.as_ref().unwrap().text, "after");
    });
}

#[test]
fn what_fits_best_comes_first_or_the_newest_or_the_oldest() {
    on_both(|store| {
        let me = owner(store, "me");
        let once = format!("lease {}", "and other things ".repeat(60));
        session_of(store, me, &[user(&once), user("lease lease: the lease"), user("a lease here")]);
        // Times of the same millisecond would say nothing.
        for seq in 1..=3 {
            write(store, |tx| {
                tx.execute("UPDATE entries SET at = ?1 * 1000 WHERE seq = ?1", params![seq])?;
                Ok(())
            });
        }
        let order = |sort| -> Vec<i64> {
            let asked = Asked { sort, ..words("lease") };
            ask(store, me, &asked).hits.iter().map(|hit| hit.seq).collect()
        };
        assert_eq!(order(Sort::Relevance), [2, 3, 1]);
        assert_eq!(order(Sort::Newest), [3, 2, 1]);
        assert_eq!(order(Sort::Oldest), [1, 2, 3]);
        let two = Asked { limit: 2, sort: Sort::Oldest, ..words("lease") };
        assert_eq!(ask(store, me, &two).hits.len(), 2);
    });
}

#[test]
fn time_session_workspace_and_speaker_narrow_a_search() {
    on_both(|store| {
        let me = owner(store, "me");
        let bodies = [user("apple pie"), assistant("apple tart"), result("apple juice")];
        let one = session_in(store, me, "/projects/a", &bodies);
        let other = session_in(store, me, "/projects/a/b", &bodies);
        let third = session_in(store, me, "/projects/ab", &[notice("apple cake")]);
        for (number, id) in [one, other, third].into_iter().enumerate() {
            let at = i64::try_from(number).unwrap() * 1000;
            write(store, |tx| {
                tx.execute("UPDATE entries SET at = ?2 + seq WHERE session = ?1", params![id, at])?;
                Ok(())
            });
        }
        let with = |filter: Filter| -> usize {
            ask(store, me, &Asked { filter, ..words("apple") }).hits.len()
        };
        assert_eq!(with(Filter::default()), 7);
        assert_eq!(with(Filter { session: Some(other), ..Filter::default() }), 3);
        assert_eq!(with(Filter { except: Some(other), ..Filter::default() }), 4);
        let place = |path: &str| Filter { workspace: Some(path.to_owned()), ..Filter::default() };
        assert_eq!(with(place("/projects/a")), 6);
        assert_eq!(with(place("/projects/a/b")), 3);
        assert_eq!(with(place("/projects")), 7);
        assert_eq!(with(place("/")), 7);
        assert_eq!(with(place("/projects/%")), 0);
        for (who, count) in [(Who::User, 2), (Who::Assistant, 2), (Who::Tool, 2), (Who::Notice, 1)]
        {
            assert_eq!(with(Filter { who: Some(who), ..Filter::default() }), count, "{who:?}");
        }
        assert_eq!(with(Filter { since: Some(1002), ..Filter::default() }), 3);
        assert_eq!(with(Filter { until: Some(1002), ..Filter::default() }), 4);
        let both = Filter { since: Some(2), until: Some(4), ..Filter::default() };
        assert_eq!(with(both), 2);
        assert_eq!(with(Filter { since: Some(10_000), ..Filter::default() }), 0);
        let nobodys = Filter { session: Some(SessionId::new()), ..Filter::default() };
        assert_eq!(with(nobodys), 0);
    });
}

#[test]
fn nobody_finds_the_words_of_another_owner() {
    on_both(|store| {
        let (me, you) = (owner(store, "me"), owner(store, "you"));
        let mine = session_of(store, me, &[user("my secret_plan is ice cream")]);
        let many: Vec<Body> = (0..300).map(|_| user("the secret_plan of somebody else")).collect();
        let yours = session_of(store, you, &many);
        for typed in ["secret", "secret plan", "secret_plan", "ecret_pla", "secre*", "plan OR ice"]
        {
            let answer = ask(store, me, &words(typed));
            assert_eq!(places(&answer.hits), [(mine, 1)], "{typed}");
            let theirs = ask(store, you, &words(typed));
            assert!(theirs.hits.iter().all(|hit| hit.session == yours), "{typed}");
        }
        let filter = Filter { session: Some(yours), ..Filter::default() };
        assert!(ask(store, me, &Asked { filter, ..words("secret") }).hits.is_empty());
        assert!(ask(store, you, &words("ice")).hits.is_empty());
    });
}

#[test]
fn what_a_fork_shares_is_found_once_and_outlives_its_parent() {
    on_both(|store| {
        let me = owner(store, "me");
        let parent = session_of(store, me, &[user("shared banana"), assistant("more banana")]);
        let child = SessionId::new();
        write(store, |tx| fork(tx, child, parent, None));
        let grandchild = SessionId::new();
        write(store, |tx| turn_of(tx, child, &[user("banana of the fork")]));
        write(store, |tx| fork(tx, grandchild, child, None));
        let answer = ask(store, me, &words("banana"));
        let mut all = places(&answer.hits);
        all.sort_unstable();
        assert_eq!(all, [(parent, 1), (parent, 2), (child, 3)]);
        let within = Filter { session: Some(grandchild), ..Filter::default() };
        assert_eq!(ask(store, me, &Asked { filter: within, ..words("banana") }).hits.len(), 3);

        write(store, |tx| {
            search::forget(tx, parent)?;
            remove(tx, &[parent])
        });
        let answer = ask(store, me, &words("banana"));
        let mut all = places(&answer.hits);
        all.sort_unstable();
        assert_eq!(all, [(child, 1), (child, 2), (child, 3)]);
    });
}

fn documents(store: &Store) -> i64 {
    let sql = "SELECT count(*) FROM cache_search_documents";
    store.read(|tx| tx.query_one(sql, params![], |row| row.get(0))).unwrap()
}

#[test]
fn a_deleted_session_is_not_found_and_its_words_leave_the_index() {
    on_both(|store| {
        let me = owner(store, "me");
        let gone = session_of(store, me, &[user("forbidden_fruit once"), user("and fruit again")]);
        let stays = session_of(store, me, &[user("other fruit")]);
        assert_eq!(ask(store, me, &words("fruit")).hits.len(), 3);
        write(store, |tx| {
            search::forget(tx, gone)?;
            remove(tx, &[gone])
        });
        // Before it has caught up nothing of it is shown either: what is shown is read from entries.
        assert_eq!(places(&ask(store, me, &words("fruit")).hits), [(stays, 1)]);
        assert_eq!(documents(store), 1);
        assert!(ask(store, me, &words("orbidden_frui")).hits.is_empty());
    });
}

#[test]
fn the_index_follows_what_is_added_and_adds_nothing_twice() {
    on_both(|store| {
        let me = owner(store, "me");
        let id = session_of(store, me, &[user("first drop")]);
        assert_eq!(found(store, me, "drop"), [1]);
        // A turn that goes on says when it began, and no more.
        let turn = TurnId::new();
        write(store, |tx| {
            turn::begin(tx, turn, id, "second")?;
            tx.execute("UPDATE sessions SET used_at = 5", params![])?;
            Ok(())
        });
        for number in 2..=5 {
            write(store, |tx| entry::append(tx, id, turn, &user("another drop")));
            let expected: Vec<i64> = (1..=number).collect();
            assert_eq!(found(store, me, "drop"), expected);
        }
        assert_eq!(documents(store), 5);
        let caught = catch_up(store, me, None, &mut |_| {}).unwrap();
        assert_eq!(caught, Caught::default(), "there is nothing to do");
    });
}

#[test]
fn what_cannot_be_indexed_in_time_is_said_and_done_later() {
    on_both(|store| {
        let me = owner(store, "me");
        session_of(store, me, &[user("late"), user("later")]);
        let none = Some(Duration::ZERO);
        let answer = search::search(store, me, &words("late"), none, &mut |_| {}).unwrap();
        assert_eq!((answer.behind, answer.hits.len()), (2, 0));
        let mut told = Vec::new();
        catch_up(store, me, None, &mut |progress| told.push((progress.done, progress.of))).unwrap();
        assert_eq!(told, [(2, 2)]);
        let answer = search::search(store, me, &words("late"), none, &mut |_| {}).unwrap();
        assert_eq!((answer.behind, answer.hits.len()), (0, 1));
    });
}

/// Damages the index in the middle and expects every entry to be found after.
fn heals(store: &Store, damages: &[&str]) {
    let me = owner(store, "me");
    let bodies: Vec<Body> = (0..400).map(|n| user(&format!("rope number_{n} 東京"))).collect();
    session_of(store, me, &bodies);
    assert_eq!(found(store, me, "rope").len(), 50);
    for damage in damages {
        for statement in damage.split(';') {
            write(store, |tx| Ok(tx.execute(statement, params![])?));
        }
        let last = Asked { limit: 500, sort: Sort::Oldest, ..words("rope") };
        assert_eq!(ask(store, me, &last).hits.len(), 200, "{damage}");
        assert_eq!(found(store, me, "number_399"), [400], "{damage}");
        assert_eq!(found(store, me, "umber_17").len(), 11, "{damage}");
        assert_eq!(found(store, me, "number_77 東京"), [78], "{damage}");
        session_of(store, me, &[user("added after the damage")]);
        assert!(!found(store, me, "added").is_empty(), "{damage}");
    }
    assert_eq!(documents(store), 400 + i64::try_from(damages.len()).unwrap());
    assert!(store.check(mainstay_store::Depth::Full).unwrap().is_empty());
}

#[test]
fn slow_a_damaged_or_missing_index_is_made_anew() {
    on_sqlite(|store| {
        heals(
            store,
            &[
                "DROP TABLE cache_search_words",
                "DROP TABLE cache_search_documents",
                "DROP TABLE cache_search_state",
                "DROP TABLE cache_search_spans; DROP TABLE cache_search_fragments",
                "UPDATE cache_search_state SET value = 99 WHERE name = 'version'",
                "DELETE FROM cache_search_state",
                "DELETE FROM cache_search_state WHERE name = 'next'",
                "UPDATE cache_search_state SET value = 1 WHERE name = 'next';
                 UPDATE cache_search_sessions SET through = 0",
                "DROP TABLE cache_search_gone",
                "UPDATE cache_search_words_data SET block = x'0011223344' WHERE id > 10",
                "DELETE FROM cache_search_words_data WHERE id > 10",
                "DELETE FROM cache_search_fragments_data",
                "DELETE FROM cache_search_words_config",
                "DROP TABLE cache_search_words_config",
                "DROP TABLE cache_search_words_data",
                "DROP TABLE cache_search_words_data; DROP TABLE cache_search_words_idx;
                 DROP TABLE cache_search_words_config; DROP TABLE cache_search_words_docsize",
            ],
        );
    });
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    heals(
        &Store::open(&server, options()).unwrap(),
        &[
            "DROP TABLE cache_search_documents",
            "DROP INDEX cache_search_documents_words",
            "ALTER TABLE cache_search_documents DROP COLUMN words",
            "DROP TABLE cache_search_state",
            "UPDATE cache_search_state SET value = 99 WHERE name = 'version'",
            "DELETE FROM cache_search_state WHERE name = 'next'",
            "UPDATE cache_search_state SET value = 1 WHERE name = 'next';
             UPDATE cache_search_sessions SET through = 0",
            "DROP TABLE cache_search_gone",
        ],
    );
}

#[test]
fn a_session_is_deleted_whatever_happened_to_the_index() {
    on_both(|store| {
        let me = owner(store, "me");
        let gone = session_of(store, me, &[user("fruit")]);
        assert_eq!(found(store, me, "fruit"), [1]);
        write(store, |tx| Ok(tx.execute("DROP TABLE cache_search_gone", params![])?));
        write(store, |tx| {
            search::forget(tx, gone)?;
            remove(tx, &[gone])
        });
        assert!(found(store, me, "fruit").is_empty());
    });
}

#[test]
fn what_was_noted_as_deleted_and_is_there_is_found() {
    on_both(|store| {
        let me = owner(store, "me");
        let back = session_of(store, me, &[user("fruit")]);
        assert_eq!(found(store, me, "fruit"), [1]);
        write(store, |tx| search::forget(tx, back));
        assert_eq!(found(store, me, "fruit"), [1]);
    });
}

#[test]
fn an_index_that_is_rebuilt_finds_the_same() {
    on_both(|store| {
        let me = owner(store, "me");
        for number in 0..30 {
            session_of(store, me, &[user(&format!("piece {number} of wood")), assistant("wood")]);
        }
        let before = places(&ask(store, me, &words("wood")).hits);
        rebuild(store).unwrap();
        assert_eq!(documents(store), 0);
        assert_eq!(places(&ask(store, me, &words("wood")).hits), before);
        assert_eq!(documents(store), 60);
    });
}

#[test]
fn what_a_search_adds_in_passing_is_left_to_it_and_more_is_added_ahead() {
    on_both(|store| {
        let me = owner(store, "me");
        let ahead = |patience| catch_up_ahead(store, me, patience).unwrap();
        let long = Duration::from_secs(60);
        session_of(store, me, &[user("a grain of sand")]);
        assert_eq!(ahead(long), Caught { behind: 0, added: 0 });
        let bodies: Vec<Body> = (0..1300).map(|n| user(&format!("grain {n} of sand"))).collect();
        session_of(store, me, &bodies);
        // Without time nothing is done.
        assert_eq!(ahead(Duration::ZERO), Caught { behind: 1301, added: 0 });
        assert_eq!(ahead(long), Caught { behind: 0, added: 1301 });
        assert_eq!(documents(store), 1301);
        session_of(store, me, &[user("one more grain")]);
        assert_eq!(ahead(long), Caught { behind: 0, added: 0 });
        assert_eq!(ask(store, me, &words("more grain")).behind, 0);
    });
}

#[test]
fn slow_two_that_catch_up_at_once_add_everything_and_nothing_twice() {
    let directory = tempfile::tempdir().unwrap();
    let file = Location::file(directory.path().join("store.db"));
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    for place in [file, server] {
        let stores: Vec<Store> = (0..3).map(|_| Store::open(&place, options()).unwrap()).collect();
        let me = owner(&stores[0], "me");
        for number in 0..20 {
            let bodies: Vec<Body> =
                (0..60).map(|n| user(&format!("grain_{number} of sand {n}"))).collect();
            session_of(&stores[0], me, &bodies);
        }
        std::thread::scope(|scope| {
            for store in &stores {
                scope.spawn(move || {
                    let answer = ask(store, me, &words("grain_19"));
                    assert_eq!((answer.behind, answer.hits.len()), (0, 50));
                });
            }
            // Somebody else makes it anew in the middle.
            scope.spawn(|| rebuild(&stores[1]).unwrap());
        });
        assert_eq!(ask(&stores[2], me, &words("sand")).hits.len(), 50);
        assert_eq!(documents(&stores[0]), 20 * 60);
    }
}

#[test]
fn a_server_that_refuses_its_extension_still_finds_words_and_says_what_is_missing() {
    use mainstay_testkit::postgres::{DATABASE, admin_url, fresh_schema, psql};
    let (schema, name) = (fresh_schema(), fresh_schema());
    let (database, role) = (format!("{name}_database"), format!("{name}_role"));
    psql(&format!("CREATE DATABASE {database}"));
    psql(&format!("CREATE ROLE {role} LOGIN"));
    let url = format!("{}?schema={schema}", admin_url()).replace(DATABASE, &database);
    let admin = Store::open(&url.parse().unwrap(), options()).unwrap();
    for grant in [
        format!("GRANT ALL ON SCHEMA {schema} TO {role}"),
        format!("GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}"),
    ] {
        write(&admin, |tx| Ok(tx.execute(&grant, params![])?));
    }
    let url = url.replace("postgres@", &format!("{role}@"));
    let store = Store::open(&url.parse().unwrap(), options()).unwrap();
    let me = owner(&store, "me");
    session_of(&store, me, &[user("the retry_budget is here"), user("nothing")]);
    assert_eq!(found(&store, me, "retry_budget"), [1]);
    let answer = ask(&store, me, &words("etry_budg"));
    assert_eq!(answer.hits.len(), 1);
    let said = answer.shortcoming.unwrap();
    assert!(said.contains("CREATE EXTENSION pg_trgm"), "{said}");

    // With the extension there is nothing to say.
    write(&admin, |tx| {
        tx.execute("CREATE EXTENSION pg_trgm WITH SCHEMA public", params![])?;
        Ok(())
    });
    rebuild(&store).unwrap();
    let answer = ask(&store, me, &words("etry_budg"));
    assert_eq!((answer.hits.len(), answer.shortcoming), (1, None));
    drop((store, admin));
    psql(&format!("DROP DATABASE {database} WITH (FORCE)"));
    psql(&format!("DROP ROLE {role}"));
}

#[test]
fn what_a_compaction_covers_is_found_and_so_is_its_summary() {
    on_both(|store| {
        let me = owner(store, "me");
        let id = session_of(store, me, &[user("the lighthouse keeper"), assistant("covered too")]);
        let compaction = Compaction {
            number: 1,
            through: 2,
            summary: Some("They spoke of a lighthouse.".to_owned()),
            ..Compaction::default()
        };
        write(store, |tx| {
            let turn = turn::last(tx, id)?.unwrap().id;
            entry::append(tx, id, turn, &Body::Compaction(Box::new(compaction.clone())))?;
            entry::append(tx, id, turn, &Body::Restored { number: 1 })
        });
        assert_eq!(found(store, me, "lighthouse"), [1, 3]);
        assert_eq!(found(store, me, "covered"), [2]);
    });
}

#[test]
fn a_copy_on_the_other_engine_and_a_backup_find_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let file = Location::file(directory.path().join("store.db"));
    let store = Store::open(&file, options()).unwrap();
    let me = owner(&store, "me");
    let id = session_of(&store, me, &[user("feather_light"), user("a feather again")]);
    assert_eq!(found(&store, me, "feather"), [1, 2]);
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    store.copy_to(&server, &mut |_| {}).unwrap();
    let copy = Store::open(&server, options()).unwrap();
    assert_eq!(places(&ask(&copy, me, &words("eather_lig")).hits), [(id, 1)]);
    assert_eq!(found(&copy, me, "feather"), [1, 2]);
    let back = Location::file(directory.path().join("back.db"));
    copy.copy_to(&back, &mut |_| {}).unwrap();
    assert_eq!(found(&Store::open(&back, options()).unwrap(), me, "feather"), [1, 2]);
    let backup = directory.path().join("backup.db");
    store.backup_to(&backup, &mut |_| {}).unwrap();
    assert_eq!(
        found(&Store::open(&Location::file(backup), options()).unwrap(), me, "feather"),
        [1, 2]
    );
}
