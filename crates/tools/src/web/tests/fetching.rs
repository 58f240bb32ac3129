//! `fetch`.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::*;
use crate::Fact;

/// Waits until the client has closed every connection.
async fn all_closed(server: &WebServer) {
    let closing = async {
        while server.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), closing).await.expect("connections are left open");
}

#[tokio::test]
async fn several_pages_are_fetched_beside_each_other_and_one_failure_loses_nothing() {
    let server = WebServer::start(|visit: &Visit| match visit.path.as_str() {
        "/a" => Page::html("<title>A page</title><h1>First</h1><p><a href='/b'>to b</a>"),
        "/b" => Page::new("application/json", "{\"b\": 2}"),
        _ => Page::html("<p>nothing here").status(404),
    });
    let urls = [server.url("/a"), server.url("/b"), "gopher://x/".to_owned(), server.url("/c")];
    let outcome = call(&fetch(&[&server]), &json!({ "urls": urls })).await;
    assert!(!outcome.failed);
    let said = said(&outcome);
    for words in ["/a: 200 (text/html).", "/b: 200", "not gopher", "/c: 404"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let data = data(&outcome);
    let page = format!("Title: A page\n\n# First\n\n[to b]({})", server.url("/b"));
    for words in [page.as_str(), "{\"b\": 2}", "nothing here"] {
        assert!(data.contains(words), "{words}: {data}");
    }
    assert_eq!(outcome.facts, [Fact::Outside { origin: server.place() }]);
    assert_eq!(outcome.whole, None);
    for visit in server.visits() {
        assert_eq!(visit.method, "GET");
        for private in ["cookie", "authorization", "referer"] {
            assert_eq!(visit.header(private), None);
        }
    }
}

#[tokio::test]
async fn when_nothing_is_good_the_call_has_failed() {
    let server = WebServer::start(|_: &Visit| Page::html("gone").status(410));
    let outcome = call(&fetch(&[&server]), &json!({ "urls": server.url("/") })).await;
    assert!(outcome.failed, "{outcome:?}");
    let tool = fetch(&[]);
    for arguments in [json!({ "urls": [] }), json!({ "urls": vec!["http://x/"; 11] }), json!({})] {
        assert!(call(&tool, &arguments).await.failed);
    }
}

#[tokio::test]
async fn no_place_on_this_machine_is_reached_however_it_is_written() {
    let server = WebServer::start(|_: &Visit| Page::html("secret"));
    let port = server.port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::]",
        "0.0.0.0",
        "0",
        "[64:ff9b::7f00:1]",
        "127.0.0.1%00.example.org",
        "①②⑦.0.0.1",
    ];
    let tool = Fetch::new(Web::new::<&str>(&[]).unwrap());
    for host in hosts {
        let url = format!("http://{host}:{port}/");
        let outcome = call(&tool, &json!({ "urls": [url] })).await;
        assert!(outcome.failed && !format!("{outcome:?}").contains("secret"), "{url}: {outcome:?}");
        let said = said(&outcome);
        // Some systems find no name with a dot at its end.
        let told = ["not allowed", "not a valid address", "dns error"];
        assert!(told.iter().any(|words| said.contains(words)), "{url}: {said}");
    }
    assert!(server.visits().is_empty(), "{:?}", server.visits());
}

#[tokio::test]
async fn each_step_of_a_chain_of_redirects_is_checked_like_the_first() {
    let hidden = WebServer::start(|_: &Visit| Page::html("secret"));
    let there = [
        hidden.url("/"),
        format!("http://localhost:{}/", hidden.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::1]/".to_owned(),
        "file:///etc/passwd".to_owned(),
        format!("//user:word@{}/", hidden.place()),
        format!("http://{}:1@{}/", "example.org", hidden.place()),
    ];
    for to in there {
        let target = to.clone();
        let server = WebServer::start(move |visit: &Visit| match visit.path.as_str() {
            "/start" => Page::redirect("/middle"),
            _ => Page::redirect(&target),
        });
        let outcome = call(&fetch(&[&server]), &json!({ "urls": [server.url("/start")] })).await;
        assert!(outcome.failed && !format!("{outcome:?}").contains("secret"), "{to}: {outcome:?}");
        assert_eq!(server.visits().len(), 2, "{to}");
    }
    assert!(hidden.visits().is_empty(), "{:?}", hidden.visits());
}

