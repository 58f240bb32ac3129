//! The walk through a parsed line: which command runs where, fed by what, writing to what.

mod paths;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use super::parse::{Dialect, Parser, ParserState, TOO_DEEP, TOO_LONG, Unreadable};
use super::syntax::{
    Command, Compound, CompoundKind, Joint, List, Redirect, Script, Simple, Way, Word, WordPart,
};
use super::{Class, Classes, Prefix, Stage, variables, verbs};

/// How much of a line is looked at, payloads and second readings included.
const FUEL: usize = 400_000;
/// How many stages a line may have; one with more is not read on.
const STAGES: usize = 1000;
/// So many directories are kept in mind; beyond that they are not known.
const DIRECTORIES: usize = 8;
/// So many values of variables are kept in mind; beyond that they are not known.
const VALUES: usize = 200;
/// How deep payloads, and verbs that run verbs, may nest.
const NESTED: u32 = 30;
/// How much of a stage's text is kept.
const SHOWN: usize = 300;

/// What a verb was found to do.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) classes: Classes,
    /// The words that "always" may remember.
    pub(super) remembered: Option<Vec<String>>,
}

impl From<Class> for Finding {
    fn from(class: Class) -> Self {
        Self { classes: class.into(), remembered: None }
    }
}

impl From<Classes> for Finding {
    fn from(classes: Classes) -> Self {
        Self { classes, remembered: None }
    }
}

impl Finding {
    pub(super) fn and(mut self, classes: impl Into<Classes>) -> Self {
        self.classes = self.classes.and(classes.into());
        self
    }

    pub(super) fn forgotten(mut self) -> Self {
        self.remembered = None;
        self
    }

    pub(super) fn remembered<const COUNT: usize>(mut self, words: [&str; COUNT]) -> Self {
        self.remembered = Some(words.into_iter().map(str::to_owned).collect());
        self
    }
}

/// What a command reads as its input.
#[derive(Clone, Debug)]
pub(super) enum StandardInput {
    /// What the line itself gets: nothing.
    Nothing,
    /// What another command writes.
    Unseen,
    /// What a file holds.
    File,
    /// These words.
    Words(Word),
}

/// The directories in which a command may run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Directories {
    /// Relative to the workspace, or absolute.
    known: Vec<PathBuf>,
    others: bool,
}

impl Directories {
    fn join(&mut self, other: &Self) {
        self.others |= other.others;
        for place in &other.known {
            if !self.known.contains(place) {
                self.known.push(place.clone());
            }
        }
        if self.known.len() > DIRECTORIES {
            self.others = true;
            self.known.truncate(DIRECTORIES);
        }
    }
}

pub(super) struct Walk<'a> {
    workspace: &'a Path,
    dialect: Dialect,
    shared: ParserState,
    stages: Vec<Stage>,
    unclear: Option<Unreadable>,
    depth: u32,
    here: Directories,
    /// All that were ever gone to: a substitution runs in one of them.
    ever: Directories,
    /// How many loops and functions are around.
    repeated: u32,
    moved_while_repeated: bool,
    functions: Vec<String>,
    /// Whether what runs here may find input that the commands around it were given.
    fed: bool,
    /// Whether words from files come into variables or the line.
    brought: bool,
    /// Where the line makes links: what is below them is somewhere else once it runs.
    links: Vec<PathBuf>,
    /// Whether the stage that is judged may write what later sessions are told.
    instructs: Cell<bool>,
    /// What the stage that is judged writes to outside the workspace, where the line says it.
    outside: RefCell<Vec<PathBuf>>,
}

/// Walks through a line as one kind of shell reads it.
pub(super) fn walk(
    line: &str,
    workspace: &Path,
    dialect: Dialect,
) -> (Vec<Stage>, Option<Unreadable>) {
    let mut walk = Walk::new(workspace, dialect, false);
    walk.line(line);
    if walk.moved_while_repeated {
        // What comes first in a loop may run where its end went.
        walk = Walk::new(workspace, dialect, true);
        walk.line(line);
    }
    (walk.stages, walk.unclear)
}

