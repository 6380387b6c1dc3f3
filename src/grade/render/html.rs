//! The report as a page of HTML that needs nothing else: no script, no file beside it.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, context};

use super::view::View;
use crate::grade::report::Report;
use crate::words::{Lang, say};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    // Everything that a submission brings along is text and never markup.
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
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