#[tokio::test]
async fn redirects_within_a_host_are_followed_up_to_five() {
    let server = WebServer::start(|visit: &Visit| {
        let number: u32 = visit.path.trim_start_matches('/').parse().unwrap();
        match number {
            0 => Page::html("<p>arrived"),
            _ => Page::redirect(&format!("{}", number - 1)),
        }
    });
    let tool = fetch(&[&server]);
    let outcome = call(&tool, &json!({ "urls": [server.url("/5")] })).await;
    assert!(data(&outcome).contains("arrived"), "{outcome:?}");
    assert!(data(&outcome).contains(&format!("URL: {}", server.url("/0"))), "{outcome:?}");
    let outcome = call(&tool, &json!({ "urls": [server.url("/6")] })).await;
    assert!(
        outcome.failed && said(&outcome).contains("too many redirects; 5 were followed"),
        "{outcome:?}"
    );
    let around = WebServer::start(|_: &Visit| Page::redirect("/"));
    let outcome = call(&fetch(&[&around]), &json!({ "urls": [around.url("/")] })).await;
    assert!(outcome.failed, "{outcome:?}");
    assert_eq!(around.visits().len(), 6);
}

#[tokio::test]
async fn a_redirect_to_a_host_that_nobody_named_is_left_to_the_model() {
    let other = WebServer::start(|_: &Visit| Page::html("elsewhere"));
    let to = format!("http://localhost:{}/x", other.port());
    let target = to.clone();
    let server = WebServer::start(move |_: &Visit| Page::redirect(&target));
    let places = [server.place(), format!("localhost:{}", other.port())];
    let tool = Fetch::new(Web::new(&places).unwrap());
    let outcome = call(&tool, &json!({ "urls": [server.url("/")] })).await;
    assert!(outcome.failed && said(&outcome).contains("another host"), "{outcome:?}");
    assert!(data(&outcome).contains(&to), "{outcome:?}");
    assert!(other.visits().is_empty());
    // Named in the same call, it was meant.
    let outcome = call(&tool, &json!({ "urls": [server.url("/"), to] })).await;
    assert_eq!(data(&outcome).matches("elsewhere").count(), 2, "{outcome:?}");
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_a_connection_and_cannot_change_its_mind() {
    let server = WebServer::start(|_: &Visit| Page::html("secret"));
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = lookups.clone();
    // Public when it is asked first, this machine ever after.
    let web = Web::looking_up(move |_| {
        let address: IpAddr = match counted.fetch_add(1, Ordering::SeqCst) {
            0 => "192.31.196.1".parse().unwrap(),
            _ => "127.0.0.1".parse().unwrap(),
        };
        Ok(vec![address])
    });
    let tool = Fetch::new(web);
    let arguments = json!({ "urls": [format!("http://rebinding.test:{}/", server.port())] });
    // The first goes to the address that was checked, where nobody answers.
    let first = tokio::time::timeout(Duration::from_secs(2), call(&tool, &arguments)).await;
    assert!(first.is_err() || first.unwrap().failed);
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    let second = call(&tool, &arguments).await;
    assert!(said(&second).contains("rebinding.test leads to 127.0.0.1"), "{second:?}");
    assert!(server.visits().is_empty());
}

#[tokio::test]
async fn slow_endless_packed_and_broken_bodies_end_within_their_bounds() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..8 {
        encoder.write_all(&vec![b'0'; 4 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let server = WebServer::start(move |visit: &Visit| match visit.path.as_str() {
        "/endless" => Page::endless(vec![b'x'; 64 << 10], Duration::ZERO),
        "/bomb" => Page::new("text/plain", bomb.clone()).with("content-encoding", "gzip"),
        "/half" => Page::half("half of it"),
        "/brotli" => Page::new("text/plain", "x").with("content-encoding", "br"),
        "/liar" => Page::new("text/plain", "not packed").with("content-encoding", "gzip"),
        "/binary" => Page::new("text/html", b"\x7fELF\0\0\0".to_vec()),
        _ => Page::new("text/plain", Vec::new()),
    });
    let tool = fetch(&[&server]);
    let cases = [
        ("/endless", "cut off at the size limit"),
        ("/bomb", "cut off at the size limit"),
        ("/half", "broke after"),
        ("/brotli", "was not requested"),
        ("/liar", "could not decompress"),
        ("/binary", "it is not text"),
        ("/empty", "200"),
    ];
    for (path, words) in cases {
        let outcome = call(&tool, &json!({ "urls": [server.url(path)] })).await;
        assert!(said(&outcome).contains(words), "{path}: {}", said(&outcome));
        let shown: usize = data(&outcome).len();
        assert!(shown <= 61_000, "{path}: {shown}");
    }
    all_closed(&server).await;
}

#[tokio::test]
async fn slow_and_silent_servers_cost_their_time_and_no_more() {
    let server = WebServer::start(|visit: &Visit| match visit.path.as_str() {
        "/drip" => Page::endless("d", Duration::from_millis(20)),
        _ => Page::silence(),
    });
    let mut tool = fetch(&[&server]);
    tool.times = (Duration::from_millis(500), Duration::from_secs(60));
    let urls = [server.url("/drip"), server.url("/silent")];
    let outcome = call(&tool, &json!({ "urls": urls })).await;
    assert!(outcome.failed);
    assert_eq!(said(&outcome).matches("longer than 0.5 s").count(), 2, "{outcome:?}");
    // Ten of them, four at a time: the time for all ends the last ones.
    tool.times = (Duration::from_millis(500), Duration::from_millis(1_200));
    let urls: Vec<String> = (0..10).map(|number| server.url(&format!("/{number}"))).collect();
    let began = std::time::Instant::now();
    let outcome = call(&tool, &json!({ "urls": urls })).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(said(&outcome).lines().count(), 10);
    assert_eq!(said(&outcome).matches("longer than 0.5 s").count(), 8, "{outcome:?}");
    assert_eq!(said(&outcome).matches("the whole call ran out of time").count(), 2, "{outcome:?}");
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_connection() {
    let server = WebServer::start(|_: &Visit| Page::endless("x", Duration::from_millis(5)));
    let tool = fetch(&[&server]);
    let arguments = json!({ "urls": [server.url("/1"), server.url("/2")] });
    tokio::select! {
        outcome = call(&tool, &arguments) => panic!("it ended: {outcome:?}"),
        () = async {
            while server.visits().len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        } => {}
    }
    all_closed(&server).await;
}

#[tokio::test]
async fn at_most_four_are_fetched_at_once() {
    let server = WebServer::start(|_: &Visit| Page::endless("x", Duration::from_millis(5)));
    let tool = fetch(&[&server]);
    let urls: Vec<String> = (0..10).map(|number| server.url(&format!("/{number}"))).collect();
    let arguments = json!({ "urls": urls });
    let watching = async {
        while server.visits().len() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.visits().len()
    };
    tokio::select! {
        outcome = call(&tool, &arguments) => panic!("it ended: {outcome:?}"),
        visits = watching => assert_eq!(visits, 4),
    }
}

#[tokio::test]
async fn a_long_text_is_shown_in_parts_and_kept_whole() {
    let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let sent = text.clone();
    let server = WebServer::start(move |_: &Visit| Page::new("text/plain", sent.clone()));
    let tool = fetch(&[&server]);
    let first = call(&tool, &json!({ "urls": [server.url("/")] })).await;
    assert!(said(&first).contains("read on with offset 60000"), "{}", said(&first));
    assert!(first.whole.as_ref().is_some_and(|whole| whole.bytes.len() > text.len()));
    let mut read = data(&first);
    while read.len() < text.len() {
        let arguments = json!({ "urls": [server.url("/")], "offset": read.len() });
        read.push_str(&data(&call(&tool, &arguments).await));
    }
    assert_eq!(read, text);
}

#[tokio::test]
async fn pictures_are_shown_and_documents_need_a_reader() {
    let png = b"\x89PNG\r\n\x1a\nrest".to_vec();
    let server = WebServer::start(move |visit: &Visit| match visit.path.as_str() {
        "/png" => Page::new("image/png", png.clone()),
        _ => Page::new("application/pdf", "%PDF-1.4"),
    });
    let outcome =
        call(&fetch(&[&server]), &json!({ "urls": [server.url("/png"), server.url("/pdf")] }))
            .await;
    assert!(
        outcome
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Image(image) if image.media_type == "image/png"))
    );
    assert!(said(&outcome).contains("cannot be read here"), "{outcome:?}");
}

#[test]
fn the_policy_is_told_every_host_that_can_be_reached() {
    let tool = fetch(&[]);
    let urls = json!({ "urls": ["https://Example.org./a", "http://example.org:8080", "https://example.org/b", "nonsense", "http://0x7f.1/"] });
    let expected = ["example.org", "example.org:8080", "127.0.0.1"].map(str::to_owned);
    assert_eq!(action(&tool, &urls), Action::Network(expected.to_vec()));
    assert_eq!(action(&tool, &json!({ "urls": ["nonsense"] })), Action::Read);
    let one = json!({ "urls": "https://example.org/" });
    assert_eq!(action(&tool, &one), Action::Network(vec!["example.org".to_owned()]));
    let spec = serde_json::to_string(&tool.spec()).unwrap();
    assert!(spec.len() <= 450, "{} bytes: {spec}", spec.len());
}
