//! `mainstay sessions search`

use std::ffi::OsString;
use std::path::Path;

use clap::builder::styling::AnsiColor;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, ValueEnum, ValueHint};
use mainstay_agent::session::search_tool::moment;
use mainstay_journal::search::{self, Answer, Asked, Excerpt, Filter, Hit, Snippet, Sort, Who};
use mainstay_store::{OwnerId, Store, wall_millis};
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Progress;
use crate::wording;

/// Search what was said and done in all sessions
///
/// An entry matches if it has all of the words; if none does, entries with some of them are shown.
/// Also supported: "a phrase" in quotes, begin*, one OR other and, after `--`, -without.
/// Identifiers, paths and parts of them match, and so do words of scripts without spaces.
#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// What to search for
    #[arg(required_unless_present = "rebuild")]
    words: Vec<String>,

    /// Only entries since then: 12h, 7d, 8w, 2026-01-31, "2026-01-31 18:00"
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,

    /// Only entries until then
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,

    /// Only this session (a prefix of its ID is enough)
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only sessions in this directory or below it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<std::path::PathBuf>,

    /// Only entries by this speaker
    #[arg(long)]
    who: Option<Speaker>,

    /// Order of the results
    #[arg(long, default_value = "relevance")]
    sort: Order,

    /// Show at most this many
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    limit: usize,

    /// Rebuild the index first; a damaged index is rebuilt automatically
    #[arg(long)]
    rebuild: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Speaker {
    User,
    Assistant,
    Tool,
    Notice,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    Relevance,
    Newest,
    Oldest,
}

fn time(typed: &str) -> Result<i64, String> {
    moment(typed, wall_millis())
        .ok_or_else(|| "write how long ago (12h, 7d, 8w) or a date (2026-01-31)".to_owned())
}

/// The error for a search word that begins with a hyphen and was taken for an option. Returns `None` if
/// something else is wrong with what was typed.
pub(crate) fn misread(refusal: &clap::Error, typed: &[OsString]) -> Option<Error> {
    let command = typed.windows(2).position(|two| two[0] == "sessions" && two[1] == "search")?;
    let Some(ContextValue::String(option)) = refusal.get(ContextKind::InvalidArg) else {
        return None;
    };
    let words: Vec<&str> = typed[command + 2..].iter().filter_map(|word| word.to_str()).collect();
    // Of -word the parser names no more than -w.
    let word = words.iter().find(|word| word.starts_with(option.as_str())).copied()?;
    (refusal.kind() == ErrorKind::UnknownArgument).then(|| {
        Error::usage(format!("{word} is not an option of this command")).hint(format!(
            "Put search words that begin with a hyphen last, after `--`: `mainstay sessions search -- \
             {word}`"
        ))
    })
}

pub(crate) fn run(args: &SearchArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let Some(owner) = engine::find_owner(&store)? else {
        context.output.answer(&data(&Answer::default()), "No sessions yet.\n")?;
        return Ok(Exit::Done);
    };
    let session = args.session.as_deref().map(|typed| engine::named(&store, typed)).transpose()?;
    let workspace = args.workspace.as_deref().map(directory);
    let filter = Filter {
        session: session.map(|session| session.id),
        except: None,
        workspace,
        who: args.who.map(Speaker::who),
        since: args.since,
        until: args.until,
    };
    let sort = args.sort.sort();
    let asked = Asked { words: args.words.join(" "), filter, sort, limit: args.limit };
    let progress = Progress::begin("searching", None);
    if args.rebuild {
        search::rebuild(&store)?;
        if args.words.is_empty() {
            return rebuilt(&store, owner, &progress, context);
        }
    }
    let answer = search::search(&store, owner, &asked, None, &mut |at| progress.report(&at))?;
    drop(progress);
    context.output.answer(&data(&answer), &text(&answer, context.output))?;
    for words in remarks(&answer) {
        context.output.note(words);
    }
    Ok(Exit::Done)
}