impl<'a> Walk<'a> {
    fn new(workspace: &'a Path, dialect: Dialect, others: bool) -> Self {
        let here = Directories { known: vec![PathBuf::new()], others };
        Self {
            workspace,
            dialect,
            shared: ParserState { fuel: FUEL, ..ParserState::default() },
            stages: Vec::new(),
            unclear: None,
            depth: 0,
            ever: here.clone(),
            here,
            repeated: 0,
            moved_while_repeated: false,
            functions: Vec::new(),
            fed: false,
            brought: false,
            links: Vec::new(),
            instructs: Cell::new(false),
            outside: RefCell::default(),
        }
    }

    fn line(&mut self, line: &str) {
        self.text(line);
        while let Some(script) = self.shared.substitutions.pop() {
            self.here = self.ever.clone();
            self.fed = self.shared.fed;
            self.brought |= brings_words(&script);
            self.script(&script);
        }
        if self.shared.calculates && self.brought {
            // A word such as `a[$(…)]` runs a command when a shell calculates with it.
            self.push(Stage::plain(shown(line), Class::Execute.into()));
        }
        // A calculation gives values to the variables that it names, and so does one in a value.
        let named = &self.shared.calculated;
        let values = self.shared.values.iter().filter_map(|(_, value)| value.literal());
        let values = values.filter(|_| self.shared.runs_values);
        if named.iter().cloned().chain(values).any(|text| variables::are_mentioned(&text)) {
            self.push(Stage::plain(shown(line), Class::Execute.into()));
        }
        // Such text is run where a shell calculates with it or expands it as a prompt. Several values
        // may make one.
        let hidden = |word: &Word| {
            word.parts.iter().any(|part| match part {
                WordPart::Quoted(text) => text.contains(['$', '`']),
                _ => false,
            })
        };
        if self.shared.runs_values && self.shared.values.iter().any(|(_, value)| hidden(value)) {
            self.feared(line, "a value in it may be run");
        }
    }

    fn text(&mut self, text: &str) {
        let parser = Parser::new(text, self.dialect, self.depth, &mut self.shared);
        let (script, error) = parser.all();
        self.script(&script);
        match error {
            // What is no sentence for this shell it does not run; where it is none for the other
            // shell either, that is feared there.
            Some(error)
                if self.dialect == Dialect::Posix && ![TOO_LONG, TOO_DEEP].contains(&error) =>
            {
                self.unclear.get_or_insert(error);
            }
            Some(error) => self.feared(text, error),
            None => {}
        }
    }

    /// Judges a text that a command of the line hands to a shell.
    pub(super) fn payload(&mut self, text: &Word) {
        let text = match text.literal() {
            Some(text) => text,
            // A variable that got plain words only.
            None => match text.variable().map(|name| self.values_of(name)) {
                Some(values) if !values.is_empty() => {
                    for value in values {
                        self.payload(&value);
                    }
                    return;
                }
                _ => return self.feared(&text.known(), "it runs text that is not in the line"),
            },
        };
        if self.depth >= NESTED {
            return self.feared(&text, TOO_DEEP);
        }
        self.depth += 1;
        self.text(&text);
        self.depth -= 1;
    }

    fn feared(&mut self, text: &str, why: Unreadable) {
        self.unclear.get_or_insert(why);
        self.push(Stage::plain(shown(text), super::feared(text)));
    }

    fn push(&mut self, stage: Stage) {
        if self.stages.len() < STAGES {
            self.stages.push(stage);
        } else if self.unclear.is_none() {
            self.unclear = Some("it has too many parts");
            self.stages.push(Stage::plain(String::new(), super::feared("")));
        } else if let Some(last) = self.stages.last_mut() {
            // The rest is told in the last one.
            last.classes = last.classes.and(stage.classes);
            last.prefix = None;
            last.instructs |= stage.instructs;
            last.outside.extend(stage.outside);
        }
    }

    fn script(&mut self, script: &Script) {
        for list in script {
            self.list(list);
        }
    }

    fn list(&mut self, list: &List) {
        let before = self.here.clone();
        let mut failed = false;
        for (joint, pipeline) in &list.parts {
            if *joint == Joint::Or {
                self.here.join(&before);
            }
            // A shell that does not know `[[` finds no such program, and skips what hangs on it.
            failed = match joint {
                Joint::First => self.dialect == Dialect::Posix && is_unknown_test(pipeline),
                Joint::And => failed,
                Joint::Or => false,
            };
            if failed && *joint == Joint::And {
                continue;
            }
            self.pipeline(pipeline);
        }
        // What changed the directory may have failed.
        self.here.join(&before);
    }

