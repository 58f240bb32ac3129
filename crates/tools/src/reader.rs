//! Documents as text, read by a process of its own.
//!
//! Files from anywhere are made to break their readers. So they are read by a child with little
//! memory and time, which can neither write nor open anything: whatever a file does to it, the agent
//! is told in a sentence. It ends with its work, with its limits, or with the agent, and so needs no
//! keeper.

mod child;
mod pdf;

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

pub use child::serve;

/// How long a document may take.
const PATIENCE: Duration = Duration::from_secs(25);
/// The most that is taken from the child.
const ANSWER: u64 = 8 << 20;

/// Starts the process that reads documents.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The program that calls [`serve`], usually this one.
    pub program: PathBuf,
    /// The arguments that make it call it.
    pub arguments: Vec<OsString>,
}

/// Which pages are wanted, from one; those that are not there are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Pages {
    /// All of them.
    pub(crate) const ALL: Self = Self { first: 1, count: u64::MAX };
}

/// What was read of a PDF file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pdf {
    /// How many pages it has.
    pub(crate) total: u64,
    pub(crate) title: String,
    /// Numbers and texts.
    pub(crate) pages: Vec<(u64, String)>,
    /// How many letters its fonts do not name.
    pub(crate) unnamed: u64,
}

impl Pdf {
    /// Whether no page that was read has text.
    pub(crate) fn is_blank(&self) -> bool {
        self.pages.iter().all(|(_, text)| text.is_empty())
    }

    /// Why there is no text, where there is none.
    pub(crate) fn blankness(&self) -> &'static str {
        if self.unnamed > 0 {
            "its fonts do not say which letters they show"
        } else {
            "there is no text in it; it is probably scanned"
        }
    }

    /// All that was read, page by page.
    pub(crate) fn text(&self) -> String {
        if self.is_blank() {
            let count = self.pages.len();
            return format!("[{count} of {} pages: {}]", self.total, self.blankness());
        }
        let mut text = String::new();
        for (number, page) in &self.pages {
            text.push_str(&format!("--- page {number} of {} ---\n{page}\n", self.total));
        }
        text
    }
}

impl Reader {
    /// Reads a PDF file from its bytes.
    pub(crate) async fn pdf_bytes(&self, bytes: Vec<u8>, pages: Pages) -> Result<Pdf, String> {
        self.pdf(Stdio::piped(), &bytes, pages).await
    }

    /// Reads a PDF file that stands at its beginning.
    pub(crate) async fn pdf_file(&self, file: File, pages: Pages) -> Result<Pdf, String> {
        self.pdf(file.into(), &[], pages).await
    }

    async fn pdf(&self, input: Stdio, bytes: &[u8], pages: Pages) -> Result<Pdf, String> {
        let mut child = tokio::process::Command::new(&self.program)
            .args(&self.arguments)
            .args([
                std::process::id().to_string(),
                pages.first.to_string(),
                pages.count.to_string(),
            ])
            .env_clear()
            .current_dir("/")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("could not start the document reader: {error}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let exchange = async {
            let writing = async {
                if let Some(mut input) = input {
                    // One that has read enough, or broke, says so itself.
                    let _ = input.write_all(bytes).await;
                }
            };
            let reading = async {
                let mut answer = Vec::new();
                if let Some(output) = output {
                    output.take(ANSWER).read_to_end(&mut answer).await?;
                }
                Ok::<_, std::io::Error>(answer)
            };
            let ((), answer) = tokio::join!(writing, reading);
            Ok::<_, std::io::Error>((answer?, child.wait().await?))
        };
        let (answer, status) = timeout(PATIENCE, exchange)
            .await
            .map_err(|_| format!("reading it took longer than {} s", PATIENCE.as_secs()))?
            .map_err(|error| format!("the document reader failed: {error}"))?;
        if !status.success() {
            return Err(
                "it crashed the document reader, or needs too much memory or time".to_owned()
            );
        }
        serde_json::from_slice::<Result<Pdf, String>>(&answer)
            .unwrap_or_else(|_| Err("the document reader gave no answer".to_owned()))
    }
}
