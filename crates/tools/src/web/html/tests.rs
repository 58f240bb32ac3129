//! Pages and what is made of them.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn read(html: &str) -> Page {
    page(html, &Url::parse("https://example.org/docs/index.html").unwrap())
}

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(read(html).text, expected, "{html}");
}

#[test]
fn a_page_becomes_markdown_with_links() {
    check(
        "<html><head><title> The\n page </title></head><body><h1>Hello</h1><p>One\n  <b>two</b>, \
         <a href='../x?a=1&amp;b=2'>three</a>.<p>Four<br>five</body></html>",
        "# Hello\n\nOne two, [three](https://example.org/x?a=1&b=2).\n\nFour\nfive",
    );
    assert_eq!(
        read("<title> The\n page </title><p>x<svg><title>icon</title></svg>").title,
        "The page"
    );
}

#[test]
fn lists_code_quotes_and_tables_keep_their_shape() {
    check(
        "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ol start=3><li>d<li>e</ol>",
        "- a\n  - b\n- c\n\n3. d\n4. e",
    );
    check(
        "<p>Run <code>a &lt; b</code>:</p><pre><code>fn main() {\n    x();\n\n}\n</code></pre>done",
        "Run `a < b`:\n\n```\nfn main() {\n    x();\n\n}\n```\n\ndone",
    );
    check("<blockquote><p>said</p><p>again</p></blockquote>by", "> said\n\n> again\n\nby");
    check(
        "<table><tr><th>a<th>b</tr><tr><td>1</td><td><a href=/l>2</a></td></tr></table>",
        "a | b\n1 | [2](https://example.org/l)",
    );
}

#[test]
fn what_no_reader_sees_is_left_out() {
    check(
        "<script>var a = '<p>no</p>';</script><style>p{}</style><p>yes</p><!-- no -->\
         <noscript>no</noscript><p hidden>no</p><div style='DISPLAY : none'>no<div>no</div></div>\
         <span aria-hidden=true>no</span><p>and yes",
        "yes\n\nand yes",
    );
}

#[test]
fn the_content_is_preferred_to_what_is_around_it() {
    let long = "word ".repeat(60);
    let html = format!(
        "<nav><a href=/>Home</a></nav><div>banner</div><main><h1>T</h1><p>{long}</p></main>\
         <footer>legal</footer>"
    );
    assert_eq!(read(&html).text, format!("# T\n\n{}", long.trim()));
    // Without enough of it the page is read as a whole.
    let html = format!("<main></main><nav>{}</nav>", "<a href=/a>entry</a> ".repeat(40));
    assert!(read(&html).text.contains("[entry](https://example.org/a)"));
}

#[test]
fn links_that_lead_nowhere_are_plain_words() {
    check(
        "<a href='javascript:alert(1)'>a</a> <a href=#b>b</a> <a>c</a> <a href=/d></a>e",
        "a b c e",
    );
    check("<a href=/x><img src=i.png alt='a  cat'></a>", "[[image: a cat]](https://example.org/x)");
    check("<base href='https://other.test/y/'><a href=z>w</a>", "[w](https://other.test/y/z)");
}

#[test]
fn slow_hostile_pages_take_no_longer_than_their_length_allows() {
    let cases = [
        "<div>".repeat(80_000),
        "<".repeat(400_000),
        "<a ".repeat(140_000),
        "<a href=\"".repeat(40_000),
        "<script>".repeat(40_000),
        "</script".repeat(40_000),
        "<!--".repeat(100_000),
        "&amp".repeat(100_000),
        "<ul><li>".repeat(40_000),
        "<blockquote>x".repeat(20_000),
        "<pre>\n".repeat(40_000),
        format!("<a {}>", "x=1 ".repeat(80_000)),
        "<nav>".repeat(60_000),
    ];
    for html in cases {
        let (sender, receiver) = std::sync::mpsc::channel();
        let beginning: String = html.chars().take(12).collect();
        std::thread::spawn(move || sender.send(read(&html)));
        let page = receiver.recv_timeout(Duration::from_secs(20));
        assert!(page.is_ok(), "{beginning} took too long or broke");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_fault(html in "(<[!/]?[a-z]{0,6}[ ='\">a-z]{0,12}>?|[&;#a-z0-9 \n]{0,9}|ä|-->){0,40}") {
        read(&html);
    }
}