    fn pipeline(&mut self, commands: &[Command]) {
        let mut input = if self.fed { StandardInput::Unseen } else { StandardInput::Nothing };
        self.shared.fed |= commands.len() > 1;
        for command in commands {
            let output = match command {
                Command::Simple(simple) => verbs::output(simple, &self.shared.documents),
                _ => None,
            };
            self.command(command, input);
            input = output.map_or(StandardInput::Unseen, StandardInput::Words);
        }
    }

    fn command(&mut self, command: &Command, input: StandardInput) {
        self.depth += 1;
        self.command_here(command, input);
        self.depth -= 1;
    }

    fn command_here(&mut self, command: &Command, input: StandardInput) {
        match command {
            Command::Simple(simple) => self.simple(simple, input),
            Command::Compound(compound) => {
                let input = self.input(&compound.redirects, input);
                self.within(&input, |walk| walk.compound(compound));
            }
            Command::Function { name, body } => {
                let before = self.here.clone();
                self.functions.push(name.clone());
                self.repeated += 1;
                self.command(body, StandardInput::Unseen);
                self.repeated -= 1;
                self.functions.pop();
                self.here.join(&before);
            }
        }
    }

    /// Walks through what is run by something with this input, and shares it. Others may have read
    /// a part of it before, so nobody sees what is left.
    fn within<T>(&mut self, input: &StandardInput, walk: impl FnOnce(&mut Self) -> T) -> T {
        let fed = std::mem::replace(&mut self.fed, !matches!(input, StandardInput::Nothing));
        self.shared.fed |= self.fed;
        let result = walk(self);
        self.fed = fed;
        result
    }

    fn compound(&mut self, compound: &Compound) {
        let before = self.here.clone();
        let mut classes = self.redirects(&compound.redirects);
        if let Some(name) = &compound.variable {
            classes = classes.and(variables::assigned(name, None));
        }
        if compound.kind == CompoundKind::Test
            && compound.words.iter().any(|word| self.hides_code(word))
        {
            classes = classes.with(Class::Execute).and(Classes::FEARED);
        }
        if classes != Classes::READ {
            let plain = Stage::plain("a redirection".to_owned(), classes);
            let (instructs, outside) = (self.instructs.take(), self.outside.take());
            self.push(Stage { instructs, outside, ..plain });
        }
        let is_loop = compound.kind == CompoundKind::Loop;
        self.repeated += u32::from(is_loop);
        for body in &compound.bodies {
            self.script(body);
            if compound.kind == CompoundKind::Branch {
                self.here.join(&before);
            }
        }
        self.repeated -= u32::from(is_loop);
        if compound.kind == CompoundKind::Subshell {
            self.here = before;
        }
    }

    fn simple(&mut self, simple: &Simple, input: StandardInput) {
        let mut classes = self.redirects(&simple.redirects);
        let alone = simple.words.is_empty();
        let mut known_variables = true;
        for assignment in &simple.assignments {
            let value = assignment.value.literal();
            let found = if alone {
                variables::assigned(&assignment.name, value.as_deref())
            } else {
                variables::exported(&assignment.name, value.as_deref())
            };
            known_variables &= found == Classes::READ;
            classes = classes.and(found);
        }
        let redirected = classes.has(Class::WriteOutside)
            || classes.has(Class::Network)
            || classes.has(Class::Destructive);
        let input = self.input(&simple.redirects, input);
        let replaced = !matches!(input, StandardInput::Nothing) && is_exec(&simple.words);
        let finding =
            if alone { Finding::from(Class::Read) } else { self.verb(&simple.words, &input) };
        // `exec` without a verb gives its input to all that comes later.
        self.fed |= replaced;
        let classes = classes.and(finding.classes);
        let words = finding.remembered.filter(|_| {
            known_variables
                && !redirected
                && classes.worst() <= Class::Execute
                && !classes.has(Class::WriteOutside)
        });
        let prefix = words.map(|words| Prefix { words, classes });
        let (instructs, outside) = (self.instructs.take(), self.outside.take());
        self.push(Stage { text: shown(&simple.text), classes, prefix, instructs, outside });
    }

