//! The report as a page of HTML that needs nothing else: no script, no file beside it.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, HtmlEscape, context};

use super::view::View;
use crate::grade::report::Report;
use crate::words::{Lang, say};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    // Everything that a submission brings along is text and never markup.
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("marked", |text: &str| minijinja::Value::from_safe_string(marked(text)));
    for (name, text) in
        [("page", include_str!("page.html")), ("part", include_str!("part.html")), ("style", include_str!("style.css"))]
    {
        // A template that does not parse cannot be rendered below, which tests show.
        let _ = templates.add_template(name, text);
    }
    templates
});

/// A whole page.
pub fn page(report: &Report, lang: Lang) -> String {
    rendered("page", report, lang)
}

/// The report alone, for a page that there is already, such as a notebook's.
pub fn part(report: &Report, lang: Lang) -> String {
    rendered("part", report, lang)
}

fn rendered(name: &str, report: &Report, lang: Lang) -> String {
    let view = minijinja::Value::from(minijinja::value::Serde(View::new(report, lang)));
    let word = move |key: String| say(lang, &format!("grade.text.{key}"), &[]);
    let word = minijinja::Value::from_function(word);
    let rendered = TEMPLATES.get_template(name).and_then(|template| template.render(context! { view, word }));
    rendered.unwrap_or_else(|error| format!("<p>{}</p>", error.to_string().replace('<', "&lt;")))
}

/// Text with `commands` between backticks shown as such; all else is escaped.
fn marked(text: &str) -> String {
    let parts: Vec<_> = text.split('`').collect();
    if parts.len() % 2 == 0 {
        return HtmlEscape(text).to_string();
    }
    let part = |(at, part): (usize, &&str)| {
        let escaped = HtmlEscape(part);
        if at % 2 == 1 { format!("<code>{escaped}</code>") } else { escaped.to_string() }
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_marked_and_nothing_else_becomes_markup() {
        assert_eq!(marked("Run `ip link <x>` & look"), "Run <code>ip link &lt;x&gt;</code> &amp; look");
        assert_eq!(marked("a lone ` and <b>"), "a lone ` and &lt;b&gt;");
        assert_eq!(marked("plain"), "plain");
    }
}
