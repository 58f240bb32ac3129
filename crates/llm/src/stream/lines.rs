//! Splits bytes into lines, however they are cut on the way.

/// A line or an event is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Collects bytes and hands out whole lines. A line ends with `\n`, `\r\n` or `\r`.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not come yet.
    pending: Vec<u8>,
    /// A `\n` that comes next belongs to the line that is already handed out.
    after_return: bool,
    cap: usize,
}

impl Lines {
    pub(crate) fn new(cap: usize) -> Lines {
        Lines { pending: Vec::new(), after_return: false, cap }
    }

    /// Hands each line that is whole now to `each`, until it says no more.
    pub(crate) fn feed<E: From<TooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|&byte| byte == b'\n' || byte == b'\r');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.pending.len() + part.len() > self.cap {
                return Err(TooLong.into());
            }
            let Some(end) = end else {
                self.pending.extend_from_slice(part);
                return Ok(());
            };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if self.pending.is_empty() {
                each(part)?;
            } else {
                self.pending.extend_from_slice(part);
                let line = std::mem::take(&mut self.pending);
                each(&line)?;
            }
        }
        Ok(())
    }

    /// What is left when the bytes end: a last line without its end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}
