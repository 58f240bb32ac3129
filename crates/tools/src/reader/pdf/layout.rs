//! Where glyphs stand decides about spaces and lines.

/// A transformation of the plane, as PDF writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matrix(pub(super) [f64; 6]);

impl Default for Matrix {
    fn default() -> Self {
        Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    }
}

impl Matrix {
    pub(super) fn moved(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// This one first, then the other.
    pub(super) fn then(&self, other: &Self) -> Self {
        let [a, b, c, d, e, f] = self.0;
        let [p, q, r, s, t, u] = other.0;
        Self([
            a * p + b * r,
            a * q + b * s,
            c * p + d * r,
            c * q + d * s,
            e * p + f * r + t,
            e * q + f * s + u,
        ])
    }

    fn place(&self, x: f64) -> (f64, f64) {
        let [a, b, _, _, e, f] = self.0;
        (a * x + e, b * x + f)
    }
}

/// Text that grows glyph by glyph.
pub(super) struct Layout {
    text: String,
    most: usize,
    /// Where the last glyph ended.
    end: Option<(f64, f64)>,
}

/// A gap of this share of the letters' size is a space; a step across of that share is a new line,
/// and one of the third a new paragraph.
const SPACE: f64 = 0.17;
const LINE: f64 = 0.5;
const PARAGRAPH: f64 = 1.8;

impl Layout {
    pub(super) fn new(most: usize) -> Self {
        Self { text: String::new(), most, end: None }
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= self.most
    }

    /// Puts a glyph, so wide and so large before it is transformed, at a place.
    pub(super) fn put(&mut self, text: &str, place: &Matrix, wide: f64, size: f64) {
        let (x, y) = place.place(0.0);
        let [a, b, c, d, ..] = place.0;
        let large = size.abs() * c.hypot(d);
        let along = a.hypot(b);
        if let Some((end_x, end_y)) = self.end
            && large > 0.0
            && along > 0.0
        {
            let (dx, dy) = (x - end_x, y - end_y);
            // Along the line that is written, and across it.
            let forward = (dx * a + dy * b) / along / large;
            let across = ((dy * a - dx * b) / along / large).abs();
            if across > PARAGRAPH {
                self.end_line("\n\n");
            } else if across > LINE || forward < -2.0 {
                self.end_line("\n");
            } else if forward > SPACE && !self.text.ends_with([' ', '\n']) && !text.starts_with(' ')
            {
                self.text.push(' ');
            }
        }
        if !(text == " " && (self.text.is_empty() || self.text.ends_with([' ', '\n']))) {
            self.text.push_str(text);
        }
        self.end = Some(place.place(wide));
    }

    fn end_line(&mut self, with: &str) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(with);
        }
    }

    /// The text, without what nobody can read.
    pub(super) fn finish(self) -> String {
        let mut text: String =
            self.text.chars().filter(|letter| !letter.is_control() || *letter == '\n').collect();
        text.truncate(text.floor_char_boundary(self.most));
        text.trim().to_owned()
    }
}
