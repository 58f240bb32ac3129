//! The figures, and whether the bars hold.

#[derive(Default)]
pub(crate) struct Report {
    missed: Vec<String>,
}

impl Report {
    /// Prints a figure that has no bar.
    pub(crate) fn note(&self, what: &str, figure: &str) {
        println!("{what:<52} {figure}");
    }

    /// Prints a figure and its bar: it must not be above.
    pub(crate) fn at_most(&mut self, what: &str, figure: f64, bar: f64, unit: &str) {
        self.judge(what, figure <= bar, &format!("{figure:.2}{unit} (at most {bar}{unit}"));
    }

    /// Prints a share and its bar: it must not be below.
    pub(crate) fn at_least(&mut self, what: &str, figure: f64, bar: f64) {
        self.judge(what, figure >= bar, &format!("{figure:.3} (at least {bar}"));
    }

    fn judge(&mut self, what: &str, holds: bool, said: &str) {
        println!("{what:<52} {said}: {})", if holds { "holds" } else { "MISSED" });
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