    /// What a verb with these arguments does.
    pub(super) fn verb(&mut self, words: &[Word], input: &StandardInput) -> Finding {
        // Verbs that run verbs can multiply, so each of them costs.
        let left = self.shared.fuel.checked_sub(words.len() + 50);
        self.shared.fuel = left.unwrap_or(0);
        if self.depth >= NESTED || left.is_none() {
            return super::feared("").into();
        }
        self.depth += 1;
        let finding = self.within(input, |walk| walk.verb_here(words, input));
        self.depth -= 1;
        finding
    }

    fn verb_here(&mut self, words: &[Word], input: &StandardInput) -> Finding {
        let Some((verb, arguments)) = words.split_first() else { return Class::Read.into() };
        if let Some(name) = verb.literal() {
            let finding = verbs::judge(self, &name, arguments, input);
            if self.functions.contains(&name) {
                // It calls itself, without an end that could be seen.
                return finding.forgotten().and(Class::Execute).and(Class::Destructive);
            }
            return finding;
        }
        let code = Finding::from(Class::Execute);
        let Some(name) = verb.variable() else { return code.and(Classes::FEARED) };
        if name.chars().all(|next| !next.is_ascii_alphabetic() && next != '_') {
            // The words of a function's or a script's caller.
            return code.and(Classes::FEARED);
        }
        let mut classes = code.classes;
        // Where words part at other signs, nobody sees where.
        if !self.values_of("IFS").is_empty() {
            classes = classes.and(Classes::FEARED);
        }
        for value in self.values_of(name) {
            match value.literal() {
                Some(text) => {
                    let split = text.split_whitespace().map(Word::of);
                    let words: Vec<Word> = split.chain(arguments.iter().cloned()).collect();
                    classes = classes.and(self.verb(&words, input).classes);
                }
                None => classes = classes.and(Classes::FEARED),
            }
        }
        classes.into()
    }

    /// What a variable was seen to get, anywhere in the line.
    fn values_of(&self, name: &str) -> Vec<Word> {
        if self.shared.values.len() > VALUES {
            return vec![Word::anything()];
        }
        let values = self.shared.values.iter().filter(|(other, _)| other == name);
        values.map(|(_, value)| value.clone()).take(8).collect()
    }

    /// Whether a variable holds nothing but the number of what the line itself started.
    pub(super) fn is_own_process(&self, name: &str) -> bool {
        let values = self.values_of(name);
        !values.is_empty() && values.iter().all(|value| value.variable() == Some("!"))
    }

    /// Notes what a verb gives to a variable.
    pub(super) fn assign(&mut self, name: &str, value: Word) {
        self.shared.values.push((name.to_owned(), value));
    }

    /// Notes that the shell calculates with a word.
    pub(super) fn calculates_with(&mut self, word: &Word) {
        self.shared.calculates_with(word);
    }

    /// Notes that a verb takes words from its input into variables.
    pub(super) fn takes_words(&mut self) {
        self.brought = true;
    }

    /// Whether a word holds, quoted, what would run if it were expanded once more.
    pub(super) fn hides_code(&self, word: &Word) -> bool {
        word.parts.iter().any(|part| match part {
            WordPart::Quoted(text) => text.contains("$(") || text.contains('`'),
            _ => false,
        })
    }

    fn input(&self, redirects: &[Redirect], piped: StandardInput) -> StandardInput {
        let mut input = piped;
        for redirect in redirects {
            match redirect.way {
                Way::In => input = StandardInput::File,
                Way::Descriptor => input = StandardInput::Unseen,
                Way::Words => input = StandardInput::Words(redirect.target.clone()),
                Way::Document(place) => {
                    let text = self.shared.documents.get(place).cloned();
                    input = text.map_or(StandardInput::Unseen, StandardInput::Words);
                }
                Way::Out => {}
            }
        }
        input
    }

    fn redirects(&mut self, redirects: &[Redirect]) -> Classes {
        let mut classes = Classes::READ;
        for redirect in redirects {
            if self.may_be_socket(&redirect.target) {
                classes = classes.with(Class::Network);
                if redirect.target.literal().is_some() {
                    continue;
                }
            }
            if redirect.way == Way::Out {
                classes = classes.and(self.writes(&redirect.target));
            }
        }
        classes
    }

