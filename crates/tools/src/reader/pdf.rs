//! The text of PDF files, in the order in which they draw it.
//!
//! A page is a program that puts glyphs at places. Glyphs become letters by what their font says of
//! them; where they stand decides about spaces and lines.

mod character_map;
mod font;
mod glyphs;
mod layout;

use std::collections::HashMap;
use std::rc::Rc;

use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction as Instruction;
use hayro_syntax::object::{Array, Dict, Name, Number, Object, ObjectIdentifier};
use hayro_syntax::page::Resources;
use hayro_syntax::{LoadPdfError, Pdf as Syntax};

use super::{Pages, Pdf};
use font::Font;
use layout::{Layout, Matrix};

/// The most text of a page, and of all that are read.
const PAGE: usize = 200_000;
const ALL: usize = 2_000_000;
/// The most instructions that are followed.
const STEPS: usize = 20_000_000;
/// How deep forms are followed.
const DEEPEST: usize = 8;
/// How many states may be saved.
const SAVED: usize = 256;

/// Reads the pages that are wanted. The error completes "It …".
pub(super) fn read(bytes: Vec<u8>, wanted: Pages) -> Result<Pdf, String> {
    let syntax = Syntax::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(_) => "it is locked with a password".to_owned(),
        LoadPdfError::Invalid => "it is damaged or not a PDF file".to_owned(),
    })?;
    let pages = syntax.pages();
    let title = syntax.metadata().title.as_deref().map(glyphs::text_string).unwrap_or_default();
    let mut found = Pdf { total: pages.len() as u64, title, pages: Vec::new(), unnamed: 0 };
    let mut fonts = HashMap::new();
    let mut steps = 0;
    let mut length = 0;
    for (number, page) in (1_u64..).zip(pages.iter()) {
        if number < wanted.first {
            continue;
        }
        if number - wanted.first >= wanted.count || length >= ALL || steps >= STEPS {
            break;
        }
        let mut drawing = Drawing {
            layout: Layout::new(PAGE),
            state: State::default(),
            saved: Vec::new(),
            fonts: &mut fonts,
            steps: &mut steps,
            unnamed: &mut found.unnamed,
        };
        drawing.follow(page.typed_operations(), page.resources(), 0);
        let text = drawing.layout.finish();
        length += text.len();
        found.pages.push((number, text));
    }
    Ok(found)
}

/// What a page has drawn so far.
struct Drawing<'d> {
    layout: Layout,
    state: State,
    saved: Vec<State>,
    fonts: &'d mut HashMap<ObjectIdentifier, Rc<Font>>,
    steps: &'d mut usize,
    unnamed: &'d mut u64,
}

/// How the next glyph is drawn.
#[derive(Clone, Default)]
struct State {
    page: Matrix,
    text: Matrix,
    line: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    letter_gap: f64,
    word_gap: f64,
    /// How much wider than usual letters are, less one.
    stretch: f64,
    leading: f64,
}

