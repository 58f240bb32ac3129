//! A process for the tests of the shared PostgreSQL: it joins, says which server it found, and stays.

use mainstay_testkit::postgres;

fn main() {
    let file = postgres::psql("SHOW data_directory");
    let pid = std::fs::read_to_string(format!("{file}/postmaster.pid")).unwrap_or_default();
    println!("{} {file}", pid.lines().next().unwrap_or_default());
    loop {
        std::thread::park();
    }
}
