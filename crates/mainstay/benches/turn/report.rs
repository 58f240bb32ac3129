//! The figures, and whether the bars hold.

#[derive(Default)]
pub(crate) struct Report {
    missed: Vec<String>,
}

impl Report {
    /// Prints a figure that has no bar.
    pub(crate) fn note(&self, what: &str, figure: &str) {
        println!("{what:<58} {figure}");
    }

    /// Prints a figure and its bar: it must not be above.
    pub(crate) fn at_most(&mut self, what: &str, figure: f64, bar: f64, unit: &str) {
        let holds = figure <= bar;
        let mark = if holds { "holds" } else { "MISSED" };
        println!("{what:<58} {figure:.2}{unit} (at most {bar}{unit}: {mark})");
        if !holds {
            self.missed.push(what.to_owned());
        }
    }

    pub(crate) fn end(self) {
        if !self.missed.is_empty() {
            println!("\nmissed: {}", self.missed.join("; "));
            std::process::exit(1);
        }
    }
}
