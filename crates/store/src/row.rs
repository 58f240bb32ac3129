//! A row of a result, whichever engine it came from.

use crate::{Error, FromValue, Result, ValueRef};

/// A row, borrowed for the length of a mapping closure.
pub struct Row<'a>(&'a dyn Columns);

/// What an engine's own row can do.
pub(crate) trait Columns {
    fn count(&self) -> usize;
    fn value(&self, index: usize) -> Result<ValueRef<'_>>;
}

impl<'a> Row<'a> {
    pub(crate) fn new(columns: &'a dyn Columns) -> Self {
        Self(columns)
    }

    /// Reads column `index`, counted from zero.
    pub fn get<T: FromValue>(&self, index: usize) -> Result<T> {
        let value = self.0.value(index)?;
        T::from_value(value).ok_or_else(|| {
            Error::Statement(format!(
                "column {index} holds {value:?}, which is not a {}",
                std::any::type_name::<T>()
            ))
        })
    }

    /// The value of column `index` as it stands in the row.
    pub fn value(&self, index: usize) -> Result<ValueRef<'_>> {
        self.0.value(index)
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.0.count()
    }
}
