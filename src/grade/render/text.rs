//! The report for a terminal.

use super::view::{FindingLine, ItemView, View};
use super::wrap::{padded, width, wrapped};
use crate::grade::report::Report;
use crate::words::{Lang, say};

/// How the text is laid out.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    pub lang: Lang,
    /// Places of a line.
    pub width: usize,
    /// Whether the terminal shows colours.
    pub is_painted: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { lang: Lang::En, width: 100, is_painted: false }
    }
}

const LEAST_WIDTH: usize = 40;

/// The report as text, with a line feed at its end.
pub fn text(report: &Report, options: TextOptions) -> String {
    let options = TextOptions { width: options.width.max(LEAST_WIDTH), ..options };
    let view = View::new(report, options.lang);
    let mut page = Page { options, lines: Vec::new() };
    page.head(&view);
    page.findings("findings", &view.findings);
    if view.has_captures {
        page.findings("quality", &view.quality);
        if view.quality.is_empty() {
            page.line("");
            let title = page.word("quality");
            page.line(&page.paint(&title, "1"));
            page.line(&format!("  {}", page.word("no_quality")));
        }
    }
    for group in &view.groups {
        page.line("");
        let title = if group.title.is_empty() { page.word("checks") } else { group.title.clone() };
        let points = if group.points.is_empty() { String::new() } else { format!("  {}", group.points) };
        page.line(&format!("{}{points}", page.paint(&title, "1")));
        for item in &group.items {
            page.item(item);
        }
    }
    page.lines.join("\n") + "\n"
}

struct Page {
    options: TextOptions,
    lines: Vec<String>,
}

impl Page {
    fn word(&self, key: &str) -> String {
        say(self.options.lang, &format!("grade.text.{key}"), &[])
    }

    fn paint(&self, text: &str, how: &str) -> String {
        if self.options.is_painted { format!("\x1b[{how}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&mut self, line: &str) {
        self.lines.push(line.trim_end().to_owned());
    }

    fn head(&mut self, view: &View) {
        self.line(&self.paint(&view.title, "1"));
        for line in wrapped(&view.summary, self.options.width) {
            self.line(&self.paint(&line, "2"));
        }
        self.line("");
        let mut pairs =
            vec![(self.word("score"), self.paint(&view.score, "1")), (self.word("status"), view.status.clone())];
        if view.needs_review {
            pairs.push((self.word("review"), view.review.join("\n")));
        }
        pairs.push((self.word("submission"), view.submission.clone()));
        pairs.push((self.word("rubric"), view.lab.clone()));
        if !view.params.is_empty() {
            let params: Vec<_> = view.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
            pairs.push((self.word("params"), params.join("  ")));
        }
        let files: Vec<_> = view
            .files
            .iter()
            .map(|file| format!("{}  ({}; {}, {})", file.name, file.input, file.kind, file.size))
            .collect();
        pairs.push((self.word("files"), files.join("\n")));
        self.pairs("", &pairs);
    }

    /// Names and texts below each other; texts wrap in their own column.
    fn pairs(&mut self, indent: &str, pairs: &[(String, String)]) {
        let room = pairs.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        let places = self.options.width.saturating_sub(width(indent) + room + 2).max(20);
        for (name, text) in pairs {
            for (at, line) in wrapped(text, places).iter().enumerate() {
                let name = if at == 0 { padded(name, room) } else { " ".repeat(room) };
                self.line(&format!("{indent}{}  {line}", self.paint(&name, "2")));
            }
        }
    }

    fn findings(&mut self, title: &str, findings: &[FindingLine]) {
        if findings.is_empty() {
            return;
        }
        self.line("");
        let title = self.word(title);
        self.line(&self.paint(&title, "1"));
        let pairs: Vec<_> = findings
            .iter()
            .map(|one| {
                let place = if one.place.is_empty() { String::new() } else { format!("{}: ", one.place) };
                (one.word.clone(), format!("{place}{}", one.message))
            })
            .collect();
        self.pairs("  ", &pairs);
    }

    fn item(&mut self, item: &ItemView) {
        let colour = match item.status {
            "pass" => "32",
            "fail" => "31",
            _ => "33",
        };
        let note = if item.notes.is_empty() { String::new() } else { format!(" ({})", item.notes.join("; ")) };
        let points = format!("{}{note}", item.points);
        let points = points.trim_start();
        let places = self.options.width.saturating_sub(width(points) + 8).max(20);
        for (at, line) in wrapped(&item.title, places).iter().enumerate() {
            if at == 0 {
                let mark = self.paint(item.mark, colour);
                self.line(&format!("  {mark} {}  {points}", padded(line, places)));
            } else {
                self.line(&format!("    {line}"));
            }
        }
        for text in [&item.message, &item.reason] {
            for line in wrapped(text, self.options.width.saturating_sub(6)).iter().filter(|line| !line.is_empty()) {
                self.line(&format!("      {line}"));
            }
        }
        if item.status != "pass" {
            self.lost(item);
        }
    }

    fn lost(&mut self, item: &ItemView) {
        let mut pairs = Vec::new();
        for one in item.measured.iter().filter(|one| one.is_met != Some(true)) {
            pairs.push((self.word("expected"), one.expected.clone()));
            pairs.push((self.word("measured"), one.measured.clone()));
        }
        pairs.extend(item.frames.iter().map(|frames| (self.word("frames"), frames.clone())));
        pairs.extend(item.filters.iter().map(|filter| (self.word("filter"), filter.clone())));
        if !item.searched.is_empty() {
            pairs.push((self.word("searched"), item.searched.clone()));
        }
        if !item.hint.is_empty() {
            pairs.push((self.word("try"), item.hint.clone()));
        }
        self.pairs("      ", &pairs);
    }
}
