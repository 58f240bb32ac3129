//! Wake-ups from other processes: `LISTEN` on a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::oneshot;
use tokio_postgres::AsyncMessage;

use super::server::{Messages, Server};
use super::sql::literal;
use crate::hub::Hub;

/// Longer lists of topics wake everybody; the server takes 8000 bytes.
const LONGEST: usize = 4000;

/// The statement that wakes the listeners of `topics` when its transaction commits.
pub(super) fn notification(schema: &str, topics: &std::collections::BTreeSet<String>) -> String {
    let list = topics.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let message = if list.len() > LONGEST { String::new() } else { list };
    format!("NOTIFY \"{}\", {};", channel(schema), literal(&message))
}

/// Hears of commits until it is aborted; says once when it hears for the first time.
pub(super) async fn hear(server: Server, hub: Arc<Hub>, hears: oneshot::Sender<()>) {
    let mut hears = Some(hears);
    let mut pause = Duration::from_millis(50);
    loop {
        if let Ok((client, mut messages, _)) = server.open(&server.next_name()).await {
            let listen = format!("LISTEN \"{}\"", channel(server.schema()));
            let listening = tokio::select! {
                outcome = client.batch_execute(&listen) => outcome.is_ok(),
                () = drain(&mut messages, &hub) => false,
            };
            if listening {
                pause = Duration::from_millis(50);
                if let Some(hears) = hears.take() {
                    // Whoever asked may have given up.
                    let _ = hears.send(());
                }
                // What was said while nobody heard is made up for by looking again.
                hub.ring_all();
                drain(&mut messages, &hub).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Passes on what comes, until the connection ends.
async fn drain(messages: &mut Messages, hub: &Hub) {
    while let Some(message) = messages.next().await {
        if let AsyncMessage::Notification(notification) = message {
            match notification.payload() {
                "" => hub.ring_all(),
                topics => hub.ring(topics.split('\n')),
            }
        }
    }
}

fn channel(schema: &str) -> String {
    let mut channel = format!("wake_{schema}");
    // The server's limit for names; two long names that clash only wake each other.
    channel.truncate(63);
    channel
}
