//! A command line as a tree: what the parser finds and the walk judges.

/// Lists of pipelines, in order.
pub(super) type Script = Vec<List>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(super) struct List {
    pub(super) parts: Vec<(Joint, Vec<Command>)>,
}

/// How a pipeline hangs on the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    First,
    And,
    Or,
}

#[derive(Debug)]
pub(super) enum Command {
    Simple(Simple),
    Compound(Compound),
    Function { name: String, body: Box<Command> },
}

/// A verb and its arguments, or assignments alone.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
    /// As it was written.
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: Word,
}

/// A group, a subshell, a loop, a branch or a test.
#[derive(Debug)]
pub(super) struct Compound {
    pub(super) kind: CompoundKind,
    /// The variable of a `for`.
    pub(super) variable: Option<String>,
    pub(super) words: Vec<Word>,
    pub(super) bodies: Vec<Script>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompoundKind {
    Subshell,
    Group,
    Loop,
    Branch,
    Test,
}

#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) way: Way,
    pub(super) target: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From a file.
    In,
    /// To a file, or to and from it.
    Out,
    /// From words in the line: the place of a here-document, which is read later.
    Document(usize),
    /// From words in the line.
    Words,
    /// From or to another descriptor.
    Descriptor,
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) parts: Vec<WordPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordPart {
    /// Quoted or escaped: it stays as it is.
    Quoted(String),
    /// Not quoted, without a character that the shell expands.
    Bare(String),
    /// A wildcard, a brace or a tilde that the shell expands.
    Pattern(String),
    /// The value of a variable.
    Variable { name: String, quoted: bool },
    /// Whatever a substitution or a calculation brings.
    Unknown { quoted: bool },
}

impl Word {
    /// A word that stands as it is.
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { parts: vec![WordPart::Quoted(text.into())] }
    }

    /// Any words at all.
    pub(super) fn anything() -> Self {
        Self { parts: vec![WordPart::Unknown { quoted: false }] }
    }

    /// The word, where nothing in it is expanded.
    pub(super) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                WordPart::Quoted(piece) | WordPart::Bare(piece) => text.push_str(piece),
                _ => return None,
            }
        }
        Some(text)
    }

    /// All of it that is known, for a look at what it mentions.
    pub(super) fn known(&self) -> String {
        let pieces = self.parts.iter().map(|part| match part {
            WordPart::Quoted(text) | WordPart::Bare(text) => text,
            _ => " ",
        });
        pieces.collect()
    }

    /// What the word begins with, as far as nothing in it is expanded.
    pub(super) fn head(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                WordPart::Quoted(piece) | WordPart::Bare(piece) => text.push_str(piece),
                _ => break,
            }
        }
        text
    }

    /// Whether it may become several words.
    pub(super) fn may_split(&self) -> bool {
        self.parts.iter().any(|part| match part {
            WordPart::Variable { quoted, .. } | WordPart::Unknown { quoted } => !quoted,
            // A home with a blank in it stays one word.
            WordPart::Pattern(text) => text != "~",
            WordPart::Quoted(_) | WordPart::Bare(_) => false,
        })
    }

    /// Whether a value from elsewhere may make several words of it, options among them.
    pub(super) fn may_bring_options(&self) -> bool {
        self.parts.iter().any(|part| match part {
            WordPart::Variable { name, quoted } => !quoted || name == "@",
            WordPart::Unknown { quoted } => !quoted,
            // Braces make words of their own.
            WordPart::Pattern(text) => text.contains('{'),
            WordPart::Quoted(_) | WordPart::Bare(_) => false,
        })
    }

    /// Whether it is an option, or may be one.
    pub(super) fn may_be_option(&self) -> bool {
        if self.may_bring_options() {
            return true;
        }
        let head = self.head();
        if head.is_empty() && self.literal().is_none() {
            // A tilde brings a path.
            return !matches!(self.parts.first(), Some(WordPart::Pattern(text)) if text == "~");
        }
        head.starts_with('-') && head != "-"
    }

    /// The whole word, where it is the value of a variable.
    pub(super) fn variable(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [WordPart::Variable { name, .. }] => Some(name),
            _ => None,
        }
    }

    /// The word without its first characters, where they stand as they are.
    pub(super) fn after(&self, prefix: &str) -> Option<Self> {
        let mut left = prefix;
        let mut parts = Vec::new();
        for part in &self.parts {
            match part {
                _ if left.is_empty() => parts.push(part.clone()),
                WordPart::Quoted(text) | WordPart::Bare(text) => {
                    if let Some(rest) = text.strip_prefix(left) {
                        left = "";
                        if !rest.is_empty() {
                            parts.push(match part {
                                WordPart::Bare(_) => WordPart::Bare(rest.to_owned()),
                                _ => WordPart::Quoted(rest.to_owned()),
                            });
                        }
                    } else {
                        left = left.strip_prefix(text.as_str())?;
                    }
                }
                _ => return None,
            }
        }
        left.is_empty().then_some(Self { parts })
    }
}