impl Drawing<'_> {
    fn follow(&mut self, mut instructions: TypedIter<'_>, resources: &Resources<'_>, depth: usize) {
        while let Some(instruction) = instructions.next() {
            *self.steps += 1;
            if *self.steps >= STEPS || self.layout.is_full() {
                return;
            }
            let state = &mut self.state;
            match instruction {
                Instruction::SaveState(_) if self.saved.len() < SAVED => {
                    self.saved.push(self.state.clone());
                }
                Instruction::RestoreState(_) => {
                    if let Some(saved) = self.saved.pop() {
                        self.state = saved;
                    }
                }
                Instruction::Transform(by) => {
                    let by = matrix([by.0, by.1, by.2, by.3, by.4, by.5]);
                    state.page = by.then(&state.page);
                }
                Instruction::BeginText(_) => {
                    (state.text, state.line) = (Matrix::default(), Matrix::default());
                }
                Instruction::CharacterSpacing(gap) => state.letter_gap = gap.0.as_f64(),
                Instruction::WordSpacing(gap) => state.word_gap = gap.0.as_f64(),
                Instruction::HorizontalScaling(by) => state.stretch = by.0.as_f64() / 100.0 - 1.0,
                Instruction::TextLeading(leading) => state.leading = leading.0.as_f64(),
                Instruction::TextFont(font) => {
                    state.size = font.1.as_f64();
                    self.state.font = self.font(font.0, resources);
                }
                Instruction::NextLine(by) => self.move_by(by.0.as_f64(), by.1.as_f64()),
                Instruction::NextLineAndSetLeading(by) => {
                    state.leading = -by.1.as_f64();
                    self.move_by(by.0.as_f64(), by.1.as_f64());
                }
                Instruction::SetTextMatrix(to) => {
                    state.line = matrix([to.0, to.1, to.2, to.3, to.4, to.5]);
                    state.text = state.line;
                }
                Instruction::NextLineUsingLeading(_) => self.next_line(),
                Instruction::ShowText(text) => self.show(text.0.as_bytes()),
                Instruction::NextLineAndShowText(text) => {
                    self.next_line();
                    self.show(text.0.as_bytes());
                }
                Instruction::ShowTextWithParameters(text) => {
                    (state.word_gap, state.letter_gap) = (text.0.as_f64(), text.1.as_f64());
                    self.next_line();
                    self.show(text.2.as_bytes());
                }
                Instruction::ShowTexts(texts) => self.show_all(texts.0),
                Instruction::XObject(form) if depth < DEEPEST => {
                    self.draw_form(form.0, resources, depth);
                }
                _ => {}
            }
        }
    }

    fn font(&mut self, name: &Name<'_>, resources: &Resources<'_>) -> Option<Rc<Font>> {
        let dict = resources.get_font(name)?;
        let known = dict.obj_id().and_then(|id| self.fonts.get(&id).cloned());
        let font = known.unwrap_or_else(|| Rc::new(Font::new(&dict)));
        if let Some(id) = dict.obj_id() {
            self.fonts.insert(id, font.clone());
        }
        Some(font)
    }

    fn draw_form(&mut self, name: &Name<'_>, resources: &Resources<'_>, depth: usize) {
        let Some(form) = resources.get_x_object(name) else { return };
        let dict = form.dict();
        if dict.get::<Name<'_>>("Subtype").is_none_or(|kind| kind.as_ref() != b"Form") {
            return;
        }
        let Ok(content) = form.decoded_data() else { return };
        let before = self.state.clone();
        if let Some(by) = dict.get::<Array<'_>>("Matrix").and_then(|array| {
            let numbers: Vec<Number> = array.iter::<Number>().take(6).collect();
            <[Number; 6]>::try_from(numbers).ok()
        }) {
            self.state.page = matrix(by).then(&self.state.page);
        }
        let saved = std::mem::take(&mut self.saved);
        match dict.get::<Dict<'_>>("Resources") {
            Some(own) => self.follow(TypedIter::new(&content), &Resources::new(own), depth + 1),
            None => self.follow(TypedIter::new(&content), resources, depth + 1),
        }
        (self.state, self.saved) = (before, saved);
    }

    fn move_by(&mut self, x: f64, y: f64) {
        let state = &mut self.state;
        state.line = Matrix::moved(x, y).then(&state.line);
        state.text = state.line;
    }

    fn next_line(&mut self) {
        self.move_by(0.0, -self.state.leading);
    }

    fn show_all(&mut self, texts: &Array<'_>) {
        for item in texts.iter::<Object<'_>>() {
            match item {
                Object::String(text) => self.show(text.as_bytes()),
                Object::Number(back) => {
                    let state = &mut self.state;
                    let by = -back.as_f64() / 1000.0 * state.size * (1.0 + state.stretch);
                    state.text = Matrix::moved(by, 0.0).then(&state.text);
                }
                _ => {}
            }
            if self.layout.is_full() {
                return;
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        let Some(font) = self.state.font.clone() else { return };
        for glyph in font.glyphs(bytes) {
            let state = &mut self.state;
            let wide = glyph.width * state.size;
            let gap = state.letter_gap + if glyph.is_space { state.word_gap } else { 0.0 };
            let place = state.text.then(&state.page);
            let stretch = 1.0 + state.stretch;
            self.layout.put(&glyph.text, &place, wide * stretch, state.size);
            *self.unnamed += u64::from(glyph.text.is_empty());
            state.text = Matrix::moved((wide + gap) * stretch, 0.0).then(&state.text);
        }
    }
}

fn matrix(numbers: [Number; 6]) -> Matrix {
    Matrix(numbers.map(|number| number.as_f64()))
}

#[cfg(test)]
mod tests;
