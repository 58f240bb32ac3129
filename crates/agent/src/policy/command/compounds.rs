//! Compound commands: branches, loops, cases, functions.

use super::parse::{Dialect, Parsed, Parser, is_break, is_name};
use super::syntax::{Command, Compound, CompoundKind, Script, Word};

impl Parser<'_> {
    pub(super) fn compound(
        &mut self,
        kind: CompoundKind,
        words: Vec<Word>,
        bodies: Vec<Script>,
        variable: Option<String>,
    ) -> Parsed<Command> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => break,
            }
        }
        Ok(Command::Compound(Compound { kind, variable, words, bodies, redirects }))
    }

    pub(super) fn branch(&mut self) -> Parsed<Command> {
        let mut bodies = vec![self.script(&["then"])?];
        self.expect_keyword("then")?;
        loop {
            bodies.push(self.script(&["elif", "else", "fi"])?);
            if self.at_keyword("elif") {
                self.skip(4)?;
                bodies.push(self.script(&["then"])?);
                self.expect_keyword("then")?;
            } else if self.at_keyword("else") {
                self.skip(4)?;
                bodies.push(self.script(&["fi"])?);
            } else {
                self.expect_keyword("fi")?;
                return self.compound(CompoundKind::Branch, Vec::new(), bodies, None);
            }
        }
    }

    pub(super) fn do_done(&mut self) -> Parsed<Script> {
        self.expect_keyword("do")?;
        let body = self.script(&["done"])?;
        self.expect_keyword("done")?;
        Ok(body)
    }

    pub(super) fn for_loop(&mut self) -> Parsed<Command> {
        self.skip_blanks()?;
        if self.dialect == Dialect::Bash && self.looking_at("((") {
            self.skip(2)?;
            self.calculation()?;
            self.skip_lines()?;
            if self.peek() == Some(';') {
                self.skip(1)?;
            }
            let body = self.do_done()?;
            return self.compound(CompoundKind::Loop, Vec::new(), vec![body], None);
        }
        let name = self.word()?.literal().filter(|name| is_name(name));
        let Some(name) = name else { return Err("a loop in it has no variable") };
        self.skip_lines()?;
        let mut words = Vec::new();
        if self.at_keyword("in") {
            self.skip(2)?;
            loop {
                self.skip_blanks()?;
                match self.peek() {
                    Some(next) if !is_break(next) => words.push(self.word()?),
                    _ => break,
                }
            }
        } else {
            words.push(Word::anything());
        }
        self.skip_blanks()?;
        if self.peek() == Some(';') {
            self.skip(1)?;
        }
        for word in &words {
            self.shared.values.push((name.clone(), word.clone()));
        }
        let body = self.do_done()?;
        self.compound(CompoundKind::Loop, words, vec![body], Some(name))
    }

    pub(super) fn case(&mut self) -> Parsed<Command> {
        self.skip_blanks()?;
        let mut words = vec![self.word()?];
        self.expect_keyword("in")?;
        let mut bodies = Vec::new();
        loop {
            self.skip_lines()?;
            if self.at_keyword("esac") {
                self.skip(4)?;
                return self.compound(CompoundKind::Branch, words, bodies, None);
            }
            if self.peek() == Some('(') {
                self.skip(1)?;
            }
            loop {
                self.skip_blanks()?;
                words.push(self.word()?);
                self.skip_blanks()?;
                match self.bump()? {
                    Some('|') => {}
                    Some(')') => break,
                    _ => return Err("a case in it has no end"),
                }
            }
            bodies.push(self.script(&[";;", ";&", "esac"])?);
            if self.looking_at(";;&") {
                self.skip(3)?;
            } else if self.peek() == Some(';') {
                self.skip(2)?;
            }
        }
    }

    pub(super) fn named_function(&mut self) -> Parsed<Command> {
        self.skip_blanks()?;
        let Some(name) = self.word()?.literal() else { return Err("a function has no plain name") };
        self.skip_blanks()?;
        if self.looking_at("()") {
            self.skip(2)?;
        }
        self.skip_lines()?;
        let body = Box::new(self.command()?);
        Ok(Command::Function { name, body })
    }
}