    /// Whether a shell may open a connection for this target of a redirection.
    fn may_be_socket(&self, target: &Word) -> bool {
        const SOCKETS: [&str; 2] = ["/dev/tcp/", "/dev/udp/"];
        let mut text = String::new();
        for part in &target.parts {
            match part {
                WordPart::Quoted(piece) | WordPart::Bare(piece) => text.push_str(piece),
                WordPart::Variable { name, .. } => match self.values_of(name).as_slice() {
                    // What the line was not seen to put there is no address.
                    [] if !self.brought => text.push('x'),
                    [value] => match value.literal() {
                        Some(value) => text.push_str(&value),
                        None => return could_begin(&text) && !begins_plainly(value),
                    },
                    _ => return could_begin(&text),
                },
                // A home is no such place.
                WordPart::Pattern(sign) if sign == "~" => text.push('~'),
                WordPart::Pattern(_) | WordPart::Unknown { .. } => return could_begin(&text),
            }
        }
        return SOCKETS.iter().any(|socket| text.starts_with(socket));

        /// Whether a text that goes on may become the name of a socket.
        fn could_begin(text: &str) -> bool {
            SOCKETS.iter().any(|socket| socket.starts_with(text) || text.starts_with(socket))
        }

        /// Whether a value begins with what is no beginning of such a name.
        fn begins_plainly(value: &Word) -> bool {
            match value.parts.first() {
                Some(WordPart::Pattern(sign)) => sign != "{",
                _ => !could_begin(&value.head()),
            }
        }
    }

    /// Goes to another directory.
    pub(super) fn go(&mut self, target: Option<&Word>) {
        self.moved_while_repeated |= self.repeated > 0;
        let there = match target.and_then(|target| self.plain_path(target)) {
            Some(path) => {
                let known = self.here.known.iter().map(|here| here.join(&path)).collect();
                Directories { known, others: self.here.others && path.is_relative() }
            }
            None => Directories { known: Vec::new(), others: true },
        };
        self.here = there;
        self.ever.join(&self.here);
    }

    /// Judges something in another directory, and comes back.
    pub(super) fn within_directory<T>(
        &mut self,
        directory: &Word,
        judge: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.here.clone();
        self.go(Some(directory));
        let judged = judge(self);
        self.here = before;
        judged
    }

    /// A path that is known, as it is written.
    fn plain_path(&self, word: &Word) -> Option<PathBuf> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                WordPart::Quoted(piece) | WordPart::Bare(piece) => text.push_str(piece),
                WordPart::Variable { name, .. } => match self.values_of(name).as_slice() {
                    [] if name == "PWD" => text.push('.'),
                    // The shell gives these values of its own.
                    _ if matches!(name.as_str(), "PWD" | "OLDPWD" | "REPLY" | "_") => return None,
                    [value] => text.push_str(&value.literal()?),
                    _ => return None,
                },
                WordPart::Pattern(_) | WordPart::Unknown { .. } => return None,
            }
        }
        (!text.is_empty()).then(|| PathBuf::from(text))
    }
}

/// Whether what a substitution brings are the words of a file, rather than a number or a name.
fn brings_words(script: &Script) -> bool {
    const VERBS: [&str; 16] = [
        "cat", "head", "tail", "sed", "awk", "cut", "tr", "jq", "grep", "rg", "sort", "tac", "rev",
        "strings", "xargs", "paste",
    ];
    let last = script.last().and_then(|list| list.parts.last()).and_then(|(_, all)| all.last());
    match last {
        Some(Command::Simple(simple)) => match simple.words.first().map(Word::literal) {
            Some(Some(verb)) => match verb.rsplit('/').next().unwrap_or(&verb) {
                // These bring what the line says.
                "echo" | "printf" => simple.words.iter().any(|word| word.known().contains('[')),
                verb => VERBS.contains(&verb),
            },
            Some(None) => true,
            // `$(< file)`
            None => !simple.redirects.is_empty(),
        },
        Some(_) => true,
        None => false,
    }
}

fn is_exec(words: &[Word]) -> bool {
    words.iter().any(|word| word.literal().as_deref() == Some("exec"))
}

fn is_unknown_test(pipeline: &[Command]) -> bool {
    match pipeline {
        [Command::Simple(simple)] => {
            simple.words.first().and_then(Word::literal).as_deref() == Some("[[")
        }
        _ => false,
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
