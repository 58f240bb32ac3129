//! One suite of properties, run on both engines through the public face.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

mod events;
mod generated;
mod leases;
mod place;
mod records;
mod transactions;
mod wakeups;

/// Makes a test of each property on each engine.
macro_rules! on_both_engines {
    ($($module:ident::$property:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $property() {
                crate::$module::$property(&crate::place::Place::sqlite());
            })+
        }
        mod postgres {
            $(#[test]
            fn $property() {
                crate::$module::$property(&crate::place::Place::postgres());
            })+
        }
    };
}

on_both_engines! {
    transactions::what_asks_for_its_turn_does_nothing_in_vain,
    transactions::what_was_written_is_read_by_every_handle,
    transactions::a_note_is_a_transaction_like_any_other,
    transactions::a_failed_closure_leaves_nothing_and_its_neighbours_stay,
    transactions::a_panic_is_rolled_back_and_told_to_its_caller,
    transactions::a_write_inside_a_write_is_refused_and_does_not_hang,
    transactions::a_failed_statement_dooms_its_transaction,
    transactions::a_constraint_says_no_in_words,
    transactions::values_come_back_as_they_went,
    transactions::what_one_engine_could_not_keep_is_refused_by_both,
    transactions::text_sorts_by_its_bytes,
    transactions::a_read_sees_one_moment,
    transactions::a_read_cannot_write,
    transactions::increments_are_never_lost,
    transactions::two_transactions_cannot_both_believe_what_the_other_changed,
    transactions::an_older_program_stops_writing_when_the_store_is_migrated,
    transactions::four_openers_at_once_migrate_once,
    transactions::only_an_existing_store_is_opened_when_so_asked,
    events::numbers_have_no_gaps_and_appear_in_order,
    events::a_reader_sees_everything_at_least_once,
    events::a_cursor_never_moves_back,
    events::retention_keeps_what_readers_need_and_tells_what_they_missed,
    wakeups::a_commit_wakes_listeners_of_its_topic_elsewhere,
    wakeups::a_rolled_back_write_wakes_nobody,
    leases::only_one_of_many_gets_a_lease,
    leases::a_lease_let_go_wakes_its_standby,
    leases::a_lease_lives_while_it_is_renewed_and_dies_when_not,
    leases::a_former_holder_cannot_write,
    leases::a_holder_that_pauses_inside_its_write_is_fenced_too,
    leases::a_jump_of_the_wall_clock_changes_nothing,
    records::blobs_are_kept_once_by_their_hash,
    records::an_owner_is_made_once,
    records::an_id_is_found_by_a_unique_prefix,
    generated::any_sequence_ends_like_the_model,
}