fn rebuilt(
    store: &Store,
    owner: OwnerId,
    progress: &Progress,
    context: &Context,
) -> Result<Exit, Error> {
    let caught = search::catch_up(store, owner, None, &mut |at| progress.report(&at))?;
    let entries = if caught.added == 1 { "entry" } else { "entries" };
    let text = format!("Rebuilt the index of {} {entries}.\n", caught.added);
    context.output.answer(&json!({ "indexed": caught.added }), &text)?;
    Ok(Exit::Done)
}

/// What is good to know of an answer besides its hits.
fn remarks(answer: &Answer) -> Vec<String> {
    let mut remarks = Vec::new();
    if answer.partly && !answer.hits.is_empty() {
        remarks.push("No entry has all of the words; these have some of them.".to_owned());
    }
    if answer.capped {
        remarks.push(
            "Too many entries match, so only the newest were searched; use more words, or \
             --since and --until, to reach the others."
                .to_owned(),
        );
    }
    if answer.behind > 0 {
        let entries = if answer.behind == 1 { "entry is" } else { "entries are" };
        remarks.push(format!("{} {entries} not in the index yet.", answer.behind));
    }
    remarks.extend(answer.shortcoming.clone());
    remarks
}

fn text(answer: &Answer, output: Output) -> String {
    if answer.wordless {
        return "No word to search for: use letters or digits, and not only -without.\n".to_owned();
    }
    if answer.hits.is_empty() {
        return "Nothing found.\n".to_owned();
    }
    let mut text = String::new();
    for hit in &answer.hits {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!(
            "{}  {}  entry {}, {}  {}\n",
            hit.session,
            wording::minute(hit.at),
            hit.seq,
            hit.who.as_str(),
            wording::line(&hit.title)
        ));
        neighbour(&mut text, "before", hit.before.as_ref());
        text.push_str(&format!("    {}\n", wording::unbroken(&marked(&hit.snippet, output))));
        neighbour(&mut text, "after", hit.after.as_ref());
    }
    text
}

fn neighbour(text: &mut String, place: &str, excerpt: Option<&Excerpt>) {
    if let Some(Excerpt { who, text: words, .. }) = excerpt {
        text.push_str(&format!("  {place} ({}): {}\n", who.as_str(), wording::unbroken(words)));
    }
}

/// The words with marks around what was looked for, also where there are no colours.
fn marked(snippet: &Snippet, output: Output) -> String {
    if !output.is_coloured() {
        return snippet.marked("«", "»");
    }
    let (open, close) = output
        .coloured("|", AnsiColor::Yellow)
        .split_once('|')
        .map(|(open, close)| (open.to_owned(), close.to_owned()))
        .unwrap_or_default();
    snippet.marked(&open, &close)
}

fn data(answer: &Answer) -> Value {
    let excerpt = |excerpt: &Option<Excerpt>| {
        excerpt.as_ref().map(|Excerpt { seq, at, who, text }| {
            json!({ "seq": seq, "at": at, "who": who, "text": text })
        })
    };
    let hits: Vec<Value> = answer
        .hits
        .iter()
        .map(|hit| {
            let Hit { session, title, workspace, seq, at, who, score, snippet, before, after } =
                hit;
            let marks: Vec<[usize; 2]> =
                snippet.marks.iter().map(|mark| [mark.start, mark.end]).collect();
            json!({
                "session": session, "title": title, "workspace": workspace, "seq": seq, "at": at,
                "who": who, "score": score, "snippet": snippet.text, "marks": marks,
                "before": excerpt(before), "after": excerpt(after),
            })
        })
        .collect();
    json!({ "hits": hits, "partly": answer.partly, "capped": answer.capped,
        "behind": answer.behind, "shortcoming": answer.shortcoming })
}

/// A directory as sessions name theirs. One that is gone can be named too.
fn directory(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

impl Speaker {
    fn who(self) -> Who {
        match self {
            Self::User => Who::User,
            Self::Assistant => Who::Assistant,
            Self::Tool => Who::Tool,
            Self::Notice => Who::Notice,
        }
    }
}

impl Order {
    fn sort(self) -> Sort {
        match self {
            Self::Relevance => Sort::Relevance,
            Self::Newest => Sort::Newest,
            Self::Oldest => Sort::Oldest,
        }
    }
}
